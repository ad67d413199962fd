from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Lumi


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "tuning.sqlite"


def test_a_tuned_model_compiles_without_a_search(
    lumi: Lumi, model: Path, database: Path, tmp_path: Path
) -> None:
    options = ("--search", "model", "--database", database)
    said = lumi("tune", model, *options)
    assert said.status == 0
    assert re.search(r"us    0 trials  scale rows", said.out)
    assert "known  scale rows" in lumi("tune", model, *options).out
    again = lumi("compile", model, "-o", tmp_path / "p.lumiplan", *options)
    assert "known from the tuning database" in again.err
    assert lumi("compile", model, "-o", tmp_path / "p.lumiplan", *options, "--json").json["recalled"] > 0


def test_tuning_measures_unless_told_otherwise(lumi: Lumi, model: Path, database: Path) -> None:
    said = lumi("tune", model, "--database", database, "--search-trials", "1", "--json")
    assert said.json["trials"] > 0
    entries = lumi("tune", "list", "--database", database, "--json").json["entries"]
    assert {entry["mode"] for entry in entries} == {"measure"}


def test_results_are_listed_and_moved(lumi: Lumi, model: Path, database: Path, tmp_path: Path) -> None:
    assert lumi("tune", "list", "--database", database).err == f"{database} holds no results\n"
    lumi("tune", model, "--search", "none", "--database", database)
    said = lumi("tune", "list", "--database", database)
    line = r"\d{4}-\d\d-\d\d \d\d:\d\d +[\d.]+ us  none     searched +[\d.]+ s  scale rows .* on .+\n"
    assert re.fullmatch(f"({line})+", said.out)
    count = said.out.count("\n")
    file, other = tmp_path / "moved.sqlite", tmp_path / "other.sqlite"
    assert lumi("tune", "export", file, "--database", database).err.startswith(f"{count} result")
    assert lumi("tune", "import", file, "--database", other, "--json").json["results"] == count
    assert lumi("tune", "list", "--database", other).out == said.out
    assert "is there already" in lumi("tune", "export", file, "--database", database).err
    assert "is the tuning database itself" in lumi("tune", "import", other, "--database", other).err


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (("export",), 2, "lumi tune export needs a FILE"),
        (("list", "--database", "none"), 2, "name a --database"),
        (("import", "nowhere.sqlite"), 1, "there is no nowhere.sqlite"),
        (("model.lumi", "more"), 2, "unknown argument more"),
        (("list", "more.sqlite"), 2, "unknown argument more.sqlite"),
        (("list", "--database", ""), 2, "--database names no file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_mistakes_are_told(
    lumi: Lumi, database: Path, arguments: tuple[str, ...], status: int, told: str
) -> None:
    given = arguments if "--database" in arguments else (*arguments, "--database", database)
    said = lumi("tune", *given)
    assert said.status == status
    assert told in said.err


def test_trouble_with_the_database_is_a_warning(lumi: Lumi, model: Path, tmp_path: Path) -> None:
    junk = tmp_path / "junk.sqlite"
    junk.write_text("no database " * 100)
    said = lumi("compile", model, "-o", tmp_path / "p.lumiplan", "--search", "none", "--database", junk)
    assert said.status == 0
    assert f"warning: the tuning database {junk} was left out: file is not a database" in said.err
