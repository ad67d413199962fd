"""Blocks on loan come back when their arrays die, and only then."""

from __future__ import annotations

import ctypes
import gc

import numpy as np

from lumi.backends.cuda.pinned import GRAIN, LIMIT, Pool


class Host:
    """Ordinary memory in the place of pinned memory."""

    def __init__(self) -> None:
        self.blocks: list[ctypes.Array[ctypes.c_char]] = []

    def allocate(self, size: int) -> int:
        self.blocks.append(ctypes.create_string_buffer(size))
        return ctypes.addressof(self.blocks[-1])


def test_block_comes_back_when_all_views_are_gone() -> None:
    host = Host()
    pool = Pool(host.allocate)
    taken = pool.take(1000)
    assert taken is not None
    address, array = taken
    assert array.ctypes.data == address
    view = array.view(np.int32).reshape(10, 25)[3]
    view[:] = 5
    del taken, array
    gc.collect()
    other = pool.take(1000)
    assert other is not None and other[0] != address
    assert view.tolist() == [5] * 25
    del view
    gc.collect()
    again = pool.take(1000)
    assert again is not None and again[0] == address
    assert len(host.blocks) == 2


def test_sizes_that_round_alike_share_blocks() -> None:
    host = Host()
    pool = Pool(host.allocate)
    for size in (1, GRAIN, GRAIN // 2):
        taken = pool.take(size)
        assert taken is not None and taken[1].nbytes == size
        del taken
        gc.collect()
    assert len(host.blocks) == 1


def test_nothing_is_lent_beyond_the_limit() -> None:
    pool = Pool(Host().allocate)
    held = [pool.take(LIMIT // 4) for _ in range(4)]
    assert all(held)
    assert pool.take(1) is None
    held.pop()
    gc.collect()
    assert pool.take(LIMIT // 4) is not None
