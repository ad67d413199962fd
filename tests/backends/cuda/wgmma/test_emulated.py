"""Sums of products by groups of warps run on the CPU: right, whenever copies come and whatever runs first."""

from __future__ import annotations

import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cuda.wgmma.plan import TEMPLATE
from lumi.llir.kernel import Kernel, Schedule, Step, accesses, written
from tests.backends.cpu.kernels import assert_close, random_buffers
from tests.backends.cuda.emulator.run import Emulated, is_possible
from tests.backends.cuda.mma.forms import batched, gated_pair, product

pytestmark = pytest.mark.skipif(not is_possible(), reason="there is no g++")

VALUES = {"seq": 37}


def schedule(groups: int, columns: int, depth: int, stages: int) -> Schedule:
    """Tiles that threads copy."""
    options = {"bulk": 0, "columns": columns, "depth": depth, "groups": groups, "stages": stages}
    return Schedule(TEMPLATE, tuple(sorted(options.items())))


SUMS: dict[str, tuple[Kernel, Schedule]] = {
    "rows at run time": (product("seq", 136, 200), schedule(1, 64, 64, 3)),
    "two groups": (product(150, 128, 264, "m k", "k n"), schedule(2, 64, 128, 3)),
    "across": (product(72, 80, 104, "k m", "k n", t="f16", out="f16"), schedule(1, 128, 64, 4)),
    "pair": (gated_pair(40, 72, 96), schedule(1, 64, 64, 3)),
    "batched": (batched(2, 2, "seq", 40, 64), schedule(1, 64, 64, 4)),
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("early", [True, False])
def test_products_are_right(name: str, early: bool) -> None:
    kernel, chosen = SUMS[name]
    want = random_buffers(kernel, VALUES, 3)
    for buffer in written(kernel):
        want[buffer].view("u1")[...] = 0xFF
    got = {n: a.copy() for n, a in want.items()}
    interpret.run(kernel, want, VALUES)
    Emulated(Step(kernel, chosen)).run(got, VALUES, early=early, backwards=early)
    types = {a.buffer: a.dtype for a, _ in accesses(kernel)}
    for buffer in written(kernel):
        assert_close(got[buffer], want[buffer], types[buffer], 2.0**-7, buffer)
