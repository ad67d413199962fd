"""cuBLASLt: what it is told, and what it proposes.

Matrices are in column order: element (i, j) lies `i + j · ld` behind the first.  f32 is computed in f32,
in TF32 only where a call asks for it; sums of halves are kept in f32, also where a sum is split, and rounded
once.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lumi.backends.cuda.driver import device_error
from lumi.backends.cuda.gpu import Gpu
from lumi.backends.cuda.library import find_library
from lumi.backends.cuda.split import Splitter, open_splitter
from lumi.dtype import BF16, F16, F32, F64, I8, I32, DType
from lumi.errors import LumiError

WORKSPACE = 32 << 20
"""Bytes of device memory that calls share; they follow each other on one stream."""

MOST = 8
"""Algorithms that the library is asked for."""

KEPT = 512
"""Calls whose descriptions are kept: those of the products of a model at some sizes."""

BIAS, RELU = 4, 2
"""Bits of `Matmul.epilogue`."""

_TYPES = {F32: 0, F64: 1, F16: 2, I8: 3, I32: 10, BF16: 14}
_SUMS = {F32: 68, F64: 70, I32: 72}
_IN_TF32 = 77
_SCALARS: dict[DType, type[Any]] = {F32: ctypes.c_float, F64: ctypes.c_double, I32: ctypes.c_int32}

_DESCRIPTION = {"transpose_a": 3, "transpose_b": 4, "epilogue": 7, "bias": 8, "bias_stride": 10}
_BATCH, _STRIDE = 5, 6
_WORKSPACE, _REDUCTION, _ALIGNMENTS = 1, 3, (5, 6, 7, 8)

_IN_SUM_TYPE = 2
"""Partial sums of a split are added in the type of the sum, and rounded once."""

_REFUSALS = (7, 8, 15)
"""Invalid value, architecture mismatch, not supported: this call is none for the library."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A stack of matrices in column order, `stride` elements apart."""

    dtype: DType
    rows: int
    columns: int
    ld: int
    stride: int = 0


@dataclass(frozen=True, slots=True)
class Matmul:
    """`d = epilogue(alpha · op(a) · op(b) + beta · c + bias)` for each of `batch` matrices.

    `bias` has an element for each row of d; `bias_stride` lie between those of two matrices.  With `tf32`,
    factors of f32 are rounded to TF32.
    """

    a: Matrix
    b: Matrix
    c: Matrix
    d: Matrix
    transpose_a: bool
    transpose_b: bool
    batch: int
    dtype: DType
    alpha: float = 1.0
    beta: float = 0.0
    epilogue: int = 0
    bias_stride: int = 0
    tf32: bool = False


@dataclass(frozen=True, slots=True)
class Pointers:
    """Device addresses of a call's matrices and bias (0: none)."""

    a: int
    b: int
    c: int
    d: int
    bias: int = 0

    @property
    def alignments(self) -> tuple[int, ...]:
        """The powers of two, up to 256, that divide each address."""
        return tuple(min(x & -x, 256) or 256 for x in (self.a, self.b, self.c, self.d, self.bias))


class _Content(ctypes.Structure):
    _fields_ = (("words", ctypes.c_uint64 * 8),)


class _Answer(ctypes.Structure):
    _fields_ = (
        ("content", _Content),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


@dataclass(frozen=True, slots=True)
class Algorithm:
    """One way of the library to compute a call.

    `name` is the same wherever the same version of the library would compute the same sizes the same way.
    """

    name: int
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Described:
    """The library's own description of a call, and what it proposed at each alignment."""

    description: ctypes.c_void_p
    layouts: tuple[ctypes.c_void_p, ...]
    proposed: dict[tuple[int, ...], tuple[Algorithm, ...]] = field(default_factory=dict)


class Library:
    """cuBLASLt with a handle of the GPU's context."""

    def __init__(self, gpu: Gpu, path: str) -> None:
        self._gpu = gpu
        try:
            self._lib = ctypes.CDLL(path)
        except OSError as error:
            raise device_error(f"cuBLASLt cannot be loaded: {error}") from None
        self._lib.cublasLtGetVersion.restype = ctypes.c_size_t
        self._handle = ctypes.c_void_p()
        with gpu.active():
            self._call("cublasLtCreate", ctypes.byref(self._handle))
        self._workspace: Any = gpu.allocate(WORKSPACE)
        self._calls: dict[Matmul, _Described] = {}
        self._lock = threading.RLock()

    @property
    def splitter(self) -> Splitter:
        """What makes bf16 of f32 factors."""
        return open_splitter(self._gpu)

    @property
    def version(self) -> int:
        """The library's version, `130002`."""
        return int(self._lib.cublasLtGetVersion())

    def algorithms(self, matmul: Matmul, pointers: Pointers) -> tuple[Algorithm, ...]:
        """What the library proposes for a call, its favourite first; nothing for a call it cannot do."""
        alignments = pointers.alignments
        with self._lock:
            call = self._described(matmul, pointers.bias)
            if alignments not in call.proposed:
                with self._gpu.active():
                    call.proposed[alignments] = self._proposed(matmul, call, alignments)
            return call.proposed[alignments]

    def put(self, matmul: Matmul, pointers: Pointers, algorithm: Algorithm) -> None:
        """Put a call on the stream.  Raises `LumiError` when the library refuses it."""
        scalar = _SCALARS[matmul.dtype]
        alpha, beta = (scalar(int(x) if matmul.dtype == I32 else x) for x in (matmul.alpha, matmul.beta))
        content = _Content.from_buffer_copy(algorithm.content)
        with self._lock, self._gpu.active():
            call = self._described(matmul, pointers.bias)
            a, b, c, d = call.layouts
            self._call(
                "cublasLtMatmul",
                *(self._handle, call.description, ctypes.byref(alpha)),
                *(ctypes.c_void_p(pointers.a), a, ctypes.c_void_p(pointers.b), b, ctypes.byref(beta)),
                *(ctypes.c_void_p(pointers.c), c, ctypes.c_void_p(pointers.d), d, ctypes.byref(content)),
                *(ctypes.c_void_p(int(self._workspace)), ctypes.c_size_t(WORKSPACE)),
                ctypes.c_void_p(int(self._gpu.stream.handle)),
            )

    # -- what a call is described by

    def _described(self, matmul: Matmul, bias: int) -> _Described:
        """The description of a call with this bias, made once; the one that was used last stands last."""
        found = self._calls.pop(matmul, None) or self._describe(matmul)
        self._calls[matmul] = found
        if len(self._calls) > KEPT:
            self._forget(self._calls.pop(next(iter(self._calls))))
        if matmul.epilogue & BIAS:
            self._set("MatmulDesc", found.description, _DESCRIPTION["bias"], ctypes.c_void_p(bias))
        return found

    def _describe(self, matmul: Matmul) -> _Described:
        sums = _IN_TF32 if matmul.tf32 else _SUMS[matmul.dtype]
        description = self._made("MatmulDesc", ctypes.c_int(sums), ctypes.c_int(_TYPES[matmul.dtype]))
        attributes: dict[str, Any] = {
            "transpose_a": ctypes.c_int32(matmul.transpose_a),
            "transpose_b": ctypes.c_int32(matmul.transpose_b),
            "epilogue": ctypes.c_uint32(matmul.epilogue or 1),
        }
        if matmul.epilogue & BIAS:
            attributes["bias_stride"] = ctypes.c_int64(matmul.bias_stride)
        for name, value in attributes.items():
            self._set("MatmulDesc", description, _DESCRIPTION[name], value)
        matrices = (matmul.a, matmul.b, matmul.c, matmul.d)
        return _Described(description, tuple(self._layout(m, matmul.batch) for m in matrices))

    def _forget(self, call: _Described) -> None:
        self._call("cublasLtMatmulDescDestroy", call.description)
        for layout in call.layouts:
            self._call("cublasLtMatrixLayoutDestroy", layout)

    def _layout(self, matrix: Matrix, batch: int) -> ctypes.c_void_p:
        layout = self._made(
            "MatrixLayout",
            ctypes.c_int(_TYPES[matrix.dtype]),
            ctypes.c_uint64(matrix.rows),
            ctypes.c_uint64(matrix.columns),
            ctypes.c_int64(matrix.ld),
        )
        if batch > 1:
            self._set("MatrixLayout", layout, _BATCH, ctypes.c_int32(batch))
            self._set("MatrixLayout", layout, _STRIDE, ctypes.c_int64(matrix.stride))
        return layout

    def _proposed(self, matmul: Matmul, call: _Described, alignments: Sequence[int]) -> tuple[Algorithm, ...]:
        answers, count = (_Answer * MOST)(), ctypes.c_int()
        wishes = self._made("MatmulPreference")
        self._set("MatmulPreference", wishes, _WORKSPACE, ctypes.c_uint64(WORKSPACE))
        self._set("MatmulPreference", wishes, _REDUCTION, ctypes.c_uint32(_IN_SUM_TYPE))
        for attribute, alignment in zip(_ALIGNMENTS, alignments, strict=False):
            self._set("MatmulPreference", wishes, attribute, ctypes.c_uint32(alignment))
        asked = (self._handle, call.description, *call.layouts, wishes, ctypes.c_int(MOST))
        status = self._lib.cublasLtMatmulAlgoGetHeuristic(*asked, answers, ctypes.byref(count))
        self._call("cublasLtMatmulPreferenceDestroy", wishes)
        if status in _REFUSALS:
            return ()
        _check("cublasLtMatmulAlgoGetHeuristic", status)
        return tuple(
            Algorithm(self._name(matmul, bytes(a.content)), bytes(a.content))
            for a in answers[: count.value]
            if a.state == 0 and a.workspace <= WORKSPACE
        )

    def _name(self, matmul: Matmul, content: bytes) -> int:
        sizes = (matmul.d.rows, matmul.d.columns, matmul.a.rows, matmul.a.columns, matmul.batch)
        told = hashlib.sha256(repr((self.version, sizes)).encode() + content).digest()
        return int.from_bytes(told[:6], "little")

    # -- calls

    def _made(self, kind: str, *arguments: Any) -> ctypes.c_void_p:
        """A new object of the library."""
        found = ctypes.c_void_p()
        self._call(f"cublasLt{kind}Create", ctypes.byref(found), *arguments)
        return found

    def _set(self, kind: str, thing: ctypes.c_void_p, attribute: int, value: Any) -> None:
        self._call(
            f"cublasLt{kind}SetAttribute",
            *(thing, ctypes.c_int(attribute), ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value))),
        )

    def _call(self, function: str, *arguments: Any) -> None:
        _check(function, getattr(self._lib, function)(*arguments))


def _check(function: str, status: int) -> None:
    if status:
        raise device_error(f"{function} answers status {status}")


@functools.cache
def open_library(gpu: Gpu) -> Library | None:
    """The library on a GPU, opened once; None where there is none, or none that works, which is said."""
    path = find_library()
    if path is None:
        return None
    try:
        return Library(gpu, path)
    except LumiError as error:
        warnings.warn(
            f"{error.message}, so Lumi's own kernels compute matrix products, more slowly; "
            f"install the cuBLAS of the driver's CUDA ({gpu.driver_version}) or older",
            stacklevel=2,
        )
        return None
