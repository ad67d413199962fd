"""Saturate a region's terms under the rules and read the e-graph out.

A round runs the phases (rulesets) one after another, the analyses to their fixpoint.  Between rounds the
size, the number of rounds and the time are checked; on a limit the e-graph so far is returned.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lumi.dim import DimRange
from lumi.dtype import F32, DType
from lumi.egraph import encode, readout, rules
from lumi.egraph.engine import Engine
from lumi.egraph.graph import EGraph, RuleMatches
from lumi.field.region import Region


@dataclass(frozen=True, slots=True)
class Limits:
    """When saturation stops early: tuples in all tables, rounds, seconds."""

    tuples: int = 200_000
    rounds: int = 400
    seconds: float = 20.0


def saturate(
    region: Region,
    *,
    families: Collection[str] = ("exact", "relaxed"),
    splits: Sequence[tuple[str, str]] = (),
    without: Collection[str] = (),
    ranges: Mapping[str, DimRange] | None = None,
    limits: Limits = Limits(),
) -> EGraph:
    """The e-graph of a region under the rules of `families`, less the rules or rulesets `without`.

    `splits` names (axis, chunk axis) pairs that may be split; the chunk axes are in `region.axes`.
    """
    start = time.perf_counter()
    book = rules.book()
    chosen = rules.select(book.rules, families, without)
    coded = encode.encode(region, splits, ranges)
    engine = Engine()
    engine.load(book.declarations)
    engine.load(r.text for r in chosen)
    engine.load(coded.commands)
    matches, saturated = _rounds(engine, book.rulesets, limits)
    tables = readout.read(engine)
    family = {r.name: r.family for r in chosen}
    return EGraph(
        classes=tables.classes,
        roots=tuple(tables.nodes[k] for k in coded.roots),
        free=tables.facts["free"],
        final=tables.facts["final"],
        dtype=_dtypes(tables),
        storage=_storage(tables),
        saturated=saturated,
        seconds=time.perf_counter() - start,
        rules=tuple(RuleMatches(n, family[n], m) for n, m in sorted(matches.items()) if m),
    )


def _rounds(engine: Engine, rulesets: Sequence[str], limits: Limits) -> tuple[Counter[str], bool]:
    deadline = time.perf_counter() + limits.seconds
    phases = " ".join(f"(saturate {r})" if r == "rs-analysis" else f"(run {r})" for r in rulesets)
    text = f"(run-schedule (seq {phases}))"
    commands = engine.parse(text)
    matches: Counter[str] = Counter()
    for _ in range(limits.rounds):
        (output,) = engine.execute(commands, text)
        matches.update(output.report.num_matches_per_rule)
        if not output.report.updated:
            return matches, True
        if engine.size() > limits.tuples or time.perf_counter() > deadline:
            break
    return matches, False


def _dtypes(tables: readout.Tables) -> dict[int, DType]:
    """The element type of every term class; constants alone count as f32."""
    return {c: encode.dtype_of(code) or F32 for c, code in tables.facts["dtype"].items()}


def _storage(tables: readout.Tables) -> dict[int, DType]:
    """The type of a cut: the class's own, or the narrow type its value was just rounded to."""
    narrow = {c: encode.dtype_of(int(code)) for c, code in sorted(tables.relations["StoreAs"])}
    return {c: narrow.get(c) or dtype for c, dtype in _dtypes(tables).items()}
