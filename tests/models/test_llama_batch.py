"""models/llama_batch.lumi: a batch of sequences of different lengths equals each sequence alone."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from lumi import paths
from lumi.compiler import Options, compile_plan
from lumi.errors import LumiError, Source
from lumi.plan.plan import Plan
from lumi.runtime.session import Session
from lumi.search.settings import Mode, Settings
from tests.language import Array

TARGETS = ("cpu", pytest.param("cuda", marks=pytest.mark.cuda))
FIRST = Settings(mode=Mode.NONE)
VOCAB, CONTEXT, STEPS = 97, 1100, 5
LENGTHS = (3, 17, 256, 1000)
SMALL: dict[str, Any] = {
    **{"layers": 2, "width": 32, "heads": 4, "kv-heads": 2, "hidden": 48, "vocab": VOCAB},
    **{"context": CONTEXT, "dtype": "f32"},
}


@cache
def plan_of(name: str, target: str) -> Plan:
    path = paths.data("models") / f"{name}.lumi"
    source = Source(str(path), path.read_text())
    return compile_plan(source, Options(config=SMALL, settings=FIRST, target=target))


@cache
def alone(target: str) -> Session:
    return Session(plan_of("llama", target), init="random")


def batched(target: str) -> Session:
    return Session(plan_of("llama_batch", target), init="random")


class Batch:
    """A batch in a session; every call's logits are compared with those of each sequence alone."""

    def __init__(self, target: str) -> None:
        self.target, self.session = target, batched(target)
        self.tokens: list[list[int]] = [[] for _ in LENGTHS]

    def call(self, new: list[list[int]], columns: int | None = None, pad: int = 0) -> Array:
        """Give each sequence its new tokens, in rows of so many columns."""
        rows = np.full((len(new), columns or max(map(len, new))), pad, np.int32)
        for row, tokens in zip(rows, new, strict=True):
            row[: len(tokens)] = tokens
        past = np.array([len(t) for t in self.tokens], np.int32)
        counts = np.array([len(t) for t in new], np.int32)
        found = self.session(tokens=rows, past=past, new=counts, longest=int(past.max()))["logits"][:, 0]
        for before, tokens in zip(self.tokens, new, strict=True):
            before += tokens
        return found

    def compare(self, found: Array) -> None:
        session = alone(self.target)
        for got, tokens in zip(found, self.tokens, strict=True):
            session.reset()
            want = session(tokens=[tokens], past=0)["logits"][0, -1]
            np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * np.abs(want).max())


def prompts(seed: int, lengths: tuple[int, ...] = LENGTHS) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, VOCAB, n).tolist() for n in lengths]


@pytest.mark.parametrize("target", TARGETS)
def test_lengths_3_17_256_1000_equal_four_single_runs(target: str) -> None:
    batch = Batch(target)
    batch.compare(batch.call(prompts(0), pad=5))
    for step in range(STEPS):
        batch.compare(batch.call(prompts(1 + step, (1, 1, 1, 1))))


@pytest.mark.parametrize("target", TARGETS)
def test_chunks_of_other_widths_and_idle_sequences(target: str) -> None:
    """Chunks end where they like; a sequence without new tokens is left as it is."""
    batch = Batch(target)
    for lengths, columns in (((3, 9, 1, 40), 40), ((0, 2, 70, 1), 130), ((1, 1, 1, 1), 1), ((0, 5, 0, 2), 7)):
        found = batch.call(prompts(sum(lengths), lengths), columns, pad=11)
        if all(lengths):
            batch.compare(found)
    batch.compare(batch.call(prompts(9, (1, 2, 3, 1))))


def test_a_sequence_begins_again_beside_the_others() -> None:
    """What an earlier sequence left in its part of the cache is never seen."""
    batch = Batch("cpu")
    batch.call(prompts(0, (4, 60, 33, 7)))
    batch.tokens[1] = []
    batch.compare(batch.call(prompts(1, (1, 3, 2, 5))))


def test_the_cache_is_written_in_place_and_never_copied() -> None:
    plan = plan_of("llama_batch", "cpu")
    caches = {s.name for s in plan.states}
    assert len(caches) == 4
    for variant in plan.variants:
        kernels = [plan.kernels[launch.kernel] for launch in variant.launches]
        assert "copy" not in {k.scope for k in kernels}
        sizes = [b for b in variant.buffers if b.role.in_arena and b.shape[-2:-1] == (CONTEXT,)]
        assert not sizes
        assert {b.name for b in variant.buffers if b.name in caches} == caches


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"past": [0, 3, 2, 12]}, "input past has 12 in it, outside of 0 … 10"),
        ({"past": [0, 3, -1, 1]}, "input past has -1 in it"),
        ({"new": [1, 2, 3, 1]}, "input new has 3 in it, outside of 0 … 2"),
        ({"longest": CONTEXT - 1}, "with longest=1099, seq=2 the call needs 1101 elements"),
    ],
)
def test_lengths_outside_are_refused_before_anything_is_written(
    changed: dict[str, Any], message: str
) -> None:
    session = batched("cpu")
    call = {"tokens": np.zeros((4, 2), np.int32), "past": [0] * 4, "new": [2] * 4, "longest": 10}
    with pytest.raises(LumiError) as refused:
        session(**{**call, **changed})
    assert message in refused.value.message
    assert not any(v.any() for v in session.save_states().values())
