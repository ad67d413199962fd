"""Explains why a text is not forms: what is wrong, what was expected, what to write instead."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from lark import Token

from lumi.errors import LumiError, Source, Span

SYNTAX = "syntax error"
CLOSERS = {"(": ")", "[": "]"}

_BLANK = ("SPACE", "COMMENT")
_WORD = re.compile(r"[^\s()\[\]{}\"';`~@,]+")
_PYTHON_NAMES = {"None": "nil", "True": "true", "False": "false"}
_NAMED_ARGUMENT = re.compile(r"([A-Za-z_][\w-]*)=(.*)")
_CHARACTERS = {
    ",": ("`,` is not part of the language", "separate with spaces: (f x y), [2 3]"),
    "{": ("`{` is reserved", "lists and shapes use [ ], named arguments are written `:name value`"),
    "}": ("`}` is reserved", "lists and shapes use [ ], named arguments are written `:name value`"),
    "#": ("`#` does not begin a comment", "a comment begins with `;`, and `#_` skips the form after it"),
    "@": ("`@` stands only in `~@`", "a matrix product is written (matmul a b)"),
    ":": ("a keyword needs a name right after its colon", "named arguments are written `:name value`"),
}


class Incomplete(LumiError):  # noqa: N818 (what it says of the text)
    """The text ends inside a form: more text could mend it."""


def explain(source: Source, tokens: Iterable[Token]) -> LumiError:
    """The first mistake of a text that the grammar refused."""
    return _Scan(source).run(tokens)


def neighbours(left: Span, right: Span) -> LumiError | None:
    """The mistake of two forms that touch, such as `f(x)`, or None when they may."""
    first, second = left.text[0], right.text[0]
    if left.stop != right.start or first in "([" or (first in "'`~" and left.text[-1] in ")]"):
        return None
    message, label, hint = "two forms touch", "", "separate them with a space"
    if first == second == '"':
        message, hint = "two strings touch", 'a string, also one of many lines, has one `"` at each end'
    elif second == "(":
        message, hint = (
            "the name of a call stands inside its bracket",
            f"write ({left.text} …), not {left.text}(…)",
        )
    elif second == "[":
        message = "`[` does not index"
        hint = (
            f"write {left.text} [… with a space when a list is meant; take and slice read parts of a tensor"
        )
    elif second == ":":
        label, hint = "a name, then a keyword", "named arguments are written `:name value`"
    return LumiError(SYNTAX, message, Span(left.source, left.start, right.start + 1), label, hint)


def python_symbol(name: str, span: Span) -> LumiError | None:
    """The mistake of a symbol that only Python spells so, or None."""
    if name in _PYTHON_NAMES:
        return LumiError(SYNTAX, f"`{name}` is Python's", span, hint=f"write `{_PYTHON_NAMES[name]}`")
    argument = _NAMED_ARGUMENT.fullmatch(name)
    if argument:
        hint = f"write :{argument[1]} {argument[2]}".rstrip()
        return LumiError(SYNTAX, "a named argument has no `=`", span, hint=hint)
    return None


class _Scan:
    """Follows the brackets of one text up to its first mistake."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._open: list[Token] = []
        self._suspect: tuple[Token, Token] | None = None  # an open bracket, what stands left of it below
        self._previous: Token | None = None

    def run(self, tokens: Iterable[Token]) -> LumiError:
        """The first mistake."""
        for token in tokens:
            if token.type in _BLANK:
                continue
            mistake = self._step(token)
            if mistake:
                return mistake
            self._previous = token
        return self._end()

    def _step(self, token: Token) -> LumiError | None:
        if token.type.startswith("CLOSE"):
            return self._after_prefix(token) or self._close(token)
        self._watch_indentation(token)
        if token.type == "BAD":
            return self._bad(token)
        previous = self._previous
        if token.type.startswith("OPEN"):
            self._open.append(token)
            if previous is not None and previous.type == "SYMBOL":
                return neighbours(self._span(previous), self._span(token))
        return None

    def _watch_indentation(self, token: Token) -> None:
        """A line that begins at or left of an open bracket tells that the bracket was to be closed."""
        begins_line = self._previous is None or (self._previous.end_line or 0) < (token.line or 0)
        if self._open and not self._suspect and begins_line:
            innermost = self._open[-1]
            if (token.column or 0) <= (innermost.column or 0):
                self._suspect = innermost, token

    def _close(self, token: Token) -> LumiError | None:
        if not self._open:
            hint = "remove it, or look for a bracket that is closed too early before it"
            return LumiError(SYNTAX, f"this `{token}` closes nothing", self._span(token), hint=hint)
        opener = self._open[-1]
        if CLOSERS[opener] != token:
            if self._suspect:
                return self._unclosed(LumiError)
            span = self._span(opener)
            hint = f"the `{opener}` stands at {span.line}:{span.column}"
            message = f"`{token}` does not close `{opener}`"
            return LumiError(SYNTAX, message, self._span(token), f"expected `{CLOSERS[opener]}`", hint)
        self._open.pop()
        if self._suspect and self._suspect[0] is opener:
            self._suspect = None
        return None

    def _after_prefix(self, token: Token) -> LumiError | None:
        prefix = self._previous
        if prefix is None or prefix.type not in ("PREFIX", "DISCARD"):
            return None
        hint = (
            'strings are written with `"`'
            if prefix == "'"
            else f"what follows is the `{token}` of the form around it"
        )
        return LumiError(SYNTAX, f"a form is expected after `{prefix}`", self._span(prefix), hint=hint)

    def _end(self) -> LumiError:
        if self._open:
            return self._unclosed(Incomplete)
        end = len(self._source.text)
        span = self._span(self._previous) if self._previous else Span(self._source, end, end)
        return Incomplete(SYNTAX, f"a form is expected after `{span.text}`", span, hint="the text ends here")

    def _unclosed(self, kind: type[LumiError]) -> LumiError:
        opener = self._open[-1]
        missing = "".join(CLOSERS[bracket] for bracket in reversed(self._open))
        hint = f"`{missing}` is missing at the end of the text"
        if self._suspect:
            opener, below = self._suspect
            hint = f"line {below.line} begins left of what it holds: close it before that line"
        span = self._span(opener)
        return kind(SYNTAX, f"this `{opener}` is never closed", span, f"expected `{CLOSERS[opener]}`", hint)

    def _bad(self, token: Token) -> LumiError:
        start = token.start_pos or 0
        character = token[0]
        span = Span(self._source, start, start + 1)
        if character == '"':
            hint = 'a `"` inside a string is written `\\"`; a string that should end here lacks its first `"`'
            return Incomplete(SYNTAX, "this string is never closed", span, 'expected `"`', hint)
        previous = self._previous
        if character == ":" and previous is not None and previous.end_pos == start:
            span = Span(self._source, previous.start_pos or 0, start + 1)
            return LumiError(SYNTAX, "the colon of a keyword comes first", span, hint=f"write :{previous}")
        if character in _CHARACTERS:
            message, hint = _CHARACTERS[character]
            return LumiError(SYNTAX, message, span, hint=hint)
        word = _WORD.match(token)
        if word and (character.isdecimal() or character in "+-."):
            return _number(word[0], Span(self._source, start, start + len(word[0])))
        name = unicodedata.name(character, "a control character").lower()
        message = f"unexpected character U+{ord(character):04X} ({name})"
        return LumiError(SYNTAX, message, span, hint="remove it, or write it inside a string")

    def _span(self, token: Token) -> Span:
        return Span(self._source, token.start_pos or 0, token.end_pos or 0)


def _number(word: str, span: Span) -> LumiError:
    """What to write instead of a word that begins like a number."""
    hint = "a name begins with a letter or a sign: numbers are written 12, -3, 0.5, 1e-5"
    plain = word.replace("_", "")
    plain = re.sub(r"(?<!\d)\.(?=\d)", "0.", plain)
    plain = re.sub(r"(?<=\d)\.(?!\d)", ".0", plain)
    if re.fullmatch(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", plain):
        hint = f"write {plain}"
    elif re.fullmatch(r"[+-]?0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+", word):
        hint = f"write {int(word, 0)}: integers are decimal"
    return LumiError(SYNTAX, f"`{word}` is neither a number nor a name", span, hint=hint)
