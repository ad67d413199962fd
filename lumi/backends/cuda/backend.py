"""An NVIDIA GPU's share of the search: schedules, estimates, measurements."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lumi.backends.cuda import compile as nvrtc
from lumi.backends.cuda import costs, gemm, price, schedule, splits
from lumi.backends.cuda import emit as code
from lumi.backends.cuda.driver import missing, open_driver
from lumi.backends.cuda.gpu import open_gpu
from lumi.backends.cuda.library import library_version
from lumi.backends.cuda.machine import MACHINE, MEMORY
from lumi.backends.cuda.measure import Measurer
from lumi.backends.cuda.mma.plan import ROUNDING
from lumi.errors import LumiError
from lumi.field.region import Region
from lumi.llir.kernel import Kernel, KernelGraph, Schedule, Statement, Step
from lumi.llir.product import Product
from lumi.search.model import Machine
from lumi.search.protocol import Cost, Failure, Timing


class CudaBackend:
    """What `lumi.search` asks of the GPU."""

    def __init__(self, exact: bool = False, tf32: bool = False, barred: Collection[str] = ()) -> None:
        """With `exact` no schedule rounds what a kernel does not, but for TF32 if `tf32` allows it.

        Templates in `barred` are left out, but for the one that works for all.
        """
        self._exact, self._tf32, self._barred = exact, tf32, frozenset(barred)
        self._measurer = Measurer()
        self._costs = costs.Costs()
        self._products: dict[int, tuple[tuple[Statement, ...], Product]] = {}
        self._schedules: dict[int, tuple[tuple[Statement, ...], Sequence[Schedule]]] = {}

    @property
    def name(self) -> str:
        """The GPU, its driver, the compiler and the library; without a GPU what plans are made for."""
        used = f"NVRTC {'.'.join(map(str, nvrtc.version()))}, cuBLASLt {library_version() or 'missing'}"
        try:
            gpu = open_gpu()
        except LumiError:
            return f"no GPU, {used}"
        return f"{gpu.name} ({gpu.arch}), driver {gpu.driver_version}, {used}"

    @property
    def machine(self) -> Machine:
        """The GPU that prices are those of."""
        return MACHINE

    @property
    def longest(self) -> int:
        """What 32 bits count, with room to step over the end; 64 bits would slow every kernel down."""
        return (1 << 31) - (1 << 20)

    @property
    def memory(self) -> int:
        """Bytes of the GPU at hand, else of the one that prices are those of."""
        return MEMORY if missing() else int(open_driver().Device(0).total_memory())

    @property
    def cells(self) -> int:
        """Two blocks for each multiprocessor."""
        return 2 * MACHINE.units

    @property
    def joins(self) -> bool:
        """Yes: a launch takes longer to start and to end than small kernels run."""
        return True

    @property
    def free(self) -> Collection[str]:
        """All templates but those whose blocks take cells of the grid as it is tiled."""
        return costs.FREE

    def chunks(self, region: Region, hints: Sequence[Mapping[str, int]]) -> Mapping[str, int]:
        """Into how many chunks reductions over axes of a region may be split."""
        return splits.chunks(region, hints)

    def emit(self, step: Step, name: str) -> str:
        """The CUDA function of a step, for reading, and what it leaves to a library."""
        call = gemm.text(step, name) if step.schedule.template == gemm.TEMPLATE else ""
        return call + code.emit(step, name).text

    def default(self, kernel: Kernel) -> Step:
        """A kernel under the schedule that works for every kernel."""
        return Step(kernel, schedule.DEFAULT)

    def schedules(self, kernel: Kernel) -> Sequence[Schedule]:
        """Every schedule of a kernel, the one that always works first."""
        return self._known(kernel)

    def together(self, kernels: Sequence[Kernel]) -> Sequence[Schedule]:
        """Every schedule under which one launch can run kernels that do not depend on each other."""
        return schedule.together(kernels, self._known)

    def in_turn(self, steps: Sequence[Step]) -> Step | None:
        """One launch in which steps take turns, each waiting for those before; None where they cannot."""
        return schedule.in_turn(steps)

    def _known(self, kernel: Kernel) -> Sequence[Schedule]:
        """The schedules of a kernel; the same for all tiles of one tile program."""
        known = self._schedules.get(id(kernel.body))
        if known is None or known[0] is not kernel.body:
            first, *others = schedule.schedules(kernel, self._tf32)
            kept = [first, *(s for s in others if self._allows(kernel, s))]
            known = self._schedules[id(kernel.body)] = kernel.body, kept
        return known[1]

    def _allows(self, kernel: Kernel, schedule: Schedule) -> bool:
        """Whether a schedule is none of those that are left out."""
        return schedule.template not in self._barred and not (self._exact and self._rounds(kernel, schedule))

    def _rounds(self, kernel: Kernel, schedule: Schedule) -> bool:
        """Whether a schedule rounds otherwise than the kernel: the library has its own way to TF32."""
        if schedule.template == gemm.TEMPLATE:
            return any(self._product(kernel).rounded)
        return ROUNDING in schedule.options

    def cost_together(self, kernels: Sequence[Kernel], schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        """The analytic estimate of one launch of them."""
        return self._costs.together(kernels, schedule, dims)

    def cost_in_turn(self, steps: Sequence[Step], dims: Mapping[str, int]) -> Cost:
        """The analytic estimate of one launch in which they take turns."""
        return self._costs.in_turn(steps, dims)

    def cost(self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        """The analytic estimate of one run."""
        if schedule.template != gemm.TEMPLATE:
            return self._costs.cost(kernel, schedule, dims)
        return price.cost(self._product(kernel), schedule, dims, MACHINE)

    def _product(self, kernel: Kernel) -> Product:
        """The product that a kernel is; the same for all tiles of one tile program."""
        known = self._products.get(id(kernel.body))
        if known is None or known[0] is not kernel.body:
            found = gemm.find(kernel)
            assert found is not None, "only products have this schedule"
            known = self._products[id(kernel.body)] = kernel.body, found
        return known[1]

    def prepare(self, steps: Sequence[Step]) -> None:
        """Begin to compile what may be measured soon, in processes of its own."""
        self._measurer.prepare(steps, open_gpu().arch)

    def measure(self, region: Region, graph: KernelGraph, dims: Mapping[str, int]) -> Timing | Failure:
        """Compile and run a graph on seeded random data; its times, if its results are right."""
        return self._measurer.measure(region, graph, dims, open_gpu().arch)
