"""Gemma-3-270M on this CPU: Lumi beside Transformers and llama.cpp, in one interleaved run.

    python bench/cpu_gemma.py --peer-python PYTHON

PYTHON is an interpreter with the packages torch, transformers and llama-cpp-python (those it lacks are
skipped); it is this one by default.  Every engine runs in a process of its own on the same GGUF file; rounds
go through all engines in turn, and medians are compared.  Prints a table and writes
bench/results/cpu_gemma.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ceilings import multiply_rate, read_bandwidth
from checkpoint import gemma_file
from contest import BENCH, ROOT, Engine, start

from lumi import paths
from lumi.compiler import Options, compile_plan
from lumi.errors import Source
from lumi.plan.file import save
from lumi.runtime.tokenizer import open_tokenizer
from lumi.runtime.weights import Weights, open_weights
from lumi.search.settings import Mode, Settings

EMBEDDING = "model.embed_tokens.weight"


@dataclass(frozen=True, slots=True)
class Floor:
    """Tokens a second that no engine can pass: decode reads every weight, prefill multiplies by it.

    Prefill multiplies every prompt token by every matrix but the embedding, which meets the last only.
    """

    decode_tok_s: float
    prefill_tok_s: float


def main() -> None:
    options = arguments()
    weights = open_weights(options.gguf or gemma_file())
    prompt = open_tokenizer(weights).encode((ROOT / "LICENSE").read_text())[: options.prompt]
    plans = {packed: plan_file(weights, packed, options) for packed in (False, True)}
    engines = start_engines(plans, weights, options)
    for number in range(options.rounds + 1):
        for engine in engines:
            engine.measure(prompt, options.steps)
        if number == 0:
            for engine in engines:
                engine.samples.clear()  # the first round warms caches and clocks
        print(f"round {number} of {options.rounds}", file=sys.stderr)
    floors = measured_floors(weights, len(prompt), options.threads)
    report = {
        "command": shlex.join(["python", *sys.argv]),
        "machine": machine(options.threads),
        "prompt_tokens": len(prompt),
        "steps": options.steps,
        "rounds": options.rounds,
        "engines": [row(e, floors["f32" if "f32" in e.name else "packed"], len(prompt)) for e in engines],
    }
    for engine in engines:
        engine.close()
    print(table(report))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(report, indent=1) + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--gguf", type=Path, help="the checkpoint (default: the one of the demo extra)")
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter that has the peers")
    parser.add_argument("--search", default="measure", choices=[m.value for m in Mode])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompt", type=int, default=192, help="prompt tokens")
    parser.add_argument("--steps", type=int, default=32, help="decode steps after each prompt")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--recompile", action="store_true", help="do not reuse plans of an earlier run")
    parser.add_argument("--output", type=Path, default=BENCH / "results" / "cpu_gemma.json")
    return parser.parse_args()


def plan_file(weights: Weights, packed: bool, options: argparse.Namespace) -> Path:
    """The plan for f32 or for packed weights, compiled unless an earlier run left it in the cache."""
    path = paths.cache() / f"gemma3-270m-{'packed' if packed else 'f32'}-{options.search}.lumiplan"
    if options.recompile or not path.exists():
        print(f"compiling {path.name} …", file=sys.stderr)
        model = ROOT / "models" / "gemma3.lumi"
        settings = Settings(mode=Mode(options.search))
        chosen = Options(weights=weights.path, packed=packed, settings=settings)
        save(compile_plan(Source(str(model), model.read_text()), chosen), path)
    return path


def start_engines(plans: Mapping[bool, Path], weights: Weights, options: argparse.Namespace) -> list[Engine]:
    """Every engine that can run here."""
    gguf, threads, peers = str(weights.path), options.threads, options.peer_python
    arguments = [gguf, str(threads)]
    found = [
        start("Lumi, f32", sys.executable, "engine_lumi.py", [str(plans[False]), gguf], threads),
        start("Transformers, f32", peers, "engine_transformers.py", arguments, threads),
        start("Lumi, packed", sys.executable, "engine_lumi.py", [str(plans[True]), gguf], threads),
        start("llama.cpp, packed", peers, "engine_llama.py", arguments, threads),
    ]
    return [engine for engine in found if engine]


def measured_floors(weights: Weights, prompt: int, threads: int) -> dict[str, Floor]:
    """The floors for f32 and for packed weights on this machine."""
    count = sum(int(np.prod(t.shape)) for t in weights.tensors.values())
    table = int(np.prod(weights.tensors[EMBEDDING].shape))
    packed = sum(len(t.data) for t in weights.tensors.values())
    bandwidth = read_bandwidth(threads)
    products = 2 * ((count - table) * prompt + table)
    prefill = prompt * multiply_rate() / products
    return {
        "f32": Floor(bandwidth / (4 * count), prefill),
        "packed": Floor(bandwidth / packed, prefill),
    }


def row(engine: Engine, floor: Floor, prompt: int) -> dict[str, Any]:
    return {
        "engine": engine.name,
        "version": engine.version,
        "decode_tok_s": engine.decode_tok_s(),
        "decode_floor_tok_s": floor.decode_tok_s,
        "prefill_tok_s": engine.prefill_tok_s(prompt),
        "prefill_floor_tok_s": floor.prefill_tok_s,
        "tokens": engine.samples[-1].tokens,
    }


def machine(threads: int) -> dict[str, Any]:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.processor(),
        "cores": len(names) or None,
        "threads": threads,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def table(report: Mapping[str, Any]) -> str:
    """The report as a Markdown table; ratios are to Transformers and to llama.cpp of the same run."""
    rows = {r["engine"]: r for r in report["engines"]}
    peers = [rows.get(name) for name in ("Transformers, f32", "llama.cpp, packed")]
    lines = [
        "| engine | decode tok/s | of floor | × Transformers | × llama.cpp "
        "| prefill tok/s | of floor | × Transformers | × llama.cpp |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows.values():
        cells = [r["engine"]]
        for what in ("decode", "prefill"):
            speed = r[f"{what}_tok_s"]
            cells += [f"{speed:.1f}", f"{100 * speed / r[f'{what}_floor_tok_s']:.0f} %"]
            cells += [f"{speed / peer[f'{what}_tok_s']:.2f}" if peer else "–" for peer in peers]
        lines.append(f"| {' | '.join(cells)} |")
    cpu, threads = report["machine"]["cpu"], report["machine"]["threads"]
    lines.append(
        f"\n{cpu}, {threads} threads, prompt of {report['prompt_tokens']} tokens, {report['command']}"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
