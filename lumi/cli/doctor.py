"""`lumi doctor`: what of this machine Lumi can use, and what to install for the rest."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict

from lumi.cli import gpu, host
from lumi.cli.check import Check
from lumi.cli.output import Outcome, Output


def arguments(parser: argparse.ArgumentParser) -> None:
    """There are no options beyond `--json`."""


def execute(options: argparse.Namespace, output: Output) -> Outcome:
    """Check everything; the status is 1 when something is missing that Lumi cannot do without."""
    checks: list[Check] = []
    for check in _checks():
        checks.append(check)
        output.say(_line(check))
    lacking = [check.name for check in checks if check.is_required and not check.works]
    output.say(f"Lumi cannot work without: {', '.join(lacking)}" if lacking else "Lumi can work here.")
    return Outcome({"ok": not lacking, "checks": [asdict(check) for check in checks]}, int(bool(lacking)))


def _checks() -> Iterator[Check]:
    yield from host.packages()
    yield from host.compilers()
    yield host.blas()
    yield host.cache()
    yield from gpu.checks()
    yield gpu.target()


def _line(check: Check) -> str:
    mark = "✓" if check.works else "✗" if check.is_required else "–"
    advice = f"\n  {'':<18}→ {check.advice}" if check.advice else ""
    return f"{mark} {check.name:<18}{check.found}{advice}"
