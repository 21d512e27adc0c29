"""The steps that a student writes: inputs of their cases, right answers, and wrong candidates.

The sizes of the inputs differ, and their scores, masks and dtypes are such that every mistake of
the catalogue shows in some case.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from mha_lib import activations, attention, cost, masks, multihead
from mha_lib.teaching import misconceptions
from mha_lib.teaching.answers import COUNT, TOLERANCE, Answer, ask


@dataclass(frozen=True)
class Step:
    """One function that a student writes.

    Attributes
    ----------
    right : callable
        The function that a student's answers are compared with.
    inputs : callable
        Takes a seed, and returns name, positional and keyword arguments of each case.
    returned : dict
        From the names of what is returned to their axes in words.
    allowed : tuple of str
        The functions of ``mha_lib`` that a student may call here: the steps before this one.

    Examples
    --------
    >>> STEPS["merge_heads"].returned
    {'the result': '(..., n, h * d_k): heads side by side'}
    """

    right: Callable
    inputs: Callable
    returned: dict[str, str]
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """One call, its right answer, and the answers of all candidates from the catalogue.

    Attributes
    ----------
    name : str
        What is special about the input.
    args : tuple
        The positional arguments.
    kwargs : dict
        Those by name.
    parts : tuple of str
        Names of what is returned.
    axes : tuple of str
        Its axes in words.
    tolerance : float
        Below which two answers count as the same.
    right : Answer
        The right answer.
    wrong : tuple of Answer
        Those of ``CANDIDATES``.
    mistaken : frozenset of int
        Which of those are wrong in this case.

    Examples
    --------
    >>> cases("merge_heads", seed=7)[0].name
    'three heads'
    """

    name: str
    args: tuple
    kwargs: dict
    parts: tuple[str, ...]
    axes: tuple[str, ...]
    tolerance: float
    right: Answer
    wrong: tuple[Answer, ...]
    mistaken: frozenset[int]


def right_function(step: str) -> Callable:
    """Return the function that a student's answers are compared with.

    Parameters
    ----------
    step : str
        Name of what the student writes, as in ``Misconception.step``.

    Returns
    -------
    function : callable
        That function of ``mha_lib``.  The two counts have none of their own there; here they read
        it off `mha_lib.attention_cost`.

    Examples
    --------
    >>> right_function("count_parameters")(d=6, n_heads=3)
    144
    """
    if not isinstance(step, str) or step not in STEPS:
        raise ValueError(f"there is no step {step!r}: use one of {', '.join(STEPS)}")
    return STEPS[step].right


def cases(step: str, seed: int) -> tuple[Case, ...]:
    """Return the cases of one step, with all answers that need no student.

    Parameters
    ----------
    step : str
        One of ``STEPS``.
    seed : int
        Where the numbers of the inputs come from.

    Returns
    -------
    cases : tuple of Case
        Computed when they are asked for the first time, and kept.

    Examples
    --------
    >>> [case.name for case in cases("merge_heads", seed=7)]
    ['three heads', 'as many heads as tokens', 'leading axes', 'float32']
    """
    if (step, seed) not in _CASES:
        made = STEPS[step].inputs(seed)
        _CASES[step, seed] = tuple(_case(step, name, args, kwargs) for name, args, kwargs in made)
    return _CASES[step, seed]


def _case(step, name, args, kwargs):
    returned = list(STEPS[step].returned.items())
    if step == "multi_head_attention" and "return_weights" not in kwargs:
        returned = returned[:1]
    parts, axes = zip(*returned, strict=True)
    right = ask(STEPS[step].right, args, kwargs, parts)
    wrong = tuple(ask(function, args, kwargs, parts) for _, function in CANDIDATES[step])
    tolerance = TOLERANCE["float32" if "float32" in name else "float64"]
    mistaken = frozenset(j for j, answer in enumerate(wrong) if not answer.equals(right, tolerance))
    return Case(name, args, kwargs, parts, axes, tolerance, right, wrong, mistaken)


# --- inputs -----------------------------------------------------------------------------------


def _random(seed, *shape):
    """Return numbers that depend only on the seed and the shape."""
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def _shuffled(seed, values):
    """Return these values in an order that depends on the seed."""
    return np.random.default_rng(seed).permutation(values)


def _softmax_inputs(seed):
    random = partial(_random, seed)
    below = random(3, 5) + np.array([[1e4], [0.0], [-1e4]])
    hidden = np.where(np.tri(5, 7, k=1, dtype=bool), random(5, 7), -np.inf)
    return [
        ("one row", (random(7),), {}),
        ("unequal sizes", (random(5, 7),), {}),
        ("equal sizes", (random(5, 5),), {}),
        ("leading axes", (random(2, 3, 5),), {}),
        ("scores of 10000", (1e4 + 10 * random(5, 7),), {}),
        ("rows of very different size", (below,), {}),
        ("scores of -inf", (hidden,), {}),
        ("float32, scores of about 100", ((100 + random(5, 7)).astype(np.float32),), {}),
    ]


def _attention_inputs(seed):
    random = partial(_random, seed)
    q, k, v = random(5, 3), random(7, 3), random(7, 2)
    some = np.tri(5, 7, k=1, dtype=bool)
    some[3, [0, 2]] = False
    nobody = some.copy()
    nobody[[1, 4]] = False
    batch = random(2, 3, 5, 11), random(2, 3, 7, 11), random(2, 3, 7, 13)
    # The first column adds the same number to all scores, which then lie close together.
    high_q, high_k = q.copy(), k.copy()
    high_q[:, 0] = high_k[:, 0] = 130.0
    apart = high_q * np.array([[1.0], [0.01], [-1.0], [1.0], [-1.0]])
    single_q, single_k = q.copy(), k.copy()
    single_q[:, 0] = single_k[:, 0] = 13.0
    single = tuple(a.astype(np.float32) for a in (single_q, single_k, v))
    return [
        ("unequal sizes", (q, k, v), {}),
        ("equal sizes", (random(5, 5), random(5, 5).T.copy(), 2 * random(5, 5)), {}),
        ("leading axes", batch, {}),
        ("a mask", (q, k, v), {"mask": some}),
        ("queries that may look nowhere", (q, k, v), {"mask": nobody}),
        ("a mask and leading axes", batch, {"mask": some}),
        ("scores of 10000", (high_q, high_k, v), {}),
        ("queries of very different size", (apart, high_k, v), {}),
        ("float32, scores of about 100", single, {}),
    ]


def _split_inputs(seed):
    random = partial(_random, seed)
    return [
        ("three heads", (random(5, 6), 3), {}),
        ("as many heads as tokens", (random(3, 15), 3), {}),
        ("heads that divide the tokens too", (random(6, 10), 2), {}),
        ("leading axes", (random(2, 7, 15), 5), {}),
    ]


def _merge_inputs(seed):
    random = partial(_random, seed)
    return [
        ("three heads", (random(3, 5, 2),), {}),
        ("as many heads as tokens", (random(3, 3, 5),), {}),
        ("leading axes", (random(2, 5, 7, 3),), {}),
        ("float32", (random(3, 7, 2).astype(np.float32),), {}),
    ]


def _multi_head_inputs(seed):
    random = partial(_random, seed)

    def square():
        return tuple(w.copy() for w in random(4, 6, 6))

    oblong = random(7, 6), random(7, 6)[::-1].copy(), random(7, 15), random(15, 11)
    x, batch = random(5, 6), random(2, 5, 6)
    lengths = np.array([2, 4])
    padded = np.arange(5) < lengths[:, None, None, None]
    padded = padded & np.tri(5, dtype=bool)
    causal = np.tri(5, dtype=bool)
    nobody = causal.copy()
    nobody[[0, 3]] = False
    single = tuple(a.astype(np.float32) for a in (x, *square()))
    # The first column of each head adds the same number to all scores, which then lie close.
    high_x, (high_q, high_k, *rest) = x.copy(), square()
    high_x[:, 0] = 1.0
    apart = high_x * np.array([[1.0], [-1.0], [1.0], [-1.0], [0.01]])
    for w in (high_q, high_k):
        w[:, ::2] = 0.0
        w[0, ::2] = 120.0
    return [
        ("three heads", (x, *square(), 3), {}),
        ("as many tokens as heads", (random(3, 6), *square(), 3), {}),
        ("unequal widths", (random(5, 7), *oblong, 3), {}),
        ("a batch", (batch, *square(), 2), {}),
        ("weights returned", (x, *square(), 3), {"return_weights": True}),
        ("a context", (x, *square(), 3), {"context": random(7, 6)}),
        ("a context as long as x", (x, *square(), 3), {"context": random(5, 12)[:, 6:]}),
        ("a causal mask", (x, *square(), 3), {"mask": causal}),
        ("a mask for each sequence", (batch, *square(), 3), {"mask": padded}),
        ("tokens that may look nowhere", (x, *square(), 3), {"mask": nobody}),
        ("scores of 10000", (high_x, high_q, high_k, *rest, 3), {}),
        (
            "a context, and tokens of very different size",
            (apart, high_q, high_k, *rest, 3),
            {"context": np.insert(random(7, 5), 0, 1.0, axis=1)},
        ),
        ("float32", (*single, 3), {}),
    ]


def _causal_inputs(seed):
    n, n_past = 5 + (seed - 7) % 4, 3 + (seed - 7) % 2
    return [
        (f"causal: {n} tokens", (n,), {}),
        (f"causal: one token after {n_past}", (1,), {"n_past": n_past}),
        (f"causal: {n} tokens after {n_past}", (n,), {"n_past": n_past}),
    ]


def _padding_inputs(seed):
    pairs = _shuffled(seed, np.arange(6)).reshape(2, 3)
    return [
        ("padding: some filler", (_shuffled(seed, np.arange(1, 7))[:3], 7), {}),
        ("padding: nothing real, nothing filled", (_shuffled(seed, [0, 5]), 5), {}),
        ("padding: lengths of two axes", (pairs, 5), {}),
    ]


def _combine_inputs(seed):
    random = partial(_random, seed)
    causal = np.tri(5, dtype=bool)
    padding = (np.arange(5) < np.array([2, 3]).reshape(2, 1, 1, 1)).copy()
    other = random(5, 5) > -0.5
    return [
        ("combined: two masks", (other, causal), {}),
        ("combined: three masks that broadcast", (causal, padding, other), {}),
        ("combined: with None", (causal, None, other), {}),
    ]


def _parameter_inputs(seed):
    h = _shuffled(seed, [2, 3, 5, 7])
    d_k = _shuffled(seed + 1, [11, 13, 17, 19])
    sizes = [(int(a * b), int(a)) for a, b in zip(h[:3], d_k[:3], strict=True)]
    return [(f"parameters: d = {d}, {h} heads", (d, h), {}) for d, h in sizes]


def _entry_inputs(seed):
    h = _shuffled(seed, [2, 3, 5, 7])
    n = _shuffled(seed + 1, [11, 13, 17, 19])
    sizes = [(int(b), int(a)) for a, b in zip(h[1:], n[1:], strict=True)]
    return [(f"softmax entries: {n} tokens, {h} heads", (n, h), {}) for n, h in sizes]


# --- the steps --------------------------------------------------------------------------------


# The whole numbers that a call of `attention_cost` gives, each as a function of its own.


def _count_parameters(d, n_heads):
    return cost.attention_cost(1, d, n_heads).parameters if d else 0


def _count_softmax_entries(n, n_heads):
    return cost.attention_cost(n, n_heads, n_heads).softmax_entries


_A_COUNT = dict.fromkeys(COUNT, "one whole number")
STEPS = {
    "softmax": Step(activations.softmax, _softmax_inputs, {"weights": "the shape of z"}),
    "scaled_dot_product_attention": Step(
        attention.scaled_dot_product_attention,
        _attention_inputs,
        {
            "out": "(..., Tq, Dv): one blend of values per query",
            "weights": "(..., Tq, Tk): one row per query, one column per key",
        },
        allowed=("softmax",),
    ),
    "split_heads": Step(
        multihead.split_heads,
        _split_inputs,
        {"the result": "(..., h, n, d_k): heads in front of tokens"},
    ),
    "merge_heads": Step(
        multihead.merge_heads,
        _merge_inputs,
        {"the result": "(..., n, h * d_k): heads side by side"},
    ),
    "multi_head_attention": Step(
        multihead.multi_head_attention,
        _multi_head_inputs,
        {
            "out": "(..., n, d_out): one row per token of x",
            "weights": "(..., h, Tq, Tk): one map per head",
        },
        allowed=(
            "softmax", "scaled_dot_product_attention", "split_heads", "merge_heads",
            "causal_mask", "padding_mask", "combine_masks",
        ),
    ),
    "causal_mask": Step(
        masks.causal_mask, _causal_inputs, {"the mask": "(n, n_past + n): queries, keys"}
    ),
    "padding_mask": Step(
        masks.padding_mask, _padding_inputs, {"the mask": "(..., 1, 1, n): heads, queries, keys"}
    ),
    "combine_masks": Step(
        masks.combine_masks, _combine_inputs, {"the mask": "that to which all masks broadcast"}
    ),
    "count_parameters": Step(_count_parameters, _parameter_inputs, _A_COUNT),
    "count_softmax_entries": Step(_count_softmax_entries, _entry_inputs, _A_COUNT),
}  # fmt: skip


def _candidates(step):
    """Return the functions that may answer like a wrong one, with their catalogue entries."""
    own = [(entry, entry.function) for entry in misconceptions.CATALOGUE if entry.step == step]
    covered = {entry.covers for entry, _ in own}
    for entry in misconceptions.CATALOGUE:
        if entry.name in covered:
            continue
        try:
            own.append((entry, misconceptions.built_with(entry, step)))
        except ValueError:  # no part of this step
            continue
    return tuple(own)


CANDIDATES = {step: _candidates(step) for step in STEPS}
_CASES: dict[tuple[str, int], tuple[Case, ...]] = {}
