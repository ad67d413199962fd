"""`lumi tune`: searches for the kernels of a model ahead of time, and the database that keeps them."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lumi.cli import compiling
from lumi.cli.output import Outcome, Output, counted
from lumi.cli.progress import Display
from lumi.errors import LumiError

if TYPE_CHECKING:
    from lumi.search.database import Database

_ACTIONS = "list", "export", "import"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "what", metavar="MODEL|list|export|import", help="a .lumi file to search for; or what to do"
    )
    parser.add_argument(
        "file", type=Path, nargs="?", metavar="FILE", help="the database to export to or to import from"
    )
    compiling.arguments(parser)
    parser.set_defaults(search="measure")


def execute(options: argparse.Namespace, output: Output) -> Outcome:
    """Search, measuring unless another search is asked for; or show or move what is kept."""
    from lumi.search.database import Database

    path = compiling.database(options)
    if path is None:
        raise LumiError("usage error", "lumi tune keeps what it finds", hint="name a --database")
    if options.what not in _ACTIONS:
        return _tune(options, output)
    database = Database(path)
    if options.what == "list":
        _refuse(options.file)
        return _list(database, output)
    if options.file is None:
        raise LumiError("usage error", f"lumi tune {options.what} needs a FILE")
    if options.what == "export":
        count, way = database.export(options.file), "to"
    else:
        count, way = database.take(options.file), "from"
    output.note(f"{counted(count, 'result')} {way} {options.file}; the tuning database is {path}")
    return Outcome({"results": count, "file": str(options.file), "database": str(path)})


def _tune(options: argparse.Namespace, output: Output) -> Outcome:
    _refuse(options.file)
    work = compiling.compiled(Path(options.what), options, output, "kernels", Display(in_lines=True))
    rows = []
    for key, (variant, region) in work.distinct().items():
        story = work.found[key].explanation
        seconds = story.modelled if story.measured is None else story.measured
        known = key in work.recalled
        rows.append(
            {"region": region.scope, "variant": str(variant.box), "seconds": seconds, "recalled": known}
        )
        what = "known" if known else counted(story.trials, "trial")
        output.say(f"{seconds * 1e6:10.1f} us  {what:>10}  {region.scope or '(all)'} {variant.box}".rstrip())
    report: dict[str, Any] = {"regions": rows, **work.counts()}
    return Outcome(report, compiling.tell_cut_short(work, output))


def _refuse(file: Path | None) -> None:
    """Raise `LumiError` for a file where none is asked for."""
    if file is not None:
        hint = "--database FILE names the database; see lumi tune --help"
        raise LumiError("usage error", f"unknown argument {file}", hint=hint)


def _list(database: Database, output: Output) -> Outcome:
    entries = database.entries()
    for entry in entries:
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.made))
        output.say(
            f"{made}  {entry.seconds * 1e6:10.1f} us  {entry.mode:<8} searched {entry.spent:7.1f} s  "
            f"{entry.region}  on {entry.machine}"
        )
    if not entries:
        output.note(f"{database.path} holds no results")
    return Outcome({"database": str(database.path), "entries": [e._asdict() for e in entries]})
