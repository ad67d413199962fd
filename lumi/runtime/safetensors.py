"""Reads safetensors files, single and sharded: a validated header over a memory map.

Source of the format: the safetensors README.  A file is a 64-bit header length, a JSON header that gives
each tensor its dtype, shape and byte range, and one buffer that the ranges fill without gap or overlap.
A sharded checkpoint is an index file whose "weight_map" names the file of each tensor.  Anything else
raises a `LumiError` ("weights error") that names the file and what is wrong.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lumi.dtype import BF16, BOOL, F8E4M3, F8E5M2, F16, F32, F64, I8, I32, I64, U8
from lumi.errors import LumiError
from lumi.runtime.mapped import map_file
from lumi.runtime.tensor import Array, Tensor

_LENGTH = 8
_DTYPES = {
    **{"F64": F64, "F32": F32, "F16": F16, "BF16": BF16},
    **{"F8_E4M3": F8E4M3, "F8_E5M2": F8E5M2},
    **{"I64": I64, "I32": I32, "I8": I8, "U8": U8, "BOOL": BOOL},
}
KINDS = {dtype: name for name, dtype in _DTYPES.items()}
"""The format's name of a dtype."""

_SIZES = {
    **{"U64": 8, "U32": 4, "U16": 2, "I16": 2, "C64": 8},
    "F8_E8M0": 1,
}
"""Bytes of an element of the format's types that Lumi cannot read."""


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a `.safetensors` file, of an index file with its shards, or of a folder of either."""
    if path.is_dir():
        path = _inside(path)
    return _read_shards(path) if path.suffix == ".json" else _read_file(path)


def _inside(folder: Path) -> Path:
    for pattern in ("*.safetensors.index.json", "*.safetensors"):
        found = sorted(folder.glob(pattern))
        if len(found) > 1:
            names = ", ".join(p.name for p in found)
            raise _error(folder, f"several checkpoints: {names}", "name one of them")
        if found:
            return found[0]
    raise _error(folder, "no .safetensors file in this folder", "name a checkpoint file or its folder")


def _read_shards(index: Path) -> dict[str, Tensor]:
    shards = _json(index, bytes(map_file(index))).get("weight_map")
    if not isinstance(shards, dict) or not all(isinstance(v, str) for v in shards.values()):
        raise _error(index, 'the index has no "weight_map" from tensors to files')
    files: dict[str, dict[str, Tensor]] = {}
    found: dict[str, Tensor] = {}
    for key, name in shards.items():
        if Path(name).name != name:
            raise _error(index, f"the file {name!r} of tensor {key} lies outside the checkpoint's folder")
        if name not in files:
            files[name] = _read_file(index.parent / name)
        if key not in files[name]:
            raise _error(index, f"tensor {key} is not in {name}, where the index places it")
        found[key] = files[name][key]
    return found


def read_metadata(path: Path) -> dict[str, str]:
    """What a `.safetensors` file tells about itself, text by name."""
    told = _open(path)[0].get("__metadata__", {})
    return {k: v for k, v in told.items() if isinstance(v, str)} if isinstance(told, dict) else {}


def _read_file(path: Path) -> dict[str, Tensor]:
    header, buffer = _open(path)
    found = [_tensor(path, name, entry, buffer) for name, entry in header.items() if name != "__metadata__"]
    _check_ranges(path, found, len(buffer))
    return {tensor.name: tensor for _, tensor in found}


def _open(path: Path) -> tuple[Mapping[str, Any], Array]:
    """The header of a file and the bytes behind it."""
    data = map_file(path)
    if len(data) < _LENGTH:
        raise _error(path, f"no safetensors file: {len(data)} bytes", _AGAIN)
    size = int.from_bytes(data[:_LENGTH], "little")
    if size > len(data) - _LENGTH:
        message = f"the header has {size} bytes, but only {len(data) - _LENGTH} follow"
        raise _error(path, message, "the file is truncated or no safetensors file")
    return _json(path, data[_LENGTH : _LENGTH + size]), np.frombuffer(data, np.uint8)[_LENGTH + size :]


def _tensor(path: Path, name: str, entry: object, buffer: Array) -> tuple[int, Tensor]:
    """A tensor and where its bytes begin in the buffer."""
    match entry:
        case {"dtype": str(kind), "shape": list(shape), "data_offsets": [int(start), int(stop)]}:
            pass
        case _:
            raise _error(path, f"the header entry of tensor {name} has no dtype, shape and data_offsets")
    if not all(type(n) is int and n >= 0 for n in shape):
        raise _error(path, f"tensor {name} has the shape {shape}")
    dtype = _DTYPES.get(kind)
    size = dtype.size if dtype else _SIZES.get(kind)
    if size is None:
        raise _error(path, f"tensor {name} has the unknown dtype {kind}")
    if not 0 <= start <= stop <= len(buffer):
        message = f"tensor {name} lies at bytes {start} … {stop} of {len(buffer)}"
        raise _error(path, message, _AGAIN)
    if stop - start != math.prod(shape) * size:
        raise _error(path, f"tensor {name} {kind} {shape} cannot fill {stop - start} bytes")
    return start, Tensor(name, tuple(shape), dtype or kind, buffer[start:stop])


def _check_ranges(path: Path, found: list[tuple[int, Tensor]], size: int) -> None:
    """The byte ranges must fill the buffer: a gap or an overlap means another file than was written."""
    end = 0
    for start, tensor in sorted(found, key=lambda item: (item[0], len(item[1].data))):
        if start != end:
            raise _error(path, f"tensor {tensor.name} begins at byte {start}, not at {end}", _AGAIN)
        end = start + len(tensor.data)
    if end != size:
        raise _error(path, f"{size - end} bytes follow the last tensor", _AGAIN)


def _json(path: Path, text: bytes) -> Mapping[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise _error(path, "a key of the header stands twice", _AGAIN)
        return found

    try:
        value = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        raise _error(path, "the header is no JSON", _AGAIN) from None
    if not isinstance(value, dict):
        raise _error(path, "the header is no JSON object", _AGAIN)
    return value


_AGAIN = "the file is truncated or damaged; fetch it again"


def _error(path: Path, message: str, hint: str = "") -> LumiError:
    return LumiError("weights error", f"{path}: {message}", hint=hint)
