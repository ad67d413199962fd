"""Which loops the C compiler is told to write out."""

from __future__ import annotations

import pytest

from lumi.backends.cpu.loops import LINES, PRAGMA, _may_unroll


@pytest.mark.parametrize(
    ("body", "turns", "may"),
    [
        (["a += x[i];"], 4, True),
        (["a += x[i];"] * (LINES // 4), 4, True),
        (["a += x[i];"] * (LINES // 4 + 1), 4, False),
        ([f"{PRAGMA}for (;;) {{", "  a += x[i];", "}"], 2, False),
    ],
    ids=["short", "as long as may be", "too long", "around another that is"],
)
def test_only_short_inner_loops_are_written_out(body: list[str], turns: int, may: bool) -> None:
    assert _may_unroll(body, turns) is may
