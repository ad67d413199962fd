"""Attention with all dims known: its model, its floors, its data, and what is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lumi.dtype import BF16
from lumi.llir.arithmetic import from_memory, to_memory


@dataclass(frozen=True)
class Case:
    """Attention of `queries` rows to `keys` rows in bf16, all dims known.

    `splits` are axes of its region that may be split, and into how many chunks.
    """

    name: str
    batch: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    width: int
    causal: bool = False
    splits: Mapping[str, int] = field(default_factory=dict)

    @property
    def shapes(self) -> dict[str, tuple[int, int, int, int]]:
        """Of the inputs."""
        rows = (self.batch, self.key_heads, self.keys, self.width)
        return {"q": (self.batch, self.heads, self.queries, self.width), "k": rows, "v": rows}

    @property
    def text(self) -> str:
        inputs = " ".join(f"({n} bf16 [{' '.join(map(str, s))}])" for n, s in self.shapes.items())
        return f"""
(defmodel attention [{inputs}]
  "softmax(q kᵀ / √d) v, where no later key is seen if it is causal."
  (sdpa q k v :causal {str(self.causal).lower()}))
"""

    @property
    def bytes(self) -> int:
        """Of queries, keys, values and results."""
        rows = 2 * self.heads * self.queries + 2 * self.key_heads * self.keys
        return self.batch * rows * self.width * BF16.size

    @property
    def flops(self) -> float:
        """Of both products, where keys are seen."""
        seen = self.queries * self.keys
        if self.causal:
            seen = sum(min(i + 1, self.keys) for i in range(self.queries))
        return 4.0 * self.batch * self.heads * self.width * seen

    def draw(self) -> dict[str, np.ndarray[Any, Any]]:
        """Random inputs, as they lie in memory."""
        rng = np.random.default_rng(len(self.name))
        return {n: to_memory(rng.standard_normal(s, np.float32), BF16) for n, s in self.shapes.items()}

    def want(
        self, data: Mapping[str, np.ndarray[Any, Any]], batch: int, head: int
    ) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The result for a head in float64."""
        group = self.heads // self.key_heads
        q, k, v = (
            from_memory(data[n][batch, h], BF16).astype(np.float64)
            for n, h in (("q", head), ("k", head // group), ("v", head // group))
        )
        scores = q @ k.T / self.width**0.5
        if self.causal:
            scores = np.where(np.tri(self.queries, self.keys, dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        found: np.ndarray[Any, np.dtype[np.float64]] = weights @ v / weights.sum(axis=1, keepdims=True)
        return found


GPU_CASES = (
    Case("full b2 h32/8 s4096 d128", 2, 32, 8, 4096, 4096, 128),
    Case("causal b2 h32/8 s4096 d128", 2, 32, 8, 4096, 4096, 128, causal=True),
    Case("decode b4 h32/8 kv32768 d128", 4, 32, 8, 1, 32768, 128),
    Case("16 queries b1 h32/8 kv32768 d128", 1, 32, 8, 16, 32768, 128, splits={"e": 32}),
)

CPU_CASES = (
    Case("full b1 h4/2 s512 d64", 1, 4, 2, 512, 512, 64),
    Case("causal b1 h4/2 s512 d64", 1, 4, 2, 512, 512, 64, causal=True),
    Case("16 queries b1 h4/2 kv2048 d64", 1, 4, 2, 16, 2048, 64, splits={"e": 4}),
)
