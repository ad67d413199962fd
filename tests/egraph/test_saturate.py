"""Saturation of whole regions: what it finds, under which families, and when it stops."""

from __future__ import annotations

import re

import pytest

from lumi import dim
from lumi.dim import DimRange
from lumi.dtype import BF16, F32, I32
from lumi.egraph import dump, encode, rules
from lumi.egraph.explore import Limits
from lumi.egraph.graph import EGraph, ENode
from lumi.egraph.saturate import saturate
from lumi.errors import LumiError
from lumi.field.access import Access
from lumi.field.axis import LIMIT, AxisTable
from lumi.field.region import Region, Store
from lumi.field.term import BINARY, UNARY, Bin, Const, In, Pos, Sel, Term, Un
from tests.workloads import all_workloads, attention, exp2, mul, read, recip, sub, top, total

WORKLOADS = {w.name: w for w in all_workloads()}
X, W = read("x", "i j"), read("w", "j")


def region(term: Term, axes: str = "i j", **extents: dim.Extent) -> Region:
    table = AxisTable()
    for name in axes.split():
        table.add(name, extents.get(name, 16))
    return Region("", table, {}, (Store(term, Access("out", (), (), F32)),), ("out",), {}, (), "")


def of(name: str) -> EGraph:
    work = WORKLOADS[name]
    return saturate(work.region(), families=work.families, splits=work.splits)


def carried(egraph: EGraph) -> list[ENode]:
    """The accumulators that are rescaled from tile to tile."""
    ones = {
        c
        for c, nodes in egraph.classes.items()
        for n in nodes
        if n.op == "Const" and n.attrs[0] in (0.0, 1.0)
    }
    return [
        n for nodes in egraph.classes.values() for n in nodes if n.op == "Acc" and n.children[2] not in ones
    ]


def test_workloads_saturate_to_known_sizes(golden) -> None:
    lines = [f"{'workload':24} e-nodes classes"]
    for name in WORKLOADS:
        egraph = of(name)
        assert egraph.saturated
        lines.append(f"{name:24} {egraph.size:7} {len(egraph.classes):7}")
    golden("\n".join(lines), ".txt")


@pytest.mark.parametrize("name", ["attention_causal", "variance", "log_sum_exp_split", "matmul_amax"])
def test_dump_is_the_same_everywhere(golden, name: str) -> None:
    golden(dump.canonical(of(name)), ".egraph")


def test_saturation_again_gives_the_same() -> None:
    assert dump.canonical(of("variance_split")) == dump.canonical(of("variance_split"))


def test_ids_are_in_order_of_children_of_some_node() -> None:
    egraph = of("attention_causal")
    assert sorted(egraph.classes) == list(range(len(egraph.classes)))
    for cls, nodes in egraph.classes.items():
        assert any(all(child < cls for child in node.children) for node in nodes)
        assert all(cls not in node.children for node in nodes)


def test_families_and_rules_can_be_left_out() -> None:
    work = WORKLOADS["attention_causal"].region()
    assert carried(saturate(work))
    assert not carried(saturate(work, without=("online-sum",)))
    assert not carried(saturate(work, without=("rs-use",)))
    masks = [
        n for nodes in saturate(work, without=("rs-mask",)).classes.values() for n in nodes if n.op == "Mask"
    ]
    assert not masks
    bare = saturate(work, families=())
    assert all(len(nodes) == 1 for nodes in bare.classes.values())
    assert {m.family for m in bare.rules} == {"analysis"}


def test_fast_math_is_off_by_default() -> None:
    work = WORKLOADS["variance_fast"].region()
    assert "fast-math" not in {m.family for m in saturate(work).rules}
    assert "fast-math" in {m.family for m in of("variance_fast").rules}


def test_split_needs_its_axes() -> None:
    work = WORKLOADS["decode"]
    chunks = [n for nodes in of("decode").classes.values() for n in nodes if n.op == "Chunk"]
    assert len(chunks) == 1
    whole = saturate(work.region())
    assert not any(n.op == "Chunk" for nodes in whole.classes.values() for n in nodes)


def test_rounding_may_vanish_unless_exact() -> None:
    rounded = Un("cast.f32", Un("cast.bf16", mul(X, X)))
    relaxed = saturate(region(rounded))
    exact = saturate(region(rounded), families=("exact",))
    assert {n.op for n in relaxed.classes[relaxed.roots[0]]} == {"Bin", "Un"}
    assert {n.op for n in exact.classes[exact.roots[0]]} == {"Un"}
    for egraph in (relaxed, exact):
        assert egraph.dtype[egraph.roots[0]] == F32
        assert egraph.storage[egraph.roots[0]] == BF16


def test_types_follow_operands_and_constants() -> None:
    term = Sel(Bin("lt", Pos("j"), Const(3.0)), Bin("add", Pos("j"), Const(1.0)), In("n", ("j",), I32))
    egraph = saturate(region(term))
    assert egraph.dtype[egraph.roots[0]] == I32
    (condition,) = (n.children[0] for n in egraph.classes[egraph.roots[0]])
    assert egraph.dtype[condition].name == "bool"


def test_symbols_and_axes_have_their_facts() -> None:
    term = Bin("add", Pos("j"), In("$past", (), I32))
    egraph = saturate(region(term))
    assert egraph.free[egraph.roots[0]] == 2 and egraph.final[egraph.roots[0]] == 0
    summed = saturate(region(total("j", X)))
    assert summed.free[summed.roots[0]] == 1 and summed.final[summed.roots[0]] == 2


def test_axis_that_may_be_empty_guards_its_factors() -> None:
    term = total("j", mul(X, recip(read("t", "i"))))
    symbolic = region(term, j=dim.var("n"))
    guarded = saturate(symbolic, ranges={"n": DimRange("n", 0, 9, ())})
    plain = saturate(symbolic, ranges={"n": DimRange("n", 1, 9, ())})
    undeclared = saturate(symbolic)

    def heads(egraph: EGraph) -> set[str]:
        return {str(n.attrs[0]) for n in egraph.classes[egraph.roots[0]] if n.op == "Bin"}

    assert heads(guarded) == {"mulz"}
    assert heads(plain) == heads(undeclared) == {"mul"}


def test_last_axes_keep_their_loop_time() -> None:
    names = " ".join(f"a{k}" for k in range(LIMIT))
    last = f"a{LIMIT - 1}"
    x = read("x", f"a0 {last}")
    egraph = saturate(region(total(last, exp2(sub(x, top(last, x)))), names))
    assert carried(egraph)
    running = [c for c, nodes in egraph.classes.items() for n in nodes if n.op == "Run"]
    assert all(egraph.free[c] == 1 | 1 << 2 * LIMIT - 1 for c in running)


def test_rules_shift_by_the_number_of_axes() -> None:
    shifts = re.findall(r"\(<< \?j (\d+)\)", "".join(r.text for r in rules.load()))
    assert shifts and set(shifts) == {str(LIMIT)}


def test_rules_know_every_operator() -> None:
    declared = set(re.findall(r'\(set \(keeps "(\w+)"\)', "\n".join(rules.book().declarations)))
    assert declared == {*UNARY, *BINARY}


def test_rules_know_every_dtype() -> None:
    text = "\n".join(rules.book().declarations)
    for name, code in encode.CODES.items():
        assert f'(set (cast-to "cast.{name}") {code})' in text
        assert f'(set (bits-to "bits.{name}") {code})' in text


def test_deep_terms_do_not_recurse() -> None:
    term: Term = X
    for k in range(3000):
        term = Bin("add", term, Const(float(k + 2)))
    egraph = saturate(region(term), families=())
    assert egraph.size > 5000


def test_shared_terms_are_met_once() -> None:
    term: Term = X
    for _ in range(200):
        term = Bin("add", term, term)
    egraph = saturate(region(term), families=())
    assert len([n for nodes in egraph.classes.values() for n in nodes if n.op == "Bin"]) == 200


def test_numbers_may_stand_on_either_side() -> None:
    for scaled in (mul(sub(X, top("j", X)), 0.5), mul(0.5, sub(X, top("j", X)))):
        assert carried(saturate(region(total("j", exp2(scaled)))))


def test_negative_zero_is_not_zero() -> None:
    egraph = saturate(region(Bin("max", X, Const(-0.0))))
    (node,) = egraph.classes[egraph.roots[0]]
    assert not any(n.op == "Const" for n in egraph.classes[node.children[1]])


def test_nan_and_infinity_are_constants() -> None:
    egraph = saturate(region(Bin("max", X, Bin("add", Const(float("inf")), Const(float("nan"))))))
    values = [n.attrs[0] for nodes in egraph.classes.values() for n in nodes if n.op == "Const"]
    assert float("inf") in values and any(v != v for v in values)


@pytest.mark.parametrize("limits", [Limits(tuples=400), Limits(rounds=4), Limits(seconds=0.0)])
def test_limit_leaves_a_usable_graph(limits: Limits) -> None:
    whole = of("attention_causal")
    part = saturate(WORKLOADS["attention_causal"].region(), limits=limits)
    assert not part.saturated and part.size < whole.size
    assert (part.busiest is None) == (limits.seconds == 0)
    assert set(part.free) == set(part.dtype) and part.roots[0] in part.classes


def test_unknown_operator_is_an_error() -> None:
    with pytest.raises(LumiError, match="frobnicate"):
        saturate(region(Un("frobnicate", X)))


def test_masked_attention_keeps_one_loop_for_all_masks() -> None:
    for mask in (Bin("le", Pos("j"), Pos("i")), Bin("lt", Pos("j"), Const(7.0))):
        egraph = saturate(region(attention(mask, 16), "b hk g i j d v"))
        domains = {n.children[0] for n in carried(egraph)}
        assert any(n.op == "Mask" for d in domains for n in egraph.classes[d])
