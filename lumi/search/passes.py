"""Which accumulators can share a loop: what a pass over a domain has to wait for."""

from __future__ import annotations

from collections.abc import Sequence

from lumi.search.dag import Dag, Final, Previous, Running


class Passes:
    """The order of passes over equal domains within one kernel."""

    def __init__(self, dag: Dag) -> None:
        self.dag = dag
        self._ranks: dict[int, int] = {}

    def seen(self, roots: Sequence[int], domain: int) -> list[int]:
        """The accumulators over `domain` whose running values the roots need."""
        found = dict.fromkeys(
            made.accumulator
            for number in self.dag.walk(roots)
            if isinstance(made := self.dag.values[number], (Running, Previous))
            and self.dag.table[made.accumulator].domain == domain
        )
        return list(found)

    def rank(self, accumulator: int) -> int:
        """Passes over the same domain that must be complete before this accumulator's loop."""
        known = self._ranks.get(accumulator)
        if known is None:
            known = self._ranks[accumulator] = self._count(accumulator)
        return known

    def _count(self, accumulator: int) -> int:
        base, rank = self._base(accumulator), 0
        seen, stack = set[int](), list(self.dag.table[accumulator].parts)
        while stack:
            number = stack.pop()
            if number in seen:
                continue
            seen.add(number)
            made = self.dag.values[number]
            finished = isinstance(made, Final)
            if isinstance(made, (Final, Running, Previous)) and self._base(made.accumulator) == base:
                rank = max(rank, self.rank(made.accumulator) + finished)
                if finished:
                    continue
            stack.extend(self.dag.children(number))
        return rank

    def _base(self, accumulator: int) -> tuple[int, int]:
        return self.dag.domains[self.dag.table[accumulator].domain].base
