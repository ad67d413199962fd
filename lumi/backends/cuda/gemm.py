"""Kernels that cuBLASLt computes: which they are, and the call for given dims and addresses.

A kernel in rows is a call in columns with its factors swapped: `outᵀ = bᵀ · aᵀ`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lumi import dim
from lumi.backends.cuda.cublas import BIAS, RELU, Algorithm, Library, Matmul, Matrix, Pointers
from lumi.backends.cuda.split import PARTS, Split
from lumi.backends.cuda.tf32 import TF32, is_tf32
from lumi.dim import Dim, Extent
from lumi.dtype import BF16, F32, F64, DType
from lumi.llir import product
from lumi.llir.epilogue import Function
from lumi.llir.kernel import Kernel, Schedule, Step, buffers
from lumi.llir.product import Product, Side, Tensor

TEMPLATE = "cublaslt"
"""Schedules: none of its numbers says to take the library's favourite algorithm, `rank` the one at that
place of its proposals or the last, `algorithm` the one of that name, or the favourite where there is none.
With `tf32` it rounds factors of f32 to TF32."""

SCHEDULES = (Schedule(TEMPLATE), *(Schedule(TEMPLATE, (("rank", n),)) for n in range(1, 6)))

NONE = Side(1, 0, 0, 0)
"""The batch of a product that has none."""


def find(kernel: Kernel) -> Product | None:
    """The product that a kernel is, when one call of cuBLASLt computes it, call after call.

    Addresses and sizes are part of a captured graph.  A place in a buffer that depends on dims, or a
    length that adds them up, grows from step to step, and would take a new graph each time.
    """
    found = product.find(kernel)
    if found is None or len(found.batch) > 1 or any(isinstance(t.offset, Dim) for t in found.tensors):
        return None
    found = found.row_major()
    if found is None or any(isinstance(e, Dim) and len(e.terms) > 1 for e in found.extents):
        return None
    return found if _has_epilogue(found) else None


def _has_epilogue(found: Product) -> bool:
    """Whether the library has the epilogue: a bias lies along the rows of a result of f32 sums."""
    extra = found.bias is not None or found.function is not Function.IDENTITY
    if found.bias is not None and (found.rows.bias, found.columns.bias) != (0, 1):
        return False
    if found.dtype not in (F32, F64):
        return found.is_plain
    return found.dtype == F32 or not extra


def schedules(found: Product, tf32: bool) -> tuple[Schedule, ...]:
    """The schedules of a product; those in TF32 come first, if it is one of f32.

    They are among them with `tf32`, and where both factors are rounded so anyway.
    """
    if not (is_f32(found) and (tf32 or all(found.rounded))):
        return SCHEDULES
    return (*(Schedule(TEMPLATE, (*s.options, TF32)) for s in SCHEDULES), *SCHEDULES)


def is_f32(found: Product) -> bool:
    """Whether both factors are f32."""
    return found.a.dtype == found.b.dtype == F32


def by(algorithm: int, schedule: Schedule) -> Schedule:
    """The schedule with the algorithm of that name."""
    precision = (TF32,) if is_tf32(schedule) else ()
    return Schedule(TEMPLATE, (("algorithm", algorithm), *precision))


@dataclass(frozen=True, slots=True)
class Part:
    """One call of the library."""

    matmul: Matmul
    pointers: Pointers
    algorithm: Algorithm


@dataclass(frozen=True, slots=True)
class Ready:
    """Calls with everything they need: one, or one for each part of a factor that is split before."""

    parts: tuple[Part, ...]
    split: Split | None = None
    place: int = 0

    @property
    def algorithm(self) -> int:
        """The name of the last call's algorithm."""
        return self.parts[-1].algorithm.name

    def put(self, library: Library) -> None:
        """Put them on the stream."""
        if self.split is not None:
            library.splitter.put(self.split, self.place)
        for part in self.parts:
            library.put(part.matmul, part.pointers, part.algorithm)


@dataclass(frozen=True, slots=True)
class Call:
    """A kernel as a call: `names` are its buffers in order."""

    product: Product
    schedule: Schedule
    names: tuple[str, ...]

    @property
    def dims(self) -> frozenset[str]:
        """The dims that change the call."""
        return frozenset().union(*(e.names() for e in self.product.extents if isinstance(e, Dim)))

    def ready(self, library: Library, values: Mapping[str, int], addresses: Sequence[int]) -> Ready | None:
        """The call at these dims and addresses; None when the library cannot compute it."""
        found, pointers, split, place = self.product, self._pointers(values, addresses), None, 0
        if is_mixed(found):
            split = _split(found, values, pointers)
            found = _divided(found, split)
        matmul = describe(found, values, is_tf32(self.schedule))
        if matmul is None:
            return None
        calls = [(matmul, pointers)]
        if split is not None:
            place = library.splitter.room(self.room(values))
            places = [place + 2 * split.part * n for n in range(PARTS)]
            calls = _in_parts(matmul, pointers, places, is_second=self.product.a.dtype == F32)
        parts = []
        for one, at in calls:
            algorithm = _choose(library.algorithms(one, at), self.schedule)
            if algorithm is None:
                return None
            parts.append(Part(one, at, algorithm))
        return Ready(tuple(parts), split, place)

    def room(self, values: Mapping[str, int]) -> int:
        """Bytes that the parts of its f32 factor take at these dims."""
        if not is_mixed(self.product):
            return 0
        return 2 * PARTS * _split(self.product, values, Pointers(0, 0, 0, 0, 0)).part

    def _pointers(self, values: Mapping[str, int], addresses: Sequence[int]) -> Pointers:
        def address(tensor: Tensor) -> int:
            place = dim.value(tensor.offset, values) * tensor.dtype.size
            return addresses[self.names.index(tensor.buffer)] + place

        p = self.product
        out = address(p.out)
        residual = out if p.residual is None else address(p.residual)
        return Pointers(address(p.b), address(p.a), residual, out, address(p.bias) if p.bias else 0)


def call(step: Step) -> Call | None:
    """The call that a step's schedule asks for; None for every other schedule.

    Raises `ValueError` when cuBLASLt does not compute such kernels.
    """
    if step.schedule.template != TEMPLATE:
        return None
    found = find(step.kernel)
    if found is None:
        raise ValueError("a kernel that is no matrix product is scheduled as one")
    if is_tf32(step.schedule) and not is_f32(found):
        raise ValueError(f"a product of {found.a.dtype} by {found.b.dtype} is scheduled in TF32")
    return Call(found, step.schedule, buffers(step.kernel))


def is_mixed(found: Product) -> bool:
    """Whether one factor is f32 and the other bf16."""
    return found.a.dtype != found.b.dtype


def _split(found: Product, values: Mapping[str, int], pointers: Pointers) -> Split:
    """The splitting of the f32 factor."""
    batch = found.batch[0] if found.batch else NONE
    if found.a.dtype == F32:
        address, outer, steps = pointers.b, found.rows, (batch.a, found.rows.a, found.inner.a)
    else:
        address, outer, steps = pointers.a, found.columns, (batch.b, found.columns.b, found.inner.b)
    first, second, third = (dim.value(step, values) for step in steps)
    count, rows, columns = (dim.value(side.size, values) for side in (batch, outer, found.inner))
    return Split(address, count if first else 1, rows, columns, (first, second, third))


def _divided(found: Product, split: Split) -> Product:
    """The product with one part of its f32 factor, in dense rows, in that factor's place."""
    step = split.rows * split.row if split.steps[0] else 0
    if found.a.dtype == F32:
        batch = tuple(replace(side, a=step) for side in found.batch)
        rows, inner = replace(found.rows, a=split.row), replace(found.inner, a=1)
        return replace(found, a=replace(found.a, dtype=BF16), batch=batch, rows=rows, inner=inner)
    batch = tuple(replace(side, b=step) for side in found.batch)
    columns, inner = replace(found.columns, b=split.row), replace(found.inner, b=1)
    return replace(found, b=replace(found.b, dtype=BF16), batch=batch, columns=columns, inner=inner)


def _in_parts(
    matmul: Matmul, pointers: Pointers, places: Sequence[int], is_second: bool
) -> list[tuple[Matmul, Pointers]]:
    """The calls that add up the products of the parts, the lowest first, in the result.

    The first takes in the residual, the last does what is done to the whole sum.  The parts are the
    library's second factor, or its first.
    """
    at = [replace(pointers, b=p) if is_second else replace(pointers, a=p) for p in places]
    plain = replace(matmul, epilogue=0, bias_stride=0)
    calls = [(plain, replace(at[0], bias=0))]
    for one in at[1:-1]:
        calls.append((replace(plain, c=matmul.d, beta=1.0), replace(one, c=one.d, bias=0)))
    return [*calls, (replace(matmul, c=matmul.d, beta=1.0), replace(at[-1], c=at[-1].d))]


def _choose(proposed: Sequence[Algorithm], schedule: Schedule) -> Algorithm | None:
    options = dict(schedule.options)
    place = min(options.get("rank", 0), len(proposed) - 1)
    named = [a for a in proposed if a.name == options.get("algorithm")]
    return next(iter(named or proposed[max(place, 0) :]), None)


def describe(found: Product, values: Mapping[str, int], tf32: bool = False) -> Matmul | None:
    """The call for a product in rows; None where it has no elements or sums nothing."""

    def number(extent: Extent) -> int:
        return dim.value(extent, values)

    batch = found.batch[0] if found.batch else NONE
    m, n, k = (number(s.size) for s in (found.rows, found.columns, found.inner))
    count = number(batch.size)
    if not m * n * k * count:
        return None
    a, transpose_a = _matrix(found.b.dtype, (n, number(found.columns.b)), (k, number(found.inner.b)))
    b, transpose_b = _matrix(found.a.dtype, (k, number(found.inner.a)), (m, number(found.rows.a)))
    d, _ = _matrix(found.out.dtype, (n, 1), (m, number(found.rows.out)))
    c, strides = d, [number(x) for x in (batch.b, batch.a, batch.out, batch.out)]
    if found.residual is not None:
        c, _ = _matrix(found.residual.dtype, (n, 1), (m, number(found.rows.residual)))
        strides[2] = number(batch.residual)
    if count > 1:
        a, b, c, d = (
            Matrix(x.dtype, x.rows, x.columns, x.ld, s) for x, s in zip((a, b, c, d), strides, strict=True)
        )
    return Matmul(
        *(a, b, c, d, transpose_a, transpose_b, count, found.dtype, found.alpha, found.beta),
        epilogue=(BIAS if found.bias else 0) | (RELU if found.function is Function.RELU else 0),
        bias_stride=number(batch.bias) if count > 1 else 0,
        tf32=tf32,
    )


def _matrix(dtype: DType, down: tuple[int, int], along: tuple[int, int]) -> tuple[Matrix, bool]:
    """A matrix of (size, step) down its columns and along its rows, and whether it is held transposed.

    A step along a side of one element means nothing, so any leading dimension will do there.
    """
    (rows, step), (columns, stride) = down, along
    if (step == 1 or rows == 1) and (stride >= rows or columns == 1):
        return Matrix(dtype, rows, columns, max(stride, rows)), False
    return Matrix(dtype, columns, rows, max(step, columns)), True


def text(step: Step, name: str) -> str:
    """What a step asks of the library, for reading."""
    found = find(step.kernel)
    assert found is not None
    batch = found.batch[0].size if found.batch else 1
    sizes = f"{batch} × [{found.rows.size} {found.inner.size}] · [{found.inner.size} {found.columns.size}]"
    terms = [f"{_factor(found.alpha)}{found.a.buffer} · {found.b.buffer}"]
    terms += [f"{_factor(found.beta)}{found.residual.buffer}"] if found.residual else []
    terms += [found.bias.buffer] if found.bias else []
    plain = found.function is Function.IDENTITY
    whole = " + ".join(terms) if plain else f"{found.function.value}({' + '.join(terms)})"
    factors = f"{found.a.dtype} · {found.b.dtype} in {PARTS} parts" if is_mixed(found) else str(found.a.dtype)
    factors += " as TF32" if is_tf32(step.schedule) else ""
    kinds = f"{factors} in {found.dtype} to {found.out.dtype}"
    return f"// {name}: {found.out.buffer} = {whole} by cublasLtMatmul, {sizes}, {kinds}\n"


def _factor(value: float) -> str:
    return "" if value == 1 else f"{value:g} · "
