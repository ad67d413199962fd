"""Guards: what is kept of a predicate, and the share of tiles they leave."""

from __future__ import annotations

import pytest

from lumi.dtype import F32, I32
from lumi.field.term import Bin, Const, In, Pos, Sel, Un
from lumi.search.dag import Dag
from lumi.search.guard import active_share, guards

AXIS_I, AXIS_J = 1, 2


def names(mask: int) -> tuple[str, ...]:
    return tuple(n for n, bit in (("i", AXIS_I), ("j", AXIS_J)) if mask & bit)


def test_conjuncts_that_depend_on_data_are_left_out() -> None:
    dag = Dag()
    i, j, past = dag.position(AXIS_I), dag.position(AXIS_J), dag.dimension("past")
    data = dag.read("r0", AXIS_I, F32, None, None)
    causal = dag.apply("le", (j, dag.apply("add", (i, past))))
    near = dag.apply("not", (dag.apply("lt", (j, i)),))
    hot = dag.apply("lt", (data, dag.number(0.5)))
    predicate = dag.apply("and", (dag.apply("and", (causal, hot)), near))
    assert guards(dag, names, [predicate, causal]) == (
        Bin("le", Pos("j"), Bin("add", Pos("i"), In("$past", (), I32))),
        Un("not", Bin("lt", Pos("j"), Pos("i"))),
    )


def test_selection_becomes_a_term() -> None:
    dag = Dag()
    j = dag.position(AXIS_J)
    chosen = dag.apply("sel", (dag.apply("eq", (j, dag.number(0.0))), dag.number(1.0), dag.number(0.0)))
    (guard,) = guards(dag, names, [chosen])
    assert guard == Sel(Bin("eq", Pos("j"), Const(0.0)), Const(1.0), Const(0.0))


SIZES = {"i": 1024, "j": 1024}


@pytest.mark.parametrize(
    ("guard", "share"),
    [
        (Bin("le", Pos("j"), Pos("i")), 0.53),
        (Bin("lt", Pos("j"), Const(256.0)), 0.25),
        (Bin("lt", Pos("j"), Const(0.0)), 0.0),
        (Bin("le", Const(0.0), Pos("j")), 1.0),
        (Bin("lt", Pos("j"), In("$length", (), I32)), 0.5),
    ],
)
def test_share_of_tiles_that_run(guard: Bin, share: float) -> None:
    found = active_share((guard,), SIZES, {"i": 64, "j": 64}, {"length": 512})
    assert found == pytest.approx(share, abs=0.02)


def test_share_of_many_tiles_is_sampled_evenly() -> None:
    found = active_share((Bin("le", Pos("j"), Pos("i")),), SIZES, {"i": 1, "j": 1}, {})
    assert found == pytest.approx(0.53, abs=0.02)
