"""How an error shows where it belongs: at the call of a transparent function, under the calls around it."""

from __future__ import annotations

from collections.abc import Sequence

from lumi.errors import Frame, LumiError, Span
from lumi.hlir.graph import Node
from lumi.interpreter.value import Function, Kind, Value
from lumi.syntax import printer
from lumi.syntax.form import Form

_INNERMOST = 8
_CALL_WIDTH = 48


def types_of(values: Sequence[Value]) -> str:
    """The types of the tensors among `values`, for the label of an error."""
    return ", ".join(str(v.type) for v in values if isinstance(v, Node))


def moved(error: LumiError, callee: Function, span: Span | None, positional: Sequence[Value]) -> LumiError:
    """The error of a transparent function, shown at its call."""
    home = callee.span.source.name if callee.span is not None else ""
    if error.span is None or error.span.source.name == home:
        error.span = span
        error.label = error.label or types_of(positional)
    return error


def traced(error: LumiError, callee: Function, form: Form | None) -> LumiError:
    """The error seen from one call further out; the middle of a long trace is left out."""
    name = callee.name
    if form is not None and callee.kind is not Kind.MODEL:
        text = printer.show(form)
        name = text if len(text) <= _CALL_WIDTH else f"{text[: _CALL_WIDTH - 2]} …"
    error = error.called(name, form.span if form is not None else None)
    if len(error.trace) > _INNERMOST + 2:
        error.trace = (*error.trace[:_INNERMOST], Frame("…", None), error.trace[-1])
    return error
