"""Chains that memory bounds, on an NVIDIA GPU: elementwise, softmax, norms, cross-entropy.

The floor is the bytes that must cross memory over the bandwidth of a copy in the same run.

    python bench/chains.py [--json FILE] [--search model|measure] [CASE …]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu_case import Case, Data, main


def rows(name: str, body: str, shape: tuple[int, int], work: Callable[[Any, Any], Any]) -> Case:
    """Something done to each row of f32 numbers."""
    count, width = shape
    text = f"""
(defmodel chain [(x f32 [{count} {width}])]
  "{name.capitalize()} of rows."
  {body})
"""

    def draw(torch: Any) -> Data:
        return {"x": torch.randn(count, width)}

    def of(x: Any) -> Any:
        import torch

        return work(torch, x)

    return Case(f"{name} {count}x{width}", text, 8 * count * width, draw, of)


def loss(count: int, width: int) -> Case:
    text = f"""
(defmodel loss [(x f32 [{count} {width}]) (labels i32 [{count}])]
  "Cross-entropy of rows."
  (cross-entropy x labels))
"""

    def draw(torch: Any) -> Data:
        return {"x": torch.randn(count, width), "labels": torch.randint(width, (count,), dtype=torch.int32)}

    def work(x: Any, labels: Any) -> Any:
        import torch

        return torch.nn.functional.cross_entropy(x, labels)

    return Case(f"cross-entropy {count}x{width}", text, 4 * count * width, draw, work)


def norm(count: int, width: int) -> Case:
    text = f"""
(defmodel norm [(x bf16 [{count} {width}]) (w bf16 [{width}])]
  "A weighted norm of rows of halves."
  (cast (* (root-mean-square (cast x f32)) (cast w f32)) bf16))
"""

    def draw(torch: Any) -> Data:
        shapes = {"x": (count, width), "w": (width,)}
        return {n: torch.randn(*s, dtype=torch.bfloat16) for n, s in shapes.items()}

    def work(x: Any, w: Any) -> Any:
        import torch

        return torch.nn.functional.rms_norm(x, x.shape[-1:], w)

    return Case(f"weighted norm bf16 {count}x{width}", text, 4 * count * width, draw, work, tolerance=5e-3)


def chains(side: int) -> list[Case]:
    """The same chains over a square of numbers."""
    shape = side, side
    return [
        rows("scale-add-relu", "(relu (+ (* x 1.5) 0.25))", shape, lambda t, x: t.relu(x * 1.5 + 0.25)),
        rows("gelu-tanh", "(gelu-tanh x)", shape, lambda t, x: t.nn.functional.gelu(x, approximate="tanh")),
        rows("softmax", "(softmax x)", shape, lambda t, x: t.softmax(x, -1)),
        rows(
            "standardize", "(standardize x)", shape, lambda t, x: t.nn.functional.layer_norm(x, x.shape[-1:])
        ),
        rows(
            "root-mean-square",
            "(root-mean-square x)",
            shape,
            lambda t, x: t.nn.functional.rms_norm(x, x.shape[-1:]),
        ),
    ]


CASES = (
    *chains(4096),
    norm(8192, 4096),
    rows("log-softmax", "(log-softmax x)", (4096, 8192), lambda t, x: t.log_softmax(x, -1)),
    rows("softmax", "(softmax x)", (1024, 32768), lambda t, x: t.softmax(x, -1)),
    *chains(8192),
    norm(32768, 4096),
    loss(4096, 32000),
)

if __name__ == "__main__":
    main(CASES, __doc__.partition("\n")[0])
