"""`lumi show --html`: one page that holds everything it shows."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest

from lumi.cli.html.page import Section, listing, page
from lumi.cli.html.table import table
from lumi.plan import text as plans
from lumi.plan.file import load, save
from lumi.plan.memory import memory
from tests.cli.conftest import Lumi
from tests.cli.html.document import Element, parse
from tests.plan.samples import counter_plan


def shown(lumi: Lumi, path: Path, *options: str) -> Element:
    target = path.with_suffix(".html")
    said = lumi("show", path, "--html", target, *options)
    assert (said.status, said.out) == (0, "")
    return parse(target.read_text())


def sections(document: Element) -> dict[str, Element]:
    return {s.attributes["id"]: s for s in document.all("section")}


def test_a_model_has_its_stages_and_a_plan_what_it_holds(lumi: Lumi, model: Path, plan: Path) -> None:
    of_model = shown(lumi, model, "--search", "none")
    assert list(sections(of_model)) == ["memory", "hlir", "kernels", "plan"]
    assert [a.attributes["href"] for a in of_model.all("a")] == ["#memory", "#hlir", "#kernels", "#plan"]
    of_plan = shown(lumi, plan)
    assert list(sections(of_plan)) == ["memory", "kernels", "plan"]
    (pre,) = sections(of_plan)["plan"].all("pre")
    assert pre.text == plans.show(load(plan))
    (hlir,) = sections(of_model)["hlir"].all("pre")
    assert hlir.text == lumi("show", model, "--show", "hlir").out


def test_the_stages_asked_for_stand_in_their_order(lumi: Lumi, model: Path) -> None:
    document = shown(lumi, model, "--show", "fields", "--show", "source", "--search", "none")
    assert list(sections(document)) == ["fields", "source"]


def test_nothing_outside_of_the_page_is_named(lumi: Lumi, model: Path) -> None:
    document = shown(lumi, model, "--search", "none")
    for element in document.every():
        for name, value in element.attributes.items():
            if name in ("href", "src", "xlink:href", "data", "action", "srcset"):
                assert value.startswith("#")
            assert "//" not in value
        assert element.tag not in ("link", "script", "img", "iframe", "object")
    (style,) = document.all("style")
    assert not re.search(r"url\(|@import|//", style.text)


def test_the_table_has_a_row_for_every_kernel(lumi: Lumi, plan: Path) -> None:
    kernels = sections(shown(lumi, plan))["kernels"]
    (rows,) = kernels.all("table")
    head, *lines = rows.all("tr")
    names = [cell.text for cell in head.all("th")]
    assert names[:6] == ["kernel", "scope", "schedule", "launches", "read", "written"]
    found = load(plan)
    assert [row.all("td")[0].text for row in lines] == [k.name for k in found.kernels]
    first = dict(zip(names, (cell.text for cell in lines[0].all("td")), strict=True))
    (variant,) = memory(found).variants
    assert first["launches"] == "1"
    assert first["read"] == f"{variant.launches[0].read} B"
    assert first["model"] and first["floor"]
    assert first["measured"] == ""


def test_the_call_that_is_looked_at_may_be_chosen(lumi: Lumi, plan: Path) -> None:
    (report, *_) = sections(shown(lumi, plan, "--dim", "rows=3"))["memory"].all("pre")
    assert report.text.strip() == lumi("show", plan, "--show", "memory", "--dim", "rows=3").out.strip()


def test_a_plan_that_was_made_by_hand_has_no_times(lumi: Lumi, tmp_path: Path) -> None:
    path = tmp_path / "counter.lumiplan"
    save(counter_plan(), path)
    (rows,) = sections(shown(lumi, path))["kernels"].all("table")
    assert all(cell.text == "" for row in rows.all("tr")[1:] for cell in row.all("td")[6:])


def test_a_damaged_explanation_is_told(lumi: Lumi, plan: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    path = tmp_path / "damaged.lumiplan"
    save(replace(load(plan), explanation={"regions": [{"names": ["k0"]}]}), path)
    said = lumi("show", path, "--html", tmp_path / "p.html")
    assert (said.status, said.err.splitlines()[0]) == (1, "plan error: its explanation is damaged: 'kernels'")
    assert not (tmp_path / "p.html").exists()


def test_a_page_that_cannot_be_written_is_an_error(lumi: Lumi, plan: Path, tmp_path: Path) -> None:
    said = lumi("show", plan, "--html", tmp_path / "none" / "p.html")
    assert said.status == 1
    assert "cannot be written: No such file or directory" in said.err


def test_json_names_the_page(lumi: Lumi, plan: Path, tmp_path: Path) -> None:
    target = tmp_path / "p.html"
    said = lumi("show", plan, "--html", target, "--json")
    assert json.loads(said.out) == {"file": str(plan), "html": str(target)}
    assert zipfile.is_zipfile(plan) and target.stat().st_size > 1000


@pytest.mark.parametrize("text", ["a < b & c", '"quoted"', "</pre><script>x</script>", "√ → …"])
def test_text_is_text(text: str) -> None:
    document = parse(page(text, [Section("one", text, (listing(text, text), table([text], [[text]], (0,))))]))
    assert document.all("title")[0].text == text
    assert [e.text for e in document.all("pre")] == [text]
    assert [e.text for tag in ("summary", "th", "td", "h1", "h2", "a") for e in document.all(tag)] == [
        text
    ] * 6
    assert not document.all("script")
