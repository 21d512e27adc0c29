"""Wrong versions of ``scaled_dot_product_attention(q, k, v, mask)`` that show with a mask."""

from functools import partial

import numpy as np

from mha_lib.teaching.misconceptions import _softmax
from mha_lib.teaching.misconceptions._attention import build, qkv
from mha_lib.teaching.misconceptions._entry import MASKS, OTHER_USES, Misconception, entry_of_part

ENTRIES: list[Misconception] = []
ALL_ALLOWED = np.ones((5, 7), dtype=bool)
NO_ROW_EMPTY = np.tri(5, 7, k=1, dtype=bool)

_entry = partial(entry_of_part, ENTRIES, "scaled_dot_product_attention", build)


@_entry(
    "hide",
    "mask ignored",
    "Where in your code does the mask change a number?",
    "Your code never uses the mask, and queries look at keys they may not look at.",
    read=OTHER_USES,
    hides="without a mask, or with one that allows everything",
    hiding_input=qkv(mask=ALL_ALLOWED),
)
def _mask_ignored(scores, mask):
    return scores


@_entry(
    "hide",
    "mask polarity flipped",
    "If the mask is True at a place, may this query look at this key or not?",
    "Your code hides the keys where the mask is True, but here True means that this query may "
    "look at this key.",
    read=MASKS,
    hides="without a mask",
    hiding_input=qkv(),
)
def _mask_flipped(scores, mask):
    return np.where(mask, -np.inf, scores)


@_entry(
    "after",
    "mask after the softmax",
    "A key is hidden: who gets the weight that it would have had?",
    "Your code sets weights to 0 after the softmax, which leaves rows that do not sum to 1 and "
    "shrinks the output; a hidden key must not take part in the sharing at all.",
    read=MASKS,
    hides="without a mask, or with one that allows everything or nothing",
    hiding_input=qkv(mask=ALL_ALLOWED),
    besides={"hide": _mask_ignored},
)
def _mask_after_softmax(weights, mask):
    return weights * mask


@_entry(
    "hide",
    "hidden scores set to 0",
    "A hidden key has the score 0 in your code: what is exp of 0?",
    "Your code gives hidden keys the score 0, but 0 is an ordinary score and gets weight.",
    read=MASKS,
    hides="without a mask, or with one that allows everything",
    hiding_input=qkv(mask=ALL_ALLOWED),
)
def _hidden_scores_zero(scores, mask):
    return scores * mask


@_entry(
    "hide",
    "mask added to the scores",
    "True counts as 1: what does adding the mask do to the score of an allowed key and of a hidden "
    "one?",
    "Your code adds the mask itself to the scores, and True counts as 1: an allowed key gains a "
    "little, and a hidden one keeps its score and its weight.",
    read=MASKS,
    hides="without a mask, or with one that allows everything, up to rounding",
    hiding_input=qkv(mask=ALL_ALLOWED),
    exactness=1e-15,
)
def _mask_added(scores, mask):
    return scores + mask


@_entry(
    "hide",
    "hidden scores set to -1e9",
    "All keys of a query are hidden and get the score -1e9: what does the softmax make of equal "
    "scores?",
    "Your code gives hidden keys the score -1e9: a query that may look nowhere sees equal scores "
    "and takes the mean of all hidden values; its weights and output should be 0.",
    read=MASKS,
    hides="while every query may look at some key",
    hiding_input=qkv(mask=NO_ROW_EMPTY),
)
def _hidden_scores_large_negative(scores, mask):
    return np.where(mask, scores, -1e9)


@_entry(
    "hide",
    "-1e9 added to hidden scores",
    "All keys of a query are hidden and -1e9 is added to every score: do their differences change?",
    "Your code adds -1e9 to hidden scores: a query that may look nowhere gets the weights that it "
    "would have without a mask; its weights and output should be 0.",
    read=MASKS,
    hides="while every query may look at some key",
    hiding_input=qkv(mask=NO_ROW_EMPTY),
)
def _large_negative_added(scores, mask):
    return scores + (1 - mask) * -1e9


@_entry(
    "softmax",
    "NaN where nothing is allowed",
    "All keys of a query are hidden: what is its largest score, and what is left after subtracting "
    "it?",
    "Your code gives hidden keys the score -inf, which is right, but a query that may look "
    "nowhere then computes -inf minus -inf, which is NaN; its weights and output should be 0.",
    read=MASKS,
    hides="while every query may look at some key",
    hiding_input=qkv(mask=NO_ROW_EMPTY),
)
def _nan_where_nothing_allowed(z):
    return _softmax.naive(z)
