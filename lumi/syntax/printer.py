"""Reads a form, writes the shortest text on one line that reads back as that form."""

from __future__ import annotations

import re

from lumi.syntax.form import PREFIXES, Float, Form, Int, Keyword, List, Str, Symbol, Vector

_PREFIX_OF = {head: prefix for prefix, head in PREFIXES.items()}
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]')


def show(form: Form) -> str:
    """The form as text: `read_one(show(form)) == form`, floats bit for bit.

    An infinite or NaN `Float` shows as the symbol the language has for it: `inf`, `-inf`, `nan`.
    """
    match form:
        case Symbol(name):
            return name
        case Keyword(name):
            return f":{name}"
        case Int(value) | Float(value):
            return repr(value)
        case Str(value):
            return show_string(value)
        case List((Symbol(head), quoted)) if head in _PREFIX_OF:
            return _PREFIX_OF[head] + show(quoted)
        case List(items):
            return f"({' '.join(map(show, items))})"
        case Vector(items):
            return f"[{' '.join(map(show, items))}]"


def show_string(text: str) -> str:
    """The text in double quotes, with control characters escaped."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _ESCAPES.get(character) or f"\\u{{{ord(character):x}}}"
