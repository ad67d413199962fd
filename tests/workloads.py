"""Regions written by hand: the classic fusion problems, from attention to quantised products.

Each names its axes with the extents that plans are searched for (`large`), and small ragged ones that the
plan is run at (`small`).  Axes in `dims` are symbolic: one plan serves both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from lumi import dim
from lumi.dtype import F32, I32, DType
from lumi.field.access import Access
from lumi.field.axis import AxisTable
from lumi.field.index import of_axis
from lumi.field.region import Region, Store
from lumi.field.term import Bin, Const, In, Pos, Red, Sel, Term, Un

LOG2E = 1.4426950408889634
INF = math.inf

Arrays = dict[str, np.ndarray]
Fill = Callable[[np.random.Generator, Mapping[str, tuple[int, ...]]], Arrays]


def const(value: float) -> Term:
    return Const(value)


def un(op: str, a: Term) -> Term:
    return Un(op, a)


def bin_(op: str, a: Term | float, b: Term | float) -> Term:
    a, b = (x if not isinstance(x, int | float) else Const(float(x)) for x in (a, b))
    return Bin(op, a, b)


def add(a: Term | float, b: Term | float) -> Term:
    return bin_("add", a, b)


def sub(a: Term | float, b: Term | float) -> Term:
    return bin_("sub", a, b)


def mul(a: Term | float, b: Term | float) -> Term:
    return bin_("mul", a, b)


def both(a: Term, b: Term) -> Term:
    return Bin("and", a, b)


def exp2(a: Term) -> Term:
    return Un("exp2", a)


def recip(a: Term) -> Term:
    return Un("recip", a)


def total(axes: str, body: Term | float) -> Term:
    return Red("sum", tuple(axes.split()), body if not isinstance(body, int | float) else Const(float(body)))


def top(axes: str, body: Term) -> Term:
    return Red("max", tuple(axes.split()), body)


def read(name: str, axes: str, dtype: DType = F32) -> Term:
    """The buffer called `name` at the point its axes name."""
    return In(name, tuple(axes.split()), dtype)


@dataclass(frozen=True, eq=False)
class Workload:
    """A term over named axes.  `buffers` gives each input's axes; `split` an axis and its chunk axis."""

    name: str
    term: Term
    large: Mapping[str, int]
    small: Mapping[str, int]
    dims: str
    buffers: Mapping[str, str]
    split: tuple[str, str] | None = None
    families: tuple[str, ...] = ("exact", "relaxed")
    fill: Fill | None = None
    tolerance: float = 2e-5
    dtypes: Mapping[str, DType] = field(default_factory=dict)

    def region(self) -> Region:
        """The region that stores the term: `B0` … are its inputs in order, then its output."""
        axes = AxisTable()
        for name, size in self.large.items():
            axes.add(name, dim.var(name) if name in self.dims.split() else size)
        accesses = {
            name: self._access(k, tuple(over.split()), axes, self.dtypes.get(name, F32))
            for k, (name, over) in enumerate(self.buffers.items())
        }
        out = self._access(len(accesses), _free(self.term, axes), axes, F32)
        return Region(
            self.name, axes, accesses, (Store(self.term, out),), (*self.buffers, "out"), {}, (), self.name
        )

    def _access(self, number: int, over: tuple[str, ...], axes: AxisTable, dtype: DType) -> Access:
        shape = tuple(axes[a].extent for a in over)
        return Access(f"B{number}", tuple(of_axis(a) for a in over), shape, dtype)

    @property
    def splits(self) -> tuple[tuple[str, str], ...]:
        return (self.split,) if self.split else ()

    def sizes(self, which: Mapping[str, int]) -> dict[str, int]:
        """The values of the symbolic axes."""
        return {a: which[a] for a in self.dims.split()}

    def arrays(self, region: Region, dims: Mapping[str, int], seed: int = 0) -> Arrays:
        """Seeded inputs by buffer name."""
        rng = np.random.default_rng(seed)
        shapes = {
            name: tuple(dim.value(e, dims) for e in region.accesses[name].shape) for name in self.buffers
        }
        made = (self.fill or normal)(rng, shapes)
        return {
            region.accesses[n].buffer: np.asarray(a).astype(region.accesses[n].dtype.storage)
            for n, a in made.items()
        }


def _free(term: Term, axes: AxisTable) -> tuple[str, ...]:
    from lumi.field.traverse import free_axes

    found = free_axes([term])[id(term)]
    return tuple(a.name for a in axes if a.name in found)


def normal(rng: np.random.Generator, shapes: Mapping[str, tuple[int, ...]]) -> Arrays:
    """Standard normal values for every buffer."""
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


def scaled(factor: float, *names: str, offset: float = 0.0) -> Fill:
    """Normal values, those of `names` times `factor` plus `offset`."""

    def fill(rng: np.random.Generator, shapes: Mapping[str, tuple[int, ...]]) -> Arrays:
        made = normal(rng, shapes)
        return {n: a * factor + offset if n in names else a for n, a in made.items()}

    return fill


# -- attention

ATTENTION = {"q": "b hk g i d", "k": "b hk j d", "v": "b hk j v"}
_HEADS = {"b": 2, "hk": 8, "g": 4}
_LONG = {**_HEADS, "i": 4096, "j": 4096, "d": 128, "v": 128}
_SHORT = {"b": 1, "hk": 2, "g": 2, "i": 200, "j": 200}

CAUSAL = bin_("le", Pos("j"), Pos("i"))


def attention(mask: Term | None = None, width: int = 128) -> Term:
    """softmax(q kᵀ / √width) v, written the naive way: three passes over the scores."""
    scores = mul(total("d", mul(read("q", "b hk g i d"), read("k", "b hk j d"))), width**-0.5 * LOG2E)
    if mask is not None:
        scores = Sel(mask, scores, Const(-INF))
    weights = exp2(sub(scores, top("j", scores)))
    shares = mul(weights, recip(total("j", weights)))
    return total("j", mul(shares, read("v", "b hk j v")))


def window(width: int) -> Term:
    """The causal mask of the last `width` positions."""
    return both(CAUSAL, bin_("lt", Pos("i"), add(Pos("j"), Const(float(width)))))


def attention_work(
    name: str, mask: Term | None = None, fill: Fill | None = None, tolerance: float = 2e-5
) -> Workload:
    return Workload(
        name, attention(mask), _LONG, _SHORT, "b hk g i j", ATTENTION, fill=fill, tolerance=tolerance
    )


def decode_work(name: str, mask: Term | None = None) -> Workload:
    """One query against a long cache whose positions may be split over chunks."""
    large = {**_LONG, "b": 1, "i": 1, "j": 32768, "c": 16}
    small = {"b": 1, "hk": 2, "g": 4, "j": 1000}
    return Workload(name, attention(mask), large, small, "b hk g j", ATTENTION, split=("j", "c"))


# -- softmax and norms

X = read("x", "i j")


def softmax_parts(x: Term) -> tuple[Term, Term, Term]:
    """exp(x - max), the maximum, the sum of the exponentials, along j."""
    m = top("j", x)
    e = exp2(mul(sub(x, m), LOG2E))
    return e, m, total("j", e)


def log_sum_exp(x: Term) -> Term:
    _, m, total_ = softmax_parts(x)
    return add(m, mul(un("log2", total_), 1 / LOG2E))


def cross_entropy() -> Term:
    """Of a linear layer: the logits i × j are never needed as a whole."""
    logits = total("d", mul(read("h", "i d"), read("w", "j d")))
    picked = total("j", Sel(Bin("eq", Pos("j"), read("y", "i", I32)), logits, Const(0.0)))
    return sub(log_sum_exp(logits), picked)


ROW = read("x", "i k")
GAIN = read("gain", "k")
WEIGHT = read("w", "k n")
COUNT = total("k", 1.0)


def mean(x: Term) -> Term:
    return mul(total("k", x), recip(COUNT))


CENTRED = sub(ROW, mean(ROW))
VARIANCE = mean(mul(CENTRED, CENTRED))
RMS = un("sqrt", add(mul(total("k", mul(ROW, ROW)), recip(COUNT)), 1e-5))
NORMED = mul(mul(ROW, recip(RMS)), GAIN)
LAYER_NORMED = mul(mul(CENTRED, recip(un("sqrt", add(VARIANCE, 1e-5)))), GAIN)
_NORM = {"x": "i k", "gain": "k"}
_NORM_W = {"x": "i k", "gain": "k", "w": "k n"}
_FAST = ("exact", "relaxed", "fast-math")


def norm_fill(offset: float = 2.0) -> Fill:
    def fill(rng: np.random.Generator, shapes: Mapping[str, tuple[int, ...]]) -> Arrays:
        made = normal(rng, shapes)
        made["x"] = made["x"] + offset
        return made | ({"w": made["w"] / 30} if "w" in made else {})

    return fill


# -- cascades that must stay as they are

Y = read("y", "i j")


def adversarial(rng: np.random.Generator, shapes: Mapping[str, tuple[int, ...]]) -> Arrays:
    """Values on which a running reference would overflow."""
    made = normal(rng, shapes)
    made["x"][:, 0], made["y"][:, -1] = 2000, 2000
    return made


def vanishing(rng: np.random.Generator, shapes: Mapping[str, tuple[int, ...]]) -> Arrays:
    """Prefix sums of x that come back to zero."""
    made = normal(rng, shapes)
    made["x"] = np.where(np.arange(shapes["x"][1]) % 2, -1.0, 1.0) * np.ones(shapes["x"])
    return made


# -- products

A = read("a", "m k")
B = read("b", "k n")
_PRODUCT = {"a": "m k", "b": "k n"}
_CUBE = {"m": 4096, "k": 4096, "n": 4096}
_RAGGED = {"m": 70, "k": 300, "n": 90}
AMAX = top("k", un("abs", A))


def dequantised() -> Term:
    """gelu(a · (b · scale) + bias) + residual."""
    y = add(total("k", mul(A, mul(B, read("scale", "n")))), read("bias", "n"))
    gate = recip(add(exp2(mul(y, -1.702 * LOG2E)), 1.0))
    return add(mul(y, gate), read("r", "m n"))


def dequantised_fill(rng: np.random.Generator, shapes: Mapping[str, tuple[int, ...]]) -> Arrays:
    made = normal(rng, shapes)
    return made | {"b": np.round(20 * made["b"]), "scale": 0.01 * np.abs(made["scale"])}


def rounded(x: Term) -> Term:
    return un("floor", add(x, 0.5))


def _rows(term: Term, **more: object) -> dict[str, object]:
    return {"term": term, "buffers": {"x": "i j"}, "dims": "i j", **more}


_WIDE = {"i": 8192, "j": 50257}
_WIDE_SMALL = {"i": 37, "j": 1000}
_E, _M, _L = softmax_parts(X)


def all_workloads() -> tuple[Workload, ...]:
    """The suite, in a fixed order."""
    rows, small = _WIDE, _WIDE_SMALL
    few = {"i": 4, "j": 1 << 22, "c": 64}
    norms, norms_small = {"i": 8192, "k": 4096}, {"i": 37, "k": 300}
    mats, mats_small = {"i": 4096, "k": 4096, "n": 4096}, {"i": 70, "k": 300, "n": 90}
    x_only = {"x": "i k"}
    return (
        attention_work("attention_full"),
        attention_work("attention_causal", CAUSAL),
        attention_work("attention_large_logits", CAUSAL, scaled(17.0, "q", "k"), 5e-4),
        attention_work("attention_window", window(70)),
        attention_work("attention_masked_rows", both(CAUSAL, bin_("le", 50.0, Pos("i")))),
        decode_work("decode"),
        decode_work("decode_length_mask", bin_("lt", Pos("j"), 700.0)),
        Workload("softmax", mul(_E, recip(_L)), rows, small, "i j", {"x": "i j"}, fill=scaled(3.0, "x")),
        Workload("log_sum_exp", log_sum_exp(X), rows, small, "i j", {"x": "i j"}, fill=scaled(3.0, "x")),
        Workload(
            "log_sum_exp_split",
            log_sum_exp(X),
            few,
            {"i": 4, "j": 5000},
            "i j",
            {"x": "i j"},
            split=("j", "c"),
            fill=scaled(3.0, "x"),
        ),
        Workload(
            "linear_cross_entropy",
            cross_entropy(),
            {"i": 8192, "j": 128256, "d": 128},
            {"i": 70, "j": 1000},
            "i j",
            {"h": "i d", "w": "j d", "y": "i"},
            fill=labels,
            dtypes={"y": I32},
        ),
        Workload(
            "softmax_entropy",
            total("j", mul(mul(_E, recip(_L)), sub(X, _M))),
            rows,
            small,
            "i j",
            {"x": "i j"},
            fill=scaled(3.0, "x"),
        ),
        Workload("rmsnorm", NORMED, norms, norms_small, "i k", _NORM, fill=norm_fill()),
        Workload(
            "rmsnorm_matmul",
            total("k", mul(NORMED, WEIGHT)),
            mats,
            mats_small,
            "i k n",
            _NORM_W,
            fill=norm_fill(),
        ),
        Workload("variance", VARIANCE, {"i": 8192, "k": 65536}, small_k(), "i k", x_only, fill=norm_fill()),
        Workload(
            "variance_fast",
            VARIANCE,
            {"i": 8192, "k": 65536},
            small_k(),
            "i k",
            x_only,
            families=_FAST,
            fill=norm_fill(),
        ),
        Workload(
            "variance_far_mean",
            VARIANCE,
            {"i": 8192, "k": 65536},
            small_k(),
            "i k",
            x_only,
            fill=norm_fill(1e4),
            tolerance=1e-3,
        ),
        Workload(
            "layernorm", LAYER_NORMED, {"i": 8192, "k": 16384}, small_k(), "i k", _NORM, fill=norm_fill()
        ),
        Workload(
            "layernorm_matmul",
            total("k", mul(LAYER_NORMED, WEIGHT)),
            mats,
            mats_small,
            "i k n",
            _NORM_W,
            fill=norm_fill(),
            tolerance=1e-4,
        ),
        Workload(
            "layernorm_matmul_fast",
            total("k", mul(LAYER_NORMED, WEIGHT)),
            mats,
            mats_small,
            "i k n",
            _NORM_W,
            families=_FAST,
            fill=norm_fill(),
            tolerance=1e-4,
        ),
        Workload(
            "variance_split",
            VARIANCE,
            {"i": 4, "k": 1 << 22, "c": 64},
            {"i": 4, "k": 5000},
            "i k",
            x_only,
            split=("k", "c"),
            fill=norm_fill(),
        ),
        Workload(
            "gate_overflow",
            total("j", exp2(sub(X, top("j", Y)))),
            rows,
            small,
            "i j",
            {"x": "i j", "y": "i j"},
            fill=adversarial,
        ),
        Workload(
            "gate_vanishing",
            total("j", mul(un("abs", Y), total("j", add(X, 0.001)))),
            rows,
            small,
            "i j",
            {"x": "i j", "y": "i j"},
            fill=vanishing,
        ),
        Workload(
            "matmul_dequantised",
            dequantised(),
            _CUBE,
            _RAGGED,
            "m k n",
            {"a": "m k", "b": "k n", "scale": "n", "bias": "n", "r": "m n"},
            fill=dequantised_fill,
        ),
        Workload(
            "matmul_split",
            total("k", mul(A, B)),
            {"m": 16, "k": 16384, "n": 1024, "c": 8},
            {"m": 16, "k": 1000, "n": 90},
            "m k n",
            _PRODUCT,
            split=("k", "c"),
        ),
        Workload(
            "matmul_amax_rounded",
            mul(total("k", mul(rounded(mul(mul(A, recip(AMAX)), 127.0)), B)), AMAX),
            _CUBE,
            _RAGGED,
            "m k n",
            _PRODUCT,
        ),
        Workload("matmul_amax", total("k", mul(mul(A, recip(AMAX)), B)), _CUBE, _RAGGED, "m k n", _PRODUCT),
        Workload(
            "softmax_topped",
            mul(top("j", mul(_E, recip(_L))), total("j", mul(mul(_E, recip(_L)), Y))),
            rows,
            small,
            "i j",
            {"x": "i j", "y": "i j"},
            fill=scaled(3.0, "x"),
        ),
    )


def small_k() -> dict[str, int]:
    return {"i": 37, "k": 1000}


def labels(rng: np.random.Generator, shapes: Mapping[str, tuple[int, ...]]) -> Arrays:
    made = normal(rng, shapes)
    return {"h": made["h"], "w": made["w"] * 0.3, "y": rng.integers(0, shapes["w"][0], shapes["y"])}


WORKLOADS = {w.name: w for w in all_workloads()}
