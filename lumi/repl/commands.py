"""The commands of the prompt: `,doc softmax` and others, which look at things instead of computing them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lumi import inspect
from lumi.compiler import Options, Stage, compile_graph
from lumi.errors import LumiError
from lumi.hlir import text as hlir
from lumi.hlir.graph import Node
from lumi.interpreter.scope import nearest
from lumi.interpreter.value import Outputs, Value, kind_of
from lumi.repl.session import Conversation

_TIMED_SECONDS = 0.5
_TIMED_RUNS = 1000


class QuitError(Exception):
    """The wish to end the conversation."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: what stands behind its name, what it does, and how."""

    argument: str
    summary: str
    run: Callable[[Conversation, str], str]


def run(conversation: Conversation, text: str) -> Iterator[str]:
    """What a line that begins with a comma prints.  Raises `LumiError` for a wrong one, `QuitError`."""
    name, _, argument = text.strip().removeprefix(",").partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        hint = nearest(name, list(COMMANDS)) or ",help lists the commands"
        raise LumiError("command error", f"there is no command ,{name}", hint=hint)
    argument = argument.strip()
    if bool(argument) is not bool(command.argument):
        raise LumiError("command error", f"write ,{name} {command.argument}".rstrip())
    yield command.run(conversation, argument)


def _doc(conversation: Conversation, name: str) -> str:
    return str(conversation.session.document(name))


def _type(conversation: Conversation, text: str) -> str:
    return type_of(conversation.value(text))


def type_of(value: Value) -> str:
    """Dtype and shape of tensors, the kind of anything else."""
    match value:
        case Node():
            return str(value.type)
        case Outputs(named):
            return "\n".join(f"{name}: {node.type}" for name, node in named.items())
        case tuple():
            return f"list of {len(value)}: {', '.join(map(type_of, value))}"
        case _:
            return kind_of(value)


def _graph(conversation: Conversation, text: str) -> str:
    return hlir.show(conversation.graph(text))


def _stage(stage: Stage) -> Callable[[Conversation, str], str]:
    def run(conversation: Conversation, text: str) -> str:
        options = Options(target=conversation.evaluator.target)
        work = compile_graph(conversation.graph(text), options, until=stage)
        return inspect.show(work, stage).rstrip()

    return run


def _time(conversation: Conversation, text: str) -> str:
    """Time an expression; params and states are afterwards what they were."""
    graph, evaluator = conversation.graph(text), conversation.evaluator
    params, states = dict(evaluator.params), dict(evaluator.states)
    try:
        first = _seconds(lambda: evaluator.run(graph))
        runs = [_seconds(lambda: evaluator.run(graph))]
        while sum(runs) < _TIMED_SECONDS and len(runs) < _TIMED_RUNS:
            runs.append(_seconds(lambda: evaluator.run(graph)))
    finally:
        evaluator.params, evaluator.states = params, states
    best, middle = min(runs) * 1e6, statistics.median(runs) * 1e6
    return f"first {first * 1e3:.1f} ms, then {best:.1f} µs at best, median of {len(runs)}: {middle:.1f} µs"


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _load(conversation: Conversation, path: str) -> str:
    return conversation.load(Path(path))


def _help(conversation: Conversation, argument: str) -> str:
    calls = {f",{name} {command.argument}".rstrip(): command.summary for name, command in COMMANDS.items()}
    width = max(map(len, calls))
    return "\n".join(f"{call:{width}}  {summary}" for call, summary in calls.items())


def _quit(conversation: Conversation, argument: str) -> str:
    raise QuitError


COMMANDS = {
    "doc": Command("NAME", "what a name is, and how it is called", _doc),
    "type": Command("EXPR", "dtype and shape of an expression, without running it", _type),
    "graph": Command("EXPR", "the tensor graph of an expression or a model", _graph),
    "fields": Command("EXPR", "its regions as fields over named axes", _stage(Stage.FIELDS)),
    "kernels": Command("EXPR", "the kernels that lumi compile makes of it", _stage(Stage.KERNELS)),
    "plan": Command("EXPR", "its buffers and launches", _stage(Stage.PLAN)),
    "time": Command("EXPR", "how long it takes", _time),
    "load": Command("PATH", "take over the definitions of a .lumi file", _load),
    "help": Command("", "this list", _help),
    "quit": Command("", "leave; so does Ctrl-D", _quit),
}
"""Every command by its name."""
