"""Launches of a variant as one graph, which takes the dims from device memory.

It never changes, but for two things.  Where cuBLASLt is called, the sizes of its products are part of a
graph, so there is one for each of the last values of the dims that they depend on.  Sizes that are met for
the first time run without a graph, which would take longer to make than it saves.  And where a grid may have
far more blocks than run at once, those without a cell would take longer to come and go than the others to
work: so there is a graph for every power of two up to which dims have cells.  Those for dims that no shape of
an input shows, which grow from call to call (`past`), are made together, so that no later call makes one.
"""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from lumi.backends.cuda import gemm
from lumi.backends.cuda.compile import compile_cubins
from lumi.backends.cuda.cublas import Library, open_library
from lumi.backends.cuda.emit import STAGED, Code, emit, source
from lumi.backends.cuda.gpu import Argument, Function, Gpu, Graph
from lumi.backends.cuda.mail import Mail
from lumi.backends.cuda.mma.plan import ROUNDING
from lumi.backends.cuda.schedule import DEFAULT, schedules, together
from lumi.backends.cuda.staged import ROOM
from lumi.backends.cuda.tf32 import is_tf32
from lumi.backends.cuda.wgmma import plan as groups
from lumi.errors import LumiError
from lumi.llir.kernel import Step

FAMILIES = 16
"""Families of graphs of one variant that are kept for other sizes of its products and grids."""

GRAPHS = 64
"""Graphs of one variant that are kept; where those of a family would be more, each is made when needed."""

CROWD = 8
"""Blocks of a multiprocessor beyond which the number of blocks follows the dims."""

ROOMY = ("mma", "walk")
"""Templates that run on every GPU with as much shared memory as their numbers ask for."""

Family: TypeAlias = "dict[tuple[int, ...], Graph]"
"""Graphs by the values that dims which grow are rounded to."""

NAME = "kernel"
"""What the function of every source is called."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A step on the GPU: its code, its function, the dims it takes.

    With `call` a library computes it; the function is for what the library has no algorithm for.
    """

    code: Code
    names: tuple[str, ...]
    function: Function = field(repr=False)
    call: gemm.Call | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A launch: a kernel, the addresses of its buffers, and the most cells its grid can have.

    `constant` tells for each buffer whether no launch of the same graph writes it, `since` is the number,
    among the kernel's, of the dim from whose value on one may write the rows that it walks along; or -1.
    `largest` are the dims that the buffers have memory for.
    """

    kernel: Loaded
    addresses: tuple[int, ...]
    cells: int
    constant: tuple[bool, ...] = ()
    since: int = -1
    largest: Mapping[str, int] = field(default_factory=dict)

    @property
    def mask(self) -> int:
        """The constant buffers as bits, the first being the lowest."""
        return sum(1 << k for k, is_constant in enumerate(self.constant) if is_constant)


def load_kernels(gpu: Gpu, steps: Sequence[Step]) -> list[Loaded]:
    """Compile kernels side by side and put them on the GPU.

    Raises `LumiError` for what NVRTC refuses, and for a plan with a schedule that does not suit its kernels.
    """
    written = [_written(step, gpu) for step in steps]
    cubins = compile_cubins([source([code.text]) for _, code in written], gpu.arch)
    loaded = []
    for (step, code), cubin in zip(written, cubins, strict=True):
        if isinstance(cubin, LumiError):
            raise cubin
        function = gpu.function(cubin.content, NAME, code.shared)
        if code.turns:
            at_once = gpu.resident(function, code.threads, code.shared)
            if at_once < 1:
                message = f"a block of {code.threads} threads and {code.shared} bytes does not fit the GPU"
                raise LumiError("plan error", message, hint="compile the model again")
            code = replace(code, resident=min(code.resident, at_once))
        loaded.append(Loaded(code, step.dims, function, gemm.call(step)))
    return loaded


def _written(step: Step, gpu: Gpu) -> tuple[Step, Code]:
    """The step under a schedule that the GPU can run, and its code."""
    try:
        step = fitting(step, gpu)
        return step, emit(step, NAME)
    except ValueError as error:
        message = f"a kernel cannot run as {step.schedule.template}: {error}"
        raise LumiError("plan error", message, hint="compile the model again") from error


def fitting(step: Step, gpu: Gpu) -> Step:
    """The step under a schedule that the GPU can run: its own, or one of its template, or the default.

    Where groups of warps cannot multiply, single ones do.  None rounds what the step's own does not.
    """
    if step.then:
        first, *others = (fitting(turn, gpu) for turn in step.turns)
        return replace(first, then=tuple(others))
    template = step.schedule.template
    if template in STAGED:
        return step if gpu.starts_early and gpu.room >= ROOM else replace(step, schedule=DEFAULT)
    if template == groups.TEMPLATE and gpu.arch != groups.ARCH:
        template = ROOMY[0]
    if template not in ROOMY:
        return step
    given = step.schedule.options
    every = partial(schedules, tf32=is_tf32(step.schedule))
    known = together(step.kernels, every) if step.beside else every(step.kernel)
    own_kind = (s for s in known if s.template == template)
    alike = (replace(step, schedule=s) for s in own_kind if ROUNDING in given or ROUNDING not in s.options)
    own = (step,) if step.schedule.template == template else ()
    fits = (s for s in (*own, *alike) if emit(s, NAME).shared <= gpu.room)
    return next(fits, replace(step, schedule=DEFAULT))


class Launches:
    """Launches in order, as a graph; `run` gives the dims their values and runs them all.

    `entries` are what it consists of.  The dims go by `mail`, which has room for those of all kernels.
    `growing` dims change from call to call.
    """

    def __init__(
        self,
        gpu: Gpu,
        entries: Sequence[Entry],
        mail: Mail | None = None,
        growing: Collection[str] = (),
    ) -> None:
        self._gpu, self.entries = gpu, tuple(entries)
        self._places: dict[tuple[str, ...], int] = {}
        for entry in entries:
            if entry.kernel.names not in self._places:
                self._places[entry.kernel.names] = sum(map(len, self._places))
        self._names = [name for names in self._places for name in names]
        self._mail = mail or Mail(gpu, len(self._names))
        calls = [e.kernel.call for e in entries if e.kernel.call is not None]
        self._library: Library | None = open_library(gpu) if calls else None
        called = calls if self._library is not None else []
        self._sized = sorted(frozenset().union(*(call.dims for call in called)))
        crowded = [e.kernel.code for e in entries if self._is_crowded(e)]
        rounded = sorted(frozenset().union(*(code.dims for code in crowded)) - {*self._sized})
        growth = {n: _powers(max(e.largest.get(n, 0) for e in entries)) for n in rounded if n in growing}
        self._growth = growth if math.prod(map(len, growth.values())) <= GRAPHS else {}
        self._rounded = [name for name in rounded if name not in self._growth]
        self._families: dict[tuple[int, ...], Family] = {}
        self._met: set[tuple[int, ...]] = set()
        self._only: Graph | None = None
        if not self._sized and not self._rounded:
            family = self._families[()] = self._family(())
            self._only = next(iter(family.values())) if len(family) == 1 else None

    def _graph(self, values: Mapping[str, int]) -> Graph | None:
        """The graph for the sizes of products, and of grids, at these dims, its family standing last.

        None for sizes of products that are new.
        """
        if self._only is not None:
            return self._only
        sizes = tuple([values[name] for name in self._sized])
        if sizes and sizes not in self._met:
            self._met.add(sizes)
            return None
        key = (*sizes, *[_rounded(values[name]) for name in self._rounded])
        found = self._families.pop(key, None)
        if found is None:
            found = self._family(key)
            self._make_room(FAMILIES - 1, GRAPHS - _count(found))
        self._families[key] = found
        return found[tuple([_rounded(values[name]) for name in self._growth])]

    def _make_room(self, families: int, graphs: int) -> None:
        """Keep at most so many families, and graphs in them: those used last."""
        while self._families and (
            len(self._families) > families or sum(map(_count, self._families.values())) > graphs
        ):
            del self._families[next(iter(self._families))]

    def _family(self, key: Sequence[int]) -> Family:
        """Graphs for all values of dims that grow; those with the same grids are one."""
        sizes = dict(zip((*self._sized, *self._rounded), key, strict=True))
        made: dict[tuple[int, ...], Graph] = {}
        family: Family = {}
        for grown in itertools.product(*self._growth.values()):
            values = sizes | dict(zip(self._growth, grown, strict=True))
            blocks = tuple(self._blocks(entry, values) for entry in self.entries)
            if blocks not in made:
                made[blocks] = self._gpu.capture(self._work(values))
            family[grown] = made[blocks]
        return family

    def _work(self, values: Mapping[str, int]) -> Callable[[], None]:
        """What puts all launches on the stream one by one."""
        library = self._library
        ready = [self.call(entry, values) for entry in self.entries]

        def work() -> None:
            for number, (entry, call) in enumerate(zip(self.entries, ready, strict=True)):
                if library is not None and call is not None:
                    call.put(library)
                else:
                    follows = number > 0 and ready[number - 1] is None
                    self._launch(entry, values, early=follows and self._gpu.starts_early)

        return work

    def _is_crowded(self, entry: Entry) -> bool:
        """Whether more blocks may be launched than run at once, by far, and dims say how many have cells."""
        most = min(entry.cells, self._gpu.units * entry.kernel.code.resident)
        return most > CROWD * self._gpu.units and bool(entry.kernel.code.dims)

    def _blocks(self, entry: Entry, values: Mapping[str, int]) -> int:
        """Blocks of a launch, where the dims that grids depend on have about these values."""
        code, cells = entry.kernel.code, entry.cells
        if self._is_crowded(entry):
            cells = min(cells, code.cells(values))
        blocks = max(1, min(cells, self._gpu.units * code.resident))
        return -(-blocks // code.cluster) * code.cluster

    def call(self, entry: Entry, values: Mapping[str, int]) -> gemm.Ready | None:
        """The library's call for an entry at these dims; None where the kernel's own function runs."""
        if self._library is None or entry.kernel.call is None:
            return None
        return entry.kernel.call.ready(self._library, values, entry.addresses)

    def _launch(self, entry: Entry, values: Mapping[str, int], early: bool) -> None:
        kernel, code = entry.kernel, entry.kernel.code
        place = self._mail.address + 8 * self._places[kernel.names]
        arguments: list[Argument] = [(a, ctypes.c_void_p) for a in (*entry.addresses, place)]
        if code.streams or code.walks:
            arguments.append((entry.mask, ctypes.c_uint32))
        if code.walks:
            arguments.append((entry.since, ctypes.c_int32))
        if code.turns:
            arguments.append((self._gpu.meeting, ctypes.c_void_p))
        for box in code.maps:
            seen = self._gpu.tensor_map(entry.addresses[box.buffer], box.at(entry.largest))
            arguments.append((seen, None))
        blocks = self._blocks(entry, values)
        self._gpu.launch(kernel.function, blocks, code.threads, code.shared, arguments, early, code.turns)

    def start(self, values: Mapping[str, int]) -> None:
        """Put all launches on the stream."""
        self._mail.set_dims([values[name] for name in self._names])
        graph = self._graph(values)
        if graph is not None:
            graph.replay(self._mail.pieces())
        else:
            self._gpu.enqueue(self._work(values), self._mail.pieces())

    def run(self, values: Mapping[str, int]) -> None:
        """Run all launches in order, and wait."""
        self.start(values)
        self._gpu.wait()


def _count(family: Family) -> int:
    """How many graphs a family has."""
    return len({id(graph) for graph in family.values()})


def _rounded(value: int) -> int:
    """The next power of two; 0 stays."""
    return 1 << (value - 1).bit_length() if value > 0 else value


def _powers(most: int) -> list[int]:
    """All that values up to `most` are rounded to."""
    return sorted({_rounded(most), *(1 << k for k in range(most.bit_length())), 0})
