"""Steps whose kernels take turns: each works on what the one before has made."""

from __future__ import annotations

from lumi.backends.cuda.schedule import DEFAULT
from lumi.dtype import BF16
from lumi.llir.kernel import Kernel, Schedule, Step
from lumi.llir.rename import rename
from tests.backends.cpu.kernels import Array, matmul, random_buffers

RING = Schedule("ring", (("flight", 2), ("stage", 32), ("stages", 6)))
STREAM = Schedule("stream", (("rows", 2), ("threads", 128), ("unroll", 4)))


def product(source: str, target: str, rows: int, length: int) -> Kernel:
    """`target`, which has `rows` elements, is a matrix of its own times `source`, which has `length`."""
    found = matmul({"m": 1, "n": rows, "k": length}, "mk", "nk", {"n": 8, "k": 512}, BF16)
    return rename(found, {"A": source, "B": f"W_{target}", "R": target})


def chain(*turns: Step) -> Step:
    first, *others = turns
    return Step(first.kernel, first.schedule, first.beside, tuple(others))


CHAINS = {
    "rings": chain(
        Step(product("x", "y", 264, 512), RING),
        Step(product("y", "z", 520, 264), RING),
        Step(product("z", "o", 40, 520), RING),
    ),
    "cells": chain(
        Step(product("x", "y", 72, 130), DEFAULT),
        Step(product("y", "z", 9, 72), STREAM, (product("x", "q", 20, 130),)),
        Step(product("z", "o", 33, 9), DEFAULT),
    ),
    "both": chain(
        Step(product("x", "y", 48, 512), RING, (product("x", "q", 40, 512),)),
        Step(product("y", "z", 136, 48), STREAM, (product("q", "s", 13, 40),)),
        Step(product("z", "o", 24, 136), RING, (product("y", "p", 11, 48),)),
        Step(product("s", "t", 7, 13), DEFAULT),
    ),
    "a matrix that is made": chain(
        Step(rename(matmul({"m": 8, "n": 8, "k": 16}, "mk", "nk", {}, BF16), {"R": "W_o"}), DEFAULT),
        Step(product("y", "o", 8, 8), RING),
    ),
    "back again": chain(
        Step(product("x", "y", 64, 64), RING),
        Step(product("y", "x", 64, 64), RING),
        Step(product("x", "z", 64, 64), DEFAULT),
    ),
}
"""Steps by what is peculiar to them."""


def arrays_of(step: Step) -> dict[str, Array]:
    """Random memory for all buffers of a step."""
    found: dict[str, Array] = {}
    for number, kernel in enumerate(step.kernels):
        found = random_buffers(kernel, {}, number) | found
    return found
