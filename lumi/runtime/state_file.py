"""Files of states: a safetensors file of what lies in the memory of every state.

Its metadata tells what model the states are of: its name, and a hash of its states and of the keys of its
weights.  So states fit every plan of that model, whatever it was compiled for.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

from lumi import dim
from lumi.errors import LumiError
from lumi.llir.json import encode
from lumi.plan.plan import Plan, Signature
from lumi.runtime.device import Array, Memory
from lumi.runtime.safetensors import KINDS, read_metadata, read_safetensors
from lumi.runtime.tensor import Tensor

MODEL, IDENTITY = "lumi.model", "lumi.identity"
"""Entries of the metadata: the name of the model, and the hash."""

_HINT = "session.save_states(path) writes such files"


def identity(plan: Plan) -> str:
    """A hash that plans share whose states mean the same."""
    seen = [plan.name, plan.states, sorted({b.key for b in plan.bindings})]
    return hashlib.sha256(json.dumps(encode(seen), sort_keys=True).encode()).hexdigest()


def write_states(path: Path, plan: Plan, memories: Mapping[str, Memory], dims: Mapping[str, int]) -> None:
    """Write the states that lie in `memories`, whose shapes are those at `dims`; no half file is ever left.

    Raises `LumiError` ("states error") where the file cannot be written.
    """
    header: dict[str, object] = {"__metadata__": {MODEL: plan.name, IDENTITY: identity(plan)}}
    sizes, end = list[int](), 0
    for s in plan.states:
        shape = [dim.value(size, dims) for size in s.shape]
        sizes.append(math.prod(shape) * s.dtype.size)
        header[s.name] = {"dtype": KINDS[s.dtype], "shape": shape, "data_offsets": [end, end + sizes[-1]]}
        end += sizes[-1]
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    part = path.parent / f".{path.name}.{os.getpid()}"
    try:
        try:
            with part.open("wb") as file:
                file.write(len(text).to_bytes(8, "little") + text)
                for s, size in zip(plan.states, sizes, strict=True):
                    file.write(memories[s.name].fetch(size).data)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise LumiError("states error", f"cannot write {path}: {error.strerror}") from error


def read_states(path: Path, plan: Plan) -> dict[str, Array]:
    """The raw content of every state of a file, checked to be states of the plan's model.

    Raises `LumiError` ("states error") for a file of something else, or of another model.
    """
    try:
        tensors, told = read_safetensors(path), read_metadata(path)
    except LumiError as error:
        raise LumiError("states error", error.message, hint=_HINT) from error
    if IDENTITY not in told:
        raise LumiError("states error", f"{path} holds no states", hint=_HINT)
    why = _difference(tensors, plan)
    if not why and told[IDENTITY] != identity(plan):
        why = "its name or the keys of its weights are others"
    if why:
        saved = told.get(MODEL, "another model")
        what = f"{path} holds states of {saved} that are none of this {plan.name}: {why}"
        raise LumiError("states error", what, hint="load them where the same model and configuration run")
    found = ((s, tensors[s.name]) for s in plan.states)
    return {s.name: tensor.data.view(s.dtype.storage).reshape(tensor.shape) for s, tensor in found}


def _difference(tensors: Mapping[str, Tensor], plan: Plan) -> str:
    """Why the tensors of a file are not the states of a plan; empty when they are."""
    names = {s.name for s in plan.states}
    for s in plan.states:
        tensor = tensors.get(s.name)
        if tensor is None:
            return f"state {s.name} is missing"
        if tensor.stored != s.dtype or not _fits(tensor.shape, s):
            return f"it has {tensor}, expected {s}"
    unknown = next((name for name in tensors if name not in names), None)
    return f"it has {tensors[unknown]} too" if unknown is not None else ""


def _fits(shape: tuple[int, ...], signature: Signature) -> bool:
    """Whether a shape can be one of a signature; sizes that depend on dims are bound later."""
    sizes = signature.shape
    return len(shape) == len(sizes) and all(
        not isinstance(z, int) or z == n for n, z in zip(shape, sizes, strict=True)
    )
