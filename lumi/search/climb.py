"""Climbs from a seed to a local optimum of the model by single and paired changes.

A change is tried again only after something near it has changed: its gain depends on the kernels that it
touches alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from lumi.search.dag import AXES
from lumi.search.draft import Draft, InfeasibleError
from lumi.search.launch import Assembly
from lumi.search.planner import Planner
from lumi.search.space import Genome

GAIN = 1e-6
"""Least relative gain of a change; ties keep the incumbent."""


class Move(NamedTuple):
    """Other nodes for some classes (class, index), or the classes to start or stop storing."""

    nodes: tuple[tuple[int, int], ...]
    toggles: tuple[int, ...] = ()

    def apply(self, genome: Genome) -> Genome:
        """The changed genome."""
        choice = {**genome.choice, **dict(self.nodes)} if self.nodes else genome.choice
        return Genome(choice, genome.cuts ^ frozenset(self.toggles))


@dataclass(slots=True)
class _Sweep:
    """Moves of one kind at a class, and when each class was looked at last."""

    moves: Callable[[int], Iterator[Move]]
    visited: dict[int, int] = field(default_factory=dict)


class Climb:
    """A climb under way; `best` is where it stands.

    With `near`, an optimum that the start was made from, only what differs from it is looked at first.
    """

    def __init__(self, planner: Planner, start: Assembly, near: Assembly | None = None) -> None:
        self.planner, self.best = planner, start
        self.derived: Draft | None = None
        self.clock = 0
        self.changed: dict[int, int] = {}
        self.sweeps = (_Sweep(self._cuts), _Sweep(self._moves))
        if near is not None:
            for sweep in self.sweeps:
                sweep.visited = dict.fromkeys(near.draft.bodies, 0)
            self._accept(start, near)

    def run(self, evaluations: int) -> bool:
        """Sweep over the classes until none offers a gain (True) or the budget is spent (False).

        What is stored, of which there are few choices, is settled before all else is tried.
        """
        limit = self.planner.evaluations + evaluations
        return all(self._settle(sweep, limit) for sweep in self.sweeps)

    def _settle(self, sweep: _Sweep, limit: int) -> bool:
        before = -1
        while before != self.clock:
            before = self.clock
            for number in tuple(self.best.draft.bodies):
                if self.changed.get(number, 0) <= sweep.visited.get(number, -1):
                    continue
                sweep.visited[number] = self.clock
                for move in sweep.moves(number):
                    if self.planner.evaluations >= limit:
                        del sweep.visited[number]
                        return False
                    self.attempt(number, move)
        return True

    def _moves(self, number: int) -> Iterator[Move]:
        """Changes at a class, made while the climb goes on: each sees the incumbent of its moment."""
        space = self.planner.space
        for node in range(len(space.alternatives[number])):
            draft = self.best.draft
            if number not in draft.bodies or node == draft.genome.choice.get(number, 0):
                continue
            move = Move(((number, node),))
            yield move
            if self.best.draft is draft:
                yield from self._pairs(move)
        yield from self._cuts(number)

    def _cuts(self, number: int) -> Iterator[Move]:
        """Changes of what is stored."""
        planner, draft = self.planner, self.best.draft
        is_readable = number in planner.space.readable
        if not is_readable and not self._is_storable(number):
            return
        if is_readable or number in draft.genome.cuts or planner.is_worth(draft, number):
            yield Move((), (number,))
            yield from self._slides(number)
            yield from self._dissolved(number)

    def _slides(self, number: int) -> Iterator[Move]:
        """Storing something that is made of a stored class in its place, where nothing else needs that."""
        for user in dict.fromkeys(self.best.draft.users.get(number, ())):
            cuts = self.best.draft.genome.cuts
            if number in cuts and user not in cuts and self._is_storable(user):
                yield Move((), (number, user))

    def _dissolved(self, number: int) -> Iterator[Move]:
        """Storing nothing that the kernel of a class stores, where that is several temporaries."""
        outputs = self.planner.space.outputs
        for piece in self.best.pieces:
            stored = [c for c, _ in piece.outs]
            if number == stored[0] and len(stored) > 1 and not any(c in outputs for c in stored):
                yield Move((), tuple(stored))

    def _is_storable(self, number: int) -> bool:
        body, space = self.best.draft.bodies.get(number), self.planner.space
        if body is None or number in space.outputs or not space.is_storable(number):
            return False
        return not self.planner.dag.free[body] & ~AXES

    def _pairs(self, first: Move) -> Iterator[Move]:
        """The last change together with one more, at a class that only the change makes reachable."""
        draft, space = self.best.draft, self.planner.space
        reached = self.derived.bodies if self.derived else ()
        for other in [c for c in reached if c not in draft.bodies]:
            for node in range(len(space.alternatives[other])):
                if node != self.best.draft.genome.choice.get(other, 0):
                    yield Move((*first.nodes, (other, node)))

    def attempt(self, number: int, move: Move) -> bool:
        """Make a change at a class if it gains."""
        draft = self.best.draft
        genome = move.apply(draft.genome)
        self.derived = None
        try:
            self.derived = draft.derive(genome, [number] if move.nodes else (), move.toggles)
            found = self.planner.assemble(self.derived)
        except InfeasibleError:
            return False
        if found.seconds >= self.best.seconds * (1 - GAIN):
            return False
        self._accept(Assembly(self.planner.draft(genome), found.launches, found.seconds), self.best)
        return True

    def _accept(self, new: Assembly, old: Assembly) -> None:
        """Take a plan over, and mark every class of the kernels in which it differs from the old one."""
        self.clock += 1
        for draft, launches, others in (
            (old.draft, old.launches, new.launches),
            (new.draft, new.launches, old.launches),
        ):
            known = {x.outs for x in others}
            for launch in launches:
                if launch.outs not in known:
                    for number in draft.members([c for outs in launch.outs for c, _ in outs]):
                        self.changed[number] = self.clock
        self.best = new
