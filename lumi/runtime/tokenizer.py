"""Text to token ids and back, for every kind of tokenizer a checkpoint comes with.

`open_tokenizer` finds it: the tokens of a GGUF file, or a `tokenizer.json`.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from lumi.errors import LumiError
from lumi.runtime.bytepair import read_byte_pairs
from lumi.runtime.sentencepiece import ScoredPieces
from lumi.runtime.tokenizer_json import read_tokenizer_json
from lumi.runtime.vocabulary import Vocabulary, read_vocabulary, unicode
from lumi.runtime.weights import Weights, open_weights


class TextStream(Protocol):
    """Turns ids into text one by one; holds back bytes until they are whole characters."""

    def push(self, token: int) -> str:
        """The text that became certain with this token, possibly none."""

    def finish(self) -> str:
        """What was held back; bytes that never became a character are "\ufffd"."""


class Tokenizer(Protocol):
    """Text to ids and back."""

    @property
    def stops(self) -> frozenset[int]:
        """The tokens that end a generation."""

    def encode(self, text: str) -> list[int]:
        """The ids of a prompt, a begin token first if the model wants one.

        Special tokens may be written out in the text.
        """

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of ids; special tokens write nothing."""

    def stream(self) -> TextStream:
        """A new stream."""


class Segmentation(Protocol):
    """How a vocabulary divides text."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens."""

    def segment(self, text: str) -> list[int]:
        """The ids of a text that holds no whole tokens."""

    def piece(self, token: int) -> bytes:
        """The bytes that a token writes."""


@dataclass(frozen=True, slots=True)
class PieceTokenizer:
    """The tokenizer of a GGUF file.

    `bos` is put in front if it is not None; with `spaced`, a text begins with a space that is not shown.
    """

    segmentation: Segmentation
    bos: int | None
    spaced: bool

    @property
    def stops(self) -> frozenset[int]:
        """The tokens that end a generation."""
        return self.segmentation.vocabulary.stops

    def encode(self, text: str) -> list[int]:
        """The ids of a prompt, `bos` first, once, if the text spells it too."""
        parts = self.segmentation.vocabulary.split(unicode(text))
        ids = [] if self.bos is None or parts[:1] == [self.bos] else [self.bos]
        if self.spaced and parts and isinstance(parts[0], str):
            parts[0] = " " + parts[0]
        for part in parts:
            ids += [part] if isinstance(part, int) else self.segmentation.segment(part)
        return ids

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of ids."""
        stream = self.stream()
        return "".join(map(stream.push, tokens)) + stream.finish()

    def stream(self) -> PieceStream:
        """A new stream."""
        return PieceStream(self.segmentation, self.spaced)


@dataclass(slots=True)
class PieceStream:
    """Joins the bytes of tokens; with `strip`, the first space of the text is not shown."""

    segmentation: Segmentation
    strip: bool
    decoder: Any = field(default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))

    def push(self, token: int) -> str:
        """The text that became certain with this token, possibly none."""
        if not 0 <= token < len(self.segmentation.vocabulary.texts):
            count = len(self.segmentation.vocabulary.texts)
            raise LumiError("tokenizer error", f"there is no token {token}", hint=f"ids are 0 … {count - 1}")
        return self._shown(self.decoder.decode(self.segmentation.piece(token)))

    def finish(self) -> str:
        """What was held back."""
        return self._shown(self.decoder.decode(b"", True))

    def _shown(self, text: str) -> str:
        if self.strip and text:
            self.strip = False
            return text.removeprefix(" ")
        return text


def open_tokenizer(source: Weights | str | Path) -> Tokenizer:
    """The tokenizer of open weights, of a GGUF file, or of a `tokenizer.json` or its folder.

    Raises `LumiError` ("tokenizer error") when there is none, or it is damaged or of an unknown kind.
    """
    if isinstance(source, Weights):
        if source.metadata:
            return _from_metadata(source)
        path = source.path if source.path.is_dir() else source.path.parent
    else:
        path = Path(source)
    if path.is_dir():
        path = path / "tokenizer.json"
    if not path.is_file():
        hint = "name a tokenizer.json or a GGUF file"
        raise LumiError("tokenizer error", f"{path}: there is no such file", hint=hint)
    return read_tokenizer_json(path) if path.suffix == ".json" else _from_metadata(open_weights(path))


def _from_metadata(weights: Weights) -> PieceTokenizer:
    metadata = weights.metadata
    model = metadata.get("tokenizer.ggml.model")
    if model not in ("llama", "gpt2"):
        message = f"{weights.path}: its tokenizer is {model or 'missing'}, not llama or gpt2"
        raise LumiError("tokenizer error", message, hint="pass the model's tokenizer.json")
    vocabulary = read_vocabulary(metadata)
    scored = model == "llama"
    segmentation = ScoredPieces(vocabulary) if scored else read_byte_pairs(vocabulary, metadata)
    begins = metadata.get("tokenizer.ggml.add_bos_token", scored)
    spaced = scored and metadata.get("tokenizer.ggml.add_space_prefix", True)
    return PieceTokenizer(segmentation, vocabulary.bos if begins else None, bool(spaced))
