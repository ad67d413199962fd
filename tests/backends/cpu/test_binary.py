"""Plans that carry compiled kernels: run where they are trusted and fit, never otherwise."""

from __future__ import annotations

import functools
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lumi import paths
from lumi.backends.cpu import binary
from lumi.backends.cpu.device import CpuDevice
from lumi.backends.targets import compile_binary
from lumi.compiler import Options, compile_plan
from lumi.errors import LumiError, Source
from lumi.plan.file import load, save
from lumi.plan.plan import Binary, Plan
from lumi.runtime.session import Session
from lumi.search.settings import Mode, Settings

X = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)


@functools.cache
def plan() -> Plan:
    text = (paths.data("models") / "mlp.lumi").read_text()
    options = Options(embed=True, settings=Settings(mode=Mode.NONE))
    return compile_plan(Source("mlp.lumi", text), options)


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without a compiler, once the plan is made."""
    plan()
    monkeypatch.setattr("lumi.backends.cpu.device.find_compiler", lambda: None)
    monkeypatch.setattr("lumi.backends.cpu.compile.find_compiler", lambda: None)


def test_a_trusted_binary_runs_without_a_compiler(tmp_path: Path, no_compiler: None) -> None:
    whole = plan()
    save(whole, tmp_path / "p.lumiplan")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Session(load(tmp_path / "p.lumiplan"), device=CpuDevice(trusted=True), init="random")(x=X)
    again = Session(whole, init="random", device=CpuDevice(trusted=True))(x=X)
    np.testing.assert_array_equal(found["out"], again["out"])


def test_the_binary_computes_what_compiled_kernels_do() -> None:
    carried = Session(plan(), init="random", device=CpuDevice(trusted=True))(x=X)
    compiled = Session(plan(), init="random")(x=X)
    np.testing.assert_array_equal(carried["out"], compiled["out"])


def test_a_binary_is_not_run_unless_trusted(no_compiler: None) -> None:
    broken = replace(plan(), binaries=(Binary(binary.tag(), b"not a library"),))
    with pytest.warns(UserWarning, match="or trust the plan's binary"):
        found = Session(broken, init="random")(x=X)
    carried = Session(plan(), init="random", device=CpuDevice(trusted=True))(x=X)
    np.testing.assert_allclose(found["out"], carried["out"], rtol=0, atol=1e-6)


def test_a_binary_of_another_machine_is_left_alone(no_compiler: None) -> None:
    other = replace(plan(), binaries=(replace(plan().binaries[0], tag="cpu-other"),))
    assert binary.find(other) is None
    with pytest.warns(UserWarning, match="no C compiler was found") as caught:
        Session(other, init="random", device=CpuDevice(trusted=True))
    assert "trust" not in str(caught[0].message)


@pytest.mark.parametrize("content", [b"", b"not a library"])
def test_a_binary_that_is_none_is_an_error(content: bytes) -> None:
    broken = replace(plan(), binaries=(Binary(binary.tag(), content),))
    with pytest.raises(LumiError, match="cannot be opened"):
        Session(broken, init="random", device=CpuDevice(trusted=True))


def test_a_binary_without_the_plans_kernels_is_an_error() -> None:
    kernels = plan().kernels
    more = replace(plan(), kernels=(*kernels, replace(kernels[0], name="one_more")))
    with pytest.raises(LumiError, match="cannot be opened"):
        Session(more, init="random", device=CpuDevice(trusted=True))


def test_a_plan_for_another_target_carries_none() -> None:

    with pytest.raises(LumiError, match="plans for cuda carry no binaries"):
        compile_binary(replace(plan(), target="cuda"))
