"""Walks along the rows of a cache: which loops they are, their code, and that they are right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cuda import cache, walk_plan
from lumi.backends.cuda.compile import Cubin, compile_cubins
from lumi.backends.cuda.emit import emit, source
from lumi.backends.cuda.launch import fitting
from lumi.backends.cuda.schedule import schedules
from lumi.dtype import BF16, F32
from lumi.errors import Source
from lumi.llir.arithmetic import to_memory
from lumi.llir.kernel import Kernel, Schedule, Step, written
from lumi.llir.parse import parse
from tests.backends.cpu.kernels import assert_close, matmul, random_buffers
from tests.backends.cuda.kernels import OnGpu, plan_of, read

WALKS = ("attention", "attention_chunks", "attention_wide", "attention_given")

TOLERANCE = 1e-4
"""The exponential of a sum of 128 products: rounding in the sum moves it by as much as the sum is large."""

POSITIONS = 1000

LENGTHS = (0, 1, 7, 15, 16, 62, 126, 127, 128, 255, 256, 257, 639)
"""Positions but one: around the turns and units of all plans."""


@dataclass(frozen=True)
class Shape:
    """Attention of heads that share each of `cells` caches of rows of `width` elements."""

    heads: int
    width: int
    dtype: str
    cells: int = 2
    window: int = 0
    normalised: bool = True

    def kernel(self) -> Kernel:
        return parse(Source("attention.lumi", self.text()))

    def text(self) -> str:
        h, w, c, rows = self.heads, self.width, self.cells, f"{POSITIONS} {self.width}"
        seen = "v7 (lt v4 v6)"
        guards = "(lt (position f) (add $past 1.0))"
        if self.window:
            seen = f"v60 (lt v4 v6)\nv61 (add v4 {self.window}.0)\nv62 (lt v5 v61)\nv7 (and v60 v62)"
            guards += f" (lt $past (add (position f) {self.window}.0))"
        results = """(let [v50 (recip v42)
          v51 (mul v43 v50)]
      (store (T3 [c h e]) v51))"""
        outs = f"(T3 [{c} {h} {w}] f32)"
        if not self.normalised:
            results = "(store (T1 [c h]) v41)\n(store (T2 [c h]) v42)\n(store (T3 [c h e]) v43)"
            outs = f"(T1 [{c} {h}] f32) (T2 [{c} {h}] f32) {outs}"
        return f"""
(kernel
  :buffers [(B0 [{c} {h} {w}] f32) (B1 [{c} {rows}] {self.dtype}) (B2 [{c} {rows}] {self.dtype}) {outs}]
  :axes [(c {c}) (h {h}) (e {w}) (f (+ past 1)) (g {w})]
  :grid [(c 1) (h 1) (e {w})]
  :resident [g]
  :tiles [(f 32)]
  (let [v5 (symbol past)
        v6 (add v5 1.0)
        v8 (load (B0 [c h g]))]
    (for [f] :when [{guards}]
        :carry [[v1 v41 max f32 [c h]]
                [v2 v42 sum f32 [c h]]
                [v3 v43 sum f32 [c h e]]]
      (let [v4 (position f)
            {seen}
            v20 (load (B1 [c f g]))
            v21 (cast.f32 v20)
            v22 (dot [g] v8 v21)
            v23 (mul v22 0.125)
            v24 (sel v7 v23 -inf)
            v25 (reduce max [f] v24)
            v26 (max v1 v25)
            v27 (subni v1 v26)
            v29 (exp2 v27)
            v30 (mul v2 v29)
            v31 (subni v24 v26)
            v33 (exp2 v31)
            v34 (reduce sum [f] v33)
            v35 (add v30 v34)
            v36 (mul v3 v29)
            v37 (load (B2 [c f e]))
            v38 (cast.f32 v37)
            v39 (dot [f] v33 v38)
            v40 (add v36 v39)]
        (next v26 v35 v40)))
    {results}))
"""


SHAPES = (
    Shape(4, 128, "bf16", 8),
    Shape(4, 128, "bf16", 8, normalised=False),
    Shape(1, 64, "bf16", 20),
    Shape(2, 256, "bf16", 3),
    Shape(8, 256, "bf16"),
    Shape(3, 72, "bf16", 5, window=40),
    Shape(5, 80, "bf16"),
    Shape(8, 128, "bf16", 4, window=100),
    Shape(16, 64, "bf16", 3),
    Shape(9, 48, "f32", 2, window=50),
    Shape(4, 128, "f16", 8),
    Shape(3, 88, "f16", 5, window=70),
    Shape(7, 64, "f16"),
    Shape(1, 32, "f32", 150),
    Shape(4, 80, "f32", 2),
    Shape(2, 256, "f32", 3, window=33),
    Shape(1, 8, "bf16", 2),
    Shape(6, 8, "f32", 2, normalised=False),
)


def walks(kernel: Kernel) -> list[Schedule]:
    return [s for s in schedules(kernel) if s.template == "walk"]


def test_heads_share_the_rows_of_their_cache() -> None:
    found = cache.find(read("attention_chunks"))
    assert found is not None
    assert (found.cells, found.heads, found.axis) == (("c", "ch"), ("h",), "f")
    assert (found.together, found.columns, found.is_bf16) == (4, "e", True)
    assert [(r.load.access.buffer, r.pieces) for r in found.products] == [("B1", 16)]
    assert [(s.carry.previous, s.moved) for s in found.singles] == [("v1", "v1"), ("v2", "v30")]
    assert [(u.rows.load.access.buffer, u.carry.previous) for u in found.updates] == [("B2", "v3")]


@pytest.mark.parametrize(
    "kernel",
    [
        matmul({"m": 1, "n": 64, "k": 512}, "mk", "nk", {"n": 8, "k": 64}, BF16),
        plan_of("softmax").steps[0].kernel,
        replace(read("attention"), axes={**read("attention").axes, "e": 68, "g": 68}),
        replace(read("attention_chunks"), axes={**read("attention_chunks").axes, "h": 11}),
    ],
    ids=["product", "softmax", "rows that fill no pieces", "eleven heads"],
)
def test_other_loops_are_no_walks(kernel: Kernel) -> None:
    assert cache.find(kernel) is None
    with pytest.raises(ValueError, match="does not walk"):
        emit(Step(kernel, Schedule("walk")), "kernel")


def test_what_moves_by_more_than_fixed_carries_is_no_walk() -> None:
    """Parts could not be joined: here sums are scaled by what one turn has found alone."""
    text = Shape(4, 128, "bf16").text()
    assert cache.find(parse(Source("attention.lumi", text))) is not None
    alone = text.replace("(subni v1 v26)", "(subni v1 v25)")
    assert cache.find(parse(Source("attention.lumi", alone))) is None


def without_maximum(shape: Shape) -> Kernel:
    """Weights that are added up as they are."""
    text = shape.text()
    for old, new in (
        ("v30 (mul v2 v29)", ""),
        ("v36 (mul v3 v29)", ""),
        ("(add v30 v34)", "(add v2 v34)"),
        ("(add v36 v39)", "(add v3 v39)"),
        ("(subni v24 v26)", "(mul v24 0.5)"),
    ):
        assert old in text
        text = text.replace(old, new)
    return parse(Source("sums.lumi", text))


def test_a_walk_needs_no_maximum() -> None:
    found = cache.find(without_maximum(Shape(4, 128, "bf16")))
    assert found is not None
    assert all(s.is_fixed for s in found.singles)
    assert [u.factor for u in found.updates] == [None]


@pytest.mark.parametrize(
    ("shape", "tensor", "turn"),
    [(Shape(4, 128, "bf16"), True, 16), (Shape(4, 128, "f16"), False, 8), (Shape(7, 64, "f32"), False, 4)],
    ids=str,
)
def test_only_bf16_is_multiplied_on_tensor_cores(shape: Shape, tensor: bool, turn: int) -> None:
    found = cache.find(shape.kernel())
    assert found is not None
    made = walk_plan.plan(found, {})
    assert made is not None
    assert (made.tensor, made.turn, made.unit) == (tensor, turn, turn * made.warps)


@pytest.mark.parametrize(("heads", "times"), [(1, 1), (8, 1), (9, 3), (10, 2), (11, 11), (16, 2), (32, 4)])
def test_many_heads_read_rows_again(heads: int, times: int) -> None:
    assert cache.readings(heads) == times
    assert (cache.find(Shape(heads, 64, "bf16").kernel()) is not None) == (times <= cache.AGAIN)


def test_rows_lie_in_other_banks_than_their_neighbours() -> None:
    for shape in SHAPES:
        found = cache.find(shape.kernel())
        assert found is not None
        made = walk_plan.plan(found, {})
        assert made is not None
        for rows in found.rows:
            assert made.pitch(rows) % 32 == 16
            assert made.pitch(rows) >= rows.length * rows.load.access.dtype.size


@pytest.mark.parametrize(("room", "template"), [(227, "walk"), (99, "walk"), (48, "simt")])
def test_a_gpu_with_less_shared_memory_walks_with_fewer_stages(room: int, template: str) -> None:
    kernel = Shape(4, 128, "bf16").kernel()
    gpu: Any = SimpleNamespace(room=room << 10, starts_early=False)
    step = fitting(Step(kernel, walks(kernel)[0]), gpu)
    assert step.schedule.template == template
    assert emit(step, "kernel").shared <= room << 10


def test_sure_guards_cost_nothing_and_windows_leave_units_out() -> None:
    def emitted(shape: Shape) -> str:
        return emit(Step(shape.kernel(), walks(shape.kernel())[0]), "kernel").text

    assert "__ballot_sync" not in emitted(Shape(4, 64, "bf16"))
    assert "__ballot_sync" in emitted(Shape(4, 64, "bf16", window=40))


def test_walk_becomes_this(golden: Callable[..., None]) -> None:
    kernel = read("attention_chunks")
    golden(emit(Step(kernel, walks(kernel)[0]), "attend").text, ".cu", name="attend")


def test_walk_of_floats_becomes_this(golden: Callable[..., None]) -> None:
    kernel = read("attention_wide")
    golden(emit(Step(kernel, walks(kernel)[0]), "attend").text, ".cu", name="attend_floats")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_walks_compile_without_spills(arch: str) -> None:
    kernels = [*map(read, WALKS), *(s.kernel() for s in SHAPES)]
    steps = [Step(k, s) for k in kernels for s in walks(k)[:1]]
    assert len(steps) == len(kernels)
    texts = [source([emit(s, "kernel").text]) for s in steps]
    for step, cubin in zip(steps, compile_cubins(texts, arch), strict=True):
        assert isinstance(cubin, Cubin), cubin
        assert cubin.spilled == 0, step


@pytest.mark.cuda
@pytest.mark.parametrize("name", WALKS)
def test_walk_equals_the_numpy_executor(name: str) -> None:
    _assert_right(read(name), LENGTHS)


@pytest.mark.cuda
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_walk_is_right_for_every_shape(shape: Shape) -> None:
    _assert_right(shape.kernel(), LENGTHS)


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_sums_that_nothing_moves_are_right(dtype: str) -> None:
    _assert_right(without_maximum(Shape(4, 64, dtype, 3)), LENGTHS)


@pytest.mark.cuda
def test_long_walk_is_right() -> None:
    text = Shape(4, 64, "bf16").text().replace(f" {POSITIONS} ", " 8192 ")
    _assert_right(parse(Source("attention.lumi", text)), (1023, 4097, 8190, 8191))


def _assert_right(kernel: Kernel, lengths: tuple[int, ...]) -> None:
    """A walk gives what the numpy executor gives, run after run, whatever lies behind the last position."""
    on_gpu = OnGpu([Step(kernel, s) for s in walks(kernel)])
    found = cache.find(kernel)
    assert found is not None
    for past in lengths:
        want = random_buffers(kernel, {"past": past}, past)
        for rows in found.rows:
            if len(rows.load.access.shape) == 3 and isinstance(rows.load.access.shape[1], int):
                no_number = to_memory(np.full(1, np.nan, np.float32), rows.load.access.dtype)
                want[rows.load.access.buffer][:, past + 1 :] = no_number
        given = {n: a.copy() for n, a in want.items()}
        interpret.run(kernel, want, {"past": past})
        for number, step in enumerate(on_gpu.steps):
            for since in (-1, 0):
                got = {n: a.copy() for n, a in given.items()}
                on_gpu.run(number, got, {"past": past}, since)
                for buffer in written(kernel):
                    what = f"{buffer} at {past}, {step.schedule}, {since}"
                    assert_close(got[buffer], want[buffer], F32, TOLERANCE, what)
