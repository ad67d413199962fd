"""A read-only memory map of a file: weights are read from it page by page, when they are used."""

from __future__ import annotations

from mmap import ACCESS_READ, mmap
from pathlib import Path

from lumi.errors import LumiError


def map_file(path: Path) -> mmap | bytes:
    """The bytes of a file; an empty file, which cannot be mapped, gives empty bytes.

    Raises "weights error" when the file cannot be opened.
    """
    try:
        with path.open("rb") as file:
            return mmap(file.fileno(), 0, access=ACCESS_READ) if path.stat().st_size else b""
    except OSError as error:
        raise LumiError("weights error", f"{path}: {error.strerror or error}") from None
