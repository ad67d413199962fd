"""Reductions as loops: a team of threads shares the positions, accumulators lie in registers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from lumi.backends.clike.loops import loop_range, tiles
from lumi.backends.clike.roots import folds_together
from lumi.backends.clike.scope import Copy, Scope
from lumi.backends.cuda import ctype, operators
from lumi.backends.cuda.ctype import register
from lumi.backends.cuda.expression import Expressions
from lumi.backends.cuda.scope import Opened, Value, Writer, neighbours, single
from lumi.backends.cuda.streams import Streams
from lumi.llir import arithmetic, spell
from lumi.llir.program import Fold

WARP = 32

SHORT = 8
"""Turns of a loop that are all written out."""

HELD = 32
"""Elements whose loads may be under way at once in any case."""

CHAINS = 2
"""Accumulators that take turns, so that an addition need not wait for the one before."""


@dataclass(slots=True)
class Accumulators:
    """The running results of one fold: a variable for each copy and chain, declared in `scope`."""

    fold: Fold
    scope: Scope[Opened, Value]
    axes: tuple[str, ...]
    names: dict[tuple[int, ...], str] = field(default_factory=dict)

    def name(self, w: Writer, copy: Copy, chain: int) -> str:
        """The variable of a copy; declared before the loops when first used."""
        key = (*(copy[a] for a in self.axes), chain)
        if key not in self.names:
            dtype = self.fold.dtype
            start = ctype.literal(float(arithmetic.identity(self.fold.op, dtype)), dtype)
            self.names[key] = w.fresh("a")
            self.scope.lines.append(f"{register(dtype).type} {self.names[key]} = {start};")
        return self.names[key]


class FoldLoops:
    """Writes the loops of folds."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams

    def write(self, w: Writer, first: Fold) -> Value:
        """The value of a fold, computed in the scope at hand with every other fold of its loop."""
        group, team = folds_together(w, first), w.here.team
        made = [Accumulators(f, w.here, w.unrolled(f.axes)) for f in group]
        own = self.streams.lane_axis(first)
        over = [*(a for a in first.over if a != own), own]
        outer = dict(w.ranges)
        with ExitStack() as stack:
            if first.loop is not None and first.loop.guards:
                stack.enter_context(tiles(w, first.loop, level=False))
            elif first.loop is not None:
                w.ranges |= {a: loop_range(w, first.loop, a) for a in first.loop.axes}
            self._turns(w, over, team, made)
        w.ranges = outer
        for accumulators in made:
            w.here.values[accumulators.fold.var] = self._result(w, accumulators, team)
        return w.here.values[first.var]

    def _turns(self, w: Writer, over: Sequence[str], team: int, made: list[Accumulators]) -> None:
        """Loops over the axes, the last one shared among the team."""
        axis, rest = over[0], over[1:]
        span, x = w.ranges[axis], w.fresh(f"x_{spell.identifier(axis)}_")
        if rest:
            header = f"for (int {x} = {span.start}; {x} < {span.stop}; {x}++) "
            with w.block(header, {axis: single(x)}, team=1):
                self._turns(w, rest, team, made)
            return
        terms = [t for m in made for t in m.fold.terms]
        width = self.streams.width(self.streams.reads(terms), axis, span.multiple)
        first = _position(span.start, lane(w, team), width)
        if team > 1 and span.bound is not None and span.bound <= team * width:
            header = f"if (const int {x} = {first}; {x} < {span.stop}) "
        else:  # one header, so that accumulators declared before the loop do not part the lines
            header = f"for (int {x} = {first}; {x} < {span.stop}; {x} += {team * width}) "
            header = f"#pragma unroll {self._unroll(w, axis, team, width)}\n{header}"
        opened = single(x) if width == 1 else neighbours(x, width, width)
        with w.block(header, {axis: opened}, team=1):
            expressions = Expressions(w, self.write)
            for accumulators in made:
                self._take(w, expressions, accumulators, axis)

    def _unroll(self, w: Writer, axis: str, team: int, width: int) -> int:
        """How many turns are written out: all of a few, so that all their loads are under way at once."""
        bound = w.ranges[axis].bound
        if bound is None:
            return max(w.blocking.unroll, 1)
        turns = max(-(-bound // (team * width)), 1)
        return turns if turns <= SHORT or turns * width <= HELD else max(w.blocking.unroll, 1)

    def _take(self, w: Writer, expressions: Expressions, made: Accumulators, own: str) -> None:
        """Let the accumulators of one fold take in the terms at the current positions."""
        fold = made.fold
        terms = [expressions.value(t, fold.dtype) for t in fold.terms]
        for copy in w.copies((*made.axes, *w.unrolled((own,)))):
            target = made.name(w, copy, copy.get(own, 0) % CHAINS)
            texts = [t.at(copy) for t in terms]
            if len(texts) == 2:
                text = operators.multiply_add(texts[0], texts[1], target, fold.dtype)
            else:
                text = operators.combine(fold.op, target, texts[0], fold.dtype)
            w.line(f"{target} = {text};")

    def _result(self, w: Writer, made: Accumulators, team: int) -> Value:
        """The accumulators as a value that the whole team has: chains joined, then threads."""
        fold, dtype, texts = made.fold, made.fold.dtype, {}
        for copy in w.copies(made.axes):
            key = tuple(copy[a] for a in made.axes)
            names = [made.name(w, copy, 0)] + [n for k, n in made.names.items() if k[:-1] == key and k[-1]]
            text = names[0]
            for other in names[1:]:
                text = operators.combine(fold.op, text, other, dtype)
            text = ctype.rounded(self._joined(w, fold.op, text, made, team), dtype)
            texts[key] = w.declare(register(dtype).type, text)
        return Value(dtype, made.axes, texts)

    def _joined(self, w: Writer, op: str, text: str, made: Accumulators, team: int) -> str:
        if team == 1:
            return text
        name = register(made.fold.dtype).name
        if team == w.blocking.threads > WARP:
            return f"block_{op}_{name}<{team}>({text})"
        if w.apart:
            return f"apart_{op}_{name}<{team}, {w.blocking.threads}>({text})"
        return f"across_{op}_{name}<{team}>({text})"


def lane(w: Writer, team: int) -> str:
    """CUDA for the number of a thread in its team; empty when it works alone."""
    if team == 1:
        return ""
    if w.apart and team < w.blocking.threads:
        return f"(int)(threadIdx.x / {w.blocking.threads // team})"
    return "(int)threadIdx.x" if team == w.blocking.threads else f"(int)(threadIdx.x % {team})"


def _position(start: str, lane: str, width: int) -> str:
    """CUDA for the first position of a thread."""
    if not lane:
        return start
    text = lane if width == 1 else f"{lane} * {width}"
    return text if start == "0" else f"{start} + {text}"
