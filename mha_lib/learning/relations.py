"""Which word a head looks at, and how often that is the word that grammar would name."""

import math

import numpy as np
from numpy.typing import ArrayLike

from mha_lib import _check
from mha_lib._types import FloatArray, IntArray, Integer


def word_attention(weights: ArrayLike, word_of: ArrayLike) -> FloatArray:
    """Turn attention between pieces of words into attention between words.

    Parameters
    ----------
    weights : float array, (..., n, n)
        Attention weights between pieces, [CLS] first and [SEP] last.
    word_of : int array, (n,)
        Which word each piece is of, from 0, and -1 for [CLS] and [SEP]; see `Pieces`.

    Returns
    -------
    attention : float array, (..., W + 2, W + 2)
        Between [CLS], the W words and [SEP].  To a word: the sum over its pieces; from a word: the
        mean over its pieces.  Rows sum to 1 as before.

    References
    ----------
    Clark et al. (2019), arXiv:1906.04341, section 4.1.

    Examples
    --------
    The second word has two pieces:

    >>> word_attention(np.full((5, 5), 0.2), [-1, 0, 1, 1, -1])[1]
    array([0.2, 0.2, 0.4, 0.2])
    """
    weights = _check.real_array("weights", weights, axes=("n", "n"))
    word_of = _check.integer_array("word_of", word_of)
    n = weights.shape[-1]
    if weights.shape[-2] != n or word_of.shape != (n,):
        raise ValueError(
            f"weights has shape {weights.shape} and word_of {word_of.shape}, but must have "
            f"(..., n, n) and (n,): pass what belongs to one sentence"
        )
    inner = word_of[1:-1]
    steps = np.diff(inner, prepend=-1)
    if n < 3 or word_of[0] != -1 or word_of[-1] != -1 or not ((steps == 0) | (steps == 1)).all():
        raise ValueError(
            f"word_of={word_of.tolist()} must be -1, then 0, 1, ... without a gap, then -1: "
            f"pass encoder.tokens(text).word_of"
        )
    groups = np.concatenate([[0], inner + 1, [inner[-1] + 2]])  # [CLS], words, [SEP]
    member = np.equal.outer(np.arange(groups[-1] + 1), groups).astype(weights.dtype)  # (W + 2, n)
    mean = member / member.sum(axis=1, keepdims=True)
    return mean @ weights @ member.T


def looked_at(attention: ArrayLike) -> IntArray:
    """Return the word that each word looks at most, besides itself, [CLS] and [SEP].

    Parameters
    ----------
    attention : float array, (..., W + 2, W + 2)
        See `word_attention`.

    Returns
    -------
    words : int array, (..., W)
        For each of the W words another of them, from 0.

    Notes
    -----
    Most heads rest on [CLS] or on the word itself for most of the time.  Leaving these out asks
    what a head prefers when it looks elsewhere, as Clark et al. (2019) do.

    Examples
    --------
    >>> attention = np.array(
    ...     [[1.0, 0, 0, 0, 0], [0.9, 0, 0.02, 0.08, 0], [0.5, 0.1, 0.4, 0, 0],
    ...      [0.1, 0.1, 0.3, 0.5, 0], [1.0, 0, 0, 0, 0]]
    ... )
    >>> looked_at(attention)
    array([2, 0, 1])
    """
    attention = _check.real_array("attention", attention, axes=("W + 2", "W + 2"))
    n_words = attention.shape[-1] - 2
    if attention.shape[-2] != attention.shape[-1] or n_words < 2:
        raise ValueError(
            f"attention has shape {attention.shape}, but must be square, with [CLS], two words or "
            f"more, and [SEP]: pass what word_attention returns"
        )
    others = np.where(np.eye(n_words, dtype=bool), -np.inf, attention[..., 1:-1, 1:-1])
    return others.argmax(axis=-1)


def wilson_interval(n_right: Integer, n: Integer) -> tuple[float, float]:
    """Return between which shares the true one lies, with a confidence of 95 %.

    Parameters
    ----------
    n_right : int
        How many of the answers were right.
    n : int
        How many answers there were.

    Returns
    -------
    low, high : float
        Between 0 and 1; unlike the simple formula, never outside.

    References
    ----------
    Wilson (1927), "Probable inference, the law of succession, and statistical inference".

    Examples
    --------
    >>> low, high = wilson_interval(8, 10)
    >>> round(low, 3), round(high, 3)
    (0.49, 0.943)
    """
    n = _check.integer("n", n, minimum=1)
    n_right = _check.integer("n_right", n_right, minimum=0)
    if n_right > n:
        raise ValueError(f"n_right={n_right} is more than n={n}: use at most n")
    z = 1.959964  # standard deviations that 95 % of a normal distribution lie within
    share, spread = n_right / n, z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / n + spread / n / 4) / (1 + spread)
    return max(centre - half, 0.0), min(centre + half, 1.0)
