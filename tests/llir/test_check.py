"""Kernels that are not well formed are refused with the fault named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lumi.dtype import F32, I32
from lumi.errors import LumiError
from lumi.field.access import Access
from lumi.field.index import Data, Index, Look, index, of_axis
from lumi.llir.check import check
from lumi.llir.kernel import Carry, Dot, Kernel, Load, Loop, Map, Position, Reduce, Statement, Store

ROW = Access("B0", (of_axis("i"), of_axis("j")), (4, 8), F32)
OUT = Access("B1", (of_axis("i"),), (4,), F32)
LOAD = Load("x", ROW, (), ("i", "j"), F32)
LOOK = Look("B2", (of_axis("i"),), (4,), 4)
SUM = Carry("sum", "before", "after", "total", ("i",), F32)


def summed(*body: Statement) -> Kernel:
    """Row sums, by a loop over tiles with `body` in front of its reduction."""
    inside = (
        LOAD,
        *body,
        Reduce("part", "sum", ("j",), "x", ("i",), F32),
        Map("after", "add", ("before", "part"), ("i",), F32),
    )
    loop = Loop(("j",), None, (), (SUM,), inside)
    return Kernel({"i": 4, "j": 8}, ("i",), (), {"i": 1, "j": 4}, (loop, Store(OUT, "total", ("i",))))


def plain(*body: Statement) -> Kernel:
    return Kernel({"i": 4, "j": 8}, ("i", "j"), (), {"i": 1, "j": 4}, body)


def test_a_sound_kernel_passes() -> None:
    check(summed(), "k")
    check(summed(Position("p", "j"), Map("c", "cast.f32", ("p",), ("j",), F32)), "k")


FAULTS = {
    "has no axis k": plain(replace(LOAD, axes=("i", "k"))),
    "has no axis n": plain(Load("x", replace(ROW, index=(of_axis("i"), of_axis("n"))), (), ("i",), F32)),
    "has an empty tile": replace(summed(), tiles={"i": 0}),
    "takes 1 indices of B0, which has 2": plain(replace(LOAD, access=replace(ROW, index=(Index(),)))),
    "indexes B0 by data that is not given": plain(
        replace(LOAD, access=replace(ROW, index=(index([(Data(0), 1)]), Index())))
    ),
    "looks up where to load of B0": plain(
        replace(LOAD, access=replace(ROW, index=(index([(LOOK, 1)]), of_axis("j"))))
    ),
    "takes 1 indices of B2, which has 2": summed(
        Store(replace(OUT, index=(index([(replace(LOOK, shape=(4, 2)), 1)]),)), "x", ("i",))
    ),
    "gives 1 operands to add": summed(Map("y", "add", ("x",), ("i", "j"), F32)),
    "gives 1 operands to launder": summed(Map("y", "launder", ("x",), ("i", "j"), F32)),
    "gives 1 operands to cast.u13": summed(Map("y", "cast.u13", ("x",), ("i", "j"), I32)),
    "reduces by mean": summed(Reduce("y", "mean", ("j",), "x", ("i",), F32)),
    "carries by mean": replace(
        summed(), body=(replace(summed().body[0], carries=(replace(SUM, op="mean"),)), summed().body[1])
    ),
    "uses y, which has no value there": summed(Map("z", "recip", ("y",), ("i", "j"), F32)),
    "uses total, which has no value there": summed(Dot("z", ("j",), "x", "total", ("i",), F32)),
    "assigns x twice": summed(LOAD),
    "carries after, which has no value there": plain(Loop(("j",), None, (), (SUM,), (LOAD,))),
    "uses part, which has no value there": replace(
        summed(), body=(summed().body[0], Store(OUT, "part", ("i",)))
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(fault: str) -> None:
    with pytest.raises(LumiError, match=f"kernel k {fault}"):
        check(FAULTS[fault], "k")
