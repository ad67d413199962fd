"""Kernels as text: s-expressions that the reader takes back.

```lisp
(kernel
  :buffers [(B0 [7 64] f32) (B1 [64] f32)]
  :axes [(i 7) (k 64)]
  :grid [(i 1)]
  :tiles [(k 16)]
  (for [k] :carry [[v1 v5 sum f32 [i]]]
    (let [v2 (load (B0 [i k]))
          v3 (reduce sum [k] v2)
          v4 (add v1 v3)]
      (next v4)))
  (store (B1 [i]) v5))
```
A grid axis stands with its tile size, `:resident` axes are held whole.  A value is over the axes of what
it is made of and of their type, unless `:over` or `:as` say otherwise.  `:carry` gives the name of an
accumulator inside the loop and after it, its operator, type and axes; `next` what it becomes.  `:when`
are guards, `:chunk` the axis that numbers chunks.  `parse(show(k)) == k`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lumi.dtype import BOOL, DTYPES, I32, DType
from lumi.field.access import Access
from lumi.field.term import Bin, Const, In, Pos, Sel, Term, Un
from lumi.field.text import show_access, show_index
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
    Statement,
    Step,
    Store,
    Symbol,
    accesses,
)

TRUTH = frozenset({"lt", "le", "eq", "and", "or", "not"})
"""Operators that yield bool."""

Definition = Load | Position | Symbol | Map | Reduce | Dot


@dataclass(slots=True)
class Typing:
    """The axes and types that values have when nothing else is said; fills up as values are met."""

    order: Mapping[str, int]
    axes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    dtypes: dict[str, DType] = field(default_factory=dict)

    def note(self, statement: Statement) -> None:
        """Remember what a statement defines before the statements that follow."""
        match statement:
            case Position(var, axis):
                self.axes[var], self.dtypes[var] = (axis,), I32
            case Symbol(var, _):
                self.axes[var], self.dtypes[var] = (), I32
            case Load(var, _, _, axes, dtype) | Map(var, _, _, axes, dtype):
                self.axes[var], self.dtypes[var] = axes, dtype
            case Reduce(var, _, _, _, axes, dtype) | Dot(var, _, _, _, axes, dtype):
                self.axes[var], self.dtypes[var] = axes, dtype
            case Loop(_, _, _, carries, _):
                for carry in carries:
                    self.axes[carry.final], self.dtypes[carry.final] = carry.axes, carry.dtype
            case Store():
                pass

    def enter(self, carries: Iterable[Carry]) -> None:
        """Remember the accumulators of a loop before its body."""
        for carry in carries:
            self.axes[carry.previous], self.dtypes[carry.previous] = carry.axes, carry.dtype

    def over(
        self, operands: Iterable[Operand], more: Iterable[str] = (), less: Iterable[str] = ()
    ) -> tuple[str, ...]:
        """The axes of the operands in the kernel's order, with `more` and without `less`."""
        found = {a for o in operands if isinstance(o, str) for a in self.axes.get(o, ())}
        return tuple(sorted((found | set(more)) - set(less), key=self.order.__getitem__))

    def type(self, operands: Iterable[Operand]) -> DType | None:
        """The type of the first operand that has one."""
        return next((self.dtypes[o] for o in operands if isinstance(o, str) and o in self.dtypes), None)

    def mapped(self, op: str, args: Sequence[Operand]) -> DType | None:
        """The type an elementwise operator yields."""
        if op in TRUTH:
            return BOOL
        if "." in op:
            return DTYPES.get(op.split(".", 1)[1])
        return self.type(args[1:] if op == "sel" else args)


# -- printing


def show(kernel: Kernel) -> str:
    """The kernel as text."""
    return "\n".join(_Printer(kernel).lines())


def show_step(step: Step) -> str:
    """The kernels of a step as text, one after the other."""
    return "\n".join(map(show, step.kernels))


def show_graph(graph: KernelGraph) -> str:
    """The kernels of a graph with their schedules, and the temporaries between them."""
    lines = ["(kernels"]
    for name, temporary in graph.temporaries.items():
        lines.append(f"  (temporary {name} {_shape(temporary.shape)} {temporary.dtype})")
    for step in graph.steps:
        lines += [f"  {line}" for line in _step("step", step)]
    return "\n".join(lines) + ")"


def _step(head: str, step: Step) -> Iterator[str]:
    first, *others = step.turns
    options = "".join(f" [{n} {v}]" for n, v in step.schedule.options)
    lines = [line for k in first.kernels for line in show(k).split("\n")]
    lines += [line for turn in others for line in _step("then", turn)]
    yield f"({head} ({step.schedule.template}{options})"
    yield from (f"  {line}" for line in lines[:-1])
    yield f"  {lines[-1]})"


def _shape(extents: Iterable[object]) -> str:
    return f"[{' '.join(map(str, extents))}]"


def _operand(operand: Operand) -> str:
    return operand if isinstance(operand, str) else repr(operand)


class _Printer:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.typing = Typing({a: k for k, a in enumerate(kernel.axes)})
        self.buffers: dict[str, Access] = {}
        for access, _ in accesses(kernel):
            self.buffers.setdefault(access.buffer, access)

    def lines(self) -> Iterator[str]:
        kernel, tiles = self.kernel, self.kernel.tiles
        buffers = [f"({n} {_shape(a.shape)} {a.dtype})" for n, a in self.buffers.items()]
        rest = [f"({a} {t})" for a, t in tiles.items() if a not in kernel.grid]
        yield "(kernel"
        yield f"  :buffers [{' '.join(buffers)}]"
        yield f"  :axes [{' '.join(f'({a} {e})' for a, e in kernel.axes.items())}]"
        yield f"  :grid [{' '.join(f'({a} {tiles[a]})' if a in tiles else a for a in kernel.grid)}]"
        if kernel.resident:
            yield f"  :resident {_shape(kernel.resident)}"
        if rest:
            yield f"  :tiles [{' '.join(rest)}]"
        body = list(self._block(kernel.body, "  "))
        yield from _closed(body)

    def _block(self, body: Sequence[Statement], indent: str, tail: str = "") -> Iterator[str]:
        """The statements of a block: each run of definitions is a `let` around all that follows."""
        place = 0
        while place < len(body):
            statement = body[place]
            if isinstance(statement, Definition):
                stop = place
                bindings = []
                while stop < len(body) and isinstance(definition := body[stop], Definition):
                    bindings.append(f"{definition.var} {self._definition(definition)}")
                    self.typing.note(definition)
                    stop += 1
                yield f"{indent}(let [" + f"\n{indent}      ".join(bindings) + "]"
                yield from _closed(list(self._block(body[stop:], indent + "  ", tail)))
                return
            if isinstance(statement, Loop):
                yield from self._loop(statement, indent)
            else:
                yield f"{indent}{self._store(statement)}"
            self.typing.note(statement)
            place += 1
        if tail:
            yield f"{indent}{tail}"

    def _loop(self, loop: Loop, indent: str) -> Iterator[str]:
        self.typing.enter(loop.carries)
        head = f"{indent}(for {_shape(loop.axes)}"
        if loop.chunk is not None:
            head += f" :chunk {loop.chunk}"
        if loop.guards:
            head += f" :when [{' '.join(map(_term, loop.guards))}]"
        carries = [f"[{c.previous} {c.final} {c.op} {c.dtype} {_shape(c.axes)}]" for c in loop.carries]
        if carries:
            head += f"\n{indent}    :carry [" + f"\n{indent}            ".join(carries) + "]"
        yield head
        tail = f"(next {' '.join(c.next for c in loop.carries)})" if carries else ""
        yield from _closed(list(self._block(loop.body, indent + "  ", tail)))

    def _definition(self, statement: Definition) -> str:
        typing = self.typing
        match statement:
            case Load(_, access, data, axes, dtype):
                fields = f" :data [{' '.join(map(_operand, data))}]" if data else ""
                return f"(load {self._access(access)}{fields}{self._load_type(access, data, axes, dtype)})"
            case Position(_, axis):
                return f"(position {axis})"
            case Symbol(_, name):
                return f"(symbol {name})"
            case Map(_, op, args, axes, dtype):
                said = _said(axes, typing.over(args), dtype, typing.mapped(op, args))
                return f"({op} {' '.join(map(_operand, args))}{said})"
            case Reduce(_, op, over, value, axes, dtype):
                said = _said(axes, typing.over((value,), less=over), dtype, typing.type((value,)))
                return f"(reduce {op} {_shape(over)} {_operand(value)}{said})"
            case Dot(_, over, a, b, axes, dtype):
                said = _said(axes, typing.over((a, b), less=over), dtype, typing.type((a, b)))
                return f"(dot {_shape(over)} {_operand(a)} {_operand(b)}{said})"

    def _load_type(
        self, access: Access, data: tuple[Operand, ...], axes: tuple[str, ...], dtype: DType
    ) -> str:
        return _said(axes, self.typing.over(data, more=access.axes()), dtype, access.dtype)

    def _store(self, statement: Store) -> str:
        axes = self.typing.over((), more=statement.access.axes())
        said = _said(statement.axes, axes, None, None)
        return f"(store {self._access(statement.access)} {_operand(statement.value)}{said})"

    def _access(self, access: Access) -> str:
        first = self.buffers[access.buffer]
        if access.clamp or (access.shape, access.dtype) != (first.shape, first.dtype):
            return show_access(access)
        return f"({access.buffer} [{' '.join(map(show_index, access.index))}])"


def _closed(lines: list[str]) -> list[str]:
    """The lines of a form's end, with its bracket closed."""
    return [*lines[:-1], lines[-1] + ")"] if lines else [")"]


def _said(
    axes: tuple[str, ...], derived: tuple[str, ...], dtype: DType | None, expected: DType | None
) -> str:
    over = f" :over {_shape(axes)}" if axes != derived else ""
    return over + (f" :as {dtype}" if dtype != expected else "")


def _term(term: Term) -> str:
    """A guard: a term over positions and dims."""
    match term:
        case Const(value):
            return repr(value)
        case Pos(axis):
            return f"(position {axis})"
        case In(name, (), _):
            return name
        case Un(op, a):
            return f"({op} {_term(a)})"
        case Bin(op, a, b):
            return f"({op} {_term(a)} {_term(b)})"
        case Sel(c, a, b):
            return f"(select {_term(c)} {_term(a)} {_term(b)})"
        case _:
            raise ValueError(f"a guard reads no buffer: {term}")
