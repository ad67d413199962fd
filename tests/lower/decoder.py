"""A decoder in the manner of Gemma 3, small enough to run, and the same model in plain numpy.

Grouped-query attention with norms of q and k, rotary positions by slices and concatenation, a sliding
window on some layers, a cache kept as state, a gated MLP, and an embedding that is also the head.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lumi import dim
from lumi.dim import Extent
from lumi.dtype import BF16, F16, F32, I8, I32
from lumi.hlir.graph import Graph, Node
from tests.lower.spell import LOG2E, Spell

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Config:
    layers: int = 2
    width: int = 32
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 8
    hidden: int = 48
    vocab: int = 97
    context: int = 24
    batch: int = 2
    window: int = 5
    pattern: int = 2
    eps: float = 1e-6
    near: float = 1e4
    far: float = 1e6
    packed: bool = False
    rounded: bool = False

    def sees_everything(self, layer: int) -> bool:
        return (layer + 1) % self.pattern == 0


def decoder(c: Config, seq: Extent) -> Graph:
    """tokens[batch seq] → logits[batch seq vocab]; states `layers.N.k` and `.v` hold what came before."""
    b = Spell(past=(0, c.context), **({} if isinstance(seq, int) else {"seq": (1, c.context)}))
    past = dim.var("past")
    tokens = b.input("tokens", I32, (c.batch, seq))
    with b.scope("embed"):
        x = b.mul(b.gather(embedding(b, c), tokens), math.sqrt(c.width))
    at = b.add(b.iota(seq), b.reshape(b.symbol(past), (1,)))
    with b.scope("rope"):
        tables = {whole: rotary(b, c, at, whole) for whole in (False, True)}
    for layer in range(c.layers):
        with b.scope(f"layers.{layer}"):
            x = block(b, c, x, at, tables[c.sees_everything(layer)], layer)
    with b.scope("head"):
        y = b.einsum(norm(b, x, "norm"), "bsk", embedding(b, c), "nk", "bsn")
    return b.result(logits=y)


def embedding(b: Spell, c: Config) -> Node:
    if not c.packed:
        return b.param("embed", F32, (c.vocab, c.width))
    q = b.cast(b.param("embed.q", I8, (c.vocab, c.width // 32, 32)), F32)
    return b.reshape(
        b.mul(q, b.cast(b.param("embed.s", F16, (c.vocab, c.width // 32, 1)), F32)), (c.vocab, c.width)
    )


def norm(b: Spell, x: Node, key: str) -> Node:
    return b.rms(x, b.add(b.param(key, F32, (x.shape[-1],)), 1.0))


def project(b: Spell, c: Config, x: Node, key: str, out: int) -> Node:
    y = b.linear(x, key, out)
    return b.cast(b.cast(y, BF16), F32) if c.rounded else y


def rotary(b: Spell, c: Config, at: Node, whole: bool) -> tuple[Node, Node]:
    half = b.cast(b.mod(b.iota(c.head_dim), c.head_dim // 2), F32)
    base = c.far if whole else c.near
    frequency = b.exp2(b.mul(half, -2 / c.head_dim * math.log2(base)))
    angle = b.mul(b.reshape(b.cast(at, F32), (at.shape[0], 1)), b.reshape(frequency, (1, c.head_dim)))
    return b.one("sin", b.add(angle, math.pi / 2)), b.one("sin", angle)


def rotate(b: Spell, c: Config, x: Node, tables: tuple[Node, Node]) -> Node:
    """x[batch seq heads head_dim] turned by the angle of its position."""
    h = c.head_dim // 2
    turned = b.concat([b.mul(b.slice(x, 3, h, 2 * h), -1), b.slice(x, 3, 0, h)], 3)
    cosine, sine = (b.reshape(t, (1, t.shape[0], 1, c.head_dim)) for t in tables)
    return b.add(b.mul(x, cosine), b.mul(turned, sine))


def block(b: Spell, c: Config, x: Node, at: Node, tables: tuple[Node, Node], layer: int) -> Node:
    def key(name: str) -> str:
        return f"layers.{layer}.{name}"

    seq, heads, kv, size = x.shape[1], c.heads, c.kv_heads, c.head_dim
    past, end = dim.var("past"), dim.var("past") + x.shape[1]
    n = norm(b, x, key("attn_norm"))
    q = b.reshape(project(b, c, n, key("wq"), heads * size), (c.batch, seq, heads, size))
    k = b.reshape(project(b, c, n, key("wk"), kv * size), (c.batch, seq, kv, size))
    v = b.reshape(project(b, c, n, key("wv"), kv * size), (c.batch, seq, kv, size))
    q = rotate(b, c, norm(b, q, key("q_norm")), tables)
    k = rotate(b, c, norm(b, k, key("k_norm")), tables)
    caches = []
    for name, new in (("k", k), ("v", v)):
        state = b.state(key(name), F32, (c.batch, kv, c.context, size))
        full = b.set_state(key(name), b.update(state, b.permute(new, (0, 2, 1, 3)), 2, past))
        caches.append(b.slice(full, 2, 0, end))
    grouped = b.reshape(q, (c.batch, seq, kv, heads // kv, size))
    s = b.mul(b.einsum(grouped, "bskgd", caches[0], "bkjd", "bkgsj"), size**-0.5)
    j, i = b.reshape(b.iota(end), (1, end)), b.reshape(at, (seq, 1))
    seen = b.less(j, b.add(i, 1))
    if not c.sees_everything(layer):
        seen = b.both(seen, b.less(i, b.add(j, c.window)))
    s = b.where(b.reshape(seen, (1, 1, 1, seq, end)), s, -math.inf)
    o = b.einsum(b.softmax(s, -1), "bkgsj", caches[1], "bkjd", "bskgd")
    o = project(b, c, b.reshape(o, (c.batch, seq, heads * size)), key("wo"), c.width)
    x = b.add(x, norm(b, o, key("post_attn_norm")))
    n = norm(b, x, key("ffn_norm"))
    g, u = project(b, c, n, key("gate"), c.hidden), project(b, c, n, key("up"), c.hidden)
    t = b.mul(b.add(g, b.mul(b.mul(b.mul(g, g), g), 0.044715)), math.sqrt(2 / math.pi))
    h = b.mul(b.mul(g, b.recip(b.add(b.exp2(b.mul(t, -2 * LOG2E)), 1.0))), u)
    return b.add(x, norm(b, project(b, c, h, key("down"), c.width), key("post_ffn_norm")))


def weights(c: Config, seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    found = {
        "embed": rng.standard_normal((c.vocab, c.width)) * 0.5,
        "norm": rng.standard_normal(c.width) * 0.2,
    }
    if c.packed:
        q = rng.integers(-127, 128, (c.vocab, c.width // 32, 32)).astype(np.int8)
        s = (0.01 * np.abs(rng.standard_normal((c.vocab, c.width // 32, 1)))).astype(np.float16)
        found |= {"embed.q": q, "embed.s": s, "embed": (q * s.astype(np.float64)).reshape(c.vocab, c.width)}
    inner, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
    shapes = {"wq": (inner, c.width), "wk": (kv, c.width), "wv": (kv, c.width), "wo": (c.width, inner)}
    shapes |= {"gate": (c.hidden, c.width), "up": (c.hidden, c.width), "down": (c.width, c.hidden)}
    norms = dict.fromkeys(("attn_norm", "post_attn_norm", "ffn_norm", "post_ffn_norm"), c.width)
    norms |= dict.fromkeys(("q_norm", "k_norm"), c.head_dim)
    for layer in range(c.layers):
        for name, shape in shapes.items():
            found[f"layers.{layer}.{name}"] = rng.standard_normal(shape) * 2 * shape[1] ** -0.5
        for name, size in norms.items():
            found[f"layers.{layer}.{name}"] = rng.standard_normal(size) * 0.2
    return found


def caches(c: Config) -> Arrays:
    shape = (c.batch, c.kv_heads, c.context, c.head_dim)
    return {f"layers.{layer}.{n}": np.zeros(shape) for layer in range(c.layers) for n in "kv"}


def plain(c: Config, w: Arrays, tokens: np.ndarray) -> np.ndarray:
    """The logits of whole sequences [batch length], without a cache."""
    batch, length = tokens.shape
    at = np.arange(length)

    def scale(x: np.ndarray, key: str) -> np.ndarray:
        return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + c.eps) * (1 + w[key])

    x = w["embed"][tokens] * np.sqrt(c.width)
    for layer in range(c.layers):
        key = f"layers.{layer}."
        base = c.far if c.sees_everything(layer) else c.near
        f = base ** (-np.arange(c.head_dim // 2) * 2 / c.head_dim)
        angle = at[:, None] * np.concatenate([f, f])
        cosine, sine = np.cos(angle)[:, None], np.sin(angle)[:, None]

        def turn(t: np.ndarray, cosine: np.ndarray = cosine, sine: np.ndarray = sine) -> np.ndarray:
            h = c.head_dim // 2
            return t * cosine + np.concatenate([-t[..., h:], t[..., :h]], -1) * sine

        n = scale(x, key + "attn_norm")
        q, k, v = (
            (n @ w[key + name].T).reshape(batch, length, -1, c.head_dim) for name in ("wq", "wk", "wv")
        )
        q, k = turn(scale(q, key + "q_norm")), turn(scale(k, key + "k_norm"))
        k, v = (np.repeat(t, c.heads // c.kv_heads, 2) for t in (k, v))
        s = np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(c.head_dim)
        seen = at[None, :] <= at[:, None]
        if not c.sees_everything(layer):
            seen &= at[:, None] - at[None, :] < c.window
        s = np.where(seen, s, -np.inf)
        e = np.exp(s - s.max(-1, keepdims=True))
        o = np.einsum("bhij,bjhd->bihd", e / e.sum(-1, keepdims=True), v).reshape(batch, length, -1)
        x = x + scale(o @ w[key + "wo"].T, key + "post_attn_norm")
        n = scale(x, key + "ffn_norm")
        g, u = n @ w[key + "gate"].T, n @ w[key + "up"].T
        t = np.tanh(np.sqrt(2 / np.pi) * (g + 0.044715 * g**3))
        x = x + scale((0.5 * g * (1 + t) * u) @ w[key + "down"].T, key + "post_ffn_norm")
    return scale(x, "norm") @ w["embed"].T
