"""A kernel on tensor cores as one CUDA function: its cells, its tiles of factors, its results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from lumi.backends.clike.loops import multiple_of, whole
from lumi.backends.clike.roots import operand_type, stored_type
from lumi.backends.clike.scope import Scope
from lumi.backends.cuda import ctype, frame
from lumi.backends.cuda.mma import lookup, wide
from lumi.backends.cuda.mma.elements import Elements
from lumi.backends.cuda.mma.form import HALVES, Product, Stored
from lumi.backends.cuda.mma.plan import STEP, WARP, Plan, Tile, is_whole, step
from lumi.backends.cuda.mma.tiles import Along, Held, Tiles
from lumi.backends.cuda.scope import Blocking, Value, Writer, single
from lumi.backends.cuda.values import long
from lumi.dtype import BF16, F32, I32, DType
from lumi.llir import spell
from lumi.llir.kernel import Load, Loop, Map, Operand, Store, buffers, dims, walk
from lumi.llir.program import Fold, arguments, axes_of, dtype_of

GROUP = 8
"""Tiles of rows that run side by side over all columns, so that the caches hold what they share."""


class TensorWriter(ABC):
    """What the functions of all forms have in common."""

    def __init__(self, plan: Plan, name: str, beside: Mapping[str, str] | None = None) -> None:
        """`beside` are the names of the buffers of a launch that the kernel shares with others."""
        self.plan, self.form, self.name, self.beside = plan, plan.form, name, beside is not None
        self.kernel = plan.form.program.kernel
        names = frame.names(buffers(self.kernel)) if beside is None else beside
        self.w = Writer(plan.form.program, names, blocking=Blocking(plan.threads))
        self.elements = Elements(self.w)
        loops = [s for s in walk(self.kernel.body) if isinstance(s, Loop)]
        self.chunked = frozenset(a for s in loops if s.chunk is not None for a in s.axes)
        row = self._along(self.form.row, "row", 2 * plan.row_tiles, 8, 1, plan.rows)
        self.tiles = Tiles(self.w, self.elements, row)

    @property
    def bf16(self) -> str:
        """The argument of the helpers that says which halves the factors are."""
        return "true" if self.form.dtype == BF16 else "false"

    @property
    def kind(self) -> str:
        """How the helpers end that read factors as they are multiplied."""
        return "_tf32" if self.form.is_tf32 else ""

    def multiplied(self, result: str, a: str, b: str) -> str:
        """CUDA that adds the products of a step to a result."""
        helper = "multiply_tf32" if self.form.is_tf32 else f"multiply<{self.bf16}>"
        return f"{helper}({result}, {a}, {b});"

    def _along(self, axis: str, first: str, count: int, step: int, width: int, tile: int) -> Along:
        extent = self.kernel.axes[axis]
        stop = "" if is_whole(self.form, axis, tile) else self.w.extent(extent)
        return Along(axis, first, count, step, width, stop, not stop or multiple_of(extent) % 2 == 0)

    def open_columns(self, axis: str, first: str) -> None:
        """Share the positions of an axis as columns, a thread's first being `first`."""
        plan = self.plan
        count = plan.warp_columns(axis) // 8
        self.tiles.columns[axis] = self._along(axis, first, count, 8, 2, plan.width_of(axis))

    # -- the function

    def function(self) -> str:
        """The CUDA of the kernel; beside others, of a function that returns the number of cells so far."""
        w, form, plan = self.w, self.form, self.plan
        self.open()
        w.line("const u32 shared = shared_address(pool);")
        w.line(f"const int lane = threadIdx.x % {WARP}, warp = threadIdx.x / {WARP};")
        high = self.count(form.row, plan.rows, "high")
        wide = self.count(form.column, plan.width_of(form.column), "wide")
        outer = [w.extent(self.kernel.axes[a]) for a in form.outer]
        total = " * ".join([*outer, high, wide])
        first = "(blockIdx.x + gridDim.x - before % gridDim.x) % gridDim.x" if self.beside else "blockIdx.x"
        with w.block(f"for (int cell = {first}; cell < {total}; cell += gridDim.x) "):
            self.open_cell(high, wide)
            self.cell()
        if self.beside:
            return frame.member(self.kernel, w, self.name, plan.shared, f"before + {total}")
        return frame.text(self.kernel, w, self.name, plan.shared)

    def open(self) -> None:
        """Begin a function: whole axes, those of one position, the dims."""
        w = self.w
        w.scopes = [Scope(0, 1)]
        w.ranges = {a: whole(w, a) for a in self.kernel.axes}
        w.here.opened |= {a: single("0") for a, e in self.kernel.axes.items() if e == 1}
        for number, name in enumerate(dims(self.kernel)):
            w.line(f"const i64 {spell.dim_name(name)} = dims[{number}];")

    @abstractmethod
    def cell(self) -> None:
        """Write what a cell does."""

    def count(self, axis: str, tile: int, stem: str) -> str:
        """CUDA for the number of tiles along an axis."""
        extent = self.kernel.axes[axis]
        if isinstance(extent, int):
            return str(-(-extent // tile))
        return self.w.declare("int", f"({self.w.extent(extent)} + {tile - 1}) / {tile}", stem)

    def open_cell(self, high: str, wide: str) -> None:
        """Find the place of a cell: outer axes run slowest, the last of them fastest."""
        w, form, plan = self.w, self.form, self.plan
        rest = w.declare("int", f"cell / ({high} * {wide})", "rest")
        w.line(f"const int tile = cell % ({high} * {wide});")
        for axis in reversed(form.outer):
            last = axis == form.outer[0]
            extent = w.extent(self.kernel.axes[axis])
            place = rest if last else f"{rest} % {extent}"
            name = w.declare("int", place, f"x_{spell.identifier(axis)}_")
            w.here.opened[axis] = single(name)
            if not last:
                rest = w.declare("int", f"{rest} / {extent}", "rest")
        self.open_tile(high, wide)
        row = "" if plan.high == 1 else f" + warp / {plan.wide} * {plan.warp_rows}"
        w.line(f"const int row = first_row{row} + lane / 4;")

    def open_tile(self, high: str, wide: str) -> None:
        """Find the first row and the first column of a tile; tiles of rows run in groups."""
        w, plan, form = self.w, self.plan, self.form
        w.line(f"const int group = tile / ({GROUP} * {wide}) * {GROUP};")
        w.line(f"const int members = least({GROUP}, {high} - group);")
        w.line(f"const int inner = tile - group * {wide};")
        w.line(f"const int first_row = (group + inner % members) * {plan.rows};")
        w.line(f"const int first_column = inner / members * {plan.width_of(form.column)};")

    # -- tiles of factors

    def copy(self, tile: Tile, to: str, starts: Mapping[str, str], stops: Mapping[str, str]) -> None:
        """Copy a tile that begins at these positions; axes end where they do, or at `stops`."""
        if tile.factor.placed:
            axes = (tile.lines_axis, tile.factor.along)
            found = {a: stops.get(a, self.w.extent(self.kernel.axes[a])) for a in axes}
            call = f"{self.copy_helper(tile, 'false')}({to}"
            lookup.write(self.elements, tile, call, starts, found)
            return
        w, load = self.w, tile.factor.load
        sizes = {tile.lines_axis: tile.lines, tile.factor.along: tile.chunks * self.form.piece}
        with w.block("", {axis: single(place) for axis, place in starts.items()}):
            data = {n: self.elements.value(o, I32) for n, o in enumerate(load.data)}
            pointer = self.elements.pointer(load.access, data, {})
            left = [f"{stops.get(a, w.extent(self.kernel.axes[a]))} - {starts[a]}" for a in sizes]
            ends = any(a in self.chunked or not is_whole(self.form, a, size) for a, size in sizes.items())
            full = "false" if ends or tile.width < self.form.piece else "true"
            distance = spell.extent(step(tile.factor, tile.lines_axis))
            w.line(f"{self.copy_helper(tile, full)}({to}, {pointer}, {distance}, {', '.join(left)});")

    def copy_helper(self, tile: Tile, full: str) -> str:
        """The helper that copies a tile, which with `full` never ends early."""
        return f"copy_tile<{tile.lines}, {tile.chunks}, {self.plan.threads}, {tile.width}, {full}>"

    def rows_of(self, tile: Tile, name: str, place: str, k: str) -> None:
        """Load the rows of a warp at a step of the sum into registers."""
        across = "false" if tile.factor.is_summed_along else "true"
        first = f"warp / {self.plan.wide} * {self.plan.warp_rows}" if self.plan.high > 1 else "0"
        self.w.line(f"load_rows{self.kind}<{tile.chunks}, {across}>({name}, {place}, {first}, {k});")

    def columns_of(self, tile: Tile, name: str, place: str, k: str, taken: bool = False) -> None:
        """Load the columns of a warp at a step of the sum into registers.

        With `taken` they meet rows that are taken from results, whose positions of f32 are in another order.
        """
        across = "false" if tile.factor.is_summed_along else "true"
        width = self.plan.warp_columns(tile.factor.outer)
        first = f"warp % {self.plan.wide} * {width}" if self.plan.wide > 1 else "0"
        order = f", {'true' if taken else 'false'}" if self.form.is_tf32 else ""
        numbers = f"{tile.chunks}, {across}{order}"
        self.w.line(f"load_columns{self.kind}<{numbers}>({name}, {place}, {first}, {k});")

    def pairs(self, factor: Stored) -> int:
        """Steps of 16 that the columns of a warp are loaded in."""
        return self.plan.warp_columns(factor.outer) // STEP

    def at(self, tile: Tile, base: str) -> str:
        """CUDA for the address of a tile in its stage."""
        return f"{base} + {tile.offset}" if tile.offset else base

    # -- results

    def store_all(self, stores: Sequence[Store]) -> None:
        """Store results: those of rows and columns together, then those of rows alone."""
        column = self.form.column
        both = [s for s in stores if column in long(self.kernel, s.axes)]
        self.hold_columns(both)
        for store in [s for s in both if wide.suits(self.tiles, s, column)]:
            self._store_wide(store)
            both.remove(store)
        if both:
            with self.tiles.rows(), self._inside(self.tiles.row, "i", 0), self.tiles.across(column):
                self._store_pairs(both)
        for store in stores:
            if column not in long(self.kernel, store.axes):
                self._store_rows(store)

    def _store_wide(self, store: Store) -> None:
        """Store what four threads put together; all of them do, also those behind the last row."""
        w, column = self.w, self.form.column
        with self.tiles.rows():
            words = w.fresh("w")
            w.line(f"u32 {words}[{self.tiles.columns[column].count}];")
            with self.tiles.across(column):
                value = self.elements.value(*self.unrounded(store))
                texts = [value.at(dict.fromkeys(value.axes, k)) for k in range(2)]
                w.line(f"{words}[j] = {packed(store.access.dtype, value.dtype, texts)};")
            wide.put(self.tiles, self.elements, store, column, words)

    @contextmanager
    def _inside(self, along: Along, number: str, copy: int) -> Iterator[None]:
        test = self.tiles.inside(along, number, copy)
        if test:
            with self.w.block(f"if ({test}) "):
                yield
        else:
            yield

    def _store_pairs(self, stores: Sequence[Store]) -> None:
        """Store what a thread has of a row and two columns."""
        w, column = self.w, self.form.column
        along = self.tiles.columns[column]
        found = {id(s): self.elements.value(*self.unrounded(s)) for s in stores}
        for store in stores:
            value, dtype = found[id(store)], store.access.dtype
            if not along.even or not self.elements.is_wide(store.access, column):
                for k in range(2):
                    with self._inside(along, "j", k):
                        self._store_one(store, value, k)
                continue
            with self._inside(along, "j", 0):
                pointer = self.elements.pointer(store.access, {}, {column: 0})
                texts = [value.at(dict.fromkeys(value.axes, k)) for k in range(2)]
                if dtype in HALVES:
                    w.line(f"*(u32 *)({pointer}) = {packed(dtype, value.dtype, texts)};")
                    continue
                texts = [ctype.conversion(t, value.dtype, dtype) for t in texts]
                w.line(ctype.wide_store(pointer, texts, dtype))

    def unrounded(self, store: Store) -> tuple[Operand, DType]:
        """What is stored, before it is rounded to the halves that it is stored as, and its type."""
        value, program = store.value, self.form.program
        definition = program.definitions[value] if isinstance(value, str) else None
        if isinstance(definition, Map) and definition.op == f"cast.{store.access.dtype}":
            (argument,) = definition.args
            if store.access.dtype in HALVES and operand_type(program, definition) == F32:
                return argument, F32
        return value, stored_type(program, store)

    def _store_one(self, store: Store, value: Value, copy: int) -> None:
        column = self.form.column
        pointer = self.elements.pointer(store.access, {}, {column: copy})
        text = self._converted(store, value, {column: copy})
        self.w.line(ctype.store(pointer, text, store.access.dtype))

    def _converted(self, store: Store, value: Value, copy: dict[str, int]) -> str:
        return ctype.conversion(value.at(copy), value.dtype, store.access.dtype)

    def _store_rows(self, store: Store) -> None:
        """Store single values of rows, in the first of the threads that share one."""
        one = "first_column == 0 && lane % 4 == 0"
        if self.plan.wide > 1:
            one += f" && warp % {self.plan.wide} == 0"
        with self.w.block(f"if ({one}) "), self.tiles.rows(), self._inside(self.tiles.row, "i", 0):
            value = self.elements.value(store.value, stored_type(self.form.program, store))
            pointer = self.elements.pointer(store.access, {}, {})
            text = self._converted(store, value, {})
            self.w.line(ctype.store(pointer, text, store.access.dtype))

    def hold_columns(self, stores: Sequence[Store]) -> None:
        """Keep what is loaded for columns alone: every row needs it."""
        for var in self.below([s.value for s in stores]):
            definition = self.form.program.definitions[var]
            axes = long(self.kernel, axes_of(definition))
            if isinstance(definition, Load) and self.form.column in axes and self.form.row not in axes:
                self.tiles.hold(var)

    def below(self, operands: Sequence[Operand]) -> list[str]:
        """Every value that some are made of and that no register holds."""
        table, found = self.form.program.definitions, dict[str, None]()
        todo = [o for o in operands if isinstance(o, str)]
        while todo:
            var = todo.pop()
            if var in found or var in self.tiles.held:
                continue
            found[var] = None
            todo += self.arguments(var)
        return [v for v in table if v in found]

    def arguments(self, var: str) -> list[str]:
        """The values that a value is made of, as far as they are written as expressions."""
        definition = self.form.program.definitions[var]
        return [] if isinstance(definition, Fold) else list(arguments(definition))

    def held(self, var: str, name: str, columns: str | None, scale: float = 1.0) -> None:
        """Note that an array of rows, or of rows and columns, holds a value."""
        dtype = dtype_of(self.form.program.definitions[var])
        assert dtype == F32, "what tensor cores and reductions give is f32"
        self.tiles.held[var] = Held(name, dtype, True, columns, scale)


def factors(products: Sequence[Product], side: str) -> list[Stored]:
    """The stored factors on one side of some products, each once."""
    found = [p.a if side == "a" else p.b for p in products]
    return list(dict.fromkeys(f for f in found if isinstance(f, Stored)))


def packed(dtype: DType, given: DType, texts: Sequence[str]) -> str:
    """CUDA for two values of type `given` as halves side by side."""
    if given == F32:
        return f"pack<{'true' if dtype == BF16 else 'false'}>({', '.join(texts)})"
    return f"two({', '.join(ctype.raw(ctype.conversion(t, given, dtype), dtype) for t in texts)})"
