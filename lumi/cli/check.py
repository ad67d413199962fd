"""What `lumi doctor` finds out about one thing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """Whether a thing works, what was found of it, and what to do when it does not.

    Lumi cannot compile models without what `is_required`; the rest makes it faster or adds to it.
    """

    name: str
    works: bool
    found: str
    advice: str = ""
    is_required: bool = False
