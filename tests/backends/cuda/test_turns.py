"""Kernels that take turns in one launch: their code, what is refused, and that they are right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from lumi import paths
from lumi.backends.cuda import costs
from lumi.backends.cuda.compile import Cubin, compile_cubins
from lumi.backends.cuda.emit import emit, source
from lumi.backends.cuda.gpu import open_gpu
from lumi.backends.cuda.launch import Entry, Launches, Loaded, load_kernels
from lumi.backends.cuda.schedule import DEFAULT, in_turn
from lumi.backends.cuda.staged import ROOM
from lumi.compiler import Options, compile_plan
from lumi.errors import Source
from lumi.llir.kernel import Schedule, Step
from lumi.runtime.session import Session
from tests.backends.cpu.kernels import Array
from tests.backends.cuda.kernels import read
from tests.backends.cuda.turns import CHAINS, RING, STREAM, arrays_of, chain, product

# -- their code


def test_launch_waits_between_turns(golden: Callable[..., None]) -> None:
    golden(emit(CHAINS["both"], "both").text, ".cu", name="both")


def test_rings_of_turns_compile_without_spills() -> None:
    codes = [emit(step, "kernel") for step in CHAINS.values()]
    for code, cubin in zip(codes, compile_cubins([source([c.text]) for c in codes], "sm_90a"), strict=True):
        assert isinstance(cubin, Cubin), str(cubin)
        assert cubin.spilled == 0
        assert code.shared <= ROOM


def test_cells_compile_for_every_gpu() -> None:
    (cubin,) = compile_cubins([source([emit(CHAINS["cells"], "kernel").text])], "sm_80")
    assert isinstance(cubin, Cubin), str(cubin)


def test_launch_has_the_cells_of_all_turns() -> None:
    step = CHAINS["both"]
    assert emit(step, "kernel").cells({}) >= max(emit(t, "kernel").cells({}) for t in step.turns)


# -- which may take turns


@pytest.mark.parametrize("template", ["walk", "lines", "direct", "mma", "wgmma", "cublaslt"])
def test_other_templates_take_no_turns(template: str) -> None:
    other = Step(product("y", "z", 8, 8), Schedule(template))
    with pytest.raises(ValueError, match=f"take turns as {template}"):
        emit(chain(Step(product("x", "y", 8, 8), DEFAULT), other), "kernel")
    assert in_turn([Step(product("x", "y", 8, 8), DEFAULT), other]) is None


def test_rings_of_a_launch_get_the_same_numbers() -> None:
    steps = [Step(product("x", "y", 512, 512), s) for s in (RING, replace(RING, options=(("stage", 16),)))]
    with pytest.raises(ValueError, match="have different numbers"):
        emit(chain(*steps), "kernel")
    made = in_turn(steps)
    assert made is not None
    assert {t.schedule for t in made.turns} == {RING}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Step(read("softmax"), RING), "is scheduled as one"),
        (Step(product("y", "z", 8, 8), replace(STREAM, options=(("threads", 512),))), "512 threads"),
    ],
)
def test_what_does_not_fit_a_ring_is_refused(other: Step, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        emit(chain(Step(product("x", "y", 512, 512), RING), other), "kernel")
    assert in_turn([Step(product("x", "y", 512, 512), RING), other]) is None


def test_launch_of_many_buffers_is_refused() -> None:
    steps = [Step(product(f"x{k}", f"x{k + 1}", 64, 64), RING) for k in range(20)]
    with pytest.raises(ValueError, match="41 buffers"):
        emit(chain(*steps), "kernel")


def test_model_expects_a_turn_to_cost_more_than_a_launch_that_starts_early() -> None:
    steps = CHAINS["both"].turns
    found = costs.Costs()
    alone = [found.together(s.kernels, s.schedule, {}) for s in steps]
    together = found.in_turn(steps, {})
    assert together.seconds > sum(found.in_turn([s], {}).seconds for s in steps)
    assert together.traffic == sum(c.traffic for c in alone)


# -- their results


def ran(loaded: Sequence[Loaded], steps: Sequence[Step], times: int) -> dict[str, Array]:
    """What launches leave behind, put into a graph `times` times which runs `times` times."""
    gpu = open_gpu()
    whole = chain(*(t for s in steps for t in s.turns))
    arrays = arrays_of(whole)
    blocks = {n: gpu.allocate(a.nbytes) for n, a in arrays.items()}
    for name, block in blocks.items():
        gpu.write(int(block), arrays[name].reshape(-1).view(np.uint8))
    entries = [
        Entry(
            kernel,
            tuple(int(blocks[b]) for b in step.buffers),
            kernel.code.cells({}),
            tuple(b not in whole.written for b in step.buffers),
        )
        for kernel, step in zip(loaded, steps, strict=True)
    ]
    launches = Launches(gpu, entries * times)
    for _ in range(times):
        launches.run({})
    for name, block in blocks.items():
        gpu.read(int(block), arrays[name].reshape(-1).view(np.uint8))
    return arrays


@pytest.mark.cuda
@pytest.mark.parametrize("name", CHAINS)
def test_turns_equal_launches(name: str) -> None:
    step = CHAINS[name]
    times = 1 if name == "back again" else 8
    got = ran(load_kernels(open_gpu(), [step]), [step], times)
    want = ran(load_kernels(open_gpu(), step.turns), step.turns, 1)
    for buffer in step.written:
        np.testing.assert_array_equal(got[buffer], want[buffer], err_msg=buffer)


@pytest.mark.cuda
def test_layer_of_llama_is_the_same_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of a small Llama give bit for bit the same whether or not launches become one."""
    path = paths.data("models") / "llama.lumi"
    config = {"layers": 2, "width": 512, "heads": 8, "hidden": 1408, "vocab": 1000, "context": 256}
    found = []
    for seconds in (1.0, -1.0):
        monkeypatch.setattr(costs, "TURN", seconds)
        plan = compile_plan(Source(path.name, path.read_text()), Options(config=config, target="cuda"))
        taken = sum(bool(plan.kernels[x.kernel].then) for x in plan.variants[0].launches)
        assert (taken > 0) == (seconds < 0)
        session = Session(plan, init="random", seed=5)
        found.append([session(tokens=[[7 * past]], past=past)["logits"] for past in range(40)])
    for want, got in zip(*found, strict=True):
        np.testing.assert_array_equal(got, want)
