"""Calls are brought forward with what they depend on, and never across what they depend on."""

from __future__ import annotations

import random

import pytest

from lumi.bufferize.call import Call
from lumi.bufferize.order import before, depends
from tests.bufferize.launch_graphs import add, random_graph, reverse, window, write


def test_calls_depend_by_what_they_read_and_by_what_they_overwrite() -> None:
    assert depends(reverse("%0", "%1"), add("x", "y", "%0"))
    assert not depends(reverse("x", "%1"), add("x", "y", "%0"))
    assert depends(write("z", "v"), window("v", "%0"))
    assert depends(window("v", "%0"), write("z", "v"))
    assert depends(write("z", "v"), write("%0", "v"))


def test_what_a_call_needs_comes_with_it() -> None:
    calls = [add("s", "s", "%0"), reverse("x", "%1"), add("%0", "x", "%2"), add("%1", "s", "%3")]
    assert before(calls, 0, [3]) == [calls[1], calls[3], calls[0], calls[2]]
    assert before(calls, 0, [2]) is None
    assert before(calls, 1, []) == calls


@pytest.mark.parametrize("seed", range(60))
def test_no_order_breaks_a_dependency(seed: int) -> None:
    calls, _ = random_graph(seed)
    chance = random.Random(seed)
    place = chance.randrange(len(calls))
    wanted = [n for n in range(place + 1, len(calls)) if chance.random() < 0.3]
    found = before(calls, place, wanted)
    if found is None:
        assert any(_reaches(calls, place, n) for n in wanted)
        return
    assert sorted(map(id, found)) == sorted(map(id, calls))
    where = {id(c): n for n, c in enumerate(found)}
    assert all(where[id(calls[n])] < where[id(calls[place])] for n in wanted)
    for k, later in enumerate(calls):
        for earlier in calls[:k]:
            assert not depends(later, earlier) or where[id(earlier)] < where[id(later)]


def _reaches(calls: list[Call], start: int, end: int) -> bool:
    """Whether a chain of dependencies leads from one call to a later one."""
    reached = {start}
    for n in range(start + 1, end + 1):
        if any(depends(calls[n], calls[m]) for m in reached):
            reached.add(n)
    return end in reached
