"""The schedules that can turn a kernel into CUDA.

All but `cublaslt` compute values by one code generator; they differ in how a block of threads works.

- `simt`: works for anything.
- `stream`: for kernels that memory bounds: `rows` results a team computes at once share an operand,
  a thread has about `unroll` turns of loads under way, blocks have `threads`.
- `ring`: for products of stored matrices with a vector: rows pass through about `stages` stages of `stage`
  KiB in shared memory, at most `flight` of which are under way.
- `packed`: for products of packed matrices with a vector: rows pass through stages of about `stage` KiB,
  `flight` KiB of which are under way; of at most `warps` warps a thread takes up to `width` neighbours;
  with `tiles` tensor cores multiply 16 rows at once, which lie apart if `spread`.
- `lines`: for reductions of long lines, which `users` threads share and keep in registers; lines pass
  through `stages` stages in shared memory.
- `direct`: for the same, lines going straight into registers, `users` threads in each of `blocks` blocks
  sharing one; `aside` eighths of a line go into shared memory, with `stay` lines stay in the last cache.
- `mma`: for products of halves by tensor cores, tiles of which pass through `stages` stages in shared memory;
  see `mma.plan` for its numbers.
- `wgmma`: the same where groups of four warps multiply at once, on the GPUs that can; see `wgmma.plan`.
- `walk`: for loops that carry weighed sums of the rows of a cache: blocks share their positions, each of
  `warps` warps copies rows ahead through `stages` stages, and has `least` turns at least.
- `cublaslt`: for matrix products with what the library does to a result, where there is the library; see
  `gemm` for its numbers.

Schedules in TF32 (`tf32`) are among them only when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lumi.backends.cuda import (
    cache,
    direct,
    gemm,
    line,
    lines,
    matrix,
    packed,
    packed_plan,
    ring,
    rings,
    turns,
    walk_plan,
)
from lumi.backends.cuda.emit import STAGED, TOGETHER
from lumi.backends.cuda.library import find_library
from lumi.backends.cuda.mma import known
from lumi.backends.cuda.tf32 import is_tf32
from lumi.backends.cuda.wgmma import code as groups
from lumi.llir.kernel import Dot, Kernel, Map, Reduce, Schedule, Step, walk

DEFAULT = Schedule("simt")
"""The schedule that works for every kernel."""

_ELEMENTWISE = (
    Schedule("stream", (("threads", 512),)),
    Schedule("stream", (("unroll", 1),)),
    Schedule("stream", (("unroll", 4),)),
    Schedule("stream", (("threads", 128), ("unroll", 4))),
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

_RINGS = (
    Schedule("ring", (("flight", 2), ("stage", 32), ("stages", 6))),
    Schedule("ring", (("flight", 4), ("stage", 16), ("stages", 12))),
    Schedule("ring", (("flight", 3), ("stage", 32), ("stages", 6))),
)

_TILED = tuple(
    Schedule("packed", (("flight", 64), ("spread", spread), ("tiles", 1), ("warps", 15), ("width", 32)))
    for spread in (0, 1)
)

_UNTILED = tuple(
    Schedule("packed", (("flight", 64), ("stage", stage), ("warps", warps), ("width", width)))
    for width, warps, stage in ((16, 15, 32), (32, 15, 32), (16, 23, 32), (8, 31, 32))
)

_LINES = tuple(
    Schedule("lines", (("stages", stages), ("users", users)))
    for users, stages in ((128, 4), (128, 2), (256, 4), (512, 4))
)

_DIRECT = (
    *(
        Schedule("direct", (("blocks", blocks), ("users", users)))
        for users, blocks in (
            (256, 1),
            (128, 1),
            (512, 1),
            (1024, 1),
            (256, 2),
            (256, 4),
            (512, 2),
            (512, 4),
            (256, 8),
        )
    ),
    *(Schedule("direct", (("aside", 4), ("users", users))) for users in (512, 1024)),
    *(Schedule("direct", (("stay", 1), ("users", users))) for users in (256, 512, 1024)),
)

_WALKS = tuple(
    Schedule("walk", (("least", least), ("stages", stages), ("warps", warps)))
    for warps, stages, least in ((8, 3, 2), (4, 4, 1), (4, 4, 4), (4, 3, 2), (4, 2, 4))
)


def schedules(kernel: Kernel, tf32: bool = False) -> tuple[Schedule, ...]:
    """Every schedule of a kernel, the one that always works first.

    Those in TF32 are among them where the kernel rounds its factors so, and with `tf32` for all of f32.
    """
    reduces = any(isinstance(s, Dot | Reduce) for s in walk(kernel.body))
    product = gemm.find(kernel) if reduces and find_library() is not None else None
    return (
        DEFAULT,
        *(_staged(kernel) if reduces else ()),
        *(_walks(kernel) if reduces else ()),
        *(gemm.schedules(product, tf32) if product is not None else ()),
        *(known.look(kernel).groups if reduces else ()),
        *(known.look(kernel).schedules if reduces else ()),
        *(_in_tf32(kernel, tf32) if reduces else ()),
        *(_REDUCING if reduces else _ELEMENTWISE),
    )


def _in_tf32(kernel: Kernel, tf32: bool) -> tuple[Schedule, ...]:
    """The schedules of warps that multiply f32 in TF32."""
    if not tf32 and not any(isinstance(s, Map) and s.op == "tf32" for s in walk(kernel.body)):
        return ()
    found = known.look(kernel, tf32=True)
    return found.schedules if tf32 or (found.form is not None and found.form.asks) else ()


def together(
    kernels: Sequence[Kernel], alone: Callable[[Kernel], Sequence[Schedule]] = schedules
) -> tuple[Schedule, ...]:
    """Every schedule under which one launch can run kernels that do not depend on each other.

    `alone` gives those of one kernel.
    """
    first, *others = kernels
    common = [s for s in alone(first) if s.template in TOGETHER]
    for kernel in others:
        known = alone(kernel)
        common = [s for s in common if s in known]
    if len(Step(first, DEFAULT, tuple(others)).buffers) > rings.MARKS:
        return tuple(s for s in common if s.template not in STAGED)
    templates = {s.template for s in common}
    found = [m for k in kernels if (m := matrix.find(k)) is not None] if "ring" in templates else []
    blocks = [p for k in kernels if (p := packed.find(k)) is not None] if "packed" in templates else []

    def fits(schedule: Schedule) -> bool:
        options = dict(schedule.options)
        if schedule.template == "ring":
            return rings.plans(found, options) is not None
        if schedule.template in ("mma", "wgmma"):
            return _share_tiles(kernels, schedule)
        return schedule.template != "packed" or packed_plan.plans(blocks, options) is not None

    return tuple(filter(fits, common))


def _share_tiles(kernels: Sequence[Kernel], schedule: Schedule) -> bool:
    """Whether products on tensor cores can share a launch: sums, in groups with stages of one size."""
    found = [known.look(k, is_tf32(schedule)) for k in kernels]
    if any(one.form is None or one.form.carried is not None for one in found):
        return False
    return schedule.template == "mma" or not groups.apart([one.grouped(schedule) for one in found])


def in_turn(steps: Sequence[Step]) -> Step | None:
    """One launch in which steps take turns; None where they cannot.  Rings of all have the same numbers."""
    staged = dict.fromkeys(s.schedule for s in steps if s.schedule.template in turns.STAGED)
    for schedule in staged or (DEFAULT,):
        alike = [replace(s, schedule=schedule) if s.schedule in staged else s for s in steps]
        made = replace(alike[0], then=tuple(alike[1:]))
        try:
            turns.write(made, "kernel")
        except ValueError:
            continue
        return made
    return None


def _walks(kernel: Kernel) -> tuple[Schedule, ...]:
    """The walks of a kernel."""
    found = cache.find(kernel)
    if found is None:
        return ()
    return tuple(s for s in _WALKS if walk_plan.plan(found, dict(s.options)) is not None)


def _packed(found: packed.Packed) -> tuple[Schedule, ...]:
    """The schedules of packed matrices.

    Where weights share bytes, to unpack them takes longer than to read them: there tensor cores multiply, and
    scales are unpacked for more of them.
    """
    many = 32 if found.copies else 16
    untiled = tuple(sorted(_UNTILED, key=lambda s: dict(s.options)["width"] != many))
    return (*_TILED, *untiled) if found.copies else untiled


def _staged(kernel: Kernel) -> tuple[Schedule, ...]:
    """The rings of a kernel, or its lines."""
    matrices = matrix.find(kernel)
    if matrices is not None:
        return tuple(s for s in _RINGS if ring.plan(matrices, dict(s.options)) is not None)
    blocks = packed.find(kernel)
    if blocks is not None:
        return tuple(s for s in _packed(blocks) if packed_plan.plan(blocks, dict(s.options)) is not None)
    found = line.find(kernel)
    if found is None:
        return ()
    straight = tuple(s for s in _DIRECT if direct.plan(found, dict(s.options)) is not None)
    return (*straight, *(s for s in _LINES if lines.plan(found, dict(s.options)) is not None))
