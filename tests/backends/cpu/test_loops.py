"""Which loops the C compiler is told to write out."""

from __future__ import annotations

import pytest

from lumi.backends.cpu.loops import LENGTH, _may_unroll

LINES = LENGTH // 100
LINE = "a += x[i];".ljust(100)
HEADER = '_Pragma("GCC unroll 4") for (;;) {'
INNER = [HEADER, *[f"  {LINE}"] * (LINES // 16), "}", "b += a;"]


@pytest.mark.parametrize(
    ("body", "turns", "may"),
    [
        ([LINE], 4, True),
        ([LINE] * (LINES // 4), 4, True),
        ([LINE] * (LINES // 4 + 1), 4, False),
        (INNER, 2, True),
        (INNER, 4, False),
        ([LINE] * (LINES // 4 - 2) + [HEADER, "}"], 4, True),
    ],
    ids=[
        "short",
        "as long as may be",
        "too long",
        "around a loop",
        "around too long a loop",
        "beside a loop",
    ],
)
def test_only_short_loops_are_written_out(body: list[str], turns: int, may: bool) -> None:
    assert _may_unroll(body, turns) is may
