"""Which sums of products are offered in chunks, and what is made of the offer."""

from __future__ import annotations

import pytest

from lumi.backends.cuda import splits
from lumi.backends.cuda.mma.shares import CHUNKS
from lumi.compiler import Compilation, Options, Stage, compile_model
from lumi.errors import Source
from lumi.llir.kernel import Loop, walk


def compiled(m: int, n: int, k: int, dtype: str, until: Stage) -> Compilation:
    text = f"""
(defmodel product [(a {dtype} [{m} {k}]) (b {dtype} [{n} {k}])]
  "A product."
  (einsum a [m k] b [n k] -> [m n]))
"""
    return compile_model(Source("product.lumi", text), Options(target="cuda"), until)


@pytest.mark.parametrize(
    ("sizes", "dtype", "count"),
    [
        ((64, 512, 16384), "bf16", [CHUNKS]),
        ((64, 512, 4096), "f16", [CHUNKS]),
        ((64, 512, 2048), "bf16", []),
        ((64, 512, 16385), "bf16", []),
        ((1024, 1024, 16384), "bf16", []),
        ((64, 512, 16384), "f32", []),
        ((1, 512, 16384), "bf16", []),
    ],
    ids=["long", "halves", "short", "odd", "many results", "f32", "vector"],
)
def test_long_sums_of_few_results_are_offered(
    sizes: tuple[int, int, int], dtype: str, count: list[int]
) -> None:
    work = compiled(*sizes, dtype, Stage.FIELDS)
    ((variant, region),) = work.distinct().values()
    assert list(splits.chunks(region, variant.box.hints()).values()) == count


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ((2048, 32768, 1024), [CHUNKS]),
        ((16384, 32768, 1024), []),
        ((32, 32768, 1024), []),
        ((2048, 32769, 1024), []),
        ((2048, 32768, 512), []),
    ],
    ids=["few rows", "many rows", "hardly any", "odd", "short sums"],
)
def test_rows_of_products_that_are_folded_are_offered(sizes: tuple[int, int, int], count: list[int]) -> None:
    m, n, k = sizes
    text = f"""
(defmodel folded [(a bf16 [{m} {k}]) (b bf16 [{n} {k}])]
  "The greatest product of each row."
  (reduce-max (einsum (cast a f32) [m k] (cast b f32) [n k] -> [m n])))
"""
    work = compile_model(Source("folded.lumi", text), Options(target="cuda"), Stage.FIELDS)
    ((variant, region),) = work.distinct().values()
    assert list(splits.chunks(region, variant.box.hints()).values()) == count


def test_chunks_are_summed_on_tensor_cores_and_joined() -> None:
    (found,) = compiled(64, 512, 16384, "bf16", Stage.KERNELS).found.values()
    first, second = found.graph.steps
    assert first.schedule.template in ("mma", "wgmma")
    assert any(isinstance(s, Loop) and s.chunk is not None for s in walk(first.kernel.body))
    assert second.schedule.template not in ("mma", "wgmma")
