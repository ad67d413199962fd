"""What works without a GPU: plans for one, and messages that say what is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lumi import paths
from lumi.backends.cuda import gpu
from lumi.backends.cuda.backend import CudaBackend
from lumi.backends.cuda.schedule import DEFAULT
from lumi.compiler import Options, compile_plan
from lumi.dtype import F32
from lumi.errors import LumiError, Source
from lumi.plan.file import load, save
from lumi.runtime.device import open_device
from tests.backends.cpu.kernels import elementwise, reduction


def test_plan_for_the_gpu_is_made_without_one(tmp_path: Path) -> None:
    path = paths.data("models") / "mlp.lumi"
    plan = compile_plan(Source(path.name, path.read_text()), Options(target="cuda"))
    assert plan.target == "cuda"
    assert all("__global__" in k.source for k in plan.kernels)
    save(plan, tmp_path / "mlp.lumiplan")
    assert load(tmp_path / "mlp.lumiplan") == plan


def test_unknown_target_lists_the_known() -> None:
    path = paths.data("models") / "mlp.lumi"
    with pytest.raises(LumiError) as told:
        compile_plan(Source(path.name, path.read_text()), Options(target="gpu"))
    assert told.value.hint == "targets: cpu, cuda"


def test_without_pycuda_the_device_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycuda.driver", None)
    gpu._opened.cache_clear()
    with pytest.raises(LumiError, match="PyCUDA cannot be used") as told:
        open_device("cuda")
    gpu._opened.cache_clear()
    assert told.value.hint == "pip install -e '.[cuda]' in Lumi's checkout, or use --target cpu"


def test_default_schedule_stands_first() -> None:
    backend = CudaBackend()
    for kernel in (elementwise("add", F32, F32, 2), reduction("sum", F32, 12)):
        every = backend.schedules(kernel)
        assert every[0] == DEFAULT == backend.default(kernel).schedule
        assert len(set(every)) == len(every)


def test_rows_that_share_an_operand_are_estimated_faster() -> None:
    backend, kernel = CudaBackend(), reduction("sum", F32, 12)
    dims = {"m": 4096, "n": 4096}
    costs = {s: backend.cost(kernel, s, dims).seconds for s in backend.schedules(kernel)}
    shared = [c for s, c in costs.items() if dict(s.options).get("rows", 1) > 1]
    assert max(shared) < costs[DEFAULT]
