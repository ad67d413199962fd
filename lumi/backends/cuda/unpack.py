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
from lumi.backends.cuda.quants import BYTE, SIGN, Bytes, form
from lumi.dtype import I8, I32
from lumi.llir.kernel import Load, Map, Operand, Position

WORD = 4
"""Bytes of a word."""

ONES = 0x01010101
"""One in each byte of a word."""

PLACES = (0, 8, 16, 0)
"""How far up the bits of each byte of a word stand as they are taken for a float; the last one is moved."""

TINY = 149
"""The exponent of the smallest float is the negative of this."""

Words = Callable[[Load, Copy], Sequence[str]]
"""CUDA for the words of neighbours that a load reads, in one copy of the code."""


@dataclass(frozen=True, slots=True)
class Unpacking:
    """Values that bytes hold, `width` neighbours of them; `words` reads what memory holds."""

    expressions: Expressions
    held: Bytes
    width: int
    words: Words

    def floats(self, operand: str, copy: Copy) -> list[str]:
        """CUDA for the bytes of neighbours of a value that they hold, times 2^(`PLACES` - `TINY`)."""
        words = [self.expressions.w.declare("u32", text, "bytes") for text in self.bytes(operand, copy)]
        return [f"tiny_byte<{k % WORD}>({words[k // WORD]})" for k in range(self.width)]

    def bytes(self, operand: str, copy: Copy) -> list[str]:
        """CUDA for the words of bytes of a value that they hold, but for its bias."""
        value, _ = self.held.without_bias(self.held.integer(operand))
        return self._words(value, copy)

    def standing(self, operand: str, copy: Copy) -> list[str]:
        """The same, but that bytes stand `up` bits too far up."""
        value, _ = self.held.without_bias(self.held.integer(operand))
        found = self._in_place(value, copy)
        if found is None:
            return self._words(value, copy)
        byte, mask, up = found
        return [f"({t} & {(mask << up) * ONES:#x}u)" for t in self._words(byte, copy)]

    def up(self, operand: str, copy: Copy) -> int:
        """How many bits bytes may be left standing too far up."""
        value, _ = self.held.without_bias(self.held.integer(operand))
        found = self._in_place(value, copy)
        return found[2] if found is not None else 0

    def _in_place(self, value: Operand, copy: Copy) -> tuple[Operand, int, int] | None:
        """For `(byte >> count) & mask` of a count that is known: the byte, the mask, the count."""
        made = self.held.made(value)
        if not isinstance(made, Map) or made.op == "cast.i32":
            return None
        op, a, b = form(made)
        shifted = self.held.shifted(a) if op == "bitand" and self.held.bit(a, int(b)) is None else None
        up = self._known(shifted[1], copy) if shifted is not None else None
        return (shifted[0], int(b), up) if shifted is not None and up is not None else None

    def _known(self, operand: Operand, copy: Copy) -> int | None:
        """A number that is known in a copy of the code."""
        if not isinstance(operand, str):
            return int(operand)
        made = self.held.made(operand)
        if isinstance(made, Position):
            variable, offset = self.expressions.w.coordinate(made.axis, copy)
            return offset if variable == "0" else None
        if not isinstance(made, Map) or made.op not in ("add", "mul"):
            return None
        a, b = (self._known(x, copy) for x in made.args)
        return None if a is None or b is None else a + b if made.op == "add" else a * b

    def _words(self, operand: Operand, copy: Copy) -> list[str]:
        """CUDA for the words of a value that bytes hold."""
        if not isinstance(operand, str):
            return [f"{int(operand) * ONES:#x}u"] * (self.width // WORD)
        made = self.held.made(operand)
        if isinstance(made, Load):
            texts = list(self.words(made, copy))
            return [f"({t} ^ {SIGN * ONES:#x}u)" for t in texts] if made.dtype == I8 else texts
        assert isinstance(made, Map)
        if made.op == "cast.i32":
            return self._words(made.args[0], copy)
        op, a, b = form(made)
        if op == "bitand":
            return self._masked(a, int(b), copy)
        if op == "shr":
            return [f"({t} >> {int(b)} & {(BYTE >> int(b)) * ONES:#x}u)" for t in self._words(a, copy)]
        if op == "mul":
            return [f"({t} * {int(b)}u)" for t in self._words(a, copy)]
        pairs = zip(self._words(a, copy), self._words(b, copy), strict=True)
        return [f"({x} + {y})" for x, y in pairs]

    def _masked(self, value: Operand, mask: int, copy: Copy) -> list[str]:
        bit, shifted = self.held.bit(value, mask), self.held.shifted(value)
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
        value, (first, _) = self.expressions.value(number, I32).at(copy), w.coordinate(self.held.inner, {})
        bits = w.declare("u32", f"(u32){value} >> ({first} + {place})", "bits")
        return [f"(bits_apart({bits} >> {WORD * k}) << {place})" for k in range(self.width // WORD)]
