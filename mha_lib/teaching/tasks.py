"""Checks of what is not a step of attention: predictions, a mended head, memory, reading heads."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from mha_lib import _check
from mha_lib._types import Integer
from mha_lib.attention import scaled_dot_product_attention
from mha_lib.cost import attention_cost
from mha_lib.masks import causal_mask
from mha_lib.multihead import multi_head_attention
from mha_lib.teaching.results import CaseResult, CheckResult

WIDTH, NARROW, WIDE = 512, 4, 256


def _ratio(count):
    one, eight = (getattr(attention_cost(128, WIDTH, h), count) for h in (1, 8))
    return eight / one


def _changed_tokens():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(5, 6))
    w_q, w_k, w_v, w_o = rng.normal(size=(4, 6, 6))
    changed = x.copy()
    changed[3] += 1.0  # the fourth token
    before, after = (
        multi_head_attention(one, w_q, w_k, w_v, w_o, 3, mask=causal_mask(5))
        for one in (x, changed)
    )
    return int((abs(after - before) > 1e-12).any(axis=-1).sum())


def _changed_numbers():
    rng = np.random.default_rng(2)
    q, k, v = rng.normal(size=(3, 2, 4, 4))  # two heads
    before, _ = scaled_dot_product_attention(q, k, v)
    for array in (q, k, v):
        array[0] = rng.normal(size=(4, 4))  # head 1
    after, _ = scaled_dot_product_attention(q, k, v)
    return int((after[1] != before[1]).sum())


def _wider_scores():
    rng = np.random.default_rng(3)
    narrow, wide = (
        np.std(np.sum(np.prod(rng.normal(size=(2, 20_000, width)), axis=0), axis=1))
        for width in (NARROW, WIDE)
    )
    return round(float(wide / narrow), 1)


# What is asked, and how it is computed.
PREDICTIONS: dict[str, tuple[str, Callable[[], float]]] = {
    "parameters": (
        f"from 1 head to 8 at d = {WIDTH}: by what factor do the parameters grow?",
        lambda: _ratio("parameters"),
    ),
    "scores": (
        f"from 1 head to 8 at d = {WIDTH}: by what factor do the softmax entries grow?",
        lambda: _ratio("softmax_entries"),
    ),
    "tokens": (
        "the fourth of five tokens changes, under a causal mask: how many outputs change?",
        _changed_tokens,
    ),
    "other head": (
        "head 1 gets other projections: how many of the 16 numbers of head 2 change?",
        _changed_numbers,
    ),
    "spread": (
        f"a head {WIDE} wide instead of {NARROW}, without the division by the root: by what factor "
        "do its scores spread more?",
        _wider_scores,
    ),
}


@dataclass(frozen=True)
class Comparison:
    """Predictions beside what was computed.

    Attributes
    ----------
    score : float
        Share of the questions for which there is a prediction, right or not.
    rows : tuple
        Question, prediction and computed number of each; the last is None where nothing was
        predicted.

    Examples
    --------
    >>> check_predictions({"parameters": 8}).rows[0][1:]
    (8, 1.0)
    """

    score: float
    rows: tuple[tuple[str, float | None, float | None], ...]

    def __repr__(self) -> str:
        return "\n".join(f"{q} You said {_said(p)}; computed: {_said(c)}" for q, p, c in self.rows)

    def _repr_html_(self):
        rows = "".join(
            f"<tr><td>{escape(question)}</td><td>{_said(guess)}</td><td>{_said(computed)}</td></tr>"
            for question, guess, computed in self.rows
        )
        return (
            "<table><thead><tr><th>question</th><th>you said</th><th>computed</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )


def check_predictions(predicted: Mapping[str, float]) -> Comparison:
    """Compare predictions with what is computed, for those who have predicted.

    Parameters
    ----------
    predicted : dict
        A number for each name of a question; None, or no entry, is no prediction.

    Returns
    -------
    comparison : Comparison
        With a score for having predicted, whatever was said.

    Examples
    --------
    >>> check_predictions({"scores": 8, "parameters": None}).score
    0.2
    """
    rows = []
    for name, (question, compute) in PREDICTIONS.items():
        guess = predicted.get(name) if isinstance(predicted, Mapping) else None
        given = _is_number(guess)
        rows.append((question, guess if given else None, compute() if given else None))
    return Comparison(sum(row[1] is not None for row in rows) / len(rows), tuple(rows))


def check_mended(function: Callable, *, seed: Integer = 7) -> CheckResult:
    """Check a causal head that somebody has mended, and do not say what is wrong with it.

    Parameters
    ----------
    function : callable
        ``mended_head(q, k, v)``, with (n, d_k), (n, d_k) and (n, d_v): each query looks at its own
        key and at those before it.  Returns (n, d_v).
    seed : int, default 7
        Another one asks with other numbers.

    Returns
    -------
    result : CheckResult
        Its score is 1 if all is right, and 0 otherwise.

    Examples
    --------
    >>> check_mended(lambda q, k, v: v).score
    0.0
    """
    rng = np.random.default_rng(_check.integer("seed", seed, minimum=0))
    asked: list[tuple[str, Callable, tuple, Any]] = []
    for n, d_k, d_v in ((1, 2, 3), (6, 2, 3), (4, 9, 2)):
        q, k = rng.normal(size=(2, n, d_k))
        v = rng.normal(size=(n, d_v))
        right, _ = scaled_dot_product_attention(q, k, v, mask=causal_mask(n))
        asked.append(("mended_head", function, (q, k, v), right))
    found = _checked("mended_head", asked)
    if seen := getattr(function, "seen", ""):
        return replace(found, score=0.0, verdict="not your own", diagnosis=seen)
    if found.score == 1 or found.verdict == "blank":
        return found
    n_right = sum(case.passed for case in found.cases)
    text = f"Right for {n_right} of {len(found.cases)} inputs: there is still a mistake."
    return replace(found, score=0.0, verdict="wrong", diagnosis=text)


def check_memory(
    score_bytes: Callable, matmul_flops: Callable, longest_text: Callable, *, seed: Integer = 7
) -> CheckResult:
    """Check counts of memory and of work.

    Parameters
    ----------
    score_bytes : callable
        ``score_bytes(n, n_heads)``: of all scores, in float32.
    matmul_flops : callable
        ``matmul_flops(n, d)``: of all matrix products of a layer.
    longest_text : callable
        ``longest_text(n_heads, n_bytes)``: the most tokens whose scores fit into so many bytes.
    seed : int, default 7
        Another one asks with other sizes.

    Returns
    -------
    result : CheckResult
        With the score over the cases of all three.

    Examples
    --------
    >>> result = check_memory(
    ...     lambda n, n_heads: 4 * n_heads * n * n, lambda n, d: 8 * n * d * d, lambda *_: 0
    ... )
    >>> round(result.score, 2)
    0.33
    """
    rng = np.random.default_rng(_check.integer("seed", seed, minimum=0))
    asked = []
    for _ in range(3):
        h = int(2 ** rng.integers(0, 5))
        n, d = (int(number) for number in rng.integers(50, 3000, size=2))
        d *= h
        cost = attention_cost(n, d, h)
        asked.append(("score_bytes", score_bytes, (n, h), cost.score_bytes))
        asked.append(("matmul_flops", matmul_flops, (n, d), cost.matmul_flops))
        room = cost.score_bytes + int(rng.integers(0, 4 * h * n))
        asked.append(("longest_text", longest_text, (h, room), n))
    return _checked("memory and work", asked)


def check_reading(
    most_looked_at: Callable, share_right: Callable, best_offset: Callable, *, seed: Integer = 7
) -> CheckResult:
    """Check how a student reads a map of attention, and its baseline.

    Parameters
    ----------
    most_looked_at : callable
        ``most_looked_at(weights)``: for each row of (n, n) the column of the largest weight, the
        diagonal apart.
    share_right : callable
        ``share_right(looked, pairs)``: of pairs (from, to), (p, 2), the share for which
        ``looked[from]`` is ``to``.
    best_offset : callable
        ``best_offset(pairs)``: the largest share of pairs with the same ``to - from``.
    seed : int, default 7
        Another one asks with other numbers.

    Returns
    -------
    result : CheckResult
        With the score over the cases of all three.

    Examples
    --------
    >>> def right(looked, pairs):
    ...     return (looked[pairs[:, 0]] == pairs[:, 1]).mean()
    >>> result = check_reading(lambda weights: weights.argmax(axis=1), right, lambda pairs: 2.0)
    >>> round(result.score, 2)
    0.33
    """
    rng = np.random.default_rng(_check.integer("seed", seed, minimum=0))
    asked: list[tuple[str, Callable, tuple, Any]] = []
    for n in (5, 8, 11):
        weights = rng.dirichlet(np.ones(n), size=n)
        weights[np.arange(0, n, 2), np.arange(0, n, 2)] += 1.0  # many heads rest on the word itself
        others = np.where(np.eye(n, dtype=bool), -1.0, weights).argmax(axis=1)
        asked.append(("most_looked_at", most_looked_at, (weights,), others))
        starts = rng.integers(0, n - 2, size=2 * n)
        pairs = np.stack([starts, starts + rng.choice([1, 1, 1, 2, 2, -1], size=2 * n)], axis=1)
        share = (others[pairs[:, 0]] == pairs[:, 1]).mean()
        asked.append(("share_right", share_right, (others, pairs), share))
        counts = np.unique(pairs[:, 1] - pairs[:, 0], return_counts=True)[1]
        asked.append(("best_offset", best_offset, (pairs,), counts.max() / len(pairs)))
    return _checked("reading a head", asked)


def _checked(what, asked):
    """Return the result of some questions: name of the function, function, arguments, answer."""
    cases, blank = [], 0
    for name, function, arguments, right in asked:
        try:
            passed, message = _same(function(*arguments), right)
        except NotImplementedError:
            passed, message, blank = False, "nothing is written yet", blank + 1
        except Exception as error:  # whatever a student's code raises
            passed, message = False, f"{type(error).__name__}: {error}"[:300]
        number = 1 + sum(case.name.startswith(name) for case in cases)
        cases.append(CaseResult(f"{name}, case {number}", passed, message))
    n_right = sum(case.passed for case in cases)
    score = n_right / len(cases)
    verdict = "right" if score == 1 else "partly right" if n_right else "wrong"
    if blank == len(cases):
        verdict, text = "blank", "There is nothing yet."
    else:
        text = "Right in every case." if score == 1 else "Look at the cases that are wrong."
    return CheckResult(what, score, verdict, text, (), tuple(cases))


def _same(given, right):
    try:
        given = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        return False, "returned no numbers"
    if given.shape != np.shape(right):
        return False, f"returned the shape {given.shape} instead of {np.shape(right)}"
    passed = np.allclose(given, right, rtol=1e-9, atol=1e-9)
    return bool(passed), "" if passed else "another number is right"


def _is_number(value):
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


def _said(number):
    return "-" if number is None else f"{number:g}"
