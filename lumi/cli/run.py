"""`lumi run`: one call of a plan, arrays in and out by file."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lumi.cli import options as shared
from lumi.cli.output import Outcome, Output
from lumi.errors import LumiError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

_FEW = 1000


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("plan", type=Path, metavar="PLAN", help="a plan that lumi compile made")
    add(
        "--input",
        action="append",
        default=[],
        type=shared.pair("NAME=FILE.npy or NAME=JSON"),
        metavar="NAME=VALUE",
        help="an input: a .npy file, or numbers as JSON: 'tokens=[[2, 818]]'",
    )
    add(
        "--dim",
        action="append",
        default=[],
        type=shared.pair("NAME=INTEGER"),
        metavar="NAME=N",
        help="a dim that no input's shape shows",
    )
    add("--weights", type=Path, metavar="PATH", help="a checkpoint: GGUF, safetensors, or a folder")
    add("--init", choices=["random"], help="make weights up when there are none")
    add("--seed", type=int, default=0, metavar="N", help="seed of --init random (default 0)")
    shared.add_plan_target(parser)
    add("--output-dir", type=Path, metavar="DIR", help="write each output to DIR/NAME.npy")


def execute(options: argparse.Namespace, output: Output) -> Outcome:
    """Run the plan once."""
    from lumi.runtime.session import Session

    plan = shared.load_to_run(options.plan, options.target)
    inputs = _inputs(options.input)
    try:
        with output.listening():
            session = Session(plan, options.weights, init=options.init, seed=options.seed)
    except LumiError as error:
        if options.weights is None and options.init is None and error.kind == "weights error":
            error.hint = "add --weights PATH, or --init random to make some up"
        raise
    start = time.perf_counter()
    results = session.run(inputs, shared.dims(options.dim))
    seconds = time.perf_counter() - start
    files = _write(options.output_dir, results) if options.output_dir else {}
    report = {name: _describe(array, files.get(name)) for name, array in results.items()}
    for name, array in results.items():
        place = f" → {files[name]}" if name in files else ""
        output.say(f"{name}: {report[name]['dtype']} [{' '.join(map(str, array.shape))}]{place}")
        if not files:
            output.say(str(array))
    output.note(f"{seconds * 1e3:.1f} ms on {session.device.name}")
    told = {"seconds": seconds, "device": session.device.name, "counters": asdict(session.counters)}
    return Outcome({"outputs": report, **told})


def _inputs(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in pairs:
        if name in found:
            raise LumiError("input error", f"input {name} is given twice")
        found[name] = _array(name, text)
    return found


def _array(name: str, text: str) -> Any:
    """An input: numbers written as JSON, which take the input's dtype, or an array from a file."""
    if text.startswith("[") or re.fullmatch(r"true|false|-?\d[\d.eE+-]*", text):
        try:
            return shared.parse_json(text)
        except ValueError as error:
            raise LumiError("input error", f"input {name} is no JSON: {error}") from None
    import numpy as np

    try:
        array = np.load(text, allow_pickle=False)
    except FileNotFoundError:
        hint = "write NAME=FILE.npy, or numbers as JSON: 'x=[1, 2]'"
        raise LumiError("input error", f"input {name}: there is no file {text}", hint=hint) from None
    except OSError as error:
        if error.strerror:
            raise LumiError("input error", f"input {name}: {text}: {error.strerror}") from None
        raise _no_array(name, text) from None
    except (ValueError, EOFError):
        raise _no_array(name, text) from None
    if not isinstance(array, np.ndarray):
        hint = "save the array itself with numpy.save"
        raise LumiError("input error", f"input {name}: {text} is an archive of arrays", hint=hint)
    return array


def _no_array(name: str, text: str) -> LumiError:
    hint = "numpy.save writes one; in a command line numbers are JSON: 'x=[1, 2]'"
    return LumiError("input error", f"input {name}: {text} is no .npy file of numbers", hint=hint)


def _write(folder: Path, results: Mapping[str, Array]) -> dict[str, str]:
    """Write each output to a file of its own; floats that .npy files lack are written as f32."""
    import numpy as np

    from lumi.dtype import from_numpy

    files = {name: folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}.npy" for name in results}
    if len(set(files.values())) < len(files):
        raise LumiError("file error", "two outputs would be written to one file")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in results.items():
            np.save(files[name], array.astype(np.float32) if from_numpy(array.dtype).is_raw else array)
    except OSError as error:
        raise LumiError("file error", f"cannot write to {folder}: {error.strerror}") from None
    return {name: str(path) for name, path in files.items()}


def _describe(array: Array, file: str | None) -> dict[str, Any]:
    """The output as plain values; its elements when there are few and no file holds them."""
    from lumi.dtype import from_numpy

    found: dict[str, Any] = {"dtype": from_numpy(array.dtype).name, "shape": list(array.shape)}
    if file is not None:
        return {**found, "file": file}
    return {**found, "values": array.tolist()} if array.size <= _FEW else found
