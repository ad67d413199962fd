"""Whole models, from their text to what a session answers, compared with the meaning of their graphs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from lumi.compiler import Options, compile_model
from lumi.dim import var
from lumi.errors import LumiError, Source
from lumi.plan.check import check
from lumi.plan.plan import Need
from lumi.runtime.session import Session
from lumi.search.settings import Mode, Settings
from tests.compilations import (
    GEMMA,
    Pair,
    compiled,
    convnet,
    gemma,
    mlp,
    plan_of,
    random_inputs,
    written,
)


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


def test_an_input_that_nothing_reads_is_checked_and_ignored() -> None:
    plan = plan_of(
        written(
            "(defdim n :min 1 :max 8) (defdim k :min 1 :max 8)"
            '(defmodel m [(x f32 [n]) (y i32 [k 2])] "x + 1." (+ x 1))'
        )
    )
    session, x, y = Session(plan), np.ones(4, np.float32), np.zeros((3, 2), np.int32)
    np.testing.assert_array_equal(session(x=x, y=y)["out"], x + 1)
    for wrong, message in [
        (y.T, r"y is i32 \[2 3\], expected i32 \[k 2\] with k=2"),
        (y.astype(np.int64), r"input y is i64 \[3 2\]"),
    ]:
        with pytest.raises(LumiError, match=message):
            session(x=x, y=wrong)
    with pytest.raises(LumiError, match="input y is not given"):
        session(x=x)


@pytest.mark.parametrize("size", [0, 1, 4])
def test_a_dim_of_one_value_is_known_when_the_model_runs(size: int) -> None:
    text = f"(defdim n :min {size} :max {size}) (defmodel m [(x f32 [n 3])] (+ n (reduce-sum x :axis 0)))"
    pair = Pair(written(text))
    pair.call({"x": np.ones((size, 3), np.float32)}, {"n": size})
    assert pair.session(x=np.ones((size, 3), np.float32))["out"].tolist() == [2 * size] * 3


EMPTY = """
(defdim n :min 0 :max 4 :hint 0)

(defmodel empty [(x f32 [n 3]) (y f32 [3 0]) (z f32 [0 2])]
  "Axes without elements."
  (outputs :sum (reduce-sum x :axis 0) :max (reduce-max y) :rows (softmax x) :product (matmul y z)))
"""


def test_a_search_takes_axes_without_elements() -> None:
    options = Options(settings=Settings(mode=Mode.MODEL, evaluations=40))
    pair = Pair(compile_model(Source("empty.lumi", EMPTY), options))
    for n in (0, 1, 4):
        pair.call(random_inputs(pair.plan, {"n": n}), {"n": n})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "(update-slice (concat [x x]) x :start n)",
            r"with n=5 update-slice writes n … \(\+ n 4\) along axis 0 of f32 \[8\]",
        ),
        (
            "(slice (concat [x x]) :start n :stop (+ n 4))",
            r"with n=5 a view reads n … \(\+ n 4\) along axis 0 of f32 \[8\]",
        ),
    ],
)
def test_a_call_that_leaves_a_computed_tensor_is_refused(body: str, message: str) -> None:
    """Such an element is in no buffer: no access of a kernel shows that it does not exist."""
    pair = Pair(written(f"(defdim n :min 0 :max 8) (defmodel m [(x f32 [4])] {body})"))
    x = np.arange(4, dtype=np.float32)
    for n in (0, 2, 4):
        pair.call({"x": x}, {"n": n})
    with pytest.raises(LumiError, match=message):
        pair.session(x=x, n=5)
    unknown = tuple(
        dataclasses.replace(v, needs=(Need(var("m"), "an unknown dim is asked for"),))
        for v in pair.plan.variants
    )
    with pytest.raises(LumiError, match="variant 0 needs dim m"):
        check(dataclasses.replace(pair.plan, variants=unknown))
