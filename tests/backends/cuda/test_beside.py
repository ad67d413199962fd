"""What the GPU holds beside weights, states and arena."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lumi.backends.cuda.beside import beside
from lumi.backends.cuda.cublas import WORKSPACE
from lumi.compiler import Options, compile_plan
from lumi.errors import LumiError, Source
from lumi.llir.kernel import Schedule
from lumi.plan.plan import Plan
from tests.compilations import FIRST

PRODUCT = """(defdim n :min 1 :max 100 :hint 8)
(defmodel product [(x f32 [n 24])]
  (linear x 40 :name "w"{}))
"""


def plan(dtype: str) -> Plan:
    options = Options(settings=FIRST, target="cuda")
    text = PRODUCT.format("") if dtype == "f32" else PRODUCT.replace('(linear x 40 :name "w"{})', MIXED)
    return by_library(compile_plan(Source("product.lumi", text), options))


MIXED = '(einsum x [n k]  (cast (param "w" [40 24] :dtype bf16) f32) [m k]  -> [n m])'


def by_library(found: Plan) -> Plan:
    (kernel,) = found.kernels
    return replace(found, kernels=(replace(kernel, schedule=Schedule("cublaslt")),))


def test_small_inputs_lie_apart() -> None:
    found = compile_plan(Source("product.lumi", PRODUCT.format("")), Options(settings=FIRST, target="cuda"))
    assert beside(found) == {"inputs sent with a call": 9728}


def test_the_library_has_a_workspace() -> None:
    assert beside(plan("f32"))["workspace of cuBLASLt"] == WORKSPACE
    assert "parts of f32 factors" not in beside(plan("f32"))


def test_f32_factors_beside_halves_are_split_at_the_largest_dims() -> None:
    """Three parts of two bytes of x[100 24]."""
    assert beside(plan("bf16"))["parts of f32 factors"] == 3 * 2 * 100 * 24


def test_a_kernel_that_no_library_computes_is_a_fault() -> None:
    text = "(defmodel sum [(x f32 [4])]\n  (exp x))\n"
    wrong = by_library(compile_plan(Source("sum.lumi", text), Options(settings=FIRST, target="cuda")))
    with pytest.raises(LumiError, match="cannot run as scheduled"):
        beside(wrong)
