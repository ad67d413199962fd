"""A saturated e-graph as plain data: classes of e-nodes and the facts that extraction needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lumi.dtype import DType

Attribute = int | float | str


@dataclass(frozen=True, slots=True)
class ENode:
    """One way to compute a class.

    Terms: `In(name, mask, dtype) Gat(name, mask, dtype; index) Const(value) Pos(mask) Un(op; a) Bin(op; a b)
    Sel(; c a b) Red(op; domain body) Fin(; acc) Run(; acc) Prev(; acc)`; accumulators:
    `Acc(op; domain step rho tau)`; domains: `Full(mask) Chunk(mask, chunk mask) Mask(; domain predicate)`.
    `attrs` stand before the semicolon, `children` (class ids) after it; a dtype is its name.

    An accumulator starts as the identity of `op` and for every tile of its domain becomes
    `(rho * acc) op reduce(step)`, plus `tau` for sums; * is multiplication for sum and mul, addition for
    max.  A rho of Const 1 (sum, mul) or Const 0 (max) and a tau of Const 0 mean none.  `Run` is its value
    after the present tile, `Prev` before it, `Fin` after the last.
    """

    op: str
    attrs: tuple[Attribute, ...]
    children: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RuleMatches:
    """How often a rule matched during saturation; `foreign` when it did not come with Lumi."""

    name: str
    family: str
    matches: int
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class EGraph:
    """Classes by id, each with its e-nodes in a canonical order.

    Ids depend on the contents alone, children of a smallest e-node first, so equal e-graphs have equal ids.
    `roots[k]` is the class of the region's k-th store.  `free` are the axes a term varies over (with loop
    time bits), `final` the axes whose finished reductions it needs, `dtype` its element type (f32 for a
    class of constants alone), `storage` the type a cut at the class is stored in without loss.  All four hold
    term classes only.  `saturated` is False when a limit stopped it.
    """

    classes: Mapping[int, tuple[ENode, ...]]
    roots: tuple[int, ...]
    free: Mapping[int, int]
    final: Mapping[int, int]
    dtype: Mapping[int, DType]
    storage: Mapping[int, DType]
    saturated: bool
    seconds: float
    rules: tuple[RuleMatches, ...]

    @property
    def size(self) -> int:
        """Number of e-nodes."""
        return sum(map(len, self.classes.values()))

    @property
    def foreign(self) -> tuple[str, ...]:
        """The rules that matched and did not come with Lumi: nothing has tested what they say."""
        return tuple(r.name for r in self.rules if r.foreign)

    @property
    def rewrites(self) -> tuple[RuleMatches, ...]:
        """The rewrite rules that matched, the busiest first."""
        found = (r for r in self.rules if r.family != "analysis")
        return tuple(sorted(found, key=lambda r: (-r.matches, r.name)))

    @property
    def busiest(self) -> RuleMatches | None:
        """The rewrite rule that matched most: when a limit stopped saturation, the one to suspect."""
        return next(iter(self.rewrites), None)
