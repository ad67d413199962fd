"""Text from a session: prefill of the prompt, then one token a step, streamed.

A model can generate if its plan has the input `tokens` i32 [batch seq], the output `logits` whose last
row belongs to the last token, and the dim `past`, the number of tokens already in its states.
"""

from __future__ import annotations

import bisect
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from lumi import dim
from lumi.dim import DimRange, Extent
from lumi.errors import LumiError
from lumi.plan.plan import Plan
from lumi.runtime.sample import Logits, Sampler, Sampling, top_logits
from lumi.runtime.tokenizer import Tokenizer


class Runner(Protocol):
    """What runs the model; `lumi.runtime.session.Session` is one."""

    @property
    def plan(self) -> Plan:
        """What it runs."""

    def run(self, inputs: Mapping[str, Any], dims: Mapping[str, int] | None = None) -> dict[str, Logits]:
        """One call: the outputs by name."""

    def reset(self) -> None:
        """Forget all tokens."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a generation ends: after `max_tokens`, before one of `stops` in its text, or at an end token.

    `ignore_end` goes on after end tokens, as measurements want it.
    """

    max_tokens: int = 128
    stops: tuple[str, ...] = ()
    ignore_end: bool = False


@dataclass(slots=True)
class Generation:
    """One generation; iterate over it once to run it and get its text piece by piece.

    `tokens` and `text` grow meanwhile.  `reason` says what ended it: "length", "end" (an end token, which is
    not among `tokens`), "stop" (a stop string, not part of `text`) or "context" (no room for another).
    `prompt_logits` are the logits of the last prompt position, f32[vocab].
    """

    runner: Runner
    prompt: tuple[int, ...]
    tokenizer: Tokenizer | None
    sampling: Sampling
    limits: Limits
    tokens: list[int] = field(default_factory=list)
    text: str = ""
    reason: str = "length"
    prompt_logits: Logits = field(default_factory=lambda: np.zeros(0, np.float32))
    prefill_s: float = 0.0
    decode_s: float = 0.0

    def __iter__(self) -> Iterator[str]:
        """The new text of every step, possibly empty."""
        text = _HeldText(self.limits.stops)
        stream = self.tokenizer.stream() if self.tokenizer else None
        for token in self._tokens():
            self.tokens.append(token)
            piece = text.push(stream.push(token)) if stream else ""
            self.text += piece
            yield piece
            if text.stopped:
                self.reason = "stop"
                return
        rest = text.push(stream.finish()) + text.finish() if stream else ""
        self.reason = "stop" if text.stopped else self.reason
        self.text += rest
        yield rest

    def run(self) -> Generation:
        """Generate everything, then return this."""
        for _ in self:
            pass
        return self

    @property
    def prefill_tok_s(self) -> float | None:
        """Prompt tokens a second; None before the prompt has run."""
        return len(self.prompt) / self.prefill_s if self.prefill_s else None

    @property
    def decode_tok_s(self) -> float | None:
        """Steps after the first token a second; None when there was none."""
        return (len(self.tokens) - 1) / self.decode_s if self.decode_s else None

    def to_json(self, logits: int = 0) -> dict[str, object]:
        """Plain JSON values; `logits` adds that many of the best logits of the last prompt position."""
        found: dict[str, object] = {
            "prompt_tokens": list(self.prompt),
            "tokens": self.tokens,
            "text": self.text if self.tokenizer else None,
            "reason": self.reason,
            "prefill_tok_s": self.prefill_tok_s,
            "decode_tok_s": self.decode_tok_s,
        }
        if logits:
            found["logits"] = [[token, value] for token, value in top_logits(self.prompt_logits, logits)]
        return found

    def _tokens(self) -> Iterator[int]:
        """Run the model, token after token, until one ends it."""
        context = _context(self.runner.plan)
        ends = self.tokenizer.stops if self.tokenizer and not self.limits.ignore_end else frozenset()
        sampler = Sampler(self.sampling)
        logits = self._prefill()
        for count in range(self.limits.max_tokens):
            token = sampler.pick(logits)
            if token in ends:
                self.reason = "end"
                return
            yield token
            past = len(self.prompt) + count
            if count + 1 == self.limits.max_tokens:
                return
            if past >= context:
                self.reason = "context"
                return
            start = time.perf_counter()
            logits = self._step([token], past)
            self.decode_s += time.perf_counter() - start

    def _prefill(self) -> Logits:
        """Run the prompt, in chunks of as many tokens as one call takes."""
        self.runner.reset()
        chunk = _chunk(self.runner.plan)
        start = time.perf_counter()
        logits = np.zeros(0, np.float32)
        for past in range(0, len(self.prompt), chunk):
            logits = self._step(self.prompt[past : past + chunk], past)
        self.prefill_s = time.perf_counter() - start
        self.prompt_logits = logits
        return logits

    def _step(self, tokens: Sequence[int], past: int) -> Logits:
        """One call: the logits f32[vocab] of its last token."""
        outputs = self.runner.run({"tokens": np.array([tokens], np.int32)}, {"past": past})
        logits = outputs["logits"]
        return np.ascontiguousarray(logits.reshape(-1, logits.shape[-1])[-1], np.float32)


def generate(
    runner: Runner,
    prompt: str | Sequence[int],
    tokenizer: Tokenizer | None = None,
    sampling: Sampling | None = None,
    limits: Limits | None = None,
) -> Generation:
    """A generation from text or token ids, not yet run; iterate over it for its text.

    Without a tokenizer the prompt must be ids, and there is no text.  Raises `LumiError` ("prompt error")
    for an empty prompt, one that is longer than the context, ids outside the vocabulary, a text without
    a tokenizer; ("plan error") for a plan that cannot generate.
    """
    limits = limits or Limits()
    if limits.max_tokens < 1:
        raise LumiError("sampling error", f"max-tokens is {limits.max_tokens}", hint="it must be at least 1")
    if isinstance(prompt, str) and tokenizer is None:
        hint = "give token ids, or a tokenizer.json"
        raise LumiError("prompt error", "text needs a tokenizer, and the weights have none", hint=hint)
    tokens = tokenizer.encode(prompt) if isinstance(prompt, str) and tokenizer else [int(t) for t in prompt]
    _check_prompt(runner.plan, tokens)
    return Generation(runner, tuple(tokens), tokenizer, sampling or Sampling(), limits)


def check_speaks(plan: Plan) -> Extent:
    """The size of the vocabulary.  Raises `LumiError` for a plan of another kind of model."""
    lacking = []
    if all(s.name != "tokens" for s in plan.inputs):
        lacking.append("no input tokens i32 [batch seq]")
    logits = next((s for s in plan.outputs if s.name == "logits" and s.shape), None)
    if logits is None:
        lacking.append("no output logits [… vocab]")
    if lacking or logits is None:
        message = f"{plan.name} is no language model: it has {' and '.join(lacking)}"
        raise LumiError("plan error", message, hint="lumi run calls any plan")
    _context(plan)
    return logits.shape[-1]


def _check_prompt(plan: Plan, tokens: Sequence[int]) -> None:
    vocab, context = check_speaks(plan), _context(plan)
    if not tokens:
        raise LumiError("prompt error", "the prompt has no tokens", hint="give at least one")
    bad = next((t for t in tokens if t < 0 or (isinstance(vocab, int) and t >= vocab)), None)
    if bad is not None:
        raise LumiError("prompt error", f"there is no token {bad}", hint=f"{plan.name} knows {vocab} tokens")
    if len(tokens) > context:
        message = f"the prompt has {len(tokens)} tokens, the context of {plan.name} holds {context}"
        raise LumiError("prompt error", message, hint="shorten it, or compile with a wider range of past")


def _context(plan: Plan) -> int:
    """The most tokens a sequence can have: the last of them runs with all others in the past.

    The range of `past` and the room in the states tell how many those may be.
    """
    past, least = _dim(plan, "past"), {name: r.low for name, r in plan.dims.items()}
    gaps = {need.gap for variant in plan.variants for need in variant.needs}

    def is_full(value: int) -> bool:
        return any(dim.value(gap, {**least, "past": value}) < 0 for gap in gaps)

    return past.low + bisect.bisect_left(range(past.low, past.high + 1), True, key=is_full)


def _chunk(plan: Plan) -> int:
    """The most tokens that one call takes; a plan bound to one token a call has no dim for them."""
    one = any(s.name == "tokens" and s.shape[-1:] == (1,) for s in plan.inputs)
    return 1 if one else _dim(plan, "seq").high


def _dim(plan: Plan, name: str) -> DimRange:
    if name not in plan.dims:
        hint = "its model must declare the dims seq (new tokens) and past (tokens before them)"
        raise LumiError("plan error", f"{plan.name} cannot generate text: it has no dim {name}", hint=hint)
    return plan.dims[name]


class _HeldText:
    """Holds text back while it could be the beginning of a stop string."""

    def __init__(self, stops: Sequence[str]) -> None:
        self.stops = tuple(s for s in stops if s)
        self.stopped = False
        self._held = ""

    def push(self, text: str) -> str:
        """What is certain to be shown; nothing after a stop string."""
        self._held += text
        places = [at for at in map(self._held.find, self.stops) if at >= 0]
        if places:
            self.stopped = True
            return self._held[: min(places)]
        keep = max((n for s in self.stops for n in range(1, len(s)) if self._held.endswith(s[:n])), default=0)
        shown, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return shown

    def finish(self) -> str:
        """What was held back."""
        return "" if self.stopped else self._held
