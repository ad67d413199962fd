"""Traces a model: evaluates its body once and returns the graph of what it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lumi.dim import DimRange, Extent
from lumi.dtype import DTYPES, DType
from lumi.errors import LumiError
from lumi.hlir.builder import Builder
from lumi.hlir.graph import Graph, Node
from lumi.interpreter import builtin, declare
from lumi.interpreter.evaluate import Interpreter
from lumi.interpreter.library import library
from lumi.interpreter.module import Module
from lumi.interpreter.scope import MISSING, Scope, nearest
from lumi.interpreter.value import Function, ModelInput, Outputs, Value, describe, kind_of, written
from lumi.syntax import printer
from lumi.syntax.form import Form, Symbol

OUTPUT = "out"
"""The name of a result that has none."""


def trace(
    module: Module,
    model: str | None = None,
    *,
    config: Mapping[str, object] | None = None,
    bind: Mapping[str, int] | None = None,
    packing: Mapping[str, str] | None = None,
) -> Graph:
    """The graph of a model of the module.

    `config` gives keywords of the model, `bind` fixes dims, `packing` names the block format of params
    by key.  A result is called "out", those of a list "out.0" …, unless `outputs` names them.
    """
    function = choose(module, model)
    dims = _free_dims(module, bind or {})
    interpreter = Interpreter(Builder(dims), library(), bind=bind, packing=packing)
    try:
        with interpreter.deep():
            scope = _configured(interpreter, function, config or {})
            inputs = _inputs(interpreter, function, scope)
            outputs = _outputs(interpreter, function, interpreter.body(function.body, scope))
    except LumiError as error:
        raise error.called(f"model {function.name}", None) from None
    graph = interpreter.builder.graph(function.name, outputs, interpreter.store.updates(), inputs)
    return replace(graph, doc=function.doc)


def choose(module: Module, model: str | None) -> Function:
    """The model called `model`, or the only one, or the only one that the file does not import."""
    models = module.models
    own = [f for f in models.values() if f.span is not None and f.span.source.name == module.name]
    for found in (list(models.values()), own):
        if model is None and len(found) == 1:
            return found[0]
    if model in models:
        return models[model]
    if not models:
        raise LumiError("model error", f"{module.name} defines no model", hint="write a defmodel")
    have = f"it has {', '.join(models)}"
    if model is None:
        raise LumiError(
            "model error",
            f"{module.name} defines several models",
            hint=f"choose one: {have}; a command takes --model NAME",
        )
    hint = nearest(model, list(models)) or have
    raise LumiError("model error", f"{module.name} has no model {model}", hint=hint)


def configuration(module: Module, model: str | None = None) -> dict[str, str]:
    """The keywords of a model, with their defaults as they are written."""
    signature = choose(module, model).signature
    return {name: written(default) for name, default in signature.keywords.items()}


def _free_dims(module: Module, bind: Mapping[str, int]) -> dict[str, DimRange]:
    for name, value in bind.items():
        declared = module.dims.get(name)
        if declared is None:
            hint = nearest(name, list(module.dims)) or f"it has {', '.join(module.dims) or 'none'}"
            raise LumiError("dim error", f"{module.name} has no dim {name}", hint=hint)
        if not declared.low <= value <= declared.high:
            raise LumiError(
                "dim error",
                f"{name} = {value} is outside {declared.low} … {declared.high}",
                hint="change defdim",
            )
    return {name: declared for name, declared in module.dims.items() if name not in bind}


def _configured(interpreter: Interpreter, function: Function, config: Mapping[str, object]) -> Scope:
    """The scope of the model's body, with the configuration bound."""
    given = {name.replace("_", "-"): value for name, value in config.items()}
    keywords = function.signature.keywords
    for name in given:
        if name not in keywords:
            hint = nearest(name, list(keywords)) or f"it has {', '.join(keywords) or 'none'}"
            raise LumiError("config error", f"{function.name} has no keyword {name}", hint=hint)
    scope = Scope(function.scope)
    for name, default in keywords.items():
        value = interpreter.evaluate(default, scope)
        if name in given:
            value = _setting(name, given[name], value)
        scope.names[name] = value
    dtype = scope.names.get("dtype")
    if isinstance(dtype, DType):
        interpreter.dtype = dtype
    return scope


def _setting(name: str, given: object, default: Value) -> Value:
    """A setting as a value of its default's kind."""
    value = _host_value(name, given)
    if isinstance(default, DType) and isinstance(value, str) and value in DTYPES:
        return DTYPES[value]
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if default is not None and type(value) is not type(default):
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        raise LumiError(
            "config error",
            f"{name} = {shown} is no {kind_of(default)}",
            hint=f"its default is {describe(default)}",
        )
    return value


def _host_value(name: str, given: object) -> Value:
    """What a caller or a JSON file gives, as the language has it."""
    match given:
        case None | bool() | int() | float() | str() | DType():
            return given
        case list() | tuple():
            return tuple(_host_value(name, item) for item in given)
        case _:
            message = f"{name} is a {type(given).__name__}"
            raise LumiError("config error", message, hint="settings are numbers, texts, lists and dtypes")


def _inputs(interpreter: Interpreter, function: Function, scope: Scope) -> list[Node]:
    """The inputs of a model, bound to their names.  Callers give all of them, also those it does not read."""
    nodes = []
    for declared in function.inputs:
        dtype = _dtype(interpreter, declared.dtype, scope)
        sizes = declare.shape(interpreter, declared.shape, scope)
        interpreter.builder.span = declared.name.span
        most = _most(interpreter, declared, scope)
        nodes.append(interpreter.builder.input(declared.name.name, dtype, sizes, most))
        scope.names[declared.name.name] = nodes[-1]
    return nodes


def _most(interpreter: Interpreter, declared: ModelInput, scope: Scope) -> Extent | None:
    """The greatest integer that an input may hold, if it tells."""
    if declared.most is None:
        return None
    try:
        return builtin.extent(interpreter.evaluate(declared.most, scope))
    except LumiError as error:
        raise error.at(declared.most.span) from None


def _dtype(interpreter: Interpreter, form: Form, scope: Scope) -> DType:
    unknown = isinstance(form, Symbol) and scope.find(form.name) is MISSING
    value = None if unknown else interpreter.evaluate(form, scope)
    if isinstance(value, DType):
        return value
    hint = f"dtypes are {' '.join(DTYPES)}"
    raise LumiError("type error", f"{printer.show(form)} is no dtype", form.span, hint=hint)


def _outputs(interpreter: Interpreter, function: Function, result: Value) -> dict[str, Node]:
    try:
        match result:
            case Outputs(nodes):
                return dict(nodes)
            case ():
                raise LumiError("type error", "the model returns nothing")
            case tuple():
                return {f"{OUTPUT}.{i}": builtin.tensor(interpreter, v) for i, v in enumerate(result)}
            case _:
                return {OUTPUT: builtin.tensor(interpreter, result)}
    except LumiError as error:
        error.hint = error.hint or "a model returns a tensor, a list of tensors, or (outputs :name tensor)"
        raise error.at(function.body[-1].span) from None
