"""Calls of cuBLASLt: that they say what a kernel computes, without the library and with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumi import dim
from lumi.backends.cpu import interpret
from lumi.backends.cuda import gemm
from lumi.backends.cuda.cublas import BIAS, RELU, Algorithm, Matmul, Matrix, Pointers
from lumi.backends.cuda.measure import scheduled
from lumi.backends.cuda.split import Split
from lumi.backends.cuda.tf32 import TF32
from lumi.dtype import BF16, F16, F32, F64, I8, I32
from lumi.field.index import of_extent
from lumi.llir.arithmetic import from_memory, to_memory
from lumi.llir.kernel import Kernel, Schedule, Step, Store, accesses, buffers
from lumi.llir.product import find
from lumi.search.protocol import Failure, Reason
from tests.llir.products import EPILOGUES, Spec, memory, mixed

Array = np.ndarray
SIZES = {"g": 3, "m": dim.var("m"), "n": 16, "k": 24}
TYPES = (
    (F32, F32, F32),
    (BF16, F32, BF16),
    (BF16, F32, F32),
    (F16, F32, F16),
    (F64, F64, F64),
    (I8, I32, I32),
)
FAR = 1 << 20
"""Bytes between the buffers of calls that numpy computes."""


class Recorded:
    """A library that proposes some algorithms, splits and computes calls in numpy."""

    def __init__(self, kernel: Kernel, arrays: Mapping[str, Array], names: Sequence[int] = (7, 8)) -> None:
        self.types = {a.buffer: a.dtype for a, _ in accesses(kernel)}
        self.arrays = [arrays[b] for b in buffers(kernel)]
        self.kinds = [self.types[b] for b in buffers(kernel)]
        self.addresses = [FAR * (n + 1) for n in range(len(self.arrays))]
        self.proposed = tuple(Algorithm(n, b"") for n in names)
        self.used: list[int] = []
        self.splitter = self

    def algorithms(self, matmul: Matmul, pointers: Pointers) -> tuple[Algorithm, ...]:
        return self.proposed

    def room(self, size: int) -> int:
        self.kinds.append(BF16)
        self.arrays.append(np.full(size // 2, 0x7FC0, np.uint16))
        return FAR * len(self.arrays)

    def view(self, matrix: Matrix, address: int, batch: int) -> tuple[Array, int]:
        number = address // FAR - 1
        raw = self.arrays[number].reshape(-1)
        raw = raw[(address % FAR) // raw.itemsize :]
        assert self.kinds[number] == matrix.dtype
        assert matrix.ld >= matrix.rows
        shape = (batch, matrix.rows, matrix.columns)
        strides = [s * raw.itemsize for s in (matrix.stride, 1, matrix.ld)]
        assert sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) < raw.nbytes
        return np.lib.stride_tricks.as_strided(raw, shape, strides), number

    def put(self, *told: object) -> None:
        if isinstance(told[0], Split):
            self.divide(*told)  # type: ignore[arg-type]
        else:
            self.multiply(*told)  # type: ignore[arg-type]

    def divide(self, split: Split, address: int) -> None:
        """What the kernel that splits does."""
        raw = self.arrays[split.address // FAR - 1].reshape(-1)
        shape, strides = (split.batch, split.rows, split.columns), [4 * s for s in split.steps]
        x = np.lib.stride_tricks.as_strided(raw[split.address % FAR // 4 :], shape, strides)
        parts = self.arrays[address // FAR - 1][: 3 * split.part]
        dense = parts.reshape(3, split.batch, split.rows, split.row)[..., : split.columns]
        rest = x.astype(np.float32)
        for place in (2, 1, 0):
            high = rest.view(np.uint32) & np.uint32(0xFFFF0000)
            dense[place] = high >> 16
            rest = rest - high.view(np.float32)
        assert not rest.any()

    def multiply(self, matmul: Matmul, pointers: Pointers, algorithm: Algorithm) -> None:
        self.used.append(algorithm.name)
        wide = {}
        for name in "abc":
            view, number = self.view(getattr(matmul, name), getattr(pointers, name), matmul.batch)
            wide[name] = from_memory(view, self.kinds[number]).astype(np.float64)
        a = wide["a"].transpose(0, 2, 1) if matmul.transpose_a else wide["a"]
        b = wide["b"].transpose(0, 2, 1) if matmul.transpose_b else wide["b"]
        result = matmul.alpha * (a @ b) + (matmul.beta * wide["c"] if matmul.beta else 0)
        if matmul.epilogue & BIAS:
            line = Matrix(matmul.d.dtype, matmul.d.rows, 1, matmul.d.rows, matmul.bias_stride)
            view, number = self.view(line, pointers.bias, matmul.batch)
            result = result + from_memory(view, self.kinds[number])
        if matmul.epilogue & RELU:
            result = np.maximum(result, 0)
        target, _ = self.view(matmul.d, pointers.d, matmul.batch)
        target[...] = to_memory(result.astype(np.float32), matmul.d.dtype)


def run_recorded(spec: Spec, values: dict[str, int], seed: int = 0) -> None:
    """The call of a product, computed by numpy, equals the kernel."""
    kernel = spec.kernel
    call = gemm.call(Step(kernel, gemm.SCHEDULES[0]))
    assert call is not None
    want = memory(kernel, values, seed)
    got = {name: array.copy() for name, array in want.items()}
    library = Recorded(kernel, got)
    ready = call.ready(library, values, library.addresses)  # type: ignore[arg-type]
    assert ready is not None
    ready.put(library)  # type: ignore[arg-type]
    interpret.run(kernel, want, values)
    np.testing.assert_array_equal(got["R"], want["R"])


LAYOUTS = [
    (a, b, out) for a in ("gmk", "gkm", "mk") for b in ("gnk", "gkn", "nk") for out in ("gmn", "gnm", "mgn")
]
USABLE = [x for x in LAYOUTS if gemm.find(Spec(SIZES, *x).kernel) is not None]


def test_every_usual_layout_is_a_call() -> None:
    """All but a product that reads a factor twice for no reason: there `g` is in no factor."""
    assert [x for x in LAYOUTS if x not in USABLE] == [x for x in LAYOUTS if "g" not in x[0] + x[1]]


@pytest.mark.parametrize(("a", "b", "out"), USABLE)
@pytest.mark.parametrize("m", [1, 5])
def test_layout_is_described_as_it_is(a: str, b: str, out: str, m: int) -> None:
    run_recorded(Spec(SIZES, a, b, out), {"m": m})


@pytest.mark.parametrize("epilogue", [e for e in EPILOGUES if "rows" not in e])
@pytest.mark.parametrize(("dtype", "stored"), [(F32, F32), (BF16, BF16)], ids=str)
@pytest.mark.parametrize("layout", [("mk", "nk", "mn"), ("gmk", "gnk", "gmn"), ("mk", "gnk", "gmn")])
def test_epilogue_is_described_as_it_is(epilogue: str, dtype, stored, layout) -> None:  # type: ignore[no-untyped-def]
    run_recorded(Spec(SIZES, *layout, dtype=dtype, stored=stored, epilogue=epilogue), {"m": 5})


paddings = st.dictionaries(st.sampled_from("ABCDR"), st.tuples(st.integers(0, 2), st.integers(0, 3)))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(USABLE),
    st.sampled_from([e for e in EPILOGUES if "bias" not in e]),
    paddings,
    st.integers(1, 4),
    st.integers(0, 99),
)
def test_padded_layout_is_described_as_it_is(layout, epilogue, gaps, m, seed) -> None:  # type: ignore[no-untyped-def]
    spec = Spec(SIZES, *layout, epilogue=epilogue, gaps=gaps)
    if gemm.find(spec.kernel) is not None:
        run_recorded(spec, {"m": m}, seed)


MIXED = [x for x in USABLE if "k" in x[0] and "g" in x[2]]


@pytest.mark.parametrize("wide", ["a", "b"])
@pytest.mark.parametrize("epilogue", ["plain", "scaled residual", "bias and relu"])
@pytest.mark.parametrize(("a", "b", "out"), MIXED)
def test_f32_times_bf16_is_computed_in_parts(a: str, b: str, out: str, epilogue: str, wide: str) -> None:
    if "bias" in epilogue and out != "gmn":
        epilogue = "relu"
    kernel = mixed(Spec({**SIZES, "k": 21}, a, b, out, epilogue=epilogue), wide)
    found = gemm.call(Step(kernel, gemm.SCHEDULES[0]))
    assert found is not None
    values, generator = {"m": 5}, np.random.default_rng(1)
    want = memory(kernel, values, 0)
    name = wide.upper()
    want[name] = generator.standard_normal(want[name].shape).astype(np.float32)
    got = {n: array.copy() for n, array in want.items()}
    library = Recorded(kernel, got)
    ready = found.ready(library, values, library.addresses)  # type: ignore[arg-type]
    assert ready is not None and len(ready.parts) == 3
    ready.put(library)  # type: ignore[arg-type]
    interpret.run(kernel, want, values)
    np.testing.assert_allclose(got["R"], want["R"], rtol=0, atol=3e-6 * np.abs(want["R"]).max())


def test_f32_times_bf16_needs_a_result_that_can_be_added_up() -> None:
    kernel = mixed(Spec(SIZES), "a")
    *body, store = kernel.body
    assert isinstance(store, Store)
    halves = replace(kernel, body=(*body, replace(store, access=replace(store.access, dtype=BF16))))
    assert gemm.find(kernel) is not None
    assert gemm.find(halves) is None


def test_what_the_library_lacks_is_no_call() -> None:
    for spec in (
        Spec(SIZES, epilogue="rows bias"),
        Spec(SIZES, dtype=F64, total=F64, stored=F64, epilogue="relu"),
        Spec({"g": 2, "h": 3, "m": 4, "n": 5, "k": 6}, "gmhk", "gnhk", "ghmn"),
    ):
        assert find(spec.kernel) is not None
        assert gemm.find(spec.kernel) is None


def test_what_grows_from_step_to_step_is_no_call() -> None:
    """A graph would be captured again for each place in a cache, and for each length of it."""
    past, seq = dim.var("past"), dim.var("seq")
    plain = Spec({"m": seq, "n": 16, "k": 8}).kernel
    *body, store = plain.body
    assert isinstance(store, Store)
    rows, columns = store.access.index
    cache = replace(store.access, index=(rows + of_extent(past), columns), shape=(1024, 16))
    appended = replace(plain, body=(*body, replace(store, access=cache)))
    longer = Spec({"m": seq, "n": past + seq, "k": 8}).kernel
    assert gemm.find(plain) is not None
    for kernel in (appended, longer):
        assert find(kernel) is not None
        assert gemm.find(kernel) is None


def test_bias_along_rows_is_one_along_the_columns_of_a_transposed_result() -> None:
    spec = Spec(SIZES, out="nm", epilogue="rows bias")
    assert gemm.find(spec.kernel) is not None
    run_recorded(spec, {"m": 5})


@pytest.mark.parametrize(("m", "k"), [(0, 8), (4, 0)])
def test_call_without_elements_or_terms_is_left_to_the_kernel(m: int, k: int) -> None:
    spec = Spec({"m": dim.var("m"), "n": 4, "k": dim.var("k")})
    values = {"m": m, "k": k}
    call = gemm.call(Step(spec.kernel, gemm.SCHEDULES[0]))
    assert call is not None
    library = Recorded(spec.kernel, memory(spec.kernel, values, 0))
    assert call.ready(library, values, library.addresses) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ((), 7),
        ((("rank", 1),), 8),
        ((("rank", 5),), 8),
        ((("algorithm", 8),), 8),
        ((("algorithm", 9),), 7),
    ],
)
def test_algorithm_is_chosen_by_rank_or_name(options: tuple[tuple[str, int], ...], name: int) -> None:
    spec = Spec(SIZES)
    call = gemm.call(Step(spec.kernel, Schedule("cublaslt", options)))
    assert call is not None
    library = Recorded(spec.kernel, memory(spec.kernel, {"m": 4}, 0))
    ready = call.ready(library, {"m": 4}, library.addresses)  # type: ignore[arg-type]
    assert ready is not None
    assert ready.algorithm == name


def test_product_without_an_algorithm_is_left_to_the_kernel() -> None:
    spec = Spec(SIZES)
    library = Recorded(spec.kernel, memory(spec.kernel, {"m": 4}, 0), names=())
    for schedule in (*gemm.SCHEDULES, Schedule("cublaslt", (("algorithm", 7),))):
        call = gemm.call(Step(spec.kernel, schedule))
        assert call is not None
        assert call.ready(library, {"m": 4}, library.addresses) is None  # type: ignore[arg-type]


def test_candidate_without_an_algorithm_is_refused() -> None:
    """Its kernel's own code would run, and be timed, in the library's name."""
    steps = [Step(Spec(SIZES).kernel, Schedule("simt")), Step(Spec(SIZES).kernel, gemm.SCHEDULES[1])]
    told = scheduled(steps, [None, None])
    assert isinstance(told, Failure)
    assert (told.reason, told.step) == (Reason.ILLEGAL, 1)
    assert scheduled(steps, [None, 7]) == (Schedule("simt"), gemm.by(7, steps[1].schedule))


def test_call_depends_on_the_dims_of_its_sizes_alone() -> None:
    kernel = Spec({"m": dim.var("seq"), "n": 4, "k": 8}).kernel
    call = gemm.call(Step(kernel, gemm.SCHEDULES[0]))
    assert call is not None
    assert call.dims == {"seq"}


def test_alignment_is_that_of_the_address() -> None:
    assert Pointers(256, 272, 1024, 258, 0).alignments == (256, 16, 256, 2, 256)


def test_kernel_that_is_no_product_is_no_call() -> None:
    kernel = Spec({"m": 5, "k": 3}, "mk", "k", "m").kernel
    assert gemm.call(Step(kernel, Schedule("simt"))) is None
    with pytest.raises(ValueError, match="no matrix product"):
        gemm.call(Step(kernel, gemm.SCHEDULES[0]))


def test_text_says_what_is_computed() -> None:
    kernel = Spec(SIZES, dtype=BF16, stored=BF16, epilogue="bias and relu").kernel
    assert gemm.text(Step(kernel, gemm.SCHEDULES[0]), "k0") == (
        "// k0: R = relu(A · B + D) by cublasLtMatmul, 1 × [m 24] · [24 16], bf16 in f32 to bf16\n"
    )


def test_call_is_in_tf32_where_its_schedule_is() -> None:
    kernel = Spec(SIZES).kernel
    found = find(kernel)
    assert found is not None
    fast, exact = gemm.schedules(found, True)[0], gemm.SCHEDULES[0]
    for schedule, is_fast in (
        (fast, True),
        (exact, False),
        (gemm.by(7, fast), True),
        (gemm.by(7, exact), False),
    ):
        call = gemm.call(Step(kernel, schedule))
        assert call is not None
        library = Recorded(kernel, memory(kernel, {"m": 4}, 0))
        ready = call.ready(library, {"m": 4}, library.addresses)  # type: ignore[arg-type]
        assert ready is not None
        assert [p.matmul.tf32 for p in ready.parts] == [is_fast]
        assert ("as TF32" in gemm.text(Step(kernel, schedule), "k")) == is_fast


def test_product_of_halves_in_tf32_is_refused() -> None:
    with pytest.raises(ValueError, match="bf16 by bf16 is scheduled in TF32"):
        gemm.call(Step(Spec(SIZES, dtype=BF16).kernel, Schedule("cublaslt", (TF32,))))
