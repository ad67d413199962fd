"""An index outside of what is gathered from is clamped into it, whatever that is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lumi.runtime.session import Session
from tests.compilations import plan_of, written

Array = np.ndarray[Any, Any]
X = np.arange(8, dtype=np.float32) + 1
Y = -np.arange(2, dtype=np.float32) - 1

TABLES: dict[str, Callable[[], Array]] = {
    "x": lambda: X,
    "(* 2 x)": lambda: 2 * X,
    "(slice x :start 2 :stop 5)": lambda: X[2:5],
    "(slice x :step 3)": lambda: X[::3],
    "(flip (slice x :start 2 :stop 5))": lambda: X[2:5][::-1],
    "(+ 1 (slice x :start 2 :stop 5))": lambda: X[2:5] + 1,
    "(reshape x [2 4])": lambda: X.reshape(2, 4),
    "(permute (reshape x [2 4]) [1 0])": lambda: X.reshape(2, 4).T,
    "(window-axis x 3)": lambda: np.lib.stride_tricks.sliding_window_view(X, 3),
    "(expand (reshape x [8 1]) [8 2])": lambda: np.broadcast_to(X[:, None], (8, 2)),
    "(pad-axis x :low 1 :high 1 :fill 9)": lambda: np.pad(X, 1, constant_values=9),
    "(concat [x y])": lambda: np.concatenate([X, Y]),
    "(update-slice x y :start 6)": lambda: np.concatenate([X[:6], Y]),
    "(scatter x (iota 2) y)": lambda: np.concatenate([X[:2] + Y, X[2:]]),
    "(cumsum x)": lambda: np.cumsum(X),
    "(* 2 (iota 4))": lambda: 2 * np.arange(4),
    "(gather x (iota 3))": lambda: X[:3],
}


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("table", TABLES)
def test_an_index_outside_is_clamped(table: str, dtype: type[np.signedinteger]) -> None:
    model = f"(defmodel m [(x f32 [8]) (y f32 [2]) (i {np.dtype(dtype).name.replace('int', 'i')} [5])]"
    index = np.array([-1, 0, 2, 100, np.iinfo(dtype).max - 1], dtype)
    found = Session(plan_of(written(f"{model} (gather {table} i))")))(x=X, y=Y, i=index)["out"]
    whole = TABLES[table]()
    np.testing.assert_array_equal(found, whole[np.clip(index, 0, len(whole) - 1)])


@pytest.mark.parametrize("index", ["(iota 5)", "(tensor [0 1 2 9 9] :dtype i32)"])
def test_an_index_known_to_leave_a_slice_is_clamped(index: str) -> None:
    work = written(f"(defmodel m [(x f32 [8])] (gather (slice x :start 2 :stop 5) {index}))")
    assert Session(plan_of(work))(x=X)["out"].tolist() == [3, 4, 5, 5, 5]
