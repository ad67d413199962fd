"""JSON of kernels: equal after a round trip, refused when damaged."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import pytest

from lumi.dtype import F32, DType
from lumi.errors import LumiError
from lumi.llir.json import decode, describe, encode
from lumi.llir.kernel import Kernel, KernelGraph, Map, Schedule
from tests.llir.kernels import everything, graphs


def again(value: object) -> Any:
    return json.loads(json.dumps(encode(value), allow_nan=False))


@pytest.mark.parametrize("name", ["by_hand", "attention_window", "decode", "layernorm", "variance_split"])
def test_graph_is_equal_after_a_round_trip(name: str) -> None:
    graph = graphs()[name]
    assert decode(KernelGraph, again(graph)) == graph


@pytest.mark.parametrize("value", [0.1, -0.0, 1e-45, math.inf, -math.inf, 1.7976931348623157e308, 3.0])
def test_number_keeps_every_bit(value: float) -> None:
    made = decode(Map, again(Map("v", "add", ("w", value), (), F32)))
    assert isinstance(made.args[1], float) and made.args[1].hex() == value.hex()


def test_nan_stays_nan() -> None:
    made = decode(Map, again(Map("v", "add", (math.nan,), (), F32)))
    assert isinstance(made.args[0], float) and math.isnan(made.args[0])


class Shade(Enum):
    DARK = "dark"
    LIGHT = "light"


@dataclass(frozen=True)
class Sample:
    shade: Shade
    word: Literal["a", "b"]
    kind: DType
    flag: bool
    pair: tuple[int, str]
    maybe: int | None
    table: dict[str, float]


SAMPLE = Sample(Shade.LIGHT, "a", F32, True, (1, "x"), None, {"k": 0.5})


def test_other_nouns_use_the_same_codec() -> None:
    assert decode(Sample, again(SAMPLE)) == SAMPLE
    assert encode(Shade.DARK) == "dark"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (1, "grey"),
        (2, "c"),
        (3, "f31"),
        (4, 1),
        (5, [1]),
        (5, ["x", 1]),
        (5, [True, "x"]),
        (6, "1"),
        (7, [0.5]),
        (7, {"k": "0.5"}),
        (7, {"k": True}),
        (7, {"k": ["float", "1"]}),
        (0, "Simple"),
    ],
)
def test_field_of_another_type_is_refused(field: int, value: object) -> None:
    data = again(SAMPLE)
    data[field] = value
    with pytest.raises(LumiError, match=r"damaged data|expected"):
        decode(Sample, data)


@pytest.mark.parametrize("damage", [None, 3, "Kernel", [], ["Kernel"], ["Loop", [], None, [], [], []], {}])
def test_what_is_no_kernel_is_refused(damage: Any) -> None:
    with pytest.raises(LumiError) as error:
        decode(Kernel, damage)
    assert error.value.kind == "damaged data" and "write it again" in error.value.hint


def test_message_says_where_the_damage_is() -> None:
    data = again(everything())
    data[5][3][4][0] = 7
    with pytest.raises(LumiError) as error:
        decode(Kernel, data, "plan.json: kernel 3")
    assert error.value.message.startswith("plan.json: kernel 3.body[3].carries[0]: expected a Carry")


def test_random_damage_is_refused_or_still_a_kernel() -> None:
    text, rng = json.dumps(encode(everything())), random.Random(0)
    refused = 0
    for _ in range(400):
        place = rng.randrange(len(text))
        damaged = text[:place] + rng.choice('"[]{},:0x-') + text[place + 1 :]
        try:
            made = decode(Kernel, json.loads(damaged))
        except json.JSONDecodeError:
            continue
        except LumiError:
            refused += 1
            continue
        assert isinstance(made, Kernel)
    assert refused > 20


def test_what_is_no_noun_is_not_encoded() -> None:
    with pytest.raises(TypeError, match="no noun"):
        encode(object())


def test_description_names_fields_and_has_no_infinity() -> None:
    made = describe(Schedule("c", (("rows", 2),)))
    assert made == {"template": "c", "options": [["rows", 2]]}
    assert describe({"x": math.inf}) == {"x": None}


def test_reading_needs_no_parser_and_no_egraph() -> None:
    code = (
        "import sys, lumi.llir.json\n"
        "heavy = ('lark', 'egglog', 'lumi.syntax', 'lumi.search')\n"
        "print([m for m in sys.modules if m.startswith(heavy)])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
