"""What cuBLASLt is told: a library in its place takes notes."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from lumi.backends.cuda import cublas
from lumi.backends.cuda.cublas import BIAS, RELU, Library, Matmul, Matrix, Pointers
from lumi.dtype import BF16, F32
from lumi.errors import LumiError


@dataclass
class Thing:
    """An object of the library: what it was made of, and its attributes."""

    kind: str
    made_of: tuple[Any, ...]
    attributes: dict[int, int] = field(default_factory=dict)


class Noting:
    """The functions of a library that proposes two algorithms for every call."""

    def __init__(self) -> None:
        self.things: dict[int, Thing] = {}
        self.numbers = itertools.count(1)
        self.products: list[tuple[Any, ...]] = []
        self.wishes: list[dict[int, int]] = []
        self.status = 0
        self.cublasLtGetVersion = lambda: 130002

    def __getattr__(self, name: str) -> Callable[..., int]:
        for verb in ("Create", "Destroy", "SetAttribute"):
            if name.endswith(verb):
                kind = name.removeprefix("cublasLt").removesuffix(verb)
                return lambda *arguments: getattr(self, verb)(kind, *arguments)
        raise AttributeError(name)

    def Create(self, kind: str, place: Any, *arguments: Any) -> int:  # noqa: N802
        number = next(self.numbers)
        self.things[number] = Thing(kind, tuple(a.value for a in arguments))
        place._obj.value = number
        return 0

    def Destroy(self, kind: str, thing: ctypes.c_void_p) -> int:  # noqa: N802
        assert self.things.pop(thing.value or 0).kind == kind
        return 0

    def SetAttribute(self, kind: str, thing: Any, attribute: Any, value: Any, size: Any) -> int:  # noqa: N802
        assert ctypes.sizeof(value._obj) == size.value
        self.things[thing.value].attributes[attribute.value] = value._obj.value
        return 0

    def cublasLtMatmulAlgoGetHeuristic(self, *arguments: Any) -> int:  # noqa: N802
        *_, wishes, _, answers, count = arguments
        self.wishes.append(dict(self.things[wishes.value].attributes))
        for number in range(2):
            answers[number].content.words[0] = number + 1
        count._obj.value = 2
        return self.status

    def cublasLtMatmul(self, *arguments: Any) -> int:  # noqa: N802
        self.products.append(arguments)
        return self.status


class Gpu:
    driver_version = "13.0"

    class stream:  # noqa: N801
        handle = 77

    @contextmanager
    def active(self) -> Iterator[None]:
        yield

    def allocate(self, size: int) -> int:
        return 1 << 40


@pytest.fixture
def noting(monkeypatch: pytest.MonkeyPatch) -> Noting:
    made = Noting()
    monkeypatch.setattr(ctypes, "CDLL", lambda path: made)
    return made


def test_library_that_does_not_work_is_named(noting: Noting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cublas, "find_library", lambda: "libcublasLt.so.14")
    monkeypatch.setattr(noting, "Create", lambda kind, *arguments: 1 if kind == "" else 0)
    with pytest.warns(UserWarning, match=r"cublasLtCreate answers status 1, .* CUDA \(13.0\) or older"):
        assert cublas.open_library(Gpu()) is None  # type: ignore[arg-type]


SQUARE = Matrix(BF16, 64, 64, 72, 72 * 64)
MATMUL = Matmul(SQUARE, SQUARE, SQUARE, SQUARE, True, False, 3, F32, 2.0, 1.0, BIAS | RELU, 64)
POINTERS = Pointers(256, 512, 1024, 1032, 4096)


def library() -> Library:
    return Library(Gpu(), "libcublasLt.so.13")  # type: ignore[arg-type]


def test_description_says_types_layouts_and_epilogue(noting: Noting) -> None:
    library().algorithms(MATMUL, POINTERS)
    kinds = [(t.kind, t.made_of, t.attributes) for t in noting.things.values() if t.kind]
    assert kinds[0] == ("MatmulDesc", (68, 0), {3: 1, 4: 0, 7: BIAS | RELU, 8: 4096, 10: 64})
    assert kinds[1:] == [("MatrixLayout", (14, 64, 64, 72), {5: 3, 6: 72 * 64})] * 4


def test_f32_is_computed_in_f32_unless_tf32_is_asked_for(noting: Noting) -> None:
    square = replace(SQUARE, dtype=F32)
    plain = replace(MATMUL, a=square, b=square, c=square, d=square)
    one = library()
    for matmul in (plain, replace(plain, tf32=True)):
        one.algorithms(matmul, POINTERS)
    found = [t.made_of for t in noting.things.values() if t.kind == "MatmulDesc"]
    assert found == [(68, 0), (77, 0)]  # CUBLAS_COMPUTE_32F and _32F_FAST_TF32, scalars in f32


def test_sums_are_never_split_in_halves_and_addresses_are_as_aligned(noting: Noting) -> None:
    library().algorithms(MATMUL, POINTERS)
    assert noting.wishes == [{1: cublas.WORKSPACE, 3: 2, 5: 256, 6: 256, 7: 256, 8: 8}]


def test_proposals_are_asked_for_once_for_each_alignment(noting: Noting) -> None:
    one = library()
    names = [a.name for a in one.algorithms(MATMUL, POINTERS)]
    assert names == [a.name for a in one.algorithms(MATMUL, POINTERS)]
    assert len(noting.wishes) == 1
    one.algorithms(MATMUL, replace(POINTERS, a=264))
    assert len(noting.wishes) == 2


def test_names_of_algorithms_depend_on_sizes_and_version(noting: Noting) -> None:
    one = library()
    wider = replace(MATMUL, d=replace(SQUARE, columns=65))
    names = [a.name for m in (MATMUL, wider) for a in one.algorithms(m, POINTERS)]
    noting.cublasLtGetVersion = lambda: 130003
    names += [a.name for a in library().algorithms(MATMUL, POINTERS)]
    assert len(set(names)) == 6


def test_call_takes_addresses_scalars_and_the_algorithm(noting: Noting) -> None:
    one = library()
    algorithm = one.algorithms(MATMUL, POINTERS)[1]
    one.put(MATMUL, POINTERS, algorithm)
    (told,) = noting.products
    assert [told[n].value for n in (3, 5, 8, 10)] == [256, 512, 1024, 1032]
    assert (told[2]._obj.value, told[7]._obj.value) == (2.0, 1.0)
    assert told[12]._obj.words[0] == 2
    assert [told[n].value for n in (13, 14, 15)] == [1 << 40, cublas.WORKSPACE, 77]


def test_descriptions_are_kept_and_their_bias_changes(noting: Noting) -> None:
    one = library()
    algorithm = one.algorithms(MATMUL, POINTERS)[0]
    before = len(noting.things)
    one.put(MATMUL, replace(POINTERS, bias=8192), algorithm)
    assert len(noting.things) == before
    (description,) = (t for t in noting.things.values() if t.kind == "MatmulDesc")
    assert description.attributes[8] == 8192


def test_descriptions_used_longest_ago_are_destroyed(noting: Noting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cublas, "KEPT", 2)
    one = library()
    for batch in range(1, 9):
        one.algorithms(replace(MATMUL, batch=batch), POINTERS)
    assert sum(t.kind == "MatmulDesc" for t in noting.things.values()) == 2
    assert sum(t.kind == "MatrixLayout" for t in noting.things.values()) == 8
    assert not any(t.kind == "MatmulPreference" for t in noting.things.values())


def test_call_that_is_none_for_the_library_has_no_algorithm(noting: Noting) -> None:
    noting.status = 15
    assert library().algorithms(MATMUL, POINTERS) == ()


def test_other_faults_of_the_library_are_told(noting: Noting) -> None:
    one = library()
    algorithm = one.algorithms(MATMUL, POINTERS)[0]
    noting.status = 14
    with pytest.raises(LumiError, match="cublasLtMatmul answers status 14"):
        one.put(MATMUL, POINTERS, algorithm)
    with pytest.raises(LumiError, match="answers status 14"):
        one.algorithms(replace(MATMUL, batch=2), POINTERS)
