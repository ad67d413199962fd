"""What memory a plan needs, and what its launches move: figures in bytes, known before anything runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lumi import dim
from lumi.dim import DimRange
from lumi.plan.box import Box, spelled
from lumi.plan.check import check, lifetimes, plan_error, size_in_bytes
from lumi.plan.plan import Buffer, Plan, PlanKernel, Role, Variant
from lumi.plan.reach import Requirement
from lumi.plan.traffic import Traffic, is_copy, traffic


@dataclass(frozen=True, slots=True)
class Held:
    """A buffer of the arena: where it lies, and its `first` and `last` launch, as `lifetimes` tells them.

    `most` is what it takes over the whole range of the dims, `now` what it takes at those of the call.
    """

    name: str
    role: Role
    type: str
    offset: int
    most: int
    now: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Moved:
    """A launch: its kernel, the bytes that it reads and writes, and whether it computes nothing.

    Of a launch that only copies, `copies` says what to where.
    """

    kernel: str
    read: int
    written: int
    copies: str = ""


@dataclass(frozen=True, slots=True)
class StateUse:
    """A state: its bytes at the largest dims, and what one call reads, writes and copies of it."""

    name: str
    size: int
    read: int
    written: int
    copied: int


@dataclass(frozen=True, slots=True)
class VariantMemory:
    """The memory of one variant, and what a call at `dims` moves.

    `peak` bytes are alive at once at the largest dims, first at launch `at`; `peak_now` at `dims`.
    """

    label: str
    dims: Mapping[str, int]
    arena: int
    peak: int
    at: int
    peak_now: int
    states_now: int
    buffers: tuple[Held, ...]
    launches: tuple[Moved, ...]
    states: tuple[StateUse, ...]

    @property
    def ratio(self) -> float:
        """The arena over the peak, below which no arena can be; 1 where nothing is alive."""
        return self.arena / self.peak if self.peak else 1.0

    @property
    def read(self) -> int:
        """Bytes that a call reads of its buffers."""
        return sum(launch.read for launch in self.launches)

    @property
    def written(self) -> int:
        """Bytes that a call writes to its buffers."""
        return sum(launch.written for launch in self.launches)

    def size(self, role: Role) -> int:
        """Bytes of all buffers of a role in the arena, as if each had memory of its own."""
        return sum(b.most for b in self.buffers if b.role is role)


@dataclass(frozen=True, slots=True)
class PlanMemory:
    """The memory of a plan; `beside` is what the device holds for it besides, by what for.

    `states` and `arena` are laid out for the largest dims, so that no call allocates.
    """

    name: str
    target: str
    weights: int
    states: int
    arena: int
    beside: Mapping[str, int]
    variants: tuple[VariantMemory, ...]

    @property
    def total(self) -> int:
        """Bytes of device memory that one session takes."""
        return self.weights + self.states + self.arena + sum(self.beside.values())

    def in_use(self, variant: VariantMemory) -> int:
        """Bytes of it that hold something in a call of a variant at its dims."""
        return self.weights + variant.states_now + variant.peak_now + sum(self.beside.values())


def memory(
    plan: Plan, dims: Mapping[str, int] | None = None, beside: Mapping[str, int] | None = None
) -> PlanMemory:
    """The memory of a plan whose calls are looked at with `dims`; those not given are as they are hinted.

    Variants that no call with these dims runs are left out.  Raises `LumiError` for dims that are unknown or
    outside of their range, and for a call that a state has no room for.
    """
    given = dict(dims or {})
    _check_dims(plan, given)
    found = {n: v for n, v in enumerate(plan.variants) if _is_reached(v, plan.variants[:n], given)}
    needs = check(plan)
    owned = {b.param for b in plan.bindings} - {s.name for s in plan.states}
    weights = sum(math.prod(b.shape) * b.dtype.size for b in plan.bindings if b.param in owned)
    states = sum(size_in_bytes(Buffer(s.name, Role.STATE, s.dtype, s.shape), plan.dims) for s in plan.states)
    return PlanMemory(
        plan.name,
        plan.target,
        weights,
        states,
        max((v.arena for v in plan.variants), default=0),
        dict(beside or {}),
        tuple(_variant(plan, v, _values(v, needs[n], given)) for n, v in found.items()),
    )


def _check_dims(plan: Plan, given: Mapping[str, int]) -> None:
    for name, value in given.items():
        r = plan.dims.get(name)
        if r is None:
            raise plan_error(f"no dim is called {name}", f"dims: {', '.join(plan.dims) or 'none'}")
        if not r.low <= value <= r.high:
            raise plan_error(f"{name} is {value}", f"it is {r.low} … {r.high}")


def _is_reached(variant: Variant, earlier: Sequence[Variant], given: Mapping[str, int]) -> bool:
    """Whether some call with the given dims runs a variant: the first that is for its dims runs."""
    mine = {n: (r.low, r.high) for n, r in variant.dims.items()} | {n: (x, x) for n, x in given.items()}

    def holds(one: Variant) -> bool:
        return all(one.dims[n].low <= low and high <= one.dims[n].high for n, (low, high) in mine.items())

    return holds(variant) and not any(map(holds, earlier))


def _values(variant: Variant, needs: Sequence[Requirement], given: Mapping[str, int]) -> dict[str, int]:
    """The dims of a call of a variant: as given, else as first hinted, or as near to that as there is room.

    Raises `LumiError` where there is none.
    """
    free = {n: r for n, r in variant.dims.items() if n not in given}
    gaps = [*(need.gap for need in needs), *(need.gap for need in variant.needs)]
    (found, *_) = Box(given, free).hints([dim.bind(gap, given) for gap in gaps])
    values = {n: found[n] if n in found else given[n] for n in variant.dims}
    for need in needs:
        room, size = (dim.value(e, values) for e in (need.gap, need.size))
        if room < 0:
            call = ", ".join(f"{n} = {x}" for n, x in values.items())
            message = f"a call at {call} needs {size - room} elements along axis {need.axis} of {need.buffer}"
            raise plan_error(message, f"it has {size}")
    return values


def _variant(plan: Plan, variant: Variant, dims: Mapping[str, int]) -> VariantMemory:
    here = {n: DimRange(n, x, x, ()) for n, x in dims.items()}
    buffers = tuple(_held(variant, here))
    states = {n: b for n, b in enumerate(variant.buffers) if b.role is Role.STATE}
    uses = list(_uses(plan, variant, dims))
    at, most = _peak(buffers, [b.most for b in buffers])
    return VariantMemory(
        label=spelled(variant.dims.values()),
        dims=dims,
        arena=variant.arena,
        peak=most,
        at=at,
        peak_now=_peak(buffers, [b.now for b in buffers])[1],
        states_now=sum(size_in_bytes(b, here) for b in states.values()),
        buffers=buffers,
        launches=tuple(_moved(variant, use) for use in uses),
        states=tuple(_state_use(b, size_in_bytes(b, variant.dims), n, uses) for n, b in states.items()),
    )


def _held(variant: Variant, here: Mapping[str, DimRange]) -> Iterator[Held]:
    for number, (first, last) in sorted(lifetimes(variant).items()):
        b = variant.buffers[number]
        kind = f"{b.dtype} [{' '.join(map(str, b.shape))}]"
        most, now = size_in_bytes(b, variant.dims), size_in_bytes(b, here)
        yield Held(b.name, b.role, kind, b.offset, most, now, first, last)


def _peak(buffers: Sequence[Held], sizes: Sequence[int]) -> tuple[int, int]:
    """The first time at which the most bytes are alive, and how many; before the first launch is -1."""
    pairs = list(zip(buffers, sizes, strict=True))
    live = {t: sum(z for b, z in pairs if b.first <= t <= b.last) for t in {b.first for b in buffers}}
    at = min(live, key=lambda t: (-live[t], t), default=0)
    return at, live.get(at, 0)


@dataclass(frozen=True, slots=True)
class _Use:
    """A launch, with what it reads and writes of each buffer by its number."""

    kernel: PlanKernel
    copies: bool
    read: Mapping[int, int]
    written: Mapping[int, int]


def _uses(plan: Plan, variant: Variant, dims: Mapping[str, int]) -> Iterator[_Use]:
    known: dict[int, tuple[Traffic, bool]] = {}
    for launch in variant.launches:
        kernel = plan.kernels[launch.kernel]
        if launch.kernel not in known:
            known[launch.kernel] = traffic(kernel.step, dims), is_copy(kernel.step)
        found, copies = known[launch.kernel]
        actual = dict(zip(kernel.step.buffers, launch.buffers, strict=True))
        read, written = ({actual[b]: z for b, z in part.items()} for part in (found.read, found.written))
        yield _Use(kernel, copies, read, written)


def _moved(variant: Variant, use: _Use) -> Moved:
    def names(part: Mapping[int, int]) -> str:
        return ", ".join(variant.buffers[n].name for n in part)

    what = f"{names(use.read)} → {names(use.written)}" if use.copies else ""
    return Moved(use.kernel.name, sum(use.read.values()), sum(use.written.values()), what)


def _state_use(state: Buffer, size: int, number: int, uses: Sequence[_Use]) -> StateUse:
    read, written, copied = (
        sum(part.get(number, 0) for part in parts)
        for parts in (
            (u.read for u in uses),
            (u.written for u in uses),
            (part for u in uses if u.copies for part in (u.read, u.written)),
        )
    )
    return StateUse(state.name, size, read, written, copied)
