"""A plan as text for people: s-expressions with buffers by name, sizes in bytes, kernels by name.

The text shows everything but the kernels' programs and the bytes of binaries; the file reads back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lumi.dim import DimRange
from lumi.llir.kernel import Step, accesses
from lumi.plan.box import spelled
from lumi.plan.check import lifetimes, size_in_bytes
from lumi.plan.plan import Binding, Buffer, Launch, Plan, PlanKernel, Role, Signature, Variant


def show(plan: Plan) -> str:
    """The whole plan."""
    lines = [f"(plan {plan.name} :target {plan.target}"]
    lines += [f"  {_range(r)}" for r in plan.dims.values()]
    lines += [f"  (input {_signature(s)})" for s in plan.inputs]
    lines += [f"  (param {_binding(b)})" for b in plan.bindings]
    lines += [f"  (state {_signature(s)})" for s in plan.states]
    lines += [f"  (output {_signature(s)})" for s in plan.outputs]
    lines += [f"  {_kernel(k)}" for k in plan.kernels]
    for variant in plan.variants:
        lines += [f"  {line}" for line in _variant(plan, variant)]
    lines += [f"  (binary {b.tag} :bytes {len(b.content)})" for b in plan.binaries]
    return "\n".join(lines) + ")\n"


def kernel_head(plan: Plan, number: int) -> str:
    """What a kernel is called, its schedule, and the variants that launch it, where the plan has several.

    `k0_mlp: stream :ahead 8192 :unroll 2; batch = 1`.
    """
    kernel = plan.kernels[number]
    users = [v for v in plan.variants if any(launch.kernel == number for launch in v.launches)]
    labels = [spelled(v.dims.values()) for v in users] if len(plan.variants) > 1 else []
    return "; ".join([f"{kernel.name}: {show_schedule(kernel.step)}", *labels])


def _range(r: DimRange) -> str:
    hints = " ".join(map(str, r.hints))
    return f"(dim {r.name} :min {r.low} :max {r.high} :hint [{hints}])"


def _signature(s: Signature) -> str:
    limit = "" if s.most is None else f" :max {s.most}"
    return f'"{s.name}" {s.dtype} [{" ".join(map(str, s.shape))}]{limit}'


def _binding(b: Binding) -> str:
    parts = [f'"{b.param}" {b.dtype} [{" ".join(map(str, b.shape))}]']
    if b.format is not None:
        parts.append(f':from "{b.key}" :format {b.format} :plane {b.plane}')
    if b.init is not None:
        parts.append(f":init {b.init:g}")
    return " ".join(parts)


def _kernel(k: PlanKernel) -> str:
    return f'(kernel {k.name} :scope "{k.scope}" :template {show_schedule(k.step)})'


def show_schedule(step: Step) -> str:
    """`stream :ahead 8192 :unroll 2`, and where a launch runs several kernels, `:together` how many.

    What comes in turn stands behind `then`.
    """
    return " then ".join(map(_turn, step.turns))


def _turn(step: Step) -> str:
    options = (*step.schedule.options, *([("together", len(step.kernels))] if step.beside else []))
    return step.schedule.template + "".join(f" :{name} {value}" for name, value in options)


def _variant(plan: Plan, variant: Variant) -> Iterator[str]:
    fixed = " ".join(_range(r) for r in variant.dims.values())
    yield f"(variant {fixed}".rstrip() if fixed else "(variant"
    yield f"  :arena {variant.arena} :peak {variant.peak}"
    for need in variant.needs:
        yield f'  (need {need.gap} "{need.what}")'
    spans = lifetimes(variant)
    for number, buffer in enumerate(variant.buffers):
        if buffer.role.in_arena:
            yield f"  {_buffer(buffer, size_in_bytes(buffer, variant.dims), spans.get(number, (0, 0)))}"
    for time, launch in enumerate(variant.launches):
        yield f"  {_launch(plan, variant, launch)} ; {time}"
    returns = " ".join(f'"{name}" {_name(variant.buffers, n)}' for name, n in variant.outputs.items())
    yield f"  (return {returns}))"


def _buffer(b: Buffer, size: int, span: tuple[int, int]) -> str:
    shape = " ".join(map(str, b.shape))
    name = f'"{b.name}"' if b.role is Role.INPUT else b.name
    live = f":live [{span[0]} {span[1]}]"
    return f"({b.role.value} {name} {b.dtype} [{shape}] :at {b.offset} :bytes {size} {live})"


def _launch(plan: Plan, variant: Variant, launch: Launch) -> str:
    """Reads before the arrow, writes behind it; what is updated in place stands on both sides."""
    kernel = plan.kernels[launch.kernel]
    formal, written = kernel.step.buffers, kernel.step.written
    reads = [n for b, n in zip(formal, launch.buffers, strict=True) if b in _read(kernel)]
    writes = [n for b, n in zip(formal, launch.buffers, strict=True) if b in written]
    arguments = " ".join(_name(variant.buffers, n) for n in reads)
    results = " ".join(_name(variant.buffers, n) for n in writes)
    return f"({' '.join(x for x in (kernel.name, arguments) if x)} -> {results})"


def _read(kernel: PlanKernel) -> frozenset[str]:
    return frozenset(a.buffer for k in kernel.step.kernels for a, writes in accesses(k) if not writes)


def _name(buffers: Sequence[Buffer], number: int) -> str:
    name = buffers[number].name
    return name if name.startswith("%") else f'"{name}"'
