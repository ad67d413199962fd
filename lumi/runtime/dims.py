"""Binds the dims of a call: from the shapes of its inputs and from what the caller says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lumi import dim
from lumi.dim import DimRange, Extent
from lumi.errors import LumiError
from lumi.plan.plan import Signature


@dataclass(frozen=True, slots=True)
class Shaped:
    """An input or a state by its signature, and the shape it was given with."""

    signature: Signature
    shape: tuple[int, ...]


def bind_dims(
    dims: Mapping[str, DimRange], given: Mapping[str, int], tensors: Sequence[Shaped]
) -> dict[str, int]:
    """The value of every dim.  Raises `LumiError` when one is missing, contradicted or out of range.

    A dim is taken from `given`, else from a size in which it is the only unknown, else from a range that
    holds one value.
    """
    known = dict(given)
    while _learn(known, tensors):
        pass
    for name, r in dims.items():
        if name not in known and r.low != r.high:
            raise LumiError(
                "dim error", f"dim {name} is not given", hint=f"pass {name}=… ({r.low} … {r.high})"
            )
        _check_range(r, known.setdefault(name, r.low))
    for tensor in tensors:
        _check_shape(tensor, known, given)
    return known


def _check_range(r: DimRange, value: int) -> None:
    if not r.low <= value <= r.high:
        raise LumiError(
            "dim error",
            f"{r.name} is {value}, outside of {r.low} … {r.high}",
            hint="the range is declared by the model's defdim",
        )


def _learn(known: dict[str, int], tensors: Iterable[Shaped]) -> bool:
    """Solve one more dim; False when no size determines one."""
    for tensor in tensors:
        for extent, size in zip(tensor.signature.shape, tensor.shape, strict=False):
            solved = _solve(dim.bind(extent, known), size)
            if solved is not None:
                known.update([solved])
                return True
    return False


def _solve(extent: Extent, size: int) -> tuple[str, int] | None:
    """The dim and its value, when `extent = size` is linear in exactly one dim."""
    if isinstance(extent, int):
        return None
    unknown = [(m, c) for m, c in extent.terms if m]
    constant = sum(c for m, c in extent.terms if not m)
    if len(unknown) != 1:
        return None
    (monomial, coefficient) = unknown[0]
    if len(monomial) != 1 or not isinstance(monomial[0], str) or (size - constant) % coefficient:
        return None
    return monomial[0], (size - constant) // coefficient


def _check_shape(tensor: Shaped, known: Mapping[str, int], given: Mapping[str, int]) -> None:
    want = tuple(dim.value(extent, known) for extent in tensor.signature.shape)
    if want != tensor.shape:
        s = tensor.signature
        bound = ", ".join(f"{n}={known[n]}" for n in s.dims())
        raise LumiError(
            "shape error",
            f"{s.name} is {s.dtype} [{' '.join(map(str, tensor.shape))}], expected {s.dtype} "
            f"[{' '.join(map(str, s.shape))}]" + (f" with {bound}" if bound else ""),
            hint="dims are taken from shapes: pass only those that no shape shows"
            if given.keys() & set(s.dims())
            else "",
        )
