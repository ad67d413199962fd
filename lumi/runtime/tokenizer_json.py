"""`tokenizer.json` of Hugging Face checkpoints, through the package `tokenizers` (an optional extra)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lumi.errors import LumiError
from lumi.runtime.vocabulary import END_TEXTS, unicode


@dataclass(frozen=True, slots=True)
class JsonTokenizer:
    """A tokenizer of the package; `bos` is put in front unless its own template has done so."""

    inner: Any = field(repr=False)
    bos: int | None
    stops: frozenset[int]

    def encode(self, text: str) -> list[int]:
        """The ids of a prompt, `bos` first."""
        ids: list[int] = self.inner.encode(unicode(text)).ids
        return ids if self.bos is None or ids[:1] == [self.bos] else [self.bos, *ids]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of ids; special tokens write nothing."""
        text: str = self.inner.decode(list(tokens), skip_special_tokens=True)
        return text

    def stream(self) -> JsonStream:
        """A new stream."""
        return JsonStream(self)


@dataclass(slots=True)
class JsonStream:
    """Decodes a growing list again and again, as a token's text may depend on the one before it.

    `tokens` begins with the last token that was written whole; `written` is the text up to there.
    """

    tokenizer: JsonTokenizer
    tokens: list[int] = field(default_factory=list)
    written: str = ""

    def push(self, token: int) -> str:
        """The text that became certain with this token, possibly none."""
        self.tokens.append(token)
        text = self.tokenizer.decode(self.tokens)
        if text.endswith("\ufffd"):
            return ""
        new = text[len(self.written) :]
        if new:
            self.tokens = self.tokens[-1:]
            self.written = self.tokenizer.decode(self.tokens)
        return new

    def finish(self) -> str:
        """What was held back."""
        return self.tokenizer.decode(self.tokens)[len(self.written) :]


def read_tokenizer_json(path: Path) -> JsonTokenizer:
    """Open a `tokenizer.json`; the special tokens are named by `tokenizer_config.json` beside it."""
    try:
        import tokenizers
    except ImportError:
        hint = "pip install -e '.[tokenizers]' in Lumi's checkout, or use a GGUF file, which needs no package"
        raise LumiError("tokenizer error", f"{path} needs the package tokenizers", hint=hint) from None
    try:
        inner = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises plain Exception for every fault of the file
        raise LumiError("tokenizer error", f"{path}: {error}") from None
    config = _config(path.with_name("tokenizer_config.json"))
    bos = _token(inner, config, "bos") if config.get("add_bos_token", True) else None
    ends = [_token(inner, config, "eos"), *map(inner.token_to_id, END_TEXTS)]
    return JsonTokenizer(inner, bos, frozenset(i for i in ends if i is not None))


def _config(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        config = json.loads(path.read_text())
    except (OSError, ValueError):
        raise LumiError("tokenizer error", f"{path}: the file is no JSON") from None
    return config if isinstance(config, dict) else {}


def _token(inner: Any, config: dict[str, Any], name: str) -> int | None:
    """The id of the token that the configuration names, as text or as {"content": text}."""
    text = config.get(f"{name}_token")
    text = text.get("content") if isinstance(text, dict) else text
    found: int | None = inner.token_to_id(text) if isinstance(text, str) else None
    return found
