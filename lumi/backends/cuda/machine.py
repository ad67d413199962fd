"""The GPU that prices are those of: an H200, as measured."""

from __future__ import annotations

from lumi.search.model import Machine

MACHINE = Machine(
    units=132,
    bandwidth=4.2e12,
    cache_bandwidth=8e12,
    dot_rate=8e12,
    element_rate=20e12,
    launch=2e-6,
    tile_memory=96 << 10,
    cache=4 << 30,
    name="NVIDIA H200",
)
"""The GPU under the templates that share a code generator.

`dot_rate` is that of contractions on the CUDA cores.  What is read again is mostly read by the blocks at
work, so that buffers far larger than the 50 MiB of the last cache count as lying in it.
"""

RESIDENT = 2048
"""Threads that a multiprocessor runs at once."""

MEMORY = 140 << 30
"""Bytes of its memory."""
