"""The tokens of a GGUF file: their texts, kinds and scores, and how they are found in a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from lumi.errors import LumiError

END_TEXTS = ("<end_of_turn>", "<|eot_id|>", "<|im_end|>", "<|end|>", "<|endoftext|>")
"""Tokens that end a model's turn under every tokenizer that has them, whatever the metadata says."""


class Kind(IntEnum):
    """What a token stands for; the numbers of `tokenizer.ggml.token_type`."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens by id.  `ids` finds a text's token; `stops` end a generation.

    `whole` holds the control and user-defined tokens by their first character, each with the lengths
    that occur, longest first: they are taken out of a text before it is segmented.
    """

    texts: tuple[str, ...] = field(repr=False)
    kinds: Sequence[int] = field(repr=False)
    scores: Sequence[float] = field(repr=False)
    ids: Mapping[str, int] = field(repr=False)
    whole: Mapping[str, tuple[int, ...]] = field(repr=False)
    bos: int | None
    stops: frozenset[int]
    unknown: int | None

    def split(self, text: str) -> list[str | int]:
        """The text with every whole token replaced by its id: leftmost first, then longest."""
        parts: list[str | int] = []
        start = at = 0
        while at < len(text):
            token = self._whole_at(text, at) if text[at] in self.whole else None
            if token is None:
                at += 1
                continue
            if at > start:
                parts.append(text[start:at])
            parts.append(token)
            at += len(self.texts[token])
            start = at
        if start < len(text):
            parts.append(text[start:])
        return parts

    def _whole_at(self, text: str, at: int) -> int | None:
        for length in self.whole[text[at]]:
            token = self.ids.get(text[at : at + length])
            if token is not None and self.kinds[token] in (Kind.CONTROL, Kind.USER_DEFINED):
                return token
        return None


def read_vocabulary(metadata: Mapping[str, Any]) -> Vocabulary:
    """The vocabulary in the metadata of a GGUF file.  Raises `LumiError` ("tokenizer error")."""
    texts = metadata.get("tokenizer.ggml.tokens")
    if not isinstance(texts, tuple) or not texts:
        raise LumiError("tokenizer error", "the GGUF file holds no tokens")
    kinds = _column(metadata, "token_type", len(texts), Kind.NORMAL)
    ids = dict(zip(reversed(texts), range(len(texts) - 1, -1, -1), strict=True))
    lengths: dict[str, set[int]] = {}
    for i in np.flatnonzero(np.isin(kinds, (Kind.CONTROL, Kind.USER_DEFINED))).tolist():
        if texts[i]:
            lengths.setdefault(texts[i][0], set()).add(len(texts[i]))
    ends = [_special(metadata, name, len(texts)) for name in ("eos", "eot", "eom")]
    ends += [ids.get(text) for text in END_TEXTS]
    return Vocabulary(
        texts,
        kinds,
        _column(metadata, "scores", len(texts), 0.0),
        ids,
        {first: tuple(sorted(found, reverse=True)) for first, found in lengths.items()},
        _special(metadata, "bos", len(texts)),
        frozenset(i for i in ends if i is not None),
        _special(metadata, "unknown", len(texts)),
    )


def unicode(text: str) -> str:
    """The text with `?` for what UTF-8 cannot write: bytes of a command line that were no characters."""
    return text.encode("utf-8", "replace").decode()


def _column(metadata: Mapping[str, Any], name: str, count: int, default: float) -> list[Any]:
    """One number a token."""
    values = metadata.get(f"tokenizer.ggml.{name}")
    if values is None:
        return [default] * count
    if not isinstance(values, np.ndarray) or len(values) != count:
        raise LumiError("tokenizer error", f"tokenizer.ggml.{name} is not {count} numbers, one a token")
    numbers: list[Any] = values.tolist()
    return numbers


def _special(metadata: Mapping[str, Any], name: str, count: int) -> int | None:
    """The id of a special token, or None where the file names none."""
    value = metadata.get(f"tokenizer.ggml.{name}_token_id")
    if value is not None and not (isinstance(value, int) and 0 <= value < count):
        raise LumiError("tokenizer error", f"tokenizer.ggml.{name}_token_id is {value}, of {count} tokens")
    return value
