"""Kernels gathered and ordered: what is merged, what must not be, what waits for what."""

from __future__ import annotations

from dataclasses import replace

from lumi.dtype import F32
from lumi.egraph.saturate import saturate
from lumi.field.access import Access
from lumi.field.index import Index, of_axis
from lumi.field.region import Region, Store
from lumi.field.term import Bin, Const, In, Term
from lumi.llir.kernel import KernelGraph, Step, accesses, written
from lumi.search.finish import finish
from lumi.search.launch import Assembly
from lumi.search.model import estimate
from lumi.search.planner import Fits, Planner
from lumi.search.search import search
from lumi.search.settings import Settings
from lumi.search.space import Genome, Space
from tests.search.plans import DEFAULT, MACHINE, Modelled, assert_equal, planner_of, reference, run
from tests.workloads import Workload, X, Y, add, exp2, mul, read, top, total

SIZES = {"i": 6, "j": 9}


def region_of(*terms: Term, buffers: dict[str, str], out: str = "i j") -> Region:
    """A region that stores each term in a buffer of its own, `B8`, `B9` …."""
    made = Workload("stores", terms[0], SIZES, SIZES, "", buffers).region()
    axes = tuple(out.split())
    shape = tuple(SIZES[a] for a in axes)
    stores = tuple(
        Store(t, Access(f"B{8 + k}", tuple(map(of_axis, axes)), shape, F32)) for k, t in enumerate(terms)
    )
    return replace(made, stores=stores)


def planner(region: Region, fits: Fits | None = None, **options: int) -> Planner:
    return Planner(
        Space(region, saturate(region)),
        Settings(**options),  # type: ignore[arg-type]
        lambda k: (estimate(k, {}, MACHINE).seconds, DEFAULT),
        fits=fits,
    )


def whole(made: Planner, cuts: frozenset[int] = frozenset()) -> Assembly:
    return made.assemble(made.draft(Genome({}, cuts)))


def graph(made: Planner, plan: Assembly) -> KernelGraph:
    outputs = frozenset(s.access.buffer for s in made.space.region.stores)
    return finish([Step(p.kernel, p.schedule) for p in plan.pieces], outputs)


def test_siblings_that_share_their_input_become_one_kernel() -> None:
    region = region_of(exp2(X), mul(X, X), buffers={"x": "i j"})
    plan = whole(planner(region))
    assert len(plan.pieces) == 1
    assert sum(not writes for _, writes in accesses(plan.pieces[0].kernel)) == 1


def test_values_over_axes_that_do_not_nest_stay_apart() -> None:
    rows, columns = total("j", X), total("i", X)
    made = Workload("rows", rows, SIZES, SIZES, "", {"x": "i j"}).region()
    stores = tuple(
        Store(t, Access(f"B{k}", (of_axis(a),), (SIZES[a],), F32))
        for k, (t, a) in enumerate([(rows, "i"), (columns, "j")], 8)
    )
    region = replace(made, stores=stores)
    assert len(whole(planner(region)).pieces) == 2
    buffers = Workload("rows", rows, SIZES, SIZES, "", {"x": "i j"}).arrays(region, {})
    found = search(region, saturate(region), Settings(evaluations=100), Modelled()).graph
    got, want = run(found, region, buffers, {}), reference(region, buffers, {})
    assert_equal(got["B8"], want["B8"], 1e-6)
    assert_equal(got["B9"], want["B9"], 1e-6)


def test_producers_come_first() -> None:
    made = planner(region_of(mul(total("j", X), Y), buffers={"x": "i j", "y": "i j"}))
    sums = frozenset(c for c, ns in made.space.egraph.classes.items() if any(n.op == "Red" for n in ns))
    plan = whole(made, sums)
    known = {"B0", "B1"}
    for piece in plan.pieces:
        reads = {a.buffer for a, writes in accesses(piece.kernel) if not writes}
        assert reads <= known
        known |= written(piece.kernel)


def test_merging_never_makes_kernels_wait_for_each_other() -> None:
    """a and d may merge, b and c may merge, but not both: b needs a and d needs c."""
    a, c = total("j", X), top("j", Y)
    b, d = mul(a, 2.0), mul(c, 3.0)
    region = region_of(add(b, d), buffers={"x": "i j", "y": "i j"}, out="i")
    made = planner(region)
    classes = made.space.egraph.classes
    cuts = frozenset(
        n for n, ns in classes.items() if made.space.is_storable(n) and n not in made.space.outputs
    )
    plan = whole(made, cuts & frozenset(made.draft(Genome({}, frozenset())).bodies))
    known = {"B0", "B1"}
    for piece in plan.pieces:
        assert {x.buffer for x, writes in accesses(piece.kernel) if not writes} <= known
        known |= written(piece.kernel)


def test_later_store_into_the_same_buffer_comes_later() -> None:
    """The whole buffer, then its first row again: order decides what is left."""
    made = region_of(exp2(X), buffers={"x": "i j"})
    row = Access("B8", (Index((), 0), of_axis("j")), (SIZES["i"], SIZES["j"]), F32)
    first = In("x0", ("j",), F32)
    x0 = replace(made.accesses["x"], index=(Index((), 0), of_axis("j")))
    region = replace(
        made,
        accesses={**made.accesses, "x0": x0},
        stores=(*made.stores, Store(Bin("mul", first, Const(-1.0)), row)),
    )
    found = search(region, saturate(region), Settings(evaluations=100), Modelled()).graph
    work = Workload("rows", exp2(X), SIZES, SIZES, "", {"x": "i j"})
    buffers = work.arrays(work.region(), {})
    got, want = run(found, region, buffers, {}), reference(region, buffers, {})
    assert_equal(got["B8"], want["B8"], 1e-6)


def test_buffer_read_after_its_store_waits_for_it() -> None:
    made = region_of(exp2(X), mul(In("again", ("i", "j"), F32), 2.0), buffers={"x": "i j"})
    again = made.stores[0].access
    region = replace(made, accesses={**made.accesses, "again": again}, produced={"B8": 0})
    found = search(region, saturate(region), Settings(evaluations=100), Modelled()).graph
    work = Workload("rows", exp2(X), SIZES, SIZES, "", {"x": "i j"})
    buffers = work.arrays(work.region(), {})
    got, want = run(found, region, buffers, {}), reference(region, buffers, {})
    assert_equal(got["B9"], want["B9"], 1e-6)


def test_result_stored_over_more_axes_than_it_has_fills_them() -> None:
    region = region_of(top("j", X), buffers={"x": "i j"})
    found = search(region, saturate(region), Settings(evaluations=100), Modelled()).graph
    work = Workload("rows", exp2(X), SIZES, SIZES, "", {"x": "i j"})
    buffers = work.arrays(work.region(), {})
    got, want = run(found, region, buffers, {}), reference(region, buffers, {})
    assert_equal(got["B8"], want["B8"], 1e-6)


def test_root_that_others_need_is_read_from_its_buffer_or_computed_again() -> None:
    norm = total("j", mul(X, X))
    made = Workload("two", norm, SIZES, SIZES, "", {"x": "i j"}).region()
    shape = (SIZES["i"],)
    stores = (
        Store(norm, Access("B8", (of_axis("i"),), shape, F32)),
        Store(exp2(norm), Access("B9", (of_axis("i"),), shape, F32)),
    )
    region = replace(made, stores=stores)
    built = planner(region)
    (root, _) = built.space.outputs
    assert built.space.readable[root] == stores[0].access
    apart = whole(built, frozenset({root}))
    together = whole(built)
    assert len(apart.pieces) == 2 and len(together.pieces) == 1
    work = Workload("two", norm, SIZES, SIZES, "", {"x": "i j"})
    buffers = work.arrays(region, {})
    want = reference(region, buffers, {})
    for plan in (apart, together):
        got = run(graph(built, plan), region, buffers, {})
        for name in ("B8", "B9"):
            assert_equal(got[name], want[name], 1e-6)


def test_equal_kernels_are_formed_once() -> None:
    made = planner_of(Workload("once", exp2(X), SIZES, SIZES, "", {"x": "i j"}))
    plans = [whole(made) for _ in range(3)]
    assert plans[0].pieces[0] is plans[2].pieces[0]
    assert made.evaluations == 3


def test_untuned_tiles_are_narrowed_to_what_a_cell_can_hold() -> None:
    """Only where the model says so; a reduction that is held whole is then looped over."""
    sizes = {"m": 256, "p": 64, "q": 64, "n": 256}
    work = Workload(
        "product",
        total("p q", mul(read("a", "m p q"), read("b", "p q n"))),
        sizes,
        sizes,
        "",
        {"a": "m p q", "b": "p q n"},
    )

    def live(fits: Fits | None) -> float:
        (piece,) = whole(planner(work.region(), fits)).pieces
        return estimate(piece.kernel, {}, MACHINE).live

    assert live(fits=None) > MACHINE.tile_memory >= live(lambda k, s: estimate(k, {}, MACHINE).fits)
    assert live(lambda k, s: True) == live(fits=None)
