"""The schedules that can turn a kernel into CUDA.

Both templates share one code generator; they differ in how a block of threads works.

- `simt`: works for anything.
- `stream`: for kernels that memory bounds: `rows` results a team computes at once share an operand,
  a thread has about `unroll` turns of loads under way, blocks have `threads`.
"""

from __future__ import annotations

from lumi.llir.kernel import Dot, Kernel, Reduce, Schedule, walk

DEFAULT = Schedule("simt")
"""The schedule that works for every kernel."""

_ELEMENTWISE = (
    Schedule("stream", (("unroll", 4),)),
    Schedule("stream", (("unroll", 1),)),
    Schedule("stream", (("threads", 128), ("unroll", 4))),
    Schedule("stream", (("threads", 512),)),
)

_REDUCING = (
    Schedule("stream", (("rows", 4), ("unroll", 2))),
    Schedule("stream", (("rows", 2), ("unroll", 4))),
    Schedule("stream", (("rows", 4), ("unroll", 4))),
    Schedule("stream", (("rows", 2), ("threads", 128), ("unroll", 4))),
    Schedule("stream", (("threads", 512), ("unroll", 4))),
    Schedule("stream", (("threads", 1024), ("unroll", 4))),
    Schedule("stream", (("unroll", 8),)),
)


def schedules(kernel: Kernel) -> tuple[Schedule, ...]:
    """Every schedule of a kernel, the one that always works first."""
    reduces = any(isinstance(s, Dot | Reduce) for s in walk(kernel.body))
    return (DEFAULT, *(_REDUCING if reduces else _ELEMENTWISE))
