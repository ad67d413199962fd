"""What rules bought: the best plan without one group of them at a time, and those that the best plan needs.

Nothing is traced: a rule is needed when, without it and with all others that are, the terms of the best plan
are not made equal to those of the model.  So two rules that can stand in for each other are not both in it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lumi.compilation import Compilation, Options, Progress, Stage
from lumi.egraph.encode import Encoding, encode
from lumi.egraph.explore import Limits
from lumi.egraph.goal import Goal, Part, is_found, known
from lumi.egraph.graph import EGraph
from lumi.egraph.groups import group, grouped
from lumi.egraph.rules import Rule, book, select
from lumi.egraph.saturate import saturate
from lumi.errors import LumiError
from lumi.field.region import Region
from lumi.llir.json import decode
from lumi.llir.kernel import Schedule, Step
from lumi.plan.plan import Plan
from lumi.search.explain import Rival
from lumi.search.origin import Origin
from lumi.search.protocol import Backend
from lumi.search.search import Found, search
from lumi.search.settings import Mode, Settings
from lumi.search.trial import cost


@dataclass(frozen=True, slots=True)
class Best:
    """The best plan under some rules: seconds by the model and as measured (None: not), and its kernels."""

    seconds: float
    measured: float | None
    kernels: int

    @staticmethod
    def of(found: Found) -> Best:
        """That of a search."""
        told = found.explanation
        return Best(told.modelled, told.measured, len(found.graph.steps))


@dataclass(frozen=True, slots=True)
class Rung:
    """A group of rules, and the best plan without it; None where there is no plan then."""

    group: str
    best: Best | None


@dataclass(frozen=True, slots=True)
class Need:
    """A rule that the best plan needs, the round of saturation in which it first matches, and its reason."""

    name: str
    group: str
    round: int
    doc: str


@dataclass(frozen=True, slots=True)
class Derivation:
    """The story of one region: its best plan, the ladder, and the rules it needs in the order they matched.

    The rules may be those that one kernel of the plan needs, and what it reads as it is in the model.
    `enodes` is the size of the e-graph under all rules, `few` under the needed ones alone.  `variants` are
    those of the plan that have the region, if the plan has several.
    """

    region: str
    best: Best
    enodes: int
    few: int
    ladder: tuple[Rung, ...]
    needs: tuple[Need, ...]
    variants: tuple[str, ...] = ()


def derivations(work: Compilation, only: str = "") -> Iterator[Derivation]:
    """The derivation of every distinct region whose scope contains `only`, in program order.

    The compilation must have come as far as its kernels.
    """
    several = len(work.variants) > 1
    for key, (_, region) in work.distinct().items():
        if only in region.scope:
            found = work.found[key]
            deriving = _Deriving(work.options, region, work.settings(key), found.goal)
            told = deriving.derivation(Best.of(found), found.goal.whole(deriving.terms))
            yield replace(told, variants=tuple(str(v.box) for v in work.users(key)) if several else ())


def derivation(plan: Plan, kernel: str, options: Options) -> Derivation:
    """How a kernel of a plan came about, and what groups of rules buy its region.

    `kernel` is its name.  Of the options, the mode of the search counts, and `progress`: the others are those
    that the plan was made with.  Raises `LumiError` where the plan has no such kernel, or was not made by the
    rules that there are now; `KeyError`, `TypeError` or `ValueError` where its explanation is damaged.
    """
    story = story_of(plan, kernel)
    origin = decode(Origin, story["origin"])
    mode = options.settings.mode
    deriving = _Deriving(
        _options(plan, options), origin.region, replace(origin.settings, mode=mode), origin.goal
    )
    best = Best(story["modelled"], story["measured"], len(story["kernels"]))
    return deriving.derivation(best, deriving.part(origin.stored[story["names"].index(kernel)]))


def story_of(plan: Plan, kernel: str) -> Mapping[str, Any]:
    """The story of the first region that runs a kernel.  Raises `LumiError` where none does."""
    stories: Any = plan.explanation.get("regions", [])
    found = next((story for story in stories if kernel in story["names"]), None)
    if found is None:
        names = [name for story in stories for name in story["names"] if name]
        hint = f"there are {', '.join(names)}" if names else "no region was searched"
        raise LumiError("kernel error", f"no region of {plan.name} has a kernel {kernel}", hint=hint)
    story: Mapping[str, Any] = found
    return story


def rivals(plan: Plan, kernel: str) -> tuple[Rival, ...]:
    """The other templates that could run a kernel of a plan, each by its best schedule, fastest first.

    Their seconds are those of the model, for the kernel as it is tiled.  What takes turns in one launch has
    none.
    """
    step = next(k.step for k in plan.kernels if k.name == kernel)
    hints = decode(Origin, story_of(plan, kernel)["origin"]).settings.hints
    backend, best = _options(plan, Options()).backend(), dict[str, tuple[float, Schedule]]()
    for schedule in () if step.then else _schedules(backend, step):
        seconds = sum(cost(backend, replace(step, schedule=schedule), h).seconds for h in hints)
        if schedule.template not in best or seconds < best[schedule.template][0]:
            best[schedule.template] = seconds, schedule
    best.pop(step.schedule.template, None)
    ranked = sorted(best.values(), key=lambda found: found[0])
    return tuple(Rival(schedule, {}, seconds) for seconds, schedule in ranked)


def _schedules(backend: Backend, step: Step) -> tuple[Schedule, ...]:
    return tuple(backend.together(step.kernels) if step.beside else backend.schedules(step.kernel))


def _options(plan: Plan, options: Options) -> Options:
    """Those that a plan was made with, as far as they decide how its regions are searched."""
    told: Any = plan.explanation
    return replace(
        options,
        target=plan.target,
        families=tuple(told["families"]),
        without=tuple(told["without"]),
        barred=tuple(told["barred"]),
        relaxed=tuple(told["relaxed"]),
    )


@dataclass(slots=True)
class _Deriving:
    """Looks for the best plan of one region under fewer and fewer rules."""

    options: Options
    region: Region
    settings: Settings
    goal: Goal

    @property
    def terms(self) -> Encoding:
        """The terms of the region."""
        return encode(self.region, self.settings.splits, self.settings.ranges)

    def part(self, stored: tuple[int, ...]) -> Part:
        """What a kernel computes.  Raises `LumiError` where the terms do not follow by the rules of today."""
        every = select(book().rules, self.options.families, self.options.without)
        anchors = known(self.goal, book(), every, self.terms)
        if not set(self.goal.roots) <= anchors.keys():
            message = (
                f"the kernels of {self.region.scope or '(all)'} do not follow by the rules there are now"
            )
            raise LumiError("rules error", message, hint="compile the model again with this Lumi")
        return self.goal.part(stored, anchors)

    def derivation(self, best: Best, part: Part) -> Derivation:
        """The ladder, and the rules by which a part of the terms follows."""
        egraph = self._saturated(frozenset())
        matched = tuple(sorted(r.name for r in egraph.rewrites))
        groups = grouped(_rule(name) for name in matched)
        if self.settings.mode is Mode.MEASURE and best.measured is None:
            best = self._best(()) or best
        ladder = tuple(self._rung(name, n, len(groups)) for n, name in enumerate(groups))
        needed = self._needed(part, matched)
        return Derivation(
            region=self.region.scope,
            best=best,
            enodes=egraph.size,
            few=self._saturated(frozenset(matched) - frozenset(needed)).size,
            ladder=ladder,
            needs=tuple(self._needs(matched, needed)),
        )

    def _rung(self, name: str, number: int, total: int) -> Rung:
        self._tell(number, total, f"without {name}")
        every = grouped(select(book().rules, self.options.families))
        return Rung(name, self._best(every[name]))

    def _needed(self, part: Part, matched: tuple[str, ...]) -> tuple[str, ...]:
        """The rules of which none can be left out: ever smaller parts are left out where the plan stays."""
        kept, size = list(matched), max(len(matched) // 2, 1)
        while True:
            before = len(kept)
            for start in range(0, len(kept), size):
                self._tell(len(matched) - len(kept), len(matched), f"{len(kept)} rules may be needed")
                tried = set(kept[start : start + size])
                if tried and self._follows(part, frozenset(matched) - (frozenset(kept) - tried)):
                    kept = [name for name in kept if name not in tried]
            if size == 1 and len(kept) == before:
                return tuple(kept)
            size = max(size // 2, 1)

    def _follows(self, part: Part, without: frozenset[str]) -> bool:
        """Whether rules make the terms of the model equal to a part of those of the best plan."""
        chosen = select(book().rules, self.options.families, without | set(self.options.without))
        return is_found(part, book(), chosen, self.terms)

    def _needs(self, matched: tuple[str, ...], needed: tuple[str, ...]) -> Iterator[Need]:
        rounds = self._rounds(matched, needed)
        for name in sorted(needed, key=lambda n: (rounds[n], _place(n))):
            rule = _rule(name)
            yield Need(name, group(rule), rounds[name], rule.doc)

    def _rounds(self, matched: tuple[str, ...], needed: tuple[str, ...]) -> dict[str, int]:
        """The round in which each needed rule first matches, when the others are left out."""
        rest, found, number = frozenset(matched) - frozenset(needed), dict[str, int](), 0
        while len(found) < len(needed):
            number += 1
            egraph = self._saturated(rest, Limits(rounds=number))
            for match in egraph.rules:
                if match.name in needed:
                    found.setdefault(match.name, number)
            if egraph.saturated:
                found |= {name: number for name in needed if name not in found}
        return found

    # -- plans

    def _best(self, without: Iterable[Rule]) -> Best | None:
        """The best plan without some rules; None where there is none."""
        try:
            egraph = self._saturated(frozenset(r.name for r in without))
            return Best.of(search(self.region, egraph, self._searched(), self.options.backend()))
        except LumiError:
            return None

    def _saturated(self, without: frozenset[str], limits: Limits | None = None) -> EGraph:
        return saturate(
            self.region,
            families=self.options.families,
            splits=self.settings.splits,
            without=without | set(self.options.without),
            ranges=self.settings.ranges,
            limits=limits,
        )

    def _searched(self) -> Settings:
        """What a search of the ladder is told: it measures where the plan was measured."""
        is_measured = self.settings.mode is Mode.MEASURE
        return self.settings if is_measured else replace(self.settings, mode=Mode.MODEL)

    def _tell(self, done: int, total: int, what: str) -> None:
        self.options.progress(Progress(Stage.KERNELS, done, total, f"{self.region.scope}: {what}"))


@functools.cache
def _table() -> dict[str, tuple[int, Rule]]:
    return {rule.name: (number, rule) for number, rule in enumerate(book().rules)}


def _rule(name: str) -> Rule:
    return _table()[name][1]


def _place(name: str) -> int:
    """The place of a rule among all, in the order of their files."""
    return _table()[name][0]
