"""Evaluates forms: names, calls, macros.

An `Interpreter` is one trace: the builder that receives the nodes, the params and states declared so
far, the dims bound to integers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from lumi import dim
from lumi.dim import Dim
from lumi.dtype import F32, DType
from lumi.errors import LumiError, Span
from lumi.hlir.builder import Builder
from lumi.interpreter.blame import moved, traced, types_of
from lumi.interpreter.entry import check_inputs
from lumi.interpreter.pattern import destructure
from lumi.interpreter.registry import DECLARATIONS, SPECIAL
from lumi.interpreter.scope import Missing, Scope, nearest
from lumi.interpreter.store import Store
from lumi.interpreter.value import (
    Builtin,
    Cell,
    Function,
    Kind,
    Value,
    a_kind_of,
    as_form,
    as_value,
    describe,
)
from lumi.syntax.form import Form, Keyword, List, Symbol, Vector

DEEPEST = 200
"""Calls within calls before a recursion counts as endless."""

_PYTHON_FRAMES = 60 * DEEPEST
_SIZES = (Dim, tuple)


class Interpreter:
    """One trace.

    `dtype` is what a param is when it does not say.  `top` is the scope that definitions go to, if they
    are allowed; `in_file` when a file and not a person defines.  Functions defined while `transparent`
    report their errors at the call.
    """

    def __init__(
        self,
        builder: Builder,
        library: Scope,
        *,
        bind: Mapping[str, int] | None = None,
        packing: Mapping[str, str] | None = None,
    ) -> None:
        self.builder = builder
        self.library = library
        self.bind: dict[str, int] = dict(bind or {})
        self.packing: dict[str, str] = dict(packing or {})
        self.store = Store(builder)
        self.dtype: DType = F32
        self.top: Scope | None = None
        self.in_file = False
        self.transparent = False
        self._site: Span | None = None
        self._depth = 0

    # -- forms

    def evaluate(self, form: Form, scope: Scope) -> Value:
        """The value of a form; a cell is opened."""
        # by hand and in order of frequency: a model evaluates tens of thousands of forms
        if isinstance(form, Symbol):
            return self._read(form, scope)
        if isinstance(form, List):
            return self._list(form, scope)
        if isinstance(form, Vector):
            return tuple([self.evaluate(item, scope) for item in form.items])
        return form if isinstance(form, Keyword) else form.value

    def body(self, forms: Sequence[Form], scope: Scope) -> Value:
        """The value of the last of `forms`; nil for none."""
        result: Value = None
        for form in forms:
            result = self.evaluate(form, scope)
        return result

    def binding(self, form: Form, scope: Scope) -> Value | Cell:
        """The value of a form that a name is about to be bound to: a param or a state stays a cell."""
        if isinstance(form, List) and form.items and isinstance(form.items[0], Symbol):
            declare = DECLARATIONS.get(form.items[0].name)
            if declare is not None:
                return declare(self, form, scope)
        return self.evaluate(form, scope)

    def _read(self, symbol: Symbol, scope: Scope) -> Value:
        value: Value | Cell | Missing = scope.find(symbol.name)
        if isinstance(value, Cell):
            return value.node
        if isinstance(value, Missing):
            raise self.unknown(symbol, scope)
        return self._bound(value) if self.bind and isinstance(value, _SIZES) else value

    def _bound(self, value: Value) -> Value:
        """A constant of a file with the bound dims filled in, also inside lists."""
        if isinstance(value, Dim):
            return dim.bind(value, self.bind)
        return tuple([self._bound(item) for item in value]) if isinstance(value, tuple) else value

    def unknown(self, symbol: Symbol, scope: Scope) -> LumiError:
        """The error of a name that nothing binds."""
        if symbol.name in SPECIAL:
            return LumiError(
                "name error", f"`{symbol.name}` is a special form, not a value", symbol.span, hint="call it"
            )
        hint = nearest(symbol.name, [*scope.visible(), *SPECIAL])
        return LumiError("name error", f"unknown name `{symbol.name}`", symbol.span, hint=hint)

    def _list(self, form: List, scope: Scope) -> Value:
        if not form.items:
            raise LumiError("call error", "() calls nothing", form.span, hint="an empty list is []")
        head = form.items[0]
        if isinstance(head, Symbol):
            run = SPECIAL.get(head.name)
            if run is not None:
                return run(self, form, scope)
        callee = self.evaluate(head, scope)
        if isinstance(callee, Function):
            if callee.kind is Kind.MACRO:
                return self._expanded(callee, form, scope)
        elif not isinstance(callee, Builtin):
            raise LumiError(
                "call error",
                f"{describe(callee)} is {a_kind_of(callee)}, not a function",
                head.span,
                hint="( ) calls its first item; a list is written [ ]",
            )
        positional, keywords = self.arguments(form.items[1:], scope)
        return self.call(callee, positional, keywords, form)

    def arguments(self, forms: Sequence[Form], scope: Scope) -> tuple[list[Value], dict[str, Value]]:
        """Positional and keyword arguments, evaluated from left to right."""
        positional: list[Value] = []
        keywords: dict[str, Value] = {}
        items = iter(forms)
        for item in items:
            if isinstance(item, Keyword):
                follows = next(items, None)
                if follows is None:
                    raise LumiError("call error", f"keyword :{item.name} has no value", item.span)
                if item.name in keywords:
                    raise LumiError("call error", f"keyword :{item.name} stands twice", item.span)
                keywords[item.name] = self.evaluate(follows, scope)
            else:
                positional.append(self.evaluate(item, scope))
        return positional, keywords

    # -- calls

    def place(self, form: Form | None) -> Span | None:
        """Where a node or an error that `form` causes belongs."""
        return self._site or _span(form)

    def call(
        self, callee: Value, positional: Sequence[Value], keywords: Mapping[str, Value], form: Form | None
    ) -> Value:
        """Call a function or builtin from `form`, which errors point at."""
        if isinstance(callee, Builtin):
            return self._call_builtin(callee, positional, keywords, form)
        if isinstance(callee, Function):
            return self._call_function(callee, positional, keywords, form)
        raise LumiError("call error", f"{describe(callee)} is not a function", _span(form))

    def _call_builtin(
        self, callee: Builtin, positional: Sequence[Value], keywords: Mapping[str, Value], form: Form | None
    ) -> Value:
        if form is not None:  # a function called by map or reduce belongs where that was called
            self.builder.span = self.place(form)
        try:
            callee.signature.check(callee.name, len(positional), keywords)
            named = {k.replace("-", "_"): v for k, v in keywords.items()}
            result: Value = callee.run(self, *positional, **named)
        except LumiError as error:
            if error.span in (None, self.builder.span):
                error.label = error.label or types_of(positional)
            raise error.at(self.place(form)) from None
        except (ArithmeticError, ValueError, MemoryError) as error:  # of host integers without end
            message = f"{callee.name} of numbers this large: {error}"
            raise LumiError("number error", message, self.place(form), hint="use smaller ones") from None
        return result

    def _call_function(
        self, callee: Function, positional: Sequence[Value], keywords: Mapping[str, Value], form: Form | None
    ) -> Value:
        try:
            callee.signature.check(
                callee.name, len(positional), keywords, ("name",) if callee.kind is Kind.LAYER else ()
            )
        except LumiError as error:
            raise error.at(self.place(form)) from None
        outer = self._site
        if callee.transparent and outer is None:
            self._site = _span(form)
        elif not callee.transparent:
            self._site = None
        self._depth += 1
        try:
            return self._enter(callee, positional, dict(keywords), form)
        except LumiError as error:
            if callee.transparent:
                raise moved(error, callee, outer or _span(form), positional) from None
            raise traced(error, callee, form) from None
        finally:
            self._depth -= 1
            self._site = outer

    def _enter(
        self, callee: Function, positional: Sequence[Value], keywords: dict[str, Value], form: Form | None
    ) -> Value:
        if self._depth > DEEPEST:
            raise _endless(_span(form))
        name = None
        if callee.kind is Kind.LAYER and "name" not in callee.signature.keywords:
            name = keywords.pop("name", callee.name)
        scope = self.bind_arguments(callee, positional, keywords)
        if callee.kind is Kind.MODEL:
            check_inputs(self, callee, positional, scope)
        if name is None:
            return self.body(callee.body, scope)
        if not isinstance(name, str):
            raise LumiError("call error", f":name is {describe(name)}", _span(form), hint="it is a string")
        with self.builder.scope(name), self.store.prefixed(name):
            return self.body(callee.body, scope)

    def bind_arguments(
        self, callee: Function, positional: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Scope:
        """The scope of a call: parameters bound, defaults evaluated in order."""
        signature, scope = callee.signature, Scope(callee.scope)
        for pattern, value in zip(signature.positional, positional, strict=False):
            destructure(pattern, value, scope)
        if signature.rest:
            scope.names[signature.rest] = tuple(positional[len(signature.positional) :])
        for name, default in signature.keywords.items():
            scope.names[name] = keywords[name] if name in keywords else self.evaluate(default, scope)
        return scope

    def define(self, symbol: Symbol, value: Value | Cell) -> None:
        """Bind a name at the top; a file defines each name once."""
        assert self.top is not None
        if self.in_file and symbol.name in self.top.names:
            raise LumiError("name error", f"`{symbol.name}` is defined twice", symbol.span)
        self.top.names[symbol.name] = value

    def _expanded(self, macro: Function, form: List, scope: Scope) -> Value:
        """The value of the form that a macro call stands for."""
        self._depth += 1
        try:
            return self.evaluate(self._expansion(macro, form), scope)
        finally:
            self._depth -= 1

    def _expansion(self, macro: Function, form: List) -> Form:
        arguments: list[Value] = []
        keywords: dict[str, Value] = {}
        items = iter(form.items[1:])
        for item in items:
            if isinstance(item, Keyword) and item.name in macro.signature.keywords:
                keywords[item.name] = next(items, Symbol("nil", item.span))
            else:
                arguments.append(as_value(item))
        expanded = self._call_function(macro, arguments, keywords, form)
        return as_form(expanded, form.span)

    @contextmanager
    def deep(self) -> Iterator[None]:
        """Room for `DEEPEST` calls on Python's stack."""
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _PYTHON_FRAMES))
        try:
            yield
        except RecursionError:
            raise _endless(self.builder.span) from None
        finally:
            sys.setrecursionlimit(limit)


def _endless(span: Span | None) -> LumiError:
    return LumiError(
        "call error",
        f"recursion is deeper than {DEEPEST} calls",
        span,
        hint="give it a case that ends",
    )


def _span(form: Form | None) -> Span | None:
    return form.span if form is not None else None
