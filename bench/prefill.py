"""Attention and fused products over many rows at once, on an NVIDIA GPU, in bf16.

Attention is the stdlib's `sdpa`, written out of primitives.  Beside it run PyTorch's function by cuDNN and
by FlashAttention-2 and, where the scores of all heads still have room, FlexAttention and what torch.compile
makes of the definition.  Results are compared with float64, head by head.  The floor that is printed is that
of the bytes; operations bound these cases, and stand in the JSON.

    python bench/prefill.py [--json FILE] [--search model|measure] [CASE …]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpu_case import Case, Data, Work, main

TOLERANCE = 1e-2
"""Of results that are rounded to bf16, by the norms."""

NAIVE = 4096
"""The length at which the definition itself runs, and FlexAttention, which takes long to compile."""


@dataclass(frozen=True)
class Attention:
    """Every row attends to the rows of its sequence, or to those up to its own."""

    batch: int
    heads: int
    key_heads: int
    length: int
    width: int
    causal: bool

    def case(self) -> Case:
        kind = "causal" if self.causal else "full"
        name = f"{kind} b{self.batch} h{self.heads}/{self.key_heads} s{self.length} d{self.width}"
        heads = {"q": self.heads, "k": self.key_heads, "v": self.key_heads}
        shapes = {n: (self.batch, h, self.length, self.width) for n, h in heads.items()}
        inputs = " ".join(f"({n} bf16 [{' '.join(map(str, s))}])" for n, s in shapes.items())
        text = f"""
(defmodel attention [{inputs}]
  "Every row attends to the rows of its sequence, or to those before it."
  (sdpa q k v :causal {str(self.causal).lower()}))
"""

        def draw(torch: Any) -> Data:
            return {n: torch.randn(*s).to(torch.bfloat16) for n, s in shapes.items()}

        traffic = 2 * self.batch * (2 * self.heads + 2 * self.key_heads) * self.length * self.width
        flops = 4.0 * self.batch * self.heads * self.length**2 * self.width / (2 if self.causal else 1)
        return Case(
            name,
            text,
            traffic,
            draw,
            self.backend("CUDNN_ATTENTION"),
            tolerance=TOLERANCE,
            flops=flops,
            wide=self.exact,
            peers=self.peers(),
        )

    def peers(self) -> dict[str, Callable[[], Work]]:
        found: dict[str, Callable[[], Work]] = {
            "cudnn": lambda: self.backend("CUDNN_ATTENTION"),
            "flash2": lambda: self.backend("FLASH_ATTENTION"),
        }
        if self.length == NAIVE:
            found |= {"flex": self.flex, "naive": self.naive}
        return found

    def backend(self, name: str) -> Work:
        """PyTorch's function by one of its implementations."""

        def work(q: Any, k: Any, v: Any) -> Any:
            import torch

            with torch.nn.attention.sdpa_kernel(getattr(torch.nn.attention.SDPBackend, name)):
                return torch.nn.functional.scaled_dot_product_attention(
                    q, k, v, is_causal=self.causal, enable_gqa=True
                )

        return work

    def flex(self) -> Work:
        """FlexAttention, compiled, its mask of blocks made outside of what is timed."""
        import torch
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        mask = None
        if self.causal:
            mask = create_block_mask(lambda b, h, i, j: j <= i, None, None, self.length, self.length)
        attend = torch.compile(flex_attention)
        return lambda q, k, v: attend(q, k, v, block_mask=mask, enable_gqa=True)

    def naive(self) -> Work:
        """What torch.compile makes of the definition."""
        import torch

        def work(q: Any, k: Any, v: Any) -> Any:
            k, v = (t.repeat_interleave(self.heads // self.key_heads, 1) for t in (k, v))
            scores = (q @ k.transpose(-1, -2)).float() * self.width**-0.5
            if self.causal:
                at = torch.arange(self.length, device=q.device)
                scores = scores.masked_fill(at[None, :] > at[:, None], -math.inf)
            return torch.softmax(scores, -1).to(q.dtype) @ v

        made: Work = torch.compile(work)
        return made

    def exact(self, q: Any, k: Any, v: Any) -> Any:
        """The definition, one head at a time: all scores at once would need hundreds of GB."""
        import torch

        out = torch.empty_like(q)
        later = torch.ones(self.length, self.length, dtype=torch.bool, device=q.device).triu(1)
        for b in range(self.batch):
            for h in range(self.heads):
                key = h * self.key_heads // self.heads
                scores = q[b, h] @ k[b, key].T * self.width**-0.5
                if self.causal:
                    scores = scores.masked_fill(later, -math.inf)
                out[b, h] = torch.softmax(scores, -1) @ v[b, key]
        return out


def linear(rows: int, columns: int, inner: int) -> Case:
    text = f"""
(defmodel linear [(x bf16 [{rows} {inner}]) (w bf16 [{columns} {inner}]) (b bf16 [{columns}])
                  (r bf16 [{rows} {columns}])]
  "A product, a bias, an activation and a residual."
  (let [h (+ (einsum (cast x f32) [m k] (cast w f32) [n k] -> [m n]) (cast b f32))]
    (cast (+ (silu h) (cast r f32)) bf16)))
"""

    def draw(torch: Any) -> Data:
        return {
            "x": torch.randn(rows, inner).to(torch.bfloat16),
            "w": (torch.randn(columns, inner) * inner**-0.5).to(torch.bfloat16),
            "b": torch.randn(columns).to(torch.bfloat16),
            "r": torch.randn(rows, columns).to(torch.bfloat16),
        }

    def work(x: Any, w: Any, b: Any, r: Any) -> Any:
        import torch

        return torch.nn.functional.silu(torch.nn.functional.linear(x, w, b)) + r

    traffic = 2 * (rows * inner + columns * inner + columns + 2 * rows * columns)
    return Case(
        f"linear {rows}x{columns}x{inner}",
        text,
        traffic,
        draw,
        work,
        tolerance=TOLERANCE,
        flops=2.0 * rows * columns * inner,
    )


def gated(rows: int, columns: int, inner: int) -> Case:
    text = f"""
(defmodel gated [(x bf16 [{rows} {inner}]) (g bf16 [{columns} {inner}]) (u bf16 [{columns} {inner}])]
  "Two products of one factor, the second by the activation of the first."
  (let [a (einsum (cast x f32) [m k] (cast g f32) [n k] -> [m n])
        b (einsum (cast x f32) [m k] (cast u f32) [n k] -> [m n])]
    (cast (* (silu a) b) bf16)))
"""

    def draw(torch: Any) -> Data:
        x = torch.randn(rows, inner).to(torch.bfloat16)
        g, u = ((torch.randn(columns, inner) * inner**-0.5).to(torch.bfloat16) for _ in range(2))
        return {"x": x, "g": g, "u": u}

    def work(x: Any, g: Any, u: Any) -> Any:
        import torch

        return torch.nn.functional.silu(x @ g.T) * (x @ u.T)

    traffic = 2 * (rows * inner + 2 * columns * inner + rows * columns)
    name, flops = f"gated {rows}x{columns}x{inner}", 4.0 * rows * columns * inner
    return Case(name, text, traffic, draw, work, tolerance=TOLERANCE, flops=flops)


BATCHES = {1024: 8, 2048: 4, 4096: 2, 16384: 1}
"""Sequences of a length that fill the GPU."""

CASES = (
    *(
        Attention(batch, 32, 8, length, width, causal).case()
        for length, batch in BATCHES.items()
        for width in (64, 128)
        for causal in (False, True)
    ),
    linear(4096, 4096, 4096),
    linear(2048, 4096, 4096),
    gated(4096, 14336, 4096),
    gated(128, 14336, 4096),
)

if __name__ == "__main__":
    main(CASES, __doc__.partition("\n")[0])
