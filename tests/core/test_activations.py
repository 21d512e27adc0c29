"""The softmax, in place too, and its backward."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mha_lib import softmax
from mha_lib.activations import softmax_backward
from tests import reference
from tests.gradients import TOLERANCE, relative_error

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


# --- backward -------------------------------------------------------------------------------


def test_a_backward_row_worked_out_by_hand():
    # The weighted mean of d_weights is 4; each entry gets its weight times what it has beyond that.
    d_z = softmax_backward([4.0, 0.0, 8.0], [0.5, 0.25, 0.25])
    assert_array_equal(d_z, [0.0, -1.0, 1.0], strict=True)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3, np.int8(1)])
def test_the_backward_is_the_gradient_along_every_axis(rng, axis):
    z, d_weights = rng.normal(size=(2, 2, 5, 7))
    d_z = softmax_backward(d_weights, softmax(z, axis), axis)
    assert relative_error(d_z, lambda: np.sum(d_weights * softmax(z, axis)), z) < TOLERANCE
    assert_allclose(d_z.sum(axis=axis), 0, atol=1e-14)  # one number more changes no weight


@pytest.mark.parametrize("z", [[1e4, -1e4, 1e4], [1e300, -1e300, 1e300], [-INF, 3, 1], [-INF] * 3])
def test_where_a_weight_is_0_so_is_the_gradient(rng, z):
    weights = softmax(z)
    d_z = softmax_backward(rng.normal(size=3), weights)
    assert_array_equal(d_z == 0, weights == 0)
    assert np.isfinite(d_z).all()


def test_a_gradient_of_inf_where_the_weight_is_0_spoils_neither_its_row_nor_another():
    weights = np.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]])
    d_z = softmax_backward([[4.0, 0.0, INF], [4.0, 0.0, 8.0]], weights)
    assert_array_equal(d_z, [[1.0, -1.0, 0.0], [0.25, -1.5, 1.25]])


@pytest.mark.parametrize(
    ("d_type", "weights_type", "result"),
    [
        ("float32", "float32", "float32"),
        ("float32", "float64", "float64"),
        ("float64", "float32", "float64"),
        ("int8", "int64", "float64"),
    ],
)
def test_the_backward_keeps_the_dtype(d_type, weights_type, result):
    d_weights, weights = np.array([[4, 8], [3, 5]], d_type), np.array([[1, 0], [0, 1]])
    d_z = softmax_backward(d_weights, weights.astype(weights_type))
    assert_array_equal(d_z, np.zeros((2, 2), result), strict=True)


def test_the_backward_leaves_read_only_arrays_in_any_memory_order_alone(rng, awkward):
    z, d_weights = rng.normal(size=(2, 5, 7))
    d_z = softmax_backward(awkward(d_weights), awkward(softmax(z)), axis=0)
    assert_allclose(d_z, softmax_backward(d_weights, softmax(z), axis=0), rtol=1e-14)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_no_weights_have_no_gradient(shape):
    assert_array_equal(
        softmax_backward(np.zeros(shape), np.zeros(shape)), np.zeros(shape), strict=True
    )


@pytest.mark.parametrize("gradient", [np.inf, -np.inf, np.nan])
def test_where_a_weight_is_0_so_is_the_gradient_of_the_score(gradient):
    weights = np.array([[0.25, 0.0, 0.75]])
    d_z = softmax_backward([[1.0, gradient, 2.0]], weights)
    assert_allclose(d_z, [[0.25 * (1 - 1.75), 0.0, 0.75 * (2 - 1.75)]])


def test_huge_gradients_make_no_nan():
    d_z = softmax_backward([[1.7e308, -1.7e308, 0.0]], [[0.5, 0.25, 0.25]])
    assert not np.isnan(d_z).any()
    assert d_z[0, 0] > 0 > d_z[0, 1]
