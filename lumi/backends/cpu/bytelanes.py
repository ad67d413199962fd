"""Values as vectors of bytes: what integer elementwise operators leave in the lowest byte of each element.

Sums, differences, masks and products by powers of two of i32 values have lowest bytes that depend on the
lowest bytes of their operands alone, so that packed quants are unpacked 32 at a time.  A right shift needs
all its bits: it is taken of a byte that was loaded, or, in `(w >> position) & 2^k`, of one number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lumi.backends.clike.scope import Copy
from lumi.backends.cpu import ctype
from lumi.backends.cpu.expression import Expressions
from lumi.backends.cpu.scope import Writer
from lumi.dtype import I8, I32, U8
from lumi.llir import spell
from lumi.llir.kernel import Load, Map, Operand, Position
from lumi.llir.program import Definition, axes_of, dtype_of

HALF = 16
"""Bytes of the shorter vectors; the longer ones have twice as many."""

Range = tuple[float, float]
ANYTHING: Range = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class ByteLanes:
    """Vectors of bytes along the positions of `axis`, `HALF` or twice as many from an open position on.

    With `pair`, an axis that is open at two positions, the first half is the vector at the one position
    and the second half that at the other.
    """

    w: Writer
    expressions: Expressions
    axis: str
    pair: str | None
    count: int

    def text(self, operand: Operand, copy: Copy) -> str:
        """C for the bytes of a value that `can_hold`, in one copy of the code."""
        if not isinstance(operand, str):
            return self._splat([ctype.literal(operand, I32)])
        made = self.w.program.definitions[operand]
        if self.axis not in axes_of(made):
            return self._splat(self._scalars(operand, copy))
        if isinstance(made, Load):
            return self._load(made, copy)
        assert isinstance(made, Map)
        return self._map(made, copy)

    def named(self, operand: Operand, copy: Copy) -> str:
        """A variable that holds the bytes."""
        return self.w.declare(f"u8x{self.count}", self.text(operand, copy))

    def _map(self, made: Map, copy: Copy) -> str:
        bits = self._bit(made)
        if bits is not None:
            word, place = bits
            return f"({self._bits(word, place, copy)} & {1 << place})"
        shifted = self._shifted(made)
        if shifted is not None:
            byte, by, mask, scale = shifted
            text = f"({self._shift(byte, by, copy)} & {(mask >> scale) & 255})"
            return f"({text} << {scale})" if scale else text
        if made.op.startswith("cast."):
            return self.text(made.args[0], copy)
        if made.op == "shr":
            return self._shift(made.args[0], made.args[1], copy)
        if made.op == "mul":
            factor, number = self._scaled(made)
            return f"({self.text(factor, copy)} << {int(math.log2(number))})"
        sign = {"add": "+", "sub": "-", "bitand": "&"}[made.op]
        return f"({self.text(made.args[0], copy)} {sign} {self.text(made.args[1], copy)})"

    # -- leaves

    def _parts(self, copy: Copy) -> list[Copy]:
        return [copy] if self.pair is None else [{**copy, self.pair: n} for n in (0, 1)]

    def _scalars(self, operand: Operand, copy: Copy) -> list[str]:
        value = self.expressions.value(operand, I32)
        return list(dict.fromkeys(value.at(part) for part in self._parts(copy)))

    def _splat(self, texts: Sequence[str]) -> str:
        if len(texts) == 1:
            return f"splat_bytes{self.count}({texts[0]})"
        return f"join_bytes({', '.join(f'splat_bytes{HALF}({t})' for t in texts)})"

    def _load(self, made: Load, copy: Copy) -> str:
        pointers = [self.expressions.pointer(made.access, {}, part) for part in self._parts(copy)]
        if len(pointers) == 1 or spell.step(made.access, str(self.pair)) == HALF:
            self.expressions.fetch_ahead(made, pointers[0], self.axis)
            return f"ld_bytes{self.count}({pointers[0]})"
        halves = ", ".join(f"ld_bytes{HALF}({p})" for p in pointers)
        return f"join_bytes({halves})"

    def _shift(self, byte: Operand, by: Operand, copy: Copy) -> str:
        """Loaded bytes shifted right."""
        load = self._loaded(byte)
        assert load is not None
        counts = self._scalars(by, copy) if isinstance(by, str) else [ctype.literal(by, I32)]
        if len(counts) == 1:
            return f"shift_bytes{self.count}({self._load(load, copy)}, {counts[0]})"
        pointers = [self.expressions.pointer(load.access, {}, part) for part in self._parts(copy)]
        self.expressions.fetch_ahead(load, pointers[0], self.axis)
        parts = zip(pointers, counts, strict=True)
        halves = [f"shift_bytes{HALF}(ld_bytes{HALF}({p}), {n})" for p, n in parts]
        return f"join_bytes({', '.join(halves)})"

    def _bits(self, word: Operand, place: int, copy: Copy) -> str:
        """255 where the bit of a word that an element asks for is set, else 0."""
        value, start = self.expressions.value(word, I32), self.w.coordinate(self.axis, {})[0]
        words = [f"({value.at(part)} >> {place} >> {start})" for part in self._parts(copy)]
        if self.count == HALF:
            return f"bits_bytes{HALF}({words[0]})"
        return f"bits_bytes32({words[0]}, {words[1] if self.pair else f'{words[0]} >> {HALF}'})"

    # -- patterns

    def can_hold(self, operand: Operand) -> bool:
        """Whether the bytes of a value can be computed."""
        made = self._made(operand)
        if made is None:
            return not isinstance(operand, str)
        if dtype_of(made) not in (I8, U8, I32):
            return False
        if self.axis not in axes_of(made):
            return True
        if operand in self.w.arrays:
            return False
        if isinstance(made, Load):
            return self._is_run(made)
        if not isinstance(made, Map):
            return False
        if self._bit(made) or self._shifted(made):
            return True
        if made.op == "shr":
            return self._loaded(made.args[0]) is not None and self._is_scalar(made.args[1])
        if made.op == "mul":
            factor, number = self._scaled(made)
            return number in (2.0**k for k in range(8)) and self.can_hold(factor)
        cast = made.op in ("cast.i8", "cast.u8", "cast.i32")
        return (cast or made.op in ("add", "sub", "bitand")) and all(map(self.can_hold, made.args))

    def _made(self, operand: Operand) -> Definition | None:
        return self.w.program.definitions[operand] if isinstance(operand, str) else None

    def _is_scalar(self, operand: Operand) -> bool:
        made = self._made(operand)
        return made is None or (self.axis not in axes_of(made) and dtype_of(made) == I32)

    def _is_run(self, load: Load) -> bool:
        access = load.access
        plain = access.dtype == load.dtype and access.dtype in (I8, U8) and not load.data
        return plain and not access.clamp and spell.step(access, self.axis) == 1

    def _loaded(self, operand: Operand) -> Load | None:
        """The load of u8 that an i32 value is, if it is one."""
        made = self._made(operand)
        if isinstance(made, Map) and made.op == "cast.i32":
            made = self._made(made.args[0])
        return made if isinstance(made, Load) and made.dtype == U8 and self._is_run(made) else None

    def _scaled(self, made: Map) -> tuple[Operand, float]:
        """The operand that a product scales, and by what number; 0 when by none."""
        a, b = made.args
        return (a, b) if not isinstance(b, str) else (b, a) if not isinstance(a, str) else (a, 0.0)

    def _bit(self, made: Map) -> tuple[Operand, int] | None:
        """The word w and k, where a value is (w >> position) & 2^k, the position being that of the lane."""
        masked = self._masked(made)
        if masked is None or masked[1] not in (1 << k for k in range(8)):
            return None
        shift = self._made(masked[0])
        if not isinstance(shift, Map) or shift.op != "shr":
            return None
        by = self._made(shift.args[1])
        if not isinstance(by, Position) or by.axis != self.axis or not self._is_scalar(shift.args[0]):
            return None
        span = self.w.ranges[self.axis]
        if span.start != "0" or span.length is None or span.length > 2 * HALF:
            return None
        return shift.args[0], int(masked[1]).bit_length() - 1

    def _shifted(self, made: Map) -> tuple[Operand, Operand, int, int] | None:
        """x, n, m and k, where a value is ((x 2^k) >> n) & m of loaded bytes x and m has no bit below 2^k."""
        masked = self._masked(made)
        shift = self._made(masked[0]) if masked else None
        if masked is None or not isinstance(shift, Map) or shift.op != "shr":
            return None
        byte, by = shift.args
        scaled, scale = self._made(byte), 0
        if isinstance(scaled, Map) and scaled.op == "mul":
            byte, number = self._scaled(scaled)
            if number not in (2.0**k for k in range(8)):
                return None
            scale = int(math.log2(number))
        if masked[1] % (1 << scale) or self._loaded(byte) is None or not self._is_scalar(by):
            return None
        return byte, by, masked[1], scale

    def _masked(self, made: Map) -> tuple[Operand, int] | None:
        """The operand of a mask and its number, where the number is from 0 to 255."""
        if made.op != "bitand" or isinstance(made.args[1], str) or not 0 <= made.args[1] <= 255:
            return None
        return made.args[0], int(made.args[1])

    # -- ranges

    def range(self, operand: Operand) -> Range:
        """The least and the greatest that an i32 or byte value can be."""
        made = self._made(operand)
        if made is None:
            return (float(operand), float(operand))
        if isinstance(made, Map) and made.op == "bitand" and (masked := self._masked(made)):
            return (0, masked[1])
        if isinstance(made, Map) and made.op in ("add", "sub"):
            (a, b), (c, d) = self.range(made.args[0]), self.range(made.args[1])
            return (a + c, b + d) if made.op == "add" else (a - d, b - c)
        if isinstance(made, Map) and made.op in ("cast.i8", "cast.i32"):
            low, high = self.range(made.args[0])
            if made.op == "cast.i32" or (low >= -128 and high <= 127):
                return low, high
        if dtype_of(made) not in (I8, U8):
            return ANYTHING
        low, high = dtype_of(made).bounds
        return float(low), float(high)
