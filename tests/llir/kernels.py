"""Kernels and graphs by hand and from searches, for round trips."""

from __future__ import annotations

from functools import cache

from lumi import dim
from lumi.dtype import BF16, BOOL, F32, I8, I32
from lumi.field.access import Access
from lumi.field.index import Data, Index, Quot, Rem, Sym, index, of_axis
from lumi.field.term import Bin, Const, In, Pos, Sel, Un
from lumi.llir.kernel import (
    Carry,
    Dot,
    Kernel,
    KernelGraph,
    Load,
    Loop,
    Map,
    Position,
    Reduce,
    Schedule,
    Step,
    Store,
    Symbol,
    Temporary,
)
from lumi.search.settings import Mode
from tests.search.plans import found
from tests.workloads import WORKLOADS

PAST, SEQ = dim.var("past"), dim.var("seq")
TOTAL = PAST + SEQ

INF = float("inf")


def everything() -> Kernel:
    """A kernel with every kind of statement, index part and annotation."""
    table = Access("B0", (index([(Data(0), 1)]), of_axis("k")), (17, 64), I8, clamp=True)
    rows = Access("B1", (of_axis("i"),), (SEQ,), I32)
    shifted = index([("i", 2), (Sym(PAST), 1), (Quot(of_axis("k"), 3), 1), (Rem(of_axis("k"), 3), -2)], 5)
    wide = Access("B2", (shifted, Index((), 4)), (TOTAL * 2 // 3, 9), BF16)
    out = Access("B3", (of_axis("i"), of_axis("c")), (SEQ, 4), F32)
    guard = Bin("and", Bin("le", Pos("k"), In("$past", (), I32)), Un("not", Bin("lt", Pos("i"), Const(-INF))))
    body = (
        Load("v1", rows, (), ("i",), I32),
        Position("v2", "i"),
        Symbol("v3", "past"),
        Loop(
            ("k",),
            "c",
            (guard, Sel(Bin("eq", Pos("k"), Const(2.0)), Const(1.0), Const(0.0))),
            (Carry("max", "v4", "v12", "v14", ("i", "c"), F32), Carry("mul", "v5", "v13", "v15", (), F32)),
            (
                Load("v6", table, ("v1",), ("i", "k"), F32),
                Load("v7", wide, (), ("i", "k"), BF16),
                Map("v8", "cast.f32", ("v7",), ("i", "k"), F32),
                Map("v9", "sel", ("v2", "v8", -INF), ("i", "k"), F32),
                Reduce("v10", "max", ("k",), "v9", ("i",), F32),
                Dot("v11", ("k",), "v6", "v8", ("i",), F32),
                Map("v12", "max", ("v4", "v10"), ("i", "c"), F32),
                Map("v13", "mul", ("v5", 0.1), (), F32),
            ),
        ),
        Map("v16", "lt", ("v14", 1e-45), ("i", "c"), BOOL),
        Reduce("v17", "sum", ("k",), 1.0, (), F32),
        Map("v18", "sel", ("v16", "v17", "v3"), ("i", "c"), F32),
        Store(out, "v18", ("i", "c")),
        Store(Access("B4", (Index(),), (1,), F32), -0.0, ()),
    )
    axes = {"i": SEQ, "k": 64, "c": 4}
    return Kernel(axes, ("i", "c"), (), {"i": 8, "k": 16, "c": 1}, body)


@cache
def graphs() -> dict[str, KernelGraph]:
    """Graphs with one or more kernels, temporaries and loops."""
    made = {
        name: found(WORKLOADS[name], mode=Mode.NONE).graph
        for name in ("attention_window", "decode", "layernorm", "linear_cross_entropy", "variance_split")
    }
    by_hand = Step(everything(), Schedule("c", (("lanes", 8), ("rows", 2))))
    made["by_hand"] = KernelGraph((by_hand,), {"T0": Temporary((SEQ, TOTAL), BF16)})
    return made
