"""Plans whose launches run several kernels: they are checked, kept in files, shown, and run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lumi.backends.cpu.device import CpuDevice, NumpyExecutable
from lumi.dtype import F32
from lumi.errors import LumiError
from lumi.plan.check import check, lifetimes
from lumi.plan.file import load, save
from lumi.plan.plan import Buffer, Launch, Plan, Role, Signature, Variant
from lumi.plan.text import show
from lumi.runtime.session import Session
from tests.plan.samples import SEQ, access, add_plan, elementwise

AXES = {"i0": SEQ}


def both() -> Plan:
    """y = x + w and z = x · x by one launch; 1 ≤ seq ≤ 100."""
    plan = add_plan()
    (variant,), (first, _) = plan.variants, plan.kernels
    second = elementwise("mul", [access("B0", (SEQ,)), access("B0", (SEQ,))], access("B3", (SEQ,)), AXES)
    first = replace(
        first,
        kernel=elementwise("add", [access("B0", (SEQ,)), access("B1", (SEQ,))], access("B2", (SEQ,)), AXES),
        beside=(second,),
    )
    buffers = (
        Buffer("x", Role.INPUT, F32, (SEQ,), 0),
        Buffer("v", Role.INPUT, F32, (SEQ,), 512),
        Buffer("%0", Role.OUTPUT, F32, (SEQ,), 1024),
        Buffer("%1", Role.OUTPUT, F32, (SEQ,), 1536),
    )
    made = Variant(variant.dims, buffers, (Launch(0, (0, 1, 2, 3)),), {"y": 2, "z": 3}, 2048, 2048)
    return replace(
        plan,
        inputs=(Signature("x", F32, (SEQ,)), Signature("v", F32, (SEQ,))),
        outputs=(Signature("y", F32, (SEQ,)), Signature("z", F32, (SEQ,))),
        bindings=(),
        kernels=(first,),
        variants=(made,),
    )


def test_launch_takes_the_buffers_of_all_kernels_once() -> None:
    assert both().kernels[0].step.buffers == ("B0", "B1", "B2", "B3")
    assert both().kernels[0].step.dims == ("seq", "seq")
    assert check(both()) == ((),)


def test_file_keeps_kernels_that_run_together(tmp_path: Path) -> None:
    path = tmp_path / "both.lumiplan"
    save(both(), path)
    assert load(path) == both()


def test_text_tells_how_many_kernels_a_launch_runs() -> None:
    text = show(both())
    assert '(kernel k0 :scope "add" :template c :together 2)' in text
    assert '(k0 "x" "v" -> %0 %1) ; 0' in text


def test_what_a_launch_writes_lies_apart_from_all_that_it_reads() -> None:
    plan = both()
    (variant,) = plan.variants
    assert lifetimes(variant) == {0: (-1, 0), 1: (-1, 0), 2: (0, 1), 3: (0, 1)}
    over = replace(variant.buffers[3], offset=512)
    broken = replace(plan, variants=(replace(variant, buffers=(*variant.buffers[:3], over)),))
    with pytest.raises(LumiError, match="%1 on top of a buffer that is still needed"):
        check(broken)


@pytest.mark.parametrize("buffer", ["B2", "B0"])
def test_kernels_that_need_each_other_do_not_run_together(buffer: str) -> None:
    """The second kernel reads what the first one writes, or writes what that reads."""
    plan = both()
    (kernel,) = plan.kernels
    source, target = ("B2", "B3") if buffer == "B2" else ("B1", "B0")
    other = elementwise("mul", [access(source, (SEQ,))] * 2, access(target, (SEQ,)), AXES)
    with pytest.raises(LumiError, match=f"kernels that run together in k0 share {buffer}"):
        check(replace(plan, kernels=(replace(kernel, beside=(other,)),)))


def test_kernel_beside_another_must_be_well_formed() -> None:
    plan = both()
    (kernel,) = plan.kernels
    broken = replace(kernel.beside[0], axes={})
    with pytest.raises(LumiError, match="kernel k0 has no axis i0"):
        check(replace(plan, kernels=(replace(kernel, beside=(broken,)),)))


@pytest.mark.parametrize("executor", ["compiled", "numpy"])
def test_launch_runs_all_its_kernels(executor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if executor == "numpy":
        monkeypatch.setattr(CpuDevice, "load", lambda self, plan: NumpyExecutable(plan, self.counters))
    path = tmp_path / "both.lumiplan"
    save(both(), path)
    session = Session(load(path), {}, device=CpuDevice())
    x, v = np.arange(7, dtype=np.float32), np.full(7, 0.5, np.float32)
    found = session(x=x, v=v)
    np.testing.assert_array_equal(found["y"], x + v)
    np.testing.assert_array_equal(found["z"], x * x)
