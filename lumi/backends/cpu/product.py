"""Kernels that are nothing but a matrix product, and the C that hands them to the machine's BLAS."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lumi.dim import Extent
from lumi.dtype import F32
from lumi.field.access import Access
from lumi.llir import spell
from lumi.llir.kernel import Dot, Kernel, Load, Loop, Store, buffers, dims, walk
from lumi.llir.program import is_plain, partial_of


@dataclass(frozen=True, slots=True)
class Side:
    """Axes of a product that run as one: how many positions, and the step between them in each tensor."""

    size: Extent
    steps: tuple[Extent, Extent]


@dataclass(frozen=True, slots=True)
class Product:
    """out[rows, columns] = Σ a[rows, inner] · b[columns, inner], once for each position of `batch`.

    The steps of `rows` are those in a and out, of `columns` in b and out, of `inner` in a and b.
    """

    a: Access
    b: Access
    out: Access
    batch: tuple[str, ...]
    rows: Side
    columns: Side
    inner: Side


def find(kernel: Kernel) -> Product | None:
    """The product that a kernel is, when its layout is proven to be one that BLAS takes."""
    parts = _parts(kernel)
    if parts is None:
        return None
    a, b, out, over = parts
    if set(a.axes()) & set(b.axes()) - set(over) - set(out.axes()):
        return None
    batch = tuple(x for x in kernel.axes if x in a.axes() and x in b.axes() and x in out.axes())
    rows = [x for x in kernel.axes if x in a.axes() and x not in batch and x not in over]
    columns = [x for x in kernel.axes if x in b.axes() and x not in batch and x not in over]
    if set(out.axes()) != {*batch, *rows, *columns} or set(over) != a.axes() & b.axes() - out.axes():
        return None
    sides = [_side(kernel, g, pair) for g, pair in ((rows, (a, out)), (columns, (b, out)), (over, (a, b)))]
    if any(s is None for s in sides):
        return None
    m, n, k = (s for s in sides if s is not None)
    if n.steps[1] != 1:  # the transposed result is the product of the factors in the other order
        a, b, m, n, k = b, a, n, m, Side(k.size, (k.steps[1], k.steps[0]))
    fits = n.steps[1] == 1 and 1 in (m.steps[0], k.steps[0]) and 1 in (n.steps[0], k.steps[1])
    return Product(a, b, out, batch, m, n, k) if fits else None


def _parts(kernel: Kernel) -> tuple[Access, Access, Access, tuple[str, ...]] | None:
    """The accesses of the factors and the result, and the summed axes, of a kernel that only multiplies."""
    statements = [s for s in walk(kernel.body) if not isinstance(s, Loop)]
    stores = [s for s in statements if isinstance(s, Store)]
    dots = [s for s in statements if isinstance(s, Dot)]
    loads = {s.var: s for s in statements if isinstance(s, Load)}
    loops = [s for s in kernel.body if isinstance(s, Loop)]
    if len(stores) != 1 or len(dots) != 1 or len(loads) != 2 or len(loops) > 1:
        return None
    dot, result = dots[0], dots[0].var
    if loops:
        carries = loops[0].carries
        plain = is_plain(loops[0]) and not loops[0].guards and loops[0].chunk is None and len(carries) == 1
        if not plain or partial_of(carries[0], loops[0]) is not dot:
            return None
        result = carries[0].final
    if len(statements) != 4 + len(loops) or stores[0].value != result:
        return None
    a, b = (loads.get(o) if isinstance(o, str) else None for o in (dot.a, dot.b))
    if a is None or b is None or a is b:
        return None
    found = (a.access, b.access, stores[0].access)
    types = {x.dtype for x in found} | {a.dtype, b.dtype, dot.dtype}
    whole = not any(x.clamp or x.data() for x in found)
    return (*found, dot.over) if whole and types == {F32} else None


def _side(kernel: Kernel, axes: Iterable[str], tensors: tuple[Access, Access]) -> Side | None:
    """Axes joined into one, when their steps allow it; None for no axes."""
    inner: Side | None = None
    for axis in sorted(axes, key=list(kernel.axes).index, reverse=True):
        size = kernel.axes[axis]
        first, second = (spell.step(t, axis) for t in tensors)
        if first is None or second is None:
            return None
        if inner is None:
            inner = Side(size, (first, second))
        elif (first, second) == (inner.steps[0] * inner.size, inner.steps[1] * inner.size):
            inner = Side(inner.size * size, inner.steps)
        else:
            return None
    return inner


def emit(kernel: Kernel, product: Product, name: str) -> str:
    """The C function that computes a kernel by `sgemm`, a share of the rows or columns for each thread."""
    lines = [f"const int64_t {spell.dim_name(d)} = dims[{k}];" for k, d in enumerate(dims(kernel))]
    order = buffers(kernel)
    lines += [
        f"const int64_t m = {spell.extent(product.rows.size)}, n = {spell.extent(product.columns.size)}, "
        f"k = {spell.extent(product.inner.size)};",
        "const int64_t parts = team_size(), by_rows = m > n;",
        "const int64_t share = ((by_rows ? m : n) + parts - 1) / parts + 15 & -16;",
    ]
    counts = [spell.extent(kernel.axes[x]) for x in product.batch]
    lines += [
        f"const int64_t cells = {' * '.join(['parts', *counts])};",
        "#pragma omp for schedule(static, 1) nowait",
        "for (int64_t cell = 0; cell < cells; cell++) {",
        *(f"  {line}" for line in _cell(kernel, product, order)),
        "}",
    ]
    body = "\n".join(f"  {line}" for line in lines)
    return f"void {name}(void *const *buffers, const int64_t *dims) {{\n{body}\n}}\n"


def _cell(kernel: Kernel, product: Product, order: tuple[str, ...]) -> list[str]:
    lines = ["const int64_t start = cell % parts * share;", "int64_t rest = cell / parts;"]
    for axis in reversed(product.batch):
        size = spell.extent(kernel.axes[axis])
        lines += [f"const int64_t {_variable(axis)} = rest % {size};", f"rest /= {size};"]
    at = _corner(product.batch)
    for letter, access in (("a", product.a), ("b", product.b), ("c", product.out)):
        constant = "" if letter == "c" else "const "
        number, offset = order.index(access.buffer), spell.element(access, at, str)
        lines.append(f"{constant}float *{letter} = ({constant}float *)buffers[{number}] + {offset};")
    rows, columns, inner = product.rows, product.columns, product.inner
    step = {n: spell.extent(x) for n, x in zip("acbd", (*rows.steps, columns.steps[0], 1), strict=True)}
    lines += [
        "const int64_t end = least(start + share, by_rows ? m : n);",
        "if (start >= end) continue;",
        f"if (by_rows) a += start * {step['a']}, c += start * {step['c']};",
        f"else b += start * {step['b']}, c += start;",
        "matrix_product(by_rows ? end - start : m, by_rows ? n : end - start, k, "
        f"a, {step['a']}, {spell.extent(inner.steps[0])}, b, {step['b']}, {spell.extent(inner.steps[1])}, "
        f"c, {step['c']});",
    ]
    return lines


def _corner(batch: tuple[str, ...]) -> Callable[[str], tuple[str, int]]:
    """Coordinates of the first element of a product in the current position of its batch axes."""
    return lambda axis: (_variable(axis), 0) if axis in batch else ("0", 0)


def _variable(axis: str) -> str:
    return f"x_{spell.identifier(axis)}"
