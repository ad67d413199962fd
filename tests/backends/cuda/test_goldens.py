"""The CUDA of every golden kernel compiles, and its threads keep what they hold in registers."""

from __future__ import annotations

from pathlib import Path

import pytest

from lumi.backends.cuda.compile import Cubin, compile_cubins
from lumi.backends.cuda.emit import source

GOLDEN = Path(__file__).parents[2] / "golden"
FILES = sorted(GOLDEN.rglob("*.cu"))

HOPPER = ("cp.async.bulk", "barrier.cluster", "setmaxnreg")
"""Instructions that sm_80 lacks."""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_golden_kernels_compile_without_spills(arch: str) -> None:
    texts = {f.relative_to(GOLDEN).as_posix(): source([f.read_text()]) for f in FILES}
    if arch == "sm_80":
        texts = {name: t for name, t in texts.items() if not any(i in t for i in HOPPER)}
    assert len(texts) > 4
    for name, cubin in zip(texts, compile_cubins(list(texts.values()), arch), strict=True):
        assert isinstance(cubin, Cubin), f"{name}: {cubin}"
        assert cubin.spilled == 0, name
