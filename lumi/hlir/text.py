"""HLIR as text: a flat `let` that the reader takes back.

```lisp
(graph softmax
  (dims [batch 1 8 [1]])
  (let [:in "softmax"
        %0 (input "x" f32 [batch 10])
        %1 (reduce-max %0 [1])  ; f32 [batch]
        …])
  (outputs ["y" %7])
  (updates []))
```
`:in "a/b"` gives the scope of the bindings below it.  A view's rows say which source element each output
coordinate `$0 $1 …` reads: `(view %0 [(+ $0 (* 2 $1) 1)] [batch 4] :fill 0.0)`.
`show(parse(show(g))) == show(g)`; spans are not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lumi.dim import DimRange, Extent
from lumi.errors import LumiError, Source
from lumi.hlir.builder import Builder
from lumi.hlir.graph import Graph, Node
from lumi.hlir.op import (
    Affine,
    Binary,
    BinaryKind,
    Bitcast,
    Cast,
    Const,
    Gather,
    Input,
    Iota,
    Monoid,
    Op,
    Param,
    Reduce,
    Reshape,
    Row,
    Scan,
    Scatter,
    Select,
    State,
    Symbol,
    Unary,
    UnaryKind,
    Update,
    View,
)
from lumi.syntax import expect, form
from lumi.syntax.form import Form, Keyword
from lumi.syntax.printer import show_string
from lumi.syntax.reader import read_one

# -- printing

_LONG = 72
"""Characters of a binding beyond which its comment does not move those of others."""


def show(graph: Graph) -> str:
    """The graph as text."""
    names = {n.id: f"%{k}" for k, n in enumerate(graph.nodes)}
    dims = [f"[{d.name} {d.low} {d.high} [{' '.join(map(str, d.hints))}]]" for d in graph.dims.values()]
    bindings = list(_bindings(graph, names)) or [("", "")]
    lead = "  (let ["
    body = [("" if i == 0 else " " * len(lead)) + line for i, line in enumerate(_aligned(bindings))]
    outputs = " ".join(f"{show_string(k)} {names[n.id]}" for k, n in graph.outputs.items())
    updates = " ".join(f"{show_string(k)} {names[n.id]}" for k, n in graph.updates.items())
    head = [f"(graph {graph.name}", f"  (dims{''.join(' ' + d for d in dims)})"]
    tail = [f"  (outputs [{outputs}])", f"  (updates [{updates}]))"]
    return "\n".join([*head, lead + "\n".join(body), *tail])


def _aligned(bindings: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Each binding with its type as a comment, in one column but behind long bindings; then the brackets."""
    last, comment = bindings[-1]
    closed = [*bindings[:-1], (f"{last}])", comment)]
    column = max((len(text) for text, comment in closed if comment and len(text) <= _LONG), default=0)
    for text, comment in closed:
        yield f"{text:<{column}}  ; {comment}" if comment else text


def _bindings(graph: Graph, names: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    """Each binding and, if it is computed, its type."""
    scope = ""
    for node in graph.nodes:
        if not node.is_leaf and node.scope != scope:
            scope = node.scope
            yield f":in {show_string(scope)}", ""
        text = f"{names[node.id]} {show_call(node.op, [names[i.id] for i in node.inputs], node)}"
        yield text, "" if isinstance(node.op, (Input, Param, State)) else str(node.type)


def show_call(op: Op, args: list[str], node: Node) -> str:
    """One operation as a call on the names of its inputs."""
    return f"({' '.join([_head(op), *args, *_attributes(op, node)])})"


def _head(op: Op) -> str:
    match op:
        case Unary(kind):
            return kind.value
        case Binary(kind):
            return kind.value
        case Reduce(kind):
            return f"reduce-{kind.value}"
        case Scan(kind):
            return f"scan-{kind.value}"
        case View(Reshape()):
            return "reshape"
        case Select():
            return "where"
        case _:
            return type(op).__name__.lower()


def _attributes(op: Op, node: Node) -> list[str]:
    type_ = f"{node.dtype} {_shape(node.shape)}"
    match op:
        case Input(name, most):
            return [show_string(name), type_, *([] if most is None else [f":max {most}"])]
        case Param(key, init):
            return [show_string(key), type_, *([] if init is None else [f":init {_number(init)}"])]
        case State(key):
            return [show_string(key), type_]
        case Const(number):
            return [str(node.dtype), _number(number)]
        case Symbol(size) | Iota(size):
            return [str(size)]
        case Cast(dtype) | Bitcast(dtype):
            return [str(dtype)]
        case Reduce(_, axes):
            return [f"[{' '.join(map(str, axes))}]"]
        case Scan(_, axis) | Gather(axis) | Scatter(axis):
            return [str(axis)]
        case Update(axis, start, wrap):
            return [str(axis), str(start), *([":wrap"] if wrap else [])]
        case View(index_map):
            return _view(index_map, node)
        case Unary() | Binary() | Select():
            return []


def _view(index_map: Affine | Reshape, node: Node) -> list[str]:
    if isinstance(index_map, Reshape):
        return [_shape(node.shape)]
    rows = " ".join(map(_row, index_map.rows))
    fill = [] if index_map.fill is None else [f":fill {_number(index_map.fill)}"]
    return [f"[{rows}]", _shape(node.shape), *fill]


def _row(row: Row) -> str:
    parts = [f"${a}" if c == 1 else f"(* {c} ${a})" for a, c in row.terms]
    if row.offset != 0 or not parts:
        parts.append(str(row.offset))
    return parts[0] if len(parts) == 1 else f"(+ {' '.join(parts)})"


def _shape(shape: tuple[Extent, ...]) -> str:
    return f"[{' '.join(map(str, shape))}]"


def _number(value: float | int | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


# -- reading


def parse(source: Source) -> Graph:
    """The graph of a text that `show` wrote.  Raises `LumiError` where it is malformed."""
    top = expect.call(read_one(source), "graph")
    if len(top) != 6:
        raise expect.error(read_one(source), "(graph name (dims …) (let […]) (outputs […]) (updates […]))")
    reader = _Reader(Builder(dict(map(_dim, expect.call(top[2], "dims")[1:]))), {})
    reader.bindings(expect.vector(expect.call(top[3], "let")[1]))
    outputs, updates = (
        reader.table(expect.vector(expect.call(t, h)[1]))
        for t, h in ((top[4], "outputs"), (top[5], "updates"))
    )
    inputs = [n for n in reader.nodes.values() if isinstance(n.op, Input)]
    graph = reader.builder.graph(expect.symbol(top[1]), outputs, updates, inputs)
    return Graph(graph.name, graph.nodes, graph.outputs, graph.updates, reader.builder.dims)


@dataclass(slots=True)
class _Reader:
    builder: Builder
    nodes: dict[str, Node]

    def bindings(self, items: tuple[Form, ...]) -> None:
        """Bind name after name; `:in` sets the scope of what follows."""
        scope = ""
        for name, value in zip(items[::2], items[1::2], strict=True):
            if isinstance(name, Keyword):
                scope = expect.string(value)
                continue
            self.builder.span = value.span
            with self.builder.scope(scope):
                self.nodes[expect.symbol(name)] = self.call(expect.call(value))

    def table(self, items: tuple[Form, ...]) -> dict[str, Node]:
        """Strings and the nodes they name."""
        return {expect.string(k): self.node(v) for k, v in zip(items[::2], items[1::2], strict=True)}

    def node(self, name: Form) -> Node:
        """The node bound to a name."""
        found = self.nodes.get(expect.symbol(name))
        if found is None:
            raise LumiError("name error", f"`{expect.symbol(name)}` is not bound", name.span)
        return found

    def call(self, items: tuple[Form, ...]) -> Node:
        """The node of one operation."""
        head, rest = expect.symbol(items[0]), items[1:]
        maker = _MAKERS.get(head)
        if maker is not None:
            return maker(self, rest)
        unary, binary = _UNARY.get(head), _BINARY.get(head)
        if unary is not None:
            return self.builder.unary(unary, self.node(rest[0]))
        if binary is not None:
            return self.builder.binary(binary, self.node(rest[0]), self.node(rest[1]))
        for prefix, make in (("reduce-", self.reduce), ("scan-", self.scan)):
            kind = _MONOIDS.get(head.removeprefix(prefix))
            if head.startswith(prefix) and kind is not None:
                return make(kind, rest)
        raise LumiError("name error", f"`{head}` is no operation", items[0].span)

    def reduce(self, kind: Monoid, rest: tuple[Form, ...]) -> Node:
        """A reduction and its axes."""
        return self.builder.reduce(
            kind, self.node(rest[0]), [expect.integer(a) for a in expect.vector(rest[1])]
        )

    def scan(self, kind: Monoid, rest: tuple[Form, ...]) -> Node:
        """A scan and its axis."""
        return self.builder.scan(kind, self.node(rest[0]), expect.integer(rest[1]))

    def update(self, rest: tuple[Form, ...]) -> Node:
        """An update, at a start or at a tensor of them."""
        *given, axis, start = (item for item in rest if not isinstance(item, Keyword))
        x, y, *starts = map(self.node, given)
        at = starts[0] if starts else expect.extent(start)
        return self.builder.update(x, y, expect.integer(axis), at, wrap=isinstance(rest[-1], Keyword))

    def view(self, rest: tuple[Form, ...]) -> Node:
        """An affine view, made exactly as written."""
        x, rows = self.node(rest[0]), tuple(map(_parse_row, expect.vector(rest[1])))
        fill = expect.number(rest[4]) if len(rest) > 4 else None
        return self.builder.node(View(Affine(rows, fill)), (x,), x.dtype, expect.extents(rest[2]))


_UNARY = {k.value: k for k in UnaryKind}
_BINARY = {k.value: k for k in BinaryKind}
_MONOIDS = {k.value: k for k in Monoid}

_MAKERS: dict[str, Callable[[_Reader, tuple[Form, ...]], Node]] = {
    "input": lambda r, a: r.builder.input(
        expect.string(a[0]),
        expect.dtype(a[1]),
        expect.extents(a[2]),
        expect.extent(a[4]) if len(a) > 4 else None,
    ),
    "param": lambda r, a: r.builder.param(
        expect.string(a[0]),
        expect.dtype(a[1]),
        expect.extents(a[2]),
        float(expect.number(a[4])) if len(a) > 4 else None,
    ),
    "state": lambda r, a: r.builder.state(expect.string(a[0]), expect.dtype(a[1]), expect.extents(a[2])),
    "const": lambda r, a: r.builder.const(expect.number(a[1]), expect.dtype(a[0])),
    "symbol": lambda r, a: r.builder.symbol(expect.extent(a[0])),
    "iota": lambda r, a: r.builder.iota(expect.extent(a[0])),
    "where": lambda r, a: r.builder.select(*map(r.node, a)),
    "cast": lambda r, a: r.builder.cast(r.node(a[0]), expect.dtype(a[1])),
    "bitcast": lambda r, a: r.builder.bitcast(r.node(a[0]), expect.dtype(a[1])),
    "reshape": lambda r, a: r.builder.reshape(r.node(a[0]), expect.extents(a[1])),
    "view": lambda r, a: r.view(a),
    "gather": lambda r, a: r.builder.gather(r.node(a[0]), r.node(a[1]), expect.integer(a[2])),
    "scatter": lambda r, a: r.builder.scatter(r.node(a[0]), r.node(a[1]), r.node(a[2]), expect.integer(a[3])),
    "update": lambda r, a: r.update(a),
}


def _parse_row(item: Form) -> Row:
    parts = (
        item.items[1:] if isinstance(item, form.List) and expect.is_symbol(item.items[0], "+") else (item,)
    )
    terms: list[tuple[int, int]] = []
    offset: Extent = 0
    for part in parts:
        coefficient, atom = 1, part
        if (
            isinstance(part, form.List)
            and expect.is_symbol(part.items[0], "*")
            and _coordinate(part.items[-1]) is not None
        ):
            coefficient, atom = expect.integer(part.items[1]), part.items[2]
        place = _coordinate(atom)
        if place is None:
            offset = offset + expect.extent(part)
        else:
            terms.append((place, coefficient))
    return Row(tuple(terms), offset)


def _coordinate(item: Form) -> int | None:
    if isinstance(item, form.Symbol) and item.name.startswith("$") and item.name[1:].isdigit():
        return int(item.name[1:])
    return None


def _dim(item: Form) -> tuple[str, DimRange]:
    name, low, high, hints = expect.vector(item)
    return expect.symbol(name), DimRange(
        expect.symbol(name),
        expect.integer(low),
        expect.integer(high),
        tuple(map(expect.integer, expect.vector(hints))),
    )
