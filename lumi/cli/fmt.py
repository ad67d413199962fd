"""`lumi fmt`: canonical layout of source files."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from lumi.cli.options import read_source
from lumi.cli.output import Outcome, Output
from lumi.errors import LumiError

_SUFFIX = ".lumi"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="a .lumi file, or a folder of them"
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit with 1 when a file would change"
    )


def execute(options: argparse.Namespace, output: Output) -> Outcome:
    """Write each file in canonical layout, or only say which are not."""
    from lumi.syntax.formatter import format_text

    changed: list[str] = []
    files, mistakes = 0, list[LumiError]()
    for path in _files(options.paths):
        files += 1
        try:
            source = read_source(path)
            formatted = format_text(source)
            if formatted != source.text:
                changed.append(str(path))
                if not options.check:
                    _write(path, formatted)
        except LumiError as error:
            mistakes.append(error)
    if not files:
        output.note(f"there is no {_SUFFIX} file in {', '.join(map(str, options.paths))}")
    verb = "would be formatted" if options.check else "formatted"
    for name in changed:
        output.say(f"{name} {verb}")
    if mistakes:
        *others, last = mistakes
        for mistake in others:
            output.note(mistake.render())
        raise last
    return Outcome({"files": files, "changed": changed}, int(options.check and bool(changed)))


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(path.rglob(f"*{_SUFFIX}"))
        else:
            yield path


def _write(path: Path, text: str) -> None:
    """Replace the file in one step, so that an interruption leaves the old or the new text."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(path.stat().st_mode)
        Path(name).replace(path)
    except OSError as error:
        raise LumiError("file error", f"{path}: {error.strerror}") from None
