"""Wrong versions of ``multi_head_attention``.

Each is `layer` with wrong parts: which tokens give queries, keys and values, how they are
projected, split, attended to and merged, which mask gets there, and what becomes of the result.
Those about projections, contexts and masks are in `_layer_inputs`.
"""

from functools import partial

import numpy as np

from mha_lib.teaching.misconceptions import _attention
from mha_lib.teaching.misconceptions._entry import (
    ATTEND,
    KEEP_THE_SHAPE,
    OTHER_USES,
    SPLIT,
    SPLIT_CHAPTER,
    Misconception,
    entry_of_part,
    numbers,
)
from mha_lib.teaching.misconceptions._heads import bare_merge, bare_split, split_without_swap

ENTRIES: list[Misconception] = []
PARTS = (
    "sources", "weights", "project", "split", "mask_of", "merge", "w_o", "heads", "maps",
    *_attention.PARTS,
)  # fmt: skip


# --- the right steps, as small as can be ------------------------------------------------------


def split(x, n_heads):
    *leading, n, d = x.shape
    return x.reshape(*leading, n, n_heads, d // n_heads).swapaxes(-3, -2)


def merge(x):
    *leading, h, n, d_k = x.shape
    return x.swapaxes(-3, -2).reshape(*leading, n, h * d_k)


def _sources(x, context):
    return x, context, context


def _weights(w, n_heads):
    return w


def _project(tokens, matrix, n_heads, split):
    return split(tokens @ matrix, n_heads)


def same_mask(mask, n_heads):
    return mask


def _product(heads, w_o):
    return heads @ w_o


def _of_each_head(maps):
    return maps


def side_by_side(sources, w, n_heads, mask, *, project, split, attend, merge):
    """Return the heads, each of which does the same with columns of its own, and their weights."""
    q, k, v = (
        project(tokens, matrix, n_heads, split) for tokens, matrix in zip(sources, w, strict=True)
    )
    heads, weights = attend(q, k, v, mask)
    return merge(heads), weights


def layer(
    x, context, w, n_heads, mask, *,
    sources=_sources, weights=_weights, project=_project, split=split, mask_of=same_mask,
    merge=merge, w_o=_product, heads=side_by_side, maps=_of_each_head, **attention,
):  # fmt: skip
    """Return output and weights; ``context`` is ``x`` where there is none."""
    *w_qkv, matrix = weights(w, n_heads)
    merged, weights_of_heads = heads(
        sources(x, context), w_qkv, n_heads, mask if mask is None else mask_of(mask, n_heads),
        project=project, split=split, merge=merge,
        attend=partial(_attention.attend, d=x.shape[-1], **attention),
    )  # fmt: skip
    return w_o(merged, matrix), maps(weights_of_heads)


def build(**parts):
    """Return a multi-head attention with these wrong parts."""

    def multi_head_attention(
        x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
    ):
        source = x if context is None else context
        out, weights = layer(x, source, (w_q, w_k, w_v, w_o), n_heads, mask, **parts)
        return (out, weights) if return_weights else out

    return multi_head_attention


_entry = partial(entry_of_part, ENTRIES, "multi_head_attention", build)


def _of_head(mask, i):
    """Return the part of a mask that concerns head i."""
    if mask is None or mask.ndim < 3:
        return mask
    return mask[..., i if mask.shape[-3] > 1 else 0, :, :]


def arguments(n=5, d=6, n_heads=3, d_out=7, **kwargs):
    """Return arguments of multi-head attention with square projections and some ``w_o``."""
    weights = (numbers(d, d), numbers(d, d)[::-1].copy(), numbers(d, d).T.copy())
    return (numbers(n, d), *weights, numbers(d, d_out), n_heads), kwargs


def _one_head():
    return arguments(n_heads=1)


# --- the entries -----------------------------------------------------------------------


@_entry(
    "split",
    "bare reshapes there and back",
    "Look at head 1 between the split and the merge: do its numbers come from all tokens, or only "
    "from the first ones?",
    "Your code splits and merges the heads by reshapes alone; the two undo each other, but in "
    "between each head attends among pieces of several tokens.",
    read=SPLIT,
    hides="with one head, or one token",
    hiding_input=_one_head,
    besides={"merge": bare_merge},
)
def _bare_reshapes(x, n_heads):
    return bare_split(x, n_heads)


def _merge_behind(heads):
    *leading, n, h, d_k = heads.shape
    return heads.reshape(*leading, n, h * d_k)


@_entry(
    "split",
    "each token attends among its own heads",
    "What is the shape of your weights: is there one row for each token, or one for each head?",
    "Your code leaves the tokens in front of the heads: each token compares its own heads with "
    "each other, and no token sees another.",
    read=SPLIT,
    hides="only with one head and one token, but the shape is always right",
    hiding_input=lambda: arguments(n=1, n_heads=1),
    formal=True,
    besides={"merge": _merge_behind},
)
def _heads_behind(x, n_heads):
    return split_without_swap(x, n_heads)


@_entry(
    "split",
    "heads never split",
    "How many rows of weights does each token have in your code, and how many heads are there?",
    "Your code never splits the projections: a single head as wide as all h together attends, "
    "with one row of weights for each token instead of h.",
    read=SPLIT,
    hides="with one head, as long as nobody asks for the weights",
    hiding_input=_one_head,
    besides={"merge": lambda x: x},
)
def _never_split(x, n_heads):
    return x


@_entry(
    "split",
    "every head as wide as the model",
    "How many columns does each of your heads have, and how many are there to go round?",
    "Your code gives every head all columns of the projections; the concatenation has width h "
    "* d and does not fit W_O, which has one row for each of the h * d_v columns.",
    read=SPLIT,
    hides="with one head",
    hiding_input=_one_head,
)
def _every_head_full_width(x, n_heads):
    return np.stack([x] * n_heads, axis=-3)


@_entry(
    "weights",
    "all heads share one head's weights",
    "Compare the weights of head 1 and head 2: are they different anywhere?",
    "Your code projects with the same d_k columns for every head, and all heads do the same; each "
    "head has columns of its own.",
    read=SPLIT,
    hides="with one head",
    hiding_input=_one_head,
)
def _heads_share_weights(w, n_heads):
    *w_qkv, w_o = w
    of_head_1 = [np.tile(matrix[:, : matrix.shape[1] // n_heads], n_heads) for matrix in w_qkv]
    return (*of_head_1, w_o)


@_entry(
    "project",
    "x sliced before the projection",
    "Which columns of x can change the queries of head 1 in your code?",
    "Your code cuts x into heads first and projects each slice by itself, which shows a head only "
    "its part of each token; a head looks at whole tokens.",
    read=SPLIT,
    hides="with one head, or where the projections are zero outside their diagonal blocks",
    hiding_input=_one_head,
    besides={"split": split},
)
def _sliced_before_projection(tokens, matrix, n_heads, split):
    d, width = (size // n_heads for size in matrix.shape)
    slices = [
        tokens[..., i * d : (i + 1) * d] @ matrix[i * d : (i + 1) * d, i * width : (i + 1) * width]
        for i in range(n_heads)
    ]
    return np.stack(slices, axis=-3)


@_entry(
    "heads",
    "heads run one after another",
    "Does head 2 in your code see x, or what head 1 made of it?",
    "Your code feeds the result of one head into the next, which makes them layers; heads work "
    "side by side on the same x and do not see each other.",
    read=(SPLIT_CHAPTER, "Can one head influence another?"),
    hides="with one head",
    hiding_input=_one_head,
    besides={"split": split, "merge": merge, "project": _project},
)
def _heads_as_layers(sources, w, n_heads, mask, *, attend, **_):
    x, of_keys, of_values = sources
    w_q, w_k, w_v = w
    is_self_attention = of_keys is x
    all_weights = []
    for i in range(n_heads):
        if is_self_attention:
            of_keys = of_values = x
        x, weights = attend(x @ w_q, of_keys @ w_k, of_values @ w_v, _of_head(mask, i))
        all_weights.append(weights)
    return x, np.stack(all_weights, axis=-3)


@_entry(
    "softmax",
    "softmax over the heads",
    "Take one token in one head: what do its weights sum to, over all keys?",
    "Your code shares out a weight of 1 among the heads, as if they competed for a key; each head "
    "has a softmax of its own over the keys.",
    read=KEEP_THE_SHAPE,
    hides="where all scores are equal and there are as many heads as keys",
    hiding_input=lambda: ((numbers(3, 6), np.zeros((6, 6)), *arguments()[0][2:]), {}),
)
def _softmax_over_heads(z):
    return _attention.softmax(z, axis=-3)


@_entry(
    "maps",
    "weights averaged over the heads",
    "How many maps of weights does your code return, and how many heads are there?",
    "Your code returns one map of weights, the mean over all heads, as libraries can; here each "
    "head has a map of its own, and from a mean nobody can tell what a head looked at.",
    read=OTHER_USES,
    hides="as long as nobody asks for the weights",
    hiding_input=lambda: arguments(),
)
def _maps_averaged(maps):
    return maps.mean(axis=-3)


@_entry(
    "scale",
    "scale by the root of d",
    "How many numbers of a query does one head compare with a key: d of them?",
    "Your code divides the scores by the root of the model width d, but a head compares only d_k "
    "numbers.",
    read=KEEP_THE_SHAPE,
    hides="with one head",
    hiding_input=_one_head,
)
def _root_of_d(q, k, v, d):
    return np.sqrt(d)


@_entry(
    "scale",
    "scale by d",
    "How many products are summed in a head's score, and how fast does such a sum grow?",
    "Your code divides the scores by the model width d, and all rows come out nearly even; a head "
    "sums over its own width, and such a sum grows like a root.",
    read=ATTEND,
    hides="only where queries are 0 and there is nothing to scale",
    hiding_input=lambda: ((np.zeros((5, 6)), *arguments()[0][1:]), {"context": numbers(7, 6)}),
    formal=True,
)
def _scale_by_d(q, k, v, d):
    return d
