"""Random typed graphs: their regions mean what the graphs mean."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lumi import dim
from lumi.dim import Extent
from lumi.dtype import BF16, BOOL, F16, F32, F64, I8, I32, I64, U8, DType
from lumi.hlir.graph import Node
from lumi.hlir.op import BinaryKind, Monoid, Row, UnaryKind
from tests.lower.check import check
from tests.lower.spell import Spell

SEQ = dim.var("seq")
LENGTH = 3
"""What `seq` is when a graph runs."""

SIZES: list[Extent] = [1, 2, 3, 4, 6, SEQ]
DTYPES = [F32, F32, F32, F64, F16, BF16, I8, U8, I32, I64, BOOL]
FLOATS = [d for d in DTYPES if d.is_float]
LARGEST = 400

Draw = Callable[[st.SearchStrategy], object]


class Graphs:
    """Grows a graph step by step.  Floats are kept small, so that no step makes infinities of noise."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.b = Spell(seq=(1, 9))
        self.nodes: list[Node] = []
        self.arrays: dict[str, np.ndarray] = {}
        self.states = 0

    def pick(self, options: object) -> object:
        return self.draw(st.sampled_from(list(options)))  # type: ignore[call-overload]

    def node(self, wanted: Callable[[Node], bool] = lambda _: True) -> Node:
        found = [n for n in self.nodes if wanted(n)]
        return self.draw(st.sampled_from(found)) if found else self.leaf()  # type: ignore[return-value]

    def size(self, shape: tuple[Extent, ...]) -> int:
        return math.prod(dim.value(z, {"seq": LENGTH}) for z in shape)

    # -- leaves

    def leaf(self, dtype: DType | None = None, shape: tuple[Extent, ...] | None = None) -> Node:
        dtype = dtype or self.pick(DTYPES)  # type: ignore[assignment]
        assert dtype is not None
        if shape is None:
            shape = tuple(self.draw(st.lists(st.sampled_from(SIZES), max_size=3)))  # type: ignore[arg-type]
        name = f"x{len(self.arrays)}"
        real = tuple(dim.value(z, {"seq": LENGTH}) for z in shape)
        rng = np.random.default_rng(len(self.arrays))
        if dtype.is_float:
            values = np.round(rng.standard_normal(real) * 4) / 4
        else:
            values = rng.integers(
                0 if dtype.kind in ("uint", "bool") else -5, 2 if dtype is BOOL else 6, real
            )
        self.arrays[name] = values.astype(dtype.numpy if not dtype.is_float else np.float64)
        symbolic = any(not isinstance(z, int) for z in shape)
        make = self.b.input if symbolic else self.pick([self.b.input, self.b.param])
        return make(name, dtype, shape)  # type: ignore[operator, no-any-return]

    # -- steps

    def step(self) -> None:
        steps = [self.unary, self.binary, self.contract, self.select, self.cast, self.reduce, self.scan]
        steps += [self.reshape, self.affine, self.gather, self.scatter, self.update, self.state, self.scoped]
        made = self.pick(steps)()  # type: ignore[operator]
        if made is not None and self.size(made.shape) <= LARGEST and made.type.rank <= 5:
            self.nodes.append(self.tame(made))

    def tame(self, x: Node) -> Node:
        """x / (1 + |x|)-like: floats stay within ±4 and integers within their bytes."""
        if not x.dtype.is_float:
            return x
        limit = self.b.const(4.0, x.dtype)
        over = self.b.less(limit, x)
        under = self.b.less(x, self.b.const(-4.0, x.dtype))
        return self.b.where(over, limit, self.b.where(under, self.b.const(-4.0, x.dtype), x))

    def scoped(self) -> Node | None:
        with self.b.scope(str(self.pick("abc"))):
            return self.pick([self.unary, self.binary, self.contract, self.reduce])()  # type: ignore[operator, no-any-return]

    def unary(self) -> Node:
        x = self.node(lambda n: n.dtype.is_float)
        if not x.dtype.is_float:
            x = self.b.cast(x, F32)
        kind = self.pick([UnaryKind.EXP2, UnaryKind.SIN, UnaryKind.FLOOR])
        return self.b.unary(kind, x)  # type: ignore[arg-type]

    def like(self, x: Node) -> Node:
        """A node that broadcasts with x."""
        same = self.node(lambda n: n.dtype == x.dtype and n.shape == x.shape)
        if same.dtype == x.dtype and same.shape == x.shape and self.draw(st.booleans()):
            return same
        rank = int(self.draw(st.integers(0, x.type.rank)))  # type: ignore[call-overload]
        shape = tuple(self.pick([z, 1]) for z in x.shape[x.type.rank - rank :])
        return self.leaf(x.dtype, shape)  # type: ignore[arg-type]

    def binary(self) -> Node:
        x = self.node()
        kinds = [BinaryKind.ADD, BinaryKind.MUL, BinaryKind.LESS]
        if not x.dtype.is_float and x.dtype is not BOOL:
            kinds += [BinaryKind.MOD, BinaryKind.DIV, BinaryKind.REM]
        kind = self.pick(kinds)
        a, c = self.draw(st.permutations([x, self.like(x)]))  # type: ignore[misc]
        if kind is BinaryKind.ADD and x.dtype.is_float and self.draw(st.booleans()):
            return self.b.sub(a, c)
        return self.b.binary(kind, a, c)  # type: ignore[arg-type]

    def contract(self) -> Node:
        x = self.node(lambda n: n.dtype in (F32, F64) and n.type.rank > 0)
        if not x.dtype.is_float or not x.shape:
            x = self.leaf(F32, (2, 3))
        w = self.leaf(x.dtype, (self.pick([2, 3]), x.shape[-1]))  # type: ignore[arg-type]
        letters = "abcd"[: x.type.rank - 1]
        return self.b.einsum(x, f"{letters}k", w, "nk", f"{letters}n")

    def select(self) -> Node:
        x = self.node()
        condition = self.node(lambda n: n.dtype is BOOL and n.shape == x.shape)
        if condition.dtype is not BOOL or condition.shape != x.shape:
            condition = self.leaf(BOOL, x.shape)
        return self.b.select(condition, x, self.like(x))

    def cast(self) -> Node:
        return self.b.cast(self.node(), self.pick(DTYPES))  # type: ignore[arg-type]

    def reduce(self) -> Node | None:
        x = self.node(lambda n: n.dtype is not BOOL and n.type.rank > 0)
        if x.dtype is BOOL or not x.shape:
            return None
        axes = self.draw(st.sets(st.integers(0, x.type.rank - 1), min_size=1))
        kind = self.pick([Monoid.SUM, Monoid.MAX])
        return self.b.reduce(kind, x, sorted(axes), bool(self.draw(st.booleans())))  # type: ignore[arg-type, call-overload]

    def scan(self) -> Node | None:
        x = self.node(lambda n: n.dtype is not BOOL and n.type.rank > 0)
        if x.dtype is BOOL or not x.shape:
            return None
        axis = self.draw(st.integers(0, x.type.rank - 1))
        return self.b.scan(self.pick([Monoid.SUM, Monoid.MAX]), x, axis)  # type: ignore[arg-type]

    def reshape(self) -> Node:
        x = self.node()
        fixed = math.prod(z for z in x.shape if isinstance(z, int))
        symbolic = [z for z in x.shape if not isinstance(z, int)]
        new: list[Extent] = []
        while fixed > 1:
            factor = self.pick([f for f in range(2, fixed + 1) if fixed % f == 0])
            new.append(factor)  # type: ignore[arg-type]
            fixed //= factor  # type: ignore[operator]
        for z in symbolic:
            new.insert(int(self.draw(st.integers(0, len(new)))), z)  # type: ignore[call-overload]
        if len(new) > 1 and self.draw(st.booleans()):
            new[:2] = [new[0] * new[1]]
        if self.draw(st.booleans()):
            new.insert(0, 1)
        return self.b.reshape(x, new)

    def affine(self) -> Node | None:
        x = self.node(lambda n: n.type.rank > 0)
        if not x.shape:
            return None
        axis = int(self.draw(st.integers(0, x.type.rank - 1)))  # type: ignore[call-overload]
        size = x.shape[axis]
        fill: float | bool = False if x.dtype is BOOL else 2
        choices: list[Callable[[], Node]] = [
            lambda: self.b.permute(x, self.draw(st.permutations(range(x.type.rank)))),  # type: ignore[arg-type]
            lambda: self.b.flip(x, axis),
            lambda: self.b.pad(x, axis, 1, 2, fill),
            lambda: self.b.expand(x, (2, *x.shape)),
        ]
        if isinstance(size, int) and size > 1:
            choices += [
                lambda: self.b.slice(x, axis, 1, size),
                lambda: self.b.slice(x, axis, 0, size, 2),
                lambda: self.b.windows(x, axis, 2),
            ]
        if not isinstance(size, int):
            choices.append(lambda: self.b.slice(x, axis, size - 1, size))
        if x.type.rank > 1 and x.shape[0] == x.shape[1]:
            diagonal = [Row(((0, 1),)), Row(((0, 1),)), *(Row(((k - 1, 1),)) for k in range(2, x.type.rank))]
            choices.append(lambda: self.b.view(x, diagonal, x.shape[1:]))
        return self.pick(choices)()  # type: ignore[operator, no-any-return]

    def index(self, size: int, shape: tuple[Extent, ...]) -> Node:
        """Indices below `size` of a shape: given, or made from positions."""
        if len(shape) == 1 and self.draw(st.booleans()):
            return self.b.mod(self.b.add(self.b.iota(shape[0]), 1), size)
        raw = self.leaf(self.pick([I32, I64, U8]), shape)  # type: ignore[arg-type]
        return self.b.mod(raw, size)

    def gather(self) -> Node | None:
        x = self.node(lambda n: any(isinstance(z, int) for z in n.shape))
        places = [k for k, z in enumerate(x.shape) if isinstance(z, int)]
        if not places:
            return None
        axis = int(self.pick(places))  # type: ignore[call-overload]
        size = x.shape[axis]
        assert isinstance(size, int)
        shape = tuple(self.draw(st.lists(st.sampled_from([2, 3, SEQ]), min_size=1, max_size=2)))  # type: ignore[arg-type]
        return self.b.gather(x, self.index(size, shape), axis)

    def scatter(self) -> Node | None:
        x = self.node(lambda n: any(isinstance(z, int) for z in n.shape))
        places = [k for k, z in enumerate(x.shape) if isinstance(z, int)]
        if not places:
            return None
        axis = int(self.pick(places))  # type: ignore[call-overload]
        size, count = x.shape[axis], self.pick([2, 3, SEQ])
        assert isinstance(size, int)
        updates = self.leaf(x.dtype, (*x.shape[:axis], count, *x.shape[axis + 1 :]))  # type: ignore[arg-type]
        return self.b.scatter(x, self.index(size, (count,)), updates, axis)  # type: ignore[arg-type]

    def update(self) -> Node | None:
        x = self.node(lambda n: any(isinstance(z, int) and z > 1 for z in n.shape))
        places = [k for k, z in enumerate(x.shape) if isinstance(z, int) and z > 1]
        if not places:
            return None
        axis = int(self.pick(places))  # type: ignore[call-overload]
        part = self.leaf(x.dtype, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
        return self.b.update(x, part, axis, self.pick([0, 1]))  # type: ignore[arg-type]

    def state(self) -> Node:
        """A state, written in part; one of its versions."""
        width = int(self.pick([2, 3]))  # type: ignore[call-overload]
        key = f"s{self.states}"
        self.states += 1
        old = self.b.state(key, F32, (6, width))
        self.arrays[key] = np.random.default_rng(self.states).standard_normal((6, width))
        part = self.leaf(F32, (SEQ, width))
        if self.draw(st.booleans()):
            part = self.b.mul(part, self.b.sum(old, 0, keep=True))
        new = self.b.set_state(key, self.b.update(old, part, 0, self.pick([0, 2])))  # type: ignore[arg-type]
        return self.pick([old, new])  # type: ignore[return-value]


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_regions_of_random_graphs_equal_the_reference(data: st.DataObject) -> None:
    graphs = Graphs(data.draw)
    graphs.nodes.append(graphs.leaf())
    for _ in range(data.draw(st.integers(2, 12))):
        graphs.step()
    outputs = graphs.nodes[-3:]
    check(graphs.b.result(*outputs), graphs.arrays, {"seq": LENGTH}, tolerance=1e-9)
