"""`lumi derive`: what the rules bought in each region of a model, and which of them its plan needs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lumi.cli import compiling
from lumi.cli.options import no_region
from lumi.cli.output import Outcome, Output, aligned, counted, duration
from lumi.cli.progress import Display

if TYPE_CHECKING:
    from lumi.derivation import Best, Derivation

_SAME = 1.005
"""How much slower a plan may be that is told to be the same."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a .lumi file")
    parser.add_argument("--region", default="", metavar="TEXT", help="only regions whose scope contains this")
    compiling.arguments(parser)


def execute(options: argparse.Namespace, output: Output) -> Outcome:
    """Print, for every distinct region, the ladder of groups of rules, then the rules that are needed."""
    from lumi.derivation import derivations
    from lumi.llir.json import describe

    found = []
    with Display() as display:
        work = compiling.compiled(options.file, options, output, "kernels", display)
        scopes = [region.scope for _, region in work.distinct().values()]
        if options.region and not any(options.region in scope for scope in scopes):
            raise no_region(options.region, scopes)
        if compiling.tell_cut_short(work, output):
            raise KeyboardInterrupt  # nothing can be told beside a plan that is not the best
        for derivation in derivations(work, options.region):
            found.append(derivation)
    for derivation in found:
        output.say("\n".join(told(derivation)))
    regions: Any = [describe(d) for d in found]
    return Outcome({"file": str(options.file), "target": options.target, "regions": regions})


def told(found: Derivation) -> Iterator[str]:
    """The lines for people."""
    best, scope = found.best, "; ".join([found.region or "(all)", *found.variants])
    yield f"{scope}: {duration(seconds(best))} {how(best)}, {counted(best.kernels, 'kernel')}"
    yield f"  {found.enodes} e-nodes; without a group of rules:"
    yield from (f"    {line}" for line in ladder(found))
    yield f"  its terms follow by {counted(len(found.needs), 'rule')}, which make {found.few} e-nodes:"
    yield from (f"    {line}" for line in chain(found))


def ladder(found: Derivation) -> list[str]:
    """The best plan without each group, beside the best of all."""
    return aligned([[rung.group, *_compared(rung.best, found.best)] for rung in found.ladder], left=(0,))


def chain(found: Derivation) -> list[str]:
    """The rules by which the terms follow from those of the model, in order."""
    needs = [[str(n.round), n.name, n.group, n.doc.partition(". ")[0]] for n in found.needs]
    return aligned([["round", "", "", ""], *needs], left=(1, 2, 3))


def how(best: Best) -> str:
    """Where its seconds come from."""
    return "by the model" if best.measured is None else "measured"


def seconds(best: Best) -> float:
    """Its seconds, measured ones if there are."""
    return best.seconds if best.measured is None else best.measured


def _compared(found: Best | None, best: Best) -> list[str]:
    """A plan beside the best: how much slower it is, and its kernels."""
    if found is None:
        return ["no plan", ""]
    is_measured = found.measured is not None and best.measured is not None
    ratio = seconds(found) / seconds(best) if is_measured else found.seconds / best.seconds
    slower = f"{ratio:.2f} ×" if ratio > _SAME else "the same"
    return [slower, counted(found.kernels, "kernel")]
