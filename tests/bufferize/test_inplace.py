"""A kernel may write over its input only when no element is read after it was written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lumi.backends.cpu import interpret
from lumi.bufferize.inplace import merge
from lumi.dtype import F32
from lumi.field.access import Access
from lumi.field.index import Index, index, of_axis
from lumi.llir.kernel import Carry, Kernel, Load, Loop, Map, Reduce, Statement, Store, buffers

ROW, COL = of_axis("i"), of_axis("j")
N, M = 6, 5


def load(var: str, where: tuple[Index, ...], buffer: str = "old", axes: tuple[str, ...] = ("i", "j")) -> Load:
    return Load(var, Access(buffer, where, (N, M), F32), (), axes, F32)


def store(value: str, where: tuple[Index, ...] = (ROW, COL), buffer: str = "new") -> Store:
    return Store(Access(buffer, where, (N, M), F32), value, ("i", "j"))


def twice(var: str, value: str, axes: tuple[str, ...] = ("i", "j")) -> Map:
    return Map(var, "add", (value, value), axes, F32)


def kernel(*body: Statement, grid: tuple[str, ...] = ("i", "j")) -> Kernel:
    tiles = dict.fromkeys(("i", "j"), 2)
    return Kernel({"i": N, "j": M}, grid, (), tiles, body)


SAFE = {
    "same element": kernel(load("a", (ROW, COL)), twice("b", "a"), store("b")),
    "an earlier pass": kernel(
        Loop(
            ("j",),
            None,
            (),
            (Carry("sum", "p", "n", "s", ("i",), F32),),
            (
                load("a", (ROW, COL)),
                Reduce("r", "sum", ("j",), "a", ("i",), F32),
                Map("n", "add", ("p", "r"), ("i",), F32),
            ),
        ),
        Loop(
            ("j",),
            None,
            (),
            (),
            (load("c", (ROW, COL)), Map("d", "mul", ("c", "s"), ("i", "j"), F32), store("d")),
        ),
        grid=("i",),
    ),
    "a later store of something else": kernel(
        load("a", (ROW, COL)),
        load("x", (ROW, COL), "x"),
        twice("b", "a"),
        store("b"),
        store("x", buffer="more"),
    ),
}
UNSAFE = {
    "a neighbour": kernel(load("a", (ROW + -1, COL)), twice("b", "a"), store("b")),
    "a transposed element": kernel(load("a", (COL, ROW)), twice("b", "a"), store("b")),
    "a value kept for later": kernel(
        load("a", (ROW, COL)), twice("b", "a"), store("b"), twice("c", "a"), store("c", buffer="more")
    ),
    "a load after the store": kernel(
        load("x", (ROW, COL), "x"),
        store("x"),
        load("a", (ROW, COL)),
        twice("c", "a"),
        store("c", buffer="more"),
    ),
    "a row read by other cells": kernel(
        Load("a", Access("old", (ROW, Index()), (N, M), F32), (), ("i",), F32),
        Map("b", "add", ("a", "a"), ("i", "j"), F32),
        store("b"),
    ),
    "elements written by several cells": kernel(
        Load("a", Access("old", (ROW, Index()), (N, M), F32), (), ("i",), F32),
        Store(Access("new", (ROW, Index()), (N, M), F32), "a", ("i",)),
    ),
    "two stores": kernel(load("a", (ROW, COL)), store("a"), store("a")),
    "overlapping elements": kernel(
        load("a", (index([("i", 1), ("j", 1)]), Index())),
        store("a", (index([("i", 1), ("j", 1)]), Index())),
    ),
    "a chunk of a loop": kernel(
        Loop(("j",), "i", (), (), (load("a", (ROW, COL)), twice("b", "a"), store("b"))), grid=("i",)
    ),
}


@pytest.mark.parametrize("name", SAFE)
def test_a_safe_kernel_writes_in_place_with_the_same_result(name: str) -> None:
    original = SAFE[name]
    merged = merge(original, "old", "new")
    assert merged is not None
    assert "new" not in buffers(merged)
    data = np.random.default_rng(1).standard_normal((N, M)).astype(np.float32)
    apart = {b: data.copy() for b in buffers(original)} | {"new": np.zeros((N, M), np.float32)}
    together = {b: data.copy() for b in buffers(merged)}
    interpret.run(original, apart, {})
    interpret.run(merged, together, {})
    np.testing.assert_array_equal(together["old"], apart["new"])


@pytest.mark.parametrize("name", UNSAFE)
def test_an_unsafe_kernel_is_left_alone(name: str) -> None:
    assert merge(UNSAFE[name], "old", "new") is None


def test_what_a_loop_carries_counts_as_read() -> None:
    """The carried sum may be computed when the body ends, after the store."""
    body = SAFE["an earlier pass"].body[0]
    assert isinstance(body, Loop)
    summed = replace(body, body=(*body.body, twice("b", "a"), store("b")))
    assert merge(kernel(summed, grid=("i",)), "old", "new") is None
    plain = replace(summed, carries=(), body=(load("a", (ROW, COL)), twice("b", "a"), store("b")))
    assert merge(kernel(plain, grid=("i",)), "old", "new") is not None
