"""Random forms, for the properties of every module of lumi.syntax."""

from __future__ import annotations

import re

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from lumi.errors import Source
from lumi.syntax.form import Float, Form, Int, Keyword, List, Str, Symbol, Vector
from lumi.syntax.printer import show
from lumi.syntax.reader import tokens

EXAMPLES = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
"""The same examples in every run; the first loads the grammar, so that there is no deadline."""

_START = "abcxyzABC*+!-_?<>=/%&$|^.éλ…"
_INSIDE = _START + "0123456789#"


def _is_symbol(name: str) -> bool:
    """Whether a name is neither the beginning of a number nor Python's spelling of an argument."""
    return not re.match(r"[+-]?\.?\d", name) and "=" not in name[1:]


names = st.builds(str.__add__, st.sampled_from(_START), st.text(_INSIDE, max_size=6)).filter(_is_symbol)
atoms: st.SearchStrategy[Form] = st.one_of(
    names.map(Symbol),
    st.sampled_from(["->", "...", "-inf", "<=", "-", "%12", "x#", "nil", "quote"]).map(Symbol),
    st.text(_INSIDE, min_size=1, max_size=6).map(Keyword),
    st.integers().map(Int),
    st.integers(-(2**70), 2**70).map(Int),
    st.floats(allow_nan=False, allow_infinity=False).map(Float),
    st.text(max_size=12).map(Str),
)


def _compound(inner: st.SearchStrategy[Form]) -> st.SearchStrategy[Form]:
    items = st.lists(inner, max_size=5).map(tuple)
    heads = st.sampled_from(["quote", "quasiquote", "unquote", "unquote-splicing"]).map(Symbol)
    quoted = st.builds(lambda head, form: List((head, form)), heads, inner)
    return st.one_of(items.map(List), items.map(Vector), quoted)


forms: st.SearchStrategy[Form] = st.recursive(atoms, _compound, max_leaves=20)

_HEADS = [
    "defn",
    "deflayer",
    "defmodel",
    "let",
    "fold",
    "for",
    "if",
    "->",
    "einsum",
    "rearrange",
    "set!",
    "fn",
    "+",
]
_shapes = st.recursive(
    st.one_of(atoms, names.map(Symbol), st.sampled_from(["->", "x", "[b s]", "[b (h d)]"]).map(Symbol)),
    lambda inner: st.one_of(
        st.builds(
            lambda head, items: List((Symbol(head), *items)),
            st.sampled_from(_HEADS),
            st.lists(inner, max_size=6),
        ),
        st.lists(inner, max_size=6).map(lambda items: Vector(tuple(items))),
    ),
    max_leaves=25,
)
_between = st.sampled_from(
    [
        " ",
        " ",
        " ",
        "  ",
        "\n",
        "\n\n",
        "\n\n\n",
        " ; note\n",
        "\n;; line\n",
        "\n\n;;; part\n\n",
        " #_skip ",
        ";a\n;b\n",
    ]
)


@st.composite
def _program(draw: st.DrawFn) -> str:
    """Special forms, well made or not, with spaces and comments between any two of their tokens."""
    text = "\n".join(show(form) for form in draw(st.lists(_shapes, max_size=4)))
    pieces = [str(token) for token in tokens(Source("program", text))]
    spread = [draw(_between) if piece.isspace() else piece for piece in pieces]
    opened = [
        piece + draw(st.sampled_from(["", "", "\n;; first\n"])) if piece in "([" else piece
        for piece in spread
    ]
    closed = [
        draw(st.sampled_from(["", "", "", " ; last\n", "\n;; below\n"])) + p if p in ")]" else p
        for p in opened
    ]
    return draw(_between) + "".join(closed) + draw(_between)


programs: st.SearchStrategy[str] = _program()
