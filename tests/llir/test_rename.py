"""Kernels under other names."""

from __future__ import annotations

from dataclasses import replace

from lumi.llir.kernel import buffers
from lumi.llir.rename import identity, rename
from lumi.llir.text import show
from tests.llir.kernels import everything, graphs


def test_renaming_there_and_back_changes_nothing() -> None:
    kernel = everything()
    to = {b: f"X{k}" for k, b in enumerate(buffers(kernel))}
    over = {a: f"{a}{a}" for a in kernel.axes}
    there = rename(kernel, to, over)
    assert set(there.axes) == {"ii", "kk", "cc"} and buffers(there)[0] == "X0"
    assert "(position kk)" in show(there) and "(position k)" not in show(there)
    back = rename(there, {v: k for k, v in to.items()}, {v: k for k, v in over.items()})
    assert back == kernel


def test_identity_ignores_names_and_nothing_else() -> None:
    kernel = everything()
    other = rename(kernel, {"B0": "Q", "B3": "T9"}, {"i": "row", "k": "column"})
    assert identity(kernel) == identity(other)
    assert identity(kernel) != identity(replace(kernel, tiles={**kernel.tiles, "k": 8}))
    assert identity(kernel) != identity(replace(kernel, axes={**kernel.axes, "k": 65}))
    assert identity(kernel) != identity(replace(kernel, body=kernel.body[:-1]))
    assert identity(rename(kernel, {"B0": "B1"})) != identity(kernel)


def test_identity_of_a_launch_tells_which_kernels_share_a_buffer() -> None:
    kernel = everything()
    apart = rename(kernel, {b: f"{b}_" for b in buffers(kernel)})
    assert identity(kernel, kernel) != identity(kernel, apart)
    assert identity(kernel, apart) == identity(apart, kernel)
    assert identity(kernel, apart) != identity(kernel)


def test_kernels_of_one_graph_differ() -> None:
    for graph in graphs().values():
        assert len({identity(s.kernel) for s in graph.steps}) == len(graph.steps)
