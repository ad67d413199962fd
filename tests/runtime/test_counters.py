"""What a session counts, and that calls on the CPU take no memory once their variant has run."""

from __future__ import annotations

import copy
import gc
import tracemalloc

import numpy as np

from lumi.runtime.counters import Counters
from lumi.runtime.session import Session
from tests.compilations import gemma, mlp, plan_of

FEW = 12288
"""Bytes that Python takes for small objects while a call runs."""


def test_counters_are_differences_of_sums() -> None:
    now, before = Counters(3, 9, 4, 2, 100, 50, 7), Counters(1, 4, 4, 1, 90, 0, 7)
    assert now - before == Counters(2, 5, 0, 1, 10, 50, 0)
    kept = copy.copy(now)
    now.launches += 1
    assert kept.launches == 9


def test_steps_on_the_cpu_take_no_blocks() -> None:
    session = Session(plan_of(gemma()), init="random")
    ids = np.random.default_rng(0).integers(0, 97, (1, 40)).astype(np.int32)
    session(tokens=ids[:, :5], past=0)
    session(tokens=ids[:, 5:6], past=5)
    before = session.counters
    for past in range(6, 40):
        logits = session(tokens=ids[:, past : past + 1], past=past)["logits"]
    found = session.counters - before
    assert (found.captures, found.device_allocations, found.host_allocations) == (0, 0, 0)
    assert (found.launches, found.bytes_out, found.bytes_within) == (34, 34 * logits.nbytes, 0)
    assert found.bytes_in == 34 * ids.itemsize


def test_calls_on_the_cpu_take_only_what_they_return() -> None:
    """Of all that Python and numpy allocate, the most at any time is the output and some small objects."""
    session = Session(plan_of(mlp()), init="random")
    x = np.ones((64, 64), np.float32)
    for _ in range(3):
        out = session(x=x)["out"]
    size = out.nbytes
    del out
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(20):
            session(x=x)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most <= size + FEW < x.nbytes
