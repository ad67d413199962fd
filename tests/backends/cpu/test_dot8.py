"""Sums of products of bytes equal those of the numpy executor, whatever the bytes and their packing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cpu.compile import compile_library
from lumi.backends.cpu.emit import driver_source, emit, source
from lumi.backends.cpu.launch import Launches, load_driver, open_library
from lumi.backends.cpu.schedule import DOT8, schedules
from lumi.errors import Source
from lumi.llir.kernel import Kernel, Step, accesses, buffers
from lumi.llir.parse import parse
from tests.backends.cpu.kernels import Array

RUN = "v1 (load (B0 [b c])) v2 (cast.i32 v1)"
PAIR = "v1 (load (B0 [b c d])) v2 (cast.i32 v1)"
NIBBLES = (
    "q1 (load (B1 [a b d])) q2 (cast.i32 q1) "
    "p1 (position c) p2 (mul p1 4.0) q3 (shr q2 p2) q4 (bitand q3 15.0)"
)
BITS = (
    "w1 (load (B2 [a b c])) w2 (cast.i32 w1) w3 (sub 65535.0 w2) w4 (mul w3 16.0) "
    "w5 (position d) w6 (shr w4 w5) w7 (bitand w6 16.0)"
)

PACKINGS: dict[str, tuple[str, str, str, str]] = {
    # the axes of a row, its buffers, the factors v2 and v9, the function that multiplies
    "bytes": (
        "(b 3) (c 64)",
        "(B0 [3 64] i8) (B1 [13 3 64] i8)",
        f"{RUN} q1 (load (B1 [a b c])) v9 (cast.i32 q1)",
        "dot_bytes32",
    ),
    "short runs": (
        "(b 3) (c 16)",
        "(B0 [3 16] i8) (B1 [13 3 16] i8)",
        f"{RUN} q1 (load (B1 [a b c])) v9 (cast.i32 q1)",
        "dot_bytes16",
    ),
    "wrapping differences": (
        "(b 3) (c 32)",
        "(B0 [3 32] i8) (B1 [13 3 32] u8) (B2 [13 3] u8)",
        f"{RUN} q1 (load (B1 [a b c])) q2 (cast.i32 q1) s1 (load (B2 [a b])) s2 (cast.i32 s1) "
        "q3 (sub q2 s2) q4 (mul q3 4.0) q5 (cast.i8 q4) v9 (cast.i32 q5)",
        "dot_bytes32",
    ),
    "nibbles": (
        "(b 3) (c 2) (d 16)",
        "(B0 [3 2 16] i8) (B1 [13 3 16] u8)",
        f"{PAIR} {NIBBLES} q5 (sub q4 8.0) q6 (cast.i8 q5) v9 (cast.i32 q6)",
        "dot_narrow32",
    ),
    "positive nibbles": (
        "(b 3) (c 2) (d 16)",
        "(B0 [3 2 16] i8) (B1 [13 3 16] u8)",
        f"{PAIR} {NIBBLES} q5 (cast.i8 q4) v9 (cast.i32 q5)",
        "dot_whole32",
    ),
    "a fifth bit": (
        "(b 3) (c 2) (d 16)",
        "(B0 [3 2 16] i8) (B1 [13 3 16] u8) (B2 [13 3 2] i32)",
        f"{PAIR} {NIBBLES} {BITS} q5 (sub q4 w7) q6 (cast.i8 q5) v9 (cast.i32 q6)",
        "bits_bytes32",
    ),
    "bits of one word": (
        "(b 3) (c 1) (d 16)",
        "(B0 [3 1 16] i8) (B2 [13 3 1] i32)",
        f"{PAIR} {BITS} q5 (cast.i8 w7) v9 (cast.i32 q5)",
        "bits_bytes16",
    ),
    "bits of a long word": (
        "(b 3) (c 1) (d 32)",
        "(B0 [3 1 32] i8) (B2 [13 3 1] i32)",
        f"{PAIR} {BITS} q5 (cast.i8 w7) v9 (cast.i32 q5)",
        "bits_bytes32",
    ),
    "scaled bits": (
        "(b 3) (c 16)",
        "(B0 [3 16] i8) (B1 [13 16] u8)",
        f"{RUN} q1 (load (B1 [a c])) q2 (cast.i32 q1) q3 (mul q2 16.0) p1 (position b) p2 (mul p1 2.0) "
        "q4 (shr q3 p2) q5 (bitand q4 48.0) q6 (add q5 -32.0) q7 (cast.i8 q6) v9 (cast.i32 q7)",
        "dot_bytes16",
    ),
    "scaled bits of pairs": (
        "(b 4) (c 16)",
        "(B0 [4 16] i8) (B1 [13 16] u8)",
        f"{RUN} q1 (load (B1 [a c])) q2 (cast.i32 q1) q3 (mul q2 16.0) p1 (position b) p2 (mul p1 2.0) "
        "q4 (shr q3 p2) q5 (bitand q4 48.0) q6 (add q5 -32.0) q7 (cast.i8 q6) v9 (cast.i32 q7)",
        "dot_narrow32",
    ),
    "no bytes": (
        "(b 3) (c 32)",
        "(B0 [3 32] i8) (B1 [13 3 32] u8)",
        f"{RUN} q1 (load (B1 [a b c])) q2 (cast.i32 q1) q3 (div q2 3.0) q4 (cast.i8 q3) v9 (cast.i32 q4)",
        "",
    ),
}


def kernel_of(name: str) -> Kernel:
    axes, held, factors, _ = PACKINGS[name]
    over = " ".join(part.strip("()").split()[0] for part in axes.split(") "))
    text = (
        f"(kernel :buffers [{held} (B9 [13] i32)] :axes [(a 13) {axes}] :grid [(a 4)] :resident [{over}]"
        f" (let [{factors} v10 (dot [{over}] v2 v9)] (store (B9 [a]) v10)))"
    )
    return parse(Source(name, text))


def arrays_of(kernel: Kernel, draw: Callable[[int, int, tuple[int, ...]], Array]) -> dict[str, Array]:
    """Buffers whose integers `draw(low, high, shape)` makes."""
    return {
        a.buffer: draw(*a.dtype.bounds, tuple(int(n) for n in a.shape)).astype(a.dtype.storage)  # type: ignore[call-overload]
        for a, _ in accesses(kernel)
    }


def run(text: str, kernel: Kernel, arrays: dict[str, Array]) -> None:
    library, driver = open_library(compile_library(text)), load_driver(compile_library(driver_source()))
    Launches(driver, [(library["k"], (), [arrays[b].ctypes.data for b in buffers(kernel)])]).run({})


DRAWS: dict[str, Callable[[int, int, tuple[int, ...]], Array]] = {
    "any": lambda low, high, shape: np.random.default_rng(3).integers(low, high, shape, endpoint=True),
    "least": lambda low, high, shape: np.full(shape, low),
    "greatest": lambda low, high, shape: np.full(shape, high),
}


@pytest.mark.parametrize("machine", ["", "#undef __AVX2__\n"], ids=["native", "plain"])
@pytest.mark.parametrize("name", PACKINGS)
def test_sums_equal_the_numpy_executor(name: str, machine: str) -> None:
    kernel, function = kernel_of(name), PACKINGS[name][3]
    assert set(DOT8) <= set(schedules(kernel))
    for schedule in DOT8:
        text = emit(Step(kernel, schedule), "k")
        assert function in text and ("dot_" in text) == bool(function)
        for draw in DRAWS.values():
            want, got = arrays_of(kernel, draw), arrays_of(kernel, draw)
            interpret.run(kernel, want, {})
            run(machine + source([text]), kernel, got)
            np.testing.assert_array_equal(got["B9"], want["B9"], err_msg=f"{name} {schedule}")


def test_floats_that_are_rounded_in_the_kernel_are_no_bytes() -> None:
    text = (
        "(kernel :buffers [(B0 [32] f32) (B1 [13 32] i8) (B9 [13] i32)] :axes [(a 13) (c 32)] :grid [(a 4)]"
        " :resident [c] (let [v1 (load (B0 [c])) v2 (cast.i8 v1) v3 (cast.i32 v2) v4 (load (B1 [a c]))"
        " v5 (cast.i32 v4) v6 (dot [c] v3 v5)] (store (B9 [a]) v6)))"
    )
    assert not set(DOT8) & set(schedules(parse(Source("rounded", text))))
