"""Saturate in a child process with limits on memory and time.

A run of egglog cannot be cancelled, and one that runs out of memory aborts its process.  Rules that come with
Lumi are known to saturate; others run here.  The child reports every round, so that when it dies the rounds
it finished can be run again.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import lumi
from lumi.egraph.explore import Exploration, Limits, Task, explore
from lumi.errors import LumiError


@dataclass(frozen=True, slots=True)
class Cage:
    """What a child may use: bytes of address space beyond those it starts with, seconds of time."""

    memory: int = 4 << 30
    seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Growth:
    """How many rounds a child finished before it was stopped."""

    rounds: int


@dataclass(frozen=True, slots=True)
class Failure:
    """A `LumiError` of the child, as data."""

    kind: str
    message: str
    hint: str


def explore_guarded(task: Task, limits: Limits, cage: Cage = Cage()) -> Exploration:
    """Saturate a task in a child process.

    When the child is stopped, another runs the rounds before the one that stopped it, so that the e-graph so
    far is returned.  Raises `LumiError` when there is none, or when the child failed in another way.
    """
    outcome = _run(task, limits, cage)
    while isinstance(outcome, Growth) and outcome.rounds > 1:
        outcome = _run(task, replace(limits, rounds=outcome.rounds - 1), cage)
    if isinstance(outcome, Growth):
        raise LumiError(
            "rules error",
            f"saturation stops at {cage.memory >> 20} MiB or {cage.seconds:g} s in its first rounds",
            hint="a rule grows without bound: leave out the rules added last",
        )
    return outcome


def _run(task: Task, limits: Limits, cage: Cage) -> Exploration | Growth:
    """One child: its result, or what it had reached when it was stopped."""
    root = str(Path(lumi.__file__).resolve().parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "RUST_BACKTRACE": "0"}
    child = subprocess.Popen(
        [sys.executable, "-c", "from lumi.egraph.guard import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    try:
        out, log = child.communicate(pickle.dumps((task, limits, cage)), timeout=cage.seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        return _growth(child.communicate()[1])
    if child.returncode:
        return _growth(log)
    result: Exploration | Failure = pickle.loads(out)
    if isinstance(result, Failure):
        raise LumiError(result.kind, result.message, hint=result.hint)
    return result


def _growth(log: bytes) -> Growth:
    """What a child reported on its standard error."""
    return Growth(sum(line == b"round" for line in log.splitlines()))


def _report(number: int) -> None:
    """Tell the parent that a round is finished."""
    print("round", file=sys.stderr, flush=True)


def _confine(cage: Cage) -> None:
    """Limit this process's address space, where the system can say how much it has."""
    if sys.platform == "linux":
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        allowed = pages * resource.getpagesize() + cage.memory
        resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))


def main() -> None:
    """The child: a pickled task on stdin, a pickled result on stdout."""
    task, limits, cage = pickle.load(sys.stdin.buffer)
    _confine(cage)
    try:
        result: Exploration | Failure = explore(task, limits, _report)
    except LumiError as error:
        result = Failure(error.kind, error.message, error.hint)
    sys.stdout.buffer.write(pickle.dumps(result))
