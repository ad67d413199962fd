"""Reductions as loops: accumulators in registers, eight partial results where the lanes are reduced."""

from __future__ import annotations

from dataclasses import dataclass, field

from lumi.backends.clike.loops import loop_range, tiles
from lumi.backends.clike.roots import folds_together
from lumi.backends.clike.scope import Copy, Scope
from lumi.backends.cpu import ctype, dot8, operators
from lumi.backends.cpu.ctype import register
from lumi.backends.cpu.expression import Expressions
from lumi.backends.cpu.lanes import LaneCosts
from lumi.backends.cpu.loops import sweep, widths
from lumi.backends.cpu.scope import Form, Opened, Value, Writer
from lumi.dtype import BOOL
from lumi.llir import arithmetic
from lumi.llir.program import Fold


@dataclass(slots=True)
class Accumulators:
    """The running results of one fold: a C variable for each copy, and for each turn that is unrolled."""

    fold: Fold
    scope: Scope[Opened, Value]
    axes: tuple[str, ...]
    form: Form | None = None
    names: dict[tuple[int, ...], str] = field(default_factory=dict)

    def key(self, copy: Copy, turn: int) -> tuple[int, ...]:
        """The key of a copy's variable in an unrolled turn."""
        return (*(copy[a] for a in self.axes), turn)

    def name(self, w: Writer, key: tuple[int, ...], form: Form) -> str:
        """The variable for a copy; declared before the loops when first used."""
        if self.form is None:
            self.form = form
        if key not in self.names:
            held, dtype = register(self.fold.dtype), self.fold.dtype
            start = ctype.literal(float(arithmetic.identity(self.fold.op, dtype)), dtype)
            kind = held.scalar if self.form is Form.SCALAR else held.vector
            text = start if self.form is Form.SCALAR else operators.splat(start, dtype)
            self.names[key] = w.fresh("a")
            self.scope.lines.append(f"{kind} {self.names[key]} = {text};")
        return self.names[key]


class FoldLoops:
    """Writes the loops of folds."""

    def __init__(self, costs: LaneCosts) -> None:
        self.costs = costs

    def write(self, w: Writer, first: Fold) -> Value:
        """The value of a fold, computed in the scope at hand with every other fold of its loop."""
        lanes = dot8.plan(w, first, self.write) if w.blocking.bytes else None
        if lanes is not None:
            return dot8.write(w, first, lanes)
        group = folds_together(w, first)
        made = [Accumulators(f, w.here, w.unrolled(f.axes)) for f in group]
        own = self._own_lane(w, group)
        if first.loop is not None and first.loop.guards:
            with tiles(w, first.loop, level=False):
                self._turns(w, list(first.over), own, made)
        else:
            outer = dict(w.ranges)
            if first.loop is not None:
                w.ranges |= {a: loop_range(w, first.loop, a) for a in first.loop.axes}
            self._turns(w, list(first.over), own, made)
            w.ranges = outer
        for accumulators in made:
            w.here.values[accumulators.fold.var] = self._result(w, accumulators)
        return w.here.values[first.var]

    def _own_lane(self, w: Writer, group: list[Fold]) -> str | None:
        """The reduced axis whose positions become lanes, unless an outer axis has them already."""
        if w.lane() is not None:
            return None
        terms = [t for f in group for t in f.terms]
        return self.costs.best(group[0].over, terms)

    def _turns(self, w: Writer, over: list[str], own: str | None, made: list[Accumulators]) -> None:
        if not over:
            expressions = Expressions(w, self.write)
            for accumulators in made:
                self._take(w, expressions, accumulators, own)
            return
        axis = next(a for a in over if a != own) if len(over) > 1 else over[0]
        rest = [a for a in over if a != axis]
        steps = widths(axis, w.blocking.unroll, True) if axis == own else widths(axis, 1, False)
        sweep(w, axis, steps, lambda: self._turns(w, rest, own, made))

    def _take(self, w: Writer, expressions: Expressions, made: Accumulators, own: str | None) -> None:
        """Let the accumulators of one fold take in the terms at the current positions."""
        fold, lane = made.fold, w.lane()
        spread = lane is not None and (lane == own or lane in fold.axes)
        terms = [expressions.value(t, fold.dtype, partial=fold.op == "sum") for t in fold.terms]
        partial = [t.form is Form.PARTIAL for t in terms]
        if spread or all(partial):
            terms = [expressions.value(t, fold.dtype) for t in fold.terms[:1]] + [
                expressions.value(t, fold.dtype, partial=not spread and len(partial) > 1)
                for t in fold.terms[1:]
            ]
            partial = [t.form is Form.PARTIAL for t in terms]
        vector = spread or any(partial)
        form = Form.LANES if spread and lane != own else Form.PARTIAL if vector or own else Form.SCALAR
        turns = w.unrolled((own,)) if own is not None else ()
        for copy in w.copies((*made.axes, *turns)):
            target = made.name(w, made.key(copy, copy.get(own or "", 0)), form)
            if not vector and form is Form.PARTIAL:
                target = f"{target}[0]"
            texts = [expressions.lanes(t, copy) if vector else t.at(copy) for t in terms]
            if fold.dtype == BOOL and target.endswith("]"):
                texts = [f"(-{text})" for text in texts]  # lanes of bool are masks
            w.line(f"{target} = {self._updated(fold, target, texts, vector)};")

    def _updated(self, fold: Fold, target: str, texts: list[str], vector: bool) -> str:
        if len(texts) == 2:
            return operators.multiply_add(texts[0], texts[1], target, fold.dtype, vector)
        return operators.combine(fold.op, target, texts[0], fold.dtype, vector)

    def _result(self, w: Writer, made: Accumulators) -> Value:
        """The accumulators as a value: turns joined, lanes too unless the sum may wait."""
        fold, dtype, texts = made.fold, made.fold.dtype, {}
        form = made.form or Form.SCALAR
        waits = fold.op == "sum" and dtype.name in ("f32", "f64", "i32", "i64")
        for copy in w.copies(made.axes):
            names = [made.name(w, made.key(copy, 0), form)]
            names += [n for key, n in made.names.items() if key[:-1] == made.key(copy, 0)[:-1] and key[-1]]
            text = names[0]
            for other in names[1:]:
                text = operators.combine(fold.op, text, other, dtype, form is not Form.SCALAR)
            if form is Form.PARTIAL and not waits:
                text = operators.across(fold.op, text, dtype)
            text = ctype.rounded(text, dtype, form is Form.LANES)
            held = register(dtype)
            scalar = form is Form.SCALAR or (form is Form.PARTIAL and not waits)
            if text != names[0]:
                text = w.declare(held.scalar if scalar else held.vector, text)
            texts[tuple(copy.values())] = text
        return Value(dtype, Form.SCALAR if form is Form.PARTIAL and not waits else form, made.axes, texts)
