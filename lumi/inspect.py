"""What each stage of a compilation made, as text."""

from __future__ import annotations

from collections.abc import Iterator

from lumi.compiler import Compilation, Stage


def show(work: Compilation, stage: Stage) -> str:
    """The result of `stage`, which the compilation has reached: s-expressions with comments between them."""
    return "\n\n".join(part.strip() for part in _parts(work, stage)) + "\n"


def _parts(work: Compilation, stage: Stage) -> Iterator[str]:
    match stage:
        case Stage.FORMS:
            yield _forms(work)
        case Stage.HLIR:
            yield from _graphs(work)
        case Stage.FIELDS:
            yield from _regions(work)
        case Stage.EGRAPH:
            yield from _egraphs(work)
        case Stage.KERNELS:
            yield from _kernels(work)
        case Stage.PLAN:
            from lumi.plan import text

            assert work.plan is not None
            yield text.show(work.plan)


def _forms(work: Compilation) -> str:
    """What the module defines: how each thing is called."""
    from lumi.interpreter.value import Function, written

    assert work.module is not None
    lines = [f"(dim {r.name} :min {r.low} :max {r.high})" for r in work.module.dims.values()]
    for name, value in work.module.scope.names.items():
        if isinstance(value, Function):
            lines.append(f"({value.kind.value} {name} {value.signature})")
        elif name not in work.module.dims:
            lines.append(f"(def {name} {written(value)})")
    return "\n".join(lines)


def _graphs(work: Compilation) -> Iterator[str]:
    from lumi.hlir import text

    for variant in work.variants:
        bound = ", ".join(f"{name} = {value}" for name, value in variant.box.bind.items())
        yield (f";;; {bound}\n" if bound else "") + text.show(variant.graph)


def _regions(work: Compilation) -> Iterator[str]:
    from lumi.field import text

    for _, region in work.distinct().values():
        yield text.show(region)


def _egraphs(work: Compilation) -> Iterator[str]:
    from lumi.egraph.dump import canonical

    for key, (_, region) in work.distinct().items():
        egraph = work.egraphs[key]
        yield f";;; {region.scope}: {egraph.size} e-nodes\n{canonical(egraph)}"


def _kernels(work: Compilation) -> Iterator[str]:
    from lumi.llir import text

    for key, (_, region) in work.distinct().items():
        for step in work.found[key].graph.steps:
            yield f";;; {region.scope}\n{text.show(step.kernel)}"
