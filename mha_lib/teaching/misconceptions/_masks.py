"""Wrong versions of ``causal_mask``, ``padding_mask`` and ``combine_masks``."""

from functools import partial

import numpy as np

from mha_lib.teaching.misconceptions._entry import (
    MASKS,
    OTHER_USES,
    Misconception,
    call,
    entry,
    entry_of_part,
)

ENTRIES: list[Misconception] = []


def _not_after(key, query):
    return key <= query


def _past(n_past):
    return n_past


def _as_it_is(mask):
    return mask


def build_causal(*, allowed=_not_after, shift=_past, columns=_past, mark=_as_it_is):
    """Return a causal mask with these wrong parts."""

    def causal_mask(n, *, n_past=0):
        queries = shift(n_past) + np.arange(n)[:, None]
        keys = np.arange(columns(n_past) + n)
        return mark(allowed(keys, queries))

    return causal_mask


def build_padding(*, allowed=np.less, lay=_as_it_is, mark=_as_it_is):
    """Return a padding mask with these wrong parts."""

    def padding_mask(lengths, n):
        return mark(lay(allowed(np.arange(n), np.asarray(lengths)[..., None, None, None])))

    return padding_mask


_causal_entry = partial(entry_of_part, ENTRIES, "causal_mask", build_causal)
_padding_entry = partial(entry_of_part, ENTRIES, "padding_mask", build_padding)
_combine_entry = partial(entry, ENTRIES, "combine_masks")


@_causal_entry(
    "allowed",
    "the past hidden instead of the future",
    "Read row 1 of your mask: which keys may the first token look at?",
    "Your code allows the upper triangle, where each token looks at itself and the future; row i "
    "is a query, and it may look at what came before.",
    read=OTHER_USES,
    hides="with one token and nothing before it",
    hiding_input=call(1),
)
def _not_before(key, query):
    return key >= query


@_causal_entry(
    "mark",
    "True where the future is hidden",
    "Read row 1 of your mask: is it True where the first token may look, or where it may not?",
    "Your code finds the future, and marks it with True, as libraries do in which True means hide; "
    "here True means that a query may look at a key.",
    read=MASKS,
    hides="only without tokens: its shape is right, and its numbers never are",
    hiding_input=call(0),
    formal=True,
)
def _hidden_marked(mask):
    return ~mask


@_causal_entry(
    "allowed",
    "tokens that cannot look at themselves",
    "What may the very first token look at in your mask?",
    "Your code leaves out the diagonal: no token may look at itself, and the first may look "
    "nowhere.",
    read=OTHER_USES,
    hides="only without tokens: its shape is right, and its numbers never are",
    hiding_input=call(0),
    formal=True,
)
def _before(key, query):
    return key < query


@_causal_entry(
    "allowed",
    "one token of the future allowed",
    "May the first token look at the second in your mask?",
    "Your code also allows the key just after each query, and a token sees the one that it is to "
    "predict.",
    read=OTHER_USES,
    hides="with one token",
    hiding_input=call(1),
)
def _one_after(key, query):
    return key <= query + 1


@_causal_entry(
    "shift",
    "the keys of the past not counted",
    "Three keys were there before the first query: which column of your mask is its own?",
    "Your code counts queries from the first key, but n_past keys come before the first query, "
    "and every query may look at them.",
    read=OTHER_USES,
    hides="with n_past = 0",
    hiding_input=call(5),
)
def _no_past(n_past):
    return 0


@_causal_entry(
    "columns",
    "n_past ignored",
    "How many keys are there for two tokens after three, and how many columns has your mask?",
    "Your code ignores n_past: the mask has no columns for the n_past keys that come before the "
    "first query and that every query may look at.",
    read=OTHER_USES,
    hides="with n_past = 0",
    hiding_input=call(5),
    besides={"shift": _no_past},
)
def _no_columns_of_the_past(n_past):
    return 0


@_padding_entry(
    "mark",
    "filler marked with True",
    "Read your mask for a sequence of two real tokens: is it True for them, or for the filler?",
    "Your code is True where there is filler, but here True means that a key may be looked at, "
    "which is where the real tokens are.",
    read=MASKS,
    hides="only where sequences have no tokens at all (n = 0)",
    hiding_input=call(np.array([0, 0]), 0),
    formal=True,
)
def _filler_marked(mask):
    return ~mask


@_padding_entry(
    "allowed",
    "one filler token too many",
    "Positions count from 0: which is the position of the last real token of two?",
    "Your code also allows the key just after the last real token; positions count from 0, and "
    "the position that equals the length is filler.",
    read=OTHER_USES,
    hides="where no sequence has filler",
    hiding_input=call(np.array([5, 5]), 5),
)
def _one_too_many(position, length):
    return position <= length


@_padding_entry(
    "lay",
    "queries hidden instead of keys",
    "Which axis of your mask counts the keys: who is hidden, and who cannot look?",
    "Your code lays the mask along the queries: filler looks nowhere while everyone looks at "
    "filler; it is the keys that are to be hidden.",
    read=OTHER_USES,
    hides="with n = 1",
    hiding_input=call(np.array([0, 1]), 1),
)
def _along_the_queries(mask):
    return mask.swapaxes(-1, -2)


@_combine_entry(
    "masks joined by or",
    "One mask hides a pair and another allows it: is it allowed in your result, and should it be?",
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
    "Three masks come in: which of them can change your result?",
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


@_combine_entry(
    "only the first mask used",
    "What changes in your result when the second mask allows nothing at all?",
    "Your code keeps only the first mask, and what the others hide is visible again.",
    read=OTHER_USES,
    hides="where the first mask hides all that the others hide",
    hiding_input=call(np.tri(5, dtype=bool), np.ones((5, 5), dtype=bool)),
)
def _only_the_first(*masks):
    return next(mask for mask in masks if mask is not None)
