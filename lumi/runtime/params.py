"""The content of a plan's params: from a checkpoint, from arrays, or made up with a seed."""

from __future__ import annotations

import difflib
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lumi.blocks import BLOCKS, BlockFormat
from lumi.dtype import BF16, BOOL, DType, from_memory, from_numpy, to_memory
from lumi.errors import LumiError
from lumi.noise import Noise
from lumi.plan.plan import Binding, Plan
from lumi.runtime.device import Array


class Source(Protocol):
    """Where params come from; `lumi.runtime.weights.Weights` is one."""

    def __contains__(self, key: object) -> bool:
        """Whether it has a tensor of this key."""

    def array(self, key: str, dtype: DType, shape: Sequence[int] | None = None) -> Array:
        """The tensor converted to `dtype`, C-contiguous; it must have this shape."""

    def plane(self, key: str, block: BlockFormat, name: str, shape: Sequence[int] | None = None) -> Array:
        """One plane of a packed tensor; it must have this shape."""


@dataclass(frozen=True, slots=True)
class Arrays:
    """Arrays by key as a source; `KEY#plane` holds a plane of a packed tensor.

    What a source gives never changes: arrays that may be written to are copied, read-only ones are not.
    """

    arrays: Mapping[str, Array]

    def __contains__(self, key: object) -> bool:
        return key in self.arrays or any(name.startswith(f"{key}#") for name in self.arrays)

    def array(self, key: str, dtype: DType, shape: Sequence[int] | None = None) -> Array:
        """The array, with floats rounded to `dtype`; other types must be exact."""
        if key not in self.arrays:
            near = difflib.get_close_matches(key, self.arrays, n=3)
            raise _weights_error(
                f"there is no array {key}", f"the nearest are {', '.join(near)}" if near else ""
            )
        array = np.asarray(self.arrays[key])
        if shape is not None and array.shape != tuple(shape):
            raise _weights_error(f"{key} has the shape {list(array.shape)}, the model wants {list(shape)}")
        given = _converted(key, array, dtype)
        return given.copy() if given.flags.writeable and np.may_share_memory(given, array) else given

    def plane(self, key: str, block: BlockFormat, name: str, shape: Sequence[int] | None = None) -> Array:
        """The array `KEY#name`."""
        kind = next(p.dtype for p in block.planes if p.name == name)
        return self.array(f"{key}#{name}", kind, shape)


@dataclass(frozen=True, slots=True)
class Random:
    """Seeded made-up params: each depends on its key and the seed alone.

    Floats are nearly normal with variance 1 / (last dimension), so that products neither grow nor vanish;
    bytes of packed weights are uniform, with scales near 0.01.
    """

    seed: int = 0

    def __contains__(self, key: object) -> bool:
        return True

    def noise(self, key: str, dtype: DType, shape: Sequence[int]) -> Noise:
        """What the numbers of a param are made by."""
        digest = hashlib.sha256(f"{self.seed} {key}".encode()).digest()
        seed = int.from_bytes(digest[:8], "little")
        if dtype.is_float:
            return Noise(seed, dtype, scale=max(shape[-1] if shape else 1, 1) ** -0.5)
        low, high = (0, 1) if dtype == BOOL else dtype.bounds if dtype.size == 1 else (0, 100)
        return Noise(seed, dtype, low=low, span=high - low + 1)

    def array(self, key: str, dtype: DType, shape: Sequence[int] | None = None) -> Array:
        """Numbers of `dtype` in `shape`."""
        shape = tuple(shape or ())
        return self.noise(key, dtype, shape).array(math.prod(shape)).reshape(shape)

    def plane(self, key: str, block: BlockFormat, name: str, shape: Sequence[int] | None = None) -> Array:
        """Random blocks."""
        kind = next(p.dtype for p in block.planes if p.name == name)
        array = self.array(f"{key}#{name}", kind, shape)
        return (np.abs(array) * 0.01).astype(array.dtype) if kind.is_float else array

    def noise_of(self, binding: Binding) -> Noise | None:
        """What the content of a param is made by, where that is noise alone."""
        if binding.plane is None:
            return self.noise(binding.key, binding.dtype, binding.shape)
        if binding.dtype.is_float:
            return None
        return self.noise(f"{binding.key}#{binding.plane}", binding.dtype, binding.shape)


def content(plan: Plan, source: Source | None) -> dict[str, Array]:
    """What each param of the plan holds, C-contiguous, by the param's name; see `fill`."""
    require(plan, source)
    return {b.param: fill(b, source) for b in plan.bindings}


def require(plan: Plan, source: Source | None) -> None:
    """Without a source only params with an initial value can be filled; raises `LumiError` for others."""
    missing = [b.key for b in plan.bindings if source is None and b.init is None]
    if missing:
        raise _weights_error(
            f"{plan.name} needs weights: {', '.join(missing[:3])}{' …' if missing[3:] else ''}",
            'pass weights, or init="random" to make some up',
        )


def fill(binding: Binding, source: Source | None) -> Array:
    """What a param holds, C-contiguous.  Raises `LumiError` for what is missing or does not fit."""
    if binding.init is not None and (source is None or binding.key not in source):
        return _converted(binding.key, np.full(binding.shape, binding.init), binding.dtype)
    assert source is not None
    if binding.format is None or binding.plane is None:
        return source.array(binding.key, binding.dtype, binding.shape)
    return source.plane(binding.key, BLOCKS[binding.format], binding.plane, binding.shape)


def _converted(key: str, array: np.ndarray[Any, Any], dtype: DType) -> Array:
    try:
        raw = dtype if dtype.is_raw and array.dtype == dtype.storage else None
        given = raw or (BF16 if array.dtype == np.uint16 else from_numpy(array.dtype))
    except KeyError:
        raise _weights_error(f"{key} has the type {array.dtype}, which Lumi does not know") from None
    if given == dtype:
        return np.require(array, requirements="C").view(dtype.storage)
    if not (given.is_float and dtype.is_float):
        raise _weights_error(f"{key} is {given}, the model wants {dtype}")
    wide = from_memory(np.require(array, requirements="C").view(given.storage), given)
    return np.require(to_memory(wide, dtype), requirements="C").reshape(array.shape)


def _weights_error(message: str, hint: str = "") -> LumiError:
    return LumiError("weights error", message, hint=hint)
