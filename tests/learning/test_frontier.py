"""The frontier of one row of weights with two jobs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mha_lib.learning.frontier import best_row, job_errors

N, MARKED = 7, 2


def weighted(errors, importance):
    """Return the sum that `best_row` makes as small as it can."""
    fetch_error, mean_error = errors
    return importance * fetch_error + (1 - importance) * mean_error


def test_errors_worked_out_by_hand():
    rows = [[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1], [3, 1, 1, 1], [1, -1, 0, 0]]
    fetch_error, mean_error = job_errors(rows)
    assert_allclose(fetch_error, [0, 1, 3 / 4, 1 / 4, 1 / 2], atol=1e-15)
    assert_allclose(mean_error, [3 / 4, 3 / 4, 0, 1 / 4, 1], atol=1e-15)


def test_errors_are_those_of_a_simulation_with_random_tokens(rng):
    rows = np.array([best_row(N, marked=MARKED), rng.normal(size=N), np.eye(N)[4]])
    tokens = rng.normal(size=(200_000, N))  # one number per token is enough
    blends = tokens @ rows.T  # (samples, rows)
    targets = tokens[:, MARKED], np.sqrt(N) * tokens.mean(axis=1)
    for target, errors in zip(targets, job_errors(rows, marked=MARKED), strict=True):
        scale = target @ blends / (blends**2).sum(axis=0)  # the best rescaling, by least squares
        simulated = ((target[:, None] - scale * blends) ** 2).mean(axis=0)
        assert_allclose(errors, simulated, atol=0.01)


@pytest.mark.parametrize("n", [2, 4, 7, 16, 61])
def test_no_row_beats_the_bound_and_the_best_row_reaches_it(rng, n):
    bound = 1 - 1 / np.sqrt(n)
    marked = n - 1
    rows = rng.normal(size=(5000, n)) + rng.exponential(3, size=(5000, 1)) * np.eye(n)[marked]
    assert np.sum(job_errors(rows, marked=marked), axis=0).min() >= bound - 1e-12
    assert_allclose(sum(job_errors(best_row(n, marked=marked), marked=marked)), bound, atol=1e-12)


def test_errors_of_a_distant_token_and_a_near_window_by_hand():
    rows = [[1, 0, 0, 0, 0], [0, 0, 0, 1, 1], [1, 0, 0, 1, 1], [0, 0, 0, 1, 0], [0, 1, 0, 0, 0]]
    fetch_error, mean_error = job_errors(rows, n_near=2)
    assert_allclose(fetch_error, [0, 1, 2 / 3, 1, 1], atol=1e-15)
    assert_allclose(mean_error, [1, 0, 1 / 3, 1 / 2, 1], atol=1e-15)


def test_errors_of_a_near_window_are_those_of_a_simulation(rng):
    rows = rng.random(size=(3, N))
    tokens = rng.normal(size=(200_000, N))
    blends, targets = tokens @ rows.T, (tokens[:, MARKED], np.sqrt(3) * tokens[:, 4:].mean(axis=1))
    for target, errors in zip(targets, job_errors(rows, MARKED, n_near=3), strict=True):
        scale = target @ blends / (blends**2).sum(axis=0)
        simulated = ((target[:, None] - scale * blends) ** 2).mean(axis=0)
        assert_allclose(errors, simulated, atol=0.01)


@pytest.mark.parametrize(("n", "n_near"), [(2, 1), (4, 3), (7, 2), (61, 5), (61, 59)])
def test_far_and_near_errors_sum_to_at_least_1_for_every_n(rng, n, n_near):
    far = n - n_near - 1  # the token before the window
    rows = rng.normal(size=(5000, n)) + rng.exponential(3, size=(5000, 1)) * np.eye(n)[far]
    assert np.sum(job_errors(rows, far, n_near), axis=0).min() >= 1 - 1e-12
    # Every blend of the two perfect rows reaches 1: no compromise gains anything.
    share = np.linspace(0, 1, 11)[:, None]  # of the distant token
    window = np.repeat([0.0, 1 / n_near], [n - n_near, n_near])
    mixed = share * np.eye(n)[far] + (1 - share) * window
    assert_allclose(np.sum(job_errors(mixed, far, n_near), axis=0), 1, atol=1e-12)


@pytest.mark.parametrize("n_near", [1, 2, 5, N])
@pytest.mark.parametrize("marked", [0, N - 1])
def test_the_bound_is_one_less_the_product_of_the_two_unit_rows(rng, n_near, marked):
    f = np.eye(N)[marked]
    g = np.repeat([0.0, n_near**-0.5], [N - n_near, n_near])
    rows = np.concatenate([rng.normal(size=(5000, N)), [f + g]])
    sums = np.sum(job_errors(rows, marked, n_near), axis=0)
    assert sums.min() >= 1 - f @ g - 1e-12
    assert_allclose(sums[-1], 1 - f @ g, atol=1e-12)


def test_a_window_of_all_tokens_is_the_default(rng):
    rows = rng.normal(size=(3, N))
    assert_allclose(job_errors(rows, n_near=N), job_errors(rows), atol=1e-15)


@pytest.mark.parametrize("importance", [0, 0.1, 0.5, 0.8, 1])
@pytest.mark.parametrize("marked", [0, MARKED, N - 1])
def test_the_best_row_is_the_best_that_brute_force_can_find(rng, importance, marked):
    row = best_row(N, importance, marked)
    share = np.linspace(0, 1, 10_001)  # of the marked token; the others are alike
    rows = np.repeat((1 - share[:, None]) / (N - 1), N, axis=1)
    rows[:, marked] = share
    errors = weighted(job_errors(rows, marked), importance)
    assert_allclose(row, rows[errors.argmin()], atol=2e-4)
    least = weighted(job_errors(row, marked), importance)
    assert least <= errors.min() + 1e-12
    assert least <= weighted(job_errors(rng.normal(size=(5000, N)), marked), importance).min()


def test_the_best_row_for_equal_importance_is_the_bisector():
    row = best_row(16, marked=3)
    expected = np.full(16, 0.05)
    expected[3] = 0.25
    assert_allclose(row, expected, atol=1e-15)


@pytest.mark.parametrize("n", [2, 3, 16, 61])
@pytest.mark.parametrize("importance", np.linspace(0, 1, 11))
def test_a_best_row_could_come_from_a_softmax(n, importance):
    row = best_row(n, importance)
    assert row.min() >= -1e-15
    assert_allclose(row.sum(), 1, atol=1e-12)


def test_rescaling_a_row_changes_no_error(rng):
    rows = rng.normal(size=(2, 3, N))
    for factor in (-1.0, 1e-300, 1e300):
        assert_allclose(job_errors(factor * rows), job_errors(rows), atol=1e-12)


@pytest.mark.parametrize("n", range(2, 40))
def test_rounding_makes_no_error_negative(n):
    assert np.min(job_errors(np.full(n, 0.1))) >= 0
    assert np.min(job_errors(0.1 * np.eye(n)[0])) >= 0


def test_float32_stays_float32(rng):
    rows = rng.normal(size=(3, N))
    for errors, expected in zip(job_errors(rows.astype(np.float32)), job_errors(rows), strict=True):
        assert errors.dtype == np.float32
        assert_allclose(errors, expected, atol=1e-6)


def test_integers_are_computed_in_float64():
    rows = np.arange(2 * N).reshape(2, N)
    assert_array_equal(job_errors(rows), job_errors(rows.astype(float)), strict=True)


def test_leading_axes_hold_independent_rows(rng):
    rows = rng.normal(size=(2, 3, N))
    fetch_error, mean_error = job_errors(rows, marked=MARKED)
    for i, j in np.ndindex(2, 3):
        expected = job_errors(rows[i, j], marked=MARKED)
        assert_allclose([fetch_error[i, j], mean_error[i, j]], expected, atol=1e-15)


def test_read_only_rows_in_any_memory_order_are_left_alone(rng, awkward):
    rows = rng.normal(size=(3, N))
    assert_allclose(job_errors(awkward(rows)), job_errors(rows), atol=1e-15)


@pytest.mark.parametrize("integer", [np.int8, np.uint64, np.array])
def test_any_integer_type_will_do(integer):
    assert_array_equal(best_row(integer(N), marked=integer(2)), best_row(N, marked=2))
    got = job_errors(np.eye(N), integer(2), integer(3))
    assert_array_equal(got, job_errors(np.eye(N), 2, 3))
