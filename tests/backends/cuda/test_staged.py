"""Kernels whose operands pass through shared memory: what can, what becomes of it, and that it is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from lumi import dim
from lumi.backends.cuda import line, lines, matrix
from lumi.backends.cuda.compile import Cubin, compile_cubins
from lumi.backends.cuda.emit import emit, source
from lumi.backends.cuda.launch import Entry, Launches, load_kernels
from lumi.backends.cuda.schedule import DEFAULT, schedules
from lumi.backends.cuda.staged import ROOM
from lumi.dtype import BF16, F16, F32, I32, DType
from lumi.errors import Source
from lumi.llir.kernel import Kernel, Load, Schedule, Step, buffers, walk, written
from lumi.llir.parse import parse
from tests.backends.cpu.kernels import assert_equal_runs, matmul, random_buffers, reduction
from tests.backends.cuda.kernels import OnGpu, read

RINGS = ("gate_up", "attended")
LINES = ("softmax", "softmax_long", "standardize", "rms_norm", "loss")
VALUES = {"n": 40}

DECODE = (
    ((6144, 4096), BF16),
    ((4096, 4096), BF16),
    ((28672, 4096), BF16),
    ((4096, 14336), BF16),
    ((128256, 4096), BF16),
    ((4096, 14336), F32),
)
"""Shapes of the matrices of Llama-3-8B."""


def product(rows: int, length: int, dtype: DType = BF16) -> Kernel:
    return matmul({"m": 1, "n": rows, "k": length}, "mk", "nk", {"n": 8, "k": 512}, dtype)


def staged(kernel: Kernel) -> list[Schedule]:
    return [s for s in schedules(kernel) if s.template in ("ring", "lines", "direct")]


# -- which kernels


def test_rows_of_a_matrix_are_found() -> None:
    found = matrix.find(read("gate_up"))
    assert found is not None
    assert (found.rows, found.over, found.count, found.length) == (("a",), ("b",), 300, 2080)
    assert [m.load.access.buffer for m in found.matrices] == ["B2", "B3"]
    assert len(found.vectors) == 1
    assert [f.op for f in found.sums] == ["sum"]


def test_axes_of_a_row_stand_in_the_order_of_memory() -> None:
    found = matrix.find(read("attended"))
    assert found is not None
    assert found.over == ("c", "d")


@pytest.mark.parametrize(
    "kernel",
    [
        matmul({"m": 1, "n": 64, "k": 512}, "mk", "kn", {"n": 8, "k": 64}),
        matmul({"m": 1, "n": 64, "k": 513}, "mk", "nk", {"n": 8, "k": 64}, BF16),
        matmul({"m": 2, "n": 64, "k": 512}, "mk", "nk", {"n": 8, "k": 64}),
        matmul({"m": 1, "n": dim.var("n"), "k": 512}, "mk", "nk", {"n": 8, "k": 64}),
        matmul({"m": 1, "n": 64, "k": 512}, "mk", "nk", {"n": 8, "k": 64}, I32),
        reduction("sum", F32, 8),
    ],
    ids=["columns", "odd rows", "two vectors", "unknown rows", "integers", "no product"],
)
def test_other_kernels_have_no_rows_to_stream(kernel: Kernel) -> None:
    assert matrix.find(kernel) is None


def test_lines_are_read_once_however_often_they_are_used() -> None:
    found = line.find(read("rms_norm"))
    assert found is not None
    assert {s.access.buffer for s in found.streams} == {"B0", "B1"}
    assert [h.access.buffer for h in found.held] == ["B2"]
    loads = [s for s in walk(read("rms_norm").body) if isinstance(s, Load)]
    assert len(loads) == 5


@pytest.mark.parametrize("over", ["i", "j"])
def test_lines_of_unknown_length_are_no_lines(over: str) -> None:
    assert line.find(reduction("sum", F32, 8, over)) is None


def test_lines_shorter_than_a_block_are_left_to_others() -> None:
    kernel = read("softmax")
    assert staged(kernel)
    short = replace(kernel, axes={"a": 17, "b": 104})
    assert not staged(short)


def test_long_lines_are_copied_in_pieces() -> None:
    found = line.find(read("softmax_long"))
    assert found is not None
    made = lines.plan(found, {"users": 512})
    assert made is not None
    assert made.pieces > 1
    spans = [made.span(k) for k in range(made.pieces)]
    assert [last for _, last in spans[:-1]] == [first for first, _ in spans[1:]]
    assert (spans[0][0], spans[-1][1]) == (0, 22532)
    assert all(0 < 4 * (last - first) <= made.stage <= lines.PIECE for first, last in spans)


def test_schedule_of_another_kernel_is_refused() -> None:
    for template in ("ring", "lines"):
        with pytest.raises(ValueError, match="is scheduled as one"):
            emit(Step(reduction("sum", F32, 8), Schedule(template)), "kernel")


# -- their code


@pytest.mark.parametrize("name", RINGS)
def test_matrix_passes_through_a_ring(name: str, golden: Callable[..., None]) -> None:
    kernel = read(name)
    golden(emit(Step(kernel, staged(kernel)[0]), name).text, ".cu", name=name)


@pytest.mark.parametrize(("name", "template"), [("softmax", "direct"), ("rms_norm", "lines")])
def test_line_stays_in_registers(name: str, template: str, golden: Callable[..., None]) -> None:
    kernel = read(name)
    chosen = next(s for s in staged(kernel) if s.template == template)
    golden(emit(Step(kernel, chosen), name).text, ".cu", name=name)


def test_blocks_of_a_cluster_share_a_line(golden: Callable[..., None]) -> None:
    kernel = read("softmax", (1040, 32000))
    code = emit(Step(kernel, Schedule("direct", (("blocks", 4), ("users", 256)))), "shared")
    golden(code.text, ".cu", name="shared")
    assert (code.cluster, code.cells({})) == (4, 4 * 17)


def test_only_lines_too_long_for_a_block_are_shared() -> None:
    for length, some in ((4096, {1}), (32768, {1, 2, 4, 8}), (1 << 20, set[int]())):
        found = [
            dict(s.options).get("blocks", 1)
            for s in staged(read("softmax", (1040, length)))
            if s.template == "direct"
        ]
        assert set(found) == some, length


def test_only_lines_too_long_for_two_blocks_lie_aside() -> None:
    for length, some in ((4096, set()), (32768, {512}), (65536, {1024}), (1 << 20, set[int]())):
        plans = [dict(s.options) for s in staged(read("softmax", (1040, length)))]
        assert {p["users"] for p in plans if "aside" in p} == some, length


def test_two_blocks_with_elements_aside_fit() -> None:
    code = emit(
        Step(read("softmax", (1040, 32768)), Schedule("direct", (("aside", 4), ("users", 512)))), "kernel"
    )
    assert code.shared == 64 << 10
    assert "__launch_bounds__(512, 2)" in code.text
    assert code.text.count("copy_piece(") == 1


def test_lines_stay_in_the_cache() -> None:
    kernel = read("softmax", (1040, 4096))
    text = emit(Step(kernel, Schedule("direct", (("stay", 1), ("users", 512)))), "kernel").text
    assert text.count("read_to_stay()") == text.count("wide_policed(") == 1
    assert "wide_load" not in text


def test_hot_kernels_compile_without_spills() -> None:
    kernels = {f"{shape} {dtype}": product(*shape, dtype) for shape, dtype in DECODE}
    kernels |= {name: read(name) for name in (*RINGS, *LINES)}
    steps = {f"{n} {s}": Step(k, s) for n, k in kernels.items() for s in staged(k)}
    codes = {name: emit(step, "kernel") for name, step in steps.items()}
    cubins = compile_cubins([source([code.text]) for code in codes.values()], "sm_90a")
    for (name, code), cubin in zip(codes.items(), cubins, strict=True):
        assert isinstance(cubin, Cubin), f"{name}: {cubin}"
        assert cubin.spilled == 0, name
        assert code.shared <= ROOM, name


def test_second_block_does_not_fit_beside_a_ring() -> None:
    for shape, dtype in DECODE:
        kernel = product(*shape, dtype)
        for schedule in staged(kernel):
            assert 2 * emit(Step(kernel, schedule), "kernel").shared > 228 << 10


# -- their results


@pytest.mark.cuda
@pytest.mark.parametrize("name", [*RINGS, *LINES])
def test_staged_kernel_equals_the_numpy_executor(name: str) -> None:
    kernel = read(name)
    steps = [Step(kernel, s) for s in (DEFAULT, *staged(kernel))]
    on_gpu = OnGpu(steps)
    for number in range(len(steps)):
        assert_equal_runs(kernel, VALUES, on_gpu, number)


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["softmax", "standardize", "loss"])
@pytest.mark.parametrize("length", [16384, 32000, 65536])
def test_blocks_share_long_lines(name: str, length: int) -> None:
    kernel = read(name, (1040, length))
    steps = [Step(kernel, s) for s in staged(kernel) if dict(s.options).get("blocks", 1) > 1]
    assert steps
    on_gpu = OnGpu(steps)
    for number in range(len(steps)):
        assert_equal_runs(kernel, VALUES, on_gpu, number)


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [BF16, F16, F32])
@pytest.mark.parametrize("sizes", [(2, 16), (3, 2048), (131, 512), (133, 4096), (700, 1032), (64, 14336)])
def test_product_of_any_size(sizes: tuple[int, int], dtype: DType) -> None:
    kernel = product(*sizes, dtype)
    steps = [Step(kernel, s) for s in staged(kernel)]
    assert steps
    on_gpu = OnGpu(steps)
    for number in range(len(steps)):
        assert_equal_runs(kernel, {}, on_gpu, number)


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("name", "template"), [("gate_up", "ring"), ("rms_norm", "lines"), ("rms_norm", "direct")]
)
@pytest.mark.parametrize("cells", [1, 5, 39])
@pytest.mark.parametrize("constant", [True, False])
def test_results_do_not_depend_on_blocks_nor_on_what_is_constant(
    name: str, template: str, cells: int, constant: bool
) -> None:
    kernel = read(name)
    arrays = random_buffers(kernel, VALUES)
    on_gpu = OnGpu([Step(kernel, next(s for s in reversed(staged(kernel)) if s.template == template))])
    want = {n: a.copy() for n, a in arrays.items()}
    on_gpu.run(0, want, VALUES)
    gpu, names = on_gpu.gpu, buffers(kernel)
    (loaded,) = load_kernels(gpu, on_gpu.steps)
    blocks = {n: gpu.allocate(arrays[n].nbytes) for n in names}
    for n, block in blocks.items():
        gpu.write(int(block), arrays[n].reshape(-1).view(np.uint8))
    masks = tuple(constant and n not in written(kernel) for n in names)
    entry = Entry(loaded, tuple(int(blocks[n]) for n in names), cells, masks)
    launches = Launches(gpu, [entry, entry, entry])
    launches.run(VALUES)
    for n in written(kernel):
        got = np.empty_like(arrays[n])
        gpu.read(int(blocks[n]), got.reshape(-1).view(np.uint8))
        np.testing.assert_array_equal(got, want[n])


def test_single_line_is_left_to_a_block() -> None:
    """A norm of one token: its sum is no line's but the kernel's."""
    text = """\
(kernel
  :buffers [(B0 [640] f32) (B1 [640] f32)]
  :axes [(a 640)]
  :grid []
  :tiles [(a 64)]
  (for [a]
      :carry [[v2 v5 sum f32 []]]
    (let [v1 (load (B0 [a]))
          v3 (reduce sum [a] v1)
          v4 (add v2 v3)]
      (next v4)))
  (for [a]
    (let [v6 (load (B0 [a]))
          v7 (mul v6 v5)]
      (store (B1 [a]) v7))))
"""
    kernel = parse(Source("norm", text))
    every = {s.template: s for s in schedules(kernel)}
    assert "lines" not in every
    assert "stream" in every
    for chosen in every.values():
        assert "__global__" in emit(Step(kernel, chosen), "kernel").text
