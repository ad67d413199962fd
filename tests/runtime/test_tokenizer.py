"""Tokenizers against the tokenizers package, a naive segmentation, and round trips."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, decoders, models, pre_tokenizers, trainers

from lumi.errors import LumiError
from lumi.runtime.sentencepiece import ScoredPieces
from lumi.runtime.tokenizer import PieceTokenizer, Tokenizer, open_tokenizer
from lumi.runtime.vocabulary import Kind, read_vocabulary
from tests.runtime.files import write_gguf

NORM = {"output_norm.weight": ("f32", np.ones(4, np.float32))}
SPECIALS = ["<pad>", "<eos>", "<bos>", "<unk>", "<start>", "<end_of_turn>", "\n\n", "  ", "   "]
SPECIAL_KINDS = [*[Kind.CONTROL] * 3, Kind.UNKNOWN, *[Kind.CONTROL] * 2, *[Kind.USER_DEFINED] * 3]
BYTES = [f"<0x{b:02X}>" for b in range(256)]
PIECES = ["▁", "a", "b", "c", "ab", "bc", "abc", "ca", "▁a", "▁ab", "aa", "aaa", "é", "\n", "bb", "cab"]

CORPUS = (
    """The quick brown fox doesn't jump over 12 lazy dogs; it's 1234567 o'clock.
    def naïve(x):\n\n\treturn x + 1  # Größe, 日本語, emoji 🙂 — and   spaces\r\n"""
    * 3
)


def scored_metadata(**changes: Any) -> dict[str, Any]:
    texts = (*SPECIALS, *BYTES, *PIECES)
    kinds = [*SPECIAL_KINDS, *[Kind.BYTE] * 256, *[Kind.NORMAL] * len(PIECES)]
    scores = [*[0.0] * (len(SPECIALS) + 256), *(-float(i % 7) for i in range(len(PIECES)))]
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.token_type": np.array(kinds, np.int32),
        "tokenizer.ggml.scores": np.array(scores, np.float32),
        "tokenizer.ggml.bos_token_id": 2,
        "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.ggml.unknown_token_id": 3,
        "tokenizer.ggml.add_space_prefix": False,
    }
    metadata |= {f"tokenizer.ggml.{k}": v for k, v in changes.items()}
    return {k: v for k, v in metadata.items() if v is not None}


def saved(metadata: dict[str, Any], path: Path) -> Path:
    """A GGUF file with this tokenizer."""
    plain = {
        k.replace(".", "__"): v.tolist() if isinstance(v, np.ndarray) else v for k, v in metadata.items()
    }
    return write_gguf(
        path, NORM, "llama", **{k: list(v) if isinstance(v, tuple) else v for k, v in plain.items()}
    )


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return open_tokenizer(saved(scored_metadata(), tmp_path_factory.mktemp("scored") / "t.gguf"))


def naive_segment(text: str) -> list[str]:
    """Join the leftmost best pair until none is left, by looking at all pairs every time."""
    scores = dict(zip(PIECES, (-float(i % 7) for i in range(len(PIECES))), strict=True))
    parts = list(text)
    while True:
        pairs = [(scores[a + b], -i) for i, (a, b) in enumerate(pairwise(parts)) if a + b in scores]
        if not pairs:
            return parts
        at = -max(pairs)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


@given(st.text("abc ", max_size=40))
@settings(max_examples=300, deadline=None)
def test_scored_segmentation_equals_the_naive_one(text: str) -> None:
    pieces = ScoredPieces(read_vocabulary(scored_metadata()))
    texts = [pieces.vocabulary.texts[i] for i in pieces.segment(text)]
    assert texts == naive_segment(text.replace(" ", "▁"))


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_scored_round_trip_keeps_every_text(text: str) -> None:
    tokenizer = PieceTokenizer(ScoredPieces(read_vocabulary(scored_metadata())), 2, False)
    assert tokenizer.decode(tokenizer.encode(text)) == text.replace("▁", " ")


def test_whole_tokens_are_taken_leftmost_then_longest(scored: Tokenizer) -> None:
    ids = {text: i for i, text in enumerate((*SPECIALS, *BYTES, *PIECES))}
    want = [
        2,
        ids["<start>"],
        ids["ab"],
        ids["   "],
        ids["  "],
        ids["c"],
        ids["\n\n"],
        ids["\n"],
        ids["<end_of_turn>"],
    ]
    assert scored.encode("<start>ab     c\n\n\n<end_of_turn>") == want


def test_unknown_characters_fall_back_to_bytes(scored: Tokenizer) -> None:
    first = len(SPECIALS)
    assert scored.encode("日") == [2, *(first + b for b in "日".encode())]


def test_vocabulary_without_bytes_uses_the_unknown_token() -> None:
    texts = ("<unk>", "a")
    metadata = scored_metadata(
        tokens=texts,
        token_type=np.array([2, 1]),
        scores=None,
        bos_token_id=None,
        eos_token_id=None,
        unknown_token_id=0,
    )
    pieces = ScoredPieces(read_vocabulary(metadata))
    assert pieces.segment("aé") == [1, 0, 0]
    assert pieces.piece(0) == " ⁇ ".encode()


def test_space_prefix_is_added_and_not_shown(tmp_path: Path) -> None:
    tokenizer = open_tokenizer(saved(scored_metadata(add_space_prefix=True), tmp_path / "t.gguf"))
    ids = tokenizer.encode("ab c")
    texts = (*SPECIALS, *BYTES, *PIECES)
    assert [texts[i] for i in ids] == ["<bos>", "▁ab", "▁", "c"]
    assert tokenizer.decode(ids) == "ab c"


def test_begin_token_that_is_written_out_is_not_doubled(scored: Tokenizer) -> None:
    assert scored.encode("<bos>ab") == scored.encode("ab")


def test_begin_token_is_left_out_where_the_file_says_so(tmp_path: Path) -> None:
    tokenizer = open_tokenizer(saved(scored_metadata(add_bos_token=False), tmp_path / "t.gguf"))
    assert tokenizer.encode("") == []


def test_text_that_is_no_unicode_is_encoded_all_the_same(scored: Tokenizer) -> None:
    assert scored.decode(scored.encode("a\udcffb")) == "a?b"


def test_stops_are_the_end_tokens(scored: Tokenizer) -> None:
    assert scored.stops == {SPECIALS.index("<eos>"), SPECIALS.index("<end_of_turn>")}


def test_stream_holds_back_partial_characters(scored: Tokenizer) -> None:
    stream = scored.stream()
    pushed = [stream.push(len(SPECIALS) + b) for b in "é🙂".encode()]
    assert pushed == ["", "é", "", "", "", "🙂"]
    stream.push(len(SPECIALS) + 0xF0)
    assert stream.finish() == "\ufffd"


def test_stream_refuses_an_id_that_is_no_token(scored: Tokenizer) -> None:
    with pytest.raises(LumiError, match="there is no token 100000"):
        scored.stream().push(100_000)


# -- byte pairs

LLAMA_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
WORDS = {
    "gpt-2": pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    "llama-bpe": pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LLAMA_WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    ),
    "qwen2": pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LLAMA_WORDS.replace("{1,3}", "")), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    ),
}


@pytest.fixture(scope="module", params=WORDS)
def byte_pairs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Tokenizer, tokenizers.Tokenizer]:
    """A byte-pair tokenizer trained on a few lines: Lumi's, and the package's own."""
    theirs = tokenizers.Tokenizer(models.BPE(ignore_merges=request.param == "llama-bpe"))
    theirs.pre_tokenizer = WORDS[request.param]
    theirs.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"])
    theirs.train_from_iterator([CORPUS], trainer)
    model = json.loads(theirs.to_str())["model"]
    texts = sorted(model["vocab"], key=model["vocab"].get)
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    metadata = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": request.param,
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.token_type": [Kind.CONTROL, *[Kind.NORMAL] * (len(texts) - 1)],
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.eos_token_id": 0,
    }
    path = saved(metadata, tmp_path_factory.mktemp("pairs") / "t.gguf")
    return open_tokenizer(path), theirs


def test_byte_pairs_equal_the_tokenizers_package(byte_pairs: tuple[Tokenizer, tokenizers.Tokenizer]) -> None:
    ours, theirs = byte_pairs
    rng = np.random.default_rng(0)
    characters = np.array([*"aeiou the  '\n\r\t.12345sStTré日🙂²Ⅷ_-\u00a0\u2003"])
    texts = [CORPUS, "", " ", "<|endoftext|>x", *("".join(rng.choice(characters, 30)) for _ in range(200))]
    for text in texts:
        want = theirs.encode(text).ids
        assert ours.encode(text) == want, repr(text)
        assert ours.decode(want) == theirs.decode(want, skip_special_tokens=True), repr(text)


def test_unknown_word_pattern_names_the_known_ones(tmp_path: Path, golden: Callable[..., None]) -> None:
    metadata = scored_metadata(model="gpt2", pre="martian", merges=("a b",))
    with pytest.raises(LumiError) as caught:
        open_tokenizer(saved(metadata, tmp_path / "t.gguf"))
    golden(str(caught.value))


# -- tokenizer.json


@pytest.fixture
def json_folder(tmp_path: Path) -> Path:
    inner = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    inner.pre_tokenizer = WORDS["gpt-2"]
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<bos>", "<eos>", "<unk>", "<|im_end|>"],
    )
    inner.train_from_iterator([CORPUS], trainer)
    inner.save(str(tmp_path / "tokenizer.json"))
    config = {"bos_token": {"content": "<bos>"}, "eos_token": "<eos>", "add_bos_token": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    return tmp_path


def test_tokenizer_json_round_trips_and_streams(json_folder: Path) -> None:
    tokenizer = open_tokenizer(json_folder)
    ids = tokenizer.encode(CORPUS)
    assert ids[0] == 0
    assert tokenizer.decode(ids) == CORPUS
    assert tokenizer.stops == {1, 3}
    stream = tokenizer.stream()
    pushed = [stream.push(i) for i in ids]
    assert "".join(pushed) + stream.finish() == CORPUS
    assert not any("\ufffd" in text for text in pushed)


def test_tokenizer_json_without_the_package_says_what_to_install(
    json_folder: Path, monkeypatch: pytest.MonkeyPatch, golden: Callable[..., None]
) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "tokenizers":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(LumiError) as caught:
        open_tokenizer(json_folder)
    golden(str(caught.value).replace(f"{json_folder}/", ""))


# -- mistakes

BAD: dict[str, dict[str, Any]] = {
    "no_tokens": {"tokens": None},
    "other_model": {"model": "bert"},
    "short_scores": {"scores": np.zeros(3, np.float32)},
    "text_kinds": {"token_type": ("a", "b")},
    "bos_outside": {"bos_token_id": 10**6},
    "no_merges": {"model": "gpt2"},
    "bad_merge": {"model": "gpt2", "merges": ("a b", "abc")},
}


def test_damaged_metadata_is_refused_with_a_reason(tmp_path: Path, golden: Callable[..., None]) -> None:
    lines = []
    for name, changes in BAD.items():
        path = saved(scored_metadata(**changes), tmp_path / f"{name}.gguf")
        with pytest.raises(LumiError) as caught:
            open_tokenizer(path)
        lines.append(f"{name}\n{caught.value}".replace(f"{tmp_path}/", ""))
    golden("\n\n".join(lines))


def test_missing_and_damaged_tokenizer_json_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LumiError, match="there is no such file"):
        open_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(LumiError, match="tokenizer error"):
        open_tokenizer(tmp_path)
