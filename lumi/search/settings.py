"""What a search is told: how far to go, at which sizes, within which limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from lumi.dim import DimRange


class Mode(Enum):
    """How plans are chosen.

    `NONE`: the first plan that works.  `MODEL`: the best by the analytic model.  `MEASURE`: the model
    proposes, measured times decide.
    """

    NONE = "none"
    MODEL = "model"
    MEASURE = "measure"


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits of one region's search; all but `seconds` are counts, so that a plan can be made again.

    `hints` are the dim values to be fast at, the first being the most important; `ranges` the values the
    plan must be legal for.  `splits` are the (axis, chunk axis) pairs that the e-graph may split.
    `evaluations` bounds the plans that the model compares, `trials` those that are measured, `seconds`
    the time for measuring.  At the largest dims the values between kernels that are alive at once may have
    `memory` bytes, and each that only this region has `growth` times those of the largest buffer that it has
    anyway: a plan whose memory grows with the square of a length is not wanted, however fast at the hints.
    Where no plan keeps to `growth`, it is waived.
    Tiles that are not tuned yet leave a grid of at least `cells` cells, as many as keep the device busy.
    """

    mode: Mode = Mode.MODEL
    hints: tuple[Mapping[str, int], ...] = ({},)
    ranges: Mapping[str, DimRange] = field(default_factory=dict)
    splits: tuple[tuple[str, str], ...] = ()
    seed: int = 0
    evaluations: int = 600
    trials: int = 64
    seconds: float = 12.0
    memory: int = 1 << 34
    growth: int = 8
    cells: int = 1

    @property
    def largest(self) -> dict[str, int]:
        """The largest value of each dim: of its declared range, or of the hints."""
        found: dict[str, int] = {}
        for hint in self.hints:
            for name, value in hint.items():
                found[name] = max(value, found.get(name, value))
        return found | {n: r.high for n, r in self.ranges.items()}
