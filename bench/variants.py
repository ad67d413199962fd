"""Attention in its variants, and products with what surrounds them, on an NVIDIA GPU, in bf16.

The models are those of `models/variants.lumi`, written out from their definitions.  PyTorch runs each by what
it has for it: its attention under a mask, cuBLAS, cuDNN; with `--flex` also FlexAttention, with `--compiled`
what torch.compile makes of the definition, which take longer to compile than all else takes.  The floor is
the longer of the bytes at the bandwidth of a copy and the operations at the rate of a large product.

    python bench/variants.py [--json FILE] [--search model|measure] [--flex] [--compiled] [CASE …]
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu_case import Case, Data, Work, checked, copy_bandwidth, in_graph, interleaved, peers

from lumi.backends.cuda.gpu import Gpu, open_gpu
from lumi.errors import LumiError
from lumi.search.settings import Mode, Settings

MODELS = Path(__file__).parents[1] / "models" / "variants.lumi"

TOLERANCE = 1e-2
"""Of results that are rounded to bf16, by the norms."""

ROUNDS = 5

LARGE = 8192
"""Rows, columns and terms of the product whose rate the floor is made of."""

RATED = 16
"""How often it runs while the clock does."""

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Variant:
    """A case, and the `others` that PyTorch does it by: `flex` and `compiled` are made on demand."""

    case: Case
    others: Mapping[str, Callable[[Any, Data], Work]] = field(default_factory=dict)


def text_of(entry: str, sizes: Sizes) -> str:
    """The model of that name alone, at some sizes."""
    whole = MODELS.read_text()
    models = re.findall(r"\(defmodel .*?(?=\n\n|\Z)", whole, re.DOTALL)
    (found,) = (m for m in models if m.startswith(f"(defmodel {entry} "))
    for model in models:
        whole = whole.replace(model, found if model is found else "")
    for name, size in sizes.items():
        whole, count = re.subn(rf":{name} \d+", f":{name} {size}", whole)
        assert count == 1, f"{entry} has no size {name}"
    return whole


# -- attention


def attention(entry: str, share: float = 1.0, more: str = "", **given: int) -> Variant:
    """A kind of attention, a `share` of whose scores are looked at; `more` names what it is given besides."""
    sizes = {"batch": 2, "heads": 16, "kv-heads": 16, "seq": 4096, "width": 128}
    sizes |= {name.replace("_", "-"): size for name, size in given.items()}
    batch, heads, key_heads, seq, width = (sizes[n] for n in ("batch", "heads", "kv-heads", "seq", "width"))
    keys = sizes.get("keys", seq)
    shapes = {"q": (batch, heads, seq, width)} | dict.fromkeys("kv", (batch, key_heads, keys, width))

    def draw(torch: Any) -> Data:
        data = {n: torch.randn(*s).to(torch.bfloat16) for n, s in shapes.items()}
        return data | EXTRA[more](torch, sizes)

    def work(q: Any, k: Any, v: Any, *rest: Any) -> Any:
        import torch

        return SDPA[entry](torch, sizes, q, k, v, *rest)

    traffic = 2 * batch * (2 * heads * seq + 2 * key_heads * keys) * width + BYTES.get(more, _none)(sizes)
    flops = 4.0 * batch * heads * seq * keys * width * share
    name = f"{entry} h{heads}/{key_heads} s{seq}/{keys} d{width}"
    case = Case(name, text_of(entry, sizes), traffic, draw, work, tolerance=TOLERANCE, flops=flops)
    return Variant(case, {"flex": _flex(entry, sizes)} if entry in SCORES else {})


def _none(sizes: Sizes) -> int:
    return 0


BYTES: Mapping[str, Callable[[Sizes], int]] = {
    "bias": lambda s: 2 * s["heads"] * s["seq"] ** 2,
    "seen": lambda s: s["seq"] ** 2,
}

EXTRA: Mapping[str, Callable[[Any, Sizes], Data]] = {
    "": lambda torch, s: {},
    "bias": lambda torch, s: {"bias": torch.randn(s["heads"], s["seq"], s["seq"]).to(torch.bfloat16)},
    "length": lambda torch, s: {
        "length": torch.tensor([s["seq"] * (k + 1) // s["batch"] for k in range(s["batch"])]).int()
    },
    "document": lambda torch, s: {
        "document": (torch.arange(s["seq"]) * 8 // s["seq"]).int().repeat(s["batch"], 1)
    },
    "seen": lambda torch, s: {"seen": (torch.rand(s["seq"], s["seq"]) < 0.5) | torch.eye(s["seq"]).bool()},
}
"""What a kind of attention is given besides queries, keys and values."""


def _positions(torch: Any, s: Sizes) -> tuple[Any, Any]:
    at = torch.arange(s["seq"], device="cuda")
    return at[:, None], at[None, :]


def _kept(make: Callable[[Any, Sizes], Any]) -> Callable[[Any, Sizes], Any]:
    """A mask or bias that depends on sizes alone: it is made once, outside of what is timed."""
    made: dict[tuple[tuple[str, int], ...], Any] = {}

    def get(torch: Any, s: Sizes) -> Any:
        key = tuple(sorted(s.items()))
        if key not in made:
            made[key] = make(torch, s)
        return made[key]

    return get


def _window(torch: Any, s: Sizes) -> Any:
    i, j = _positions(torch, s)
    return (j <= i) & (i < j + s["window"])


def _slopes(torch: Any, s: Sizes) -> Any:
    return torch.exp2(torch.arange(1, s["heads"] + 1, device="cuda") * (-8.0 / s["heads"]))


def _alibi(torch: Any, s: Sizes) -> Any:
    i, j = _positions(torch, s)
    bias = _slopes(torch, s)[:, None, None] * (j - i)
    return bias.masked_fill(j > i, -math.inf)


WINDOW, ALIBI = _kept(_window), _kept(_alibi)


def _attend(torch: Any, q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False) -> Any:
    given = mask.to(q.dtype) if mask is not None and mask.is_floating_point() else mask
    return torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=given, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1]
    )


def _capped(torch: Any, s: Sizes, q: Any, k: Any, v: Any) -> Any:
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
    scores = q.to(wide) @ k.to(wide).transpose(-1, -2)
    scores = 50.0 * torch.tanh(scores * (s["width"] ** -0.5 / 50.0))
    i, j = _positions(torch, s)
    weights = torch.softmax(scores.masked_fill(j > i, -math.inf), -1)
    return weights.to(q.dtype) @ v


def _lengths(torch: Any, s: Sizes, q: Any, k: Any, v: Any, length: Any) -> Any:
    seen = torch.arange(s["seq"], device="cuda") < length[:, None]
    return _attend(torch, q, k, v, seen[:, None, None, :])


def _documents(torch: Any, s: Sizes, q: Any, k: Any, v: Any, document: Any) -> Any:
    i, j = _positions(torch, s)
    seen = (document[:, :, None] == document[:, None, :]) & (j <= i)
    return _attend(torch, q, k, v, seen[:, None])


SDPA: Mapping[str, Work] = {
    "whole": lambda torch, s, q, k, v: _attend(torch, q, k, v),
    "causal": lambda torch, s, q, k, v: _attend(torch, q, k, v, causal=True),
    "window": lambda torch, s, q, k, v: _attend(torch, q, k, v, WINDOW(torch, s)),
    "alibi": lambda torch, s, q, k, v: _attend(torch, q, k, v, ALIBI(torch, s)),
    "biased": lambda torch, s, q, k, v, bias: _attend(torch, q, k, v, bias),
    "masked": lambda torch, s, q, k, v, seen: _attend(torch, q, k, v, seen.bool()),
    "capped": _capped,
    "lengths": _lengths,
    "documents": _documents,
}
"""PyTorch's attention, under the mask or with the bias that makes it that kind."""


def _is_past(b: Any, h: Any, i: Any, j: Any) -> Any:
    return j <= i


SCORES: Mapping[str, Callable[[Any, Sizes, Data], tuple[Any, Any]]] = {
    "causal": lambda torch, s, data: (None, _is_past),
    "window": lambda torch, s, data: (None, lambda b, h, i, j: (j <= i) & (i < j + s["window"])),
    "capped": lambda torch, s, data: (lambda x, b, h, i, j: 50.0 * torch.tanh(x / 50.0), _is_past),
    "alibi": lambda torch, s, data: _flex_alibi(torch, s),
    "biased": lambda torch, s, data: (lambda x, b, h, i, j: x + data["bias"][h, i, j], None),
    "lengths": lambda torch, s, data: (None, lambda b, h, i, j: j < data["length"][b]),
    "documents": lambda torch, s, data: (
        None,
        lambda b, h, i, j: (data["document"][b, i] == data["document"][b, j]) & (j <= i),
    ),
    "masked": lambda torch, s, data: (None, lambda b, h, i, j: data["seen"][i, j]),
}
"""What FlexAttention is told of a kind: what becomes of a score, and which are looked at."""


def _flex_alibi(torch: Any, s: Sizes) -> tuple[Any, Any]:
    slopes = _slopes(torch, s)
    return lambda x, b, h, i, j: x + slopes[h] * (j - i), _is_past


def _flex(entry: str, s: Sizes) -> Callable[[Any, Data], Work]:
    """FlexAttention, compiled, with a mask of blocks that is made outside of what is timed."""

    def make(torch: Any, data: Data) -> Work:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        score, seen = SCORES[entry](torch, s, data)
        each = s["batch"] if entry in ("lengths", "documents") else None
        mask = create_block_mask(seen, each, None, s["seq"], s["seq"]) if seen is not None else None
        attend = torch.compile(flex_attention)
        grouped = s["heads"] != s["kv-heads"]
        return lambda q, k, v, *rest: attend(q, k, v, score_mod=score, block_mask=mask, enable_gqa=grouped)

    return make


# -- products


def product(
    entry: str, sizes: Sizes, shapes: Mapping[str, tuple[int, ...]], flops: float, work: Work, **more: Any
) -> Variant:
    """Products of tensors of these shapes, whose numbers are drawn, or whole ones below those in `more`."""
    limits: Mapping[str, int] = more.get("limits", {})
    scaled: frozenset[str] = more.get("scaled", frozenset("w"))

    def draw(torch: Any) -> Data:
        found: Data = {}
        for name, shape in shapes.items():
            if name in limits:
                found[name] = torch.randint(0, limits[name], shape).int()
            else:
                scale = sizes.get("width", shape[-1]) ** -0.5 if name in scaled else 1.0
                found[name] = (torch.randn(*shape) * scale).to(torch.bfloat16)
        return found

    traffic = sum(math.prod(s) * (4 if n in limits else 2) for n, s in shapes.items()) + more["written"]
    params: tuple[str, ...] = more.get("params", ())
    case = Case(entry, text_of(entry, sizes), traffic, draw, work, params, TOLERANCE, flops)

    def naive(torch: Any, data: Data) -> Work:
        made: Work = torch.compile(work)
        return made

    return Variant(case, {"compiled": naive})


def loss(tokens: int, width: int, vocab: int) -> Variant:
    def work(x: Any, w: Any, label: Any) -> Any:
        import torch

        logits = torch.nn.functional.linear(x, w)
        wide = logits if logits.dtype == torch.float64 else logits.float()
        return torch.nn.functional.cross_entropy(wide, label.long())

    shapes = {"x": (tokens, width), "w": (vocab, width), "label": (tokens,)}
    sizes = {"tokens": tokens, "width": width, "vocab": vocab}
    flops = 2.0 * tokens * width * vocab
    return product("loss", sizes, shapes, flops, work, limits={"label": vocab}, written=4)


def _normed(x: Any) -> Any:
    wide = x.double() if str(x.dtype) == "torch.float64" else x.float()
    return wide * (wide.square().mean(-1, keepdim=True) + 1e-6).rsqrt()


def normed(tokens: int, width: int, out: int) -> Variant:
    def work(x: Any, g: Any, w: Any) -> Any:
        y = _normed(x) * g
        return (y @ w.to(y.dtype).T).to(x.dtype)

    shapes = {"x": (tokens, width), "g": (width,), "w": (out, width)}
    sizes = {"tokens": tokens, "width": width, "out": out}
    return product("normed", sizes, shapes, 2.0 * tokens * width * out, work, written=2 * tokens * out)


def projected(tokens: int, width: int, out: int) -> Variant:
    def work(x: Any, g: Any, w: Any) -> Any:
        return (_normed(x) * g).to(x.dtype) @ w.T

    shapes = {"x": (tokens, width), "norm.weight": (width,), "proj.weight": (out, width)}
    sizes = {"tokens": tokens, "width": width, "out": out}
    flops, written, given = 2.0 * tokens * width * out, 2 * tokens * out, ("norm.weight", "proj.weight")
    scaled = frozenset(["proj.weight"])
    return product("projected", sizes, shapes, flops, work, written=written, scaled=scaled, params=given)


def batched(batch: int, rows: int, inner: int, columns: int) -> Variant:
    def work(x: Any, y: Any) -> Any:
        return x @ y

    shapes = {"x": (batch, rows, inner), "y": (batch, inner, columns)}
    sizes = {"batch": batch, "rows": rows, "inner": inner, "columns": columns}
    flops, written = 2.0 * batch * rows * inner * columns, 2 * batch * rows * columns
    return product("batched", sizes, shapes, flops, work, written=written, scaled=frozenset())


def blocked(blocks: int, rows: int, width: int, out: int, experts: int) -> Variant:
    def work(x: Any, w: Any, expert: Any) -> Any:
        return x @ w[expert.long()].transpose(-1, -2)

    shapes = {"x": (blocks, rows, width), "w": (experts, out, width), "expert": (blocks,)}
    sizes = {"blocks": blocks, "rows": rows, "width": width, "out": out, "experts": experts}
    flops, written = 2.0 * blocks * rows * width * out, 2 * blocks * rows * out
    return product("blocked", sizes, shapes, flops, work, written=written, limits={"expert": experts})


def routed(tokens: int, blocks: int, rows: int, width: int, out: int, experts: int) -> Variant:
    def work(x: Any, w: Any, token: Any, expert: Any) -> Any:
        return x[token.long()] @ w[expert.long()].transpose(-1, -2)

    shapes = {
        "x": (tokens, width),
        "w": (experts, out, width),
        "token": (blocks, rows),
        "expert": (blocks,),
    }
    sizes = {"tokens": tokens, "blocks": blocks, "rows": rows, "width": width, "out": out, "experts": experts}
    flops, written = 2.0 * blocks * rows * width * out, 2 * blocks * rows * out
    limits = {"token": tokens, "expert": experts}
    return product("routed", sizes, shapes, flops, work, written=written, limits=limits)


def convolved(batch: int, size: int, channels: int, out: int) -> Variant:
    def work(x: Any, w: Any) -> Any:
        import torch

        image, filters = x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2)  # channels last, as they lie
        return torch.nn.functional.conv2d(image, filters, padding=1).permute(0, 2, 3, 1)

    shapes = {"x": (batch, size, size, channels), "w": (out, 3, 3, channels)}
    sizes = {"batch": batch, "size": size, "channels": channels, "out": out}
    positions = batch * size * size
    flops = 2.0 * positions * 9 * channels * out
    return product("convolved", sizes, shapes, flops, work, written=2 * positions * out)


def images(batch: int, size: int, channels: int, out: int) -> Variant:
    def work(x: Any, w: Any) -> Any:
        import torch

        return torch.nn.functional.conv2d(x, w, padding=1)

    shapes = {"x": (batch, channels, size, size), "w": (out, channels, 3, 3)}
    sizes = {"batch": batch, "size": size, "channels": channels, "out": out}
    positions = batch * size * size
    flops = 2.0 * positions * 9 * channels * out
    return product("images", sizes, shapes, flops, work, written=2 * positions * out)


VARIANTS = (
    *(attention("causal", 0.5, width=width) for width in (64, 80, 96, 128, 192, 256)),
    attention("causal", 0.5, kv_heads=4),
    attention("causal", 0.5, kv_heads=1),
    attention("whole", seq=1024, keys=4096),
    attention("window", 0.25 * (1 - 0.125), window=1024),
    attention("capped", 0.5),
    attention("alibi", 0.5),
    attention("biased", 1.0, "bias"),
    attention("lengths", 0.75, "length"),
    attention("documents", 1 / 16, "document"),
    attention("masked", 1.0, "seen"),
    loss(4096, 4096, 32768),
    loss(16384, 4096, 32768),
    normed(4096, 4096, 4096),
    projected(4096, 4096, 4096),
    batched(16, 2048, 2048, 2048),
    blocked(64, 128, 4096, 4096, 8),
    routed(4096, 64, 128, 4096, 4096, 8),
    convolved(16, 56, 256, 256),
    convolved(64, 14, 512, 512),
    images(16, 56, 256, 256),
)


# -- all of them


def matmul_rate(torch: Any) -> float:
    """Operations a second of a large product of bf16."""
    a, b = (torch.randn(LARGE, LARGE, device="cuda").to(torch.bfloat16) for _ in range(2))
    run = in_graph(torch, lambda a, b: a @ b, [{"a": a, "b": b}], RATED)
    return float(2.0 * LARGE**3 / statistics.median(run() for _ in range(5)))


def measured(torch: Any, gpu: Gpu, one: Variant, settings: Settings, asked: set[str]) -> dict[str, Any]:
    """A case by all contestants.  Raises `AssertionError` when Lumi's result is wrong."""
    case = one.case
    every, mine, told = checked(torch, gpu, case, settings)
    torch.cuda.empty_cache()
    works: dict[str, Callable[[], Work]] = {"torch": lambda: case.work}
    works |= {n: (lambda make=make: make(torch, every[0])) for n, make in one.others.items() if n in asked}
    others, refused = peers(torch, works, every, case.repeat)
    seconds = interleaved({"lumi": mine, **others}, ROUNDS)
    return {"name": case.name, "bytes": case.bytes, "seconds": seconds, "refused": refused, **told}


def shown(row: Mapping[str, Any]) -> str:
    """A line of the table."""
    times, floor = row["seconds"], row["floor"]
    beside = "  ".join(f"{name} {s * 1e6:8.1f}" for name, s in times.items())
    best = min((s for name, s in times.items() if name != "lumi"), default=math.nan)
    rate = row["flops"] / times["lumi"] / 1e12
    return (
        f"{row['name']:<28} floor {floor * 1e6:8.1f} us  {beside}  {rate:5.0f} TFLOP/s  "
        f"{floor / times['lumi']:6.1%} of the floor  {best / times['lumi']:5.2f} x the best peer  "
        f"error {row['error']:.1e}  {row['refused'] or ''} {row['kernels']}"
    )


def main() -> None:
    """Run the cases that the command line names, print a table, and write JSON if asked for."""
    options = arguments()
    try:
        import torch
    except ImportError:
        sys.exit("this bench needs PyTorch, for the data and to compare with: pip install torch")
    torch.backends.cuda.matmul.allow_tf32 = False
    gpu, rows = open_gpu(), []
    settings = Settings(mode=Mode(options.search), seconds=options.seconds, evaluations=options.evaluations)
    copy, rate = copy_bandwidth(gpu), matmul_rate(torch)
    head = {"command": f"python {' '.join(sys.argv)}", "gpu": gpu.name, "driver": gpu.driver_version}
    head |= {"torch": torch.__version__, "copy": copy, "matmul": rate}
    print(f"{gpu.name}, copy {copy / 1e12:.2f} TB/s, matmul {rate / 1e12:.0f} TFLOP/s", flush=True)
    asked = {name for name in ("flex", "compiled") if getattr(options, name)}
    for one in VARIANTS:
        case = one.case
        if options.cases and not any(part in case.name for part in options.cases):
            continue
        try:
            row = measured(torch, gpu, one, settings, asked)
        except (LumiError, AssertionError) as failure:
            print(f"{case.name:<28} {failure}", flush=True)
            continue
        rows.append({**row, "floor": max(case.bytes / copy, case.flops / rate), "flops": case.flops})
        print(shown(rows[-1]), flush=True)
        torch.cuda.empty_cache()
        if options.json:
            options.json.write_text(json.dumps({**head, "cases": rows}, indent=1) + "\n")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", nargs="*", help="parts of the names of the cases to run")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--search", choices=[m.value for m in Mode], default="model")
    parser.add_argument("--evaluations", type=int, default=600, help="plans that the model compares")
    parser.add_argument("--seconds", type=float, default=8.0, help="of measured search a case")
    parser.add_argument("--flex", action="store_true", help="run FlexAttention too")
    parser.add_argument("--compiled", action="store_true", help="torch.compile products too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
