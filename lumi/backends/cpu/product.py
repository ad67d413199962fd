"""Kernels that are nothing but a matrix product, and the C that hands them to the machine's BLAS."""

from __future__ import annotations

from lumi.dim import Extent
from lumi.dtype import F32
from lumi.llir import product, spell
from lumi.llir.kernel import Kernel, buffers, dims
from lumi.llir.product import Product, Tensor


def find(kernel: Kernel) -> Product | None:
    """The product that a kernel is, when BLAS can compute it: plain, of f32 that nothing rounds, in rows."""
    found = product.find(kernel)
    if (
        found is None
        or any(t.dtype != F32 for t in found.tensors)
        or not found.is_plain
        or any(found.rounded)
    ):
        return None
    return found.row_major()


def emit(kernel: Kernel, product: Product, name: str) -> str:
    """The C function that computes a kernel by `sgemm`, a share of the rows or columns for each thread."""
    lines = [f"const int64_t {spell.dim_name(d)} = dims[{k}];" for k, d in enumerate(dims(kernel))]
    lines += [
        f"const int64_t m = {spell.extent(product.rows.size)}, n = {spell.extent(product.columns.size)}, "
        f"k = {spell.extent(product.inner.size)};",
        "const int64_t parts = team_size(), by_rows = m > n;",
        "const int64_t share = ((by_rows ? m : n) + parts - 1) / parts + 15 & -16;",
    ]
    counts = [spell.extent(side.size) for side in product.batch]
    lines += [
        f"const int64_t cells = {' * '.join(['parts', *counts])};",
        "#pragma omp for schedule(static, 1) nowait",
        "for (int64_t cell = 0; cell < cells; cell++) {",
        *(f"  {line}" for line in _cell(product, buffers(kernel))),
        "}",
    ]
    body = "\n".join(f"  {line}" for line in lines)
    return f"void {name}(void *const *buffers, const int64_t *dims) {{\n{body}\n}}\n"


def _cell(product: Product, order: tuple[str, ...]) -> list[str]:
    lines = ["const int64_t start = cell % parts * share;", "int64_t rest = cell / parts;"]
    for number, side in reversed(list(enumerate(product.batch))):
        size = spell.extent(side.size)
        lines += [f"const int64_t x{number} = rest % {size};", f"rest /= {size};"]
    rows, columns, inner = product.rows, product.columns, product.inner
    lines += [
        _corner("const float *a", product.a, [s.a for s in product.batch], order),
        _corner("const float *b", product.b, [s.b for s in product.batch], order),
        _corner("float *c", product.out, [s.out for s in product.batch], order),
    ]
    step = {n: spell.extent(x) for n, x in zip("acb", (rows.a, rows.out, columns.b), strict=True)}
    lines += [
        "const int64_t end = least(start + share, by_rows ? m : n);",
        "if (start >= end) continue;",
        f"if (by_rows) a += start * {step['a']}, c += start * {step['c']};",
        f"else b += start * {step['b']}, c += start;",
        "matrix_product(by_rows ? end - start : m, by_rows ? n : end - start, k, "
        f"a, {step['a']}, {spell.extent(inner.a)}, b, {step['b']}, {spell.extent(inner.b)}, "
        f"c, {step['c']});",
    ]
    return lines


def _corner(variable: str, tensor: Tensor, steps: list[Extent], order: tuple[str, ...]) -> str:
    """C that points a variable at a tensor's first element at the current position of the batch."""
    terms = [f"x{n} * {spell.extent(step)}" for n, step in enumerate(steps) if step != 0]
    place = " + ".join([*terms, spell.extent(tensor.offset)])
    kind = variable.rpartition("*")[0] + "*"
    return f"{variable} = ({kind})buffers[{order.index(tensor.buffer)}] + {place};"
