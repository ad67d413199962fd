"""`lumi generate`: text from a plan of a language model, streamed."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from lumi.cli import options as shared
from lumi.cli.output import Outcome, Output
from lumi.errors import LumiError

if TYPE_CHECKING:
    from lumi.runtime.generate import Generation
    from lumi.runtime.tokenizer import Tokenizer
    from lumi.runtime.weights import Weights


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("plan", type=Path, metavar="PLAN", help="a plan that lumi compile made")
    add(
        "--weights",
        type=Path,
        required=True,
        metavar="PATH",
        help="a checkpoint: GGUF, safetensors, or a folder",
    )
    add(
        "--tokenizer",
        type=Path,
        metavar="PATH",
        help="a tokenizer.json or GGUF file, if the weights have none",
    )
    shared.add_plan_target(parser)
    prompt = parser.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt", metavar="TEXT", help="the text to go on from")
    prompt.add_argument("--tokens", metavar="IDS", help='the same as token ids: "2 818 5279"')
    add("--max-tokens", type=int, default=128, metavar="N", help="the most tokens to generate (default 128)")
    add("--stop", action="append", default=[], metavar="TEXT", help="end before this text")
    add("--ignore-end", action="store_true", help="go on after an end token")
    add("--temperature", type=float, default=0.0, metavar="T", help="0 (default) takes the best token")
    add("--top-k", type=int, default=0, metavar="K", help="draw among the K best tokens")
    add(
        "--top-p", type=float, default=1.0, metavar="P", help="draw among the best tokens of this probability"
    )
    add(
        "--min-p",
        type=float,
        default=0.0,
        metavar="P",
        help="leave out tokens this much less likely than the best",
    )
    add("--seed", type=int, default=0, metavar="N", help="seed of the draws (default 0)")
    add(
        "--logits",
        type=shared.count,
        default=0,
        metavar="K",
        help="also give the K best logits of the last prompt position",
    )


def execute(options: argparse.Namespace, output: Output) -> Outcome:
    """Generate, and print every piece as it comes."""
    from lumi.runtime.generate import Limits, check_speaks, generate
    from lumi.runtime.sample import Sampling
    from lumi.runtime.session import Session
    from lumi.runtime.weights import open_weights

    prompt = options.prompt if options.tokens is None else _ids(options.tokens)
    sampling = Sampling(options.temperature, options.top_k, options.top_p, options.min_p, options.seed)
    limits = Limits(options.max_tokens, tuple(options.stop), options.ignore_end)
    plan = shared.load_to_run(options.plan, options.target)
    check_speaks(plan)
    weights = open_weights(options.weights)
    tokenizer = _tokenizer(options, weights)
    with output.listening():
        session = Session(plan, weights)
    generation = generate(session, prompt, tokenizer, sampling, limits)
    if options.prompt is not None:
        output.say(options.prompt, end="")
    for piece in generation:
        output.say(piece, end="")
    output.say("" if tokenizer else " ".join(map(str, generation.tokens)))
    output.note(_speed(generation))
    return Outcome({**generation.to_json(options.logits), "counters": asdict(session.counters)})


def _ids(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split()]
    except ValueError as error:
        hint = 'token ids are integers with spaces between: "2 818 5279"'
        raise LumiError("prompt error", f"--tokens: {error}", hint=hint) from None


def _tokenizer(options: argparse.Namespace, weights: Weights) -> Tokenizer | None:
    """The tokenizer; a prompt of ids can do without."""
    from lumi.runtime.tokenizer import open_tokenizer

    try:
        return open_tokenizer(options.tokenizer or weights)
    except LumiError:
        if options.tokenizer or options.prompt is not None:
            raise
        return None


def _speed(generation: Generation) -> str:
    prefill, decode = generation.prefill_tok_s, generation.decode_tok_s
    parts = [f"{len(generation.prompt)} prompt tokens" + (f" at {prefill:.1f} tok/s" if prefill else "")]
    parts += [f"{len(generation.tokens)} tokens" + (f" at {decode:.1f} tok/s" if decode else "")]
    return f"{', '.join(parts)}; ended by {generation.reason}"
