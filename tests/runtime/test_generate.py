"""Generation over a small made-up model: prefill, steps, ends, figures, mistakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from lumi.dim import Dim, DimRange
from lumi.dtype import F32, I32
from lumi.errors import LumiError
from lumi.plan.plan import Need, Plan, Signature, Variant
from lumi.runtime.generate import Limits, generate
from lumi.runtime.sample import Sampling

VOCAB = 40
SEQ = Dim(((("seq",), 1),))


def plan_of(seq: int = 4, past: int = 11, **changes: Any) -> Plan:
    parts: dict[str, Any] = {
        "name": "counter",
        "target": "cpu",
        "dims": {"seq": DimRange("seq", 1, seq, (1,)), "past": DimRange("past", 0, past, (0,))},
        "inputs": (Signature("tokens", I32, (1, SEQ)),),
        "outputs": (Signature("logits", F32, (1, 1, VOCAB)),),
        "states": (),
        "bindings": (),
        "kernels": (),
        "variants": (),
    }
    return Plan(**(parts | changes))


class Counter:
    """A model whose next token is the sum of all tokens seen, modulo the vocabulary."""

    def __init__(self, plan: Plan | None = None, rows: int = 1) -> None:
        self.plan = plan or plan_of()
        self.rows = rows
        self.seen: list[int] = []
        self.calls: list[tuple[int, int]] = []

    def reset(self) -> None:
        self.seen = []

    def run(self, inputs: Mapping[str, Any], dims: Mapping[str, int] | None = None) -> dict[str, np.ndarray]:
        tokens = inputs["tokens"]
        assert (tokens.dtype, tokens.shape[0]) == (np.int32, 1)
        assert dims == {"past": len(self.seen)}
        self.calls.append((tokens.shape[1], len(self.seen)))
        self.seen += tokens[0].tolist()
        logits = np.zeros((1, self.rows, VOCAB), np.float32)
        logits[0, -1, sum(self.seen) % VOCAB] = 5.0
        return {"logits": logits}


class Letters:
    """Token i is a letter; 0 ends; tokens 30 and 31 are the two bytes of é."""

    stops = frozenset({0})

    def encode(self, text: str) -> list[int]:
        return [ord(c) - ord("a") + 1 for c in text]

    def decode(self, tokens: Sequence[int]) -> str:
        stream = self.stream()
        return "".join(map(stream.push, tokens)) + stream.finish()

    def stream(self) -> LetterStream:
        return LetterStream()


class LetterStream:
    held = False

    def push(self, token: int) -> str:
        was, self.held = self.held, token == 30
        return "" if self.held else "é" if was and token == 31 else chr(ord("a") + (token - 1) % 26)

    def finish(self) -> str:
        return "\ufffd" if self.held else ""


def expected(prompt: Sequence[int], count: int) -> list[int]:
    seen = list(prompt)
    for _ in range(count):
        seen.append(sum(seen) % VOCAB)
    return seen[len(prompt) :]


def test_tokens_follow_the_model_and_the_past_grows() -> None:
    model = Counter()
    found = generate(model, [3, 4], limits=Limits(max_tokens=5)).run()
    assert found.tokens == expected([3, 4], 5)
    assert model.calls == [(2, 0), (1, 2), (1, 3), (1, 4), (1, 5)]
    assert (found.reason, found.text) == ("length", "")


def test_long_prompt_runs_in_chunks() -> None:
    model = Counter()
    prompt = [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert generate(model, prompt, limits=Limits(max_tokens=1)).run().tokens == expected(prompt, 1)
    assert model.calls == [(4, 0), (4, 4), (1, 8)]


def test_plan_bound_to_one_token_takes_the_prompt_one_by_one() -> None:
    bound = plan_of(inputs=(Signature("tokens", I32, (1, 1)),), dims={"past": DimRange("past", 0, 11, (0,))})
    model = Counter(bound)
    assert generate(model, [3, 4, 5], limits=Limits(max_tokens=2)).run().tokens == expected([3, 4, 5], 2)
    assert model.calls == [(1, 0), (1, 1), (1, 2), (1, 3)]


def test_last_row_of_the_logits_decides() -> None:
    assert generate(Counter(rows=3), [3, 4], limits=Limits(2)).run().tokens == expected([3, 4], 2)


def test_second_generation_starts_afresh() -> None:
    model = Counter()
    first = generate(model, [3, 4], limits=Limits(3)).run()
    assert generate(model, [3, 4], limits=Limits(3)).run().tokens == first.tokens


def test_the_context_is_no_longer_than_the_states_have_room_for() -> None:
    past = Dim(((("past",), 1),))
    variants = tuple(
        Variant({}, (), (), {}, 0, 0, (Need(room - past - SEQ, "the cache is full"),)) for room in (9, 8)
    )
    found = generate(Counter(plan_of(past=100, variants=variants)), [1, 2, 3, 4], limits=Limits(20)).run()
    assert (len(found.tokens), found.reason) == (5, "context")
    with pytest.raises(LumiError, match="the prompt has 9 tokens, the context of counter holds 8"):
        generate(Counter(plan_of(past=100, variants=variants)), [1] * 9)


def test_generation_ends_where_the_context_is_full() -> None:
    found = generate(Counter(), [1] * 10, limits=Limits(max_tokens=50)).run()
    assert (len(found.tokens), found.reason) == (3, "context")


def test_end_token_ends_and_is_not_shown() -> None:
    found = generate(Counter(), [10, 30], Letters()).run()
    assert (found.tokens, found.text, found.reason) == ([], "", "end")
    went_on = generate(Counter(), [10, 30], Letters(), limits=Limits(2, ignore_end=True)).run()
    assert (went_on.tokens, went_on.reason) == ([0, 0], "length")


def test_text_streams_piece_by_piece() -> None:
    found = generate(Counter(), "ab", Letters(), limits=Limits(4))
    pieces = list(found)
    assert found.tokens == [3, 6, 12, 24]
    assert pieces == ["c", "f", "l", "x", ""]
    assert found.text == "cflx"


@pytest.mark.parametrize(
    ("stop", "text"), [("fl", "c"), ("l", "cf"), ("c", ""), ("fx", "cflx"), ("lxy", "cflx"), ("", "cflx")]
)
def test_stop_string_ends_and_is_not_shown(stop: str, text: str) -> None:
    found = generate(Counter(), "ab", Letters(), limits=Limits(4, stops=("zz", stop)))
    assert "".join(found) == found.text == text
    assert found.reason == ("length" if text == "cflx" else "stop")


def test_partial_character_is_shown_at_the_end() -> None:
    found = generate(Counter(), [15, 15], Letters(), limits=Limits(1)).run()
    assert (found.tokens, found.text) == ([30], "\ufffd")


def test_sampling_is_used() -> None:
    sampling = Sampling(temperature=100.0, seed=1)
    found = generate(Counter(), [3, 4], sampling=sampling, limits=Limits(8)).run()
    assert found.tokens != expected([3, 4], 8)
    again = generate(Counter(), [3, 4], sampling=sampling, limits=Limits(8)).run()
    assert found.tokens == again.tokens


def test_json_holds_tokens_text_and_figures() -> None:
    found = generate(Counter(), "ab", Letters(), limits=Limits(3)).run().to_json(logits=2)
    figures = [found.pop(name) for name in ("prefill_tok_s", "decode_tok_s")]
    assert all(isinstance(f, float) and f > 0 for f in figures)
    assert found == {
        "prompt_tokens": [1, 2],
        "tokens": [3, 6, 12],
        "text": "cfl",
        "reason": "length",
        "logits": [[3, 5.0], [0, 0.0]],
    }


def test_json_without_steps_or_tokenizer_holds_null() -> None:
    found = generate(Counter(), [1, 2], limits=Limits(1)).run().to_json()
    assert (found["decode_tok_s"], found["text"]) == (None, None)
    assert "logits" not in found


def test_mistakes_say_what_to_do(golden: Callable[..., None]) -> None:
    calls: dict[str, Callable[[], object]] = {
        "too_long": lambda: generate(Counter(), [1] * 13),
        "empty": lambda: generate(Counter(), []),
        "unknown_token": lambda: generate(Counter(), [1, VOCAB]),
        "negative_token": lambda: generate(Counter(), [-1]),
        "text_without_tokenizer": lambda: generate(Counter(), "ab"),
        "no_tokens_wanted": lambda: generate(Counter(), [1], limits=Limits(0)),
        "no_past": lambda: generate(Counter(plan_of(dims={})), [1]),
        "no_logits": lambda: generate(Counter(plan_of(outputs=())), [1]),
        "no_input": lambda: generate(Counter(plan_of(inputs=())), [1]),
    }
    lines = []
    for name, call in calls.items():
        with pytest.raises(LumiError) as caught:
            call()
        lines.append(f"{name}\n{caught.value}")
    golden("\n\n".join(lines))


def test_longest_prompt_that_fits_is_taken() -> None:
    found = generate(Counter(), [1] * 12, limits=Limits(5)).run()
    assert (len(found.tokens), found.reason) == (1, "context")
