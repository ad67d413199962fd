"""The helpers that generated code is written in, as one text."""

from __future__ import annotations

import functools
from pathlib import Path

_SHARED = tuple(Path(__file__).parent / name for name in ("arithmetic.h", "byte_float.h"))


@functools.cache
def helpers(path: Path) -> str:
    """The helpers of a language, those that all languages share in the place of their includes."""
    text = path.read_text()
    for shared in _SHARED:
        text = text.replace(f'#include "{shared.name}"\n', shared.read_text())
    return text
