"""Wrong versions of ``causal_mask``, ``padding_mask`` and ``combine_masks``."""

from functools import partial

import numpy as np

from mha_lib.teaching.misconceptions._entry import MASKS, OTHER_USES, Misconception, call, entry

ENTRIES: list[Misconception] = []
_causal_entry = partial(entry, ENTRIES, "causal_mask")
_padding_entry = partial(entry, ENTRIES, "padding_mask")
_combine_entry = partial(entry, ENTRIES, "combine_masks")


@_causal_entry(
    "the past hidden instead of the future",
    "Your code allows the upper triangle, where each token looks at itself and the future; row i "
    "is a query, and it may look at the keys up to i, the lower triangle.",
    read=OTHER_USES,
    hides="with one token and nothing before it",
    hiding_input=call(1),
)
def _upper_triangle(n, *, n_past=0):
    return np.triu(np.ones((n, n_past + n), dtype=bool), k=n_past)


@_causal_entry(
    "tokens that cannot look at themselves",
    "Your code leaves out the diagonal: no token may look at itself, and the first may look "
    "nowhere.",
    read=OTHER_USES,
    hides="only without tokens: its shape is right, and its numbers never are",
    hiding_input=call(0),
    formal=True,
)
def _without_diagonal(n, *, n_past=0):
    return np.tri(n, n_past + n, k=n_past - 1, dtype=bool)


@_causal_entry(
    "the keys of the past not counted",
    "Your code counts queries from the first key, but n_past keys come before the first query, "
    "and every query may look at them.",
    read=OTHER_USES,
    hides="with n_past = 0",
    hiding_input=call(5),
)
def _past_not_counted(n, *, n_past=0):
    return np.tri(n, n_past + n, dtype=bool)


@_causal_entry(
    "n_past ignored",
    "Your code ignores n_past: the mask has no columns for the n_past keys that come before the "
    "first query and that every query may look at.",
    read=OTHER_USES,
    hides="with n_past = 0",
    hiding_input=call(5),
)
def _past_ignored(n, *, n_past=0):
    return np.tri(n, dtype=bool)


@_padding_entry(
    "filler marked with True",
    "Your code is True where there is filler, but here True means that a key may be looked at, "
    "which is where the real tokens are.",
    read=MASKS,
    hides="only where sequences have no tokens at all (n = 0)",
    hiding_input=call(np.array([0, 0]), 0),
    formal=True,
)
def _filler_marked(lengths, n):
    return np.arange(n) >= np.asarray(lengths)[..., None, None, None]


@_padding_entry(
    "one filler token too many",
    "Your code also allows the key just after the last real token; positions count from 0, and "
    "the real ones are those below the length.",
    read=OTHER_USES,
    hides="where no sequence has filler",
    hiding_input=call(np.array([5, 5]), 5),
)
def _one_too_many(lengths, n):
    return np.arange(n) <= np.asarray(lengths)[..., None, None, None]


@_padding_entry(
    "queries hidden instead of keys",
    "Your code lays the mask along the queries: filler looks nowhere while everyone looks at "
    "filler; the last axis, the keys, is the one to hide.",
    read=OTHER_USES,
    hides="with n = 1",
    hiding_input=call(np.array([0, 1]), 1),
)
def _queries_hidden(lengths, n):
    return np.arange(n)[:, None] < np.asarray(lengths)[..., None, None, None]


@_combine_entry(
    "masks joined by or",
    "Your code allows a pair where some mask allows it, but a pair is allowed only where all "
    "masks allow it.",
    read=OTHER_USES,
    hides="where all masks are equal",
    hiding_input=call(np.tri(5, dtype=bool), np.tri(5, dtype=bool)),
)
def _joined_by_or(*masks):
    allowed = False
    for mask in masks:
        if mask is not None:
            allowed = allowed | mask
    return allowed


@_combine_entry(
    "only the last mask used",
    "Your code keeps only the last mask, and what the others hide is visible again.",
    read=OTHER_USES,
    hides="where the last mask hides all that the others hide",
    hiding_input=call(np.ones((5, 5), dtype=bool), np.tri(5, dtype=bool)),
)
def _only_the_last(*masks):
    allowed = None
    for mask in masks:
        if mask is not None:
            allowed = mask
    return allowed
