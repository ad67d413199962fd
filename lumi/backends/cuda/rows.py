"""What the functions of kernels have in common that multiply rows of matrices, stage by stage.

A cell is a piece of the rows, one after the other.  Threads of a block copy them, so many at once into a
stage; the others hold the vector, use stage after stage, and at last make the results of the cell.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

from lumi.backends.cuda import ctype, staged
from lumi.backends.cuda.scope import Value, single
from lumi.backends.cuda.staged import Staged
from lumi.backends.cuda.values import loads_below, long, stores
from lumi.llir import spell
from lumi.llir.kernel import Load
from lumi.llir.program import Fold, Program

CELLS = 132
"""Pieces that the rows are cut into: one for each multiprocessor of the GPU that this is made for."""

LEAST = 116 << 10
"""Bytes of shared memory that a block takes at least, so that no second one fits beside it."""

HELD = 128
"""Elements of vectors that a thread may hold in registers."""


class Summed(Protocol):
    """A matrix: a fold over its rows."""

    @property
    def fold(self) -> Fold:
        """The fold."""
        ...

    @property
    def loads(self) -> tuple[Load, ...]:
        """What its elements are made of."""
        ...


class Rows(Protocol):
    """A kernel over the rows of matrices; see `matrix.Matrices`."""

    @property
    def program(self) -> Program:
        """The kernel."""
        ...

    @property
    def rows(self) -> tuple[str, ...]:
        """The axes of the rows."""
        ...

    @property
    def over(self) -> tuple[str, ...]:
        """The axes of the elements of a row."""
        ...

    @property
    def matrices(self) -> Sequence[Summed]:
        """The matrices."""
        ...

    @property
    def count(self) -> int:
        """Rows."""
        ...


class Numbers(staged.Numbers, Protocol):
    """The numbers of a ring: `warps` share a row, `rows` of which lie in each of `stages` stages."""

    @property
    def warps(self) -> int:
        """Warps that share a row."""
        ...

    @property
    def rows(self) -> int:
        """Rows in a stage."""
        ...

    @property
    def stages(self) -> int:
        """Stages."""
        ...

    @property
    def stage(self) -> int:
        """Bytes of a stage."""
        ...

    @property
    def flight(self) -> int:
        """Stages that are on their way at once."""
        ...

    @property
    def cells(self) -> int:
        """Pieces that the rows are cut into."""
        ...


class RowWriter(Staged, ABC):
    """Writes the function of a kernel over rows; how a stage is filled and used is for others to say.

    A piece of the rows has `most` of them at most.
    """

    def __init__(
        self, found: Rows, numbers: Numbers, name: str, names: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(found.program, found.over, numbers, name, names)
        self.all, self.numbers = found, numbers
        self.most = -(-found.count // numbers.cells)
        results = stores(self.program)
        self.single = [s for s in results if not long(self.kernel, s.axes)]
        self.of_rows = [s for s in results if long(self.kernel, s.axes)]
        self.late = loads_below(self.program, [s.value for s in self.of_rows], folds=False)

    def write(self) -> str:
        """The CUDA of the function and of what its parts do."""
        p = self.numbers
        entry = self.entry(p.stages, p.stage, [x for m in self.all.matrices for x in m.loads])
        return "\n".join([self._fill(), self.fetched(), self._use(), entry])

    @abstractmethod
    def fetched(self) -> str:
        """The function that brings the vector near."""

    @abstractmethod
    def fill_stage(self) -> None:
        """Copy rows from number `row` on into a stage."""

    @abstractmethod
    def hold_vectors(self) -> None:
        """Bring what rows are multiplied with into registers."""

    @abstractmethod
    def use_stage(self) -> None:
        """Multiply the rows of a stage from number `row` on: sums over a warp go to memory."""

    # -- functions

    def _fill(self) -> str:
        p, w = self.numbers, self.w
        self.begin()
        w.line(f"Filler<{p.stages}, {p.stage}, {p.flight}> filler(stages, full, empty);")
        with w.block(f"for (int cell = blockIdx.x; cell < {p.cells}; cell += gridDim.x) "):
            self._rows_of_cell()
            self.fill_rows()
        return self.end("fill", ["u8 *stages", "u64 *full", "u64 *empty"])

    def fill_rows(self) -> None:
        """Fill stages with the rows from `first` up to `last`."""
        with self.w.block(f"for (int row = first; row < last; row += {self.numbers.rows}) "):
            self.fill_stage()
            self.w.line("filler.turn.next();")

    def _use(self) -> str:
        p, w = self.numbers, self.w
        self.begin()
        self.use_vectors("blockIdx.x == 0")
        w.line(f"Turn<{p.stages}> turn;")
        with w.block(f"for (int cell = blockIdx.x; cell < {p.cells}; cell += gridDim.x) "):
            self._rows_of_cell()
            self.use_rows()
        return self.end("use", ["u8 *stages", "u64 *full", "u64 *empty", "float *parts", "float *results"])

    def use_vectors(self, first: str) -> None:
        """Hold what all rows share; the block for which `first` holds stores what is one value."""
        for load in self.late:
            if not long(self.kernel, load.axes):
                self.expressions.value(load.var, load.dtype)
        self.hold_vectors()
        if self.single:
            with self.w.block(f"if ({first} && threadIdx.x == 0) "):
                for store in self.single:
                    self.store(store)

    def use_rows(self) -> None:
        """Use the rows from `first` up to `last`."""
        p, w = self.numbers, self.w
        early = self._early_loads()
        with w.block(f"for (int row = first; row < last; row += {p.rows}) "):
            self.use_stage()
        w.line(f"users_wait<{p.users}>();")
        with w.block(f"for (int k = threadIdx.x; k < last - first; k += {p.users}) "):
            self._results(early)
        w.line(f"users_wait<{p.users}>();")

    def _rows_of_cell(self) -> None:
        count, cells = self.all.count, self.numbers.cells
        self.w.line(f"const int first = (int)((i64)cell * {count} / {cells});")
        self.w.line(f"const int last = (int)((i64)(cell + 1) * {count} / {cells});")

    # -- results

    def _early_loads(self) -> dict[str, str]:
        """Load what a thread's first result needs long before it is ready; the variables by value."""
        w = self.w
        loads = [x for x in self.late if long(self.kernel, x.axes) and not x.data]
        names = {x.var: w.fresh("e") for x in loads}
        for load in loads:
            w.line(f"{ctype.register(load.dtype).type} {names[load.var]} = 0;")
        if loads:
            with w.block("if (first + (int)threadIdx.x < last) "):
                self.open_row("first + (int)threadIdx.x")
                for load in loads:
                    w.line(f"{names[load.var]} = {self.loaded(load)};")
        return names

    def open_row(self, row: str) -> None:
        """Open the axes of the rows at one of them."""
        names = {a: self.w.fresh(f"x_{spell.identifier(a)}_") for a in self.all.rows}
        self.place(self.w.declare("int", row, "row"), names)
        self.w.here.opened |= {a: single(name) for a, name in names.items()}

    def _results(self, early: Mapping[str, str]) -> None:
        """Store what is made of the products of a row, in one thread."""
        p, w, matrices = self.numbers, self.w, self.all.matrices
        self.open_row("first + k")
        for number, matrix in enumerate(matrices):
            place = f"results + (k * {len(matrices)} + {number}) * {p.warps}"
            text = ctype.rounded(f"total_of<{p.warps}>({place})", matrix.fold.dtype)
            w.here.values[matrix.fold.var] = Value(matrix.fold.dtype, (), {(): w.declare("float", text)})
        once = self.most <= p.users
        for load in self.late:
            if load.var in early:
                name = early[load.var]
                text = name if once else f"k < {p.users} ? {name} : {self.loaded(load)}"
                kind = ctype.register(load.dtype).type
                w.here.values[load.var] = Value(load.dtype, (), {(): w.declare(kind, text)})
        for store in self.of_rows:
            self.store(store)
