from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from lumi.backends.cuda import schedule
from lumi.backends.cuda.tf32 import is_tf32
from lumi.cli.compiling import STAGES
from lumi.compiler import Stage
from lumi.egraph.explore import Limits
from lumi.egraph.saturate import saturate
from lumi.plan.file import load
from tests.cli.conftest import Lumi


def test_a_plan_is_written_and_reported(lumi: Lumi, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "made.lumiplan"
    said = lumi("compile", model, "-o", path, "--search", "none", "--json")
    assert said.status == 0
    report = said.json
    assert report["plan"] == str(path)
    keys = {
        "kernels",
        "regions",
        "enodes",
        "saturate_s",
        "search_s",
        "total_s",
        "trials",
        "launches",
        "variants",
    }
    assert keys <= set(report)
    assert report["kernels"] == len(load(path).kernels)
    assert report["trials"] == 0
    assert list(report["seconds"]) == list(STAGES)
    assert report["total_s"] == pytest.approx(sum(report["seconds"].values()))
    assert report["total_s"] == pytest.approx(sum(report["spent"].values()))
    assert report["spent"]["measure"] == report["spent"]["compile"] == 0
    assert re.search(r", \d+\.\d s( \(([a-z]+ \d+\.\d(, )?)+\))?$", said.err.splitlines()[-1])


def test_what_trials_took_is_told_apart(lumi: Lumi, model: Path, tmp_path: Path) -> None:
    options = ("--search", "measure", "--search-trials", "2", "--json")
    spent = lumi("compile", model, "-o", tmp_path / "made.lumiplan", *options).json["spent"]
    assert min(spent["compile"], spent["check"], spent["measure"], spent["model"]) > 0
    assert list(spent)[-1] == "emit"


def test_the_plan_is_called_like_the_file(
    lumi: Lumi, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = lumi("compile", model, "--search", "none")
    assert (said.status, said.out) == (0, "")
    assert said.err.splitlines()[-1].startswith("scale.lumiplan: ")
    assert load(tmp_path / "scale.lumiplan").name == "scale"


def test_stages_of_the_command_line_are_those_of_the_compiler() -> None:
    assert tuple(stage.value for stage in Stage) == STAGES


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_until_stops_after_a_stage(lumi: Lumi, model: Path, stage: str, tmp_path: Path) -> None:
    path = tmp_path / "none.lumiplan"
    said = lumi("compile", model, "--until", stage, "--show", stage, "-o", path, "--search", "none", "--json")
    assert said.status == 0
    assert said.json["plan"] is None
    assert list(said.json["seconds"])[-1] == stage
    assert said.json["show"][stage].strip()
    assert not path.exists()


def test_until_prints_the_stage_and_no_figures_of_later_ones(lumi: Lumi, model: Path) -> None:
    report = lumi("compile", model, "--until", "fields", "--json").json
    assert report["show"] == {"fields": lumi("compile", model, "--until", "fields").out}
    assert report["show"]["fields"].startswith('(region "scale"')
    assert (report["variants"], report["regions"]) == (1, 1)
    assert not {"enodes", "kernels", "trials", "search_s", "saturate_s"} & set(report)


def test_a_saturation_that_was_stopped_is_told(
    lumi: Lumi, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumi.compiler.saturate", partial(saturate, limits=Limits(rounds=1)))
    said = lumi("compile", model, "-o", tmp_path / "p", "--search", "none", "--json")
    (rule,) = set(said.json["unfinished"].values())
    assert list(said.json["unfinished"]) == ["scale"]
    assert re.search(
        rf"warning: saturation of scale was stopped at \d+ e-nodes; the busiest rule is {rule}", said.err
    )
    assert "stopped by a limit; matches: " + rule in lumi("explain", tmp_path / "p").out


def test_a_stage_that_is_not_reached_cannot_be_shown(lumi: Lumi, model: Path) -> None:
    said = lumi("compile", model, "--until", "hlir", "--show", "plan")
    assert said.status == 2
    assert said.err.startswith(
        "usage error: nothing is there to show of plan: the compilation ends after hlir"
    )


def test_settings_and_files_configure_the_model(lumi: Lumi, model: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"by": 7.0}))
    by_file = lumi("compile", model, "--until", "hlir", "--show", "hlir", "--config", config)
    assert "(const f32 7.0)" in by_file.out
    over_it = lumi(
        "compile", model, "--until", "hlir", "--show", "hlir", "--config", config, "--set", "by=1e-05"
    )
    assert "(const f32 1e-05)" in over_it.out


def test_bind_fixes_a_dim(lumi: Lumi, model: Path) -> None:
    said = lumi("compile", model, "--until", "hlir", "--show", "hlir", "--bind", "rows=3")
    assert '(input "x" f32 [3 4])' in said.out


def test_equal_seeds_give_equal_plans(lumi: Lumi, model: Path, tmp_path: Path) -> None:
    paths = [tmp_path / "a.lumiplan", tmp_path / "b.lumiplan"]
    for path in paths:
        assert lumi("compile", model, "-o", path, "--seed", "5").status == 0
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("option", ["--exact", "--fast-math", "--int8"])
def test_families_of_rules_can_be_chosen(lumi: Lumi, model: Path, option: str, tmp_path: Path) -> None:
    assert lumi("compile", model, "-o", tmp_path / "p", option, "--search", "none").status == 0


WRONG = {
    "missing file": (["none.lumi"], "file error: none.lumi: No such file or directory"),
    "unknown keyword": (["MODEL", "--set", "bye=1"], "config error: scale has no keyword bye"),
    "wrong setting": (["MODEL", "--set", "by=two"], "config error: by = 'two' is no float"),
    "unknown model": (["MODEL", "--model", "skale"], "has no model skale"),
    "unknown dim": (["MODEL", "--bind", "row=2"], "has no dim row"),
    "dim out of range": (["MODEL", "--bind", "rows=9"], "dim error: rows = 9 is outside 1 … 8"),
    "dim that is no integer": (["MODEL", "--bind", "rows=x"], "dim error: rows is 'x'"),
    "missing weights": (
        ["MODEL", "--weights", "none.gguf"],
        "weights error: none.gguf: there is no such file or folder",
    ),
    "missing configuration": (
        ["MODEL", "--config", "none.json"],
        "file error: none.json: No such file or directory",
    ),
    "axis to split": (
        ["MODEL", "--split", "q=3"],
        "search error: no region reduces an axis q\n  = axes to split: ",
    ),
    "unknown target": (["MODEL", "--target", "abacus"], "device error: Lumi does not compile for 'abacus'"),
    "no folder to write to": (
        ["MODEL", "--search", "none", "-o", "none/p.lumiplan"],
        "plan error: cannot write none/p.lumiplan: there is no folder none",
    ),
    "folder to write to": (["MODEL", "-o", "."], "plan error: cannot write .: it is a folder"),
}


def test_a_plan_that_cannot_be_written_is_refused_before_the_search(
    lumi: Lumi, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(*arguments: object, **options: object) -> None:
        raise AssertionError("the search has begun")

    monkeypatch.setattr("lumi.compiler.search", search)
    said = lumi("compile", model, "-o", tmp_path / "none" / "p")
    assert said.status == 1 and "cannot write" in said.err


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_named(
    lumi: Lumi, model: Path, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments, message = WRONG[case]
    said = lumi("compile", *[str(model) if a == "MODEL" else a for a in arguments])
    assert (said.status, said.out) == (1, "")
    assert message in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--exact", "--fast-math"),
        ("--exact", "--int8"),
        ("--packed", "--dequantised"),
        ("--search-time", "soon"),
        ("--search-trials", "-1"),
        ("--search-trials", "0", "--search", "measure"),
        ("--search-time", "0s", "--search", "measure"),
        ("--search-trials", "3"),
        ("--search-time", "3s", "--search", "none"),
        ("--packed",),
        ("--dequantised",),
        ("--set", "by=8", "--set", "by=9"),
        ("--bind", "rows=8", "--bind", "rows=8"),
    ],
    ids=" ".join,
)
def test_options_that_cannot_be_are_usage_errors(lumi: Lumi, model: Path, arguments: tuple[str, ...]) -> None:
    assert lumi("compile", model, *arguments).status == 2


def test_a_warning_goes_to_standard_error(lumi: Lumi, tmp_path: Path) -> None:
    path = tmp_path / "warned.lumi"
    path.write_text("(defmodel m [(x f32 [2])]\n  (let [mean 1.0]\n    (* x mean)))\n")
    said = lumi("compile", path, "--until", "hlir", "--json")
    assert said.status == 0
    assert "`mean` hides stdlib/reduce.lumi" in said.err
    assert said.json["plan"] is None


def test_matrices_are_packed_without_a_checkpoint(lumi: Lumi, tmp_path: Path) -> None:
    path, plan = tmp_path / "up.lumi", tmp_path / "up.lumiplan"
    path.write_text('(defmodel up [(x f32 [1 64])] (linear (linear x 64 :name "a") 64 :name "b"))\n')
    arguments = "--pack", "q8_0", "--pack", "b.*=q4_0"
    assert lumi("compile", path, "-o", plan, "--search", "none", *arguments).status == 0
    formats = {(b.key, b.plane): b.format for b in load(plan).bindings}
    names = "d", "qs"
    assert formats == {(f"{k}.weight", n): f for k, f in (("a", "q8_0"), ("b", "q4_0")) for n in names}


PRODUCT = """\
(defmodel layer [(x f32 [2048 1024])]
  "A product of matrices."
  (outputs :y (matmul x (param "weight" [1024 4096]))))
"""


@pytest.fixture
def product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A product of f32, where there is a library that has TF32."""
    monkeypatch.setattr(schedule, "find_library", lambda: "libcublasLt.so.13")
    path = tmp_path / "layer.lumi"
    path.write_text(PRODUCT)
    return path


def test_f32_is_f32_unless_tf32_is_allowed(lumi: Lumi, product: Path, tmp_path: Path) -> None:
    for options in ([], ["--relaxed", "tf32"]):
        path = tmp_path / "layer.lumiplan"
        said = lumi("compile", product, "-o", path, "--target", "cuda", "--search-evaluations", 40, *options)
        assert (said.status, "note" in said.err) == (0, False)
        (kernel,) = load(path).kernels
        told = lumi("explain", path)
        assert is_tf32(kernel.schedule) == bool(options)
        assert (f"\ntf32 allowed, taken by {kernel.name}\n" in told.out) == bool(options)
        assert ("tf32" in told.out) == bool(options)
        assert lumi("explain", path, "--json").json["relaxed"] == options[1:]


@pytest.mark.parametrize("options", [[], ["--exact"]], ids=str)
def test_model_may_ask_for_tf32(lumi: Lumi, product: Path, tmp_path: Path, options: list[str]) -> None:
    """It is what the model means, so `--exact` keeps it; then nothing that rounds in its own way takes it."""
    path = tmp_path / "layer.lumiplan"
    product.write_text(product.read_text().replace("4096]))", "4096]) :precision tf32)"))
    said = lumi("compile", product, "-o", path, "--target", "cuda", "--search-evaluations", 40, *options)
    assert said.status == 0
    (kernel,) = load(path).kernels
    assert is_tf32(kernel.schedule) and (kernel.schedule.template == "mma") >= bool(options)
    told = lumi("explain", path)
    assert f"\ntf32 asked for, taken by {kernel.name}\n" in told.out
    assert lumi("explain", path, "--json").json["relaxed"] == []


def test_exact_and_relaxed_exclude_each_other(lumi: Lumi, product: Path) -> None:
    said = lumi("compile", product, "--target", "cuda", "--exact", "--relaxed", "tf32")
    assert said.status == 2
    assert "--exact keeps every rounding, and --relaxed tf32 gives up those of f32 products" in said.err
    assert "leave one of the two out" in said.err


def test_relaxed_precisions_are_named(lumi: Lumi, product: Path) -> None:
    said = lumi("compile", product, "--relaxed", "bf16")
    assert said.status == 2
    assert "'bf16'" in said.err and "tf32" in said.err


def test_the_cpu_has_no_tf32_and_says_so(lumi: Lumi, model: Path, tmp_path: Path) -> None:
    paths, start = [], ("compile", model, "--target", "cpu", "--search", "none", "-o")
    for options in ([], ["--relaxed", "tf32"]):
        paths.append(tmp_path / f"{len(options)}.lumiplan")
        said = lumi(*start, paths[-1], *options)
        assert said.status == 0
        assert ("--relaxed tf32 changes nothing on cpu" in said.err) == bool(options)
    plain, relaxed = (load(path) for path in paths)
    assert plain.kernels == relaxed.kernels
    assert "tf32 allowed, taken by no kernel" in lumi("explain", paths[1]).out
