"""Special forms that own tensors: `param state scope outputs`."""

from __future__ import annotations

from lumi import blocks
from lumi.dim import Dim, Extent
from lumi.dtype import DType
from lumi.errors import LumiError
from lumi.hlir.graph import Node
from lumi.interpreter import builtin
from lumi.interpreter.evaluate import Interpreter
from lumi.interpreter.registry import declaration, special
from lumi.interpreter.scope import MISSING, Scope, nearest
from lumi.interpreter.value import Cell, Outputs, Value, describe
from lumi.syntax import printer
from lumi.syntax.form import Form, List, Symbol, Vector


@declaration("param")
def param(interpreter: Interpreter, form: List, scope: Scope) -> Cell:
    """`(param "name" [shape] :dtype f32 :init 0)`: a weight under the names of the layers around it."""
    name, sizes, keywords = _declared(interpreter, form, scope, {"dtype", "init"})
    key = interpreter.store.key(name)
    dtype = _dtype(interpreter, keywords.get("dtype"))
    init = keywords.get("init")
    filled = None if init is None else float(builtin.number(init))
    interpreter.builder.span = interpreter.place(form)
    packed = interpreter.packing.get(key)
    if packed is None:
        return interpreter.store.param(key, dtype, sizes, filled, form.span)
    interpreter.store.claim(key, form.span)
    weights = _unpacked(interpreter, key, packed, sizes, form)
    return interpreter.store.hold("param", key, interpreter.builder.cast(weights, dtype))


@declaration("state")
def state(interpreter: Interpreter, form: List, scope: Scope) -> Cell:
    """`(state "name" [shape] :dtype f32)`: a tensor that lives between calls, zero at first."""
    name, sizes, keywords = _declared(interpreter, form, scope, {"dtype"})
    for size in sizes:
        if isinstance(size, Dim):
            raise LumiError(
                "dim error",
                f"state {name} has the size {size}",
                form.span,
                hint="a state keeps its size: use the largest",
            )
    interpreter.builder.span = interpreter.place(form)
    dtype = _dtype(interpreter, keywords.get("dtype"))
    return interpreter.store.state(interpreter.store.key(name), dtype, sizes, form.span)


def _declared(
    interpreter: Interpreter, form: List, scope: Scope, known: set[str]
) -> tuple[str, tuple[Extent, ...], dict[str, Value]]:
    head = printer.show(form.items[0])
    usage = f'({head} "name" [shape]{"".join(f" :{k} …" for k in sorted(known))})'
    if len(form.items) < 3:
        raise LumiError("form error", f"{head} takes a name and a shape", form.span, hint=usage)
    name = interpreter.evaluate(form.items[1], scope)
    if not isinstance(name, str) or not name:
        raise LumiError(
            "form error", f"the name of a {head} is {describe(name)}", form.items[1].span, hint=usage
        )
    sizes = shape(interpreter, form.items[2], scope)
    positional, keywords = interpreter.arguments(form.items[3:], scope)
    unknown = sorted(keywords.keys() - known)
    if positional or unknown:
        what = f"keyword :{unknown[0]}" if unknown else "third argument"
        raise LumiError("call error", f"{head} has no {what}", form.span, hint=usage)
    return name, sizes, keywords


def _dtype(interpreter: Interpreter, value: Value) -> DType:
    return interpreter.dtype if value is None else builtin.dtype(value)


def shape(interpreter: Interpreter, form: Form, scope: Scope) -> tuple[Extent, ...]:
    """The sizes that a form at a border writes down; a name in it must be a dim or a number."""
    if isinstance(form, Vector):
        for item in form.items:
            if isinstance(item, Symbol) and scope.find(item.name) is MISSING:
                known = [name for name in scope.visible() if isinstance(scope.find(name), int | Dim)]
                raise LumiError(
                    "dim error",
                    f"`{item.name}` is no dim",
                    item.span,
                    hint=nearest(item.name, known) or f"declare it: (defdim {item.name} :min 1 :max …)",
                )
    value = interpreter.evaluate(form, scope)
    try:
        return builtin.shape(value)
    except LumiError as error:
        raise error.at(form.span) from None


def _unpacked(interpreter: Interpreter, key: str, packed: str, sizes: tuple[Extent, ...], form: List) -> Node:
    """A weight computed from the planes of its block format."""
    block = blocks.BLOCKS.get(packed)
    if block is None:
        hint = nearest(packed, list(blocks.BLOCKS))
        raise LumiError(
            "weights error", f"{key} is packed as {packed}, no known format", form.span, hint=hint
        )
    if len(sizes) != 2 or not isinstance(sizes[1], int) or sizes[1] % block.elements:
        shown = f"[{' '.join(map(str, sizes))}]"
        raise LumiError(
            "weights error",
            f"{key} {shown} cannot be packed as {packed}",
            form.span,
            hint=f"rows of a matrix divide into blocks of {block.elements}",
        )
    rows, count = sizes[0], sizes[1] // block.elements
    planes = [
        interpreter.builder.param(f"{key}#{plane.name}", plane.dtype, (rows, count, *plane.shape))
        for plane in block.planes
    ]
    function = interpreter.library.find(block.function)
    weights = interpreter.call(function, planes, {}, form)
    if not isinstance(weights, Node) or weights.shape != sizes:
        raise LumiError(
            "shape error",
            f"{block.function} made {describe(weights)} of {key}",
            form.span,
            hint=f"expected {sizes}",
        )
    return weights


@special("scope")
def scope_(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(scope "name" body …)`: nodes made inside belong to a region of their own; keys do not change."""
    name = interpreter.evaluate(form.items[1], scope) if len(form.items) > 2 else None
    if not isinstance(name, str):
        raise LumiError(
            "form error", "scope takes a name and a body", form.span, hint='(scope "head" body …)'
        )
    with interpreter.builder.scope(name):
        return interpreter.body(form.items[2:], scope)


@special("outputs")
def outputs(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(outputs :name tensor …)`: the results of a model under their names."""
    positional, keywords = interpreter.arguments(form.items[1:], scope)
    if positional or not keywords:
        raise LumiError(
            "form error", "outputs takes names and tensors", form.span, hint="(outputs :logits y)"
        )
    return Outputs({name: builtin.tensor(interpreter, value) for name, value in keywords.items()})
