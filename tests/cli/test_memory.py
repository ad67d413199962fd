"""`lumi show --show memory`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lumi.cli import options
from lumi.plan.file import load
from lumi.plan.memory import memory
from tests.cli.conftest import Lumi


def test_a_plan_and_its_model_tell_the_same(lumi: Lumi, model: Path, plan: Path) -> None:
    of_plan = lumi("show", plan, "--show", "memory")
    assert (of_plan.status, of_plan.err) == (0, "")
    assert of_plan.out == lumi("show", model, "--show", "memory", "--search", "none").out


def test_the_report_reads_well(lumi: Lumi, plan: Path, golden: Callable[..., None]) -> None:
    golden(lumi("show", plan, "--show", "memory", "--dim", "rows=3").out)


def test_figures_in_json(lumi: Lumi, plan: Path) -> None:
    found = lumi("show", plan, "--show", "memory", "--dim", "rows=3", "--json").json["memory"]
    want = memory(load(plan), {"rows": 3})
    assert (found["total"], found["weights"], found["states"]) == (want.total, want.weights, want.states)
    (variant,), (wanted,) = found["variants"], want.variants
    assert variant["dims"] == {"rows": 3}
    assert (variant["arena"], variant["peak"], variant["ratio"]) == (wanted.arena, wanted.peak, wanted.ratio)
    assert [b["name"] for b in variant["buffers"]] == [b.name for b in wanted.buffers]
    assert sum(launch["read"] for launch in variant["launches"]) == variant["read"] == wanted.read


def test_a_call_is_asked_for_in_vain(lumi: Lumi, plan: Path) -> None:
    said = lumi("show", plan, "--dim", "rows=3")
    assert said.status == 2
    assert "--dim says at which call --show memory looks" in said.err
    assert "it is 1 … 8" in lumi("show", plan, "--show", "memory", "--dim", "rows=9").err


def test_states_that_are_copied_are_named(lumi: Lumi, tmp_path: Path) -> None:
    path = tmp_path / "swap.lumi"
    path.write_text(
        '(defmodel swap [(x f32 [2])]\n  (let [a (state "a" [2])  b (state "b" [2])  was a]\n'
        "    (set! a b)\n    (set! b was)\n    (outputs :y (+ x a))))\n"
    )
    told = lumi("show", path, "--show", "memory").out
    assert "copies a → %b.new, b → a, %b.new → b" in told


def test_a_limit_is_told_by_what_it_leaves(lumi: Lumi, model: Path, tmp_path: Path) -> None:
    """An input and two outputs take 256 bytes each, the weight its 16."""
    target = tmp_path / "scale.lumiplan"
    assert lumi("compile", model, "-o", target, "--memory", "2kB").status == 0
    told = lumi("explain", target).out
    assert (
        "of 2 kB the model holds 784 B at its largest dims; a region's temporaries may take 1.22 kB" in told
    )
    said = lumi("compile", model, "-o", target, "--memory", "784")
    assert said.status == 1
    assert said.err.splitlines()[-2].startswith("memory error: scale holds 784 bytes at its largest dims")


@pytest.mark.parametrize(
    ("text", "size"), [("80GB", 80 * 10**9), ("1.5GiB", 3 << 29), ("512Mi", 512 << 20), ("1000", 1000)]
)
def test_sizes_are_read_with_their_units(text: str, size: int) -> None:
    assert options.size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1", "0", "1e9", "8 GB", "8PB", "8giB"])
def test_what_is_no_size_is_refused(lumi: Lumi, model: Path, text: str) -> None:
    said = lumi("compile", model, "-o", "x", f"--memory={text}")
    assert said.status == 2
    assert "is no size: write 80GB, 16GiB or 1000000" in said.err
