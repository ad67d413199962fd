"""The arenas of every model that comes with Lumi waste next to nothing, at whatever sizes its dims end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from lumi import paths
from lumi.bufferize.bufferize import place
from lumi.compiler import Options, compile_plan
from lumi.errors import Source
from lumi.plan.plan import Plan, Variant
from tests.compilations import FIRST

WASTE = 1.05
LAYERS = 1, 7
"""How many layers a decoder is compiled with: those of the default take longer, and repeat."""


def models() -> list[tuple[str, str, tuple[tuple[str, int], ...]]]:
    """File, model and keywords of each."""
    return [
        (path.name, model, (("layers", layers),) if layers else ())
        for path in sorted(paths.data("models").glob("*.lumi"))
        for text in [path.read_text()]
        for model in re.findall(r"\(defmodel (\S+)", text)
        for layers in (LAYERS if ":layers " in text else (0,))
    ]


@cache
def plan_of(file: str, model: str, config: tuple[tuple[str, int], ...], target: str) -> Plan:
    path = paths.data("models") / file
    keywords: dict[str, Any] = dict(config)
    options = Options(model=model, config=keywords, settings=FIRST, target=target)
    return compile_plan(Source(str(path), path.read_text()), options)


def cut(variant: Variant) -> Iterator[Variant]:
    """The variant as it would be if its dims ended earlier, or all but one did."""
    dims = variant.dims
    for share in (1, 3, 100):
        yield replace(
            variant, dims={n: replace(r, high=max(r.low, r.high // share)) for n, r in dims.items()}
        )
    for name, r in dims.items():
        yield replace(variant, dims={**dims, name: replace(r, high=min(r.high, r.low + 16))})


def check(file: str, model: str, config: tuple[tuple[str, int], ...], target: str) -> None:
    plan = plan_of(file, model, config, target)
    for variant in plan.variants:
        assert variant.peak <= variant.arena <= WASTE * variant.peak
        for smaller in map(place, cut(variant)):
            assert smaller.peak <= smaller.arena <= WASTE * smaller.peak


@pytest.mark.parametrize(("file", "model", "config"), models())
def test_arena_is_the_peak_of_live_bytes_on_the_cpu(
    file: str, model: str, config: tuple[tuple[str, int], ...]
) -> None:
    check(file, model, config, "cpu")


@pytest.mark.slow
@pytest.mark.parametrize(("file", "model", "config"), models())
def test_arena_is_the_peak_of_live_bytes_on_a_gpu(
    file: str, model: str, config: tuple[tuple[str, int], ...]
) -> None:
    check(file, model, config, "cuda")
