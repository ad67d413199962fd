"""What a launch reads and writes is never told less than it is, and exactly where index maps are plain."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from lumi import dim
from lumi.bufferize.copy import copy_kernel
from lumi.dim import Extent
from lumi.dtype import BF16, F32, I32
from lumi.field.access import Access
from lumi.field.index import Data, Index, Quot, Rem, Sym, index, of_axis
from lumi.llir.kernel import Kernel, Load, Store
from lumi.plan.traffic import is_copy, traffic
from tests.plan.samples import PAST, SEQ, access, elementwise, step

ROW, COLUMN = of_axis("i0"), of_axis("i1")


def moved(kernel: Kernel, **dims: int) -> tuple[dict[str, int], dict[str, int]]:
    found = traffic(step(kernel), dims)
    return dict(found.read), dict(found.written)


def test_elements_count_once_at_the_dims_of_the_call() -> None:
    twice = elementwise("add", [access("B0", (SEQ,))] * 2, access("B1", (SEQ,)), {"i0": SEQ})
    assert moved(twice, seq=5) == ({"B0": 20}, {"B1": 20})
    assert moved(twice, seq=0) == ({"B0": 0}, {"B1": 0})


def test_a_write_into_a_cache_is_its_new_rows_alone() -> None:
    target = access("B1", (64, 2), BF16, offset=PAST)
    write = elementwise("cast.bf16", [access("B0", (SEQ, 2))], target, {"i0": SEQ, "i1": 2})
    assert moved(write, seq=3, past=10) == ({"B0": 24}, {"B1": 12})


def test_a_look_back_at_a_cache_grows_with_the_position() -> None:
    seen = Access("B0", (ROW,), (64,), F32)
    read = elementwise("exp", [seen], access("B1", (SEQ + PAST,)), {"i0": SEQ + PAST})
    assert [moved(read, seq=1, past=p)[0]["B0"] for p in (0, 9, 63)] == [4, 40, 256]


def test_overlapping_reads_are_those_of_a_box_around_them() -> None:
    left, right = Access("B0", (ROW,), (9,), F32), Access("B0", (ROW + 1,), (9,), F32)
    add = elementwise("add", [left, right], access("B1", (8,)), {"i0": 8})
    assert moved(add)[0] == {"B0": 36}
    halves = elementwise(
        "add", [replace(left, index=(ROW,)), replace(right, index=(ROW + 6,))], access("B1", (3,)), {"i0": 3}
    )
    assert moved(halves)[0] == {"B0": 24}


def test_clamped_indices_touch_what_exists() -> None:
    padded = replace(Access("B0", (ROW + -2,), (4,), F32), clamp=True)
    assert moved(elementwise("exp", [padded], access("B1", (8,)), {"i0": 8}))[0] == {"B0": 16}


def test_rows_that_data_chooses_are_as_many_as_are_asked_for() -> None:
    rows = Load(
        "row", Access("B0", (Index(((Data(0), 1),)), COLUMN), (1000, 4), F32), ("id",), ("i0", "i1"), F32
    )
    ids = Load("id", Access("B1", (ROW,), (SEQ,), I32), (), ("i0",), I32)
    out = Store(access("B2", (SEQ, 4)), "row", ("i0", "i1"))
    axes: dict[str, Extent] = {"i0": SEQ, "i1": 4}
    take = Kernel(axes, ("i0", "i1"), (), {"i0": 1, "i1": 4}, (ids, rows, out))
    assert moved(take, seq=3) == ({"B1": 12, "B0": 48}, {"B2": 48})
    assert moved(take, seq=5000)[0]["B0"] == 16000


@pytest.mark.parametrize("seed", range(200))
def test_random_maps_touch_no_more_than_is_told(seed: int) -> None:
    chance = random.Random(seed)
    sizes = {"i0": chance.randrange(1, 5), "i1": chance.randrange(1, 5)}
    shape = (24, 24)
    accesses = [Access("B0", (_map(chance), _map(chance)), shape, F32) for _ in range(chance.randrange(1, 4))]
    kernel = elementwise("max", accesses, access("B1", tuple(sizes.values())), sizes)
    points = itertools.product(*map(range, sizes.values()))
    touched = {
        tuple(min(max(_at(i, dict(zip(sizes, p, strict=True))), 0), 23) for i in a.index)
        for p in points
        for a in accesses
    }
    told = moved(kernel, n=3)[0]["B0"] // 4
    assert len(touched) <= told <= min(24 * 24, len(accesses) * sizes["i0"] * sizes["i1"])


def _map(chance: random.Random) -> Index:
    terms = [(part, chance.randrange(-1, 3)) for part in ("i0", "i1", Sym(dim.var("n")))]
    plain = index(terms, 8 + chance.randrange(3))
    kind = chance.randrange(4)
    return plain if kind > 1 else index([((Quot, Rem)[kind](plain, 3), 1)])


def _at(found: Index, point: dict[str, int]) -> int:
    def value(part: object) -> int:
        match part:
            case str():
                return point[part]
            case Sym():
                return 3
            case Quot(inner, divisor):
                return _at(inner, point) // divisor
            case Rem(inner, divisor):
                return _at(inner, point) % divisor
        raise AssertionError(part)

    return found.offset + sum(c * value(p) for p, c in found.terms)


def test_copies_are_told_from_what_moves_parts_or_computes() -> None:
    whole = copy_kernel(F32, (SEQ, 1, 4))
    assert is_copy(step(whole))
    assert is_copy(step(copy_kernel(F32, ())))
    write = elementwise("add", [access("B0", (4,))] * 2, access("B1", (4,)), {"i0": 4})
    load, store = whole.body[0], whole.body[-1]
    assert isinstance(load, Load) and isinstance(store, Store)
    shifted = replace(load, access=replace(load.access, index=(ROW + 1, *load.access.index[1:])))
    part = replace(whole, axes={**whole.axes, "i0": 2})
    for other in (write, replace(whole, body=(shifted, store)), part):
        assert not is_copy(step(other))
    assert not is_copy(replace(step(whole), beside=(write,)))
