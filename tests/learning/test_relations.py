"""Attention between words, the word that is looked at most, and Wilson's interval."""

import numpy as np
import pytest

from mha_lib.learning.relations import looked_at, wilson_interval, word_attention


def test_pieces_become_words_by_sums_of_keys_and_means_of_queries():
    """[CLS], a word of two pieces, a word of one, [SEP]."""
    weights = np.array(
        [
            [0.1, 0.2, 0.3, 0.3, 0.1],
            [0.5, 0.1, 0.1, 0.2, 0.1],
            [0.1, 0.3, 0.1, 0.4, 0.1],
            [0.0, 0.6, 0.1, 0.1, 0.2],
            [0.2, 0.2, 0.2, 0.2, 0.2],
        ]
    )
    expected = [
        [0.1, 0.5, 0.3, 0.1], [0.3, 0.3, 0.3, 0.1], [0.0, 0.7, 0.1, 0.2], [0.2, 0.4, 0.2, 0.2],
    ]  # fmt: skip
    found = word_attention(weights, [-1, 0, 0, 1, -1])
    np.testing.assert_allclose(found, expected, atol=1e-15)
    heads = np.stack([weights, weights[::-1]])[None]  # (1, 2, n, n)
    stacked = word_attention(heads, [-1, 0, 0, 1, -1])
    np.testing.assert_allclose(stacked[0, 0], expected, atol=1e-15)
    np.testing.assert_allclose(stacked.sum(axis=-1), 1)


def test_the_word_itself_and_the_marks_are_left_out():
    attention = np.zeros((5, 5))
    attention[1] = [0.9, 0.05, 0.01, 0.03, 0.01]  # rests on [CLS]; then the third word
    attention[2] = [0.0, 0.1, 0.8, 0.09, 0.01]  # on itself; then the first
    attention[3] = [0.0, 0.1, 0.2, 0.1, 0.6]  # on [SEP]; then the second
    assert looked_at(attention).tolist() == [2, 0, 1]
    assert looked_at(np.stack([attention] * 7)).shape == (7, 3)


@pytest.mark.parametrize(
    ("n_right", "n", "low", "high"),
    # Brown, Cai and DasGupta (2001) and by hand: the roots of (p - x)^2 n = z^2 x (1 - x).
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (50, 61, 0.7053, 0.8962), (1, 2, 0.0945, 0.9055)],
)
def test_wilson_interval(n_right, n, low, high):
    found = wilson_interval(n_right, n)
    assert found == pytest.approx((low, high), abs=5e-5)
    z, p = 1.959964, n_right / n
    for x in found:
        assert (p - x) ** 2 * n == pytest.approx(z * z * x * (1 - x), abs=1e-9)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: word_attention(np.ones((3, 4)), [-1, 0, -1]), "belongs to one sentence"),
        (lambda: word_attention(np.ones((4, 4)), [-1, 0, -1]), r"\(3,\), but must have"),
        (lambda: word_attention(np.ones((4, 4)), [-1, 0, 2, -1]), r"\[-1, 0, 2, -1\] must be -1"),
        (lambda: word_attention(np.ones((4, 4)), [0, 1, 2, 3]), "must be -1, then 0"),
        (lambda: word_attention(np.ones((2, 2)), [-1, -1]), "must be -1, then 0"),
        (lambda: looked_at(np.ones((3, 3))), "two words or more"),
        (lambda: looked_at(np.ones((4, 5))), "must be square"),
        (lambda: wilson_interval(4, 3), "n_right=4 is more than n=3"),
        (lambda: wilson_interval(0, 0), "n=0 is too small"),
    ],
)
def test_the_error_says_what_to_pass(call, says):
    with pytest.raises(ValueError, match=says):
        call()
