"""The prompt's answers: how long a new expression takes until it is shown, and the same one again.

The process is warm (it has done what the prompt does while the first entry is typed, and one entry), the
folder of compiled kernels empty.  Between entries it does what the prompt does while the next one is typed.

    python bench/repl.py [--target cpu|cuda] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from lumi.backends.targets import default_target
from lumi.repl.prompt import tidy, warm_up
from lumi.repl.session import Conversation

FIRST = ("(def x (tensor [[1 2 3] [4 5 6]]))", "(+ x 1)")
ENTRIES = (
    "(* x 2)",
    "(softmax x)",
    "(reduce-sum (* x x) :axis nil)",
    "(einsum x [i k]  x [j k]  -> [i j])",
    "(standardize x)",
    "(argmax x)",
    "(gelu-tanh (matmul x (transpose x)))",
    "(sdpa (ones [1 2 3 4]) (ones [1 2 5 4]) (ones [1 2 5 4]))",
)
REPEATS = 30


def seconds(conversation: Conversation, entry: str) -> float:
    start = time.perf_counter()
    for _ in conversation.evaluate(entry):
        pass
    taken = time.perf_counter() - start
    tidy()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--target", default=default_target())
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LUMI_CACHE"] = folder
        warm_up(options.target)
        conversation = Conversation(options.target)
        start = sum(seconds(conversation, entry) for entry in FIRST)
        rows = []
        for entry in ENTRIES:
            first = seconds(conversation, entry)
            again = statistics.median(seconds(conversation, entry) for _ in range(REPEATS))
            rows.append({"entry": entry, "first": first, "again": again})
            print(f"{first * 1e3:7.1f} ms, again {again * 1e3:6.3f} ms  {entry}", flush=True)
    print(f"{options.target}: the first entries of the process took {start:.2f} s")
    if options.json:
        told = {"command": f"python {' '.join(sys.argv)}", "target": options.target, "start": start}
        options.json.write_text(json.dumps({**told, "entries": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
