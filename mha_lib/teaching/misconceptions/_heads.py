"""Wrong versions of ``split_heads(x, n_heads)`` and ``merge_heads(x)``."""

from functools import partial

import numpy as np

from mha_lib.teaching.misconceptions._entry import (
    SPLIT,
    SPLIT_CHAPTER,
    Misconception,
    call,
    entry,
    numbers,
)

ENTRIES: list[Misconception] = []
_split_entry = partial(entry, ENTRIES, "split_heads")
_merge_entry = partial(entry, ENTRIES, "merge_heads")
_CONCATENATE = (SPLIT_CHAPTER, "Step 4: concatenate")


@_split_entry(
    "split by a bare reshape",
    "Your code reshapes straight to (h, n, d_k), which deals out the numbers in the order they "
    "lie in memory, and one head then mixes several tokens; reshape to (n, h, d_k), then swap.",
    read=SPLIT,
    hides="with one head, or one token",
    hiding_input=call(numbers(5, 6), 1),
)
def bare_split(x, n_heads):
    *leading, n, d = x.shape
    return x.reshape(*leading, n_heads, n, d // n_heads)


@_split_entry(
    "split without the swap",
    "Your code cuts the columns correctly but leaves the tokens in front; the head axis must come "
    "before the token axis, or each token attends among its own heads.",
    read=SPLIT,
    hides="with as many tokens as heads, where head i of token j equals head j of token i",
    hiding_input=call((numbers(3, 3, 2) + numbers(3, 3, 2).swapaxes(0, 1)).reshape(3, 6), 3),
)
def split_without_swap(x, n_heads):
    *leading, n, d = x.shape
    return x.reshape(*leading, n, n_heads, d // n_heads)


@_split_entry(
    "columns dealt out like cards",
    "Your code gives head i every h-th column, but a head gets d_k neighbouring columns.",
    read=SPLIT,
    hides="with one head, or with as many heads as columns",
    hiding_input=call(numbers(5, 3), 3),
)
def _columns_dealt_out(x, n_heads):
    return np.stack([x[..., i::n_heads] for i in range(n_heads)], axis=-3)


@_split_entry(
    "tokens divided among the heads",
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
    "Your code reshapes (h, n, d_k) straight to (n, d), and tokens receive each other's outputs; "
    "swap heads and tokens first.",
    read=_CONCATENATE,
    hides="with one head, or one token",
    hiding_input=call(numbers(1, 5, 6)),
)
def bare_merge(x):
    *leading, h, n, d_k = x.shape
    return x.reshape(*leading, n, h * d_k)


@_merge_entry(
    "heads put below each other",
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
    "Your code takes the mean of the heads, which throws away what makes them different; they "
    "are laid side by side, and W_O learns how to mix them.",
    read=_CONCATENATE,
    hides="with one head",
    hiding_input=call(numbers(1, 5, 6)),
)
def _heads_averaged(x):
    return x.mean(axis=-3)
