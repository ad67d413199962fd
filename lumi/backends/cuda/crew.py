"""Processes that compile side by side, each a share of the sources, into the cache that all of them use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

TIMEOUT = 300
"""Seconds after which a compiling process is given up."""

PAUSE = 0.005
"""Seconds between looks at whether a source has been compiled."""


@dataclass(frozen=True, slots=True)
class Member:
    """A process and the sources that it compiles, in their order."""

    process: subprocess.Popen[str] = field(repr=False)
    share: tuple[str, ...]

    def answers(self) -> dict[str, str]:
        """The messages of the sources that were refused, when it has ended."""
        assert self.process.stdout is not None
        try:
            text = self.process.stdout.read()
            status = self.process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return dict.fromkeys(self.share, f"NVRTC did not end within {TIMEOUT} s")
        if status != 0:
            return dict.fromkeys(self.share, f"the process of NVRTC ended with status {status}")
        told = zip(self.share, json.loads(text), strict=True)
        return {source: answer for source, answer in told if answer is not None}


def start(module: str, sources: Sequence[str], arch: str, folder: Path, most: int) -> list[Member]:
    """Processes of a module, at most so many, that compile sources into the cache in `folder`.

    The first sources are compiled first.  All processes are started before any is told its share, since
    telling one waits until it listens.
    """
    count = min(len(sources), most)
    shares = [tuple(sources[k::count]) for k in range(count)]
    environment = os.environ | {"LUMI_CACHE": str(folder)}
    words, pipe = [sys.executable, "-m", module], subprocess.PIPE
    running = [subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, env=environment) for _ in shares]
    for process, share in zip(running, shares, strict=True):
        assert process.stdin is not None
        process.stdin.write(json.dumps({"arch": arch, "sources": share}))
        process.stdin.close()
    return [Member(process, share) for process, share in zip(running, shares, strict=True)]


class Ahead:
    """Sources that are compiled while other work goes on; `is_compiled` tells when the cache has one.

    Its processes end with it.
    """

    def __init__(self, is_compiled: Callable[[str], bool]) -> None:
        self._is_compiled = is_compiled
        self._members: list[Member] = []
        weakref.finalize(self, _stop, self._members)

    def begin(self, started: Sequence[Member]) -> None:
        """Let processes work that have been started, in the place of those that worked before."""
        _stop(self._members)
        self._members.extend(started)

    def wait(self, source: str) -> None:
        """Wait for a source if a process has, or will have, it."""
        for member in self._members:
            while source in member.share and self._is_to_come(member, source):
                time.sleep(PAUSE)

    def _is_to_come(self, member: Member, source: str) -> bool:
        """Whether a process may still compile a source: it goes on to the next one when one is refused."""
        rest = member.share[member.share.index(source) :]
        return member.process.poll() is None and not any(map(self._is_compiled, rest))


def _stop(members: list[Member]) -> None:
    for member in members:
        member.process.kill()
        member.process.wait()
        if member.process.stdout is not None:
            member.process.stdout.close()
    members.clear()
