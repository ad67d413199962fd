"""A plan: everything a device needs to run a model, as plain data.

A plan has variants, each valid on a box of dim values; a call runs the first variant whose box holds
its dims.  A variant is a list of buffers and a list of launches over them.  Kernels are shared by all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from lumi.dim import Dim, DimRange, Extent
from lumi.dtype import DType
from lumi.llir.json import Json
from lumi.llir.kernel import Kernel, Schedule, Step

FORMAT = 5
"""Version of the file format; a file of another version is refused."""

ALIGNMENT = 256
"""Bytes: every buffer begins at a multiple of it."""


Limit: TypeAlias = "Dim | int | None"
"""The greatest of the integers of an input; None where they may be any."""


class Role(Enum):
    """What a buffer is for.

    Params and states have memory of their own, which outlives a call; all others lie in the arena.
    """

    INPUT = "input"
    PARAM = "param"
    STATE = "state"
    OUTPUT = "output"
    TEMPORARY = "temporary"

    @property
    def in_arena(self) -> bool:
        """Whether such a buffer lies in the arena."""
        return self not in (Role.PARAM, Role.STATE)


@dataclass(frozen=True, slots=True)
class Buffer:
    """Dense row-major memory.  `offset` is in bytes from the start of the arena, 0 outside of it.

    Inputs, params and states are called by their name or key, others by a name with `%` in front.
    """

    name: str
    role: Role
    dtype: DType
    shape: tuple[Extent, ...]
    offset: int = 0


@dataclass(frozen=True, slots=True)
class PlanKernel:
    """A kernel that launches refer to by number, those that run `beside` it, and what comes `then` in turn.

    `name` is a C identifier, unique in the plan; `scope` is where the model asked for it; `source` is
    the code made from it, for reading: a device makes its own from its `step`.
    """

    name: str
    scope: str
    kernel: Kernel
    schedule: Schedule
    source: str
    beside: tuple[Kernel, ...] = ()
    then: tuple[Step, ...] = ()

    @property
    def step(self) -> Step:
        """What a launch of it runs."""
        return Step(self.kernel, self.schedule, self.beside, self.then)


@dataclass(frozen=True, slots=True)
class Launch:
    """Run kernel number `kernel` on buffers (numbers), in the order of `llir.kernel.Step.buffers`."""

    kernel: int
    buffers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Need:
    """`gap` must not be negative at a call, else what `what` tells would happen."""

    gap: Extent
    what: str


@dataclass(frozen=True, slots=True)
class Variant:
    """The launches for every call whose dims lie in `dims`; `arena` and `peak` are bytes.

    `arena` is what the buffers need together at the largest dims; `peak` is the most that is alive at
    once, the floor under any arena.  `outputs` maps each output to the number of its buffer.  `needs` are
    what the model asks of the dims of a call beyond their ranges.
    """

    dims: Mapping[str, DimRange]
    buffers: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    outputs: Mapping[str, int]
    arena: int
    peak: int
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True, slots=True)
class Signature:
    """An input, an output or a state as callers see it.

    Where `most` is told, its integers are from 0 to that.
    """

    name: str
    dtype: DType
    shape: tuple[Extent, ...]
    most: Limit = None

    def dims(self) -> tuple[str, ...]:
        """The dims that the shape depends on, sorted."""
        return tuple(sorted({n for size in self.shape if isinstance(size, Dim) for n in size.names()}))

    def __str__(self) -> str:
        """`tokens i32 [batch seq]`, `past i32 [batch] :max longest`."""
        limit = "" if self.most is None else f" :max {self.most}"
        return f"{self.name} {self.dtype} [{' '.join(map(str, self.shape))}]{limit}"


@dataclass(frozen=True, slots=True)
class Binding:
    """Where the content of a param comes from.

    `param` is the buffer's name.  `key` names a tensor of the checkpoint, converted to `dtype`; with
    `format` (a block format) it is that tensor kept packed, and the buffer holds its plane `plane`.
    `init` fills it when the checkpoint has no such key.  A param that calls change is a state of that
    name, which begins with this content.
    """

    param: str
    key: str
    dtype: DType
    shape: tuple[int, ...]
    format: str | None = None
    plane: str | None = None
    init: float | None = None


@dataclass(frozen=True, slots=True)
class Binary:
    """Compiled kernels for one kind of machine: `tag` names it, `content` is a shared library."""

    tag: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled model.

    `dims` are all dims that callers bind, with their whole ranges.  Variants stand from special to
    general.  `explanation` says how the search came to the kernels; nothing at run time reads it.
    """

    name: str
    target: str
    dims: Mapping[str, DimRange]
    inputs: tuple[Signature, ...]
    outputs: tuple[Signature, ...]
    states: tuple[Signature, ...]
    bindings: tuple[Binding, ...]
    kernels: tuple[PlanKernel, ...]
    variants: tuple[Variant, ...]
    explanation: Mapping[str, Json] = field(default_factory=dict)
    binaries: tuple[Binary, ...] = ()
