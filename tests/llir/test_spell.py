"""Index maps as C."""

from __future__ import annotations

import pytest

from lumi.dtype import F32
from lumi.field.access import Access
from lumi.field.index import Data, Index, Quot, Rem, index, of_axis
from lumi.llir import spell

ROW, COLUMN = of_axis("i"), of_axis("j")
SHIFTED = index([("j", 1), ("k", 1)], -2)


def clamped(*where: Index) -> Access:
    return Access("B0", where, (4, 9)[: len(where)], F32, clamp=True)


@pytest.mark.parametrize(
    ("where", "is_row"),
    [
        ((ROW, COLUMN), True),
        ((ROW, SHIFTED), True),
        ((ROW, index([("j", 1), (Data(0), 1)])), True),
        ((COLUMN, ROW), False),
        ((ROW, COLUMN.scale(2)), False),
        ((COLUMN, COLUMN), False),
        ((ROW, index([(Quot(COLUMN, 2), 1)])), False),
        ((ROW, index([("j", 1), (Rem(COLUMN, 2), 1)])), False),
    ],
    ids=str,
)
def test_row_moves_by_one_with_the_axis(where: tuple[Index, ...], is_row: bool) -> None:
    assert spell.is_row(clamped(*where), "j") is is_row


def test_row_is_the_element_taken_apart() -> None:
    access = clamped(ROW, SHIFTED)

    def at(axis: str) -> tuple[str, int]:
        return f"x_{axis}", 0

    assert spell.row(access, at, str) == ("clamp(x_i, 4) * 9", "x_j + x_k + -2", "9")
    assert spell.element(access, at, str, {}) == "clamp(x_i, 4) * 9 + clamp(x_j + x_k + -2, 9)"
