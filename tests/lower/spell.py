"""A builder with the spellings that a standard library would have, from primitives."""

from __future__ import annotations

from collections.abc import Sequence

from lumi.dim import DimRange, Extent
from lumi.dtype import F32, DType
from lumi.hlir.builder import Builder
from lumi.hlir.graph import Graph, Node
from lumi.hlir.op import BinaryKind, Monoid, UnaryKind

LOG2E = 1.4426950408889634

Value = Node | float | int


class Spell(Builder):
    """Numbers are lifted to the dtype of the other operand."""

    def __init__(self, **ranges: tuple[int, int]) -> None:
        super().__init__({k: DimRange(k, low, high, (low,)) for k, (low, high) in ranges.items()})
        self.updates: dict[str, Node] = {}

    def result(self, *nodes: Node, **named: Node) -> Graph:
        """The graph of the nodes, called o0, o1 … or by name, and of every state set."""
        outputs = {f"o{k}": n for k, n in enumerate(nodes)} | named
        return self.graph("test", outputs, self.updates)

    def set_state(self, key: str, value: Node) -> Node:
        """The new value of a state."""
        self.updates[key] = value
        return value

    # -- arithmetic

    def lift(self, x: Value, like: Node) -> Node:
        return x if isinstance(x, Node) else self.const(x, like.dtype)

    def two(self, kind: BinaryKind, a: Value, b: Value) -> Node:
        if isinstance(a, Node):
            return self.binary(kind, a, self.lift(b, a))
        assert isinstance(b, Node)
        return self.binary(kind, self.lift(a, b), b)

    def add(self, a: Value, b: Value) -> Node:
        return self.two(BinaryKind.ADD, a, b)

    def mul(self, a: Value, b: Value) -> Node:
        return self.two(BinaryKind.MUL, a, b)

    def sub(self, a: Value, b: Value) -> Node:
        return self.add(a, self.mul(b, -1))

    def mod(self, a: Value, b: Value) -> Node:
        return self.two(BinaryKind.MOD, a, b)

    def div(self, a: Value, b: Value) -> Node:
        """Integer division."""
        return self.two(BinaryKind.DIV, a, b)

    def less(self, a: Value, b: Value) -> Node:
        return self.two(BinaryKind.LESS, a, b)

    def both(self, a: Node, b: Node) -> Node:
        return self.mul(a, b)

    def one(self, name: str, x: Node) -> Node:
        return self.unary(UnaryKind(name), x)

    def exp2(self, x: Node) -> Node:
        return self.one("exp2", x)

    def recip(self, x: Node) -> Node:
        return self.one("recip", x)

    def over(self, a: Node, b: Node) -> Node:
        return self.mul(a, self.recip(b))

    def where(self, condition: Node, a: Value, b: Value) -> Node:
        a = a if isinstance(a, Node) else self.lift(a, b) if isinstance(b, Node) else self.const(a, F32)
        return self.select(condition, a, self.lift(b, a))

    def sum(self, x: Node, *axes: int, keep: bool = False) -> Node:
        return self.reduce(Monoid.SUM, x, axes, keep)

    def max(self, x: Node, *axes: int, keep: bool = False) -> Node:
        return self.reduce(Monoid.MAX, x, axes, keep)

    # -- compositions

    def einsum(self, a: Node, sa: str, b: Node, sb: str, so: str) -> Node:
        """The broadcast product, summed over the letters that are not in `so`."""
        letters = list(dict.fromkeys(so + sa + sb))

        def spread(x: Node, s: str) -> Node:
            order = [c for c in letters if c in s]
            x = self.permute(x, [s.index(c) for c in order])
            return self.reshape(x, [x.shape[order.index(c)] if c in s else 1 for c in letters])

        y = self.mul(spread(a, sa), spread(b, sb))
        return self.sum(y, *range(len(so), len(letters)))

    def concat(self, xs: Sequence[Node], axis: int) -> Node:
        """Pieces after each other along `axis`, chosen by position."""
        axis %= xs[0].type.rank
        total: Extent = 0
        for x in xs:
            total = total + x.shape[axis]
        at = self.reshape(self.iota(total), [total if k == axis else 1 for k in range(xs[0].type.rank)])
        low: Extent = 0
        out: Node | None = None
        for x in xs:
            piece = self.pad(x, axis, low, total - low - x.shape[axis])
            out = piece if out is None else self.where(self.less(at, self.symbol(low)), out, piece)
            low = low + x.shape[axis]
        assert out is not None
        return out

    def softmax(self, x: Node, *axes: int) -> Node:
        e = self.exp2(self.mul(self.sub(x, self.max(x, *axes, keep=True)), LOG2E))
        return self.over(e, self.sum(e, *axes, keep=True))

    def rms(self, x: Node, weight: Node | None = None, eps: float = 1e-6) -> Node:
        size = x.shape[-1]
        assert isinstance(size, int)
        mean = self.mul(self.sum(self.mul(x, x), -1, keep=True), 1 / size)
        y = self.mul(x, self.recip(self.one("sqrt", self.add(mean, eps))))
        return y if weight is None else self.mul(y, weight)

    def silu(self, x: Node) -> Node:
        return self.mul(x, self.recip(self.add(self.exp2(self.mul(x, -LOG2E)), 1.0)))

    def linear(self, x: Node, key: str, out: int, dtype: DType = F32) -> Node:
        """x [… k] · W[out k]ᵀ."""
        width = x.shape[-1]
        w = self.param(key, dtype, (out, width))
        w = self.cast(w, x.dtype)
        rank = x.type.rank
        letters = "abcdefg"[: rank - 1]
        return self.einsum(x, f"{letters}k", w, "nk", f"{letters}n")

    def causal(self, queries: Extent, keys: Extent, offset: Node | None = None) -> Node:
        """bool [queries keys]: whether key j is no later than query i (+ offset)."""
        i, j = self.reshape(self.iota(queries), (queries, 1)), self.reshape(self.iota(keys), (1, keys))
        i = i if offset is None else self.add(i, offset)
        return self.less(j, self.add(i, 1))
