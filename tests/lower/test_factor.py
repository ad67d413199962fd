"""Atoms of dimensions."""

from __future__ import annotations

from itertools import chain

from lumi import dim
from lumi.dim import Extent
from lumi.dtype import F32
from lumi.hlir.graph import Graph, Node, reachable
from lumi.lower.factor import Atom, Factors
from lumi.lower.varying import contractions, varying
from tests.lower.spell import Spell

SEQ = dim.var("seq")


def factors(graph: Graph) -> Factors:
    nodes = reachable(graph.roots())
    return Factors(nodes, varying(nodes, {}))


def sizes(found: Factors, node: Node) -> list[list[Extent]]:
    return [[size for _, size in found.of(node, k)] for k in range(node.type.rank)]


def atoms(found: Factors, node: Node) -> list[list[Atom]]:
    return [[atom for atom, _ in found.of(node, k)] for k in range(node.type.rank)]


def test_merged_and_split_views_name_the_same_atoms() -> None:
    b = Spell()
    x = b.input("x", F32, (2, SEQ, 12))
    y = b.reshape(x, (2, SEQ, 3, 4))
    found = factors(b.result(b.exp2(y)))
    assert sizes(found, x) == [[2], [SEQ], [3, 4]]
    assert list(chain(*atoms(found, x))) == list(chain(*atoms(found, y)))


def test_cuts_are_exchanged_to_a_common_refinement() -> None:
    b = Spell()
    x = b.mul(b.input("x", F32, (12,)), 2.0)
    found = factors(b.result(b.reshape(x, (2, 6)), b.reshape(x, (6, 2))))
    assert sizes(found, x) == [[2, 3, 2]]
    assert found.dead == []


def test_reshape_without_a_common_factorisation_is_left_out() -> None:
    b = Spell()
    x = b.mul(b.input("x", F32, (12,)), 2.0)
    first, second = b.reshape(x, (4, 3)), b.reshape(x, (3, 4))
    found = factors(b.result(first, second))
    assert len(found.dead) == 1
    assert sizes(found, x) in ([[4, 3]], [[3, 4]])


def test_symbolic_cut_leaves_the_reshape_out() -> None:
    b = Spell(seq=(1, 9))
    x = b.input("x", F32, (2, SEQ, 4))
    y = b.reshape(x, (2 * SEQ, 4))
    found = factors(b.result(b.exp2(y)))
    assert found.dead == [y]
    assert sizes(found, y) == [[2 * SEQ], [4]]


def test_symbolic_major_factor_is_an_atom() -> None:
    b = Spell(seq=(1, 9))
    x = b.input("x", F32, (SEQ, 4))
    y = b.reshape(x, (4 * SEQ,))
    found = factors(b.result(b.exp2(y)))
    assert sizes(found, y) == [[SEQ, 4]]
    assert atoms(found, y)[0] == list(chain(*atoms(found, x)))


def test_broadcast_dimensions_are_not_joined() -> None:
    b = Spell()
    x = b.expand(b.reshape(b.input("x", F32, (5, 7)), (5, 1, 7)), (5, 3, 7))
    y, z = (b.mul(x, b.expand(b.param(k, F32, (3, 7)), (5, 3, 7))) for k in "yz")
    found = factors(b.result(y, z))
    assert atoms(found, y)[0] == atoms(found, z)[0]
    assert atoms(found, y)[1] != atoms(found, z)[1]


def test_empty_dimensions_have_an_atom_of_nothing() -> None:
    b = Spell()
    x = b.exp2(b.input("x", F32, (0, 3)))
    assert sizes(factors(b.result(x)), x) == [[0], [3]]


def test_what_varies_is_seen_through_views() -> None:
    b = Spell()
    x = b.expand(b.reshape(b.input("x", F32, (6,)), (1, 6)), (4, 6))
    y = b.reshape(b.permute(b.exp2(x), (1, 0)), (2, 3, 4))
    nodes = reachable([y])
    found = varying(nodes, {})
    assert found[x.id] == {1}
    assert found[y.id] == {0, 1}


def test_what_is_in_memory_varies_everywhere() -> None:
    b = Spell()
    x = b.expand(b.const(1.0, F32), (4, 6))
    assert varying([x], {x.id: "%0"})[x.id] == {0, 1}


def test_contractions_are_products_of_different_factors() -> None:
    b = Spell()
    x, w = b.input("x", F32, (4, 6)), b.param("w", F32, (5, 6))
    product = b.linear(x, "v", 3)
    square = b.sum(b.mul(x, x), 1)
    scaled = b.sum(b.mul(x, b.param("g", F32, (6,))), 0)
    other = b.einsum(x, "ik", w, "jk", "ij")
    nodes = reachable([product, square, scaled, other])
    assert contractions(nodes, varying(nodes, {})) == {product.id, other.id}
