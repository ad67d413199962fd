"""The safetensors reader against the safetensors package, and on damaged files."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from lumi.dtype import BF16, DTYPES, F32
from lumi.errors import LumiError
from lumi.runtime.safetensors import read_safetensors

RNG = np.random.default_rng(0)
ARRAYS = {
    "a.weight": RNG.standard_normal((4, 6)).astype(np.float32),
    "b.weight": RNG.standard_normal(5).astype(np.float16),
    "c.ids": np.arange(6, dtype=np.int64).reshape(2, 3),
    "d.mask": np.array([True, False, True]),
    "e.scalar": np.array(2.5, np.float64),
    "f.empty": np.zeros((0, 3), np.float32),
    "g.bytes": np.arange(7, dtype=np.uint8),
}


def file_of(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(start: int, stop: int, shape: list[int], dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


def message_of(path: Path) -> str:
    with pytest.raises(LumiError) as caught:
        read_safetensors(path)
    folder = path if path.is_dir() else path.parent
    return str(caught.value).replace(f"{folder}/", "").replace(str(folder), "FOLDER")


def test_arrays_equal_what_was_saved(tmp_path: Path) -> None:
    save_file(ARRAYS, tmp_path / "a.safetensors", metadata={"format": "np"})
    found = read_safetensors(tmp_path / "a.safetensors")
    assert found.keys() == ARRAYS.keys()
    for name, want in ARRAYS.items():
        dtype = next(d for d in DTYPES.values() if d is not BF16 and d.storage == want.dtype)
        np.testing.assert_array_equal(found[name].array(dtype), want, err_msg=name)


def test_bf16_widens_exactly_and_keeps_its_bits(tmp_path: Path) -> None:
    values = RNG.standard_normal((3, 8)).astype(ml_dtypes.bfloat16)
    save_file({"w": values}, tmp_path / "a.safetensors")
    tensor = read_safetensors(tmp_path / "a.safetensors")["w"]
    np.testing.assert_array_equal(tensor.array(BF16), values.view(np.uint16))
    np.testing.assert_array_equal(tensor.array(F32), values.astype(np.float32))


def test_shards_are_joined_by_their_index(tmp_path: Path) -> None:
    names = list(ARRAYS)
    weight_map = {}
    for i, part in enumerate((names[:3], names[3:])):
        file = f"model-{i + 1}-of-2.safetensors"
        save_file({n: ARRAYS[n] for n in part}, tmp_path / file)
        weight_map |= dict.fromkeys(part, file)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    for path in (index, tmp_path):
        found = read_safetensors(path)
        assert list(found) == names
        np.testing.assert_array_equal(found["a.weight"].array(F32), ARRAYS["a.weight"])


DAMAGED: dict[str, bytes] = {
    "empty": b"",
    "short": b"abc",
    "endless_header": struct.pack("<Q", 2**62) + b"{}",
    "no_json": file_of(b"{nope"),
    "no_object": file_of([1, 2]),
    "deep": file_of(b"[" * 100_000),
    "key_twice": file_of(b'{"a": 1, "a": 2}'),
    "no_entry": file_of({"a": 3}),
    "negative_shape": file_of({"a": entry(0, 4, [-1])}, bytes(4)),
    "text_shape": file_of({"a": {"dtype": "F32", "shape": ["1"], "data_offsets": [0, 4]}}, bytes(4)),
    "unknown_dtype": file_of({"a": entry(0, 4, [1], "Q7")}, bytes(4)),
    "outside": file_of({"a": entry(0, 400, [100])}, bytes(4)),
    "backwards": file_of({"a": entry(4, 0, [1])}, bytes(4)),
    "size": file_of({"a": entry(0, 4, [2])}, bytes(4)),
    "gap": file_of({"a": entry(0, 4, [1]), "b": entry(8, 12, [1])}, bytes(12)),
    "overlap": file_of({"a": entry(0, 8, [2]), "b": entry(4, 12, [2])}, bytes(12)),
    "rest": file_of({"a": entry(0, 4, [1])}, bytes(9)),
}


def test_damaged_files_are_refused_with_a_reason(tmp_path: Path, golden: Callable[..., None]) -> None:
    path = tmp_path / "damaged.safetensors"
    lines = []
    for name, content in DAMAGED.items():
        path.write_bytes(content)
        lines.append(f"{name}\n{message_of(path)}")
    golden("\n\n".join(lines))


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    save_file(ARRAYS, tmp_path / "a.safetensors")
    content = (tmp_path / "a.safetensors").read_bytes()
    path = tmp_path / "cut.safetensors"
    for size in range(0, len(content), 5):
        path.write_bytes(content[:size])
        assert "weights error: cut.safetensors" in message_of(path)


def test_bad_indexes_are_refused_with_a_reason(tmp_path: Path, golden: Callable[..., None]) -> None:
    save_file(ARRAYS, tmp_path / "a.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    maps: dict[str, object] = {
        "no_map": {"weights": {}},
        "outside": {"weight_map": {"a.weight": "../a.safetensors"}},
        "missing_file": {"weight_map": {"a.weight": "b.safetensors"}},
        "missing_tensor": {"weight_map": {"z.weight": "a.safetensors"}},
    }
    lines = []
    for name, content in maps.items():
        index.write_text(json.dumps(content))
        lines.append(f"{name}\n{message_of(index)}")
    golden("\n\n".join(lines))


def test_folder_without_one_checkpoint_is_refused(tmp_path: Path, golden: Callable[..., None]) -> None:
    none = message_of(tmp_path)
    for name in "ab":
        save_file(ARRAYS, tmp_path / f"{name}.safetensors")
    golden(f"{none}\n\n{message_of(tmp_path)}")
