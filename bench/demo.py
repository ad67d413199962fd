"""What `make demo` runs: the real Gemma-3-270M, from a .lumi file to text on this CPU.

Each step is a command of the `lumi` program, shown before it runs, to be tried again with changes.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
import time
from pathlib import Path

from checkpoint import gemma_file
from contest import ROOT

from lumi import paths
from lumi.backends.targets import open_backend
from lumi.cli.main import run

PROMPT = "The capital of France is"
TOKENS = 64
PROGRAM = os.path.relpath(Path(sys.executable).with_name("lumi"))
"""The `lumi` program of this Python, as seen from here."""


def main() -> int:
    start = time.perf_counter()
    say("1. The weights: Gemma-3-270M, Q4_K_M, 253 MB (under the Gemma terms of use)")
    gguf = gemma_file()
    say(f"   {gguf}")
    plan = paths.cache() / "gemma3-270m.lumiplan"
    status = compiled(plan, gguf)
    if status:
        return status
    say(f"3. The text: {TOKENS} tokens, greedy")
    status = lumi(
        "generate", str(plan), "--weights", str(gguf), "--prompt", PROMPT, "--max-tokens", str(TOKENS)
    )
    seconds = time.perf_counter() - start
    say(f"All of it took {seconds:.0f} s. Next: {PROGRAM} repl, {PROGRAM} explain {plan}")
    return status


def compiled(plan: Path, gguf: Path) -> int:
    """Make the plan, unless the one that is there was made of the same model, weights and Lumi."""
    model = ROOT / "models" / "gemma3.lumi"
    mark = plan.with_suffix(".made-of")
    made_of = ingredients(gguf)
    if plan.is_file() and mark.is_file() and mark.read_text() == made_of:
        say(f"2. The compiler: model, weights and Lumi are as they were, so {plan} is used again")
        return 0
    mark.unlink(missing_ok=True)
    say("2. The compiler: saturate every distinct region, search the kernels, write the plan")
    status = lumi(
        "compile", str(model), "--weights", str(gguf), "--packed", "--target", "cpu", "-o", str(plan)
    )
    if status == 0:
        mark.write_text(made_of)
    return status


def ingredients(gguf: Path) -> str:
    """What a plan depends on: this machine, the size and time of the weights, every file of Lumi."""
    seen = gguf.stat()
    digest = hashlib.sha256(f"{open_backend('cpu').name} {gguf} {seen.st_size} {seen.st_mtime_ns}".encode())
    for folder in ("lumi", "grammar", "models", "rules", "stdlib"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path} ".encode() + path.read_bytes())
    return digest.hexdigest()


def lumi(*arguments: str) -> int:
    """Show a command line that can be pasted, and run it in this process; returns its exit status."""
    say(f"   $ {shlex.join([PROGRAM, *arguments])}")
    return run(arguments)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
