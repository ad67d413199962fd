"""Saturate a region's terms under the rules and read the e-graph out.

A round runs the phases (rulesets) one after another, the analyses to their fixpoint.  Between rounds the
size, the number of rounds and the time are checked; on a limit the e-graph so far is returned, if it is
consistent.  The rules that come with Lumi saturate in a few dozen rounds, so they run in this process; a run
that has rules of other files, which may grow without bound, goes to a child process (`guard`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lumi.dim import DimRange
from lumi.dtype import F32, DType
from lumi.egraph import check, encode, readout, rules
from lumi.egraph.encode import Encoding
from lumi.egraph.engine import Engine
from lumi.egraph.graph import EGraph, RuleMatches
from lumi.egraph.rules import Rule, RuleBook
from lumi.errors import LumiError
from lumi.field.region import Region


@dataclass(frozen=True, slots=True)
class Limits:
    """When saturation stops early: tuples in all tables, rounds, seconds."""

    tuples: int = 200_000
    rounds: int = 400
    seconds: float = 20.0


@dataclass(frozen=True, slots=True)
class Exploration:
    """What saturation under some rules found, unchecked."""

    tables: readout.Tables
    matches: Mapping[str, int]
    saturated: bool


def saturate(
    region: Region,
    *,
    families: Collection[str] = ("exact", "relaxed"),
    splits: Sequence[tuple[str, str]] = (),
    without: Collection[str] = (),
    ranges: Mapping[str, DimRange] | None = None,
    limits: Limits = Limits(),
    book: RuleBook | None = None,
) -> EGraph:
    """The e-graph of a region under the rules of `families`, less the rules or rulesets `without`.

    `splits` are (axis, chunk axis) pairs that may be split, the chunk axes being in `region.axes`; `ranges`
    are the declared dims, of which one that may be 0 costs a guard in some sums; `book` holds the rules, by
    default those of the rules folder.  Raises `LumiError` when a rule united terms over different axes or
    of different types, naming the rules that could have.
    """
    start = time.perf_counter()
    book = book or rules.book()
    chosen = rules.select(book.rules, families, without)
    coded = encode.encode(region, splits, ranges)
    found = explore(book, chosen, coded, limits)
    _require_consistency(book, chosen, coded, limits, found)
    tables, family = found.tables, {r.name: r.family for r in chosen}
    return EGraph(
        classes=tables.classes,
        roots=tuple(tables.nodes[k] for k in coded.roots),
        free=tables.facts["free"],
        final=tables.facts["final"],
        dtype=_dtypes(tables),
        storage=_storage(tables),
        saturated=found.saturated,
        seconds=time.perf_counter() - start,
        rules=tuple(RuleMatches(n, family[n], m) for n, m in sorted(found.matches.items()) if m),
    )


def explore(book: RuleBook, chosen: Iterable[Rule], coded: Encoding, limits: Limits) -> Exploration:
    """Saturate encoded terms under chosen rules of a book."""
    engine = Engine()
    engine.load(book.declarations)
    engine.load(r.text for r in chosen)
    engine.load(coded.commands)
    matches, saturated = _rounds(engine, book.rulesets, limits)
    return Exploration(readout.read(engine), matches, saturated)


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


def _require_consistency(
    book: RuleBook, chosen: Sequence[Rule], coded: Encoding, limits: Limits, found: Exploration
) -> None:
    """Raise when a class has e-nodes over different axes or of different types, and say which rule did it."""
    conflict = next(check.conflicts(found.tables), None)
    if conflict is None:
        return
    blamed = [
        rule
        for rule in chosen
        if rule.unites and found.matches.get(rule.name) and _is_mended(book, chosen, coded, limits, rule)
    ]
    if not blamed:
        blamed = [rule for rule in chosen if rule.unites and found.matches.get(rule.name)]
    names = ", ".join(r.name for r in blamed)
    raise LumiError(
        "rules error",
        f"a rule united unequal terms: {conflict.node} {conflict.detail}; without {names} it does not happen",
        blamed[0].span if len(blamed) == 1 else None,
        hint=f"mend the rule, or leave it out: {names}",
    )


def _is_mended(book: RuleBook, chosen: Sequence[Rule], coded: Encoding, limits: Limits, rule: Rule) -> bool:
    """Whether the conflict vanishes without a rule."""
    others = [r for r in chosen if r.name != rule.name]
    return not any(check.conflicts(explore(book, others, coded, limits).tables))


def _dtypes(tables: readout.Tables) -> dict[int, DType]:
    """The element type of every term class; constants alone count as f32."""
    return {c: encode.dtype_of(code) or F32 for c, code in tables.facts["dtype"].items()}


def _storage(tables: readout.Tables) -> dict[int, DType]:
    """The type of a cut: the class's own, or the narrow type its value was just rounded to."""
    narrow = {int(c): encode.dtype_of(int(code)) for c, code in sorted(tables.relations["StoreAs"])}
    return {c: narrow.get(c) or dtype for c, dtype in _dtypes(tables).items()}
