"""What is remembered of objects: by which they are, and of kernels whatever their tiles."""

from __future__ import annotations

from dataclasses import replace

from lumi.llir.kernel import Kernel
from lumi.llir.memo import KernelMemo
from lumi.memo import Memo


def test_function_is_called_once_for_each_object() -> None:
    called: list[list[int]] = []
    memo = Memo(lambda thing: called.append(thing) or len(called))
    one, equal = [1, 2], [1, 2]
    assert [memo(one), memo(equal), memo(one), memo(equal)] == [1, 2, 1, 2]
    assert len(called) == 2


def test_objects_are_kept_so_that_no_other_takes_their_place() -> None:
    """A new object may have the id of one that is gone."""
    memo = Memo(lambda thing: thing[0])
    assert [memo((number, "apart")) for number in range(100)] == list(range(100))


def test_no_more_is_remembered_than_allowed() -> None:
    called: list[object] = []
    memo = Memo(lambda thing: called.append(thing), most=2)
    things = [[0], [1], [2]]
    for thing in (*things, things[2], things[0]):
        memo(thing)
    assert called == [[0], [1], [2], [0]]


def test_kernels_that_differ_in_tiles_alone_are_one() -> None:
    called: list[Kernel] = []
    memo = KernelMemo(lambda kernel: called.append(kernel))
    kernel = Kernel({"i": 4}, ("i",), (), {"i": 2}, ())
    memo(kernel)
    memo(replace(kernel, tiles={"i": 4}))
    assert called == [kernel]
    memo(replace(kernel, axes={"i": 8}))
    assert len(called) == 2
