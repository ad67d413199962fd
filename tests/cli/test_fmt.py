from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Lumi

MESSY, NEAT = "(f   x ;note\n  1)", "(f x  ;note\n   1)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "inner").mkdir()
    (tmp_path / "messy.lumi").write_text(MESSY)
    (tmp_path / "inner" / "neat.lumi").write_text(NEAT)
    (tmp_path / "other.txt").write_text(MESSY)
    return tmp_path


def test_files_are_written_in_canonical_layout(lumi: Lumi, folder: Path) -> None:
    said = lumi("fmt", folder)
    assert said.status == 0
    assert said.out == f"{folder}/messy.lumi formatted\n"
    assert (folder / "messy.lumi").read_text() == NEAT
    assert (folder / "inner" / "neat.lumi").read_text() == NEAT
    assert (folder / "other.txt").read_text() == MESSY
    assert sorted(p.name for p in folder.iterdir()) == ["inner", "messy.lumi", "other.txt"]


def test_permissions_are_kept(lumi: Lumi, folder: Path) -> None:
    (folder / "messy.lumi").chmod(0o640)
    lumi("fmt", folder / "messy.lumi")
    assert stat.S_IMODE((folder / "messy.lumi").stat().st_mode) == 0o640


def test_check_changes_nothing_and_fails(lumi: Lumi, folder: Path) -> None:
    said = lumi("fmt", "--check", folder)
    assert said.status == 1
    assert said.out == f"{folder}/messy.lumi would be formatted\n"
    assert (folder / "messy.lumi").read_text() == MESSY


def test_check_of_neat_files_succeeds(lumi: Lumi, folder: Path) -> None:
    assert lumi("fmt", "--check", folder / "inner").status == 0


def test_json_names_what_changed(lumi: Lumi, folder: Path) -> None:
    said = lumi("fmt", folder, "--json")
    assert said.json == {"files": 2, "changed": [f"{folder}/messy.lumi"]}


def test_a_file_that_does_not_read_is_explained_and_kept(lumi: Lumi, folder: Path) -> None:
    (folder / "messy.lumi").write_text("(f (g x)")
    said = lumi("fmt", folder)
    assert said.status == 1
    assert f"{folder}/messy.lumi:1:1: syntax error: this `(` is never closed" in said.err
    assert (folder / "messy.lumi").read_text() == "(f (g x)"


def test_a_missing_file_is_named(lumi: Lumi, folder: Path) -> None:
    said = lumi("fmt", folder / "none.lumi")
    listed = ", ".join(sorted(path.name for path in folder.glob("*.lumi")))
    assert (said.status, said.err) == (
        1,
        f"file error: {folder}/none.lumi: No such file or directory\n  = {folder} has {listed}\n",
    )


def test_every_mistake_is_told(lumi: Lumi, folder: Path) -> None:
    (folder / "open.lumi").write_text("(defn\n")
    said = lumi("fmt", folder / "open.lumi", folder / "none.lumi", folder / "messy.lumi")
    assert said.status == 1
    assert "this `(` is never closed" in said.err and "none.lumi: No such file" in said.err
    assert said.out == f"{folder}/messy.lumi formatted\n"


def test_a_file_that_is_no_text_is_named(lumi: Lumi, folder: Path) -> None:
    (folder / "messy.lumi").write_bytes(b"(f \xff)")
    said = lumi("fmt", folder)
    assert (said.status, said.err) == (1, f"file error: {folder}/messy.lumi: byte 3 is not UTF-8\n")


def test_a_folder_without_sources_is_told(lumi: Lumi, tmp_path: Path) -> None:
    said = lumi("fmt", tmp_path)
    assert (said.status, said.out, said.err) == (0, "", f"there is no .lumi file in {tmp_path}\n")
