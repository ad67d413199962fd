"""Values read as other dtypes: their bits taken apart and put together by integer arithmetic.

Values of four and eight bytes have integers of their size, to which `bits.<dtype>` turns them.  Narrower
floats have none: their bits are those of the f32 of the same value, with another exponent and a shorter
fraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lumi.dtype import BF16, F32, I32, I64, LAYOUTS, DType
from lumi.field.term import Const, Term
from lumi.lower.maker import Maker


@dataclass(frozen=True, slots=True)
class Bits:
    """Builds the terms of bitcasts.

    The bits that a narrow float was made of are kept, because a NaN's may not survive its f32.
    """

    make: Maker
    _known: dict[int, Term] = field(default_factory=dict)

    def bits(self, a: Term, dtype: DType) -> Term:
        """The bits of a value as a nonnegative i32, or as the i32 or i64 of the same bytes."""
        a = self.make.typed(a, dtype)
        match dtype.size:
            case 8:
                return a if dtype is I64 else self.make.unary("bits.i64", a)
            case 4:
                return a if dtype is I32 else self.make.unary("bits.i32", a)
            case _ if dtype.is_float:
                return self._known.get(id(a)) or self._narrow_bits(a, dtype)
            case _:
                whole = self.make.cast(a, I32)
                return whole if dtype.kind != "int" else self._mask(whole, 0xFF)

    def from_bits(self, a: Term, dtype: DType) -> Term:
        """The value with these bits: an i64 for eight bytes, otherwise an i32 whose low bytes count."""
        match dtype.size:
            case 8:
                return a if dtype is I64 else self.make.unary("bits.f64", a)
            case 4:
                return a if dtype is I32 else self.make.unary("bits.f32", a)
            case _ if dtype.is_float:
                made = self._narrow(a, dtype)
                self._known[id(made)] = a
                return made
            case _:
                return self.make.cast(a, dtype)

    def bitcast(self, a: Term, source: DType, target: DType) -> Term:
        """A value read as another dtype of the same size."""
        if source is target:
            return a
        if source.size >= 4:
            return self.make.unary(f"bits.{target}", self.make.typed(a, source))
        return self.from_bits(self.bits(a, source), target)

    def assemble(self, pieces: Sequence[Term], source: DType, target: DType) -> Term:
        """One value of `target` from the bytes of several of `source`, little endian."""
        wide = I64 if target.size == 8 else I32
        total: Term | None = None
        for k, piece in enumerate(pieces):
            bits = self.bits(piece, source)
            if wide is I64:
                bits = self.make.cast(bits, I64)
                if source.size == 4:
                    bits = self._mask(bits, 0xFFFFFFFF)
            placed = self.make.times(bits, 1 << (8 * source.size * k))
            total = placed if total is None else self.make.binary("add", total, placed)
        assert total is not None
        return self.from_bits(total, target)

    def piece(self, a: Term, source: DType, target: DType, place: Term) -> Term:
        """The `place`-th value of `target` in the bytes of one of `source`, little endian."""
        bits = self.bits(a, source)
        amount = self.make.times(place, 8 * target.size)
        if source.size == 8 and not isinstance(amount, Const):
            amount = self.make.cast(amount, I64)
        low = self.make.binary("shr", bits, amount)
        if source.size == 8:
            low = self.make.cast(low, I32) if target.size < 8 else low
        if target.size < 4:
            low = self._mask(low, (1 << (8 * target.size)) - 1)
        return self.from_bits(low, target)

    def _mask(self, a: Term, mask: int) -> Term:
        return self.make.binary("bitand", a, self.make.number(mask))

    def _narrow_bits(self, a: Term, dtype: DType) -> Term:
        """The bits of a narrow float: those of its f32, whose exponent and fraction are longer."""
        bits = self.make.unary("bits.i32", self.make.cast(a, F32))
        if dtype is BF16:
            return self._mask(self.make.binary("shr", bits, self.make.number(16)), 0xFFFF)
        make, n, layout = self.make, self.make.number, LAYOUTS[dtype.name]
        length, lower = 23 - layout.fraction, 126 + layout.least
        top = 8 * dtype.size - 1
        sign = self._mask(make.binary("shr", bits, n(31 - top)), 1 << top)
        size = self._mask(bits, 0x7FFFFFFF)
        shifted = make.binary("shr", size, n(length))
        normal = make.binary("sub", shifted, n(lower << layout.fraction))
        # below its least normal value it is a multiple of a power of two
        scale = n(2.0 ** (layout.fraction - layout.least))
        small = make.cast(make.binary("mul", make.unary("abs", make.cast(a, F32)), scale), I32)
        special: Term = n(layout.nan)
        if layout.above != layout.nan:
            special = make.binary("add", self._mask(shifted, (1 << layout.fraction) - 1), n(layout.above))
        finite = make.select(make.binary("lt", size, n((lower + 1) << 23)), small, normal)
        chosen = make.select(make.binary("lt", size, n(255 << 23)), finite, special)
        return make.binary("add", sign, chosen)

    def _narrow(self, bits: Term, dtype: DType) -> Term:
        """The narrow float with these bits, through the f32 of the same value."""
        make, n = self.make, self.make.number
        if dtype is BF16:
            return make.cast(make.unary("bits.f32", make.binary("mul", bits, n(1 << 16))), BF16)
        layout, top = LAYOUTS[dtype.name], 8 * dtype.size - 1
        length, lower = 23 - layout.fraction, 126 + layout.least
        low = self._mask(bits, (1 << top) - 1)
        sign = make.binary("mul", self._mask(bits, 1 << top), n(1 << (31 - top)))
        shifted = make.binary("mul", low, n(1 << length))
        normal = make.unary("bits.f32", make.binary("add", shifted, n(lower << 23)))
        # the longest exponent becomes the longest of a f32
        last = layout.above >> layout.fraction
        special = make.unary("bits.f32", make.binary("add", shifted, n((255 - last) << 23)))
        small = make.binary("mul", make.cast(low, F32), n(2.0 ** (layout.least - layout.fraction)))
        finite = make.select(make.binary("lt", low, n(1 << layout.fraction)), small, normal)
        size = make.select(make.binary("lt", low, n(layout.above)), finite, special)
        whole = make.binary("add", make.unary("bits.i32", size), sign)
        return make.cast(make.unary("bits.f32", whole), dtype)
