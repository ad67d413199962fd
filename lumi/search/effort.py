"""What trials cost: seconds by what for, and what results were compared with."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Effort:
    """Seconds that trials took: to compile, to make the reference, to check results by it, to time.

    `against` says what results were compared with; empty before any was.
    """

    compile: float = 0.0
    reference: float = 0.0
    check: float = 0.0
    time: float = 0.0
    against: str = ""


def total(efforts: Iterable[Effort]) -> Effort:
    """The effort of several trials, with the last of what they compared with."""
    compiled = reference = check = timed = 0.0
    against = ""
    for one in efforts:
        compiled, reference = compiled + one.compile, reference + one.reference
        check, timed = check + one.check, timed + one.time
        against = one.against or against
    return Effort(compiled, reference, check, timed, against)


@dataclass(slots=True)
class Stopwatch:
    """Seconds of one trial by the names of `Effort`, while it runs."""

    spent: dict[str, float] = field(default_factory=dict)
    against: str = ""

    @contextmanager
    def on(self, what: str) -> Iterator[None]:
        """Count what happens meanwhile as `what`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.spent[what] = self.spent.get(what, 0.0) + time.perf_counter() - start

    @property
    def effort(self) -> Effort:
        """What was spent so far."""
        return Effort(**self.spent, against=self.against)
