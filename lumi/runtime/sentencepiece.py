"""Segmentation by scores, as SentencePiece's byte-pair models do it (Gemma, Llama 2, Mistral).

Source of the algorithm: Kudo and Richardson, "SentencePiece" (2018), as llama.cpp runs it on the tokens of
a GGUF file.  A text starts as single characters, spaces written "▁"; of all neighbouring pairs that
form a token, the one of the highest score joins first, the leftmost of equals.  A character that is no
token falls back to one byte token for each of its UTF-8 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from lumi.errors import LumiError
from lumi.runtime.vocabulary import Kind, Vocabulary

_SPACE = "▁"


@dataclass(frozen=True, slots=True)
class ScoredPieces:
    """The segmentation that a scored vocabulary defines."""

    vocabulary: Vocabulary

    def segment(self, text: str) -> list[int]:
        """The ids of a text that holds no whole tokens."""
        pieces = self._join(list(text.replace(" ", _SPACE)))
        return [i for piece in pieces for i in self._ids(piece)]

    def piece(self, token: int) -> bytes:
        """The bytes that a token writes; nothing for a control token."""
        text = self.vocabulary.texts[token]
        match self.vocabulary.kinds[token]:
            case Kind.CONTROL | Kind.UNUSED:
                return b""
            case Kind.BYTE:
                return _byte(text)
            case Kind.UNKNOWN:
                return " ⁇ ".encode()
            case _:
                return text.replace(_SPACE, " ").encode()

    def _join(self, pieces: list[str]) -> list[str]:
        """Join pairs, best score first: the joined piece takes the left part's place, the right is empty."""
        before = list(range(-1, len(pieces) - 1))
        after = list(range(1, len(pieces) + 1))
        queue: list[tuple[float, int, int, str]] = []

        def offer(left: int, right: int) -> None:
            if left < 0 or right >= len(pieces):
                return
            joined = pieces[left] + pieces[right]
            token = self.vocabulary.ids.get(joined)
            if token is not None:
                heappush(queue, (-self.vocabulary.scores[token], left, right, joined))

        for right in range(1, len(pieces)):
            offer(right - 1, right)
        while queue:
            _, left, right, joined = heappop(queue)
            if not pieces[left] or not pieces[right] or pieces[left] + pieces[right] != joined:
                continue
            pieces[left], pieces[right] = joined, ""
            after[left] = after[right]
            if after[right] < len(pieces):
                before[after[right]] = left
            offer(before[left], left)
            offer(left, after[left])
        return [piece for piece in pieces if piece]

    def _ids(self, piece: str) -> Iterator[int]:
        ids = self.vocabulary.ids
        if piece in ids:
            yield ids[piece]
            return
        for byte in piece.encode():
            token = ids.get(f"<0x{byte:02X}>", self.vocabulary.unknown)
            if token is None:
                raise LumiError("tokenizer error", f"no token for {piece!r}, and none for unknown text")
            yield token


def _byte(text: str) -> bytes:
    """`<0x0A>` is b"\\n"."""
    try:
        return bytes([int(text[1:-1], 16)])
    except ValueError:
        raise LumiError("tokenizer error", f"the byte token {text!r} is not of the form <0x0A>") from None
