"""States from call to call: shared with forks until they are written, kept in files, begun again."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lumi.dtype import BF16, F32
from lumi.errors import LumiError
from lumi.plan.plan import Plan
from lumi.runtime.safetensors import read_safetensors
from lumi.runtime.session import Session
from lumi.runtime.state_file import identity
from tests.compilations import gemma, plan_of, written
from tests.runtime.numpy_device import NumpyDevice

TWO = """
(defmodel two [(x f32 [4])]
  "A sum that every call adds to, and a table that none changes."
  (let [total (state "total" [4])
        table (state "table" [4])]
    (set! total (+ total x))
    (outputs :y (+ total table))))
"""


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_of(written(TWO))


def ones(value: float = 1) -> np.ndarray:
    return np.full(4, value, np.float32)


def begun(plan: Plan) -> tuple[NumpyDevice, Session]:
    device = NumpyDevice()
    session = Session(plan, None, device)
    session.load_states({"total": ones(5), "table": ones(7)})
    session(x=ones(0))
    return device, session


def where(session: Session) -> dict[str, int]:
    return {name: memory.address for name, memory in session._states.memories.items()}


def totals(*sessions: Session) -> list[float]:
    return [float(s.save_states()["total"][0]) for s in sessions]


# -- forks


def test_a_fork_takes_no_memory_until_one_of_the_two_writes(plan: Plan) -> None:
    device, session = begun(plan)
    before = len(device.allocated)
    fork = session.fork()
    assert where(fork) == where(session) and len(device.allocated) == before
    np.testing.assert_array_equal(fork.save_states()["total"], ones(5))
    assert len(device.allocated) == before


def test_only_what_is_written_is_copied(plan: Plan) -> None:
    _, session = begun(plan)
    fork = session.fork()
    fork(x=ones())
    mine, other = where(session), where(fork)
    assert mine["total"] != other["total"] and mine["table"] == other["table"]
    assert totals(session, fork) == [5, 6]


@pytest.mark.parametrize("first", ["session", "fork"])
def test_whoever_writes_first_leaves_the_other_as_it_was(plan: Plan, first: str) -> None:
    _, session = begun(plan)
    fork, place = session.fork(), where(session)
    one, two = (session, fork) if first == "session" else (fork, session)
    one(x=ones(10))
    assert totals(one, two) == [15, 5]
    two(x=ones(1))
    one(x=ones(1))
    assert totals(one, two) == [16, 6]
    assert where(session) == place, "what the session has prepared stays valid"


def test_forks_of_forks_share_and_part(plan: Plan) -> None:
    _, session = begun(plan)
    forks = [session.fork()]
    forks += [session.fork(), forks[0].fork(), forks[0].fork()]
    session(x=ones(1))
    assert totals(session, *forks) == [6, 5, 5, 5, 5]
    assert len({where(f)["total"] for f in forks}) == 1, "the forks still share"
    for number, fork in enumerate(forks):
        fork(x=ones(number + 10))
    assert totals(session, *forks) == [6, 15, 16, 17, 18]
    assert len({where(s)["total"] for s in (session, *forks)}) == 5


def test_steady_calls_after_a_fork_allocate_nothing(plan: Plan) -> None:
    device, session = begun(plan)
    fork = session.fork()
    for one in (session, fork):
        one(x=ones())
    before = len(device.allocated)
    for one in (session, fork, session, fork):
        one(x=ones())
    assert len(device.allocated) == before
    assert totals(session, fork) == [8, 8]


def test_a_fork_that_is_gone_costs_nothing(plan: Plan) -> None:
    device, session = begun(plan)
    session.fork()
    gc.collect()
    before = len(device.allocated)
    session(x=ones())
    assert len(device.allocated) == before


@pytest.mark.parametrize("change", ["reset", "load", "randomize"])
@pytest.mark.parametrize("first", ["session", "fork"])
def test_changes_from_outside_leave_the_other_as_it_was(plan: Plan, change: str, first: str) -> None:
    _, session = begun(plan)
    fork = session.fork()
    one, two = (session, fork) if first == "session" else (fork, session)
    match change:
        case "reset":
            one.reset()
            assert totals(one) == [0]
        case "load":
            one.load_states({"total": ones(70), "table": ones(8)})
            assert totals(one) == [70]
        case _:
            one.randomize_states(3)
    assert totals(two) == [5]
    np.testing.assert_array_equal(two(x=ones(1))["y"], ones(13))


def test_continuations_of_a_prefix_equal_those_of_a_session_alone() -> None:
    plan = plan_of(gemma())
    session, alone = (Session(plan, init="random") for _ in range(2))
    prefix, endings = [3, 4, 5, 6], ([7, 8], [9, 10], [11, 12])
    session(tokens=[prefix], past=0)
    forks = [session.fork() for _ in endings]
    for step in (0, 1):
        for fork, ending in zip(forks, endings, strict=True):
            found = fork(tokens=[[ending[step]]], past=4 + step)["logits"]
            alone.reset()
            alone(tokens=[prefix], past=0)
            for k in range(step):
                alone(tokens=[[ending[k]]], past=4 + k)
            want = alone(tokens=[[ending[step]]], past=4 + step)["logits"]
            np.testing.assert_array_equal(found, want)


@pytest.mark.cuda
def test_forks_on_the_gpu_part_when_they_write(plan: Plan) -> None:
    session = Session(plan_of(written(TWO, target="cuda")))
    session.load_states({"total": ones(5), "table": ones(7)})
    fork = session.fork()
    assert where(fork) == where(session)
    for one, value in ((session, 10), (fork, 1), (session, 1), (fork, 1)):
        one(x=ones(value))
    assert totals(session, fork) == [16, 7]
    before = session.counters.captures
    session(x=ones()), fork(x=ones())
    assert session.counters.captures == before


# -- files


def test_states_go_into_a_file_and_back(plan: Plan, tmp_path: Path) -> None:
    _, session = begun(plan)
    path = tmp_path / "prefix.safetensors"
    told = session.save_states(path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert {k: v.tolist() for k, v in told.items()} == {"total": [5] * 4, "table": [7] * 4}
    other = Session(plan, None, NumpyDevice())
    other.load_states(str(path))
    np.testing.assert_array_equal(other(x=ones(1))["y"], ones(13))
    assert {k: t.array(F32).tolist() for k, t in read_safetensors(path).items()} == {
        k: v.tolist() for k, v in told.items()
    }


def test_a_session_goes_on_from_a_file_where_it_was(tmp_path: Path) -> None:
    plan = plan_of(gemma())
    session, other = (Session(plan, init="random") for _ in range(2))
    session(tokens=[[3, 4, 5]], past=0)
    session.save_states(tmp_path / "s")
    other.load_states(tmp_path / "s")
    want = session(tokens=[[6]], past=3)["logits"]
    np.testing.assert_array_equal(other(tokens=[[6]], past=3)["logits"], want)


def test_states_of_a_type_that_numpy_lacks(tmp_path: Path) -> None:
    text = TWO.replace('"total" [4]', '"total" [4] :dtype bf16').replace(
        "(+ total x)", "(+ total (cast x bf16))"
    )
    plan = plan_of(written(text.replace("(+ total table)", "(+ (cast total f32) table)")))
    session = Session(plan)
    session(x=np.array([1.5, -2, 3, 1e30], np.float32))
    session.save_states(tmp_path / "s")
    assert read_safetensors(tmp_path / "s")["total"].stored is BF16
    other = Session(plan)
    other.load_states(tmp_path / "s")
    np.testing.assert_array_equal(other(x=ones(0))["y"], session(x=ones(0))["y"])


def test_plans_of_one_model_share_states_and_others_do_not(plan: Plan) -> None:
    again = plan_of(written(TWO.replace("A sum", "The sum")))
    assert identity(again) == identity(replace(plan, target="cuda", kernels=(), variants=()))
    assert identity(plan) != identity(replace(plan, name="three"))


def test_a_file_of_something_else_is_refused_and_changes_nothing(plan: Plan, tmp_path: Path) -> None:
    _, session = begun(plan)
    path = tmp_path / "s"
    other = plan_of(written(TWO.replace("two", "three")))
    bigger = plan_of(written(TWO.replace("[4]", "[5]")))
    more = plan_of(written(TWO.replace('"table"', '"tables"')))
    halves = plan_of(
        written(TWO.replace('"table" [4]', '"table" [4] :dtype f16').replace("table))", "(cast table f32)))"))
    )
    for plan_, why in (
        (other, "holds states of three that are none of this two: its name or the keys of its weights"),
        (bigger, "it has total f32 [5], expected total f32 [4]"),
        (more, "state table is missing"),
        (halves, "it has table f16 [4], expected table f32 [4]"),
    ):
        Session(plan_).save_states(path)
        with pytest.raises(LumiError) as refused:
            session.load_states(path)
        assert refused.value.kind == "states error" and why in refused.value.message
    assert totals(session) == [5]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no safetensors file"),
        (b"\x10\0\0\0\0\0\0\0{}", "the header has 16 bytes, but only 2 follow"),
        (b"\x02\0\0\0\0\0\0\0{}", "holds no states"),
        (b"\x02\0\0\0\0\0\0\0[]", "the header is no JSON object"),
    ],
)
def test_damaged_files_are_refused(plan: Plan, tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "s").write_bytes(content)
    _, session = begun(plan)
    with pytest.raises(LumiError, match=why):
        session.load_states(tmp_path / "s")
    with pytest.raises(LumiError, match="No such file"):
        session.load_states(tmp_path / "none")


def test_a_cut_file_is_refused(plan: Plan, tmp_path: Path) -> None:
    _, session = begun(plan)
    session.save_states(tmp_path / "s")
    whole = (tmp_path / "s").read_bytes()
    (tmp_path / "s").write_bytes(whole[:-1])
    with pytest.raises(LumiError, match="lies at bytes"):
        session.load_states(tmp_path / "s")
    assert totals(session) == [5]


def test_a_place_that_cannot_be_written_is_named(plan: Plan, tmp_path: Path) -> None:
    _, session = begun(plan)
    with pytest.raises(LumiError, match=r"cannot write .*No such file"):
        session.save_states(tmp_path / "no" / "folder")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("given", [None, b"states.safetensors", 3], ids=str)
def test_what_is_neither_a_path_nor_states_is_refused(plan: Plan, given: object) -> None:
    _, session = begun(plan)
    with pytest.raises(LumiError, match=f"states are given as {type(given).__name__}"):
        session.load_states(given)  # type: ignore[arg-type]


def test_a_folder_is_no_file_of_states(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, session = begun(plan)
    for path in (Path(), tmp_path):
        with pytest.raises(LumiError, match="cannot write"):
            session.save_states(path)
    assert list(tmp_path.iterdir()) == []
