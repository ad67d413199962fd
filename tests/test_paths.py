"""Hints about paths where nothing is."""

from __future__ import annotations

from pathlib import Path

from lumi.paths import beside


def test_hint_names_what_is_there(tmp_path: Path) -> None:
    for name in ("mlp.lumi", "attention.lumi", "mlp.txt"):
        (tmp_path / name).touch()
    assert beside(tmp_path / "mpl.lumi") == f"did you mean {tmp_path / 'mlp.lumi'}?"
    assert beside(tmp_path / "x.lumi") == f"{tmp_path} has attention.lumi, mlp.lumi"
    assert beside(tmp_path / "x.gguf") == ""
    assert beside(tmp_path / "none" / "x.lumi") == f"there is no folder {tmp_path / 'none'}"
