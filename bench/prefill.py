"""Attention and fused products over many rows at once, on an NVIDIA GPU, in bf16.

Attention is the stdlib's `sdpa`, written out of primitives; PyTorch's is what its own function chooses.  The
floor that is printed is that of the bytes; operations bound these cases, and stand in the JSON.

    python bench/prefill.py [--json FILE] [--search model|measure] [CASE …]
"""

from __future__ import annotations

from typing import Any

from gpu_case import Case, Data, main

TOLERANCE = 1e-2
"""Of results that are rounded to bf16, by the norms."""


def attention(batch: int, heads: int, key_heads: int, length: int, width: int, causal: bool) -> Case:
    shapes = {n: (batch, h, length, width) for n, h in (("q", heads), ("k", key_heads), ("v", key_heads))}
    inputs = " ".join(f"({n} bf16 [{' '.join(map(str, s))}])" for n, s in shapes.items())
    text = f"""
(defmodel attention [{inputs}]
  "Every row attends to the rows of its sequence, or to those before it."
  (sdpa q k v :causal {str(causal).lower()}))
"""

    def draw(torch: Any) -> Data:
        return {n: torch.randn(*s).to(torch.bfloat16) for n, s in shapes.items()}

    def work(q: Any, k: Any, v: Any) -> Any:
        import torch

        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)

    traffic = 2 * batch * (2 * heads + 2 * key_heads) * length * width
    flops = 4.0 * batch * heads * length * length * width / (2 if causal else 1)
    name = f"{'causal' if causal else 'full'} b{batch} h{heads}/{key_heads} s{length} d{width}"
    return Case(name, text, traffic, draw, work, tolerance=TOLERANCE, flops=flops)


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


CASES = (
    *(attention(2, 32, 8, 4096, width, causal) for width in (64, 128) for causal in (False, True)),
    *(attention(8, 32, 8, 1024, width, True) for width in (64, 128)),
    linear(4096, 4096, 4096),
    linear(2048, 4096, 4096),
    gated(4096, 14336, 4096),
    gated(128, 14336, 4096),
)

if __name__ == "__main__":
    main(CASES, __doc__.partition("\n")[0])
