"""For every rule a term on which it fires, and what the term may be given."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lumi import dim
from lumi.dim import DimRange
from lumi.dtype import BF16, F32, I8, I32, U8
from lumi.field.access import Access
from lumi.field.axis import AxisTable
from lumi.field.index import Data, Index, of_axis
from lumi.field.region import Region, Store
from lumi.field.term import Bin, Gat, In, Pos, Red, Sel, Term, Un
from lumi.field.traverse import postorder
from tests.workloads import add, bin_, const, exp2, mul, read, recip, sub, top, total, un

LARGEST = 7
"""The extent that regions declare; values are drawn for sizes up to it."""


@dataclass(frozen=True)
class Seed:
    """A term over `axes`, in memory order.

    `needs` are the uniting rules without which this one does not fire; None is all of them.  `specials` are
    values that inputs may hold beside normal ones; `empty` axes may have no points.
    """

    term: Term
    axes: str
    needs: tuple[str, ...] | None = ()
    split: tuple[tuple[str, str], ...] = ()
    families: tuple[str, ...] = ("exact", "relaxed")
    specials: tuple[float, ...] = (0.0, -math.inf, 1000.0)
    empty: tuple[str, ...] = ()
    tolerance: float = 1e-9

    @property
    def leaves(self) -> dict[str, In | Gat]:
        """The reads of the term by name."""
        return leaves_of(self.term)

    def region(self, extra: int) -> Region:
        """The region that stores the term with `extra` batch axes, each on every other leaf."""
        table = AxisTable()
        for name in (*batch(extra), *self.axes.split()):
            table.add(name, dim.var(name) if name in self.empty else LARGEST)
        term = batched(self.term, extra)
        accesses = {"table": TABLE} if "table" in self.leaves else {}
        return Region("", table, accesses, (Store(term, Access("out", (), (), F32)),), ("out",), {}, (), "")

    @property
    def dims(self) -> dict[str, DimRange]:
        """The declared dims: axes that may be empty."""
        return {a: DimRange(a, 0, LARGEST, ()) for a in self.empty}


def leaves_of(term: Term) -> dict[str, In | Gat]:
    """The reads of a term by name."""
    return {t.name: t for t in postorder([term]) if isinstance(t, In | Gat)}


def batch(extra: int) -> tuple[str, ...]:
    """The names of batch axes."""
    return tuple(f"z{k}" for k in range(extra))


def batched(term: Term, extra: int) -> Term:
    """The term with batch axes on its leaves: axis k is on leaf n where n + k is even, and on the first."""
    names = list(leaves_of(term))
    made: dict[int, Term] = {}
    for old in postorder([term]):
        match old:
            case In(name, axes, dtype):
                at = names.index(name)
                more = tuple(z for k, z in enumerate(batch(extra)) if at == 0 or (at + k) % 2 == 0)
                new: Term = In(name, (*more, *axes), dtype)
            case Un(op, a):
                new = Un(op, made[id(a)])
            case Bin(op, a, b):
                new = Bin(op, made[id(a)], made[id(b)])
            case Sel(c, a, b):
                new = Sel(made[id(c)], made[id(a)], made[id(b)])
            case Red(op, axes, body):
                new = Red(op, axes, made[id(body)])
            case _:
                new = old
        made[id(old)] = new
    return made[id(term)]


INF = math.inf
TABLE = Access("table", (Index(((Data(0), 1),)), of_axis("v")), (LARGEST, LARGEST), F32)
FINITE = (0.0, 1000.0)
X, Y, T, Z = read("x", "i j"), read("y", "i j"), read("t", "i"), read("z", "j v")
CAUSAL = bin_("le", Pos("j"), Pos("i"))
WINDOW = bin_("lt", Pos("i"), add(Pos("j"), 3.0))
MASKED = Sel(CAUSAL, X, const(-INF))
KEPT = Sel(CAUSAL, X, const(0.0))
EQUAL = bin_("eq", Pos("i"), Pos("j"))
NEITHER = bin_("and", un("not", bin_("lt", Pos("i"), Pos("j"))), un("not", bin_("lt", Pos("j"), Pos("i"))))


def positive(x: Term) -> Term:
    return un("abs", x)


def shifted(x: Term, axis: str = "j") -> Term:
    return sub(x, top(axis, x))


def weights(x: Term) -> Term:
    return exp2(shifted(x))


def softmax(x: Term) -> Term:
    e = weights(x)
    return mul(e, recip(total("j", e)))


def mean(x: Term) -> Term:
    return mul(total("j", x), recip(total("j", 1.0)))


def centred(x: Term) -> Term:
    return sub(x, mean(x))


AMAX = top("j", positive(X))
SCALED = total("j", mul(mul(X, recip(AMAX)), Y))
ATTENTION = total(
    "j", mul(softmax(Sel(CAUSAL, total("d", mul(read("q", "i d"), read("k", "j d"))), const(-INF))), Z)
)
SPLIT = (("j", "c"),)
BYTE = Un("cast.i32", read("q", "i j", U8))
INT = read("n", "i j", I32)
POWER = Un("cast.i32", exp2(Un("cast.f32", mul(Pos("j"), 4.0))))
IJ = "i j"


def all_rules(term: Term, axes: str = IJ, split: tuple[tuple[str, str], ...] = (), **more: object) -> Seed:
    """A seed for a rule that derives facts: every uniting rule is there to use them."""
    return Seed(term, axes, None, split, **more)  # type: ignore[arg-type]


def cascade(term: Term, axes: str = IJ, *needs: str, **more: object) -> Seed:
    """A seed for a rule that carries a reduction in a loop."""
    return Seed(term, axes, ("tile", *needs), **more)  # type: ignore[arg-type]


def chunked(term: Term, axes: str = "i j c", *needs: str, **more: object) -> Seed:
    """A seed for a rule about a chunk of axis j."""
    return Seed(term, axes, ("split", *needs), SPLIT, **more)  # type: ignore[arg-type]


ANALYSIS: dict[str, Seed] = {
    **dict.fromkeys(
        (
            *("over-full", "over-mask", "facts-in", "facts-const", "facts-pos", "facts-un", "facts-bin"),
            *("facts-sel", "facts-red", "facts-acc", "facts-fin", "facts-run", "facts-prev", "dtype-un"),
        ),
        all_rules(ATTENTION, "i j d v"),
    ),
    "over-chunk": all_rules(ATTENTION, "i j d v c", SPLIT),
    "facts-gat": all_rules(total("j", mul(Gat("table", ("v",), F32, read("n", "i j", I32)), X)), "i j v"),
    "dtype-cast": all_rules(Un("cast.f32", read("q", "i j", U8))),
    "dtype-bits": all_rules(add(Un("bits.i32", X), 1.0)),
}

STRUCTURE: dict[str, Seed] = {
    "tile": Seed(total("j", X), IJ),
    "merge-axes": Seed(total("i", total("j", mul(X, Y))), IJ),
    "factor-body": all_rules(total("i j", mul(X, mul(Y, T)))),
    "factor-product": all_rules(total("i j", mul(X, mul(Y, T)))),
    "nest-by-factor": Seed(total("i j", mul(X, mul(Y, T))), IJ),
    "nest-by-cascade": Seed(total("j v", mul(weights(X), Z)), "i j v"),
    "nest-by-split": Seed(total("i j", mul(X, Y)), "i j c", (), SPLIT),
    "chunk-axis": all_rules(top("j", X), "i j c", SPLIT),
    "chunk-mask": all_rules(total("j", KEPT), "i j c", SPLIT),
    "split": Seed(top("j", X), "i j c", (), SPLIT),
}

MASK: dict[str, Seed] = {
    "neg-inf-select": all_rules(top("j", MASKED)),
    "neg-inf-select-inner": all_rules(top("j", Sel(WINDOW, MASKED, const(-INF)))),
    "zero-select": all_rules(total("j", KEPT)),
    "zero-select-inner": all_rules(total("j", Sel(WINDOW, KEPT, const(0.0)))),
    "one-select": all_rules(Red("mul", ("j",), Sel(CAUSAL, X, const(1.0)))),
    "neg-inf-sub": all_rules(top("j", sub(MASKED, T))),
    "neg-inf-subni": all_rules(
        total("j", exp2(sub(MASKED, Sel(bin_("eq", top("j", MASKED), -INF), const(0.0), top("j", MASKED)))))
    ),
    "neg-inf-scale": all_rules(top("j", mul(MASKED, 0.5))),
    "idle-exp2": all_rules(total("j", exp2(MASKED))),
    "idle-product-left": all_rules(total("j", mul(KEPT, Y))),
    "idle-product-right": all_rules(total("j", mul(Y, KEPT))),
    "restrict-domain": Seed(total("j", mul(KEPT, Y)), IJ),
    "single-equal": Seed(total("j", Sel(EQUAL, X, const(0.0))), IJ),
    "single-neither": Seed(total("j", Sel(NEITHER, X, const(0.0))), IJ),
    "pick-operands": Seed(total("j", Sel(EQUAL, sub(X, T), const(0.0))), IJ),
}

EXACT: dict[str, Seed] = {
    "mul-one-right": Seed(mul(X, 1.0), IJ),
    "mul-one-left": all_rules(total("j", mul(X, T))),
    "add-zero-right": Seed(add(X, 0.0), IJ),
    "and-true": Seed(Sel(bin_("and", CAUSAL, 1.0), X, const(0.0)), IJ),
    "add-zero-left": all_rules(total("j", weights(X))),
    "exp2-zero": Seed(add(exp2(const(0.0)), X), IJ),
    "recip-one": Seed(add(recip(const(1.0)), X), IJ),
    "recipz-one": Seed(add(Un("recipz", const(1.0)), X), IJ),
    "mul-zero-constant": Seed(add(mul(0.0, 3.0), X), IJ),
    "negated": all_rules(add(X, mul(Y, -1.0))),
    "add-negated-right": Seed(add(X, mul(-1.0, Y)), IJ),
    "add-negated-left": Seed(add(mul(Y, -1.0), X), IJ),
    "guarded-shift-eq": Seed(exp2(sub(X, Sel(bin_("eq", top("j", X), -INF), const(0.0), top("j", X)))), IJ),
    "guarded-shift-lt": Seed(exp2(sub(X, Sel(bin_("lt", -INF, top("j", X)), top("j", X), const(0.0)))), IJ),
    "cast-to-own-type": Seed(Un("cast.f32", X), IJ),
    "narrow-widened": Seed(Un("cast.bf16", Un("cast.f32", read("h", "i j", BF16))), IJ),
    "widen-twice": Seed(Un("cast.f32", Un("cast.i32", read("b", "i j", I8))), IJ),
    "store-rounded": Seed(Un("cast.f32", Un("cast.bf16", X)), IJ),
    "bounds-type": all_rules(bin_("div", BYTE, 16.0)),
    "bounds-const": all_rules(bin_("div", BYTE, 16.0)),
    "bounds-cast": all_rules(bin_("div", BYTE, 16.0)),
    "bounds-add": all_rules(bin_("div", add(BYTE, 3.0), 4.0)),
    "bounds-sub": all_rules(bin_("div", sub(const(255.0), BYTE), 4.0)),
    "bounds-mul": all_rules(bin_("div", mul(BYTE, 3.0), 4.0)),
    "bounds-div": all_rules(bin_("rem", bin_("div", BYTE, 3.0), 2.0)),
    "bounds-rem": all_rules(bin_("div", bin_("rem", BYTE, 9.0), 2.0)),
    "bounds-mod": all_rules(bin_("div", bin_("mod", INT, 16.0), 4.0)),
    "bounds-sel": all_rules(bin_("div", Sel(CAUSAL, BYTE, const(5.0)), 4.0)),
    "bounds-shift": all_rules(bin_("rem", bin_("div", BYTE, 8.0), 4.0)),
    "power-of-two": all_rules(bin_("div", BYTE, 16.0)),
    "exponent": all_rules(bin_("div", BYTE, POWER)),
    "div-to-shift": Seed(bin_("div", BYTE, 16.0), IJ),
    "rem-to-mask": Seed(bin_("rem", BYTE, 16.0), IJ),
    "mod-to-mask": Seed(bin_("mod", INT, 16.0), IJ),
    "div-to-shift-by-term": Seed(bin_("div", BYTE, POWER), IJ),
    "rem-to-mask-by-term": Seed(bin_("rem", BYTE, POWER), IJ),
    "round-few-bits": Seed(un("tf32", Un("cast.f32", read("q", "i j", U8))), IJ),
    "round-twice": Seed(un("tf32", un("tf32", X)), IJ),
    "scaled-bits": all_rules(mul(bin_("rem", bin_("div", BYTE, POWER), 2.0), 16.0)),
}

OTHER: dict[str, Seed] = {
    "drop-rounding": Seed(Un("cast.f32", Un("cast.bf16", X)), IJ, tolerance=2.0**-8),
    "factor-rounded": all_rules(total("j", mul(un("tf32", softmax(X)), Y)), tolerance=2.0**-9),
    "sum-of-shifted-product": Seed(
        total("j", mul(sub(X, top("j", X)), Y)), IJ, families=("exact", "fast-math"), specials=(0.0,)
    ),
    "sum-of-shifted-squares": Seed(
        total("j", mul(centred(X), centred(X))), IJ, families=("exact", "fast-math"), specials=(0.0,)
    ),
    "sum-of-affine-product": Seed(
        total("i j", mul(X, sub(Y, T))), IJ, families=("exact", "fast-math"), specials=(0.0,)
    ),
}

NIBBLE = Un("cast.f32", bin_("rem", BYTE, 16.0))
ROW = read("t", "j")
INT8 = ("exact", "int8")
ROUNDED = LARGEST * 15 / 254
"""What sums of x times a nibble may be off by, relative to the largest x."""

INTEGERS: dict[str, Seed] = {
    "integer-product": Seed(
        total("j", mul(ROW, NIBBLE)), IJ, families=INT8, specials=FINITE, tolerance=ROUNDED
    ),
    "integer-product-commuted": Seed(
        total("j", mul(NIBBLE, ROW)),
        IJ,
        ("integer-product",),
        families=INT8,
        specials=FINITE,
        tolerance=ROUNDED,
    ),
    "sum-of-affine-quants": Seed(
        total("i j", mul(X, sub(mul(T, NIBBLE), T))), IJ, families=INT8, specials=(0.0,)
    ),
}

DEMAND: dict[str, Seed] = {
    "context-hoist": all_rules(total("j", mul(X, T))),
    "context-online": all_rules(total("j", weights(X))),
    "context-split": all_rules(total("j", weights(X)), "i j c", SPLIT),
    "want-online": all_rules(total("j", weights(X))),
    "want-split": all_rules(total("j", weights(X)), "i j c", SPLIT),
    "want-hoist-product": all_rules(total("j", mul(X, T))),
    "want-hoist-select": all_rules(total("j", Sel(CAUSAL, mul(X, T), const(0.0)))),
    "want-hoist-invariant": all_rules(total("j", T)),
    "want-factors": all_rules(total("j", mul(X, mul(Y, T)))),
    "want-divisor": all_rules(total("j", mul(Y, recip(mul(X, T))))),
    "want-selected": all_rules(total("j", Sel(CAUSAL, mul(X, T), const(0.0)))),
    "want-bin": all_rules(total("j", mul(weights(X), Y))),
    "want-un": all_rules(total("j", weights(X))),
    "want-sel": all_rules(total("j", Sel(CAUSAL, weights(X), const(0.0)))),
    "want-inner-sum": all_rules(total("j", mul(weights(X), total("v", mul(Z, weights(X))))), "i j v"),
}

SIGNS: dict[str, Seed] = {
    "shifted-not-positive": all_rules(total("j", weights(X))),
    "scaled-not-positive": all_rules(total("j", exp2(mul(shifted(X), 0.5)))),
    "sum-not-positive": all_rules(total("j", exp2(add(shifted(X), shifted(Y))))),
    "constant-not-negative": all_rules(total("j", exp2(mul(shifted(X), 0.5)))),
    "exp2-not-negative": all_rules(total("j", mul(softmax(X), Y))),
    "abs-not-negative": all_rules(SCALED),
    "square-not-negative": all_rules(total("j", mul(mul(X, X), recip(top("j", mul(X, X)))))),
    "product-not-negative": all_rules(top("j", mul(positive(X), positive(Y)))),
    "add-not-negative": all_rules(top("j", add(positive(X), positive(Y)))),
    "recip-not-negative": all_rules(total("j", mul(softmax(X), Y))),
    "sqrt-not-negative": all_rules(top("j", un("sqrt", positive(X)))),
    "reduction-not-negative": all_rules(SCALED),
}

REFERENCES: dict[str, Seed] = {
    "unchanged-online": all_rules(total("j", weights(X))),
    "unchanged-split": all_rules(total("j", weights(X)), "i j c", SPLIT),
    "hoist-variant": all_rules(total("j", mul(X, T))),
    "hoist-invariant": all_rules(total("j", mul(X, T))),
    "reference-running": all_rules(total("j", weights(X))),
    "reference-chunk": all_rules(total("j", weights(X)), "i j c", SPLIT),
    "reference-constant": all_rules(total("j", mul(mul(X, recip(mul(AMAX, 3.0))), Y))),
    "reference-bin": all_rules(total("j", mul(mul(X, recip(mul(AMAX, 3.0))), Y))),
    "reference-recip": all_rules(SCALED),
    "ask-steady": all_rules(total("j", mul(centred(X), centred(X)))),
    "ask-steady-operands": all_rules(total("j", mul(centred(X), centred(X)))),
    "steady-sum": all_rules(total("j", mul(centred(X), centred(X)))),
    "steady-constant": all_rules(total("j", mul(Y, sub(X, add(mean(X), T)))), specials=FINITE),
    "steady-count": all_rules(total("j", mul(centred(X), centred(X)))),
    "steady-product": all_rules(total("j", mul(centred(X), centred(X)))),
    "steady-add": all_rules(total("j", mul(Y, sub(X, add(mean(X), T)))), specials=FINITE),
    "steady-sub": all_rules(total("j", mul(Y, sub(X, sub(mean(X), T)))), specials=FINITE),
    "shift-by-own-max": all_rules(total("j", weights(X))),
    "shift-by-steady": all_rules(total("j", mul(centred(X), centred(X)))),
}

CHANGE: dict[str, Seed] = {
    "affine-shift": all_rules(total("j", weights(X))),
    "affine-sub-constant": all_rules(total("j", mul(Y, sub(centred(X), T))), specials=FINITE),
    "affine-add": all_rules(total("j", exp2(add(shifted(X), shifted(Y))))),
    "affine-scale": all_rules(total("j", exp2(mul(shifted(X), 0.5)))),
    "affine-scale-invariant": all_rules(total("j", exp2(mul(shifted(X), exp2(T)))), "i j c", SPLIT),
    "drift": all_rules(total("j", weights(X))),
    "factor-exp2": all_rules(total("j", weights(X))),
    "factor-mul": all_rules(total("j", mul(weights(X), weights(Y)))),
    "factor-recip": all_rules(total("j", mul(Y, recip(mul(X, T))))),
    "factor-add": all_rules(total("j", add(mul(weights(X), Y), weights(X)))),
    "factor-sub": all_rules(total("j", sub(mul(weights(X), Y), weights(X)))),
    "factor-select": all_rules(total("j", Sel(CAUSAL, weights(X), const(0.0))), "i j c", SPLIT),
    "factor-inner-sum": all_rules(total("j", mul(weights(X), total("v", mul(Z, weights(X))))), "i j v"),
    "zero-max": all_rules(SCALED),
    "zero-sum": all_rules(total("j", mul(softmax(X), Y))),
    "zero-abs": all_rules(SCALED),
    "zero-recip": all_rules(SCALED),
    "zero-scale-right": all_rules(total("j", mul(mul(X, recip(mul(AMAX, 3.0))), Y))),
    "zero-scale-left": all_rules(total("j", mul(mul(X, recip(mul(3.0, AMAX))), Y))),
    "within-itself": all_rules(SCALED),
    "within-product-left": all_rules(total("j", mul(mul(X, Y), recip(AMAX)))),
    "within-product-right": all_rules(total("j", mul(mul(Y, X), recip(AMAX)))),
    "within-select": all_rules(total("j", mul(KEPT, recip(AMAX)))),
    "factor-ratio-right": all_rules(SCALED, "i j c", SPLIT),
    "factor-ratio-left": all_rules(total("j", mul(mul(recip(AMAX), X), Y)), "i j c", SPLIT),
    "selected-factor": all_rules(total("j", Sel(CAUSAL, mul(X, recip(T)), const(0.0)))),
    "selected-factor-again": all_rules(
        total("j", Sel(WINDOW, Sel(CAUSAL, mul(X, recip(T)), const(0.0)), const(0.0)))
    ),
    "selected-factor-left": all_rules(total("j", mul(Sel(CAUSAL, mul(X, recip(T)), const(0.0)), Y))),
    "selected-factor-right": all_rules(total("j", mul(Y, Sel(CAUSAL, mul(X, recip(T)), const(0.0))))),
}

USES: dict[str, Seed] = {
    "pull-factor": Seed(total("j", mul(mul(X, recip(T)), Y)), IJ),
    "pull-factor-of-none": Seed(total("j", mul(mul(X, recip(T)), Y)), IJ, empty=("j",)),
    "pull-selected-factor": Seed(total("j", mul(Sel(CAUSAL, mul(X, recip(T)), const(0.0)), Y)), IJ),
    "split-sum": chunked(total("j", mul(weights(X), Y))),
    "split-max": chunked(top("j", sub(X, total("j", X)))),
    "online-sum": cascade(total("j", mul(weights(X), Y))),
    "online-max": cascade(top("j", sub(X, total("j", X)))),
    "online-moment": cascade(total("j", mul(weights(X), shifted(X))), specials=FINITE),
    "online-moment-commuted": cascade(total("j", mul(shifted(X), weights(X))), specials=FINITE),
    "split-moment": chunked(total("j", mul(positive(Y), shifted(X))), specials=FINITE),
    "split-moment-commuted": chunked(total("j", mul(shifted(X), positive(Y))), specials=FINITE),
    "online-shifted-sum": cascade(total("j", shifted(X)), specials=FINITE),
    "split-shifted-sum": chunked(total("j", shifted(X)), specials=FINITE),
    "online-squares": cascade(total("j", mul(shifted(X), shifted(X))), specials=FINITE),
    "split-squares": chunked(total("j", mul(shifted(X), shifted(X))), specials=FINITE),
}

SEEDS: dict[str, Seed] = {
    **ANALYSIS,
    **STRUCTURE,
    **MASK,
    **EXACT,
    **OTHER,
    **INTEGERS,
    **DEMAND,
    **SIGNS,
    **REFERENCES,
    **CHANGE,
    **USES,
}
