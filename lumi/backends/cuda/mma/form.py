"""What a kernel is when tensor cores compute it: products over tiles of rows and columns.

Three forms are known.  Without a loop that carries values around, products are summed up and what follows
is stored: a matrix product and all that is fused with it.  With one, each turn multiplies rows by a tile
of positions, makes something of the results, and multiplies that by the rows at these positions: a
cascade, such as attention.  Or it makes a few numbers of each row of what tile after tile of columns sums
up, which is then folded: the loss of a classifier, whose products nothing stores.  Nothing but the kernel's
statements says which it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from lumi.dtype import BF16, F16, F32, DType
from lumi.llir.kernel import Carry, Load, Loop, Store
from lumi.llir.program import Program

HALVES = (BF16, F16)
"""Types that tensor cores multiply as exactly as f32 does."""

PIECE = 16
"""Bytes that are copied at once where they lie side by side."""

DEEP = 32
"""Bytes, along the sum, of a row of a factor of one instruction."""


class RefusalError(ValueError):
    """Why tensor cores do not compute a kernel."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A factor that lies in memory as it is multiplied, or as f32 that is rounded to TF32.

    `outer` is the axis it gives the result, `summed` the one it is summed over; neighbours along one of
    them, `along`, are neighbours in memory.  `asked` says that the kernel itself rounds it to TF32.  Where
    lines are `placed`, each lies anywhere, and is 0 unless the condition `seen`, if any, holds of it.  Where
    elements are `scattered`, that is so of each of them.
    """

    load: Load
    outer: str
    summed: str
    along: str
    asked: bool = False
    placed: bool = False
    seen: str | None = None
    scattered: bool = False

    @property
    def is_summed_along(self) -> bool:
        """Whether neighbours in memory are neighbours along the sum."""
        return self.along == self.summed


@dataclass(frozen=True, slots=True)
class Computed:
    """A factor that the kernel computes, of rows and the summed axis.

    It is `exact` when all of its values are of the other factor's type, and `bounded` when they are known
    to lie between 0 and 1.  `asked` says that the kernel itself rounds it to TF32, after `value`.
    """

    value: str
    exact: bool
    bounded: bool
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Product:
    """`var` = Σ over `summed` and `outer_summed` of a · b; a has the rows, b the columns."""

    var: str
    a: Stored | Computed
    b: Stored
    columns: str
    summed: str
    outer_summed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Update:
    """A carried sum of products: so far, times `factor` of its row if there is one, and a turn's product."""

    carry: Carry
    factor: str | None
    product: Product


@dataclass(frozen=True, slots=True)
class Sums:
    """Products of whole sums over the same axes, computed together; the loop they stood in, if any."""

    products: tuple[Product, ...]
    loop: Loop | None

    @property
    def summed(self) -> str:
        """The axis that runs in tiles."""
        return self.products[0].summed

    @property
    def outer_summed(self) -> tuple[str, ...]:
        """The axes around it."""
        return self.products[0].outer_summed


@dataclass(frozen=True, slots=True)
class Cascade:
    """A loop over tiles of `axis`: `products` have columns along it, `updates` are summed over it.

    `rows` are the other carries, which are single values for each row.
    """

    loop: Loop
    axis: str
    products: tuple[Product, ...]
    updates: tuple[Update, ...]
    rows: tuple[Carry, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """A kernel that tensor cores compute: products of factors of type `dtype`, in f32; of f32 in TF32.

    `row` and `column` are the axes of a tile of the results; the other axes of the grid, `outer`, have one
    position in a cell.  It has `sums` or a `cascade`; sums whose columns a cell takes tile after tile are
    `folded` by a cascade that sums nothing up.
    """

    program: Program
    row: str
    column: str
    outer: tuple[str, ...]
    dtype: DType
    sums: tuple[Sums, ...]
    cascade: Cascade | None
    stores: tuple[Store, ...]
    folded: Cascade | None = None

    @property
    def carried(self) -> Cascade | None:
        """The loop that carries values around, if there is one."""
        return self.cascade or self.folded

    @property
    def is_tf32(self) -> bool:
        """Whether factors are rounded to TF32."""
        return self.dtype == F32

    @property
    def asks(self) -> bool:
        """Whether the kernel itself rounds every factor to TF32."""
        return self.is_tf32 and all(f.asked for p in self.products for f in (p.a, p.b))

    @property
    def piece(self) -> int:
        """Elements that are copied at once."""
        return PIECE // self.dtype.size

    @property
    def deep(self) -> int:
        """Summed positions of one instruction."""
        return DEEP // self.dtype.size

    @property
    def products(self) -> tuple[Product, ...]:
        """Every product."""
        if self.cascade is None:
            return tuple(p for s in self.sums for p in s.products)
        return (*self.cascade.products, *(u.product for u in self.cascade.updates))

    @property
    def computed(self) -> tuple[Computed, ...]:
        """The factors that the kernel computes."""
        return tuple(p.a for p in self.products if isinstance(p.a, Computed))

    @property
    def narrows(self) -> bool:
        """Whether all results are stored in the type of the factors, so that f32 is of no use to them."""
        return all(s.access.dtype == self.dtype for s in self.stores)
