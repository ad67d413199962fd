"""The first GPU of this machine: what it is, and the context and the stream that everything else uses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lumi.backends.cuda.driver import Current, check, device_error, open_bindings, open_driver


class Context:
    """The primary context of the first GPU, and one stream.  Raises `LumiError` that says what is missing."""

    def __init__(self) -> None:
        self.driver = open_driver()
        self._bindings = open_bindings()
        self._device = self.driver.Device(0)
        self._context = self._device.retain_primary_context()
        self._lock = threading.RLock()
        with self.active():
            self._handle = check(self._bindings.cuCtxGetCurrent())
            self._number = int(self._handle)
            self.stream = self.driver.Stream()
        self.queue = int(self.stream.handle)
        self._queue = self._bindings.CUstream(self.queue)

    @property
    def name(self) -> str:
        """What the GPU calls itself."""
        return str(self._device.name())

    @property
    def driver_version(self) -> str:
        """The CUDA version of the driver, `13.0`."""
        version = int(self.driver.get_driver_version())
        return f"{version // 1000}.{version % 1000 // 10}"

    @property
    def arch(self) -> str:
        """The architecture that kernels are compiled for; `a` adds what only this chip has."""
        major, minor = self._device.compute_capability()
        return f"sm_{major}{minor}{'a' if (major, minor) == (9, 0) else ''}"

    @property
    def starts_early(self) -> bool:
        """Whether a kernel can start before the one before it has ended."""
        return bool(self._device.compute_capability() >= (9, 0))

    @property
    def room(self) -> int:
        """Bytes of shared memory that a block can have."""
        return int(self._device.max_shared_memory_per_block_optin)

    @property
    def units(self) -> int:
        """How many multiprocessors it has."""
        return int(self._device.multiprocessor_count)

    def memory(self) -> tuple[int, int]:
        """Bytes of the GPU's memory that are free, and all."""
        with self._lock, self._current():
            free, total = check(self._bindings.cuMemGetInfo())
        return int(free), int(total)

    def used(self) -> int:
        """Bytes of the GPU's memory that are taken, by anyone."""
        free, total = self.memory()
        return total - free

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make the context this thread's own meanwhile.  Raises `LumiError` for what the driver refuses.

        The context never stays behind on a thread's stack: PyCUDA aborts the process if it does.
        """
        self._context.push()
        try:
            yield
        except self.driver.MemoryError as error:
            raise device_error(f"{self.name} is out of memory: {error}") from None
        except self.driver.Error as error:
            raise device_error(str(error)) from None
        finally:
            self._context.pop()

    def _current(self) -> Current:
        return Current(self._bindings, self._handle, self._number)
