"""Options that several commands share: how they are read and what is said when they are wrong."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lumi.cli.output import Output
from lumi.errors import LumiError, Source
from lumi.paths import beside

if TYPE_CHECKING:
    from lumi.plan.plan import Plan


def pair(what: str) -> Callable[[str], tuple[str, str]]:
    """An argument type for `NAME=VALUE`."""

    def read(text: str) -> tuple[str, str]:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return name, value

    return read


def count(text: str) -> int:
    """An argument type for numbers of things."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no count")
    return int(text)


_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


def size(text: str) -> int:
    """An argument type for bytes: `80GB`, `16GiB`, `1000000`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kMGT]?|[KMGT]i)B?", text)
    if not found or not float(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no size: write 80GB, 16GiB or 1000000")
    return int(float(found[1]) * _UNITS[found[2]])


def add_target(parser: argparse.ArgumentParser | argparse._ArgumentGroup, what: str) -> None:
    """Add `--target`, which says `what`."""
    default = "default: LUMI_TARGET, else cuda where a GPU is usable, else cpu"
    parser.add_argument("--target", metavar="NAME", help=f"{what}: cpu or cuda ({default})")


def add_relaxed(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add `--relaxed`."""
    parser.add_argument(
        "--relaxed",
        action="append",
        default=[],
        choices=["tf32"],
        help="let products of f32 round their factors to TF32 where the target has it (cuda)",
    )


def relaxed(options: argparse.Namespace, output: Output) -> tuple[str, ...]:
    """The precisions that are allowed; says so where the target makes nothing of them."""
    if options.relaxed and target(options) != "cuda":
        output.note("note: --relaxed tf32 changes nothing on cpu, which has no TF32")
    return tuple(dict.fromkeys(options.relaxed))


def target(options: argparse.Namespace) -> str:
    """The target that is asked for.  Raises `LumiError` for an unknown one."""
    from lumi.backends import targets

    chosen: str = options.target or targets.default_target()
    targets.open_backend(chosen)
    return chosen


def add_plan_target(parser: argparse.ArgumentParser) -> None:
    """Add `--target` for a command that runs a plan."""
    parser.add_argument(
        "--target",
        metavar="NAME",
        help="run on cpu or cuda, whatever the plan was compiled for (default: that)",
    )


def load_plan(path: Path, target: str | None = None) -> Plan:
    """A plan from its file, moved to another target if one is given."""
    from lumi.plan.file import load

    if path.suffix == ".lumi":
        raise LumiError("plan error", f"{path} is a source, no plan", hint=f"lumi compile {path} makes one")
    plan = load(path)
    if target is None:
        return plan
    from lumi.backends.targets import retarget

    return retarget(plan, target)


def load_to_run(path: Path, target: str | None) -> Plan:
    """A plan that is about to run.  Raises `LumiError` where this machine lacks what its target needs."""
    from lumi.backends.cuda.driver import missing

    plan = load_plan(path, target)
    lacking = missing() if plan.target == "cuda" else ""
    if lacking:
        hint = "--target cpu runs it here, slower than a plan for the CPU; lumi doctor says what a GPU needs"
        raise LumiError("device error", f"{path} is a plan for an NVIDIA GPU, and {lacking}", hint=hint)
    return plan


def no_region(text: str, scopes: Iterable[str]) -> LumiError:
    """The error of a `--region` that is in the scope of none."""
    names = list(dict.fromkeys(scope or "(all)" for scope in scopes))
    hint = f"there are {', '.join(names)}" if names else "no region was searched"
    return LumiError("region error", f"no region has {text} in its scope", hint=hint)


def dims(pairs: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The `--dim NAME=INTEGER` options, and such as are written like them."""
    found = {}
    for name, text in once(pairs).items():
        try:
            found[name] = int(text)
        except ValueError:
            raise LumiError("dim error", f"{name} is {text!r}", hint="a dim is an integer") from None
    return found


def settings(pairs: Sequence[tuple[str, str]], files: Sequence[Path] = ()) -> dict[str, object]:
    """The configuration of a model: JSON objects from files, then `--set KEY=VALUE` over them."""
    found: dict[str, object] = {}
    for path in files:
        content = _json_file(path)
        if not isinstance(content, dict):
            raise LumiError("config error", f"{path} holds no JSON object")
        found |= content
    return found | {name: setting(text) for name, text in once(pairs).items()}


def once(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The values by name.  Raises `LumiError` for a name that is given twice."""
    found: dict[str, str] = {}
    for name, text in pairs:
        if name in found:
            message = f"{name} is given twice: {found[name]} and {text}"
            raise LumiError("usage error", message, hint="leave one of the two out")
        found[name] = text
    return found


def setting(text: str) -> object:
    """A value as it is typed: JSON where it is JSON (2, 1e-5, true, [1, 2], null), else the text itself."""
    try:
        return parse_json(text)
    except ValueError:
        return text


def parse_json(text: str) -> Any:
    """The value of a JSON text.  Raises `ValueError` for any other text."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None


_ARCHIVE = b"PK\x03\x04"
"""What plans begin with, which are zip files."""


def read_source(path: Path) -> Source:
    """The text of a .lumi file."""
    try:
        return Source(str(path), path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        if error.object.startswith(_ARCHIVE):
            hint = "lumi run, show and explain take plans; if they do not take it, compile the model again"
            raise LumiError(
                "file error", f"{path} is a plan, perhaps a damaged one, and no source", hint=hint
            ) from None
        raise LumiError("file error", f"{path}: byte {error.start} is not UTF-8") from None
    except OSError as error:
        raise _unreadable(path, error) from None


def check_file(path: Path) -> None:
    """Raise `LumiError` where there is no file that can be read."""
    try:
        path.open("rb").close()
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> LumiError:
    hint = beside(path) if isinstance(error, FileNotFoundError) else ""
    return LumiError("file error", f"{path}: {error.strerror}", hint=hint)


def _json_file(path: Path) -> object:
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _unreadable(path, error) from None
    except ValueError as error:
        raise LumiError("config error", f"{path} is no JSON: {error}") from None
