"""The child process ends, and its memory is freed, when nobody has the worker any more."""

from __future__ import annotations

from pathlib import Path

from lumi.search.child import Worker


def test_child_ends_with_its_owner() -> None:
    worker = Worker("lumi.backends.cpu.worker")
    process, path = worker._process, Path(worker.memory.path)
    assert process.poll() is None and path.exists()
    del worker
    assert process.poll() is not None and not path.exists()


def test_child_can_be_stopped_twice() -> None:
    worker = Worker("lumi.backends.cpu.worker")
    worker.stop()
    worker.stop()
    assert worker._process.poll() is not None
