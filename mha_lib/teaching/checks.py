"""Checks of a student's functions: what is right, what is wrong, and which idea is behind it.

Each check calls the student's function on inputs whose sizes differ and whose scores, masks and
dtypes leave a mistake nowhere to hide, then compares a wrong answer with the answers of
`mha_lib.teaching.misconceptions`.

All right and wrong answers for the default seed are computed when this module is imported, those
for other seeds by `prepare`, and numbers are compared one by one without NumPy.  So code that
later replaces `numpy.allclose`, `numpy.testing.assert_allclose` or a function of ``mha_lib`` gains
nothing by it.  Code in the same process can still change this module itself: no check is a
sandbox.
"""

import html
import linecache
import math
import os
import re
import sys
import traceback
import warnings

# Bound here too, so that code which replaces them gains nothing.
from builtins import abs, all, any, isinstance, len, max, range, sum, type, zip  # noqa: A004, UP029
from collections.abc import Callable
from dataclasses import dataclass
from dis import get_instructions
from functools import partial
from pathlib import Path

import numpy as np

from mha_lib import _check, activations, attention, cost, masks, multihead
from mha_lib._types import Integer
from mha_lib.teaching import misconceptions

_errstate, _ndarray, _float32, _float64 = np.errstate, np.ndarray, np.float32, np.float64
_INTEGERS, _FLOATS = (int, np.int32, np.int64), (float, _float32, _float64)
_integer, _int, _float = _check.integer, int, float
_isnan, _escape, _search = math.isnan, html.escape, re.search
_setprofile, _getprofile = sys.setprofile, sys.getprofile
_extract_tb, _source_line = traceback.extract_tb, linecache.getline
_catch_warnings, _simplefilter = warnings.catch_warnings, warnings.simplefilter

_PACKAGE = f"{Path(_check.__file__).parent}{os.sep}"
_NUMPY = f"{Path(np.__file__).parent}{os.sep}"

# Two answers are the same where they differ by less than this, relative to the larger.
_TOLERANCE = {"float64": 1e-8, "float32": 1e-3}


@dataclass(frozen=True)
class CaseResult:
    """How one case of a check went.

    Attributes
    ----------
    name : str
        What is special about the input.
    passed : bool
        Whether the answer was right.
    message : str
        What was wrong, or a remark on a right answer; empty if there is nothing to say.

    Examples
    --------
    >>> check_split_heads(lambda x, n_heads: None).cases[0].message
    'returned None: the function has no return, or returns nothing'
    """

    name: str
    passed: bool
    message: str


@dataclass(frozen=True)
class CheckResult:
    """What a check found: a mark, and what to think about.

    Attributes
    ----------
    function : str
        Name of the function that was asked for.
    score : float
        Share of the cases that were right, from 0 to 1.
    verdict : str
        ``"right"``, ``"partly right"``, ``"wrong"``, ``"blank"`` (there is nothing yet) or
        ``"not your own"`` (the library's function was called, which scores 0).
    diagnosis : str
        What the code does instead and where to read on, or what went wrong first.
    misconceptions : tuple of str
        Names of the entries of ``mha_lib.teaching.misconceptions.CATALOGUE`` that answer like this code:
        one for each mistake that was recognised, in each function that was checked.  A mistake
        for which several entries answer alike has no name here; the diagnosis gives them all.
    cases : tuple of CaseResult
        One for each input.

    Notes
    -----
    ``IPython.display.display`` also stores function, score, verdict, diagnosis, misconception and
    misconceptions as ``application/vnd.mha-lib.check+json``, for programs that read an executed
    notebook.

    Examples
    --------
    >>> result = check_split_heads(lambda x, n_heads: x.reshape(n_heads, x.shape[0], -1))
    >>> result.verdict, result.misconception
    ('wrong', 'split by a bare reshape')
    """

    function: str
    score: float
    verdict: str
    diagnosis: str
    misconceptions: tuple[str, ...]
    cases: tuple[CaseResult, ...]

    @property
    def misconception(self) -> str | None:
        """The first of the misconceptions, or None."""
        return self.misconceptions[0] if self.misconceptions else None

    def __repr__(self) -> str:
        lines = [self._headline(), *(f"  {line}" for line in self.diagnosis.splitlines())]
        for mark, names, message in self._rows():
            lines.append(f"  {mark}  {names}{': ' if message else ''}{message}")
        return "\n".join(lines)

    def _repr_html_(self):
        rows = "".join(
            f"<tr><td>{mark}</td><td>{_escape(names)}</td><td>{_escape(message)}</td></tr>"
            for mark, names, message in self._rows()
        )
        paragraphs = "".join(f"<p>{_escape(line)}</p>" for line in self.diagnosis.splitlines())
        return (
            f"<div><p><strong>{_escape(self._headline())}</strong></p>{paragraphs}"
            f"<table><thead><tr><th>result</th><th>case</th><th>what happened</th></tr></thead>"
            f"<tbody>{rows}</tbody></table></div>"
        )

    def _repr_mimebundle_(self, include=None, exclude=None):
        told = ("function", "score", "verdict", "diagnosis", "misconception")
        stored = {name: getattr(self, name) for name in told}
        return {
            "text/plain": repr(self),
            "text/html": self._repr_html_(),
            "application/vnd.mha-lib.check+json": stored
            | {"misconceptions": list(self.misconceptions)},
        }

    def _rows(self):
        """Return mark, cases and message of each row to show: what is said twice shares one."""
        shared = {}
        for case in self.cases:
            # A remark on a right answer may stand in the diagnosis already.
            told = case.passed and case.message in self.diagnosis.splitlines()
            message = "" if told else case.message
            alone = None if message else case.name
            shared.setdefault((case.passed, message, alone), []).append(case.name)
        rows = []
        for (passed, message, _), names in shared.items():
            everywhere = len(names) == len(self.cases) > 1
            where = f"in all {len(names)} cases" if everywhere else "; ".join(names)
            rows.append(("right" if passed else "wrong", where, message))
        return rows

    def _headline(self):
        n_right = sum(case.passed for case in self.cases)
        return (
            f"{self.function}: {self.verdict}, {n_right} of {len(self.cases)} cases right, "
            f"score {self.score:.2f}"
        )


def check_softmax(function: Callable, *, seed: Integer = 7) -> CheckResult:
    """Check a student's softmax along the last axis.

    Parameters
    ----------
    function : callable
        ``softmax(z)``, with ``z`` (..., T).
    seed : int, default 7
        Where the numbers of the inputs come from.

    Returns
    -------
    result : CheckResult
        With score, verdict and diagnosis.

    Raises
    ------
    TypeError
        ``seed`` is not an integer.
    ValueError
        ``seed`` is negative.
    KeyboardInterrupt
        Someone stops the function.  All that it raises itself is in the result instead.

    Examples
    --------
    >>> result = check_softmax(lambda z: np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True))
    >>> result.misconception
    'softmax without subtracting the largest score'
    """
    return _check_all([("softmax", function)], seed)


def check_attention(function: Callable, *, seed: Integer = 7) -> CheckResult:
    """Check a student's attention of one head, or of many side by side.

    Parameters
    ----------
    function : callable
        ``scaled_dot_product_attention(q, k, v, mask=None)``, which returns output and weights.
        It may call `mha_lib.softmax`.
    seed : int, default 7
        Where the numbers of the inputs come from.

    Returns
    -------
    result : CheckResult
        With score, verdict and diagnosis.

    Raises
    ------
    TypeError
        ``seed`` is not an integer.
    ValueError
        ``seed`` is negative.
    KeyboardInterrupt
        Someone stops the function.  All that it raises itself is in the result instead.

    Examples
    --------
    >>> def attention(q, k, v, mask=None):
    ...     raise NotImplementedError
    >>> result = check_attention(attention)
    >>> result.score, result.verdict
    (0.0, 'blank')
    """
    return _check_all([("scaled_dot_product_attention", function)], seed)


def check_split_heads(function: Callable, *, seed: Integer = 7) -> CheckResult:
    """Check how a student splits the width into heads.

    Parameters
    ----------
    function : callable
        ``split_heads(x, n_heads)``, with ``x`` (..., n, d).
    seed : int, default 7
        Where the numbers of the inputs come from.

    Returns
    -------
    result : CheckResult
        With score, verdict and diagnosis.

    Raises
    ------
    TypeError
        ``seed`` is not an integer.
    ValueError
        ``seed`` is negative.
    KeyboardInterrupt
        Someone stops the function.  All that it raises itself is in the result instead.

    Examples
    --------
    >>> def split(x, n_heads):
    ...     *leading, n, d = x.shape
    ...     return x.reshape(*leading, n, n_heads, d // n_heads).swapaxes(-3, -2)
    >>> check_split_heads(split)
    split_heads: right, 4 of 4 cases right, score 1.00
      Right in every case.
      right  three heads
      right  as many heads as tokens
      right  heads that divide the tokens too
      right  leading axes
    """
    return _check_all([("split_heads", function)], seed)


def check_merge_heads(function: Callable, *, seed: Integer = 7) -> CheckResult:
    """Check how a student lays the heads side by side again.

    Parameters
    ----------
    function : callable
        ``merge_heads(x)``, with ``x`` (..., h, n, d_k).
    seed : int, default 7
        Where the numbers of the inputs come from.

    Returns
    -------
    result : CheckResult
        With score, verdict and diagnosis.

    Raises
    ------
    TypeError
        ``seed`` is not an integer.
    ValueError
        ``seed`` is negative.
    KeyboardInterrupt
        Someone stops the function.  All that it raises itself is in the result instead.

    Examples
    --------
    >>> check_merge_heads(lambda x: x.mean(axis=-3)).misconception
    'heads averaged'
    """
    return _check_all([("merge_heads", function)], seed)


def check_multi_head_attention(function: Callable, *, seed: Integer = 7) -> CheckResult:
    """Check a student's multi-head attention.

    Parameters
    ----------
    function : callable
        ``multi_head_attention(x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None,
        return_weights=False)``.  It may call `mha_lib.softmax`,
        `mha_lib.scaled_dot_product_attention`, `mha_lib.split_heads` and `mha_lib.merge_heads`.
    seed : int, default 7
        Where the numbers of the inputs come from.

    Returns
    -------
    result : CheckResult
        With score, verdict and diagnosis.  A mistake in one of the steps is recognised too.

    Raises
    ------
    TypeError
        ``seed`` is not an integer.
    ValueError
        ``seed`` is negative.
    KeyboardInterrupt
        Someone stops the function.  All that it raises itself is in the result instead.

    Examples
    --------
    >>> from mha_lib import multi_head_attention
    >>> check_multi_head_attention(multi_head_attention).verdict
    'not your own'
    """
    return _check_all([("multi_head_attention", function)], seed)


def check_masks(
    causal: Callable | None = None,
    padding: Callable | None = None,
    combine: Callable | None = None,
    *,
    seed: Integer = 7,
) -> CheckResult:
    """Check a student's masks, as many of the three as there are.

    Parameters
    ----------
    causal : callable, optional
        ``causal_mask(n, *, n_past=0)``.
    padding : callable, optional
        ``padding_mask(lengths, n)``.
    combine : callable, optional
        ``combine_masks(*masks)``.
    seed : int, default 7
        Where the numbers of the inputs come from.

    Returns
    -------
    result : CheckResult
        With score, verdict and diagnosis, over the cases of all that were given.

    Raises
    ------
    TypeError
        Nothing was given to check, or ``seed`` is not an integer.
    ValueError
        ``seed`` is negative.
    KeyboardInterrupt
        Someone stops a function.  All that they raise themselves is in the result instead.

    Examples
    --------
    >>> causal = lambda n, *, n_past=0: np.triu(np.ones((n, n_past + n), bool), k=n_past)
    >>> check_masks(causal).misconception
    'the past hidden instead of the future'
    """
    given = {"causal_mask": causal, "padding_mask": padding, "combine_masks": combine}
    return _check_all(_given("check_masks", "your causal_mask, or padding=... too", given), seed)


def check_budget(
    parameters: Callable | None = None,
    softmax_entries: Callable | None = None,
    *,
    seed: Integer = 7,
) -> CheckResult:
    """Check how a student counts what a layer costs, one count or both.

    Parameters
    ----------
    parameters : callable, optional
        ``count_parameters(d, n_heads)``: the numbers in ``w_q``, ``w_k``, ``w_v`` and ``w_o``.
    softmax_entries : callable, optional
        ``count_softmax_entries(n, n_heads)``: the scores that pass through the softmax when n
        tokens look at each other.
    seed : int, default 7
        Where the sizes come from.

    Returns
    -------
    result : CheckResult
        With score, verdict and diagnosis, over the cases of all that were given.  A count that
        is off by one is wrong; a float that is a whole number gets a remark and costs nothing.

    Raises
    ------
    TypeError
        Nothing was given to check, or ``seed`` is not an integer.
    ValueError
        ``seed`` is negative.
    KeyboardInterrupt
        Someone stops a function.  All that they raise themselves is in the result instead.

    Examples
    --------
    >>> check_budget(lambda d, n_heads: 3 * d * d).misconception
    'W_O not counted'
    >>> check_budget(softmax_entries=lambda n, n_heads: n_heads * n * n).score
    1.0
    """
    given = {"count_parameters": parameters, "count_softmax_entries": softmax_entries}
    missing = "your count_parameters, or softmax_entries=... too"
    return _check_all(_given("check_budget", missing, given), seed)


def _given(name, remedy, functions):
    """Return steps and functions as pairs, without those that are None."""
    steps = [(step, function) for step, function in functions.items() if function is not None]
    if not steps:
        raise TypeError(f"{name} got no function: pass {remedy}")
    return steps


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

    Raises
    ------
    ValueError
        There is no such step.

    Examples
    --------
    >>> right_function("count_parameters")(d=6, n_heads=3)
    144
    """
    if not isinstance(step, str) or step not in _STEPS:
        raise ValueError(f"there is no step {step!r}: use one of {', '.join(_STEPS)}")
    return _STEPS[step][0]


# --- cases: inputs, right answers and the answers of the catalogue ----------------------------


@dataclass(frozen=True)
class _Answer:
    """What a call gave: arrays as plain numbers, or an error.

    ``arrays`` holds (shape, dtype, numbers); ``problem`` says what is wrong with its form.
    """

    arrays: tuple = ()
    problem: str = ""
    error: str = ""  # type and message
    error_type: str = ""
    callees: tuple = ()  # the functions on the way to one that is not written yet


@dataclass(frozen=True)
class _Case:
    """One call, its right answer, and the answers of all candidates from the catalogue."""

    name: str
    args: tuple
    kwargs: dict
    parts: tuple  # names of what is returned
    axes: tuple  # their axes in words
    tolerance: float
    right: _Answer
    wrong: tuple
    mistaken: frozenset  # which of those answers are wrong in this case


def _random(seed, *shape):
    """Return numbers that depend on the seed and the shape alone."""
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
        ("float32, scores of about 100", ((100 + random(5, 7)).astype(_float32),), {}),
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
    single = tuple(a.astype(_float32) for a in (single_q, single_k, v))
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
        ("float32", (random(3, 7, 2).astype(_float32),), {}),
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
    single = tuple(a.astype(_float32) for a in (x, *square()))
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


# The whole numbers that a call of `attention_cost` gives, each as a function of its own.


def _count_parameters(d, n_heads):
    return cost.attention_cost(1, d, n_heads).parameters if d else 0


def _count_softmax_entries(n, n_heads):
    return cost.attention_cost(n, n_heads, n_heads).softmax_entries


_COUNT = ("the count",)
_SHAPES = {  # the axes of what each step returns
    "softmax": (("weights", "the shape of z"),),
    "scaled_dot_product_attention": (
        ("out", "(..., Tq, Dv): one blend of values per query"),
        ("weights", "(..., Tq, Tk): one row per query, one column per key"),
    ),
    "split_heads": (("the result", "(..., h, n, d_k): heads in front of tokens"),),
    "merge_heads": (("the result", "(..., n, h * d_k): heads side by side"),),
    "multi_head_attention": (
        ("out", "(..., n, d_out): one row per token of x"),
        ("weights", "(..., h, Tq, Tk): one map per head"),
    ),
    "causal_mask": (("the mask", "(n, n_past + n): queries, keys"),),
    "padding_mask": (("the mask", "(..., 1, 1, n): heads, queries, keys"),),
    "combine_masks": (("the mask", "that to which all masks broadcast"),),
    "count_parameters": ((*_COUNT, "one whole number"),),
    "count_softmax_entries": ((*_COUNT, "one whole number"),),
}
_STEPS: dict[str, tuple[Callable, Callable]] = {
    "softmax": (activations.softmax, _softmax_inputs),
    "scaled_dot_product_attention": (attention.scaled_dot_product_attention, _attention_inputs),
    "split_heads": (multihead.split_heads, _split_inputs),
    "merge_heads": (multihead.merge_heads, _merge_inputs),
    "multi_head_attention": (multihead.multi_head_attention, _multi_head_inputs),
    "causal_mask": (masks.causal_mask, _causal_inputs),
    "padding_mask": (masks.padding_mask, _padding_inputs),
    "combine_masks": (masks.combine_masks, _combine_inputs),
    "count_parameters": (_count_parameters, _parameter_inputs),
    "count_softmax_entries": (_count_softmax_entries, _entry_inputs),
}
# The library's functions that a student's function may call: the steps before its own.
_ALLOWED = {
    "scaled_dot_product_attention": ["softmax"],
    "multi_head_attention": [
        "softmax", "scaled_dot_product_attention", "split_heads", "merge_heads",
        "causal_mask", "padding_mask", "combine_masks",
    ],
}  # fmt: skip
_ALLOWED_CODE = {
    step: frozenset(_STEPS[part][0].__code__ for part in _ALLOWED.get(step, [])) for step in _STEPS
}


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
    return own


# --- calling and comparing --------------------------------------------------------------------


def _copied(value):
    return value.copy() if isinstance(value, _ndarray) else value


def _bytes_of(arrays):
    return [(a.shape, a.dtype.str, a.tobytes()) for a in arrays]


def _arrays_in(args, kwargs):
    return [a for a in (*args, *kwargs.values()) if isinstance(a, _ndarray)]


def _quiet_call(function, args, kwargs):
    """Call without warnings; the mistakes that they tell of show in the numbers."""
    with _errstate(all="ignore"), _catch_warnings():
        _simplefilter("ignore")
        return function(*args, **kwargs)


def _answer(function, args, kwargs, parts):
    """Return a function's answer to copies of these arguments."""
    args = tuple(_copied(a) for a in args)
    kwargs = {name: _copied(a) for name, a in kwargs.items()}
    before = _bytes_of(_arrays_in(args, kwargs))
    try:
        value = _quiet_call(function, args, kwargs)
        answer = _read(value, parts)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit in a function too
        kind, message = type(error).__name__, _message(error)
        said = f"{kind}: {message}" if message else kind
        callees = _callees(error, function) if kind == "NotImplementedError" else ()
        if callees:
            told = f"calls {_chain(callees)}, which is not written yet"
        else:
            told = f"raised {said}{_place(error, function)}{_in_words(message)}"
        return _Answer(problem=told, error=said, error_type=kind, callees=callees)
    if _bytes_of(_arrays_in(args, kwargs)) != before:
        return _Answer(
            arrays=answer.arrays,
            problem="changed its input in place, which the caller still needs: work on a new array",
        )
    return answer


def _read(value, parts):
    """Turn what a function returned into plain numbers, or say why that is not possible."""
    if value is None:
        return _Answer(problem="returned None: the function has no return, or returns nothing")
    if value is NotImplemented or value is Ellipsis:
        return _Answer(problem=f"returned {value!r}: there is nothing here yet")
    if parts == _COUNT:
        return _read_count(value)
    if len(parts) == 1:
        values = (value,)
    elif type(value) not in (tuple, list):
        return _Answer(
            problem=f"returned {_a(value)}: it must return two arrays, {' and '.join(parts)}"
        )
    elif len(value) != len(parts):
        return _Answer(
            problem=f"returned {len(value)} values: it must return two, {' and '.join(parts)}"
        )
    else:
        values = tuple(value)
    for part, array in zip(parts, values, strict=True):
        if type(array) is not _ndarray:  # a subclass could redefine what comparing means
            return _Answer(problem=f"{part} is {_a(array)}: it must be a NumPy array")
        if array.dtype.kind not in "fiub" or array.size > 1_000_000:
            return _Answer(
                problem=f"{part} has dtype {array.dtype} and shape {array.shape}: "
                f"it must be an array of real numbers, and not a huge one"
            )
    return _Answer(arrays=tuple((a.shape, str(a.dtype), _flat(a)) for a in values))


def _read_count(value):
    """Turn one whole number into an answer without axes; a float may be one too."""
    if type(value) not in _INTEGERS + _FLOATS:  # a subclass could redefine what comparing means
        return _Answer(problem=f"the count is {_a(value)}: it must be a whole number, an int")
    if not abs(value) < 1e15:  # NaN fails too
        return _Answer(problem="the count is NaN, inf or huge, which no count here is")
    if type(value) in _INTEGERS:
        return _Answer(arrays=(((), "int", (_int(value),)),))
    return _Answer(arrays=(((), "float", (_float(value),)),))


def _flat(array):
    return tuple(array.reshape(-1).tolist())


def _a(value):
    """Return what kind of object this is, with an article."""
    name = type(value).__name__
    return f"an {name}" if name[:1] in "aeiou" or name == "ndarray" else f"a {name}"


def _message(error):
    try:
        lines = str(error).splitlines()
    except Exception:  # a student's own exception may fail to tell about itself
        lines = ["(no message)"]
    return lines[0][:300] if lines else ""


def _in_words(message):
    """Return what an error of NumPy's means, if it is one of those that everyone meets."""
    sizes = _search(r"matmul.*size (\d+) is different from (\d+)", message)
    if sizes:
        right, left = sizes.groups()
        return f" (a matrix product whose left side has {left} columns, but the right {right} rows)"
    if "unexpected keyword argument" in message:
        return " (a function on the way does not take this argument)"
    if "could not be broadcast" in message:
        return " (two arrays whose sizes do not fit each other axis by axis)"
    if "cannot reshape" in message:
        return " (the new shape does not have as many numbers as the old one)"
    if "truth value of an array" in message:
        return " (to ask whether an argument was given, test with `is not None`)"
    if "cannot be interpreted as an integer" in message:
        return " (a size must be a whole number: divide sizes with //)"
    return ""


def _callees(error, function):
    """Return the names of the functions that led from a student's function to an error."""
    frames = [
        frame.name
        for frame in _extract_tb(error.__traceback__)
        if not _in_package(frame.filename) and not frame.filename.startswith(_NUMPY)
    ]
    names = [name for name in frames[1:] if not name.startswith("<")]
    # A decorator has a frame of its own, and the name of what it decorates.
    return () if not names or names[-1] == getattr(function, "__name__", "") else tuple(names)


def _chain(callees):
    return ", which calls ".join(f"`{name}`" for name in callees)


def _place(error, function):
    """Return in which line of the student's code an error arose."""
    frames = [
        frame
        for frame in _extract_tb(error.__traceback__)
        if not frame.filename.startswith(_NUMPY)
        and (frame.filename == misconceptions.__file__ or not _in_package(frame.filename))
        and not frame.filename.startswith("<frozen")
    ]
    if not frames:
        return ""
    own = getattr(getattr(function, "__code__", None), "co_filename", None)
    frame = ([f for f in frames if f.filename == own] or frames)[-1]
    text = _source_line(frame.filename, frame.lineno).strip()
    return f", in line {frame.lineno}" + (f": {text}" if text else "")


def _in_package(filename):
    return filename.startswith(_PACKAGE)


def _same_numbers(left, right, tolerance):
    """Compare numbers, NaN equal to NaN; relative to the largest finite one of the right."""
    finite = [abs(b) for b in right if b - b == 0]
    scale = max(finite, default=0.0)
    bound = tolerance * max(scale, 1e-3)
    for a, b in zip(left, right, strict=True):
        if a == b or (_isnan(a) and _isnan(b)):
            continue
        if not abs(a - b) <= bound:  # NaN fails too
            return False
    return True


def _same(left, right, tolerance):
    """Return whether two answers are equal in shape and numbers."""
    return (
        len(left.arrays) == len(right.arrays) > 0
        and not left.error
        and not right.error
        and all(
            a_shape == b_shape and _same_numbers(a, b, tolerance)
            for (a_shape, _, a), (b_shape, _, b) in zip(left.arrays, right.arrays, strict=True)
        )
    )


def _matches(answer, candidate, tolerance):
    """Return 2 for the same numbers or error, 1 for an error of the same type, else 0."""
    if answer.error and candidate.error:
        return 2 if answer.error == candidate.error else int(
            answer.error_type == candidate.error_type
        )  # fmt: skip
    return 2 if _same(answer, candidate, tolerance) else 0


def _complaint(answer, case):
    """Return what is wrong with an answer, "" if nothing is, and a remark."""
    if answer.problem:
        return answer.problem, ""
    remark = ""
    right = case.right.arrays
    for part, axes, given, expected in zip(
        case.parts, case.axes, answer.arrays, right, strict=True
    ):
        (shape, dtype, numbers), (right_shape, right_dtype, right_numbers) = given, expected
        if shape != right_shape:
            return f"{part} has shape {shape}, but should have {right_shape}, {axes}", ""
        if case.parts == _COUNT:
            if numbers != right_numbers:
                return f"the count is {numbers[0]}, but should be {right_numbers[0]}", ""
            if dtype == "float":
                remark = "a remark, at no cost: this is a float; // divides whole numbers exactly"
            continue
        if dtype != right_dtype:
            if (dtype, right_dtype) != ("float64", "float32"):
                return f"{part} has dtype {dtype}, but should have {right_dtype}", ""
            remark = (
                "a remark, at no cost: float32 came in and float64 came out, as happens "
                "when dividing by np.sqrt(d_k), a float64 number; float(np.sqrt(d_k)) avoids it"
            )
        wrong = _wrong_numbers(part, shape, numbers, right_numbers, case)
        if wrong:
            return wrong, ""
    return "", remark


def _wrong_numbers(part, shape, numbers, right_numbers, case):
    """Return in words how these numbers differ from the right ones of the same shape."""
    if _same_numbers(numbers, right_numbers, case.tolerance):
        return ""
    n_nan = sum(_isnan(number) for number in numbers)
    if n_nan:
        return (
            f"{part} holds NaN in {n_nan} of its {len(numbers)} numbers, "
            f"which is what inf / inf and 0 / 0 give"
        )
    if any(isinstance(number, bool) for number in right_numbers):
        n_wrong = sum(a != b for a, b in zip(numbers, right_numbers, strict=True))
        return f"{part} is wrong in {n_wrong} of its {len(numbers)} entries"
    width = shape[-1]
    if "weights" in part and width:
        starts = range(0, len(numbers), width)
        sums = [sum(numbers[i : i + width]) for i in starts]
        right_sums = [sum(right_numbers[i : i + width]) for i in starts]
        off = [(a, b) for a, b in zip(sums, right_sums, strict=True) if not abs(a - b) < 1e-3]
        if off:
            return (
                f"a row of {part} sums to {off[0][0]:.3g}, but should sum to {off[0][1]:.3g}"
                + ("" if off[0][1] > 0.5 else ", since its query may look nowhere")
            )  # fmt: skip
    difference = max(abs(a - b) for a, b in zip(numbers, right_numbers, strict=True))
    return f"{part} has the right shape, but numbers that are off by up to {difference:.3g}"


# --- the library's own function, handed in as an answer ---------------------------------------

# Wrong on purpose, so that whoever hands them in gets the marks that they deserve.
_CATALOGUE_CODE = frozenset(entry.function.__code__ for entry in misconceptions.CATALOGUE)


def _is_library(code):
    return _in_package(code.co_filename) and code.co_filename != __file__


def _is_catalogue(code):
    return code in _CATALOGUE_CODE or (
        code.co_filename == misconceptions.__file__ and code.co_qualname.startswith("built_with.")
    )


class _Watch:
    """Note, while it is entered, whether code from outside runs a forbidden library function.

    What happens is watched, not what the function is called, so that a wrapper changes nothing.
    """

    def __init__(self, step):
        self.allowed = _ALLOWED_CODE[step]
        self.seen = ""  # what was done that earns nothing

    def __enter__(self):
        self.previous = _getprofile()
        _setprofile(self._see)
        return self

    def __exit__(self, *_):
        if _getprofile() != self._see:
            self.seen = "This replaces Python's profile function, by which the check watches."
        _setprofile(self.previous)

    def _see(self, frame, event, _):
        code = frame.f_code
        if event != "call" or not _is_library(code) or code in self.allowed or _is_catalogue(code):
            return
        caller = frame.f_back
        if caller is None or not _is_library(caller.f_code):
            self.seen = f"This calls {code.co_name} of mha_lib, which does the work for you."


# --- the verdict ------------------------------------------------------------------------------


def _cases(step, seed):
    """Return the cases of one step, with all answers that need no student."""
    function, make_inputs = _STEPS[step]
    cases = []
    for name, args, kwargs in make_inputs(seed):
        shown = _SHAPES[step]
        if step == "multi_head_attention" and "return_weights" not in kwargs:
            shown = shown[:1]
        parts, axes = zip(*shown, strict=True)
        right = _answer(function, args, kwargs, parts)
        wrong = tuple(_answer(f, args, kwargs, parts) for _, f in _CANDIDATES[step])
        tolerance = _TOLERANCE["float32" if "float32" in name else "float64"]
        mistaken = frozenset(
            j for j, answer in enumerate(wrong) if not _same(answer, right, tolerance)
        )
        cases.append(_Case(name, args, kwargs, parts, axes, tolerance, right, wrong, mistaken))
    return tuple(cases)


_CANDIDATES = {step: tuple(_candidates(step)) for step in _STEPS}
_PREPARED: dict[int, dict] = {}  # cases by step, for each seed that was asked for


def prepare(seed: Integer = 7) -> int:
    """Compute inputs and all answers of the checks with this seed, ahead of any student's code.

    A check does this by itself when it meets a new seed.  Then it is as good as NumPy and
    ``mha_lib`` are at that moment; whoever grades the code of others calls this first.

    Parameters
    ----------
    seed : int, default 7
        The ``seed`` that the checks are going to be called with.

    Returns
    -------
    seed : int
        The same seed.

    Raises
    ------
    TypeError
        ``seed`` is not an integer.
    ValueError
        ``seed`` is negative.

    Examples
    --------
    >>> prepare(11)
    11
    """
    seed = _integer("seed", seed, minimum=0)
    if seed not in _PREPARED:
        _PREPARED[seed] = {step: _cases(step, seed) for step in _STEPS}
    return seed


prepare()


def _check_all(steps, seed):
    """Check functions, given by the step that each is meant to do, and sum up."""
    prepared = _PREPARED[prepare(seed)]
    found = [_check_step(step, function, prepared[step]) for step, function in steps]
    cases = [case for part in found for case in part.cases]
    n_right = sum(case.passed for case in cases)
    verdicts = [part.verdict for part in found]
    if len(set(verdicts)) == 1:
        verdict = verdicts[0]
    elif "not your own" in verdicts:
        verdict = "not your own"
    else:
        verdict = "partly right" if n_right else "wrong"
    texts = [
        part.text if len(steps) == 1 else f"{step}: {part.text}"
        for (step, _), part in zip(steps, found, strict=True)
    ]
    remarks = [remark for part in found for remark in part.remarks]
    return CheckResult(
        function=", ".join(step for step, _ in steps),
        score=n_right / len(cases),
        verdict=verdict,
        diagnosis="\n".join([*texts, *dict.fromkeys(remarks)]),
        misconceptions=tuple(dict.fromkeys(name for part in found for name in part.names)),
        cases=tuple(cases),
    )


@dataclass(frozen=True)
class _Finding:
    """What there is to say of one function."""

    cases: list
    verdict: str
    text: str
    names: tuple = ()  # of the misconceptions
    remarks: tuple = ()  # on a function that is right


def _check_step(step, function, cases):
    """Return what there is to say of a function that is meant to do this step."""
    if not callable(function):
        text = f"this is {_a(function)}, not a function: pass the function itself, without ()"
        return _Finding(_all_wrong(cases, text), "wrong", text)
    answers = []
    with _Watch(step) as watch:
        for case in cases:
            answers.append(_answer(function, case.args, case.kwargs, case.parts))
    if watch.seen:
        text = f"{watch.seen} Writing {step} yourself is the exercise, and so it earns nothing."
        return _Finding(_all_wrong(cases, "not your own work"), "not your own", text)

    results, remarks = [], []
    for case, answer in zip(cases, answers, strict=True):
        complaint, remark = _complaint(answer, case)
        results.append(CaseResult(case.name, not complaint, complaint or remark))
        if remark:
            remarks.append(remark)
    if all(result.passed for result in results):
        return _Finding(results, "right", "Right in every case.", remarks=tuple(remarks))
    if all(_is_nothing(answer) for answer in answers):
        return _Finding(results, *_why_nothing(step, function, answers))
    names, text = _diagnosis(step, cases, answers, results)
    verdict = "partly right" if any(result.passed for result in results) else "wrong"
    return _Finding(results, verdict, text, names)


def _all_wrong(cases, message):
    return [CaseResult(case.name, False, message) for case in cases]


# --- nothing came back ------------------------------------------------------------------------


def _returns_nothing():
    pass


def _raises_a_type():
    raise NotImplementedError


def _raises_an_error():
    raise NotImplementedError()


def _raises_with_a_text():
    raise NotImplementedError("")


def _instructions(code):
    """Return what a function does, whatever its constants and its version of Python."""
    return tuple(one.opname for one in get_instructions(code)), code.co_names


_STUBS = frozenset(
    _instructions(stub.__code__)
    for stub in (_returns_nothing, _raises_a_type, _raises_an_error, _raises_with_a_text)
)


def _is_nothing(answer):
    return answer.error_type == "NotImplementedError" or answer.problem.startswith(
        ("returned None", "returned NotImplemented", "returned Ellipsis")
    )  # fmt: skip


def _why_nothing(step, function, answers):
    """Return verdict and text for a function from which nothing comes back in any case."""
    callees = next((answer.callees for answer in answers if answer.callees), ())
    if callees:
        may_use = callees[0] in _ALLOWED.get(step, ())
        remedy = f"; use `mha_lib.{callees[0]}` here" if may_use else ""
        return "wrong", f"Your function calls {_chain(callees)}, which is not written yet{remedy}."
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    if code is not None and _instructions(code) not in _STUBS:
        if any(answer.error for answer in answers):
            return "wrong", (
                "Your function does something and then raises NotImplementedError all the same: "
                "delete that line."
            )
        if any(answer.problem.startswith("returned None") for answer in answers):
            return "wrong", (
                "Your function computes something but returns nothing: is `return` missing?"
            )
    return "blank", "There is nothing here yet: the function returns nothing, or says so itself."


# --- which misconceptions ---------------------------------------------------------------------


def _is_mistaken(answer, case):
    """Return whether an answer has numbers, but not the right ones."""
    return bool(answer.arrays) and not _same(answer, case.right, case.tolerance)


@dataclass(frozen=True)
class _Likeness:
    """How an entry of the catalogue compares with a student's answers.

    ``match`` has the result of `_matches` for each case, and ``explained`` holds the wrong cases
    in which entry and student are wrong alike.
    """

    entry: misconceptions.Misconception
    match: tuple
    explained: frozenset
    contradicted: bool  # by a right answer where the entry is wrong


def _likenesses(step, cases, answers, failed):
    """Compare a student's answers with those of all candidates."""
    found = []
    for j, (entry, _) in enumerate(_CANDIDATES[step]):
        match = tuple(
            _matches(answer, case.wrong[j], case.tolerance)
            for answer, case in zip(answers, cases, strict=True)
        )
        mistaken = [i for i, case in enumerate(cases) if j in case.mistaken]
        explained = frozenset(i for i in mistaken if i in failed and match[i])
        contradicted = any(i not in failed for i in mistaken)
        found.append(_Likeness(entry, match, explained, contradicted))
    return found


def _most_alike(likenesses, left, open_cases, wrong_numbers):
    """Return the candidates that explain the same of the wrong cases that are left, and best.

    What is not open is explained already.  Equal wrong numbers are no accident.  What failed in
    its own way, as where an argument is not there yet or the dtype is wrong, says nothing for or
    against an idea.
    """
    best, best_rank = [], (0, 0)
    for likeness in likenesses:
        explained = likeness.explained & left
        telling = explained | (wrong_numbers & left)
        if 3 * len(explained) < len(telling) or all(likeness.match[i] < 2 for i in explained):
            continue
        rank = (
            sum(likeness.match[i] > 0 for i in open_cases),
            sum(likeness.match[i] for i in open_cases),
        )
        if rank > best_rank:
            best, best_rank = [likeness], rank
        elif rank == best_rank:
            best.append(likeness)
    # Equally good, but for other cases: that is another mistake, and its turn comes.
    return [one for one in best if one.explained & left == best[0].explained & left]


def _mistakes(step, cases, answers, failed):
    """Return one list of candidates for each mistake: those that explain the same cases alike."""
    likenesses = _likenesses(step, cases, answers, failed)
    wrong_numbers = frozenset(i for i in failed if _is_mistaken(answers[i], cases[i]))
    left, found = frozenset(failed), []
    while left:
        open_cases = [i for i in range(len(cases)) if i in left or i not in failed]
        best = _most_alike(likenesses, left, open_cases, wrong_numbers)
        if not best:
            break
        found.append(best)
        left -= best[0].explained
        # Beside another mistake, only what fits all that is right is believed.
        likenesses = [one for one in likenesses if not one.contradicted]
    return found


_NUMBER_WORDS = {2: "Two", 3: "Three"}


def _diagnosis(step, cases, answers, results):
    """Return the names of the misconceptions behind these answers, and what to say of them."""
    failed = [i for i, result in enumerate(results) if not result.passed]
    mistakes = _mistakes(step, cases, answers, failed)
    if not mistakes:
        first = results[failed[0]]
        return (), f"In the case '{first.name}': {first.message}."
    lines = []
    if len(mistakes) > 1:
        count = _NUMBER_WORDS.get(len(mistakes), str(len(mistakes)))
        lines.append(f"{count} things are wrong or missing, each in cases of its own:")
    for alike in mistakes:
        if len(alike) > 1:
            lines.append(f"One of these {len(alike)} it is; from outside they look the same.")
        for entry in (likeness.entry for likeness in alike):
            where = "" if entry.step == step else f"In the step {entry.step}: "
            hides = "" if entry.formal else f" The mistake is invisible {entry.hides}."
            lines += [f"{where}{entry.sentence}", f"Read on in {entry.where}.{hides}"]
    explained = frozenset().union(*(alike[0].explained for alike in mistakes))
    unlike = [results[i] for i in failed if i not in explained]
    if unlike:
        lines += [
            f"This explains {len(explained)} of {len(failed)} wrong cases.",
            f"Besides, in the case '{unlike[0].name}': {unlike[0].message}.",
        ]
    return tuple(alike[0].entry.name for alike in mistakes if len(alike) == 1), "\n".join(lines)
