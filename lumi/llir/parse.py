"""Reads the text of kernels that `llir.text` wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lumi.dim import Extent
from lumi.dtype import DType
from lumi.errors import Source
from lumi.field.access import Access
from lumi.field.axis import AxisTable
from lumi.field.text import Reader, parse_access, parse_index
from lumi.llir.kernel import (
    Carry,
    Dot,
    Kernel,
    KernelGraph,
    Load,
    Loop,
    Map,
    Operand,
    Position,
    Reduce,
    Schedule,
    Statement,
    Step,
    Store,
    Symbol,
    Temporary,
)
from lumi.llir.text import Typing
from lumi.syntax import expect, form
from lumi.syntax.form import Form, Keyword, Vector
from lumi.syntax.reader import read_one


def parse(source: Source) -> Kernel:
    """The kernel of a text.  Raises `LumiError` where it is malformed."""
    return _kernel(read_one(source))


def parse_graph(source: Source) -> KernelGraph:
    """The kernel graph of a text.  Raises `LumiError` where it is malformed."""
    _, *items = expect.call(read_one(source), "kernels")
    temporaries: dict[str, Temporary] = {}
    steps: list[Step] = []
    for item in items:
        match expect.call(item):
            case (form.Symbol("temporary"), name, shape, dtype):
                temporaries[expect.symbol(name)] = Temporary(expect.extents(shape), expect.dtype(dtype))
            case (form.Symbol("step"), schedule, kernel, *more):
                steps.append(_step(schedule, kernel, more))
            case _:
                raise expect.error(item, "(temporary …) or (step …)")
    return KernelGraph(tuple(steps), temporaries)


def _step(schedule: Form, kernel: Form, more: Sequence[Form]) -> Step:
    """A step of a kernel and of those beside it, then of the steps that come in turn."""
    template, *options = expect.call(schedule)
    numbers = tuple((expect.symbol(n), expect.integer(v)) for n, v in map(expect.vector, options))
    beside: list[Kernel] = []
    then: list[Step] = []
    for item in more:
        match expect.call(item):
            case (form.Symbol("then"), own, first, *others):
                then.append(_step(own, first, others))
            case _:
                beside.append(_kernel(item))
    return Step(_kernel(kernel), Schedule(expect.symbol(template), numbers), tuple(beside), tuple(then))


def _kernel(text: Form) -> Kernel:
    _, *rest = expect.call(text, "kernel")
    options, items = _options(rest)
    axes = {n: expect.extent(e) for n, e in map(_named, _vector(options, "axes", text))}
    tiles: dict[str, int] = {}
    grid: list[str] = []
    for cell in _vector(options, "grid", text):
        if isinstance(cell, form.Symbol):
            grid.append(cell.name)
        else:
            name, tile = _named(cell)
            grid.append(name)
            tiles[name] = expect.integer(tile)
    tiles |= {n: expect.integer(t) for n, t in map(_named, _vector(options, "tiles"))}
    reader = _Blocks(axes, _vector(options, "buffers", text))
    body, _ = reader.block(items)
    return Kernel(
        axes=axes,
        grid=tuple(grid),
        resident=tuple(map(expect.symbol, _vector(options, "resident"))),
        tiles={a: tiles[a] for a in axes if a in tiles},
        body=body,
    )


def _vector(options: dict[str, Form], name: str, required: Form | None = None) -> tuple[Form, ...]:
    if name not in options:
        if required is not None:
            raise expect.error(required, f":{name} […] in a kernel")
        return ()
    return expect.vector(options[name])


def _named(item: Form) -> tuple[str, Form]:
    """The name and value of `(name value)`."""
    items = expect.call(item)
    if len(items) != 2:
        raise expect.error(item, "(name value)")
    return expect.symbol(items[0]), items[1]


def _options(items: Sequence[Form]) -> tuple[dict[str, Form], list[Form]]:
    """Keyword arguments, and what stands between or after them."""
    options: dict[str, Form] = {}
    rest: list[Form] = []
    place = 0
    while place < len(items):
        item = items[place]
        if isinstance(item, Keyword):
            if place + 1 == len(items):
                raise expect.error(item, f"a value after :{item.name}")
            options[item.name] = items[place + 1]
            place += 2
        else:
            rest.append(item)
            place += 1
    return options, rest


@dataclass(slots=True)
class _Buffer:
    shape: tuple[Extent, ...]
    dtype: DType


@dataclass(slots=True)
class _Blocks:
    """Reads the blocks of one kernel."""

    extents: dict[str, Extent]
    declared: Iterable[Form]
    axes: AxisTable = field(default_factory=AxisTable)
    buffers: dict[str, _Buffer] = field(default_factory=dict)
    typing: Typing = field(init=False)

    def __post_init__(self) -> None:
        for name, extent in self.extents.items():
            self.axes.add(name, extent)
        self.typing = Typing({a: k for k, a in enumerate(self.extents)})
        for item in self.declared:
            match expect.call(item):
                case (buffer, shape, dtype):
                    self.buffers[expect.symbol(buffer)] = _Buffer(expect.extents(shape), expect.dtype(dtype))
                case _:
                    raise expect.error(item, "(buffer [size …] dtype)")

    def block(self, items: Sequence[Form]) -> tuple[tuple[Statement, ...], tuple[str, ...]]:
        """The statements of a block, and the names that its `next` gives."""
        statements: list[Statement] = []
        after: tuple[str, ...] = ()
        for item in items:
            head = expect.symbol(expect.call(item)[0])
            if head == "let":
                statements += self._bindings(item)
                inner, after = self.block(expect.call(item)[2:])
                statements += inner
            elif head == "next":
                after = tuple(map(expect.symbol, expect.call(item)[1:]))
            else:
                made = self._loop(item) if head == "for" else self._store(item)
                self.typing.note(made)
                statements.append(made)
        return tuple(statements), after

    def _bindings(self, item: Form) -> list[Statement]:
        items = expect.call(item)
        bindings = expect.vector(items[1]) if len(items) > 1 else ()
        if len(bindings) % 2:
            raise expect.error(item, "(let [name value …] …)")
        made: list[Statement] = []
        for name, value in zip(bindings[::2], bindings[1::2], strict=True):
            statement = self._definition(expect.symbol(name), value)
            self.typing.note(statement)
            made.append(statement)
        return made

    def _definition(self, var: str, value: Form) -> Statement:
        options, items = _options(expect.call(value))
        match items:
            case [form.Symbol("load"), at]:
                access = self._access(at)
                data = tuple(map(_operand, _vector(options, "data")))
                axes = self._over(options, self.typing.over(data, more=access.axes()))
                return Load(var, access, data, axes, self._type(options, access.dtype, value))
            case [form.Symbol("position"), axis]:
                return Position(var, self._axis(axis))
            case [form.Symbol("symbol"), name]:
                return Symbol(var, expect.symbol(name))
            case [form.Symbol("reduce"), op, Vector() as reduced, a]:
                over, operand = self._axes(reduced), _operand(a)
                axes = self._over(options, self.typing.over((operand,), less=over))
                dtype = self._type(options, self.typing.type((operand,)), value)
                return Reduce(var, expect.symbol(op), over, operand, axes, dtype)
            case [form.Symbol("dot"), Vector() as reduced, a, b]:
                over, pair = self._axes(reduced), (_operand(a), _operand(b))
                axes = self._over(options, self.typing.over(pair, less=over))
                dtype = self._type(options, self.typing.type(pair), value)
                return Dot(var, over, *pair, axes, dtype)
            case [form.Symbol(op), *operands]:
                args = tuple(map(_operand, operands))
                axes = self._over(options, self.typing.over(args))
                return Map(var, op, args, axes, self._type(options, self.typing.mapped(op, args), value))
            case _:
                raise expect.error(value, "a value: (load …), (reduce …), (dot …) or an operator")

    def _loop(self, item: Form) -> Loop:
        options, items = _options(expect.call(item))
        if len(items) < 2:
            raise expect.error(item, "(for [axis …] …)")
        heads = [self._carry(c) for c in _vector(options, "carry")]
        self.typing.enter(heads)
        body, after = self.block(items[2:])
        if len(after) != len(heads):
            raise expect.error(item, f"(next …) with {len(heads)} values at the end of the loop")
        carries = tuple(
            Carry(c.op, c.previous, n, c.final, c.axes, c.dtype) for c, n in zip(heads, after, strict=True)
        )
        chunk = self._axis(options["chunk"]) if "chunk" in options else None
        reader = Reader({}, self.axes)
        guards = tuple(map(reader.term, _vector(options, "when")))
        return Loop(self._axes(items[1]), chunk, guards, carries, body)

    def _carry(self, item: Form) -> Carry:
        match expect.vector(item):
            case (previous, final, op, dtype, axes):
                before, after = expect.symbol(previous), expect.symbol(final)
                return Carry(expect.symbol(op), before, before, after, self._axes(axes), expect.dtype(dtype))
            case _:
                raise expect.error(item, "[name name-after operator dtype [axis …]]")

    def _store(self, item: Form) -> Store:
        options, items = _options(expect.call(item, "store"))
        if len(items) != 3:
            raise expect.error(item, "(store (buffer [index …]) value)")
        access = self._access(items[1])
        axes = self._over(options, self.typing.over((), more=access.axes()))
        return Store(access, _operand(items[2]), axes)

    def _access(self, at: Form) -> Access:
        items = expect.call(at)
        if len(items) != 2:
            return parse_access(at, self.axes)
        name = expect.symbol(items[0])
        known = self.buffers.get(name)
        if known is None:
            raise expect.error(items[0], "a buffer that the kernel declares")
        index = tuple(parse_index(i, self.axes) for i in expect.vector(items[1]))
        return Access(name, index, known.shape, known.dtype)

    def _over(self, options: dict[str, Form], derived: tuple[str, ...]) -> tuple[str, ...]:
        return self._axes(options["over"]) if "over" in options else derived

    def _type(self, options: dict[str, Form], derived: DType | None, at: Form) -> DType:
        if "as" in options:
            return expect.dtype(options["as"])
        if derived is None:
            raise expect.error(at, "`:as dtype`, because nothing in it has a type")
        return derived

    def _axes(self, item: Form) -> tuple[str, ...]:
        return tuple(map(self._axis, expect.vector(item)))

    def _axis(self, item: Form) -> str:
        name = expect.symbol(item)
        if name not in self.extents:
            raise expect.error(item, f"an axis ({' '.join(self.extents)})")
        return name


def _operand(item: Form) -> Operand:
    if isinstance(item, form.Symbol) and item.name not in ("inf", "-inf", "nan"):
        return item.name
    return float(expect.number(item))
