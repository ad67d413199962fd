"""One conversation with the prompt: an entry in, the text of its results out."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lumi.errors import LumiError, Source
from lumi.hlir.graph import Graph, Node
from lumi.hlir.op import Input
from lumi.interpreter.registry import SPECIAL
from lumi.interpreter.scope import MISSING
from lumi.interpreter.session import Session
from lumi.interpreter.trace import OUTPUT, trace
from lumi.interpreter.value import Builtin, Function, Kind, Value
from lumi.repl import value as values
from lumi.repl.evaluator import Array, Evaluator
from lumi.syntax.form import Form, List, Str, Symbol
from lumi.syntax.printer import show
from lumi.syntax.reader import read

NAME = "<repl>"
"""What an entry is called in messages."""

_REMEMBERED = 256
"""Entries that are kept traced."""

_DEFINITIONS = ("def", "defn", "deflayer", "defmodel", "defmacro", "defdim")


@dataclass(frozen=True, slots=True)
class _Traced:
    """An expression that defines nothing: its value, and the graph of what has to be computed for it."""

    value: Value
    graph: Graph


class Conversation:
    """Definitions, tensors and states that live from entry to entry, computed on `target`.

    `relaxed` are the precisions that it may compute in, as of `lumi.compiler.Options`.
    A tensor that `def` names is computed then and kept, unless its shape depends on a dim.  An entry of
    expressions that comes again before anything is defined is not traced again.
    """

    def __init__(self, target: str = "cpu", relaxed: tuple[str, ...] = ()) -> None:
        self.session = Session()
        self.evaluator = Evaluator(target, relaxed)
        self._known: dict[str, tuple[_Traced, ...]] = {}

    def evaluate(self, text: str) -> Iterator[str]:
        """What the forms of an entry print, one after the other.

        Raises `LumiError`, an `Incomplete` when the entry ends inside a form; what came before stays.
        """
        if text in self._known:
            yield from (self._shown(traced) for traced in self._known[text])
            return
        traced = []
        for form in read(Source(NAME, text)):
            traced.append((yield from self._form(form)))
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        expressions = tuple(one for one in traced if one is not None)
        if len(expressions) == len(traced):
            self._known[text] = expressions

    def _form(self, form: Form) -> Generator[str, None, _Traced | None]:
        """Print what a form has to say; an expression that may come again is returned."""
        names = {name: id(value) for name, value in self.session.scope.names.items()}
        expression = None
        match form:
            case List((Symbol("import"), Str(path))):
                yield self.load(Path(path))
                return None
            case List((Symbol("def"), Symbol(name), _)):
                self._known.clear()
                self.session.evaluate(form)
                self._keep(name)
            case _:
                result = self.session.evaluate(form)
                expression = _Traced(result, self._graph(result))
                shown = self._shown(expression)
                if result is not None or not _defines(form):
                    yield shown
        yield from (warning.render() for warning in self.session.warnings)
        if {name: id(value) for name, value in self.session.scope.names.items()} != names or _defines(form):
            self._known.clear()
            return None
        return None if self.session.warnings else expression

    def _shown(self, traced: _Traced) -> str:
        """Compute an expression and show its value."""
        return values.show(traced.value, self._compute(traced.value, traced.graph))

    def load(self, path: Path) -> str:
        """Take over a file's definitions; says what they are."""
        self._known.clear()
        module = self.session.load(path)
        models = ", ".join(module.models)
        return f"{path}: {len(module.scope.names)} names" + (f", models {models}" if models else "")

    # -- looking at things

    def value(self, text: str) -> Value:
        """The value of the one form in `text`, with nothing run."""
        forms = read(Source(NAME, text))
        if len(forms) != 1:
            raise LumiError("form error", "one expression is expected", hint="such as (softmax [1.0 2.0])")
        return self.session.evaluate(forms[0])

    def graph(self, text: str) -> Graph:
        """The graph of an expression, or of the model that it names."""
        result = self.value(text)
        if isinstance(result, Function) and result.kind is Kind.MODEL:
            return trace(self.session.module(NAME), result.name)
        graph = self._graph(result)
        if not graph.roots():
            raise LumiError(
                "type error", f"{text.strip()} is no tensor", hint="tensors and models have graphs"
            )
        return graph

    def _graph(self, result: Value) -> Graph:
        """The graph of the tensors in a value that are not known already, and of the entry's updates."""
        wanted = {node.id: node for node in values.nodes(result) if not self._is_given(node)}
        outputs = {f"{OUTPUT}.{k}": node for k, node in enumerate(wanted.values())}
        return self.session.graph("entry", outputs)

    def _compute(self, result: Value, graph: Graph) -> dict[int, Array]:
        """The arrays of all tensors in a value, by the node's id; the updates of its graph take effect."""
        outputs = self.evaluator.run(graph) if graph.roots() else {}
        arrays = {node.id: outputs[name] for name, node in graph.outputs.items()}
        given = {
            n.id: self.evaluator.inputs[n.op.name] for n in values.nodes(result) if isinstance(n.op, Input)
        }
        return arrays | given

    def _is_given(self, node: Node) -> bool:
        return isinstance(node.op, Input) and node.op.name in self.evaluator.inputs

    # -- definitions

    def _keep(self, name: str) -> None:
        """Compute the tensors that `name` has been bound to, and bind it to the results."""
        bound = self.session.scope.names[name]
        try:
            graph = self._graph(bound)
            if not graph.roots() or graph.dims:
                return
            arrays = self._compute(bound, graph)
        except BaseException:
            del self.session.scope.names[name]
            raise
        self.session.scope.names[name] = self._kept(name, bound, arrays)

    def _kept(self, name: str, bound: Value, arrays: Mapping[int, Array]) -> Value:
        """The value with each tensor an input of its own, so that binding another name never changes it."""
        match bound:
            case Node():
                self.evaluator.inputs[name] = arrays[bound.id]
                return self.session.builder.input(name, bound.dtype, bound.shape)
            case tuple():
                return tuple(self._kept(f"{name}.{i}", item, arrays) for i, item in enumerate(bound))
            case _:
                return bound

    # -- names, for completion

    def names(self) -> list[str]:
        """Every name that can be written now."""
        return self.session.names()

    def summary(self, name: str) -> str:
        """A line on what a name is."""
        try:
            found = self.session.document(name)
        except LumiError:
            return ""
        return found.doc.partition("\n")[0] or found.kind

    def keywords(self, name: str) -> Mapping[str, str]:
        """The keywords that a call of `name` takes, with their defaults."""
        called = MISSING if name in SPECIAL else self.session.scope.find(name)
        if not isinstance(called, Function | Builtin):
            return {}
        found = {key: f"default {show(default)}" for key, default in called.signature.keywords.items()}
        is_layer = isinstance(called, Function) and called.kind is Kind.LAYER
        return {**found, "name": "of the layer"} if is_layer else found


def _defines(form: Form) -> bool:
    match form:
        case List((Symbol(head), *_)):
            return head in _DEFINITIONS
        case _:
            return False
