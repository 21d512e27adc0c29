"""The softmax: scores of any size become weights that sum to 1."""

import numpy as np

from mha_lib import _check


def softmax(z, axis=-1):
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
        weight equally.  A NaN makes NaN of its own row alone.

    Raises
    ------
    TypeError
        ``z`` is not real, or ``axis`` is not an integer.
    ValueError
        ``z`` has no such axis.

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
    z = _check.real_array("z", z, axes=("T",))
    axis = _check.integer("axis", axis, minimum=-z.ndim)
    if axis >= z.ndim:
        raise ValueError(f"axis={axis}, but z has {z.ndim} axes: use axis <= {z.ndim - 1}")

    with np.errstate(all="ignore"):  # inf - inf and underflow are dealt with below
        largest = z.max(axis=axis, keepdims=True, initial=-np.inf)
        e = np.exp(z - largest)
        if np.isinf(largest).any():
            # +inf scores tie with each other and beat all others; a row of -inf stays 0.
            e = np.where(np.isinf(largest), (z == largest) & (largest > 0), e)
        total = e.sum(axis=axis, keepdims=True)
        return np.divide(e, total, out=np.zeros_like(e), where=total != 0)
