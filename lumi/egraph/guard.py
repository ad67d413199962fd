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
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import lumi
from lumi.egraph.explore import Exploration, Limits, Task, explore
from lumi.errors import LumiError


@dataclass(frozen=True, slots=True)
class Cage:
    """What a child may use: bytes of address space, seconds of time."""

    memory: int = 4 << 30
    seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Growth:
    """The last round that a child finished, and what it was then: tuples, and the rule that matched most."""

    rounds: int
    tuples: int
    rule: str


def explore_guarded(task: Task, limits: Limits, cage: Cage = Cage()) -> Exploration:
    """Saturate a task in a child process.

    When the child is stopped, the rounds that it finished are run again, so that the e-graph so far is
    returned.  Raises `LumiError` when there is none, or when the child failed in another way.
    """
    outcome = _run(task, limits, cage)
    if isinstance(outcome, Growth):
        if outcome.rounds:
            outcome = _run(task, replace(limits, rounds=outcome.rounds), cage)
        if isinstance(outcome, Growth):
            raise LumiError(
                "rules error",
                f"saturation stops at {cage.memory >> 20} MiB or {cage.seconds:g} s in its first round",
                hint="a rule grows without bound: leave out the rules added last",
            )
    return outcome


def _run(task: Task, limits: Limits, cage: Cage) -> Exploration | Growth:
    """One child: its result, or what it had reached when it was stopped."""
    root = str(Path(lumi.__file__).resolve().parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "RUST_BACKTRACE": "0"}
    child = subprocess.Popen(
        [sys.executable, "-m", "lumi.egraph.guard"],
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
    if child.returncode == 0:
        result: Exploration | LumiError = pickle.loads(out)
        if isinstance(result, LumiError):
            raise result
        return result
    return _growth(log)


def _growth(log: bytes) -> Growth:
    """The last round that a child reported."""
    rounds = [line.split() for line in log.decode(errors="replace").splitlines() if line.startswith("round ")]
    if not rounds:
        return Growth(0, 0, "")
    _, number, tuples, rule = rounds[-1]
    return Growth(int(number), int(tuples), rule)


def _report(number: int, size: int, matches: Mapping[str, int]) -> None:
    """A line for the parent."""
    busiest = max(sorted(matches), key=lambda name: matches[name], default="none")
    print("round", number, size, busiest, file=sys.stderr, flush=True)


def _confine(cage: Cage) -> None:
    """Limit this process's address space, where the system can."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (cage.memory, cage.memory))


def main() -> None:
    """The child: a pickled task on stdin, a pickled result on stdout."""
    task, limits, cage = pickle.load(sys.stdin.buffer)
    _confine(cage)
    try:
        result: Exploration | LumiError = explore(task, limits, _report)
    except LumiError as error:
        result = error
    sys.stdout.buffer.write(pickle.dumps(result))


if __name__ == "__main__":
    main()
