"""What a kernel does to each element of a matrix product before it stores it, as a library would say it.

The whole of it is `function(alpha · product + beta · residual + bias)`, computed in the type of the
accumulator and rounded once, by the store.  Whatever does not have this form is no epilogue: a number that
multiplies a sum would round elsewhere, and so would a value that is rounded before the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from lumi.dtype import DType
from lumi.llir.kernel import Load, Map, Operand


class Function(Enum):
    """What is applied to the sum last."""

    IDENTITY = "identity"
    RELU = "relu"


@dataclass(frozen=True, slots=True)
class Epilogue:
    """`function(alpha · product + Σ factor · load)`."""

    alpha: float
    terms: tuple[tuple[float, Load], ...] = ()
    function: Function = Function.IDENTITY

    @property
    def is_single(self) -> bool:
        """Whether it is one thing, as it is or negated."""
        factors = [f for f in (self.alpha, *(f for f, _ in self.terms)) if f != 0]
        return len(factors) == 1 and abs(factors[0]) == 1


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the values that follow a product.

    `made` are the loads and maps by name, `product` is the product's name, `dtype` its accumulator and
    `stored` the type it is stored in.
    """

    made: Mapping[str, Load | Map]
    product: str
    dtype: DType
    stored: DType

    def epilogue(self, value: Operand) -> Epilogue | None:
        """What is stored, in terms of the product; None when it has another form."""
        made = self._made(value)
        if isinstance(made, Map) and made.op == f"cast.{self.stored}":
            value = made.args[0]
        found = self._relu(value) or self._sum(value)
        return found if found is not None and found.alpha != 0 else None

    def leaf(self, value: Operand) -> Load | None:
        """The load that a value is, widened to the accumulator at most."""
        made = self._made(value)
        if isinstance(made, Map) and made.op == f"cast.{self.dtype}":
            made = self._made(made.args[0])
        return made if isinstance(made, Load) and self._holds(made.dtype) else None

    def _holds(self, dtype: DType) -> bool:
        """Whether the accumulator holds every value of a type."""
        return dtype == self.dtype or (dtype.kind == self.dtype.kind and dtype.size < self.dtype.size)

    def _made(self, value: Operand) -> Load | Map | None:
        return self.made.get(value) if isinstance(value, str) else None

    def _relu(self, value: Operand) -> Epilogue | None:
        """`max(x, 0)`, or 0 where x < 0 and else x, which may be rounded already."""
        made = self._made(value)
        if not isinstance(made, Map) or not self.dtype.is_float:
            return None
        inner: Operand | None = None
        if made.op == "max" and 0.0 in made.args:
            inner = next((a for a in made.args if a != 0.0), None)
        elif made.op == "sel":
            inner = self._unless_negative(made)
        found = None if inner is None else self._sum(inner)
        return None if found is None else replace(found, function=Function.RELU)

    def _unless_negative(self, select: Map) -> Operand | None:
        """The x of `x < 0 ? 0 : x`."""
        test, zero, kept = select.args
        less, rounded = self._made(test), self._made(kept)
        if zero != 0.0 or not isinstance(less, Map) or less.op != "lt" or less.args[1] != 0.0:
            return None
        if kept != less.args[0] and isinstance(rounded, Map) and rounded.op == f"cast.{self.stored}":
            kept = rounded.args[0]
        return kept if kept == less.args[0] else None

    def _sum(self, value: Operand) -> Epilogue | None:
        if value == self.product:
            return Epilogue(1.0)
        load = self.leaf(value)
        if load is not None:
            return Epilogue(0.0, ((1.0, load),))
        made = self._made(value)
        if not isinstance(made, Map) or made.dtype != self.dtype or not self.dtype.is_float:
            return None
        match made.op, made.args:
            case "add", (a, b):
                return self._added(self._sum(a), self._sum(b))
            case "sub", (a, b):
                return self._added(self._sum(a), _scaled(self._sum(b), -1.0))
            case "mul", (str(a), float(c)) | (float(c), str(a)):
                found = self._sum(a)
                return _scaled(found, c) if found is not None and found.is_single else None
            case _:
                return None

    def _added(self, a: Epilogue | None, b: Epilogue | None) -> Epilogue | None:
        if a is None or b is None or (a.alpha != 0 and b.alpha != 0):
            return None
        return Epilogue(a.alpha + b.alpha, a.terms + b.terms)


def _scaled(found: Epilogue | None, factor: float) -> Epilogue | None:
    if found is None:
        return None
    return Epilogue(found.alpha * factor, tuple((c * factor, load) for c, load in found.terms))
