"""The softmax."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mha_lib import softmax
from tests import reference

pytestmark = pytest.mark.filterwarnings("error")
INF, NAN = np.inf, np.nan


def test_a_row_worked_out_by_hand():
    assert_allclose(softmax(np.log([1.0, 2.0, 5.0])), [0.125, 0.25, 0.625], rtol=1e-15)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3, np.int8(1)])
def test_every_line_along_the_axis_agrees_with_the_slow_softmax(rng, axis):
    z = rng.normal(scale=3, size=(2, 5, 7))
    expected = np.apply_along_axis(reference.softmax_row, axis, z)
    weights = softmax(z, axis=axis)
    assert_allclose(weights, expected, atol=1e-12)
    assert_allclose(weights.sum(axis=axis), 1, atol=1e-12)


@pytest.mark.parametrize("shift", [-1024.0, 4096.0])
def test_adding_one_number_to_all_scores_changes_nothing(rng, shift):
    z = rng.integers(-16, 16, size=(5, 7)) / 8  # eighths: adding the shift is exact
    assert_array_equal(softmax(z + shift), softmax(z))


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        pytest.param([1e4, -1e4, 1e4], [0.5, 0, 0.5], id="ten thousand"),
        pytest.param([-1e4, -1e4], [0.5, 0.5], id="all far below 0"),
        pytest.param([1e300, -1e300, 0], [1, 0, 0], id="1e300"),
        pytest.param([-1.7e308, 1.7e308], [0, 1], id="a difference that overflows"),
        pytest.param([-INF, 3, 3], [0, 0.5, 0.5], id="-inf gets nothing"),
        pytest.param([-INF, -INF], [0, 0], id="only -inf: nothing to choose from"),
        pytest.param([INF, 1e300, INF, -INF], [0.5, 0, 0.5, 0], id="+inf shares"),
        pytest.param([INF, NAN], [NAN, NAN], id="NaN spoils its row"),
    ],
)
@pytest.mark.parametrize("position", [0, 2])
def test_extreme_scores_stay_in_their_row(scores, expected, position):
    z = np.zeros((3, len(scores)))
    z[position] = scores
    result = np.full(z.shape, 1 / len(scores))
    result[position] = expected
    assert_allclose(softmax(z), result, rtol=1e-15)


@pytest.mark.parametrize("extreme", [0, INF, -INF])
def test_float32_stays_float32(rng, extreme):
    z = rng.normal(size=(5, 7))
    z[2, 3] = extreme
    weights = softmax(z.astype(np.float32))
    assert weights.dtype == np.float32
    assert_allclose(weights, softmax(z), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, None])
def test_integers_are_computed_in_float64(dtype):
    weights = softmax([[0, 200], [1, 1]] if dtype is None else np.array([[0, 99], [1, 1]], dtype))
    assert weights.dtype == np.float64
    assert_allclose(weights, [[0, 1], [0.5, 0.5]], atol=1e-40)


def test_read_only_scores_in_any_memory_order_are_left_alone(rng, awkward):
    z = rng.normal(size=(3, 5))
    assert_array_equal(softmax(awkward(z)), softmax(z))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_no_scores_make_no_weights(shape):
    assert_array_equal(softmax(np.zeros(shape)), np.zeros(shape), strict=True)
