"""The door to the driver: memory by PyCUDA, kernels and graphs by cuda-bindings, on one stream."""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from lumi.backends.cuda.context import Context
from lumi.backends.cuda.driver import check
from lumi.backends.cuda.pinned import Pool
from lumi.backends.cuda.tensormap import Box, encode
from lumi.runtime.counters import Counters
from lumi.runtime.device import Array

STAGING = 4 << 20
"""Bytes of pinned host memory through which small arrays pass."""

Piece: TypeAlias = "tuple[int, memoryview]"
"""An address on the GPU and the bytes that are to lie there, at most `STAGING`."""

Argument: TypeAlias = "tuple[Any, type | None]"
"""An argument of a kernel with its C type; what the driver makes itself has none."""

_WORD = 4
"""Bytes of the word of memory at which blocks meet."""

_UNTIMED = 2
"""CU_EVENT_DISABLE_TIMING."""


class Gpu(Context):
    """The first GPU of this machine, with memory, and everything that is put on its stream.

    What happens once is done by PyCUDA, what each call of a model does by cuda-bindings, which is faster.
    """

    def __init__(self) -> None:
        super().__init__()
        self.counters = Counters()
        with self.active():
            self._staged = self._pinned(STAGING)
            self._event = check(self._bindings.cuEventCreate(_UNTIMED))
        self._staging = memoryview((ctypes.c_uint8 * STAGING).from_address(self._staged)).cast("B")
        self._used = 0
        self._pool = Pool(self._pinned)
        self._functions = weakref.WeakValueDictionary[tuple[bytes, str, int], Function]()
        self._meeting = self.allocate(_WORD)
        atexit.register(self._close)

    @property
    def meeting(self) -> int:
        """The address of the word at which the blocks of a launch meet that takes turns.

        One is enough for all: such launches come one after the other, and leave it as they find it.
        """
        return int(self._meeting)

    def resident(self, function: Function, threads: int, shared: int) -> int:
        """How many blocks of a kernel a multiprocessor runs at once."""
        count = self._bindings.cuOccupancyMaxActiveBlocksPerMultiprocessor
        with self._lock, self.active():
            return int(check(count(function.handle, threads, shared)))

    def wait(self) -> None:
        """Wait for everything on the stream."""
        with self._lock, self._current():
            self._wait()

    def _wait(self) -> None:
        check(self._bindings.cuStreamSynchronize(self._queue))
        self._used = 0

    def order(self, stream: int) -> None:
        """Make what is put on another stream from now on wait for everything on this one."""
        with self._lock, self._current():
            check(self._bindings.cuEventRecord(self._event, self._queue))
            check(self._bindings.cuStreamWaitEvent(stream, self._event, 0))

    # -- memory

    def allocate(self, size: int) -> Any:
        """A zeroed allocation of at least one byte."""
        block = self.reserve(size)
        self.clear(int(block), max(size, 1))
        return block

    def reserve(self, size: int) -> Any:
        """An allocation of at least one byte, which may hold anything."""
        with self._lock, self.active():
            self.counters.device_allocations += 1
            return self.driver.mem_alloc(max(size, 1))

    def clear(self, address: int, size: int, value: int = 0) -> None:
        """Make bytes zero, or another value, after everything on the stream."""
        with self._lock, self._current():
            check(self._bindings.cuMemsetD8Async(address, value, size, self._queue))

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes within the GPU, after everything on the stream."""
        with self._lock, self._current():
            self.counters.bytes_within += size
            check(self._bindings.cuMemcpyDtoDAsync(target, source, size, self._queue))

    def write(self, address: int, raw: Array) -> None:
        """Copy bytes in, after everything on the stream; the array may change once this returns."""
        with self._lock, self._current():
            if raw.nbytes > STAGING:
                self._wait()
                self.counters.bytes_in += raw.nbytes
                check(self._bindings.cuMemcpyHtoD(address, int(raw.ctypes.data), raw.nbytes))
            elif raw.nbytes:
                self._send(address, raw.data)

    def _send(self, address: int, raw: memoryview) -> None:
        place, size = self._room(raw.nbytes), raw.nbytes
        self.counters.bytes_in += size
        self._staging[place : place + size] = raw
        check(self._bindings.cuMemcpyHtoDAsync(address, self._staged + place, size, self._queue))

    def _room(self, size: int) -> int:
        """A place in the staging memory that no copy under way reads."""
        if self._used + size > STAGING:
            self._wait()
        place = self._used
        self._used += -(-size // 64) * 64
        return place

    def read(self, address: int, raw: Array) -> None:
        """Copy bytes out, after everything on the stream."""
        with self._lock, self._current():
            self._wait()
            self.counters.bytes_out += raw.nbytes
            if raw.nbytes:
                check(self._bindings.cuMemcpyDtoH(int(raw.ctypes.data), address, raw.nbytes))

    def fetch(self, address: int, size: int) -> Array:
        """Bytes in an array of their own, after everything on the stream."""
        with self._lock, self._current():
            taken = self._pool.take(size) if size else None
            if taken is None:
                raw = np.empty(size, np.uint8)
                self.read(address, raw)
                return raw
            place, raw = taken
            self.counters.bytes_out += size
            check(self._bindings.cuMemcpyDtoHAsync(place, address, size, self._queue))
            self._wait()
            return raw

    def _pinned(self, size: int) -> int:
        """The address of new host memory that the GPU copies to at full speed."""
        self.counters.host_allocations += 1
        return int(check(self._bindings.cuMemHostAlloc(size, 0)))

    # -- kernels and graphs

    def function(self, cubin: bytes, name: str, shared: int) -> Function:
        """A kernel of a cubin, allowed to use `shared` bytes of dynamic shared memory.

        All that ask for the same one have the same: its code is on the GPU once, and warm in its caches.
        """
        cuda, key = self._bindings, (hashlib.sha256(cubin).digest(), name, shared)
        with self._lock, self.active():
            known = self._functions.get(key)
            if known is not None:
                return known
            module = check(cuda.cuModuleLoadData(cubin))
            handle = check(cuda.cuModuleGetFunction(module, name.encode()))
            if shared:
                attribute = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                check(cuda.cuFuncSetAttribute(handle, attribute, shared))
            made = self._functions[key] = Function(self, module, handle)
        return made

    def launch(
        self,
        function: Function,
        blocks: int,
        threads: int,
        shared: int,
        values: Sequence[Argument],
        early: bool,
        at_once: bool = False,
    ) -> None:
        """Put a kernel on the stream; `values` are its arguments.

        With `early` it may start before the one before it has ended: it waits for that one by itself.  With
        `at_once` all its blocks run at the same time, or it is refused.
        """
        cuda, config = self._bindings, self._bindings.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = blocks, 1, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
        config.sharedMemBytes, config.hStream = shared, cuda.CUstream(int(self.stream.handle))
        asked = []
        if early:
            asked.append(
                self._attribute("PROGRAMMATIC_STREAM_SERIALIZATION", "programmaticStreamSerializationAllowed")
            )
        if at_once:
            asked.append(self._attribute("COOPERATIVE", "cooperative"))
        config.attrs, config.numAttrs = asked, len(asked)
        numbers, kinds = zip(*values, strict=True)
        with self._lock, self.active():
            self.counters.launches += 1
            check(cuda.cuLaunchKernelEx(config, function.handle, (numbers, kinds), 0))

    def _attribute(self, name: str, value: str) -> Any:
        """An attribute of a launch, which is asked for."""
        attribute, given = self._bindings.CUlaunchAttribute(), self._bindings.CUlaunchAttributeValue()
        attribute.id = getattr(self._bindings.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{name}")
        setattr(given, value, 1)
        attribute.value = given
        return attribute

    def tensor_map(self, address: int, box: Box) -> Any:
        """How the copy engine sees the buffer at this address, as an argument of a kernel."""
        with self._lock, self.active():
            return check(encode(self._bindings, address, box))

    def unload(self, module: Any) -> None:
        """Free a kernel."""
        with self._lock, self.active():
            self._bindings.cuModuleUnload(module)

    def capture(self, work: Callable[[], None]) -> Graph:
        """What `work` puts on the stream, as a graph."""
        cuda, handle = self._bindings, int(self.stream.handle)
        mode = cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        with self._lock, self.active():
            self._wait()
            before = self.counters.launches
            check(cuda.cuStreamBeginCapture(handle, mode))
            try:
                work()
            finally:
                graph = check(cuda.cuStreamEndCapture(handle))
            self.counters.launches = before
            self.counters.captures += 1
            try:
                executable = check(cuda.cuGraphInstantiate(graph, 0))
            finally:
                cuda.cuGraphDestroy(graph)
        return Graph(self, executable)

    def replay(self, executable: Any, pieces: Sequence[Piece] = ()) -> None:
        """Copy some bytes in, then put a graph on the stream; the bytes may change once this returns."""
        with self._lock, self._current():
            for address, raw in pieces:
                self._send(address, raw)
            self.counters.launches += 1
            check(self._bindings.cuGraphLaunch(executable, self._queue))

    def enqueue(self, work: Callable[[], None], pieces: Sequence[Piece] = ()) -> None:
        """Copy some bytes in, then put work on the stream; the bytes may change once this returns."""
        with self._lock, self.active():
            for address, raw in pieces:
                self._send(address, raw)
            work()

    def destroy(self, executable: Any) -> None:
        """Free a graph."""
        with self._lock, self._current():
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
            self.stream = None


class Function:
    """A kernel on the GPU."""

    def __init__(self, gpu: Gpu, module: Any, handle: Any) -> None:
        self.handle = handle
        weakref.finalize(self, gpu.unload, module)


class Graph:
    """Captured work that can be put on the stream again and again."""

    def __init__(self, gpu: Gpu, executable: Any) -> None:
        self._gpu, self._executable = gpu, executable
        weakref.finalize(self, gpu.destroy, executable)

    def replay(self, pieces: Sequence[Piece] = ()) -> None:
        """Copy some bytes in, then run it, after everything on the stream."""
        self._gpu.replay(self._executable, pieces)


def open_gpu() -> Gpu:
    """The GPU of this machine, opened once.  Raises `LumiError` that says what is missing."""
    with _OPENING:
        return _opened()


_OPENING = threading.Lock()
"""So that two threads share one stream."""


@functools.cache
def _opened() -> Gpu:
    return Gpu()
