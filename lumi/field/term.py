"""Field terms: a value for each point of a set of named axes.

Broadcasting is the absence of an axis.  Terms are immutable and compared by structure; `Red` binds its
axes.  The operator names of `Un` and `Bin` are those of `UNARY` and `BINARY` below, casts are
`cast.<dtype>` and bitcasts `bits.<dtype>` (of one element to one of the same size).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from lumi.dtype import DType

UNARY = ("exp2", "log2", "sin", "sqrt", "recip", "floor", "tf32", "abs", "recipz", "not")
"""`recipz` is recip with 0 for 0; rules introduce it, `abs` and `not`, HLIR does not."""

BINARY = (
    *("add", "sub", "mul", "max", "mod", "div", "rem", "lt", "le", "eq", "and", "or"),
    *("subni", "mulz", "shr", "bitand"),
)
"""`div`, `rem` truncate, `mod` floors.  subni(a, b) = -inf where a is -inf, else a - b; mulz(0, b) = 0."""


@dataclass(frozen=True)
class In:
    """The value of access `name` (kept in the region's table) over `axes`.

    A name that begins with `$` is no access but the runtime value of that dim, an i32 without axes.
    """

    name: str
    axes: tuple[str, ...]
    dtype: DType


@dataclass(frozen=True)
class Gat:
    """Like `In`, with one data index that is itself a field."""

    name: str
    axes: tuple[str, ...]
    dtype: DType
    index: Term


@dataclass(frozen=True)
class Const:
    """A number without a type of its own: it takes the type of what it meets."""

    value: float


@dataclass(frozen=True)
class Pos:
    """The position along an axis, i32."""

    axis: str


@dataclass(frozen=True)
class Un:
    """An elementwise function, a cast or a bitcast."""

    op: str
    a: Term


@dataclass(frozen=True)
class Bin:
    """An elementwise function of two."""

    op: str
    a: Term
    b: Term


@dataclass(frozen=True)
class Sel:
    """`a` where the condition holds, else `b`."""

    condition: Term
    a: Term
    b: Term


@dataclass(frozen=True)
class Red:
    """The reduction of `body` by sum, max or mul over a set of axes, which it binds."""

    op: str
    axes: tuple[str, ...]
    body: Term


Term: TypeAlias = "In | Gat | Const | Pos | Un | Bin | Sel | Red"


def children(term: Term) -> tuple[Term, ...]:
    """The terms directly inside."""
    match term:
        case In() | Const() | Pos():
            return ()
        case Gat(_, _, _, index):
            return (index,)
        case Un(_, a):
            return (a,)
        case Bin(_, a, b):
            return (a, b)
        case Sel(c, a, b):
            return (c, a, b)
        case Red(_, _, body):
            return (body,)
