"""Kernels as they are written for the GPU, compiled for the CPU with what its instructions do in C++."""

from __future__ import annotations

import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from lumi import dim
from lumi.backends.cuda.emit import Code, emit, source
from lumi.backends.cuda.grid import EVERY
from lumi.backends.cuda.tensormap import Box
from lumi.llir.kernel import Step

HERE = Path(__file__).parent

FLAGS = ("-std=c++17", "-O1", "-shared", "-fPIC", "-ffp-contract=off", "-w")

GUARD = 256
"""Bytes around each buffer, and what it is aligned to."""

BLOCKS = 7
"""Blocks at most, so that some run several cells."""

MAP = 128
"""Bytes of a tensor map."""

RESERVED = 1024
"""Bytes of shared memory that a block cannot use: no address of its own is 0."""

_FENCE = re.compile(r'asm volatile\("fence\.[^"]*" ::: "memory"\);')
_GROUPED = re.compile(r"\bwgmma_(bf16|f16)_([rst])([st])_(\d+)\(")
_POOL = re.compile(r"extern __shared__ __align__\(\d+\) u8 pool\[\];")
_FUNCTION = re.compile(r"^(template <[^\n]*>\s)?INLINE [^;{]*\{", re.MULTILINE)
_NAME = re.compile(r"(__restrict__ )?\w+$")
_PARAMETERS = re.compile(r"__global__ void __launch_bounds__\([\d, ]+\) kernel\((.*)\) \{")


def is_possible() -> bool:
    """Whether there is a compiler for C++."""
    return shutil.which("g++") is not None


class Emulated:
    """One step on the CPU; `run` runs it in place.

    `change` may alter its code first, `helpers` that of the helpers too.
    """

    def __init__(
        self, step: Step, change: Callable[[str], str] = str, helpers: Callable[[str], str] = str
    ) -> None:
        self.step = step
        self.code: Code = emit(step, "kernel")
        text = helpers(_source(change(self.code.text), len(step.dims)))
        self.library = ctypes.CDLL(str(_compiled(text)))
        self.met = np.zeros(1, np.uint32)

    def run(
        self,
        arrays: Mapping[str, np.ndarray],
        values: Mapping[str, int],
        *,
        early: bool,
        backwards: bool,
        more: Sequence[int] = (),
    ) -> None:
        """Run all cells; copies are made as `early` or as late, threads in the one order or the other.

        `more` are the arguments that the kernel takes behind its dims.  Raises `AssertionError` for accesses
        that a GPU refuses, and when something beside the buffers is written.
        """
        names = self.step.buffers
        held = [_guarded(arrays[n]) for n in names]
        starts = [h.ctypes.data + GUARD for h in held]
        maps = [_seen(starts[box.buffer], box, values) for box in self.code.maps]
        addresses = [*starts, self.met.ctypes.data, *(m.ctypes.data for m in maps)]
        places = (ctypes.c_void_p * len(addresses))(*addresses)
        sizes = (ctypes.c_longlong * len(names))(*(arrays[n].nbytes for n in names))
        numbers = [*(values[n] for n in self.step.dims), *more]
        given = (ctypes.c_longlong * max(len(numbers), 1))(*numbers)
        cells = self.code.cells(values)
        blocks = max(1, cells if self.code.resident == EVERY else min(cells, BLOCKS))
        faults = self.library.emulated_launch(
            *(self.library.run, places, sizes, len(names), given, blocks, self.code.threads),
            *(int(early), int(backwards)),
        )
        assert faults == 0, f"{faults} accesses that a GPU refuses"
        for name, block in zip(names, held, strict=True):
            size = arrays[name].nbytes
            assert (block[:GUARD] == 0xFF).all(), f"it writes before {name}"
            assert (block[GUARD + size :] == 0xFF).all(), f"it writes behind {name}"
            arrays[name].reshape(-1).view(np.uint8)[:] = block[GUARD : GUARD + size]


def _seen(address: int, box: Box, values: Mapping[str, int]) -> np.ndarray:
    """What the copy engine knows of a buffer at an address.

    Where dims say how many lines there are, the GPU may have memory for more: they are NaN then.
    """
    lines, is_open = dim.value(box.lines, values), not isinstance(box.lines, int)
    extents = (box.width, lines, box.line_step, box.planes, box.plane_step, box.height)
    sizes = (*extents, int(is_open), box.dtype.size)
    found = np.zeros(MAP // 8, np.int64)
    found[: len(sizes) + 1] = (address + box.offset * box.dtype.size, *sizes)
    return found


def _guarded(array: np.ndarray) -> np.ndarray:
    """The bytes of an array, aligned as on the GPU, between bytes that make numbers NaN."""
    raw = np.full(array.nbytes + 3 * GUARD, 0xFF, np.uint8)
    start = -raw.ctypes.data % GUARD
    block = raw[start : start + array.nbytes + 2 * GUARD]
    block[GUARD : GUARD + array.nbytes] = array.reshape(-1).view(np.uint8)
    return block


def _source(text: str, count: int) -> str:
    """The kernel, which has `count` dims, as C++: helpers that are made of instructions are replaced."""
    body = _FENCE.sub("", _without_instructions(source([text])))
    body = _POOL.sub(f"u8 *const pool = (u8 *)emulated_pool + {RESERVED};", body)
    types, helpers = body.split("/* ---- ", 1)
    found = _PARAMETERS.search(text)
    assert found is not None, "a kernel has parameters"
    parameters = found.group(1).split(", ")
    meets = [p for p in parameters if p == "u32 *met"]
    maps = [p for p in parameters if "TensorMap" in p]
    *given, _ = (_NAME.sub("", p) for p in parameters if "*" in p and p not in meets)
    casts = [f"({kind})a[{n}]" for n, kind in enumerate(given)]
    more = [f"dims[{count + n}]" for n in range(len(parameters) - len(given) - len(meets) - len(maps) - 1)]
    more += [f"(u32 *)a[{len(given)}]" for _ in meets]
    more += [f"*(const TensorMap *)a[{len(given) + 1 + n}]" for n in range(len(maps))]
    parts = [
        (HERE / "device.h").read_text(),
        types,
        (HERE / "instructions.h").read_text(),
        *_grouped(text),
        "/* ---- " + helpers,
    ]
    arguments = ", ".join([*casts, "dims", *more])
    run = f'extern "C" void run(void **a, const long long *dims) {{ kernel({arguments}); }}'
    return "\n".join([*parts, run])


def _grouped(text: str) -> list[str]:
    """The instructions of groups of warps that a kernel calls."""
    made = []
    for kind, a, b, columns in sorted(set(_GROUPED.findall(text))):
        factor, across = ("const u32 (&a)[4]", []) if a == "r" else ("u32 a", [a == "t"])
        numbers = ", ".join([columns, *(str(x).lower() for x in (kind == "bf16", *across, b == "t"))])
        head = f"wgmma_{kind}_{a}{b}_{columns}(float (&v)[2][{int(columns) // 4}], {factor}, u32 b, int keep)"
        stands = f"group_multiply{'_computed' if a == 'r' else ''}<{numbers}>(v, a, b, keep);"
        made.append(f"static inline void {head} {{ {stands} }}")
    return made


def _without_instructions(text: str) -> str:
    """CUDA without the functions that consist of instructions."""
    kept, place = [], 0
    for found in _FUNCTION.finditer(text):
        if found.start() < place:
            continue
        end = _end(text, found.end())
        if "asm" in text[found.start() : end]:
            kept.append(text[place : found.start()])
            place = end
    return "".join([*kept, text[place:]])


def _end(text: str, start: int) -> int:
    """Where the block ends that begins before `start`."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    raise AssertionError("a function does not end")


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="lumi-emulator-")


@cache
def _runtime() -> Path:
    target = Path(_folder().name) / "runtime.o"
    words = ["g++", *FLAGS[:2], "-O2", "-fPIC", "-c", str(HERE / "runtime.cpp"), "-o", str(target)]
    subprocess.run(words, check=True)
    return target


def _compiled(text: str) -> Path:
    name = hashlib.sha256(text.encode()).hexdigest()[:24]
    path = Path(_folder().name) / f"{name}.cpp"
    path.write_text(text)
    target = path.with_suffix(".so")
    ran = subprocess.run(
        ["g++", *FLAGS, str(path), str(_runtime()), "-o", str(target)], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr[:4000]
    return target
