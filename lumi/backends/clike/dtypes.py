"""How dtypes are held in registers, and how their constants are written."""

from __future__ import annotations

from lumi.dtype import DType

HELD = {
    "f16": "f32",
    "bf16": "f32",
    "f8e4m3": "f32",
    "f8e5m2": "f32",
    "f32": "f32",
    "f64": "f64",
    "i8": "i32",
    "u8": "i32",
    "i32": "i32",
    "i64": "i64",
    "bool": "bool",
}
"""The dtype in whose registers, and by whose helpers, values of a dtype are computed."""


def finite(number: float, dtype: DType) -> str:
    """A finite float that keeps every bit."""
    suffix = "" if dtype.name == "f64" else "f"
    if number == int(number) and abs(number) < 2**24:
        return f"{number!r}{suffix}"
    return f"{number.hex()}{suffix}"
