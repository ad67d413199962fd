"""What is known of index maps."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumi import dim
from lumi.dim import DimRange, Extent
from lumi.dtype import F32, I32
from lumi.field.index import Data, Index, Part, Quot, Rem, Sym, index, of_axis, of_extent
from lumi.lower.factor import Factors
from lumi.lower.space import AxisLimitError, Space
from lumi.lower.varying import varying
from tests.lower.spell import Spell

SEQ, PAST = dim.var("seq"), dim.var("past")
DIMS = {"seq": DimRange("seq", 1, 9, (1,)), "past": DimRange("past", 0, 7, (1,))}


def space(shape: tuple[Extent, ...], limit: int = 31) -> Space:
    """Axes a, b … of these extents."""
    b = Spell(seq=(1, 9), past=(0, 7))
    x = b.input("x", F32, shape)
    made = Space(Factors([x], varying([x], {})), DIMS, limit)
    made.canonical(x)
    return made


def test_bounds_follow_signs_and_symbols() -> None:
    s = space((4, SEQ))
    at = of_axis("a").scale(-2) + of_axis("b") + of_extent(PAST) + 3
    assert s.bounds(at) == (PAST - 3, PAST + SEQ + 2)


def test_index_inside_is_proven_over_the_whole_range() -> None:
    s = space((4, SEQ))
    assert s.inside((of_axis("b"),), (SEQ,))
    assert s.inside((of_axis("b") + 1,), (SEQ + 1,))
    assert not s.inside((of_axis("b") + 1,), (SEQ,))
    assert s.inside((of_axis("b") + of_extent(PAST),), (16,))
    assert not s.inside((of_axis("b") + of_extent(PAST),), (15,))
    assert not s.inside((of_axis("a") + -1,), (4,))


def test_data_is_inside_nothing() -> None:
    s = space((4,))
    b = Spell()
    at = s.datum(b.input("i", I32, (4,)), (of_axis("a"),), None)
    assert at == Index(((Data(0), 1),))
    assert s.bounds(at) is None
    assert not s.inside((at,), (100,))
    assert s.used((at,)) == {"a"}


@pytest.mark.parametrize(
    ("at", "divisor", "quotient", "remainder"),
    [
        (index([("a", 3), ("b", 1)]), 3, of_axis("a"), of_axis("b")),
        (index([("a", 3), ("b", 1)], 6), 3, of_axis("a") + 2, of_axis("b")),
        (index([("a", 6)]), 3, of_axis("a").scale(2), Index()),
        (index([("a", 3), ("b", 2)]), 3, index([("a", 1), (Quot(of_axis("b").scale(2), 3), 1)]), None),
        (of_axis("c"), 4, index([(Quot(of_axis("c"), 4), 1)]), index([(Rem(of_axis("c"), 4), 1)])),
        (index([(Quot(of_axis("c"), 4), 1)]), 2, index([(Quot(of_axis("c"), 8), 1)]), None),
        (index([(Rem(of_axis("c"), 8), 1)]), 4, None, index([(Rem(of_axis("c"), 4), 1)])),
    ],
)
def test_division_is_as_simple_as_ranges_allow(
    at: Index, divisor: int, quotient: Index | None, remainder: Index | None
) -> None:
    found = space((4, 3, 50)).divide(at, divisor)
    assert quotient in (None, found[0])
    assert remainder in (None, found[1])


def value(at: Index, axes: dict[str, int]) -> int:
    def part(p: Part) -> int:
        match p:
            case str():
                return axes[p]
            case Sym(extent):
                return dim.value(extent, axes)
            case Quot(inner, divisor):
                return value(inner, axes) // divisor
            case Rem(inner, divisor):
                return value(inner, axes) % divisor
            case Data():
                raise AssertionError

    return at.offset + sum(c * part(p) for p, c in at.terms)


INDICES = st.recursive(
    st.one_of(st.sampled_from(["a", "b"]).map(of_axis), st.integers(-9, 9).map(lambda n: Index((), n))),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
        st.tuples(inner, st.integers(-4, 4)).map(lambda p: p[0].scale(p[1])),
        st.tuples(inner, st.integers(1, 9)).map(lambda p: index([(Quot(*p), 1)])),
        st.tuples(inner, st.integers(1, 9)).map(lambda p: index([(Rem(*p), 1)])),
    ),
    max_leaves=5,
)


@given(INDICES, st.integers(1, 12))
def test_division_and_bounds_hold_at_every_point(at: Index, divisor: int) -> None:
    s = space((4, 3))
    quotient, remainder = s.divide(at, divisor)
    bounds = s.bounds(at)
    assert bounds is not None
    for a in range(4):
        for b in range(3):
            axes = {"a": a, "b": b}
            x = value(at, axes)
            assert (value(quotient, axes), value(remainder, axes)) == divmod(x, divisor)
            assert bounds[0] <= x <= bounds[1]  # type: ignore[operator]


@given(INDICES)
def test_digits_name_no_element_twice(at: Index) -> None:
    s = space((4, 3))
    if s.is_digits(at):
        used = sorted(at.axes())
        points = [{"a": a, "b": b} for a in range(4) for b in range(3)]
        distinct = {tuple(p[x] for x in used) for p in points}
        assert len({value(at, p) for p in points}) == len(distinct)


def test_occurrences_name_one_atom_twice() -> None:
    b = Spell()
    x = b.input("x", F32, (5, 5))
    y = b.mul(x, b.permute(x, (1, 0)))
    nodes = [x, y.inputs[1], y]
    s = Space(Factors(nodes, varying(nodes, {})), {}, 31)
    role = s.canonical(y)
    assert role == (of_axis("a"), of_axis("b"))
    again = s.fresh(y, 0, {"a"})
    assert again == of_axis("b")


def test_names_go_on_after_z() -> None:
    s = space((2,) * 28)
    assert [a.name for a in s.axes][-3:] == ["z", "aa", "ab"]


def test_limit_of_axes() -> None:
    with pytest.raises(AxisLimitError):
        space((2, 3, 4), limit=2)
    assert math.prod(a.extent for a in space((2, 3, 4), limit=3).axes if isinstance(a.extent, int)) == 24
