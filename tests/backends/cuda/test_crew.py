"""Compiling ahead: what is asked for first is there first, and what is refused is not waited for."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest

from lumi.backends.cuda import compile as nvrtc
from lumi.backends.cuda.crew import Ahead, Member

GOOD = 'extern "C" __global__ void kernel(float *p) {{ p[0] += {}.0f; }}'
BAD = 'extern "C" __global__ void kernel(float *p) {{ p[0] = y; }}'


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUMI_CACHE", str(tmp_path))


def begun(sources: list[str], most: int) -> tuple[Ahead, list[Member]]:
    made = Ahead(partial(nvrtc.is_compiled, arch="sm_80"))
    members = nvrtc.start(sources, "sm_80", most)
    made.begin(members)
    return made, members


def test_what_is_waited_for_is_compiled() -> None:
    sources = [GOOD.format(k) for k in range(5)]
    made, members = begun(sources, 2)
    assert [m.share for m in members] == [tuple(sources[::2]), tuple(sources[1::2])]
    for source in sources:
        made.wait(source)
        assert nvrtc.is_compiled(source, "sm_80")


def test_refused_source_is_passed_when_the_next_one_is_there() -> None:
    sources = [BAD, GOOD.format(7)]
    made, members = begun(sources, 1)
    made.wait(BAD)
    assert not nvrtc.is_compiled(BAD, "sm_80")
    assert nvrtc.is_compiled(sources[1], "sm_80") or members[0].process.poll() is not None


def test_what_nobody_compiles_is_not_waited_for() -> None:
    made, _ = begun([GOOD.format(1)], 1)
    start = time.monotonic()
    made.wait(GOOD.format(2))
    assert time.monotonic() - start < 1.0


def test_processes_end_when_others_begin_and_with_their_owner() -> None:
    made, first = begun([GOOD.format(k) for k in range(40)], 1)
    second = nvrtc.start([GOOD.format(50)], "sm_80", 1)
    made.begin(second)
    assert first[0].process.poll() is not None
    del made
    assert second[0].process.poll() is not None
