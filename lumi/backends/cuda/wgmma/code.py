"""A kernel under a schedule of this template as CUDA."""

from __future__ import annotations

from collections.abc import Mapping

from lumi.backends.cuda import frame
from lumi.backends.cuda.mma.recognise import recognise
from lumi.backends.cuda.wgmma.ahead import CascadeAhead, CascadeFeedAhead
from lumi.backends.cuda.wgmma.cascade import CascadeFeed, CascadeUse
from lumi.backends.cuda.wgmma.plan import GROUP, SHARES, GroupPlan, plan
from lumi.backends.cuda.wgmma.roles import Role
from lumi.backends.cuda.wgmma.sums import SumFeed, SumUse
from lumi.llir.kernel import Kernel


def write(kernel: Kernel, options: Mapping[str, int], name: str) -> tuple[str, GroupPlan]:
    """The function of a kernel, and its numbers.

    Raises `RefusalError` for what groups of warps do not compute.
    """
    made = plan(recognise(kernel), options)
    feed, use = _roles(made, name)
    return "\n".join([_role(feed, "feed"), _role(use, "use"), _function(use, made)]), made


def _roles(made: GroupPlan, name: str) -> tuple[Role, Role]:
    """Those that copy and those that multiply."""
    if made.form.cascade is None:
        return SumFeed(made, name), SumUse(made, name)
    if made.ahead:
        return CascadeFeedAhead(made, name), CascadeAhead(made, name)
    return CascadeFeed(made, name), CascadeUse(made, name)


def _role(role: Role, what: str) -> str:
    """The function of one kind of threads."""
    maps = [f"const TensorMap &map{n}" for n in range(len(role.plan.maps))]
    parameters = ", ".join([*frame.parameters(role.kernel, role.w), *maps, "u32 signals"])
    lines = [f"  {line}" for line in role.lines()]
    return "\n".join([f"INLINE void {role.name}_{what}({parameters}) {{", *lines, "}"])


def _function(use: Role, made: GroupPlan) -> str:
    """The kernel: all threads open the signals, then each does what its kind does."""
    kernel, w, name = use.kernel, use.w, use.name
    stages = made.stages if made.form.cascade is None else made.cells_kept + 2 * made.stages
    less, more = SHARES[made.groups]
    names = [f"map{n}" for n in range(len(made.maps))]
    given = ", ".join([frame.settled(kernel, w), *names, "signals"])
    parameters = [*frame.parameters(kernel, w), *(f"const __grid_constant__ TensorMap {n}" for n in names)]
    feeds = "threadIdx.x < 32" if made.bulk else "true"
    return "\n".join(
        [
            f'extern "C" __global__ void __launch_bounds__({made.threads}, 1) {name}'
            f"({', '.join(parameters)}) {{",
            "  extern __shared__ __align__(1024) u8 pool[];",
            "  let_next_start();",
            "  const u32 signals = aligned_pool(pool);",
            f"  open_signals<{stages}, {made.copiers}, {made.high}>(signals);",
            '  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");',
            "  __syncthreads();",
            "  wait_for_previous();",
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


__all__ = ["GROUP", "write"]
