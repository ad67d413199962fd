"""What the GPU backend needs of Python and of the driver: PyCUDA, cuda-bindings, and their errors."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from typing import Any

from lumi.backends.cuda.compile import version as nvrtc_version
from lumi.errors import LumiError

_HINT = "pip install -e '.[cuda]' in Lumi's checkout, or use --target cpu"


def device_error(message: str, hint: str = "") -> LumiError:
    """Something that the GPU or its driver refuses."""
    return LumiError("device error", message, hint=hint)


@functools.cache
def missing() -> str:
    """What is missing for a GPU to be used here, as a sentence; empty when nothing is."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "there is no NVIDIA driver"
    for name in ("pycuda", "cuda.bindings"):
        if not _is_installed(name):
            return f"the Python package {name} is not installed"
    try:
        open_driver()
        nvrtc_version()
    except LumiError as error:
        return error.message
    return ""


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def open_driver() -> Any:
    """PyCUDA's driver, where there is a GPU.  Raises `LumiError` that says what is missing."""
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


def open_bindings() -> Any:
    """The driver's functions by cuda-bindings.  Raises `LumiError` when they are missing."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise device_error(f"cuda-bindings cannot be used: {error}", _HINT) from None
    return driver


def check(answer: tuple[Any, ...]) -> Any:
    """The result, or results, of a call of cuda-bindings.  Raises `LumiError` for an error."""
    if answer[0] != 0:
        raise device_error(f"the CUDA driver answers {answer[0]!r}")
    return answer[1] if len(answer) == 2 else answer[1:]


class Current:
    """Makes a context current while calls of cuda-bindings are made; another one comes back afterwards.

    `number` is its handle as an integer.  A thread that had none keeps this one, which spares the driver a
    change at every call.
    """

    __slots__ = ("_bindings", "_context", "_is_pushed", "_number")

    def __init__(self, bindings: Any, context: Any, number: int) -> None:
        self._bindings, self._context, self._number, self._is_pushed = bindings, context, number, False

    def __enter__(self) -> None:
        now = int(self._bindings.cuCtxGetCurrent()[1])
        if now == self._number:
            return
        if not now:
            check(self._bindings.cuCtxSetCurrent(self._context))
        else:
            check(self._bindings.cuCtxPushCurrent(self._context))
            self._is_pushed = True

    def __exit__(self, *_: object) -> None:
        if self._is_pushed:
            check(self._bindings.cuCtxPopCurrent())
