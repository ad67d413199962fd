"""Which params of a model are to be packed, where no checkpoint says so."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from lumi.blocks import BLOCKS, BlockFormat
from lumi.errors import LumiError
from lumi.hlir.graph import Graph, Node
from lumi.hlir.op import Param
from lumi.interpreter.scope import nearest


def packings(graph: Graph, rules: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The block format of each param that a rule asks for, by key.

    A rule is a pattern of keys, with `*` for any text, and the name of a format; later rules go before
    earlier ones.  What cannot be packed stays as it is: all but matrices whose rows are whole blocks.
    Raises `LumiError` for an unknown format, and for a rule that packs nothing.
    """
    found: dict[str, str] = {}
    for pattern, name in rules:
        block = BLOCKS.get(name)
        if block is None:
            hint = nearest(name, list(BLOCKS)) or f"formats: {', '.join(BLOCKS)}"
            raise _error(f"{name} is no block format", hint)
        keys = [node.op.key for node in graph.nodes if isinstance(node.op, Param) and _fits(node, block)]
        chosen = [key for key in keys if fnmatchcase(key, pattern)]
        if not chosen:
            hint = (
                f"such are {', '.join(keys[:3])}" if keys else f"rows divide into blocks of {block.elements}"
            )
            raise _error(f"no matrix named {pattern} can be packed as {name}", hint)
        found |= dict.fromkeys(chosen, name)
    return found


def _fits(node: Node, block: BlockFormat) -> bool:
    """Whether a param is a matrix whose rows are whole blocks."""
    columns = node.shape[-1] if len(node.shape) == 2 else None
    return isinstance(columns, int) and columns % block.elements == 0


def _error(message: str, hint: str) -> LumiError:
    return LumiError("weights error", message, hint=hint)
