"""Random launch graphs over inputs, params and states; their meaning, with every value in its own array."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from lumi import dim
from lumi.backends.cpu import interpret
from lumi.bufferize.bufferize import KernelTable
from lumi.bufferize.call import Call, Interface, Value, call, values
from lumi.dim import DimRange, Extent
from lumi.dtype import F32
from lumi.field.access import Access
from lumi.field.index import Sym, index, of_axis, of_extent
from lumi.llir.kernel import Kernel, Load, Map, Step, Store, buffers
from lumi.llir.rename import rename
from lumi.plan.plan import Buffer, Role, Variant
from tests.plan.samples import SCHEDULE, Array, access, elementwise, step

SIZE = 12
N, PAST = dim.var("n"), dim.var("past")
RANGES = {"n": DimRange("n", 1, 4, (2,)), "past": DimRange("past", 0, SIZE - 4, (3,))}
WHOLE: tuple[Extent, ...] = (SIZE,)
PART: tuple[Extent, ...] = (N,)
STATES = "stu"
"""States that get whole values; `v` and `w` are written by windows."""


def unary(name: str, source: Access, shape: tuple[Extent, ...]) -> Kernel:
    """B1 = what `source` reads of B0, over all elements of a shape."""
    return elementwise(name, [source], access("B1", shape), {"i0": shape[0]})


def add(a: str, b: str, target: str, shape: tuple[Extent, ...] = WHOLE) -> Call:
    """target = a + b."""
    axes = {"i0": shape[0]}
    kernel = elementwise("add", [access("B0", shape), access("B1", shape)], access("B2", shape), axes)
    if a == b:
        kernel = elementwise("add", [access("B0", shape)] * 2, access("B2", shape), axes)
        return call(step(kernel), {"B0": a, "B2": target}, "add")
    return call(step(kernel), {"B0": a, "B1": b, "B2": target}, "add")


def reverse(a: str, target: str) -> Call:
    """target = a, backwards."""
    back = Access("B0", (index([("i0", -1)], SIZE - 1),), WHOLE, F32)
    return call(step(unary("cast.f32", back, WHOLE)), {"B0": a, "B1": target}, "reverse")


def window(a: str, target: str) -> Call:
    """target[n] = a[past : past + n]."""
    part = replace(access("B0", WHOLE), index=(of_axis("i0") + of_extent(PAST),))
    return call(step(unary("cast.f32", part, PART)), {"B0": a, "B1": target}, "window")


def spread(a: str, target: str) -> Call:
    """target[SIZE] = a[n], its last element again and again behind its end."""
    clamped = replace(access("B0", PART), clamp=True)
    return call(step(unary("cast.f32", clamped, WHOLE)), {"B0": a, "B1": target}, "spread")


def write(a: str, state: str) -> Call:
    """state[past : past + n] = a[n]."""
    target = replace(access("B1", WHOLE), index=(of_axis("i0") + of_extent(PAST),))
    kernel = elementwise("cast.f32", [access("B0", PART)], target, {"i0": N})
    return call(step(kernel), {"B0": a, "B1": state}, "write")


def write_fixed(a: str, state: str, start: int, count: int = 4) -> Call:
    """state[start : start + count] = a[0 : count]."""
    target = replace(access("B1", WHOLE), index=(of_axis("i0") + start,))
    kernel = elementwise("cast.f32", [access("B0", WHOLE)], target, {"i0": count})
    return call(step(kernel), {"B0": a, "B1": state}, "write")


def joined(one: Call, other: Call, in_turn: bool) -> Call | None:
    """Both calls as one launch, side by side or in turn; None where that is not allowed."""
    names = dict(one.names)
    own = {actual: mine for mine, actual in names.items()}
    theirs: dict[str, str] = {}
    for mine, actual in other.names.items():
        theirs[mine] = own.setdefault(actual, f"C{len(own)}")
        names[own[actual]] = actual
    second = rename(other.step.kernel, theirs)
    if in_turn:
        return call(Step(one.step.kernel, SCHEDULE, then=(Step(second, SCHEDULE),)), names, "turns")
    touches = [{*c.reads(), *c.writes()} for c in (one, other)]
    if one.writes() & touches[1] or other.writes() & touches[0]:
        return None
    return call(Step(one.step.kernel, SCHEDULE, beside=(second,)), names, "beside")


@dataclass
class Writer:
    """Writes calls in single assignment, but for windows of states, and what becomes of their values."""

    chance: random.Random
    calls: list[Call] = field(default_factory=list)
    whole: list[str] = field(default_factory=lambda: ["x", "y", "p", "s", "t", "u"])
    part: list[str] = field(default_factory=lambda: ["z"])
    count: int = 0

    def pick(self, names: list[str]) -> str:
        """A value, more often than not one of the last."""
        return self.chance.choice(names[-4:] if self.chance.random() < 0.6 else names)

    def made(self, kind: list[str]) -> str:
        """The name of a new value, which is known from now on."""
        self.count += 1
        kind.append(f"%{self.count}")
        return kind[-1]

    def one(self) -> Call:
        """A call that makes a value."""
        source, other, piece = self.pick(self.whole), self.pick(self.whole), self.pick(self.part)
        match self.chance.randrange(7):
            case 0 | 1 | 2:
                return add(source, other, self.made(self.whole))
            case 3:
                return reverse(source, self.made(self.whole))
            case 4:
                return window(source, self.made(self.part))
            case 5:
                return spread(piece, self.made(self.whole))
            case _:
                return add(piece, self.pick(self.part), self.made(self.part), PART)

    def step(self) -> None:
        """One launch: a call, or two together."""
        first = self.one()
        if self.chance.random() < 0.2:
            both = joined(first, self.one(), in_turn=self.chance.random() < 0.5)
            self.calls.append(both or first)
            if both is None:
                self.whole, self.part = ([n for n in k if self.exists(n)] for k in (self.whole, self.part))
        else:
            self.calls.append(first)

    def exists(self, name: str) -> bool:
        """Whether a leaf or a call makes a value."""
        return not name.startswith("%") or any(name in c.writes() for c in self.calls)

    def windowed(self, state: str) -> None:
        """Write into a state, read before and afterwards."""
        if self.chance.random() < 0.5:
            self.calls.append(add(state, state, self.made(self.whole)))
        for _ in range(self.chance.choice([1, 1, 2])):
            if self.chance.random() < 0.7:
                self.calls.append(write(self.pick(self.part), state))
            else:
                others = [n for n in self.whole if n != state]
                self.calls.append(write_fixed(self.chance.choice(others), state, self.chance.randrange(9)))
        if self.chance.random() < 0.7:
            self.whole.append(state)


def random_graph(seed: int) -> tuple[list[Call], Interface]:
    """Calls over three inputs, a param and five states.

    Two states may be written by windows, the others get whole values: fresh ones, one for several, each
    other's, an input's, or what a windowed one held before.
    """
    writer = Writer(random.Random(seed))
    chance = writer.chance
    roles = {"x": Role.INPUT, "y": Role.INPUT, "p": Role.PARAM} | dict.fromkeys("stuvw", Role.STATE)
    leaves = {n: Value(n, r, F32, WHOLE) for n, r in roles.items()}
    leaves["z"] = Value("z", Role.INPUT, F32, PART)
    windowed = [s for s in "vw" if chance.random() < 0.5]
    times = {s: chance.randrange(8) for s in windowed}
    for k in range(chance.randrange(1, 14)):
        for state in windowed:
            if times[state] == k:
                writer.windowed(state)
        writer.step()
    windowed = [s for s in windowed if any(s in c.writes() for c in writer.calls)]
    fresh = [n for n in writer.whole if n.startswith("%")]
    updates = {s: s for s in windowed}
    for state in STATES:
        own = [n for n in fresh if any(state in c.reads() and n in c.writes() for c in writer.calls)]
        if chance.random() < 0.8:
            updates[state] = chance.choice(own * 4 + [*fresh, *fresh, *STATES, "x", "p", *windowed])
    order = chance.sample(list(updates), len(updates))
    outputs = {f"o{k}": chance.choice(writer.whole + writer.part) for k in range(3)}
    before = {o: n for o, n in outputs.items() if n in STATES and updates.get(n, n) != n}
    return writer.calls, Interface(leaves, outputs, {s: updates[s] for s in order}, before)


def reference(
    calls: list[Call], face: Interface, arrays: dict[str, Array], dims: Mapping[str, int]
) -> dict[str, Array]:
    """Every value in an array of its own; states change when all has run.  Returns the outputs."""
    before = {n: a.copy() for n, a in arrays.items()}
    held = {n: a.copy() for n, a in arrays.items()}
    for name, value in values(calls, face.leaves).items():
        shape = tuple(dim.value(size, dims) for size in value.shape)
        held.setdefault(name, np.full(shape, np.nan, np.float32))
    for one in calls:
        for kernel in one.step.kernels:
            interpret.run(kernel, {b: held[one.names[b]] for b in buffers(kernel)}, dims)
    outputs = {o: (before if o in face.before else held)[n].copy() for o, n in face.outputs.items()}
    for key, name in face.updates.items():
        arrays[key] = (held if key == name or name not in face.leaves else before)[name].copy()
    return outputs


def run(
    variant: Variant, table: KernelTable, arrays: Mapping[str, Array], dims: Mapping[str, int], seed: int
) -> dict[str, Array]:
    """A variant on one arena of bytes, all of them ones at first; states change in `arrays`.

    Kernels that one launch runs side by side run in any order, and so do the cells of each.  Returns the
    outputs.
    """
    chance, arena = random.Random(seed), np.full(variant.arena, 0xFF, np.uint8)
    held = [_array(b, arena, arrays, dims) for b in variant.buffers]
    for launch in variant.launches:
        made = table.kernels[launch.kernel].step
        actual = dict(zip(made.buffers, launch.buffers, strict=True))
        for turn in made.turns:
            for kernel in chance.sample(turn.kernels, len(turn.kernels)):
                _run(kernel, {b: held[actual[b]] for b in buffers(kernel)}, dims, chance)
    return {name: held[n].copy() for name, n in variant.outputs.items()}


def _run(kernel: Kernel, arrays: Mapping[str, Array], dims: Mapping[str, int], chance: random.Random) -> None:
    """Run a kernel of one axis, a cell for each of its elements, in any order."""
    (extent,) = kernel.axes.values()
    cells = list(range(dim.value(extent, dims)))
    chance.shuffle(cells)
    for cell in cells:
        values: dict[str, np.float32] = {}
        for statement in kernel.body:
            match statement:
                case Load(var, access):
                    values[var] = arrays[access.buffer][_place(access, cell, dims)]
                case Map(var, "add", (str(a), str(b))):
                    values[var] = values[a] + values[b]
                case Map(var, "cast.f32", (str(a),)):
                    values[var] = values[a]
                case Store(access, str(value)):
                    arrays[access.buffer][_place(access, cell, dims)] = values[value]
                case _:
                    raise AssertionError(statement)


def _place(access: Access, cell: int, dims: Mapping[str, int]) -> int:
    (place,), (size,) = access.index, access.shape
    number = place.offset
    for part, factor in place.terms:
        number += factor * (dim.value(part.extent, dims) if isinstance(part, Sym) else cell)
    last = dim.value(size, dims) - 1
    assert access.clamp or 0 <= number <= last
    return min(max(number, 0), last)


def _array(b: Buffer, arena: Array, arrays: Mapping[str, Array], dims: Mapping[str, int]) -> Array:
    if not b.role.in_arena:
        return arrays[b.name]
    shape = tuple(dim.value(size, dims) for size in b.shape)
    size = int(np.prod(shape)) * b.dtype.size
    view = arena[b.offset : b.offset + size].view(np.float32).reshape(shape)
    if b.role is Role.INPUT:
        view[...] = arrays[b.name]
    return view
