"""Which kernels tensor cores can compute, and why not the others."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from lumi.backends.cuda.mma.bound import is_between_zero_and_one
from lumi.backends.cuda.mma.factor import Factors
from lumi.backends.cuda.mma.form import (
    HALVES,
    Cascade,
    Computed,
    Form,
    Product,
    RefusalError,
    Stored,
    Sums,
    Update,
)
from lumi.backends.cuda.values import flat, folds_below, long
from lumi.dtype import F32, DType
from lumi.llir import spell
from lumi.llir.kernel import Carry, Dot, Kernel, Load, Loop, Map, Operand, Reduce, Store, walk
from lumi.llir.merge import merge
from lumi.llir.program import Fold, Program, is_plain, partial_of

TURN = 512
"""Positions, at most, of a sum that each turn of a cascade takes whole."""


def recognise(kernel: Kernel, tf32: bool = False) -> Form:
    """The form of a kernel whose factors are halves, or with `tf32` f32.  Raises `RefusalError`."""
    statements = list(walk(kernel.body))
    if not any(isinstance(s, Dot) for s in statements):
        raise RefusalError("it multiplies nothing")
    kinds = (F32,) if tf32 else HALVES
    if not any(isinstance(s, Load) and s.access.dtype in kinds for s in statements):
        raise RefusalError("no factor is of f32" if tf32 else "no factor is of halves")
    plain = _Recogniser(flat(kernel), kinds)
    plain.reductions()
    try:
        return plain.form()
    except RefusalError as error:
        ways = (*map(flat, _with_long_axes(plain)), plain.program)
        for scattered, program in itertools.product((False, True), ways):
            with suppress(RefusalError):
                return _Recogniser(program, kinds, True, scattered).form()
        raise error


def _with_long_axes(plain: _Recogniser) -> Iterator[Kernel]:
    """A kernel with all rows of a sum of products along one axis, and all columns along another."""
    kernel = plain.kernel
    for first, second in dict.fromkeys(plain.grids()):
        merged = kernel
        for axes in (first - second, second - first):
            members = [a for a in kernel.axes if a in axes]
            merged = (merge(merged, members) if len(members) > 1 else None) or merged
        if merged is not kernel:
            yield merged


class _Recogniser:
    def __init__(
        self, program: Program, kinds: Collection[DType], placed: bool = False, scattered: bool = False
    ) -> None:
        self.program, self.kernel = program, program.kernel
        self.table, self.factors = self.program.definitions, Factors(self.program, kinds, placed, scattered)
        self.carried = [s for s in self.kernel.body if isinstance(s, Loop) and not is_plain(s)]
        self.stores = tuple(_stores(self.kernel))

    def reductions(self) -> tuple[Loop | None, list[Fold]]:
        """The loop of its cascade and its reductions, wherever factors lie.  Raises `RefusalError`."""
        sums = [s for s in self.carried if _only_sums(s)]
        cascades = [s for s in self.carried if s not in sums]
        if len(cascades) > 1 or (cascades and sums):
            raise RefusalError("it has several loops that carry values around")
        loop = cascades[0] if cascades else None
        return loop, [*self._folds(loop), *(f for s in sums for f in _folds_of(s))]

    def form(self) -> Form:
        """The form.  Raises `RefusalError`."""
        loop, folds = self.reductions()
        reasons: list[str] = []
        for row, column in self._tiles(folds, loop):
            try:
                return self._form(loop, folds, row, column)
            except RefusalError as error:
                reasons.append(str(error))
        raise RefusalError(reasons[0] if reasons else "its products have no rows and columns")

    def grids(self) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
        """The axes of the grid that both factors of each sum have; none where values are carried."""
        grid = set(long(self.kernel, self.kernel.grid))
        for fold in [] if self.carried else self.table.values():
            if isinstance(fold, Fold) and len(fold.terms) == 2:
                first, second = (frozenset(self.factors.axes(t) & grid) for t in fold.terms)
                yield first, second

    def _folds(self, loop: Loop | None) -> list[Fold]:
        """Every reduction that results need, none of which may lie where tiles do not reach.

        What their guards let tiles skip adds nothing, and need not be skipped.
        """
        roots: list[Operand] = [s.value for s in self.stores]
        roots += [c.next for c in loop.carries] if loop is not None else []
        found = list(folds_below(self.program, roots).values())
        for fold in found:
            if loop is None and len(fold.terms) != 2:
                raise RefusalError("it reduces what is no product")
            if loop is not None and self.program.levels[fold.var] == 0:
                raise RefusalError("it reduces outside of its loop")
            if fold.dtype != F32:
                raise RefusalError(f"it sums in {fold.dtype}")
        return found

    # -- rows and columns

    def _tiles(self, folds: Sequence[Fold], loop: Loop | None) -> Iterator[tuple[str, str]]:
        """Axes for rows and columns of a tile, the best first."""
        grid = set(long(self.kernel, self.kernel.grid))
        looped = set() if loop is None else set(long(self.kernel, loop.axes))
        sums_up = any(len(f.terms) == 2 and looped & set(f.over) for f in folds)
        grid |= set() if sums_up else looped
        seen: dict[tuple[str, str], None] = {}
        for fold in folds:
            if len(fold.terms) != 2:
                continue
            first, second = (self.factors.axes(t) for t in fold.terms)
            if sums_up and not looped & set(fold.over):
                continue
            for left, right in ((first, second), (second, first)):
                rows = self.factors.ranked(left - right & left)
                columns = self.factors.ranked(right - left)
                pairs = [(r, c) for r in rows for c in columns if {r, c} <= grid]
                seen.update(dict.fromkeys(pairs))
        return iter(sorted(seen, key=lambda pair: not self._is_stored_along(pair[1])))

    def _is_stored_along(self, axis: str) -> bool:
        return all(spell.step(s.access, axis) == 1 for s in self.stores if axis in s.access.axes())

    # -- the form

    def _form(self, loop: Loop | None, folds: Sequence[Fold], row: str, column: str) -> Form:
        cascade, folded, sums = None, None, tuple[Sums, ...]()
        if loop is None:
            sums = self._sums(folds, row, column)
        elif column in loop.axes:
            folded = self._cascade(loop, row, column)
            sums = (Sums(folded.products, None),)
            if len({(p.summed, p.outer_summed) for p in folded.products}) > 1:
                raise RefusalError("products of its loop are summed over several axes")
        else:
            cascade = self._cascade(loop, row, column)
        carried = () if cascade is None else (*cascade.products, *(u.product for u in cascade.updates))
        dtype = self._dtype((*(p for s in sums for p in s.products), *carried))
        outer = tuple(a for a in long(self.kernel, self.kernel.grid) if a not in (row, column))
        form = Form(self.program, row, column, outer, dtype, sums, cascade, self.stores, folded)
        self._check_stores(form)
        return form

    def _dtype(self, products: Iterator[Product] | tuple[Product, ...]) -> DType:
        loads = [f.load for p in products for f in (p.a, p.b) if isinstance(f, Stored)]
        found = {x.access.dtype for x in loads}
        if len(found) != 1:
            raise RefusalError("its factors are of several types")
        return found.pop()

    def _check_stores(self, form: Form) -> None:
        grid = {form.row, form.column, *form.outer} - set(form.folded.loop.axes if form.folded else ())
        for store in form.stores:
            mine = set(long(self.kernel, store.axes))
            if not mine <= grid:
                raise RefusalError("it stores along an axis that is not of its grid")
            if form.row not in mine:
                raise RefusalError("it stores what has no rows")

    def _sums(self, folds: Sequence[Fold], row: str, column: str) -> tuple[Sums, ...]:
        groups: dict[tuple[object, ...], list[Product]] = {}
        loops: dict[tuple[object, ...], Loop | None] = {}
        for fold in folds:
            product = self.factors.product(fold.var, fold, row, column)
            chunk = None if fold.loop is None else fold.loop.chunk
            key = (product.summed, product.outer_summed, chunk)
            groups.setdefault(key, []).append(product)
            loops[key] = fold.loop
        return tuple(Sums(tuple(ps), loops[key]) for key, ps in groups.items())

    # -- cascades

    def _cascade(self, loop: Loop, row: str, column: str) -> Cascade:
        axes = long(self.kernel, loop.axes)
        if len(axes) != 1 or loop.axes != axes:
            raise RefusalError("its loop runs over several axes")
        (axis,) = axes
        if any(isinstance(s, Store) for s in walk(loop.body)):
            raise RefusalError("it stores in its loop")
        products, sums = [], dict[str, Product]()
        for statement in loop.body:
            match statement:
                case Loop() if is_plain(statement):
                    if statement.chunk is not None:
                        raise RefusalError("a sum inside its loop runs in chunks")
                    folds = [self.table[c.final] for c in statement.carries]
                    made = [self._turn(f, row, axis, column) for f in folds if isinstance(f, Fold)]
                    products += made
                case Loop():
                    raise RefusalError("it has a loop in its loop that carries values around")
                case Dot() if axis in statement.over:
                    sums[statement.var] = self._sum(statement, row, axis, column)
                case Dot():
                    products.append(self._turn(statement, row, axis, column))
                case Reduce():
                    self._check_reduction(statement, row, axis)
                case _:
                    pass
        return self._carries(loop, axis, tuple(products), sums, row, column == axis)

    def _turn(self, fold: Fold | Dot, row: str, axis: str, column: str) -> Product:
        """A product of a turn of the loop, whose columns are the positions of the turn."""
        found = self.factors.product(fold.var, fold, row, axis)
        extent = self.kernel.axes[found.summed]
        if column == axis:
            return found
        if found.outer_summed:
            raise RefusalError("a sum inside its loop runs over several axes")
        if not isinstance(extent, int) or extent > TURN:
            raise RefusalError("a sum inside its loop is long")
        return found

    def _sum(self, dot: Dot, row: str, axis: str, column: str) -> Product:
        """A product that is summed over the positions of the loop."""
        if long(self.kernel, dot.over) != (axis,):
            raise RefusalError("a product is summed over more than the positions of the loop")
        for a, b in ((dot.a, dot.b), (dot.b, dot.a)):
            if (
                row in self.factors.axes(a)
                and axis in self.factors.axes(a)
                and column in self.factors.axes(b)
            ):
                if column in self.factors.axes(a) or row in self.factors.axes(b):
                    raise RefusalError("both factors have the rows or the columns")
                stored = self.factors.stored(b, column, axis)
                return Product(dot.var, self._computed(a, stored.load.access.dtype), stored, column, axis, ())
        raise RefusalError("a product lacks the rows or the columns of the others")

    def _computed(self, operand: Operand, dtype: DType) -> Computed:
        inner = self.factors.unrounded(operand)
        assert isinstance(inner, str), "a factor with rows is no number"
        definition = self.table[inner]
        exact = dtype == F32
        if isinstance(definition, Map) and definition.op == "cast.f32":
            (argument,) = definition.args
            narrow = self.table[argument] if isinstance(argument, str) else None
            exact = isinstance(narrow, Map) and narrow.op == f"cast.{dtype}"
        return Computed(inner, exact, is_between_zero_and_one(self.table, inner), inner is not operand)

    def _check_reduction(self, statement: Reduce, row: str, axis: str) -> None:
        if long(self.kernel, statement.over) != (axis,):
            raise RefusalError("it reduces over more than the positions of its loop")
        if statement.op not in ("sum", "max") or statement.dtype != F32:
            raise RefusalError(f"it reduces {statement.dtype} by {statement.op}")

    def _carries(
        self,
        loop: Loop,
        axis: str,
        products: tuple[Product, ...],
        sums: Mapping[str, Product],
        row: str,
        folded: bool,
    ) -> Cascade:
        """The loop, which sums products up or with `folded` does not."""
        updates, rows = list[Update](), list[Carry]()
        columns = {p.columns for p in sums.values()}
        for carry in loop.carries:
            update = self._update(loop, carry, sums)
            if update is not None:
                updates.append(update)
            elif set(long(self.kernel, carry.axes)) & {*columns, axis} or carry.dtype != F32:
                raise RefusalError("it carries tiles that are no sums of products")
            elif any(carry.next in (c.previous, c.next) for c in loop.carries if c is not carry):
                raise RefusalError("its carries exchange their values")
            elif row not in carry.axes:
                raise RefusalError("it carries values that have no rows")
            else:
                rows.append(carry)
        if len(updates) != len(sums) or bool(updates) == folded:
            raise RefusalError("its loop sums no products up, or uses such sums otherwise")
        if not products:
            raise RefusalError("its loop computes no product to multiply with")
        return Cascade(loop, axis, products, tuple(updates), tuple(rows))

    def _update(self, loop: Loop, carry: Carry, sums: Mapping[str, Product]) -> Update | None:
        """A carry as a sum of products that nothing else in the loop reads."""
        made = {s.var: s for s in loop.body if isinstance(s, Map)}
        last = made.get(carry.next)
        if last is None or last.op != "add" or carry.op != "sum":
            return None
        parts = [a for a in last.args if isinstance(a, str) and a in sums]
        rest = [a for a in last.args if a not in parts]
        if len(parts) != 1 or len(rest) != 1:
            return None
        product = sums[parts[0]]
        readers = [v for v in (parts[0], carry.previous) if self._readers(v) != 1]
        if readers:
            raise RefusalError("its loop sums no products up, or uses such sums otherwise")
        if rest[0] == carry.previous:
            return Update(carry, None, product)
        scaled = made.get(rest[0]) if isinstance(rest[0], str) else None
        if scaled is None or scaled.op != "mul" or carry.previous not in scaled.args:
            return None
        factor = next((a for a in scaled.args if a != carry.previous), None)
        if not isinstance(factor, str) or self.factors.axes(factor) & {product.columns, product.summed}:
            return None
        return Update(carry, factor, product)

    def _readers(self, var: str) -> int:
        maps = [s for s in walk(self.kernel.body) if isinstance(s, Map)]
        return sum(s.args.count(var) for s in maps)


def _only_sums(loop: Loop) -> bool:
    """Whether a loop does nothing but sum products up, as one over a chunk does."""
    return bool(loop.carries) and all(isinstance(partial_of(c, loop), Dot) for c in loop.carries)


def _folds_of(loop: Loop) -> Iterator[Fold]:
    """The sums of such a loop, no tile of which need be skipped: what is skipped adds nothing."""
    for carry in loop.carries:
        dot = partial_of(carry, loop)
        assert isinstance(dot, Dot), "the loop only sums products up"
        yield Fold(carry.final, "sum", dot.over, (dot.a, dot.b), carry.axes, carry.dtype, loop)


def _stores(kernel: Kernel) -> Iterator[Store]:
    for statement in walk(kernel.body):
        if isinstance(statement, Store):
            yield statement
