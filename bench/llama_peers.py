"""The peers of llama_decode.py: products by PyTorch, a prompt and steps by Transformers, random weights.

Prints JSON objects, one a line, as they become known.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch._inductor.config
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

WIDTH, HIDDEN, VOCAB, KV_WIDTH = 4096, 14336, 128256, 1024
SHAPES = (
    (WIDTH, WIDTH),
    (KV_WIDTH, WIDTH),
    (KV_WIDTH, WIDTH),
    (WIDTH, WIDTH),
    (HIDDEN, WIDTH),
    (HIDDEN, WIDTH),
    (WIDTH, HIDDEN),
)
"""Of one layer's weights."""

DISTINCT = 4
"""Layers with weights of their own, together far larger than the caches."""

LENGTHS = (256, 8192)


def timed(work: Callable[[], Any], runs: int = 12) -> float:
    """Median seconds on the device."""
    times = []
    for _ in range(runs):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        work()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last) * 1e-3)
    return statistics.median(times[2:])


def products(dtype: torch.dtype, layers: int) -> dict[str, float]:
    """Seconds of all matrix-vector products of a step, one by one and in a CUDA graph."""
    weights = [[torch.randn(*s, device="cuda", dtype=dtype) for s in SHAPES] for _ in range(DISTINCT)]
    head = torch.randn(VOCAB, WIDTH, device="cuda", dtype=dtype)
    narrow, wide = (torch.randn(1, n, device="cuda", dtype=dtype) for n in (WIDTH, HIDDEN))

    def some() -> None:
        for layer in weights:
            for w in layer:
                torch.nn.functional.linear(narrow if w.shape[1] == WIDTH else wide, w)

    def last() -> None:
        torch.nn.functional.linear(narrow, head)

    def captured(work: Callable[[], None]) -> Callable[[], None]:
        work()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        replay: Callable[[], None] = graph.replay
        return replay

    share = layers / DISTINCT
    return {
        "eager_products": share * timed(some) + timed(last),
        "graph_products": share * timed(captured(some)) + timed(captured(last)),
    }


def model_of(dtype: torch.dtype, layers: int) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=WIDTH,
        intermediate_size=HIDDEN,
        num_hidden_layers=layers,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=8448,
        rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
    )
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    model = model.to(dtype).to_empty(device="cuda").eval()
    model.model.rotary_emb = type(model.model.rotary_emb)(config).to("cuda")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, parameter.shape[-1] ** -0.5)
    return model


def steps(model: LlamaForCausalLM, length: int, is_compiled: bool, count: int = 24) -> dict[str, float]:
    """Median seconds of a decode step at a length of the cache, the token fetched each time."""
    cache = StaticCache(config=model.config, max_cache_len=length + 64)
    torch._dynamo.reset()
    forward = model.forward
    token = torch.randint(0, VOCAB, (1, 1), device="cuda")

    def step(position: int) -> int:
        where = torch.tensor([position], device="cuda")
        torch.compiler.cudagraph_mark_step_begin()
        with torch.no_grad():
            logits = forward(
                token, past_key_values=cache, cache_position=where, position_ids=where[None], use_cache=True
            ).logits
        return int(logits[0, -1].argmax())

    step(length - 2)  # what it allocates for the cache must not belong to a graph
    if is_compiled:
        forward = torch.compile(model.forward, mode="reduce-overhead", fullgraph=True)
    start = time.perf_counter()
    step(length - 1)
    first = time.perf_counter() - start
    times = []
    for k in range(count):
        start = time.perf_counter()
        step(length + k)
        times.append(time.perf_counter() - start)
    return {"first_s": first, "step": statistics.median(times[8:])}


def prompt(model: LlamaForCausalLM, length: int, is_compiled: bool, count: int = 12) -> dict[str, float]:
    """Median seconds of a prompt into an empty cache, its last logits computed and the token fetched."""
    cache = StaticCache(config=model.config, max_cache_len=length + 64)
    torch._dynamo.reset()  # shapes of other calls would make this one's dynamic
    forward = model.forward
    tokens = torch.randint(0, VOCAB, (1, length), device="cuda")
    where = torch.arange(length, device="cuda")

    def run() -> float:
        cache.reset()
        torch.cuda.synchronize()
        start = time.perf_counter()
        with torch.no_grad():
            logits = forward(
                tokens,
                past_key_values=cache,
                cache_position=where,
                position_ids=where[None],
                use_cache=True,
                logits_to_keep=1,
            ).logits
        int(logits[0, -1].argmax())
        return time.perf_counter() - start

    run()
    if is_compiled:
        forward = torch.compile(model.forward, fullgraph=True)
    first = run()
    return {"first_s": first, "prompt": statistics.median(run() for _ in range(count))}


def main() -> None:
    torch._inductor.config.cpp.vec_isa_ok = False  # its probes of the CPU's instructions compile for minutes
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dtype", choices=["bf16", "f32"], default="bf16")
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--prompt", type=int, default=128, help="tokens of the prompt that is measured")
    options = parser.parse_args()
    dtype = {"bf16": torch.bfloat16, "f32": torch.float32}[options.dtype]
    print(json.dumps({"torch": torch.__version__, **products(dtype, options.layers)}), flush=True)
    torch.cuda.empty_cache()
    model = model_of(dtype, options.layers)
    for is_compiled in (True, False):  # the faster ones first: a caller may stop this
        kind = f"transformers_{'compiled' if is_compiled else 'eager'}"
        for length in LENGTHS:
            print(json.dumps({f"{kind}_{length}": steps(model, length, is_compiled)}), flush=True)
        print(json.dumps({f"{kind}_prompt": prompt(model, options.prompt, is_compiled)}), flush=True)


if __name__ == "__main__":
    main()
