"""One construct of the language a test: what it lowers to, and that it means the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lumi import dim
from lumi.dtype import BF16, F16, F32, I8, I32, U8
from lumi.field.region import Region
from lumi.field.term import Gat, Red, Un
from lumi.field.traverse import postorder
from lumi.hlir.graph import Node
from tests.lower.check import check
from tests.lower.spell import Spell

RNG = np.random.default_rng(0)


def rand(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def ints(low: int, high: int, *shape: int, dtype: type = np.int32) -> np.ndarray:
    return RNG.integers(low, high, shape).astype(dtype)


def cuts(regions: list[Region]) -> list[str]:
    return [n.why for r in regions for n in r.notes if n.what == "cut"]


def reductions(region: Region) -> list[Red]:
    return [t for t in postorder(s.term for s in region.stores) if isinstance(t, Red)]


# -- views and atoms


def test_split_and_permuted_dimension_names_the_same_atoms() -> None:
    b = Spell()
    y = b.linear(b.param("x", F32, (6, 8)), "w", 12)
    y = b.mul(b.permute(b.reshape(y, (6, 3, 4)), (1, 0, 2)), 2.0)
    (region,) = check(b.result(y), {"x": rand(6, 8), "w": rand(12, 8)})
    assert cuts([region]) == []
    assert [a.extent for a in region.axes] == [3, 6, 4, 8]


def test_sum_over_heads_and_channels_is_one_contraction() -> None:
    b = Spell()
    o = b.reshape(b.param("o", F32, (5, 3, 4)), (5, 12))
    (region,) = check(b.result(b.linear(o, "w", 7)), {"o": rand(5, 3, 4), "w": rand(7, 12)})
    (total,) = reductions(region)
    assert len(total.axes) == 2


def test_two_factorisations_have_a_common_refinement() -> None:
    b = Spell()
    y = b.mul(b.param("x", F32, (5, 12)), 3.0)
    first, second = b.sum(b.reshape(y, (5, 2, 6)), 1), b.max(b.reshape(y, (5, 6, 2)), 2)
    (region,) = check(b.result(first, second), {"x": rand(5, 12)})
    assert sorted(a.extent for a in region.axes) == [2, 2, 3, 5]


def test_no_common_factorisation_cuts_a_heavy_value() -> None:
    b = Spell()
    y = b.linear(b.param("x", F32, (5, 8)), "w", 12)
    first, second = b.sum(b.reshape(y, (5, 4, 3)), 1), b.sum(b.reshape(y, (5, 3, 4)), 2)
    regions = check(b.result(first, second), {"x": rand(5, 8), "w": rand(12, 8)})
    assert len(cuts(regions)) == 1
    assert [n.why for n in regions[0].notes if n.what == "reshape"] == ["[5 12] and [5 3 4] share no axes"]


def test_no_common_factorisation_divides_for_a_light_value() -> None:
    b = Spell()
    y = b.mul(b.param("x", F32, (5, 12)), 2.0)
    first, second = b.sum(b.reshape(y, (5, 4, 3)), 1), b.sum(b.reshape(y, (5, 3, 4)), 2)
    regions = check(b.result(first, second), {"x": rand(5, 12)})
    assert cuts(regions) == []


def test_regrouped_product_is_read_by_division() -> None:
    b = Spell()
    y = b.reshape(b.linear(b.param("x", F32, (6, 8)), "w", 4), (8, 3))
    check(b.result(b.add(y, 1.0)), {"x": rand(6, 8), "w": rand(4, 8)})


def test_slice_flip_and_pad_are_index_maps() -> None:
    b = Spell()
    x = b.pad(b.flip(b.slice(b.param("x", F32, (5, 8)), 1, 2, 6), 1), 1, 1, 2, 7.0)
    (region,) = check(b.result(b.mul(x, b.param("y", F32, (5, 7)))), {"x": rand(5, 8), "y": rand(5, 7)})
    assert len(region.stores) == 1


@pytest.mark.parametrize("step", [1, 2, 3])
def test_strided_slices(step: int) -> None:
    b = Spell()
    check(b.result(b.slice(b.param("x", F32, (7, 3)), 0, 1, 7, step)), {"x": rand(7, 3)})


def test_convolution_is_a_contraction_over_windows() -> None:
    b = Spell()
    x = b.pad(b.pad(b.param("x", F32, (2, 9, 9, 3)), 1, 1, 1), 2, 1, 1)
    p = b.windows(b.windows(x, 1, 3), 3, 3)
    y = b.einsum(p, "bihjwc", b.param("w", F32, (4, 3, 3, 3)), "ohwc", "bijo")
    (region,) = check(b.result(y), {"x": rand(2, 9, 9, 3), "w": rand(4, 3, 3, 3)})
    (total,) = reductions(region)
    assert len(total.axes) == 3
    assert any(a.clamp for a in region.accesses.values())


def test_strided_dilated_convolution() -> None:
    b = Spell()
    p = b.windows(b.pad(b.param("x", F32, (11, 2)), 0, 2, 2), 0, 3, stride=2, dilation=2)
    y = b.silu(b.einsum(p, "ikc", b.param("w", F32, (3, 3, 2)), "okc", "io"))
    check(b.result(y), {"x": rand(11, 2), "w": rand(3, 3, 2)})


# -- gather


def test_embedding_lookup_is_one_gather() -> None:
    b = Spell()
    y = b.mul(b.gather(b.param("e", F32, (50, 8)), b.input("t", I32, (2, 5))), 3.0)
    (region,) = check(b.result(y), {"e": rand(50, 8), "t": ints(0, 50, 2, 5)})
    assert sum(isinstance(t, Gat) for t in postorder(s.term for s in region.stores)) == 1


def test_mixture_of_experts_gathers_weights() -> None:
    b = Spell()
    x, e, p = b.input("x", F32, (2, 5, 8)), b.input("e", I32, (2, 5, 2)), b.input("p", F32, (2, 5, 2))
    w1, w2 = (b.gather(b.param(k, F32, (4, *z)), e) for k, z in (("w1", (6, 8)), ("w2", (8, 6))))
    h = b.silu(b.einsum(x, "bsd", w1, "bskfd", "bskf"))
    y = b.einsum(b.einsum(h, "bskf", w2, "bskdf", "bskd"), "bskd", p, "bsk", "bsd")
    arrays = {"x": rand(2, 5, 8), "e": ints(0, 4, 2, 5, 2), "p": rand(2, 5, 2)}
    check(b.result(y), arrays | {"w1": rand(4, 6, 8), "w2": rand(4, 8, 6)})


def test_gather_along_a_middle_axis_and_by_gathered_indices() -> None:
    b = Spell()
    t = b.gather(b.input("t", I32, (6,)), b.input("s", I32, (4,)))
    y = b.gather(b.param("x", F32, (3, 7, 2)), t, 1)
    check(b.result(y), {"x": rand(3, 7, 2), "t": ints(0, 7, 6), "s": ints(0, 6, 4)})


def test_two_data_indices_cut_the_inner_gather() -> None:
    b = Spell()
    inner = b.gather(b.param("x", F32, (5, 6)), b.input("i", I32, (4,)), 0)
    y = b.gather(inner, b.input("j", I32, (3,)), 1)
    regions = check(b.result(y), {"x": rand(5, 6), "i": ints(0, 5, 4), "j": ints(0, 6, 3)})
    assert cuts(regions) == ["read at an index that depends on data"]


def test_gather_by_positions_is_an_index_map() -> None:
    b = Spell(past=(0, 4))
    x = b.param("x", F32, (9, 2))
    rows = [
        b.gather(x, b.flip(b.iota(9), 0)),
        b.gather(x, b.const(3, I32)),
        b.gather(x, b.symbol(dim.var("past"))),
    ]
    (region,) = check(b.result(*rows), {"x": rand(9, 2)}, {"past": 2})
    assert not any(isinstance(t, Gat) for t in postorder(s.term for s in region.stores))
    assert not any(a.clamp for a in region.accesses.values())


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64])
def test_gather_takes_every_integer_type(kind: type) -> None:
    from lumi.dtype import from_numpy

    b = Spell()
    index = b.input("i", from_numpy(np.dtype(kind)), (4,))
    y = b.pad(b.gather(b.param("x", F32, (5, 2)), index), 0, 1, 0)
    check(b.result(y), {"x": rand(5, 2), "i": ints(0, 5, 4, dtype=kind)})


# -- roles


def attention(b: Spell, x: Node, width: int, mask: bool = True) -> Node:
    q, k, v = (b.linear(x, key, width) for key in "qkv")
    s = b.mul(b.einsum(q, "id", k, "jd", "ij"), 0.35)
    if mask:
        s = b.where(b.causal(x.shape[0], x.shape[0]), s, -math.inf)
    return b.einsum(b.softmax(s, 1), "ij", v, "jd", "id")


def test_self_attention_duplicates_the_norm() -> None:
    b = Spell()
    y = attention(b, b.rms(b.input("x", F32, (7, 16)), b.param("g", F32, (16,))), 8)
    arrays = {"x": rand(7, 16), "g": rand(16), **{k: rand(8, 16) for k in "qkv"}}
    (region,) = check(b.result(y), arrays)
    assert cuts([region]) == []
    assert any(n.what == "duplicate" for n in region.notes)


def test_product_under_two_roles_is_cut() -> None:
    b = Spell()
    y = b.linear(b.param("x", F32, (6, 8)), "w", 4)
    (region,) = check(b.result(b.einsum(y, "id", y, "jd", "ij")), {"x": rand(6, 8), "w": rand(4, 8)})
    (why,) = cuts([region])
    assert why.startswith("heavy, 2 roles")


def test_rotate_half_reads_one_stored_value_at_offsets() -> None:
    b = Spell()
    q = b.linear(b.param("x", F32, (6, 8)), "w", 4)
    turned = b.concat([b.mul(b.slice(q, 1, 2, 4), -1), b.slice(q, 1, 0, 2)], 1)
    y = b.add(b.mul(q, b.param("c", F32, (6, 4))), b.mul(turned, b.param("s", F32, (6, 4))))
    arrays = {"x": rand(6, 8), "w": rand(4, 8), "c": rand(6, 4), "s": rand(6, 4)}
    regions = check(b.result(y), arrays)
    assert len(cuts(regions)) == 1


def test_difference_through_a_broadcast_is_a_subtraction() -> None:
    b = Spell()
    x = b.param("x", F32, (4, 6))
    y = b.exp2(b.add(b.mul(b.max(x, 1, keep=True), -1), x))
    (region,) = check(b.result(y), {"x": rand(4, 6)})
    assert "(sub " in region.key


def test_square_is_no_contraction() -> None:
    b = Spell()
    x = b.mul(b.param("x", F32, (4, 6)), 2.0)
    total = b.sum(b.mul(x, x), 1)
    y = b.einsum(total, "i", total, "j", "ij")
    (region,) = check(b.result(y), {"x": rand(4, 6)})
    assert cuts([region]) == []


def test_sets_of_axes_reduce_at_once() -> None:
    b = Spell()
    p = b.softmax(b.param("x", F32, (3, 4, 5)), 1, 2)
    y = b.einsum(b.reshape(p, (3, 20)), "in", b.param("v", F32, (20, 2)), "nv", "iv")
    (region,) = check(b.result(y), {"x": rand(3, 4, 5), "v": rand(20, 2)})
    assert {len(r.axes) for r in reductions(region)} == {2}


def test_group_norm() -> None:
    b = Spell()
    x = b.reshape(b.param("x", F32, (2, 6, 5)), (2, 2, 3, 5))
    c = b.sub(x, b.mul(b.sum(x, 2, 3, keep=True), 1 / 15))
    v = b.mul(b.sum(b.mul(c, c), 2, 3, keep=True), 1 / 15)
    y = b.reshape(b.mul(c, b.recip(b.one("sqrt", b.add(v, 1e-5)))), (2, 6, 5))
    check(b.result(b.mul(y, b.param("g", F32, (6, 1)))), {"x": rand(2, 6, 5), "g": rand(6, 1)})


# -- dtypes


def test_half_arithmetic_rounds_once_an_operation() -> None:
    b = Spell()
    x = b.input("x", BF16, (5, 16))
    h = b.silu(b.linear(x, "w", 8, BF16))
    arrays = {"x": rand(5, 16), "w": rand(8, 16), "u": rand(6, 8)}
    (region,) = check(b.result(b.linear(h, "u", 6, BF16)), arrays, tolerance=0.02)
    casts = [t for t in postorder(s.term for s in region.stores) if isinstance(t, Un) and t.op == "cast.bf16"]
    assert len(casts) > 5


def q8_0(b: Spell, rows: int, columns: int) -> Node:
    q = b.cast(b.param("q", I8, (rows, columns // 32, 32)), F32)
    s = b.cast(b.param("s", F16, (rows, columns // 32, 1)), F32)
    return b.reshape(b.mul(q, s), (rows, columns))


def q8_0_arrays(rows: int, columns: int) -> dict[str, np.ndarray]:
    q = ints(-127, 128, rows, columns // 32, 32, dtype=np.int8)
    return {"q": q, "s": (0.01 * np.abs(rand(rows, columns // 32, 1))).astype(np.float16)}


def test_q8_0_product_is_one_contraction_over_blocks() -> None:
    b = Spell()
    y = b.einsum(b.input("x", F32, (1, 128)), "mk", q8_0(b, 16, 128), "nk", "mn")
    (region,) = check(b.result(y), {"x": rand(1, 128), **q8_0_arrays(16, 128)})
    (total,) = reductions(region)
    assert [region.axes[a].extent for a in total.axes] == [4, 32]


def test_q8_0_lookup_gathers_from_the_blocks() -> None:
    b = Spell()
    y = b.gather(q8_0(b, 16, 128), b.input("t", I32, (5,)))
    arrays = {"t": np.array([3, 0, 15, 7, 7], np.int32), **q8_0_arrays(16, 128)}
    (region,) = check(b.result(y), arrays)
    assert len(region.stores) == 1


def q4_k(b: Spell, rows: int, blocks: int) -> Node:
    """256 weights a block: 128 bytes of nibbles, 12 of scales and minima, and two f16 factors."""
    sc = b.cast(b.param("sc", U8, (rows, blocks, 12)), I32)
    low, mid, high = (b.slice(sc, 2, k, k + 4) for k in (0, 4, 8))

    def parts(x: Node, y: Node) -> Node:
        z = b.reshape(b.concat([x, y], 2), (rows, blocks, 4, 2, 1))
        return b.cast(z, F32)

    scales = parts(b.mod(low, 64), b.add(b.mod(high, 16), b.mul(b.div(low, 64), 16)))
    minima = parts(b.mod(mid, 64), b.add(b.div(high, 16), b.mul(b.div(mid, 64), 16)))
    qs = b.reshape(b.cast(b.param("qs", U8, (rows, blocks, 128)), I32), (rows, blocks, 4, 1, 32))
    first = b.less(b.reshape(b.iota(2), (1, 1, 1, 2, 1)), 1)
    q = b.cast(b.where(first, b.mod(qs, 16), b.div(qs, 16)), F32)
    d, dm = (
        b.reshape(b.cast(b.param(k, F16, (rows, blocks)), F32), (rows, blocks, 1, 1, 1)) for k in ("d", "dm")
    )
    return b.reshape(b.sub(b.mul(b.mul(d, scales), q), b.mul(dm, minima)), (rows, blocks * 256))


def q4_k_bytes(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The same byte by byte, as ggml lays the format out."""
    rows, blocks = arrays["d"].shape
    w = np.zeros((rows, blocks, 256))
    for n in range(rows):
        for k in range(blocks):
            s = arrays["sc"][n, k].astype(int)
            for i in range(8):
                scale, low = (
                    (s[i] & 63, s[i + 4] & 63)
                    if i < 4
                    else ((s[i + 4] & 15) | ((s[i - 4] >> 6) << 4), (s[i + 4] >> 4) | ((s[i] >> 6) << 4))
                )
                q = arrays["qs"][n, k, i // 2 * 32 :][:32].astype(int)
                q = q >> 4 if i % 2 else q & 15
                d, dm = float(arrays["d"][n, k]), float(arrays["dm"][n, k])
                w[n, k, i * 32 : (i + 1) * 32] = d * scale * q - dm * low
    return w.reshape(rows, -1)


def test_q4_k_product_unpacks_in_place() -> None:
    b = Spell()
    y = b.einsum(b.input("x", F32, (1, 512)), "mk", q4_k(b, 8, 2), "nk", "mn")
    arrays = {
        "x": rand(1, 512),
        "sc": ints(0, 256, 8, 2, 12, dtype=np.uint8),
        "qs": ints(0, 256, 8, 2, 128, dtype=np.uint8),
        "d": (0.01 * np.abs(rand(8, 2))).astype(np.float16),
        "dm": (0.01 * np.abs(rand(8, 2))).astype(np.float16),
    }
    graph = b.result(y)
    (region,) = check(graph, arrays)
    assert cuts([region]) == []
    from lumi.hlir.reference import evaluate

    want = arrays["x"] @ q4_k_bytes(arrays).T
    np.testing.assert_allclose(evaluate(graph, arrays, {}, wide=True)["o0"], want, rtol=1e-12)
