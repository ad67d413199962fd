"""What the roots of a nest and the operands of a map are, whatever the language."""

from __future__ import annotations

from lumi.backends.clike.scope import BaseWriter, Opening, V
from lumi.dtype import BOOL, F64, DType
from lumi.llir.kernel import Map, Store
from lumi.llir.program import Fold, Program, dtype_of


def stored_type(program: Program, store: Store) -> DType:
    """The type in which a stored value is computed."""
    if isinstance(store.value, str):
        return dtype_of(program.definitions[store.value])
    return store.access.dtype


def operand_type(program: Program, definition: Map) -> DType:
    """The type of the operands of a map; for `sel` that of its branches."""
    typed = definition.args[1:] if definition.op == "sel" else definition.args
    named = [dtype_of(program.definitions[a]) for a in typed if isinstance(a, str)]
    if named:
        return named[0]
    return definition.dtype if definition.dtype != BOOL else F64


def folds_together(w: BaseWriter[Opening, V], first: Fold) -> list[Fold]:
    """The folds of a loop that are computed along with one of them, in the scope at hand."""
    if first.loop is None:
        return [first]
    table = [w.program.definitions[c.final] for c in first.loop.carries]
    alike = [
        f for f in table if isinstance(f, Fold) and set(f.axes) == set(first.axes) and f.over == first.over
    ]
    return [f for f in alike if w.depth(f.var) == len(w.scopes) - 1 and f.var not in w.here.values]
