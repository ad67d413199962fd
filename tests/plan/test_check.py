"""Every fault that a plan can have is found before anything is launched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lumi.dim import DimRange
from lumi.dtype import F32, F64
from lumi.errors import LumiError
from lumi.plan.check import check, lifetimes, size_in_bytes
from lumi.plan.plan import Buffer, Launch, Plan, Role
from tests.plan.samples import PAST, SEQ, access, add_plan, counter_plan, elementwise


def change(plan: Plan, **fields: object) -> Plan:
    return replace(plan, variants=(replace(plan.variants[0], **fields),))


def buffer(plan: Plan, number: int, **fields: object) -> Plan:
    buffers = list(plan.variants[0].buffers)
    buffers[number] = replace(buffers[number], **fields)
    return change(plan, buffers=tuple(buffers))


def kernel(plan: Plan, number: int, **fields: object) -> Plan:
    kernels = list(plan.kernels)
    kernels[number] = replace(kernels[number], kernel=replace(kernels[number].kernel, **fields))
    return replace(plan, kernels=tuple(kernels))


def test_a_sound_plan_passes_without_requirements() -> None:
    assert check(add_plan()) == ((),)


FAULTS: dict[str, tuple[Callable[[Plan], Plan], str]] = {
    "kernel number": (lambda p: change(p, launches=(Launch(7, (0, 1, 2)),)), "kernel 7 does not exist"),
    "negative number": (lambda p: change(p, launches=(Launch(-1, (0, 1, 2)),)), "kernel -1 does not exist"),
    "buffer number": (lambda p: change(p, launches=(Launch(0, (0, 1, 9)),)), "buffer 9 does not exist"),
    "buffer count": (lambda p: change(p, launches=(Launch(0, (0, 1)),)), "gives 2 buffers to a kernel of 3"),
    "one buffer twice": (lambda p: change(p, launches=(Launch(0, (0, 0, 2)),)), "to a kernel of 3"),
    "offset beyond": (lambda p: buffer(p, 3, offset=1 << 40), "%1 at 1099511627776"),
    "offset below": (lambda p: buffer(p, 3, offset=-256), "%1 at -256"),
    "offset crooked": (lambda p: buffer(p, 3, offset=1000), "%1 at 1000"),
    "overlap": (lambda p: buffer(p, 3, offset=256), "on top of a buffer that is still needed"),
    "arena small": (lambda p: change(p, arena=1024), "of 1024 bytes"),
    "arena huge": (lambda p: change(p, arena=1 << 60), "an arena of"),
    "dtype": (lambda p: buffer(p, 2, dtype=F64), "takes %0 as f32"),
    "shape": (lambda p: buffer(p, 2, shape=(SEQ + 1,)), "takes %0 as f32"),
    "negative size": (lambda p: buffer(p, 2, shape=(SEQ - 5,)), "takes %0"),
    "no output": (lambda p: change(p, outputs={}), "returns"),
    "output number": (lambda p: change(p, outputs={"y": 9}), "buffer 9 does not exist"),
    "unwritten": (lambda p: change(p, launches=p.variants[0].launches[1:]), "before anything wrote it"),
    "output unwritten": (lambda p: change(p, launches=p.variants[0].launches[:1]), "never writes output y"),
    "dims": (lambda p: change(p, dims={}), "is about dims"),
    "wide dims": (lambda p: change(p, dims={"seq": DimRange("seq", 0, 999, (1,))}), "range 0 … 999"),
    "backward dims": (lambda p: replace(p, dims={"seq": DimRange("seq", 9, 1, (1,))}), "range 9 … 1"),
    "no variant": (lambda p: replace(p, variants=()), "no variant"),
    "signature": (lambda p: replace(p, inputs=()), "takes input x"),
    "binding": (lambda p: replace(p, bindings=()), "takes param w"),
    "two kernels of one name": (lambda p: replace(p, kernels=p.kernels[:1] * 2), "share the name k0"),
    "unknown axis": (lambda p: kernel(p, 0, axes={"j": SEQ}), "no axis i0"),
    "empty tile": (lambda p: kernel(p, 0, tiles={"i0": 0}), "empty tile"),
    "long axis": (lambda p: kernel(p, 0, axes={"i0": SEQ + 1}), "leaves x along axis 0"),
    "unknown dim": (lambda p: kernel(p, 0, axes={"i0": PAST}), "needs dim past"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(name: str) -> None:
    fault, message = FAULTS[name]
    with pytest.raises(LumiError, match=message) as caught:
        check(fault(add_plan()))
    assert caught.value.kind == "plan error"


def test_a_kernel_that_writes_an_input_is_refused() -> None:
    plan = add_plan()
    over = elementwise("add", [access("T0", (SEQ,)), access("B0", (SEQ,))], access("B0", (SEQ,)), {"i0": SEQ})
    bad = replace(plan.kernels[1], kernel=over)
    launches = (plan.variants[0].launches[0], Launch(1, (2, 0)))
    with pytest.raises(LumiError, match="writes input x"):
        check(change(replace(plan, kernels=(plan.kernels[0], bad)), launches=launches))


def test_what_ranges_do_not_prove_is_required_of_calls() -> None:
    ((need,),) = check(counter_plan())
    assert (need.buffer, need.axis, need.size) == ("cache", 0, 16)
    assert need.gap == 16 - PAST - SEQ


def test_a_size_covers_the_whole_range_and_is_aligned() -> None:
    ranges = {"seq": DimRange("seq", 1, 100, (1,))}
    assert size_in_bytes(Buffer("b", Role.TEMPORARY, F32, (SEQ,)), ranges) == 512
    assert size_in_bytes(Buffer("b", Role.TEMPORARY, F32, ()), ranges) == 256
    assert size_in_bytes(Buffer("b", Role.TEMPORARY, F32, (0,)), ranges) == 256


def test_an_unbounded_or_negative_size_is_refused() -> None:
    with pytest.raises(LumiError, match="no bound"):
        size_in_bytes(Buffer("b", Role.TEMPORARY, F32, (SEQ,)), {})
    with pytest.raises(LumiError, match="negative size"):
        size_in_bytes(Buffer("b", Role.TEMPORARY, F32, (SEQ - 2,)), {"seq": DimRange("seq", 1, 9, (1,))})


def test_inputs_live_from_the_start_and_outputs_to_the_end() -> None:
    assert lifetimes(add_plan().variants[0]) == {0: (-1, 1), 2: (0, 1), 3: (1, 2)}
