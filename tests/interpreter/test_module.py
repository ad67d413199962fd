"""Files: imports, warnings, what a module offers."""

from __future__ import annotations

from pathlib import Path

import pytest

from lumi.errors import LumiError, Source
from lumi.interpreter.module import Module, load
from lumi.interpreter.trace import trace


def load_file(folder: Path, name: str = "main.lumi", **files: str) -> Module:
    for stem, text in files.items():
        path = folder / f"{stem}.lumi"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return load(Source(str(folder / name), (folder / name).read_text()))


def test_import_is_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "deep.lumi").write_text("(defdim rows :max 4) (defn three [] 3)")
    (tmp_path / "lib" / "parts.lumi").write_text('(import "deep.lumi") (defn scaled [x] (* x (three)))')
    main = '(import "lib/parts.lumi") (defmodel m [(x f32 [rows])] (scaled x))'
    module = load_file(tmp_path, main=main)
    assert list(module.models) == ["m"] and list(module.dims) == ["rows"]
    assert str(trace(module).outputs["out"].type) == "f32 [rows]"


def test_file_imported_twice_is_read_once(tmp_path: Path) -> None:
    module = load_file(
        tmp_path,
        base="(defn f [x] x)",
        left='(import "base.lumi") (defn l [x] (f x))',
        main='(import "left.lumi") (import "base.lumi") (defmodel m [(x f32 [1])] (l (f x)))',
    )
    assert trace(module).outputs


def test_import_of_a_stdlib_file_changes_nothing(tmp_path: Path) -> None:
    module = load_file(
        tmp_path, main='(import "softmax.lumi") (import "stdlib/norm.lumi") (defn f [x] (softmax x))'
    )
    assert list(module.scope.names) == ["f"]


def test_conflicting_imports_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(LumiError, match=r"`f` of other\.lumi is defined here already"):
        load_file(tmp_path, other="(defn f [x] x)", main='(defn f [x] 1) (import "other.lumi")')


def test_dims_of_two_ranges_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(LumiError, match=r"n of other\.lumi has another range here"):
        load_file(tmp_path, other="(defdim n :max 4)", main='(defdim n :max 8) (import "other.lumi")')


def test_functions_see_the_names_of_their_own_file(tmp_path: Path) -> None:
    module = load_file(
        tmp_path,
        other="(def k 2) (defn f [x] (* x k))",
        main='(import "other.lumi") (defmodel m [(x f32 [1])] (let [k 100] (f x)))',
    )
    constants = [n.op.value for n in trace(module).nodes if hasattr(n.op, "value")]
    assert constants == [2.0]


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("(defn f [mean] 1)", "mean"),
        ("(defn f [x :softmax nil] 1)", "softmax"),
        ("(defn f [x] (let [[exp y] x] 1))", "exp"),
        ("(defn f [x] (fold [y x] [range x] 1))", "range"),
        ("(defn f [x] (for [shape x] 1))", "shape"),
        ("(defn f [x] (fn [y & rest] 1))", "rest"),
        ("(defn matmul [a b] 1)", "matmul"),
        ("(defmodel m [(take f32 [2])] 1)", "take"),
        ("(def f32 3)", "f32"),
    ],
)
def test_hiding_the_library_is_a_warning(text: str, hidden: str) -> None:
    warnings = load(Source("test.lumi", text)).warnings
    assert [w.message.split(" hides ")[0] for w in warnings] == [f"`{hidden}`"]
    assert warnings[0].span is not None and warnings[0].span.text.lstrip(":") == hidden


def test_warnings_of_imported_files_are_kept_once(tmp_path: Path) -> None:
    module = load_file(
        tmp_path,
        base="(defn f [mean] 1)",
        left='(import "base.lumi")',
        main='(import "left.lumi") (import "base.lumi") (defn g [exp] 1)',
    )
    assert [w.message for w in module.warnings] == [
        "`mean` hides stdlib/reduce.lumi",
        "`exp` hides stdlib/math.lumi",
    ]


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_unreadable_import_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "other.lumi"
    if content is None:
        path.symlink_to(tmp_path / "gone.lumi")
    else:
        path.write_bytes(content)
    with pytest.raises(LumiError, match=r"import error: .*other\.lumi"):
        load_file(tmp_path, main='(import "other.lumi")')


def test_plain_names_are_no_warning() -> None:
    text = "(defn f [x & others :axis -1] (let [y x] (fold [a y] [i others] '(let [mean 1] 2))))"
    assert load(Source("test.lumi", text)).warnings == ()


def test_own_definition_is_used_inside_the_file() -> None:
    module = load(Source("test.lumi", "(defn softmax [x] (* x 2)) (defmodel m [(x f32 [1])] (softmax x))"))
    assert len(trace(module).nodes) == 4
