"""The prompt at a terminal, and the same conversation read from a pipe."""

from __future__ import annotations

import gc
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from lumi import paths
from lumi.backends.cpu.compile import find_compiler, has_openmp
from lumi.backends.cuda import compile as nvrtc
from lumi.backends.cuda.cublas import open_library
from lumi.backends.cuda.gpu import open_gpu
from lumi.compiler import compile_graph
from lumi.egraph.engine import restore
from lumi.errors import LumiError, Source
from lumi.interpreter.library import library
from lumi.repl import commands
from lumi.repl.evaluator import QUICK
from lumi.repl.session import NAME, Conversation
from lumi.syntax.mistake import CLOSERS
from lumi.syntax.reader import Incomplete, read, tokens

_BANNER = "Lumi.  Expressions and definitions; ,help lists the commands, Ctrl-D leaves."
_PROMPT, _CONTINUED = "lumi> ", "    … "
_USUAL = "(softmax (matmul (ones [2 2]) (ones [2 2])))"
"""An expression that takes the compiler most of the ways that small ones take."""

_SMALLER = "use smaller sizes"
_INTERRUPTED = LumiError("interrupted", "stopped by Ctrl-C")


@dataclass(slots=True)
class Entry:
    """An entry, what it printed, and the mistake that ended it, if one did."""

    text: str
    results: list[str] = field(default_factory=list)
    error: LumiError | None = None


Print = Callable[[str], None]


def answer(conversation: Conversation, text: str, say: Print) -> Entry:
    """Answer an entry; no mistake, Ctrl-C or fault of ours ends the conversation.  Raises `QuitError`."""
    entry = Entry(text)
    try:
        is_command = text.lstrip().startswith(",")
        for result in commands.run(conversation, text) if is_command else conversation.evaluate(text):
            entry.results.append(result)
            say(result)
    except LumiError as error:
        entry.error = error
    except KeyboardInterrupt:
        entry.error = _INTERRUPTED
    except commands.QuitError:
        raise
    except MemoryError as error:
        entry.error = LumiError("memory error", f"this machine is out of memory: {error}", hint=_SMALLER)
    except Exception as error:
        if os.environ.get("LUMI_DEBUG"):
            traceback.print_exc()
        hint = "set LUMI_DEBUG=1 to see where; please report it"
        entry.error = LumiError("internal error", f"{type(error).__name__}: {error}", hint=hint)
    return entry


def is_complete(text: str) -> bool:
    """Whether an entry can be answered: it does not end inside a form."""
    if text.lstrip().startswith(","):
        return True
    try:
        read(Source(NAME, text))
    except Incomplete:
        return False
    except LumiError:
        return True
    return True


def entries(lines: Iterable[str]) -> Iterator[str]:
    """The entries of a text: lines are joined until no bracket is open."""
    pending = ""
    for line in lines:
        pending += line
        if pending.strip() and is_complete(pending):
            yield pending.strip("\n")
            pending = ""
    if pending.strip():
        yield pending.strip("\n")


def converse(
    lines: Iterable[str], say: Print, complain: Print, target: str = "cpu", relaxed: tuple[str, ...] = ()
) -> list[Entry]:
    """Answer every entry of a text; one that ends too early is a mistake here."""
    conversation = Conversation(target, relaxed)
    answered = []
    for text in entries(lines):
        try:
            entry = answer(conversation, text, say)
        except commands.QuitError:
            break
        answered.append(entry)
        if entry.error:
            complain(entry.error.render())
    return answered


def interact(target: str = "cpu", relaxed: tuple[str, ...] = ()) -> None:
    """Talk with the person at the terminal until they leave."""
    print(_BANNER)
    warming = threading.Thread(target=warm_up, args=(target,), daemon=True)
    warming.start()
    conversation = Conversation(target, relaxed)
    terminal = _terminal(conversation)
    while True:
        try:
            text = terminal.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if not text.strip():
            continue
        try:
            warming.join()  # the compiler is not made for two threads
            entry = answer(conversation, text, print)
        except commands.QuitError:
            return
        if entry.error:
            print(entry.error.render(), file=sys.stderr)
        tidy()


def tidy() -> None:
    """Make ready for the next entry while it is being typed: in the thread that answers entries."""
    restore()


def warm_up(target: str) -> None:
    """Find out, while the first entry is being typed, what every process has to find out once.

    What has been loaded until then stays: to look it through for garbage again and again takes longer than
    to answer an entry.
    """
    with suppress(LumiError):
        compile_graph(Conversation(target).graph(_USUAL), replace(QUICK, target=target))
        if target == "cuda":
            nvrtc.prepare()
            open_library(open_gpu())
        elif (compiler := find_compiler()) is not None:
            has_openmp(compiler)
    library().supply_all()
    gc.collect()
    gc.freeze()


def _terminal(conversation: Conversation) -> Any:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory, History, InMemoryHistory
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from lumi.interpreter.registry import SPECIAL
    from lumi.repl.completer import NameCompleter
    from lumi.repl.lexer import STYLE, FormLexer

    keys = KeyBindings()

    @keys.add("enter")
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n" + " " * indentation(buffer.document.text_before_cursor))

    history: History
    try:
        paths.cache().mkdir(parents=True, exist_ok=True)
        history = FileHistory(str(paths.cache() / "history"))
    except OSError:
        history = InMemoryHistory()
    summaries = {name: command.summary for name, command in commands.COMMANDS.items()}
    return PromptSession(
        _PROMPT,
        multiline=True,
        prompt_continuation=_CONTINUED,
        key_bindings=keys,
        history=history,
        lexer=FormLexer(SPECIAL, _Known(conversation)),
        style=STYLE,
        completer=NameCompleter(conversation, summaries),
        complete_while_typing=False,
    )


def indentation(text: str) -> int:
    """The column at which the line after `text` begins: inside the innermost open bracket."""
    opened = []
    for token in tokens(Source(NAME, text)):
        if token in CLOSERS:
            opened.append(token)
        elif token in CLOSERS.values() and opened:
            opened.pop()
    if not opened:
        return 0
    bracket = opened[-1]
    return (bracket.column or 1) + (1 if bracket == "(" else 0)


class _Known:
    """The names that are defined now."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def __contains__(self, name: object) -> bool:
        return name in set(self._conversation.names())
