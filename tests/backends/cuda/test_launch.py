"""Which graphs a variant has, and what stands in them: with a GPU and a library that only take notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from lumi import dim
from lumi.backends.cuda import launch
from lumi.backends.cuda.cublas import Algorithm, Matmul, Pointers
from lumi.backends.cuda.emit import Code
from lumi.backends.cuda.gemm import call
from lumi.backends.cuda.launch import Entry, Launches, Loaded
from lumi.errors import LumiError
from lumi.llir.kernel import Kernel, Schedule, Step
from tests.llir.products import Spec

PRODUCT = Spec({"m": dim.var("seq"), "n": 16, "k": 32}).kernel


class Noted:
    """A graph: what was put on the stream while it was captured."""

    def __init__(self, work: list[Any], replayed: list[list[Any]]) -> None:
        self.work, self.replayed = work, replayed

    def replay(self, pieces: Sequence[Any]) -> None:
        self.replayed.append(self.work)


class Gpu:
    units, starts_early = 4, True

    def __init__(self) -> None:
        self.stream: list[Any] = []
        self.graphs: list[Noted] = []
        self.replayed: list[list[Any]] = []

    def allocate(self, size: int) -> int:
        return 1 << 30

    def wait(self) -> None:
        pass

    def launch(self, function: str, *arguments: Any) -> None:
        self.stream.append((function, "early" if arguments[4] else "after"))

    def enqueue(self, work: Callable[[], None], pieces: Sequence[Any]) -> None:
        work()
        self.replayed.append(self.stream)
        self.stream = []

    def capture(self, work: Callable[[], None]) -> Noted:
        work()
        self.graphs.append(Noted(self.stream, self.replayed))
        self.stream = []
        return self.graphs[-1]


class Library:
    def __init__(self, gpu: Gpu, most: int = 1 << 30) -> None:
        self.gpu, self.most = gpu, most

    def algorithms(self, matmul: Matmul, pointers: Pointers) -> tuple[Algorithm, ...]:
        return (Algorithm(1, b""),) if matmul.d.columns <= self.most else ()

    def put(self, matmul: Matmul, pointers: Pointers, algorithm: Algorithm) -> None:
        self.gpu.stream.append(("library", matmul.d.columns))


@pytest.fixture
def gpu() -> Gpu:
    return Gpu()


def entries(kinds: Sequence[str], names: tuple[str, ...]) -> list[Entry]:
    found = call(Step(PRODUCT, Schedule("cublaslt")))
    code = Code("", 32, 0, ())
    return [
        Entry(
            Loaded(code, names, kind, found if kind == "product" else None),  # type: ignore[arg-type]
            (256, 512, 1024),
            1,
        )
        for kind in kinds
    ]


def launches(
    gpu: Gpu, library: Library | None, monkeypatch: pytest.MonkeyPatch, kinds: Sequence[str]
) -> Launches:
    monkeypatch.setattr(launch, "open_library", lambda gpu: library)
    return Launches(gpu, entries(kinds, ("past", "seq")))  # type: ignore[arg-type]


def run(work: Launches, *dims: Mapping[str, int]) -> None:
    for values in dims:
        work.run(values)


def test_graph_of_kernels_alone_is_captured_once(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    work = launches(gpu, Library(gpu), monkeypatch, ["a", "b"])
    run(work, {"seq": 1, "past": 0}, {"seq": 2, "past": 1})
    assert gpu.replayed == [[("a", "after"), ("b", "early")]] * 2
    assert len(gpu.graphs) == 1


def test_products_run_at_every_size(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    work = launches(gpu, Library(gpu), monkeypatch, ["a", "product", "b", "c"])
    run(work, {"seq": 4, "past": 0}, {"seq": 5, "past": 0}, {"seq": 4, "past": 9}, {"seq": 4, "past": 9})
    kernels = [("b", "after"), ("c", "early")]
    assert gpu.replayed == [[("a", "after"), ("library", n), *kernels] for n in (4, 5, 4, 4)]


def test_size_is_captured_when_it_is_met_again(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    work = launches(gpu, Library(gpu), monkeypatch, ["product"])
    graphs = []
    for seq in (4, 4, 4, 5, 5):
        run(work, {"seq": seq, "past": 0})
        graphs.append(len(gpu.graphs))
    assert graphs == [0, 1, 1, 1, 2]


def test_dims_that_no_product_depends_on_take_no_new_graph(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    work = launches(gpu, Library(gpu), monkeypatch, ["product"])
    run(work, *({"seq": 4, "past": past} for past in range(50)))
    assert len(gpu.graphs) == 1


def test_graphs_used_longest_ago_are_let_go(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    work = launches(gpu, Library(gpu), monkeypatch, ["product"])
    sizes = range(1, launch.FAMILIES + 2)
    run(work, *({"seq": seq, "past": 0} for seq in (*sizes, *sizes[:-1], 1, sizes[-1])))
    assert len(gpu.graphs) == launch.FAMILIES + 1
    run(work, {"seq": 1, "past": 0})
    assert len(gpu.graphs) == launch.FAMILIES + 1
    run(work, {"seq": 2, "past": 0})
    assert len(gpu.graphs) == launch.FAMILIES + 2


class Counting(Gpu):
    """Notes the blocks of each launch."""

    def launch(self, function: str, *arguments: Any) -> None:
        self.stream.append((function, arguments[0]))


ROWS = dim.var("seq"), 4
"""The extent of a grid, and its tile."""


def spread(code: Code, call: Any, most: int) -> Entry:
    """A launch with at most so many cells."""
    return Entry(Loaded(code, ("past", "seq"), "a", call), (256, 512, 1024), most)  # type: ignore[arg-type]


def test_blocks_of_large_grids_follow_the_dims_by_powers_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Counting()
    monkeypatch.setattr(launch, "open_library", lambda gpu: None)
    work = Launches(gpu, [spread(Code("", 32, 0, (ROWS, (10, 1)), 4096), None, 3000)])  # type: ignore[arg-type]
    assert not gpu.graphs
    run(work, *({"seq": seq, "past": seq} for seq in (0, 1, 5, 8, 9, 1000, 1200, 7)))
    assert gpu.replayed == [[("a", n)] for n in (1, 10, 20, 20, 40, 2560, 3000, 20)]
    assert len(gpu.graphs) == 6


PAST = dim.var("past"), 4


def test_graphs_for_dims_that_grow_are_made_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first call on no value of `past` takes a new graph, and equal grids share one."""
    gpu = Counting()
    monkeypatch.setattr(launch, "open_library", lambda gpu: None)
    entry = replace(spread(Code("", 32, 0, (ROWS, PAST), 4096), None, 3000), largest={"past": 900, "seq": 64})
    work = Launches(gpu, [entry], None, {"past"})  # type: ignore[arg-type]
    assert not gpu.graphs
    run(work, {"seq": 30, "past": 0})
    (first,) = work._families.values()
    assert len(gpu.graphs) == len({id(g) for g in first.values()}) == 10 < len(first) == 12
    run(work, *({"seq": 30, "past": past} for past in range(1, 901)))
    assert len(gpu.graphs) == 10
    assert gpu.replayed[17::64] == [
        [("a", 8 * -(-(1 << (p - 1).bit_length()) // 4))] for p in range(17, 901, 64)
    ]


def test_graphs_of_dims_that_grow_alone_are_there_before_the_first_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = Counting()
    monkeypatch.setattr(launch, "open_library", lambda gpu: None)
    entry = replace(spread(Code("", 32, 0, (PAST,), 4096), None, 3000), largest={"past": 900})
    work = Launches(gpu, [entry] * 2, None, {"past"})  # type: ignore[arg-type]
    made = len(gpu.graphs)
    run(work, *({"seq": 1, "past": past} for past in range(901)))
    assert len(gpu.graphs) == made > 1


def test_families_used_longest_ago_make_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Counting()
    monkeypatch.setattr(launch, "open_library", lambda gpu: None)
    entry = replace(spread(Code("", 32, 0, (ROWS, PAST), 4096), None, 3000), largest={"past": 900, "seq": 64})
    work = Launches(gpu, [entry], None, {"past"})  # type: ignore[arg-type]
    lengths = [1 << k for k in range(9)]
    run(work, *({"seq": seq, "past": 3} for seq in lengths))
    kept = [key for (key,) in work._families]
    assert kept == lengths[-len(kept) :] != lengths
    count = sum(map(launch._count, work._families.values()))
    assert launch.GRAPHS / 2 < count <= launch.GRAPHS < len(gpu.graphs)


def test_graphs_for_too_many_values_are_made_when_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Counting()
    monkeypatch.setattr(launch, "open_library", lambda gpu: None)
    entry = replace(
        spread(Code("", 32, 0, (ROWS, PAST), 4096), None, 3000), largest={"past": 900, "seq": 900}
    )
    work = Launches(gpu, [entry], None, {"past", "seq"})  # type: ignore[arg-type]
    run(work, {"seq": 5, "past": 7}, {"seq": 5, "past": 8}, {"seq": 5, "past": 9})
    assert len(gpu.graphs) == 2


def test_blocks_follow_the_sizes_of_products_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Counting()
    monkeypatch.setattr(launch, "open_library", lambda _: Library(gpu))
    product = call(Step(PRODUCT, Schedule("cublaslt")))
    entries = [spread(Code("", 32, 0, ()), product, 1), spread(Code("", 32, 0, (ROWS,)), None, 512)]
    work = Launches(gpu, entries)  # type: ignore[arg-type]
    run(work, *({"seq": 97, "past": past} for past in range(3)))
    assert gpu.replayed == [[("library", 97), ("a", 25)]] * 3
    assert len(gpu.graphs) == 1


@pytest.mark.parametrize("resident", [1, launch.CROWD])
def test_blocks_that_run_at_once_are_launched_at_any_dims(
    monkeypatch: pytest.MonkeyPatch, resident: int
) -> None:
    gpu = Counting()
    work = Launches(gpu, [spread(Code("", 32, 0, (ROWS,), resident), None, 512)])  # type: ignore[arg-type]
    run(work, {"seq": 1, "past": 0}, {"seq": 100, "past": 0})
    assert gpu.replayed == [[("a", gpu.units * resident)]] * 2
    assert len(gpu.graphs) == 1


@pytest.mark.parametrize("most", [None, 4])
def test_kernel_runs_what_the_library_does_not(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch, most: int | None
) -> None:
    library = None if most is None else Library(gpu, most)
    work = launches(gpu, library, monkeypatch, ["product", "b"])
    run(work, {"seq": 5, "past": 0}, {"seq": 0, "past": 0})
    assert gpu.replayed == [[("product", "after"), ("b", "early")]] * 2
    assert len(gpu.graphs) == (1 if library is None else 0)


@pytest.mark.parametrize(
    ("template", "beside", "message"),
    [
        ("walk", (PRODUCT,), "cannot run as walk: kernels run together as walk"),
        ("ring", (), "cannot run as ring: .* is scheduled as one"),
    ],
)
def test_schedule_that_does_not_suit_its_kernels_is_a_plan_error(
    template: str, beside: tuple[Kernel, ...], message: str
) -> None:
    gpu: Any = Gpu()
    gpu.room = 1 << 20
    with pytest.raises(LumiError, match=message):
        launch.load_kernels(gpu, [Step(PRODUCT, Schedule(template), beside)])
