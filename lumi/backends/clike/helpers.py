"""The helpers that generated code is written in, as one text."""

from __future__ import annotations

import functools
from pathlib import Path

_SHARED = Path(__file__).parent / "arithmetic.h"


@functools.cache
def helpers(path: Path) -> str:
    """The helpers of a language, those that all languages share in the place of their include."""
    return path.read_text().replace(f'#include "{_SHARED.name}"\n', _SHARED.read_text())
