"""Reads GGUF files: a validated header over a memory map.

Source of the format: ggml's `docs/gguf.md`, versions 2 and 3, little endian.  The reader is Lumi's own
because the reader of the `gguf` package makes one numpy view a token: a vocabulary of 262,144 takes it
24 s on the machine where this reader takes 0.2 s.  Every count, length and offset is compared with the
size of the file before it is used, so a damaged or hostile file raises a `LumiError` ("weights error").
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from lumi.blocks import BLOCKS, BlockFormat
from lumi.dtype import BF16, F16, F32, F64, I8, I32, I64
from lumi.errors import LumiError
from lumi.runtime.mapped import map_file
from lumi.runtime.tensor import Array, Stored, Tensor, stored_bytes

Value: TypeAlias = "bool | int | float | str | tuple[str, ...] | Array"

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MAX_DIMS = 4
_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STORED: dict[int, Stored] = {
    **{0: F32, 1: F16, 24: I8, 26: I32, 27: I64, 28: F64, 30: BF16},
    **{2: BLOCKS["q4_0"], 6: BLOCKS["q5_0"], 8: BLOCKS["q8_0"]},
    **{12: BLOCKS["q4_k"], 13: BLOCKS["q5_k"], 14: BLOCKS["q6_k"]},
    **{3: "q4_1", 7: "q5_1", 9: "q8_1", 10: "q2_k", 11: "q3_k", 15: "q8_k", 16: "iq2_xxs", 17: "iq2_xs"},
    **{18: "iq3_xxs", 19: "iq1_s", 20: "iq4_nl", 21: "iq3_s", 22: "iq2_s", 23: "iq4_xs", 25: "i16"},
    **{29: "iq1_m", 34: "tq1_0", 35: "tq2_0", 39: "mxfp4"},
}


@dataclass(frozen=True, slots=True)
class Gguf:
    """An open file: its metadata and its tensors, by name."""

    path: Path
    metadata: Mapping[str, Value]
    tensors: Mapping[str, Tensor]


def read_gguf(path: Path) -> Gguf:
    """Open a GGUF file; raises "weights error" naming the file and what is wrong with it."""
    cursor = _Cursor(path, map_file(path))
    magic = bytes(cursor.data[:4])
    if magic != _MAGIC:
        raise cursor.error(f"no GGUF file: it begins with {magic!r}, not {_MAGIC!r}")
    cursor.at = len(_MAGIC)
    version = cursor.scalar("I", "the version")
    if version not in _VERSIONS:
        raise cursor.error(
            f"GGUF version {version}", f"Lumi reads versions {_VERSIONS[0]} and {_VERSIONS[1]}"
        )
    tensor_count = cursor.scalar("Q", "the tensor count")
    entry_count = cursor.scalar("Q", "the metadata count")
    metadata = _metadata(cursor, entry_count)
    tensors = _tensors(cursor, tensor_count, metadata)
    return Gguf(path, metadata, tensors)


class _Cursor:
    """A position in the bytes of a file that never leaves them."""

    def __init__(self, path: Path, data: mmap | bytes) -> None:
        self.path = path
        self.data = data
        self.at = 0

    def error(self, message: str, hint: str = "") -> LumiError:
        """A "weights error" of this file."""
        return LumiError("weights error", f"{self.path}: {message}", hint=hint)

    def need(self, count: int, what: str) -> None:
        """Raise unless `count` more bytes follow."""
        if self.at + count > len(self.data):
            left = max(0, len(self.data) - self.at)
            message = f"the file ends inside {what}: {count} bytes needed at byte {self.at}, {left} left"
            raise self.error(message, "the file is truncated or damaged; fetch it again")

    def scalar(self, code: str, what: str) -> Any:
        """The next number, of a struct code."""
        layout = struct.Struct("<" + code)
        self.need(layout.size, what)
        (value,) = layout.unpack_from(self.data, self.at)
        self.at += layout.size
        return value

    def string(self, what: str) -> str:
        """The next string."""
        (text,) = self.strings(1, what)
        return text

    def strings(self, count: int, what: str) -> tuple[str, ...]:
        """The next `count` strings: each is a 64-bit length and UTF-8."""
        self.need(8 * count, what)
        data, stop, at = self.data, len(self.data), self.at
        length = struct.Struct("<Q").unpack_from
        found = []
        for _ in range(count):
            self.at = at
            self.need(8, what)
            (size,) = length(data, at)
            at += 8 + size
            if at > stop:
                self.need(8 + size, what)
            found.append(data[at - size : at])
        self.at = at
        try:
            return tuple(map(bytes.decode, found))
        except UnicodeDecodeError:
            raise self.error(f"{what} is not UTF-8") from None

    def numbers(self, code: str, count: int, what: str) -> Array:
        """The next `count` numbers, as a view of the file."""
        dtype = np.dtype("<" + code)
        self.need(count * dtype.itemsize, what)
        found = np.frombuffer(self.data, dtype, count, self.at)
        self.at += count * dtype.itemsize
        return found


def _metadata(cursor: _Cursor, count: int) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for i in range(count):
        key = cursor.string(f"the key of metadata entry {i}")
        if key in found:
            raise cursor.error(f"the metadata key {key} stands twice")
        found[key] = _value(cursor, cursor.scalar("I", f"the type of {key}"), key)
    return found


def _value(cursor: _Cursor, kind: int, key: str) -> Value:
    if kind == _STRING:
        return cursor.string(key)
    if kind in _SCALARS:
        value: Value = cursor.scalar(_SCALARS[kind], key)
        return value
    if kind != _ARRAY:
        raise cursor.error(f"metadata entry {key} has the unknown type {kind}")
    element = cursor.scalar("I", f"the element type of {key}")
    count = cursor.scalar("Q", f"the length of {key}")
    if element == _STRING:
        return cursor.strings(count, key)
    if element in _SCALARS:
        return cursor.numbers(_SCALARS[element], count, key)
    raise cursor.error(f"metadata entry {key} is an array of the unknown type {element}")


def _tensors(cursor: _Cursor, count: int, metadata: Mapping[str, Value]) -> dict[str, Tensor]:
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1:
        raise cursor.error(f"general.alignment is {alignment}, no positive integer")
    entries = [_entry(cursor, f"the description of tensor {i}") for i in range(count)]
    start = -(-cursor.at // alignment) * alignment
    found: dict[str, Tensor] = {}
    for entry in entries:
        if entry.name in found:
            raise cursor.error(f"tensor {entry.name} stands twice")
        if entry.offset % alignment:
            raise cursor.error(
                f"tensor {entry.name} lies at {entry.offset}, not aligned to {alignment} bytes"
            )
        cursor.at = start + entry.offset
        size = 0 if isinstance(entry.stored, str) else stored_bytes(entry.stored, entry.shape)
        data = cursor.numbers("B", size, f"tensor {entry.name}")
        found[entry.name] = Tensor(entry.name, entry.shape, entry.stored, data)
    return found


@dataclass(frozen=True, slots=True)
class _Entry:
    """A tensor's description: `shape` is row-major, `offset` counts from the start of the tensor data."""

    name: str
    shape: tuple[int, ...]
    stored: Stored
    offset: int


def _entry(cursor: _Cursor, what: str) -> _Entry:
    name = cursor.string(what)
    rank = cursor.scalar("I", what)
    if rank > _MAX_DIMS:
        raise cursor.error(f"tensor {name} has {rank} dimensions; the format allows {_MAX_DIMS}")
    shape = tuple(int(n) for n in reversed(cursor.numbers("Q", rank, what)))
    kind = cursor.scalar("I", what)
    offset = cursor.scalar("Q", what)
    stored = _STORED.get(kind, f"number {kind}")
    if isinstance(stored, BlockFormat) and (not shape or shape[-1] % stored.elements):
        message = f"tensor {name} {list(shape)} is {stored.name}, whose blocks hold {stored.elements} weights"
        raise cursor.error(message, "its last dimension must be a multiple of a block")
    return _Entry(name, shape, stored, offset)
