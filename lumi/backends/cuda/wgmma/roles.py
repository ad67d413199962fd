"""What the two kinds of threads of a block do: those that copy, and those that multiply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lumi.backends.cuda.mma.form import Product, Stored
from lumi.backends.cuda.mma.plan import WARP, Tile
from lumi.backends.cuda.mma.writer import TensorWriter
from lumi.backends.cuda.scope import single
from lumi.backends.cuda.wgmma.box import Boxed
from lumi.backends.cuda.wgmma.instruction import ROWS, Instruction
from lumi.backends.cuda.wgmma.plan import GROUP, PANEL, SIGNALS, GroupPlan


class Role(TensorWriter):
    """What both kinds of threads have in common: they go through the same cells in the same order."""

    plan: GroupPlan

    grid: tuple[str, str]
    """CUDA for the number of tiles of rows, and of columns."""

    first_thread = 0
    """The first of the threads."""

    def lines(self) -> list[str]:
        """The body of the function."""
        w, form, plan = self.w, self.form, self.plan
        self.open()
        thread = f"(threadIdx.x - {self.first_thread})" if self.first_thread else "threadIdx.x"
        w.line(f"const u32 shared = signals + {SIGNALS};")
        w.line(f"const int lane = threadIdx.x % {WARP}, warp = {thread} / {WARP};")
        w.line(f"const int team = group_of_warps() - {self.first_thread // GROUP};")
        high = self.count(form.row, plan.rows, "high")
        wide = self.count(form.column, plan.width_of(form.column), "wide")
        self.grid = high, wide
        outer = [w.extent(self.kernel.axes[a]) for a in form.outer]
        total = w.declare("int", " * ".join([*outer, high, wide]), "cells")
        self.begin()
        with w.block(f"for (int lap = {'before / gridDim.x' if self.beside else '0'};; lap++) "):
            w.line("const int place = lap & 1 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;")
            w.line(f"const int cell = lap * gridDim.x + place{' - (int)before' if self.beside else ''};")
            w.line(f"if (cell >= {total}) break;")
            if self.beside:
                w.line("if (cell < 0) continue;")
            self.open_cell(*self.grid)
            self.cell()
        self.end()
        if self.beside:
            w.line(f"return before + {total};")
        return w.here.lines

    def begin(self) -> None:
        """Write what comes before all cells."""

    def end(self) -> None:
        """Write what comes after all cells."""

    def rings(self, counts: dict[str, int]) -> None:
        """Declare rings of so many stages each, unless those of a launch are given."""
        if self.beside:
            return
        total, first = sum(counts.values()), 0
        for name, count in counts.items():
            self.w.line(f"Ring<{count}> {name}(signals, {first}, {total});")
            first += count

    # -- copies

    def claim(self, ring: str, tiles: Iterable[Tile], aside: str = "") -> None:
        """Wait until the stage at hand is empty, to bring some tiles.

        Where the test `aside` holds, the copy engine tells that they have come on a signal of that name.
        """
        self.w.line(f"{ring}.claim();")
        if self.plan.bulk:
            self.expect(ring, sum(map(self.plan.size_of, tiles)), aside)

    def expect(self, ring: str, size: int, aside: str = "") -> None:
        """Announce the bytes that the stage at hand will be full with."""
        signal = f"{ring}.full + 8 * {ring}.slot"
        self.w.line(f"const u32 signal = {f'{aside} ? aside : {signal}' if aside else signal};")
        self.w.line(f"if (lane == 0) {f'signal_expect(signal, {size})' if size else 'signal_give(signal)'};")

    def sent(self, ring: str) -> None:
        """Tell that the stage at hand is full as soon as its copies have come."""
        if not self.plan.bulk:
            self.w.line(f"feed.sent({ring}.full + 8 * {ring}.slot);")
        self.w.line(f"{ring}.next();")

    def copy_helper(self, tile: Tile, full: str) -> str:
        """The helper that copies a tile, which with `full` never ends early."""
        return f"copy_panels<{tile.lines}, {tile.chunks}, {full}>"

    def copy(self, tile: Tile, to: str, starts: Mapping[str, str], stops: Mapping[str, str]) -> None:
        """Copy a tile that begins at these positions."""
        if not self.plan.bulk:
            super().copy(tile, to, starts, stops)
            return
        w, found = self.w, self.plan.boxed(tile)
        with w.block("if (lane == 0) ", {axis: single(place) for axis, place in starts.items()}):
            plane, number = self.plane(found), self.plan.maps.index(found.box)
            x, y = starts[tile.factor.along], starts[tile.lines_axis]
            for panel in range(tile.chunks * 8 // PANEL):
                at = f"{to} + {panel * self.plan.tile_panels(tile)}"
                w.line(f"fetch_box({at}, &map{number}, signal, {x} + {panel * PANEL}, {y}, {plane});")

    def plane(self, found: Boxed) -> str:
        """CUDA for the plane that the cell at hand has its part in."""
        places = [(self.w.opened(axis), n) for axis, n in found.moves]
        return " + ".join(f"{self.w.position(o)} * {n}" for o, n in places if o is not None) or "0"

    # -- products

    def products(self, product: Product, result: str, a: str, b: str, adds: str) -> None:
        """Issue the products of a stage: of a factor at address, or in registers, a, with the one at b.

        They add to the result where the test `adds` holds; it is 0 before else.
        """
        w, plan = self.w, self.plan
        stored = product.a if isinstance(product.a, Stored) else None
        instruction = Instruction(
            plan.width_of(product.columns),
            self.bf16 == "true",
            stored is None,
            stored is not None and not stored.is_summed_along,
            not product.b.is_summed_along,
        )
        right = self._described(plan.tile(product.b), b, "")
        left = (
            "" if stored is None else self._described(plan.tile(stored), a, f"team * {self._group(stored)}")
        )
        for k in range(plan.steps(plan.depth_of(product))):
            first = f"{a}[{k}][0]" if stored is None else f"{left} + {self._step(plan.tile(stored), k)}"
            second = f"{right} + {self._step(plan.tile(product.b), k)}"
            w.line(f"{instruction.name}({result}, {first}, {second}, {1 if k > 0 else adds});")

    def _described(self, tile: Tile, place: str, offset: str) -> str:
        """The description of a tile, `offset` bytes into it."""
        apart = 16 if tile.factor.is_summed_along else self.plan.tile_panels(tile)
        return self.w.declare("u32", f"tile_at({place}{f' + {offset}' if offset else ''}, {apart})", "tile")

    def _group(self, factor: Stored) -> int:
        """Bytes from the rows of one group to those of the next."""
        if factor.is_summed_along:
            return ROWS * 2 * PANEL
        return self.plan.tile_panels(self.plan.tile(factor))

    def _step(self, tile: Tile, k: int) -> int:
        """How far the `k`-th step of the sum lies into a tile, in units of 16 bytes."""
        if not tile.factor.is_summed_along:
            return k * 16 * 2 * PANEL // 16
        return (k // 4 * self.plan.tile_panels(tile) + k % 4 * 32) // 16
