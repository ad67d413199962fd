"""One face for every checkpoint: tensors by Hugging Face key, from GGUF and safetensors.

Tensors are memory-mapped and converted when they are asked for.  bf16 arrays are uint16, as everywhere
in memory.  Every mistake is a `LumiError` ("weights error") that names the file.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lumi.blocks import BLOCKS, BlockFormat
from lumi.dtype import DTYPES, DType
from lumi.errors import LumiError
from lumi.paths import beside
from lumi.runtime.config import gguf_config, hf_config
from lumi.runtime.gguf import Gguf, read_gguf
from lumi.runtime.names import key_of, row_order
from lumi.runtime.safetensors import read_safetensors
from lumi.runtime.tensor import Array, Tensor


@dataclass(frozen=True, slots=True)
class Weights:
    """An open checkpoint.  `metadata` is what a GGUF file says of its model and tokenizer, else empty."""

    path: Path
    tensors: Mapping[str, Tensor]
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def keys(self) -> tuple[str, ...]:
        """The key of every tensor, in the file's order."""
        return tuple(self.tensors)

    def __contains__(self, key: object) -> bool:
        return key in self.tensors

    def type_of(self, key: str) -> Tensor:
        """How a tensor is stored.  A missing key's error names the nearest ones."""
        if key in self.tensors:
            return self.tensors[key]
        near = difflib.get_close_matches(key, self.tensors, n=3, cutoff=0.6)
        hint = f"the nearest keys are {', '.join(near)}" if near else f"it has {len(self.tensors)} tensors"
        raise self._error(f"there is no tensor {key}", hint)

    def array(self, key: str, dtype: DType, shape: Sequence[int] | None = None) -> Array:
        """A tensor as a C-contiguous array of `dtype`; `shape` is what the caller takes it to be.

        Quantised blocks are dequantised exactly, to f32; floats round to nearest even; other types must
        be stored as they are asked for.
        """
        tensor = self.type_of(key)
        if shape is not None and tensor.shape != tuple(shape):
            raise self._misshapen(tensor, tuple(shape))
        if isinstance(tensor.stored, str):
            hint = f"convert the checkpoint to one of {', '.join((*DTYPES, *BLOCKS))}"
            raise self._error(f"{key} has the type {tensor.stored}, which Lumi cannot read", hint)
        if not tensor.converts_to(dtype):
            raise self._error(f"{tensor} does not convert to {dtype}", "declare the param as it is stored")
        return tensor.array(dtype)

    def plane(self, key: str, block: BlockFormat, name: str, shape: Sequence[int] | None = None) -> Array:
        """The plane [*rows, blocks, *field] of a tensor packed as `block`; `shape` as the caller sees it."""
        tensor = self.type_of(key)
        if tensor.stored != block:
            hint = "compile the model again with these weights"
            raise self._error(f"{tensor} is not packed as {block.name}, which the plan reads", hint)
        plane = tensor.plane(name)
        if shape is not None and plane.shape != tuple(shape):
            last = len(tensor.shape) - 1
            wanted = *shape[:last], *(n * block.elements for n in shape[last : last + 1])
            raise self._misshapen(tensor, wanted)
        return plane

    def packings(self) -> dict[str, str]:
        """The block format of every packed tensor, by key."""
        return {k: t.stored.name for k, t in self.tensors.items() if isinstance(t.stored, BlockFormat)}

    def config(self) -> dict[str, object]:
        """The model configuration that the checkpoint states; see `lumi.runtime.config`."""
        if self.metadata:
            return gguf_config(self.metadata, self.tensors)
        return hf_config(self.path if self.path.is_dir() else self.path.parent)

    def _misshapen(self, tensor: Tensor, wanted: tuple[int, ...]) -> LumiError:
        fitting = [k for k, t in self.tensors.items() if t.shape == wanted]
        near = difflib.get_close_matches(tensor.name, fitting, n=3, cutoff=0.3)
        hint = f"the nearest keys of that shape are {', '.join(near)}" if near else "no tensor has that shape"
        return self._error(
            f"{tensor} does not fit the model, which wants [{' '.join(map(str, wanted))}]", hint
        )

    def _error(self, message: str, hint: str = "") -> LumiError:
        return LumiError("weights error", f"{self.path}: {message}", hint=hint)


def open_weights(path: str | Path) -> Weights:
    """Open a `.gguf` file, a `.safetensors` file, its index, or a folder that holds one of them."""
    path = Path(path)
    if not path.exists():
        raise LumiError("weights error", f"{path}: there is no such file or folder", hint=beside(path))
    if path.is_dir() and not any(path.glob("*.safetensors*")):
        found = sorted(path.glob("*.gguf"))
        if len(found) != 1:
            names = ", ".join(p.name for p in found) or "none"
            hint = "name the checkpoint file itself"
            raise LumiError("weights error", f"{path}: one checkpoint expected, found {names}", hint=hint)
        path = found[0]
    if path.is_dir() or path.suffix in (".safetensors", ".json"):
        return Weights(path, read_safetensors(path))
    return _from_gguf(read_gguf(path))


def _from_gguf(file: Gguf) -> Weights:
    architecture = str(file.metadata.get("general.architecture", ""))
    tensors: dict[str, Tensor] = {}
    for name, tensor in file.tensors.items():
        key = key_of(name, architecture)
        order = row_order(key, tensor.shape[0], file.metadata) if tensor.shape else None
        tensors[key] = replace(tensor, name=key, order=order)
    return Weights(file.path, tensors, file.metadata)
