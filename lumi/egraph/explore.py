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
    """What is to be saturated: a program of declarations and rules, its phases, and terms.

    Commands `afterwards` are run when nothing changes any more.
    """

    program: tuple[str, ...]
    phases: tuple[str, ...]
    terms: Encoding
    afterwards: tuple[str, ...] = ()

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


class Size:
    """The tuples of an e-graph: counting takes longer than a round of a small one, so they are bounded first.

    A program makes at most as many as it has parentheses, and a match as many as its rule has.
    """

    def __init__(self, engine: Engine, task: Task) -> None:
        self._engine = engine
        self._most = sum(text.count("(") for text in (*task.program, *task.terms.commands))
        self._each = max(text.count("(") for text in task.program)

    def grow(self, matches: int) -> None:
        """Account for so many matches of rules."""
        self._most += matches * self._each

    def is_within(self, tuples: int) -> bool:
        """Whether there are no more than so many."""
        if self._most > tuples:
            self._most = self._engine.size()
        return self._most <= tuples


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
        size = Size(engine, task)
        matches, saturated, rounds = _rounds(engine, task.phases, size, limits, progress)
        engine.load(task.afterwards)
        return Exploration(readout.read(engine, relations), matches, saturated, rounds)


def _rounds(
    engine: Engine, phases: Sequence[str], size: Size, limits: Limits, progress: Progress | None
) -> tuple[dict[str, int], bool, int]:
    """Run rounds of all phases, of which the first holds the analyses."""
    deadline = time.perf_counter() + limits.seconds
    steps = (f"({'saturate' if phase in FACTS else 'run'} {phase})" for phase in phases)
    text = f"(run-schedule (seq {' '.join(steps)}))"
    commands = engine.parse(text)
    matches: Counter[str] = Counter()
    number = 0
    while number < limits.rounds and size.is_within(limits.tuples) and time.perf_counter() <= deadline:
        (output,) = engine.execute(commands, text)
        number += 1
        matches.update(output.report.num_matches_per_rule)
        size.grow(sum(output.report.num_matches_per_rule.values()))
        if not output.report.updated:
            return dict(matches), True, number
        if progress:
            progress(number)
    engine.run(f"(run-schedule (saturate {phases[0]}))")  # the terms of the last round have no facts yet
    return dict(matches), False, number
