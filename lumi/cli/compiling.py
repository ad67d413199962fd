"""The options of every command that compiles a model, and the compilation they ask for."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lumi.cli import options as shared
from lumi.cli.output import INTERRUPTED, Output, counted
from lumi.cli.progress import Display
from lumi.errors import LumiError

if TYPE_CHECKING:
    from lumi.compiler import Compilation, Options
    from lumi.search.settings import Settings

STAGES = ("forms", "hlir", "fields", "egraph", "kernels", "plan")
_Number = TypeVar("_Number", int, float)
_UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    _add_model_options(parser.add_argument_group("the model"))
    _add_search_options(parser.add_argument_group("the search"))


def _add_model_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--model", metavar="NAME", help="which defmodel of the file, when it has several")
    add(
        "--set",
        action="append",
        default=[],
        dest="settings",
        type=shared.pair("KEY=VALUE"),
        metavar="KEY=VALUE",
        help="a keyword of the model: layers=2",
    )
    add("--config", action="append", default=[], type=Path, metavar="FILE", help="keywords as a JSON object")
    add(
        "--weights",
        type=Path,
        metavar="PATH",
        help="the checkpoint to compile for: its configuration, its formats",
    )
    packing = group.add_mutually_exclusive_group()
    packing.add_argument(
        "--packed", action="store_true", help="keep quantised weights packed, unpack them in the kernels"
    )
    packing.add_argument(
        "--dequantised", action="store_true", help="dequantise weights when they are loaded (default)"
    )
    add(
        "--pack",
        action="append",
        default=[],
        type=_packing,
        metavar="[PATTERN=]FORMAT",
        help="have matrices packed in a block format without a checkpoint: q8_0, or *v_proj*=q6_k",
    )
    add(
        "--bind",
        action="append",
        default=[],
        type=shared.pair("DIM=INTEGER"),
        metavar="DIM=N",
        help="fix a dim",
    )
    add(
        "--embed",
        action="store_true",
        help="put the compiled kernels into the plan, for this kind of machine",
    )
    shared.add_target(group, "what to compile for")


def _add_search_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--search",
        choices=["none", "model", "measure"],
        default="model",
        help="the first plan that works, the best by the model (default), or the fastest measured",
    )
    add("--seed", type=shared.count, metavar="N", help="seed of the search (default 0)")
    add("--search-time", type=_seconds, metavar="TIME", help="the longest time to measure a region: 60s, 2m")
    add("--search-trials", type=_trials, metavar="N", help="the most candidates to measure a region")
    add(
        "--search-evaluations",
        type=shared.count,
        metavar="N",
        help="the most candidates the model compares a region",
    )
    add(
        "--memory",
        type=shared.size,
        metavar="BYTES",
        help="the most that a plan may hold at the largest dims, as 24GB or 16GiB (default: the device's)",
    )
    add(
        "--split",
        action="append",
        default=[],
        type=shared.pair("AXIS=INTEGER"),
        metavar="AXIS=N",
        help="let reductions over this axis of a region (see --show fields) run in N chunks",
    )
    add(
        "--database",
        metavar="FILE",
        help="where results of searches are kept; none: nowhere (default: LUMI_DATABASE, else tuning.sqlite "
        "in Lumi's cache)",
    )
    recording = group.add_mutually_exclusive_group()
    recording.add_argument("--record", type=Path, metavar="FILE", help="write what is measured to a file")
    recording.add_argument(
        "--replay", type=Path, metavar="FILE", help="take measurements from such a file: the same plan again"
    )
    families = group.add_mutually_exclusive_group()
    families.add_argument("--exact", action="store_true", help="only rewrites that keep every rounding")
    families.add_argument("--fast-math", action="store_true", help="also rewrites that may lose accuracy")
    families.add_argument(
        "--int8", action="store_true", help="also products with quantised weights at 8-bit activations"
    )
    shared.add_relaxed(group)


def compiled(
    path: Path, options: argparse.Namespace, output: Output, until: str, display: Display | None = None
) -> Compilation:
    """Compile the file as far as `until`, with warnings on standard error."""
    from lumi.compiler import Stage, compile_model

    _check_used(options)
    source, relaxed = shared.read_source(path), _relaxed(options, output)
    if options.replay is not None:
        shared.check_file(options.replay)
    with display or Display() as shown:
        work = compile_model(source, _options(options, shown, relaxed), Stage(until))
    for warning in work.module.warnings if work.module else ():
        output.note(warning.render())
    for trouble in work.troubles:
        output.note(f"warning: {trouble}")
    for scope, egraph in work.unfinished().items():
        busiest = egraph.busiest
        matches = f"; the busiest rule is {busiest.name} with {busiest.matches} matches" if busiest else ""
        output.note(f"warning: saturation of {scope} was stopped at {egraph.size} e-nodes{matches}")
    return work


_NAMED = 8
"""Regions that a warning names; of more it gives the number."""


def tell_cut_short(work: Compilation, output: Output) -> int:
    """Say what Ctrl-C kept from being searched to the end; the exit status: 0 where it came to its end."""
    stopped, left = work.cut_short()
    if not stopped and not left:
        return 0
    parts = [f"{_listed(stopped)}: the best so far"] if stopped else []
    parts += [f"{_listed(left)}: the first plan that works"] if left else []
    output.note(f"warning: Ctrl-C cut the search short, so the plan may be slow; {'; '.join(parts)}")
    output.note("  = run the same command again to search to the end")
    return INTERRUPTED


def _listed(scopes: Sequence[str]) -> str:
    more = f" and {counted(len(scopes) - _NAMED, 'more region')}" if len(scopes) > _NAMED else ""
    return f"{', '.join(scope or '(all)' for scope in scopes[:_NAMED])}{more}"


def _check_used(options: argparse.Namespace) -> None:
    """Raise `LumiError` for an option that would change nothing beside the others."""
    measured = {"--search-time": options.search_time, "--search-trials": options.search_trials}
    for name, value in measured.items():
        if value is not None and options.search != "measure":
            message = f"{name} bounds what is measured, and --search {options.search} measures nothing"
            raise LumiError("usage error", message, hint="add --search measure, or leave it out")
    kept = {"--packed": options.packed, "--dequantised": options.dequantised}
    for name, is_chosen in kept.items():
        if is_chosen and options.weights is None:
            message = f"{name} says how quantised weights of a checkpoint are kept, and none is given"
            raise LumiError(
                "usage error", message, hint="add --weights PATH; --pack FORMAT needs no checkpoint"
            )


def _relaxed(options: argparse.Namespace, output: Output) -> tuple[str, ...]:
    """The precisions that are allowed.  Raises `LumiError` beside `--exact`, which allows none."""
    if options.exact and options.relaxed:
        message = "--exact keeps every rounding, and --relaxed tf32 gives up those of f32 products"
        raise LumiError("usage error", message, hint="leave one of the two out")
    return shared.relaxed(options, output)


def _options(options: argparse.Namespace, display: Display, relaxed: tuple[str, ...]) -> Options:
    from lumi.compiler import Options

    return Options(
        model=options.model,
        config=shared.settings(options.settings, options.config),
        weights=options.weights,
        packed=options.packed,
        packing=tuple(options.pack),
        bind=shared.dims(options.bind),
        families=_families(options),
        relaxed=relaxed,
        embed=options.embed,
        memory=options.memory,
        splits=shared.dims(options.split),
        record=options.record,
        replay=options.replay,
        database=database(options),
        settings=_settings(options),
        target=shared.target(options),
        progress=display.stage,
        report=display.search,
    )


def database(options: argparse.Namespace) -> Path | None:
    """The file of the tuning database; None where there is to be none."""
    from lumi import paths

    if options.database == "":
        raise LumiError("usage error", "--database names no file", hint="name one, or say none")
    chosen = options.database or os.environ.get("LUMI_DATABASE")
    if chosen == "none":
        return None
    return Path(chosen) if chosen else paths.cache() / "tuning.sqlite"


def _families(options: argparse.Namespace) -> tuple[str, ...]:
    if options.exact:
        return ("exact",)
    more = {"fast-math": options.fast_math, "int8": options.int8}
    return ("exact", "relaxed", *(name for name, chosen in more.items() if chosen))


def _settings(options: argparse.Namespace) -> Settings:
    from lumi.search.settings import Mode, Settings

    chosen = {
        "seed": options.seed,
        "seconds": options.search_time,
        "trials": options.search_trials,
        "evaluations": options.search_evaluations,
    }
    given = {name: value for name, value in chosen.items() if value is not None}
    return replace(Settings(mode=Mode(options.search)), **given)


def _packing(text: str) -> tuple[str, str]:
    pattern, _, name = text.rpartition("=")
    return pattern or "*", name


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write 60s, 2m or 500ms")
    return _some(text, float(match[1]) * _UNITS[match[2]])


def _trials(text: str) -> int:
    return _some(text, shared.count(text))


def _some(text: str, number: _Number) -> _Number:
    if not number:
        raise argparse.ArgumentTypeError(f"{text!r} leaves nothing to measure; so does --search model")
    return number


def text(work: Compilation, stage: str) -> str:
    """What a stage made that the compilation reached."""
    from lumi import inspect
    from lumi.compiler import Stage

    return inspect.show(work, Stage(stage))
