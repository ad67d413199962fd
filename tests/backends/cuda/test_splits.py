"""What is offered in chunks: sums of everything, so that more than one block computes them, and no walks."""

from __future__ import annotations

import numpy as np
import pytest

from lumi import dim
from lumi.backends.cuda import splits
from lumi.backends.cuda.emit import emit
from lumi.backends.targets import retarget
from lumi.compiler import Options, Stage, compile_model, compile_plan
from lumi.errors import Source
from lumi.llir.kernel import Step, accesses
from lumi.plan.plan import Plan
from lumi.runtime.session import Session

SHAPES = ([1 << 19], [2048, 512], [3, 700, 511])
WORK = {
    "(reduce-sum x :axis nil)": lambda x: x.sum(),
    "(reduce-max x :axis nil)": lambda x: x.max(),
    "(reduce-sum (* x x) :axis nil)": lambda x: (x * x).sum(),
    "(mean x :axis nil)": lambda x: x.mean(),
}


def source(body: str, shape: list[int]) -> Source:
    return Source("sum", f'(defmodel whole [(x f32 [{" ".join(map(str, shape))}])] "One number." {body})')


def offered(shape: list[int], body: str = "(reduce-sum x :axis nil)") -> dict[str, int]:
    work = compile_model(source(body, shape), Options(target="cuda"), Stage.FIELDS)
    ((variant, region),) = work.distinct().values()
    return splits.chunks(region, variant.box.hints())


def made(body: str, shape: list[int]) -> Plan:
    return compile_plan(source(body, shape), Options(target="cuda"))


@pytest.mark.parametrize("shape", SHAPES)
def test_many_blocks_compute_one_number(shape: list[int]) -> None:
    first = made("(reduce-sum x :axis nil)", shape).kernels[0]
    assert emit(Step(first.kernel, first.schedule), "kernel").cells({}) > 64


def test_short_sums_are_left_to_a_block() -> None:
    assert offered([1 << 16]) == {}
    assert list(offered([1 << 20]).values()) == [splits.PARTS]


def test_rows_that_keep_the_gpu_busy_are_not_cut() -> None:
    assert offered([1024, 4096], "(mean (reduce-max x) :axis nil)") == {}
    assert list(offered([1, 1 << 20], "(mean (reduce-max x) :axis nil)").values()) == [splits.PARTS]


LOSSES = {"one of each row": "(cross-entropy x y)", "all of each row": "(mean (log-softmax x) :axis nil)"}


@pytest.mark.parametrize("body", LOSSES.values(), ids=LOSSES)
def test_a_loss_of_rows_reads_them_once(body: str) -> None:
    given = "(x f32 [1024 4096])" + (" (y i32 [1024])" if "x y" in body else "")
    plan = compile_plan(Source("loss", f'(defmodel loss [{given}] "A loss." {body})'), Options(target="cuda"))
    touched = [[dim.product(a.shape) for a, _ in accesses(k.kernel)] for k in plan.kernels]
    readers = [k for k, sizes in zip(plan.kernels, touched, strict=True) if 1024 * 4096 in sizes]
    assert [k.schedule.template for k in readers] in (["direct"], ["lines"])


def attention(heads: int, keys: int = 8, width: int = 128) -> Source:
    """A step of `heads` query heads for each of some key heads, at a position known at run time."""
    cache = f"[1 {keys} 8192 {width}] :dtype bf16"
    return Source(
        "attention",
        f"""
(defdim kv :min 1 :max 8192 :hint 8192)
(defmodel attend [(q f32 [1 {keys * heads} 1 {width}])]
  "One position attends to a cache."
  (let [k (state "k" {cache})
        v (state "v" {cache})]
    (sdpa q (slice k :axis 2 :stop kv) (slice v :axis 2 :stop kv))))
""",
    )


@pytest.mark.parametrize(
    ("heads", "width", "number"), [(4, 64, 0), (8, 256, 0), (16, 64, 0), (11, 64, 1), (4, 36, 1)]
)
def test_only_what_is_no_walk_is_offered_in_chunks(heads: int, width: int, number: int) -> None:
    work = compile_model(attention(heads, width=width), Options(target="cuda"), Stage.FIELDS)
    ((variant, region),) = work.distinct().values()
    assert list(splits.chunks(region, variant.box.hints()).values()) == [splits.CHUNKS] * number


def test_attention_of_a_step_is_one_kernel() -> None:
    plan = compile_plan(attention(4), Options(target="cuda"))
    assert [k.schedule.template for k in plan.kernels] == ["walk"]


def check(body: str, shape: list[int], target: str) -> None:
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    session = Session(retarget(made(body, shape), target))
    (got,) = session.run({"x": x}).values()
    np.testing.assert_allclose(got, WORK[body](x.astype(np.float64)), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("body", WORK)
@pytest.mark.parametrize("shape", SHAPES)
def test_chunks_add_up_on_a_cpu(body: str, shape: list[int]) -> None:
    check(body, shape, "cpu")


@pytest.mark.cuda
@pytest.mark.parametrize("body", WORK)
@pytest.mark.parametrize("shape", SHAPES)
def test_chunks_add_up_on_the_gpu(body: str, shape: list[int]) -> None:
    check(body, shape, "cuda")
