"""Rotary positions: queries and keys are turned by an angle that grows with their place.

The score of a query and a key then depends on how far apart they are, and no parameter is needed.
"""

import numpy as np
from numpy.typing import ArrayLike

from mha_lib import _check
from mha_lib._types import FloatArray, Integer

BASE = 10_000.0  # 2 pi times this many tokens is what the slowest pair's turn nears in wide heads


def rotary_angles(n: Integer, d_k: Integer) -> FloatArray:
    """Return by how much each pair of coordinates is turned at each place.

    Parameters
    ----------
    n : int
        Number of tokens.
    d_k : int
        Width of a head's queries and keys; even, since coordinates are turned in pairs.

    Returns
    -------
    angles : float64 array, (n, d_k // 2)
        In radians.  Row i is i times the frequencies 10000 ** (-2 j / d_k), j = 0, 1, ...
        The first pair turns once in 2 pi = 6.3 tokens, the last in 2 pi 10000 ** (1 - 2 / d_k):
        6,283 tokens for d_k = 8, and for wider heads more, up to 62,832.

    Raises
    ------
    ValueError
        ``d_k`` is odd.

    References
    ----------
    Su et al. (2021), "RoFormer", arXiv:2104.09864.

    Examples
    --------
    >>> rotary_angles(3, 2)
    array([[0.],
           [1.],
           [2.]])
    """
    n = _check.integer("n", n, minimum=0)
    d_k = _check.integer("d_k", d_k, minimum=2)
    _even("d_k", d_k)
    _check.room("n", n, n * d_k)
    frequencies = BASE ** (-np.arange(0, d_k, 2) / d_k)  # (d_k // 2,)
    return np.arange(n)[:, None] * frequencies  # (n, d_k // 2)


def rotate(x: ArrayLike, angles: ArrayLike) -> FloatArray:
    """Turn the coordinate pairs of each row by that row's angles.

    Coordinate j is paired with coordinate j + d_k / 2.

    Parameters
    ----------
    x : float array, (..., n, d_k)
        Queries or keys, one per row.
    angles : float array, (n, d_k // 2)
        From `rotary_angles`.

    Returns
    -------
    turned : float array, shape of ``x``
        In the dtype of ``x``.  Lengths of rows do not change.

    Notes
    -----
    A turn is undone by the opposite turn, so the backward pass is
    ``rotate(d_turned, -angles)``.

    Examples
    --------
    >>> rotate([[1.0, 0.0], [1.0, 0.0]], np.array([[0.0], [np.pi / 2]])).round(3)
    array([[1., 0.],
           [0., 1.]])
    """
    x = _check.real_array("x", x, axes=("n", "d_k"))
    angles = _check.matrix("angles", angles, axes=("n", "d_k // 2"))
    _check.finite("x", x)
    _check.finite("angles", angles)
    n, d_k = x.shape[-2:]
    _even("x axis d_k", d_k)
    if angles.shape != (n, d_k // 2):
        raise ValueError(
            f"angles has shape {angles.shape}, but x has shape {x.shape}: "
            f"make them with rotary_angles(n={n}, d_k={d_k})"
        )
    half = d_k // 2
    # A pair read as one complex number is turned by multiplying it with exp(i angle).
    pairs = x[..., :half] + 1j * x[..., half:]  # (..., n, d_k // 2)
    pairs *= np.exp(1j * angles).astype(pairs.dtype)
    return np.concatenate([pairs.real, pairs.imag], axis=-1)


def _even(name, d_k):
    """Raise unless a head's width is even."""
    if d_k % 2:
        raise ValueError(
            f"{name}={d_k} is odd, but coordinates are turned in pairs: "
            f"use {d_k - 1} or {d_k + 1}, that is another d or n_heads"
        )
