"""What students hand in, right and wrong, and the check of each step."""

import functools

import numpy as np

import mha_lib
from mha_lib.teaching import (
    CATALOGUE,
    check_attention,
    check_budget,
    check_masks,
    check_merge_heads,
    check_multi_head_attention,
    check_softmax,
    check_split_heads,
    steps,
)
from mha_lib.teaching.answers import ask, complaint
from tests import reference

CHECKS = {
    "softmax": check_softmax,
    "scaled_dot_product_attention": check_attention,
    "split_heads": check_split_heads,
    "merge_heads": check_merge_heads,
    "multi_head_attention": check_multi_head_attention,
    "causal_mask": check_masks,
    "padding_mask": lambda f, **seed: check_masks(padding=f, **seed),
    "combine_masks": lambda f, **seed: check_masks(combine=f, **seed),
    "count_parameters": check_budget,
    "count_softmax_entries": lambda f, **seed: check_budget(softmax_entries=f, **seed),
}
STEPS = list(CHECKS)
BY_NAME = {entry.name: entry for entry in CATALOGUE}
SEEDS = [0, 11, 2**40]


# --- the reference solution: loops, and none of the library's functions -----------------------


def softmax(z):
    weights = np.zeros(z.shape, z.dtype)
    for index in np.ndindex(z.shape[:-1]):
        row = [float(score) for score in z[index]]
        weights[index] = reference.softmax_row(row)
    return weights


def attention(q, k, v, mask=None):
    out, weights = reference.attend_everywhere(q, k, v, mask)
    return out.astype(q.dtype), weights.astype(q.dtype)


def split_heads(x, n_heads):
    *leading, n, d = x.shape
    heads = np.empty((*leading, n_heads, n, d // n_heads), x.dtype)
    for head in range(n_heads):
        for column in range(d // n_heads):
            heads[..., head, :, column] = x[..., head * (d // n_heads) + column]
    return heads


def merge_heads(x):
    return np.concatenate([x[..., head, :, :] for head in range(x.shape[-3])], axis=-1)


def multi_head_attention(
    x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
):
    n_keys = (x if context is None else context).shape[-2]
    if mask is not None:
        mask = np.broadcast_to(mask, (*x.shape[:-2], n_heads, x.shape[-2], n_keys))
    if x.ndim > 2:
        results = [
            multi_head_attention(
                x[i], w_q, w_k, w_v, w_o, n_heads,
                context=None if context is None else context[i],
                mask=None if mask is None else mask[i],
                return_weights=True,
            )
            for i in range(len(x))
        ]  # fmt: skip
        out, weights = (np.stack(part) for part in zip(*results, strict=True))
    else:
        out, weights = reference.attend_in_heads(
            x, w_q, w_k, w_v, w_o, n_heads, context=context, mask=mask
        )
    out, weights = out.astype(x.dtype), weights.astype(x.dtype)
    return (out, weights) if return_weights else out


def causal_mask(n, *, n_past=0):
    rows = [[key <= n_past + query for key in range(n_past + n)] for query in range(n)]
    return np.array(rows, dtype=bool).reshape(n, n_past + n)


def padding_mask(lengths, n):
    mask = np.zeros((*lengths.shape, 1, 1, n), dtype=bool)
    for index in np.ndindex(lengths.shape):
        mask[index][..., : lengths[index]] = True
    return mask


def combine_masks(*masks):
    return functools.reduce(np.logical_and, [mask for mask in masks if mask is not None])


def count_parameters(d, n_heads):
    d_k = d // n_heads
    return sum(np.zeros((d, d_k)).size * 3 for _ in range(n_heads)) + np.zeros((d, d)).size


def count_softmax_entries(n, n_heads):
    return np.zeros((n_heads, n, n)).size


SOLUTION = {
    "softmax": softmax,
    "scaled_dot_product_attention": attention,
    "split_heads": split_heads,
    "merge_heads": merge_heads,
    "multi_head_attention": multi_head_attention,
    "causal_mask": causal_mask,
    "padding_mask": padding_mask,
    "combine_masks": combine_masks,
    "count_parameters": count_parameters,
    "count_softmax_entries": count_softmax_entries,
}


# --- what earns nothing -----------------------------------------------------------------------


LIBRARY = {step: getattr(mha_lib, step, None) for step in STEPS} | {
    "count_parameters": lambda d, n_heads: mha_lib.attention_cost(1, d, n_heads).parameters,
    "count_softmax_entries": lambda n, n_heads: (
        mha_lib.attention_cost(n, n_heads, n_heads).softmax_entries
    ),
}


def zeros_like_the_answer(z):
    return np.zeros(z.shape, z.dtype)


WRONG = {
    "softmax": zeros_like_the_answer,
    "scaled_dot_product_attention": lambda q, k, v, mask=None: (
        np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype),
        np.zeros((*q.shape[:-1], k.shape[-2]), q.dtype),
    ),
    "split_heads": lambda x, n: np.zeros((*x.shape[:-2], n, x.shape[-2], x.shape[-1] // n)),
    "merge_heads": lambda x: np.zeros((*x.shape[:-3], x.shape[-2], x.shape[-3] * x.shape[-1])),
    "multi_head_attention": lambda x, *w, **k: np.zeros((*x.shape[:-1], w[3].shape[1]), x.dtype),
    "causal_mask": lambda n, *, n_past=0: np.zeros((n, n + n_past), bool),
    "padding_mask": lambda lengths, n: np.zeros((*lengths.shape, 1, 1, n), bool),
    "combine_masks": lambda *masks: np.zeros((5, 5), bool),
    "count_parameters": lambda d, n_heads: 0,
    "count_softmax_entries": lambda n, n_heads: 0,
}
COMPARISONS = [
    "allclose", "array_equal", "array_equiv", "isclose", "all", "any", "isnan", "isfinite", "abs",
    "absolute", "max", "sum", "equal", "less_equal", "shape", "asarray", "array", "errstate",
    "broadcast_shapes", "where", "exp",
]  # fmt: skip


def unfinished(*args, **kwargs):
    raise NotImplementedError


def empty(*args, **kwargs):
    pass


def raising(error):
    def function(*args, **kwargs):
        raise error

    return function


def wrappers(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        return function(*args, **kwargs)

    class Callable:
        def __call__(self, *args, **kwargs):
            return function(*args, **kwargs)

    return [function, wrapper, wrapped, functools.partial(function), Callable()]


def first_message(check, function):
    return check(function).cases[0].message


def score(step, function, seed=7):
    """Return the share of the cases that are right, as a check does; without a diagnosis."""
    asked = steps.cases(step, seed)
    told = (
        complaint(ask(function, c.args, c.kwargs, c.parts), c.right, c.parts, c.axes, c.tolerance)
        for c in asked
    )
    return sum(not wrong for wrong, _ in told) / len(asked)
