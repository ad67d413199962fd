"""An interactive session: one environment, one builder, one entry after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lumi.errors import LumiError
from lumi.hlir.builder import Builder
from lumi.hlir.graph import Graph, Node
from lumi.interpreter import shadow
from lumi.interpreter.evaluate import Interpreter
from lumi.interpreter.library import library
from lumi.interpreter.module import Loader, Module, read_source
from lumi.interpreter.registry import SPECIAL
from lumi.interpreter.scope import MISSING, Scope, nearest
from lumi.interpreter.value import Builtin, Cell, Function, Value, kind_of, written
from lumi.syntax.form import Form


@dataclass(frozen=True, slots=True)
class Documentation:
    """What is known of a name: how it is called, what kind of thing it is, its docstring."""

    name: str
    kind: str
    signature: str
    doc: str

    def __str__(self) -> str:
        """As `,doc` prints it."""
        call = f"({self.name}{' ' + self.signature if self.signature else ''})"
        head = call if self.signature or self.kind == "special form" else f"{self.name}: {self.kind}"
        return f"{head}\n  {self.doc}" if self.doc else head


class Session:
    """Definitions and values that live from entry to entry.

    Names may be defined again.  Each entry is one call: it may declare the params and states of earlier
    entries, finds them as that call began, and leaves updates.  Tensors are nodes of `builder`; `graph`
    makes a graph of some of them.
    """

    def __init__(self) -> None:
        self.library = library()
        self.scope = Scope(self.library)
        self.builder = Builder()
        self.warnings: list[LumiError] = []
        self._interpreter = Interpreter(self.builder, self.library)
        self._interpreter.top = self.scope

    def evaluate(self, form: Form) -> Value:
        """The value of a form: a host value, a tensor's node, or nil for a definition.

        Raises `LumiError`; what the entry had defined before it failed stays.  `warnings` are those of
        this entry.
        """
        self.warnings = shadow.warnings([form], self.library)
        self._interpreter.store.begin()
        with self._interpreter.deep():
            return self._interpreter.evaluate(form, self.scope)

    def load(self, path: Path) -> Module:
        """Load a file and take over its names and dims."""
        module = Loader(self.library).load(read_source(path))
        self.scope.names.update(module.scope.names)
        self.builder.dims.update(module.dims)
        self.warnings = list(module.warnings)
        return module

    def module(self, name: str = "<session>") -> Module:
        """Everything defined so far, as a module: its models can be traced."""
        return Module(name, self.scope, dict(self.builder.dims), ())

    def graph(self, name: str, outputs: Mapping[str, Node]) -> Graph:
        """The graph of some nodes of this session, with the updates of the last entry."""
        return self.builder.graph(name, outputs, self._interpreter.store.updates())

    def document(self, name: str) -> Documentation:
        """What `name` means.  Raises `LumiError` with the nearest names when nothing has it."""
        run = SPECIAL.get(name)
        if run is not None:
            return Documentation(name, "special form", "…", _first_line(run.__doc__ or ""))
        value = self.scope.find(name)
        if value is MISSING:
            hint = nearest(name, [*self.scope.visible(), *SPECIAL])
            raise LumiError("name error", f"unknown name `{name}`", hint=hint)
        match value:
            case Function() | Builtin():
                parameters = str(value.signature)[1:-1]
                return Documentation(name, kind_of(value), parameters, value.doc)
            case Cell():
                return Documentation(name, value.kind, "", f"{value.key}: {value.node.type}")
            case Node():
                return Documentation(name, "tensor", "", str(value.type))
            case _:
                return Documentation(name, kind_of(value), "", written(value))

    def names(self) -> list[str]:
        """Every name that can be written now, sorted: definitions, library, builtins, special forms."""
        return sorted({*self.scope.visible(), *SPECIAL})


def _first_line(doc: str) -> str:
    return doc.strip().splitlines()[0] if doc.strip() else ""
