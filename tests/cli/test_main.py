from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lumi.cli import fmt
from lumi.cli.main import COMMANDS
from lumi.errors import LumiError, Source, Span
from tests.cli.conftest import Lumi


def test_help_lists_every_command_and_imports_no_stage() -> None:
    script = """
import sys
from lumi.cli.main import run
try:
    run(["--help"])
finally:
    print(sorted(sys.modules))
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert all(f"    {name} " in told.stdout for name in COMMANDS)
    assert "lumi.cli.main" in told.stdout
    assert not any(
        f"'{name}'" in told.stdout for name in ("numpy", "lark", "egglog", "rich", "lumi.compiler")
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_a_help(lumi: Lumi, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        lumi(command, "--help")
    assert caught.value.code == 0
    assert "--json" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ("bake",),
        ("fmt",),
        ("compile", "a", "--search", "hard"),
        ("compile", "a", "--set", "layers"),
        ("run", "a", "--input", "x"),
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_a_usage_error(lumi: Lumi, arguments: tuple[str, ...]) -> None:
    said = lumi(*arguments)
    assert said.status == 2
    assert said.out == ""
    assert said.err.startswith("usage error: ")
    assert "usage: lumi" in said.err and "--help" in said.err
    assert len(said.err) < 300


def test_no_command_prints_what_there_is(lumi: Lumi) -> None:
    said = lumi()
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("usage: lumi")
    assert all(f"\n    {name} " in said.err for name in COMMANDS)


def test_an_unknown_option_is_told_with_the_nearest(lumi: Lumi) -> None:
    said = lumi("compile", "a.lumi", "--serch", "none")
    assert said.status == 2
    assert said.err == (
        "usage error: unknown argument --serch\n  = did you mean --search? see lumi compile --help\n"
    )


def test_a_wrong_command_line_is_an_object_when_asked_for(lumi: Lumi) -> None:
    said = lumi("fmt", "--json")
    assert said.status == 2
    assert said.json["error"]["kind"] == "usage error"


def fails(error: BaseException) -> Callable[..., Any]:
    def execute(*arguments: object) -> None:
        raise error

    return execute


def test_an_error_is_rendered_without_a_traceback(lumi: Lumi, monkeypatch: pytest.MonkeyPatch) -> None:
    error = LumiError("shape error", "x is wrong", Span(Source("m.lumi", "(f x)"), 3, 4), hint="mend it")
    monkeypatch.setattr(fmt, "execute", fails(error))
    said = lumi("fmt", "m.lumi")
    assert (said.status, said.out) == (1, "")
    assert said.err == "m.lumi:1:4: shape error: x is wrong\n1 | (f x)\n       ^\n  = mend it\n"


def test_an_error_is_an_object_when_asked_for(lumi: Lumi, monkeypatch: pytest.MonkeyPatch) -> None:
    error = LumiError("shape error", "x is wrong", Span(Source("m.lumi", "(f x)"), 3, 4), hint="mend it")
    monkeypatch.setattr(fmt, "execute", fails(error))
    said = lumi("fmt", "m.lumi", "--json")
    assert (said.status, said.err) == (1, "")
    text = said.json["error"].pop("text")
    assert text.startswith("m.lumi:1:4: shape error")
    assert said.json["error"] | {"text": text} == {
        "kind": "shape error",
        "message": "x is wrong",
        "hint": "mend it",
        "file": "m.lumi",
        "line": 1,
        "column": 4,
        "text": text,
    }


def test_ctrl_c_exits_with_130(lumi: Lumi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fmt, "execute", fails(KeyboardInterrupt()))
    assert lumi("fmt", "m.lumi").status == 130
    said = lumi("fmt", "m.lumi", "--json")
    assert (said.status, said.json["error"]["kind"]) == (130, "interrupted")


def test_a_reader_that_goes_away_is_no_error(model: Path) -> None:
    """`lumi show … | true`: nobody is left to read the result."""
    read, write = os.pipe()
    os.close(read)
    told = subprocess.run(
        [sys.executable, "-m", "lumi", "show", str(model)],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert told.returncode == 1
    assert "Traceback" not in told.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_output_that_cannot_be_written_is_explained(model: Path, options: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        told = subprocess.run(
            [sys.executable, "-m", "lumi", "show", str(model), *options],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert told.returncode == 1
    assert "Traceback" not in told.stderr and "Exception ignored" not in told.stderr
    assert options or "file error: standard output cannot be written" in told.stderr


def test_lumi_debug_shows_where_an_error_comes_from(lumi: Lumi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fmt, "execute", fails(LumiError("shape error", "x is wrong")))
    monkeypatch.setenv("LUMI_DEBUG", "1")
    assert "Traceback" in lumi("fmt", "m.lumi").err


def test_plans_run_without_the_compiler(plan: Path, speaker: tuple[Path, Path]) -> None:
    """`run` and `generate` where lark, egglog, rich and prompt-toolkit are not installed."""
    blocked = (
        "import sys\nfor name in ('lark', 'egglog', 'rich', 'prompt_toolkit'): sys.modules[name] = None\n"
    )
    script = blocked + "from lumi.cli.main import run\nsys.exit(run(sys.argv[1:]))"
    runs = [
        ("run", str(plan), "--input", "x=[[1, 2, 3, 4]]", "--init", "random", "--json"),
        (
            "generate",
            str(speaker[0]),
            "--weights",
            str(speaker[1]),
            "--tokens",
            "2 4",
            "--max-tokens",
            "2",
            "--json",
        ),
    ]
    for arguments in runs:
        told = subprocess.run(
            [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False
        )
        assert told.returncode == 0, told.stderr + told.stdout
        assert json.loads(told.stdout)
