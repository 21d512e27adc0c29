"""Checks of a student's functions: what is right, what is wrong, and which idea is behind it.

Each check calls the student's function on the inputs of `mha_lib.teaching.steps` and compares a
wrong answer with the answers of `mha_lib.teaching.misconceptions`.  All that a function raises is
in the result; only Ctrl-C still stops a check.

Whoever replaces functions of NumPy or of ``mha_lib`` in the same process changes the checks too.
The grader of the assignment undoes that; by themselves the checks are no protection.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from mha_lib import _check
from mha_lib._types import Integer
from mha_lib.teaching import answers
from mha_lib.teaching.diagnosis import Hint, diagnose, why_nothing
from mha_lib.teaching.results import N_STEPS, CaseResult, CheckResult, lines_of
from mha_lib.teaching.steps import CANDIDATES, STEPS, cases


def check_softmax(function: Callable, *, seed: Integer = 7) -> CheckResult:
    """Check a student's softmax along the last axis.

    Parameters
    ----------
    function : callable
        ``softmax(z)``, with ``z`` (..., T).
    seed : int, default 7
        Another one asks with other numbers.

    Returns
    -------
    result : CheckResult
        With score, verdict and diagnosis.

    Examples
    --------
    >>> import numpy as np
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
        Another one asks with other numbers.

    Returns
    -------
    result : CheckResult
        With score, verdict and diagnosis.

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
        Another one asks with other numbers.

    Returns
    -------
    result : CheckResult
        With score, verdict and diagnosis.

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
        Another one asks with other numbers.

    Returns
    -------
    result : CheckResult
        With score, verdict and diagnosis.

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
        Another one asks with other numbers.

    Returns
    -------
    result : CheckResult
        With score, verdict and diagnosis.  A mistake in one of the steps is recognised too.

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
        Another one asks with other numbers.

    Returns
    -------
    result : CheckResult
        With score, verdict and diagnosis, over the cases of all that were given.

    Raises
    ------
    TypeError
        Nothing was given to check.

    Examples
    --------
    >>> import numpy as np
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
        Another one asks with other sizes.

    Returns
    -------
    result : CheckResult
        With score, verdict and diagnosis, over the cases of all that were given.  A count that
        is off by one is wrong; a float that is a whole number gets a remark and costs nothing.

    Raises
    ------
    TypeError
        Nothing was given to check.

    Examples
    --------
    >>> check_budget(lambda d, n_heads: 3 * d * d).misconception
    'W_O not counted'
    >>> check_budget(softmax_entries=lambda n, n_heads: n_heads * n * n).score
    1.0
    """
    given = {"count_parameters": parameters, "count_softmax_entries": softmax_entries}
    fix = "your count_parameters, or softmax_entries=... too"
    return _check_all(_given("check_budget", fix, given), seed)


def _given(name, fix, functions):
    """Return steps and functions as pairs, without those that are None."""
    steps = [(step, function) for step, function in functions.items() if function is not None]
    if not steps:
        raise TypeError(f"{name} got no function: pass {fix}")
    return steps


def prepare(seed: Integer = 7) -> int:
    """Compute inputs and all answers of the checks with this seed, ahead of any student's code.

    A check does so by itself when it needs them.  Then they are as good as NumPy and ``mha_lib``
    are at that moment; whoever grades the code of others calls this first.

    Parameters
    ----------
    seed : int, default 7
        The ``seed`` that the checks are going to be called with.

    Returns
    -------
    seed : int
        The same seed.

    Examples
    --------
    >>> prepare(11)
    11
    """
    seed = _check.integer("seed", seed, minimum=0)
    for step in STEPS:
        for case in cases(step, seed):
            _ = case.mistaken  # which needs, and keeps, all answers
    return seed


# --- the library's own function, handed in as an answer ---------------------------------------

_PACKAGE = str(Path(__file__).parents[1] / "_")[:-1]  # ends in a separator
_MACHINERY = {__file__, answers.__file__}  # what calls the student's function
_ALLOWED_CODE = {
    name: {STEPS[part].right.__code__ for part in step.allowed} for name, step in STEPS.items()
}
# Wrong on purpose: whoever hands them in gets the marks that they deserve.
_CATALOGUE_CODE = {
    function.__code__ for candidates in CANDIDATES.values() for _, function in candidates
}


def _is_library(code):
    return code.co_filename.startswith(_PACKAGE) and code.co_filename not in _MACHINERY


class _Watch:
    """Note, while it is entered, whether code from outside runs a forbidden library function.

    What happens is watched, not what the function is called: a wrapper changes nothing.
    """

    def __init__(self, step):
        self.allowed = _ALLOWED_CODE[step] | _CATALOGUE_CODE
        self.seen = ""  # what was done that earns nothing

    def __enter__(self):
        self.previous = sys.getprofile()
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_):
        if sys.getprofile() != self._see:
            self.seen = "This replaces Python's profile function, by which the check watches."
        sys.setprofile(self.previous)

    def _see(self, frame, event, _):
        code = frame.f_code
        if event != "call" or not _is_library(code) or code in self.allowed:
            return
        caller = frame.f_back
        if caller is None or not _is_library(caller.f_code):
            self.seen = f"This calls {code.co_name} of mha_lib, which does the work for you."


# --- the verdict ------------------------------------------------------------------------------


def _check_all(steps, seed):
    """Check functions, given by the step that each is meant to do, and sum up."""
    seed = _check.integer("seed", seed, minimum=0)
    found = [_check_step(step, function, cases(step, seed)) for step, function in steps]
    results = [result for part in found for result in part.results]
    n_right = sum(result.passed for result in results)
    verdicts = [part.verdict for part in found]
    if len(set(verdicts)) == 1:
        verdict = verdicts[0]
    elif "not your own" in verdicts:
        verdict = "not your own"
    else:
        verdict = "partly right" if n_right else "wrong"
    told: list[str | Hint] = []
    for (step, _), part in zip(steps, found, strict=True):
        first, *more = part.told
        told += [first if len(steps) == 1 else _said_of(step, first), *more]
    told += dict.fromkeys(remark for part in found for remark in part.remarks)
    return CheckResult(
        function=", ".join(step for step, _ in steps),
        score=n_right / len(results),
        verdict=verdict,
        diagnosis="\n".join(lines_of(told, N_STEPS)),
        misconceptions=tuple(name for part in found for name in part.names),
        cases=tuple(results),
        unnamed=tuple(step for (step, _), part in zip(steps, found, strict=True) if part.unnamed),
        told=tuple(told),
    )


def _said_of(step, line):
    """Return the first line about a step with its name in front."""
    if isinstance(line, Hint):
        return replace(line, question=f"{step}: {line.question}")
    return f"{step}: {line}"


@dataclass(frozen=True)
class _Finding:
    """What there is to say of one function."""

    results: list[CaseResult]
    verdict: str
    told: tuple  # of texts and hints
    names: tuple = ()  # of the misconceptions
    remarks: tuple = ()  # on a function that is right
    unnamed: bool = False  # whether something is wrong that has no name


def _check_step(step, function, asked):
    """Return what there is to say of a function that is meant to do this step."""
    if not callable(function):
        kind = type(function).__name__
        text = f"this is of type {kind}, not a function: pass the function itself, without ()"
        return _Finding(_all_wrong(asked, text), "wrong", (text,))
    with _Watch(step) as watch:
        given = [answers.ask(function, case.args, case.kwargs, case.parts) for case in asked]
    # A function that runs in another process tells what was seen there.
    seen = watch.seen or getattr(function, "seen", "")
    if seen:
        text = f"{seen} Writing {step} yourself is the exercise, and so it earns nothing."
        return _Finding(_all_wrong(asked, "not your own work"), "not your own", (text,))

    told = [
        answers.complaint(answer, case.right, case.parts, case.axes, case.tolerance)
        for case, answer in zip(asked, given, strict=True)
    ]
    results = [
        CaseResult(case.name, not wrong, wrong or remark)
        for case, (wrong, remark) in zip(asked, told, strict=True)
    ]
    complaints = [wrong for wrong, _ in told]
    if not any(complaints):
        remarks = tuple(remark for _, remark in told if remark)
        return _Finding(results, "right", ("Right in every case.",), remarks=remarks)
    nothing = why_nothing(step, function, given)
    if nothing:
        verdict, text = nothing
        return _Finding(results, verdict, (text,), unnamed=verdict == "wrong")
    found = diagnose(step, asked, given, complaints)
    verdict = "wrong" if all(complaints) else "partly right"
    return _Finding(results, verdict, found.told, found.names, unnamed=not found.explains_all)


def _all_wrong(asked, message):
    return [CaseResult(case.name, False, message) for case in asked]
