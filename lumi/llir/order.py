"""The order of axes in memory: results lie as what they are made of, kernels run as their results lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lumi.field.access import Access
from lumi.field.index import Index, Part, Rem
from lumi.llir.coalesce import mapped
from lumi.llir.kernel import Kernel, Store, walk


def laid(access: Access, axes: Iterable[str]) -> tuple[str, ...] | None:
    """Those of `axes` that an access moves with, outermost first; None where it does not move evenly.

    Going round the end of a ring counts as even: a remainder is the only mention of its axis then.
    """
    places: dict[str, tuple[int, int]] = {}
    if access.clamp or access.data():
        return None
    wanted = frozenset(axes)
    mentioned = [a for index in access.index for part, _ in index.terms for a in _axes(part)]
    for number, index in enumerate(access.index):
        for part, coefficient in index.terms:
            if isinstance(part, str):
                places.setdefault(part, (number, -coefficient))
            elif isinstance(part, Rem):
                for axis, inner in part.index.terms:
                    if isinstance(axis, str) and mentioned.count(axis) == 1:
                        places.setdefault(axis, (number, -coefficient * inner))
        if index.axes() & wanted - places.keys():
            return None  # a quotient or a remainder
    return tuple(sorted(wanted & places.keys(), key=places.__getitem__))


def _axes(part: Part) -> frozenset[str]:
    return Index(((part, 1),)).axes()


def completed(order: Sequence[str], axes: Sequence[str]) -> tuple[str, ...]:
    """`axes` with those of `order` moved to stand in that order; each other follows the one before it."""
    found = list(order)
    for number, axis in enumerate(axes):
        if axis not in found:
            found.insert(found.index(axes[number - 1]) + 1 if number else 0, axis)
    return tuple(found)


def agree(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether the axes that two orders share stand in the same order in both."""
    return [a for a in one if a in other] == [a for a in other if a in one]


def as_stored(kernel: Kernel) -> Kernel:
    """The kernel with its axes in the order in which its result of most axes lies in memory."""
    stores = [s for s in walk(kernel.body) if isinstance(s, Store)]
    found = [o for s in stores if (o := laid(s.access, s.axes)) is not None]
    axes = tuple(kernel.axes)
    order = completed(max(found, key=len, default=()), axes)
    return kernel if order == axes else _reordered(kernel, {a: k for k, a in enumerate(order)})


def _reordered(kernel: Kernel, places: Mapping[str, int]) -> Kernel:
    def sort(axes: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(axes, key=places.__getitem__))

    return replace(
        kernel,
        axes={a: kernel.axes[a] for a in sort(kernel.axes)},
        grid=sort(kernel.grid),
        resident=sort(kernel.resident),
        body=mapped(kernel.body, sort, lambda access: access),
    )
