"""C sources to shared libraries, by the compiler of the machine, cached by everything that matters.

The compiler is `CC`, else cc, gcc or clang.  A library's name in the cache is a hash of its source, the
compiler, the flags and the processor, so that nothing stale is ever loaded.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shlex
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lumi import paths
from lumi.errors import LumiError

FLAGS = (
    *("-std=gnu11", "-O2", "-march=native", "-shared", "-fPIC", "-w", "-Wno-psabi"),
    *("-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing"),
)
"""Integers wrap and nothing contracts by itself: the generated code says where it may."""

OPENMP = ("-fopenmp",)

TIMEOUT = 300
"""Seconds after which a compiler is given up."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler: the words of its command and the first line of what it calls itself."""

    command: tuple[str, ...]
    version: str


@functools.cache
def find_compiler() -> Compiler | None:
    """The C compiler of this machine, or None.  Raises `LumiError` when `CC` names one that cannot run."""
    chosen = os.environ.get("CC")
    if chosen:
        found = _compiler(tuple(shlex.split(chosen)))
        if found is None:
            raise LumiError(
                "compiler error",
                f"CC is {chosen!r}, which cannot be run",
                hint="unset CC, or name a C compiler",
            )
        return found
    candidates = (_compiler((name,)) for name in ("cc", "gcc", "clang"))
    return next((c for c in candidates if c is not None), None)


def _compiler(command: tuple[str, ...]) -> Compiler | None:
    if not command or shutil.which(command[0]) is None:
        return None
    try:
        told = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=TIMEOUT)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return Compiler(command, told.stdout.partition("\n")[0]) if told.returncode == 0 else None


@functools.cache
def processor() -> str:
    """What code for "this machine" depends on: the architecture and the processor's features."""
    lines = []
    try:
        text = Path("/proc/cpuinfo").read_text()
        lines = sorted({x for x in text.splitlines() if x.startswith(("model name", "flags", "Features"))})
    except OSError:
        pass
    return "\n".join([platform.machine(), platform.processor(), *lines])


def compile_library(source: str, compiler: Compiler | None = None) -> Path:
    """The shared library of a C source, compiled unless the cache has it.

    Raises `LumiError` when there is no compiler or it refuses the source.
    """
    compiler = compiler or find_compiler()
    if compiler is None:
        raise LumiError("compiler error", "no C compiler was found", hint="install gcc or clang, or set CC")
    known = find_library(source, compiler)
    return known or _compile(source, compiler, _folders()[-1] / _library(source, compiler))


def find_library(source: str, compiler: Compiler) -> Path | None:
    """The shared library of a C source, if the cache has it."""
    library = _library(source, compiler)
    return next((folder / library for folder in _folders() if (folder / library).exists()), None)


def compile_libraries(sources: Sequence[str]) -> list[Path | LumiError]:
    """The libraries of several sources, compiled side by side; an error in the place of each that fails."""

    def one(source: str) -> Path | LumiError:
        try:
            return compile_library(source)
        except LumiError as error:
            return error

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        return list(pool.map(one, sources))


def _library(source: str, compiler: Compiler) -> str:
    parts = (source, *compiler.command, compiler.version, *FLAGS, processor())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32] + ".so"


def _folders() -> list[Path]:
    """Where libraries may lie: the cache, and where new ones go if that cannot be written."""
    cache = paths.cache() / "cpu"
    return [cache] if _is_writable(cache) else [cache, _temporary(cache)]


def is_kept() -> bool:
    """Whether compiled libraries outlive this process."""
    return len(_folders()) == 1


@functools.cache
def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@functools.cache
def _temporary(cache: Path) -> Path:
    """A folder of this process for the case that the cache cannot be written; says so once."""
    holder = tempfile.TemporaryDirectory(prefix="lumi-")
    _HOLDERS.append(holder)
    warnings.warn(
        f"{cache} cannot be written; kernels are compiled again in every process. "
        "Set LUMI_CACHE to a folder that can.",
        stacklevel=2,
    )
    return Path(holder.name)


_HOLDERS: list[tempfile.TemporaryDirectory[str]] = []
"""Keeps temporary folders until the process ends."""


def _compile(source: str, compiler: Compiler, library: Path) -> Path:
    """Compile into a file of our own beside the library, then move it there at once."""
    with tempfile.TemporaryDirectory(dir=library.parent, prefix="build-") as folder:
        text, made = Path(folder) / "kernels.c", Path(folder) / "kernels.so"
        text.write_text(source)
        words = [*compiler.command, *FLAGS, str(text), "-o", str(made), "-lm"]
        extra = OPENMP if has_openmp(compiler) else ()
        told = _run([*words, *extra])
        if told.returncode != 0:
            message = (told.stderr.strip() or told.stdout.strip()).splitlines()
            raise LumiError(
                "compiler error", "\n".join([f"{compiler.version} refused a kernel", *message[:10]])
            )
        made.replace(library)
    return library


@functools.cache
def has_openmp(compiler: Compiler) -> bool:
    """Whether the compiler can build and link a parallel program."""
    probe = "#include <omp.h>\nint probe(void) {\n  return omp_get_max_threads();\n}\n"
    with tempfile.TemporaryDirectory(prefix="lumi-") as folder:
        text = Path(folder) / "probe.c"
        text.write_text(probe)
        words = [
            *compiler.command,
            "-shared",
            "-fPIC",
            *OPENMP,
            str(text),
            "-o",
            str(Path(folder) / "probe.so"),
        ]
        return _run(words).returncode == 0


def _run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a compiler; one that takes too long ends with everything that it has started."""
    process = None
    try:
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        out, err = process.communicate(timeout=TIMEOUT)
    except OSError as error:
        raise LumiError("compiler error", f"{words[0]} cannot be run: {error}") from None
    except subprocess.TimeoutExpired:
        raise LumiError(
            "compiler error",
            f"{words[0]} did not finish a kernel in {TIMEOUT} s",
            hint="try another compiler (CC=clang), or another plan (lumi compile --search none)",
        ) from None
    finally:
        if process is not None and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return subprocess.CompletedProcess(words, process.returncode, out, err)
