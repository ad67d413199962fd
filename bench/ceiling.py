"""What this machine can do at best: the floors that figures are compared with."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

_ROUNDS = 7


def read_bandwidth(threads: int) -> float:
    """Bytes a second that `threads` threads read from memory: the best of some dot products of 512 MB."""
    array = np.ones(1 << 27, np.float32)
    parts = np.array_split(array, threads)
    with ThreadPoolExecutor(threads) as pool:
        return array.nbytes / _best(lambda: list(pool.map(lambda part: np.dot(part, part), parts)))


def multiply_rate() -> float:
    """Floating-point operations a second of numpy's f32 matrix product, the best of some of 1536³."""
    size = 1536
    a, b = np.random.default_rng(0).standard_normal((2, size, size), np.float32)
    return 2 * size**3 / _best(lambda: a @ b)


def _best(work: Callable[[], object]) -> float:
    """The least seconds of a few runs, after one that is not counted."""
    work()
    seconds = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
