"""An output that stays on its device."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lumi.dtype import DType
from lumi.errors import LumiError
from lumi.runtime import dlpack
from lumi.runtime.device import Array, Device, Memory


@dataclass(frozen=True, slots=True, eq=False)
class DeviceArray:
    """A dense tensor in memory of its own on a device, which later calls do not touch.

    `numpy()` copies it to the host; `torch.from_dlpack(x)` and its like take it where it lies.  It may
    still be under computation: both wait as they must.
    """

    dtype: DType
    shape: tuple[int, ...]
    device: Device
    memory: Memory = field(repr=False)

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy as a numpy array."""
        count = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.size
        return to_numpy(self.memory.fetch(count, 0), self.dtype, self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("a tensor on a device becomes an array only by a copy")
        return np.asarray(self.numpy(), dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device.kind

    def __dlpack__(self, *, stream: int | None = None, **asked: Any) -> Any:
        """The tensor as a DLPack capsule, ready for what is put on `stream` next.

        Raises `BufferError` where a copy or another device is asked for.
        """
        if asked.get("copy") or asked.get("dl_device") not in (None, self.device.kind):
            raise BufferError("the tensor can only be lent where it lies")
        self.device.hand_over(stream)
        return dlpack.lend(self.memory.address, self.dtype, self.shape, self.device.kind, self.memory)


def to_numpy(raw: Array, dtype: DType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Bytes as an array of the type users see.  Raises `LumiError` where a type that
    numpy lacks needs a package."""
    try:
        return raw.view(dtype.numpy).reshape(shape)
    except ImportError:
        raise LumiError(
            "device error", f"{dtype} is a type that numpy lacks", hint="pip install ml-dtypes"
        ) from None
