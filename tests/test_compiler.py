"""From the text of a model to what a session answers, compared with the meaning of its graph."""

from __future__ import annotations

import dataclasses
import functools
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lumi import dim, paths
from lumi.compiler import Compilation, Options, Progress, Stage, compile_graph, compile_model, compile_plan
from lumi.errors import LumiError, Source
from lumi.hlir.graph import Graph
from lumi.hlir.reference import evaluate
from lumi.plan.file import load, save, to_bytes
from lumi.plan.plan import Plan
from lumi.plan.text import show
from lumi.runtime.params import Random, content
from lumi.runtime.session import Session
from lumi.search.explain import Progress as Gain
from lumi.search.settings import Mode, Settings

Array = np.ndarray[Any, Any]
FIRST = Settings(mode=Mode.NONE)
GEMMA = {
    **{"layers": 3, "width": 32, "heads": 4, "kv-heads": 2, "head-dim": 8, "hidden": 48},
    **{"vocab": 97, "context": 64, "window": 5, "pattern": 3},
}


def source(name: str) -> Source:
    return Source(name, (paths.data("models") / name).read_text())


def compiled(name: str, model: str | None = None, **options: Any) -> Compilation:
    return compile_model(source(name), Options(model=model, settings=FIRST, **options))


@functools.cache
def mlp() -> Compilation:
    return compiled("mlp.lumi")


@functools.cache
def convnet() -> Compilation:
    return compiled("convnet.lumi")


@functools.cache
def gemma(layers: int = 3) -> Compilation:
    return compiled("gemma3.lumi", config=GEMMA | {"layers": layers})


def written(text: str, **options: Any) -> Compilation:
    return compile_model(Source("test.lumi", text), Options(settings=FIRST, **options))


def plan_of(work: Compilation) -> Plan:
    assert work.plan is not None
    return work.plan


def graph_of(work: Compilation) -> Graph:
    return work.variants[-1].graph


class Pair:
    """A session and the reference beside it, with equal params, states and inputs."""

    def __init__(self, work: Compilation) -> None:
        self.plan, self.graph = plan_of(work), graph_of(work)
        self.session = Session(self.plan, init="random", seed=1)
        self.params = content(self.plan, Random(1))
        self.states: Mapping[str, Array] = {}

    def call(self, inputs: Mapping[str, Array], dims: Mapping[str, int], tolerance: float = 2e-5) -> None:
        found = self.session.run(inputs, dims)
        if not self.states:
            self.states = {k: np.zeros_like(v) for k, v in self.session.save_states().items()}
        want = evaluate(self.graph, {**self.params, **self.states, **inputs}, dims)
        self.states = {key: want[key] for key in self.states}
        pairs = {name: (found[name], want[name]) for name in found}
        pairs |= {key: (value, want[key]) for key, value in self.session.save_states().items()}
        for name, (have, expected) in pairs.items():
            assert have.shape == expected.shape
            scale = max(1.0, float(np.abs(expected).max(initial=0)))
            np.testing.assert_allclose(have, expected, rtol=0, atol=tolerance * scale, err_msg=name)


def random_inputs(plan: Plan, dims: Mapping[str, int], seed: int = 0) -> dict[str, Array]:
    generator, found = np.random.default_rng(seed), {}
    for s in plan.inputs:
        shape = tuple(dim.value(size, dims) for size in s.shape)
        values = generator.standard_normal(shape) if s.dtype.is_float else generator.integers(0, 50, shape)
        found[s.name] = values.astype(s.dtype.storage)
    return found


# -- whole models


@pytest.mark.parametrize("batch", [1, 2, 7, 64, 512])
def test_mlp_equals_its_graph(batch: int) -> None:
    pair = Pair(mlp())
    pair.call(random_inputs(pair.plan, {"batch": batch}), {"batch": batch})


def test_convnet_equals_its_graph() -> None:
    pair = Pair(convnet())
    for batch in (1, 3):
        pair.call(random_inputs(pair.plan, {"batch": batch}), {"batch": batch})


@pytest.mark.parametrize("model", ["bidirectional", "causal", "ragged"])
def test_attention_equals_its_graph_at_every_length(model: str) -> None:
    pair = Pair(compiled("attention.lumi", model, config={"heads": 4, "kv-heads": 2, "width": 16}))
    for seq, keys, length in [(1, 1, 1), (2, 5, 0), (7, 5, 3), (64, 64, 64), (65, 129, 129), (130, 130, 0)]:
        whole = {"seq": seq, "keys": keys, "length": length}
        dims = {n: v for n, v in whole.items() if n in pair.plan.dims}
        pair.call(random_inputs(pair.plan, dims), dims)


def test_gemma_equals_its_graph_over_prefill_decode_and_chunks() -> None:
    pair = Pair(gemma())
    ids = np.random.default_rng(2).integers(0, 97, (1, 40)).astype(np.int32)
    past = 0
    for seq in (7, 1, 1, 3, 1, 20, 1):
        pair.call({"tokens": ids[:, past : past + seq]}, {"seq": seq, "past": past})
        past += seq


def test_gemma_fills_its_context_to_the_last_place() -> None:
    pair = Pair(gemma())
    ids = np.random.default_rng(4).integers(0, 97, (1, 64)).astype(np.int32)
    pair.call({"tokens": ids[:, :63]}, {"seq": 63, "past": 0})
    pair.call({"tokens": ids[:, 63:]}, {"seq": 1, "past": 63})
    with pytest.raises(LumiError, match="with past=64 the call needs 65 elements along axis 2"):
        pair.session(tokens=ids[:, :1], past=64)


def test_the_decode_variant_equals_the_general_one() -> None:
    special = Session(plan_of(gemma()), init="random")
    general = Session(plan_of(compiled("gemma3.lumi", config=GEMMA, special=False)), init="random")
    assert (len(special.plan.variants), len(general.plan.variants)) == (2, 1)
    for past, token in enumerate([5, 17, 96, 0]):
        a, b = (s(tokens=[[token]], past=past)["logits"] for s in (special, general))
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


# -- states and memory


def test_runs_repeat_and_kept_outputs_stay() -> None:
    session = Session(plan_of(mlp()), init="random")
    x, y = (np.random.default_rng(k).standard_normal((5, 64)).astype(np.float32) for k in (0, 1))
    first = session(x=x)["out"]
    kept = first.copy()
    for _ in range(3):
        np.testing.assert_array_equal(session(x=x)["out"], kept)
    other = session(x=y)["out"]
    assert not np.array_equal(other, kept)
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(session(x=x)["out"], kept)


def test_nan_in_the_unused_tail_of_a_cache_is_never_seen() -> None:
    plan = plan_of(gemma())
    clean, dirty = Session(plan, init="random"), Session(plan, init="random")
    dirty.load_states({k: np.full_like(v, np.nan) for k, v in dirty.save_states().items()})
    ids = np.random.default_rng(3).integers(0, 97, 12).astype(np.int32)
    past = 0
    for seq in (5, 1, 3, 1):
        call = {"tokens": ids[None, past : past + seq], "past": past}
        np.testing.assert_array_equal(dirty(**call)["logits"], clean(**call)["logits"])
        past += seq


def test_a_session_starts_again_after_reset() -> None:
    session = Session(plan_of(gemma()), init="random")
    first = session(tokens=[[3, 4, 5]], past=0)["logits"]
    session(tokens=[[6]], past=3)
    session.reset()
    np.testing.assert_array_equal(session(tokens=[[3, 4, 5]], past=0)["logits"], first)


def test_forks_continue_differently_from_one_prefix() -> None:
    session = Session(plan_of(gemma()), init="random")
    session(tokens=[[3, 4, 5]], past=0)
    fork = session.fork()
    a, b = session(tokens=[[6]], past=3)["logits"], fork(tokens=[[7]], past=3)["logits"]
    assert not np.array_equal(a, b)
    np.testing.assert_array_equal(fork(tokens=[[6]], past=3)["logits"], a)


def test_a_prompt_longer_than_the_context_is_refused() -> None:
    session = Session(plan_of(gemma()), init="random")
    with pytest.raises(
        LumiError, match="with past=60, seq=5 the call needs 65 elements along axis 2"
    ) as caught:
        session(tokens=[[1, 2, 3, 4, 5]], past=60)
    assert "k_cache, which has 64" in caught.value.message


def test_tied_embeddings_are_one_param() -> None:
    plan = plan_of(gemma())
    keys = [b.key for b in plan.bindings]
    assert keys.count("model.embed_tokens.weight") == 1
    table = [n for n, b in enumerate(plan.variants[0].buffers) if b.name == "model.embed_tokens.weight"]
    users = [launch for launch in plan.variants[0].launches if set(table) & set(launch.buffers)]
    assert len(users) >= 2


def test_states_are_written_in_place() -> None:
    plan = plan_of(gemma())
    scopes = {plan.kernels[launch.kernel].scope for v in plan.variants for launch in v.launches}
    assert "copy" not in scopes


COUNTERS = """
(defdim n :min 1 :max 8 :hint 4)

(defmodel counters [(x f32 [n])]
  "A running sum, its predecessor, and two states that change places."
  (let [total (state "total" [1])
        last  (state "last" [1])
        left  (state "left" [2])
        right (state "right" [2])
        old   (+ total 0)
        seen  left]
    (set! last total)
    (set! total (+ total (reduce-sum x :keepdims true)))
    (set! left right)
    (set! right (+ seen 1))
    (outputs :old old :new total :left left)))
"""


def test_states_that_depend_on_each_other_change_together() -> None:
    pair = Pair(written(COUNTERS))
    for n in (1, 3, 8, 2):
        pair.call(random_inputs(pair.plan, {"n": n}, n), {"n": n})


SHIFT = """
(defmodel shift [(x f32 [3])]
  "A queue of the last eight numbers."
  (let [queue (state "queue" [8])]
    (set! queue (concat [(slice queue :axis 0 :start 3) x] :axis 0))
    (* queue 2)))
"""


def test_a_shifted_state_replays_ten_times() -> None:
    pair = Pair(written(SHIFT))
    for k in range(10):
        pair.call({"x": np.arange(3 * k, 3 * k + 3, dtype=np.float32)}, {})


FIT = """
(defmodel fit [(x f32 [4 3]) (y f32 [4])]
  "One step of least squares, and the weights before it."
  (let [w    (param "w" [3])
        held w
        e    (- (reduce-sum (* x w) :axis 1) y)
        g    (reduce-sum (* x (expand-dims e 1)) :axis 0)]
    (set! w (- w (* 0.1 g)))
    (outputs :loss (reduce-sum (* e e)) :before held :after w)))
"""


def test_a_param_that_a_model_changes_begins_with_its_weights() -> None:
    plan = plan_of(written(FIT))
    start = np.array([1, -2, 3], np.float32)
    session = Session(plan, {"w": start})
    generator, w = np.random.default_rng(0), start.astype(np.float64)
    x = generator.standard_normal((4, 3)).astype(np.float32)
    y = generator.standard_normal(4).astype(np.float32)
    for _ in range(5):
        found = session(x=x, y=y)
        np.testing.assert_allclose(found["before"], w, rtol=0, atol=1e-5)
        w -= 0.1 * x.T @ (x @ w - y)
        np.testing.assert_allclose(found["after"], w, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(start, [1, -2, 3])
    session.reset()
    np.testing.assert_array_equal(session(x=x, y=y)["before"], start)


def test_an_output_that_is_the_input_is_a_copy() -> None:
    plan = plan_of(written('(defmodel same [(x f32 [4])] "x." (outputs :x (+ x 0) :twice (* x 2)))'))
    x = np.arange(4, dtype=np.float32)
    found = Session(plan)(x=x)
    found["x"][:] = -1
    np.testing.assert_array_equal(x, np.arange(4))
    np.testing.assert_array_equal(found["twice"], 2 * x)


def test_the_arena_is_close_to_the_peak_of_live_bytes() -> None:
    for work in (mlp(), convnet(), gemma(), gemma(12)):
        for variant in plan_of(work).variants:
            assert variant.peak <= variant.arena <= 1.05 * variant.peak


# -- stages


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
    split = compiled("attention.lumi", "bidirectional", splits={"c": 4, "nothing": 9}, **options)
    ((pair,),) = split.variants[0].splits.values()
    assert pair == ("c", "c.chunk")
    assert split.counts()["enodes"] > whole.counts()["enodes"]
    pair_of = Pair(split)
    for keys in (1, 3, 100):
        dims = {"seq": 1, "keys": keys}
        pair_of.call(random_inputs(pair_of.plan, dims), dims)


def test_a_measured_compilation_replays_byte_for_byte(tmp_path: Path) -> None:
    settings = Settings(mode=Mode.MEASURE, trials=4, evaluations=40)
    options = Options(bind={"batch": 8}, settings=settings)
    record = tmp_path / "trials.json"
    first = compile_plan(source("mlp.lumi"), dataclasses.replace(options, record=record))
    again = compile_plan(source("mlp.lumi"), dataclasses.replace(options, replay=record))
    assert to_bytes(again) == to_bytes(first)
    with pytest.raises(LumiError, match="cannot read the record"):
        compile_plan(source("mlp.lumi"), dataclasses.replace(options, replay=tmp_path / "none.json"))


# -- files


def test_a_saved_plan_answers_the_same(tmp_path: Path) -> None:
    plan = plan_of(gemma())
    save(plan, tmp_path / "g.lumiplan")
    back = load(tmp_path / "g.lumiplan")
    assert back == plan
    a, b = (Session(p, init="random")(tokens=[[1, 2, 3]], past=0) for p in (plan, back))
    np.testing.assert_array_equal(a["logits"], b["logits"])


SCRIPT = """
import hashlib, sys
from lumi import paths
from lumi.compiler import Options, compile_plan
from lumi.errors import Source
from lumi.plan.file import to_bytes
from lumi.search.explain import Progress as Gain
from lumi.search.settings import Mode, Settings
text = (paths.data("models") / "attention.lumi").read_text()
options = Options(model="causal", settings=Settings(mode=Mode.MODEL, evaluations=60))
print(hashlib.sha256(to_bytes(compile_plan(Source("attention.lumi", text), options))).hexdigest())
"""


def test_plans_of_fresh_processes_are_equal_byte_for_byte() -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
        )
        for seed in ("0", "1", "2")
    ]
    assert len({r.stdout for r in runs}) == 1


@pytest.mark.parametrize(("name", "model"), [("mlp.lumi", None), ("attention.lumi", "causal")])
def test_the_text_of_a_plan(
    name: str, model: str | None, golden: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine of two cores without a BLAS: the model's choices depend on both."""
    monkeypatch.setattr("lumi.backends.cpu.backend.cores", lambda: 2)
    monkeypatch.setattr("lumi.backends.cpu.library.find_blas", lambda: None)
    golden(show(plan_of(compiled(name, model))), ".plan", name=model or "mlp")
