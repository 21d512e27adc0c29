"""Rotary positions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mha_lib.learning.positions import rotary_angles, rotate
from tests import reference

pytestmark = pytest.mark.filterwarnings("error")
B, H, N, DK = 2, 3, 7, 10  # Dk cannot be a prime: its five pairs are turned


def test_angles_worked_out_by_hand():
    # The pairs of d_k = 4 turn by 1 and by 10000 ** (-2 / 4) = 1/100 a token.
    assert_allclose(rotary_angles(3, 4), [[0, 0], [1, 0.01], [2, 0.02]], rtol=1e-14)


@pytest.mark.parametrize(("d_k", "tokens"), [(2, 6.2832), (8, 6283.2), (64, 47117.0)])
def test_the_slowest_pair_turns_once_in_as_many_tokens_as_the_docstring_says(d_k, tokens):
    """By hand: 10000 ** (1 - 2/8) is 1000, and 10000 ** (1 - 2/64) is 7,498.9."""
    angles = rotary_angles(2, d_k)[1]
    assert_allclose(2 * np.pi / angles[0], 6.2832, rtol=1e-4)
    assert_allclose(2 * np.pi / angles[-1], tokens, rtol=1e-4)
    assert 2 * np.pi / angles.min() < 62_832  # the base is never reached


@pytest.mark.parametrize(("n", "d_k"), [(np.int8(3), np.uint64(4)), (np.array(3), np.array(4))])
def test_any_integer_type_will_do(n, d_k):
    assert_array_equal(rotary_angles(n, d_k), rotary_angles(3, 4), strict=True)


def test_a_turn_worked_out_by_hand():
    # Coordinate 0 turns with 2, by a quarter, and 1 with 3, by a half.
    turned = rotate([[1.0, 2.0, 3.0, 4.0]], [[np.pi / 2, np.pi]])
    assert_allclose(turned, [[-3.0, -2.0, 1.0, -4.0]], atol=1e-14)


def test_rotate_agrees_with_the_slow_turn(rng):
    x = rng.normal(size=(B, H, N, DK))
    turned = rotate(x, rotary_angles(N, DK))
    for b, h in np.ndindex(B, H):
        assert_allclose(turned[b, h], reference.turn(x[b, h]), atol=1e-13)


def test_a_turn_keeps_lengths_and_is_undone_by_its_opposite(rng):
    x, angles = rng.normal(size=(H, N, DK)), rotary_angles(N, DK)
    turned = rotate(x, angles)
    assert_allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-13)
    assert_allclose(rotate(turned, -angles), x, atol=1e-13)
    assert_array_equal(turned[:, 0], x[:, 0])  # the first token stands still
    assert (turned[:, 1:] != x[:, 1:]).all()


def test_scores_depend_on_the_distance_alone(rng):
    q, k = rng.normal(size=(2, DK))
    angles = rotary_angles(N, DK)
    q, k = (rotate(np.tile(row, (N, 1)), angles) for row in (q, k))
    scores = q @ k.T  # of one query and one key, at all pairs of places
    for offset in range(1 - N, N):
        assert_allclose(np.diag(scores, offset), scores[max(0, -offset), max(0, offset)])
    by_distance = [*scores[0], *scores[1:, 0]]
    assert len(np.unique(np.round(by_distance, 6))) == 2 * N - 1  # no two distances look alike


def test_float32_stays_float32_and_integers_become_float64(rng):
    x, angles = rng.normal(size=(N, DK)), rotary_angles(N, DK)
    turned = rotate(x.astype(np.float32), angles)
    assert turned.dtype == np.float32
    assert_allclose(turned, rotate(x, angles), atol=1e-6)
    assert_array_equal(rotate([[3, 4]], [[0]]), [[3.0, 4.0]], strict=True)


def test_read_only_arrays_in_any_memory_order_are_left_alone(rng, awkward):
    x, angles = rng.normal(size=(H, N, DK)), rotary_angles(N, DK)
    assert_array_equal(rotate(awkward(x), awkward(angles)), rotate(x, angles))


def test_a_sequence_of_length_0_is_allowed():
    assert_array_equal(rotary_angles(0, DK), np.zeros((0, DK // 2)), strict=True)
    empty = np.zeros((H, 0, DK))
    assert_array_equal(rotate(empty, rotary_angles(0, DK)), empty, strict=True)
