"""The reach of index maps equals what enumeration finds."""

from __future__ import annotations

import itertools

import pytest

from lumi import dim
from lumi.dtype import F32
from lumi.field.access import Access
from lumi.field.index import Data, Index, Part, Quot, Rem, Sym, index, of_axis
from lumi.plan.reach import footprint, gaps, interval
from tests.plan.samples import access, elementwise

N = dim.var("n")
AXES: dict[str, dim.Extent] = {"i": 3, "j": 4, "k": N}


def evaluate(part: Part | Index, at: dict[str, int], dims: dict[str, int]) -> int:
    match part:
        case Index(terms, offset):
            return offset + sum(c * evaluate(p, at, dims) for p, c in terms)
        case str():
            return at[part]
        case Sym(extent):
            return dim.value(extent, dims)
        case Quot(inner, divisor):
            return evaluate(inner, at, dims) // divisor
        case Rem(inner, divisor):
            return evaluate(inner, at, dims) % divisor
        case _:
            raise AssertionError(part)


INDICES = [
    of_axis("i"),
    of_axis("i") + 5,
    index([("i", 4), ("j", 1)]),
    index([("i", -2), ("j", 3)], -1),
    index([("k", 1), (Sym(N), 1)], -1),
    index([(Quot(index([("i", 4), ("j", 1)]), 3), 1)]),
    index([(Quot(index([("k", -2)], 7), 2), -1), ("j", 1)]),
    index([(Rem(index([("i", 4), ("j", 1)]), 3), 2)]),
]


@pytest.mark.parametrize("number", range(len(INDICES)))
@pytest.mark.parametrize("n", [1, 5])
def test_interval_holds_every_value_and_is_tight(number: int, n: int) -> None:
    low, high = interval(INDICES[number], AXES)
    sizes = {a: dim.value(z, {"n": n}) for a, z in AXES.items()}
    seen = [
        evaluate(INDICES[number], dict(zip(sizes, at, strict=True)), {"n": n})
        for at in itertools.product(*map(range, sizes.values()))
    ]
    assert (dim.value(low, {"n": n}), dim.value(high, {"n": n})) == (min(seen), max(seen))


def test_clamped_and_data_indices_need_no_room() -> None:
    data = index([(Data(0), 1)])
    assert list(gaps(Access("b", (data, of_axis("i")), (9, 3), F32), AXES)) == [(1, 0), (1, 0)]
    assert list(gaps(Access("b", (of_axis("i") + 9,), (3,), F32, clamp=True), AXES)) == []


def test_a_footprint_says_what_a_kernel_touches() -> None:
    kernel = elementwise("cast.f32", [access("B0", (N,))], access("B1", (64,), offset=8), {"i0": N})
    found = footprint(kernel)
    assert (found.buffers, found.read, found.written, found.dims) == (("B0", "B1"), {"B0"}, {"B1"}, ("n",))
    assert {(need.buffer, need.gap) for need in found.needs} == {("B0", 0), ("B1", 8), ("B1", 56 - N)}


def test_a_buffer_seen_in_two_shapes_has_two_accesses() -> None:
    square = Access("B0", (of_axis("i0"), of_axis("i0")), (4, 4), F32)
    kernel = elementwise("add", [square, access("B0", (16,))], access("B1", (4,)), {"i0": 4})
    assert [a.shape for a in footprint(kernel).accesses["B0"]] == [(4, 4), (16,)]
