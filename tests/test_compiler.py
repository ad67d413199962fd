"""The stages of a compilation, and what its plan holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lumi.compiler import Options, Progress, Stage, compile_graph, compile_model, compile_plan
from lumi.errors import LumiError
from lumi.plan.text import show
from lumi.runtime.session import Session
from lumi.search.explain import Progress as Gain
from lumi.search.settings import Mode, Settings
from tests.compilations import (
    FIRST,
    GEMMA,
    Pair,
    compiled,
    convnet,
    gemma,
    graph_of,
    mlp,
    plan_of,
    random_inputs,
    source,
    written,
)


@pytest.mark.parametrize("until", list(Stage))
def test_a_compilation_stops_where_it_is_told(until: Stage) -> None:
    work = compile_model(source("mlp.lumi"), Options(settings=FIRST), until)
    assert list(work.seconds) == list(Stage)[: list(Stage).index(until) + 1]
    assert (work.plan is not None) == (until is Stage.PLAN)


def test_counts_are_those_of_the_plan() -> None:
    work = gemma()
    plan, counts = plan_of(work), work.counts()
    assert counts["kernels"] == len(plan.kernels)
    assert counts["launches"] == sum(len(v.launches) for v in plan.variants)
    assert counts["regions"] < len(work.variants[0].regions) + len(work.variants[1].regions)
    assert counts["enodes"] > 0
    assert counts["trials"] == 0
    assert {"saturate_s", "search_s", "total_s"} <= set(counts)


def test_equal_layers_share_kernels() -> None:
    few = plan_of(gemma(6))
    many = plan_of(gemma(12))
    assert len(many.kernels) == len(few.kernels)
    assert len(many.variants[0].launches) > len(few.variants[0].launches)


TWO = """
(defdim seq :min 1 :max 64 :hint [1 16])

(defmodel two [(x f32 [seq 8]) (y f32 [24 24])]
  "One part depends on seq, the other does not."
  (outputs :a (scope "one" (softmax x)) :b (scope "other" (softmax (matmul y y)))))
"""


def test_variants_share_what_their_dims_do_not_touch() -> None:
    pair = Pair(work := written(TWO))
    assert work.counts()["regions"] == 3
    special, general = ({launch.kernel for launch in v.launches} for v in pair.plan.variants)
    shared = {pair.plan.kernels[n].scope.partition("/")[0] for n in special & general}
    assert shared == {"other"}
    for seq in (1, 5):
        pair.call(random_inputs(pair.plan, {"seq": seq}), {"seq": seq})


def test_progress_is_told_in_order() -> None:
    events: list[Progress] = []
    compiled("mlp.lumi", progress=events.append)
    assert [e.stage for e in events] == sorted((e.stage for e in events), key=list(Stage).index)
    assert all(0 <= e.done < e.total for e in events)


def test_the_explanation_tells_of_every_region() -> None:
    work = gemma()
    plan = plan_of(work)
    regions: Any = plan.explanation["regions"]
    assert len(regions) == work.counts()["regions"]
    names = {k.name for k in plan.kernels}
    assert all(set(r["names"]) <= names and len(r["names"]) == len(r["kernels"]) for r in regions)


def test_ctrl_c_in_a_search_leaves_a_plan_that_runs() -> None:
    told: list[str] = []

    def stop(progress: Gain) -> None:
        told.append(progress.region)
        raise KeyboardInterrupt

    settings = Settings(mode=Mode.MODEL, evaluations=100)
    options = Options(settings=settings, config=GEMMA, report=stop)
    work = compile_model(source("gemma3.lumi"), options)
    assert len(told) == 1
    assert sum(f.explanation.interrupted for f in work.found.values()) == 1
    assert {f.explanation.mode for f in work.found.values()} == {"model", "none"}
    stopped, left = work.cut_short()
    assert [name.partition(" at ")[0] for name in stopped] == told
    assert len(left) == len(work.found) - 1 > 1
    pair = Pair(work)
    pair.call({"tokens": np.array([[5, 3, 2]], np.int32)}, {"past": 0, "seq": 3})


def test_a_graph_compiles_without_a_module() -> None:
    graph = graph_of(mlp())
    plan = plan_of(compile_graph(graph, Options(settings=FIRST)))
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    a, b = (
        Session(plan, init="random")(x=x),
        Session(compile_plan(source("mlp.lumi"), Options(settings=FIRST)), init="random")(x=x),
    )
    np.testing.assert_allclose(a["out"], b["out"], rtol=0, atol=1e-6)


def test_a_bound_dim_is_fixed() -> None:
    plan = plan_of(compiled("mlp.lumi", bind={"batch": 3}))
    session = Session(plan, init="random")
    assert session(x=np.zeros((3, 64), np.float32))["out"].shape == (3, 10)
    with pytest.raises(LumiError, match=r"x is f32 \[4 64\], expected f32 \[3 64\]"):
        session(x=np.zeros((4, 64), np.float32))


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(LumiError, match="does not compile for 'abacus'"):
        compiled("mlp.lumi", target="abacus")


def test_a_split_that_some_region_reduces_is_offered() -> None:
    options = {"config": {"heads": 2, "kv-heads": 2, "width": 16}, "bind": {"seq": 1}}
    whole = compiled("attention.lumi", "bidirectional", **options)
    split = compiled("attention.lumi", "bidirectional", splits={"c": 4}, **options)
    ((pair,),) = split.variants[0].splits.values()
    assert pair == ("c", "c.chunk")
    assert split.counts()["enodes"] > whole.counts()["enodes"]
    pair_of = Pair(split)
    for keys in (1, 3, 100):
        dims = {"seq": 1, "keys": keys}
        pair_of.call(random_inputs(pair_of.plan, dims), dims)
    with pytest.raises(LumiError, match="no region reduces an axis nothing"):
        compiled("attention.lumi", "bidirectional", splits={"c": 4, "nothing": 9}, **options)


def test_the_arena_is_close_to_the_peak_of_live_bytes() -> None:
    for work in (mlp(), convnet(), gemma(), gemma(12)):
        for variant in plan_of(work).variants:
            assert variant.peak <= variant.arena <= 1.05 * variant.peak


@pytest.mark.parametrize(("name", "model"), [("mlp.lumi", None), ("attention.lumi", "causal")])
def test_the_text_of_a_plan(
    name: str, model: str | None, golden: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine of two cores without a BLAS: the model's choices depend on both."""
    monkeypatch.setattr("lumi.backends.cpu.backend.cores", lambda: 2)
    monkeypatch.setattr("lumi.backends.cpu.library.find_blas", lambda: None)
    golden(show(plan_of(compiled(name, model))), ".plan", name=model or "mlp")
