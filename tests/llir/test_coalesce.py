"""Axes that no statement tells apart become one; the kernel computes what it did."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lumi import dim
from lumi.backends.cpu import interpret
from lumi.dtype import F32, I32
from lumi.field.access import Access
from lumi.field.index import Data, Index, Quot, index, of_axis
from lumi.field.term import Bin, Const, Pos
from lumi.llir.coalesce import LONGEST, coalesce
from lumi.llir.kernel import Carry, Kernel, Load, Loop, Map, Position, Reduce, Statement, Store

Array = np.ndarray[Any, np.dtype[Any]]

WHOLE = Access("B0", (index([("i", 12), ("j", 3), ("k", 1)]),), (24,), F32)
PARTS = Access("B1", (of_axis("i"), of_axis("j"), of_axis("k")), (2, 4, 3), F32)
SWAPPED = Access("B0", (index([("j", 6), ("i", 3), ("k", 1)]),), (24,), F32)


def doubled(load: Access = WHOLE, store: Access = PARTS, *more: Statement) -> Kernel:
    """B1 = 2 B0 over i, j, k."""
    axes = tuple(a for a in ("i", "j", "k") if a in load.axes())
    body = (Load("v1", load, (), axes, F32), *more, Map("v2", "mul", ("v1", 2.0), axes, F32))
    return Kernel(
        {"i": 2, "j": 4, "k": 3},
        ("i", "j", "k"),
        (),
        {"i": 1, "j": 1, "k": 3},
        (*body, Store(store, "v2", ("i", "j", "k"))),
    )


def summed(over: tuple[str, ...], *guards: Bin, chunk: str | None = None) -> Kernel:
    """B1[i] = Σ over j, k of B0."""
    source = Access("B0", (of_axis("i"), index([("j", 3), ("k", 1)])), (2, 12), F32)
    body = (
        Load("v1", source, (), ("i", *over), F32),
        Reduce("v2", "sum", over, "v1", ("i",), F32),
        Map("v4", "add", ("v3", "v2"), ("i",), F32),
    )
    loop = Loop(over, chunk, guards, (Carry("sum", "v3", "v4", "v5", ("i",), F32),), body)
    out = Access("B1", (of_axis("i"),), (2,), F32)
    axes = {"i": 2, "j": 4, "k": 3} | ({chunk: 1} if chunk else {})
    tiles = {"i": 1, "j": 2, "k": 3} | ({chunk: 1} if chunk else {})
    return Kernel(axes, ("i",), (), tiles, (loop, Store(out, "v5", ("i",))))


def results(kernel: Kernel, shape: tuple[int, ...], **more: Array) -> Array:
    buffers = {"B0": np.arange(24, dtype=np.float32), "B1": np.zeros(shape, np.float32), **more}
    interpret.run(kernel, buffers, {})
    return buffers["B1"].ravel()


def tiled(kernel: Kernel, **tiles: int) -> Kernel:
    return replace(kernel, tiles=dict.fromkeys(kernel.axes, 1) | kernel.tiles | tiles)


def test_run_of_memory_becomes_one_axis() -> None:
    kernel = doubled()
    found = coalesce(kernel)
    assert found.kernel.axes == {"i_j_k": 24}
    assert found.members == {"i_j_k": ("i", "j", "k")}
    assert (found.kernel.grid, found.kernel.tiles) == (("i_j_k",), {})
    np.testing.assert_array_equal(results(tiled(found.kernel, i_j_k=7), (24,)), results(kernel, (2, 4, 3)))


def test_loop_and_its_reduction_are_joined() -> None:
    kernel = summed(("j", "k"))
    found = coalesce(kernel)
    assert found.kernel.axes == {"i": 2, "j_k": 12}
    loop = found.kernel.body[0]
    assert isinstance(loop, Loop) and loop.axes == ("j_k",)
    np.testing.assert_array_equal(results(tiled(found.kernel, j_k=5), (2,)), results(kernel, (2,)))


def test_only_the_axes_that_run_together_are_joined() -> None:
    kernel = doubled(SWAPPED)
    found = coalesce(kernel)
    assert found.members == {}
    assert found.kernel == kernel


def test_outer_pair_is_left_when_the_inner_is_joined() -> None:
    gap = Access("B0", (index([("i", 12), ("j", 3), ("k", 1)]),), (24,), F32)
    wide = Access("B1", (of_axis("i"), index([("j", 3), ("k", 1)])), (2, 16), F32)
    found = coalesce(doubled(gap, wide))
    assert found.members == {"j_k": ("j", "k")}


@pytest.mark.parametrize(
    "kernel",
    [
        doubled(WHOLE, PARTS, Position("v9", "k"), Position("v8", "i")),
        doubled(Access("B0", (of_axis("j"),), (4,), F32)),
        doubled(Access("B0", (index([(Quot(index([("i", 12), ("j", 3), ("k", 1)]), 1), 1)]),), (24,), F32)),
        doubled(replace(WHOLE, clamp=True)),
        summed(("j", "k"), Bin("lt", Pos("k"), Const(2.0))),
        summed(("j", "k"), chunk="c"),
    ],
    ids=["positions", "broadcast", "quotient", "clamp", "guard", "chunk"],
)
def test_axes_that_are_told_apart_stay(kernel: Kernel) -> None:
    assert coalesce(kernel).kernel == kernel


@pytest.mark.parametrize("rows", [LONGEST >> 16, (LONGEST >> 16) + 1])
def test_no_joined_axis_is_longer_than_agreed(rows: int) -> None:
    source = Access("B0", (of_axis("i"), of_axis("j")), (rows, 1 << 16), F32)
    body = (Load("v1", source, (), ("i", "j"), F32), Store(replace(source, buffer="B1"), "v1", ("i", "j")))
    found = coalesce(Kernel({"i": rows, "j": 1 << 16}, ("i", "j"), (), {"i": 1, "j": 4}, body))
    assert (found.kernel.axes == {"i_j": LONGEST}) == (rows << 16 == LONGEST)
    assert max(found.kernel.axes.values()) <= LONGEST  # type: ignore[type-var]


def test_axis_of_unknown_extent_stays() -> None:
    source = Access("B0", (of_axis("i"), of_axis("j")), (dim.var("n"), 4), F32)
    store = replace(source, buffer="B1")
    body = (Load("v1", source, (), ("i", "j"), F32), Store(store, "v1", ("i", "j")))
    kernel = Kernel({"i": dim.var("n"), "j": 4}, ("i", "j"), (), {"i": 1, "j": 4}, body)
    assert coalesce(kernel).kernel == kernel


def test_gathered_rows_keep_their_index() -> None:
    rows = Access("B2", (Index(),), (1,), I32)
    table = Access("B0", (index([(Data(0), 1)]), of_axis("j"), of_axis("k")), (2, 4, 3), F32)
    store = Access("B1", (of_axis("j"), of_axis("k")), (4, 3), F32)
    body = (
        Load("v1", rows, (), (), I32),
        Load("v2", table, ("v1",), ("j", "k"), F32),
        Store(store, "v2", ("j", "k")),
    )
    kernel = Kernel({"j": 4, "k": 3}, ("j", "k"), (), {"j": 1, "k": 3}, body)
    found = coalesce(kernel)
    assert found.kernel.axes == {"j_k": 12}
    ids = np.array([1], np.int32)
    got = results(tiled(found.kernel, j_k=12), (12,), B2=ids)
    np.testing.assert_array_equal(got, np.arange(12, 24, dtype=np.float32))
