"""Multi-head attention: split, attend, concatenate, project."""

import math
from typing import Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from mha_lib import _check
from mha_lib._blocked import attend_in_blocks
from mha_lib._types import FloatArray, Integer
from mha_lib.attention import _attend

MANY_SCORES = 256 * 256  # from so many on in a head, blocks take no longer than all at once


def split_heads(x: ArrayLike, n_heads: Integer) -> FloatArray:
    """Cut the model width into heads and bring the head axis in front of the tokens.

    Head i gets the columns ``i * d_k`` to ``(i + 1) * d_k - 1``, with ``d_k = d / n_heads``.

    Parameters
    ----------
    x : float array, (..., n, d)
        One token per row.
    n_heads : int
        Number of heads; it must divide d.

    Returns
    -------
    heads : float array, (..., h, n, d_k)
        A view of ``x`` where NumPy can make one.

    Raises
    ------
    ValueError
        ``n_heads`` does not divide d; the message gives the nearest values that do.

    See Also
    --------
    merge_heads : the exact inverse.

    Notes
    -----
    A bare ``x.reshape(h, n, d_k)`` has the same shape and is wrong for h > 1: it deals out
    consecutive numbers of the flattened array, so one head mixes several tokens.

    Examples
    --------
    >>> x = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    >>> split_heads(x, n_heads=2)
    array([[[1., 2.],
            [5., 6.]],
    <BLANKLINE>
           [[3., 4.],
            [7., 8.]]])
    """
    x = _check.real_array("x", x, axes=("n", "d"))
    n_heads = _check.integer("n_heads", n_heads, minimum=1)
    _check.divides("n_heads", n_heads, "d", x.shape[-1])
    return _split(x, n_heads)


def _split(x, n_heads):
    *leading, n, d = x.shape
    return x.reshape(*leading, n, n_heads, d // n_heads).swapaxes(-3, -2)  # (..., h, n, d_k)


def merge_heads(x: ArrayLike) -> FloatArray:
    """Lay the heads side by side again, head 0 leftmost.

    Parameters
    ----------
    x : float array, (..., h, n, d_k)
        One slice of the width per head.

    Returns
    -------
    merged : float array, (..., n, d)
        With d = h * d_k.

    See Also
    --------
    split_heads : the exact inverse.

    Examples
    --------
    >>> merge_heads([[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]])
    array([[1., 2., 3., 4.],
           [5., 6., 7., 8.]])
    """
    return _merge(_check.real_array("x", x, axes=("h", "n", "d_k")))


def _merge(x):
    *leading, n_heads, n, d_k = x.shape
    return x.swapaxes(-3, -2).reshape(*leading, n, n_heads * d_k)  # (..., n, d)


# fmt: off
@overload
def multi_head_attention(
    x: ArrayLike, w_q: ArrayLike, w_k: ArrayLike, w_v: ArrayLike, w_o: ArrayLike,
    n_heads: Integer, *, context: ArrayLike | None = ..., mask: ArrayLike | None = ...,
    n_kv_heads: Integer | None = ..., return_weights: Literal[False] = ...,
) -> FloatArray: ...
@overload
def multi_head_attention(
    x: ArrayLike, w_q: ArrayLike, w_k: ArrayLike, w_v: ArrayLike, w_o: ArrayLike,
    n_heads: Integer, *, context: ArrayLike | None = ..., mask: ArrayLike | None = ...,
    n_kv_heads: Integer | None = ..., return_weights: Literal[True],
) -> tuple[FloatArray, FloatArray]: ...
def multi_head_attention(
    x: ArrayLike, w_q: ArrayLike, w_k: ArrayLike, w_v: ArrayLike, w_o: ArrayLike,
    n_heads: Integer, *, context: ArrayLike | None = None, mask: ArrayLike | None = None,
    n_kv_heads: Integer | None = None, return_weights: bool = False,
) -> FloatArray | tuple[FloatArray, FloatArray]:
    # fmt: on
    """Run ``n_heads`` attention computations side by side and mix their outputs.

    Project ``x`` to queries, keys and values, split their columns into heads, let each head
    attend on its own, concatenate the outputs and mix them with ``w_o``.

    Parameters
    ----------
    x : float array, (..., n, d)
        One token per row.
    w_q : float array, (d, h * d_k)
        Query projections of all heads, side by side.  Usually (d, d).
    w_k : float array, (d_c, h_kv * d_k)
        Key projections.  d_c is the width of ``context``, or d without one; h_kv is
        ``n_kv_heads``, or h without it.
    w_v : float array, (d_c, h_kv * d_v)
        Value projections.  d_v may differ from d_k.
    w_o : float array, (h * d_v, d_out)
        The output projection.
    n_heads : int
        Number of heads h; any integer type.
    context : float array, (..., m, d_c), optional
        What keys and values are made from: cross-attention.  None = from ``x`` itself.
    mask : bool array broadcastable to (..., h, Tq, Tk), optional
        True = this query may look at this key.  Tq = n, and Tk = m, or n without a context.
        A mask per sequence of a batch needs a head axis: ``mask[:, None]``.  Without it,
        (B, Tq, Tk) is read as one mask per head, and nothing fails where B = h.
    n_kv_heads : int, optional
        Number of heads that have keys and values of their own; it must divide ``n_heads``.
        Head i reads those of number ``i // (n_heads // n_kv_heads)``, so neighbours share.
        None = ``n_heads``.  1 is multi-query attention, values between are grouped-query.
    return_weights : bool, default False
        Also return the attention weights.

    Returns
    -------
    out : float array, (..., n, d_out)
        One row per token of ``x``.
    weights : float array, (..., h, Tq, Tk)
        Only with ``return_weights``.  Row i of head j says how much token i takes from each
        token.  Rows sum to 1, or are all 0 where the mask allows no key.

    Raises
    ------
    ValueError
        ``n_heads`` does not divide a width, ``n_kv_heads`` does not divide ``n_heads``, or finite
        numbers are so large that their products leave the range of floats.

    See Also
    --------
    attention_cost : what a call costs.

    Notes
    -----
    The heads share no arithmetic before ``w_o``: changing the projections of one head changes
    no other head's output.  Heads that share keys and values share their projections too.

    An inf or NaN in a token stays in the row of that token and in the rows that may look at it,
    as in `scaled_dot_product_attention`; there is no warning.  In a weight matrix it may reach all.

    References
    ----------
    Vaswani et al. (2017), section 3.2.2, arXiv:1706.03762.
    Shazeer (2019), arXiv:1911.02150 (multi-query attention).
    Ainslie et al. (2023), arXiv:2305.13245 (grouped-query attention).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(4, 8))
    >>> w_q, w_k, w_v, w_o = (rng.normal(scale=0.3, size=(8, 8)) for _ in range(4))
    >>> multi_head_attention(x, w_q, w_k, w_v, w_o, n_heads=2).shape
    (4, 8)

    Both heads read one head of keys and values, d_k = 4 wide:

    >>> multi_head_attention(x, w_q, w_k[:, :4], w_v[:, :4], w_o, n_heads=2, n_kv_heads=1).shape
    (4, 8)
    """
    return_weights = _check.flag("return_weights", return_weights)
    checked = _checked(x, w_q, w_k, w_v, w_o, n_heads, context, mask, n_kv_heads)
    steps = _steps(return_weights, *checked)
    return (steps.out, steps.weights) if return_weights else steps.out


class AttentionSteps(NamedTuple):
    """All that multi-head attention computes on its way, as `attention_steps` returns it.

    Attributes
    ----------
    q : float array, (..., h, Tq, d_k)
        Queries, split into heads.
    k : float array, (..., h, Tk, d_k)
        Keys.
    v : float array, (..., h, Tk, d_v)
        Values.
    weights : float array, (..., h, Tq, Tk)
        Attention weights: rows sum to 1, or are all 0 where the mask allows no key.
    heads : float array, (..., h, Tq, d_v)
        What each head puts out.
    merged : float array, (..., Tq, h * d_v)
        The same, side by side.
    out : float array, (..., Tq, d_out)
        After the output projection.

    Examples
    --------
    >>> AttentionSteps._fields
    ('q', 'k', 'v', 'weights', 'heads', 'merged', 'out')
    """

    q: FloatArray
    k: FloatArray
    v: FloatArray
    weights: FloatArray
    heads: FloatArray
    merged: FloatArray
    out: FloatArray


def attention_steps(
    x: ArrayLike, w_q: ArrayLike, w_k: ArrayLike, w_v: ArrayLike, w_o: ArrayLike,
    n_heads: Integer, *, context: ArrayLike | None = None, mask: ArrayLike | None = None,
    n_kv_heads: Integer | None = None,
) -> AttentionSteps:  # fmt: skip
    """Run `mha_lib.multi_head_attention` and return every step, for pictures and explanations.

    Parameters
    ----------
    x : float array, (..., n, d)
        Tokens, as for `mha_lib.multi_head_attention`; so are all other arguments.
    w_q : float array, (d, h * d_k)
        Projection to queries.
    w_k : float array, (d_c, h_kv * d_k)
        Projection to keys.
    w_v : float array, (d_c, h_kv * d_v)
        Projection to values.
    w_o : float array, (h * d_v, d_out)
        Output projection.
    n_heads : int
        Number of heads h.
    context : float array, (..., m, d_c), optional
        Tokens that answer.
    mask : bool array broadcastable to (..., h, Tq, Tk), optional
        True = this query may look at this key.
    n_kv_heads : int, optional
        Number of heads with keys and values of their own, h_kv.

    Returns
    -------
    steps : AttentionSteps
        Queries, keys, values, weights, heads, merged heads and output.  Keys and values that
        several heads share are there once for each of these heads.

    Examples
    --------
    >>> x, w = np.eye(4), np.eye(4)
    >>> steps = attention_steps(x, w, w, w, w, n_heads=2)
    >>> steps.q.shape, steps.merged.shape
    ((2, 4, 2), (4, 4))
    """
    checked = _checked(x, w_q, w_k, w_v, w_o, n_heads, context, mask, n_kv_heads)
    return _steps(True, *checked)


def _steps(keep_weights, x, source, w_q, w_k, w_v, w_o, n_heads, n_kv_heads, mask):
    """Return all steps; ``weights`` is None where they need not be kept and are many."""
    with np.errstate(all="ignore"):  # inf and NaN in the input stay in their rows, silently
        q = _split(x @ w_q, n_heads)  # (..., h, Tq, d_k)
        k = _split(source @ w_k, n_kv_heads)  # (..., h_kv, Tk, d_k)
        v = _split(source @ w_v, n_kv_heads)  # (..., h_kv, Tk, d_v)
        if keep_weights or x.shape[-2] * source.shape[-2] < MANY_SCORES:
            if n_kv_heads < n_heads:
                # No larger than keys and values of h heads; the mask and all else stay as they are.
                k, v = (np.repeat(a, n_heads // n_kv_heads, axis=-3) for a in (k, v))
            heads, weights = _attend(q, k, v, mask)  # (..., h, Tq, d_v), (..., h, Tq, Tk)
        else:
            heads, weights = attend_in_blocks(q, k, v, mask), None  # (..., h, Tq, d_v)
        merged = _merge(heads)  # (..., Tq, h * d_v)
        out = merged @ w_o  # (..., Tq, d_out)
        _refuse_overflow(out, x, source, w_q, w_k, w_v, w_o)
    return AttentionSteps(q, k, v, weights, heads, merged, out)


def _checked(x, w_q, w_k, w_v, w_o, n_heads, context, mask, n_kv_heads):
    """Return what multi-head attention works with: arrays that fit, and integers that divide."""
    x = _check.real_array("x", x, axes=("n", "d"))
    source_name = "x" if context is None else "context"
    source = x if context is None else _check.real_array("context", context, axes=("m", "d_c"))
    w_q = _check.matrix("w_q", w_q, axes=("d", "h * d_k"))
    w_k = _check.matrix("w_k", w_k, axes=("d_c", "h_kv * d_k"))
    w_v = _check.matrix("w_v", w_v, axes=("d_c", "h_kv * d_v"))
    w_o = _check.matrix("w_o", w_o, axes=("h * d_v", "d_out"))
    n_heads = _check.integer("n_heads", n_heads, minimum=1)
    if n_kv_heads is None:
        n_kv_heads = n_heads
    else:
        n_kv_heads = _check.integer("n_kv_heads", n_kv_heads, minimum=1)
        _check.divides("n_kv_heads", n_kv_heads, "n_heads", n_heads)
    _check_rows("w_q", w_q, "x", x)
    _check_rows("w_k", w_k, source_name, source)
    _check_rows("w_v", w_v, source_name, source)
    _check_head_widths(w_q, w_k, w_v, w_o, n_heads, n_kv_heads)
    leading = x.shape[:-2]
    if source is not x:
        leading = _check.leading_shape({"x": x, source_name: source}, n_trailing=2)
    if mask is not None:
        shape = (*leading, n_heads, x.shape[-2], source.shape[-2])
        mask = _check.boolean_mask("mask", mask, shape)
    return x, source, w_q, w_k, w_v, w_o, n_heads, n_kv_heads, mask


def _check_rows(name, w, tokens_name, tokens):
    """Raise unless a projection has one row for each column of its tokens."""
    if w.shape[0] != tokens.shape[-1]:
        _check.same_size(
            f"{tokens_name} (its last axis)", tokens.shape[-1], f"{name} (its rows)", w.shape[0],
            f"give {name} one row for each column of {tokens_name}",
        )  # fmt: skip


def _refuse_overflow(out, *arrays):
    """Raise if finite arrays made NaN, by products that overflow with both signs."""
    if math.isfinite(np.vdot(out, out)) or not np.isnan(out).any():
        return
    named = dict(zip(("x", "context", "w_q", "w_k", "w_v", "w_o"), arrays, strict=True))
    if named["context"] is named["x"]:
        del named["context"]
    if all(np.isfinite(array).all() for array in arrays):
        _check.no_overflow("a projection", (out,), named)


def _check_head_widths(w_q, w_k, w_v, w_o, n_heads, n_kv_heads):
    """Raise unless the widths of all projections fit the two numbers of heads."""
    if n_kv_heads == n_heads:
        _check.same_size(
            "w_q (its columns)", w_q.shape[1], "w_k (its columns)", w_k.shape[1],
            "queries and keys are compared, so give both the same number of columns",
        )  # fmt: skip
        _check.same_size(
            "w_v (its columns)", w_v.shape[1], "w_o (its rows)", w_o.shape[0],
            "give w_o one row for each column of the concatenated heads",
        )  # fmt: skip
        _check.divides("n_heads", n_heads, "w_q.shape[1]", w_q.shape[1])
        _check.divides("n_heads", n_heads, "w_v.shape[1]", w_v.shape[1])
        return
    _check.divides("n_heads", n_heads, "w_q.shape[1]", w_q.shape[1])
    _check.divides("n_kv_heads", n_kv_heads, "w_v.shape[1]", w_v.shape[1])
    d_k, d_v = w_q.shape[1] // n_heads, w_v.shape[1] // n_kv_heads
    _check.same_size(
        "w_k (its columns)", w_k.shape[1], "n_kv_heads * d_k", n_kv_heads * d_k,
        f"give w_k d_k={d_k} columns, as many as a query head has, "
        f"for each of n_kv_heads={n_kv_heads}",
    )  # fmt: skip
    _check.same_size(
        "w_o (its rows)", w_o.shape[0], "n_heads * d_v", n_heads * d_v,
        f"give w_o d_v={d_v} rows, as many as a value has, for each of n_heads={n_heads}",
    )  # fmt: skip
