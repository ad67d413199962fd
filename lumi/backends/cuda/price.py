"""What a matrix product by cuBLASLt should take: the floor of its bytes and operations, and what tiles
that do not fit the result, or the GPU, add to it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lumi import dim
from lumi.backends.cuda import gemm, split, tf32
from lumi.dtype import BF16, F16, F32, F64, I8
from lumi.llir.kernel import Schedule
from lumi.llir.product import Product, Side, Tensor
from lumi.search.model import OVERLAP_LOSS, Machine
from lumi.search.protocol import Cost

RATES = {BF16: 700e12, F16: 700e12, F32: 48e12, F64: 50e12, I8: 1300e12}
"""Operations a second of large products on an H200, by the type of the factors."""

TILES = (64, 128)
"""Rows, or columns, of a result that a multiprocessor computes at once: of a narrow one, and of others."""

LEAST = 512
"""Terms of a sum that a part of it has at least, where it is split to keep all multiprocessors busy."""

CALL = 1.5e-6
"""Seconds by which the smallest product of the library takes longer than a kernel that does nothing."""

RANKED = 0.01
"""How much slower each algorithm should be than the one proposed before it."""


def cost(found: Product, schedule: Schedule, dims: Mapping[str, int], machine: Machine) -> Cost:
    """The estimate of one call under a schedule of the library."""
    rank = dict(schedule.options).get("rank", 0)

    def size(side: Side) -> int:
        return max(dim.value(side.size, dims), 1)

    m, n, k = size(found.rows), size(found.columns), size(found.inner)
    batch = math.prod(size(s) for s in found.batch)
    flops, traffic = 2.0 * m * n * k * batch, _bytes(found, dims)
    mixed = gemm.is_mixed(found)
    rate = tf32.RATE if tf32.is_tf32(schedule) else RATES[BF16 if mixed else found.a.dtype]
    memory, best = traffic / machine.bandwidth, flops / rate
    high, wide = (-(-x // TILES[x > TILES[0]]) for x in (m, n))
    cells = high * wide * batch
    parts = cells * max(1, min(-(-machine.units // cells), k // LEAST))
    busy = parts / (-(-parts // machine.units) * machine.units)
    padded = high * TILES[m > TILES[0]] / m * wide * TILES[n > TILES[0]] / n
    compute = best * padded / busy
    seconds = machine.launch + CALL + max(memory, compute) + OVERLAP_LOSS * min(memory, compute)
    if mixed:
        seconds = machine.launch + split.PARTS * seconds
    return Cost(seconds * (1 + RANKED * rank), max(memory, best), traffic, flops, 0.0)


def _bytes(found: Product, dims: Mapping[str, int]) -> float:
    """Bytes of every element that is read or written, once."""
    sides = (*found.batch, found.rows, found.columns, found.inner)

    def elements(steps: list[object]) -> float:
        sizes = [dim.value(s.size, dims) for s, step in zip(sides, steps, strict=True) if step != 0]
        return float(math.prod(sizes))

    tensors: list[tuple[Tensor | None, list[object]]] = [
        (found.a, [s.a for s in sides]),
        (found.b, [s.b for s in sides]),
        (found.out, [s.out for s in sides]),
        (found.residual, [s.residual for s in sides]),
        (found.bias, [s.bias for s in sides]),
    ]
    return sum(elements(steps) * t.dtype.size for t, steps in tensors if t is not None)
