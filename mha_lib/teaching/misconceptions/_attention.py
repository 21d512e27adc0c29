"""Wrong versions of ``scaled_dot_product_attention(q, k, v, mask)``.

Each is `attend` with one wrong part: the scores, how a mask hides them, or the softmax.
"""

from functools import partial

import numpy as np

from mha_lib.teaching.misconceptions._entry import (
    ATTEND,
    KEEP_THE_SHAPE,
    MASKS,
    OTHER_USES,
    Misconception,
    call,
    entry,
    numbers,
)

ENTRIES: list[Misconception] = []
_entry = partial(entry, ENTRIES, "scaled_dot_product_attention")
ALL_ALLOWED = np.ones((5, 7), dtype=bool)
NO_ROW_EMPTY = np.tri(5, 7, k=1, dtype=bool)


# --- the right parts, as small as can be ------------------------------------------------------


def softmax(z, axis=-1):
    largest = z.max(axis=axis, keepdims=True)
    e = np.exp(z - np.where(np.isinf(largest), 0, largest).astype(z.dtype))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total).astype(z.dtype)


def score(q, k, scale=None):
    scale = np.sqrt(q.shape[-1]) if scale is None else scale
    return q @ k.swapaxes(-1, -2) / float(scale)


def hide(scores, mask):
    return np.where(mask, scores, -np.inf)


def attend(q, k, v, mask=None, *, score=score, hide=hide, softmax=softmax):
    scores = score(q, k)
    if mask is not None:
        scores = hide(scores, mask)
    weights = softmax(scores)
    return weights @ v, weights


def _qkv(tq=5, tk=7, d_k=3, d_v=2, **kwargs):
    return call(numbers(tq, d_k), numbers(tk, d_k), numbers(tk, d_v), **kwargs)


# --- the entries ------------------------------------------------------------------------------


@_entry(
    "no scale",
    "Your code leaves out the division by the root of d_k: the wider the head is, the sharper the "
    "weights get.",
    read=ATTEND,
    hides="with d_k = 1",
    hiding_input=_qkv(d_k=1),
)
def _no_scale(q, k, v, mask=None):
    return attend(q, k, v, mask, score=lambda q, k: q @ k.swapaxes(-1, -2))


@_entry(
    "scale by d_k without the root",
    "Your code divides by d_k instead of its square root, and all rows come out too even.",
    read=ATTEND,
    hides="with d_k = 1",
    hiding_input=_qkv(d_k=1),
)
def _scale_without_root(q, k, v, mask=None):
    return attend(q, k, v, mask, score=partial(score, scale=q.shape[-1]))


@_entry(
    "scale by the number of keys",
    "Your code divides by the root of the number of keys, but a score is a sum of d_k products, "
    "and so the scale is the root of d_k, the last axis.",
    read=ATTEND,
    hides="with as many keys as d_k",
    hiding_input=_qkv(tk=3, d_k=3),
)
def _scale_by_number_of_keys(q, k, v, mask=None):
    return attend(q, k, v, mask, score=partial(score, scale=np.sqrt(k.shape[-2])))


@_entry(
    "softmax over the queries",
    "Your code lets the weights of each key sum to 1 over the queries, but each query, a row, "
    "shares out a weight of 1 among the keys.",
    read=KEEP_THE_SHAPE,
    hides="where all scores are equal and there are as many queries as keys",
    hiding_input=call(np.zeros((4, 3)), numbers(4, 3), numbers(4, 2)),
)
def _softmax_over_queries(q, k, v, mask=None):
    return attend(q, k, v, mask, softmax=partial(softmax, axis=-2))


@_entry(
    "keys not transposed",
    "Your code multiplies the queries by the keys as they are, and no query meets a key; each "
    "query needs the dot product with each row of k, which is q times k transposed.",
    read=ATTEND,
    hides="where k is square and symmetric; where it is not square, the product fails",
    hiding_input=call(numbers(5, 3), numbers(3, 3) + numbers(3, 3).T, numbers(3, 2)),
)
def _keys_not_transposed(q, k, v, mask=None):
    return attend(q, k, v, mask, score=lambda q, k: q @ k / np.sqrt(q.shape[-1]))


@_entry(
    "keys reshaped instead of transposed",
    "Your code reshapes the keys to the transposed shape, which deals out their numbers in the "
    "old order instead of turning rows into columns.",
    read=ATTEND,
    hides="with d_k = 1, with one key, or where k is square and symmetric",
    hiding_input=call(numbers(5, 3), numbers(3, 3) + numbers(3, 3).T, numbers(3, 2)),
)
def _keys_reshaped(q, k, v, mask=None):
    def reshaped(q, k):
        *leading, n_keys, d_k = k.shape
        return q @ k.reshape(*leading, d_k, n_keys) / np.sqrt(d_k)

    return attend(q, k, v, mask, score=reshaped)


@_entry(
    "all axes transposed",
    "Your code writes k.T, which reverses all axes, heads and batch too; swap only the last two, "
    "with k.swapaxes(-1, -2).",
    read=ATTEND,
    hides="for one head without leading axes",
    hiding_input=_qkv(),
)
def _all_axes_transposed(q, k, v, mask=None):
    return attend(q, k, v, mask, score=lambda q, k: q @ k.T / np.sqrt(q.shape[-1]))


@_entry(
    "mask ignored",
    "Your code never uses the mask, and queries look at keys they may not look at.",
    read=OTHER_USES,
    hides="without a mask, or with one that allows everything",
    hiding_input=_qkv(mask=ALL_ALLOWED),
)
def _mask_ignored(q, k, v, mask=None):
    return attend(q, k, v)


@_entry(
    "mask polarity flipped",
    "Your code hides the keys where the mask is True, but here True means that this query may "
    "look at this key.",
    read=MASKS,
    hides="without a mask",
    hiding_input=_qkv(),
)
def _mask_flipped(q, k, v, mask=None):
    return attend(q, k, v, mask, hide=lambda scores, mask: np.where(mask, -np.inf, scores))


@_entry(
    "mask after the softmax",
    "Your code sets weights to 0 after the softmax, which leaves rows that do not sum to 1 and "
    "shrinks the output; hide the scores before it.",
    read=MASKS,
    hides="without a mask, or with one that allows everything or nothing",
    hiding_input=_qkv(mask=ALL_ALLOWED),
)
def _mask_after_softmax(q, k, v, mask=None):
    _, weights = attend(q, k, v)
    if mask is not None:
        weights = weights * mask
    return weights @ v, weights


@_entry(
    "hidden scores set to 0",
    "Your code multiplies the scores by the mask, but a score of 0 is an ordinary score and gets "
    "weight; a hidden key needs the score -inf.",
    read=MASKS,
    hides="without a mask, or with one that allows everything",
    hiding_input=_qkv(mask=ALL_ALLOWED),
)
def _hidden_scores_zero(q, k, v, mask=None):
    return attend(q, k, v, mask, hide=lambda scores, mask: scores * mask)


@_entry(
    "hidden scores set to -1e9",
    "Your code gives hidden keys the score -1e9: a query that may look nowhere sees equal scores "
    "and takes the mean of all hidden values; its weights and output should be 0.",
    read=MASKS,
    hides="while every query may look at some key",
    hiding_input=_qkv(mask=NO_ROW_EMPTY),
)
def _hidden_scores_large_negative(q, k, v, mask=None):
    return attend(q, k, v, mask, hide=lambda scores, mask: np.where(mask, scores, -1e9))


@_entry(
    "-1e9 added to hidden scores",
    "Your code adds -1e9 to hidden scores: a query that may look nowhere gets the weights that it "
    "would have without a mask; its weights and output should be 0.",
    read=MASKS,
    hides="while every query may look at some key",
    hiding_input=_qkv(mask=NO_ROW_EMPTY),
)
def _large_negative_added(q, k, v, mask=None):
    return attend(q, k, v, mask, hide=lambda scores, mask: scores + (1 - mask) * -1e9)


@_entry(
    "NaN where nothing is allowed",
    "Your code gives hidden keys the score -inf, which is right, but a query that may look "
    "nowhere then computes -inf minus -inf, which is NaN; its weights and output should be 0.",
    read=MASKS,
    hides="while every query may look at some key",
    hiding_input=_qkv(mask=NO_ROW_EMPTY),
)
def _nan_where_nothing_allowed(q, k, v, mask=None):
    def plain_softmax(z):
        e = np.exp(z - z.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    return attend(q, k, v, mask, softmax=plain_softmax)
