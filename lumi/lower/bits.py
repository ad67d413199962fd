"""Values read as other dtypes: their bits taken apart and put together by integer arithmetic.

Values of four and eight bytes have integers of their size, to which `bits.<dtype>` turns them.  Halves
have none: their bits are those of the f32 of the same value, with another exponent and a shorter
fraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lumi.dtype import BF16, F16, F32, I32, I64, DType
from lumi.field.term import Const, Term
from lumi.lower.maker import Maker


@dataclass(frozen=True, slots=True)
class Bits:
    """Builds the terms of bitcasts.

    The bits that a half was made of are kept, because a NaN's may not survive its f32.
    """

    make: Maker
    _halves: dict[int, Term] = field(default_factory=dict)

    def bits(self, a: Term, dtype: DType) -> Term:
        """The bits of a value as a nonnegative i32, or as the i32 or i64 of the same bytes."""
        a = self.make.typed(a, dtype)
        match dtype.size:
            case 8:
                return a if dtype is I64 else self.make.unary("bits.i64", a)
            case 4:
                return a if dtype is I32 else self.make.unary("bits.i32", a)
            case 2:
                return self._halves.get(id(a)) or self._half_bits(a, dtype)
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
            case 2:
                half = self._half(a, dtype)
                self._halves[id(half)] = a
                return half
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

    def _half_bits(self, a: Term, dtype: DType) -> Term:
        """The 16 bits of a half: those of its f32, whose exponent and fraction are longer."""
        bits = self.make.unary("bits.i32", self.make.cast(a, F32))
        if dtype is BF16:
            return self._mask(self.make.binary("shr", bits, self.make.number(16)), 0xFFFF)
        make, n = self.make, self.make.number
        sign = self._mask(make.binary("shr", bits, n(16)), 0x8000)
        size = self._mask(bits, 0x7FFFFFFF)
        normal = make.binary("sub", make.binary("shr", size, n(13)), n(112 << 10))
        # below 2⁻¹⁴ the half is a multiple of 2⁻²⁴
        small = make.cast(make.binary("mul", make.unary("abs", make.cast(a, F32)), n(2.0**24)), I32)
        special = make.binary("add", self._mask(make.binary("shr", size, n(13)), 0x3FF), n(0x7C00))
        finite = make.select(make.binary("lt", size, n(113 << 23)), small, normal)
        chosen = make.select(make.binary("lt", size, n(255 << 23)), finite, special)
        return make.binary("add", sign, chosen)

    def _half(self, bits: Term, dtype: DType) -> Term:
        """The half with these 16 bits, through the f32 of the same value."""
        make, n = self.make, self.make.number
        if dtype is BF16:
            return make.cast(make.unary("bits.f32", make.binary("mul", bits, n(1 << 16))), BF16)
        low = self._mask(bits, 0x7FFF)
        sign = make.binary("mul", self._mask(bits, 0x8000), n(1 << 16))
        shifted = make.binary("mul", low, n(1 << 13))
        normal = make.unary("bits.f32", make.binary("add", shifted, n(112 << 23)))
        special = make.unary("bits.f32", make.binary("add", shifted, n(224 << 23)))
        small = make.binary("mul", make.cast(low, F32), n(2.0**-24))
        finite = make.select(make.binary("lt", low, n(0x400)), small, normal)
        size = make.select(make.binary("lt", low, n(0x7C00)), finite, special)
        whole = make.binary("add", make.unary("bits.i32", size), sign)
        return make.cast(make.unary("bits.f32", whole), F16)
