"""Elements of tiles as CUDA: as everywhere, but for what loops over tiles spend most of their time with.

A scaled value, a maximum taken off, a scale again and a power of two become one multiplication with
addition and one instruction; a selection that a whole tile passes costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lumi.backends.cuda.expression import Expressions
from lumi.backends.cuda.mma.bound import is_at_least
from lumi.backends.cuda.scope import Value, Writer
from lumi.dtype import F32
from lumi.llir.kernel import Map, Operand
from lumi.llir.program import Fold, axes_of


@dataclass(frozen=True, slots=True)
class Scaled:
    """A value that is `scale` times another one."""

    value: Value
    scale: float


@dataclass(frozen=True, slots=True)
class Line:
    """`scale` · `base` − `weight` · `less`, a value of rows no smaller than the base, if any."""

    base: Value
    scale: float = 1.0
    less: str | None = None
    weight: float = 0.0

    def times(self, factor: float) -> Line:
        """The line times a number."""
        return replace(self, scale=self.scale * factor, weight=self.weight * factor)


class Elements(Expressions):
    """Computes values of tiles; `passed` are the selections that the tile at hand passes everywhere."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer, _no_fold)
        self.passed: frozenset[str] = frozenset()
        self.scaled: dict[str, Scaled] = {}

    def scaled_up(self, value: Value, scale: float) -> Value:
        """The expressions of a value times a number."""
        return Value(value.dtype, value.axes, {k: f"({t} * {scale!r}f)" for k, t in value.texts.items()})

    def _map(self, definition: Map) -> Value:
        if definition.dtype == F32:
            if definition.op == "sel" and definition.args[0] in self.passed:
                return self.value(definition.args[1], F32)
            if definition.op == "exp2":
                found = self._power(definition)
                if found is not None:
                    return found
            if definition.op == "max":
                return self._largest(definition)
        return super()._map(definition)

    def _largest(self, definition: Map) -> Value:
        values = [self.value(a, F32) for a in definition.args]
        axes = tuple(a for a in self.w.unrolled(definition.axes) if any(a in v.axes for v in values))
        texts = {}
        for copy in self.w.copies(axes):
            text = "larger({}, {})".format(*(v.at(copy) for v in values))
            texts[tuple(copy.values())] = self._named(text, F32)
        return Value(F32, axes, texts)

    # -- powers of two

    def _power(self, definition: Map) -> Value | None:
        """2 to the power of what is at most 0, a maximum having been taken off."""
        line = self._line(definition.args[0])
        if line.less is None:
            return None
        off = self._shift(line.less, line.weight)
        texts = {
            key: self._named(f"power_of_two(fmaf({text}, {line.scale!r}f, {off}))", F32)
            for key, text in line.base.texts.items()
        }
        return Value(F32, line.base.axes, texts)

    def _shift(self, less: str, weight: float) -> str:
        """What is added for a value of rows that is taken off; declared once where that belongs."""
        text = self.value(less, F32).texts[()]
        key = f"{weight!r} {less}"
        with self.w.outside(self.w.depth(less)) as scope:
            if key not in scope.values:
                named = self._named(f"shift({text}, {weight!r}f)", F32)
                scope.values[key] = Value(F32, (), {(): named})
            return scope.values[key].texts[()]

    def _line(self, operand: Operand) -> Line:
        """A value as a line; where nothing is known of it, as itself."""
        if isinstance(operand, str) and not self._is_here(operand):
            found = self._parts(operand)
            if found is not None:
                return found
        value = self.value(operand, F32)
        known = self.scaled.get(operand) if isinstance(operand, str) else None
        return Line(value) if known is None else Line(known.value, known.scale)

    def _parts(self, var: str) -> Line | None:
        definition = self.w.program.definitions[var]
        if not isinstance(definition, Map) or definition.dtype != F32:
            return None
        match definition.op, definition.args:
            case "mul", (str(a), float(c)) | (float(c), str(a)) if c > 0:
                return self._line(a).times(c)
            case "sel", (str(test), str(a), _) if test in self.passed:
                return self._line(a)
            case "subni", (str(a), str(b)) if self._takes_off(a, b):
                found = self._line(a)
                return replace(found, less=b, weight=1.0) if found.less is None else None
            case _:
                return None

    def _takes_off(self, a: str, b: str) -> bool:
        """Whether b, a value without columns, is a maximum that a went into."""
        table = self.w.program.definitions
        return is_at_least(table, b, a) and not self.w.unrolled(axes_of(table[b]))

    def _is_here(self, var: str) -> bool:
        """Whether a value is computed already, where it belongs."""
        return var in self.w.scopes[self.w.depth(var)].values


def _no_fold(writer: Writer, fold: Fold) -> Value:
    raise AssertionError(f"{fold.var} with axes {axes_of(fold)} is held by no tile")
