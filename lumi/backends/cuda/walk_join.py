"""Joins what parts of a walk have carried, and computes the results of the whole.

A state is an array of numbers: the single values of all heads, then the sums of each head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lumi.backends.clike.roots import stored_type
from lumi.backends.clike.scope import Scope
from lumi.backends.cuda import ctype, operators
from lumi.backends.cuda.expression import Expressions
from lumi.backends.cuda.scope import Opened, Value, Writer, neighbours
from lumi.backends.cuda.storing import store_all
from lumi.backends.cuda.values import long
from lumi.backends.cuda.walk_plan import Plan
from lumi.backends.cuda.walk_turn import open_at
from lumi.dtype import F32
from lumi.llir import arithmetic, spell
from lumi.llir.kernel import Carry, Store

AT_ONCE = 16
"""Parts that are asked for at once, of those whose number is known at run time."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Where part `base + k` is, what reads it, and the place of a thread's head and columns in it."""

    place: str
    read: str
    head: str
    column: str


class Join:
    """Writes the joining of states."""

    def __init__(self, plan: Plan, w: Writer, expressions: Expressions) -> None:
        self.plan, self.found, self.w, self.expressions = plan, plan.found, w, expressions
        self.width = 4 if plan.heads * plan.columns >= 4 * plan.threads else 2
        """Neighbours of a sum that a thread joins: fewer, where threads would have nothing to do."""

    def write(
        self, states: str, stride: str, parts: str, read: str, to: str | None, behind: str = ""
    ) -> None:
        """Join `parts` states, `stride` numbers apart, which `read` reads, into a state at `to`, or results.

        The first state lies `behind` times a state further on.
        """
        w, plan = self.w, self.plan
        items = plan.columns // self.width
        total = plan.heads * items
        with self._items(f"for (int item = threadIdx.x; item < {total}; item += {plan.threads}) "):
            head = w.declare("int", f"item / {items}", "head")
            column = w.declare(
                "int", f"item % {items} * {self.width}", f"x_{spell.identifier(self.found.columns)}_"
            )
            open_at(w, self.found.heads, plan.head(head))
            w.here.opened[self.found.columns] = neighbours(column, self.width, self.width)
            later = f" + (base + k ? 0 : {behind} * {plan.state})" if behind else ""
            place = f"{states} + (base + k) * {stride}{later}"
            self._parts(_Part(place, read, head, column), parts)
            if to is None:
                self._results(column)
            else:
                self._leave(to, head, column)

    @contextmanager
    def _items(self, header: str) -> Iterator[None]:
        """Write `header { … }`, in which nothing is known but what the whole function knows, and the cell."""
        w, around = self.w, self.w.scopes
        opened = {a: o for a in self.found.cells if (o := w.opened(a)) is not None}
        items: Scope[Opened, Value] = Scope(0, 1, opened)
        w.scopes = [around[0], items]
        yield
        w.scopes = around
        w.here.lines += [f"{header}{{", *(f"  {line}" for line in items.lines), "}"]

    def _parts(self, part: _Part, parts: str) -> None:
        """Take in parts, some at a time: their fixed values, then all else, moved to where those are."""
        w, found, count = self.w, self.found, int(parts) if parts.isdigit() else AT_ONCE
        for s in found.singles:
            start = ctype.literal(float(arithmetic.identity(s.carry.op, F32)), F32)
            w.line(f"float {_total(s.carry)} = {start};")
        for number in range(len(found.updates)):
            w.line(f"float total{number}[{self.width}] = {{}};")
        if parts.isdigit():
            w.line("const int base = 0;")
            self._some(part, parts, count)
        else:
            with w.block(f"for (int base = 0; base < {parts}; base += {count}) "):
                self._some(part, parts, count)

    def _some(self, part: _Part, parts: str, count: int) -> None:
        """Take in the next `count` parts, all of which are asked for at once."""
        w, found, plan = self.w, self.found, self.plan
        every = f"#pragma unroll\nfor (int k = 0; k < {count}; k++) "
        inside = "" if parts.isdigit() else f"if (base + k < {parts}) "
        for number in range(len(found.singles)):
            w.line(f"float single{number}[{count}];")
        for number in range(len(found.updates)):
            w.line(f"float{self.width} sums{number}[{count}];")
        with w.block(every), w.block(inside):
            w.line(f"const float *const state = {part.place};")
            for number in range(len(found.singles)):
                w.line(f"single{number}[k] = {part.read}(state + {number * plan.heads} + {part.head});")
            for number in range(len(found.updates)):
                place = f"state + {self._first(number)} + {part.head} * {plan.columns} + {part.column}"
                w.line(f"sums{number}[k] = {part.read}((const float{self.width} *)({place}));")
        fixed = [(n, s) for n, s in enumerate(found.singles) if s.is_fixed]
        for _, s in fixed:
            w.line(f"float {_next(s.carry)} = {_total(s.carry)};")
        if fixed:
            with w.block(every), w.block(inside):
                for number, s in fixed:
                    text = operators.combine(s.carry.op, _next(s.carry), f"single{number}[k]", F32)
                    w.line(f"{_next(s.carry)} = {text};")
        if not parts.isdigit():
            with w.block("if (base) ", tile=True):
                self._moved([_total(s.carry) for s in found.singles], None)
        for _, s in fixed:
            w.line(f"{_total(s.carry)} = {_next(s.carry)};")
        with w.block(every), w.block(inside, tile=True):
            self._moved([f"single{n}[k]" for n in range(len(found.singles))], "k")

    def _moved(self, singles: Sequence[str], k: str | None) -> None:
        """Take in the values of a part that move, and its sums of rows; without `k` move those so far."""
        w, found = self.w, self.found
        for s, text in zip(found.singles, singles, strict=True):
            self._set(s.carry.previous, text)
            if s.is_fixed:
                self._set(s.carry.next, _next(s.carry))
        moved = [(s, self.expressions.value(s.moved, F32).texts[()]) for s in found.singles if not s.is_fixed]
        for s, text in moved:
            total = _total(s.carry)
            w.line(f"{total} = {text if k is None else operators.combine(s.carry.op, total, text, F32)};")
        for number, update in enumerate(found.updates):
            factor = "1.0f"
            if update.factor is not None:
                factor = self.expressions.value(update.factor, F32).texts[()]
            for place, field in enumerate("xyzw"[: self.width]):
                total = f"total{number}[{place}]"
                text = f"{factor} * {total}"
                if k is not None:
                    text = operators.multiply_add(factor, f"sums{number}[{k}].{field}", total, F32)
                w.line(f"{total} = {text};")

    def _first(self, number: int) -> int:
        """Where the sums of rows of an update begin in a state."""
        return self.plan.head_of_state + number * self.plan.heads * self.plan.columns

    def _set(self, var: str, text: str) -> None:
        """Make a single value known where code will look for it."""
        with self.w.outside(self.w.depth(var)) as scope:
            scope.values[var] = Value(F32, (), {(): text})

    def _leave(self, to: str, head: str, column: str) -> None:
        """Put what is joined into a state."""
        w, plan, found = self.w, self.plan, self.found
        with w.block(f"if ({column} == 0) "):
            for number, s in enumerate(found.singles):
                w.line(f"{to}[{number * plan.heads} + {head}] = {_total(s.carry)};")
        for number in range(len(found.updates)):
            place = f"{to} + {self._first(number)} + {head} * {plan.columns} + {column}"
            numbers = ", ".join(f"total{number}[{k}]" for k in range(self.width))
            w.line(f"*(float{self.width} *)({place}) = make_float{self.width}({numbers});")

    def _results(self, column: str) -> None:
        """Store what is made of the joined values: what a head has alone, by one thread."""
        w, found = self.w, self.found
        for s in found.singles:
            self._set(s.carry.final, _total(s.carry))
        for number, update in enumerate(found.updates):
            texts: dict[tuple[int, ...], str] = {(k,): f"total{number}[{k}]" for k in range(self.width)}
            with w.outside(w.depth(update.carry.final)) as scope:
                scope.values[update.carry.final] = Value(F32, (found.columns,), texts)
        kernel = found.program.kernel
        of_heads = [s for s in found.stores if found.columns not in long(kernel, s.axes)]
        if of_heads:
            with w.block(f"if ({column} == 0) "):
                for store in of_heads:
                    self._store(store)
        for store in found.stores:
            if store not in of_heads:
                self._store(store)

    def _store(self, store: Store) -> None:
        value = self.expressions.value(store.value, stored_type(self.found.program, store))
        store_all(self.expressions, store, value)


def _total(carry: Carry) -> str:
    """The register in which a single value of all parts comes together."""
    return f"all_{spell.identifier(carry.previous)}"


def _next(carry: Carry) -> str:
    """The register in which a fixed value of the parts so far comes together."""
    return f"next_{spell.identifier(carry.previous)}"
