"""A region: what one scope stores, as field terms over its own axes and buffers under canonical names."""

from __future__ import annotations

from dataclasses import dataclass

from lumi.dim import Dim
from lumi.field.access import Access
from lumi.field.axis import AxisTable
from lumi.field.term import In, Term
from lumi.field.traverse import postorder
from lumi.memo import Memo


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

    def dims(self) -> frozenset[str]:
        """Every dim that the region's sizes, indices and values depend on."""
        return _dims(self)


@Memo
def _dims(region: Region) -> frozenset[str]:
    accesses = [*region.accesses.values(), *(s.access for s in region.stores)]
    extents = [a.extent for a in region.axes] + [size for a in accesses for size in a.shape]
    found = {name for extent in extents if isinstance(extent, Dim) for name in extent.names()}
    found |= {name for a in accesses for index in a.index for name in index.dims()}
    symbols = (t.name for t in postorder(s.term for s in region.stores) if isinstance(t, In))
    return frozenset(found | {name[1:] for name in symbols if name.startswith("$")})
