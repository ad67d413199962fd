"""A warp walks along the rows of a cache: weighs them by their products with others, and sums them up.

Every thread has one head and one of the positions of a turn, so that what is one value for each is one
register.  Rows lie across threads, 16 bytes each; their sums stay there until the walk ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from lumi.backends.clike.loops import loop_range, whole
from lumi.backends.clike.roots import stored_type
from lumi.backends.clike.scope import Scope
from lumi.backends.cuda import ctype, frame, operators
from lumi.backends.cuda.cache import LANES, Rows, Update, Walk
from lumi.backends.cuda.expression import Expressions
from lumi.backends.cuda.scope import Blocking, Opened, Value, Writer, neighbours, single
from lumi.backends.cuda.storing import store_all
from lumi.backends.cuda.values import long, size
from lumi.dtype import F32
from lumi.llir import arithmetic, spell
from lumi.llir.kernel import Dot, Reduce, Store, buffers, dims
from lumi.llir.program import Fold


@dataclass(slots=True)
class Walker:
    """Writes the function of a walk, `warps` of which are a block."""

    found: Walk
    warps: int
    name: str
    w: Writer = field(init=False)
    expressions: Expressions = field(init=False)

    def __post_init__(self) -> None:
        kernel = self.found.program.kernel
        names = {b: f"b{number}_{spell.identifier(b)}" for number, b in enumerate(buffers(kernel))}
        self.w = Writer(self.found.program, names, blocking=Blocking(self.warps * LANES))
        self.expressions = Expressions(self.w, _no_fold)

    # -- which thread has what

    @property
    def heads(self) -> int:
        """Heads of a turn."""
        return self.found.together

    @property
    def turn(self) -> int:
        """Positions of a turn."""
        return self.found.positions

    @property
    def across(self) -> int:
        """Threads that a row takes of those that are multiplied; all, if there are none."""
        return self.found.products[0].lanes if self.found.products else LANES

    def owner(self, position: str) -> str:
        """CUDA for the thread that has the first head at a position of the turn."""
        rows = LANES // self.across
        if rows == 1:
            return f"{position} * {self.heads}"
        return f"{position} % {rows} * {self.across} + {position} / {rows} * {self.heads}"

    # -- the function

    def write(self) -> str:
        """The CUDA of the kernel."""
        w, found = self.w, self.found
        kernel = found.program.kernel
        w.scopes = [Scope(0, 1)]
        w.ranges = {a: whole(w, a) for a in kernel.axes}
        w.here.opened |= {a: single("0") for a, e in kernel.axes.items() if e == 1}
        for number, name in enumerate(dims(kernel)):
            w.line(f"const i64 {spell.dim_name(name)} = dims[{number}];")
        w.line(f"const int lane = threadIdx.x % {LANES}, warp = threadIdx.x / {LANES};")
        total = " * ".join(w.extent(kernel.axes[a]) for a in found.cells) or "1"
        first = f"blockIdx.x * {self.warps} + warp"
        with w.block(f"for (int cell = {first}; cell < {total}; cell += gridDim.x * {self.warps}) "):
            self._open("cell", found.cells)
            self._open(f"lane % {self.heads}", found.heads)
            self._walk()
            self._results()
        return frame.text(kernel, w, self.name, 0)

    def _open(self, number: str, axes: Sequence[str]) -> None:
        """Open axes at the point of a number, the last axis running fastest."""
        rest = number
        for place, axis in reversed(list(enumerate(axes))):
            extent, x = self.w.extent(self.found.program.kernel.axes[axis]), f"x_{spell.identifier(axis)}_"
            text = f"({rest}) % {extent}" if place else rest
            self.w.here.opened[axis] = single(self.w.declare("int", text, x))
            if place:
                rest = self.w.declare("int", f"({rest}) / {extent}", "rest")

    def _walk(self) -> None:
        w, found = self.w, self.found
        self._begin()
        with w.block(f"for (int from = start; from <= last; from += {self.turn}) ", tile=True):
            for name, rows in self._all():
                count = self.turn * rows.lanes // LANES
                with w.block(f"#pragma unroll\nfor (int j = 0; j < {count}; j++) "):
                    w.line(f"{name}[j] = {name}_next[j];")
            self._load_rows(f"from + {self.turn}")
            at_once = LANES // self.across
            mine = f"lane % {self.across} / {self.heads} * {at_once} + lane / {self.across}"
            w.line(f"const int mine = from + {mine};")
            w.line("const bool within = mine <= last;")
            position = w.declare("int", "least(mine, last)", f"x_{spell.identifier(found.axis)}_")
            w.here.opened[found.axis] = single(position)
            for carry in found.single:
                w.here.values[carry.previous] = Value(F32, (), {(): self._carried(carry.previous)})
            self._turn()

    def _begin(self) -> None:
        """Ask for the rows of the first turn, take the vectors, and begin what is carried."""
        w, found = self.w, self.found
        span = loop_range(w, found.loop, found.axis)
        w.line(f"const int start = {span.start}, last = {span.stop} - 1;")
        for name, rows in self._all():
            count = self.turn * rows.lanes // LANES
            w.line(f"words<4> {name}[{count}], {name}_next[{count}];")
        with w.block("if (start <= last) ", tile=True):
            self._load_rows("start")
        for number, rows in enumerate(found.products):
            self._vector(rows, f"q{number}")
        for carry in found.single:
            start = ctype.literal(float(arithmetic.identity(carry.op, F32)), F32)
            w.line(f"float {self._carried(carry.previous)} = {start};")
        for number, update in enumerate(found.updates):
            w.line(f"float o{number}[{self.heads * update.rows.width}] = {{}};")

    def _carried(self, var: str) -> str:
        return f"c_{spell.identifier(var)}"

    def _vector(self, rows: Rows, name: str) -> None:
        """Hold the neighbours of each head's vector that this thread multiplies."""
        w, width = self.w, rows.width
        w.line(f"float {name}[{self.heads * width}];")
        with self._columns(rows), self._heads():
            value = self.expressions.value(rows.other, F32)
            for head, copy in enumerate(w.copies(self.found.heads)):
                for k in range(width):
                    text = value.at({**copy, rows.axis: k})
                    w.line(f"{name}[{head * width + k}] = {text};")

    @contextmanager
    def _columns(self, rows: Rows) -> Iterator[None]:
        """Open the axis of rows at the neighbours that a thread takes."""
        x = self.w.fresh(f"x_{spell.identifier(rows.axis)}_")
        opened = {rows.axis: neighbours(x, rows.width, rows.width)}
        with self.w.block("", opened):
            self.w.line(f"const int {x} = lane % {rows.lanes} * {rows.width};")
            yield

    @contextmanager
    def _heads(self) -> Iterator[None]:
        """Open the axes of heads at all of their positions."""
        kernel = self.found.program.kernel
        sizes = {a: size(kernel, [a]) for a in self.found.heads}
        opened = {a: Opened(tuple((str(k), 0) for k in range(n))) for a, n in sizes.items()}
        with self.w.block("", opened):
            yield

    # -- a turn

    def _all(self) -> list[tuple[str, Rows]]:
        found = self.found
        products = [(f"k{n}", r) for n, r in enumerate(found.products)]
        return products + [(f"v{n}", u.rows) for n, u in enumerate(found.updates)]

    def _load_rows(self, first: str) -> None:
        """Ask for all rows of a turn at once; those past the end repeat the last."""
        w = self.w
        for name, rows in self._all():
            at_once = LANES // rows.lanes
            with w.block(f"#pragma unroll\nfor (int j = 0; j < {self.turn // at_once}; j++) "):
                row = w.declare("int", f"least({first} + j * {at_once} + lane / {rows.lanes}, last)", "row")
                w.here.opened[self.found.axis] = single(row)
                with self._columns(rows):
                    pointer = self.expressions.pointer(rows.load.access, {}, {})
                    raw = ctype.wide_load(pointer, rows.load.access.dtype, rows.width, passing=True)
                    w.line(f"{name}_next[j] = {raw};")

    def _turn(self) -> None:
        """The statements of the loop in order."""
        found = self.found
        products = {r.dot.var: (n, r) for n, r in enumerate(found.products)}
        for statement in found.loop.body:
            if isinstance(statement, Dot) and statement.var in products:
                self._product(*products[statement.var])
            elif isinstance(statement, Reduce):
                self._reduced(statement)
        values = [self.expressions.value(c.next, F32).texts[()] for c in found.single]
        for number, update in enumerate(found.updates):
            self._add_rows(number, update)
        for carry, text in zip(found.single, values, strict=True):
            self.w.line(f"{self._carried(carry.previous)} = {text};")

    def _product(self, number: int, rows: Rows) -> None:
        """The products of all rows and heads of a turn, of which each thread gets its own."""
        w, at_once = self.w, LANES // rows.lanes
        count, name = self.turn // at_once, w.fresh("p")
        w.line(f"float {name}[{rows.lanes}];")
        with w.block(f"#pragma unroll\nfor (int j = 0; j < {count}; j++) "):
            texts = self._elements(f"k{number}[j]", rows)
            with w.block(f"#pragma unroll\nfor (int h = 0; h < {self.heads}; h++) "):
                w.line("float a = 0.0f;")
                for k, text in enumerate(texts):
                    held = f"q{number}[h * {rows.width} + {k}]"
                    w.line(f"a = {operators.multiply_add(held, text, 'a', F32)};")
                w.line(f"{name}[j * {self.heads} + h] = a;")
        total = w.declare("float", f"spread_sums<{rows.lanes}, {rows.lanes}>({name})")
        w.here.values[rows.dot.var] = Value(F32, (), {(): total})

    def _elements(self, raw: str, rows: Rows) -> list[str]:
        """The elements of a row that a thread holds, as values."""
        w, load = self.w, rows.load
        w.here.opened |= {self.found.axis: single("0"), rows.axis: neighbours("0", rows.width, rows.width)}
        texts: dict[tuple[int, ...], str] = {}
        for k in range(rows.width):
            text = ctype.conversion(ctype.part(raw, k, load.access.dtype), load.access.dtype, load.dtype)
            texts[(k,)] = w.declare(ctype.register(load.dtype).type, text)
        w.here.values[load.var] = Value(load.dtype, (rows.axis,), texts)
        value = self.expressions.value(rows.element, F32)
        return [value.at({rows.axis: k}) for k in range(rows.width)]

    def _reduced(self, statement: Reduce) -> None:
        """A reduction along the walk: over the threads of one head."""
        identity = ctype.literal(float(arithmetic.identity(statement.op, F32)), F32)
        value = self.expressions.value(statement.value, F32).texts[()]
        own = f"within ? {value} : {identity}"
        text = self.w.declare("float", f"above_{statement.op}_f32<{self.heads}>({own})")
        self.w.here.values[statement.var] = Value(F32, (), {(): text})

    def _add_rows(self, number: int, update: Update) -> None:
        """Scale the sum of rows so far, and add the rows of this turn by their weights."""
        w, rows = self.w, update.rows
        at_once, width = LANES // rows.lanes, rows.width
        weight = self.expressions.value(rows.other, F32).texts[()]
        own = w.declare("float", f"within ? {weight} : 0.0f")
        if update.factor is not None:
            factor = self.expressions.value(update.factor, F32).texts[()]
            with w.block(f"#pragma unroll\nfor (int h = 0; h < {self.heads}; h++) "):
                w.line(f"const float f = __shfl_sync(FULL_WARP, {factor}, h);")
                with w.block(f"#pragma unroll\nfor (int k = 0; k < {width}; k++) "):
                    w.line(f"o{number}[h * {width} + k] = o{number}[h * {width} + k] * f;")
        with w.block(f"#pragma unroll\nfor (int j = 0; j < {self.turn // at_once}; j++) "):
            position = w.declare("int", f"j * {at_once} + lane / {rows.lanes}", "place")
            owner = w.declare("int", self.owner(position), "owner")
            texts = self._elements(f"v{number}[j]", rows)
            with w.block(f"#pragma unroll\nfor (int h = 0; h < {self.heads}; h++) "):
                w.line(f"const float p = __shfl_sync(FULL_WARP, {own}, {owner} + h);")
                for k, text in enumerate(texts):
                    target = f"o{number}[h * {width} + {k}]"
                    w.line(f"{target} = {operators.multiply_add('p', text, target, F32)};")

    # -- results

    def _results(self) -> None:
        w, found = self.w, self.found
        columns = {u.rows.axis for u in found.updates}
        kernel = found.program.kernel
        for carry in found.single:
            text = self._carried(carry.previous)
            w.here.values[carry.final] = Value(F32, (), {(): text})
        with w.block(f"if (lane < {self.heads}) "):
            for store in found.stores:
                if not set(long(kernel, store.axes)) & columns:
                    self._store(store)
        for number, update in enumerate(found.updates):
            count, lanes = self.heads * update.rows.width, update.rows.lanes
            if lanes < LANES:
                with w.block(f"#pragma unroll\nfor (int k = 0; k < {count}; k++) "):
                    w.line(f"o{number}[k] = above_sum_f32<{lanes}>(o{number}[k]);")
        self._share()
        rows = found.updates[0].rows
        with self._columns(rows), self._heads():
            self._enter()
            with w.block(f"if (lane < {rows.lanes}) "):
                for store in found.stores:
                    if set(long(kernel, store.axes)) & columns:
                        self._store(store)

    def _share(self) -> None:
        """Let every thread have the single values of all heads."""
        for carry in self.found.single:
            name = self._carried(carry.previous)
            self.w.line(f"float {name}_of[{self.heads}];")
            with self.w.block(f"#pragma unroll\nfor (int h = 0; h < {self.heads}; h++) "):
                self.w.line(f"{name}_of[h] = __shfl_sync(FULL_WARP, {name}, h);")

    def _enter(self) -> None:
        """Enter what is carried as values over all heads, and over columns."""
        w, found = self.w, self.found
        heads = found.heads
        for carry in found.single:
            texts = {
                tuple(c[a] for a in heads): f"{self._carried(carry.previous)}_of[{n}]"
                for n, c in enumerate(w.copies(heads))
            }
            self._set(carry.final, Value(F32, heads, texts))
        for number, update in enumerate(found.updates):
            width, axis = update.rows.width, update.rows.axis
            wide = {
                (*(c[a] for a in heads), k): f"o{number}[{n * width + k}]"
                for n, c in enumerate(w.copies(heads))
                for k in range(width)
            }
            self._set(update.carry.final, Value(F32, (*heads, axis), wide))

    def _set(self, var: str, value: Value) -> None:
        """Make a value known where code will look for it."""
        with self.w.outside(self.w.depth(var)) as scope:
            scope.values[var] = value

    def _store(self, store: Store) -> None:
        value = self.expressions.value(store.value, stored_type(self.found.program, store))
        store_all(self.expressions, store, value)


def _no_fold(_: Writer, fold: Fold) -> Value:
    raise AssertionError(f"{fold.var} is computed in turn with the walk")
