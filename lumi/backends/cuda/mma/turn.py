"""What a turn of a loop makes of its products: selections, maxima and sums of rows, the next factors."""

from __future__ import annotations

from contextlib import AbstractContextManager

from lumi.backends.clike.scope import Range
from lumi.backends.cuda import ctype
from lumi.backends.cuda.mma import masks
from lumi.backends.cuda.mma.form import Cascade, Computed
from lumi.backends.cuda.mma.plan import Plan, is_whole
from lumi.backends.cuda.mma.tiles import Along, Held
from lumi.backends.cuda.mma.writer import TensorWriter
from lumi.backends.cuda.values import long
from lumi.dtype import BOOL, F32
from lumi.llir import arithmetic
from lumi.llir.kernel import Carry, Load, Loop, Map, Operand, Reduce
from lumi.llir.program import axes_of, is_plain

COMBINE = {"sum": "({} + {})", "max": "larger({}, {})"}
"""How a reduction takes in a value."""


CHAINS = 4
"""Partial results of a reduction in a thread, so that one operation need not wait for the one before it."""


class TurnWriter(TensorWriter):
    """Writes the elements of a turn of a cascade."""

    def __init__(self, plan: Plan, name: str) -> None:
        super().__init__(plan, name)
        assert plan.form.carried is not None, "a form that carries nothing around is written as sums"
        self.found: Cascade = plan.form.carried
        self.loop = self.found.loop
        self.masks = masks.find(self.form.program, self.found)
        self.partial = {c.previous: r for c in self.found.rows if (r := self._partial(c)) is not None}
        self.shared_values = self._used_twice()
        self.ragged = False

    @property
    def axis(self) -> str:
        """The axis of the loop."""
        return self.found.axis

    @property
    def may_end_within(self) -> bool:
        """Whether a tile of positions may reach past the end of the loop."""
        return self.loop.chunk is not None or not is_whole(self.form, self.axis, self.plan.columns)

    def open_elements(self, whole: bool, span: Range) -> None:
        """Share the positions of a turn: with `whole` nothing of it is masked or behind the end."""
        self.open_positions("" if whole or not self.may_end_within else span.stop, span)

    def open_positions(self, stop: str, span: Range) -> None:
        """Share the positions of a turn as columns, which may lie behind `stop` unless that is empty."""
        even = span.multiple % 2 == 0
        count = self.plan.columns // 8
        self.tiles.columns[self.axis] = Along(self.axis, "first + pair", count, 8, 2, stop, even)

    # -- elements of a turn

    def compute_elements(self, whole: bool) -> None:
        """Everything between the products of a turn and the sums, in the order of the kernel."""
        self.ragged = not whole and self.may_end_within
        self.elements.passed = self.masks.tests if whole else frozenset()
        for statement in self.loop.body:
            match statement:
                case Reduce():
                    self._prepare([statement.value])
                    self._reduce(statement)
                case Map(var) if var in self.shared_values:
                    self._hold(var)
                case _:
                    pass
        wanted: list[Operand] = [c.next for c in self.found.rows if c.previous not in self.partial]
        wanted += [u.factor for u in self.found.updates if u.factor is not None]
        wanted += [f for _, f in self.partial.values() if f is not None]
        for operand in wanted:
            self._prepare([operand])
            if isinstance(operand, str) and operand not in self.tiles.held:
                self.tiles.hold(operand)

    def _hold(self, var: str) -> None:
        """Keep a value of rows and columns, or of rows alone."""
        self._prepare([var])
        if self.axis not in axes_of(self.form.program.definitions[var]):
            self.tiles.hold(var)
            return
        source = self._source(var)
        if source is not None:
            self.tiles.held[var] = source
        elif not self._hold_masked(var):
            self.tiles.hold(var)

    def _source(self, operand: Operand) -> Held | None:
        """The held value that another one is a positive multiple of."""
        if not isinstance(operand, str):
            return None
        if operand in self.tiles.held:
            held = self.tiles.held[operand]
            return held if held.rows and held.columns == self.axis and held.dtype == F32 else None
        match self.form.program.definitions[operand]:
            case Map(_, "mul", (str(a), float(c)) | (float(c), str(a)), _, dtype) if c > 0 and dtype == F32:
                found = self._source(a)
                return found and Held(found.name, F32, True, self.axis, found.scale * c)
            case Map(_, "sel", (test, a, _), _, dtype) if test in self.elements.passed and dtype == F32:
                return self._source(a)
            case _:
                return None

    def _hold_masked(self, var: str) -> bool:
        """Keep a masked multiple of a held value as that multiple of a masked value."""
        w, definition = self.w, self.form.program.definitions[var]
        match definition:
            case Map(_, "sel", (str(test), a, float(other)), _, dtype) if dtype == F32:
                found = self._source(a)
            case _:
                return False
        if found is None or found.scale == 1.0 or other not in (0.0, float("-inf")):
            return False
        name = w.fresh("t")
        self.tiles.array(name, F32, True, self.axis)
        with self.tiles.both(self.axis):
            value = self.elements.value(test, BOOL)
            for copy in w.copies((self.axis,)):
                place = f"[i][j * 2 + {copy[self.axis]}]"
                seen = value.at({a: copy[a] for a in value.axes})
                w.line(f"{name}{place} = {seen} ? {found.name}{place} : {ctype.literal(other, F32)};")
        self.tiles.held[var] = Held(name, F32, True, self.axis, found.scale)
        return True

    def _prepare(self, operands: list[Operand]) -> None:
        """Keep what values are made of where it would be computed or loaded again: of rows, of columns."""
        table = self.form.program.definitions
        for var in self.below(operands):
            definition, axes = table[var], set(long(self.kernel, axes_of(table[var])))
            tile = axes & {self.form.row, self.axis}
            again = isinstance(definition, Map) and self.form.program.levels[var] > 0
            if (tile == {self.form.row} and again) or (tile == {self.axis} and isinstance(definition, Load)):
                self.tiles.hold(var)

    def _reduce(self, statement: Reduce) -> None:
        """A reduction over the tile of positions: in each thread, then over those that share a row."""
        w = self.w
        name = w.fresh("r")
        identity = ctype.literal(float(arithmetic.identity(statement.op, F32)), F32)
        scale, combine = self._scale_of(statement), COMBINE[statement.op]
        self.tiles.array(name, F32, True, None)
        with self.tiles.rows():
            w.line(f"float r[{CHAINS}] = {{{', '.join([identity] * CHAINS)}}};")
            with self.tiles.across(self.axis):
                value = self.elements.value(statement.value, F32)
                if scale != 1.0:
                    value = self.elements.scaled[str(statement.value)].value
                along = self.tiles.columns[self.axis]
                for copy in range(2):
                    text = value.at(dict.fromkeys(value.axes, copy))
                    if self.ragged:
                        seen = self.tiles.inside(along, "j", copy)
                        text = f"({seen} ? {text} : {identity})"
                    chain = f"r[j * 2 % {CHAINS} + {copy}]"
                    w.line(f"{chain} = {combine.format(chain, text)};")
            joined = combine.format(combine.format("r[0]", "r[1]"), combine.format("r[2]", "r[3]"))
            if statement.var not in [r for r, _ in self.partial.values()]:
                joined = f"quad_{statement.op}({joined})"
            w.line(f"{name}[i] = {joined}{f' * {scale!r}f' if scale != 1.0 else ''};")
        self.held(statement.var, name, None)

    def _scale_of(self, statement: Reduce) -> float:
        """The positive factor that a maximum may be multiplied by after it is taken."""
        held = self.tiles.held.get(statement.value) if isinstance(statement.value, str) else None
        return held.scale if held is not None and statement.op == "max" else 1.0

    def each_row(self) -> AbstractContextManager[object]:
        """A loop over the numbers of a thread's rows."""
        return self.w.block(f"#pragma unroll\nfor (int i = 0; i < {self.tiles.row.count}; i++) ")

    def weights_of(self, computed: Computed) -> str:
        """The array of a computed factor, 0 behind the end of the loop, that may be changed."""
        w, name = self.w, self.w.fresh("p")
        self.tiles.array(name, F32, True, self.axis)
        with self.tiles.both(self.axis):
            value = self.elements.value(computed.value, F32)
            along = self.tiles.columns[self.axis]
            for copy in range(2):
                text = value.at(dict.fromkeys(value.axes, copy))
                if self.ragged:
                    text = f"{self.tiles.inside(along, 'j', copy)} ? {text} : 0.0f"
                w.line(f"{name}[i][j * 2 + {copy}] = {text};")
        return name

    # -- what is known of the loop before it is written

    def _partial(self, carry: Carry) -> tuple[str, str | None] | None:
        """The reduction and the factor of a sum that nothing reads before the loop ends.

        Each thread may then sum up what it has alone.
        """
        made = {s.var: s for s in self.loop.body if isinstance(s, Map | Reduce)}
        last = made.get(carry.next)
        if carry.op != "sum" or not isinstance(last, Map) or last.op != "add":
            return None
        sums = [a for a in last.args if isinstance(made.get(str(a)), Reduce)]
        rest = [a for a in last.args if a not in sums]
        if len(sums) != 1 or len(rest) != 1 or not isinstance(reduced := made[str(sums[0])], Reduce):
            return None
        if reduced.op != "sum" or self._reads(carry.next) or self._reads(reduced.var) != 1:
            return None
        if rest[0] == carry.previous:
            return (reduced.var, None) if self._reads(carry.previous) == 1 else None
        scaled = made.get(str(rest[0]))
        if not isinstance(scaled, Map) or scaled.op != "mul" or self._reads(scaled.var) != 1:
            return None
        factor = next((a for a in scaled.args if a != carry.previous), None)
        alone = carry.previous in scaled.args and self._reads(carry.previous) == 1
        return (reduced.var, factor) if alone and isinstance(factor, str) else None

    def _reads(self, var: str) -> int:
        """How often statements of the loop read a value."""
        return sum(operands.count(var) for operands in map(_operands, self.loop.body))

    def _used_twice(self) -> frozenset[str]:
        """Computed floats of rows and columns that more than one reduction or product needs."""
        table, users = self.form.program.definitions, dict[str, set[str]]()
        for statement in self.loop.body:
            if isinstance(statement, Reduce) and isinstance(statement.value, str):
                users.setdefault(statement.value, set()).add(statement.var)
        for update in self.found.updates:
            assert isinstance(update.product.a, Computed), "a cascade sums up what it computes"
            users.setdefault(update.product.a.value, set()).add(update.product.var)
        found = set[str]()
        for var in reversed(list(table)):
            if var not in users:
                continue
            if len(users[var]) > 1 and self._is_tile(var):
                found.add(var)
                users[var] = {var}
            for argument in self.arguments(var):
                users.setdefault(argument, set()).update(users[var])
        return frozenset(found)

    def _is_tile(self, var: str) -> bool:
        definition = self.form.program.definitions[var]
        axes = axes_of(definition)
        return isinstance(definition, Map) and definition.dtype == F32 and self.axis in axes


def _operands(statement: object) -> tuple[Operand, ...]:
    match statement:
        case Map(args=args):
            return args
        case Reduce(value=value):
            return (value,)
        case Loop(body=body) if is_plain(statement):
            return tuple(o for s in body for o in _operands(s))
        case _:
            return ()
