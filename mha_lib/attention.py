"""Scaled dot-product attention, for one head or many side by side, and its backward."""

import math

import numpy as np
from numpy.typing import ArrayLike

from mha_lib import _check
from mha_lib._types import FloatArray, Shape
from mha_lib.activations import _softmax, _softmax_with_inf, softmax_backward


def scaled_dot_product_attention(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, mask: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray]:
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
        Rows sum to 1, or are all 0 where the mask allows no key or every score is -inf
        (``out`` is then 0, never NaN).

    Notes
    -----
    2 * Tq * Tk * (Dk + Dv) FLOPs per leading index (a multiply-add is 2).

    What a query may not look at has no influence on its row, not even through inf or NaN.  Of what
    it may look at, and of the query itself,

    - NaN in the query or in a key makes NaN of the whole row, of ``weights`` and of ``out``;
    - inf there makes scores of +inf, which share the weight among them, of -inf, which get none (a
      row of nothing else is all 0), or of NaN, where NumPy's arithmetic says so;
    - inf or NaN in ``v`` reaches its own column, in the rows whose weight for it is not 0.

    Dot products that overflow count as inf of their sign.  None of this warns.

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
    q, k, v, leading = _checked(q, k, v)
    if mask is not None:
        mask = _check.boolean_mask("mask", mask, (*leading, q.shape[-2], k.shape[-2]))

    with np.errstate(all="ignore"):  # inf and NaN in the input stay in their rows, silently
        out, weights = _attend(q, k, v, mask)
    return out, _lead(weights, leading)


def _attend(q, k, v, mask=None):
    """Return output and weights of checked arrays: the one attention of the whole library."""
    scores = _scores(q, k)  # (..., Tq, Tk)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)  # (..., Tq, Tk)
    weights = _softmax(scores, out=scores)  # (..., Tq, Tk)
    out = weights @ v  # (..., Tq, Dv)
    # A row that may look nowhere, inf and NaN all leave a NaN in the output, if it has any columns,
    # and so in its square.  A square that overflows costs time, no more.
    if out.shape[-1] and math.isfinite(np.vdot(out, out)):
        return out, weights
    scores = _scores_without_loss(q, k)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = _softmax_with_inf(scores)
    return _blend(weights, v), weights


def _scores(q, k):
    scores = q @ k.swapaxes(-1, -2)  # (..., Tq, Tk)
    scores /= math.sqrt(q.shape[-1])
    return scores


def scaled_dot_product_attention_backward(
    d_out: ArrayLike, q: ArrayLike, k: ArrayLike, v: ArrayLike, weights: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Turn the gradient of the output into the gradients of queries, keys and values.

    With :math:`A` the weights and :math:`S` the scaled scores:

    .. math:: \mathrm dV &= A^\top \mathrm dO \\
              \mathrm dA &= \mathrm dO\, V^\top \\
              \mathrm dQ &= \frac{\mathrm dS\, K}{\sqrt{d_k}} \\
              \mathrm dK &= \frac{\mathrm dS^\top Q}{\sqrt{d_k}}

    and `mha_lib.activations.softmax_backward` leads from :math:`\mathrm dA` to :math:`\mathrm dS`.

    Parameters
    ----------
    d_out : float array, (..., Tq, Dv)
        Gradient of a number L with respect to the output.
    q : float array, (..., Tq, Dk)
        The queries of the forward pass.
    k : float array, (..., Tk, Dk)
        Its keys.
    v : float array, (..., Tk, Dv)
        Its values.
    weights : float array, (..., Tq, Tk)
        The attention weights that it returned.  They hold all that a mask did.

    Returns
    -------
    d_q, d_k, d_v : float arrays, shapes of ``q``, ``k`` and ``v``
        Gradients of L.  Where the forward pass broadcast an array over leading axes, its
        gradient is summed over them.  A row that may look nowhere has gradients 0.

    Raises
    ------
    ValueError
        An array holds inf or NaN, or a gradient leaves the range of floats.

    See Also
    --------
    mha_lib.scaled_dot_product_attention : the forward pass.

    Examples
    --------
    With one key there is nothing to choose, so only its value gets a gradient:

    >>> q, k, v = np.ones((1, 3)), np.ones((1, 3)), np.ones((1, 2))
    >>> out, weights = scaled_dot_product_attention(q, k, v)
    >>> d_q, d_k, d_v = scaled_dot_product_attention_backward(np.ones((1, 2)), q, k, v, weights)
    >>> d_q, d_v
    (array([[0., 0., 0.]]), array([[1., 1.]]))
    """
    q, k, v, leading = _checked(q, k, v)
    d_out = _check.real_array("d_out", d_out, axes=("Tq", "Dv"))
    weights = _check.real_array("weights", weights, axes=("Tq", "Tk"))
    for name, array, shape in (
        ("d_out", d_out, (*leading, q.shape[-2], v.shape[-1])),
        ("weights", weights, (*leading, q.shape[-2], k.shape[-2])),
    ):
        if array.shape != shape:
            raise ValueError(
                f"{name} has shape {array.shape}, but q, k and v make it {shape}: "
                f"pass what belongs to their forward pass"
            )
    for name, array in (("d_out", d_out), ("q", q), ("k", k), ("v", v), ("weights", weights)):
        _check.finite(name, array)

    with np.errstate(all="ignore"):  # what overflows is refused below
        d_v = weights.swapaxes(-1, -2) @ d_out  # (..., Tk, Dv)
        d_weights = d_out @ v.swapaxes(-1, -2)  # (..., Tq, Tk)
        d_scores = softmax_backward(d_weights, weights)  # (..., Tq, Tk)
        d_scores /= math.sqrt(q.shape[-1])
        d_q = d_scores @ k  # (..., Tq, Dk)
        d_k = d_scores.swapaxes(-1, -2) @ q  # (..., Tk, Dk)
        d_q, d_k, d_v = (
            _summed_to(array.shape, d_array) for array, d_array in ((q, d_q), (k, d_k), (v, d_v))
        )
    _check.no_overflow("the gradient", (d_q, d_k, d_v), {"d_out": d_out, "q": q, "k": k, "v": v})
    return d_q, d_k, d_v


def _checked(
    q: ArrayLike, k: ArrayLike, v: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray, Shape]:
    """Return q, k and v as arrays that fit together, and their common leading axes."""
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
    _check.not_empty("q and k", "Dk", d_k, "a query needs at least one number to compare")
    leading = _check.leading_shape({"q": q, "k": k, "v": v}, n_trailing=2)
    return q, k, v, leading


def _summed_to(shape, gradient):
    """Sum a gradient over the axes along which its array was broadcast to many copies."""
    if gradient.shape == shape:
        return gradient
    extra = gradient.ndim - len(shape)
    gradient = gradient.sum(axis=tuple(range(extra)))
    repeated = tuple(i for i, size in enumerate(shape) if size == 1 != gradient.shape[i])
    return gradient.sum(axis=repeated, keepdims=True)


def _scores_without_loss(q, k):
    """Return the scores; what overflows on the way, and not in the end, is right too."""
    scores = _scores(q, k)  # (..., Tq, Tk)
    lost = ~np.isfinite(scores)
    if not lost.any():
        return scores
    # Products that overflow with both signs add up to NaN: again, with rows of moderate size.
    q_size, k_size = _row_sizes(q), _row_sizes(k)  # (..., Tq, 1), (..., Tk, 1)
    moderate = _scores(q / q_size, k / k_size)  # (..., Tq, Tk)
    return np.where(lost, moderate * q_size * k_size.swapaxes(-1, -2), scores)


def _row_sizes(rows):
    """Return the largest size of a number in each row, 1 for rows of 0 and for inf and NaN."""
    size = np.abs(rows).max(axis=-1, keepdims=True)  # (..., T, 1)
    # As divisors: a row that holds inf or NaN stays what it is.
    return np.where(np.isfinite(size) & (size > 0), size, 1)


def _blend(weights, v):
    """Return ``weights @ v``, where an inf or NaN in ``v`` reaches only rows that weight it."""
    finite = np.isfinite(v)  # (..., Tk, Dv)
    if finite.all():
        return weights @ v
    # 0 * inf is NaN, so a plain product would leak a hidden value into every row.
    out = weights @ np.where(finite, v, 0)  # (..., Tq, Dv)
    seen = (weights != 0).astype(v.dtype)  # (..., Tq, Tk)
    plus, minus, nan = (seen @ kind > 0 for kind in (v == np.inf, v == -np.inf, np.isnan(v)))
    nan |= (plus & minus) | np.isnan(out)  # a row whose weights are NaN stays NaN
    out = np.where(plus, np.inf, np.where(minus, -np.inf, out))
    return np.where(nan, np.nan, out)


def _lead(array, leading):
    """Give ``array`` the leading axes that only ``v`` may have brought in."""
    shape = (*leading, *array.shape[-2:])
    return array if array.shape == shape else np.broadcast_to(array, shape).copy()
