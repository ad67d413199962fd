"""Memory of cells that does not fit on the stack: each thread keeps it, and takes no more from the system."""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path

import pytest

from lumi.backends.cpu import emit as code
from lumi.backends.cpu.compile import compile_library
from lumi.llir.kernel import Step
from tests.backends.cpu.kernels import C, Compiled, assert_equal_runs, read

HELPERS = (Path(code.__file__).parent / "scratch.h").read_text()

CELL = """
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
static _Atomic int taken;
static void *counted(size_t size) { taken++; return (malloc)(size); }
#define malloc(size) counted(size)
%s
int taken_so_far(void) { return taken; }

/* Nests blocks of these sizes, fills each with its number, and says whether all still hold it at the end. */
int cell(const int64_t *sizes, int64_t count) {
  char *blocks[16];
  int is_right = 1;
  for (int64_t n = 0; n < count; n++) {
    blocks[n] = scratch(sizes[n]);
    memset(blocks[n], (int)n + 1, sizes[n]);
  }
  for (int64_t n = count; n-- > 0;) {
    for (int64_t k = 0; k < sizes[n]; k++) is_right &= blocks[n][k] == (char)(n + 1);
    release(blocks[n], sizes[n]);
  }
  return is_right;
}
"""


@pytest.fixture(scope="module")
def cells() -> ctypes.CDLL:
    return ctypes.CDLL(str(compile_library(CELL % HELPERS)))


def run(cells: ctypes.CDLL, *sizes: int) -> int:
    """How often a cell went to the system."""
    before = cells.taken_so_far()
    assert cells.cell((ctypes.c_int64 * len(sizes))(*sizes), ctypes.c_int64(len(sizes)))
    return int(cells.taken_so_far() - before)


def in_thread(cells: ctypes.CDLL, *calls: tuple[int, ...]) -> list[int]:
    """The same for cells of a thread of their own, one after another."""
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.extend(run(cells, *sizes) for sizes in calls))
    thread.start()
    thread.join()
    return found


def test_cells_take_memory_once(cells: ctypes.CDLL) -> None:
    large, small = (100_000, 3, 70_001), (9, 64)
    assert in_thread(cells, large, large, small, large, small) == [4, 0, 0, 0, 0]


def test_a_larger_cell_takes_more_once(cells: ctypes.CDLL) -> None:
    assert in_thread(cells, (1000,), (1000, 500), (1000, 500), (1000,), (5000,), (1, 4000)) == [
        2,
        2,
        0,
        0,
        2,
        0,
    ]


def test_each_thread_has_its_own(cells: ctypes.CDLL) -> None:
    assert in_thread(cells, (1000,), (1000,)) == in_thread(cells, (1000,), (1000,)) == [2, 0]


def test_kernels_give_back_what_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that a loop carries, with hardly any room for them on the stack."""
    monkeypatch.setattr(code, "STACK", 64)
    step = Step(read("causal"), C)
    text = code.emit(step, "k")
    assert text.count("scratch(") == text.count("release(") > 2
    compiled = Compiled([step])
    for seq in (1, 65, 130, 7):
        assert_equal_runs(step.kernel, {"seq": seq}, compiled, 0)
