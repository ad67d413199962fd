"""What the GPU holds for a plan beside its weights, its states and its arena."""

from __future__ import annotations

from lumi.backends.cuda import gemm
from lumi.backends.cuda.cublas import WORKSPACE
from lumi.backends.cuda.mail import LARGEST
from lumi.plan.check import plan_error, size_in_bytes
from lumi.plan.plan import Plan, PlanKernel, Role


def beside(plan: Plan) -> dict[str, int]:
    """Bytes by what they are for.

    The code of kernels, graphs, and what the driver takes for itself are not among them: no one knows
    before they are there.  Raises `LumiError` for a kernel that no library computes, but should.
    """
    calls = [_call(kernel) for kernel in plan.kernels]
    rooms = [
        call.room({n: r.high for n, r in variant.dims.items()})
        for variant in plan.variants
        for call in (calls[launch.kernel] for launch in variant.launches)
        if call is not None
    ]
    small = [
        size
        for variant in plan.variants
        for size in (size_in_bytes(b, variant.dims) for b in variant.buffers if b.role is Role.INPUT)
        if size <= LARGEST
    ]
    found = {
        "inputs sent with a call": sum(small),
        "workspace of cuBLASLt": WORKSPACE if rooms else 0,
        "parts of f32 factors": max(rooms, default=0),
    }
    return {what: size for what, size in found.items() if size}


def _call(kernel: PlanKernel) -> gemm.Call | None:
    try:
        return gemm.call(kernel.step)
    except ValueError as error:
        raise plan_error(f"kernel {kernel.name} cannot run as scheduled: {error}") from None
