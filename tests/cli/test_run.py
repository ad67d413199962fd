from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lumi.plan.file import load
from tests.cli.conftest import Lumi

X = np.arange(8, dtype=np.float32).reshape(2, 4)


@pytest.fixture
def x(tmp_path: Path) -> Path:
    path = tmp_path / "x.npy"
    np.save(path, X)
    return path


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    from safetensors.numpy import save_file

    path = tmp_path / "weights.safetensors"
    save_file({"weight": np.array([1, 2, 3, 4], np.float32)}, path)
    return path


def test_outputs_are_written_to_files(lumi: Lumi, plan: Path, x: Path, weights: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "out"
    said = lumi("run", plan, "--input", f"x={x}", "--weights", weights, "--output-dir", folder, "--json")
    assert said.status == 0
    outputs = said.json["outputs"]
    assert outputs == {
        "y": {"dtype": "f32", "shape": [2, 4], "file": str(folder / "y.npy")},
        "total": {"dtype": "f32", "shape": [], "file": str(folder / "total.npy")},
    }
    np.testing.assert_array_equal(np.load(folder / "y.npy"), X * 2 * [1, 2, 3, 4])
    assert np.load(folder / "total.npy") == X.sum()
    assert said.json["seconds"] > 0
    counters = said.json["counters"]
    assert (counters["launches"], counters["bytes_in"]) == (1, X.nbytes)
    assert counters["bytes_out"] == X.nbytes + 4


def test_few_elements_are_in_the_report(lumi: Lumi, plan: Path, weights: Path) -> None:
    said = lumi("run", plan, "--input", "x=[[1, 2, 3, 4]]", "--weights", weights, "--json")
    assert said.json["outputs"]["y"] == {"dtype": "f32", "shape": [1, 4], "values": [[2.0, 8.0, 18.0, 32.0]]}


def test_arrays_are_printed_for_people(lumi: Lumi, plan: Path, weights: Path) -> None:
    said = lumi("run", plan, "--input", "x=[[1, 2, 3, 4]]", "--weights", weights)
    assert said.out == "y: f32 [1 4]\n[[ 2.  8. 18. 32.]]\ntotal: f32 []\n10.0\n"


def test_an_infinity_is_a_string_in_json(lumi: Lumi, plan: Path, weights: Path) -> None:
    said = lumi("run", plan, "--input", "x=[[3e38, 3e38, 0, 0]]", "--weights", weights, "--json")
    assert said.json["outputs"]["total"]["values"] == "inf"


def test_made_up_weights_depend_on_the_seed(lumi: Lumi, plan: Path, x: Path) -> None:
    runs = [
        lumi("run", plan, "--input", f"x={x}", "--init", "random", "--seed", seed, "--json").json["outputs"][
            "y"
        ]
        for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1] != runs[2]


WRONG = {
    "no plan": (["none.lumiplan"], "plan error: there is no plan none.lumiplan"),
    "no weights": (["PLAN", "--input", "x=[[1, 2, 3, 4]]"], "weights error: scale needs weights: weight"),
    "no input": (["PLAN", "--init", "random"], "input error: input x is not given"),
    "unknown input": (["PLAN", "--init", "random", "--input", "z=1"], "input error: no input is called z"),
    "missing array": (["PLAN", "--input", "x=none.npy"], "input error: input x: there is no file none.npy"),
    "damaged array": (["PLAN", "--input", "x=bad.npy"], "input error: input x: bad.npy is no .npy file"),
    "pickled array": (
        ["PLAN", "--input", "x=objects.npy"],
        "input error: input x: objects.npy is no .npy file",
    ),
    "damaged numbers": (["PLAN", "--input", "x=[1, 2"], "input error: input x is no JSON"),
    "numbers nested too deeply": (
        ["PLAN", "--input", f"x={'[' * 9000}"],
        "input error: input x is no JSON: its brackets are nested too deeply",
    ),
    "input given twice": (
        ["PLAN", "--input", "x=1", "--input", "x=2"],
        "input error: input x is given twice",
    ),
    "several arrays": (
        ["PLAN", "--input", "x=two.npz"],
        "input error: input x: two.npz is an archive of arrays",
    ),
    "wrong rank": (["PLAN", "--init", "random", "--input", "x=[1, 2]"], "input error: input x is f32 [2]"),
    "wrong shape": (["PLAN", "--init", "random", "--input", "x=[[1, 2]]"], "shape error: x is f32 [1 2]"),
    "dim out of range": (["PLAN", "--init", "random", "--input", "x=nine.npy"], "dim error: rows is 9"),
    "unknown dim": (
        ["PLAN", "--init", "random", "--input", "x=x.npy", "--dim", "row=2"],
        "no dim is called row",
    ),
    "dim that is no integer": (
        ["PLAN", "--init", "random", "--input", "x=x.npy", "--dim", "rows=2.5"],
        "rows is '2.5'",
    ),
    "damaged plan": (["bad.npy"], "plan error: bad.npy is no plan, or is damaged"),
    "file in the way": (
        ["PLAN", "--init", "random", "--input", "x=x.npy", "--output-dir", "x.npy"],
        "file error: cannot write",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_named(
    lumi: Lumi, plan: Path, x: Path, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.npy").write_bytes(b"\x93NUMPY no")
    np.save("nine.npy", np.zeros((9, 4), np.float32))
    np.savez("two.npz", a=np.zeros(1), b=np.zeros(1))
    np.save("objects.npy", np.array([{}]), allow_pickle=True)
    arguments, message = WRONG[case]
    said = lumi("run", *[str(plan) if a == "PLAN" else a for a in arguments])
    assert (said.status, said.out) == (1, "")
    assert message in said.err
    assert "Traceback" not in said.err


def test_a_plan_for_another_target_is_moved(lumi: Lumi, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "cuda.lumiplan"
    assert lumi("compile", model, "-o", path, "--search", "none", "--target", "cuda").status == 0
    assert load(path).target == "cuda"
    arguments = ["run", path, "--init", "random", "--input", "x=[[1, 2, 3, 4]]", "--json"]
    said = lumi(*arguments, "--target", "cpu")
    assert said.status == 0
    assert said.json["outputs"]["y"]["shape"] == [1, 4]
    refused = lumi(*arguments, "--target", "abacus").json["error"]
    assert refused["message"] == "Lumi does not compile for 'abacus'"


def test_a_plan_whose_target_is_missing_says_so(
    lumi: Lumi, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cuda.lumiplan"
    assert lumi("compile", model, "-o", path, "--search", "none", "--target", "cuda").status == 0
    monkeypatch.setattr("lumi.backends.cuda.driver.missing", lambda: "there is no NVIDIA driver")
    said = lumi("run", path, "--init", "random", "--input", "x=[[1, 2, 3, 4]]")
    assert said.status == 1
    assert said.err == (
        f"device error: {path} is a plan for an NVIDIA GPU, and there is no NVIDIA driver\n"
        "  = --target cpu runs it here, slower than a plan for the CPU; lumi doctor says what a GPU needs\n"
    )


def test_kernels_are_compiled_once(
    lumi: Lumi, plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LUMI_CACHE", str(tmp_path / "cache"))
    call = ("run", plan, "--init", "random", "--input", "x=[[1, 2, 3, 4]]", "--target", "cpu")
    first, again = lumi(*call), lumi(*call)
    assert first.err.startswith("compiling 1 kernel, once\n")
    assert "compiling" not in again.err
