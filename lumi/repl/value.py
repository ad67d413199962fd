"""Values as the prompt prints them: tensors like numpy, everything else as it is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from lumi.dtype import BOOL, from_numpy
from lumi.hlir.graph import Node
from lumi.interpreter.value import Builtin, Function, Outputs, Value, kind_of, written

Array = np.ndarray[Any, np.dtype[Any]]


def nodes(value: Value) -> Iterator[Node]:
    """The tensors in a value, in the order they are printed."""
    match value:
        case Node():
            yield value
        case Outputs(named):
            yield from named.values()
        case tuple():
            for item in value:
                yield from nodes(item)
        case _:
            pass


def show(value: Value, arrays: Mapping[int, Array]) -> str:
    """The value as text; `arrays` holds what its tensors are, by the id of the node."""
    match value:
        case Node():
            return show_array(arrays[value.id])
        case Outputs(named):
            return "\n".join(f"{name}: {show(node, arrays)}" for name, node in named.items())
        case tuple() if any(nodes(value)):
            return "\n".join(show(item, arrays) for item in value)
        case Function() | Builtin():
            return f"{value.name}: {kind_of(value)} {value.signature}"
        case _:
            return written(value)


def show_array(array: Array) -> str:
    """The elements, then dtype and shape as a comment; numpy writes floats it lacks as integers."""
    dtype = from_numpy(array.dtype)
    type_ = f"; {dtype} [{' '.join(map(str, array.shape))}]"
    shown = array.astype(np.float32) if dtype.is_raw else array
    if shown.ndim == 0 and dtype != BOOL:
        text = str(shown[()])
    else:
        text = np.array2string(shown, separator=" ", formatter={"bool": lambda x: "true" if x else "false"})
    return f"{text}\n{type_}" if "\n" in text else f"{text}  {type_}"
