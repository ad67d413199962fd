"""The GGUF reader against the gguf package, and on damaged files."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest

from lumi.blocks import BLOCKS
from lumi.dtype import F32
from lumi.errors import LumiError
from lumi.runtime.gguf import read_gguf
from tests.runtime.files import every_type, random_blocks, write_gguf


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return every_type(tmp_path / "every.gguf")


def header(version: int = 3, tensors: int = 0, entries: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, entries)


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def tensor(name: str, shape: list[int], kind: int, offset: int) -> bytes:
    return string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def message_of(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(LumiError) as caught:
        read_gguf(path)
    return str(caught.value).replace(str(path), path.name)


def test_tensors_equal_the_gguf_package(path: Path) -> None:
    found = read_gguf(path).tensors
    expected = {t.name: t for t in gguf.GGUFReader(path).tensors}
    assert found.keys() == expected.keys()
    for name, other in expected.items():
        assert found[name].shape == tuple(reversed(other.shape.tolist()))
        want = gguf.quants.dequantize(other.data, other.tensor_type).reshape(found[name].shape)
        np.testing.assert_array_equal(found[name].array(F32), want, err_msg=name)


def test_metadata_keeps_values_and_types(path: Path) -> None:
    metadata = read_gguf(path).metadata
    assert metadata["general.architecture"] == "gemma3"
    assert metadata["test.words"] == ("a", "", "ünï")
    assert metadata["test.flag"] is True
    assert np.asarray(metadata["test.numbers"]).tolist() == [1.5, -2.0]


def test_alignment_of_the_file_is_used(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    writer.add_custom_alignment(256)
    values = np.arange(10, dtype=np.float32)
    writer.add_tensor("a", values)
    writer.add_tensor("b", values + 1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = read_gguf(tmp_path / "a.gguf").tensors
    np.testing.assert_array_equal(found["b"].array(F32), values + 1)


def test_unreadable_type_is_named_and_does_not_stop_the_others(tmp_path: Path) -> None:
    values = np.ones((1, 32), np.float32)
    raw = gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q5_1)
    path = write_gguf(tmp_path / "a.gguf", {"a": ("q5_1", raw), "b": ("f32", values)})
    found = read_gguf(path).tensors
    assert found["a"].stored == "q5_1"
    np.testing.assert_array_equal(found["b"].array(F32), values)


@pytest.mark.parametrize("kind", BLOCKS)
def test_dequantised_runs_join_without_a_seam(kind: str, tmp_path: Path) -> None:
    raw = random_blocks(BLOCKS[kind], 3, (1 << 19) // BLOCKS[kind].elements // 3 + 1)
    path = write_gguf(tmp_path / "a.gguf", {"a": (kind, raw)})
    want = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[kind.upper()])
    np.testing.assert_array_equal(read_gguf(path).tensors["a"].array(F32), want)


DAMAGED: dict[str, bytes] = {
    "empty": b"",
    "other_format": b"PK\x03\x04" + bytes(60),
    "version": header(version=9),
    "big_endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "header_cut": header()[:12],
    "endless_entries": header(entries=2**40),
    "endless_key": header(entries=1) + struct.pack("<Q", 2**63) + b"abc",
    "endless_words": header(entries=1) + string("k") + struct.pack("<IIQ", 9, 8, 2**61),
    "endless_numbers": header(entries=1) + string("k") + struct.pack("<IIQ", 9, 12, 2**62),
    "nested_array": header(entries=1) + string("k") + struct.pack("<IIQ", 9, 9, 1) + bytes(64),
    "unknown_value": header(entries=1) + string("k") + struct.pack("<I", 77) + bytes(8),
    "not_utf8": header(entries=1) + struct.pack("<Q", 2) + b"\xff\xfe" + bytes(16),
    "key_twice": header(entries=2) + 2 * (string("k") + struct.pack("<IB", 0, 1)),
    "alignment_zero": header(entries=1) + string("general.alignment") + struct.pack("<II", 4, 0),
    "five_dimensions": header(tensors=1) + tensor("t", [1, 1, 1, 1, 1], 0, 0) + bytes(64),
    "huge_tensor": header(tensors=1) + tensor("t", [2**40, 2**40], 0, 0) + bytes(64),
    "huge_offset": header(tensors=1) + tensor("t", [1], 0, 2**63) + bytes(64),
    "unaligned": header(tensors=1) + tensor("t", [1], 0, 4) + bytes(64),
    "partial_block": header(tensors=1) + tensor("t", [33], 8, 0) + bytes(128),
    "tensor_twice": header(tensors=2) + 2 * tensor("t", [1], 0, 0) + bytes(128),
}


def test_damaged_files_are_refused_with_a_reason(tmp_path: Path, golden: Callable[..., None]) -> None:
    path = tmp_path / "damaged.gguf"
    golden("\n\n".join(f"{name}\n{message_of(path, content)}" for name, content in DAMAGED.items()))


def test_truncated_file_names_what_is_cut(path: Path, golden: Callable[..., None]) -> None:
    golden(message_of(path.with_name("cut.gguf"), path.read_bytes()[:-40]))


def test_every_truncation_is_refused(path: Path) -> None:
    content = path.read_bytes()
    for size in range(0, len(content) - 32, 7):
        assert "weights error" in message_of(path.with_name("cut.gguf"), content[:size])


def test_random_damage_never_crashes(path: Path) -> None:
    """A changed header is read differently or refused; it never raises anything but a LumiError."""
    rng = np.random.default_rng(2)
    content = path.read_bytes()
    damaged = path.with_name("damaged.gguf")
    refused = 0
    for _ in range(400):
        changed = bytearray(content)
        for at in rng.integers(0, 1200, rng.integers(1, 4)):
            changed[at] = rng.integers(0, 256)
        damaged.write_bytes(changed)
        try:
            for tensor in read_gguf(damaged).tensors.values():
                if tensor.converts_to(F32):
                    tensor.array(F32)
        except LumiError:
            refused += 1
    assert refused > 100
