"""What a store looks up: which elements it may write then, and under which names."""

from __future__ import annotations

from dataclasses import replace

from lumi.dim import var
from lumi.dtype import F32
from lumi.field.access import Access
from lumi.field.index import Look, Quot, Rem, index, of_axis
from lumi.llir.kernel import Kernel, Load, Store, buffers
from lumi.llir.rename import identity, rename
from lumi.plan.reach import Requirement, footprint

SEQ = var("seq")
LOOK = Look("B2", (of_axis("b"),), (3,), 17 - SEQ)
READ = Load("x", Access("B0", (of_axis("b"), of_axis("s")), (3, SEQ), F32), (), ("b", "s"), F32)
PLACE = index([(LOOK, 1), ("s", 1)])


def kernel(place: object = PLACE) -> Kernel:
    out = Access("B1", (of_axis("b"), place), (3, 16), F32)  # type: ignore[arg-type]
    store = Store(out, "x", ("b", "s"))
    return Kernel({"b": 3, "s": SEQ}, ("b", "s"), (), {"b": 1, "s": 4}, (READ, store))


def test_starts_are_read_and_keep_the_store_inside() -> None:
    found = footprint(kernel())
    assert buffers(kernel()) == ("B0", "B1", "B2")
    assert (found.read, found.written, found.dims) == ({"B0", "B2"}, {"B1"}, ("seq",))
    assert Requirement(16 - SEQ, "B1", 1, 16) in found.needs, "a start there must be"
    gaps = {n.gap for n in found.needs if n.buffer == "B1" and n.axis == 1}
    assert gaps == {16 - SEQ, 0}


def test_a_ring_needs_no_room() -> None:
    ring = index([(Rem(PLACE, 16), 1)])
    gaps = {n.gap for n in footprint(kernel(ring)).needs if n.buffer == "B1" and n.axis == 1}
    assert gaps == {16 - SEQ, 0}


def test_buffers_and_axes_that_are_looked_at_are_renamed() -> None:
    for place in (PLACE, index([(Rem(PLACE, 16), 1)]), index([(Quot(PLACE, 2), 1)])):
        before = kernel(place)
        after = rename(before, {"B0": "x", "B1": "y", "B2": "z"}, {"b": "n", "s": "m"})
        assert buffers(after) == ("x", "y", "z")
        (look,) = after.body[1].access.looks()  # type: ignore[union-attr]
        assert look.buffer == "z" and look.index == (of_axis("n"),)
        assert identity(after) == identity(before)
        back = {"x": "B0", "y": "B1", "z": "B2"}
        assert rename(after, back, {"n": "b", "m": "s"}) == before


def test_a_start_that_differs_makes_another_kernel() -> None:
    other = index([(replace(LOOK, size=8), 1), ("s", 1)])
    assert identity(kernel(other)) != identity(kernel())
