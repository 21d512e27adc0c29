"""Attention without its weights, in blocks of queries: the same result, lean and fast."""

import numpy as np
from numpy.typing import ArrayLike

from mha_lib import _check
from mha_lib._types import FloatArray
from mha_lib.attention import scaled_dot_product_attention

BLOCK = 128  # queries; with as many keys as a text has, their scores stay in the cache


def attention_output(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, mask: ArrayLike | None = None
) -> FloatArray:
    r"""Return the output of `scaled_dot_product_attention` without ever holding all weights.

    Each block of queries passes through in turn.  The largest score of a row is not looked for.
    By the Cauchy-Schwarz inequality no score of query i is above
    :math:`b_i = \lvert q_i\rvert \max_j \lvert k_j\rvert / \sqrt{d_k}`, and subtracting
    :math:`b_i` from its scores changes no weight either.  Both that and the sum of each row come
    out of the two matrix products, through one more column on ``q``, ``k`` and ``v``:

    .. math:: e^{[q_i,\, -b_i] \cdot [k_j,\, 1]} = e^{q_i \cdot k_j - b_i}, \qquad
              \sum_j a_{ij} [v_j,\, 1] = \Bigl[\sum_j a_{ij} v_j,\ \sum_j a_{ij}\Bigr]

    Rows in which all these numbers are tiny, since the bound is far above every score, and rows
    that meet inf or NaN are left to `scaled_dot_product_attention`.

    Parameters
    ----------
    q : float array, (..., H, Tq, Dk)
        Queries of all heads.
    k : float array, (..., Hkv, Tk, Dk)
        Keys.  Hkv divides H; neighbouring heads of queries share one head of keys.
    v : float array, (..., Hkv, Tk, Dv)
        Values, one for each key.
    mask : bool array broadcastable to (..., H, Tq, Tk), optional
        True = this query may look at this key.

    Returns
    -------
    out : float array, (..., H, Tq, Dv)
        Agrees with the plain computation up to rounding.

    Raises
    ------
    ValueError
        Sizes disagree, or Hkv does not divide H; the message names the argument and both sizes.
    TypeError
        ``mask`` is not boolean, or an array is not real.

    Notes
    -----
    Holds ``BLOCK * Tk`` scores at a time, for one head, instead of ``H * Tq * Tk``.

    Examples
    --------
    >>> q, k, v = np.ones((1, 1, 2)), np.ones((1, 3, 2)), np.arange(3.0).reshape(1, 3, 1)
    >>> attention_output(q, k, v)
    array([[[1.]]])
    """
    q = _check.real_array("q", q, axes=("H", "Tq", "Dk"))
    k = _check.real_array("k", k, axes=("Hkv", "Tk", "Dk"))
    v = _check.real_array("v", v, axes=("Hkv", "Tk", "Dv"))
    for left, left_size, right, right_size, way_out in (
        ("q axis Dk", q.shape[-1], "k axis Dk", k.shape[-1], "project both to one width"),
        ("k axis Tk", k.shape[-2], "v axis Tk", v.shape[-2], "give every key exactly one value"),
        ("k axis Hkv", k.shape[-3], "v axis Hkv", v.shape[-3], "give each head keys and values"),
    ):
        _check.same_size(left, left_size, right, right_size, way_out)
    _check.not_empty("q and k", "Dk", q.shape[-1], "a query needs at least one number to compare")
    _check.not_empty("k and v", "Hkv", k.shape[-3], "queries need at least one head of keys")
    n_heads, n_queries = q.shape[-3:-1]
    _check.divides("Hkv", k.shape[-3], "H", n_heads)
    group = n_heads // k.shape[-3]
    sequences = _check.leading_shape({"q": q, "k": k, "v": v}, n_trailing=3)
    leading = (*sequences, n_heads)
    q = np.broadcast_to(q, (*leading, *q.shape[-2:]))
    k, v = (np.broadcast_to(a, (*sequences, *a.shape[-3:])) for a in (k, v))
    dtype = np.result_type(q, k, v)
    out = np.empty((*leading, n_queries, v.shape[-1]), dtype)  # (..., H, Tq, Dv)
    scores = np.empty((min(BLOCK, n_queries), k.shape[-2]), dtype)  # (block, Tk), used again
    if mask is not None:
        shape = (*leading, n_queries, k.shape[-2])
        mask = np.broadcast_to(_check.boolean_mask("mask", mask, shape), shape)
    with np.errstate(all="ignore"):  # inf and NaN in the input stay in their rows, silently
        for *sequence, head in np.ndindex(*leading):
            at, shared = (*sequence, head), (*sequence, head // group)
            own_mask = None if mask is None else mask[at]
            _one_head(q[at], k[shared], v[shared], own_mask, out[at], scores)
    return out


def _one_head(q, k, v, mask, out, scores):
    """Write the output of one head into ``out``, (Tq, Dv)."""
    smallest = np.sqrt(np.finfo(out.dtype).tiny)
    scale = 1 / float(np.sqrt(q.shape[-1]))
    longest = np.sqrt(np.einsum("kd,kd->k", k, k).max(initial=0.0))
    bound = np.sqrt(np.einsum("qd,qd->q", q, q)) * longest  # (Tq,)
    queries = np.column_stack([q, -bound]) * scale  # (Tq, Dk + 1)
    keys = np.column_stack([k, np.ones(len(k), k.dtype)])  # (Tk, Dk + 1)
    values = np.column_stack([v, np.ones(len(v), v.dtype)])  # (Tk, Dv + 1)
    usable = np.isfinite(v).all()  # 0 * inf is NaN, so that a hidden value would show
    for start in range(0, len(q), BLOCK):
        rows = slice(start, min(start + BLOCK, len(q)))
        allowed = None if mask is None else mask[rows]
        plain = np.ones(rows.stop - start, dtype=bool)  # rows that need the plain computation
        if usable:
            powers = np.matmul(queries[rows], keys.T, out=scores[: rows.stop - start])
            np.exp(powers, out=powers)  # (block, Tk)
            if allowed is not None:
                powers *= allowed
            blend = powers @ values  # (block, Dv + 1)
            np.divide(blend[:, :-1], blend[:, -1:], out=out[rows])
            plain = ~(blend[:, -1] > smallest)  # NaN too
            usable = plain.mean() < 0.5  # else the bound is of no use for this head
        if plain.any():
            few = None if allowed is None else allowed[plain]
            out[rows][plain] = scaled_dot_product_attention(q[rows][plain], k, v, few)[0]
