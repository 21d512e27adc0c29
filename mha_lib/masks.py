"""Masks: which query may look at which key.  True = this query may look at this key."""

import numpy as np
from numpy.typing import ArrayLike

from mha_lib import _check
from mha_lib._types import BoolArray, Integer


def causal_mask(n: Integer, *, n_past: Integer = 0) -> BoolArray:
    """Let every token look at itself and at what came before it.

    Parameters
    ----------
    n : int
        Number of queries, and of keys that stand at the same positions.
    n_past : int, default 0
        Number of keys before the first query, as when earlier tokens sit in a cache.
        All queries may look at them.

    Returns
    -------
    mask : bool array, (Tq, Tk) = (n, n_past + n)
        True = this query may look at this key.

    References
    ----------
    Vaswani et al. (2017), section 3.2.3, arXiv:1706.03762.

    Examples
    --------
    >>> causal_mask(3).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    >>> causal_mask(1, n_past=2)
    array([[ True,  True,  True]])
    """
    n = _check.integer("n", n, minimum=0)
    n_past = _check.integer("n_past", n_past, minimum=0)
    _check.room("n", n, n * n)
    _check.room("n_past", n_past, n * n_past)
    return np.tri(n, n_past + n, k=n_past, dtype=bool)  # (Tq, Tk)


def padding_mask(lengths: ArrayLike, n: Integer) -> BoolArray:
    """Hide the filler that makes sequences of a batch equally long.

    Parameters
    ----------
    lengths : int array, (...)
        Number of real tokens of each sequence; padding follows them.
    n : int
        Length to which all were filled up.

    Returns
    -------
    mask : bool array, (..., 1, 1, n)
        True = this key is a real token, which every query may look at.  The two axes of
        size 1 stand for heads and queries, so that the mask broadcasts to (..., H, Tq, Tk).

    Raises
    ------
    ValueError
        A length is outside 0 to ``n``.

    Examples
    --------
    >>> padding_mask([2, 3], n=3).shape
    (2, 1, 1, 3)
    >>> padding_mask([2, 3], n=3)[:, 0, 0].astype(int)
    array([[1, 1, 0],
           [1, 1, 1]])
    """
    n = _check.integer("n", n, minimum=0)
    lengths = _check.integer_array("lengths", lengths, flags="np.sum(lengths, axis=-1)")
    _check.room("n", n, n * max(lengths.size, 1))
    wrong = (lengths < 0) | (lengths > n)
    if wrong.any():
        raise ValueError(
            f"lengths contains {lengths[wrong].flat[0]}, but must lie between 0 and n={n}: "
            f"correct the length, or make n larger"
        )
    return np.arange(n) < lengths[..., None, None, None]  # (..., 1, 1, Tk)


def combine_masks(*masks: ArrayLike | None) -> BoolArray | None:
    """Allow a pair of query and key only where every mask allows it.

    Parameters
    ----------
    *masks : bool arrays that broadcast together, as to (..., Tq, Tk), or None
        True = this query may look at this key.  None allows all pairs.

    Returns
    -------
    mask : bool array or None
        The masks joined by "and", in their broadcast shape.  None when all were None.

    Examples
    --------
    >>> combine_masks(causal_mask(3), padding_mask(2, n=3)[0]).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 0]])
    """
    named = {
        f"masks[{i}]": _check.boolean_mask(f"masks[{i}]", mask)
        for i, mask in enumerate(masks)
        if mask is not None
    }
    if not named:
        return None
    shape = _check.leading_shape(named, n_trailing=0)
    allowed = np.ones(shape, dtype=bool)
    for mask in named.values():
        allowed &= mask
    return allowed
