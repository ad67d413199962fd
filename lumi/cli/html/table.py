"""A table: a head and rows of cells, some of them text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape


def table(head: Sequence[str], rows: Sequence[Sequence[str]], text: Collection[int] = ()) -> str:
    """Cells in columns, of which those numbered in `text` are words and the others numbers."""
    lines = [_row("th", head, text), *(_row("td", row, text) for row in rows)]
    return f'<div class="wide"><table>\n{chr(10).join(lines)}\n</table></div>'


def _row(kind: str, cells: Sequence[str], text: Collection[int]) -> str:
    starts = (f'<{kind} class="text">' if n in text else f"<{kind}>" for n in range(len(cells)))
    made = (f"{start}{escape(cell)}</{kind}>" for start, cell in zip(starts, cells, strict=True))
    return f"<tr>{''.join(made)}</tr>"
