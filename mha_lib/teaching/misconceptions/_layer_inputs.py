"""Wrong versions of ``multi_head_attention``: mistakes with projections, contexts and masks."""

from functools import partial

import numpy as np

from mha_lib.teaching.misconceptions._entry import (
    MASKS,
    OTHER_USES,
    SPLIT_CHAPTER,
    Misconception,
    entry_of_part,
    numbers,
)
from mha_lib.teaching.misconceptions._layer import arguments, build, same_mask

ENTRIES: list[Misconception] = []

_entry = partial(entry_of_part, ENTRIES, "multi_head_attention", build)


# --- projections ------------------------------------------------------------------------------


@_entry(
    "w_o",
    "W_O forgotten",
    "Which of the four matrices does your code never use, and what was it there for?",
    "Your code returns the heads side by side and never uses W_O: the heads never meet.",
    read=(SPLIT_CHAPTER, "What $W_O$ adds"),
    hides="where W_O is the identity",
    hiding_input=lambda: ((*arguments()[0][:4], np.eye(6), 3), {}),
)
def _w_o_forgotten(heads, w_o):
    return heads


@_entry(
    "w_o",
    "W_O transposed",
    "Which number of W_O tells how much column 2 of the heads adds to column 1 of the output?",
    "Your code multiplies by the transposed W_O, as libraries do that store it as (out, in); here "
    "it has one row for each column of the heads side by side.",
    read=(SPLIT_CHAPTER, "What $W_O$ adds"),
    hides="where W_O is symmetric",
    hiding_input=lambda: ((*arguments()[0][:4], np.diag(np.arange(1.0, 7)), 3), {}),
)
def _w_o_transposed(heads, w_o):
    return heads @ w_o.T


@_entry(
    "weights",
    "one projection used twice",
    "Which of the three projections could be any other matrix without changing your result?",
    "Your code uses the same matrix for two of queries, keys and values, and one of w_q, w_k and "
    "w_v takes no part; what a token asks, offers and gives are three different things.",
    read=(SPLIT_CHAPTER, "Step 1: project"),
    hides="where the projections are equal",
    hiding_input=lambda: ((numbers(5, 6), *[numbers(6, 6)] * 3, numbers(6, 7), 3), {}),
    variants=(
        {"weights": lambda w, n_heads: (w[0], w[1], w[1], w[3])},
        {"weights": lambda w, n_heads: (w[0], w[1], w[0], w[3])},
    ),
)
def _projected_twice(w, n_heads):
    return w[0], w[0], w[2], w[3]


@_entry(
    "weights",
    "projections transposed",
    "Does w_q here have a row or a column for each column of x?",
    "Your code multiplies by the transposed projections, as libraries do that store them as (out, "
    "in); here w_q has one row for each column of x.",
    read=(SPLIT_CHAPTER, "Step 1: project"),
    hides="where the projections are symmetric",
    hiding_input=lambda: (
        (numbers(5, 6), *(w + w.T for w in arguments()[0][1:4]), np.diag(np.arange(1.0, 7)), 3),
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


# --- contexts ---------------------------------------------------------------------------------


@_entry(
    "sources",
    "context ignored",
    "With a context, which tokens do your keys and values come from?",
    "Your code makes keys and values from x although there is a context; in cross-attention only "
    "the queries come from x.",
    read=OTHER_USES,
    hides="without a context",
    hiding_input=arguments,
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
    hiding_input=arguments,
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
    hiding_input=arguments,
)
def _queries_from_context(x, context):
    return context, context, context


@_entry(
    "sources",
    "keys from the query side",
    "With a context, where do the keys lie that a query is compared with?",
    "Your code takes the values from the context but the keys from x: a query is compared with "
    "tokens other than those whose values it receives.",
    read=OTHER_USES,
    hides="without a context; where the lengths differ, it fails",
    hiding_input=arguments,
)
def _keys_of_x(x, context):
    return x, x, context


@_entry(
    "sources",
    "queries and context exchanged",
    "With a context, who asks and who answers: the tokens of x or those of the context?",
    "Your code lets the context ask and x answer; it is the tokens of x that want to know "
    "something, one row of output for each.",
    read=OTHER_USES,
    hides="without a context",
    hiding_input=arguments,
)
def _sides_exchanged(x, context):
    return context, x, x


# --- masks ------------------------------------------------------------------------------------


@_entry(
    "hide",
    "mask not handed on",
    "Follow the mask through your code: where does it arrive, and does it change a weight there?",
    "Your code lets queries look at keys that the mask forbids: it does not hand the mask on to "
    "attention or, if it does, the attention that it calls never uses the mask.",
    read=OTHER_USES,
    hides="without a mask, or with one that allows everything",
    hiding_input=lambda: arguments(mask=np.ones((5, 5), dtype=bool)),
    covers="mask ignored",
    besides={"mask_of": same_mask},
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
        (numbers(2, 5, 6), *arguments()[0][1:]),
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
        (numbers(1, 5, 6), *arguments()[0][1:]),
        {"mask": np.tri(5, dtype=bool)[None, None]},
    ),
)
def _mask_without_head_axis(mask, n_heads):
    return mask if mask.ndim < 4 else mask[:, 0]
