from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lumi.plan.file import load, save
from tests.cli.conftest import Lumi


def test_every_kernel_has_its_story(lumi: Lumi, plan: Path) -> None:
    said = lumi("explain", plan)
    assert (said.status, said.err) == (0, "")
    assert said.out.startswith("scale for cpu: ")
    for kernel in load(plan).kernels:
        assert f"  {kernel.name}: " in said.out
    assert "× its floor" in said.out
    assert "search none" in said.out


def test_json_holds_the_regions(lumi: Lumi, plan: Path) -> None:
    report = lumi("explain", plan, "--json").json
    assert (report["plan"], report["target"]) == ("scale", "cpu")
    assert sum(len(region["kernels"]) for region in report["regions"]) == len(load(plan).kernels)


def test_regions_can_be_chosen(lumi: Lumi, plan: Path) -> None:
    said = lumi("explain", plan, "--region", "no such scope")
    assert said.out.endswith("no region was searched\n")


def test_a_damaged_explanation_is_an_error(lumi: Lumi, plan: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.lumiplan"
    for explanation in ({"regions": [{"region": "x"}]}, {"regions": 3}, {"regions": [[]]}):
        save(replace(load(plan), explanation=explanation), damaged)
        said = lumi("explain", damaged)
        assert said.status == 1
        assert "its explanation is damaged" in said.err


def test_a_model_is_no_plan(lumi: Lumi, model: Path) -> None:
    said = lumi("explain", model)
    assert said.status == 1
    assert "is no plan, or is damaged" in said.err
