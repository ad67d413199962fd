"""Small integers unpacked four at a time: each in a byte of a word, then as floats.

Shifts, masks, sums and products of values that stay within a byte are the same for a whole word.  A byte u
that is left where it lies in the word, p bits up, with all others masked, is a float: u · 2^(p - 149),
exactly, as long as p is at most 16.  So one instruction makes a factor of a byte, and the other factor, which
is scaled by powers of two once, makes good for p and for 149.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lumi.backends.clike.scope import Copy
from lumi.backends.cuda.expression import Expressions
from lumi.dtype import I8, I32, U8
from lumi.llir.kernel import Load, Map, Operand, Position
from lumi.llir.program import Definition, axes_of, dtype_of

BYTE = 255
"""The greatest value of a byte."""

WORD = 4
"""Bytes of a word."""

ONES = 0x01010101
"""One in each byte of a word."""

SIGN = 128
"""What is added to signed bytes, so that none is negative."""

PLACES = (0, 8, 16, 0)
"""How far up the bits of each byte of a word stand as they are taken for a float; the last one is moved."""

TINY = 149
"""The exponent of the smallest float is the negative of this."""

Words = Callable[[Load, Copy], Sequence[str]]
"""CUDA for the words of neighbours that a load reads, in one copy of the code."""


@dataclass(frozen=True, slots=True)
class Unpacking:
    """Values along the open axis `inner`, `width` neighbours of them; `words` reads what memory holds."""

    expressions: Expressions
    inner: str
    width: int
    words: Words

    def holds(self, operand: str) -> bool:
        """Whether a value is a float made of an integer that bytes hold, but for a number added to it."""
        made = self._made(operand)
        if not isinstance(made, Map) or made.op != "cast.f32":
            return False
        value, _ = self._without_bias(made.args[0])
        return self._is_signed(value) or self._most(value) is not None

    def bias(self, operand: str) -> int:
        """What to add to the bytes of a value that they hold."""
        value, bias = self._without_bias(self._integer(operand))
        return bias - SIGN if self._is_signed(value) else bias

    def floats(self, operand: str, copy: Copy) -> list[str]:
        """CUDA for the bytes of neighbours of a value that they hold, times 2^(`PLACES` - `TINY`)."""
        value, _ = self._without_bias(self._integer(operand))
        words = [self.expressions.w.declare("u32", text, "bytes") for text in self._words(value, copy)]
        return [f"tiny_byte<{k % WORD}>({words[k // WORD]})" for k in range(self.width)]

    def _integer(self, operand: str) -> Operand:
        made = self._made(operand)
        assert isinstance(made, Map), "bytes hold the value"
        return made.args[0]

    def _made(self, operand: Operand) -> Definition | None:
        return self.expressions.w.program.definitions[operand] if isinstance(operand, str) else None

    def _without_bias(self, operand: Operand) -> tuple[Operand, int]:
        """A value, and the number that makes the given one when it is added."""
        made = self._made(operand)
        if isinstance(made, Map) and made.op in ("add", "sub") and made.dtype == I32:
            value, number = made.args
            if not isinstance(number, str):
                return value, int(number if made.op == "add" else -number)
        return operand, 0

    def _is_signed(self, operand: Operand) -> bool:
        """Whether a value is a loaded i8."""
        made = self._made(operand)
        if isinstance(made, Map) and made.op == "cast.i32":
            return self._is_signed(made.args[0])
        return isinstance(made, Load) and made.dtype == I8 and self.inner in made.axes

    # -- what bytes can hold

    def _most(self, operand: Operand) -> int | None:
        """The greatest value, where bytes hold it and all it is made of; None where they may not."""
        if not isinstance(operand, str):
            return int(operand) if 0 <= operand <= BYTE else None
        made = self._made(operand)
        if isinstance(made, Load):
            return BYTE if made.dtype == U8 and self.inner in made.axes else None
        if not isinstance(made, Map) or made.dtype != I32:
            return None
        found = self._most(made.args[0]) if made.op == "cast.i32" else self._greatest(*_form(made))
        return found if found is not None and found <= BYTE else None

    def _greatest(self, op: str, a: Operand, b: Operand) -> int | None:
        if op == "bitand" and not isinstance(b, str) and b >= 0:
            if self._bit(a, int(b)) is not None:
                return int(b)
            shifted = self._shifted(a)
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

    def _shifted(self, operand: Operand) -> tuple[Operand, Operand, int] | None:
        """A byte shifted right by one count for all neighbours: the byte, the count, the greatest count."""
        made = self._made(operand)
        if not isinstance(made, Map) or made.op != "shr" or self._most(made.args[0]) is None:
            return None
        most = self._count(made.args[1])
        return None if most is None or most > 7 else (made.args[0], made.args[1], most)

    def _count(self, operand: Operand) -> int | None:
        """The greatest value of a number made of positions other than those of the neighbours."""
        if not isinstance(operand, str):
            return int(operand) if operand >= 0 else None
        made = self._made(operand)
        if isinstance(made, Position):
            extent = self.expressions.w.program.kernel.axes[made.axis]
            return extent - 1 if isinstance(extent, int) and made.axis != self.inner else None
        if not isinstance(made, Map) or made.op not in ("add", "mul"):
            return None
        a, b = (self._count(x) for x in made.args)
        return None if a is None or b is None else a + b if made.op == "add" else a * b

    def _bit(self, value: Operand, mask: int) -> tuple[str, int] | None:
        """For `(number >> position) & 2^k` of a number that all neighbours share: that number, and k."""
        shift = self._made(value)
        if mask.bit_count() != 1 or mask > BYTE or not isinstance(shift, Map) or shift.op != "shr":
            return None
        number, place, program = shift.args[0], self._made(shift.args[1]), self.expressions.w.program
        if not isinstance(number, str) or not isinstance(place, Position) or place.axis != self.inner:
            return None
        definition, extent = program.definitions[number], program.kernel.axes[self.inner]
        is_shared = self.inner not in axes_of(definition) and dtype_of(definition) == I32
        k = mask.bit_length() - 1
        return (number, k) if is_shared and isinstance(extent, int) and extent + k <= 32 else None

    # -- their code

    def _words(self, operand: Operand, copy: Copy) -> list[str]:
        """CUDA for the words of a value that bytes hold."""
        if not isinstance(operand, str):
            return [f"{int(operand) * ONES:#x}u"] * (self.width // WORD)
        made = self._made(operand)
        if isinstance(made, Load):
            texts = list(self.words(made, copy))
            return [f"({t} ^ {SIGN * ONES:#x}u)" for t in texts] if made.dtype == I8 else texts
        assert isinstance(made, Map)
        if made.op == "cast.i32":
            return self._words(made.args[0], copy)
        op, a, b = _form(made)
        if op == "bitand":
            return self._masked(a, int(b), copy)
        if op == "shr":
            return [f"({t} >> {int(b)} & {(BYTE >> int(b)) * ONES:#x}u)" for t in self._words(a, copy)]
        if op == "mul":
            return [f"({t} * {int(b)}u)" for t in self._words(a, copy)]
        pairs = zip(self._words(a, copy), self._words(b, copy), strict=True)
        return [f"({x} + {y})" for x, y in pairs]

    def _masked(self, value: Operand, mask: int, copy: Copy) -> list[str]:
        bit, shifted = self._bit(value, mask), self._shifted(value)
        if bit is not None:
            return self._bits(*bit, copy)
        if shifted is None:
            return [f"({t} & {(mask & BYTE) * ONES:#x}u)" for t in self._words(value, copy)]
        byte, by, _ = shifted
        count = self.expressions.value(by, I32).at(copy)
        return [f"({t} >> {count} & {mask * ONES:#x}u)" for t in self._words(byte, copy)]

    def _bits(self, number: str, place: int, copy: Copy) -> list[str]:
        """Neighbours' bits of a number, each put into a byte at `place`."""
        w = self.expressions.w
        value, (first, _) = self.expressions.value(number, I32).at(copy), w.coordinate(self.inner, {})
        bits = w.declare("u32", f"(u32){value} >> ({first} + {place})", "bits")
        return [f"(bits_apart({bits} >> {WORD * k}) << {place})" for k in range(self.width // WORD)]


def _form(made: Map) -> tuple[str, Operand, Operand]:
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
