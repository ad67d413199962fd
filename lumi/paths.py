"""Where the language's own files live, in a checkout or in an installed wheel, and where Lumi caches."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data(folder: str) -> Path:
    """The folder `grammar`, `stdlib`, `rules` or `models`: inside the wheel, else beside the package."""
    packaged = _PACKAGE / "data" / folder
    return packaged if packaged.is_dir() else _PACKAGE.parent / folder


def cache() -> Path:
    """The folder for compiled kernels and the tuning database: `LUMI_CACHE`, else the platform's."""
    chosen = os.environ.get("LUMI_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lumi"


def beside(path: Path) -> str:
    """A hint about a path where nothing is: what was probably meant, or what there is of its kind."""
    try:
        names = sorted(p.name for p in path.parent.iterdir() if p.suffix == path.suffix)
    except OSError:
        return f"there is no folder {path.parent}"
    near = difflib.get_close_matches(path.stem, [Path(name).stem for name in names], 1)
    if near:
        return f"did you mean {path.with_name(near[0] + path.suffix)}?"
    return f"{path.parent} has {', '.join(names[:5])}" if names and path.suffix else ""
