"""What is seen of a compilation while it runs, on standard error: bars on a terminal, else a line a stage."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from lumi.cli.output import counted, duration

if TYPE_CHECKING:
    from lumi.compiler import Progress
    from lumi.search import explain


_ITEMS = {"hlir": "variant", "fields": "variant", "egraph": "region", "kernels": "region", "plan": "variant"}


EVERY = 2.0
"""Seconds between lines about what is measured."""

QUIET = 10.0
"""Seconds without a line after which one tells how far a stage has come."""


class Display:
    """Shows progress: bars; where there is no terminal or no `rich`, lines if `in_lines`, else nothing."""

    def __init__(self, in_lines: bool = False) -> None:
        self._bars: Any = _bars() if sys.stderr.isatty() else None
        self._in_lines = in_lines
        self._tasks: dict[str, Any] = {}
        self._stage, self._told, self._measured = "", time.monotonic(), -EVERY

    def __enter__(self) -> Display:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            if error is None:
                self._finish()
            self._bars.stop()

    def stage(self, event: Progress) -> None:
        """A step of the pipeline begins."""
        name = event.stage.value
        if self._bars is None:
            if name != self._stage:
                self._print(f"{name}: {counted(event.total, _ITEMS[name]) if name in _ITEMS else event.what}")
            elif time.monotonic() - self._told >= QUIET:
                self._print(f"  {event.done} of {event.total} done, now {event.what or '(all)'}")
            self._stage = name
            return
        if name != self._stage:
            self._finish()
            self._stage = name
            self._tasks[name] = self._bars.add_task(name, total=event.total, detail="")
        self._bars.update(self._tasks[name], completed=event.done, total=event.total, detail=event.what)

    def search(self, event: explain.Progress) -> None:
        """The search of a region has gained or tried something."""
        if self._bars is None:
            self._line(event)
        elif self._stage in self._tasks:
            self._bars.update(self._tasks[self._stage], detail=_detail(event))

    def _line(self, event: explain.Progress) -> None:
        """Tell of a region that is measured now and then, of one that is not only after a long silence."""
        now = time.monotonic()
        if event.trials and now - self._measured >= EVERY:
            self._measured = now
            self._print(f"  {_detail(event)}")
        elif now - self._told >= QUIET:
            self._print(f"  {_detail(event)}")

    def _print(self, line: str) -> None:
        if self._in_lines:
            self._told = time.monotonic()
            print(line, file=sys.stderr, flush=True)

    def _finish(self) -> None:
        if self._stage in self._tasks:
            task = self._tasks[self._stage]
            total = next(t.total for t in self._bars.tasks if t.id == task)
            self._bars.update(task, completed=total, detail="")


def _detail(event: explain.Progress) -> str:
    counts = f"{event.evaluations} compared" + (f", {event.trials} measured" if event.trials else "")
    spent = f" in {duration(event.spent)}" if event.spent else ""
    refused = sum(event.refusals.values())
    more = f", {refused} refused" if refused else ""
    best = f"{duration(event.best)}, {event.kernels} kernels"
    return f"{event.region} {event.phase}: {best}; {counts}{spent}{more}"


def _bars() -> Any:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        return None
    columns = (
        TextColumn("{task.description:8}"),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}"),
    )
    return Progress(*columns, console=Console(stderr=True), refresh_per_second=8)
