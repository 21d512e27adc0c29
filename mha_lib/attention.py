"""Scaled dot-product attention: one head, or any number of heads side by side."""

import numpy as np

from mha_lib import _check
from mha_lib.activations import softmax


def scaled_dot_product_attention(q, k, v, mask=None):
    r"""Blend the rows of ``v``, weighting each by how well its key fits the query.

    .. math:: \operatorname{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V

    Parameters
    ----------
    q : float array, (..., Tq, Dk)
        One query per row.
    k : float array, (..., Tk, Dk)
        One key per row.
    v : float array, (..., Tk, Dv)
        One value per row, belonging to the key of the same row.
    mask : bool array broadcastable to (..., Tq, Tk), optional
        True = this query may look at this key.  None = all pairs allowed.

    Returns
    -------
    out : float array, (..., Tq, Dv)
        One blend of values per query.  The leading axes are those of ``q``, ``k`` and ``v``
        broadcast together; the dtype is what NumPy makes of theirs.
    weights : float array, (..., Tq, Tk)
        Rows sum to 1, or are all 0 where the mask allows no key
        (``out`` is then 0, never NaN).

    Raises
    ------
    ValueError
        Dk, Tk, the leading axes or the mask shape disagree; the message names the argument
        and both sizes.
    TypeError
        ``mask`` is not boolean, or an array is not real.

    Notes
    -----
    2 * Tq * Tk * (Dk + Dv) FLOPs per leading index (a multiply-add is 2).

    What a query may not look at has no influence on its row, not even through inf or NaN.

    References
    ----------
    Vaswani et al. (2017), eq. 1, arXiv:1706.03762.

    Examples
    --------
    A query between two equal keys takes the mean of their values:

    >>> q, k = np.array([[1.0, 0.0]]), np.array([[2.0, 0.0], [2.0, 5.0]])
    >>> v = np.array([[10.0], [20.0]])
    >>> out, weights = scaled_dot_product_attention(q, k, v)
    >>> weights
    array([[0.5, 0.5]])
    >>> out
    array([[15.]])
    """
    q = _check.real_array("q", q, axes=("Tq", "Dk"))
    k = _check.real_array("k", k, axes=("Tk", "Dk"))
    v = _check.real_array("v", v, axes=("Tk", "Dv"))
    d_k = q.shape[-1]
    _check.same_size(
        "q axis Dk", d_k, "k axis Dk", k.shape[-1], "project queries and keys to one width"
    )
    _check.same_size(
        "k axis Tk", k.shape[-2], "v axis Tk", v.shape[-2], "give every key exactly one value"
    )
    if d_k == 0:
        raise ValueError("q and k have width Dk=0: a query needs at least one number to compare")
    leading = _check.leading_shape({"q": q, "k": k, "v": v}, n_trailing=2)
    if mask is not None:
        mask = _check.boolean_mask("mask", mask, (*leading, q.shape[-2], k.shape[-2]))

    with np.errstate(all="ignore"):  # inf and NaN in the input stay in their rows, silently
        # float(): a float64 scalar would turn float32 scores into float64.
        scores = q @ k.swapaxes(-1, -2) / float(np.sqrt(d_k))  # (..., Tq, Tk)
        if mask is not None:
            scores = np.where(mask, scores, -np.inf)  # (..., Tq, Tk)
        weights = softmax(scores)  # (..., Tq, Tk)
        out = _blend(weights, v)  # (..., Tq, Dv)
    return out, _lead(weights, leading)


def _blend(weights, v):
    """Return ``weights @ v``, where an inf or NaN in ``v`` reaches only rows that weight it."""
    finite = np.isfinite(v)  # (..., Tk, Dv)
    if finite.all():
        return weights @ v
    # 0 * inf is NaN, so that a plain product would leak a hidden value into every row.
    out = weights @ np.where(finite, v, 0)  # (..., Tq, Dv)
    seen = (weights != 0).astype(v.dtype)  # (..., Tq, Tk)
    plus, minus, nan = (seen @ kind > 0 for kind in (v == np.inf, v == -np.inf, np.isnan(v)))
    nan |= (plus & minus) | np.isnan(out)  # a row whose weights are NaN stays NaN
    out = np.where(plus, np.inf, np.where(minus, -np.inf, out))
    return np.where(nan, np.nan, out)


def _lead(array, leading):
    """Give ``array`` the leading axes that ``v`` alone may have brought in."""
    shape = (*leading, *array.shape[-2:])
    return array if array.shape == shape else np.broadcast_to(array, shape).copy()
