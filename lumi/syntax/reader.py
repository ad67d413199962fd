"""Reads a source text, writes forms with spans.

The grammar is `grammar/lumi.lark`; whatever it refuses is explained by `mistake`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from lumi import paths
from lumi.errors import LumiError, Source, Span
from lumi.syntax.form import PREFIXES, Float, Form, Int, Keyword, List, Str, Symbol, Vector
from lumi.syntax.mistake import SYNTAX, Incomplete, explain, neighbours, python_symbol

__all__ = ["Incomplete", "read", "read_one", "tokens"]

_DEEPEST = 200
_ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]{1,6}\}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}


def read(source: Source) -> tuple[Form, ...]:
    """Every form of the text, in order.

    Raises a "syntax error"; it is an `Incomplete` when more text could still mend it.
    """
    try:
        tree = _grammar().parse(source.text)
    except UnexpectedInput:
        raise explain(source, tokens(source)) from None
    return _Builder(source).forms(tree.children, depth=0)


def read_one(source: Source) -> Form:
    """The one form of the text.  Raises a "syntax error" when there are none or several."""
    forms = read(source)
    if len(forms) == 1:
        return forms[0]
    if not forms:
        raise Incomplete(SYNTAX, "a form is expected, the text is empty", Span(source, 0, 0))
    raise LumiError(SYNTAX, "one form is expected, here is another", forms[1].span)


def tokens(source: Source) -> Iterator[Token]:
    """The tokens of the text, spaces and comments included; ends early with a token BAD."""
    lexer = _grammar().lex(source.text, dont_ignore=True)
    stop = 0
    try:
        for token in lexer:
            stop = token.end_pos or stop
            yield token
    except UnexpectedInput:
        rest = source.text[stop:]
        yield Token("BAD", rest, start_pos=stop, end_pos=len(source.text))


@cache
def _grammar() -> Lark:
    text = (paths.data("grammar") / "lumi.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer="basic")


class _Builder:
    """Turns lark's trees into forms of one source."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def forms(self, children: Iterable[Token | Tree[Token]], depth: int) -> tuple[Form, ...]:
        built = tuple(
            self._form(child, depth)
            for child in children
            if isinstance(child, Token) or child.data != "discard"
        )
        for left, right in pairwise(built):
            mistake = left.span and right.span and neighbours(left.span, right.span)
            if mistake:
                raise mistake
        return built

    def _form(self, child: Token | Tree[Token], depth: int) -> Form:
        if isinstance(child, Token):
            return self._atom(child)
        first, *inner = child.children
        assert isinstance(first, Token)
        if depth == _DEEPEST:
            message = f"brackets are nested deeper than {_DEEPEST}"
            raise LumiError(SYNTAX, message, self._span(first), hint="give the inner part a name of its own")
        if child.data == "prefixed":
            return self._prefixed(first, self.forms(inner, depth + 1))
        last = inner.pop()
        assert isinstance(last, Token)
        items = self.forms(inner, depth + 1)
        span = Span(self._source, first.start_pos or 0, last.end_pos or 0)
        return List(items, span) if child.data == "list" else Vector(items, span)

    def _prefixed(self, prefix: Token, inner: tuple[Form, ...]) -> Form:
        (form,) = inner
        head = Symbol(PREFIXES[prefix], self._span(prefix))
        stop = form.span.stop if form.span else 0
        return List((head, form), Span(self._source, prefix.start_pos or 0, stop))

    def _atom(self, token: Token) -> Form:
        span = self._span(token)
        match token.type:
            case "SYMBOL":
                mistake = python_symbol(token, span)
                if mistake:
                    raise mistake
                return Symbol(str(token), span)
            case "KEYWORD":
                return Keyword(token[1:], span)
            case "INT":
                return self._int(token, span)
            case "FLOAT":
                return self._float(token, span)
            case _:
                return Str(_ESCAPE.sub(lambda m: self._escape(m, span), token[1:-1]), span)

    def _int(self, token: Token, span: Span) -> Int:
        try:
            return Int(int(token), span)
        except ValueError:  # Python converts no more than a few thousand digits
            raise LumiError(SYNTAX, f"an integer of {len(token)} digits is too long", span) from None

    def _float(self, token: Token, span: Span) -> Float:
        value = float(token)
        if value in (float("inf"), float("-inf")):
            hint = "write `inf` or `-inf` when infinity is meant"
            raise LumiError(SYNTAX, f"{token} is beyond the range of f64", span, hint=hint)
        return Float(value, span)

    def _escape(self, match: re.Match[str], string: Span) -> str:
        code = match[1]
        if code in _ESCAPES:
            return _ESCAPES[code]
        if len(code) > 1 and int(code[2:-1], 16) < 0x110000:
            return chr(int(code[2:-1], 16))
        start = string.start + 1 + match.start()
        span = Span(self._source, start, start + len(match[0]))
        hint = r"the escapes are \n \t \r \" \\ and \u{1F600}"
        raise LumiError(SYNTAX, f"there is no escape {match[0]} in strings", span, hint=hint)

    def _span(self, token: Token) -> Span:
        return Span(self._source, token.start_pos or 0, token.end_pos or 0)
