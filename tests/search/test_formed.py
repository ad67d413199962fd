"""Equal kernels are one object, and only these."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lumi.dtype import F32
from lumi.field.access import Access
from lumi.field.index import of_axis
from lumi.llir.kernel import Kernel, Load, Map, Store
from lumi.search.formed import formed


def kernel(number: float = 1.0, size: int = 6) -> Kernel:
    """`out = x + number` over rows of 4."""
    index, shape, axes = (of_axis("i"), of_axis("j")), (size, 4), ("i", "j")
    body = (
        Load("v1", Access("x", index, shape, F32), (), axes, F32),
        Map("v2", "add", ("v1", number), axes, F32),
        Store(Access("out", index, shape, F32), "v2", axes),
    )
    return Kernel({"i": size, "j": 4}, axes, (), {}, body)


def test_equal_kernels_are_one() -> None:
    assert formed(kernel()) is formed(kernel())
    assert list(formed(kernel()).kernel.axes) == ["i_j"]


@pytest.mark.parametrize("other", [kernel(2.0), kernel(size=8), replace(kernel(), resident=("j",))])
def test_others_are_not(other: Kernel) -> None:
    assert formed(kernel()).kernel.body is not formed(other).kernel.body


def test_zeros_of_either_sign_are_told_apart() -> None:
    plus, minus = formed(kernel(0.0)).kernel, formed(kernel(-0.0)).kernel
    assert [str(s.args[1]) for k in (plus, minus) for s in k.body if isinstance(s, Map)] == ["0.0", "-0.0"]
