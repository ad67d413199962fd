"""Plans with launches in which kernels take turns: they are checked, kept in files, shown, and run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lumi.backends.cpu.device import CpuDevice, NumpyExecutable
from lumi.backends.targets import retarget
from lumi.dtype import F32
from lumi.errors import LumiError, Source
from lumi.llir.kernel import KernelGraph, Schedule, Step
from lumi.llir.parse import parse_graph
from lumi.llir.text import show_graph
from lumi.plan.check import check
from lumi.plan.file import load, save
from lumi.plan.plan import Buffer, Launch, Plan, Role, Signature, Variant
from lumi.plan.text import show
from lumi.runtime.session import Session
from tests.plan.samples import SEQ, access, add_plan, elementwise

AXES = {"i0": SEQ}
C = Schedule("c")


def chained(*steps: Step) -> Plan:
    """A plan of one launch in which steps take turns on x, y and z, which has y and z as outputs."""
    plan = add_plan()
    (variant,), (known, _) = plan.variants, plan.kernels
    first, *others = steps
    kernel = replace(
        known, kernel=first.kernel, schedule=first.schedule, beside=first.beside, then=tuple(others)
    )
    buffers = (
        Buffer("x", Role.INPUT, F32, (SEQ,), 0),
        Buffer("%0", Role.OUTPUT, F32, (SEQ,), 512),
        Buffer("%1", Role.OUTPUT, F32, (SEQ,), 1024),
    )
    numbers = {"B0": 0, "B1": 1, "B2": 2}
    launch = Launch(0, tuple(numbers[b] for b in kernel.step.buffers))
    made = Variant(variant.dims, buffers, (launch,), {"y": 1, "z": 2}, 1536, 1536)
    return replace(
        plan,
        inputs=(Signature("x", F32, (SEQ,)),),
        outputs=(Signature("y", F32, (SEQ,)), Signature("z", F32, (SEQ,))),
        bindings=(),
        kernels=(kernel,),
        variants=(made,),
    )


def turn(op: str, a: str, b: str, target: str) -> Step:
    sources = [access(a, (SEQ,)), access(b, (SEQ,))]
    return Step(elementwise(op, sources, access(target, (SEQ,)), AXES), C)


SUM, PRODUCT = turn("add", "B0", "B0", "B1"), turn("mul", "B1", "B0", "B2")


def test_turn_reads_what_the_one_before_has_written() -> None:
    assert check(chained(SUM, PRODUCT)) == ((),)
    with pytest.raises(LumiError, match="launch 0 reads %0 before anything wrote it"):
        check(chained(PRODUCT, SUM))


def test_kernels_of_one_turn_still_stay_apart() -> None:
    broken = replace(SUM, beside=(PRODUCT.kernel,))
    with pytest.raises(LumiError, match="kernels that run together in k0 share B1"):
        check(chained(turn("mul", "B0", "B0", "B2"), broken))


def test_turns_have_no_turns() -> None:
    with pytest.raises(LumiError, match="what comes in turn in k0 has turns of its own"):
        check(chained(SUM, replace(PRODUCT, then=(SUM,))))


def test_file_and_text_keep_turns(tmp_path: Path) -> None:
    plan, path = chained(SUM, PRODUCT), tmp_path / "chained.lumiplan"
    save(plan, path)
    assert load(path) == plan
    assert '(kernel k0 :scope "add" :template c then c)' in show(plan)


def test_kernels_read_back_from_their_text() -> None:
    step = replace(SUM, beside=(turn("mul", "B0", "B0", "B3").kernel,), then=(PRODUCT, SUM))
    graph = KernelGraph((step, PRODUCT), {})
    assert parse_graph(Source("kernels", show_graph(graph))) == graph


@pytest.mark.parametrize("executor", ["compiled", "numpy"])
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_turns_run_in_order(
    executor: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if executor == "numpy":
        monkeypatch.setattr(CpuDevice, "load", lambda self, plan: NumpyExecutable(plan, self.counters))
    plan = replace(chained(SUM, PRODUCT), target=target)
    session = Session(retarget(plan, "cpu"), {}, device=CpuDevice())
    x = np.arange(7, dtype=np.float32)
    found = session(x=x)
    np.testing.assert_array_equal(found["y"], x + x)
    np.testing.assert_array_equal(found["z"], (x + x) * x)
