"""A region: what one scope stores, as field terms over its own axes and buffers under canonical names."""

from __future__ import annotations

from dataclasses import dataclass

from lumi.field.access import Access
from lumi.field.axis import AxisTable
from lumi.field.term import Term


@dataclass(frozen=True, slots=True)
class Store:
    """A value that the region must leave in memory, at the element `access` names."""

    term: Term
    access: Access


@dataclass(frozen=True, slots=True)
class Note:
    """A decision of the lowering that costs or saves work: a cut, a duplicated value, a split reshape."""

    what: str
    node: str
    why: str


@dataclass(frozen=True, slots=True)
class Region:
    """Stores in dependency order, the accesses they read through, and which buffers those are.

    `buffers[k]` is the actual name of canonical buffer `Bk`: an input's, param's or state's name, or
    `%id` for a node's value (`%id.n` when region n keeps a value that others compute too).  A buffer
    that is also stored here (a cut value, a state) is read after its store: `produced` maps it to the
    number of that store.
    `key` is equal for regions that differ only in their buffers: they share everything found later.
    """

    scope: str
    axes: AxisTable
    accesses: dict[str, Access]
    stores: tuple[Store, ...]
    buffers: tuple[str, ...]
    produced: dict[str, int]
    notes: tuple[Note, ...]
    key: str
