"""What a compilation is told, what it tells on its way, and everything it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from lumi.backends.targets import Target, open_backend
from lumi.bufferize.held import Held, held
from lumi.egraph.graph import EGraph
from lumi.field.region import Region
from lumi.hlir.graph import Graph
from lumi.interpreter.module import Module
from lumi.plan.box import Box
from lumi.plan.plan import Plan
from lumi.plan.reach import room
from lumi.search.effort import total
from lumi.search.explain import Bucket, Report, silent
from lumi.search.search import Found
from lumi.search.settings import Settings


class Stage(Enum):
    """The stages in order; each one's value is its name."""

    FORMS = "forms"
    HLIR = "hlir"
    FIELDS = "fields"
    EGRAPH = "egraph"
    KERNELS = "kernels"
    PLAN = "plan"


@dataclass(frozen=True, slots=True)
class Progress:
    """Item `done` of `total` of a stage is about to be worked on; `what` names it."""

    stage: Stage
    done: int
    total: int
    what: str


@dataclass(frozen=True, slots=True)
class Options:
    """What to compile and how.

    `config` gives keywords of the model over those that the checkpoint `weights` states.  With `packed`,
    weights that the checkpoint holds quantised stay so and are unpacked inside the kernels.  `packing` asks
    for that without a checkpoint: pairs of a pattern of keys and a block format, the last that fits counts.
    `bind` fixes dims; without `special` one variant serves all calls.  `families` are the rule families in
    use, less the rules and phases `without`; `barred` are templates that no kernel may have, but for the one
    that works for all.  `relaxed` are the precisions below its own that the target may compute in: tf32 in
    the place of f32.
    With `memory`, whatever plans hold at the largest dims fits so many bytes, else what is the device's.
    `splits` lets reductions over those axes of regions (see `--show fields`) run in so many chunks.
    With `embed`, the plan carries its kernels compiled for this machine.  Measurements are written to
    `record`, or taken from the record `replay`.  Results of searches are kept in the tuning database
    `database`, and taken from there.  `settings` bound each region's search (hints, ranges and
    splits are filled in here).  `progress` is told of every step, `report` of every gain of a search.
    """

    model: str | None = None
    config: Mapping[str, object] = field(default_factory=dict)
    weights: Path | None = None
    packed: bool = False
    packing: tuple[tuple[str, str], ...] = ()
    bind: Mapping[str, int] = field(default_factory=dict)
    special: bool = True
    families: tuple[str, ...] = ("exact", "relaxed")
    without: tuple[str, ...] = ()
    barred: tuple[str, ...] = ()
    relaxed: tuple[str, ...] = ()
    memory: int | None = None
    splits: Mapping[str, int] = field(default_factory=dict)
    embed: bool = False
    record: Path | None = None
    replay: Path | None = None
    database: Path | None = None
    settings: Settings = field(default_factory=Settings)
    target: str = "cpu"
    progress: Callable[[Progress], None] = lambda event: None
    report: Report = silent

    def backend(self) -> Target:
        """The backend of the target, under what the options allow."""
        return open_backend(self.target, "relaxed" not in self.families, self.relaxed, self.barred)


@dataclass(frozen=True, slots=True)
class Traced:
    """A variant on its way: the graph of the model with the box's dims bound, and its regions.

    `splits` are the (axis, chunk axis) pairs of regions that have some, by the region's key.
    """

    box: Box
    graph: Graph
    regions: tuple[Region, ...] = ()
    splits: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)

    def key(self, region: Region) -> str:
        """Equal for regions that may share kernels: the same terms, and their dims' ranges and hints."""
        dims = sorted(region.dims() & set(self.box.free))
        return f"{region.key} {self.box.at(dims)}"

    def hints(self, region: Region) -> tuple[dict[str, int], ...]:
        """The dims that a region is searched at: a call at them leaves none of its buffers."""
        return self.box.hints(room(region))


@dataclass(slots=True)
class Compilation:
    """Every stage's result, as far as it went; `seconds` holds the time of each stage that ran.

    `egraphs`, `found` and `rules`, the rewrites that fired with the number of their matches, are keyed by
    `Traced.key`.  Those `recalled` were found by another compilation and have no e-graph; `troubles` tell
    what was wrong with the tuning database.  `buckets` tells which variants are worth their kernels; the
    search leaves out the others.
    """

    options: Options
    module: Module | None = None
    packing: Mapping[str, str] = field(default_factory=dict)
    variants: tuple[Traced, ...] = ()
    egraphs: dict[str, EGraph] = field(default_factory=dict)
    found: dict[str, Found] = field(default_factory=dict)
    rules: dict[str, Mapping[str, int]] = field(default_factory=dict)
    recalled: set[str] = field(default_factory=set)
    troubles: tuple[str, ...] = ()
    buckets: tuple[Bucket, ...] = ()
    plan: Plan | None = None
    seconds: dict[Stage, float] = field(default_factory=dict)

    def distinct(self) -> dict[str, tuple[Traced, Region]]:
        """The regions to saturate and search, each once, in program order."""
        found: dict[str, tuple[Traced, Region]] = {}
        for variant in self.variants:
            for region in variant.regions:
                found.setdefault(variant.key(region), (variant, region))
        return found

    def settings(self, key: str) -> Settings:
        """What the search of a distinct region is told."""
        variant, region = self.distinct()[key]
        return replace(
            self.options.settings,
            hints=variant.hints(region),
            ranges=variant.box.free,
            splits=variant.splits.get(region.key, ()),
            memory=self.room(),
        )

    def held(self) -> Held:
        """What the model holds in memory whatever its kernels are.  Raises `LumiError` without a bound."""
        graph = self.variants[-1].graph
        return held(graph, self.variants[-1].box.ranges(graph.dims))

    def room(self) -> int:
        """Bytes for temporaries: what `memory` leaves, else what is usual, if the device has as much.

        Raises `LumiError` where `memory` leaves nothing.
        """
        if self.options.memory is None:
            return min(self.options.settings.memory, self.options.backend().memory)
        return self.held().room(self.options.memory, self.variants[-1].graph.name)

    def users(self, key: str) -> tuple[Traced, ...]:
        """The variants that hold the region of a key."""
        return tuple(v for v in self.variants if any(v.key(r) == key for r in v.regions))

    def unfinished(self) -> dict[str, EGraph]:
        """The e-graphs that a limit stopped, by the scope of their region."""
        found = ((region, self.egraphs.get(key)) for key, (_, region) in self.distinct().items())
        return {region.scope: e for region, e in found if e is not None and not e.saturated}

    def cut_short(self) -> tuple[list[str], list[str]]:
        """Regions whose search Ctrl-C stopped, and those that no search was made for after it.

        Each is named by its scope and, where variants differ, the first that runs it.
        """
        stopped, left = list[str](), list[str]()
        for key, (variant, region) in self.distinct().items():
            story = self.found[key].explanation if key in self.found else None
            name = region.scope if len(self.variants) == 1 else f"{region.scope} at {variant.box}"
            if story is not None and story.interrupted:
                stopped.append(name)
            elif story is not None and story.mode != self.options.settings.mode.value:
                left.append(name)
        return stopped, left

    def spent(self) -> dict[str, float]:
        """The seconds of the stages that ran by what they were spent on; they add up to those of the stages.

        `saturate` includes reading e-graphs out, `emit` all that makes a plan of kernels.  The search is what
        the model took, and what trials took: to compile, to check, to measure.
        """
        names = {Stage.FORMS: "read", Stage.HLIR: "trace", Stage.FIELDS: "lower", Stage.EGRAPH: "saturate"}
        found = {names[stage]: s for stage, s in self.seconds.items() if stage in names}
        if Stage.KERNELS in self.seconds:
            made = (f for key, f in self.found.items() if key not in self.recalled)
            effort = total(f.explanation.effort for f in made)
            trials = {
                "compile": effort.compile,
                "check": effort.reference + effort.check,
                "measure": effort.time,
            }
            found |= {"model": self.seconds[Stage.KERNELS] - sum(trials.values()), **trials}
        if Stage.PLAN in self.seconds:
            found["emit"] = self.seconds[Stage.PLAN]
        return found

    def counts(self) -> dict[str, int | float]:
        """The figures that a compile is judged by, of the stages that ran."""
        stories, plan = [f.explanation for f in self.found.values()], self.plan
        found: dict[str, int | float] = {}
        if Stage.HLIR in self.seconds:
            found["variants"] = len(self.variants)
        if Stage.FIELDS in self.seconds:
            found["regions"] = len(self.distinct())
        if Stage.EGRAPH in self.seconds:
            recalled = sum(self.found[key].explanation.enodes for key in self.recalled)
            found["enodes"] = recalled + sum(e.size for e in self.egraphs.values())
            found["saturate_s"] = self.seconds[Stage.EGRAPH]
        if Stage.KERNELS in self.seconds:
            found["evaluations"] = sum(s.evaluations for s in stories)
            found["trials"] = sum(
                f.explanation.trials for k, f in self.found.items() if k not in self.recalled
            )
            found["recalled"] = len(self.recalled)
            found["search_s"] = self.seconds[Stage.KERNELS]
        if plan is not None:
            found["kernels"] = len(plan.kernels)
            found["launches"] = sum(len(v.launches) for v in plan.variants)
            found["arena_bytes"] = max((v.arena for v in plan.variants), default=0)
        return {**found, "total_s": sum(self.seconds.values())}
