"""`lumi repl`: the prompt, or a text of entries from a pipe."""

from __future__ import annotations

import argparse
import sys

from lumi.cli import options as shared
from lumi.cli.output import Outcome, Output, describe


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    shared.add_target(parser, "what entries are computed on")
    shared.add_relaxed(parser)


def execute(options: argparse.Namespace, output: Output) -> Outcome:
    """Converse.  From a pipe the status is 1 when an entry was wrong."""
    from lumi.repl import prompt

    target, relaxed = shared.target(options), shared.relaxed(options, output)
    if sys.stdin.isatty() and not output.as_json:
        prompt.interact(target, relaxed)
        return Outcome()
    answered = prompt.converse(sys.stdin, output.say, output.note, target, relaxed)
    report = [
        {"text": e.text, "results": e.results, **({"error": describe(e.error)} if e.error else {})}
        for e in answered
    ]
    return Outcome({"entries": report}, int(any(e.error for e in answered)))
