"""What the child is asked to do, as `worker` takes it, and where buffers lie in its blocks."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

from lumi import dim
from lumi.field.region import Region
from lumi.llir.json import encode
from lumi.llir.kernel import KernelGraph, Temporary
from lumi.search.child import Worker, WorkerError
from lumi.search.protocol import Reason

ALIGNMENT = 256
"""Bytes: every buffer begins at a multiple of it, as the buffers of a plan do."""

BETWEEN = "between"
"""The block of temporaries, which all graphs share."""

Place: TypeAlias = "tuple[str, int]"
"""A block by its name, and a byte of it."""

Command: TypeAlias = "list[Any]"
"""The name of a method of `worker.Workbench`, and what it is given."""


def ask(worker: Worker, commands: Sequence[Command], seconds: float = 0.0) -> list[Any]:
    """What each command gives; all may take so many `seconds` beside those that any job may take.

    Raises `WorkerError` for a crash, a hang, and where there is no memory.
    """
    told = worker.run({"commands": list(commands), "seconds": seconds})
    if "failed" in told:
        raise WorkerError(Reason.MEMORY if told["at"] == "hold" else Reason.CRASH, told["failed"])
    answers: list[Any] = told["answers"]
    return answers


def aligned(size: int) -> int:
    """Bytes that a buffer takes."""
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT


def between(temporaries: Mapping[str, Temporary], values: Mapping[str, int]) -> tuple[dict[str, Place], int]:
    """Where temporaries lie, and the bytes of all."""
    place, found = 0, dict[str, Place]()
    for name, temporary in temporaries.items():
        found[name] = BETWEEN, place
        place += aligned(math.prod(dim.value(e, values) for e in temporary.shape) * temporary.dtype.size)
    return found, place


def room_between(size: int) -> list[Command]:
    """What makes room for temporaries, whose bytes make numbers NaN."""
    return [["hold", BETWEEN, size], ["spoil", BETWEEN, size]] if size else []


def table(graph: KernelGraph, places: Mapping[str, Place], constant: Collection[str]) -> list[Any]:
    """For each step the places of its buffers, and which of them are constant."""
    return [[[places[b] for b in s.buffers], [b in constant for b in s.buffers]] for s in graph.steps]


def constants(region: Region, graph: KernelGraph) -> frozenset[str]:
    """The inputs, params and states of a region that no kernel writes."""
    named = {f"B{k}" for k, name in enumerate(region.buffers) if not name.startswith("%")}
    return frozenset(named.difference(*(s.written for s in graph.steps)))


def run(graph: KernelGraph, rows: list[Any], values: Mapping[str, int]) -> Command:
    """Run a graph once with these rows of `table`."""
    return ["run", [encode(s) for s in graph.steps], rows, dict(values)]
