"""Values of states go over the old ones where they can; kernels are shared, copies copy."""

from __future__ import annotations

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
from lumi.llir.rename import rename
from lumi.plan.plan import Role
from tests.bufferize.launch_graphs import SIZE, WHOLE, add, reverse
from tests.plan.samples import SCHEDULE, run_launches


def states(*names: str) -> dict[str, Value]:
    return {n: Value(n, Role.STATE, F32, WHOLE) for n in names}


def bufferized(calls: list[Call], face: Interface) -> tuple[list[str], int]:
    """The scopes of all launches and the bytes of the arena."""
    table = KernelTable(lambda s, name: name)
    variant = assemble(face, calls, {}, table, lambda k: [SCHEDULE])
    return [table.kernels[launch.kernel].scope for launch in variant.launches], variant.arena


def test_an_elementwise_update_writes_over_its_state() -> None:
    face = Interface(states("s"), {}, {"s": "%0"})
    assert bufferized([add("s", "s", "%0")], face) == (["add"], 0)


def test_a_reader_that_does_not_depend_on_the_new_value_is_brought_forward() -> None:
    face = Interface(states("s"), {"o": "%1"}, {"s": "%0"})
    assert bufferized([reverse("s", "%1"), add("s", "s", "%0")], face)[0] == ["reverse", "add"]
    assert bufferized([add("s", "s", "%0"), reverse("s", "%1")], face)[0] == ["reverse", "add"]
    leaves = states("s") | {"x": Value("x", Role.INPUT, F32, WHOLE)}
    face = Interface(leaves, {"o": "%3"}, {"s": "%0"})
    calls = [add("s", "s", "%0"), reverse("x", "%1"), add("%0", "%0", "%2"), add("%1", "s", "%3")]
    assert bufferized(calls, face)[0] == ["reverse", "add", "add", "add"]


def test_an_old_value_that_is_read_together_with_the_new_one_is_kept_by_a_copy() -> None:
    """The reader depends on the new value, so that it cannot run before that is written: a conflict."""
    face = Interface(states("s"), {"o": "%2"}, {"s": "%0"})
    direct = [add("s", "s", "%0"), add("%0", "s", "%2")]
    assert bufferized(direct, face)[0] == ["add", "add", "copy"]
    through = [add("s", "s", "%0"), reverse("%0", "%1"), add("%1", "s", "%2")]
    assert bufferized(through, face)[0] == ["add", "reverse", "add", "copy"]


def test_a_reversed_state_is_never_written_in_place() -> None:
    face = Interface(states("s"), {}, {"s": "%0"})
    assert bufferized([reverse("s", "%0")], face) == (["reverse", "copy"], 256)


def test_a_state_that_one_kernel_reads_is_not_written_over_by_one_beside_it() -> None:
    read, write = reverse("s", "%1"), add("x", "x", "%0")
    beside = rename(write.step.kernel, {"B0": "B2", "B2": "B3"})
    names = {"B0": "s", "B1": "%1", "B2": "x", "B3": "%0"}
    both = call(replace(read.step, beside=(beside,)), names, "both")
    leaves = states("s") | {"x": Value("x", Role.INPUT, F32, WHOLE)}
    face = Interface(leaves, {"o": "%1"}, {"s": "%0"})
    assert bufferized([both], face)[0] == ["both", "copy"]
    assert bufferized([read, write], face)[0] == ["reverse", "add"]


def test_one_value_for_two_states_is_laid_over_one_and_copied_to_the_other() -> None:
    face = Interface(states("s", "t"), {}, {"s": "%0", "t": "%0"})
    scopes, arena = bufferized([add("s", "t", "%0")], face)
    assert (sorted(scopes), arena) == (["add", "copy"], 0)


def test_states_that_change_places_take_one_copy_more() -> None:
    face = Interface(states("s", "t"), {}, {"s": "t", "t": "s"})
    assert bufferized([], face) == (["copy"] * 3, 256)
    face = Interface(states("s", "t", "u"), {}, {"s": "t", "t": "u", "u": "s"})
    assert bufferized([], face) == (["copy"] * 4, 256)


def test_states_handed_on_in_a_row_need_no_room() -> None:
    leaves = states("s", "t", "u") | {"x": Value("x", Role.INPUT, F32, WHOLE)}
    for order in (("s", "t", "u"), ("u", "t", "s"), ("t", "u", "s")):
        sources = {"s": "t", "t": "u", "u": "x"}
        face = Interface(leaves, {}, {key: sources[key] for key in order})
        assert bufferized([], face) == (["copy"] * 3, 256)


def test_an_identity_output_is_no_alias_of_its_input() -> None:
    """x + 0 simplified to x: the output is read from the input's buffer, which nothing overwrites."""
    leaves = {"x": Value("x", Role.INPUT, F32, WHOLE)}
    face = Interface(leaves, {"o": "x", "p": "%1"}, {})
    table = KernelTable(lambda s, name: name)
    calls = [add("x", "x", "%0"), add("%0", "%0", "%1")]
    variant = assemble(face, calls, {}, table, lambda k: [SCHEDULE])
    x = np.arange(SIZE, dtype=np.float32)
    outputs = run_launches(variant, [k.kernel for k in table.kernels], {"x": x}, {})
    np.testing.assert_array_equal(outputs["o"], x)
    np.testing.assert_array_equal(outputs["p"], 4 * x)


def test_equal_kernels_are_one() -> None:
    face = Interface({"x": Value("x", Role.INPUT, F32, WHOLE)}, {"o": "%2"}, {})
    table = KernelTable(lambda s, name: name)
    calls = [reverse("x", "%0"), reverse("%0", "%1"), reverse("%1", "%2")]
    variant = assemble(face, calls, {}, table, lambda k: [SCHEDULE])
    assert [launch.kernel for launch in variant.launches] == [0, 0, 0]
    assert [k.name for k in table.kernels] == ["k0_reverse"]


def test_accesses_that_disagree_are_a_fault() -> None:
    wrong = call(add("x", "x", "%0").step, {"B0": "x", "B2": "%0"}, "wrong")
    with pytest.raises(LumiError, match="x is i32"):
        values([wrong], {"x": Value("x", Role.INPUT, I32, WHOLE)})


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (1, 4), (dim.var("n"), 2)])
def test_the_copy_kernel_copies(shape: tuple[dim.Extent, ...]) -> None:
    sizes = tuple(dim.value(z, {"n": 3}) for z in shape)
    source = np.random.default_rng(3).integers(0, 2**16, sizes).astype(np.uint16)
    target = np.zeros(sizes, np.uint16)
    interpret.run(copy_kernel(BF16, shape), {"B0": source, "B1": target}, {"n": 3})
    np.testing.assert_array_equal(target, source)
