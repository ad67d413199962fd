"""Kernels that are matrix products in every layout, and numpy in the place of a library's call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lumi import dim
from lumi.dim import Extent
from lumi.dtype import BF16, F32, DType
from lumi.field.access import Access
from lumi.field.index import index, of_axis
from lumi.llir.arithmetic import from_memory, to_memory
from lumi.llir.epilogue import Function
from lumi.llir.kernel import Carry, Dot, Kernel, Load, Loop, Map, Operand, Statement, Store, accesses
from lumi.llir.product import Product, Tensor

Array = np.ndarray

EPILOGUES = (
    "plain",
    "scaled",
    "residual",
    "scaled residual",
    "subtracted",
    "bias",
    "bias and residual",
    "relu",
    "greater of 0",
    "bias and relu",
    "rows bias",
)


@dataclass(frozen=True)
class Spec:
    """A product: the letters of each tensor's dimensions, among those of `extents`, and its types.

    `before` elements of a wider buffer lie before those of each row of a tensor, `after` behind them.
    """

    extents: Mapping[str, Extent]
    a: str = "mk"
    b: str = "nk"
    out: str = "mn"
    dtype: DType = F32
    total: DType = F32
    stored: DType = F32
    epilogue: str = "plain"
    loop: bool = True
    gaps: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def access(self, buffer: str, letters: str, dtype: DType) -> Access:
        before, after = self.gaps.get(buffer, (0, 0))
        shape = [self.extents[x] for x in letters]
        shape[-1] = shape[-1] + before + after
        last = index([(letters[-1], 1)], before)
        return Access(buffer, (*map(of_axis, letters[:-1]), last), tuple(shape), dtype)

    @property
    def kernel(self) -> Kernel:
        return _Builder(self).kernel()


class _Builder:
    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.rows = [x for x in spec.out if x in spec.a and x not in spec.b]
        self.axes = tuple(x for x in spec.extents if x in spec.out)
        self.over = tuple(x for x in spec.extents if x in spec.a and x in spec.b and x not in spec.out)
        self.made: list[Statement] = []

    def kernel(self) -> Kernel:
        spec = self.spec
        body = [*self.load("A", spec.a, spec.dtype, "a"), *self.load("B", spec.b, spec.dtype, "b")]
        dot = Dot("p", self.over, "a", "b", self.axes, spec.total)
        result = "p"
        if spec.loop:
            add = Map("next", "add", ("previous", "p"), self.axes, spec.total)
            carry = Carry("sum", "previous", "next", "final", self.axes, spec.total)
            self.made = [Loop(self.over, None, (), (carry,), (*body, dot, add))]
            result = "final"
        else:
            self.made = [*body, dot]
        value = self.epilogue(result)
        self.made.append(Store(spec.access("R", spec.out, spec.stored), value, self.axes))
        resident = () if spec.loop else self.over
        tiles = {x: 2 for x in spec.extents if x not in resident}
        return Kernel(dict(spec.extents), self.axes, resident, tiles, tuple(self.made))

    def load(self, buffer: str, letters: str, dtype: DType, name: str) -> list[Statement]:
        axes = tuple(x for x in self.spec.extents if x in letters)
        load = Load(name, self.spec.access(buffer, letters, dtype), (), axes, dtype)
        if dtype == self.spec.total:
            return [load]
        held = Load(f"{name}_", load.access, (), axes, dtype)
        return [held, Map(name, f"cast.{self.spec.total}", (held.var,), axes, self.spec.total)]

    def map(self, op: str, *args: Operand) -> str:
        name = f"e{len(self.made)}"
        self.made.append(Map(name, op, args, self.axes, self.spec.total))
        return name

    def epilogue(self, result: str) -> Operand:
        words, value = self.spec.epilogue.split(), result
        if words[0] == "scaled":
            value = self.map("mul", value, 0.5)
        if "residual" in words or "subtracted" in words:
            self.made += self.load("C", self.spec.out, self.spec.stored, "c")
            added = self.map("mul", -3.0, "c") if words[0] == "scaled" else "c"
            value = self.map("sub" if "subtracted" in words else "add", value, added)
        if "bias" in words:
            along = [x for x in self.spec.out if (x in self.rows) == ("rows" in words)]
            own = "".join(x for x in along if x not in self.spec.a or x not in self.spec.b)
            self.made += self.load("D", own, self.spec.stored, "d")
            value = self.map("add", "d", value)
        if words[0] == "greater":
            value = self.map("max", value, 0.0)
        elif "relu" in words:
            value = self.map("sel", self.map("lt", value, 0.0), 0.0, value)
        return value


def mixed(spec: Spec, wide: str) -> Kernel:
    """The product with one of its f32 factors held as bf16."""
    kernel = spec.kernel
    narrow = {"a": "b", "b": "a"}[wide]
    loop = kernel.body[0]
    assert isinstance(loop, Loop)
    body = tuple(
        replace(s, access=replace(s.access, dtype=BF16)) if isinstance(s, Load) and s.var == narrow else s
        for s in loop.body
    )
    return replace(kernel, body=(replace(loop, body=body), *kernel.body[1:]))


def memory(kernel: Kernel, values: Mapping[str, int], seed: int) -> dict[str, Array]:
    """Raw memory of small whole numbers, whose products and sums every type of a sum holds exactly."""
    generator = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for one, _ in accesses(kernel):
        shape = tuple(dim.value(e, values) for e in one.shape)
        drawn = generator.integers(-4, 4, shape, endpoint=True).astype(np.float32)
        found.setdefault(one.buffer, to_memory(drawn, one.dtype))
    return found


def compute(found: Product, arrays: Mapping[str, Array], values: Mapping[str, int]) -> None:
    """What a library computes that is asked for a product, in numpy, in place."""
    sides = (*found.batch, found.rows, found.columns, found.inner)

    def view(tensor: Tensor, steps: Sequence[Extent]) -> Array:
        raw = arrays[tensor.buffer].reshape(-1)[dim.value(tensor.offset, values) :]
        sizes = [1 if step == 0 else dim.value(s.size, values) for s, step in zip(sides, steps, strict=True)]
        strides = [dim.value(step, values) * raw.itemsize for step in steps]
        return np.lib.stride_tricks.as_strided(raw, sizes, strides)

    def wide(tensor: Tensor, steps: Sequence[Extent]) -> Array:
        return from_memory(view(tensor, steps), tensor.dtype).astype(np.float64)

    sums = (wide(found.a, [s.a for s in sides]) * wide(found.b, [s.b for s in sides])).sum(-1, keepdims=True)
    result = found.alpha * sums
    if found.residual is not None:
        result = result + found.beta * wide(found.residual, [s.residual for s in sides])
    if found.bias is not None:
        result = result + wide(found.bias, [s.bias for s in sides])
    if found.function is Function.RELU:
        result = np.maximum(result, 0)
    target = view(found.out, [s.out for s in sides])
    target[...] = to_memory(np.broadcast_to(result, target.shape).astype(np.float32), found.out.dtype)
