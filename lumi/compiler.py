"""The pipeline on one page: a model's text becomes a plan, stage by stage.

| stage | from → to | package |
|---|---|---|
| forms | text → definitions | `syntax`, `interpreter` |
| hlir | a model → one graph a variant | `interpreter` |
| fields | a graph → regions of field terms | `lower` |
| egraph | a region → all equal terms | `egraph` |
| kernels | an e-graph → the best kernels found | `search` |
| plan | kernels → buffers and launches | `bufferize` |

Equal regions are saturated and searched once, whichever layer or variant they come from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import cast

from lumi.backends.targets import compile_binary, open_backend
from lumi.bufferize import surface
from lumi.bufferize.bufferize import KernelTable, bufferize
from lumi.bufferize.call import Instance
from lumi.dim import DimRange
from lumi.egraph.graph import EGraph
from lumi.egraph.saturate import saturate
from lumi.errors import Source
from lumi.field.region import Region
from lumi.field.traverse import bound_axes
from lumi.hlir.graph import Graph
from lumi.interpreter.module import Module, load
from lumi.interpreter.trace import configuration, trace
from lumi.llir.json import Json, describe
from lumi.lower.lower import lower
from lumi.plan.box import Box, boxes
from lumi.plan.check import check
from lumi.plan.plan import Plan
from lumi.runtime.weights import open_weights
from lumi.search.explain import Report, silent
from lumi.search.record import measuring
from lumi.search.search import Found, search
from lumi.search.settings import Mode, Settings
from lumi.search.split import offer
from lumi.search.trial import Timings


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
    weights that the checkpoint holds quantised stay so and are unpacked inside the kernels.  `bind` fixes
    dims; without `special` one variant serves all calls.  `families` are the rule families in use.
    `splits` lets reductions over those axes of regions (see `--show fields`) run in so many chunks.
    With `embed`, the plan carries its kernels compiled for this machine.  Measurements are written to
    `record`, or taken from the record `replay`.  `settings` bound each region's search (hints, ranges and
    splits are filled in here).  `progress` is told of every step, `report` of every gain of a search.
    """

    model: str | None = None
    config: Mapping[str, object] = field(default_factory=dict)
    weights: Path | None = None
    packed: bool = False
    bind: Mapping[str, int] = field(default_factory=dict)
    special: bool = True
    families: tuple[str, ...] = ("exact", "relaxed")
    splits: Mapping[str, int] = field(default_factory=dict)
    embed: bool = False
    record: Path | None = None
    replay: Path | None = None
    settings: Settings = field(default_factory=Settings)
    target: str = "cpu"
    progress: Callable[[Progress], None] = lambda event: None
    report: Report = silent


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


@dataclass(slots=True)
class Compilation:
    """Every stage's result, as far as it went; `seconds` holds the time of each stage that ran.

    `egraphs` and `found` are keyed by `Traced.key`.
    """

    options: Options
    module: Module | None = None
    packing: Mapping[str, str] = field(default_factory=dict)
    variants: tuple[Traced, ...] = ()
    egraphs: dict[str, EGraph] = field(default_factory=dict)
    found: dict[str, Found] = field(default_factory=dict)
    plan: Plan | None = None
    seconds: dict[Stage, float] = field(default_factory=dict)

    def distinct(self) -> dict[str, tuple[Traced, Region]]:
        """The regions to saturate and search, each once, in program order."""
        found: dict[str, tuple[Traced, Region]] = {}
        for variant in self.variants:
            for region in variant.regions:
                found.setdefault(variant.key(region), (variant, region))
        return found

    def users(self, key: str) -> tuple[Traced, ...]:
        """The variants that hold the region of a key."""
        return tuple(v for v in self.variants if any(v.key(r) == key for r in v.regions))

    def unfinished(self) -> dict[str, EGraph]:
        """The e-graphs that a limit stopped, by the scope of their region."""
        found = ((region, self.egraphs.get(key)) for key, (_, region) in self.distinct().items())
        return {region.scope: e for region, e in found if e is not None and not e.saturated}

    def counts(self) -> dict[str, int | float]:
        """The figures that a compile is judged by, of the stages that ran."""
        stories, plan = [f.explanation for f in self.found.values()], self.plan
        found: dict[str, int | float] = {}
        if Stage.HLIR in self.seconds:
            found["variants"] = len(self.variants)
        if Stage.FIELDS in self.seconds:
            found["regions"] = len(self.distinct())
        if Stage.EGRAPH in self.seconds:
            found["enodes"] = sum(e.size for e in self.egraphs.values())
            found["saturate_s"] = self.seconds[Stage.EGRAPH]
        if Stage.KERNELS in self.seconds:
            found["evaluations"] = sum(s.evaluations for s in stories)
            found["trials"] = sum(s.trials for s in stories)
            found["search_s"] = self.seconds[Stage.KERNELS]
        if plan is not None:
            found["kernels"] = len(plan.kernels)
            found["launches"] = sum(len(v.launches) for v in plan.variants)
            found["arena_bytes"] = max((v.arena for v in plan.variants), default=0)
        return {**found, "total_s": sum(self.seconds.values())}


def compile_model(source: Source, options: Options | None = None, until: Stage = Stage.PLAN) -> Compilation:
    """Compile a model as far as stage `until`.  Raises `LumiError` for a mistake in the model."""
    work = Compilation(options or Options())
    with _clock(work, Stage.FORMS):
        _tell(work, Stage.FORMS, 0, 1, source.name)
        work.module = load(source)
    if until is not Stage.FORMS:
        with _clock(work, Stage.HLIR):
            _trace(work, work.module)
        _go_on(work, until)
    return work


def compile_graph(graph: Graph, options: Options | None = None, until: Stage = Stage.PLAN) -> Compilation:
    """Compile a graph, with its dims as they are, as far as stage `until`."""
    work = Compilation(options or Options(), variants=(Traced(Box({}, graph.dims), graph),))
    work.seconds = {Stage.FORMS: 0.0, Stage.HLIR: 0.0}
    _go_on(work, until)
    return work


def compile_plan(source: Source, options: Options | None = None) -> Plan:
    """The plan of a model."""
    plan = compile_model(source, options).plan
    assert plan is not None
    return plan


def _go_on(work: Compilation, until: Stage) -> None:
    """The stages behind the graph."""
    steps = {Stage.FIELDS: _lower, Stage.EGRAPH: _saturate, Stage.KERNELS: _search, Stage.PLAN: _bufferize}
    for stage, step in steps.items():
        if until in work.seconds:
            break
        with _clock(work, stage):
            step(work)


def _trace(work: Compilation, module: Module) -> None:
    options, config = work.options, dict(work.options.config)
    if options.weights is not None:
        checkpoint = open_weights(options.weights)
        known = configuration(module, options.model)
        config = {k: v for k, v in checkpoint.config().items() if k in known} | config
        work.packing = checkpoint.packings() if options.packed else {}

    def graph(bind: Mapping[str, int]) -> Graph:
        return trace(module, options.model, config=config, bind=bind, packing=work.packing)

    general = graph(options.bind)
    cases = boxes(general.dims, options.bind, options.special)
    for number, box in enumerate(cases):
        _tell(work, Stage.HLIR, number, len(cases), general.name)
        work.variants += (Traced(box, general if box.bind == options.bind else graph(box.bind)),)


def _lower(work: Compilation) -> None:
    lowered = []
    for number, variant in enumerate(work.variants):
        _tell(work, Stage.FIELDS, number, len(work.variants), variant.graph.name)
        split = [offer(r, _splits(work, variant, r)) for r in lower(variant.graph)]
        pairs = {region.key: found for region, found in split if found}
        lowered.append(replace(variant, regions=tuple(region for region, _ in split), splits=pairs))
    work.variants = tuple(lowered)


def _splits(work: Compilation, variant: Traced, region: Region) -> Mapping[str, int]:
    """The axes to split that a region reduces: those that are asked for, else those that suit the target."""
    if not work.options.splits:
        return open_backend(work.options.target).chunks(region, variant.box.hints())
    reduced = bound_axes([s.term for s in region.stores])
    return {axis: count for axis, count in work.options.splits.items() if axis in reduced}


def _saturate(work: Compilation) -> None:
    distinct = work.distinct()
    for number, (key, (variant, region)) in enumerate(distinct.items()):
        _tell(work, Stage.EGRAPH, number, len(distinct), region.scope)
        work.egraphs[key] = saturate(
            region,
            families=work.options.families,
            splits=variant.splits.get(region.key, ()),
            ranges=variant.box.free,
        )


def _search(work: Compilation) -> None:
    """The kernels of each region; after Ctrl-C the remaining regions take the first plan that works."""
    options, timings, distinct = work.options, Timings(), work.distinct()
    with measuring(open_backend(options.target), options.record, options.replay) as (backend, clock):
        for number, (key, (variant, region)) in enumerate(distinct.items()):
            _tell(work, Stage.KERNELS, number, len(distinct), region.scope)
            stopped = any(f.explanation.interrupted for f in work.found.values())
            settings = replace(
                options.settings,
                mode=Mode.NONE if stopped else options.settings.mode,
                hints=variant.box.hints(),
                ranges=variant.box.free,
                splits=variant.splits.get(region.key, ()),
            )
            egraph, report = work.egraphs[key], options.report
            work.found[key] = search(
                region, egraph, settings, backend, report=report, timings=timings, clock=clock
            )


def _bufferize(work: Compilation) -> None:
    backend = open_backend(work.options.target)
    graphs = [v.graph for v in work.variants]
    general = work.variants[-1]
    dims = {**{n: DimRange(n, v, v, (v,)) for n, v in general.box.bind.items()}, **general.graph.dims}
    kernels = KernelTable(backend.emit)
    variants = []
    for number, variant in enumerate(work.variants):
        _tell(work, Stage.PLAN, number, len(work.variants), variant.graph.name)
        instances = [Instance(r, work.found[variant.key(r)].graph) for r in variant.regions]
        ranges = variant.box.ranges(dims)
        variants.append(bufferize(variant.graph, instances, ranges, kernels, backend.schedules))
    work.plan = Plan(
        name=general.graph.name,
        target=work.options.target,
        dims=dims,
        inputs=surface.inputs(general.graph),
        outputs=surface.outputs(general.graph),
        states=surface.states(general.graph),
        bindings=surface.bindings(graphs, work.packing),
        kernels=kernels.kernels,
        variants=tuple(variants),
        explanation=_explanation(work, kernels),
    )
    check(work.plan)
    if work.options.embed:
        work.plan = replace(work.plan, binaries=(compile_binary(work.plan),))


def _explanation(work: Compilation, kernels: KernelTable) -> dict[str, Json]:
    """How the kernels of each distinct region were found.

    `names` are theirs in the plan, `variants` those that run them, `rules` the rewrites that fired with the
    number of their matches, the most first.
    """
    stories: list[Json] = []
    for key, (variant, _) in work.distinct().items():
        found = work.found[key]
        story: dict[str, Json] = {"bind": describe(variant.box.bind)}
        story["variants"] = [str(v.box) for v in work.users(key)]
        story["instances"] = sum(variant.key(r) == key for r in variant.regions)
        story["names"] = [kernels.name(step) for step in found.graph.steps]
        story["rules"] = {r.name: r.matches for r in work.egraphs[key].rewrites}
        stories.append(story | cast("dict[str, Json]", describe(found.explanation)))
    return {"regions": stories}


@contextmanager
def _clock(work: Compilation, stage: Stage) -> Iterator[None]:
    start = time.perf_counter()
    yield
    work.seconds[stage] = time.perf_counter() - start


def _tell(work: Compilation, stage: Stage, done: int, total: int, what: str) -> None:
    work.options.progress(Progress(stage, done, total, what))
