"""Where a rule is that egglog refuses: the file, the line, and the name that was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from lumi.egraph.rules import Rule, RuleBook
from lumi.errors import LumiError, Span

_PLACE = re.compile(r"In (\d+):(\d+)-[\d:]+: (.*)")
_UNKNOWN = re.compile(r"Unbound (?:function|symbol) (\S+)|No such ruleset: (\S+)")
_NAME = re.compile(r"[A-Za-z][\w-]*")


def placed(error: LumiError, book: RuleBook, chosen: Iterable[Rule]) -> LumiError:
    """The error of an engine, at the rule among the chosen that it is about; as it is when it is about none.

    egglog tells line and column within the one command that it read, and the text that it found there.
    """
    place = _PLACE.search(error.message)
    if place is None:
        return error
    line, column, found = int(place[1]), int(place[2]), place[3]
    for rule in chosen:
        starts = [0, *(m.end() for m in re.finditer("\n", rule.text))]
        offset = starts[line - 1] + column - 1 if line <= len(starts) else len(rule.text)
        if rule.text.startswith(found, offset):
            start = rule.span.start + offset
            reason = error.message[place.end() :].strip() or found
            return LumiError(
                "rules error",
                f"egglog refuses the rule {rule.name}: {reason}",
                Span(rule.span.source, start, start + len(found)),
                hint=_hint(reason, book),
            )
    return error


def _hint(reason: str, book: RuleBook) -> str:
    """The declared name that is nearest to one that is not."""
    unknown = _UNKNOWN.search(reason)
    if unknown is None:
        return "rules/sorts.egg declares what rules speak about"
    known = sorted({name for text in book.declarations for name in _NAME.findall(text)})
    near = difflib.get_close_matches(unknown[1] or unknown[2], known, 1)
    nearest = f"the nearest name is {near[0]}; " if near else ""
    return f"{nearest}rules/sorts.egg declares what rules speak about"
