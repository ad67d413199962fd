"""The text of regions: one for each kind of construct that a change of the lowering could spoil."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lumi import dim
from lumi.dtype import BF16, F16, F32, I32, U8
from lumi.field.text import show
from lumi.hlir.graph import Graph
from lumi.hlir.op import Monoid
from lumi.lower.lower import lower
from tests.lower.spell import Spell
from tests.lower.test_constructs import attention, q4_k

SEQ, PAST = dim.var("seq"), dim.var("past")


def convolution() -> Graph:
    b = Spell()
    x = b.pad(b.pad(b.param("x", F32, (2, 9, 9, 3)), 1, 1, 1), 2, 1, 1)
    p = b.windows(b.windows(x, 1, 3), 3, 3)
    return b.result(b.einsum(p, "bihjwc", b.param("w", F32, (4, 3, 3, 3)), "ohwc", "bijo"))


def causal_attention() -> Graph:
    b = Spell(seq=(1, 64))
    return b.result(attention(b, b.rms(b.input("x", F32, (SEQ, 16)), b.param("g", F32, (16,))), 8))


def cache() -> Graph:
    b = Spell(past=(0, 20), seq=(1, 20))
    k = b.linear(b.input("x", F32, (SEQ, 8)), "w", 4)
    full = b.set_state("kc", b.update(b.state("kc", F32, (20, 4)), k, 0, PAST))
    return b.result(b.einsum(b.param("q", F32, (4,)), "d", b.slice(full, 0, 0, PAST + SEQ), "jd", "j"))


def packed_product() -> Graph:
    b = Spell()
    return b.result(b.einsum(b.input("x", F32, (1, 512)), "mk", q4_k(b, 8, 2), "nk", "mn"))


def running_and_scattered_sums() -> Graph:
    b = Spell()
    x = b.input("x", F32, (4, 6))
    scanned = b.scan(Monoid.SUM, x, 1)
    scattered = b.scatter(x, b.input("i", I32, (5,)), b.input("u", F32, (4, 5)), 1)
    return b.result(scanned, scattered)


def halves_and_bytes() -> Graph:
    b = Spell()
    x, y = b.input("x", BF16, (5,)), b.input("y", BF16, (5,))
    return b.result(
        b.sub(b.mul(x, y), x), b.add(b.input("u", U8, (5,)), 7), b.bitcast(b.input("z", U8, (3, 2)), F16)
    )


def merged_batch() -> Graph:
    b = Spell(seq=(1, 9))
    y = b.linear(b.reshape(b.exp2(b.input("x", F32, (2, SEQ, 6))), (2 * SEQ, 6)), "w", 4)
    return b.result(b.reshape(y, (2, SEQ, 4)))


CASES = [
    convolution,
    causal_attention,
    cache,
    packed_product,
    running_and_scattered_sums,
    halves_and_bytes,
    merged_batch,
]


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_regions_as_text(make: Callable[[], Graph], golden: Callable[..., None]) -> None:
    golden("\n\n".join(show(r) for r in lower(make())), ".lisp", name=make.__name__)
