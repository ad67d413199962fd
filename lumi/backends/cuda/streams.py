"""What the values of a program read, and along which axis neighbours in memory lie.

The axis along which most elements lie side by side is the one whose positions neighbouring threads take.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lumi.backends.cuda.expression import WIDEST, divides
from lumi.backends.cuda.values import about
from lumi.field.access import Access
from lumi.llir import spell
from lumi.llir.kernel import Load, Operand
from lumi.llir.program import Fold, Program, arguments


@dataclass(frozen=True, slots=True)
class Streams:
    """What a program reads from memory."""

    program: Program

    def length(self, axis: str) -> int:
        """About how many positions an axis has."""
        return about(self.program.kernel.axes[axis])

    def size(self, axes: Iterable[str]) -> int:
        """About how many elements lie along `axes`."""
        return math.prod(self.length(a) for a in axes)

    def reads(self, operands: Iterable[Operand]) -> Iterator[Load]:
        """Every load that values are made of, each once; other values in arrays are no loads."""
        seen: set[str] = set()
        todo = [o for o in operands if isinstance(o, str)]
        roots = set(todo)
        while todo:
            var = todo.pop()
            if var in seen:
                continue
            seen.add(var)
            definition = self.program.definitions[var]
            if isinstance(definition, Load):
                yield definition
            if var in roots or var not in self.program.arrays:
                todo += arguments(definition)

    def score(self, loads: Iterable[Load], axis: str) -> int:
        """Elements that lie side by side along an axis."""
        return sum(self.size(load.axes) for load in loads if spell.step(load.access, axis) == 1)

    def folds(self, operands: Iterable[Operand]) -> list[Fold]:
        """The reductions that values are made of, but for those inside others and other arrays."""
        found: list[Fold] = []
        seen: set[str] = set()
        todo = [o for o in operands if isinstance(o, str)]
        roots = set(todo)
        while todo:
            var = todo.pop()
            if var in seen:
                continue
            seen.add(var)
            definition = self.program.definitions[var]
            if isinstance(definition, Fold) and (var in roots or var not in self.program.arrays):
                found.append(definition)
            elif var in roots or var not in self.program.arrays:
                todo += arguments(definition)
        return found

    def lane_axis(self, fold: Fold) -> str:
        """The reduced axis that the threads of a team share."""
        loads = list(self.reads(fold.terms))
        return max(fold.over, key=lambda a: (self.score(loads, a), self.length(a), a))

    def width(self, loads: Iterable[Load], axis: str, multiple: int) -> int:
        """Neighbours along `axis` that a thread takes at once, of a range whose ends are multiples."""
        found = [(self.size(x.axes), x) for x in loads if spell.step(x.access, axis) == 1]
        if not found:
            return 1
        largest = max(size for size, _ in found)
        smallest = min(x.access.dtype.size for size, x in found if size == largest)
        chosen = [x.access for size, x in found if size == largest and x.access.dtype.size == smallest]
        return widest(chosen[0], axis, multiple)


def widest(access: Access, axis: str, multiple: int) -> int:
    """The most neighbours of an access along `axis` that one instruction can move."""
    count = WIDEST // access.dtype.size
    while count > 1:
        if multiple % count == 0 and _fits(access, axis, count):
            return count
        count //= 2
    return 1


def _fits(access: Access, axis: str, count: int) -> bool:
    return divides(access, count, lambda name: count if name == axis else 1)
