"""Kernels that tensor cores compute, as text: matrix products with what follows them, and cascades."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lumi.errors import Source
from lumi.llir.kernel import Kernel
from lumi.llir.parse import parse
from lumi.llir.text import show

EPILOGUES: Mapping[str, tuple[str, str, str]] = {
    "plain": ("", "", "s"),
    "bias": ("(E0 [{n}] {t})", "e1 (load (E0 [n])) e2 (cast.f32 e1) e3 (add s e2)", "e3"),
    "gated": (
        "(E0 [{n}] f32) (E1 [{m} {n}] {t})",
        """e1 (load (E0 [n])) e2 (add s e1) e3 (mul e2 -1.5) e4 (exp2 e3) e5 (add e4 1.0) e6 (recip e5)
           e7 (mul e2 e6) e8 (load (E1 [m n])) e9 (cast.f32 e8) e10 (add e7 e9)""",
        "e10",
    ),
    "rows": (
        "(E0 [{m}] f32)",
        "e1 (load (E0 [m])) e2 (mul s e1) e3 (max e2 0.0) e4 (position n) e5 (lt e4 7) e6 (sel e5 e3 e2)",
        "e6",
    ),
}
"""Buffers, statements and the stored value of what follows a product."""


def _read(text: str) -> Kernel:
    return parse(Source("kernel.lumi", text))


def product(
    m: object,
    n: object,
    k: object,
    a: str = "m k",
    b: str = "n k",
    t: str = "bf16",
    out: str = "bf16",
    epilogue: str = "plain",
) -> Kernel:
    """R[m n] = epilogue(Σ_k A·B), whose dimensions are `a` and `b`; extents are numbers or dims."""
    sizes = {"m": m, "n": n, "k": k}
    buffers, statements, value = EPILOGUES[epilogue]
    shape = {x: " ".join(str(sizes[axis]) for axis in x.split()) for x in (a, b)}
    stored = value if out == "f32" else f"(cast.{out} {value})"
    return _read(f"""
(kernel
  :buffers [(A [{shape[a]}] {t}) (B [{shape[b]}] {t}) {buffers.format(m=m, n=n, t=t)} (R [{m} {n}] {out})]
  :axes [(m {m}) (n {n}) (k {k})]
  :grid [(m 32) (n 64)]
  :tiles [(k 16)]
  (for [k] :carry [[c s sum f32 [m n]]]
    (let [v1 (load (A [{a}])) v2 (cast.f32 v1)
          v3 (load (B [{b}])) v4 (cast.f32 v3)
          v5 (dot [k] v2 v4) v6 (add c v5)]
      (next v6)))
  (let [{statements} r {stored if out != "f32" else f"(add {value} 0.0)"}]
    (store (R [m n]) r)))
""")


def gated_pair(m: int, n: int, k: int, t: str = "bf16") -> Kernel:
    """R = (A·Bᵀ) · sigmoid-like(A·Bᵀ) · (A·Cᵀ)."""
    return _read(f"""
(kernel
  :buffers [(A [{m} {k}] {t}) (B [{n} {k}] {t}) (C [{n} {k}] {t}) (R [{m} {n}] {t})]
  :axes [(m {m}) (n {n}) (k {k})]
  :grid [(m 32) (n 64)]
  :tiles [(k 64)]
  (for [k] :carry [[c1 s1 sum f32 [m n]] [c2 s2 sum f32 [m n]]]
    (let [v1 (load (A [m k])) v2 (cast.f32 v1)
          v3 (load (B [n k])) v4 (cast.f32 v3) v5 (dot [k] v2 v4) v6 (add c1 v5)
          v7 (load (C [n k])) v8 (cast.f32 v7) v9 (dot [k] v2 v8) v10 (add c2 v9)]
      (next v6 v10)))
  (let [e1 (mul s1 -1.5) e2 (exp2 e1) e3 (add e2 1.0) e4 (recip e3) e5 (mul s1 e4) e6 (mul e5 s2)
        r (cast.{t} e6)]
    (store (R [m n]) r)))
""")


def batched(heads: int, group: int, m: object, n: int, k: int, t: str = "bf16") -> Kernel:
    """R[h g m n] = Σ_k A[(h g) m k] · B[h n k]: groups share a factor."""
    return _read(f"""
(kernel
  :buffers [(A [{heads * group} {m} {k}] {t}) (B [{heads} {n} {k}] {t}) (R [{heads} {group} {m} {n}] {t})]
  :axes [(h {heads}) (g {group}) (m {m}) (n {n}) (k {k})]
  :grid [(h 1) (g 1) (m 32) (n 64)]
  :tiles [(k 64)]
  (for [k] :carry [[c s sum f32 [h g m n]]]
    (let [v1 (load (A [(+ (* {group} h) g) m k])) v2 (cast.f32 v1)
          v3 (load (B [h n k])) v4 (cast.f32 v3) v5 (dot [k] v2 v4) v6 (add c v5)]
      (next v6)))
  (let [r (cast.{t} s)]
    (store (R [h g m n]) r)))
""")


def two_summed(m: int, n: int, h: object, d: int) -> Kernel:
    """R[m n] = Σ_h Σ_d A[m h d] · B[n d h]: heads joined by a projection."""
    return _read(f"""
(kernel
  :buffers [(A [{m} {h} {d}] bf16) (B [{n} {h} {d}] bf16) (R [{m} {n}] bf16)]
  :axes [(m {m}) (n {n}) (h {h}) (d {d})]
  :grid [(m 32) (n 64)]
  :tiles [(h 2) (d 16)]
  (for [h d] :carry [[c s sum f32 [m n]]]
    (let [v1 (load (A [m h d])) v2 (cast.f32 v1)
          v3 (load (B [n h d])) v4 (cast.f32 v3) v5 (dot [h d] v2 v4) v6 (add c v5)]
      (next v6)))
  (let [r (cast.bf16 s)]
    (store (R [m n]) r)))
""")


def chunked(m: int, n: int, k: int, chunks: int) -> Kernel:
    """R[c m n] = the sum over chunk c of k."""
    return _read(f"""
(kernel
  :buffers [(A [{m} {k}] bf16) (B [{n} {k}] bf16) (R [{chunks} {m} {n}] f32)]
  :axes [(c {chunks}) (m {m}) (n {n}) (k {k})]
  :grid [(c 1) (m 32) (n 64)]
  :tiles [(k 64)]
  (for [k] :chunk c :carry [[p s sum f32 [c m n]]]
    (let [v1 (load (A [m k])) v2 (cast.f32 v1)
          v3 (load (B [n k])) v4 (cast.f32 v3) v5 (dot [k] v2 v4) v6 (add p v5)]
      (next v6)))
  (store (R [c m n]) s))
""")


SCORES: Mapping[str, tuple[str, str, str, str]] = {
    "full": ("", "", "x1 (mul s 0.088388347)", ""),
    "causal": (
        "",
        "p1 (position i) p2 (add p1 1.0)",
        "x0 (mul s 0.088388347) q1 (position j) q2 (lt q1 p2) x1 (sel q2 x0 -inf)",
        ":when [(lt (position j) (add (position i) 1.0))]",
    ),
    "window": (
        "",
        "p1 (position i) p2 (add p1 1.0)",
        """x0 (mul s 0.088388347) q1 (position j) q2 (lt q1 p2) q3 (add q1 40) q4 (lt p1 q3) q5 (and q2 q4)
           x1 (sel q5 x0 -inf)""",
        ":when [(lt (position j) (add (position i) 1.0)) (lt (position i) (add (position j) 40))]",
    ),
    "length": (
        "",
        "p1 (symbol length)",
        "x0 (mul s 0.088388347) q1 (position j) q2 (lt q1 p1) x1 (sel q2 x0 -inf)",
        ":when [(lt (position j) $length)]",
    ),
    "capped": (
        "",
        "",
        """y1 (mul s 0.02) y2 (mul y1 2.885390082) y3 (exp2 y2) y4 (add y3 1.0) y5 (recip y4)
           y6 (mul y5 -2.0) y7 (add y6 1.0) x1 (mul y7 5.0)""",
        "",
    ),
    "bias": ("(E0 [{heads} seq keys] bf16)", "", "y1 (load (E0 [h i j])) y2 (cast.f32 y1) x1 (add s y2)", ""),
    "mask": (
        "(E0 [{heads} keys] bool)",
        "",
        "x0 (mul s 0.088388347) y1 (load (E0 [h j])) x1 (sel y1 x0 -1000.0)",
        "",
    ),
    "slopes": (
        "(E0 [{heads}] f32)",
        "p1 (load (E0 [h])) p2 (position i)",
        """x0 (mul s 0.088388347) q1 (position j) q2 (sub q1 p2) q3 (cast.f32 q2) q4 (mul q3 p1)
           x1 (add x0 q4)""",
        "",
    ),
}
"""Buffers, statements before the loop and in it, and guards, of what becomes of products in a cascade."""


def cascade(
    score: str = "full",
    width: int = 64,
    value: int | None = None,
    heads: int = 2,
    group: int = 2,
    t: str = "bf16",
    out: str = "bf16",
    rounded: bool = False,
    turned: bool = False,
    sizes: tuple[object, object] = ("seq", "keys"),
) -> Kernel:
    """Weights of positions j by products with rows i, their maximum carried, and sums of rows by weight.

    With `turned` neighbours of what is summed are neighbours in memory.  `sizes` are those of i and j.
    """
    value = value or width
    buffers, before, inside, guards = SCORES[score]
    shape, place = (f"{value} keys", "e j") if turned else (f"keys {value}", "j e")
    weights = f"w2 (cast.{t} w1) w (cast.f32 w2)" if rounded else "w (mul w1 1.0)"
    stored = f"(cast.{out} o2)" if out != "f32" else "(mul o2 1.0)"
    text = f"""
(kernel
  :buffers [(Q [{heads * group} seq {width}] {t}) (K [{heads} keys {width}] {t})
            (V [{heads} {shape}] {t}) {buffers.format(heads=heads)}
            (R [{heads * group} seq {value}] {out})]
  :axes [(h {heads}) (g {group}) (i seq) (e {value}) (j keys) (d {width})]
  :grid [(h 1) (g 1) (i 16) (e 64)]
  :tiles [(j 32) (d 16)]
  (let [{before} one (mul 1.0 1.0)]
    (for [j] {guards} :carry [[m0 m1 max f32 [h g i]] [o0 o1 sum f32 [h g i e]] [l0 l1 sum f32 [h g i]]]
      (for [d] :carry [[s0 s sum f32 [h g i j]]]
        (let [a1 (load (Q [(+ (* {group} h) g) i d])) a2 (cast.f32 a1)
              a3 (load (K [h j d])) a4 (cast.f32 a3) a5 (dot [d] a2 a4) a6 (add s0 a5)]
          (next a6)))
      (let [{inside}
            m2 (reduce max [j] x1) m (max m0 m2)
            r1 (subni m0 m) r2 (mul r1 1.442695) r (exp2 r2)
            w0 (subni x1 m) w00 (mul w0 1.442695) w1 (exp2 w00) {weights}
            o3 (mul o0 r) b1 (load (V [h {place}])) b2 (cast.f32 b1) o4 (dot [j] w b2) o5 (add o3 o4)
            l2 (mul l0 r) l3 (reduce sum [j] w) l4 (add l2 l3)]
        (next m o5 l4)))
    (let [l5 (recipz l1) o2 (mul o1 l5) r0 {stored}]
      (store (R [(+ (* {group} h) g) i e]) r0))))
"""
    text = text.replace(" one (mul 1.0 1.0)", "" if before else " one (position i)")
    return _read(re.sub(r"\b(seq|keys)\b", lambda found: str(sizes[found[0] == "keys"]), text))


def cached(room: int, score: str = "full", width: int = 64, heads: int = 2, group: int = 2) -> Kernel:
    """A cascade whose rows lie side by side, over the first positions of a cache that has room for more."""
    text = show(cascade(score, width, heads=heads, group=group))
    for name in "KV":
        text = text.replace(f"({name} [{heads} keys {width}]", f"({name} [{heads} {room} {width}]")
    place = f"(+ g (* {group} h))"
    for name, axis in (("Q", "d"), ("R", "e")):
        text = text.replace(
            f"({name} [{heads * group} seq {width}]", f"({name} [seq {heads * group} {width}]"
        )
        text = text.replace(f"({name} [{place} i {axis}])", f"({name} [i {place} {axis}])")
    return _read(text)
