"""Which nodes make a region, and in which order regions run."""

from __future__ import annotations

import numpy as np
import pytest

from lumi.dtype import F32
from lumi.errors import LumiError
from lumi.field.axis import LIMIT
from lumi.field.region import Region
from lumi.hlir.graph import Graph, Node
from lumi.hlir.op import BinaryKind, Monoid
from lumi.lower import partition
from lumi.lower.lower import SPARE, lower
from tests.lower.check import check
from tests.lower.spell import Spell

RNG = np.random.default_rng(2)


def rand(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


@pytest.fixture
def unjoined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every scope stays a region of its own."""
    monkeypatch.setattr(partition, "SMALL", 0)
    monkeypatch.setattr(partition, "LAYER", 0)


def run(graph: Graph) -> list[Region]:
    shapes = {getattr(n.op, "name", getattr(n.op, "key", "")): n.shape for n in graph.nodes if n.is_leaf}
    arrays = {name: rand(*(z for z in s if isinstance(z, int))) for name, s in shapes.items() if name}
    return check(graph, arrays)


@pytest.mark.usefixtures("unjoined")
def test_scopes_directly_under_the_model_make_regions() -> None:
    b = Spell()
    x = b.input("x", F32, (3, 4))
    with b.scope("model"):
        with b.scope("up"):
            y = b.linear(x, "up", 5)
        y = b.silu(y)
        with b.scope("down"):
            y = b.linear(y, "down", 4)
    assert [r.scope for r in run(b.result(y))] == ["model/up", "model", "model/down"]


@pytest.mark.usefixtures("unjoined")
def test_scope_entered_again_makes_another_region() -> None:
    b = Spell()
    x = b.input("x", F32, (3, 4))
    for scope in ("a", "b", "a"):
        with b.scope(scope):
            x = b.exp2(b.mul(x, 0.5))
    assert [r.scope for r in run(b.result(x))] == ["a", "b", "a"]


@pytest.mark.usefixtures("unjoined")
def test_independent_work_goes_back_to_its_scope() -> None:
    b = Spell()
    x, y = b.input("x", F32, (3,)), b.input("y", F32, (3,))
    with b.scope("a"):
        first = b.exp2(x)
    with b.scope("b"):
        second = b.exp2(first)
    with b.scope("a"):
        third = b.exp2(y)
    assert [r.scope for r in run(b.result(second, third))] == ["a", "b"]


@pytest.mark.usefixtures("unjoined")
def test_views_and_free_values_belong_to_their_readers() -> None:
    b = Spell()
    x = b.input("x", F32, (4, 6))
    with b.scope("a"):
        y = b.permute(b.exp2(x), (1, 0))
        g = b.add(b.param("g", F32, (4,)), 1.0)
        z = b.sum(b.mul(y, g), 1)
    with b.scope("b"):
        w = b.mul(b.mul(b.mul(y, 3.0), g), b.reshape(z, (6, 1)))
    first, second = run(b.result(w))
    assert [s.access.shape for s in first.stores] == [(4, 6), (6,)]
    assert "g" in first.buffers
    assert "g" in second.buffers


def test_small_neighbours_are_joined() -> None:
    b = Spell()
    x = b.input("x", F32, (3, 4))
    with b.scope("norm"):
        x = b.rms(x)
    with b.scope("head"):
        x = b.linear(x, "w", 5)
    (region,) = run(b.result(x))
    assert region.scope == "test"
    assert len(region.stores) == 1


def test_independent_neighbours_are_not_joined() -> None:
    b = Spell()
    with b.scope("a"):
        x = b.exp2(b.input("x", F32, (3,)))
    with b.scope("b"):
        y = b.exp2(b.input("y", F32, (5,)))
    assert [r.scope for r in run(b.result(x, y))] == ["a", "b"]


def test_projections_are_joined_with_the_attention_that_reads_them() -> None:
    b = Spell()
    x = b.input("x", F32, (5, 4))
    parts = []
    for name in "qkv":
        with b.scope(name):
            parts.append(b.linear(x, name, 4))
    q, k, v = parts
    y = b.einsum(b.softmax(b.einsum(q, "id", k, "jd", "ij"), 1), "ij", v, "jd", "id")
    assert len(run(b.result(y))) == 1


def layer(b: Spell, x: Node, name: str) -> Node:
    with b.scope(name):
        y = b.linear(b.rms(x), f"{name}.up", 8)
        return b.add(x, b.linear(b.silu(y), f"{name}.down", 4))


def test_many_equal_layers_stay_apart_and_are_shared() -> None:
    b = Spell()
    x = b.input("x", F32, (3, 4))
    for number in range(8):
        x = layer(b, x, f"layers.{number}")
    regions = run(b.result(x))
    assert len(regions) == 8
    assert len({r.key for r in regions}) == 1


def test_layers_are_joined_with_what_follows_each_of_them() -> None:
    b = Spell()
    x = b.input("x", F32, (3, 4))
    for number in range(8):
        x = b.exp2(layer(b, x, f"layers.{number}"))
    with b.scope("head"):
        x = b.linear(x, "head", 5)
    regions = run(b.result(x))
    assert len(regions) == 9
    assert len({r.key for r in regions[:8]}) == 1


def test_layers_are_not_joined_with_what_follows_the_last() -> None:
    b = Spell()
    x = b.input("x", F32, (3, 4))
    for number in range(8):
        x = layer(b, x, f"layers.{number}")
    regions = run(b.result(b.linear(b.rms(x), "head", 5)))
    assert len(regions) == 9
    assert len({r.key for r in regions}) == 2


def test_pieces_of_repeated_layers_are_joined_alike() -> None:
    b = Spell()
    x = b.input("x", F32, (3, 4))
    for number in range(12):
        with b.scope(f"{number}.norm"):
            y = b.rms(x)
        with b.scope(f"{number}.mlp"):
            y = b.linear(b.silu(b.linear(y, f"{number}.up", 8)), f"{number}.down", 4)
        x = b.add(x, y)
    regions = run(b.result(x))
    assert len(regions) == 12
    assert len({r.key for r in regions}) == 1


def test_two_small_equal_layers_are_one_region() -> None:
    b = Spell()
    x = b.input("x", F32, (3, 4))
    for number in range(2):
        x = layer(b, x, f"layers.{number}")
    assert len(run(b.result(x))) == 1


def test_layers_of_other_sizes_are_not_shared() -> None:
    b = Spell()
    x = b.input("x", F32, (3, 4))
    keys = []
    for width in (8, 9):
        with b.scope(f"l{width}"):
            keys.append(b.linear(x, f"w{width}", width))
    regions = lower(b.result(*keys))
    assert len({r.key for r in regions}) == 2


def many_axes(b: Spell, count: int) -> Node:
    """A chain of contractions, each with an axis of its own."""
    x = b.input("x", F32, (2, 2))
    for k in range(count):
        x = b.exp2(b.linear(x, f"w{k}", 2 + k % 3))
    return x


def test_part_with_too_many_axes_is_split() -> None:
    b = Spell()
    regions = run(b.result(many_axes(b, 40)))
    assert len(regions) > 1
    assert all(len(r.axes) <= LIMIT - SPARE for r in regions)


def test_one_operation_with_too_many_axes_is_an_error() -> None:
    b = Spell()
    x = b.reshape(b.input("x", F32, (2,) * 32), (2,) * 32)
    with pytest.raises(LumiError, match="more than 31 axes"):
        lower(b.result(b.binary(BinaryKind.ADD, x, x)))


def test_one_operation_may_use_the_spare_axes() -> None:
    b = Spell()
    x = b.input("x", F32, (1,) + (2,) * 15 + (1,) * 14)
    y = b.reduce(Monoid.SUM, b.mul(x, x), [3])
    run(b.result(y))
    wide = Spell()
    z = wide.mul(wide.input("z", F32, (2,) * LIMIT), 2.0)
    (region,) = lower(wide.result(z))
    assert len(region.axes) == LIMIT
