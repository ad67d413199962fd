"""What rules bought: the best plan without one group of them at a time, and those that the best plan needs.

Nothing is traced: a rule is needed when, without it and with all others that are, the terms of the best plan
are not made equal to those of the model.  So two rules that can stand in for each other are not both in it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lumi.compilation import Compilation, Options, Progress, Stage, Traced
from lumi.egraph.encode import Encoding, encode
from lumi.egraph.explore import Limits
from lumi.egraph.goal import is_found
from lumi.egraph.graph import EGraph
from lumi.egraph.groups import group, grouped
from lumi.egraph.rules import Rule, book, select
from lumi.egraph.saturate import saturate
from lumi.errors import LumiError
from lumi.field.region import Region
from lumi.search.search import Found, search
from lumi.search.settings import Mode, Settings


@dataclass(frozen=True, slots=True)
class Best:
    """The best plan under some rules: seconds by the model, and its kernels."""

    seconds: float
    kernels: int

    @staticmethod
    def of(found: Found) -> Best:
        """That of a search."""
        return Best(found.explanation.modelled, len(found.graph.steps))


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

    `enodes` is the size of the e-graph under all rules, `few` under the needed ones alone.
    """

    region: str
    best: Best
    enodes: int
    few: int
    ladder: tuple[Rung, ...]
    needs: tuple[Need, ...]


def derivations(work: Compilation, only: str = "") -> Iterator[Derivation]:
    """The derivation of every distinct region whose scope contains `only`, in program order.

    The compilation must have come as far as its kernels.
    """
    for key, (variant, region) in work.distinct().items():
        if only in region.scope:
            yield _Deriving(work.options, variant, region, work.egraphs[key], work.found[key]).derivation()


@dataclass(slots=True)
class _Deriving:
    """Looks for the best plan of one region under fewer and fewer rules."""

    options: Options
    variant: Traced
    region: Region
    egraph: EGraph
    found: Found

    @property
    def terms(self) -> Encoding:
        """The terms of the region."""
        splits = self.variant.splits.get(self.region.key, ())
        return encode(self.region, splits, self.variant.box.free)

    def derivation(self) -> Derivation:
        matched = tuple(sorted(r.name for r in self.egraph.rewrites))
        groups = grouped(_rule(name) for name in matched)
        ladder = tuple(self._rung(name, n, len(groups)) for n, name in enumerate(groups))
        needed = self._needed(matched)
        return Derivation(
            region=self.region.scope,
            best=Best.of(self.found),
            enodes=self.egraph.size,
            few=self._saturated(frozenset(matched) - frozenset(needed)).size,
            ladder=ladder,
            needs=tuple(self._needs(matched, needed)),
        )

    def _rung(self, name: str, number: int, total: int) -> Rung:
        self._tell(number, total, f"without {name}")
        return Rung(name, self._best(name))

    def _needed(self, matched: tuple[str, ...]) -> tuple[str, ...]:
        """The rules of which none can be left out: ever smaller parts are left out where the plan stays."""
        kept, size = list(matched), max(len(matched) // 2, 1)
        while True:
            before = len(kept)
            for start in range(0, len(kept), size):
                self._tell(len(matched) - len(kept), len(matched), f"{len(kept)} rules may be needed")
                part = set(kept[start : start + size])
                if part and self._has_goal(frozenset(matched) - (frozenset(kept) - part)):
                    kept = [name for name in kept if name not in part]
            if size == 1 and len(kept) == before:
                return tuple(kept)
            size = max(size // 2, 1)

    def _has_goal(self, without: frozenset[str]) -> bool:
        """Whether rules make the terms of the best plan equal to those of the model."""
        chosen = select(book().rules, self.options.families, without | set(self.options.without))
        return is_found(self.found.goal, book(), chosen, self.terms)

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

    def _best(self, name: str) -> Best | None:
        """The best plan without a group of rules."""
        left_out = grouped(select(book().rules, self.options.families))[name]
        try:
            egraph = self._saturated(frozenset(r.name for r in left_out))
            return Best.of(search(self.region, egraph, self._settings(), self.options.backend()))
        except LumiError:
            return None

    def _saturated(self, without: frozenset[str], limits: Limits | None = None) -> EGraph:
        return saturate(
            self.region,
            families=self.options.families,
            splits=self.variant.splits.get(self.region.key, ()),
            without=without | set(self.options.without),
            ranges=self.variant.box.free,
            limits=limits,
        )

    def _settings(self) -> Settings:
        return replace(
            self.options.settings,
            mode=Mode.MODEL,
            hints=self.variant.hints(self.region),
            ranges=self.variant.box.free,
            splits=self.variant.splits.get(self.region.key, ()),
        )

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
