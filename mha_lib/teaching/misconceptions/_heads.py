"""Wrong versions of ``split_heads(x, n_heads)`` and ``merge_heads(x)``."""

from functools import partial

import numpy as np

from mha_lib.teaching.misconceptions._entry import (
    SPLIT,
    SPLIT_CHAPTER,
    Misconception,
    call,
    entry_of_part,
    numbers,
)

ENTRIES: list[Misconception] = []


def build_split(*, split):
    """Return the only part that a split has."""
    return split


def build_merge(*, merge):
    """Return the only part that a merge has."""
    return merge


_split_entry = partial(entry_of_part, ENTRIES, "split_heads", build_split, "split")
_merge_entry = partial(entry_of_part, ENTRIES, "merge_heads", build_merge, "merge")
_CONCATENATE = (SPLIT_CHAPTER, "Step 4: concatenate")


@_split_entry(
    "split by a bare reshape",
    "In which order does a reshape deal out the numbers of x, and whose numbers stand in the "
    "first row of head 1?",
    "Your code goes to (h, n, d_k) in one step, which deals out the numbers in the order they lie "
    "in memory, and one head then mixes several tokens; a head should hold neighbouring columns "
    "of all tokens.",
    read=SPLIT,
    hides="with one head, or one token",
    hiding_input=call(numbers(5, 6), 1),
)
def bare_split(x, n_heads):
    *leading, n, d = x.shape
    return x.reshape(*leading, n_heads, n, d // n_heads)


@_split_entry(
    "split without the swap",
    "In your result, which axis counts the heads, and which the tokens?",
    "Your code cuts the columns correctly but leaves the tokens in front; with the head axis "
    "behind the token axis, each token attends among its own heads.",
    read=SPLIT,
    hides="with as many tokens as heads, where head i of token j equals head j of token i",
    hiding_input=call((numbers(3, 3, 2) + numbers(3, 3, 2).swapaxes(0, 1)).reshape(3, 6), 3),
)
def split_without_swap(x, n_heads):
    *leading, n, d = x.shape
    return x.reshape(*leading, n, n_heads, d // n_heads)


@_split_entry(
    "columns dealt out like cards",
    "Which columns of x does head 1 get in your result, and are they neighbours?",
    "Your code gives head i every h-th column, but a head gets d_k neighbouring columns.",
    read=SPLIT,
    hides="with one head, or with as many heads as columns",
    hiding_input=call(numbers(5, 3), 3),
)
def _columns_dealt_out(x, n_heads):
    return np.stack([x[..., i::n_heads] for i in range(n_heads)], axis=-3)


@_split_entry(
    "tokens divided among the heads",
    "How many tokens does head 1 see in your result?",
    "Your code gives each head some of the tokens, but each head gets all tokens and a slice of "
    "their columns.",
    read=SPLIT,
    hides="with one head; where h does not divide n, it fails",
    hiding_input=call(numbers(5, 6), 1),
)
def _tokens_divided(x, n_heads):
    return np.stack(np.split(x, n_heads, axis=-2), axis=-3)


@_merge_entry(
    "merge without the swap",
    "In which order do the numbers of (h, n, d_k) lie in memory: is head 2 of token 1 right after "
    "head 1 of token 1?",
    "Your code goes from (h, n, d_k) to (n, d) in one step, and tokens receive each other's "
    "outputs; all heads of a token belong into its row.",
    read=_CONCATENATE,
    hides="with one head, or one token",
    hiding_input=call(numbers(1, 5, 6)),
)
def bare_merge(x):
    *leading, h, n, d_k = x.shape
    return x.reshape(*leading, n, h * d_k)


@_merge_entry(
    "heads put below each other",
    "How many rows does your result have, and how many tokens are there?",
    "Your code concatenates the heads along the tokens, which makes more tokens; they belong side "
    "by side, along the columns.",
    read=_CONCATENATE,
    hides="with one head",
    hiding_input=call(numbers(1, 5, 6)),
)
def _heads_below_each_other(x):
    return np.concatenate([x[..., i, :, :] for i in range(x.shape[-3])], axis=-2)


@_merge_entry(
    "columns of the heads interleaved",
    "Which heads do the first d_k columns of your result come from?",
    "Your code takes the first column of every head, then the second of every head, and so on; "
    "all columns of head 1 come first.",
    read=_CONCATENATE,
    hides="with one head, or with d_k = 1",
    hiding_input=call(numbers(3, 5, 1)),
)
def _columns_interleaved(x):
    *leading, h, n, d_k = x.shape
    return np.moveaxis(x, -3, -1).reshape(*leading, n, d_k * h)


@_merge_entry(
    "heads averaged",
    "How wide is your result, and can anybody still tell from it what head 2 found?",
    "Your code takes the mean of the heads, which throws away what makes them different; they "
    "are laid side by side, and W_O learns how to mix them.",
    read=_CONCATENATE,
    hides="with one head",
    hiding_input=call(numbers(1, 5, 6)),
)
def _heads_averaged(x):
    return x.mean(axis=-3)


@_merge_entry(
    "heads summed",
    "How wide is your result, and which part of it does W_O get to know of head 2 alone?",
    "Your code adds the heads up, and from a sum nobody can tell what each of them found; they are "
    "laid side by side, and W_O learns how to mix them.",
    read=_CONCATENATE,
    hides="with one head",
    hiding_input=call(numbers(1, 5, 6)),
)
def _heads_summed(x):
    return x.sum(axis=-3)
