"""What each stage of a compilation made, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lumi.compiler import Compilation, Stage, Traced
from lumi.dim import DimRange
from lumi.interpreter.value import Function


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
    """What the module defines: how each thing is called, without its body."""
    from lumi.interpreter.value import written

    assert work.module is not None
    lines = [f"(defdim {_range(r)})" for r in work.module.dims.values()]
    for name, value in work.module.scope.names.items():
        if isinstance(value, Function):
            lines.append(f"({_DEFINES[value.kind.value]} {name} {_parameters(value)})")
        elif name not in work.module.dims:
            lines.append(f"(def {name} {written(value)})")
    return "\n".join(lines)


_DEFINES = {"function": "defn", "layer": "deflayer", "model": "defmodel", "macro": "defmacro"}


def _range(r: DimRange) -> str:
    hints = f" :hint [{' '.join(map(str, r.hints))}]" if r.hints else ""
    return f"{r.name} :min {r.low} :max {r.high}{hints}"


def _parameters(function: Function) -> str:
    """The parameters as they are written, inputs of a model with dtype and shape."""
    from lumi.syntax import printer

    typed = [f"({i.name.name} {printer.show(i.dtype)} {printer.show(i.shape)})" for i in function.inputs]
    if not typed:
        return str(function.signature)
    keywords = [f":{k} {printer.show(v)}" for k, v in function.signature.keywords.items()]
    return f"[{' '.join([*typed, *keywords])}]"


def _graphs(work: Compilation) -> Iterator[str]:
    from lumi.hlir import text

    for variant in work.variants:
        yield f"{_comment(_labels(work, [variant]))}{text.show(variant.graph)}"


def _regions(work: Compilation) -> Iterator[str]:
    from lumi.field import text

    for key, (_, region) in work.distinct().items():
        yield f"{_head(work, key)}{text.show(region)}"


def _egraphs(work: Compilation) -> Iterator[str]:
    from lumi.egraph.dump import canonical

    for key, (_, region) in work.distinct().items():
        egraph = work.egraphs[key]
        yield f"{_head(work, key, f'{region.scope}: {egraph.size} e-nodes')}{canonical(egraph)}"


def _kernels(work: Compilation) -> Iterator[str]:
    """The kernels of the plan by name; before there is a plan, those of each region."""
    from lumi.llir import text
    from lumi.plan.text import kernel_head, show_schedule

    if work.plan is not None:
        for number, made in enumerate(work.plan.kernels):
            yield f";;; {kernel_head(work.plan, number)}\n{text.show_step(made.step)}"
        return
    for key, (_, region) in work.distinct().items():
        for step in work.found[key].graph.steps:
            head = _head(work, key, f"{region.scope}: {show_schedule(step)}")
            yield f"{head}{text.show_step(step)}"


def _head(work: Compilation, key: str, *what: str) -> str:
    """A comment that says what of a region follows, and for which variants."""
    return _comment([*what, *_labels(work, work.users(key))])


def _comment(parts: Sequence[str]) -> str:
    return f";;; {'; '.join(parts)}\n" if parts else ""


def _labels(work: Compilation, variants: Sequence[Traced]) -> list[str]:
    """Which calls variants are for; none where there is only one variant."""
    return [str(v.box) for v in variants] if len(work.variants) > 1 else []
