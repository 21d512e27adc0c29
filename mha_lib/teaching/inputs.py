"""The inputs with which the functions of a student are called.

The sizes of the inputs differ, and their scores, masks and dtypes are such that every mistake of
the catalogue shows in some case.  Some cases hide one kind of mistake, so that another shows alone:
a single head, heads of width 1, a W_O that is the identity.  Whatever can be asked for at the same
time, such as a batch and a mask, is asked for at the same time in some case.

All numbers are such that single precision on the way is precise enough.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

# Two answers are the same where they differ by less than this, relative to the larger: what single
# precision on the way costs, for scores of ordinary size, of about 100, and for larger ones.
ORDINARY, HIGH, LARGE = 1e-5, 2e-4, 3e-3


@dataclass(frozen=True)
class Input:
    """One call of a student's function.

    Attributes
    ----------
    name : str
        What is special about it.
    args : tuple
        The positional arguments.
    kwargs : dict
        Those by name.
    tolerance : float
        Below which two answers count as the same, relative to the largest number.

    Examples
    --------
    >>> INPUTS["merge_heads"](7)[0].args[0].shape
    (3, 5, 2)
    """

    name: str
    args: tuple
    kwargs: dict[str, Any] = field(default_factory=dict)
    tolerance: float = ORDINARY


def _random(seed, *shape):
    """Return numbers that depend only on the seed and the shape."""
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def _shuffled(seed, values):
    """Return these values in an order that depends on the seed."""
    return np.random.default_rng(seed).permutation(values)


def _softmax(seed):
    random = partial(_random, seed)
    below = random(5, 5) + np.array([[1e3], [0.0], [-1e3], [20.0], [-20.0]])
    hidden = np.where(np.tri(5, 7, k=1, dtype=bool), random(5, 7), -np.inf)
    single = (100 + random(5, 7)).astype(np.float32)
    return [
        Input("one row", (random(7),)),
        Input("unequal sizes", (random(5, 7),)),
        Input("equal sizes", (random(5, 5),)),
        Input("leading axes", (random(2, 3, 5),)),
        Input("scores of 1000", (1e3 + 10 * random(5, 7),), tolerance=LARGE),
        Input("rows of very different size", (below,), tolerance=LARGE),
        Input("scores of -inf", (hidden,)),
        Input("float32, scores of about 100", (single,), tolerance=HIGH),
    ]


def _attention(seed):
    random = partial(_random, seed)
    q, k, v = random(5, 3), random(7, 3), random(7, 2)
    some = np.tri(5, 7, k=1, dtype=bool)
    some[3, [0, 2]] = False
    nobody = some.copy()
    nobody[[1, 4]] = False
    batch = random(2, 3, 5, 11), random(2, 3, 7, 11), random(2, 3, 7, 13)
    narrow = random(2, 3, 5, 1), random(2, 3, 7, 1), random(2, 3, 7, 2)
    cubes = random(3, 3, 3, 3), random(3, 3, 3, 3)[::-1].copy(), 2 * random(3, 3, 3, 3)
    keys = np.arange(7) != 1 + seed % 5
    # For each head, and for each sequence; every query may look at some key, but for one.
    of_heads = np.stack([np.roll(some, i, axis=-1) for i in range(3)])
    of_heads[1, 2] = False
    of_sequences = np.arange(7) < np.array([4, 6]).reshape(2, 1, 1, 1)

    def high(number, q, k, v):
        # The first column adds the same number to all scores, which then lie close together.
        q, k = q.copy(), k.copy()
        q[..., 0] = k[..., 0] = number
        return q, k, v

    high_q, high_k, _ = high(50.0, q, k, v)
    apart = high_q * np.array([[1.0], [0.01], [-1.0], [1.0], [-1.0]])
    wide = high(50.0, random(2, 3, 5, 3), random(2, 3, 7, 3), random(2, 3, 7, 2))

    def single(*arrays):
        return tuple(a.astype(np.float32) for a in arrays)

    return [
        Input("unequal sizes", (q, k, v)),
        Input("equal sizes", (random(5, 5), random(5, 5).T.copy(), 2 * random(5, 5))),
        Input("leading axes", batch),
        Input("leading axes, all sizes equal", cubes),
        Input("a mask", (q, k, v), {"mask": some}),
        Input("queries that may look nowhere", (q, k, v), {"mask": nobody}),
        Input("a mask and leading axes", batch, {"mask": some}),
        Input("d_k = 1, and a mask of keys alone", narrow, {"mask": keys}),
        Input("large scores", (high_q, high_k, v), tolerance=LARGE),
        Input("queries of very different size", (apart, high_k, v), tolerance=LARGE),
        Input("large scores, a mask for each head", wide, {"mask": of_heads}, LARGE),
        Input("float32, scores of about 100", single(*high(13.0, q, k, v)), tolerance=HIGH),
        Input("float32, a mask for each sequence", single(*batch), {"mask": of_sequences}),
    ]


def _split(seed):
    random = partial(_random, seed)
    return [
        Input("three heads", (random(5, 6), 3)),
        Input("as many heads as tokens", (random(3, 15), 3)),
        Input("heads that divide the tokens too", (random(6, 10), 2)),
        Input("leading axes", (random(2, 7, 15), 5)),
    ]


def _merge(seed):
    random = partial(_random, seed)
    return [
        Input("three heads", (random(3, 5, 2),)),
        Input("as many heads as tokens", (random(3, 3, 5),)),
        Input("leading axes", (random(2, 5, 7, 3),)),
        Input("float32", (random(3, 7, 2).astype(np.float32),)),
    ]


def _multi_head(seed):
    random = partial(_random, seed)

    def square():
        return tuple(w.copy() for w in random(4, 6, 6))

    def oblong():
        return random(7, 6), random(7, 6)[::-1].copy(), random(7, 15), random(15, 11)

    def high(number, w_q, w_k, *rest):
        # The first column of each head, of width 2, adds the same number to all scores, which then
        # lie close together; for tokens that begin with 1.
        for w in (w_q, w_k):
            w[:, ::2] = 0.0
            w[0, ::2] = number
        return w_q, w_k, *rest

    def ones_first(*shape):
        x = random(*shape)
        x[..., 0] = 1.0
        return x

    def single(*arrays):
        return tuple(a.astype(np.float32) for a in arrays)

    x, batch, context = random(5, 6), random(2, 5, 6), random(7, 6)
    causal = np.tri(5, dtype=bool)
    padded = np.arange(5) < np.array([2, 4]).reshape(2, 1, 1, 1)
    nobody = causal.copy()
    nobody[[0, 3]] = False
    keys = np.arange(5) != 1 + seed % 3
    banded = np.tri(5, 7, k=2, dtype=bool) & ~np.tri(5, 7, k=-1, dtype=bool)
    no_query = banded.copy()
    no_query[2] = False
    of_heads = np.stack([np.roll(banded[:, :4] | (np.arange(4) == 0), i, axis=0) for i in range(3)])
    of_heads[1, 2] = False
    of_both = np.stack([np.roll(padded & causal, i, axis=-1) for i in range(3)], axis=1)[:, :, 0]
    of_both[1, 0, 3] = False
    nothing_real = np.arange(5) < np.array([0, 3]).reshape(2, 1, 1, 1)
    all_asked = {"return_weights": True}
    apart = ones_first(5, 6) * np.array([[1.0], [-1.0], [1.0], [-1.0], [0.01]])
    return [
        Input("three heads", (x, *square(), 3)),
        Input("as many tokens as heads and columns", (random(3, 9), *random(4, 9, 9), 3)),
        Input("unequal widths", (random(5, 7), *oblong(), 3)),
        Input("one head", (x, *square(), 1)),
        Input("a batch", (batch, *square(), 2)),
        Input("weights returned", (x, *square(), 3), all_asked),
        Input("a context", (x, *square(), 3), {"context": context}),
        Input(
            "a context as long as x",
            (random(3, 9), *random(4, 9, 9), 3),
            {"context": random(3, 18)[:, 9:]},
        ),
        Input("a causal mask", (x, *square(), 3), {"mask": causal}),
        Input("a mask for each sequence", (batch, *square(), 3), {"mask": padded & causal}),
        Input("tokens that may look nowhere", (x, *square(), 3), {"mask": nobody}),
        Input("heads of width 1, and a mask of keys alone", (batch, *square(), 6), {"mask": keys}),
        Input(
            "W_O the identity, a batch with contexts and a mask",
            (batch, *square()[:3], np.eye(6), 3),
            {"context": random(2, 7, 6), "mask": no_query},
        ),
        Input(
            "sequences with contexts, a mask for each head, weights returned",
            (random(3, 5, 7), *oblong(), 3),
            {"context": random(3, 4, 7), "mask": of_heads, **all_asked},
        ),
        Input("large scores", (ones_first(5, 6), *high(67.0, *square()), 3), tolerance=LARGE),
        Input(
            "a context, and tokens of very different size",
            (apart, *high(67.0, *square()), 3),
            {"context": ones_first(7, 6)},
            LARGE,
        ),
        Input(
            "large scores in a batch, a mask for each sequence and head, weights returned",
            (ones_first(2, 5, 6), *high(67.0, *square()), 3),
            {"mask": of_both, **all_asked},
            LARGE,
        ),
        Input("float32", (*single(x, *square()), 3)),
        Input(
            "float32, a batch with a sequence of nothing but filler, weights returned",
            (*single(batch, *square()), 2),
            {"mask": nothing_real, **all_asked},
        ),
        Input(
            "float32, a context, scores of about 100",
            (*single(ones_first(5, 7), *high(12.0, *oblong())), 3),
            {"context": single(ones_first(4, 7))[0]},
            HIGH,
        ),
    ]


def _causal(seed):
    n, n_past = 5 + (seed - 7) % 4, 3 + (seed - 7) % 2
    return [
        Input(f"causal: {n} tokens", (n,)),
        Input(f"causal: one token after {n_past}", (1,), {"n_past": n_past}),
        Input(f"causal: {n} tokens after {n_past}", (n,), {"n_past": n_past}),
    ]


def _padding(seed):
    pairs = _shuffled(seed, np.arange(6)).reshape(2, 3)
    return [
        Input("padding: some filler", (_shuffled(seed, np.arange(1, 7))[:3], 7)),
        Input("padding: nothing real, nothing filled", (_shuffled(seed, [0, 5]), 5)),
        Input("padding: lengths of two axes", (pairs, 5)),
    ]


def _combine(seed):
    random = partial(_random, seed)
    causal = np.tri(5, dtype=bool)
    padding = (np.arange(5) < np.array([2, 3]).reshape(2, 1, 1, 1)).copy()
    other = random(5, 5) > -0.5
    return [
        Input("combined: two masks", (other, causal)),
        Input("combined: three masks that broadcast", (causal, padding, other)),
        Input("combined: with None", (causal, None, other)),
    ]


def _parameters(seed):
    h = _shuffled(seed, [2, 3, 5, 7])
    d_k = _shuffled(seed + 1, [11, 13, 17, 19])
    sizes = [(int(a * b), int(a)) for a, b in zip(h[:3], d_k[:3], strict=True)]
    return [Input(f"parameters: d = {d}, {h} heads", (d, h)) for d, h in sizes]


def _softmax_entries(seed):
    h = _shuffled(seed, [2, 3, 5, 7])
    n = _shuffled(seed + 1, [11, 13, 17, 19])
    sizes = [(int(b), int(a)) for a, b in zip(h[1:], n[1:], strict=True)]
    return [Input(f"softmax entries: {n} tokens, {h} heads", (n, h)) for n, h in sizes]


INPUTS = {  # for each step a function of the seed
    "softmax": _softmax,
    "scaled_dot_product_attention": _attention,
    "split_heads": _split,
    "merge_heads": _merge,
    "multi_head_attention": _multi_head,
    "causal_mask": _causal,
    "padding_mask": _padding,
    "combine_masks": _combine,
    "count_parameters": _parameters,
    "count_softmax_entries": _softmax_entries,
}
