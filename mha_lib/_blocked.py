"""Attention without its weights, block by block: the same result, in little memory."""

import math

import numpy as np

from mha_lib.attention import _attend

BLOCK, KEYS = 512, 512  # so many queries meet so many keys at a time


def attend_in_blocks(q, k, v, mask=None):
    r"""Return the output of `mha_lib.scaled_dot_product_attention`, never holding all weights.

    A block of queries meets a block of keys at a time, and only the result is divided by the sum of
    a row, not its weights.  Softmax subtracts the largest score of a row, so that no power can
    overflow.  That takes two more passes over all scores, and mostly for nothing: by the
    Cauchy-Schwarz inequality no score of a head is larger, up to its sign, than

    .. math:: b = \frac{\max_i \lvert q_i\rvert \, \max_j \lvert k_j\rvert}{\sqrt{d_k}}

    As long as neither the sum of Tk powers up to :math:`e^b`, times the largest value of a column
    of ``v``, can overflow, nor the smallest, :math:`e^{-b}` times that value, underflow, nothing is
    subtracted.  Heads that break this, or hold inf or NaN, are computed the plain way, a block of
    queries at a time.

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
        Agrees with the plain computation up to rounding, each column relative to the largest
        value of that column of ``v``.

    Notes
    -----
    Its caller has checked the arguments, and lets NumPy be silent about inf and NaN.  Holds
    ``BLOCK * KEYS`` scores at a time, instead of ``H * Tq * Tk``; heads that are computed the plain
    way hold a few times ``BLOCK * Tk``.
    """
    n_heads, n_queries = q.shape[-3:-1]
    group = n_heads // k.shape[-3]
    sequences = np.broadcast_shapes(q.shape[:-3], k.shape[:-3], v.shape[:-3])
    leading = (*sequences, n_heads)
    q = np.broadcast_to(q, (*leading, *q.shape[-2:]))
    k, v = (np.broadcast_to(a, (*sequences, *a.shape[-3:])) for a in (k, v))
    dtype = np.result_type(q, k, v)
    # Heads side by side in memory, as `merge_heads` wants them: it need not copy then.
    out = np.empty((*sequences, n_queries, n_heads, v.shape[-1]), dtype)
    out = out.swapaxes(-3, -2)  # (..., H, Tq, Dv)
    scores = np.empty((min(BLOCK, n_queries), min(KEYS, k.shape[-2])), dtype)  # used again
    if mask is not None:
        mask = np.broadcast_to(mask, (*leading, n_queries, k.shape[-2]))
    for *sequence, head in np.ndindex(*leading):
        at, shared = (*sequence, head), (*sequence, head // group)
        own_mask = None if mask is None else mask[at]
        _one_head(q[at], k[shared], v[shared], own_mask, out[at], scores)
    return out


def _one_head(q, k, v, mask, out, scores):
    """Write the output of one head into ``out``, (Tq, Dv)."""
    scaled = q / math.sqrt(q.shape[-1])  # (Tq, Dk)
    k, v = np.ascontiguousarray(k), np.ascontiguousarray(v)  # every block reads them
    moderate = _is_moderate(_longest(scaled) * _longest(k), v, out.dtype)
    ones = np.ones(len(k), out.dtype)  # a product with it is the fastest sum
    for start in range(0, len(q), BLOCK):
        rows = slice(start, start + BLOCK)
        allowed = None if mask is None else mask[rows]
        if not moderate:
            out[rows] = _attend(q[rows], k, v, allowed)[0]
            continue
        blend = np.zeros_like(out[rows])  # (block, Dv)
        total = np.zeros(len(blend), out.dtype)  # (block,)
        for first in range(0, len(k), KEYS):
            seen = slice(first, min(first + KEYS, len(k)))
            powers = np.matmul(
                scaled[rows], k[seen].T, out=scores[: len(blend), : seen.stop - first]
            )
            np.exp(powers, out=powers)  # (block, KEYS)
            if allowed is not None:
                powers *= allowed[:, seen]
            blend += powers @ v[seen]
            total += powers @ ones[seen]
        total[total == 0] = 1  # a row that may look nowhere has output 0
        np.divide(blend, total[:, None], out=out[rows])


def _longest(rows):
    """Return the length of the longest row, 0 without rows."""
    return np.sqrt(np.vecdot(rows, rows).max(initial=0))


def _is_moderate(bound, v, dtype):
    """Return whether a sum over ``v`` of powers up to e**bound neither over- nor underflows."""
    sizes = np.abs(v).max(axis=0, initial=0)  # (Dv,), each column on its own
    sizes = sizes[sizes != 0]  # zeros have no digits to lose; NaN stays
    limits = np.finfo(dtype)
    # As logarithms.  False for a NaN.
    needed = bound + np.abs(np.log(sizes)).max(initial=0) + np.log(len(v) / limits.eps)
    return needed < -np.log(limits.tiny)
