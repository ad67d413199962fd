"""The code by which results pass through the stages of factors: part of their columns after part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from lumi.backends.cuda import ctype
from lumi.backends.cuda.mma.form import HALVES
from lumi.backends.cuda.mma.tiles import Held
from lumi.backends.cuda.mma.writer import packed
from lumi.backends.cuda.tensormap import LINE
from lumi.backends.cuda.wgmma.instruction import ROWS
from lumi.backends.cuda.wgmma.roles import Role
from lumi.backends.cuda.wgmma.sent import WIDTH, Piece, Sent
from lumi.dtype import F32
from lumi.llir.kernel import Store
from lumi.llir.program import dtype_of

WARPS = 4
"""Warps of a group, the first of which tells the copy engine what to store."""


class Sender:
    """Writes what follows the products of a cell for a role that multiplies."""

    def __init__(self, role: Role, found: Sent) -> None:
        self.role, self.found, self.w = role, found, role.w
        self.tiles, self.plan, self.column = role.tiles, role.plan, role.form.column

    def send(self, stores: Sequence[Store]) -> None:
        """All columns, `WIDTH` at a time; a stage is let go of once the next results are on their way."""
        w, tiles = self.w, self.tiles
        along, held = tiles.columns[self.column], dict(tiles.held)
        w.line("int sending = -1;")
        with w.block(f"#pragma unroll\nfor (int q = 0; q < {self.plan.columns // WIDTH}; q++) "):
            w.line("ring.await();")
            w.line(f"const u32 stage = shared + ring.slot * {self.plan.stage};")
            tiles.columns[self.column] = replace(
                along, first=f"({along.first} + q * {WIDTH})", count=WIDTH // along.step
            )
            self._take_products()
            self._take_operands()
            self.role.hold_columns(stores)
            self._put(stores)
            self._pass_on()
        tiles.columns[self.column], tiles.held = along, held
        with w.block("if (first_warp) "):
            w.line("if (lane == 0) sent_read<0>();")
            w.line("ring.release(sending);")

    def _take_products(self) -> None:
        """The sums of these columns."""
        for product in self.role.form.products:
            whole, name = self.tiles.held[product.var], self.w.fresh("p")
            self.tiles.array(name, F32, True, self.column)
            with self._each():
                for k in range(2):
                    place = f"q * {WIDTH // WARPS} + j * 2 + {k}"
                    self.w.line(f"{name}[i][j * 2 + {k}] = {whole.name}[i][{place}];")
            self.tiles.held[product.var] = replace(whole, name=name)

    def _take_operands(self) -> None:
        """What the copy engine brought."""
        w, table = self.w, self.role.form.program.definitions
        for var, piece in self.found.loads.items():
            dtype, name = dtype_of(table[var]), w.fresh("r")
            self.tiles.array(name, dtype, True, self.column)
            kind = piece.access.dtype
            with self._each():
                w.line(f"const auto two = read_pair<{kind.size}>({self._place(piece)});")
                for k in range(2):
                    w.line(f"{name}[i][j * 2 + {k}] = {ctype.part('two', k, kind)};")
            self.tiles.held[var] = Held(name, dtype, True, self.column)

    def _put(self, stores: Sequence[Store]) -> None:
        """Compute the results, and leave them where operands were, or beside them."""
        w, role = self.w, self.role
        with self.tiles.both(self.column):
            found = [role.elements.value(*role.unrounded(s)) for s in stores]
            for piece, value in zip(self.found.stores, found, strict=True):
                texts = [value.at(dict.fromkeys(value.axes, k)) for k in range(2)]
                kind = piece.access.dtype
                words = [packed(kind, value.dtype, texts)]
                if kind not in HALVES:
                    words = [f"__float_as_uint({ctype.conversion(t, value.dtype, kind)})" for t in texts]
                w.line(f"write_pair({self._place(piece)}, {', '.join(words)});")

    def _pass_on(self) -> None:
        """Tell the copy engine to store the rows of the group, once all of its threads have left theirs."""
        w, plan = self.w, self.plan
        w.line("group_meet(team);")
        with w.block("if (first_warp) "):
            with w.block("if (lane == 0) "):
                for piece in self.found.stores:
                    number, plane = plan.maps.index(piece.boxed.box), self.role.plane(piece.boxed)
                    for offset, column in piece.boxes(plan.rows):
                        place, row = f"stage + {offset} + team * {ROWS * LINE}", f"first_row + team * {ROWS}"
                        w.line(f"send_box({place}, &map{number}, {column}, {row}, {plane});")
                w.line("sent_next();")
                w.line("sent_read<1>();")
            w.line("if (sending >= 0) ring.release(sending);")
        w.line("else ring.release(ring.slot);")
        w.line("sending = ring.slot;")
        w.line("ring.next();")

    def _place(self, piece: Piece) -> str:
        """CUDA for the address of a pair of a thread, in a loop over its rows and pairs."""
        numbers = f"{piece.access.dtype.size}, {self.plan.rows}"
        return f"pair_place<{numbers}>(stage + {piece.offset}, warp * 16 + lane / 4 + i * 8, j)"

    @contextmanager
    def _each(self) -> Iterator[None]:
        """A loop over the rows of a thread, and one over its pairs."""
        pairs = f"#pragma unroll\nfor (int j = 0; j < {WIDTH // 8}; j++) "
        with self.w.block("#pragma unroll\nfor (int i = 0; i < 2; i++) "), self.w.block(pairs):
            yield
