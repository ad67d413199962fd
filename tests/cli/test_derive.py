from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lumi.cli.derive import told
from lumi.compiler import Compilation, Options, Stage, compile_model
from lumi.derivation import Derivation, derivations
from lumi.egraph.encode import encode
from lumi.egraph.goal import is_found
from lumi.egraph.rules import ANALYSIS, book, load
from lumi.errors import Source
from lumi.search.settings import Settings
from tests.cli.conftest import Lumi

AVERAGE = """
(defmodel average [(x f32 [64 512]) (v f32 [512 32])]
  "Rows of v, weighed by the softmax of x, written out."
  (let [e (exp2 (- x (reduce-max x :axis 1 :keepdims true)))]
    (matmul (/ e (reduce-sum e :axis 1 :keepdims true)) v)))
"""


@pytest.fixture(scope="module")
def work() -> Compilation:
    options = Options(target="cuda", settings=Settings(evaluations=30))
    return compile_model(Source("average.lumi", AVERAGE), options, Stage.KERNELS)


@pytest.fixture(scope="module")
def derivation(work: Compilation) -> Derivation:
    (found,) = derivations(work)
    return found


def test_what_rules_bought_and_which_are_needed(derivation: Derivation, golden: Callable[..., None]) -> None:
    golden("\n".join(told(derivation)) + "\n", ".txt")


def test_every_needed_rule_is_one(work: Compilation, derivation: Derivation) -> None:
    ((key, (variant, region)),) = work.distinct().items()
    terms, needed = encode(region, ranges=variant.box.free), {n.name for n in derivation.needs}
    goal = work.found[key].goal.whole(terms)
    kept = [r for r in load() if r.family == ANALYSIS or r.name in needed]
    assert is_found(goal, book(), kept, terms)
    for name in needed:
        assert not is_found(goal, book(), [r for r in kept if r.name != name], terms), name
    assert derivation.needs
    assert all(need.doc for need in derivation.needs)
    assert derivation.few < derivation.enodes
    assert {n.group for n in derivation.needs} <= {rung.group for rung in derivation.ladder}


def test_regions_can_be_chosen(lumi: Lumi, tmp_path: Path) -> None:
    path = tmp_path / "average.lumi"
    path.write_text(AVERAGE)
    said = lumi("derive", path, "--target", "cuda", "--region", "elsewhere", "--search", "none")
    assert (said.status, said.out) == (1, "")
    assert said.err == "region error: no region has elsewhere in its scope\n  = there are average\n"
