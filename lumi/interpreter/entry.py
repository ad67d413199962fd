"""The border of a model that is called like a function: arguments must be as it declares its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lumi import dim
from lumi.dim import Dim, DimRange, Extent
from lumi.errors import LumiError
from lumi.hlir.graph import Node
from lumi.interpreter.scope import Scope
from lumi.interpreter.value import Function, Value, describe
from lumi.syntax import printer

if TYPE_CHECKING:
    from lumi.interpreter.evaluate import Interpreter


def check_inputs(interpreter: Interpreter, model: Function, given: Sequence[Value], scope: Scope) -> None:
    """Raise `LumiError` unless every argument has the dtype and the shape that its input declares.

    A declared dim is any size in its range, the same wherever it stands.  A number is a scalar.
    """
    sizes, ranges = dict[str, Extent](), interpreter.builder.dims
    for declared, value in zip(model.inputs, given, strict=True):
        dtype = interpreter.evaluate(declared.dtype, scope)
        shape = interpreter.evaluate(declared.shape, scope)
        assert isinstance(shape, tuple), "the reader takes only a vector for the shape of an input"
        if not isinstance(value, Node):
            if isinstance(value, int | float | Dim) and not shape:
                continue
            kind = "type error"
        elif value.dtype != dtype:
            kind = "type error"
        elif len(value.shape) != len(shape):
            kind = "shape error"
        else:
            pairs = zip(shape, value.shape, strict=True)
            if all(_is_size(want, size, sizes, ranges) for want, size in pairs):
                continue
            kind = "shape error"
        names = sorted({name for size in shape if isinstance(size, Dim) for name in size.names()})
        known = ", ".join(f"{n} = {sizes[n]}" for n in names if n in sizes)
        among = ", ".join(f"{n} is from {ranges[n].low} to {ranges[n].high}" for n in names if n in ranges)
        raise LumiError(
            kind,
            f"input {declared.name.name} of {model.name} is {describe(value)}, expected "
            f"{printer.show(declared.dtype)} {printer.show(declared.shape)}{known and f' with {known}'}",
            hint=f"change the argument or the defmodel{among and f'; {among}'}",
        )


def _is_size(want: Extent, size: Extent, sizes: dict[str, Extent], ranges: Mapping[str, DimRange]) -> bool:
    """Whether a size is one that is declared; `sizes` are those of dims, of which it may tell another."""
    want = dim.bind(want, {name: known for name, known in sizes.items() if isinstance(known, int)})
    if isinstance(want, int) or want == size:
        return want == size
    low, high = dim.bounds(size, ranges)
    least, most = dim.bounds(want, ranges)
    if not least <= low <= high <= most:
        return False
    (name, *others) = want.names()
    return bool(others) or want != dim.var(name) or sizes.setdefault(name, size) == size
