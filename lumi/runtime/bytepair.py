"""Byte-level byte-pair encoding (GPT-2, Llama 3, Qwen).

Source of the algorithm: Sennrich, Haddow and Birch (2016), over bytes as in GPT-2.  A pattern cuts the text
into words; a word starts as its UTF-8 bytes, each written as one printable character, and the
neighbouring pair that stands earliest in the list of merges joins first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

from lumi.errors import LumiError
from lumi.runtime.vocabulary import Kind, Vocabulary

_CONTRACTIONS = r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
_PATTERNS = {
    "gpt-2": r"'s|'t|'re|'ve|'m|'ll|'d| ?{L}+| ?{N}+| ?[^{s}{l}{n}]+|{S}+(?![^{s}])|{S}+",
    "llama-bpe": _CONTRACTIONS
    + r"|[^\r\n{l}{n}]?{L}+|{N}{{1,3}}| ?[^{s}{l}{n}]+[\r\n]*|{S}*[\r\n]+|{S}+(?![^{s}])|{S}+",
    "qwen2": _CONTRACTIONS
    + r"|[^\r\n{l}{n}]?{L}+|{N}| ?[^{s}{l}{n}]+[\r\n]*|{S}*[\r\n]+|{S}+(?![^{s}])|{S}+",
}
"""The word patterns of `tokenizer.ggml.pre`: l, n and s are the members of the classes L, N and S."""

_WHOLE_WORDS = frozenset({"llama-bpe"})
"""Patterns under which a word that is a token stays one, without any merge."""

_LAST_LETTER = 0x3FFFF
"""Planes 4 and above hold no letters and no numbers."""

_WHITE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


@dataclass(frozen=True, slots=True)
class BytePairs:
    """The segmentation that a list of merges defines; `ranks` gives a pair's place in it."""

    vocabulary: Vocabulary
    ranks: Mapping[tuple[str, str], int] = field(repr=False)
    words: re.Pattern[str] = field(repr=False)
    whole_words: bool

    def segment(self, text: str) -> list[int]:
        """The ids of a text that holds no whole tokens."""
        return [i for word in self.words.findall(text) for i in self._word(word)]

    def piece(self, token: int) -> bytes:
        """The bytes that a token writes; nothing for a control token."""
        text = self.vocabulary.texts[token]
        match self.vocabulary.kinds[token]:
            case Kind.CONTROL | Kind.UNUSED:
                return b""
            case Kind.USER_DEFINED:
                return text.encode()
            case _:
                return b"".join(_BYTES.get(c, c.encode()) for c in text)

    def _word(self, word: str) -> list[int]:
        ids = self.vocabulary.ids
        parts = [_CHARACTERS[b] for b in word.encode()]
        if self.whole_words and "".join(parts) in ids:
            return [ids["".join(parts)]]
        while len(parts) > 1:
            ranked = [self.ranks.get(pair, len(self.ranks)) for pair in pairwise(parts)]
            best = min(ranked)
            if best == len(self.ranks):
                break
            at = ranked.index(best)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        missing = next((p for p in parts if p not in ids), None)
        if missing is not None:
            raise LumiError("tokenizer error", f"there is no token for {missing!r}, a part of {word!r}")
        return [ids[p] for p in parts]


def read_byte_pairs(vocabulary: Vocabulary, metadata: Mapping[str, Any]) -> BytePairs:
    """The segmentation of a GGUF file whose tokenizer model is `gpt2`.  Raises "tokenizer error"."""
    merges = metadata.get("tokenizer.ggml.merges")
    if not isinstance(merges, tuple):
        raise LumiError("tokenizer error", "the GGUF file holds no merges")
    pairs = [tuple(merge.split(" ")) for merge in merges]
    bad = next((m for m, pair in zip(merges, pairs, strict=True) if len(pair) != 2), None)
    if bad is not None:
        raise LumiError("tokenizer error", f"the merge {bad!r} is no pair")
    kind = str(metadata.get("tokenizer.ggml.pre", "gpt-2"))
    kind = "gpt-2" if kind == "default" else kind
    if kind not in _PATTERNS:
        raise LumiError(
            "tokenizer error",
            f"the word pattern {kind!r} of the GGUF file is not one of {', '.join(_PATTERNS)}",
            hint="pass the model's tokenizer.json",
        )
    ranks = {(a, b): i for i, (a, b) in enumerate(pairs)}
    return BytePairs(vocabulary, ranks, _pattern(kind), kind in _WHOLE_WORDS)


@lru_cache
def _pattern(kind: str) -> re.Pattern[str]:
    letters, numbers = _members("L"), _members("N")
    classes = {"l": letters, "n": numbers, "s": _WHITE}
    return re.compile(_PATTERNS[kind].format(**classes, L=f"[{letters}]", N=f"[{numbers}]", S=f"[{_WHITE}]"))


def _members(category: str) -> str:
    """The characters of a Unicode category (its first letter) as ranges of a regular expression's class."""
    ranges: list[list[int]] = []
    for code in range(_LAST_LETTER + 1):
        if unicodedata.category(chr(code))[0] == category:
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)


def _byte_characters() -> list[str]:
    """GPT-2's printable character of each byte: itself where it prints, else one from U+0100 on."""
    shown = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = iter(range(0x100, 0x200))
    return [chr(b) if b in shown else chr(next(hidden)) for b in range(0x100)]


_CHARACTERS = _byte_characters()
_BYTES = {c: bytes([b]) for b, c in enumerate(_CHARACTERS)}
