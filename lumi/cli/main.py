"""The command line: finds the command, runs it, turns its mistakes into messages and exit statuses.

Exit statuses: 0 done, 1 a mistake in the input or its surroundings, 2 a command line that cannot be
understood, 130 Ctrl-C, also where a plan was written in spite of it.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import traceback
import warnings
from collections.abc import Sequence
from typing import NoReturn

from lumi.cli.output import INTERRUPTED, Outcome, Output, drop_output
from lumi.errors import LumiError

COMMANDS = {
    "compile": "compile a model into a plan file",
    "run": "run a plan on arrays from files",
    "generate": "generate text with a plan of a language model",
    "repl": "evaluate expressions at a prompt",
    "show": "print what a stage of the compiler makes of a model, or what a plan holds",
    "explain": "say how the search came to the kernels of a plan",
    "tune": "search for the kernels of a model ahead of time; list, export or import what was found",
    "derive": "say what the rules bought in a model, and which its plan needs",
    "fmt": "write .lumi sources in the canonical layout",
    "doctor": "say what is usable on this machine and what to install",
}
"""Each command, in the module `lumi.cli.<name>`: its `arguments` adds options, its `execute` runs it."""

USAGE = "usage error"


def run(arguments: Sequence[str]) -> int:
    """Run one command line (without the program's name) and return its exit status."""
    output = Output("--json" in arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *place: output.note(f"warning: {message}")
            return _run(arguments, output)
    except LumiError as error:
        if os.environ.get("LUMI_DEBUG"):
            traceback.print_exc()
        output.fail(error)
        return 2 if error.kind == USAGE else 1
    except MemoryError as error:
        output.fail(LumiError("memory error", f"this machine is out of memory: {error}"))
        return 1
    except KeyboardInterrupt:
        output.fail(LumiError("interrupted", "stopped by Ctrl-C"))
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`lumi show … | head`): nothing is left to be said.
        drop_output()
        return 1


def _run(arguments: Sequence[str], output: Output) -> int:
    parser = _Parser(
        prog="lumi", description="Lumi: a language and a search-based compiler for deep learning."
    )
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    chosen = next((argument for argument in arguments if argument in COMMANDS), None)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
        command.add_argument("--json", action="store_true", help="print one JSON object")
        if name == chosen:
            importlib.import_module(f"lumi.cli.{name}").arguments(command)
    if not arguments:
        output.note(parser.format_help().rstrip())
        return 2
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        commands.choices[options.command].refuse(unknown)
    outcome: Outcome = importlib.import_module(f"lumi.cli.{options.command}").execute(options, output)
    output.finish(outcome.report)
    return outcome.status


class _Parser(argparse.ArgumentParser):
    """Tells a wrong command line as an error like any other."""

    def error(self, message: str) -> NoReturn:
        """Raise it, with what must be given as the hint."""
        needed = [str(a.metavar) for a in self._actions if not a.option_strings]
        raise LumiError(
            USAGE, message, hint=f"usage: {' '.join([self.prog, *needed])} …; see {self.prog} --help"
        )

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Raise for arguments that no option takes, with the nearest option as the hint."""
        options = [name for action in self._actions for name in action.option_strings]
        near = difflib.get_close_matches(unknown[0].partition("=")[0], options, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise LumiError(USAGE, f"unknown argument {unknown[0]}", hint=f"{hint}see {self.prog} --help")


def _version() -> str:
    from importlib.metadata import version

    return f"lumi {version('lumi')}"
