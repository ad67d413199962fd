"""Values in memory keep their places while the ranges of axes change around them."""

from __future__ import annotations

from lumi.backends.clike.scope import Held, Range
from lumi.backends.cuda.emit import emit as emit_cuda
from lumi.backends.cuda.schedule import DEFAULT
from lumi.llir.kernel import Step
from tests.backends.cpu.kernels import C, Compiled, assert_equal_runs
from tests.backends.cuda.kernels import read


def test_place_counts_from_the_start_of_the_ranges() -> None:
    held = Held("t", ("i", "j"), {"i": Range("a", "b", bound=5), "j": Range("0", "7", 7, 7)})
    assert held.place(lambda axis: (f"x_{axis}", 0)) == "t + (x_i - a) * 7 + x_j"
    assert held.place(lambda axis: (f"x_{axis}", 2)) == "t + ((x_i - a) + 2) * 7 + (x_j + 2)"


def test_mask_of_a_whole_window_is_read_in_tiles() -> None:
    kernel = read("window")
    compiled = Compiled([Step(kernel, C)])
    assert_equal_runs(kernel, {}, compiled, 0)
    assert "* 252 + " in emit_cuda(Step(kernel, DEFAULT), "window").text
