"""Whole searches by the model: the shapes of plans, their results, and how far they can be trusted."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from lumi.dim import DimRange
from lumi.errors import LumiError
from lumi.llir.kernel import Loop
from lumi.llir.text import show_graph
from lumi.search.search import search
from lumi.search.settings import Mode
from tests.search.plans import (
    Modelled,
    assert_equal,
    found,
    graph_of,
    loops,
    reference,
    run,
    settings_of,
)
from tests.workloads import ATTENTION, WORKLOADS, Workload, attention, attention_work, both, bin_, window
from tests.workloads import CAUSAL, Pos


@pytest.mark.parametrize("name", WORKLOADS)
def test_workload_has_its_plan_and_its_value(name: str, golden: Callable[..., None]) -> None:
    work = WORKLOADS[name]
    region, _ = graph_of(work)
    graph = found(work).graph
    golden(show_graph(graph), ".kernels", name=name)
    dims = work.sizes(work.small)
    buffers = work.arrays(region, dims)
    got, want = run(graph, region, buffers, dims), reference(region, buffers, dims)
    out = region.stores[0].access.buffer
    assert_equal(got[out], want[out], work.tolerance)
