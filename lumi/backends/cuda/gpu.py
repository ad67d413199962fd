"""The door to the driver: PyCUDA's context, stream and memory, and graphs by cuda-bindings on its stream."""

from __future__ import annotations

import atexit
import functools
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lumi.errors import LumiError
from lumi.runtime.device import Array

STAGING = 4 << 20
"""Bytes of pinned host memory through which small arrays pass."""

_HINT = "pip install 'lumi[cuda]'"


def device_error(message: str, hint: str = "") -> LumiError:
    """Something that the GPU or its driver refuses."""
    return LumiError("device error", message, hint=hint)


class Gpu:
    """The first GPU of this machine: its primary context, and one stream on which everything runs."""

    def __init__(self) -> None:
        self.driver = _driver()
        self._bindings = _bindings()
        self._device = self.driver.Device(0)
        self._context = self._device.retain_primary_context()
        self._lock = threading.RLock()
        with self.active():
            self.stream = self.driver.Stream()
            self._staging = self.driver.pagelocked_empty(STAGING, np.uint8)
        self._used = 0
        atexit.register(self._close)

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
    def units(self) -> int:
        """How many multiprocessors it has."""
        return int(self._device.multiprocessor_count)

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

    def wait(self) -> None:
        """Wait for everything on the stream."""
        with self._lock, self.active():
            self._wait()

    def _wait(self) -> None:
        self.stream.synchronize()
        self._used = 0

    # -- memory

    def allocate(self, size: int) -> Any:
        """A zeroed allocation of at least one byte."""
        with self._lock, self.active():
            block = self.driver.mem_alloc(max(size, 1))
            self.driver.memset_d8(int(block), 0, max(size, 1))
        return block

    def clear(self, address: int, size: int) -> None:
        """Make bytes zero, after everything on the stream."""
        with self._lock, self.active():
            self.driver.memset_d8_async(address, 0, size, self.stream)

    def write(self, address: int, raw: Array) -> None:
        """Copy bytes in, after everything on the stream; the array may change once this returns."""
        with self._lock, self.active():
            size = int(raw.nbytes)
            if size > STAGING:
                self._wait()
                self.driver.memcpy_htod(address, raw)
            elif size:
                if self._used + size > STAGING:
                    self._wait()
                place = self._staging[self._used : self._used + size]
                place[:] = raw
                self._used += -(-size // 64) * 64
                self.driver.memcpy_htod_async(address, place, self.stream)

    def read(self, address: int, raw: Array) -> None:
        """Copy bytes out, after everything on the stream."""
        with self._lock, self.active():
            self._wait()
            size = int(raw.nbytes)
            if size > STAGING:
                self.driver.memcpy_dtoh(raw, address)
            elif size:
                self.driver.memcpy_dtoh_async(self._staging[:size], address, self.stream)
                self._wait()
                raw[:] = self._staging[:size]

    # -- kernels and graphs

    def function(self, cubin: bytes, name: str, shared: int) -> Any:
        """A kernel of a cubin, allowed to use `shared` bytes of dynamic shared memory."""
        with self._lock, self.active():
            module = self.driver.module_from_buffer(cubin)
            function = module.get_function(name)
            if shared:
                attribute = self.driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
                function.set_attribute(attribute, shared)
        return function

    def capture(self, work: Callable[[], None]) -> Graph:
        """What `work` puts on the stream, as a graph."""
        cuda, handle = self._bindings, int(self.stream.handle)
        mode = cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        with self._lock, self.active():
            self._wait()
            _check(cuda.cuStreamBeginCapture(handle, mode))
            try:
                work()
            finally:
                graph = _check(cuda.cuStreamEndCapture(handle))
            try:
                executable = _check(cuda.cuGraphInstantiate(graph, 0))
            finally:
                cuda.cuGraphDestroy(graph)
        return Graph(self, executable)

    def replay(self, executable: Any) -> None:
        """Put a graph on the stream."""
        with self._lock, self.active():
            _check(self._bindings.cuGraphLaunch(executable, int(self.stream.handle)))

    def destroy(self, executable: Any) -> None:
        """Free a graph."""
        with self._lock, self.active():
            self._bindings.cuGraphExecDestroy(executable)

    def seconds(self, work: Callable[[], None]) -> float:
        """How long what `work` puts on the stream takes there."""
        with self._lock, self.active():
            first, last = self.driver.Event(), self.driver.Event()
            first.record(self.stream)
            work()
            last.record(self.stream)
            last.synchronize()
            return float(last.time_since(first)) * 1e-3

    def _close(self) -> None:
        """Let go of what needs the context while there still is one."""
        with self._lock, self.active():
            self._wait()
            self._staging = None
            self.stream = None


class Graph:
    """Captured work that can be put on the stream again and again."""

    def __init__(self, gpu: Gpu, executable: Any) -> None:
        self._gpu, self._executable = gpu, executable
        weakref.finalize(self, gpu.destroy, executable)

    def replay(self) -> None:
        """Run it, after everything on the stream."""
        self._gpu.replay(self._executable)


@functools.cache
def open_gpu() -> Gpu:
    """The GPU of this machine, opened once.  Raises `LumiError` that says what is missing."""
    return Gpu()


def _driver() -> Any:
    try:
        import pycuda.driver as driver
    except ImportError as error:
        raise device_error(f"PyCUDA cannot be used: {error}", _HINT) from None
    try:
        driver.init()
        count = driver.Device.count()
    except driver.Error as error:
        raise device_error(f"there is no usable NVIDIA GPU: {error}", "use --target cpu") from None
    if not count:
        raise device_error("there is no NVIDIA GPU", "use --target cpu")
    return driver


def _bindings() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise device_error(f"cuda-bindings cannot be used: {error}", _HINT) from None
    return driver


def _check(answer: tuple[Any, ...]) -> Any:
    """The result of a call of cuda-bindings.  Raises `LumiError` for an error."""
    if int(answer[0]) != 0:
        raise device_error(f"the CUDA driver answers {answer[0]!r}")
    return answer[1] if len(answer) == 2 else None
