"""The rules in groups by what they make possible, each group building on those before it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import MappingProxyType

from lumi.egraph.rules import ANALYSIS, Rule

GROUPS = MappingProxyType(
    {
        "structure": "reductions run as loops over tiles and over sets of axes",
        "identities": "what is equal point by point",
        "factors": "factors that do not vary along an axis leave its sum",
        "online": "a reduction that needs another of its axis is carried at the running value of that",
        "masks": "loops leave out the tiles on which a mask is false",
        "splits": "a reduction runs in chunks side by side, which another kernel combines",
    }
)
"""The groups of the exact rules, in order, and what the rules of each say."""

_PHASES = {
    "rs-structure": "structure",
    "rs-exact": "identities",
    "rs-mask": "masks",
    "rs-demand": "factors",
    "rs-sign": "factors",
    "rs-change": "factors",
    "rs-use": "factors",
}
"""The groups of the phases, but for the rules that speak of a context."""

_CONTEXTS = {
    "splits": re.compile(r"\b(Splittable|Split|IsChunk|Chunk|chunk-of)\b"),
    "online": re.compile(r"\bOnline\b"),
}
"""What rules name that have to do with chunks or with running values; none matches without its context."""


def group(rule: Rule) -> str:
    """The group of a rule: a family but `exact` is one; so is a phase that does not come with Lumi."""
    if rule.family != "exact":
        return rule.family
    contexts = (name for name, named in _CONTEXTS.items() if named.search(rule.text))
    return next(contexts, _PHASES.get(rule.ruleset, rule.ruleset))


def grouped(rules: Iterable[Rule]) -> dict[str, tuple[Rule, ...]]:
    """The rules that can be left out, by their group, the groups in order."""
    found: dict[str, list[Rule]] = {name: [] for name in GROUPS}
    for rule in rules:
        if rule.family != ANALYSIS:
            found.setdefault(group(rule), []).append(rule)
    return {name: tuple(mine) for name, mine in found.items() if mine}
