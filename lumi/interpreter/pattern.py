"""Binds the names of a pattern to the parts of a value: `[a [b c] & rest]`."""

from __future__ import annotations

from lumi.errors import LumiError
from lumi.interpreter.registry import check_bindable
from lumi.interpreter.scope import Scope
from lumi.interpreter.signature import REST
from lumi.interpreter.value import Cell, Value, describe, items_of
from lumi.syntax import printer
from lumi.syntax.form import Form, Symbol, Vector


def destructure(pattern: Form, value: Value | Cell, scope: Scope) -> None:
    """Bind the names of `pattern` in `scope`.  Raises when the value has no such parts."""
    if isinstance(pattern, Symbol):
        check_bindable(pattern)
        scope.names[pattern.name] = value
        return
    if not isinstance(pattern, Vector):
        raise LumiError("form error", f"{printer.show(pattern)} is no name", pattern.span)
    parts = list(pattern.items)
    rest: Form | None = None
    if len(parts) > 1 and parts[-2] == Symbol(REST):
        rest, parts = parts[-1], parts[:-2]
    items = _items(pattern, value, len(parts), rest is not None)
    for part, item in zip(parts, items, strict=False):
        destructure(part, item, scope)
    if rest is not None:
        destructure(rest, items[len(parts) :], scope)


def _items(pattern: Vector, value: Value | Cell, count: int, more: bool) -> tuple[Value, ...]:
    """At least `count` items of `value`, exactly so many unless `more` are wanted."""
    items, shown = items_of(value), printer.show(pattern)
    if items is None:
        raise LumiError("call error", f"{shown} takes a list apart, not {describe(value)}", pattern.span)
    if len(items) < count or (len(items) > count and not more):
        raise LumiError(
            "call error",
            f"{shown} takes {'at least ' if more else ''}{count} items apart",
            pattern.span,
            label=f"there are {len(items)}: {describe(items)}",
        )
    return items
