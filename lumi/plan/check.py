"""Checks a plan before anything of it is launched.

A plan may come from a file that was damaged or made by someone else.  After `check` every number in it
refers to something, every buffer lies inside the arena, no two live buffers overlap, every buffer is
written before it is read, and every access stays inside its buffer once the returned requirements hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from lumi import dim
from lumi.dim import DimRange, Extent
from lumi.dtype import DType
from lumi.errors import LumiError
from lumi.llir.kernel import (
    Dot,
    Kernel,
    Loop,
    Position,
    Reduce,
    Statement,
    Symbol,
    accesses,
    buffers,
    walk,
    written,
)
from lumi.llir.kernel import (
    dims as dims_of,
)
from lumi.plan.plan import ALIGNMENT, Buffer, Launch, Plan, Role, Variant
from lumi.plan.reach import Requirement, requirements

T = TypeVar("T")

LARGEST = 1 << 46
"""Bytes an arena or a buffer may have (64 TiB): far above any machine, far below an overflow."""


def plan_error(message: str, hint: str = "compile the model again") -> LumiError:
    """A fault in a plan."""
    return LumiError("plan error", message, hint=hint)


def check(plan: Plan) -> tuple[tuple[Requirement, ...], ...]:
    """For each variant what its calls must still check.  Raises `LumiError` ("plan error")."""
    _check_names(plan)
    for kernel in plan.kernels:
        _check_kernel(kernel.name, kernel.kernel)
    return tuple(_check_variant(plan, variant, f"variant {n}") for n, variant in enumerate(plan.variants))


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
    _distinct("params and states", [b.param for b in plan.bindings] + [s.name for s in plan.states])
    for name, r in plan.dims.items():
        if name != r.name or not 0 <= r.low <= r.high:
            raise plan_error(f"dim {name} has the range {r.low} … {r.high}")
    if not plan.variants:
        raise plan_error("the plan has no variant")


def _check_kernel(name: str, kernel: Kernel) -> None:
    known = set(kernel.axes)
    used = {*kernel.grid, *kernel.resident, *kernel.tiles}
    for statement in walk(kernel.body):
        used |= set(_axes(statement))
    for access, _ in accesses(kernel):
        used |= access.axes()
        if len(access.index) != len(access.shape):
            raise plan_error(f"kernel {name} takes {len(access.index)} indices of {access.buffer}")
    if not used <= known:
        raise plan_error(f"kernel {name} has no axis {min(used - known)}")
    if any(tile < 1 for tile in kernel.tiles.values()):
        raise plan_error(f"kernel {name} has an empty tile")


def _axes(statement: Statement) -> tuple[str, ...]:
    match statement:
        case Position(_, axis):
            return (axis,)
        case Symbol():
            return ()
        case Reduce() | Dot():
            return (*statement.over, *statement.axes)
        case Loop():
            chunk = () if statement.chunk is None else (statement.chunk,)
            return (*statement.axes, *chunk, *(a for carry in statement.carries for a in carry.axes))
        case _:
            return statement.axes


def _check_variant(plan: Plan, variant: Variant, where: str) -> tuple[Requirement, ...]:
    _check_dims(plan, variant, where)
    _check_signatures(plan, variant, where)
    needs: dict[Extent, Requirement] = {}
    for time, launch in enumerate(variant.launches):
        for need in _check_launch(plan, variant, launch, f"{where}, launch {time}"):
            needs.setdefault(need.gap, need)
    _check_order(plan, variant, where)
    _check_arena(variant, where)
    return tuple(needs.values())


def _check_dims(plan: Plan, variant: Variant, where: str) -> None:
    if set(variant.dims) != set(plan.dims):
        raise plan_error(f"{where} is about dims {', '.join(variant.dims)}, not {', '.join(plan.dims)}")
    for name, r in variant.dims.items():
        whole = plan.dims[name]
        if name != r.name or not whole.low <= r.low <= r.high <= whole.high:
            raise plan_error(f"{where} has the range {r.low} … {r.high} for {name}")


def _check_signatures(plan: Plan, variant: Variant, where: str) -> None:
    """Buffers that callers or weights fill must be what the plan's signatures and bindings say."""
    promised: dict[Role, dict[str, tuple[DType, tuple[Extent, ...]]]] = {
        Role.INPUT: {s.name: (s.dtype, s.shape) for s in plan.inputs},
        Role.STATE: {s.name: (s.dtype, s.shape) for s in plan.states},
        Role.PARAM: {b.param: (b.dtype, b.shape) for b in plan.bindings},
    }
    fixed = {name: r.low for name, r in variant.dims.items() if r.low == r.high}
    _distinct(f"buffers of {where}", [b.name for b in variant.buffers])
    for b in variant.buffers:
        if b.role in promised:
            dtype, shape = promised[b.role].get(b.name, (None, ()))
            if b.dtype is not dtype or b.shape != tuple(dim.bind(z, fixed) for z in shape):
                raise plan_error(f"{where} takes {b.role.value} {b.name} as {b.dtype} {list(b.shape)}")
    if set(variant.outputs) != {s.name for s in plan.outputs}:
        raise plan_error(f"{where} returns {', '.join(variant.outputs)}")
    for s in plan.outputs:
        b = _at(variant.buffers, variant.outputs[s.name], f"{where}: buffer")
        if b.dtype != s.dtype or b.shape != tuple(dim.bind(z, fixed) for z in s.shape):
            raise plan_error(f"{where} returns {s.name} as {b.dtype} {list(b.shape)}")


def _check_launch(plan: Plan, variant: Variant, launch: Launch, where: str) -> Iterator[Requirement]:
    kernel = _at(plan.kernels, launch.kernel, f"{where}: kernel").kernel
    formal = buffers(kernel)
    if len(formal) != len(launch.buffers) or len(set(launch.buffers)) != len(formal):
        raise plan_error(f"{where} gives {len(launch.buffers)} buffers to a kernel of {len(formal)}")
    given = [_at(variant.buffers, n, f"{where}: buffer") for n in launch.buffers]
    actual = dict(zip(formal, given, strict=True))
    for access, writes in accesses(kernel):
        b = actual[access.buffer]
        if not access.fits(b.dtype, b.shape):
            raise plan_error(f"{where} takes {b.name} as {access.dtype} {list(access.shape)}")
        if writes and b.role in (Role.INPUT, Role.PARAM):
            raise plan_error(f"{where} writes {b.role.value} {b.name}")
    unknown = set(dims_of(kernel)) - set(variant.dims)
    if unknown:
        raise plan_error(f"{where} needs dim {min(unknown)}")
    try:
        needs = list(requirements(kernel, {k: b.name for k, b in actual.items()}, variant.dims))
    except (KeyError, ArithmeticError, ValueError) as error:
        raise plan_error(f"{where} has an index that means nothing: {error}") from error
    for need in needs:
        if dim.bounds(need.gap, variant.dims)[1] < 0:
            raise plan_error(f"{where} leaves {need.buffer} along axis {need.axis}")
        yield need


def _check_order(plan: Plan, variant: Variant, where: str) -> None:
    """Whatever lies in the arena is written by an earlier launch, or given, before it is read."""
    full = {n for n, b in enumerate(variant.buffers) if b.role in (Role.INPUT, Role.PARAM, Role.STATE)}
    for time, launch in enumerate(variant.launches):
        kernel = plan.kernels[launch.kernel].kernel
        actual = dict(zip(buffers(kernel), launch.buffers, strict=True))
        full |= {actual[b] for b in written(kernel)}
        if not set(launch.buffers) <= full:
            name = variant.buffers[min(set(launch.buffers) - full)].name
            raise plan_error(f"{where}, launch {time} reads {name} before anything wrote it")
    for name, number in variant.outputs.items():
        if number not in full:
            raise plan_error(f"{where} never writes output {name}")


def _check_arena(variant: Variant, where: str) -> None:
    """Buffers lie inside the arena, aligned, and never on top of another that is alive."""
    if not 0 <= variant.arena <= LARGEST:
        raise plan_error(f"{where} has an arena of {variant.arena} bytes")
    alive: list[tuple[int, int, int]] = []
    spans = lifetimes(variant)
    for number in sorted(spans, key=lambda n: spans[n]):
        buffer, (first, last) = variant.buffers[number], spans[number]
        start, stop = buffer.offset, buffer.offset + size_in_bytes(buffer, variant.dims)
        if start < 0 or start % ALIGNMENT or stop > variant.arena:
            raise plan_error(f"{where} has {buffer.name} at {start} … {stop} of {variant.arena} bytes")
        alive = [a for a in alive if a[2] >= first]
        if any(start < b and a < stop for a, b, _ in alive):
            raise plan_error(f"{where} has {buffer.name} on top of a buffer that is still needed")
        alive.append((start, stop, last))


def _distinct(what: str, names: Sequence[str]) -> None:
    for a, b in pairwise(sorted(names)):
        if a == b:
            raise plan_error(f"{what} share the name {a}")


def _at(items: Sequence[T], number: int, what: str) -> T:
    if not 0 <= number < len(items):
        raise plan_error(f"{what} {number} does not exist")
    return items[number]
