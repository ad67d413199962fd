"""What `make demo` runs: the real Gemma-3-270M, from a .lumi file to text on this CPU.

Each step is a command of the `lumi` program, shown before it runs, to be tried again with changes.
"""

from __future__ import annotations

import shlex
import sys
import time

from checkpoint import gemma_file
from contest import ROOT

from lumi import paths
from lumi.cli.main import run

PROMPT = "The capital of France is"
TOKENS = 64


def main() -> int:
    start = time.perf_counter()
    say("1. The weights: Gemma-3-270M, Q4_K_M, 253 MB (under the Gemma terms of use)")
    gguf = gemma_file()
    say(f"   {gguf}")
    plan = paths.cache() / "gemma3-270m.lumiplan"
    model = ROOT / "models" / "gemma3.lumi"
    say("2. The compiler: saturate every distinct region, search the kernels, write the plan")
    status = lumi("compile", str(model), "--weights", str(gguf), "--packed", "-o", str(plan))
    if status:
        return status
    say(f"3. The text: {TOKENS} tokens, greedy")
    status = lumi(
        "generate", str(plan), "--weights", str(gguf), "--prompt", PROMPT, "--max-tokens", str(TOKENS)
    )
    say(f"All of it took {time.perf_counter() - start:.0f} s. Next: lumi repl, lumi explain {plan}")
    return status


def lumi(*arguments: str) -> int:
    """Show a command line and run it in this process; returns its exit status."""
    say(f"   $ lumi {shlex.join(arguments)}")
    return run(arguments)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
