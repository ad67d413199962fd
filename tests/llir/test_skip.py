"""Code that tells whether a tile may be skipped says what the interval evaluation of its guards says."""

from __future__ import annotations

import math

import pytest

from lumi.dtype import I32
from lumi.field.term import Bin, Const, In, Pos, Term, Un
from lumi.llir.interval import may_hold
from lumi.llir.skip import holds_nowhere

PAST = In("$past", (), I32)
GUARDS = {
    "causal": Bin("lt", Pos("j"), Bin("add", Bin("add", Pos("i"), PAST), Const(1.0))),
    "window": Bin("lt", Bin("add", Pos("i"), PAST), Bin("add", Pos("j"), Const(512.0))),
    "one query": Bin("lt", Bin("add", Un("cast.i32", Const(0.0)), PAST), Bin("add", Pos("j"), Const(512.0))),
    "before the first": Bin("lt", Bin("sub", Const(510.0), PAST), Pos("j")),
    "both": Bin("and", Bin("lt", Pos("i"), Pos("j")), Un("not", Bin("lt", Const(90.0), Pos("j")))),
}


def skipped(guard: Term, i: tuple[int, int], j: tuple[int, int], past: int) -> bool:
    """Run the code, whose syntax Python shares but for `&&`, `||` and `!(`."""
    names: dict[str, float] = {}
    lines: list[tuple[str, str]] = []

    def declare(text: str, stem: str) -> str:
        lines.append((f"{stem}{len(lines)}", text))
        return lines[-1][0]

    ends = {"i": i, "j": j}
    test = holds_nowhere([guard], lambda axis: (str(ends[axis][0]), str(ends[axis][1])), declare)
    assert test, "something is known of every guard"
    known = {"fmin": min, "fmax": max, "INFINITY": math.inf, "d_past": past}
    for name, text in [*lines, ("test", test)]:
        python = text.replace("(double)", "").replace("&&", "and").replace("||", "or").replace("!(", "not (")
        names[name] = eval(python, {"__builtins__": {}}, {**known, **names})
    return bool(names["test"])


@pytest.mark.parametrize("past", [0, 3, 509, 510, 511, 700])
@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS.keys())
def test_a_tile_is_skipped_where_its_guard_holds_nowhere(guard: Term, past: int) -> None:
    for j in range(0, 1024, 64):
        for i in (0, 64, 448):
            spans = {"i": (i, i + 63), "j": (j, j + 63)}
            assert skipped(guard, spans["i"], spans["j"], past) is not may_hold(
                [guard], spans, {"past": past}
            )
