"""Taking forms apart: each function returns what a form must be, or raises a placed syntax error."""

from __future__ import annotations

import math

from lumi import dim
from lumi.dim import Extent
from lumi.dtype import DTYPES, DType
from lumi.errors import LumiError
from lumi.syntax.form import Float, Form, Int, List, Str, Symbol, Vector

_WORDS: dict[str, float | bool] = {
    "true": True,
    "false": False,
    "inf": math.inf,
    "-inf": -math.inf,
    "nan": math.nan,
}


def error(form: Form, expected: str) -> LumiError:
    """The error that `form` is not what was expected."""
    return LumiError("syntax error", f"expected {expected}", form.span)


def is_symbol(form: Form, name: str) -> bool:
    """Whether the form is the symbol `name`."""
    return isinstance(form, Symbol) and form.name == name


def symbol(form: Form) -> str:
    """The name of a symbol."""
    if not isinstance(form, Symbol):
        raise error(form, "a name")
    return form.name


def string(form: Form) -> str:
    """The text of a string."""
    if not isinstance(form, Str):
        raise error(form, "a string")
    return form.value


def integer(form: Form) -> int:
    """The value of an integer."""
    if not isinstance(form, Int):
        raise error(form, "an integer")
    return form.value


def number(form: Form) -> float | int | bool:
    """A number, `true`, `false`, `inf`, `-inf` or `nan`."""
    if isinstance(form, Symbol) and form.name in _WORDS:
        return _WORDS[form.name]
    if isinstance(form, (Int, Float)):
        return form.value
    raise error(form, "a number")


def dtype(form: Form) -> DType:
    """The dtype a symbol names."""
    found = DTYPES.get(symbol(form))
    if found is None:
        raise error(form, f"a dtype ({' '.join(DTYPES)})")
    return found


def vector(form: Form) -> tuple[Form, ...]:
    """The items of `[…]`."""
    if not isinstance(form, Vector):
        raise error(form, "[…]")
    return form.items


def call(form: Form, head: str | None = None) -> tuple[Form, ...]:
    """The items of `(head …)`, the head among them."""
    if not isinstance(form, List) or not form.items or (head and not is_symbol(form.items[0], head)):
        raise error(form, f"({head or 'name'} …)")
    return form.items


def extent(form: Form) -> Extent:
    """A size as `Dim` prints it: an integer, a dim, or `(+ …) (* …) (div a n) (mod a n)` of them."""
    if isinstance(form, Int):
        return form.value
    if isinstance(form, Symbol):
        return dim.var(form.name)
    head, *rest = call(form)
    parts = [extent(r) for r in rest]
    match symbol(head), parts:
        case "+", _:
            total: Extent = 0
            for part in parts:
                total = total + part
            return total
        case "*", _:
            return dim.product(parts)
        case "div", [a, int(n)]:
            return a // n
        case "mod", [a, int(n)]:
            return a % n
        case _:
            raise error(form, "a size")


def extents(form: Form) -> tuple[Extent, ...]:
    """A shape: a vector of sizes."""
    return tuple(extent(item) for item in vector(form))
