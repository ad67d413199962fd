"""Which sums are sums of products of bytes."""

from __future__ import annotations

import pytest

from lumi.errors import Source
from lumi.llir.bytedot import ByteDots, find
from lumi.llir.parse import parse

UNPACKED = "v3 (load (B1 [a c])) v4 (cast.i32 v3) v5 (bitand v4 15.0) v6 (cast.i8 v5) v7 (cast.i32 v6)"


def found(x: str, body: str, result: str = "i32") -> ByteDots:
    text = (
        f"(kernel :buffers [(B0 [32] {x}) (B1 [13 32] u8) (B9 [13] {result})] :axes [(a 13) (c 32)]"
        f" :grid [(a 4)] :resident [c] (let [v1 (load (B0 [c])) {body}] (store (B9 [a]) v8)))"
    )
    return find(parse(Source("bytes", text)).body)


def test_widened_bytes_and_what_unpacks_them() -> None:
    dots = found("i8", f"v2 (cast.i32 v1) {UNPACKED} v8 (dot [c] v2 v7)")
    assert dots == ByteDots(frozenset({"v8"}), frozenset({"v2", "v4", "v5", "v6", "v7"}))


@pytest.mark.parametrize(
    ("x", "body", "result"),
    [
        ("i32", f"{UNPACKED} v8 (dot [c] v1 v7)", "i32"),
        ("i32", f"v2 (cast.i8 v1) v9 (cast.i64 v2) {UNPACKED} v10 (cast.i64 v7) v8 (dot [c] v9 v10)", "i64"),
        ("f32", f"v2 (cast.i8 v1) v9 (cast.i32 v2) {UNPACKED} v8 (dot [c] v9 v7)", "i32"),
        ("f32", f"{UNPACKED} v9 (cast.f32 v7) v8 (dot [c] v1 v9)", "f32"),
    ],
    ids=["wide factor", "wide sum", "rounded in the kernel", "floats"],
)
def test_other_sums_are_none(x: str, body: str, result: str) -> None:
    assert found(x, body, result) == ByteDots()
