"""Plan files: same bytes, same plan, and an error for every kind of damage."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lumi.errors import LumiError
from lumi.plan.file import load, save, to_bytes
from lumi.plan.plan import FORMAT, Binary, Plan
from tests.plan.samples import add_plan, counter_plan


@pytest.mark.parametrize("plan", [add_plan(), counter_plan()], ids=["add", "counter"])
def test_a_plan_reads_back_equal(plan: Plan, tmp_path: Path) -> None:
    plan = replace(plan, binaries=(Binary("cpu-test", b"\x7fELF\x00\xff"),))
    save(plan, tmp_path / "p.lumiplan")
    back = load(tmp_path / "p.lumiplan")
    assert back == plan
    assert list(back.kernels[0].kernel.axes) == list(plan.kernels[0].kernel.axes)


def test_equal_plans_have_equal_bytes() -> None:
    assert to_bytes(add_plan()) == to_bytes(add_plan())
    assert to_bytes(add_plan()) != to_bytes(replace(add_plan(), name="other"))


def test_saving_leaves_no_other_file(tmp_path: Path) -> None:
    save(add_plan(), tmp_path / "p.lumiplan")
    save(counter_plan(), tmp_path / "p.lumiplan")
    assert [p.name for p in tmp_path.iterdir()] == ["p.lumiplan"]
    assert load(tmp_path / "p.lumiplan").name == "counter"


def test_saving_into_no_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LumiError, match="cannot write"):
        save(add_plan(), tmp_path / "missing" / "p.lumiplan")


def members(plan: Plan) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(to_bytes(plan))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path: Path, content: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def edited(edit: Callable[[dict[str, Any]], None]) -> dict[str, bytes]:
    content = members(add_plan())
    main = json.loads(content["plan.json"])
    edit(main)
    return content | {"plan.json": json.dumps(main).encode()}


def set_format(main: dict[str, Any]) -> None:
    main["format"] = FORMAT + 1


def drop_plan(main: dict[str, Any]) -> None:
    del main["plan"]


def set_name(main: dict[str, Any]) -> None:
    main["plan"][1] = 7


def set_arena(main: dict[str, Any]) -> None:
    main["plan"][9][0][5] = "many"


def nest(main: dict[str, Any]) -> None:
    main["plan"] = [[[[main["plan"]]]]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "it has no plan.json"),
        ({"plan.json": b"{"}, "is no plan, or is damaged"),
        ({"plan.json": b"[1]"}, "no format version"),
        ({"plan.json": b"\xff\xfe"}, "is no plan, or is damaged"),
        ({"plan.json": b"[" * 100_000}, "is no plan, or is damaged"),
        (edited(set_format), "it has format 6, this Lumi reads format 5"),
        (edited(drop_plan), "plan: expected"),
        (edited(set_name), "plan.name: expected a string, found 7"),
        (edited(set_arena), "arena: expected an integer"),
        (edited(nest), "plan: expected a Plan"),
        (members(add_plan()) | {"kernels/k0.c": b"other"}, "member kernels/k0.c is damaged"),
        (members(add_plan()) | {"kernels/more.c": b""}, "members are not the ones it lists"),
        (
            {k: v for k, v in members(add_plan()).items() if "k1" not in k},
            "members are not the ones it lists",
        ),
    ],
)
def test_damage_is_named(content: dict[str, bytes], message: str, tmp_path: Path) -> None:
    with pytest.raises(LumiError, match=message) as caught:
        load(write(tmp_path / "p.lumiplan", content))
    assert caught.value.kind == "plan error"


def test_compressed_members_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "p.lumiplan", members(add_plan()), zipfile.ZIP_DEFLATED)
    with pytest.raises(LumiError, match="is compressed or too large"):
        load(path)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LumiError, match="there is no plan"):
        load(tmp_path / "absent.lumiplan")
    with pytest.raises(LumiError, match="is no plan"):
        load(tmp_path)


def test_every_truncation_is_found(tmp_path: Path) -> None:
    whole = to_bytes(add_plan())
    path = tmp_path / "p.lumiplan"
    for length in [0, 1, 21, 22, *range(30, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(LumiError):
            load(path)


def test_a_flipped_bit_never_makes_another_plan(tmp_path: Path) -> None:
    plan, whole = add_plan(), to_bytes(add_plan())
    path, chance = tmp_path / "p.lumiplan", random.Random(7)
    refused = 0
    for _ in range(400):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        try:
            assert load(path) == plan
        except LumiError as error:
            assert error.kind == "plan error"
            refused += 1
    assert refused > 200


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, list):
        return [leaf for k, v in enumerate(value) for leaf in _leaves(v, (*path, k))]
    if isinstance(value, dict):
        return [leaf for k, v in value.items() for leaf in _leaves(v, (*path, k))]
    return [path]


def test_a_hostile_value_is_refused_or_harmless(tmp_path: Path) -> None:
    """Any leaf of the JSON replaced by any other value: an error or a plan that passed every check."""
    content, chance = members(counter_plan()), random.Random(11)
    main = json.loads(content["plan.json"])
    leaves = _leaves(main["plan"])
    values: list[Any] = [-1, 0, 1, 2**31, 2**63, 1e308, "", "x", "Dim", None, True, [], {}, [["seq"], 1]]
    path = tmp_path / "p.lumiplan"
    for _ in range(600):
        hostile = json.loads(content["plan.json"])
        *route, last = chance.choice(leaves)
        place = hostile["plan"]
        for step in route:
            place = place[step]
        place[last] = chance.choice(values)
        try:
            load(write(path, content | {"plan.json": json.dumps(hostile).encode()}))
        except LumiError as error:
            assert error.kind == "plan error"
