"""Regions as text: what is shown reads back, and what is malformed is placed."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumi import dim
from lumi.dtype import DTYPES, F32, I32
from lumi.errors import LumiError, Source
from lumi.field.access import Access
from lumi.field.axis import AxisTable
from lumi.field.index import Data, Index, Look, Quot, Rem, Sym, index, of_axis
from lumi.field.region import Note, Region, Store
from lumi.field.term import BINARY, UNARY, Bin, Const, Gat, In, Pos, Red, Sel, Term, Un
from lumi.field.text import parse, show, show_body

AXES = ("a", "b", "seq")
"""One axis has the name of a dim: the two must not be mixed up."""


def region(
    stores: list[Store], accesses: dict[str, Access], produced: dict[str, int] | None = None
) -> Region:
    axes = AxisTable()
    for name, extent in zip(AXES, (3, dim.var("seq") + 1, dim.var("seq")), strict=True):
        axes.add(name, extent)
    derived = {s.access.buffer: k for k, s in enumerate(stores)}
    names = ("x", "a weight.key", "%12")
    notes = (Note("cut", "%3", 'heavy, "quoted"'),)
    found = produced if produced is not None else derived
    made = Region("model/layer.0", axes, accesses, tuple(stores), names, found, notes, "")
    return Region(*(getattr(made, f) for f in made.__slots__[:-1]), show_body(made))


INDICES = st.recursive(
    st.one_of(
        st.sampled_from(AXES).map(of_axis),
        st.integers(-9, 9).map(lambda n: Index((), n)),
        st.just(Index(((Sym(dim.var("past")), 1),))),
        st.just(Index(((Data(0), 1),))),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
        st.tuples(inner, st.integers(-4, 4)).map(lambda p: p[0].scale(p[1])),
        st.tuples(inner, st.integers(1, 9)).map(lambda p: index([(Quot(*p), 1)])),
        st.tuples(inner, st.integers(1, 9)).map(lambda p: index([(Rem(*p), 1)])),
        st.tuples(inner, st.integers(1, 9)).map(lambda p: index([(Look("B9", (p[0],), (p[1],), p[1]), 1)])),
    ),
    max_leaves=5,
)


@st.composite
def accesses(draw: Callable) -> Access:
    places = tuple(draw(st.lists(INDICES, max_size=3)))
    sizes = st.sampled_from([1, 7, dim.var("seq"), dim.var("past") + dim.var("seq") * 2])
    shape = tuple(draw(sizes) for _ in places)
    return Access("B0", places, shape, draw(st.sampled_from(list(DTYPES.values()))), draw(st.booleans()))


READS = {
    "r0": Access("B0", (of_axis("b"), of_axis("a")), (9, 3), F32),
    "g": Access("B1", (Index(((Data(0), 1),)),), (5,), I32),
}
NUMBERS = st.floats(allow_nan=False).map(Const)

TERMS: st.SearchStrategy[Term] = st.recursive(
    st.one_of(
        NUMBERS,
        st.sampled_from(AXES).map(Pos),
        st.sampled_from(
            [In("r0", ("a", "b"), F32), In("$past", (), I32), In("r0", ("b",), I32), In("q", ("a",), F32)]
        ),
    ),
    lambda inner: st.one_of(
        st.builds(Un, st.sampled_from([*UNARY, "cast.f32", "bits.i32"]), inner),
        st.builds(Bin, st.sampled_from(BINARY), inner, inner),
        st.builds(Sel, inner, inner, inner),
        st.builds(Gat, st.just("g"), st.sampled_from([(), ("a",)]), st.just(I32), inner),
        st.builds(
            Red, st.sampled_from(["sum", "max", "mul"]), st.sampled_from([("a",), ("a", "seq")]), inner
        ),
        inner.map(lambda t: Bin("add", t, t)),
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(TERMS, accesses()), max_size=3), accesses())
def test_what_is_shown_reads_back(stores: list[tuple[Term, Access]], other: Access) -> None:
    made = region([Store(*s) for s in stores], {**READS, "other": other})
    assert parse(Source("region", show(made))) == made


def test_produced_is_shown_when_stores_do_not_say_it() -> None:
    made = region([Store(Const(1.0), READS["r0"])], READS, {"B0": 0, "B7": 0})
    assert "(produced" in show(made)
    assert parse(Source("region", show(made))) == made


def test_numbers_keep_every_bit() -> None:
    values = [0.1, -0.0, 5e-324, 1.7e308, math.inf, -math.inf, math.nan]
    made = region([Store(Const(v), READS["r0"]) for v in values], READS)
    back = [s.term.value for s in parse(Source("region", show(made))).stores if isinstance(s.term, Const)]
    assert [repr(v) for v in back] == [repr(v) for v in values]


def test_shared_and_deep_terms_are_bound(golden: Callable[..., None]) -> None:
    read: Term = In("r0", ("a", "b"), F32)
    shared = Un("exp2", read)
    deep: Term = Bin("mul", shared, shared)
    for k in range(30):
        deep = Bin("add", deep, Const(float(k)))
    made = region([Store(deep, READS["r0"]), Store(Red("sum", ("a",), shared), READS["r0"])], READS)
    golden(show(made), ".lisp")
    assert parse(Source("region", show(made))) == made


def test_thousands_of_nested_terms_read_back() -> None:
    term: Term = In("r0", ("a", "b"), F32)
    for _ in range(3000):
        term = Un("exp2", term)
    made = region([Store(term, READS["r0"])], READS)
    assert show_body(parse(Source("region", show(made)))) == made.key


def test_exponentially_unfolding_terms_are_shown_as_they_are_shared() -> None:
    term: Term = In("r0", ("a", "b"), F32)
    for _ in range(60):
        term = Bin("mul", term, term)
    made = region([Store(term, READS["r0"])], READS)
    assert len(show(made)) < 5000
    assert parse(Source("region", show(made))).key == made.key


TEXT = """(region "r" (buffers "x") (axes [a 3]) (accesses [r0 (B0 [a] [3] f32)])
  (let) (stores [(B1 [a] [3] f32) (mul r0 2.0)]) (notes))"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(axes [a 3])", "", r"expected \(axes …\) in a region"),
        ("(mul r0 2.0)", "(mul r1 2.0)", "expected a number"),
        ("(mul r0 2.0)", "(gather r1 r0)", "expected the name of an access"),
        ("(mul r0 2.0)", "(position z)", r"expected an axis \(a\)"),
        ("(mul r0 2.0)", "(sum [z] r0)", r"expected an axis \(a\)"),
        ("[r0 (B0 [a] [3] f32)]", "[r0 (B0 [z] [3] f32)]", "expected an index"),
        ("[r0 (B0 [a] [3] f32)]", "[r0 (B0 [a] [3] f32 :loose)]", r"expected \(buffer"),
        ("[r0 (B0 [a] [3] f32)]", "[r0 (B0 [a] [3] f33)]", "expected a dtype"),
        ("[r0 (B0 [a] [3] f32)]", "[r0]", r"expected \[name value\]"),
        ('(region "r"', '(kernel "r"', r"expected \(region …\)"),
    ],
)
def test_malformed_text_is_an_error_with_a_place(old: str, new: str, message: str) -> None:
    parse(Source("region", TEXT))
    with pytest.raises(LumiError, match=message) as error:
        parse(Source("region", TEXT.replace(old, new)))
    assert error.value.span is not None
