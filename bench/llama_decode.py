"""A prompt and decoding with Llama-3-8B's shapes and random weights on an NVIDIA GPU, from models/llama.lumi.

Weights are made on the device.  A step at a late position is measured on cache states filled with random
numbers.  The floor of a step is the bytes of the weights that it reads, and of the cache up to its position,
over the bandwidth of a copy in the same run.  With a block format as dtype every matrix is packed, the
embedding too; norms and the cache are bf16.  With --turns launches become one wherever their kernels can
take turns, whatever the model expects of it.  With --peers, PyTorch and Transformers run the same shapes in a
process beside it.

    python bench/llama_decode.py [--json FILE] [--dtype bf16|f32|q4_k|…] [--search model] [--kernels]
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from gpu_case import copy_bandwidth
from kernel_times import kernel_times, launches_of, show

from lumi import paths
from lumi.backends.cuda import costs
from lumi.backends.cuda.device import CudaDevice
from lumi.backends.cuda.gpu import Gpu, open_gpu
from lumi.blocks import BLOCKS
from lumi.compiler import Compilation, Options, compile_model
from lumi.errors import Source
from lumi.plan.plan import Plan, Role
from lumi.runtime.session import Session
from lumi.search.settings import Mode, Settings

LENGTHS = (256, 8192)
WARM = 4
"""Steps that are not counted."""

PEERS = Path(__file__).parent / "llama_peers.py"


def compiled(mode: Mode, options: argparse.Namespace, database: Path | None = None) -> Compilation:
    """The model under one kind of search, with a tuning database if one is named."""
    path = paths.data("models") / "llama.lumi"
    if options.turns:
        costs.TURN = -1.0
    settings = Settings(mode=mode)
    if options.seconds:
        settings = replace(settings, seconds=options.seconds)
    packing = (("*", options.dtype),) if options.dtype in BLOCKS else ()
    config = {"dtype": "bf16" if packing else options.dtype, "layers": options.layers}
    return compile_model(
        Source(path.name, path.read_text()),
        Options(config=config, packing=packing, target="cuda", settings=settings, database=database),
    )


def read_bytes(plan: Plan, position: int) -> int:
    """Bytes of weights and cache that a step at a position reads at least: one row of the embedding."""
    total = 0
    for buffer in plan.variants[0].buffers:
        sizes = [int(z) for z in buffer.shape if isinstance(z, int)]
        if buffer.role is Role.PARAM:
            rows = sizes[1:] if "embed_tokens" in buffer.name else sizes
            total += math.prod(rows) * buffer.dtype.size
        elif buffer.role is Role.STATE:
            total += sizes[1] * sizes[3] * position * buffer.dtype.size
    return total


def held_bytes(plan: Plan) -> dict[str, int]:
    """Bytes of all weights, and of all states."""
    found = {"weights": 0, "states": 0}
    for buffer in plan.variants[0].buffers:
        name = {Role.PARAM: "weights", Role.STATE: "states"}.get(buffer.role)
        if name:
            found[name] += math.prod(int(z) for z in buffer.shape if isinstance(z, int)) * buffer.dtype.size
    return found


def decode(gpu: Gpu, session: Session, length: int, steps: int) -> dict[str, float]:
    """Median seconds of a step whose token is number `length`, three ways in turn.

    `wall`: a call, until its logits lie in an array.  `graph`: its launches on the device.  `host`: what
    the host does until they are on their way.
    """
    token = np.zeros((1, 1), np.int32)
    rows = []
    session(tokens=token, past=length - 1)
    launches = launches_of(session, 0)
    for step in range(steps + WARM):
        token[0, 0], past = 1000 + step, length - 1 - step % 2
        start = time.perf_counter()
        logits = session(tokens=token, past=past)["logits"]
        wall = time.perf_counter() - start
        start = time.perf_counter()
        session._launch({"tokens": token}, {"past": past})
        host = time.perf_counter() - start
        session.device.wait()
        rows.append((wall, gpu.seconds(lambda past=past: launches.start({"seq": 1, "past": past})), host))
    assert np.isfinite(logits).all()
    wall, graph, host = (statistics.median(column) for column in zip(*rows[WARM:], strict=True))
    return {"wall": wall, "graph": graph, "host": host}


def prompted(gpu: Gpu, session: Session, options: argparse.Namespace) -> dict[str, Any]:
    """Median seconds of a prompt: a call, until the last logits lie in an array, and its launches alone."""
    count = options.prompt
    dims, rows = {"seq": count, "past": 0}, []
    tokens = np.random.default_rng(0).integers(0, 1000, (1, count)).astype(np.int32)
    number = min(k for k, v in enumerate(session.plan.variants) if v.dims["seq"].high >= count)
    session(tokens=tokens, past=0)
    launches = launches_of(session, number)
    for _ in range(options.steps // 2 + WARM):
        start = time.perf_counter()
        session(tokens=tokens, past=0)
        wall = time.perf_counter() - start
        rows.append((wall, gpu.seconds(lambda: launches.start(dims))))
    wall, graph = (statistics.median(column) for column in zip(*rows[WARM:], strict=True))
    print(f"prompt of {count}: graph {graph * 1e3:.3f} ms, a call {wall * 1e3:.3f} ms", flush=True)
    found: dict[str, Any] = {"tokens": count, "wall": wall, "graph": graph}
    if options.kernels:
        found["kernels"] = kernel_times(gpu, session, number, dims)
        show(found["kernels"])
    return found


def peers(options: argparse.Namespace) -> dict[str, Any]:
    """What PyTorch and Transformers take, by a process of their own."""
    command = [sys.executable, str(PEERS), "--dtype", options.dtype, "--layers", str(options.layers)]
    command += ["--prompt", str(options.prompt)]
    found: dict[str, Any] = {}
    try:
        told = subprocess.run(command, capture_output=True, timeout=options.peer_seconds, check=False)
        if told.returncode:
            found["error"] = told.stderr.decode().strip().splitlines()[-1:]
        text = told.stdout
    except subprocess.TimeoutExpired as error:
        found["error"] = f"no end within {options.peer_seconds} s"
        text = error.stdout or b""
    for line in text.decode().splitlines():
        if line.startswith("{"):
            found |= json.loads(line)
    return found


def made(options: argparse.Namespace) -> tuple[Session, dict[str, Any]]:
    """The model with random weights and states, and how long it took to get there."""
    start = time.perf_counter()
    CudaDevice().load(plan_of(compiled(Mode.NONE, options)))
    told: dict[str, Any] = {"first_plan_s": time.perf_counter() - start}
    with tempfile.TemporaryDirectory() as folder:
        database, mode = Path(folder) / "tuning.sqlite", Mode(options.search)
        start = time.perf_counter()
        work = compiled(mode, options, database)
        told |= {"compile_s": time.perf_counter() - start}
        start = time.perf_counter()
        compiled(mode, options, database)
        told |= {"warm_s": time.perf_counter() - start}
    told["stages"] = {stage.value: seconds for stage, seconds in work.seconds.items()}
    start = time.perf_counter()
    session = Session(plan_of(work), init="random")
    session.randomize_states(1)
    session.device.wait()
    told |= {"load_s": time.perf_counter() - start}
    return session, told | {"launches": [len(v.launches) for v in session.plan.variants]}


def plan_of(work: Compilation) -> Plan:
    assert work.plan is not None
    return work.plan


def decoded(gpu: Gpu, session: Session, bandwidth: float, options: argparse.Namespace) -> dict[int, Any]:
    """Steps at each length beside their floors, printed as they are known.

    Kernels timed alone leave numbers in the states that no step would, so that these are filled anew.
    """
    found: dict[int, Any] = {}
    for length in LENGTHS:
        session.randomize_states(1)
        one = decode(gpu, session, length, options.steps)
        size = read_bytes(session.plan, length)
        floor = size / bandwidth
        found[length] = {**one, "floor": floor, "bytes": size}
        print(
            f"kv {length}: graph {one['graph'] * 1e3:.3f} ms, floor {floor * 1e3:.3f} ms, "
            f"{floor / one['graph']:.1%} of copy; a call {one['wall'] * 1e3:.3f} ms, on its way after "
            f"{one['host'] * 1e6:.0f} us",
            flush=True,
        )
        if options.kernels:
            found[length]["kernels"] = kernel_times(gpu, session, 0, {"seq": 1, "past": length - 1})
            show(found[length]["kernels"])
    return found


def memory(gpu: Gpu, plan: Plan, before: int) -> dict[str, int]:
    """Bytes of the GPU that are taken now beside those taken before, and what for."""
    found = {**held_bytes(plan), "taken": gpu.used() - before, "arena": max(v.arena for v in plan.variants)}
    beyond = found["taken"] - found["weights"] - found["states"]
    print(
        f"memory: {found['taken'] / 1e9:.2f} GB taken = weights {found['weights'] / 1e9:.2f} + states "
        f"{found['states'] / 1e9:.2f} + {beyond / 1e9:.2f} (arena {found['arena'] / 1e9:.2f})",
        flush=True,
    )
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--dtype", choices=["bf16", "f32", *BLOCKS], default="bf16")
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--search", choices=[m.value for m in Mode], default="model")
    parser.add_argument("--seconds", type=float, help="of measured search a region")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--prompt", type=int, default=128, help="tokens of the prompt that is measured")
    parser.add_argument("--turns", action="store_true", help="let kernels take turns wherever they can")
    parser.add_argument("--kernels", action="store_true", help="time each kernel alone")
    parser.add_argument("--peers", action="store_true", help="also run PyTorch and Transformers")
    parser.add_argument("--peer-seconds", type=float, default=300.0, help="after which they are stopped")
    return parser.parse_args()


def main() -> None:
    options, gpu = arguments(), open_gpu()
    before = gpu.used()
    session, told = made(options)
    bandwidth = copy_bandwidth(gpu)
    print(
        f"{gpu.name}, copy {bandwidth / 1e12:.2f} TB/s; first plan {told['first_plan_s']:.1f} s, compiled in "
        f"{told['compile_s']:.1f} s, again in {told['warm_s']:.1f} s, loaded in {told['load_s']:.1f} s; "
        f"launches {told['launches']}",
        flush=True,
    )
    told["prompt"] = prompted(gpu, session, options)
    told["decode"] = decoded(gpu, session, bandwidth, options)
    told["memory"] = memory(gpu, session.plan, before)
    if options.peers:
        told["peers"] = peers(options)
        print(json.dumps(told["peers"]), flush=True)
    if options.json:
        head = {"command": f"python {' '.join(sys.argv)}", "gpu": gpu.name, "driver": gpu.driver_version}
        options.json.write_text(json.dumps({**head, "copy": bandwidth, **told}, indent=1) + "\n")


if __name__ == "__main__":
    main()
