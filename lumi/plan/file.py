"""A plan as one file: a zip without compression whose bytes depend on the plan alone.

| member | content |
|---|---|
| `plan.json` | format version, the plan, the SHA-256 of every other member |
| `explanation.json` | how the search came to the kernels |
| `kernels/NAME.c` | the code of each kernel, for reading |
| `binaries/TAG` | compiled kernels for one kind of machine |

Hashes guard against damage.  A file made by someone else can at worst name wrong numbers, which `check`
refuses, unless it carries binaries: those are programs, and are to be trusted like programs.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from lumi.errors import LumiError
from lumi.llir.json import Json, decode, encode
from lumi.plan.check import check, plan_error
from lumi.plan.plan import FORMAT, Binary, Plan

SUFFIX = ".lumiplan"
"""What plan files are called by."""

LARGEST_MEMBER = 1 << 30
"""Bytes of the largest member that is read (1 GiB)."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
_MAIN, _EXPLANATION = "plan.json", "explanation.json"


def check_place(path: Path) -> None:
    """Raise `LumiError` when no plan can be written to a path, which is better known before a long search."""
    folder = path.parent
    if path.is_dir():
        raise LumiError("plan error", f"cannot write {path}: it is a folder", hint="name a file in it")
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise LumiError("plan error", f"cannot write {path}: {place} is a file, not a folder")
    if not folder.is_dir():
        raise LumiError(
            "plan error", f"cannot write {path}: there is no folder {folder}", hint=f"mkdir -p {folder}"
        )
    if not os.access(folder, os.W_OK):
        raise LumiError("plan error", f"cannot write {path}: {folder} is not writable")


def save(plan: Plan, path: Path) -> None:
    """Write a plan; the file appears whole or not at all.  Raises `LumiError` when it cannot be written."""
    path = Path(path)
    check_place(path)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            part.write_bytes(to_bytes(plan))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise LumiError("plan error", f"cannot write {path}: {error.strerror}") from error


def to_bytes(plan: Plan) -> bytes:
    """The file's content."""
    members = {_EXPLANATION: _json(plan.explanation)}
    members |= {f"kernels/{k.name}.c": k.source.encode() for k in plan.kernels}
    members |= {f"binaries/{b.tag}": b.content for b in plan.binaries}
    bare = replace(
        plan, explanation={}, binaries=(), kernels=tuple(replace(k, source="") for k in plan.kernels)
    )
    hashes = {name: hashlib.sha256(members[name]).hexdigest() for name in sorted(members)}
    main = _json({"format": FORMAT, "sha256": hashes, "plan": encode(bare)})
    return _zip({_MAIN: main, **{name: members[name] for name in sorted(members)}})


def load(path: Path) -> Plan:
    """Read and check a plan.  Raises `LumiError` ("plan error") for a file that is no sound plan."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(archive)
        plan = _plan(members)
        check(plan)
    except LumiError as error:
        raise LumiError(
            "plan error",
            f"{path}: {error.message}",
            hint=error.hint if error.kind == "plan error" else "the file is damaged: compile the model again",
        ) from error
    except FileNotFoundError as error:
        raise LumiError("plan error", f"there is no plan {path}", hint="lumi compile makes one") from error
    except _DAMAGE as error:
        raise LumiError(
            "plan error", f"{path} is no plan, or is damaged", hint="compile the model again"
        ) from error
    return plan


_DAMAGE = (
    zipfile.BadZipFile,
    struct.error,
    EOFError,
    OSError,
    KeyError,
    ValueError,
    NotImplementedError,
    ArithmeticError,
    RecursionError,
    RuntimeError,
)
"""What the standard readers raise for bytes that are no zip or no JSON (`ValueError` covers both)."""


def _members(archive: zipfile.ZipFile) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for info in archive.infolist():
        if info.compress_type != zipfile.ZIP_STORED or info.file_size > LARGEST_MEMBER:
            raise plan_error(f"member {info.filename} is compressed or too large")
        if info.filename in found:
            raise plan_error(f"there are two members {info.filename}")
        found[info.filename] = archive.read(info)
    return found


def _plan(members: Mapping[str, bytes]) -> Plan:
    if _MAIN not in members:
        raise plan_error(f"it has no {_MAIN}")
    main = json.loads(members[_MAIN])
    if not isinstance(main, dict) or not isinstance(main.get("format"), int):
        raise plan_error(f"{_MAIN} has no format version")
    if main["format"] != FORMAT:
        raise plan_error(
            f"it has format {main['format']}, this Lumi reads format {FORMAT}",
            "compile the model again with this Lumi",
        )
    _check_hashes(members, main.get("sha256"))
    plan = decode(Plan, main.get("plan"), "plan")
    kernels = tuple(replace(k, source=_take(members, f"kernels/{k.name}.c").decode()) for k in plan.kernels)
    binaries = tuple(
        Binary(name.removeprefix("binaries/"), members[name])
        for name in sorted(members)
        if name.startswith("binaries/")
    )
    explanation = json.loads(_take(members, _EXPLANATION))
    if not isinstance(explanation, dict):
        raise plan_error(f"{_EXPLANATION} is no object")
    return replace(plan, kernels=kernels, binaries=binaries, explanation=explanation)


def _check_hashes(members: Mapping[str, bytes], hashes: object) -> None:
    if not isinstance(hashes, dict) or set(hashes) != set(members) - {_MAIN}:
        raise plan_error("its members are not the ones it lists")
    for name, digest in hashes.items():
        if hashlib.sha256(members[name]).hexdigest() != digest:
            raise plan_error(f"member {name} is damaged")


def _take(members: Mapping[str, bytes], name: str) -> bytes:
    if name not in members:
        raise plan_error(f"member {name} is missing")
    return members[name]


def _json(value: object) -> bytes:
    return json.dumps(cast(Json, value), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _zip(members: Mapping[str, bytes]) -> bytes:
    """A stored zip with fixed dates, attributes and order."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system = 3
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)
    return stream.getvalue()
