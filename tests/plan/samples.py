"""Small kernels and plans made by hand, and an executor that runs a variant's launches in numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lumi import dim
from lumi.backends.cpu import interpret
from lumi.dim import DimRange, Extent
from lumi.dtype import F32, DType
from lumi.field.access import Access
from lumi.field.index import Index, of_axis, of_extent
from lumi.llir.kernel import Kernel, Load, Map, Schedule, Step, Store, buffers
from lumi.plan.plan import Binding, Buffer, Launch, Plan, PlanKernel, Role, Signature, Variant

Array = np.ndarray[Any, Any]
SEQ, PAST = dim.var("seq"), dim.var("past")
SCHEDULE = Schedule("c")


def access(name: str, shape: tuple[Extent, ...], dtype: DType = F32, offset: Extent = 0) -> Access:
    """Element (i0 + offset, i1, …) of a buffer."""
    index = [of_axis(f"i{k}") for k in range(len(shape))]
    if index:
        index[0] = index[0] + of_extent(offset)
    return Access(name, tuple(index), shape, dtype)


def elementwise(op: str, sources: list[Access], target: Access, axes: Mapping[str, Extent]) -> Kernel:
    """target = op(sources…) over all axes, one element a cell."""
    names = tuple(axes)
    loads = [Load(f"v{k}", a, (), names, a.dtype) for k, a in enumerate(sources)]
    value = Map("r", op, tuple(x.var for x in loads), names, target.dtype)
    return Kernel(dict(axes), names, (), dict.fromkeys(names, 4), (*loads, value, Store(target, "r", names)))


def step(kernel: Kernel) -> Step:
    """The kernel with the default schedule."""
    return Step(kernel, SCHEDULE)


def add_plan() -> Plan:
    """y = (x + w) + x over f32 [seq], through one temporary; seq 1 … 100."""
    ranges = {"seq": DimRange("seq", 1, 100, (8,))}
    axes = {"i0": SEQ}
    w = Access("B1", (Index(),), (1,), F32)
    first = elementwise("add", [access("B0", (SEQ,)), w], access("T0", (SEQ,)), axes)
    second = elementwise("add", [access("T0", (SEQ,)), access("B0", (SEQ,))], access("B2", (SEQ,)), axes)
    variant = Variant(
        ranges,
        (
            Buffer("x", Role.INPUT, F32, (SEQ,), 0),
            Buffer("w", Role.PARAM, F32, (1,)),
            Buffer("%0", Role.TEMPORARY, F32, (SEQ,), 512),
            Buffer("%1", Role.OUTPUT, F32, (SEQ,), 1024),
        ),
        (Launch(0, (0, 1, 2)), Launch(1, (2, 0, 3))),
        {"y": 3},
        1536,
        1536,
    )
    return Plan(
        "add",
        "cpu",
        ranges,
        (Signature("x", F32, (SEQ,)),),
        (Signature("y", F32, (SEQ,)),),
        (),
        (Binding("w", "w", F32, (1,)),),
        (
            PlanKernel("k0", "add", first, SCHEDULE, "/* first */"),
            PlanKernel("k1", "add", second, SCHEDULE, "/* second */"),
        ),
        (variant,),
        {"note": "made by hand"},
    )


def counter_plan() -> Plan:
    """cache[past : past + seq] = x, y = x + 1 … a state of 16 elements written in place."""
    ranges = {"seq": DimRange("seq", 1, 16, (4,)), "past": DimRange("past", 0, 15, (4,))}
    write = elementwise("cast.f32", [access("B0", (SEQ,))], access("B1", (16,), offset=PAST), {"i0": SEQ})
    read = elementwise("cast.f32", [access("B0", (16,))], access("B1", (16,)), {"i0": 16})
    variant = Variant(
        ranges,
        (
            Buffer("x", Role.INPUT, F32, (SEQ,), 0),
            Buffer("cache", Role.STATE, F32, (16,)),
            Buffer("%1", Role.OUTPUT, F32, (16,), 256),
        ),
        (Launch(0, (0, 1)), Launch(1, (1, 2))),
        {"y": 2},
        512,
        512,
    )
    return Plan(
        "counter",
        "cpu",
        ranges,
        (Signature("x", F32, (SEQ,)),),
        (Signature("y", F32, (16,)),),
        (Signature("cache", F32, (16,)),),
        (),
        (
            PlanKernel("k0", "write", write, SCHEDULE, ""),
            PlanKernel("k1", "read", read, SCHEDULE, ""),
        ),
        (variant,),
    )


def run_launches(
    variant: Variant, kernels: list[Kernel], owned: dict[str, Array], dims: Mapping[str, int]
) -> dict[str, Array]:
    """Run a variant on one arena of bytes, filled with ones first; `owned` holds inputs, params, states.

    Returns copies of the outputs.
    """
    arena = np.full(variant.arena, 0xFF, np.uint8)
    arrays = [_array(b, arena, owned, dims) for b in variant.buffers]
    for launch in variant.launches:
        kernel = kernels[launch.kernel]
        given = dict(zip(buffers(kernel), (arrays[n] for n in launch.buffers), strict=True))
        interpret.run(kernel, given, dims)
    return {name: arrays[n].copy() for name, n in variant.outputs.items()}


def _array(b: Buffer, arena: Array, owned: dict[str, Array], dims: Mapping[str, int]) -> Array:
    if not b.role.in_arena:
        return owned[b.name]
    shape = tuple(dim.value(size, dims) for size in b.shape)
    count = int(np.prod(shape, dtype=np.int64))
    view = arena[b.offset : b.offset + count * b.dtype.size].view(b.dtype.storage).reshape(shape)
    if b.role is Role.INPUT:
        view[...] = owned[b.name]
    return view
