"""Checks a plan before anything of it is launched.

A plan may come from a file that was damaged or made by someone else.  After `check` every number in it
refers to something, every buffer lies inside the arena, no two live buffers overlap, every buffer is
written before it is read, and every access stays inside its buffer once the returned requirements hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

from lumi import dim
from lumi.dim import Dim, DimRange, Extent
from lumi.errors import LumiError
from lumi.llir import check as llir
from lumi.llir.kernel import Step
from lumi.plan.plan import ALIGNMENT, Buffer, Launch, Plan, Role, Signature, Variant
from lumi.plan.reach import Footprint, Requirement, footprint

T = TypeVar("T")

LARGEST = 1 << 46
"""Bytes an arena or a buffer may have (64 TiB): far above any machine, far below an overflow."""


def plan_error(message: str, hint: str = "compile the model again") -> LumiError:
    """A fault in a plan."""
    return LumiError("plan error", message, hint=hint)


def check(plan: Plan) -> tuple[tuple[Requirement, ...], ...]:
    """For each variant what its calls must still check.  Raises `LumiError` ("plan error")."""
    _check_names(plan)
    prints = [_footprint(k.name, k.step) for k in plan.kernels]
    return tuple(
        _Checker(plan, prints, variant, f"variant {n}").check() for n, variant in enumerate(plan.variants)
    )


def size_in_bytes(buffer: Buffer, dims: Mapping[str, DimRange]) -> int:
    """The most bytes a buffer needs over the ranges of `dims`, rounded up to whole `ALIGNMENT`s.

    At least one: a clamped access to an empty buffer reads (and ignores) its first element.
    Raises `LumiError` when a size has no bound or may be negative.
    """
    for size in buffer.shape:
        if dim.bounds(size, dims)[0] < 0:
            raise plan_error(f"an axis of {buffer.name} may have a negative size: {size}")
    greatest = dim.bounds(dim.product(buffer.shape), dims)[1] * buffer.dtype.size
    if not math.isfinite(greatest) or greatest > LARGEST:
        raise plan_error(f"the size of {buffer.name} has no bound", "give every dim a :max")
    return max(1, -(-int(greatest) // ALIGNMENT)) * ALIGNMENT


def lifetimes(variant: Variant) -> dict[int, tuple[int, int]]:
    """First and last launch at which each buffer of the arena holds something, by its number.

    An input holds its value from before the first launch (-1), an output until after the last.
    """
    found: dict[int, tuple[int, int]] = {}
    for number, buffer in enumerate(variant.buffers):
        if buffer.role is Role.INPUT:
            found[number] = (-1, -1)
    for time, launch in enumerate(variant.launches):
        for number in launch.buffers:
            if variant.buffers[number].role.in_arena:
                found[number] = (found.get(number, (time, time))[0], time)
    for number in variant.outputs.values():
        if number in found:
            found[number] = (found[number][0], len(variant.launches))
    return found


def _check_names(plan: Plan) -> None:
    callers = [s.name for s in plan.inputs] + list(plan.dims)
    _distinct("inputs and dims", callers)
    _distinct("outputs", [s.name for s in plan.outputs])
    _distinct("kernels", [k.name for k in plan.kernels])
    _distinct("params", [b.param for b in plan.bindings])
    _distinct("states", [s.name for s in plan.states])
    contents = {b.param: (b.dtype, b.shape) for b in plan.bindings}
    for s in plan.states:
        if contents.get(s.name, (s.dtype, s.shape)) != (s.dtype, s.shape):
            raise plan_error(f"state {s.name} begins as a param of another type")
    for name, r in plan.dims.items():
        if name != r.name or not 0 <= r.low <= r.high:
            raise plan_error(f"dim {name} has the range {r.low} … {r.high}")
    for s in plan.inputs:
        unknown = s.most.names() - set(plan.dims) if isinstance(s.most, Dim) else set()
        if unknown:
            raise plan_error(f"input {s.name} holds no more than dim {min(unknown)}, which does not exist")
    if not plan.variants:
        raise plan_error("the plan has no variant")


def _footprint(name: str, step: Step) -> Footprint:
    """The footprint of kernels that are well formed and can run in one launch."""
    try:
        llir.check_step(step, name)
        return footprint(*step.kernels)
    except LumiError as error:
        raise plan_error(error.message) from error
    except (KeyError, ArithmeticError, ValueError) as error:
        raise plan_error(f"kernel {name} has an index that means nothing: {error}") from error


@dataclass(frozen=True, slots=True)
class _Checker:
    """Checks one variant; `where` names it in messages."""

    plan: Plan
    prints: Sequence[Footprint]
    variant: Variant
    where: str

    def check(self) -> tuple[Requirement, ...]:
        self._dims()
        self._signatures()
        room: dict[int, list[Requirement]] = {}
        needs: dict[Extent, Requirement] = {}
        for time, launch in enumerate(self.variant.launches):
            actual = self._launch(launch, f"{self.where}, launch {time}")
            if launch.kernel not in room:
                room[launch.kernel] = list(self._unproved(self.prints[launch.kernel], actual, time))
            for need in room[launch.kernel]:
                needs.setdefault(need.gap, replace(need, buffer=actual[need.buffer].name))
        self._order()
        self._arena()
        return tuple(needs.values())

    def _dims(self) -> None:
        mine, whole = self.variant.dims, self.plan.dims
        if set(mine) != set(whole):
            raise plan_error(f"{self.where} is about dims {', '.join(mine)}, not {', '.join(whole)}")
        for name, r in mine.items():
            if name != r.name or not whole[name].low <= r.low <= r.high <= whole[name].high:
                raise plan_error(f"{self.where} has the range {r.low} … {r.high} for {name}")
        for need in self.variant.needs:
            unknown = need.gap.names() - set(mine) if isinstance(need.gap, Dim) else set()
            if unknown:
                raise plan_error(f"{self.where} needs dim {min(unknown)}")

    def _signatures(self) -> None:
        """Buffers that callers or weights fill or read must be what the plan promises."""
        plan, variant = self.plan, self.variant
        promised: dict[Role, dict[str, Signature]] = {
            Role.INPUT: {s.name: s for s in plan.inputs},
            Role.STATE: {s.name: s for s in plan.states},
            Role.PARAM: {b.param: Signature(b.param, b.dtype, b.shape) for b in plan.bindings},
        }
        _distinct(f"buffers of {self.where}", [b.name for b in variant.buffers])
        for b in variant.buffers:
            if b.role in promised and not self._keeps(b, promised[b.role].get(b.name)):
                raise plan_error(f"{self.where} takes {b.role.value} {b.name} as {b.dtype} {list(b.shape)}")
        if set(variant.outputs) != {s.name for s in plan.outputs}:
            raise plan_error(f"{self.where} returns {', '.join(variant.outputs)}")
        for s in plan.outputs:
            b = _at(variant.buffers, variant.outputs[s.name], f"{self.where}: buffer")
            if not self._keeps(b, s):
                raise plan_error(f"{self.where} returns {s.name} as {b.dtype} {list(b.shape)}")

    def _keeps(self, buffer: Buffer, signature: Signature | None) -> bool:
        """Whether a buffer has the type and, with this variant's dims, the size of a signature."""
        fixed = {name: r.low for name, r in self.variant.dims.items() if r.low == r.high}
        if signature is None or buffer.dtype != signature.dtype:
            return False
        mine, promised = (dim.bind(dim.product(shape), fixed) for shape in (buffer.shape, signature.shape))
        return mine == promised

    def _launch(self, launch: Launch, where: str) -> dict[str, Buffer]:
        """The actual buffer for each of a kernel's own."""
        mark = _at(self.prints, launch.kernel, f"{where}: kernel")
        if len(mark.buffers) != len(launch.buffers) or len(set(launch.buffers)) != len(launch.buffers):
            raise plan_error(
                f"{where} gives {len(launch.buffers)} buffers to a kernel of {len(mark.buffers)}"
            )
        given = [_at(self.variant.buffers, n, f"{where}: buffer") for n in launch.buffers]
        for own, b in zip(mark.buffers, given, strict=True):
            for access in mark.accesses[own]:
                if not access.fits(b.dtype, b.shape):
                    raise plan_error(f"{where} takes {b.name} as {access.dtype} {list(access.shape)}")
            if own in mark.written and b.role in (Role.INPUT, Role.PARAM):
                raise plan_error(f"{where} writes {b.role.value} {b.name}")
        unknown = set(mark.dims) - set(self.variant.dims)
        if unknown:
            raise plan_error(f"{where} needs dim {min(unknown)}")
        return dict(zip(mark.buffers, given, strict=True))

    def _unproved(self, mark: Footprint, actual: Mapping[str, Buffer], time: int) -> Iterator[Requirement]:
        """The room that the ranges of the dims do not prove to be there."""
        for need in mark.needs:
            least, most = dim.bounds(need.gap, self.variant.dims)
            if most < 0:
                name = actual[need.buffer].name
                raise plan_error(f"{self.where}, launch {time} leaves {name} along axis {need.axis}")
            if least < 0:
                yield need

    def _order(self) -> None:
        """Whatever lies in the arena is written by an earlier launch or turn, or given, before it is read."""
        buffers, given = self.variant.buffers, (Role.INPUT, Role.PARAM, Role.STATE)
        full = {n for n, b in enumerate(buffers) if b.role in given}
        for time, launch in enumerate(self.variant.launches):
            mark = self.prints[launch.kernel]
            actual = dict(zip(mark.buffers, launch.buffers, strict=True))
            for turn in self.plan.kernels[launch.kernel].step.turns:
                full |= {actual[b] for b in turn.written}
                empty = {actual[b] for b in turn.buffers} - full
                if empty:
                    name = buffers[min(empty)].name
                    raise plan_error(f"{self.where}, launch {time} reads {name} before anything wrote it")
        for name, number in self.variant.outputs.items():
            if number not in full:
                raise plan_error(f"{self.where} never writes output {name}")

    def _arena(self) -> None:
        """Buffers lie inside the arena, aligned, and never on top of another that is alive."""
        variant = self.variant
        if not 0 <= variant.arena <= LARGEST:
            raise plan_error(f"{self.where} has an arena of {variant.arena} bytes")
        alive: list[tuple[int, int, int]] = []
        spans = lifetimes(variant)
        for number in sorted(spans, key=lambda n: spans[n]):
            buffer, (first, last) = variant.buffers[number], spans[number]
            start, stop = buffer.offset, buffer.offset + size_in_bytes(buffer, variant.dims)
            if start < 0 or start % ALIGNMENT or stop > variant.arena:
                raise plan_error(
                    f"{self.where} has {buffer.name} at {start} … {stop} of {variant.arena} bytes"
                )
            alive = [a for a in alive if a[2] >= first]
            if any(start < b and a < stop for a, b, _ in alive):
                raise plan_error(f"{self.where} has {buffer.name} on top of a buffer that is still needed")
            alive.append((start, stop, last))


def _distinct(what: str, names: Sequence[str]) -> None:
    for a, b in pairwise(sorted(names)):
        if a == b:
            raise plan_error(f"{what} share the name {a}")


def _at(items: Sequence[T], number: int, what: str) -> T:
    if not 0 <= number < len(items):
        raise plan_error(f"{what} {number} does not exist")
    return items[number]
