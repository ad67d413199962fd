"""Interned values and their facts."""

from __future__ import annotations

import math

from lumi.dtype import BOOL, F32, I8, I32
from lumi.field.axis import LIMIT
from lumi.search.dag import Accumulator, Apply, Dag, Domain, Final, Previous, Running, bits

AXIS_I, AXIS_J, AXIS_C = 1, 2, 4


def total(dag: Dag, body: int, axes: int = AXIS_J, chunk: int = 0) -> int:
    return dag.accumulator(Accumulator("sum", dag.domain(Domain(axes, chunk, ())), body, None, None))


def test_equal_values_are_one_and_others_are_not() -> None:
    dag = Dag()
    x = dag.read("r0", AXIS_I | AXIS_J, F32, None, None)
    assert dag.read("r0", AXIS_I | AXIS_J, F32, None, None) == x
    assert dag.apply("exp2", (x,)) == dag.apply("exp2", (x,))
    assert dag.apply("exp2", (x,)) != dag.apply("sqrt", (x,))
    assert dag.number(0.0) != dag.number(-0.0)
    assert dag.number(math.nan) == dag.number(math.nan)
    seen = {dag.see(kind, total(dag, x)) for kind in (Final, Running, Previous)}
    assert len(seen) == 3


def test_free_axes_follow_the_loop() -> None:
    dag = Dag()
    x = dag.read("r0", AXIS_I | AXIS_J, F32, None, None)
    whole, part = total(dag, x), total(dag, x, AXIS_J, AXIS_C)
    assert dag.free[dag.see(Final, whole)] == AXIS_I
    assert dag.free[dag.see(Running, whole)] == AXIS_I | AXIS_J << LIMIT
    assert dag.free[dag.see(Previous, part)] == AXIS_I | AXIS_C | AXIS_J << LIMIT
    assert dag.free[dag.see(Final, part)] == AXIS_I | AXIS_C
    inside = dag.apply("sub", (x, dag.see(Running, whole)))
    assert dag.free[dag.see(Final, total(dag, inside))] == AXIS_I


def test_types_come_from_the_first_operand_that_has_one() -> None:
    dag = Dag()
    x, k, one = dag.read("r0", AXIS_I, F32, None, None), dag.position(AXIS_I), dag.number(1.0)
    assert dag.dtype[dag.apply("add", (one, x))] == F32
    assert dag.dtype[dag.apply("add", (one, one))] is None
    assert dag.dtype[dag.apply("lt", (k, x))] == BOOL
    assert dag.dtype[dag.apply("sel", (dag.apply("lt", (k, one)), one, k))] == I32
    assert dag.dtype[dag.apply("cast.i8", (x,))] == I8
    assert dag.dtype[dag.see(Final, total(dag, dag.apply("mul", (x, x))))] == F32


def test_reads_and_accumulators_are_those_below() -> None:
    dag = Dag()
    stored = dag.stored(7, ("i",), AXIS_I, F32)
    gathered = dag.read("r1", AXIS_J, F32, stored, 9)
    inner = total(dag, gathered)
    outer = total(dag, dag.apply("mul", (dag.see(Final, inner), dag.dimension("past"))), AXIS_I)
    value = dag.see(Final, outer)
    assert dag.reads[value] == {7, 9}
    assert dag.accumulators[value] == {inner, outer}
    assert dag.free[gathered] == AXIS_I | AXIS_J


def test_walk_meets_each_value_once_children_first() -> None:
    dag = Dag()
    x = dag.read("r0", AXIS_I, F32, None, None)
    value = x
    for _ in range(40):
        value = dag.apply("add", (value, value))
    order = list(dag.walk([value, x]))
    assert len(order) == 41 and order[0] == x and order[-1] == value
    for number in order:
        assert all(order.index(c) < order.index(number) for c in dag.children(number))
    assert isinstance(dag.values[value], Apply)


def test_bits_are_single_and_in_order() -> None:
    assert list(bits(0b10110)) == [2, 4, 16]
    assert list(bits(0)) == []
