"""Small graphs that between them use every op."""

from __future__ import annotations

import math

from lumi import dim
from lumi.dim import DimRange
from lumi.dtype import BF16, BOOL, F16, F32, I32, U8
from lumi.hlir.builder import Builder
from lumi.hlir.graph import Graph
from lumi.hlir.op import BinaryKind, Monoid, UnaryKind

DIMS = {"seq": DimRange("seq", 1, 64, (1, 16)), "past": DimRange("past", 0, 63, (8,))}


def softmax() -> Graph:
    b = Builder(DIMS)
    x = b.input("x", F32, (dim.var("seq"), 10))
    with b.scope("softmax"):
        shifted = b.binary(
            BinaryKind.ADD,
            x,
            b.binary(BinaryKind.MUL, b.reduce(Monoid.MAX, x, [-1], keepdims=True), b.const(-1.0, F32)),
        )
        e = b.unary(UnaryKind.EXP2, b.binary(BinaryKind.MUL, shifted, b.const(math.log2(math.e), F32)))
        total = b.reduce(Monoid.SUM, e, [-1], keepdims=True)
        y = b.binary(BinaryKind.MUL, e, b.unary(UnaryKind.RECIP, total))
    return b.graph("softmax", {"y": y})


def everything() -> Graph:
    b = Builder(DIMS)
    seq, past = dim.var("seq"), dim.var("past")
    x = b.input("x", F32, (seq, 4))
    w = b.param("w", BF16, (4, 4), init=0.5)
    raw = b.param("raw", U8, (4, 2))
    cache = b.state("cache", F32, (64, 4))
    with b.scope("outer"):
        with b.scope("inner"):
            h = b.binary(BinaryKind.ADD, x, b.cast(b.bitcast(raw, F16), F32))
            h = b.unary(UnaryKind.SQRT, b.binary(BinaryKind.MUL, h, h))
            for kind in (UnaryKind.EXP2, UnaryKind.SIN, UnaryKind.LOG2, UnaryKind.FLOOR, UnaryKind.TF32):
                h = b.binary(BinaryKind.ADD, b.unary(kind, h), b.const(2.0, F32))
        updated = b.update(cache, h, 0, past)
        seen = b.slice(updated, 0, 0, past + seq)
        index = b.binary(BinaryKind.REM, b.iota(seq), b.symbol(past + 1))
        index = b.binary(BinaryKind.DIV, index, b.const(2, I32))
        index = b.binary(BinaryKind.MOD, index, b.const(3, I32))
        rows = b.gather(seen, index, 0)
        rows = b.scatter(rows, index, h, 0)
        rows = b.scan(Monoid.SUM, rows, 1)
        rows = b.flip(b.pad(b.permute(rows, (1, 0)), 1, 2, 1, -math.inf), 0)
        windows = b.windows(b.pad(x, 1, 1, 1), 1, 3)
        total = b.reduce(Monoid.MUL, b.reduce(Monoid.MAX, windows, [2]), [1])
        less = b.binary(BinaryKind.LESS, total, b.const(0.0, F32))
        chosen = b.select(less, b.const(math.nan, F32), total)
        wide = b.reduce(Monoid.SUM, b.cast(w, F32), [0])
        flat = b.reshape(rows, (4 * (seq + 3),))
    outputs = {"flat": flat, "chosen": chosen, "wide": wide, "less": b.cast(less, BOOL)}
    return b.graph("everything", outputs, {"cache": updated})
