"""Turn a kernel into a `Program`: decide what is a fold, what a tile loop, and what gets an array."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lumi.field.term import Pos, Term, children
from lumi.llir.items import arranged, in_place
from lumi.llir.kernel import Dot, Kernel, Load, Loop, Map, Position, Reduce, Statement, Store
from lumi.llir.program import (
    Definition,
    Fold,
    Program,
    Slot,
    arguments,
    axes_of,
    fold,
    is_plain,
    partial_of,
)

SOME = 64
"""Positions assumed of an axis whose extent is known only at run time."""

WORTH = 1.5
"""Instructions a value must save at each use before it is put into an array."""

WRITTEN_OUT = 4
"""Turns of a loop that are written out, so that a compiler computes what they repeat only once."""

LARGEST = {True: 1 << 18, False: 1 << 17}
"""Elements an array may have when its value is, or is not, a reduction."""


WORK = {"exp2": 12.0, "log2": 12.0, "sin": 16.0, "sqrt": 6.0, "recip": 5.0, "recipz": 6.0} | dict.fromkeys(
    ("div", "rem", "mod"), 10.0
)
"""Instructions an operator takes, where that is not one."""


def arrange(
    kernel: Kernel, tiles: Mapping[str, int], *, flat: bool = False, largest: Mapping[bool, int] = LARGEST
) -> Program:
    """The program of a kernel whose tiles are `tiles` (one position where an axis is not named).

    With `flat` the loops of a nest are one loop over all its points, so that a value is computed once for
    each point even if it has fewer axes.  `largest` bounds arrays as `LARGEST` does.
    """
    found = _Definitions(kernel)
    found.collect(kernel.body, 0)
    uses = _Uses(_Sizes(kernel, tiles), found, flat, largest)
    uses.visit(kernel.body, ())
    uses.settle()
    items = arranged(kernel.body, found.table, found.levels, uses.arrays)
    return Program(
        kernel,
        tiles,
        found.table,
        found.levels,
        _carried(found.table),
        tuple(found.plain),
        frozenset(uses.arrays),
        frozenset(in_place(items, uses.readers)),
        items,
    )


def positions(guards: Iterable[Term]) -> Iterator[str]:
    """Every axis that guards mention."""
    todo = list(guards)
    while todo:
        term = todo.pop()
        if isinstance(term, Pos):
            yield term.axis
        todo.extend(children(term))


def _carried(table: Mapping[str, Definition]) -> frozenset[str]:
    """The values that need a slot, which is filled anew in every cell."""
    found: set[str] = set()
    for var, definition in table.items():
        if isinstance(definition, Slot) or not found.isdisjoint(arguments(definition)):
            found.add(var)
    return frozenset(found)


@dataclass(slots=True)
class _Definitions:
    """Every definition in order, and the number of tile loops each must be inside of."""

    kernel: Kernel
    table: dict[str, Definition] = field(default_factory=dict)
    levels: dict[str, int] = field(default_factory=dict)
    plain: list[Loop] = field(default_factory=list)
    tile_axes: dict[str, int] = field(default_factory=dict)

    def collect(self, body: tuple[Statement, ...], level: int) -> None:
        for statement in body:
            match statement:
                case Store():
                    pass
                case Loop() if is_plain(statement):
                    self._plain(statement, level)
                case Loop():
                    self._tiled(statement, level + 1)
                case Reduce() | Dot():
                    self._define(fold(statement), statement.over)
                case _:
                    self._define(statement)

    def _plain(self, loop: Loop, level: int) -> None:
        self.plain.append(loop)
        updates = {c.next for c in loop.carries}
        self.collect(tuple(s for s in loop.body if getattr(s, "var", None) not in updates), level)
        for carry in loop.carries:
            partial = partial_of(carry, loop)
            assert partial is not None
            one = fold(partial)
            self._define(
                Fold(carry.final, carry.op, one.over, one.terms, carry.axes, carry.dtype, loop),
                positions(loop.guards),
            )

    def _tiled(self, loop: Loop, level: int) -> None:
        outer = dict(self.tile_axes)
        self.tile_axes.update(dict.fromkeys(loop.axes, level))
        for carry in loop.carries:
            self.table[carry.previous] = Slot(carry.previous, carry.axes, carry.dtype)
            self.levels[carry.previous] = level
        self.collect(loop.body, level)
        self.tile_axes = outer
        for carry in loop.carries:
            self._define(Slot(carry.final, carry.axes, carry.dtype))

    def _define(self, definition: Definition, ranges: Iterable[str] = ()) -> None:
        """Enter a definition whose value also depends on the current tile of `ranges`."""
        mine = [self.levels[a] for a in arguments(definition)]
        mine += [self.tile_axes.get(a, 0) for a in (*axes_of(definition), *ranges)]
        self.table[definition.var] = definition
        self.levels[definition.var] = max(mine, default=0)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value is used: the loops around it, outermost first, of which `tiles` are tile loops.

    The next loops up to number `joined` are one.
    """

    root: str
    loops: tuple[str, ...]
    tiles: int
    joined: int = 0

    def depth(self, axes: tuple[str, ...], level: int) -> int:
        """How many of the loops a value of these axes must be inside of."""
        mine = [k + 1 for k, name in enumerate(self.loops) if name in axes]
        depth = max([level, *mine], default=0)
        return max(depth, self.joined) if depth > self.tiles else depth

    def within(self, depth: int) -> _Place:
        root = self.root if depth > self.tiles else ""
        return _Place(root, self.loops[:depth], min(self.tiles, depth), min(self.joined, depth))


@dataclass(slots=True)
class _Sizes:
    """How many positions an axis has inside given tile loops: exactly, at most, or about."""

    kernel: Kernel
    tiles: Mapping[str, int]
    loops: dict[str, Loop] = field(default_factory=dict)
    chunked: set[str] = field(default_factory=set)

    def bound(self, axis: str, stack: tuple[str, ...]) -> int | None:
        """The most positions of `axis` inside the tile loops `stack`; None when it is not known."""
        extent = self.kernel.axes[axis]
        tiled = axis in self.kernel.grid or any(axis in self.loops[n].axes for n in stack)
        if tiled:
            tile = self.tiles.get(axis, 1)
            return min(tile, max(extent, 1)) if isinstance(extent, int) else tile
        return None if axis in self.chunked or not isinstance(extent, int) else extent

    def trips(self, name: str, stack: tuple[str, ...]) -> int:
        """About how many times the loop over an axis, or the tile loop of that name, runs."""
        if name not in self.loops:
            bound = self.bound(name, stack)
            return SOME if bound is None else bound
        counts = [-(-self.trips(a, ()) // self.tiles.get(a, 1)) for a in self.loops[name].axes]
        return max(math.prod(counts), 1)


@dataclass(slots=True)
class _Uses:
    """Every place at which each value is computed, and from that the values that get an array."""

    sizes: _Sizes
    found: _Definitions
    flat: bool
    largest: Mapping[bool, int]
    places: dict[str, set[_Place]] = field(default_factory=dict)
    readers: dict[str, set[str]] = field(default_factory=dict)
    arrays: set[str] = field(default_factory=set)
    stacks: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def visit(self, body: tuple[Statement, ...], stack: tuple[str, ...]) -> None:
        """Note every use by a root below `body`, which lies inside the tile loops `stack`."""
        for statement in body:
            match statement:
                case Store(access, value, axes):
                    if isinstance(value, str):
                        self._use(value, self._place(f"store {access}", axes, stack))
                case Loop() if is_plain(statement):
                    if statement.chunk is not None:
                        self.sizes.chunked.update(statement.axes)
                    self.visit(statement.body, stack)
                    self.stacks.update({c.final: stack for c in statement.carries})
                case Loop():
                    name = f"loop {len(self.sizes.loops)}"
                    self.sizes.loops[name] = statement
                    self.visit(statement.body, (*stack, name))
                    for carry in statement.carries:
                        self.arrays.add(carry.next)
                        self.places.setdefault(carry.next, set())
                case _:
                    self.stacks[statement.var] = stack

    def _place(self, root: str, axes: tuple[str, ...], stack: tuple[str, ...]) -> _Place:
        loops = (*stack, *self._long(axes, stack))
        return _Place(root, loops, len(stack), len(loops) if self.flat else 0)

    def _long(self, axes: Iterable[str], stack: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(a for a in axes if self.sizes.trips(a, stack) > 1)

    def _use(self, var: str, place: _Place) -> None:
        definition = self.found.table[var]
        depth = place.depth(axes_of(definition), self.found.levels[var])
        self.places.setdefault(var, set()).add(place.within(depth))
        self.readers.setdefault(var, set()).add(place.root)

    def settle(self) -> None:
        """Decide from the last definition to the first, so that every use of a value is known."""
        for var, definition in reversed(self.found.table.items()):
            if var not in self.places or isinstance(definition, Slot):
                continue
            if var in self.arrays or self._worth(definition):
                self.arrays.add(var)
                inner = [self._place(var, axes_of(definition), self._stack(var))]
                roots = {var}
            else:
                inner, roots = list(self.places[var]), self.readers.get(var, set())
            for place in inner:
                self._pass(definition, place, roots)

    def _stack(self, var: str) -> tuple[str, ...]:
        return self.stacks.get(var, ())[: self.found.levels[var]]

    def _pass(self, definition: Definition, place: _Place, roots: set[str]) -> None:
        if isinstance(definition, Fold):
            more = self._long(definition.over, place.loops[: place.tiles])
            place = _Place(place.root or definition.var, (*place.loops, *more), place.tiles, place.joined)
        for argument in arguments(definition):
            self._use(argument, place)
            self.readers[argument] |= roots

    def _worth(self, definition: Definition) -> bool:
        """Whether an array would save work: a costly value, computed many times, that fits."""
        if isinstance(definition, (Load, Position)) or not axes_of(definition):
            return False
        bounds = [self.sizes.bound(a, self._stack(definition.var)) for a in axes_of(definition)]
        size = math.prod(math.inf if b is None else b for b in bounds)
        if size > self.largest[isinstance(definition, Fold)]:
            return False
        places = self.places[definition.var]
        count = sum(self._count(definition, p) for p in places)
        saved = max(self._work(definition, p, {}) for p in places) * (1 - 1 / max(count, 1))
        return saved > WORTH

    def _count(self, definition: Definition, place: _Place) -> int:
        """How many times each element is computed at a place."""
        level, axes = self.found.levels[definition.var], axes_of(definition)
        outer = place.loops[: place.tiles]
        again = [n for k, n in enumerate(place.loops) if k >= level and n not in axes]
        turns = [self.sizes.trips(n, outer) for n in again]
        if isinstance(definition, Map) and not place.joined:
            turns = [n for n in turns if n > WRITTEN_OUT]
        return math.prod(turns)

    def _work(self, definition: Definition, place: _Place, known: dict[str, float]) -> float:
        """Instructions for one element, without what is computed further out; `known` are those found here.

        A value that is used twice counts twice.
        """
        if definition.var not in known:
            known[definition.var] = self._computed(definition, place, known)
        return known[definition.var]

    def _computed(self, definition: Definition, place: _Place, known: dict[str, float]) -> float:
        match definition:
            case Map(_, op, _, _, _):
                own = work(op)
            case Fold(_, _, over, _, _, _, _):
                return 2.0 * math.prod(self.sizes.trips(a, place.loops[: place.tiles]) for a in over)
            case Load(_, _, data, _, _):
                return float(len(data))
            case _:
                return 0.0
        depth = len(place.loops)
        for argument in arguments(definition):
            inner = self.found.table[argument]
            if argument in self.arrays:
                continue
            if place.depth(axes_of(inner), self.found.levels[argument]) == depth:
                own += self._work(inner, place, known)
        return own


def work(op: str) -> float:
    """About how many vector instructions `op` is."""
    if op.startswith(("cast.", "bits.")):
        return 0.5
    return WORK.get(op, 1.0)
