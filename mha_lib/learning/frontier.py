"""One row of weights, two jobs: how well can it serve both?

The jobs are to fetch one marked token, and to take the mean of all n tokens, or of a few.  The
tokens are vectors of independent numbers with mean 0 and variance 1, and the weights are chosen
without seeing them.  A row of weights ``a`` hands on one vector, the blend ``sum_j a_j x_j``; each
job may rescale it.  A mean of r tokens is multiplied by sqrt(r), so that both targets have
variance 1 and an error of 1 means "no better than answering 0".
"""

import numpy as np
from numpy.typing import ArrayLike

from mha_lib import _check
from mha_lib._types import FloatArray, Integer


def job_errors(
    weights: ArrayLike, marked: Integer = 0, n_near: Integer = 0
) -> tuple[FloatArray, FloatArray]:
    """Return the two errors that a row of weights cannot avoid.

    Parameters
    ----------
    weights : float array, (..., n)
        Rows of weights, one number per token; any length and sign, but not all 0.
    marked : int, default 0
        Index of the marked token.
    n_near : int, default 0
        The second job is the mean of the last ``n_near`` tokens; 0 = of all n.

    Returns
    -------
    fetch_error : float array, (...)
        Mean squared error per number of the marked token, after the best rescaling.
    mean_error : float array, (...)
        The same for sqrt(r) times the mean of r tokens, with r = ``n_near``, or r = n for 0.

    Raises
    ------
    ValueError
        A row is all 0, or not finite.

    Notes
    -----
    The errors are the squared sines of the angles between ``weights`` and the two unit rows that
    would do one job perfectly: f is 1 at ``marked`` and 0 elsewhere, and g is even over the
    tokens of the mean and 0 elsewhere.  Their sum is at least 1 - fᵀg: 1 - 1 / sqrt(n) for the
    mean of all tokens, and 1 for the mean of others than the marked one.

    Examples
    --------
    >>> [round(float(error), 3) for error in job_errors([1.0, 0.0, 0.0, 0.0])]
    [0.0, 0.75]
    >>> [round(float(error), 3) for error in job_errors([1.0, 0.0, 1.0, 1.0], n_near=2)]
    [0.667, 0.333]
    """
    weights = _check.real_array("weights", weights, axes=("n",))
    n = weights.shape[-1]
    largest = np.abs(weights).max(axis=-1, keepdims=True, initial=0)
    if not np.isfinite(largest).all():
        raise ValueError("weights contains inf or NaN: give every token a finite weight")
    if n == 0:
        raise ValueError(f"weights has shape {weights.shape}, no token at all: use n >= 1")
    if not largest.all():
        raise ValueError("weights has a row that is all 0 and hands on nothing: give it a weight")
    marked = _check.integer("marked", marked, minimum=0)
    if marked >= n:
        raise ValueError(f"marked={marked}, but weights has {n} entries: use marked <= {n - 1}")
    n_near = _check.integer("n_near", n_near, minimum=0)
    if n_near > n:
        raise ValueError(f"n_near={n_near}, but weights has {n} entries: use n_near <= {n}")
    scaled = weights / largest  # changes no angle, and squares cannot overflow now
    length = np.linalg.norm(scaled, axis=-1)
    fetch_cosine = scaled[..., marked] / length
    n_averaged = n_near or n
    # float(): a float64 scalar would turn float32 errors into float64.
    mean_cosine = scaled[..., -n_averaged:].sum(axis=-1) / (length * float(np.sqrt(n_averaged)))
    # Rounding can push a squared cosine above 1, and an error is never negative.
    return np.maximum(1 - fetch_cosine**2, 0), np.maximum(1 - mean_cosine**2, 0)


def best_row(n: Integer, importance: float = 0.5, marked: Integer = 0) -> FloatArray:
    """Return the row of weights with the least weighted sum of the two errors.

    Parameters
    ----------
    n : int
        Number of tokens, at least 2.
    importance : float, default 0.5
        Weight of the fetching error, between 0 and 1; the mean gets the rest.
    marked : int, default 0
        Index of the marked token.

    Returns
    -------
    weights : float64 array, (n,)
        Non-negative, summing to 1: a row that a softmax can make or come close to.

    Notes
    -----
    With f and g the unit rows that do one job perfectly, the weighted sum of errors of a unit
    row a is 1 - aᵀ(importance · ffᵀ + (1 - importance) · ggᵀ)a, so the best row is the
    matrix's eigenvector with the largest eigenvalue.

    Examples
    --------
    >>> best_row(16).round(2)[:3]
    array([0.25, 0.05, 0.05])
    """
    n = _check.integer("n", n, minimum=2)
    marked = _check.integer("marked", marked, minimum=0)
    if marked >= n:
        raise ValueError(f"marked={marked}, but there are n={n} tokens: use marked <= {n - 1}")
    importance = _check.fraction("importance", importance)
    _check.room("n", n, n * n)
    f = np.zeros(n)
    f[marked] = 1.0
    g = np.full(n, 1 / np.sqrt(n))
    _, vectors = np.linalg.eigh(importance * np.outer(f, f) + (1 - importance) * np.outer(g, g))
    best = vectors[:, -1]  # (n,), of either sign
    return best / best.sum()
