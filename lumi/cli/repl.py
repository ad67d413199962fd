"""`lumi repl`: the prompt, or a text of entries from a pipe."""

from __future__ import annotations

import argparse
import sys

from lumi.cli.output import Outcome, Output, describe


def arguments(parser: argparse.ArgumentParser) -> None:
    """There are no options beyond `--json`."""


def execute(options: argparse.Namespace, output: Output) -> Outcome:
    """Converse.  From a pipe the status is 1 when an entry was wrong."""
    from lumi.repl import prompt

    if sys.stdin.isatty() and not output.as_json:
        prompt.interact()
        return Outcome()
    answered = prompt.converse(sys.stdin, output.say, output.note)
    report = [
        {"text": e.text, "results": e.results, **({"error": describe(e.error)} if e.error else {})}
        for e in answered
    ]
    return Outcome({"entries": report}, int(any(e.error for e in answered)))
