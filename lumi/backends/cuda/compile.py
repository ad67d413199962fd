"""CUDA sources to machine code, by NVRTC, cached by everything that matters.

A file of the cache is called by a hash of the source, the architecture, the options and the version of
NVRTC, so that nothing stale is ever loaded.  Many sources are compiled by processes side by side, each
started as `python -m lumi.backends.cuda.compile`: a JSON job on standard input, the results on output.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lumi import paths
from lumi.backends.cuda import crew
from lumi.backends.cuda.crew import Member
from lumi.errors import LumiError
from lumi.runtime.device import tell_compiling

OPTIONS = (
    "--std=c++17",
    "--fmad=false",
    "--ptxas-options=-v",
    "--device-as-default-execution-space",
    "--diag-suppress=177",
)
"""Nothing contracts or flushes by itself: the generated code says where it may.  Nor is every helper told
that a kernel does without."""

BRIEF = "--minimal"
"""Leaves out the declarations of CUDA's libraries, a good part of the time that a small kernel takes."""

_BRIEF_SINCE = 12, 8
"""The first version of NVRTC that is asked for it."""

_INLINE = 2
"""So many sources are compiled here; for more, processes are worth their start."""

_USED = re.compile(r"Used (\d+) registers")
_SPILLED = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code for one architecture: the registers of a thread and the bytes it spills."""

    registers: int
    spilled: int
    content: bytes = field(repr=False)


def prepare() -> None:
    """Load now what the first compilation of a process has to load.  Raises `LumiError` without NVRTC."""
    nvrtc = _nvrtc()
    (program,) = _check(nvrtc.nvrtcCreateProgram(b"__global__ void nothing() {}", b"nothing.cu", 0, [], []))
    nvrtc.nvrtcCompileProgram(program, 0, [])
    nvrtc.nvrtcDestroyProgram(program)


def compile_cubin(source: str, arch: str) -> Cubin:
    """The machine code of a source for `arch` (`sm_90a`), compiled unless the cache has it.

    Raises `LumiError` when NVRTC is missing or refuses the source.
    """
    found = _cached(source, arch)
    if found is None:
        found = _compile(source, arch)
        _keep(found, source, arch)
    return found


def compile_cubins(sources: Sequence[str], arch: str) -> list[Cubin | LumiError]:
    """The machine code of several sources, compiled side by side; an error in the place of a failure."""
    missing = list(dict.fromkeys(s for s in sources if _cached(s, arch) is None))
    tell_compiling(len(missing), is_kept=_folder() == paths.cache() / "cuda")
    failures = _in_processes(missing, arch) if len(missing) > _INLINE else {}

    def one(source: str) -> Cubin | LumiError:
        if source in failures:
            return LumiError("compiler error", failures[source])
        try:
            return compile_cubin(source, arch)
        except LumiError as error:
            return error

    return [one(source) for source in sources]


# -- NVRTC


@functools.cache
def version() -> tuple[int, int]:
    """The version of NVRTC.  Raises `LumiError` when it cannot be loaded."""
    major, minor = _check(_nvrtc().nvrtcVersion())
    return major, minor


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise LumiError(
            "compiler error",
            f"NVRTC, the compiler of CUDA kernels, was not found: {reason}",
            hint="pip install -e '.[cuda]' in Lumi's checkout",
        ) from None
    return nvrtc


def _check(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    if int(answer[0]) != 0:
        raise LumiError("compiler error", f"NVRTC answers {answer[0]!r}")
    return answer[1:]


def _options() -> tuple[str, ...]:
    return (*OPTIONS, BRIEF) if version() >= _BRIEF_SINCE else OPTIONS


def _compile(source: str, arch: str) -> Cubin:
    nvrtc = _nvrtc()
    (program,) = _check(nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], []))
    try:
        options = [o.encode() for o in (f"--gpu-architecture={arch}", *_options())]
        told = nvrtc.nvrtcCompileProgram(program, len(options), options)
        log = _text(nvrtc, program)
        if int(told[0]) != 0:
            lines = [line for line in log.splitlines() if "error" in line][:10] or log.splitlines()[:10]
            raise LumiError("compiler error", "\n".join(["NVRTC refused a kernel", *lines]))
        (size,) = _check(nvrtc.nvrtcGetCUBINSize(program))
        content = bytearray(size)
        held = bytes(content)
        _check(nvrtc.nvrtcGetCUBIN(program, held))
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    registers = max((int(n) for n in _USED.findall(log)), default=0)
    spilled = max((max(int(a), int(b)) for a, b in _SPILLED.findall(log)), default=0)
    return Cubin(registers, spilled, held)


def _text(nvrtc: Any, program: Any) -> str:
    (size,) = _check(nvrtc.nvrtcGetProgramLogSize(program))
    log = b" " * int(size)
    _check(nvrtc.nvrtcGetProgramLog(program, log))
    return str(log.rstrip(b"\0 ").decode(errors="replace"))


# -- the cache


def is_compiled(source: str, arch: str) -> bool:
    """Whether the cache has the machine code of a source."""
    return _path(source, arch).exists()


def _path(source: str, arch: str) -> Path:
    parts = (source, arch, *_options(), str(version()))
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    return _folder() / f"{name}.cubin"


def _cached(source: str, arch: str) -> Cubin | None:
    try:
        head, _, content = _path(source, arch).read_bytes().partition(b"\n")
        return Cubin(**json.loads(head), content=content)
    except (OSError, ValueError, TypeError):
        return None


def _keep(cubin: Cubin, source: str, arch: str) -> None:
    """Write a file of our own beside its place in the cache, then move it there at once."""
    path = _path(source, arch)
    head = {k: v for k, v in asdict(cubin).items() if k != "content"}
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "wb") as stream:
        stream.write(json.dumps(head).encode() + b"\n" + cubin.content)
    Path(temporary).replace(path)


def _folder() -> Path:
    """Where compiled kernels lie; its last part is `cuda`."""
    return _usable(paths.cache() / "cuda")


@functools.cache
def _usable(folder: Path) -> Path:
    """A folder, or one of this process where that cannot be written, which is said once."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        _HOLDERS.append(tempfile.TemporaryDirectory(prefix="lumi-"))
        warnings.warn(
            f"{folder} cannot be written; kernels are compiled again in every process. "
            "Set LUMI_CACHE to a folder that can.",
            stacklevel=2,
        )
        own = Path(_HOLDERS[-1].name) / "cuda"
        own.mkdir()
        return own


_HOLDERS: list[tempfile.TemporaryDirectory[str]] = []
"""Keeps temporary folders until the process ends."""


# -- processes


def start(sources: Sequence[str], arch: str, most: int) -> list[Member]:
    """Processes, at most so many, that compile sources into the cache, the first first."""
    return crew.start("lumi.backends.cuda.compile", sources, arch, _folder().parent, most)


def _in_processes(sources: Sequence[str], arch: str) -> dict[str, str]:
    """Compile into the cache in several processes; the messages of the sources that were refused."""
    failures: dict[str, str] = {}
    for member in start(sources, arch, os.cpu_count() or 1):
        failures |= member.answers()
    return failures


def main() -> None:
    """Compile the job on standard input; print for each source what is wrong with it, or null."""
    job = json.load(sys.stdin)
    answers: list[str | None] = []
    for source in job["sources"]:
        try:
            compile_cubin(source, job["arch"])
            answers.append(None)
        except LumiError as error:
            answers.append(error.message)
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
