"""Random launch graphs: one arena and states in place compute what separate buffers do."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from lumi import dim
from lumi.backends.cpu import interpret
from lumi.bufferize.bufferize import KernelTable, assemble
from lumi.bufferize.call import Call, Interface, Value, call, values
from lumi.bufferize.copy import copy_kernel
from lumi.dtype import BF16, F32, I32
from lumi.errors import LumiError
from lumi.field.access import Access
from lumi.field.index import index, of_axis
from lumi.llir.rename import rename
from lumi.plan.plan import Role
from tests.plan.samples import SCHEDULE, Array, access, elementwise, run_launches, step

SIZE = 12
SHAPE = (SIZE,)


def add(a: str, b: str, target: str) -> Call:
    kernel = elementwise("add", [access("B0", SHAPE), access("B1", SHAPE)], access("B2", SHAPE), {"i0": SIZE})
    if a == b:
        kernel = elementwise("add", [access("B0", SHAPE)] * 2, access("B2", SHAPE), {"i0": SIZE})
        return call(step(kernel), {"B0": a, "B2": target}, "add")
    return call(step(kernel), {"B0": a, "B1": b, "B2": target}, "add")


def reverse(a: str, target: str) -> Call:
    back = Access("B0", (index([("i0", -1)], SIZE - 1),), SHAPE, F32)
    kernel = elementwise("cast.f32", [back], access("B1", SHAPE), {"i0": SIZE})
    return call(step(kernel), {"B0": a, "B1": target}, "reverse")


def write_window(a: str, state: str, start: int) -> Call:
    target = replace(access("B1", SHAPE), index=(of_axis("i0") + start,))
    kernel = elementwise("cast.f32", [access("B0", SHAPE)], target, {"i0": 4})
    return call(step(kernel), {"B0": a, "B1": state}, "window")


def reference(calls: list[Call], face: Interface, arrays: dict[str, Array]) -> dict[str, Array]:
    """Every value in an array of its own; states change when all has run."""
    before = {n: a.copy() for n, a in arrays.items()}
    held = {n: a.copy() for n, a in arrays.items()}
    for name in values(calls, face.leaves):
        held.setdefault(name, np.full(SHAPE, np.nan, np.float32))
    for one in calls:
        interpret.run(one.step.kernel, {own: held[n] for own, n in one.names.items()}, {})
    outputs = {o: held[n].copy() for o, n in face.outputs.items()}
    outputs |= {o: before[key].copy() for o, key in face.before.items()}
    news = {key: held[name].copy() for key, name in face.updates.items()}
    arrays.update(news)
    return outputs


def random_graph(seed: int) -> tuple[list[Call], Interface]:
    """Calls in single assignment over two inputs, a param and three states.

    One state is written in place by windows, the others get whole values: fresh ones, each other's or an
    input's.
    """
    chance = random.Random(seed)
    roles = {"x": Role.INPUT, "y": Role.INPUT, "w": Role.PARAM} | dict.fromkeys("stu", Role.STATE)
    leaves = {n: Value(n, r, F32, SHAPE) for n, r in roles.items()}
    known = list(leaves)
    calls: list[Call] = []
    windowed = chance.random() < 0.7
    if windowed:
        known.remove("u")
        calls.append(add("u", "u", "%old"))
        calls.append(write_window(chance.choice(known), "u", chance.randrange(SIZE - 3)))
        known += ["u", "%old"]
    for k in range(chance.randrange(2, 12)):
        made = f"%{k}"
        if chance.random() < 0.3:
            calls.append(reverse(chance.choice(known), made))
        else:
            calls.append(add(chance.choice(known), chance.choice(known), made))
        known.append(made)
    fresh = [n for n in known if n.startswith("%")]
    updates = {"u": "u"} if windowed else {}
    for state in "st":
        if chance.random() < 0.8:
            updates[state] = chance.choice([*fresh, *fresh, "s", "t", "x"])
    outputs = {f"o{k}": chance.choice(known) for k in range(3)}
    before = {o: n for o, n in outputs.items() if n in "st" and updates.get(n, n) != n}
    return calls, Interface(leaves, outputs, updates, before)


@pytest.mark.parametrize("seed", range(150))
def test_a_random_launch_graph_equals_separate_buffers(seed: int) -> None:
    calls, face = random_graph(seed)
    table = KernelTable(lambda s, name: name)
    variant = assemble(face, calls, {}, table, lambda k: [SCHEDULE])
    kernels = [k.kernel for k in table.kernels]
    generator = np.random.default_rng(seed)
    want = {n: generator.integers(-50, 50, SIZE).astype(np.float32) for n in face.leaves}
    have = {n: a.copy() for n, a in want.items()}
    for _ in range(3):
        expected = reference(calls, face, want)
        for arrays in (want, have):
            arrays["x"] = arrays["x"].copy()
        outputs = run_launches(variant, kernels, have, {})
        for name, array in expected.items():
            np.testing.assert_array_equal(outputs[name], array, err_msg=name)
        for state in "stu":
            np.testing.assert_array_equal(have[state], want[state], err_msg=state)
        fresh = generator.integers(-50, 50, SIZE).astype(np.float32)
        want["x"], have["x"] = fresh, fresh.copy()


def states(*names: str) -> dict[str, Value]:
    return {n: Value(n, Role.STATE, F32, SHAPE) for n in names}


def bufferized(calls: list[Call], face: Interface) -> tuple[list[str], int]:
    """The scopes of all launches and the bytes of the arena."""
    table = KernelTable(lambda s, name: name)
    variant = assemble(face, calls, {}, table, lambda k: [SCHEDULE])
    return [table.kernels[launch.kernel].scope for launch in variant.launches], variant.arena


def test_an_elementwise_update_writes_over_its_state() -> None:
    face = Interface(states("s"), {}, {"s": "%0"})
    assert bufferized([add("s", "s", "%0")], face) == (["add"], 0)


def test_an_update_read_elsewhere_afterwards_is_copied() -> None:
    face = Interface(states("s"), {"o": "%1"}, {"s": "%0"})
    assert bufferized([add("s", "s", "%0"), reverse("s", "%1")], face)[0] == ["add", "reverse", "copy"]
    assert bufferized([reverse("s", "%1"), add("s", "s", "%0")], face)[0] == ["reverse", "add"]


def test_a_reversed_state_is_never_written_in_place() -> None:
    face = Interface(states("s"), {}, {"s": "%0"})
    assert bufferized([reverse("s", "%0")], face) == (["reverse", "copy"], 256)


def test_a_state_that_one_kernel_reads_is_not_written_over_by_one_beside_it() -> None:
    read, write = reverse("s", "%1"), add("x", "x", "%0")
    beside = rename(write.step.kernel, {"B0": "B2", "B2": "B3"})
    names = {"B0": "s", "B1": "%1", "B2": "x", "B3": "%0"}
    both = call(replace(read.step, beside=(beside,)), names, "both")
    leaves = states("s") | {"x": Value("x", Role.INPUT, F32, SHAPE)}
    face = Interface(leaves, {"o": "%1"}, {"s": "%0"})
    assert bufferized([both], face)[0] == ["both", "copy"]
    assert bufferized([read, write], face)[0] == ["reverse", "add"]


def test_one_value_for_two_states_is_laid_over_one_and_copied_to_the_other() -> None:
    face = Interface(states("s", "t"), {}, {"s": "%0", "t": "%0"})
    scopes, arena = bufferized([add("s", "t", "%0")], face)
    assert (sorted(scopes), arena) == (["add", "copy"], 0)


def test_states_are_swapped_through_copies() -> None:
    face = Interface(states("s", "t"), {}, {"s": "t", "t": "s"})
    assert bufferized([], face)[0] == ["copy"] * 4


def test_an_identity_output_is_no_alias_of_its_input() -> None:
    """x + 0 simplified to x: the output is read from the input's buffer, which nothing overwrites."""
    leaves = {"x": Value("x", Role.INPUT, F32, SHAPE)}
    face = Interface(leaves, {"o": "x", "p": "%1"}, {})
    table = KernelTable(lambda s, name: name)
    calls = [add("x", "x", "%0"), add("%0", "%0", "%1")]
    variant = assemble(face, calls, {}, table, lambda k: [SCHEDULE])
    x = np.arange(SIZE, dtype=np.float32)
    outputs = run_launches(variant, [k.kernel for k in table.kernels], {"x": x}, {})
    np.testing.assert_array_equal(outputs["o"], x)
    np.testing.assert_array_equal(outputs["p"], 4 * x)


def test_equal_kernels_are_one() -> None:
    face = Interface({"x": Value("x", Role.INPUT, F32, SHAPE)}, {"o": "%2"}, {})
    table = KernelTable(lambda s, name: name)
    calls = [reverse("x", "%0"), reverse("%0", "%1"), reverse("%1", "%2")]
    variant = assemble(face, calls, {}, table, lambda k: [SCHEDULE])
    assert [launch.kernel for launch in variant.launches] == [0, 0, 0]
    assert [k.name for k in table.kernels] == ["k0_reverse"]


def test_accesses_that_disagree_are_a_fault() -> None:
    wrong = call(add("x", "x", "%0").step, {"B0": "x", "B2": "%0"}, "wrong")
    with pytest.raises(LumiError, match="x is i32"):
        values([wrong], {"x": Value("x", Role.INPUT, I32, SHAPE)})


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (1, 4), (dim.var("n"), 2)])
def test_the_copy_kernel_copies(shape: tuple[dim.Extent, ...]) -> None:
    sizes = tuple(dim.value(z, {"n": 3}) for z in shape)
    source = np.random.default_rng(3).integers(0, 2**16, sizes).astype(np.uint16)
    target = np.zeros(sizes, np.uint16)
    interpret.run(copy_kernel(BF16, shape), {"B0": source, "B1": target}, {"n": 3})
    np.testing.assert_array_equal(target, source)
