"""Small integers that bytes hold: which values they are.

Shifts, masks, sums and products of values that stay within a byte are the same for a whole word of four.
"""

from __future__ import annotations

from dataclasses import dataclass

from lumi.dtype import I8, I32, U8
from lumi.llir.kernel import Load, Map, Operand, Position
from lumi.llir.program import Definition, Program, axes_of, dtype_of

BYTE = 255
"""The greatest value of a byte."""

SIGN = 128
"""What is added to signed bytes, so that none is negative."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """Which values along the axis `inner` bytes hold."""

    program: Program
    inner: str

    def holds(self, operand: str) -> bool:
        """Whether a value is a float made of an integer that bytes hold, but for a number added to it."""
        made = self.made(operand)
        if not isinstance(made, Map) or made.op != "cast.f32":
            return False
        value, _ = self.without_bias(made.args[0])
        return self._is_signed(value) or self._most(value) is not None

    def bias(self, operand: str) -> int:
        """What to add to the bytes of a value that they hold."""
        value, bias = self.without_bias(self.integer(operand))
        return bias - SIGN if self._is_signed(value) else bias

    def integer(self, operand: str) -> Operand:
        """The integer that a value is made of which bytes hold."""
        made = self.made(operand)
        assert isinstance(made, Map), "bytes hold the value"
        return made.args[0]

    def made(self, operand: Operand) -> Definition | None:
        """What a value is made of; None of a number."""
        return self.program.definitions[operand] if isinstance(operand, str) else None

    def without_bias(self, operand: Operand) -> tuple[Operand, int]:
        """A value, and the number that makes the given one when it is added."""
        made = self.made(operand)
        if isinstance(made, Map) and made.op in ("add", "sub") and made.dtype == I32:
            value, number = made.args
            if not isinstance(number, str):
                return value, int(number if made.op == "add" else -number)
        return operand, 0

    def _is_signed(self, operand: Operand) -> bool:
        """Whether a value is a loaded i8."""
        made = self.made(operand)
        if isinstance(made, Map) and made.op == "cast.i32":
            return self._is_signed(made.args[0])
        return isinstance(made, Load) and made.dtype == I8 and self.inner in made.axes

    def _most(self, operand: Operand) -> int | None:
        """The greatest value, where bytes hold it and all it is made of; None where they may not."""
        if not isinstance(operand, str):
            return int(operand) if 0 <= operand <= BYTE else None
        made = self.made(operand)
        if isinstance(made, Load):
            return BYTE if made.dtype == U8 and self.inner in made.axes else None
        if not isinstance(made, Map) or made.dtype != I32:
            return None
        found = self._most(made.args[0]) if made.op == "cast.i32" else self._greatest(*form(made))
        return found if found is not None and found <= BYTE else None

    def _greatest(self, op: str, a: Operand, b: Operand) -> int | None:
        if op == "bitand" and not isinstance(b, str) and b >= 0:
            if self.bit(a, int(b)) is not None:
                return int(b)
            shifted = self.shifted(a)
            if shifted is not None:
                return int(b) if int(b) <= BYTE >> shifted[2] else None
        first, second = self._most(a), self._most(b)
        if first is None or second is None or (op != "add" and isinstance(b, str)):
            return None
        match op:
            case "bitand":
                return min(first, second)
            case "shr":
                return first >> second
            case "add":
                return first + second
            case "mul":
                return first * second
            case _:
                return None

    def shifted(self, operand: Operand) -> tuple[Operand, Operand, int] | None:
        """A byte shifted right by one count for all neighbours: the byte, the count, the greatest count."""
        made = self.made(operand)
        if not isinstance(made, Map) or made.op != "shr" or self._most(made.args[0]) is None:
            return None
        most = self._count(made.args[1])
        return None if most is None or most > 7 else (made.args[0], made.args[1], most)

    def _count(self, operand: Operand) -> int | None:
        """The greatest value of a number made of positions other than those of the neighbours."""
        if not isinstance(operand, str):
            return int(operand) if operand >= 0 else None
        made = self.made(operand)
        if isinstance(made, Position):
            extent = self.program.kernel.axes[made.axis]
            return extent - 1 if isinstance(extent, int) and made.axis != self.inner else None
        if not isinstance(made, Map) or made.op not in ("add", "mul"):
            return None
        a, b = (self._count(x) for x in made.args)
        return None if a is None or b is None else a + b if made.op == "add" else a * b

    def bit(self, value: Operand, mask: int) -> tuple[str, int] | None:
        """For `(number >> position) & 2^k` of a number that all neighbours share: that number, and k."""
        shift = self.made(value)
        if mask.bit_count() != 1 or mask > BYTE or not isinstance(shift, Map) or shift.op != "shr":
            return None
        number, place, program = shift.args[0], self.made(shift.args[1]), self.program
        if not isinstance(number, str) or not isinstance(place, Position) or place.axis != self.inner:
            return None
        definition, extent = program.definitions[number], program.kernel.axes[self.inner]
        is_shared = self.inner not in axes_of(definition) and dtype_of(definition) == I32
        k = mask.bit_length() - 1
        return (number, k) if is_shared and isinstance(extent, int) and extent + k <= 32 else None


def form(made: Map) -> tuple[str, Operand, Operand]:
    """An operator of two, with a number on the right, and division by powers of two as shifts and masks.

    Of values that bytes hold, which are not negative, these are the same.
    """
    if len(made.args) != 2:
        return made.op, made.args[0], made.args[0]
    a, b = made.args
    if made.op in ("add", "mul", "bitand") and not isinstance(a, str):
        a, b = b, a
    if made.op in ("div", "rem") and not isinstance(b, str) and b > 0 and int(b).bit_count() == 1:
        return ("shr", a, int(b).bit_length() - 1) if made.op == "div" else ("bitand", a, int(b) - 1)
    return made.op, a, b
