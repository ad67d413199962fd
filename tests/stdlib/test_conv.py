"""Convolution and pooling against loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.language import Array, run


def convolution(x: Array, w: Array, stride: int, padding: int, dilation: int, groups: int) -> Array:
    """x[b c h w] ⋆ w[o c/groups i j], element by element in f64."""
    b, c, h, width = x.shape
    o, inner, kh, kw = w.shape
    padded = np.zeros((b, c, h + 2 * padding, width + 2 * padding))
    padded[:, :, padding : padding + h, padding : padding + width] = x
    rows = (padded.shape[2] - dilation * (kh - 1) - 1) // stride + 1
    columns = (padded.shape[3] - dilation * (kw - 1) - 1) // stride + 1
    y = np.zeros((b, o, rows, columns))
    for channel, row, column in itertools.product(range(o), range(rows), range(columns)):
        first = channel // (o // groups) * inner
        patch = padded[:, first : first + inner]
        patch = patch[:, :, row * stride :: dilation, column * stride :: dilation][:, :, :kh, :kw]
        y[:, channel, row, column] = (patch * w[channel].astype(np.float64)).sum((1, 2, 3))
    return y


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 1, 2)])
def test_conv2d_equals_a_loop(stride: int, padding: int, dilation: int, groups: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 4, 9, 7)).astype(np.float32)
    w = rng.standard_normal((8, 4 // groups, 3, 2)).astype(np.float32)
    options = f":stride {stride} :padding {padding} :dilation {dilation} :groups {groups}"
    found = run(f"(conv2d x w {options})", x=x, w=w)
    np.testing.assert_allclose(found, convolution(x, w, stride, padding, dilation, groups), atol=1e-5)


@pytest.mark.parametrize("groups", [1, 2])
def test_conv1d_is_conv2d_of_one_row(groups: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 4, 11)).astype(np.float32)
    w = rng.standard_normal((6, 4 // groups, 3)).astype(np.float32)
    found = run(f"(conv1d x w :stride 2 :padding 2 :dilation 2 :groups {groups})", x=x, w=w)
    rows = convolution(x[:, :, None], w[:, :, None], 2, 2, 2, groups)
    np.testing.assert_allclose(found, rows[:, :, 1], atol=1e-5)  # the row of x among those of padding


@pytest.mark.parametrize("window", [[2, 2], [3, 2]])
def test_pooling_equals_a_loop(window: list[int]) -> None:
    x = np.random.default_rng(2).standard_normal((2, 3, 8, 7)).astype(np.float32)
    for name, reduce in (("max-pool", np.max), ("avg-pool", np.mean)):
        found = run(f"({name} x [{window[0]} {window[1]}] :stride 2)", x=x)
        rows, columns = (8 - window[0]) // 2 + 1, (7 - window[1]) // 2 + 1
        want = np.array(
            [
                [
                    reduce(x[:, :, 2 * r : 2 * r + window[0], 2 * c : 2 * c + window[1]], axis=(2, 3))
                    for c in range(columns)
                ]
                for r in range(rows)
            ]
        )
        np.testing.assert_allclose(found, want.transpose(2, 3, 0, 1), atol=1e-6)
