"""A kernel under a schedule of this template as CUDA."""

from __future__ import annotations

from collections.abc import Mapping

from lumi.backends.cuda.mma.cascade import CascadeWriter
from lumi.backends.cuda.mma.folded import FoldWriter
from lumi.backends.cuda.mma.form import RefusalError
from lumi.backends.cuda.mma.plan import Plan, plan
from lumi.backends.cuda.mma.recognise import recognise
from lumi.backends.cuda.mma.sums import SumWriter
from lumi.backends.cuda.tf32 import TF32
from lumi.dim import Extent
from lumi.llir.kernel import Kernel


def write(
    kernel: Kernel, options: Mapping[str, int], name: str, beside: Mapping[str, str] | None = None
) -> tuple[str, Plan]:
    """The function of a kernel, and its numbers.  Raises `RefusalError` for what tensor cores cannot do.

    `beside` are the names of the buffers of a launch that it shares with others, which must be sums.
    """
    made = plan(recognise(kernel, TF32 in options.items()), options)
    if made.form.carried is None:
        return SumWriter(made, name, beside).function(), made
    if beside is not None:
        raise RefusalError("a loop that carries values around runs beside others")
    writer = CascadeWriter(made, name) if made.form.folded is None else FoldWriter(made, name)
    return writer.function(), made


def grid(made: Plan) -> tuple[tuple[Extent, int], ...]:
    """The extents and tiles of the axes that cells are counted by."""
    form, axes = made.form, made.form.program.kernel.axes
    tiles = ((form.row, made.rows), (form.column, made.width_of(form.column)))
    return (*((axes[a], 1) for a in form.outer), *((axes[a], tile) for a, tile in tiles))
