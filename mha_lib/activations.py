"""The softmax, which turns scores of any size into weights that sum to 1, and its backward."""

import numpy as np
from numpy.typing import ArrayLike

from mha_lib import _check
from mha_lib._types import FloatArray, Integer


def softmax(z: ArrayLike, axis: Integer = -1) -> FloatArray:
    r"""Turn scores into weights: positive, summing to 1, larger where the score is larger.

    .. math:: \operatorname{softmax}(z)_j = \frac{e^{z_j}}{\sum_k e^{z_k}}

    Parameters
    ----------
    z : float array, (..., T)
        Scores of any finite size.  ``-inf`` marks an entry that must get no weight.
        Integers are computed in float64.
    axis : int, default -1
        The axis along which the weights sum to 1.

    Returns
    -------
    weights : float array, shape of ``z``
        In the dtype of ``z``.  Entries along ``axis`` sum to 1, or are all 0 where every
        score is ``-inf`` (there is nothing to choose from).  Scores of ``+inf`` share the
        weight equally.  A NaN spoils only its own row.

    Notes
    -----
    Adding one number to all scores of a row changes no weight.  We use this to subtract the
    largest score first, so that ``exp`` sees nothing above 0 and cannot overflow.

    References
    ----------
    Bridle (1990), "Probabilistic interpretation of feedforward classification network
    outputs, with relationships to statistical pattern recognition".

    Examples
    --------
    >>> softmax([0.0, 0.0])
    array([0.5, 0.5])
    >>> softmax([10_000.0, 0.0])
    array([1., 0.])
    """
    z = _check.real_array("z", z, axes=("T",), gap="-np.inf")
    axis = _check.axis(axis, "z", z)

    with np.errstate(all="ignore"):  # what is not finite is computed again below
        weights = _softmax(z, axis)
        return weights if np.isfinite(weights).all() else _softmax_with_inf(z, axis)


def _softmax(z, axis=-1, out=None):
    """Return the weights of finite scores; ``out`` may be ``z`` itself."""
    e = np.subtract(z, z.max(axis=axis, keepdims=True, initial=-np.inf), out=out)  # (..., T)
    np.exp(e, out=e)
    e /= e.sum(axis=axis, keepdims=True)
    return e


def _softmax_with_inf(z, axis=-1):
    """Return the weights of scores that may be inf or NaN."""
    largest = z.max(axis=axis, keepdims=True, initial=-np.inf)
    # +inf scores tie with each other and beat all others; a row of -inf stays 0.
    e = np.where(np.isinf(largest), z == np.inf, np.exp(z - largest))  # (..., T)
    total = e.sum(axis=axis, keepdims=True)
    return np.divide(e, total, out=e, where=total != 0)


def softmax_backward(d_weights: ArrayLike, weights: ArrayLike, axis: Integer = -1) -> FloatArray:
    r"""Turn the gradient of the weights into the gradient of the scores.

    .. math:: \frac{\partial L}{\partial z_j}
              = a_j \Bigl(\frac{\partial L}{\partial a_j}
              - \sum_k a_k \frac{\partial L}{\partial a_k}\Bigr)

    Parameters
    ----------
    d_weights : float array, (..., T)
        Gradient of a number L with respect to ``softmax(z)``.
    weights : float array, (..., T)
        What ``softmax(z)`` returned; the scores themselves are not needed.
    axis : int, default -1
        The axis along which the weights sum to 1.

    Returns
    -------
    d_z : float array, (..., T)
        Gradient of L with respect to the scores.  It sums to 0 along ``axis``, since adding one
        number to all scores changes no weight.  Where a weight is 0, so is the gradient.

    See Also
    --------
    mha_lib.softmax : the forward pass.

    Examples
    --------
    >>> weights = softmax([0.0, 0.0])
    >>> softmax_backward([1.0, 0.0], weights)
    array([ 0.25, -0.25])
    """
    d_weights = _check.real_array("d_weights", d_weights, axes=("T",))
    weights = _check.real_array("weights", weights, axes=("T",))
    _check.same_shape("d_weights", d_weights, "weights", weights, "pass the gradient of weights")
    axis = _check.axis(axis, "weights", weights)
    d_z = _weighted_deviations(d_weights, weights, axis)
    if np.isfinite(d_z).all():
        return d_z
    # 0 times inf is NaN, so the gradient of a weight of 0 would spoil its row.
    seen = weights != 0
    return np.where(seen, _weighted_deviations(np.where(seen, d_weights, 0), weights, axis), 0)


def _weighted_deviations(values, weights, axis):
    """Return the weighted differences of values from their weighted mean along an axis."""
    with np.errstate(all="ignore"):  # inf and NaN in the input stay in their rows
        deviations = values - _summed_products(weights, values, axis)
        deviations *= weights
    return deviations


def _summed_products(a, b, axis):
    """Return the sum of a * b along an axis, which stays with size 1, without the products."""
    a, b = np.moveaxis(a, axis, -1), np.moveaxis(b, axis, -1)
    return np.expand_dims(np.einsum("...j,...j->...", a, b), axis)
