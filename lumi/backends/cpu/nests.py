"""Nests as C loops, and how they are blocked: which axis has lanes, how many copies run at once."""

from __future__ import annotations

from collections.abc import Iterator

from lumi.backends.clike.roots import stored_type
from lumi.backends.clike.scope import Copy
from lumi.backends.cpu import ctype
from lumi.backends.cpu.ctype import LANES, register
from lumi.backends.cpu.expression import Expressions
from lumi.backends.cpu.folds import FoldLoops
from lumi.backends.cpu.lanes import LaneCosts, access_cost
from lumi.backends.cpu.loops import sweep, widths
from lumi.backends.cpu.scope import Value, Writer
from lumi.dtype import BOOL
from lumi.llir import spell
from lumi.llir.kernel import Load, Operand, Store
from lumi.llir.program import Fold, Nest, Root, arguments, axes_of


class Nests:
    """Writes nests."""

    def __init__(self, writer: Writer, costs: LaneCosts) -> None:
        self.w, self.costs = writer, costs
        self.expressions = Expressions(writer, FoldLoops(costs).write)

    def write(self, nest: Nest) -> None:
        """Write loops over the axes of a nest that are not open yet, with its roots inside."""
        order = [a for a in self.w.program.kernel.axes if a in nest.axes and self.w.opened(a) is None]
        lane = self._lane(order, nest.roots)
        copies = self._copies(order, lane, nest.roots)
        order.sort(key=lambda a: a == lane)
        self._open(order, lane, copies, nest.roots)

    def _open(
        self, order: list[str], lane: str | None, copies: dict[str, int], roots: tuple[Root, ...]
    ) -> None:
        if not order:
            self._roots(roots)
            return
        axis, rest = order[0], order[1:]
        steps = widths(axis, copies.get(axis, 1), axis == lane)
        sweep(self.w, axis, steps, lambda: self._open(rest, lane, copies, roots))

    # -- blocking

    def _lane(self, order: list[str], roots: tuple[Root, ...]) -> str | None:
        """The axis whose positions become lanes: cheapest for the values and their stores together."""

        def cost(lane: str | None) -> float:
            total = 0.0
            for root in roots:
                if isinstance(root, Store):
                    total += access_cost(root.access, lane)
                    total += self.costs.cost(root.value, lane) if isinstance(root.value, str) else 0.0
                else:
                    total += self.costs.defined_cost(root.var, lane)
            return total

        long = [a for a in order if self._length(a) >= LANES]
        return min([None, *long], key=cost)

    def _length(self, axis: str) -> int:
        span = self.w.ranges[axis]
        return span.bound if span.bound is not None else self.costs.length(axis)

    def _copies(self, order: list[str], lane: str | None, roots: tuple[Root, ...]) -> dict[str, int]:
        """How many positions of each axis are computed together, to use what they share from registers."""
        blocking, reduced = self.w.blocking, list(self._reduced(roots))
        shared = [
            a for a in order if a != lane and self._length(a) > 1 and any(a not in axes for axes in reduced)
        ]
        if lane is not None and reduced:
            copies = {lane: blocking.columns} | dict.fromkeys(shared[-1:], blocking.rows)
        elif len(shared) > 1:
            copies = {shared[-2]: blocking.rows, shared[-1]: blocking.columns}
        else:
            copies = dict.fromkeys(shared, blocking.rows)
        return {a: min(n, self._length(a)) for a, n in copies.items()}

    def _reduced(self, roots: tuple[Root, ...]) -> Iterator[tuple[str, ...]]:
        """The axes of everything that is read from memory inside the folds of the roots."""
        table, arrays = self.w.program.definitions, self.w.arrays
        todo = [(v, False) for v in map(_value, roots) if isinstance(v, str)]
        first, seen = {v for v, _ in todo}, set()
        while todo:
            var, inside = todo.pop()
            if (var, inside) in seen:
                continue
            seen.add((var, inside))
            definition = table[var]
            if isinstance(definition, Load) or (var in arrays and var not in first):
                if inside:
                    yield axes_of(definition)
                continue
            below = inside or isinstance(definition, Fold)
            todo += [(a, below) for a in arguments(definition)]

    # -- roots

    def _roots(self, roots: tuple[Root, ...]) -> None:
        """Compute every root at the current positions, then write them."""
        values = [self._root_value(r) for r in roots]
        for root, value in zip(roots, values, strict=True):
            self._write(root, value)

    def _root_value(self, root: Root) -> Value:
        if isinstance(root, Store):
            return self.expressions.value(root.value, stored_type(self.w.program, root))
        here = self.w.here.values
        if root.var not in here:
            here[root.var] = self.expressions.compute(root.var)
        return self.expressions.value(root.var, here[root.var].dtype)

    def _write(self, root: Root, value: Value) -> None:
        lane = self.w.lane()
        for copy in self.w.copies(self.w.unrolled(root.axes)):
            if lane is None or lane not in root.axes:
                self._element(root, value, copy, value.at(copy), 0)
                continue
            text = self.expressions.lanes(value, copy)
            if self._neighbours(root, lane):
                self._lanes(root, value, copy, text)
                continue
            name = self.w.declare(register(value.dtype).vector, text)
            for number in range(LANES):
                sign = "-" if value.dtype == BOOL else ""
                self._element(root, value, copy, f"{sign}{name}[{number}]", number)

    def _neighbours(self, root: Root, lane: str) -> bool:
        """Whether lanes lie side by side where a root is written."""
        if isinstance(root, Store):
            return spell.step(root.access, lane) == 1
        return self.w.arrays[root.var].axes[-1] == lane

    def _element(self, root: Root, value: Value, copy: Copy, text: str, lane: int) -> None:
        if isinstance(root, Store):
            pointer = self.expressions.pointer(root.access, {}, copy, lane)
            text = ctype.conversion(text, value.dtype, root.access.dtype, False)
            self.w.line(ctype.store(pointer, text, root.access.dtype, False))
        else:
            self.w.line(f"*({self.expressions.array_element(root.var, copy, lane)}) = {text};")

    def _lanes(self, root: Root, value: Value, copy: Copy, text: str) -> None:
        if isinstance(root, Store):
            pointer = self.expressions.pointer(root.access, {}, copy)
            text = ctype.conversion(text, value.dtype, root.access.dtype, True)
            self.w.line(ctype.store(pointer, text, root.access.dtype, True))
            return
        name = register(value.dtype).name.replace("bool", "i32")
        text = f"({text} & 1)" if value.dtype == BOOL else text
        self.w.line(f"st_{name}({self.expressions.array_element(root.var, copy)}, {text});")


def _value(root: Root) -> Operand:
    return root.value if isinstance(root, Store) else root.var
