"""Run rules on encoded terms, round by round, until nothing changes or a limit is met."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lumi.egraph import readout
from lumi.egraph.encode import Encoding
from lumi.egraph.engine import Engine, prepared
from lumi.egraph.rules import Rule, RuleBook


@dataclass(frozen=True, slots=True)
class Limits:
    """When saturation stops early: tuples in all tables, rounds, seconds.

    They are checked between rounds, and one round can multiply the size.
    """

    tuples: int = 200_000
    rounds: int = 400
    seconds: float = 20.0


FACTS = frozenset({"rs-analysis", "rs-demand", "rs-sign"})
"""Phases that run to their fixpoint in every round: what they derive is bounded by the terms there are."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be saturated: a program of declarations and rules, its phases, and terms."""

    program: tuple[str, ...]
    phases: tuple[str, ...]
    terms: Encoding

    @staticmethod
    def of(book: RuleBook, chosen: Iterable[Rule], terms: Encoding) -> Task:
        """Terms under chosen rules of a book."""
        chosen = tuple(chosen)
        used = {r.ruleset for r in chosen}
        phases = tuple(p for p in book.rulesets if p in used)
        return Task((*book.declarations, *(r.text for r in chosen)), phases, terms)


@dataclass(frozen=True, slots=True)
class Exploration:
    """What saturation found, unchecked: the tables, and how often each rule matched."""

    tables: readout.Tables
    matches: Mapping[str, int]
    saturated: bool
    rounds: int


Progress = Callable[[int], None]
"""Told the number of every round that is finished."""


def explore(
    task: Task,
    limits: Limits,
    progress: Progress | None = None,
    relations: Collection[str] = readout.RELATIONS,
) -> Exploration:
    """Saturate a task in this process and read it out with some of its relations."""
    with prepared(task.program) as engine:
        engine.load(task.terms.commands)
        matches, saturated, rounds = _rounds(engine, task.phases, limits, progress)
        return Exploration(readout.read(engine, relations), matches, saturated, rounds)


def _rounds(
    engine: Engine, phases: Sequence[str], limits: Limits, progress: Progress | None
) -> tuple[dict[str, int], bool, int]:
    """Run rounds of all phases, of which the first holds the analyses."""
    deadline = time.perf_counter() + limits.seconds
    steps = (f"({'saturate' if phase in FACTS else 'run'} {phase})" for phase in phases)
    text = f"(run-schedule (seq {' '.join(steps)}))"
    commands = engine.parse(text)
    matches: Counter[str] = Counter()
    number = 0
    while number < limits.rounds and engine.size() <= limits.tuples and time.perf_counter() <= deadline:
        (output,) = engine.execute(commands, text)
        number += 1
        matches.update(output.report.num_matches_per_rule)
        if not output.report.updated:
            return dict(matches), True, number
        if progress:
            progress(number)
    engine.run(f"(run-schedule (saturate {phases[0]}))")  # the terms of the last round have no facts yet
    return dict(matches), False, number
