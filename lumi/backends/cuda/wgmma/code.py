"""A kernel under a schedule of this template as CUDA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lumi.backends.cuda import frame
from lumi.backends.cuda.mma.form import RefusalError
from lumi.backends.cuda.mma.recognise import recognise
from lumi.backends.cuda.tensormap import Box
from lumi.backends.cuda.wgmma.ahead import CascadeAhead, CascadeFeedAhead
from lumi.backends.cuda.wgmma.cascade import CascadeFeed, CascadeUse
from lumi.backends.cuda.wgmma.folded import FoldFeed, FoldUse
from lumi.backends.cuda.wgmma.plan import SHARES, GroupPlan, plan
from lumi.backends.cuda.wgmma.roles import Role
from lumi.backends.cuda.wgmma.sums import SumFeed, SumUse
from lumi.llir.kernel import Kernel, Step, buffers, dims


def write(kernel: Kernel, options: Mapping[str, int], name: str) -> tuple[str, GroupPlan]:
    """The function of a kernel, and its numbers.

    Raises `RefusalError` for what groups of warps do not compute.
    """
    made = plan(recognise(kernel), options)
    feed, use = _roles(made, name)
    return "\n".join([_role(feed, "feed"), _role(use, "use"), _function(use, made)]), made


def together(step: Step, options: Mapping[str, int], name: str) -> tuple[str, tuple[GroupPlan, ...]]:
    """The function of a step whose kernels share a launch, and their numbers.

    Stages go on from one kernel to the next.  Raises `RefusalError` for kernels that cannot share them.
    """
    found = tuple(plan(recognise(kernel), options) for kernel in step.kernels)
    reason = apart(found)
    if reason:
        raise RefusalError(reason)
    names, texts, calls, first = frame.names(step.buffers), list[str](), {"feed": "", "use": ""}, 0
    maps = shared_maps(step, found)
    for number, made in enumerate(found):
        kernel, own = made.form.program.kernel, f"{name}_{number}"
        seen = [f"map{maps.index(box)}" for box in _maps_of(step, made)]
        arguments = [*(names[b] for b in buffers(kernel)), f"dims + {first}", *seen]
        arguments += ["signals", "ring", "before"]
        for what, kind in (("feed", SumFeed), ("use", SumUse)):
            texts.append(_role(kind(made, own, names), what))
            calls[what] += f"    before = {own}_{what}({', '.join(arguments)});\n"
        first += len(dims(kernel))
    return "\n".join([*texts, _shared_function(step, names, found[0], name, calls, len(maps))]), found


def shared_maps(step: Step, found: Sequence[GroupPlan]) -> tuple[Box, ...]:
    """Every box of kernels that share a launch, each once."""
    return tuple(dict.fromkeys(box for made in found for box in _maps_of(step, made)))


def _maps_of(step: Step, made: GroupPlan) -> list[Box]:
    """The boxes of one of the kernels, by the buffers of the launch."""
    own = buffers(made.form.program.kernel)
    return [replace(box, buffer=step.buffers.index(own[box.buffer])) for box in made.maps]


def apart(found: Sequence[GroupPlan]) -> str:
    """Why kernels cannot share a launch; empty when they can."""
    if any(made.form.carried is not None for made in found):
        return "only sums run beside others"
    return "their stages differ" if len({made.stage for made in found}) > 1 else ""


def _shared_function(
    step: Step, names: Mapping[str, str], made: GroupPlan, name: str, calls: Mapping[str, str], maps: int
) -> str:
    """The kernel of several: each kind of threads goes from kernel to kernel with one ring of stages."""
    declared = [p.replace("*__restrict__", "*") for p in frame.declared(step.kernels, names)]
    given = ", ".join([*declared, *(f"const __grid_constant__ TensorMap map{n}" for n in range(maps))])
    feeds = ["    if (threadIdx.x >= 32) return;"] if made.bulk else []
    waits = [f"  {names[b]} = settled({names[b]});" for b in step.buffers]
    less, more = SHARES[made.groups]
    ring = f"    Ring<{made.stages}> ring(signals, 0, {made.stages});"
    return "\n".join(
        [
            f'extern "C" __global__ void __launch_bounds__({made.threads}, 1) {name}({given}) {{',
            *_opening(made, maps),
            *waits,
            "  u32 before = 0;",
            "  if (group_of_warps() == 0) {",
            f"    give_registers<{less}>();",
            *feeds,
            ring,
            calls["feed"] + "  } else {",
            f"    take_registers<{more}>();",
            ring,
            calls["use"] + "  }",
            "}",
            "",
        ]
    )


def _roles(made: GroupPlan, name: str) -> tuple[Role, Role]:
    """Those that copy and those that multiply."""
    if made.form.folded is not None:
        return FoldFeed(made, name), FoldUse(made, name)
    if made.form.cascade is None:
        return SumFeed(made, name), SumUse(made, name)
    if made.ahead:
        return CascadeFeedAhead(made, name), CascadeAhead(made, name)
    return CascadeFeed(made, name), CascadeUse(made, name)


def _role(role: Role, what: str) -> str:
    """The function of one kind of threads."""
    maps = [f"const TensorMap &map{n}" for n in range(len(role.plan.maps))]
    shared = [f"Ring<{role.plan.stages}> &ring", "const u32 before"] if role.beside else []
    parameters = ", ".join([*frame.parameters(role.kernel, role.w), *maps, "u32 signals", *shared])
    lines = [f"  {line}" for line in role.lines()]
    result = "u32" if role.beside else "void"
    return "\n".join([f"INLINE {result} {role.name}_{what}({parameters}) {{", *lines, "}"])


def _opening(made: GroupPlan, maps: int) -> list[str]:
    """What all threads do before their kinds part: open the signals of all stages, fetch maps, and wait."""
    aside = [f"  if (threadIdx.x == 0) signal_open(signals + {made.aside}, 1);"] if made.clears else []
    return [
        "  extern __shared__ __align__(1024) u8 pool[];",
        "  let_next_start();",
        "  const u32 signals = aligned_pool(pool);",
        f"  open_signals<{made.signalled}, {made.copiers}, {made.high}>(signals);",
        *aside,
        '  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");',
        "  __syncthreads();",
        *(f"  if (threadIdx.x == {n}) fetch_map(&map{n});" for n in range(maps)),
        "  wait_for_previous();",
    ]


def _function(use: Role, made: GroupPlan) -> str:
    """The kernel: all threads open the signals, then each does what its kind does."""
    kernel, w, name = use.kernel, use.w, use.name
    less, more = SHARES[made.groups]
    names = [f"map{n}" for n in range(len(made.maps))]
    given = ", ".join([frame.settled(kernel, w), *names, "signals"])
    parameters = [*frame.parameters(kernel, w), *(f"const __grid_constant__ TensorMap {n}" for n in names)]
    feeds = "threadIdx.x < 32" if made.bulk else "true"
    return "\n".join(
        [
            f'extern "C" __global__ void __launch_bounds__({made.threads}, 1) {name}'
            f"({', '.join(parameters)}) {{",
            *_opening(made, len(made.maps)),
            "  if (group_of_warps() == 0) {",
            f"    give_registers<{less}>();",
            f"    if ({feeds}) {name}_feed({given});",
            "  } else {",
            f"    take_registers<{more}>();",
            f"    {name}_use({given});",
            "  }",
            "}",
            "",
        ]
    )
