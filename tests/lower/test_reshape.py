"""How reshapes regroup dimensions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumi import dim
from lumi.lower.reshape import Group, groups

SEQ, PAST = dim.var("seq"), dim.var("past")


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        ((2, 3, 4), (6, 4), [((0, 1), (0,)), ((2,), (1,))]),
        ((6, 4), (8, 3), [((0, 1), (0, 1))]),
        ((1, SEQ, 8), (SEQ, 2, 1, 4), [((1,), (0,)), ((2,), (1, 3))]),
        ((2, SEQ, 8), (2 * SEQ, 8), [((0, 1), (0,)), ((2,), (1,))]),
        ((PAST + SEQ, 4), (4 * (PAST + SEQ),), [((0, 1), (0,))]),
        ((2, SEQ, 3), (SEQ, 6), [((0, 1, 2), (0, 1))]),
        ((SEQ, PAST), (PAST, SEQ), [((0, 1), (0, 1))]),
        ((1, 1), (1,), []),
        ((), (1, 1), []),
        ((0, 3), (7, 0), []),
    ],
)
def test_groups_are_the_smallest_with_equal_products(
    before: tuple[dim.Extent, ...],
    after: tuple[dim.Extent, ...],
    want: list[tuple[tuple[int, ...], tuple[int, ...]]],
) -> None:
    assert groups(before, after) == tuple(Group(*g) for g in want)


def test_other_products_are_refused() -> None:
    with pytest.raises(ValueError, match="changes the number of elements"):
        groups((2, 3), (2, 4))


@st.composite
def two_shapes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes of one size, made of the same primes."""
    primes = draw(st.lists(st.sampled_from([2, 2, 3, 5]), max_size=6))

    def shape(order: list[int]) -> tuple[int, ...]:
        sizes = [1]
        for prime in order:
            if draw(st.booleans()):
                sizes.append(1)
            sizes[-1] *= prime
        return tuple(sizes)

    return shape(primes), shape(draw(st.permutations(primes)))


@given(two_shapes())
def test_groups_cover_every_dimension_and_cannot_be_split(
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    before, after = shapes
    found = groups(before, after)
    assert [k for g in found for k in g.before] == [k for k, z in enumerate(before) if z != 1]
    assert [k for g in found for k in g.after] == [k for k, z in enumerate(after) if z != 1]
    for group in found:
        left = {math.prod(before[k] for k in group.before[:n]) for n in range(1, len(group.before))}
        right = {math.prod(after[k] for k in group.after[:n]) for n in range(1, len(group.after))}
        assert math.prod(before[k] for k in group.before) == math.prod(after[k] for k in group.after)
        assert left.isdisjoint(right)
