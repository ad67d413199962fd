"""sdpa against plain numpy: masks, windows, grouped heads, ragged lengths, rows that see nothing."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from lumi.errors import LumiError
from tests.language import Array, run


def attention(q: Array, k: Array, v: Array, seen: Array, scale: float | None = None, cap: float = 0) -> Array:
    """softmax(q kᵀ · scale) v where seen, in f64; a row that sees nothing is 0."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    s = np.einsum("bhid,bhjd->bhij", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    s = cap * np.tanh(s / cap) if cap else s
    e = np.where(seen, np.exp(s - s.max(-1, keepdims=True)), 0)
    total = e.sum(-1, keepdims=True)
    return np.einsum("bhij,bhjd->bhid", e / np.where(total == 0, 1, total), v)


def inputs(i: int, j: int, heads: int = 4, kv_heads: int = 4, width: int = 8) -> dict[str, Array]:
    rng = np.random.default_rng(i * 1000 + j)
    shapes = {"q": (2, heads, i, width), "k": (2, kv_heads, j, width), "v": (2, kv_heads, j, width)}
    return {name: rng.standard_normal(s).astype(np.float32) for name, s in shapes.items()}


def positions(i: int, j: int, start: int = 0) -> tuple[Array, Array]:
    return np.arange(i)[:, None] + start, np.arange(j)[None]


@pytest.mark.parametrize("length", [1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 128, 129, 130])
def test_ragged_lengths(length: int) -> None:
    x = inputs(length, length)
    p, j = positions(length, length)
    np.testing.assert_allclose(run("(sdpa q k v)", **x), attention(**x, seen=np.ones((1, 1))), atol=2e-5)
    np.testing.assert_allclose(run("(sdpa q k v :causal true)", **x), attention(**x, seen=j <= p), atol=2e-5)


@pytest.mark.parametrize("kv_heads", [1, 2, 3, 6])
def test_groups_share_a_key_head(kv_heads: int) -> None:
    x = inputs(5, 7, heads=6, kv_heads=kv_heads)
    np.testing.assert_allclose(run("(sdpa q k v)", **x), attention(**x, seen=np.ones((1, 1))), atol=2e-5)


@pytest.mark.parametrize("window", [1, 2, 5, 100])
def test_window_sees_the_last_keys(window: int) -> None:
    x = inputs(6, 10)
    p, j = positions(6, 10, start=4)
    found = run(f"(sdpa q k v :causal true :window {window} :start 4)", **x)
    np.testing.assert_allclose(found, attention(**x, seen=(j <= p) & (p < j + window)), atol=2e-5)


@pytest.mark.parametrize("window", [None, 3])
def test_each_sequence_starts_at_its_own_position(window: int | None) -> None:
    x, starts = inputs(3, 9, kv_heads=2), np.array([0, 6], np.int32)
    p = np.arange(3)[None, :, None] + starts[:, None, None]
    j = np.arange(9)[None, None]
    seen = (j <= p) & (p < j + (window or 100))
    text = f"(sdpa q k v :causal true :start at :window {window or 'nil'})"
    np.testing.assert_allclose(run(text, at=starts, **x), attention(**x, seen=seen[:, None]), atol=2e-5)


@pytest.mark.parametrize("start", [0, 1, 3, 4, 11, 30])
def test_a_ring_holds_what_its_queries_see(start: int) -> None:
    """Rings of eight keys, of which three queries see windows of four; no position is NaN among the keys."""
    x, room = inputs(3, start + 3, kv_heads=2), 8
    rings = {n: np.full((2, 2, room, 8), np.nan if n == "k" else 1e9, np.float32) for n in "kv"}
    for name, ring in rings.items():
        for p in range(start + 3):
            ring[:, :, p % room] = x[name][:, :, p]
    p, j = positions(3, start + 3, start)
    found = run(f"(ring-sdpa q k v :window 4 :start {start})", q=x["q"], **rings)
    np.testing.assert_allclose(found, attention(**x, seen=(j <= p) & (p < j + 4)), atol=2e-5)
    with pytest.raises(LumiError, match="a ring of 8 has no room for 9 keys"):
        run("(ring-sdpa q k v :window 7)", q=x["q"], **rings)


def test_rows_that_see_nothing_are_0_beside_others() -> None:
    x = inputs(6, 4)
    p, j = positions(6, 4)
    found = run("(sdpa q k v :causal true :window 2)", **x)
    want = attention(**x, seen=(j <= p) & (p < j + 2))
    assert not np.any(want[:, :, 5]) and np.any(want[:, :, 4])
    np.testing.assert_allclose(found, want, atol=2e-5)


@pytest.mark.parametrize("shape", [(5, 7), (1, 7), (2, 1, 5, 7), (2, 6, 5, 7), (1, 6, 1, 7)])
def test_mask_and_bias_broadcast(shape: tuple[int, ...]) -> None:
    x = inputs(5, 7, heads=6, kv_heads=2)
    rng = np.random.default_rng(3)
    mask = rng.random(shape) < 0.6
    mask[..., 0] = True
    bias = rng.standard_normal(shape).astype(np.float32)
    found = run("(sdpa q k v :mask mask)", mask=mask, **x)
    np.testing.assert_allclose(found, attention(**x, seen=mask), atol=2e-5)
    biased = run("(sdpa q k v :bias bias :scale 0.0)", bias=bias, **x)
    e = np.exp(np.broadcast_to(bias, (2, 6, 5, 7)).astype(np.float64))
    v = np.repeat(x["v"], 3, 1)
    np.testing.assert_allclose(
        biased, np.einsum("bhij,bhjd->bhid", e / e.sum(-1, keepdims=True), v), atol=2e-5
    )


def test_bias_of_minus_infinity_masks() -> None:
    x = inputs(5, 7)
    bias = np.where(np.arange(7) < 3, 0, -np.inf).astype(np.float32)
    found = run("(sdpa q k v :bias bias)", bias=bias, **x)
    np.testing.assert_allclose(found, attention(**x, seen=np.isfinite(bias)), atol=2e-5)


def test_scores_are_capped() -> None:
    x = inputs(5, 7)
    x["q"] *= 20
    found = run("(sdpa q k v :soft-cap 3.0 :scale 1.0)", **x)
    np.testing.assert_allclose(found, attention(**x, seen=np.ones((1, 1)), scale=1.0, cap=3.0), atol=2e-5)


def test_nan_in_a_masked_key_stays_out() -> None:
    x = inputs(5, 7)
    x["k"][:, :, 5:] = np.nan
    x["v"][:, :, 5:] = 0
    mask = np.arange(7) < 5
    want = attention(x["q"], np.nan_to_num(x["k"]), x["v"], mask)
    np.testing.assert_allclose(run("(sdpa q k v :mask mask)", mask=mask, **x), want, atol=2e-5)


def test_halves_are_rounded_once() -> None:
    x = {name: a.astype(ml_dtypes.bfloat16) for name, a in inputs(9, 9).items()}
    found = run("(sdpa q k v :causal true)", **x)
    p, j = positions(9, 9)
    want = attention(**x, seen=j <= p)
    np.testing.assert_allclose(found.astype(np.float64), want, rtol=2**-8, atol=2**-9)
