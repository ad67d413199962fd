"""What names mean without a definition: special forms, the declarations among them, constants.

The modules that define special forms register them here.  A special form gets the interpreter, its whole
form and the scope around it; it evaluates of the form what it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from lumi.errors import LumiError
from lumi.interpreter.scope import Scope
from lumi.interpreter.signature import REST
from lumi.interpreter.value import Cell, Value
from lumi.syntax.form import List, Symbol

SpecialForm: TypeAlias = Callable[[Any, List, Scope], Value]
Declaration: TypeAlias = Callable[[Any, List, Scope], Cell]

SPECIAL: dict[str, SpecialForm] = {}
"""Special forms by name, filled by the modules that define them."""

DECLARATIONS: dict[str, Declaration] = {}
"""The special forms that make a cell; a name bound to one can be `set!`."""

CONSTANTS: dict[str, Value] = {
    "true": True,
    "false": False,
    "nil": None,
    "inf": math.inf,
    "-inf": -math.inf,
    "nan": math.nan,
}
"""Names that keep their meaning everywhere."""


def special(name: str) -> Callable[[SpecialForm], SpecialForm]:
    """Register the meaning of `(name …)`."""

    def register(run: SpecialForm) -> SpecialForm:
        SPECIAL[name] = run
        return run

    return register


def declaration(name: str) -> Callable[[Declaration], Declaration]:
    """Register the meaning of `(name …)`, which declares a cell."""

    def register(run: Declaration) -> Declaration:
        DECLARATIONS[name] = run

        def open_cell(interpreter: Any, form: List, scope: Scope) -> Value:
            return run(interpreter, form, scope).node

        open_cell.__doc__ = run.__doc__
        SPECIAL[name] = open_cell
        return run

    return register


def check_bindable(symbol: Symbol) -> None:
    """Raise when `symbol` cannot be bound: special forms and constants keep their meaning."""
    if symbol.name in SPECIAL or symbol.name in CONSTANTS or symbol.name == REST:
        what = "a constant" if symbol.name in CONSTANTS else "a special form"
        raise LumiError("name error", f"`{symbol.name}` is {what}, it cannot be bound", symbol.span)
