"""Definitions: `def defn deflayer defmodel defmacro defdim`.  They stand at the top of a file."""

from __future__ import annotations

from lumi import dim
from lumi.dim import DimRange
from lumi.errors import LumiError
from lumi.hlir.graph import Node
from lumi.interpreter.evaluate import Interpreter
from lumi.interpreter.registry import DECLARATIONS, check_bindable, special
from lumi.interpreter.scope import Scope
from lumi.interpreter.signature import read_signature
from lumi.interpreter.value import Cell, Function, Kind, ModelInput, Value, describe
from lumi.syntax import printer
from lumi.syntax.form import Form, Keyword, List, Str, Symbol, Vector

_MODEL_USAGE = "(defmodel name [(input dtype [dims]) :config default] body …)"


@special("def")
def def_(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(def name value)`: a host constant of the file."""
    name, rest = _named(interpreter, form, scope, "(def name value)")
    if len(rest) != 1:
        raise LumiError("form error", "def takes a name and a value", form.span, hint="(def name value)")
    value = interpreter.binding(rest[0], scope)
    if interpreter.in_file and _holds_tensor(value):
        raise LumiError(
            "type error",
            f"{name.name} would be a tensor outside any model",
            form.span,
            label=describe(value),
            hint="make it in a function",
        )
    interpreter.define(name, value)
    return None


def _holds_tensor(value: object) -> bool:
    return isinstance(value, Node | Cell) or (isinstance(value, tuple) and any(map(_holds_tensor, value)))


@special("defn")
def defn(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(defn name [parameters] "doc" body …)`: a pure function."""
    for part in form.items[2:]:
        _check_pure(part)
    return _function(interpreter, form, scope, Kind.FUNCTION)


def _check_pure(form: Form) -> None:
    """Raise when a form declares a param or a state."""
    match form:
        case List((Symbol("quote" | "quasiquote"), *_)):
            return
        case List((Symbol(head), *_)) if head in DECLARATIONS:
            raise LumiError("form error", f"a defn declares no {head}", form.span, hint="use deflayer")
        case List(items) | Vector(items):
            for item in items:
                _check_pure(item)
        case _:
            return


@special("deflayer")
def deflayer(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(deflayer name [parameters] "doc" body …)`: a function that owns params under its `:name`."""
    return _function(interpreter, form, scope, Kind.LAYER)


@special("defmacro")
def defmacro(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(defmacro name [parameters] "doc" body …)`: a function from forms to the form evaluated instead."""
    return _function(interpreter, form, scope, Kind.MACRO)


def _function(interpreter: Interpreter, form: List, scope: Scope, kind: Kind) -> Value:
    head = printer.show(form.items[0])
    name, rest = _named(interpreter, form, scope, f"({head} name [parameters] body …)")
    if not rest:
        raise LumiError("form error", f"{head} {name.name} needs its parameters in [ ]", form.span)
    signature = read_signature(rest[0], f"{head} {name.name}")
    for parameter in signature.names():
        check_bindable(parameter)
    doc, body = _documented(rest[1:])
    if not body:
        raise LumiError("form error", f"{head} {name.name} has no body", form.span)
    function = Function(name.name, kind, signature, body, scope, doc, form.span, interpreter.transparent)
    interpreter.define(name, function)
    return None


@special("defmodel")
def defmodel(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(defmodel name [(input dtype [dims]) … :config default …] "doc" body …)`: an entry."""
    name, rest = _named(interpreter, form, scope, _MODEL_USAGE)
    if not rest or not isinstance(rest[0], Vector):
        raise LumiError("form error", "defmodel needs its inputs in [ ]", form.span, hint=_MODEL_USAGE)
    items = rest[0].items
    count = next((i for i, item in enumerate(items) if isinstance(item, Keyword)), len(items))
    inputs = tuple(_input(item) for item in items[:count])
    parameters = Vector((*(i.name for i in inputs), *items[count:]), rest[0].span)
    signature = read_signature(parameters, f"defmodel {name.name}")
    for parameter in signature.names():
        check_bindable(parameter)
    doc, body = _documented(rest[1:])
    if not body:
        raise LumiError("form error", f"defmodel {name.name} has no body", form.span, hint=_MODEL_USAGE)
    function = Function(name.name, Kind.MODEL, signature, body, scope, doc, form.span, False, inputs)
    interpreter.define(name, function)
    return None


def _input(form: Form) -> ModelInput:
    match form:
        case List((Symbol() as name, dtype, Vector() as shape)):
            return ModelInput(name, dtype, shape)
        case List((Symbol() as name, dtype, Vector() as shape, Keyword("max"), most)):
            return ModelInput(name, dtype, shape, most)
        case _:
            raise LumiError(
                "form error",
                f"{printer.show(form)} is no model input",
                form.span,
                hint="an input is written (tokens i32 [batch seq]), with :max n if it holds 0 … n",
            )


@special("defdim")
def defdim(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(defdim name :min a :max b :hint h)`: a size known when the model runs.

    `h` is an integer or a list: sizes to search plans at.  It defaults to the middle of the range.
    """
    usage = "(defdim name :min 1 :max 2048 :hint 128)"
    name, rest = _named(interpreter, form, scope, usage)
    positional, keywords = interpreter.arguments(rest, scope)
    unknown = keywords.keys() - {"min", "max", "hint"}
    if positional or unknown or "max" not in keywords:
        raise LumiError("form error", "defdim takes :min, :max and :hint", form.span, hint=usage)
    low, high = _integer(form, keywords.get("min", 1)), _integer(form, keywords["max"])
    hint = keywords.get("hint", low + (high - low) // 2)
    hints = tuple(_integer(form, h) for h in (hint if isinstance(hint, tuple) else (hint,)))
    if not 0 <= low <= high or not hints or any(not low <= h <= high for h in hints):
        raise LumiError(
            "dim error",
            f"{name.name} has range {low} … {high} and hint {' '.join(map(str, hints)) or '[]'}",
            form.span,
            hint="0 <= min <= hint <= max, and one hint at least, if any are given",
        )
    declared = DimRange(name.name, low, high, hints)
    if interpreter.builder.dims.get(name.name, declared) != declared and interpreter.in_file:
        raise LumiError("dim error", f"{name.name} is declared with two ranges", form.span)
    interpreter.builder.dims[name.name] = declared
    interpreter.define(name, dim.var(name.name))
    return None


def _integer(form: List, value: Value) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise LumiError("dim error", f"a bound of a dim is {describe(value)}, not an integer", form.span)


def _named(interpreter: Interpreter, form: List, scope: Scope, usage: str) -> tuple[Symbol, tuple[Form, ...]]:
    """The name that a definition binds, checked, and what follows it."""
    head = printer.show(form.items[0])
    if len(form.items) < 2 or not isinstance(form.items[1], Symbol):
        raise LumiError("form error", f"{head} needs a name", form.span, hint=usage)
    if scope is not interpreter.top:
        raise LumiError(
            "form error", f"{head} stands inside another form", form.span, hint="define at the top of a file"
        )
    name = form.items[1]
    check_bindable(name)
    return name, form.items[2:]


def _documented(forms: tuple[Form, ...]) -> tuple[str, tuple[Form, ...]]:
    """The docstring, if there is one, and the body."""
    if len(forms) > 1 and isinstance(forms[0], Str):
        return forms[0].value, forms[1:]
    return "", forms
