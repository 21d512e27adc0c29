"""Masks: True = this query may look at this key."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mha_lib import _check, causal_mask, combine_masks, padding_mask


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("n_past", [0, 1, 3])
def test_a_causal_query_sees_the_past_and_itself(n, n_past):
    expected = [[key <= n_past + query for key in range(n_past + n)] for query in range(n)]
    expected = np.array(expected, bool).reshape(n, n_past + n)
    assert_array_equal(causal_mask(n, n_past=n_past), expected, strict=True)


def test_a_causal_mask_has_no_past_unless_told():
    assert_array_equal(causal_mask(2), [[True, False], [True, True]])


@pytest.mark.parametrize("lengths", [3, [0, 5, 2], [[1, 2, 3], [4, 5, 0]]])
@pytest.mark.parametrize("dtype", [int, np.int8, np.uint64])
def test_padding_hides_exactly_what_stands_behind_the_real_tokens(lengths, dtype):
    lengths = np.array(lengths, dtype)
    expected = np.zeros((*lengths.shape, 1, 1, 5), bool)
    for index in np.ndindex(lengths.shape):
        expected[index][..., : int(lengths[index])] = True
    assert_array_equal(padding_mask(lengths, n=5), expected, strict=True)


def test_combined_masks_allow_what_all_allow(rng):
    shapes = [(2, 1, 5, 7), (3, 1, 7), (5, 1)]
    masks = [rng.random(shape) < 0.7 for shape in shapes]
    expected = np.zeros((2, 3, 5, 7), bool)
    for b, h, i, j in np.ndindex(expected.shape):
        expected[b, h, i, j] = masks[0][b, 0, i, j] and masks[1][h, 0, j] and masks[2][i, 0]
    assert_array_equal(combine_masks(*masks), expected, strict=True)
    assert_array_equal(combine_masks(None, *masks[::-1], None), expected, strict=True)


@pytest.mark.parametrize("masks", [(), (None,), (None, None)])
def test_without_a_mask_there_is_nothing_to_combine(masks):
    assert combine_masks(*masks) is None


def test_a_combined_mask_is_new_and_its_parts_are_left_alone(awkward):
    part = awkward(np.array([[True, False, True], [False, True, True]]))
    combined = combine_masks(part)
    assert_array_equal(combined, part, strict=True)
    assert not np.shares_memory(combined, part)
    combined[0, 1] = True  # it may be written to


@pytest.mark.parametrize(
    ("lengths", "n"), [([3] * 7, _check.MOST_ENTRIES // 7 + 1), ([], _check.MOST_ENTRIES + 1)]
)
def test_a_mask_that_no_memory_holds_is_refused_before_it_is_made(lengths, n):
    with pytest.raises(ValueError, match=f"n={n} asks for .* numbers at once"):
        padding_mask(lengths, n)
