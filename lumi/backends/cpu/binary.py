"""Compiled kernels that travel in a plan, for machines like this one without a compiler.

One shared library holds every kernel of the plan, `k0`, `k1` …, and the function that runs a table of
launches.  It is a program: a device opens one only when it is told to trust the plan.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

from lumi.backends.cpu import library
from lumi.backends.cpu.compile import compile_library, processor
from lumi.backends.cpu.emit import driver_source, emit, source
from lumi.backends.cpu.launch import load_driver, open_library
from lumi.backends.cpu.schedule import available
from lumi.errors import LumiError
from lumi.plan.plan import Binary, Plan


def tag() -> str:
    """What machines can run the binaries that this one makes: system, architecture, features, BLAS or not."""
    features = f"{processor()}\n{library.find_blas() is not None}"
    digest = hashlib.sha256(features.encode()).hexdigest()[:16]
    return f"cpu-{sys.platform}-{platform.machine()}-{digest}"


def build(plan: Plan) -> Binary:
    """Compile every kernel of a plan.  Raises `LumiError` without a compiler."""
    steps = [available(k.step) for k in plan.kernels]
    kernels = source(emit(step, f"k{number}") for number, step in enumerate(steps))
    return Binary(tag(), compile_library(f"{driver_source()}\n{kernels}").read_bytes())


def find(plan: Plan) -> Binary | None:
    """The binary of a plan that this machine can run."""
    return next((b for b in plan.binaries if b.tag == tag()), None)


def open_binary(binary: Binary, count: int) -> tuple[list[Any], ctypes.CDLL]:
    """The functions of `count` kernels and the library of `lumi_run`.  Raises `LumiError` if it has none."""
    with tempfile.TemporaryDirectory(prefix="lumi-") as folder:
        path = Path(folder) / "kernels.so"
        path.write_bytes(binary.content)
        try:
            opened = open_library(path)
            return [opened[f"k{number}"] for number in range(count)], load_driver(path)
        except (OSError, AttributeError) as error:
            raise LumiError(
                "plan error", f"binary {binary.tag} cannot be opened: {error}", hint="compile the model again"
            ) from None
