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

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import cast

from lumi import dim
from lumi.backends.targets import beside, compile_binary, open_backend
from lumi.bufferize import surface
from lumi.bufferize.bufferize import KernelTable, bufferize
from lumi.bufferize.call import Instance
from lumi.compilation import Compilation, Options, Progress, Stage, Traced
from lumi.crossings import merge
from lumi.dim import DimRange
from lumi.egraph.graph import EGraph
from lumi.egraph.saturate import saturate
from lumi.errors import LumiError, Source
from lumi.field.region import Region
from lumi.field.traverse import bound_axes
from lumi.hlir.graph import Graph
from lumi.interpreter.module import Module, load
from lumi.interpreter.packing import packings
from lumi.interpreter.trace import configuration, trace
from lumi.llir.json import Json, describe, encode
from lumi.lower.lower import lower
from lumi.plan.box import Box, boxes
from lumi.plan.check import check
from lumi.plan.memory import memory
from lumi.plan.plan import Plan
from lumi.runtime.weights import open_weights
from lumi.search.origin import Origin
from lumi.search.record import measuring
from lumi.search.search import search
from lumi.search.settings import Mode
from lumi.search.split import offer
from lumi.search.trial import Timings
from lumi.tuning import Tuning

__all__ = [
    "Compilation",
    "Options",
    "Progress",
    "Stage",
    "Traced",
    "compile_graph",
    "compile_model",
    "compile_plan",
]


COLLECTED = 200_000
"""Objects that a stage makes between two looks for garbage."""


def compile_model(source: Source, options: Options | None = None, until: Stage = Stage.PLAN) -> Compilation:
    """Compile a model as far as stage `until`.  Raises `LumiError` for a mistake in the model."""
    work = Compilation(options or Options())
    with _clock(work, Stage.FORMS):
        _tell(work, Stage.FORMS, 0, 1, source.name)
        work.module = load(source)
    if until is not Stage.FORMS:
        with _clock(work, Stage.HLIR), _few_collections():
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
    """The stages behind the graph; e-graphs that someone wants to see are made, whatever is known."""
    work.room()  # raises where there is none, before anything takes long
    tuning = Tuning(work, until in (Stage.KERNELS, Stage.PLAN))
    steps: dict[Stage, Callable[[Compilation], None]] = {
        Stage.FIELDS: _lower,
        Stage.EGRAPH: partial(_saturate, tuning=tuning),
        Stage.KERNELS: partial(_search, tuning=tuning),
        Stage.PLAN: _bufferize,
    }
    for stage, step in steps.items():
        if until in work.seconds:
            break
        with _clock(work, stage), _few_collections():
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

    if options.packing:
        work.packing = {**work.packing, **packings(graph(options.bind), options.packing)}
    general = graph(options.bind)
    cases = boxes(general.dims, options.bind, options.special)
    for number, box in enumerate(cases):
        _tell(work, Stage.HLIR, number, len(cases), general.name)
        work.variants += (Traced(box, general if box.bind == options.bind else graph(box.bind)),)


def _lower(work: Compilation) -> None:
    lowered, reduced = [], set[str]()
    for number, variant in enumerate(work.variants):
        _tell(work, Stage.FIELDS, number, len(work.variants), variant.graph.name)
        regions = lower(variant.graph)
        _check_lengths(work, variant, regions)
        reduced.update(axis for r in regions for axis in bound_axes([s.term for s in r.stores]))
        chunks = {key: _splits(work, variant, r) for key, r in {r.key: r for r in regions}.items()}
        split = [offer(r, chunks[r.key]) for r in regions]
        pairs = {region.key: found for region, found in split if found}
        lowered.append(replace(variant, regions=tuple(region for region, _ in split), splits=pairs))
    work.variants = tuple(lowered)
    for axis in work.options.splits.keys() - reduced:
        listed = ", ".join(sorted(reduced)) or "none"
        raise LumiError("search error", f"no region reduces an axis {axis}", hint=f"axes to split: {listed}")


def _check_lengths(work: Compilation, variant: Traced, regions: Sequence[Region]) -> None:
    """Raise `LumiError` where an axis may have more positions than the target counts."""
    longest, ranges = open_backend(work.options.target).longest, variant.box.free
    for region in regions:
        for axis in region.axes:
            length = dim.bounds(axis.extent, ranges)[1]
            if longest < length < math.inf:
                what = f"an axis of region {region.scope or '(all)'} may have {int(length)} positions"
                hint = f"{work.options.target} counts to {longest}: split the axis, or lower a dim's :max"
                raise LumiError("shape error", what, hint=hint)


def _splits(work: Compilation, variant: Traced, region: Region) -> Mapping[str, int]:
    """The axes to split that a region reduces: those that are asked for, else those that suit the target."""
    if not work.options.splits:
        return open_backend(work.options.target).chunks(region, variant.hints(region))
    reduced = bound_axes([s.term for s in region.stores])
    return {axis: count for axis, count in work.options.splits.items() if axis in reduced}


def _saturate(work: Compilation, tuning: Tuning) -> None:
    """The e-graph of each region whose kernels are not known from another compilation."""
    distinct = work.distinct()
    for number, (key, (_, region)) in enumerate(distinct.items()):
        _tell(work, Stage.EGRAPH, number, len(distinct), region.scope)
        if not tuning.recall(key, region):
            work.egraphs[key] = _saturated(work, key)


def _saturated(work: Compilation, key: str) -> EGraph:
    variant, region = work.distinct()[key]
    return saturate(
        region,
        families=work.options.families,
        without=work.options.without,
        splits=variant.splits.get(region.key, ()),
        ranges=variant.box.free,
    )


def _search(work: Compilation, tuning: Tuning) -> None:
    """The kernels of each region, and the variants that these are worth.

    After Ctrl-C the remaining regions take the first plan that works.
    """
    options, timings, distinct = work.options, Timings(), work.distinct()
    with measuring(options.backend(), options.record, options.replay) as (backend, clock):
        for number, (key, (_, region)) in enumerate(distinct.items()):
            _tell(work, Stage.KERNELS, number, len(distinct), region.scope)
            if key in work.recalled and tuning.is_right(key, region, backend):
                continue
            start = time.perf_counter()
            stopped = any(f.explanation.interrupted for f in work.found.values())
            settings = work.settings(key)
            settings = replace(settings, mode=Mode.NONE) if stopped else settings
            if key not in work.egraphs:
                work.egraphs[key] = _saturated(work, key)
            egraph = work.egraphs[key]
            work.found[key] = search(
                region, egraph, settings, backend, report=options.report, timings=timings, clock=clock
            )
            work.rules[key] = {r.name: r.matches for r in egraph.rewrites}
            tuning.keep(key, region, egraph, time.perf_counter() - start)
        work.troubles = tuning.troubles
        work.variants, work.buckets = merge(work, backend)


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
    _check_memory(work, work.plan)
    if work.options.embed:
        work.plan = replace(work.plan, binaries=(compile_binary(work.plan),))


def _check_memory(work: Compilation, plan: Plan) -> None:
    """Raise `LumiError` where a plan needs more memory than it may have.

    The room for temporaries is that of one region; what other regions leave for later lies beside them.
    """
    if work.options.memory is None:
        return
    needed = memory(plan, beside=beside(plan)).total
    if needed > work.options.memory:
        what = f"the plan of {plan.name} needs {needed} bytes, and may have {work.options.memory}"
        raise LumiError("memory error", what, hint="give more by --memory, or lower a dim's :max")


def _explanation(work: Compilation, kernels: KernelTable) -> dict[str, Json]:
    """How the kernels of each distinct region were found, and what of the options decides that.

    `variants` says what calls take in each variant and in the next one; `memory` how many bytes the plan may
    have, if that was said, what the model holds of them, and what is left for a region's temporaries.  Of a
    region, `names` are those of its kernels, `variants` those that run them, `rules` the rewrites that fired
    with the number of their matches, the most first; `origin` is what they come from.
    """
    stories: list[Json] = []
    for key, (variant, region) in work.distinct().items():
        found = work.found[key]
        story: dict[str, Json] = {"bind": describe(variant.box.bind)}
        story["variants"] = [str(v.box) for v in work.users(key)]
        story["instances"] = sum(variant.key(r) == key for r in variant.regions)
        story["names"] = [kernels.name(step) for step in found.graph.steps]
        story["rules"] = dict(work.rules[key])
        story["origin"] = encode(Origin.of(region, work.settings(key), found))
        stories.append(story | cast("dict[str, Json]", describe(found.explanation)))
    options, machine = work.options, work.options.backend().machine
    return {
        "families": list(options.families),
        "without": list(options.without),
        "barred": list(options.barred),
        "relaxed": list(options.relaxed),
        "machine": {"name": machine.name, "bandwidth": machine.bandwidth},
        "memory": {"given": options.memory, "held": work.held().total, "room": work.room()},
        "variants": describe(work.buckets),
        "regions": stories,
    }


@contextmanager
def _few_collections() -> Iterator[None]:
    """Look for garbage seldom: nearly all that a stage makes is kept, and to go through it takes long."""
    before = gc.get_threshold()
    gc.set_threshold(COLLECTED, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _clock(work: Compilation, stage: Stage) -> Iterator[None]:
    start = time.perf_counter()
    yield
    work.seconds[stage] = time.perf_counter() - start


def _tell(work: Compilation, stage: Stage, done: int, total: int, what: str) -> None:
    work.options.progress(Progress(stage, done, total, what))
