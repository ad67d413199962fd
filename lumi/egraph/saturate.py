"""Saturate a region's terms under the rules and read the e-graph out.

The rules that come with Lumi saturate in a few dozen rounds, so they run in this process with a limit on
size.  When rules of other files are among the chosen, which may grow without bound, a child process runs
them (`guard`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from lumi.dim import DimRange
from lumi.dtype import F32, DType
from lumi.egraph import check, encode, readout, rules
from lumi.egraph.encode import Encoding
from lumi.egraph.explore import Exploration, Limits, Task, explore
from lumi.egraph.graph import EGraph, RuleMatches
from lumi.egraph.guard import explore_guarded
from lumi.egraph.refusal import placed
from lumi.egraph.rules import Rule, RuleBook
from lumi.errors import LumiError
from lumi.field.region import Region


def saturate(
    region: Region,
    *,
    families: Collection[str] = ("exact", "relaxed"),
    splits: Sequence[tuple[str, str]] = (),
    without: Collection[str] = (),
    ranges: Mapping[str, DimRange] | None = None,
    limits: Limits | None = None,
    book: RuleBook | None = None,
    guarded: bool | None = None,
) -> EGraph:
    """The e-graph of a region under the rules of `families`, less the rules or rulesets `without`.

    `splits` are (axis, chunk axis) pairs that may be split, the chunk axes being in `region.axes`; `ranges`
    are the declared dims, of which one that may be 0 costs a guard in some sums; `book` holds the rules, by
    default those of the rules folder.  With `guarded`, a child process does the work; by default it does
    when a rule did not come with Lumi.  On a limit the e-graph so far is returned, its `saturated` False.

    Raises `LumiError` when a rule united terms over different axes or of different types, naming the rules
    that could have, and when a guarded run has nothing to return.
    """
    start = time.perf_counter()
    book, limits = book or rules.book(), limits or Limits()
    chosen = rules.select(book.rules, families, without)
    terms = encode.encode(region, splits, ranges)
    strange = any(not r.is_built_in for r in chosen)
    run = explore_guarded if (strange if guarded is None else guarded) else explore
    try:
        found = run(Task.of(book, chosen, terms), limits)
    except LumiError as error:
        raise placed(error, book, chosen) from error

    def conflicts(found: Exploration) -> Iterator[check.Conflict]:
        return check.conflicts(found.tables, region.axes)

    conflict = next(conflicts(found), None)
    if conflict:
        raise _blame(
            conflict, chosen, found, lambda kept: not any(conflicts(run(Task.of(book, kept, terms), limits)))
        )
    return _egraph(found, chosen, terms, time.perf_counter() - start)


def _egraph(found: Exploration, chosen: Iterable[Rule], terms: Encoding, seconds: float) -> EGraph:
    tables, by_name = found.tables, {r.name: r for r in chosen}
    matches = [(by_name[n], m) for n, m in sorted(found.matches.items()) if m]
    return EGraph(
        classes=tables.classes,
        roots=tuple(tables.nodes[k] for k in terms.roots),
        free=tables.facts["free"],
        final=tables.facts["final"],
        dtype=_dtypes(tables),
        storage=_storage(tables),
        saturated=found.saturated,
        seconds=seconds,
        rules=tuple(RuleMatches(r.name, r.family, m, not r.is_built_in) for r, m in matches),
    )


def _blame(
    conflict: check.Conflict,
    chosen: Sequence[Rule],
    found: Exploration,
    is_sound: Callable[[Iterable[Rule]], bool],
) -> LumiError:
    """The error that names the rules without which no conflict appears, or all that united terms."""
    uniting = [r for r in chosen if r.unites and found.matches.get(r.name)]
    blamed = [suspect for suspect in uniting if is_sound(r for r in chosen if r != suspect)]
    names = ", ".join(r.name for r in blamed or uniting)
    return LumiError(
        "rules error",
        f"a rule united unequal terms: {conflict.text}",
        blamed[0].span if len(blamed) == 1 else None,
        hint=_suspects(names, bool(blamed)),
    )


def _suspects(names: str, certain: bool) -> str:
    if not names:
        return "no rule united terms: the facts of rules/analysis.egg do not cover the operation"
    return f"it does not happen without {names}" if certain else f"it is one of {names}"


def _dtypes(tables: readout.Tables) -> dict[int, DType]:
    """The element type of every term class; constants alone count as f32."""
    return {c: encode.dtype_of(code) or F32 for c, code in tables.facts["dtype"].items()}


def _storage(tables: readout.Tables) -> dict[int, DType]:
    """The type of a cut: the class's own, or the narrow type its value was just rounded to."""
    narrow = {int(c): encode.dtype_of(int(code)) for c, code in sorted(tables.relations["StoreAs"])}
    return {c: narrow.get(c) or dtype for c, dtype in _dtypes(tables).items()}
