"""A rule that does not come with Lumi may be wrong: its plan is run even when nothing is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from lumi.backends.cpu.backend import CpuBackend
from lumi.egraph.graph import EGraph
from lumi.egraph.saturate import saturate
from lumi.errors import LumiError
from lumi.search.search import search
from lumi.search.settings import Mode, Settings
from tests.egraph.folders import with_file
from tests.workloads import Workload, X, mul, top

SCALED = Workload("scaled", top("j", mul(X, 3.0)), {"i": 8, "j": 40}, {}, "", {"x": "i j"})

WRONG = """
; max (c · x) = c · x + max x
; Sound: it is not.
; family: exact
(rewrite (Red "max" ?d (Bin "mul" ?x (Const ?c))) (Bin "add" (Const ?c) (Red "max" ?d ?x))
  :ruleset rs-exact :name "wrong-max")
"""

RIGHT = """
; |x| = max x (−x)
; Sound: by definition.
; family: exact
(rewrite (Un "abs" ?x) (Bin "max" ?x (Bin "mul" ?x (Const -1.0))) :ruleset rs-exact :name "abs-as-max")
"""


def egraph(folder: Path, text: str) -> EGraph:
    return saturate(SCALED.region(), book=with_file(folder, "mine.egg", text), guarded=False)


@pytest.mark.parametrize("mode", [Mode.NONE, Mode.MODEL, Mode.MEASURE])
def test_plan_of_a_wrong_rule_is_refused_by_name(tmp_path: Path, mode: Mode) -> None:
    wrong = egraph(tmp_path, WRONG)
    assert wrong.foreign == ("wrong-max",)
    with pytest.raises(LumiError, match="wrong result") as caught:
        search(SCALED.region(), wrong, Settings(mode=mode, evaluations=50), CpuBackend())
    assert caught.value.hint == "a rule that does not come with Lumi may be wrong: wrong-max"


def test_rule_that_did_not_match_is_not_blamed(tmp_path: Path) -> None:
    right = egraph(tmp_path, RIGHT)
    assert right.foreign == ()
    assert search(SCALED.region(), right, Settings(evaluations=50), CpuBackend()).explanation.trials == 0
