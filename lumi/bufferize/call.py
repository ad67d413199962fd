"""What bufferisation works on: calls of kernels on named buffers, in the order they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lumi.dim import Extent
from lumi.dtype import DType
from lumi.errors import LumiError
from lumi.field.access import Access
from lumi.field.region import Region
from lumi.hlir.graph import Graph
from lumi.hlir.op import Input, Param, State
from lumi.llir.kernel import KernelGraph, Step
from lumi.lower.order import results
from lumi.plan.plan import Role
from lumi.plan.reach import Footprint, footprint


@dataclass(frozen=True, slots=True)
class Instance:
    """A region of the graph and the kernels chosen for it (which equal regions share)."""

    region: Region
    kernels: KernelGraph


@dataclass(frozen=True, slots=True)
class Value:
    """What a named buffer holds."""

    name: str
    role: Role
    dtype: DType
    shape: tuple[Extent, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A step on actual buffers: `names` maps each of its own buffer names to a value's name."""

    step: Step
    names: Mapping[str, str]
    scope: str
    mark: Footprint

    def reads(self) -> frozenset[str]:
        """The values it loads."""
        return frozenset(self.names[b] for b in self.mark.read)

    def writes(self) -> frozenset[str]:
        """The values it stores to."""
        return frozenset(self.names[b] for b in self.mark.written)


def call(step: Step, names: Mapping[str, str], scope: str) -> Call:
    """The call of a step; names of buffers that it does not take are left out."""
    mark = footprint(*step.kernels)
    return Call(step, {b: names[b] for b in mark.buffers}, scope, mark)


@dataclass(frozen=True, slots=True)
class Interface:
    """What the graph of a variant exchanges with its surroundings.

    `leaves` are its inputs, params and states; a param that the call changes counts as a state.
    `outputs` maps an output to the value it is; `updates` maps a state to the value that it holds after
    the call, itself when kernels write it in place.  `before` holds the outputs that are the value of a
    state before the call changes it.
    """

    leaves: Mapping[str, Value]
    outputs: Mapping[str, str]
    updates: Mapping[str, str]
    before: Mapping[str, str] = field(default_factory=dict)


def interface(graph: Graph) -> Interface:
    """The interface of a graph.  Raises `LumiError` when two of its leaves share a name."""
    leaves: dict[str, Value] = {}
    for node in graph.nodes:
        match node.op:
            case Input(name):
                role = Role.INPUT
            case Param(name):
                role = Role.STATE if name in graph.updates else Role.PARAM
            case State(name):
                role = Role.STATE
            case _:
                continue
        if name in leaves:
            raise LumiError(
                "name error",
                f"{leaves[name].role.value} and {role.value} are both called {name!r}",
                node.span,
                hint="rename one of them",
            )
        leaves[name] = Value(name, role, node.dtype, node.shape)
    found = results(graph)
    before = {
        name: node.op.key
        for name, node in graph.outputs.items()
        if isinstance(node.op, State | Param) and graph.updates.get(node.op.key, node) is not node
    }
    return Interface(leaves, found.outputs, found.updates, before)


def link(instances: Sequence[Instance]) -> list[Call]:
    """The calls of all instances in order; the temporaries of instance n become `%n.T0`, `%n.T1` …"""
    marks: dict[int, Footprint] = {}
    calls: list[Call] = []
    for number, instance in enumerate(instances):
        actual = {f"B{k}": name for k, name in enumerate(instance.region.buffers)}
        actual |= {t: f"%{number}.{t}" for t in instance.kernels.temporaries}
        for step in instance.kernels.steps:
            if id(step) not in marks:
                marks[id(step)] = footprint(*step.kernels)
            mark = marks[id(step)]
            calls.append(Call(step, {b: actual[b] for b in mark.buffers}, instance.region.scope, mark))
    return calls


def values(calls: Sequence[Call], leaves: Mapping[str, Value]) -> dict[str, Value]:
    """Every value that calls touch, leaves first; the others are temporaries with their accesses' types.

    Raises `LumiError` when two accesses disagree about the dtype or the size of a value.
    """
    found = dict(leaves)
    for call in calls:
        for own, accesses in call.mark.accesses.items():
            for access in accesses:
                name = call.names[own]
                value = found.setdefault(name, Value(name, Role.TEMPORARY, access.dtype, access.shape))
                if not access.fits(value.dtype, value.shape):
                    raise _disagreement(call, value, access)
    return found


def _disagreement(call: Call, value: Value, access: Access) -> LumiError:
    return LumiError(
        "internal error",
        f"{call.scope}: {value.name} is {value.dtype} {list(value.shape)}, "
        f"but is accessed as {access.dtype} {list(access.shape)}",
        hint="this is a fault in Lumi: please report the model",
    )
