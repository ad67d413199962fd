"""Kernels that are nothing but one matrix product, with what a library's call can do to its result.

`find` proves from index maps, strides and types what a kernel computes; a backend then decides whether
its library can be asked for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lumi import dim
from lumi.dim import DimRange, Extent
from lumi.dtype import BF16, F16, F32, F64, I8, I32, DType
from lumi.field.access import Access
from lumi.field.index import Sym
from lumi.llir import spell
from lumi.llir.epilogue import Epilogue, Function, Reader
from lumi.llir.kernel import Dot, Kernel, Load, Loop, Map, Operand, Statement, Store, walk
from lumi.llir.program import is_plain, partial_of

FACTORS = {
    *((F32, F32, F32), (BF16, BF16, F32), (F16, F16, F32), (F64, F64, F64), (I8, I8, I32)),
    *((F32, BF16, F32), (BF16, F32, F32)),
}
"""Types of the factors and of the accumulator."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A buffer as a product uses it: `offset` elements lie before the first one that it touches."""

    buffer: str
    dtype: DType
    offset: Extent


@dataclass(frozen=True, slots=True)
class Side:
    """Axes that run as one: `size` positions, and how many elements apart two neighbours lie in each
    tensor, 0 in those that are the same at all of them."""

    size: Extent
    a: Extent
    b: Extent
    out: Extent
    residual: Extent = 0
    bias: Extent = 0

    @property
    def steps(self) -> tuple[Extent, ...]:
        """The distances in all tensors."""
        return self.a, self.b, self.out, self.residual, self.bias

    def within(self, outer: Side) -> Side | None:
        """This side and the one around it as one; None when a tensor leaves a gap between."""
        if any(o != i * self.size for o, i in zip(outer.steps, self.steps, strict=True)):
            return None
        return replace(self, size=outer.size * self.size)


@dataclass(frozen=True, slots=True)
class Product:
    """out = function(alpha · Σ a · b + beta · residual + bias), once for each position of `batch`.

    `rows` are in a and out, `columns` in b and out, `inner` in a and b; the sides of `batch`, outermost
    first, may be in any.  A bias is the same along rows or along columns.  Sums are of type `dtype`.
    `rounded` says of a and of b whether the kernel rounds it to TF32 before it multiplies.
    """

    a: Tensor
    b: Tensor
    out: Tensor
    residual: Tensor | None
    bias: Tensor | None
    batch: tuple[Side, ...]
    rows: Side
    columns: Side
    inner: Side
    dtype: DType
    alpha: float
    beta: float
    function: Function
    rounded: tuple[bool, bool] = (False, False)

    @property
    def is_plain(self) -> bool:
        """Whether the sums are stored as they are."""
        alone = self.residual is None and self.bias is None
        return alone and self.alpha == 1 and self.function is Function.IDENTITY

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that there are: factors, residual, bias, result."""
        found = (self.a, self.b, self.residual, self.bias, self.out)
        return tuple(t for t in found if t is not None)

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Sizes, steps and offsets: every number that a call of a library is made from."""
        sides = (*self.batch, self.rows, self.columns, self.inner)
        return (*(e for s in sides for e in (s.size, *s.steps)), *(t.offset for t in self.tensors))

    def row_major(self) -> Product | None:
        """The product with neighbours of a row of `out` side by side, its factors swapped if it must be.

        Each factor has neighbours side by side too, along one of its sides, and none of its rows
        overlap.  None when this is not proven for all dims of at least 1.
        """
        product = self if self.columns.out == 1 else self._transposed()
        m, n, k = product.rows, product.columns, product.inner
        matrices = [((m.a, m.size), (k.a, k.size)), ((k.b, k.size), (n.b, n.size))]
        whole = _stacked((m.out, m.size), (n.out, n.size))
        if product.residual is not None:
            whole = whole and _stacked((m.residual, m.size), (n.residual, n.size))
        dense = all(_stacked(x, y) or _stacked(y, x) for x, y in matrices)
        return product if whole and dense else None

    def _transposed(self) -> Product:
        def swapped(side: Side) -> Side:
            return replace(side, a=side.b, b=side.a)

        return replace(
            self,
            a=self.b,
            b=self.a,
            batch=tuple(map(swapped, self.batch)),
            rows=swapped(self.columns),
            columns=swapped(self.rows),
            inner=swapped(self.inner),
            rounded=self.rounded[::-1],
        )


def _stacked(outer: tuple[Extent, Extent], inner: tuple[Extent, Extent]) -> bool:
    """Whether a matrix of these (step, size) has the inner side dense and its outer side behind it."""
    return inner[0] == 1 and _is_positive(outer[0] - inner[1] + 1)


def _is_positive(extent: Extent) -> bool:
    """Whether an extent is at least 1 wherever all dims are."""
    names = extent.names() if isinstance(extent, dim.Dim) else frozenset[str]()
    return dim.bounds(extent, {n: DimRange(n, 1, 1 << 62, ()) for n in names})[0] >= 1


# -- recognition


@dataclass(frozen=True, slots=True)
class _Parts:
    """The statements of a kernel that only multiplies."""

    a: Load
    b: Load
    dot: Dot
    epilogue: Epilogue
    store: Store
    rounded: tuple[bool, bool]

    @property
    def loads(self) -> tuple[Load, ...]:
        return (self.a, self.b, *(load for _, load in self.epilogue.terms))


def find(kernel: Kernel) -> Product | None:
    """The product that a kernel is, when it is one and its layout is proven."""
    parts = _parts(kernel)
    if parts is None or not _is_direct(parts):
        return None
    a, b, out = (x.access.axes() for x in (parts.a, parts.b, parts.store))
    over = parts.dot.over
    batch = [x for x in kernel.axes if x in a & b & out]
    rows = [x for x in kernel.axes if x in a and x not in (*batch, *over)]
    columns = [x for x in kernel.axes if x in b and x not in (*batch, *over)]
    if out != {*batch, *rows, *columns} or set(over) != (a & b) - out or not (rows and columns and over):
        return None
    terms = _terms(parts, rows, columns)
    return None if terms is None else _assembled(kernel, parts, terms, (batch, rows, columns, [*over]))


def _parts(kernel: Kernel) -> _Parts | None:
    """The statements of a kernel that is one sum of products, what follows it, and one store."""
    statements = [s for s in walk(kernel.body) if not isinstance(s, Loop)]
    dots, stores = ([s for s in statements if isinstance(s, kind)] for kind in (Dot, Store))
    if len(dots) != 1 or len(stores) != 1 or any(not _is_simple(s) for s in statements):
        return None
    dot, store = dots[0], stores[0]
    assert isinstance(dot, Dot) and isinstance(store, Store)
    result = _result(kernel, dot)
    if result is None:
        return None
    made = {s.var: s for s in statements if isinstance(s, Load | Map)}
    reader = Reader(made, result, dot.dtype, store.access.dtype)
    factors = _unrounded(dot.a, made), _unrounded(dot.b, made)
    a, b = map(reader.leaf, factors)
    epilogue = reader.epilogue(store.value)
    if a is None or b is None or a is b or epilogue is None:
        return None
    return _Parts(a, b, dot, epilogue, store, (factors[0] != dot.a, factors[1] != dot.b))


def _unrounded(factor: Operand, made: Mapping[str, Load | Map]) -> Operand:
    """A factor before it is rounded to TF32, if it is."""
    rounding = made.get(factor) if isinstance(factor, str) else None
    return rounding.args[0] if isinstance(rounding, Map) and rounding.op == "tf32" else factor


def _is_simple(statement: Statement) -> bool:
    return isinstance(statement, Load | Map | Dot | Store)


def _result(kernel: Kernel, dot: Dot) -> str | None:
    """What the whole sum is called: the dot itself, or what a loop that only adds it up leaves behind."""
    loops = [s for s in walk(kernel.body) if isinstance(s, Loop)]
    if not loops:
        return dot.var
    loop = loops[0]
    plain = len(loops) == 1 and is_plain(loop) and not loop.guards and loop.chunk is None
    if not plain or len(loop.carries) != 1 or partial_of(loop.carries[0], loop) is not dot:
        return None
    return loop.carries[0].final


def _is_direct(parts: _Parts) -> bool:
    """Whether types fit each other, and every index depends on positions alone."""
    accesses = [*(x.access for x in parts.loads), parts.store.access]
    a, b, *others = (x.dtype for x in accesses)
    summed = parts.dot.dtype
    stored = {summed, a} if summed == F32 and a == b else {summed}
    fits = (a, b, summed) in FACTORS and others[-1] in stored and len(set(others)) == 1
    exact = all(x.dtype in (x.access.dtype, summed) for x in parts.loads)
    return fits and exact and not any(x.clamp or x.data() or x.looks() for x in accesses)


def _terms(
    parts: _Parts, rows: Sequence[str], columns: Sequence[str]
) -> tuple[float, Load | None, Load | None] | None:
    """The factor of the residual, the residual, and the bias among what is added to the product."""
    beta, residual, bias = 0.0, None, None
    for factor, load in parts.epilogue.terms:
        axes = load.access.axes()
        sides = axes & {*rows}, axes & {*columns}
        if not axes <= parts.store.access.axes() or sides == (frozenset(), frozenset()):
            return None
        if all(sides):
            if residual is not None or factor == 0:
                return None
            beta, residual = factor, load
        else:
            if bias is not None or factor != 1:
                return None
            bias = load
    return beta, residual, bias


def _assembled(
    kernel: Kernel,
    parts: _Parts,
    terms: tuple[float, Load | None, Load | None],
    groups: tuple[list[str], list[str], list[str], list[str]],
) -> Product | None:
    beta, residual, bias = terms
    given = (parts.a, parts.b, parts.store, residual, bias)
    accesses = [None if x is None else x.access for x in given]
    a, b, out, *others = (None if x is None else _tensor(x) for x in accesses)
    batch, rows, columns, inner = (_sides(kernel, group, accesses) for group in groups)
    if batch is None or rows is None or columns is None or inner is None or len(inner) != 1:
        return None
    if a is None or b is None or out is None or [t is None for t in others] != [x is None for x in terms[1:]]:
        return None
    return Product(
        a=a,
        b=b,
        out=out,
        residual=others[0],
        bias=others[1],
        batch=_merged([*batch, *rows[:-1], *columns[:-1]]),
        rows=rows[-1],
        columns=columns[-1],
        inner=inner[0],
        dtype=parts.dot.dtype,
        alpha=parts.epilogue.alpha,
        beta=beta,
        function=parts.epilogue.function,
        rounded=parts.rounded,
    )


def _tensor(access: Access) -> Tensor | None:
    """The tensor of an access; None when its first element is at no place that is known."""
    offset: Extent = 0
    for index, stride in zip(access.index, spell.strides(access), strict=True):
        offset = offset + stride * index.offset
        for part, coefficient in index.terms:
            if isinstance(part, Sym):
                offset = offset + stride * coefficient * part.extent
            elif not isinstance(part, str):
                return None
    return Tensor(access.buffer, access.dtype, offset)


def _sides(kernel: Kernel, axes: Iterable[str], accesses: Sequence[Access | None]) -> tuple[Side, ...] | None:
    """The sides of some axes, outermost first; None when a step is not constant or runs backwards."""
    found = []
    for axis in sorted(axes, key=list(kernel.axes).index):
        steps = [0 if x is None else spell.step(x, axis) for x in accesses]
        if any(s is None or not (s == 0 or _is_positive(s)) for s in steps):
            return None
        found.append(Side(kernel.axes[axis], *(s for s in steps if s is not None)))
    return _merged(found)


def _merged(sides: Sequence[Side]) -> tuple[Side, ...]:
    """The sides with those joined that can run as one."""
    found: list[Side] = []
    for side in sides:
        joined = side.within(found[-1]) if found else None
        if joined is None:
            found.append(side)
        else:
            found[-1] = joined
    return tuple(found)
