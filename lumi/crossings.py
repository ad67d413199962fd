"""Whether variants are worth it: what calls take in theirs, and what in the one that would run them instead.

Boxes only propose variants.  One whose kernels are not faster, at the dims it was searched at, than those of
the next more general variant is left out: that one runs its calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lumi.compilation import Compilation, Traced
from lumi.plan.reach import room
from lumi.search.explain import Bucket, Crossing
from lumi.search.protocol import Backend, Timing
from lumi.search.settings import Mode
from lumi.search.trial import cost

MARGIN = 0.02
"""The share of its time that a variant must save: below it one cannot tell, and fewer kernels are better."""


def merge(work: Compilation, backend: Backend) -> tuple[tuple[Traced, ...], tuple[Bucket, ...]]:
    """The variants that are worth it, and what calls take in each, and in those that are not.

    A measured search decides by measured times, where it has them.  Without a search, and after Ctrl-C, all
    variants stay.
    """
    is_searched = work.options.settings.mode is not Mode.NONE and not any(work.cut_short())
    prices = _Prices(work, backend, is_searched and work.options.settings.mode is Mode.MEASURE)
    *special, general = work.variants
    kept, buckets = [general], [Bucket(str(general.box), "", tuple(prices.alone(general)), False)]
    for variant in reversed(special):
        beyond = next(v for v in kept if v.box.holds(variant.box))
        crossings = tuple(prices.crossings(variant, beyond))
        merged = is_searched and not _is_faster(crossings)
        buckets.insert(0, Bucket(str(variant.box), str(beyond.box), crossings, merged))
        if not merged:
            kept.insert(0, variant)
    return tuple(kept), tuple(buckets)


def _is_faster(crossings: Sequence[Crossing]) -> bool:
    """Whether a variant saves enough, over all hints together."""
    hints = [c for c in crossings if c.is_hint]
    return sum(c.seconds for c in hints) < (1 - MARGIN) * sum(c.beyond for c in hints)


@dataclass(frozen=True, slots=True)
class _Prices:
    """What calls take in the kernels that were found."""

    work: Compilation
    backend: Backend
    is_measured: bool

    def alone(self, variant: Traced) -> Iterator[Crossing]:
        """The most general variant at its hints."""
        for hint in _hints(variant):
            (seconds,), measured = self._timed([variant], hint)
            yield Crossing(hint, seconds, seconds, True, measured)

    def crossings(self, variant: Traced, beyond: Traced) -> Iterator[Crossing]:
        """A variant beside the next one, at its hints and where its box ends."""
        for hint in _hints(variant):
            (own, other), measured = self._timed([variant, beyond], hint)
            yield Crossing(hint, own, other, True, measured)
        for end in _ends(variant, beyond):
            yield Crossing(end, self._modelled(variant, end), self._modelled(beyond, end), False, False)

    def _timed(self, variants: Sequence[Traced], dims: Mapping[str, int]) -> tuple[list[float], bool]:
        """Seconds in each of some variants, and whether they are measured: all or none."""
        found = [self._measured(v, dims) for v in variants] if self.is_measured else []
        known = [seconds for seconds in found if seconds is not None]
        if len(known) == len(variants):
            return known, True
        return [self._modelled(v, dims) for v in variants], False

    def _modelled(self, variant: Traced, dims: Mapping[str, int]) -> float:
        steps = (
            (step, count)
            for key, count in Counter(map(variant.key, variant.regions)).items()
            for step in self.work.found[key].graph.steps
        )
        return sum(cost(self.backend, step, dims).seconds * count for step, count in steps)

    def _measured(self, variant: Traced, dims: Mapping[str, int]) -> float | None:
        """None where some region cannot be measured."""
        regions = {variant.key(region): region for region in variant.regions}
        counts, total = Counter(map(variant.key, variant.regions)), 0.0
        values = {name: dims[name] for name in variant.box.free}
        for key, region in regions.items():
            timing = self.backend.measure(region, self.work.found[key].graph, values)
            if not isinstance(timing, Timing):
                return None
            total += timing.seconds * counts[key]
        return total


def _hints(variant: Traced) -> tuple[dict[str, int], ...]:
    """The values of all dims at which a variant was searched."""
    gaps = [gap for region in variant.regions for gap in room(region)]
    return tuple({**variant.box.bind, **hint} for hint in variant.box.hints(gaps))


def _ends(variant: Traced, beyond: Traced) -> Iterator[dict[str, int]]:
    """Where a box ends and the next goes on, at the first hint of all other dims."""
    first = _hints(variant)[0]
    for name, r in variant.box.free.items():
        following = beyond.box.free.get(name)
        if following is not None and following.high > r.high:
            yield {**first, name: r.high}
