"""Nests as loops over points, dealt out to the threads of a block.

A point belongs to one thread, or to a group of neighbours that share its reductions.  A thread may take
several points at once: neighbours along an axis, to move them together, or rows that share an operand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack

from lumi.backends.clike.scope import Copy
from lumi.backends.cuda import ctype
from lumi.backends.cuda.dealing import Dealer, Dealing
from lumi.backends.cuda.expression import Expressions
from lumi.backends.cuda.folds import FoldLoops
from lumi.backends.cuda.scope import Opened, Value, Writer, neighbours
from lumi.backends.cuda.storing import lane_of, store_one, store_wide, stored
from lumi.backends.cuda.streams import Streams
from lumi.llir import spell
from lumi.llir.kernel import Load, Store
from lumi.llir.program import Nest, Root, Write

EARLY = 64
"""Elements that a thread loads at most before it uses the first of them."""


class Nests:
    """Writes nests."""

    def __init__(self, writer: Writer) -> None:
        self.w, self.streams = writer, Streams(writer.program)
        self.dealer = Dealer(writer, self.streams)
        self.expressions = Expressions(writer, FoldLoops(self.streams).write)

    def write(self, nest: Nest) -> None:
        """Write a loop over the points of a nest, with its roots inside, between barriers if needed."""
        order = [a for a in self.w.program.kernel.axes if a in nest.axes and self.w.opened(a) is None]
        if not order:
            self._roots(nest.roots, "threadIdx.x == 0")
            return
        barrier = any(isinstance(r, Write) for r in nest.roots)
        if barrier:
            self.w.barrier()
        with self.w.block(""):
            self._points(order, self.dealer.dealing(order, nest.roots), nest.roots)
        if barrier:
            self.w.barrier()

    # -- points

    def _points(self, order: Sequence[str], dealing: Dealing, roots: tuple[Root, ...]) -> None:
        w, threads = self.w, self.w.blocking.threads
        counts = [self._count(a, dealing.copies if a == dealing.axis else 1) for a in order]
        known = [int(c) for c in counts if c.isdigit()]
        total = math.prod(known) if len(known) == len(counts) else None
        size = str(total) if total is not None else w.declare("int", " * ".join(counts), "points")
        point, condition = w.fresh("p"), ""
        early = self._early(order, dealing, roots, total)
        if early:
            self._turns(order, counts, dealing, roots, early, int(size))
            return
        if dealing.team == 1 and total is not None and total <= threads:
            header = f"if (const int {point} = threadIdx.x; {point} < {size}) "
        elif dealing.team == 1:
            header = f"for (int {point} = threadIdx.x; {point} < {size}; {point} += {threads}) "
        else:
            groups = threads // dealing.team
            first = w.fresh("first")
            header = f"for (int {first} = 0; {first} < {size}; {first} += {groups}) "
        opened = {a: self._opened(a, dealing) for a in order}
        w.apart = dealing.apart
        with w.block(header, opened, team=dealing.team):
            if dealing.team > 1:
                conditions = [f"threadIdx.x % {dealing.team} == 0"]
                own = f"{first} + (int)threadIdx.x / {dealing.team}"
                if dealing.apart:
                    conditions = [f"threadIdx.x < {groups}"]
                    own = f"{first} + (int)threadIdx.x % {groups}"
                if total is None or total % groups:
                    mine = w.declare("int", own, "mine")
                    own = f"least({mine}, {size} - 1)"
                    conditions.append(f"{mine} < {size}")
                w.line(f"const int {point} = {own};")
                condition = " && ".join(conditions)
            self._place(order, counts, point, opened, dealing)
            self._roots(roots, condition, dealing)
        w.apart = False

    def _early(
        self, order: Sequence[str], dealing: Dealing, roots: tuple[Root, ...], total: int | None
    ) -> list[Load]:
        """What a thread loads of all its points before it stores any result, if these are a few."""
        threads = self.w.blocking.threads
        if dealing.team > 1 or total is None or not threads < total <= threads * self.w.blocking.unroll:
            return []
        operands = [r.value for r in roots if isinstance(r, Store)]
        loads = [x for x in self.streams.reads(operands) if not x.data and self._is_of_points(x, order)]
        elements = sum(dealing.copies if dealing.axis in x.axes else 1 for x in loads)
        return loads if len(operands) == len(roots) and elements * -(-total // threads) <= EARLY else []

    def _is_of_points(self, load: Load, order: Sequence[str]) -> bool:
        """Whether a load is another at each point, but the same for all that is computed there."""
        closed = {a for a in load.axes if self.w.opened(a) is None}
        return bool(closed) and closed <= set(order)

    def _turns(
        self,
        order: Sequence[str],
        counts: Sequence[str],
        dealing: Dealing,
        roots: tuple[Root, ...],
        early: list[Load],
        total: int,
    ) -> None:
        """The points of a thread turn by turn, after what all turns load from memory.

        A load behind a store has to wait until it is known that it reads something else.
        """
        w, threads = self.w, self.w.blocking.threads
        turns, turn, point = -(-total // threads), w.fresh("t"), w.fresh("p")
        header = f"#pragma unroll\nfor (int {turn} = 0; {turn} < {turns}; {turn}++) "
        opened = {a: self._opened(a, dealing) for a in order}
        ragged = f"if ({point} < {total}) " if total % threads else ""
        held = []
        for load in early:
            name, copies = w.fresh("h"), opened[dealing.axis].copies if dealing.axis in load.axes else 1
            w.line(f"{ctype.register(load.dtype).type} {name}[{turns * copies}];")
            held.append((load, name, copies))
        for storing in (False, True):
            with w.block(header, team=1):
                w.line(f"const int {point} = {turn} * {threads} + (int)threadIdx.x;")
                with w.block(ragged, opened):
                    self._place(order, counts, point, opened, dealing)
                    for load, name, copies in held:
                        first = f"{name}[{turn} * {copies} + "
                        if storing:
                            w.here.values[load.var] = self._held(load, first)
                            continue
                        value = self.expressions.value(load.var, load.dtype)
                        for number, text in enumerate(value.texts.values()):
                            w.line(f"{first}{number}] = {text};")
                    if storing:
                        self._roots(roots, "", dealing)

    def _held(self, load: Load, first: str) -> Value:
        """The copies of a load in an array, from the element on whose number is to be completed."""
        axes = self.w.unrolled(load.axes)
        copies = enumerate(self.w.copies(axes))
        return Value(load.dtype, axes, {tuple(c.values()): f"{first}{n}]" for n, c in copies})

    def _count(self, axis: str, copies: int) -> str:
        """CUDA for the number of steps along an axis."""
        span = self.w.ranges[axis]
        if span.length is not None:
            return str(-(-span.length // copies))
        length = span.stop if span.start == "0" else f"{span.stop} - {span.start}"
        text = length if copies == 1 else f"({length} + {copies - 1}) / {copies}"
        return self.w.declare("int", text, "steps")

    def _opened(self, axis: str, dealing: Dealing) -> Opened:
        x = self.w.fresh(f"x_{spell.identifier(axis)}_")
        if axis != dealing.axis or dealing.copies == 1:
            return Opened(((x, 0),))
        if dealing.adjacent:
            return neighbours(x, dealing.copies, dealing.copies)
        if self._is_whole(axis, dealing.copies):
            return Opened(tuple((x, k) for k in range(dealing.copies)))
        return Opened(((x, 0), *((f"{x}_{k}", 0) for k in range(1, dealing.copies))))

    def _is_whole(self, axis: str, copies: int) -> bool:
        length = self.w.ranges[axis].length
        return length is not None and length % copies == 0

    def _place(
        self,
        order: Sequence[str],
        counts: Sequence[str],
        point: str,
        opened: dict[str, Opened],
        dealing: Dealing,
    ) -> None:
        """The position of a point along each axis; the last axis runs fastest."""
        w, rest = self.w, point
        for number in reversed(range(len(order))):
            axis, count = order[number], counts[number]
            place = f"{rest} % {count}" if number else rest
            if number:
                rest = w.declare("int", f"{rest} / {count}", "rest")
            copies = dealing.copies if axis == dealing.axis else 1
            span, x = w.ranges[axis], opened[axis].places[0][0]
            text = place if copies == 1 else f"({place}) * {copies}"
            w.line(f"const int {x} = {text if span.start == '0' else f'{span.start} + {text}'};")
            for k, (name, _) in enumerate(opened[axis].places):
                if name != x:
                    w.line(f"const int {name} = least({x} + {k}, {span.stop} - 1);")

    # -- roots

    def _roots(self, roots: tuple[Root, ...], condition: str, dealing: Dealing | None = None) -> None:
        """Compute every root at the current points, then write them."""
        values = [self._root_value(r) for r in roots]
        if dealing is not None and dealing.team > 1 and any(isinstance(r, Write) for r in roots):
            self.w.line("__syncwarp();")
        for root, value in zip(roots, values, strict=True):
            if isinstance(root, Write) and root.var not in self.w.shared:
                self.w.line(f"{self.w.arrays[root.var].name} = {value.texts[()]};")
                continue
            with ExitStack() as stack:
                if condition:
                    stack.enter_context(self.w.block(f"if ({condition}) "))
                self._write(root, value)

    def _root_value(self, root: Root) -> Value:
        if isinstance(root, Store):
            return stored(self.expressions, root)
        here = self.w.here.values
        if root.var not in here:
            here[root.var] = self.expressions.compute(root.var)
        return self.expressions.value(root.var, here[root.var].dtype)

    def _write(self, root: Root, value: Value) -> None:
        axes = self.w.unrolled(root.axes)
        lane = lane_of(self.expressions, root) if isinstance(root, Store) else None
        for copy in self.w.copies(tuple(a for a in axes if a != lane)):
            if lane is not None and isinstance(root, Store):
                store_wide(self.expressions, root, value, copy, lane)
                continue
            guard = self._guard(axes, copy)
            with ExitStack() as stack:
                if guard:
                    stack.enter_context(self.w.block(f"if ({guard}) "))
                self._element(root, value, copy)

    def _guard(self, axes: tuple[str, ...], copy: Copy) -> str:
        """CUDA for "this copy is no repetition of the last point of its axis"."""
        tests = []
        for axis in axes:
            opened, number = self.w.opened(axis), copy[axis]
            assert opened is not None
            if opened.places[number][0] != opened.places[0][0]:
                tests.append(f"{opened.places[0][0]} + {number} < {self.w.ranges[axis].stop}")
        return " && ".join(tests)

    def _element(self, root: Root, value: Value, copy: Copy) -> None:
        if isinstance(root, Store):
            store_one(self.expressions, root, value, copy)
        else:
            self.w.line(f"*({self.expressions.array_element(root.var, copy)}) = {value.at(copy)};")
