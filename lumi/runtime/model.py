"""A plan on a device with its weights: what all sessions of it share, and never changes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lumi import dim
from lumi.dim import Dim, Extent
from lumi.errors import LumiError
from lumi.plan.check import check
from lumi.plan.plan import Binding, Need, Plan, Role, Variant
from lumi.plan.reach import Requirement
from lumi.runtime.device import Array, Device, Executable, Memory, room_for
from lumi.runtime.params import Random, Source, fill, require


@dataclass(frozen=True, slots=True)
class Model:
    """Kernels compiled and params in memory.

    `initial` is what states begin with, if not with zeros; `needs[n]` is what calls of variant n must check.
    """

    plan: Plan
    device: Device
    executable: Executable
    params: Mapping[str, Memory] = field(repr=False)
    initial: Mapping[str, Array] = field(repr=False)
    needs: tuple[tuple[Requirement, ...], ...]

    def choose(self, dims: Mapping[str, int]) -> int:
        """The number of the first variant that is valid for `dims`.

        Raises `LumiError` when there is none, or when the call would leave a buffer.
        """
        for number, variant in enumerate(self.plan.variants):
            for r in variant.dims.values():
                if not r.low <= dims[r.name] <= r.high:
                    break
            else:
                for room in self.needs[number]:
                    self._check_room(room, dims)
                for need in variant.needs:
                    _check_need(need, dims)
                return number
        values = ", ".join(f"{n}={v}" for n, v in dims.items())
        ranges = "; ".join(_box(v) for v in self.plan.variants)
        raise LumiError(
            "dim error", f"no variant of {self.plan.name} is made for {values}", hint=f"it has {ranges}"
        )

    def gaps(self, variant: int) -> list[Extent]:
        """What must not be negative at a call of a variant."""
        rooms, needs = self.needs[variant], self.plan.variants[variant].needs
        return [*(room.gap for room in rooms), *(need.gap for need in needs)]

    def written(self, number: int) -> frozenset[str]:
        """The states that a variant writes."""
        variant, found = self.plan.variants[number], set[str]()
        for launch in variant.launches:
            step = self.plan.kernels[launch.kernel].step
            pairs = zip(step.buffers, (variant.buffers[n] for n in launch.buffers), strict=True)
            found |= {b.name for own, b in pairs if own in step.written and b.role is Role.STATE}
        return frozenset(found)

    def _check_room(self, need: Requirement, dims: Mapping[str, int]) -> None:
        room = dim.value(need.gap, dims)
        if room >= 0:
            return
        names = () if isinstance(need.gap, int) else sorted(need.gap.names())
        size = dim.value(need.size, dims)
        is_state = any(s.name == need.buffer for s in self.plan.states)
        raise LumiError(
            "dim error",
            f"with {', '.join(f'{n}={dims[n]}' for n in names)} the call needs {size - room} elements "
            f"along axis {need.axis} of {need.buffer}, which has {size}",
            hint="the sequence is longer than the state has room for" if is_state else "",
        )


def load_model(plan: Plan, source: Source | None, device: Device) -> Model:
    """Check a plan, compile its kernels and bring its params to the device."""
    needs = tuple(_distinct(n) for n in check(plan))
    executable = device.load(plan)
    require(plan, source)
    states = {s.name for s in plan.states}
    initial = {b.param: fill(b, source) for b in plan.bindings if b.param in states}
    params = {b.param: _param(b, source, device) for b in plan.bindings if b.param not in states}
    return Model(plan, device, executable, params, initial, needs)


def _param(binding: Binding, source: Source | None, device: Device) -> Memory:
    """The content of a param in device memory.  Raises `LumiError` where there is none left."""
    noise = source.noise_of(binding) if isinstance(source, Random) else None
    count = math.prod(binding.shape)
    with room_for(
        f"weight {binding.key} {binding.dtype} [{' '.join(map(str, binding.shape))}] needs",
        count * binding.dtype.size,
        "the model is too large for this machine",
    ):
        made = device.random(noise, count) if noise else None
        return made or device.adopt(fill(binding, source))


def _distinct(needs: Sequence[Requirement]) -> tuple[Requirement, ...]:
    """One of those that ask the same of the dims, as every layer does of its states."""
    return tuple({need.gap: need for need in reversed(needs)}.values())[::-1]


def _check_need(need: Need, dims: Mapping[str, int]) -> None:
    if dim.value(need.gap, dims) < 0:
        names = sorted(need.gap.names()) if isinstance(need.gap, Dim) else ()
        values = ", ".join(f"{n}={dims[n]}" for n in names)
        raise LumiError("dim error", f"with {values} {need.what}", hint="that is outside of it")


def _box(variant: Variant) -> str:
    return ", ".join(f"{r.name} {r.low} … {r.high}" for r in variant.dims.values())
