"""One face for all checkpoints: keys, conversions, planes, errors, configuration."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
from safetensors.numpy import save_file

from lumi.blocks import BLOCKS
from lumi.dtype import BF16, F16, F32, F64, I32, I64, round_to_bf16
from lumi.errors import LumiError
from lumi.runtime.weights import Weights, open_weights
from tests.runtime.files import Array, random_blocks, write_gguf

RNG = np.random.default_rng(3)
NORM = RNG.standard_normal(64).astype(np.float32)


@pytest.fixture
def weights(tmp_path: Path) -> Weights:
    """A GGUF checkpoint with one packed and some plain tensors."""
    tensors: dict[str, tuple[str, Array]] = {
        "output_norm.weight": ("f32", NORM),
        "blk.0.attn_norm.weight": ("f32", NORM + 1),
        "blk.0.attn_q.weight": ("q8_0", random_blocks(BLOCKS["q8_0"], 4, 2)),
        "blk.0.ffn_norm.weight": ("f32", NORM + 2),
        "blk.0.unheard_of.weight": ("f32", NORM[:32]),
    }
    settings = {"gemma3__block_count": 1, "gemma3__embedding_length": 64, "gemma3__attention__head_count": 2}
    return open_weights(write_gguf(tmp_path / "w.gguf", tensors, **settings))


def message_of(call: Callable[[], object], folder: Path) -> str:
    with pytest.raises(LumiError) as caught:
        call()
    return str(caught.value).replace(f"{folder}/", "").replace(str(folder), "FOLDER")


def test_gguf_names_become_checkpoint_keys(weights: Weights) -> None:
    assert weights.keys() == (
        "model.norm.weight",
        "model.layers.0.input_layernorm.weight",
        "model.layers.0.self_attn.q_proj.weight",
        "model.layers.0.pre_feedforward_layernorm.weight",
        "blk.0.unheard_of.weight",
    )
    assert "model.norm.weight" in weights
    assert "output_norm.weight" not in weights


def test_float_conversions_round_to_nearest_even(weights: Weights) -> None:
    key = "model.norm.weight"
    np.testing.assert_array_equal(weights.array(key, F32), NORM)
    np.testing.assert_array_equal(weights.array(key, F64), NORM.astype(np.float64))
    np.testing.assert_array_equal(weights.array(key, F16), NORM.astype(np.float16))
    np.testing.assert_array_equal(weights.array(key, BF16), round_to_bf16(NORM))


@pytest.mark.parametrize("kind", BLOCKS)
def test_planes_hold_the_fields_of_every_block(kind: str, tmp_path: Path) -> None:
    block = BLOCKS[kind]
    raw = random_blocks(block, 3, 2)
    weights = open_weights(write_gguf(tmp_path / "w.gguf", {"output.weight": (kind, raw)}))
    assert weights.packings() == {"lm_head.weight": kind}
    joined = []
    for plane in block.planes:
        shape = (3, 2, *plane.shape)
        array = weights.plane("lm_head.weight", block, plane.name, shape)
        assert (array.shape, array.dtype) == (shape, plane.dtype.storage)
        assert array.flags.c_contiguous
        joined.append(array.reshape(3, 2, -1).view(np.uint8))
    np.testing.assert_array_equal(np.concatenate(joined, axis=-1).reshape(3, -1), raw)


@pytest.mark.parametrize("kind", BLOCKS)
def test_runs_of_blocks_join_without_a_seam(kind: str, tmp_path: Path) -> None:
    blocks = (1 << 19) // BLOCKS[kind].elements // 3 + 1
    raw = random_blocks(BLOCKS[kind], 3, blocks)
    weights = open_weights(write_gguf(tmp_path / "w.gguf", {"output.weight": (kind, raw)}))
    want = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[kind.upper()])
    np.testing.assert_array_equal(weights.array("lm_head.weight", F32, want.shape), want)


def test_llama_rows_are_put_back_in_order(tmp_path: Path) -> None:
    """The converter swaps the halves of each head: row (head, half, i) is stored at (head, i, half)."""
    heads, kv, rows, blocks = 4, 2, 32, 1
    raw = random_blocks(BLOCKS["q8_0"], rows, blocks)

    def stored(count: int) -> Array:
        return raw.reshape(count, 2, rows // count // 2, -1).swapaxes(1, 2).reshape(rows, -1)

    tensors: dict[str, tuple[str, Array]] = {
        "blk.0.attn_q.weight": ("q8_0", stored(heads)),
        "blk.0.attn_k.weight": ("q8_0", stored(kv)),
        "blk.0.attn_v.weight": ("q8_0", raw),
    }
    settings = {"llama__attention__head_count": heads, "llama__attention__head_count_kv": kv}
    weights = open_weights(write_gguf(tmp_path / "w.gguf", tensors, "llama", **settings))
    want = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType.Q8_0)
    qs = raw[:, 2:].view(np.int8).reshape(rows, blocks, 32)
    for part in "qkv":
        key = f"model.layers.0.self_attn.{part}_proj.weight"
        np.testing.assert_array_equal(weights.array(key, F32), want)
        np.testing.assert_array_equal(weights.plane(key, BLOCKS["q8_0"], "qs"), qs)


def test_mistakes_name_the_file_and_the_nearest_keys(
    weights: Weights, tmp_path: Path, golden: Callable[..., None]
) -> None:
    packed = "model.layers.0.self_attn.q_proj.weight"
    calls: dict[str, Callable[[], object]] = {
        "missing": lambda: weights.array("model.layers.0.self_attn.q_proj.weights", F32),
        "nothing_near": lambda: weights.array("zzz", F32),
        "misshapen": lambda: weights.array("model.norm.weight", F32, (32,)),
        "misshapen_everywhere": lambda: weights.array("model.norm.weight", F32, (1, 64)),
        "kind": lambda: weights.array("model.norm.weight", I32),
        "not_packed": lambda: weights.plane("model.norm.weight", BLOCKS["q8_0"], "d"),
        "other_packing": lambda: weights.plane(packed, BLOCKS["q4_k"], "d"),
        "misshapen_plane": lambda: weights.plane(packed, BLOCKS["q8_0"], "qs", (4, 1, 32)),
    }
    golden("\n\n".join(f"{name}\n{message_of(call, tmp_path)}" for name, call in calls.items()))


def test_unreadable_type_is_named_when_asked_for(tmp_path: Path, golden: Callable[..., None]) -> None:
    raw = gguf.quants.quantize(np.ones((1, 32), np.float32), gguf.GGMLQuantizationType.Q5_1)
    weights = open_weights(write_gguf(tmp_path / "w.gguf", {"output.weight": ("q5_1", raw)}))
    golden(message_of(lambda: weights.array("lm_head.weight", F32), tmp_path))


def test_missing_and_ambiguous_paths_are_refused(tmp_path: Path, golden: Callable[..., None]) -> None:
    lines = [message_of(lambda: open_weights(tmp_path / "no.gguf"), tmp_path)]
    lines.append(message_of(lambda: open_weights(tmp_path), tmp_path))
    for name in "ab":
        write_gguf(tmp_path / f"{name}.gguf", {"output_norm.weight": ("f32", NORM)})
    lines.append(message_of(lambda: open_weights(tmp_path), tmp_path))
    golden("\n\n".join(lines))


def test_folder_with_one_gguf_is_opened(weights: Weights) -> None:
    assert open_weights(weights.path.parent).keys() == weights.keys()


def test_integers_stay_as_they_are(tmp_path: Path) -> None:
    ids = np.arange(5, dtype=np.int64)
    save_file({"ids": ids}, tmp_path / "a.safetensors")
    weights = open_weights(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(weights.array("ids", I64), ids)
    with pytest.raises(LumiError, match="does not convert to i32"):
        weights.array("ids", I32)


def test_configuration_comes_from_gguf_metadata(weights: Weights) -> None:
    assert weights.config() == {"layers": 1, "width": 64, "heads": 2, "unit-offset": False}


def test_llama_configuration_comes_from_tensors_too(tmp_path: Path) -> None:
    settings = {"llama__block_count": 2, "llama__rope__freq_base": 5e5}
    tensors: dict[str, tuple[str, Array]] = {"output_norm.weight": ("f32", NORM)}
    plain = open_weights(write_gguf(tmp_path / "a.gguf", tensors, architecture="llama", **settings))
    assert plain.config() == {"layers": 2, "base": 5e5, "tied": True, "factored": False}
    tensors |= {"output.weight": ("f32", NORM), "rope_freqs.weight": ("f32", NORM)}
    told = open_weights(write_gguf(tmp_path / "b.gguf", tensors, architecture="llama", **settings))
    assert told.config() == {"layers": 2, "base": 5e5, "tied": False, "factored": True}


ROTARY = {
    "rope_theta": 5e5,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
STRETCH = {"base": 5e5, "stretch": [8.0, 1.0, 4.0, 8192]}


@pytest.mark.parametrize(
    ("values", "want"),
    [
        ({"rope_parameters": {"rope_type": "llama3", **ROTARY}}, STRETCH),
        ({"rope_theta": 5e5, "rope_scaling": {"type": "llama3", **ROTARY}}, STRETCH),
        ({"rope_theta": 5e5, "rope_scaling": None, "tie_word_embeddings": True}, {"base": 5e5, "tied": True}),
        (
            {
                "rope_parameters": {
                    "full_attention": {"rope_theta": 1e6},
                    "sliding_attention": {"rope_theta": 1e4},
                }
            },
            {"base": 1e6, "local-base": 1e4},
        ),
    ],
    ids=["new", "old", "none", "two"],
)
def test_rotary_configuration(tmp_path: Path, values: dict[str, object], want: dict[str, object]) -> None:
    save_file({"w": NORM}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(values))
    assert open_weights(tmp_path).config() == want


def test_unknown_rotary_scaling_is_refused(tmp_path: Path) -> None:
    save_file({"w": NORM}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}))
    with pytest.raises(LumiError, match="rotary scaling of type 'yarn' is not supported"):
        open_weights(tmp_path).config()


def test_configuration_comes_from_config_json(tmp_path: Path) -> None:
    save_file({"w": NORM}, tmp_path / "model.safetensors")
    assert open_weights(tmp_path).config() == {}
    values = {
        "model_type": "gemma3_text",
        "num_hidden_layers": 18,
        "rope_theta": 1e6,
        "sliding_window": None,
        "query_pre_attn_scalar": 256,
    }
    (tmp_path / "config.json").write_text(json.dumps(values))
    want = {"layers": 18, "base": 1e6, "query-scale": 0.0625, "unit-offset": True}
    for path in (tmp_path, tmp_path / "model.safetensors"):
        assert open_weights(path).config() == want
