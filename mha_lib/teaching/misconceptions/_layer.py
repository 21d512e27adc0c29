"""Wrong versions of ``multi_head_attention``.

Each is `layer` with wrong parts: which tokens give queries, keys and values, how they are
projected, split, attended to and merged, which mask gets there, and what becomes of the result.
"""

from functools import partial

import numpy as np

from mha_lib.teaching.misconceptions import _attention
from mha_lib.teaching.misconceptions._entry import (
    ATTEND,
    KEEP_THE_SHAPE,
    MASKS,
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
    "sources", "weights", "project", "split", "mask_of", "merge", "w_o", "heads",
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


def _mask(mask, n_heads):
    return mask


def _product(heads, w_o):
    return heads @ w_o


def side_by_side(sources, w, n_heads, mask, *, project, split, attend, merge):
    """Return the heads, each of which does the same with columns of its own, and their weights."""
    q, k, v = (
        project(tokens, matrix, n_heads, split) for tokens, matrix in zip(sources, w, strict=True)
    )
    heads, weights = attend(q, k, v, mask)
    return merge(heads), weights


def layer(
    x, context, w, n_heads, mask, *,
    sources=_sources, weights=_weights, project=_project, split=split, mask_of=_mask,
    merge=merge, w_o=_product, heads=side_by_side, **attention,
):  # fmt: skip
    """Return output and weights; ``context`` is ``x`` where there is none."""
    *w_qkv, matrix = weights(w, n_heads)
    merged, maps = heads(
        sources(x, context), w_qkv, n_heads, mask if mask is None else mask_of(mask, n_heads),
        project=project, split=split, merge=merge,
        attend=partial(_attention.attend, d=x.shape[-1], **attention),
    )  # fmt: skip
    return w_o(merged, matrix), maps


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


def _arguments(n=5, d=6, n_heads=3, d_out=7, **kwargs):
    """Return arguments of multi-head attention with square projections and some ``w_o``."""
    weights = (numbers(d, d), numbers(d, d)[::-1].copy(), numbers(d, d).T.copy())
    return (numbers(n, d), *weights, numbers(d, d_out), n_heads), kwargs


def _one_head():
    return _arguments(n_heads=1)


# --- the entries: heads -----------------------------------------------------------------------


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
    hiding_input=lambda: _arguments(n=1, n_heads=1),
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


# --- the entries: scale and projections -------------------------------------------------------


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
    hiding_input=lambda: ((np.zeros((5, 6)), *_arguments()[0][1:]), {"context": numbers(7, 6)}),
    formal=True,
)
def _scale_by_d(q, k, v, d):
    return d


@_entry(
    "w_o",
    "W_O forgotten",
    "Which of the four matrices does your code never use, and what was it there for?",
    "Your code returns the heads side by side and never uses W_O: the heads never meet.",
    read=(SPLIT_CHAPTER, "What $W_O$ adds"),
    hides="where W_O is the identity",
    hiding_input=lambda: ((*_arguments()[0][:4], np.eye(6), 3), {}),
)
def _w_o_forgotten(heads, w_o):
    return heads


@_entry(
    "weights",
    "projections transposed",
    "Does w_q here have a row or a column for each column of x?",
    "Your code multiplies by the transposed projections, as libraries do that store them as (out, "
    "in); here w_q has one row for each column of x.",
    read=(SPLIT_CHAPTER, "Step 1: project"),
    hides="where the projections are symmetric",
    hiding_input=lambda: (
        (numbers(5, 6), *(w + w.T for w in _arguments()[0][1:4]), np.diag(np.arange(1.0, 7)), 3),
        {},
    ),
)
def _projections_transposed(w, n_heads):
    return [matrix.T for matrix in w]


@_entry(
    "project",
    "attention without projections",
    "Where do w_q, w_k and w_v appear in your code, and what would a head be without them?",
    "Your code cuts the tokens themselves into heads: queries, keys and values are all the same "
    "numbers, and nothing that could be learned decides who looks at whom.",
    read=(SPLIT_CHAPTER, "Step 1: project"),
    hides="where the projections are the identity",
    hiding_input=lambda: ((numbers(5, 6), *([np.eye(6)] * 3), numbers(6, 7), 3), {}),
)
def _not_projected(tokens, matrix, n_heads, split):
    return split(tokens, n_heads)


# --- the entries: contexts --------------------------------------------------------------------


@_entry(
    "sources",
    "context ignored",
    "With a context, which tokens do your keys and values come from?",
    "Your code makes keys and values from x although there is a context; in cross-attention only "
    "the queries come from x.",
    read=OTHER_USES,
    hides="without a context",
    hiding_input=_arguments,
)
def _context_ignored(x, context):
    return x, x, x


@_entry(
    "sources",
    "values from the query side",
    "With a context, do a key and its value come from the same token in your code?",
    "Your code makes the keys from the context but the values from x; a key and its value belong "
    "to the same token, and both come from the context.",
    read=OTHER_USES,
    hides="without a context",
    hiding_input=_arguments,
)
def _values_from_x(x, context):
    return x, context, x


@_entry(
    "sources",
    "queries from the context",
    "With a context, whose queries are answered: how many rows should the output have?",
    "Your code makes the queries from the context too; each token of x asks with a query of its "
    "own, and the context only gives the keys and values.",
    read=OTHER_USES,
    hides="without a context",
    hiding_input=_arguments,
)
def _queries_from_context(x, context):
    return context, context, context


@_entry(
    "sources",
    "queries and context exchanged",
    "With a context, who asks and who answers: the tokens of x or those of the context?",
    "Your code lets the context ask and x answer; it is the tokens of x that want to know "
    "something, one row of output for each.",
    read=OTHER_USES,
    hides="without a context",
    hiding_input=_arguments,
)
def _sides_exchanged(x, context):
    return context, x, x


# --- the entries: masks -----------------------------------------------------------------------


@_entry(
    "hide",
    "mask not handed on",
    "Follow the mask through your code: where does it arrive, and does it change a weight there?",
    "Your code lets queries look at keys that the mask forbids: it does not hand the mask on to "
    "attention or, if it does, the attention that it calls never uses the mask.",
    read=OTHER_USES,
    hides="without a mask, or with one that allows everything",
    hiding_input=lambda: _arguments(mask=np.ones((5, 5), dtype=bool)),
    covers="mask ignored",
    besides={"mask_of": _mask},
)
def _mask_not_handed_on(scores, mask):
    return scores


@_entry(
    "mask_of",
    "mask tiled in the wrong order",
    "After folding heads into the batch, which sequence does matrix number 2 belong to, and whose "
    "mask does it get?",
    "Your code folds the heads into the batch and repeats the masks in another order than the "
    "heads lie in, which gives a sequence's heads the masks of other sequences.",
    read=MASKS,
    hides="with one head, with one sequence, or where all sequences have the same mask",
    hiding_input=lambda: (
        (numbers(2, 5, 6), *_arguments()[0][1:]),
        {"mask": np.broadcast_to(np.tri(5, dtype=bool), (2, 1, 5, 5)).copy()},
    ),
)
def _mask_tiled(mask, n_heads):
    if mask.ndim < 4:
        return mask
    folded = np.tile(mask[:, 0], (n_heads, 1, 1))
    return folded.reshape(len(mask), n_heads, *mask.shape[2:])


@_entry(
    "mask_of",
    "mask without its head axis",
    "Which axis of the scores does the first axis of the mask meet in your code?",
    "Your code drops the head axis of a mask for each sequence: with as many sequences as heads "
    "each head gets the mask of one sequence, and nothing fails.",
    read=OTHER_USES,
    hides="with one sequence, or without a mask for each sequence",
    hiding_input=lambda: (
        (numbers(1, 5, 6), *_arguments()[0][1:]),
        {"mask": np.tri(5, dtype=bool)[None, None]},
    ),
)
def _mask_without_head_axis(mask, n_heads):
    return mask if mask.ndim < 4 else mask[:, 0]
