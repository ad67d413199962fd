"""Sums of products that are folded, tile of columns after tile of columns, by groups of warps."""

from __future__ import annotations

from lumi.backends.cuda.mma.folded import FoldWriter
from lumi.backends.cuda.wgmma.sums import SumFeed, SumUse


class FoldFeed(SumFeed, FoldWriter):
    """Those that copy: the factors of stage after stage of all tiles of columns."""

    def cell(self) -> None:
        """The stages of a cell."""
        span = self.open_span()
        with self.w.block("for (int turn = live.first; turn < live.last; turn++) "):
            self.open_tile_of(span)
            super().cell()


class FoldUse(SumUse, FoldWriter):
    """Those that multiply, fold what comes of it, and store what became of rows."""
