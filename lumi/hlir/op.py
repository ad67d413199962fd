"""Every primitive of HLIR, on one page.

| group | ops |
|---|---|
| leaves | `Input Param State Const Symbol Iota` |
| unary | `Unary` exp2 log2 sin sqrt recip floor tf32 |
| binary | `Binary` add mul mod less-than trunc-div trunc-rem |
| other elementwise | `Select Cast Bitcast` |
| axes | `Reduce` sum max mul · `Scan` sum max mul · `View` · `Gather` · `Scatter` · `Update` |

Beyond the fifteen (exp2 log2 sin sqrt recip, add mul mod less-than, reduce-sum reduce-max, iota gather
scatter cast) and the view, eleven are here only because a composition would not be exact, finite or fast:

- `select`: `c*a + (1-c)*b` is NaN when the branch not taken is infinite.
- `tf32`: tensor cores round so what they multiply; no arithmetic on bits would be seen to be that.
- `floor`: `x - mod(x, 1)` rounds for large x and is NaN at infinity.
- `trunc-div`, `trunc-rem`: integer division through a float reciprocal is wrong near exact quotients.
- `bitcast`: reading the bytes of a stored format has no arithmetic spelling.
- `reduce-mul`: `exp2(sum(log2 x))` is wrong for zeros, negatives and integers.
- scans: a masked reduction costs the square of the length.
- `update`: a state is written in place, at starts that may be data; a select over the whole state would
  copy it.

Exact meanings: integer add, mul wrap at their width.  `mod` is `a - b*floor(a/b)` (the divisor's sign);
`trunc-div`, `trunc-rem` round toward zero; integer division by zero gives 0 and remainder by zero gives a.
`less-than` gives bool; bool add is or, bool mul is and.  `max` propagates NaN.  A reduction over nothing
gives the identity.  `tf32` is the nearest number with 10 bits of mantissa, of two the one farther from 0;
f16 and bf16 have no more.  `cast` float → int truncates toward zero and saturates, NaN gives 0; int → int
wraps; anything → bool is `!= 0`.  Arithmetic on floats of fewer than four bytes (f16, bf16, f8e4m3, f8e5m2)
computes in f32 and rounds once per op; their reductions accumulate in f32 and round at their end.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from lumi.dim import Extent
from lumi.dtype import DType


class UnaryKind(Enum):
    """Elementwise functions of one float."""

    EXP2 = "exp2"
    LOG2 = "log2"
    SIN = "sin"
    SQRT = "sqrt"
    RECIP = "recip"
    FLOOR = "floor"
    TF32 = "tf32"


class BinaryKind(Enum):
    """Elementwise functions of two values of one dtype and shape."""

    ADD = "add"
    MUL = "mul"
    MOD = "mod"
    LESS = "less-than"
    DIV = "trunc-div"
    REM = "trunc-rem"


class Monoid(Enum):
    """What a reduction or a scan combines with; the identities are 0, the least value, 1."""

    SUM = "sum"
    MAX = "max"
    MUL = "mul"


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor given at each call; where `most` is told, of integers from 0 to that."""

    name: str
    most: Extent | None = None


@dataclass(frozen=True, slots=True)
class Param:
    """A weight, found under `key` in a checkpoint; `init` fills it when there is no checkpoint."""

    key: str
    init: float | None = None


@dataclass(frozen=True, slots=True)
class State:
    """A tensor that lives between calls, zero at first."""

    key: str


@dataclass(frozen=True, slots=True)
class Const:
    """A scalar of any dtype; floats keep every bit."""

    value: float | int | bool


@dataclass(frozen=True, slots=True)
class Symbol:
    """The runtime value of a dim expression, an i32 scalar."""

    extent: Extent


@dataclass(frozen=True, slots=True)
class Iota:
    """0, 1, 2 … as i32[extent]."""

    extent: Extent


@dataclass(frozen=True, slots=True)
class Unary:
    """`kind` of each element."""

    kind: UnaryKind


@dataclass(frozen=True, slots=True)
class Binary:
    """`kind` of two elements at the same place."""

    kind: BinaryKind


@dataclass(frozen=True, slots=True)
class Select:
    """condition (bool), then, else."""


@dataclass(frozen=True, slots=True)
class Cast:
    """The nearest value of another dtype (see the module for rounding and saturation)."""

    dtype: DType


@dataclass(frozen=True, slots=True)
class Bitcast:
    """The same bytes read as another dtype, little endian.

    When sizes differ the last axis holds the ratio: u8[… 2] ↔ f16[…], u8[… 4] ↔ i32[…].
    """

    dtype: DType


@dataclass(frozen=True, slots=True)
class Reduce:
    """Combine along `axes` (sorted, nonnegative); the axes disappear."""

    kind: Monoid
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """Inclusive running combination along `axis`; the shape stays."""

    kind: Monoid
    axis: int


@dataclass(frozen=True, slots=True)
class Row:
    """One source coordinate of an affine map: Σ coefficient · output coordinate + offset."""

    terms: tuple[tuple[int, int], ...]
    offset: Extent = 0


@dataclass(frozen=True, slots=True)
class Affine:
    """out[o…] = in[row₀(o…), row₁(o…), …], one row per source dimension.

    Permute, expand, slice, pad, flip and windows are all of this form.  Where a row leaves the source
    the result is `fill`; without a fill the rows must stay inside (checked when built).
    """

    rows: tuple[Row, ...]
    fill: float | int | bool | None = None


@dataclass(frozen=True, slots=True)
class Reshape:
    """The same elements in row-major order under another shape."""


IndexMap: TypeAlias = "Affine | Reshape"


@dataclass(frozen=True, slots=True)
class View:
    """The one movement op; the node's type holds the new shape."""

    map: IndexMap


@dataclass(frozen=True, slots=True)
class Gather:
    """x[… n …], index[I…] → x[… I… …]: integer indices replace `axis`."""

    axis: int


@dataclass(frozen=True, slots=True)
class Scatter:
    """x[… n …], index[m], updates[… m …]: add each update to x at its index along `axis`."""

    axis: int


@dataclass(frozen=True, slots=True)
class Update:
    """x[… n …], y[… m …]: x with y written at `start` along `axis`; in place when x is a state.

    With a third input, i32 of the first axes of x, each slice of x along these has a start of its own
    instead.  A start outside is an error in the reference, and clamped into `starts(node)` in plans.  With
    `wrap` x is a ring: what would lie behind its end lies at its beginning.
    """

    axis: int
    start: Extent
    wrap: bool = False


Leaf: TypeAlias = "Input | Param | State | Const | Symbol | Iota"
Op: TypeAlias = (
    "Leaf | Unary | Binary | Select | Cast | Bitcast | Reduce | Scan | View | Gather | Scatter | Update"
)

LEAVES = (Input, Param, State, Const, Symbol, Iota)
ELEMENTWISE = (Unary, Binary, Select, Cast)
