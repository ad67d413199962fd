"""E-graphs that are kept from region to region."""

from __future__ import annotations

import pytest

from lumi.egraph.engine import prepared, restore

PROGRAM = ("(datatype T (A i64))", "(ruleset r)")


@pytest.mark.parametrize("tidied", [False, True])
def test_nothing_stays_of_what_was_done_before(tidied: bool) -> None:
    with prepared(PROGRAM) as first:
        empty = first.size()
        first.load(["(A 1)", "(A 2)"])
        assert first.size() == empty + 2
    if tidied:
        restore()
    with prepared(PROGRAM) as second:
        assert second is first
        assert second.size() == empty


def test_an_error_throws_the_graph_away() -> None:
    with pytest.raises(ZeroDivisionError), prepared(PROGRAM) as first:
        raise ZeroDivisionError
    restore()
    with prepared(PROGRAM) as second:
        assert second is not first


def test_another_program_has_another_graph() -> None:
    with prepared(PROGRAM) as first:
        pass
    with prepared((*PROGRAM, "(A 7)")) as second:
        assert second is not first
