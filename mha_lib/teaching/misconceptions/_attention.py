"""Wrong versions of ``scaled_dot_product_attention(q, k, v, mask)``.

Each is `attend` with one wrong part: what goes in, the scores, their scale, the softmax, or what
becomes of the weights.  Those with a mask are in `_hiding`.
"""

from functools import partial

import numpy as np

from mha_lib.teaching.misconceptions import _softmax
from mha_lib.teaching.misconceptions._entry import (
    ATTEND,
    KEEP_THE_SHAPE,
    Misconception,
    call,
    entry_of_part,
    numbers,
)

ENTRIES: list[Misconception] = []
PARTS = (
    "inputs", "product", "scale", "hide", "softmax", "after", "rescale", "blend", *_softmax.PARTS,
)  # fmt: skip


# --- the right parts, as small as can be ------------------------------------------------------


def softmax(z, axis=-1):
    largest = z.max(axis=axis, keepdims=True)
    e = np.exp(z - np.where(np.isinf(largest), 0, largest).astype(z.dtype))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total).astype(z.dtype)


def _as_they_are(q, k, v):
    return q, k, v


def product(q, k):
    return q @ k.swapaxes(-1, -2)


def root_of_d_k(q, k, v, d):
    return np.sqrt(q.shape[-1])


def hide(scores, mask):
    return np.where(mask, scores, -np.inf)


def _keep(weights, q):
    return weights


def blend(weights, v):
    return weights @ v


def attend(
    q, k, v, mask=None, *, d=None,
    inputs=_as_they_are, product=product, scale=root_of_d_k, hide=hide, softmax=softmax,
    after=None, rescale=_keep, blend=blend, **softmax_parts,
):  # fmt: skip
    """Attend; ``d`` is the width of the model, for whoever mistakes it for that of a head."""
    if softmax_parts:
        softmax = partial(_softmax.naive, **softmax_parts)
    q, k, v = inputs(q, k, v)
    scores = product(q, k) / float(scale(q, k, v, d))
    if mask is not None:
        scores = hide(scores, mask)
    weights = softmax(scores)
    if mask is not None and after is not None:
        weights = after(weights, mask)
    weights = rescale(weights, q)
    return blend(weights, v), weights


def build(**parts):
    """Return an attention with these wrong parts."""

    def scaled_dot_product_attention(q, k, v, mask=None):
        return attend(q, k, v, mask, **parts)

    return scaled_dot_product_attention


def qkv(tq=5, tk=7, d_k=3, d_v=2, **kwargs):
    return call(numbers(tq, d_k), numbers(tk, d_k), numbers(tk, d_v), **kwargs)


# --- the entries ----------------------------------------------------------------------

_entry = partial(entry_of_part, ENTRIES, "scaled_dot_product_attention", build)


@_entry(
    "scale",
    "no scale",
    "A score is a sum of d_k products: how large does it get when a head becomes wider?",
    "Your code takes the scores as they are: the wider the head is, the larger they get, and the "
    "sharper the weights.",
    read=ATTEND,
    hides="with d_k = 1",
    hiding_input=qkv(d_k=1),
)
def _no_scale(q, k, v, d):
    return 1


@_entry(
    "scale",
    "scale by d_k without the root",
    "Of d_k random products, does the sum grow like d_k or like its root?",
    "Your code divides by d_k, but a sum of d_k products grows only like the root of d_k, and so "
    "all rows come out too even.",
    read=ATTEND,
    hides="with d_k = 1",
    hiding_input=qkv(d_k=1),
)
def _scale_without_root(q, k, v, d):
    return q.shape[-1]


@_entry(
    "scale",
    "multiplied by the root of d_k",
    "Scores of wide heads are large: does your scale make them smaller or larger?",
    "Your code multiplies the scores by the root of d_k: they are too large for a wide head "
    "already, and get larger.",
    read=ATTEND,
    hides="with d_k = 1",
    hiding_input=qkv(d_k=1),
    exactness=1e-15,
)
def _multiplied(q, k, v, d):
    return 1 / np.sqrt(q.shape[-1])


@_entry(
    "scale",
    "scale by the root of d_v",
    "Over which axis does the product of a query and a key sum, and do values have any part in it?",
    "Your code divides by the root of the values' width, but a score is made of a query and a key, "
    "whose width may be another.",
    read=ATTEND,
    hides="where values are as wide as keys",
    hiding_input=qkv(d_v=3),
)
def _scale_by_root_of_d_v(q, k, v, d):
    return np.sqrt(v.shape[-1])


@_entry(
    "scale",
    "scale by the number of keys",
    "How many products are summed in one score: as many as there are keys?",
    "Your code divides by the root of the number of keys, but a score is a sum over the width of a "
    "key, however many keys there are.",
    read=ATTEND,
    hides="with as many keys as d_k",
    hiding_input=qkv(tk=3, d_k=3),
)
def _scale_by_number_of_keys(q, k, v, d):
    return np.sqrt(k.shape[-2])


@_entry(
    "rescale",
    "scale after the softmax",
    "What do the weights of one query sum to in your result?",
    "Your code divides the weights instead of the scores: rows no longer sum to 1, every output "
    "shrinks, and the scores enter the softmax as large as they were.",
    read=ATTEND,
    hides="with d_k = 1",
    hiding_input=qkv(d_k=1),
    besides={"scale": _no_scale},
)
def _weights_scaled(weights, q):
    return weights / float(np.sqrt(q.shape[-1]))


@_entry(
    "softmax",
    "scores used as weights",
    "Can a weight be negative in your result, and what do the weights of a query sum to?",
    "Your code blends the values with the scores themselves, which can be negative and sum to "
    "anything; weights are shares of 1.",
    read=ATTEND,
    hides="only with a single key whose score is 1",
    hiding_input=call(np.ones((5, 1)), np.ones((1, 1)), numbers(1, 2)),
    formal=True,
)
def _no_softmax(z):
    return z


@_entry(
    "softmax",
    "softmax over the queries",
    "Take one query: what do its weights sum to, over all keys?",
    "Your code lets the weights of each key sum to 1 over the queries, but each query, a row, "
    "shares out a weight of 1 among the keys.",
    read=KEEP_THE_SHAPE,
    hides="where all scores are equal and there are as many queries as keys",
    hiding_input=call(np.zeros((4, 3)), numbers(4, 3), numbers(4, 2)),
)
def _softmax_over_queries(z):
    return softmax(z, axis=-2)


@_entry(
    "product",
    "keys not transposed",
    "Write down the shapes of q and k: which number of q meets which number of k in your product?",
    "Your code multiplies the queries by the keys as they are, and no query meets a key; a score "
    "is the dot product of a row of q and a row of k.",
    read=ATTEND,
    hides="where k is square and symmetric; where it is not square, the product fails",
    hiding_input=call(numbers(5, 3), numbers(3, 3) + numbers(3, 3).T, numbers(3, 2)),
)
def _keys_not_transposed(q, k):
    return q @ k


@_entry(
    "product",
    "queries and keys exchanged",
    "Row 1 of your scores: is it about query 1 and all keys, or about key 1 and all queries?",
    "Your code has the keys in the rows of the scores and the queries in the columns, and each key "
    "then shares out weights among the queries; it is a query that looks at keys.",
    read=ATTEND,
    hides="where queries and keys are equal; with unequal numbers of them, it fails",
    hiding_input=call(numbers(5, 3), numbers(5, 3), numbers(5, 2)),
)
def _queries_and_keys_exchanged(q, k):
    return k @ q.swapaxes(-1, -2)


@_entry(
    "product",
    "keys reshaped instead of transposed",
    "Reshape the rows 1 2 3 and 4 5 6 to three rows of two: do 1 and 4 stand side by side?",
    "Your code reshapes the keys to the transposed shape, which deals out their numbers in the "
    "old order instead of turning rows into columns.",
    read=ATTEND,
    hides="with d_k = 1, with one key, or where k is square and symmetric",
    hiding_input=call(numbers(5, 3), numbers(3, 3) + numbers(3, 3).T, numbers(3, 2)),
)
def _keys_reshaped(q, k):
    *leading, n_keys, d_k = k.shape
    return q @ k.reshape(*leading, d_k, n_keys)


@_entry(
    "product",
    "all axes transposed",
    "What is the shape of k.T if k has a head axis in front?",
    "Your code reverses all axes of the keys, heads and batch too; only tokens and columns are to "
    "change places, in each head by itself.",
    read=ATTEND,
    hides="for one head without leading axes",
    hiding_input=qkv(),
)
def _all_axes_transposed(q, k):
    return q @ k.T


@_entry(
    "product",
    "every query dotted with the keys of every head",
    "What is the shape of np.dot(a, b) if a and b have three axes each, and which heads meet "
    "there?",
    "Your code uses np.dot, which has no leading axes: it multiplies every matrix of the queries "
    "by every matrix of the keys, and heads and sequences meet that have nothing to do with each "
    "other.",
    read=ATTEND,
    hides="for one head without leading axes",
    hiding_input=qkv(),
    variants=({"product": lambda q, k: np.dot(q, k.swapaxes(-1, -2))},),
)
def _dotted(q, k):
    return np.dot(q, k.T)


@_entry(
    "inputs",
    "keys and values swapped",
    "Which of k and v is compared with the queries, and which of them is blended?",
    "Your code compares the queries with the values and blends the keys; a key says what a token "
    "offers, and its value is what it gives.",
    read=ATTEND,
    hides="where keys and values are equal",
    hiding_input=call(numbers(5, 3), numbers(7, 3), numbers(7, 3)),
)
def _keys_and_values_swapped(q, k, v):
    return q, v, k


@_entry(
    "blend",
    "weights transposed in the blend",
    "Output 1 is a blend: are its weights in row 1 or in column 1 of your weights?",
    "Your code blends with the columns of the weights, which hold what one key gives to all "
    "queries; a query's own weights, which sum to 1, are its row.",
    read=ATTEND,
    hides="where all scores are equal and there are as many queries as keys",
    hiding_input=call(np.zeros((4, 3)), numbers(4, 3), numbers(4, 2)),
)
def _columns_blended(weights, v):
    return weights.swapaxes(-1, -2) @ v
