"""Which memory no launch of a graph writes: buffers, and the rows of caches before a position."""

from __future__ import annotations

import pytest

from lumi.backends.cuda.schedule import DEFAULT
from lumi.backends.cuda.settled import Settled
from lumi.dim import DimRange
from lumi.errors import Source
from lumi.llir.kernel import Kernel, Step, accesses, buffers
from lumi.llir.parse import parse
from lumi.plan.plan import Buffer, Launch, Role, Variant
from tests.backends.cuda.kernels import read

ATTENTION = read("attention")


def writer(row: str, shape: str = "2 640 64") -> Kernel:
    """A kernel that writes rows of a cache."""
    text = f"""
(kernel
  :buffers [(A [2 4 64] f32) (B1 [{shape}] bf16)]
  :axes [(c 2) (s 4) (g 64)]
  :grid [(c 1) (s 1) (g 64)]
  (let [v1 (load (A [c s g]))
        v2 (cast.bf16 v1)]
    (store (B1 [c {row} g]) v2)))
"""
    return parse(Source("writer.lumi", text))


def settled(kernel: Kernel, role: Role = Role.STATE) -> tuple[Settled, Launch]:
    """What a graph of a writer and an attention leaves as it is, and the launch of the attention."""
    kernels, roles = (kernel, ATTENTION), {"B1": role, "B2": Role.STATE, "B3": Role.PARAM}
    every = {a.buffer: a for k in kernels for a, _ in accesses(k)}
    numbers = {name: number for number, name in enumerate(every)}
    made = tuple(Buffer(n, roles.get(n, Role.INPUT), a.dtype, a.shape) for n, a in every.items())
    launches = tuple(Launch(k, tuple(numbers[b] for b in buffers(x))) for k, x in enumerate(kernels))
    dims = {"past": DimRange("past", 0, 639, ())}
    steps = [Step(k, DEFAULT) for k in kernels]
    return Settled(steps, Variant(dims, made, launches, {}, 0, 0)), launches[1]


@pytest.mark.parametrize("row", ["(+ s (dim past))", "(+ s (dim past) 1)", "(dim past)"])
def test_rows_before_those_that_are_written_are_settled(row: str) -> None:
    found, attention = settled(writer(row))
    assert found.since(attention) == 0


@pytest.mark.parametrize(
    "kernel",
    [
        writer("s"),
        writer("(+ s (dim past) -1)"),
        writer("(+ (* -1 s) (dim past))"),
        writer("(+ s (* 2 (dim past)))"),
        writer("(+ s (dim other))"),
        writer("(+ s (dim past))", "2 1280 32"),
    ],
    ids=["from the first", "one before", "backwards", "twice as far", "another dim", "another shape"],
)
def test_rows_that_may_be_written_are_not(kernel: Kernel) -> None:
    found, attention = settled(kernel)
    assert found.since(attention) == -1


def test_rows_of_the_arena_are_not_settled() -> None:
    found, attention = settled(writer("(+ s (dim past))"), Role.TEMPORARY)
    assert found.since(attention) == -1


def test_only_walks_have_rows() -> None:
    found, _ = settled(writer("(dim past)"))
    assert found.since(Launch(0, (0, 1))) == -1


def test_what_nothing_writes_is_constant() -> None:
    found, attention = settled(writer("(dim past)"))
    of = dict(zip(buffers(ATTENTION), attention.buffers, strict=True))
    constant = {name for name, number in of.items() if found.is_constant(number)}
    assert constant == {"B2", "B3"}
