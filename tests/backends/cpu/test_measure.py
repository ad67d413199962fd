"""Measuring survives whatever a candidate does, and never ranks a wrong one."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import pytest

from lumi.backends.cpu import measure
from lumi.backends.cpu.measure import Measurer
from lumi.dtype import F32
from lumi.field.axis import AxisTable
from lumi.field.region import Region, Store
from lumi.field.term import Bin, In
from lumi.llir.kernel import Kernel, KernelGraph, Load, Map, Step, Temporary
from lumi.llir.kernel import Store as KernelStore
from lumi.search import child
from lumi.search.protocol import Failure, Reason, Timing
from tests.backends.cpu.kernels import C, access

EXTENTS = {"i": 100}
A, B, R = (access(name, "i", EXTENTS) for name in ("B0", "B1", "B2"))


def region() -> Region:
    """B2[i] = B0[i] + B1[i]."""
    axes = AxisTable()
    axes.add("i", 100)
    term = Bin("add", In("a", ("i",), F32), In("b", ("i",), F32))
    return Region("test", axes, {"a": A, "b": B}, (Store(term, R),), ("x", "y", "z"), {}, (), "add")


def graph(op: str = "add", temporaries: Mapping[str, Temporary] = MappingProxyType({})) -> KernelGraph:
    loads = (Load("a", A, (), ("i",), F32), Load("b", B, (), ("i",), F32))
    body = (*loads, Map("r", op, ("a", "b"), ("i",), F32), KernelStore(R, "r", ("i",)))
    return KernelGraph((Step(Kernel(EXTENTS, ("i",), (), {"i": 16}, body), C),), temporaries)


@pytest.fixture
def measurer() -> Iterator[Measurer]:
    made = Measurer()
    yield made
    made._stop()


def replaced(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let every kernel be the C function with this body."""
    function = f"void kernel(void *const *buffers, const int64_t *dims) {{ {text} }}\n"
    monkeypatch.setattr(measure, "emit", lambda step, name: function)


def failure(found: Timing | Failure) -> Reason:
    assert isinstance(found, Failure)
    return found.reason


def test_right_graph_is_timed(measurer: Measurer) -> None:
    found = measurer.measure(region(), graph(), {})
    assert isinstance(found, Timing)
    assert len(found.steps) == 1
    assert 0 < found.steps[0] <= found.seconds


def test_wrong_graph_is_refused(measurer: Measurer) -> None:
    found = measurer.measure(region(), graph("sub"), {})
    assert failure(found) is Reason.WRONG
    assert isinstance(found, Failure)
    assert found.detail.startswith("B2")


def test_data_of_other_dims_is_told_apart(measurer: Measurer) -> None:
    """What is wrong at some dims is wrong again when others were measured between."""
    for values in ({}, {"n": 1}, {}, {"n": 1}):
        assert isinstance(measurer.measure(region(), graph(), values), Timing)
        assert failure(measurer.measure(region(), graph("sub"), values)) is Reason.WRONG
    assert len(measurer._benches) == 2
    found = measurer.measure(region(), graph(), {})
    assert isinstance(found, Timing) and found.effort.against == "numpy"
    assert found.effort.time > 0


BAD: dict[str, tuple[str, Reason]] = {
    "writes nothing": ("", Reason.WRONG),
    "faults": ("*(volatile int *)0 = 1;", Reason.CRASH),
    "exits": ("exit(3);", Reason.CRASH),
    "hangs": ("for (volatile int n = 0;;) n++;", Reason.TIMEOUT),
    "does not compile": ("this is no C;", Reason.COMPILE),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_candidate_costs_only_itself(
    name: str, measurer: Measurer, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, reason = BAD[name]
    with monkeypatch.context() as patch:
        if reason is Reason.TIMEOUT:
            patch.setattr(child, "HANG", 3.0)
        replaced(patch, text)
        assert failure(measurer.measure(region(), graph(), {})) is reason
    assert isinstance(measurer.measure(region(), graph(), {}), Timing)


def test_graph_that_cannot_be_emitted_is_illegal(measurer: Measurer, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(step: Step, name: str) -> str:
        raise ValueError("not this one")

    monkeypatch.setattr(measure, "emit", refuse)
    found = measurer.measure(region(), graph(), {})
    assert found == Failure(Reason.ILLEGAL, "not this one", 0)


def test_graph_that_needs_too_much_memory_is_refused(measurer: Measurer) -> None:
    huge = {"T0": Temporary((1 << 44,), F32)}
    assert failure(measurer.measure(region(), graph(temporaries=huge), {})) is Reason.MEMORY


def test_result_of_the_run_before_does_not_count(measurer: Measurer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that writes nothing fails after one that was right: its results were overwritten."""
    assert isinstance(measurer.measure(region(), graph(), {}), Timing)
    replaced(monkeypatch, "")
    assert failure(measurer.measure(region(), graph(), {})) is Reason.WRONG


def test_ctrl_c_is_left_to_the_owner_of_the_process(measurer: Measurer) -> None:
    """A terminal sends it to all processes; the search then ends with what was measured."""
    assert isinstance(measurer.measure(region(), graph(), {}), Timing)
    assert measurer._worker is not None
    measurer._worker._process.send_signal(signal.SIGINT)
    assert isinstance(measurer.measure(region(), graph("add"), {}), Timing)
