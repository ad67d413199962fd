"""Finding cuBLASLt, and what it is told: a library in its place takes notes."""

from __future__ import annotations

import ctypes
import ctypes.util
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from lumi.backends.cuda import cublas
from lumi.backends.cuda.cublas import BIAS, RELU, Library, Matmul, Matrix, Pointers
from lumi.dtype import BF16, F32
from lumi.errors import LumiError


class Held:
    """A file of an installed package."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name

    def locate(self) -> Path:
        return self.path


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """A machine with nothing; `machine("nvidia-cublas")` installs a package and returns its library."""
    installed: dict[str, list[Held]] = {}

    def files(name: str) -> list[Held]:
        if name not in installed:
            raise PackageNotFoundError(name)
        return installed[name]

    def install(name: str) -> Path:
        path = tmp_path / name / "libcublasLt.so.1"
        path.parent.mkdir()
        path.touch()
        installed[name] = [Held(path.with_name("cublas.h")), Held(path)]
        return path

    monkeypatch.setattr(cublas, "files", files)
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setattr(cublas, "TOOLKIT", str(tmp_path / "none"))
    cublas.find_library.cache_clear()
    yield install
    cublas.find_library.cache_clear()


def test_nothing_is_found_where_there_is_nothing(machine: Callable[..., Path]) -> None:
    assert cublas.find_library() is None


@pytest.mark.parametrize(
    ("bindings", "package"), [("12.9.1", "nvidia-cublas-cu12"), ("13.1", "nvidia-cublas")]
)
def test_package_of_the_cuda_in_use_comes_first(
    machine: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, bindings: str, package: str
) -> None:
    monkeypatch.setattr(cublas, "version", lambda name: bindings)
    paths = {name: machine(name) for name in ("nvidia-cublas", "nvidia-cublas-cu12")}
    assert cublas.find_library() == str(paths[package])


def test_package_without_its_file_is_passed_over(machine: Callable[..., Path]) -> None:
    machine("nvidia-cublas-cu12").unlink()
    assert cublas.find_library() is None


def test_toolkit_is_found_where_cuda_home_says(machine: Callable[..., Path], tmp_path: Path) -> None:
    folder = tmp_path / "toolkit" / "lib64"
    folder.mkdir(parents=True)
    (folder / "libcublasLt.so.13").touch()
    assert cublas.find_library() == str(folder / "libcublasLt.so.13")


# -- what it is told


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
