"""The numbers of kernels on tensor cores: where factors lie, how wide copies are, which schedules fit."""

from __future__ import annotations

import pytest

from lumi.backends.cuda.backend import CudaBackend
from lumi.backends.cuda.mma.choices import schedules
from lumi.backends.cuda.mma.form import Stored
from lumi.backends.cuda.mma.plan import ROOM, ROUNDING, Plan, plan
from lumi.backends.cuda.mma.recognise import recognise
from lumi.llir.kernel import Kernel
from tests.backends.cuda.mma.forms import cascade, chunked, gated_pair, product


def made(kernel: Kernel, **options: int) -> Plan:
    return plan(recognise(kernel), options)


@pytest.mark.parametrize(
    ("kernel", "widths"),
    [
        (product(64, 64, 64), [8, 8]),
        (product(64, 64, 100), [4, 4]),
        (product(64, 64, 77), [1, 1]),
        (product(64, 66, 64, "m k", "k n"), [8, 2]),
        (product("seq", "n", 64, "m k", "k n"), [8, 1]),
        (chunked(64, 64, 1024, 8), [8, 8]),
        (chunked(64, 64, 1000, 8), [1, 1]),
    ],
    ids=["aligned", "four", "odd", "columns", "symbolic", "chunks", "uneven chunks"],
)
def test_copies_are_as_wide_as_lines_are_aligned(kernel: Kernel, widths: list[int]) -> None:
    found = made(kernel, parts=1)
    (form,) = found.form.products
    assert isinstance(form.a, Stored)
    assert [found.tile(f).width for f in (form.a, form.b)] == widths


def test_stages_hold_every_factor_once() -> None:
    found = made(gated_pair(256, 256, 256), rows=128, columns=64, depth=64, stages=3)
    assert len(found.tiles) == 3
    assert found.stage == 2 * 64 * (128 + 64 + 64)
    assert found.shared == 3 * found.stage


def test_rows_of_a_cascade_are_kept_beside_its_stages() -> None:
    found = made(cascade("causal", 64), rows=128, columns=64, stages=2, parts=1)
    assert found.kept == 2 * 128 * 64
    assert found.stage == 2 * 2 * 64 * 64


def test_schedules_fit_shared_memory() -> None:
    for kernel in (product(4096, 4096, 4096), cascade("full", 256), gated_pair(512, 512, 512)):
        form = recognise(kernel)
        found = [plan(form, dict(s.options)) for s in schedules(form)]
        assert found
        assert all(p.shared <= ROOM for p in found)


def test_exact_plans_round_no_weights() -> None:
    kernel = cascade("causal")
    relaxed, exact = (CudaBackend(e).schedules(kernel) for e in (False, True))
    mine = [[s.options for s in found if s.template == "mma"] for found in (relaxed, exact)]
    assert mine[1] == [o for o in mine[0] if ROUNDING not in o]
    assert 0 < len(mine[1]) < len(mine[0])


def test_weights_of_what_is_stored_wider_are_never_rounded() -> None:
    found = schedules(recognise(cascade("causal", out="f32")))
    assert found
    assert all(ROUNDING not in s.options for s in found)
