"""Whole sums of products by groups of warps."""

from __future__ import annotations

from lumi.backends.cuda.mma.form import Stored, Sums
from lumi.backends.cuda.mma.plan import Tile
from lumi.backends.cuda.mma.sums import SumWriter
from lumi.backends.cuda.mma.writer import factors
from lumi.backends.cuda.wgmma.plan import GROUP
from lumi.backends.cuda.wgmma.roles import Role


class SumFeed(Role, SumWriter):
    """Those that copy: the factors of stage after stage."""

    def begin(self) -> None:
        """The ring and what is on its way."""
        self.rings({"ring": self.plan.stages})
        if not self.plan.bulk:
            self.w.line(f"Feed<{max(self.plan.stages - 2, 1)}> feed;")

    def cell(self) -> None:
        """The stages of all sums."""
        w, plan = self.w, self.plan
        for sums in self.form.sums:
            with w.block(""):
                turns = self.turns(sums)
                with w.block(f"for (int n = 0; n < {turns.total}; n++) "):
                    self.claim("ring", self.stage_tiles(sums))
                    w.line(f"const u32 to = shared + ring.slot * {plan.stage};")
                    self.copies(sums, turns)
                    self.sent("ring")

    def end(self) -> None:
        """Nothing is left on its way."""
        if not self.plan.bulk:
            self.w.line("feed.finish();")

    def stage_tiles(self, sums: Sums) -> list[Tile]:
        """The tiles of a stage."""
        return [self.plan.tile(f) for side in "ab" for f in factors(sums.products, side)]


class SumUse(Role, SumWriter):
    """Those that multiply, and store what comes of it."""

    first_thread = GROUP

    def begin(self) -> None:
        """The ring."""
        self.rings({"ring": self.plan.stages})

    def sum_up(self, sums: Sums) -> None:
        """The stages of sums over the same axes; each is let go of when the next one's products run."""
        w, plan = self.w, self.plan
        names = [self.tiles.held[p.var].name for p in sums.products]
        turns = self.turns(sums)
        w.line("int before = -1;")
        with w.block(f"for (int n = 0; n < {turns.total}; n++) "):
            w.line("ring.await();")
            w.line(f"const u32 stage = shared + ring.slot * {plan.stage};")
            w.line("products_begin();")
            for product, name in zip(sums.products, names, strict=True):
                assert isinstance(product.a, Stored), "factors of whole sums lie in memory"
                a, b = (self.at(plan.tile(f), "stage") for f in (product.a, product.b))
                self.products(product, name, a, b, False)
            w.line("products_end();")
            w.line("products_await<1>();")
            w.line("if (before >= 0) ring.release(before);")
            w.line("before = ring.slot;")
            w.line("ring.next();")
        w.line("products_await<0>();")
        for name in names:
            w.line(f"settle({name});")
        w.line("if (before >= 0) ring.release(before);")
