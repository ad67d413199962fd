"""Checks of the machine itself: Python and its packages, the C compiler, the processor, the cache."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version

from lumi import paths
from lumi.cli.check import Check
from lumi.errors import LumiError

_ESSENTIAL = ("numpy", "lark", "egglog")
_EXTRAS = {"tokenizers": "reads tokenizer.json: pip install -e '.[tokenizers]' in Lumi's checkout"}
_REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)\s*([^;]*)")
_FEATURES = {
    "AVX2": "__AVX2__",
    "FMA": "__FMA__",
    "F16C": "__F16C__",
    "AVX512F": "__AVX512F__",
    "AVX512-VNNI": "__AVX512VNNI__",
    "AVX512-BF16": "__AVX512BF16__",
    "AVX-VNNI": "__AVXVNNI__",
    "AMX-INT8": "__AMX_INT8__",
    "NEON": "__ARM_NEON",
    "SVE": "__ARM_FEATURE_SVE",
    "DOTPROD": "__ARM_FEATURE_DOTPROD",
}


def packages() -> Iterator[Check]:
    """Python, Lumi, and the packages it depends on, against the versions it asks for."""
    yield Check("Python", True, f"{platform.python_version()} at {sys.executable}", is_required=True)
    yield Check("lumi", True, version("lumi"), is_required=True)
    for requirement in requires("lumi") or ():
        match = _REQUIREMENT.match(requirement)
        if match and "extra ==" not in requirement:
            yield _package(match[1], match[2].strip())
    for name, advice in _EXTRAS.items():
        yield _package(name, "", advice)


def _package(name: str, wanted: str, advice: str = "") -> Check:
    essential = name in _ESSENTIAL
    try:
        found = version(name)
    except PackageNotFoundError:
        return Check(name, False, "missing", advice or f"pip install '{name}{wanted}'", essential)
    if not satisfies(found, wanted):
        return Check(
            name, False, f"{found}, but {wanted} is needed", f"pip install '{name}{wanted}'", essential
        )
    return Check(name, True, found, is_required=essential)


def satisfies(found: str, wanted: str) -> bool:
    """Whether a version fits bounds such as `>=13.2,<15`."""
    for bound in filter(None, wanted.split(",")):
        match = re.fullmatch(r"\s*(>=|<)\s*([\d.]+)\s*", bound)
        if match and (_numbers(found) >= _numbers(match[2])) is not (match[1] == ">="):
            return False
    return True


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of a version, without what follows them; 13.2 and 13.2.0 are one."""
    match = re.match(r"[\d.]+", text)
    numbers = [int(part) for part in match[0].split(".") if part] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def compilers() -> Iterator[Check]:
    """The C compiler, OpenMP, the vector instructions it may use, and the BLAS."""
    from lumi.backends.cpu import compile as c

    advice = "install gcc or clang (apt install gcc, xcode-select --install); without it plans run slowly"
    try:
        compiler = c.find_compiler()
    except LumiError as error:
        compiler, advice = None, f"{error.message}: {error.hint}"
    if compiler is None:
        yield Check("C compiler", False, "missing", advice)
        return
    command = " ".join(compiler.command)
    named = compiler.version.startswith(f"{command} ")
    yield Check("C compiler", True, compiler.version if named else f"{compiler.version} ({command})")
    openmp = c.has_openmp(compiler)
    missing = "install libomp (or the compiler's OpenMP runtime); without it kernels run on one core"
    yield Check("OpenMP", openmp, "yes" if openmp else "missing", "" if openmp else missing)
    macros = _macros(compiler.command)
    features = " ".join(name for name, macro in _FEATURES.items() if macro in macros)
    yield Check("vector features", True, features or "none that is known")


def blas() -> Check:
    """The library whose matrix product kernels may call."""
    advice = (
        "install OpenBLAS, or a numpy that brings it (pip install numpy); without it Lumi's own kernels run"
    )
    try:
        from lumi.backends.cpu.library import find_blas

        found = find_blas()
    except ImportError as error:
        return Check("CPU BLAS", False, f"missing: {error}", advice)
    if found is None:
        return Check("CPU BLAS", False, "missing", advice)
    return Check("CPU BLAS", True, found.name)


def _macros(command: Sequence[str]) -> set[str]:
    """What the compiler defines for the processor of this machine."""
    words = [*command, "-march=native", "-dM", "-E", "-x", "c", os.devnull]
    told = subprocess.run(words, capture_output=True, text=True, check=False)
    return set(re.findall(r"#define (\w+)", told.stdout))


def cache() -> Check:
    """The folder of compiled kernels and the tuning database."""
    folder = paths.cache()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return Check("cache", True, f"{folder}, writable")
    except OSError as error:
        advice = "set LUMI_CACHE to a folder that can be written; else every process compiles its kernels"
        return Check("cache", False, f"{folder}: {error.strerror}", advice)
