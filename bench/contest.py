"""One measurement protocol for every engine: each runs in a process of its own and answers requests.

The parent asks the engines in turn, so that all of them meet the same noise; between requests an engine
waits for its standard input and computes nothing.  Requests and answers are lines of JSON:
{"prompt": [ids], "steps": n} is answered by {"prefill_s": …, "step_s": […], "tokens": […]}.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent


@dataclass(slots=True)
class Sample:
    """One request's answer: seconds of the prompt, seconds of each step, the greedy tokens."""

    prefill_s: float
    step_s: list[float]
    tokens: list[int]


@dataclass(slots=True)
class Engine:
    """A running contestant; `samples` are its answers so far."""

    name: str
    process: subprocess.Popen[str]
    version: str
    samples: list[Sample] = field(default_factory=list)

    def measure(self, prompt: Sequence[int], steps: int) -> Sample:
        """Run the prompt from an empty context, then `steps` greedy steps."""
        self._send({"prompt": list(prompt), "steps": steps})
        answer = self._receive()
        sample = Sample(answer["prefill_s"], answer["step_s"], answer["tokens"])
        self.samples.append(sample)
        return sample

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)

    def decode_tok_s(self) -> float:
        """Tokens a second of the median step of all samples."""
        return 1 / median(s for sample in self.samples for s in sample.step_s)

    def prefill_tok_s(self, count: int) -> float:
        """Prompt tokens a second of the median prompt."""
        return count / median(sample.prefill_s for sample in self.samples)

    def _send(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def _receive(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with status {self.process.wait()}")
        return json.loads(line)


def start(name: str, python: str, script: str, arguments: Sequence[str], threads: int) -> Engine | None:
    """Start an engine and wait until it has loaded; None, with the reason printed, when it cannot run."""
    environment = os.environ | {
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        "PYTHONPATH": str(ROOT),
        "TOKENIZERS_PARALLELISM": "false",
    }
    process = subprocess.Popen(
        [python, str(BENCH / script), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    engine = Engine(name, process, "")
    try:
        greeting = engine._receive()
    except RuntimeError:
        print(f"skipped {name}: it could not start (see above)", file=sys.stderr)
        return None
    if "missing" in greeting:
        process.wait()
        print(f"skipped {name}: {python} has no package {greeting['missing']}", file=sys.stderr)
        return None
    engine.version = greeting["version"]
    return engine


Step = Callable[[Sequence[int], int], int]
"""Run tokens after `past` others; returns the greedy next token."""


def serve(load: Callable[[], tuple[str, Step]]) -> None:
    """The engine's side: load, greet, answer until standard input ends.

    `load` returns a version and the step.  Only this function writes to standard output: what libraries
    print there goes to standard error.
    """
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(message: Any) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    try:
        version, step = load()
    except ImportError as error:
        say({"missing": error.name or str(error)})
        return
    say({"version": version})
    for line in sys.stdin:
        request = json.loads(line)
        say(_answer(step, request["prompt"], request["steps"]))


def _answer(step: Step, prompt: list[int], steps: int) -> dict[str, Any]:
    begin = time.perf_counter()
    tokens = [step(prompt, 0)]
    prefill = time.perf_counter() - begin
    seconds = []
    for i in range(steps):
        begin = time.perf_counter()
        tokens.append(step(tokens[-1:], len(prompt) + i))
        seconds.append(time.perf_counter() - begin)
    return {"prefill_s": prefill, "step_s": seconds, "tokens": tokens}
