"""A matrix times a vector at the shapes of Llama-3-8B, on an NVIDIA GPU.

The floor is the bytes of the matrix over the bandwidth of a copy in the same run.

    python bench/gemv.py [--json FILE] [--search model|measure] [CASE …]
"""

from __future__ import annotations

from typing import Any

from gpu_case import Case, Data, main


def product(rows: int, columns: int, dtype: str = "bf16") -> Case:
    text = f"""
(defmodel product [(x {dtype} [1 {columns}])]
  "A matrix times a vector."
  (einsum (cast x f32) [b k] (cast (param "w" [{rows} {columns}] :dtype {dtype}) f32) [n k] -> [b n]))
"""
    size = {"bf16": 2, "f32": 4}[dtype]

    def draw(torch: Any) -> Data:
        kind = {"bf16": torch.bfloat16, "f32": torch.float32}[dtype]
        return {
            "x": torch.randn(1, columns).to(kind),
            "w": (torch.randn(rows, columns) * columns**-0.5).to(kind),
        }

    def work(x: Any, w: Any) -> Any:
        return x @ w.T

    traffic = size * (rows * columns + columns) + 4 * rows
    return Case(f"gemv {dtype} {rows}x{columns}", text, traffic, draw, work, ("w",))


CASES = (
    product(6144, 4096),
    product(4096, 4096),
    product(28672, 4096),
    product(4096, 14336),
    product(4096, 4096, "f32"),
)

if __name__ == "__main__":
    main(CASES, __doc__.partition("\n")[0])
