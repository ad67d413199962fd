"""Whole sums of products by groups of warps."""

from __future__ import annotations

from collections.abc import Sequence

from lumi.backends.cuda.mma.form import Stored, Sums
from lumi.backends.cuda.mma.plan import Tile
from lumi.backends.cuda.mma.sums import SumWriter
from lumi.backends.cuda.mma.writer import factors
from lumi.backends.cuda.values import long
from lumi.backends.cuda.wgmma.plan import GROUP
from lumi.backends.cuda.wgmma.roles import Role
from lumi.backends.cuda.wgmma.sender import Sender
from lumi.backends.cuda.wgmma.sent import WIDTH, Sent
from lumi.llir.kernel import Store


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
        if plan.sent is not None:
            self._operands(plan.sent)

    def _operands(self, found: Sent) -> None:
        """Bring what results are made of beside products, stage after stage; or let go of empty stages."""
        w, plan = self.w, self.plan
        with w.block(f"for (int q = 0; q < {plan.columns // WIDTH}; q++) "):
            w.line("ring.claim();")
            self.expect("ring", found.brought)
            if found.loads:
                w.line(f"const u32 to = shared + ring.slot * {plan.stage};")
            for piece in found.loads.values():
                number, plane = plan.maps.index(piece.boxed.box), self.plane(piece.boxed)
                for offset, column in piece.boxes(plan.rows):
                    line = f"fetch_box(to + {offset}, &map{number}, signal, {column}, first_row, {plane});"
                    w.line(f"if (lane == 0) {line}")
            w.line("ring.next();")

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
        if self.plan.sent is not None:
            self.w.line("const bool first_warp = __shfl_sync(FULL_WARP, warp % 4, 0) == 0;")

    def end(self) -> None:
        """What the copy engine stores has come."""
        if self.plan.sent is not None:
            self.w.line(f"if (threadIdx.x % {GROUP} == 0) sent_all();")

    def store_all(self, stores: Sequence[Store]) -> None:
        """Store results: by the copy engine, where it can."""
        found, column = self.plan.sent, self.form.column
        if found is None:
            super().store_all(stores)
            return
        both = [s for s in stores if column in long(self.kernel, s.axes)]
        Sender(self, found).send(both)
        super().store_all([s for s in stores if s not in both])

    def is_begun(self, sums: Sums) -> bool:
        """Whether there are first products."""
        extents = [self.kernel.axes[a] for a in (sums.summed, *sums.outer_summed)]
        whole = sums.loop is None or sums.loop.chunk is None
        return whole and all(isinstance(e, int) and e > 0 for e in extents)

    def sum_up(self, sums: Sums) -> None:
        """The stages of sums over the same axes; each is let go of when the next one's products run."""
        w, plan = self.w, self.plan
        names = [self.tiles.held[p.var].name for p in sums.products]
        turns, adds = self.turns(sums), "n > 0" if self.is_begun(sums) else "1"
        w.line("int before = -1;")
        with w.block(f"for (int n = 0; n < {turns.total}; n++) "):
            w.line("ring.await();")
            w.line(f"const u32 stage = shared + ring.slot * {plan.stage};")
            w.line("products_begin();")
            for product, name in zip(sums.products, names, strict=True):
                assert isinstance(product.a, Stored), "factors of whole sums lie in memory"
                a, b = (self.at(plan.tile(f), "stage") for f in (product.a, product.b))
                self.products(product, name, a, b, adds)
            w.line("products_end();")
            w.line("products_await<1>();")
            w.line("if (before >= 0) ring.release(before);")
            w.line("before = ring.slot;")
            w.line("ring.next();")
        w.line("products_await<0>();")
        for name in names:
            w.line(f"settle({name});")
        w.line("if (before >= 0) ring.release(before);")
