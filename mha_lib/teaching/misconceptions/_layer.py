"""Wrong versions of ``multi_head_attention``.

Each is written as ``(x, source, w, n_heads, mask)``, which returns output and weights: ``source``
is the context or, without one, ``x``, and ``w`` holds the four projections.
"""

from functools import partial

import numpy as np

from mha_lib.teaching.misconceptions._attention import attend, score
from mha_lib.teaching.misconceptions._entry import (
    ATTEND,
    KEEP_THE_SHAPE,
    MASKS,
    OTHER_USES,
    SPLIT,
    SPLIT_CHAPTER,
    Misconception,
    entry,
    numbers,
)
from mha_lib.teaching.misconceptions._heads import bare_merge, bare_split, split_without_swap

ENTRIES: list[Misconception] = []


def as_layer(layer):
    """Give a function of ``(x, source, w, n_heads, mask)`` the signature of the right one."""

    def multi_head_attention(
        x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
    ):
        source = x if context is None else context
        out, weights = layer(x, source, (w_q, w_k, w_v, w_o), n_heads, mask)
        return (out, weights) if return_weights else out

    return multi_head_attention


def _entry(*args, **about):
    enter = entry(ENTRIES, "multi_head_attention", *args, **about)
    return lambda layer: enter(as_layer(layer))


# --- the right steps, as small as can be ------------------------------------------------------


def split(x, n_heads):
    *leading, n, d = x.shape
    return x.reshape(*leading, n, n_heads, d // n_heads).swapaxes(-3, -2)


def merge(x):
    *leading, h, n, d_k = x.shape
    return x.swapaxes(-3, -2).reshape(*leading, n, h * d_k)


def layer(x, source, w, n_heads, mask, *, split=split, attend=attend, merge=merge):
    w_q, w_k, w_v, w_o = w
    q, k, v = split(x @ w_q, n_heads), split(source @ w_k, n_heads), split(source @ w_v, n_heads)
    heads, weights = attend(q, k, v, mask)
    return merge(heads) @ w_o, weights


def _of_head(mask, i):
    """Return the part of a mask that concerns head i."""
    if mask is None or mask.ndim < 3:
        return mask
    return mask[..., i if mask.shape[-3] > 1 else 0, :, :]


def _arguments(n=5, d=6, n_heads=3, d_out=7, **kwargs):
    """Return arguments of multi-head attention with square projections and some ``w_o``."""
    weights = (numbers(d, d), numbers(d, d)[::-1].copy(), numbers(d, d).T.copy())
    return (numbers(n, d), *weights, numbers(d, d_out), n_heads), kwargs


def _one_head():
    return _arguments(n_heads=1)


# --- the entries ------------------------------------------------------------------------------


@_entry(
    "bare reshapes there and back",
    "Your code splits and merges the heads by bare reshapes; the two undo each other, but in "
    "between each head attends among pieces of several tokens.",
    read=SPLIT,
    hides="with one head, or one token",
    hiding_input=_one_head,
)
def _bare_reshapes(x, source, w, n_heads, mask):
    return layer(x, source, w, n_heads, mask, split=bare_split, merge=bare_merge)


@_entry(
    "each token attends among its own heads",
    "Your code leaves the tokens in front of the heads: each token compares its own heads with "
    "each other, and no token sees another; the head axis comes first, then the tokens.",
    read=SPLIT,
    hides="only with one head and one token, but the shape is always right",
    hiding_input=lambda: _arguments(n=1, n_heads=1),
    formal=True,
)
def _attend_among_heads(x, source, w, n_heads, mask):
    def merge(heads):
        *leading, n, h, d_k = heads.shape
        return heads.reshape(*leading, n, h * d_k)

    return layer(x, source, w, n_heads, mask, split=split_without_swap, merge=merge)


@_entry(
    "scale by the root of d",
    "Your code divides the scores by the root of the model width d, but a head compares d_k "
    "numbers, and so the scale is the root of d_k.",
    read=KEEP_THE_SHAPE,
    hides="with one head",
    hiding_input=_one_head,
)
def _scale_by_root_of_d(x, source, w, n_heads, mask):
    by_root_of_d = partial(score, scale=np.sqrt(x.shape[-1]))
    return layer(x, source, w, n_heads, mask, attend=partial(attend, score=by_root_of_d))


@_entry(
    "scale by d",
    "Your code divides the scores by the model width d, and all rows come out nearly even; the "
    "scale is the root of the head's width d_k.",
    read=ATTEND,
    hides="only where queries are 0 and there is nothing to scale",
    hiding_input=lambda: ((np.zeros((5, 6)), *_arguments()[0][1:]), {"context": numbers(7, 6)}),
    formal=True,
)
def _scale_by_d(x, source, w, n_heads, mask):
    by_d = partial(score, scale=x.shape[-1])
    return layer(x, source, w, n_heads, mask, attend=partial(attend, score=by_d))


@_entry(
    "W_O forgotten",
    "Your code returns the concatenated heads and forgets the product with W_O: the heads never "
    "meet.",
    read=(SPLIT_CHAPTER, "What $W_O$ adds"),
    hides="where W_O is the identity",
    hiding_input=lambda: ((*_arguments()[0][:4], np.eye(6), 3), {}),
)
def _w_o_forgotten(x, source, w, n_heads, mask):
    w_q, w_k, w_v, _ = w
    identity = np.eye(w_v.shape[1], dtype=w_v.dtype)
    return layer(x, source, (w_q, w_k, w_v, identity), n_heads, mask)


@_entry(
    "heads never split",
    "Your code never splits the projections: a single head as wide as all h together attends, "
    "with one row of weights for each token instead of h; split before attention.",
    read=SPLIT,
    hides="with one head, as long as nobody asks for the weights",
    hiding_input=_one_head,
)
def _never_split(x, source, w, n_heads, mask):
    w_q, w_k, w_v, w_o = w
    out, weights = attend(x @ w_q, source @ w_k, source @ w_v, mask)
    return out @ w_o, weights


@_entry(
    "every head as wide as the model",
    "Your code lets every head use all columns of the projections; the concatenation has width h "
    "* d and does not fit W_O, which has one row for each of the h * d_v columns.",
    read=SPLIT,
    hides="with one head",
    hiding_input=_one_head,
)
def _every_head_full_width(x, source, w, n_heads, mask):
    w_q, w_k, w_v, w_o = w
    heads = [attend(x @ w_q, source @ w_k, source @ w_v, _of_head(mask, i)) for i in range(n_heads)]
    outs, weights = zip(*heads, strict=True)
    return np.concatenate(outs, axis=-1) @ w_o, np.stack(weights, axis=-3)


@_entry(
    "all heads share one head's weights",
    "Your code projects with the same d_k columns for every head, and all heads do the same; head "
    "i has columns i * d_k to (i + 1) * d_k - 1 for its own.",
    read=SPLIT,
    hides="with one head",
    hiding_input=_one_head,
)
def _heads_share_weights(x, source, w, n_heads, mask):
    *w_qkv, w_o = w
    of_head_1 = [np.tile(matrix[:, : matrix.shape[1] // n_heads], n_heads) for matrix in w_qkv]
    return layer(x, source, (*of_head_1, w_o), n_heads, mask)


@_entry(
    "x sliced before the projection",
    "Your code cuts x into heads first and projects each slice by itself, which shows a head only "
    "its part of each token; project all of x, then cut the result.",
    read=SPLIT,
    hides="with one head, or where the projections are zero outside their diagonal blocks",
    hiding_input=_one_head,
)
def _sliced_before_projection(x, source, w, n_heads, mask):
    def project(tokens, matrix):
        d, width = (size // n_heads for size in matrix.shape)
        slices = [
            tokens[..., i * d : (i + 1) * d]
            @ matrix[i * d : (i + 1) * d, i * width : (i + 1) * width]
            for i in range(n_heads)
        ]
        return np.stack(slices, axis=-3)

    w_q, w_k, w_v, w_o = w
    heads, weights = attend(project(x, w_q), project(source, w_k), project(source, w_v), mask)
    return merge(heads) @ w_o, weights


@_entry(
    "heads run one after another",
    "Your code feeds the result of one head into the next, which makes them layers; heads work "
    "side by side on the same x and do not see each other.",
    read=(SPLIT_CHAPTER, "Can one head influence another?"),
    hides="with one head",
    hiding_input=_one_head,
)
def _heads_as_layers(x, source, w, n_heads, mask):
    w_q, w_k, w_v, w_o = w
    is_self_attention = source is x
    all_weights = []
    for i in range(n_heads):
        source = x if is_self_attention else source
        x, weights = attend(x @ w_q, source @ w_k, source @ w_v, _of_head(mask, i))
        all_weights.append(weights)
    return x @ w_o, np.stack(all_weights, axis=-3)


@_entry(
    "projections transposed",
    "Your code multiplies by the transposed projections, as libraries do that store them as (out, "
    "in); here w_q has one row for each column of x, and the queries are x @ w_q.",
    read=(SPLIT_CHAPTER, "Step 1: project"),
    hides="where the projections are symmetric",
    hiding_input=lambda: (
        (numbers(5, 6), *(w + w.T for w in _arguments()[0][1:4]), np.diag(np.arange(1.0, 7)), 3),
        {},
    ),
)
def _projections_transposed(x, source, w, n_heads, mask):
    return layer(x, source, [matrix.T for matrix in w], n_heads, mask)


@_entry(
    "context ignored",
    "Your code makes keys and values from x although there is a context; in cross-attention only "
    "the queries come from x.",
    read=OTHER_USES,
    hides="without a context",
    hiding_input=_arguments,
)
def _context_ignored(x, source, w, n_heads, mask):
    return layer(x, x, w, n_heads, mask)


@_entry(
    "values from the query side",
    "Your code makes the keys from the context but the values from x; a key and its value belong "
    "to the same token, and both come from the context.",
    read=OTHER_USES,
    hides="without a context",
    hiding_input=_arguments,
)
def _values_from_x(x, source, w, n_heads, mask):
    w_q, w_k, w_v, w_o = w
    q, k, v = split(x @ w_q, n_heads), split(source @ w_k, n_heads), split(x @ w_v, n_heads)
    heads, weights = attend(q, k, v, mask)
    return merge(heads) @ w_o, weights


@_entry(
    "queries from the context",
    "Your code makes the queries from the context too; each token of x asks with a query of its "
    "own, and the context only gives the keys and values.",
    read=OTHER_USES,
    hides="without a context",
    hiding_input=_arguments,
)
def _queries_from_context(x, source, w, n_heads, mask):
    return layer(source, source, w, n_heads, mask)


@_entry(
    "mask not handed on",
    "Your code lets queries look at keys that the mask forbids: it does not hand the mask on to "
    "attention or, if it does, the attention that it calls never uses the mask.",
    read=OTHER_USES,
    hides="without a mask, or with one that allows everything",
    hiding_input=lambda: _arguments(mask=np.ones((5, 5), dtype=bool)),
    covers="mask ignored",
)
def _mask_not_handed_on(x, source, w, n_heads, mask):
    return layer(x, source, w, n_heads, None)


@_entry(
    "mask tiled in the wrong order",
    "Your code folds the heads into the batch and repeats the mask with np.tile, which gives a "
    "sequence's heads the masks of other sequences; np.repeat keeps a sequence together.",
    read=MASKS,
    hides="with one head, with one sequence, or where all sequences have the same mask",
    hiding_input=lambda: (
        (numbers(2, 5, 6), *_arguments()[0][1:]),
        {"mask": np.broadcast_to(np.tri(5, dtype=bool), (2, 1, 5, 5)).copy()},
    ),
    exactness=1e-12,
)
def _mask_tiled(x, source, w, n_heads, mask):
    def attend_folded(q, k, v, mask):
        if mask is None or mask.ndim < 4:
            return attend(q, k, v, mask)
        q_flat, k_flat, v_flat = (a.reshape(-1, *a.shape[-2:]) for a in (q, k, v))
        out, weights = attend(q_flat, k_flat, v_flat, np.tile(mask[:, 0], (n_heads, 1, 1)))
        return out.reshape(*q.shape[:-1], -1), weights.reshape(*q.shape[:-1], -1)

    return layer(x, source, w, n_heads, mask, attend=attend_folded)


@_entry(
    "mask without its head axis",
    "Your code drops the head axis of a mask for each sequence: with as many sequences as heads "
    "each head gets the mask of one sequence, and nothing fails; mask[:, None] keeps the axis.",
    read=OTHER_USES,
    hides="with one sequence, or without a mask for each sequence",
    hiding_input=lambda: (
        (numbers(1, 5, 6), *_arguments()[0][1:]),
        {"mask": np.tri(5, dtype=bool)[None, None]},
    ),
)
def _mask_without_head_axis(x, source, w, n_heads, mask):
    return layer(x, source, w, n_heads, mask if mask is None or mask.ndim < 4 else mask[:, 0])
