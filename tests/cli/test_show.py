from __future__ import annotations

import re
from pathlib import Path

import pytest

from lumi.cli.compiling import STAGES
from lumi.errors import Source
from lumi.hlir import text as hlir
from lumi.plan import text as plans
from lumi.plan.file import load
from lumi.syntax.reader import read
from tests.cli.conftest import Lumi


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_prints_as_forms(lumi: Lumi, model: Path, stage: str) -> None:
    said = lumi("show", model, "--show", stage, "--search", "none")
    assert (said.status, said.err) == (0, "")
    assert read(Source("shown", said.out))


def test_hlir_is_the_default_and_reads_back(lumi: Lumi, model: Path) -> None:
    said = lumi("show", model)
    assert hlir.show(hlir.parse(Source("shown", said.out))).strip() == said.out.strip()


def test_several_stages_in_json(lumi: Lumi, model: Path) -> None:
    said = lumi("show", model, "--show", "plan", "--show", "fields", "--search", "none", "--json")
    assert said.json["file"] == str(model)
    shown = said.json["show"]
    assert list(shown) == ["plan", "fields"]
    assert shown["plan"].startswith("(plan scale")
    assert shown["fields"].startswith("(region")


def test_until_names_the_last_stage_shown(lumi: Lumi, model: Path) -> None:
    assert lumi("show", model, "--until", "forms").out == (
        "(defdim rows :min 1 :max 8 :hint [4])\n(defmodel scale [(x f32 [rows 4]) :by 2.0])\n"
    )


def test_every_variant_is_marked(lumi: Lumi, tmp_path: Path) -> None:
    path = tmp_path / "double.lumi"
    path.write_text("(defdim n :min 1 :max 8 :hint [1 4])\n\n(defmodel double [(x f32 [n])]\n  (+ x x))\n")
    assert lumi("show", path, "--show", "forms").out.startswith("(defdim n :min 1 :max 8 :hint [1 4])\n")
    for stage in ("hlir", "fields", "egraph"):
        heads = [x for x in lumi("show", path, "--show", stage).out.splitlines() if x.startswith(";;;")]
        assert [re.sub(r"double: \d e-nodes; ", "", head) for head in heads] == [";;; n = 1", ";;; n 1…8"]
    plan = tmp_path / "double.lumiplan"
    lumi("compile", path, "-o", plan, "--search", "none")
    heads = [x for x in lumi("show", plan, "--show", "kernels").out.splitlines() if x.startswith(";;;")]
    assert heads == [";;; k0_double: c; n = 1", ";;; k1_double: c; n 1…8"]
    said = lumi("show", path, "--show", "kernels", "--search", "none").out
    assert said == lumi("show", plan, "--show", "kernels").out


def test_source_is_the_code_of_the_kernels(lumi: Lumi, model: Path, plan: Path) -> None:
    kernels = load(plan).kernels
    of_plan = lumi("show", plan, "--show", "source").out
    assert all(f"// {k.name}\n{k.source.strip()}" in of_plan for k in kernels)
    assert lumi("show", model, "--show", "source", "--search", "none").out == of_plan


def test_a_plan_shows_itself(lumi: Lumi, plan: Path) -> None:
    assert lumi("show", plan).out == plans.show(load(plan))
    kernels = lumi("show", plan, "--show", "kernels").out
    assert kernels.count("(kernel") == len(load(plan).kernels)


def test_a_plan_has_no_graph(lumi: Lumi, plan: Path) -> None:
    said = lumi("show", plan, "--show", "hlir")
    assert said.status == 1
    assert said.err == "plan error: a plan holds no hlir\n  = it has plan, kernels, source, memory\n"


def test_a_wrong_program_is_explained(lumi: Lumi, tmp_path: Path) -> None:
    path = tmp_path / "wrong.lumi"
    path.write_text("(defmodel m [(x f32 [2])]\n  (+ x y))\n")
    said = lumi("show", path, "--json")
    assert said.status == 1
    error = said.json["error"]
    assert (error["kind"], error["file"], error["line"], error["column"]) == ("name error", str(path), 2, 8)
    assert error["message"] == "unknown name `y`"
