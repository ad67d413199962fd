"""The C that three kernels become, and what the emitter promises of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lumi import dim
from lumi.backends.cpu.ctype import literal
from lumi.backends.cpu.emit import emit
from lumi.backends.cpu.schedule import BLAS
from lumi.dtype import F32, F64, I8, I32, U8
from lumi.llir.kernel import Schedule, Step
from tests.backends.cpu.kernels import C, elementwise, matmul, read, reduction

GOLDENS = {
    "product": Step(elementwise("mul", F32, F32, 2), C),
    "packed": Step(read("q8_0"), Schedule("stream", (("rows", 4),))),
    "matmul": Step(
        matmul({"m": dim.var("m"), "n": 24, "k": 64}, "mk", "nk", {"m": 4, "n": 24, "k": 64}),
        Schedule("matmul", (("columns", 3), ("rows", 4))),
    ),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_kernel_becomes_this_c(name: str, golden: Callable[..., None]) -> None:
    golden(emit(GOLDENS[name], name), ".c", name=name)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-45, 3.4028235e38, -0.0, 2.0**24 + 2, 1e-38])
def test_literal_keeps_every_bit_of_f32(value: float) -> None:
    text = literal(value, F32).removesuffix("f")
    got = np.float32(float.fromhex(text) if "x" in text else float(text))
    assert got.tobytes() == np.float32(value).tobytes()


def test_literal_saturates_where_an_integer_cannot_hold_it() -> None:
    assert literal(-np.inf, I32) == "INT32_MIN"
    assert literal(np.inf, U8) == "255"
    assert literal(np.nan, I8) == "0"
    assert "inf" in literal(-np.inf, F64)


def test_schedule_of_another_kernel_is_refused() -> None:
    with pytest.raises(ValueError, match="no matrix product"):
        emit(Step(reduction("sum", F32, 8), BLAS), "k")


def test_emission_is_the_same_every_time() -> None:
    for step in GOLDENS.values():
        assert emit(step, "k") == emit(step, "k")
