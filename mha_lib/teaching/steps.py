"""The steps that a student writes: their cases with right answers, and wrong candidates."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

from mha_lib import activations, attention, cost, masks, multihead
from mha_lib.teaching import misconceptions
from mha_lib.teaching.answers import COUNT, Answer, compute
from mha_lib.teaching.inputs import INPUTS


@dataclass(frozen=True)
class Step:
    """One function that a student writes.

    Attributes
    ----------
    right : callable
        The function that a student's answers are compared with.
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
    returned: dict[str, str]
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """One call, its right answer, and the answers of all candidates from the catalogue.

    Attributes
    ----------
    step : str
        What is called, one of ``STEPS``.
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
    of_pairs : dict
        What `pairs` returned, by their places, as far as it was asked for.

    Notes
    -----
    ``wrong`` has the answers of ``CANDIDATES``, and ``mistaken`` their places, as far as they are
    wrong.  Both are computed when they are asked for the first time: right code needs neither.

    Examples
    --------
    >>> cases("merge_heads", seed=7)[0].name
    'three heads'
    """

    step: str
    name: str
    args: tuple
    kwargs: dict
    parts: tuple[str, ...]
    axes: tuple[str, ...]
    tolerance: float
    right: Answer
    of_pairs: dict[int, Any] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def wrong(self) -> tuple[Answer, ...]:
        """The answers of all candidates."""
        return tuple(
            compute(function, self.args, self.kwargs, self.parts)
            for _, function in CANDIDATES[self.step]
        )

    @cached_property
    def mistaken(self) -> frozenset[int]:
        """The places of the candidates that are wrong here."""
        return frozenset(
            place
            for place, answer in enumerate(self.wrong)
            if not answer.equals(self.right, self.tolerance)
        )


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
    """Return the cases of one step, with the right answers.

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
        _CASES[step, seed] = tuple(_case(step, made) for made in INPUTS[step](seed))
    return _CASES[step, seed]


def _case(step, made):
    returned = list(STEPS[step].returned.items())
    if step == "multi_head_attention" and "return_weights" not in made.kwargs:
        returned = returned[:1]
    parts, axes = zip(*returned, strict=True)
    right = compute(STEPS[step].right, made.args, made.kwargs, parts)
    return Case(step, made.name, made.args, made.kwargs, parts, axes, made.tolerance, right)


# --- the steps --------------------------------------------------------------------------------


# The whole numbers that a call of `attention_cost` gives, each as a function of its own.


def _count_parameters(d, n_heads):
    return cost.attention_cost(1, d, n_heads).parameters if d else 0


def _count_softmax_entries(n, n_heads):
    return cost.attention_cost(n, n_heads, n_heads).softmax_entries


_A_COUNT = dict.fromkeys(COUNT, "one whole number")
STEPS = {
    "softmax": Step(activations.softmax, {"weights": "the shape of z"}),
    "scaled_dot_product_attention": Step(
        attention.scaled_dot_product_attention,
        {
            "out": "(..., Tq, Dv): one blend of values per query",
            "weights": "(..., Tq, Tk): one row per query, one column per key",
        },
        allowed=("softmax",),
    ),
    "split_heads": Step(
        multihead.split_heads,
        {"the result": "(..., h, n, d_k): heads in front of tokens"},
    ),
    "merge_heads": Step(
        multihead.merge_heads,
        {"the result": "(..., n, h * d_k): heads side by side"},
    ),
    "multi_head_attention": Step(
        multihead.multi_head_attention,
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
        masks.causal_mask, {"the mask": "(n, n_past + n): queries, keys"}
    ),
    "padding_mask": Step(
        masks.padding_mask, {"the mask": "(..., 1, 1, n): heads, queries, keys"}
    ),
    "combine_masks": Step(
        masks.combine_masks, {"the mask": "that to which all masks broadcast"}
    ),
    "count_parameters": Step(_count_parameters, _A_COUNT),
    "count_softmax_entries": Step(_count_softmax_entries, _A_COUNT),
}  # fmt: skip


def _candidates(step):
    """Return the functions that may answer like a wrong one: entry, wrong parts, function."""
    entries = misconceptions.CATALOGUE
    covered = {entry.covers for entry in entries if entry.step == step}
    own = [
        (entry, parts, misconceptions.build(step, parts) if i else entry.function)
        for entry in entries
        if entry.step == step
        for i, parts in enumerate([entry.parts, *entry.variants])
    ]
    of_parts = [
        (entry, parts, misconceptions.build(step, parts))
        for entry in entries
        if entry.step in misconceptions.MADE_OF.get(step, ()) and entry.name not in covered
        for parts in (entry.parts, *entry.variants)
    ]
    return (*own, *of_parts)


def pairs(step: str) -> tuple[tuple[tuple[int, int], Callable], ...]:
    """Return functions that make two mistakes of the catalogue at once.

    Parameters
    ----------
    step : str
        One of ``STEPS``.

    Returns
    -------
    pairs : tuple
        The places of both mistakes in ``CANDIDATES``, and the function; for each two mistakes that
        are in different parts of the step.

    Examples
    --------
    >>> first, *_ = pairs("padding_mask")
    >>> [CANDIDATES["padding_mask"][j][0].name for j in first[0]]
    ['filler marked with True', 'one filler token too many']
    """
    if step not in _PAIRS:
        _PAIRS[step] = tuple(
            ((i, j), misconceptions.build(step, {**first, **second}))
            for (i, (_, first, _)), (j, (_, second, _)) in combinations(
                enumerate(_FUNCTIONS[step]), 2
            )
            if misconceptions.can_be_joined(first, second)
        )
    return _PAIRS[step]


_FUNCTIONS = {step: _candidates(step) for step in STEPS}
CANDIDATES = {
    step: tuple((entry, function) for entry, _, function in found)
    for step, found in _FUNCTIONS.items()
}
_CASES: dict[tuple[str, int], tuple[Case, ...]] = {}
_PAIRS: dict[str, tuple] = {}
