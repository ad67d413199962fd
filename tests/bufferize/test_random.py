"""Random launch graphs: one arena and states in place compute what separate buffers do."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from lumi import dim
from lumi.bufferize.bufferize import KernelTable, assemble
from lumi.plan.plan import Role
from tests.bufferize.launch_graphs import RANGES, random_graph, reference, run
from tests.plan.samples import SCHEDULE

CASES, GROUPS = 1000, 20
CALLS = ({"n": 2, "past": 3}, {"n": 1, "past": 0}, {"n": 4, "past": 8})
"""The dims of three calls in a row: what the first leaves in states and in the arena, the next ones meet."""


def check(seed: int) -> list[str]:
    """Compare three calls of a graph; the scopes of its launches."""
    calls, face = random_graph(seed)
    table = KernelTable(lambda s, name: name)
    variant = assemble(face, calls, RANGES, table, lambda k: [SCHEDULE])
    generator = np.random.default_rng(seed)
    want = {n: generator.integers(-50, 50, 12).astype(np.float32) for n in face.leaves}
    have = {n: a.copy() for n, a in want.items()}
    for number, dims in enumerate(CALLS):
        for name, value in face.leaves.items():
            if value.role is Role.INPUT:
                shape = tuple(dim.value(size, dims) for size in value.shape)
                want[name] = generator.integers(-50, 50, shape).astype(np.float32)
                have[name] = want[name].copy()
        fixed = {n: have[n].copy() for n, v in face.leaves.items() if v.role in (Role.INPUT, Role.PARAM)}
        expected = reference(calls, face, want, dims)
        outputs = run(variant, table, have, dims, seed + number)
        for name, array in expected.items():
            np.testing.assert_array_equal(outputs[name], array, err_msg=f"{seed}: {name}")
        for name, array in {**{s: want[s] for s in "stuvw"}, **fixed}.items():
            np.testing.assert_array_equal(have[name], array, err_msg=f"{seed}: {name}")
    return [table.kernels[launch.kernel].scope for launch in variant.launches]


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_launch_graphs_equal_separate_buffers(group: int) -> None:
    for seed in range(group, CASES, GROUPS):
        check(seed)


def test_the_graphs_are_of_all_kinds() -> None:
    """Updates laid over states, conflicts repaired by copies, launches of two kernels: each in many."""
    kinds: Counter[str] = Counter()
    for seed in range(100):
        scopes = set(check(seed))
        kinds.update(scopes)
        kinds["no copy"] += "copy" not in scopes and bool(random_graph(seed)[1].updates)
    assert all(kinds[kind] >= 10 for kind in ("copy", "no copy", "beside", "turns", "write", "spread"))
