from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lumi import derivation
from lumi.backends.cuda.machine import MACHINE
from lumi.cli.main import run
from lumi.plan.file import load, save
from tests.cli.conftest import Lumi
from tests.egraph.folders import with_change


def test_every_kernel_has_its_story(lumi: Lumi, plan: Path) -> None:
    said = lumi("explain", plan)
    assert (said.status, said.err) == (0, "")
    assert said.out.startswith("scale for cpu: ")
    for kernel in load(plan).kernels:
        assert re.search(rf"^  {kernel.name} +1  {kernel.schedule.template} ", said.out, re.MULTILINE)
    assert "search none" in said.out
    assert re.search(r"  \d+ e-nodes, saturated; matches: [a-z-]+ \d+, ", said.out)


def test_it_says_what_measuring_took_and_what_results_were_compared_with(
    lumi: Lumi, model: Path, tmp_path: Path
) -> None:
    made = tmp_path / "measured.lumiplan"
    assert lumi("compile", model, "-o", made, "--search", "measure", "--search-trials", "2").status == 0
    said = lumi("explain", made).out
    assert re.search(r"^  compiling .*, checking .*, timing .*; compared with numpy$", said, re.MULTILINE)
    (region,) = lumi("explain", made, "--json").json["regions"]
    assert region["effort"]["time"] > 0


def test_columns_are_aligned(lumi: Lumi, plan: Path) -> None:
    lines = lumi("explain", plan).out.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("  kernel "))
    end = lines[start].index("bytes") + len("bytes")
    rows = [line for line in lines[start + 1 :] if line.startswith("  k")]
    assert len(rows) == len(load(plan).kernels)
    assert all(row[end - 1] == "B" for row in rows)


VARIANTS = """
(defdim n :min 1 :max 4096 :hint [1 64 1024])
(defmodel twice [(x f32 [n 8])] (* x 2))
"""


def test_boxes_of_variants_and_what_crossing_them_costs(lumi: Lumi, tmp_path: Path) -> None:
    path, made = tmp_path / "twice.lumi", tmp_path / "twice.lumiplan"
    path.write_text(VARIANTS)
    assert lumi("compile", path, "-o", made, "--search", "none").status == 0
    said = lumi("explain", made).out
    time = r"\d[\d.]* .?s"
    for line in (
        r"^variants: a call runs the first that is made for it; one arena of 262 kB serves all$",
        rf"^  n = 1 +512 B +n 1 +{time} by the model +{time} \([+-]\d+ %\)$",
        rf"^  n 1…256 +16.4 kB +n 64 +{time} by the model +{time} \(\+0 %\)$",
        rf"^ +n 256 \(its end\) +{time} by the model +{time} \(\+0 %\)$",
        rf"^  n 1…4096 +262 kB +n 1024 +{time} by the model$",
    ):
        assert re.search(line, said, re.MULTILINE), f"{line}\n{said}"
    assert "no variant for" not in said
    assert [b["box"] for b in lumi("explain", made, "--json").json["variants"]] == [
        "n = 1",
        "n 1…256",
        "n 1…4096",
    ]


def test_variants_that_would_gain_nothing_are_told(lumi: Lumi, tmp_path: Path) -> None:
    path, made = tmp_path / "twice.lumi", tmp_path / "twice.lumiplan"
    path.write_text(VARIANTS)
    assert lumi("compile", path, "-o", made, "--search-evaluations", "40").status == 0
    said = lumi("explain", made).out
    start = r"^  no variant for n 1…256: it would gain too little over the one for n 1…4096: at n 64 "
    assert re.search(start + r"\d.* by the model, in the next one \d.* \(\+0 %\)$", said, re.MULTILINE), said


def test_one_variant_has_no_table(lumi: Lumi, plan: Path) -> None:
    assert "variants:" not in lumi("explain", plan).out


def test_json_names_the_rules_that_fired(lumi: Lumi, plan: Path) -> None:
    for region in lumi("explain", plan, "--json").json["regions"]:
        counts = list(region["rules"].values())
        assert counts == sorted(counts, reverse=True) and counts[-1] > 0
        assert "tile" in region["rules"]


def test_json_holds_the_regions(lumi: Lumi, plan: Path) -> None:
    report = lumi("explain", plan, "--json").json
    assert (report["plan"], report["target"]) == ("scale", "cpu")
    assert sum(len(region["kernels"]) for region in report["regions"]) == len(load(plan).kernels)


def test_regions_can_be_chosen(lumi: Lumi, plan: Path) -> None:
    assert lumi("explain", plan, "--region", "cal").out == lumi("explain", plan).out
    said = lumi("explain", plan, "--region", "no such scope")
    assert (said.status, said.out) == (1, "")
    assert said.err == "region error: no region has no such scope in its scope\n  = there are scale\n"


def test_times_of_another_gpu_are_said_to_be(lumi: Lumi, model: Path, plan: Path, tmp_path: Path) -> None:
    made = tmp_path / "gpu.lumiplan"
    assert lumi("compile", model, "-o", made, "--search", "none", "--target", "cuda").status == 0
    line = f"\ntimes by the model are those of an {MACHINE.name}, whatever device there is\n"
    assert line in lumi("explain", made).out
    assert MACHINE.name not in lumi("explain", plan).out


def test_the_cpu_rounds_where_the_model_asks_for_it(lumi: Lumi, tmp_path: Path) -> None:
    path, made = tmp_path / "rounded.lumi", tmp_path / "rounded.lumiplan"
    path.write_text("(defmodel rounded [(x f32 [4 8]) (w f32 [8 4])]\n  (matmul x w :precision tf32))\n")
    assert lumi("compile", path, "-o", made, "--search", "none", "--target", "cpu").status == 0
    (kernel,) = load(made).kernels
    assert f"\ntf32 asked for, taken by {kernel.name}\n" in lumi("explain", made).out


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
    assert said.err == f"plan error: {model} is a source, no plan\n  = lumi compile {model} makes one\n"


WEIGHTS = """\
(defmodel weights [(x f32 [512 64]) (w f32 [64 2048])]
  "The softmax of a product."
  (softmax (matmul x w)))
"""


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan of two kernels for a GPU."""
    path = tmp_path_factory.mktemp("weights") / "weights.lumi"
    path.write_text(WEIGHTS)
    made = path.with_suffix(".lumiplan")
    command = ["compile", str(path), "-o", str(made), "--target", "cuda", "--search-evaluations", "60"]
    assert run([*command, "--json"]) == 0
    return made


def test_how_a_kernel_came_about(lumi: Lumi, weights: Path, golden: Callable[..., None]) -> None:
    name = load(weights).kernels[-1].name
    said = lumi("explain", weights, "--kernel", name)
    assert said.status == 0
    times = re.findall(r"([\d.,]+) ×  by the model", said.out)
    assert times and [float(t) for t in times] == sorted(float(t) for t in times)
    golden(re.sub(r" +[\d.,]+( [µm]?s| ×)", r" N\1", said.out), ".txt")  # without what prices decide


def test_a_kernel_follows_by_what_its_own_terms_need(lumi: Lumi, weights: Path) -> None:
    first = load(weights).kernels[0].name
    report = lumi("explain", weights, "--kernel", first, "--json").json
    assert (report["plan"], report["kernel"]) == ("weights", first)
    names = [need["name"] for need in report["derivation"]["needs"]]
    assert "tile" in names and not [n for n in names if "online" in n]
    assert [rung["group"] for rung in report["derivation"]["ladder"]]
    assert all(rival["seconds"] > 0 for rival in report["rivals"])


def test_one_kernel_is_named_or_there_is_nothing_to_search(lumi: Lumi, plan: Path) -> None:
    said = lumi("explain", plan, "--search", "measure")
    assert said.status == 2 and "add --kernel NAME" in said.err
    said = lumi("explain", plan, "--kernel", "k9_none")
    assert (said.status, said.out) == (1, "")
    assert said.err.startswith(
        "kernel error: no region of scale has a kernel k9_none\n  = there are k0_scale"
    )


def test_the_ladder_of_a_kernel_can_be_measured(lumi: Lumi, plan: Path) -> None:
    name = load(plan).kernels[0].name
    report = lumi("explain", plan, "--kernel", name, "--search", "measure", "--json").json["derivation"]
    assert report["best"]["measured"] > 0
    assert all(rung["best"] is None or rung["best"]["measured"] > 0 for rung in report["ladder"])


def test_rules_that_changed_since_are_an_error(
    lumi: Lumi, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = with_change(tmp_path, '"tile"', '"tiled"')
    fewer = replace(book, rules=tuple(r for r in book.rules if r.name != "tiled"))
    monkeypatch.setattr(derivation, "book", lambda: fewer)
    said = lumi("explain", weights, "--kernel", load(weights).kernels[0].name)
    assert said.status == 1
    assert "do not follow by the rules there are now" in said.err


def test_origins_are_not_told(lumi: Lumi, plan: Path) -> None:
    assert all("origin" not in region for region in lumi("explain", plan, "--json").json["regions"])
    assert all("origin" in region for region in load(plan).explanation["regions"])
