"""Choosing the next token from logits: greedy, or drawn with temperature, top-k, top-p and min-p.

Sources: temperature and top-k, Fan, Lewis and Dauphin (2018); top-p, Holtzman et al. (2020); min-p, Nguyen
et al. (2024).  The filters apply in that order, each to what the one before has left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lumi.errors import LumiError

Logits: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to draw.  Temperature 0 is greedy; `top_k` 0, `top_p` 1 and `min_p` 0 keep every token.

    `top_p` keeps the fewest tokens whose probabilities reach it together; `min_p` keeps those at least
    that fraction as probable as the best.  One `seed` and the same logits give the same tokens.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise `LumiError` ("sampling error") for a value outside its range."""
        ranges = {
            "temperature": (self.temperature >= 0, "at least 0"),
            "top_k": (self.top_k >= 0, "at least 0"),
            "top_p": (0 < self.top_p <= 1, "above 0, at most 1"),
            "min_p": (0 <= self.min_p <= 1, "from 0 to 1"),
            "seed": (self.seed >= 0, "at least 0"),
        }
        for name, (fits, range_) in ranges.items():
            if not fits:
                message = f"{name.replace('_', '-')} is {getattr(self, name)}"
                raise LumiError("sampling error", message, hint=f"it must be {range_}")


class Sampler:
    """Draws tokens one after another."""

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling
        self._random = np.random.default_rng(sampling.seed)

    def pick(self, logits: Logits) -> int:
        """The next token from f32[vocab]; the first of equals when greedy.

        Raises `LumiError` ("model error") when a logit is not a number.
        """
        best = int(np.argmax(logits))
        if np.isnan(logits[best]):
            raise LumiError("model error", f"the logit of token {best} is not a number")
        if self.sampling.temperature == 0:
            return best
        tokens, probabilities = _filtered(logits, self.sampling)
        place = np.searchsorted(
            np.cumsum(probabilities), self._random.random() * probabilities.sum(), "right"
        )
        return int(tokens[min(int(place), len(tokens) - 1)])


def top_logits(logits: Logits, count: int) -> list[tuple[int, float]]:
    """The `count` best tokens with their logits, best first, the lower token first of equals."""
    count = min(count, len(logits))
    order = _best(logits, count)
    return [(int(i), float(logits[i])) for i in order]


def _filtered(logits: Logits, sampling: Sampling) -> tuple[Logits, Logits]:
    """The tokens that the filters keep, best first, and their probabilities, f64, not normalised again."""
    tokens = _best(logits, sampling.top_k or len(logits))
    kept = logits[tokens].astype(np.float64)
    # dividing the distance from the best cannot overflow, however small the temperature
    weights = np.exp((kept - kept[0]) / sampling.temperature)
    probabilities = weights / weights.sum()
    before = np.cumsum(probabilities) - probabilities
    keep = (before < sampling.top_p) & (probabilities >= sampling.min_p * probabilities[0])
    keep[0] = True
    return tokens[keep], probabilities[keep]


def _best(logits: Logits, count: int) -> Logits:
    """The tokens of the `count` greatest logits, best first, the lower token first of equals."""
    if count >= len(logits):
        return np.argsort(-logits, kind="stable")
    threshold = np.partition(logits, len(logits) - count)[len(logits) - count]
    above = np.flatnonzero(logits > threshold)
    equal = np.flatnonzero(logits == threshold)[: count - len(above)]
    found = np.sort(np.concatenate([above, equal]))
    return found[np.argsort(-logits[found], kind="stable")]
