"""Special forms of host code: binding, choice, loops, quoting.  One function a form.

They run while the model is traced: an `if` chooses which nodes are made.  A choice that depends on a
tensor is `where`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from lumi.dtype import BOOL
from lumi.errors import LumiError
from lumi.hlir.graph import Node
from lumi.hlir.op import BinaryKind
from lumi.interpreter.evaluate import Interpreter
from lumi.interpreter.pattern import destructure
from lumi.interpreter.registry import special
from lumi.interpreter.scope import MISSING, Scope
from lumi.interpreter.signature import read_signature
from lumi.interpreter.value import Cell, Function, Kind, Value, a_kind_of, as_form, describe, items_of, truth
from lumi.syntax import printer
from lumi.syntax.form import Form, List, Symbol, Vector

_fresh = itertools.count(1)


@special("let")
def let(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(let [name value [a b] pair …] body …)`: bindings in order, then the body."""
    inner = scope
    for pattern, value in _pairs(form, 1, "(let [name value …] body …)"):
        bound = interpreter.binding(value, inner)
        inner = Scope(inner)
        destructure(pattern, bound, inner)
    return interpreter.body(_body(form, 2), inner)


@special("if")
def if_(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(if condition then else)`; without an else it gives nil."""
    if len(form.items) not in (3, 4):
        raise LumiError("form error", "if takes a condition and two choices", form.span, hint="(if c a b)")
    if condition(interpreter, form.items[1], scope):
        return interpreter.evaluate(form.items[2], scope)
    return interpreter.evaluate(form.items[3], scope) if len(form.items) == 4 else None


def condition(interpreter: Interpreter, form: Form, scope: Scope) -> bool:
    """Whether a host condition holds; a tensor has no truth value while the model is traced."""
    value = interpreter.evaluate(form, scope)
    if isinstance(value, Node):
        raise LumiError(
            "type error",
            "a tensor cannot decide what is traced",
            form.span,
            label=str(value.type),
            hint="choose between tensors with (where condition a b)",
        )
    return truth(value)


@special("cond")
def cond(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(cond test value … true value)`: the value of the first test that holds, else nil."""
    clauses = form.items[1:]
    if len(clauses) % 2:
        raise LumiError("form error", "cond takes pairs of a test and a value", form.span)
    for test, value in zip(clauses[::2], clauses[1::2], strict=True):
        if condition(interpreter, test, scope):
            return interpreter.evaluate(value, scope)
    return None


@special("do")
def do(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(do a b …)`: each in turn; the value of the last."""
    return interpreter.body(form.items[1:], scope)


@special("and")
def and_(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(and a b …)`: host values up to the first false one; bool tensors elementwise."""
    return _junction(interpreter, form, scope, stop=False)


@special("or")
def or_(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(or a b …)`: host values up to the first true one; bool tensors elementwise."""
    return _junction(interpreter, form, scope, stop=True)


def _junction(interpreter: Interpreter, form: List, scope: Scope, stop: bool) -> Value:
    result: Value = not stop
    tensor: Node | None = None
    for item in form.items[1:]:
        value = interpreter.evaluate(item, scope)
        if not isinstance(value, Node):
            result = value
            if truth(value) is stop:
                return value
            continue
        if value.dtype is not BOOL:
            raise LumiError(
                "type error", "and, or combine bool tensors", item.span, str(value.type), "compare it first"
            )
        kind = BinaryKind.ADD if stop else BinaryKind.MUL
        interpreter.builder.span = interpreter.place(form)
        tensor = value if tensor is None else interpreter.builder.binary(kind, tensor, value)
    return result if tensor is None else tensor


@special("fold")
def fold(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(fold [acc init] [x xs] body …)`: the body's value becomes the next acc."""
    usage = "(fold [acc init] [x xs] body …)"
    ((name, init),) = _single(form, 1, usage)
    ((element, source),) = _single(form, 2, usage)
    result = interpreter.evaluate(init, scope)
    for item in sequence(interpreter, source, scope):
        inner = Scope(scope)
        destructure(name, result, inner)
        destructure(element, item, inner)
        result = interpreter.body(_body(form, 3), inner)
    return result


@special("for")
def for_(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(for [x xs y ys …] body …)`: the list of the body's values, the last name varying fastest."""
    pairs = _pairs(form, 1, "(for [x xs …] body …)")
    results: list[Value] = []

    def run(depth: int, around: Scope) -> None:
        if depth == len(pairs):
            results.append(interpreter.body(_body(form, 2), around))
            return
        pattern, source = pairs[depth]
        for item in sequence(interpreter, source, around):
            inner = Scope(around)
            destructure(pattern, item, inner)
            run(depth + 1, inner)

    run(0, scope)
    return tuple(results)


def sequence(interpreter: Interpreter, form: Form, scope: Scope) -> Sequence[Value]:
    """The items of a host list."""
    value = interpreter.evaluate(form, scope)
    items = items_of(value)
    if items is not None:
        return items
    hint = "loops run while the model is traced; reduce or scan a tensor" if isinstance(value, Node) else ""
    raise LumiError(
        "type error", f"a loop needs a list, not {a_kind_of(value)}", form.span, describe(value), hint
    )


@special("fn")
def fn(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(fn [x :key default] body …)`: a function without a name."""
    if len(form.items) < 2:
        raise LumiError("form error", "fn needs its parameters", form.span, hint="(fn [x] body …)")
    signature = read_signature(form.items[1], "fn")
    return Function(
        "fn", Kind.FUNCTION, signature, form.items[2:], scope, "", form.span, interpreter.transparent
    )


@special("->")
def thread(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(-> x (f a) g)`: x through calls, as the first argument of each: `(g (f x a))`."""
    if len(form.items) < 2:
        raise LumiError("form error", "-> needs something to begin with", form.span, hint="(-> x (f a) g)")
    result = form.items[1]
    for step in form.items[2:]:
        match step:
            case List((head, *rest)):
                result = List((head, result, *rest), step.span)
            case Symbol():
                result = List((step, result), step.span)
            case _:
                raise LumiError(
                    "form error",
                    f"{printer.show(step)} is no step of ->",
                    step.span,
                    hint="a step is a call (f a) or a function's name",
                )
    return interpreter.evaluate(result, scope)


@special("set!")
def set_(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(set! cell value)`: later reads of a param or state see the value; shape and dtype stay."""
    if len(form.items) != 3 or not isinstance(form.items[1], Symbol):
        raise LumiError("form error", "set! takes a name and a value", form.span, hint="(set! cache value)")
    symbol = form.items[1]
    cell = scope.find(symbol.name)
    if cell is MISSING:
        raise interpreter.unknown(symbol, scope)
    if not isinstance(cell, Cell):
        raise LumiError(
            "type error",
            f"`{symbol.name}` is {a_kind_of(cell)}, not a param or state",
            symbol.span,
            hint="other names are bound once, with let",
        )
    value = interpreter.evaluate(form.items[2], scope)
    if not isinstance(value, Node) or value.type != cell.node.type:
        raise LumiError(
            "shape error" if isinstance(value, Node) and value.dtype == cell.node.dtype else "type error",
            f"{cell.kind} {cell.key} is {cell.node.type}, its new value is {describe(value)}",
            form.items[2].span or form.span,
            label=describe(value),
            hint="set! keeps shape and dtype",
        )
    cell.node = value
    return value


@special("quote")
def quote(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`'x`: the form itself."""
    return _only(form)


@special("quasiquote")
def quasiquote(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`` `x ``: a form with `~value` filled in, `~@list` spliced in, and every `name#` made fresh."""
    fresh: dict[str, str] = {}

    def fill(part: Form) -> Form:
        match part:
            case List((Symbol("unquote"), value)):
                return as_form(interpreter.evaluate(value, scope), part.span)
            case List(items):
                return List(tuple(spread(items)), part.span)
            case Vector(items):
                return Vector(tuple(spread(items)), part.span)
            case Symbol(name) if name.endswith("#"):
                if name not in fresh:
                    fresh[name] = f"{name}{next(_fresh)}"
                return Symbol(fresh[name], part.span)
            case _:
                return part

    def spread(items: tuple[Form, ...]) -> list[Form]:
        filled: list[Form] = []
        for item in items:
            match item:
                case List((Symbol("unquote-splicing"), source)):
                    filled += [as_form(v, item.span) for v in sequence(interpreter, source, scope)]
                case _:
                    filled.append(fill(item))
        return filled

    return fill(_only(form))


@special("unquote")
def unquote(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`~x` has a meaning only inside a quasiquote."""
    raise LumiError("form error", "~ stands only inside a ` form", form.span)


@special("unquote-splicing")
def unquote_splicing(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`~@x` has a meaning only inside a quasiquote."""
    raise LumiError("form error", "~@ stands only inside a ` form", form.span)


def _only(form: List) -> Form:
    if len(form.items) != 2:
        raise LumiError("form error", f"{printer.show(form.items[0])} takes one form", form.span)
    return form.items[1]


def _pairs(form: List, index: int, usage: str) -> list[tuple[Form, Form]]:
    """The binding vector at `index` as pairs."""
    bindings = form.items[index] if len(form.items) > index else None
    if not isinstance(bindings, Vector) or len(bindings.items) % 2:
        span = bindings.span if bindings is not None else form.span
        raise LumiError("form error", "bindings are pairs of a name and a value in [ ]", span, hint=usage)
    return list(zip(bindings.items[::2], bindings.items[1::2], strict=True))


def _single(form: List, index: int, usage: str) -> list[tuple[Form, Form]]:
    pairs = _pairs(form, index, usage)
    if len(pairs) != 1:
        raise LumiError(
            "form error", "one name and one value are expected", form.items[index].span, hint=usage
        )
    return pairs


def _body(form: List, start: int) -> tuple[Form, ...]:
    if len(form.items) <= start:
        raise LumiError("form error", f"{printer.show(form.items[0])} has no body", form.span)
    return form.items[start:]
