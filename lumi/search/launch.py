"""What a plan under comparison consists of: pieces, and the launches that run them."""

from __future__ import annotations

from dataclasses import dataclass, field

from lumi.llir.kernel import Kernel, Schedule
from lumi.memo import Memo
from lumi.search.draft import Draft

Outs = tuple[tuple[int, int], ...]
"""The classes a kernel stores with their values, sorted."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A kernel of a plan under comparison."""

    outs: Outs
    kernel: Kernel
    schedule: Schedule
    seconds: float


@dataclass(frozen=True, slots=True)
class Launch:
    """Pieces that start together under one schedule: none of them waits for another.

    `outs` is what each stores.
    """

    pieces: tuple[Piece, ...]
    schedule: Schedule
    seconds: float
    outs: tuple[Outs, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "outs", tuple([p.outs for p in self.pieces]))

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Those of the pieces."""
        return tuple(p.kernel for p in self.pieces)


@Memo
def alone(piece: Piece) -> Launch:
    """A launch of one piece."""
    return Launch((piece,), piece.schedule, piece.seconds)


@dataclass(frozen=True, slots=True)
class Assembly:
    """A whole plan: its launches, producers first, and their modelled seconds together."""

    draft: Draft
    launches: tuple[Launch, ...]
    seconds: float

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces of all launches."""
        return tuple(p for launch in self.launches for p in launch.pieces)
