"""The memory report as text: what a plan takes, what lies in its arena, what its launches move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from lumi.cli.output import aligned, counted
from lumi.cli.stories import amount

if TYPE_CHECKING:
    from lumi.plan.memory import Held, PlanMemory, VariantMemory

LARGEST = 8
"""Buffers and kernels that are named; of more the report gives the number."""


_PLURALS = {"input": "inputs", "output": "outputs", "temporary": "temporaries"}


def told(memory: PlanMemory) -> Iterator[str]:
    """The report, line by line."""
    yield f"memory of {memory.name} for {memory.target}"
    parts = {"weights": memory.weights, "states": memory.states, "arena": memory.arena, **memory.beside}
    yield from _indented(aligned([[what, _bytes(size)] for what, size in parts.items()], left=(0,)))
    yield f"  {_bytes(memory.total)} for one session, whatever dims it is called with"
    for variant in memory.variants:
        yield ""
        yield from _variant(memory, variant)


def _variant(memory: PlanMemory, variant: VariantMemory) -> Iterator[str]:
    from lumi.plan.plan import Role

    at = ", ".join(f"{name} = {value}" for name, value in variant.dims.items())
    call = f"a call at {at}" if at else "a call"
    yield "; ".join(filter(None, [variant.label, counted(len(variant.launches), "launch")]))
    live = f"most are alive {_time(variant, variant.at)}"
    yield f"  arena {_bytes(variant.arena)} = {variant.ratio:.3f} × peak of live bytes; {live}"
    roles = (f"{_PLURALS[role.value]} {_bytes(variant.size(role))}" for role in Role if role.in_arena)
    yield f"  if none took the place of another: {', '.join(roles)}"
    yield f"  {call} uses {_bytes(memory.in_use(variant))}, {_bytes(variant.peak_now)} of it in the arena"
    yield f"  {call} reads {_bytes(variant.read)} and writes {_bytes(variant.written)}; {_copies(variant)}"
    if variant.buffers:
        yield "  the largest buffers"
        yield from _indented(_buffers(variant.buffers), 4)
    yield "  the kernels that move most"
    yield from _indented(_kernels(variant), 4)
    if variant.states:
        yield "  states, and what a call does to each"
        yield from _indented(_states(variant), 4)


def _copies(variant: VariantMemory) -> str:
    """Which whole buffers are copied."""
    copies = Counter(moved.copies for moved in variant.launches if moved.copies)
    names = [f"{what}{f' × {count}' if count > 1 else ''}" for what, count in copies.items()]
    more = f" and {len(names) - LARGEST} more" if len(names) > LARGEST else ""
    return f"copies {', '.join(names[:LARGEST])}{more}" if names else "copies no buffer"


def _buffers(buffers: Sequence[Held]) -> list[str]:
    """Buffers of one type, as the layers of a model have them, share a line, named by the first."""
    alike: dict[tuple[int, str], list[Held]] = {}
    for b in sorted(buffers, key=lambda b: (-b.most, b.first)):
        alike.setdefault((b.most, b.type), []).append(b)
    rows = [
        [_named([b.name for b in group]), kind, _bytes(size), f"{group[0].first} … {group[0].last}"]
        for (size, kind), group in list(alike.items())[:LARGEST]
    ]
    rest = [b for group in list(alike.values())[LARGEST:] for b in group]
    more = [[f"{len(rest)} more", "", "", ""]] if rest else []
    return aligned([["buffer", "type", "bytes", "launches"], *rows, *more], left=(0, 1))


def _kernels(variant: VariantMemory) -> list[str]:
    moved: dict[str, list[int]] = {}
    for launch in variant.launches:
        total = moved.setdefault(launch.kernel, [0, 0, 0])
        for n, figure in enumerate((1, launch.read, launch.written)):
            total[n] += figure
    ranked = sorted(moved.items(), key=lambda item: -item[1][1] - item[1][2])
    rows = [[name, str(n), _bytes(read), _bytes(written)] for name, (n, read, written) in ranked[:LARGEST]]
    if len(ranked) > LARGEST:
        n, read, written = (sum(total[k] for _, total in ranked[LARGEST:]) for k in range(3))
        rows.append([f"{len(ranked) - LARGEST} more", str(n), _bytes(read), _bytes(written)])
    return aligned([["kernel", "launches", "read", "written"], *rows], left=(0,))


def _states(variant: VariantMemory) -> list[str]:
    """States with equal figures share a line, named by the first."""
    alike: dict[tuple[int, ...], list[str]] = {}
    for s in variant.states:
        alike.setdefault((s.size, s.read, s.written, s.copied), []).append(s.name)
    rows = [[_named(names), *map(_bytes, figures)] for figures, names in alike.items()]
    return aligned([["state", "bytes", "read", "written", "copied"], *rows], left=(0,))


def _named(names: Sequence[str]) -> str:
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


def _time(variant: VariantMemory, launch: int) -> str:
    if launch < 0:
        return "before the first launch"
    if launch >= len(variant.launches):
        return "after the last launch"
    return f"at launch {launch} ({variant.launches[launch].kernel})"


def _bytes(size: int) -> str:
    return f"{amount(size)}B"


def _indented(lines: Iterable[str], by: int = 2) -> Iterator[str]:
    return (f"{' ' * by}{line}" for line in lines)
