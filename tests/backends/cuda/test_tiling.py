"""How much of a grid blocks take at once where their threads wait for each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cuda import tiling
from lumi.backends.cuda.emit import emit
from lumi.backends.cuda.scope import Blocking
from lumi.errors import Source
from lumi.llir.kernel import Kernel, Schedule, Step
from lumi.llir.parse import parse
from tests.backends.cpu.kernels import random_buffers
from tests.backends.cuda.emulator.run import Emulated, is_possible

STREAM = Schedule("stream", (("threads", 512),))


def scaled(blocks: int, op: str = "exp2") -> Kernel:
    """R[b h f] = Q[b h f] · op(S[b h]), which all threads of a block's row share."""
    return parse(
        Source(
            "kernel.lumi",
            f"""
(kernel
  :buffers [(S [{blocks} 2] f32) (Q [{blocks} 2 32] f32) (R [{blocks} 2 32] f32)]
  :axes [(b {blocks}) (h 2) (f 32)]
  :grid [(b 1) (h 1) (f 32)]
  (let [v1 (load (S [b h])) v2 (mul v1 0.5) v3 ({op} v2) v4 (log2 v3) v5 (load (Q [b h f])) v6 (mul v4 v5)]
    (store (R [b h f]) v6)))
""",
        )
    )


def cells(kernel: Kernel) -> int:
    return emit(Step(kernel, STREAM), "kernel").cells({})


@pytest.mark.parametrize(("blocks", "taken"), [(1 << 18, 8), (1 << 15, 2), (1 << 14, 1)])
def test_blocks_take_more_as_long_as_there_are_cells_enough(blocks: int, taken: int) -> None:
    kernel, blocking = scaled(blocks), Blocking(512, 1, 2)
    usual = tiling.tiles(kernel, blocking)
    wide = tiling.widened(kernel, usual)
    count = math.prod(-(-extent // wide[a]) for a, extent in {"b": blocks, "h": 2, "f": 32}.items())
    assert wide["b"] == usual["b"] * taken
    assert count >= tiling.CELLS or taken == 1
    assert cells(kernel) == count


@pytest.mark.skipif(not is_possible(), reason="there is no g++")
def test_what_a_wide_cell_computes_is_right() -> None:
    kernel = scaled(1 << 15)
    want = random_buffers(kernel, {}, 3)
    got = {n: a.copy() for n, a in want.items()}
    interpret.run(kernel, want, {})
    Emulated(Step(kernel, STREAM)).run(got, {}, early=False, backwards=False)
    np.testing.assert_allclose(got["R"], want["R"], rtol=1e-5, atol=1e-6)
