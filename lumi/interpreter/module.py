"""Loads a file: its definitions in a scope, the files it imports, the warnings it deserves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lumi.dim import DimRange
from lumi.errors import LumiError, Source, Span
from lumi.hlir.builder import Builder
from lumi.interpreter import shadow
from lumi.interpreter.evaluate import Interpreter
from lumi.interpreter.library import Library, library
from lumi.interpreter.registry import special
from lumi.interpreter.scope import Scope
from lumi.interpreter.value import Function, Kind, Value, describe
from lumi.paths import beside
from lumi.syntax import reader
from lumi.syntax.form import Form, List


@dataclass(frozen=True, slots=True)
class Module:
    """A loaded file: what it defines and imports, the dims it declares, the warnings of all these files."""

    name: str
    scope: Scope
    dims: Mapping[str, DimRange]
    warnings: tuple[LumiError, ...]

    @property
    def models(self) -> dict[str, Function]:
        """The models it defines or imports, in order."""
        found = self.scope.names.items()
        return {k: v for k, v in found if isinstance(v, Function) and v.kind is Kind.MODEL}


@dataclass(slots=True)
class Loader:
    """Files being loaded, outermost first, and those already loaded."""

    library: Library
    chain: list[str] = field(default_factory=list)
    loaded: dict[str, Module] = field(default_factory=dict)

    def load(self, source: Source) -> Module:
        """The module of a text; imports are found relative to the source's name."""
        key = _key(source.name)
        self.chain.append(key)
        try:
            interpreter = FileInterpreter(self, source, Scope(self.library))
            with interpreter.deep():
                forms = reader.read(source)
                for form in forms:
                    interpreter.definition(form)
        finally:
            self.chain.pop()
        warnings = [*interpreter.warnings, *shadow.warnings(forms, self.library)]
        assert interpreter.top is not None
        module = Module(source.name, interpreter.top, dict(interpreter.builder.dims), tuple(warnings))
        self.loaded[key] = module
        return module

    def find(self, path: str, importer: str, span: Span | None) -> Module | None:
        """The module that `importer` means by `path`; None for a file of the stdlib, seen everywhere."""
        beside = Path(importer).parent / path
        if not beside.is_file():
            if path.removeprefix("stdlib/") in self.library.texts:
                return None
            raise LumiError(
                "import error",
                f"there is no {path}",
                span,
                hint=f"looked in {beside.parent} and in the stdlib",
            )
        key = _key(str(beside))
        if key in self.chain:
            ring = " → ".join(Path(k).name for k in [*self.chain[self.chain.index(key) :], key])
            raise LumiError("import error", "the imports form a circle", span, hint=ring)
        if key not in self.loaded:
            return self.load(read_source(beside, span))
        return self.loaded[key]


class FileInterpreter(Interpreter):
    """Reads the definitions of one file."""

    def __init__(self, loader: Loader, source: Source, top: Scope) -> None:
        super().__init__(Builder(), loader.library)
        self.loader = loader
        self.source = source
        self.top, self.in_file = top, True
        self.warnings: list[LumiError] = []

    def definition(self, form: Form) -> None:
        """Evaluate a form at the top of a file: a definition, an import, or a macro call that makes one."""
        assert self.top is not None
        value = self.evaluate(form, self.top)
        if value is not None:
            raise LumiError(
                "form error",
                "a file holds definitions",
                form.span,
                label=describe(value),
                hint="computation belongs into a defmodel",
            )


@special("import")
def import_(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(import "path.lumi")`: the names of a file beside this one, or of the stdlib."""
    if len(form.items) != 2:
        raise LumiError("form error", "import takes one path", form.span, hint='(import "layers.lumi")')
    path = interpreter.evaluate(form.items[1], scope)
    if (
        not isinstance(path, str)
        or not isinstance(interpreter, FileInterpreter)
        or scope is not interpreter.top
    ):
        raise LumiError(
            "form error", "import stands at the top of a file", form.span, hint='(import "layers.lumi")'
        )
    module = interpreter.loader.find(path, interpreter.source.name, form.items[1].span)
    if module is not None:
        _take_over(interpreter, module, path, form)
    return None


def _take_over(interpreter: FileInterpreter, module: Module, path: str, form: List) -> None:
    """Bind the names and dims of an imported module; one definition may arrive on several ways."""
    assert interpreter.top is not None
    interpreter.warnings += [w for w in module.warnings if w not in interpreter.warnings]
    dims, names = interpreter.builder.dims, interpreter.top.names
    for name, declared in module.dims.items():
        if dims.setdefault(name, declared) != declared:
            raise LumiError("dim error", f"{name} of {path} has another range here", form.span)
    for name, value in module.scope.names.items():
        if names.get(name, value) is not value and name not in module.dims:
            raise LumiError("name error", f"`{name}` of {path} is defined here already", form.span)
        names[name] = value


def read_source(path: Path, span: Span | None = None) -> Source:
    """The text of a file, which `span` asks for."""
    try:
        return Source(str(path), path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise LumiError(
            "import error", f"{path} cannot be read: byte {error.start} is not UTF-8", span
        ) from None
    except OSError as error:
        hint = beside(path) if isinstance(error, FileNotFoundError) else ""
        raise LumiError("import error", f"{path} cannot be read: {error.strerror}", span, hint=hint) from None


def load(source: Source) -> Module:
    """The module of a source text.  Raises `LumiError` for whatever is wrong with its definitions."""
    return Loader(library()).load(source)


def _key(name: str) -> str:
    return str(Path(name).resolve())
