"""The child process in which candidates run, and the memory it shares with its parent."""

from __future__ import annotations

import contextlib
import itertools
import json
import mmap
import os
import select
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lumi.llir.arithmetic import Array
from lumi.search.protocol import Reason

HANG = 20.0
"""Seconds, beside those a job asks for, after which a job counts as hanging."""

ROOM = 2 << 30
"""Free bytes that a folder in memory must have to be used."""


class WorkerError(Exception):
    """The child process did not answer as it should."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


_GENERATIONS = itertools.count(1)
"""Numbers for memory that holds nothing yet; that of a new child is told from that of the one before."""


class SharedMemory:
    """A file that parent and child both map; `generation` changes whenever it must be filled again."""

    def __init__(self) -> None:
        descriptor, self.path = tempfile.mkstemp(dir=_shared_folder(), prefix="lumi-")
        self._file = os.fdopen(descriptor, "r+b")
        self.size, self.generation = 0, 0
        self.bytes: Array = np.empty(0, np.uint8)

    def hold(self, size: int) -> None:
        """Grow to at least `size` bytes."""
        if size > self.size:
            self._file.truncate(size)
            self.bytes = np.frombuffer(mmap.mmap(self._file.fileno(), size), np.uint8)
            self.size = size
            self.generation = next(_GENERATIONS)

    def view(self, offset: int, like: Array) -> Array:
        """The bytes at `offset` as an array of the type and shape of another."""
        return self.bytes[offset : offset + like.nbytes].view(like.dtype).reshape(like.shape)

    def close(self) -> None:
        """Delete the file."""
        self._file.close()
        Path(self.path).unlink(missing_ok=True)


def _shared_folder() -> str | None:
    """A folder in memory that has room, else the folder of temporary files."""
    folder = Path("/dev/shm")
    with contextlib.suppress(OSError):
        if os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize > ROOM:
            return str(folder)
    return None


class Worker:
    """A child process that runs a module of a backend, and the memory it shares.

    The module is told the shared file as its argument; each line of its standard input is a JSON job,
    each line of its standard output the result.
    """

    def __init__(self, module: str) -> None:
        self.memory = SharedMemory()
        words = [sys.executable, "-m", module, self.memory.path]
        # In a group of its own, Ctrl-C at a terminal does not reach it.
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0
        )
        self._ending = weakref.finalize(self, _end, self._process, self.memory)

    def hold(self, size: int) -> None:
        """Grow the shared memory to at least `size` bytes."""
        self.memory.hold(size)

    def run(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Send a job and wait for its result.  Raises `WorkerError` for a crash or a hang."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], HANG + job["seconds"])
            answer = process.stdout.readline() if ready else None
        except BrokenPipeError:
            answer = ""
        if answer is None:
            raise WorkerError(Reason.TIMEOUT, f"no answer in {HANG:.0f} s")
        if not answer:
            raise WorkerError(Reason.CRASH, f"the process ended with status {process.wait()}")
        result: dict[str, Any] = json.loads(answer)
        return result

    def stop(self) -> None:
        """End the process and free the memory, as happens by itself when nobody has the worker any more."""
        self._ending()


def _end(process: subprocess.Popen[str], memory: SharedMemory) -> None:
    process.kill()
    process.wait()
    memory.close()
