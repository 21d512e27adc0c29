"""Exam questions whose answers are computed, not typed in.

Each template is a function of a random generator, and makes a `Question` with other numbers or
other choices for each.  Wrong answers are those of the catalogue's wrong functions, so that who
gives one is told which idea is behind it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mha_lib import attention_cost, causal_mask, softmax
from mha_lib.learning import best_row, job_errors
from mha_lib.teaching import CATALOGUE, Misconception, measure, situations

WHOLE = "multi_head_attention"
CHAIN = ("softmax", "scaled_dot_product_attention", "split_heads", "merge_heads", WHOLE)
BY_NAME = {entry.name: entry for entry in CATALOGUE}


@dataclass(frozen=True)
class Answer:
    """One answer: its text or number, whether it is right, and what to say to who gives it."""

    value: str | float
    is_right: bool
    feedback: str = ""


@dataclass(frozen=True)
class Question:
    """One question of an exam.

    Attributes
    ----------
    name : str
        Unique in the bank.
    text : str
        Markdown, with formulas between dollar signs.
    answers : tuple of Answer
        Choices with one right one, or for a number the right one and wrong ones that are known.
    tolerance : float or None
        By how much a number may differ; None for a choice.
    why : str
        The reason, shown afterwards.
    section : str
        Where the book explains it.
    """

    name: str
    text: str
    answers: tuple[Answer, ...]
    tolerance: float | None
    why: str
    section: str

    @property
    def right(self) -> str | float:
        """The right answer."""
        return next(answer.value for answer in self.answers if answer.is_right)


def bank(seed: int = 0, n_each: int = 2) -> list[Question]:
    """Return questions from all templates.

    Parameters
    ----------
    seed : int, default 0
        Another seed gives an exam with other numbers.
    n_each : int, default 2
        Questions of each template, all different.

    Raises
    ------
    ValueError
        A template has fewer different questions than ``n_each``.

    Examples
    --------
    >>> questions = bank(seed=3)
    >>> len(questions) >= 40
    True
    """
    questions = []
    for template in TEMPLATES:
        rng = np.random.default_rng([seed, len(questions)])
        found: dict[str, Question] = {}
        for _ in range(50 * n_each):
            text, answers, tolerance, why, section = template(rng)
            name = f"{template.__name__.replace('_', ' ')} {len(found) + 1}"
            found.setdefault(text, Question(name, text, tuple(answers), tolerance, why, section))
            if len(found) == n_each:
                break
        else:
            raise ValueError(
                f"{template.__name__} has only {len(found)} different questions, not "
                f"n_each={n_each}: use n_each={len(found)}"
            )
        questions += found.values()
    return questions


# Numbers -----------------------------------------------------------------------------------------


def _number(value, tolerance=0.0, wrong=()):
    """Return a right number and the wrong ones that differ from it and from each other."""
    answers, taken = [Answer(float(value), is_right=True)], [float(value)]
    for other, sentence in wrong:
        if all(abs(other - one) > 2 * tolerance + 1e-9 for one in taken):
            answers.append(Answer(float(other), is_right=False, feedback=sentence))
            taken.append(float(other))
    return answers, tolerance


def _sizes(rng):
    """Return n, d and h, with h > 1 dividing d, all different."""
    d_k, h = int(rng.choice([8, 16, 32, 64])), int(rng.choice([4, 6, 8, 12]))
    n = int(rng.choice([50, 100, 200, 500, 1000]))
    return n, h * d_k, h


def _mistaken(step, *arguments):
    return [
        (entry.function(*arguments), entry.sentence) for entry in CATALOGUE if entry.step == step
    ]


def parameters(rng):
    """Count the numbers in the four matrices."""
    n, d, h = _sizes(rng)
    text = (
        f"A multi-head attention layer has width d = {d} and h = {h} heads of width d / h, and no "
        "biases. How many parameters does it have?"
    )
    right = attention_cost(n, d, h).parameters
    why = f"Four matrices of d by d numbers, whatever h is: $4 \\cdot {d}^2$."
    return text, *_number(right, wrong=_mistaken("count_parameters", d, h)), why, "3. Count first"


def softmax_entries(rng):
    """Count the scores that pass through the softmax."""
    n, d, h = _sizes(rng)
    text = (
        f"A layer of {h} heads lets {n} tokens look at each other, without a mask. How many scores "
        "pass through the softmax, over all heads?"
    )
    right = attention_cost(n, d, h).softmax_entries
    why = f"Each head has n rows of n scores: ${h} \\cdot {n}^2$."
    wrong = _mistaken("count_softmax_entries", n, h)
    return text, *_number(right, wrong=wrong), why, "3. What grows with h"


def head_width(rng):
    """Divide the width."""
    _, d, h = _sizes(rng)
    text = f"A layer of width {d} has {h} heads. How wide is one head?"
    wrong = [(d, "Each head gets a share of the width, not all of it.")]
    return text, *_number(d // h, wrong=wrong), f"$d_k = d / h = {d} / {h}$.", "2. The letters"


def full_width_heads(rng):
    """Say what heads of the full width would cost."""
    _, d, h = _sizes(rng)
    text = (
        f"Suppose each of {h} heads had the full width d = {d}, and $W_O$ had {h} · {d} rows. By "
        "what factor would the parameters of the layer grow, compared with heads of width d / h?"
    )
    why = "Each of the four matrices gets h times as many numbers."
    return (
        text,
        *_number(h, wrong=[(1, "That is so for heads of width d / h.")]),
        why,
        "3. Count first",
    )


def matrix_flops(rng):
    """Say what more heads do to the matrix products."""
    n, d, h = _sizes(rng)
    ratio = attention_cost(n, d, h).matmul_flops / attention_cost(n, d, 1).matmul_flops
    text = (
        f"From 1 head to {h}, with d = {d} and n = {n} as before: by what factor do the FLOPs of "
        "all matrix products together grow?"
    )
    wrong = [(h, "There are more heads, and each is that much narrower.")]
    return (
        text,
        *_number(ratio, wrong=wrong),
        "They stay the same: h heads, each 1/h as wide.",
        "3. Count first",
    )


def score_memory(rng):
    """Convert scores to memory."""
    n, d, h = _sizes(rng)
    right = attention_cost(n, d, h).score_bytes / 2**20
    text = (
        f"All scores of {h} heads for {n} tokens are held at once, as float32 numbers of 4 bytes. "
        "How many MiB ($2^{20}$ bytes) is that? Give two decimal places."
    )
    wrong = [
        (right / h, "That is one head's: each head has n rows of n scores."),
        (right / 4, "A number takes 4 bytes."),
    ]
    why = f"${h} \\cdot {n}^2 \\cdot 4 / 2^{{20}}$."
    return text, *_number(round(right, 2), 0.011, wrong), why, "3. What grows with h"


def cache(rng):
    """Say what shared keys and values save."""
    h = int(rng.choice([16, 32, 64]))
    kv = int(rng.choice([1, 2, 4, 8]))
    d = 64 * h
    whole, shared = (
        attention_cost(1, d, h, n_context=1000, n_kv_heads=heads).kv_cache_bytes
        for heads in (h, kv)
    )
    text = (
        f"A model with {h} query heads shares keys and values among them, so that only {kv} "
        f"key/value head{'s are' if kv > 1 else ' is'} kept. By what factor does its key/value "
        "cache shrink?"
    )
    wrong = [
        (kv, "That is how many heads are kept, not how many share one."),
        (h, "That is so where a single head is kept."),
        (1, "Keys and values are what the cache holds, so that fewer heads are fewer numbers."),
    ]
    return text, *_number(whole / shared, wrong=wrong), f"{h} / {kv}.", "3. Fewer keys and values"


def shared_scores(rng):
    """Say what shared keys do not save."""
    h, kv = int(rng.choice([8, 16, 32])), int(rng.choice([1, 2, 4]))
    n = int(rng.choice([100, 200, 400]))
    right = attention_cost(n, 64 * h, h, n_kv_heads=kv).softmax_entries
    text = (
        f"{h} query heads share {kv} key/value head{'s' * (kv > 1)}. How many scores pass through "
        f"the softmax for {n} tokens?"
    )
    wrong = [(kv * n * n, "Every query head still looks for itself, at shared keys.")]
    return text, *_number(right, wrong=wrong), f"${h} \\cdot {n}^2$.", "3. Fewer keys and values"


def least_errors(rng):
    """Apply the bound of chapter 1."""
    n = int(rng.choice([9, 25, 49, 64, 100, 400]))
    right = float(np.sum(job_errors(best_row(n))))
    text = (
        f"One row of weights over n = {n} tokens has two jobs: to fetch one token and to average "
        "all of them. What is the least possible sum of its two errors? Give three decimal places."
    )
    wrong = [(1 / np.sqrt(n), "That is the cosine of the two jobs; subtract it from 1.")]
    why = "$1 - 1/\\sqrt{n}$, reached by the bisector of the two jobs."
    return text, *_number(round(right, 3), 0.0011, wrong), why, "1. Why no row can"


def best_weight(rng):
    """Find the bisector's weight."""
    n = int(rng.choice([9, 25, 49, 64, 100, 400]))
    text = (
        f"The row of weights that serves fetching one token and averaging all n = {n} best, in the "
        "sum of both errors: how much weight does it put on the one token? Three decimal places."
    )
    wrong = [
        (1 / n, "That row only averages."),
        (0.5, "Work out the bisector and scale it to sum 1."),
    ]
    why = "The bisector of the two jobs, scaled to sum 1, has $1/\\sqrt{n}$ there."
    return text, *_number(round(float(best_row(n)[0]), 3), 0.0011, wrong), why, "1. Why no row can"


def one_score(rng):
    """Apply the softmax to one raised score."""
    n, ratio = int(rng.choice([5, 7, 11, 13])), int(rng.choice([2, 3, 4, 6]))
    weights = softmax(np.array([np.log(ratio)] + [0.0] * (n - 1)))
    text = (
        f"A query sees {n} keys. One has the score $\\ln {ratio}$, all others the score 0. What "
        "is the weight of the one? Give three decimal places."
    )
    wrong = [(ratio / n, "The sum is that of all powers: the others have 1 each."), (1 / ratio, "")]
    why = f"$e^{{\\ln {ratio}}} = {ratio}$, divided by {ratio} + {n - 1}."
    return (
        text,
        *_number(round(float(weights[0]), 3), 0.0011, wrong),
        why,
        "1. One row of weights, one blend",
    )


def spread_of_scores(rng):
    """Say why the scores are divided."""
    width = int(rng.choice([16, 25, 36, 64, 100, 144]))
    text = (
        f"The numbers in queries and keys are independent, with mean 0 and variance 1; a head is "
        f"{width} wide. What is the standard deviation of a score before it is divided?"
    )
    wrong = [(width, "That is the variance."), (1, "That is so after the division.")]
    why = f"A sum of {width} products of variance 1: $\\sqrt{{{width}}}$."
    return text, *_number(np.sqrt(width), 1e-6, wrong), why, "2. Step 3: attend"


def allowed_pairs(rng):
    """Count what a causal mask allows."""
    n, past = int(rng.integers(3, 9)), int(rng.integers(1, 9))
    text = (
        f"{n} new tokens are appended to {past} earlier ones, whose keys are kept. Under a causal "
        "mask, how many pairs of a new query and a key are allowed?"
    )
    wrong = [
        (n * (n + 1) // 2, "The earlier keys are allowed for every query, too."),
        (n * (past + n), "The future is hidden."),
        (n * past + n * (n - 1) // 2, "Each token may look at itself."),
    ]
    why = f"Each query sees the {past} earlier keys, itself and the new ones before it."
    return (
        text,
        *_number(causal_mask(n, n_past=past).sum(), wrong=wrong),
        why,
        "2. The same function, other uses",
    )


# Choices -----------------------------------------------------------------------------------------


def _choices(rng, right, others, said=lambda name: ""):
    names = [right, *others]
    rng.shuffle(names)
    return [Answer(name, is_right=name == right, feedback=said(name)) for name in names], None


def _pick(rng, names, count):
    return [str(name) for name in rng.choice(sorted(names), count, replace=False)]


def _effects():
    """Return what each mistake of the chain does to the whole function, by situation."""
    entries = [entry for entry in CATALOGUE if entry.step in CHAIN]
    return {
        entry.name: {s: measure(entry, s, step=WHOLE) for s in situations(WHOLE)}
        for entry in entries
    }


_KNOWN: dict[str, dict] = {}


def _known():
    if not _KNOWN:
        _KNOWN.update(_effects())
    return _KNOWN


def hidden_with_one_head(rng):
    """Find the mistake that one head does not show."""
    known = _known()
    hidden = [m for m, e in known.items() if not e["one head"].noticed and e["three heads"].noticed]
    seen = [m for m, e in known.items() if e["one head"].noticed]
    right = _pick(rng, hidden, 1)[0]
    text = (
        "Somebody tests multi-head attention with one head and compares all numbers with the right "
        "ones. Which of these mistakes does this test not see?"
    )
    why = f"With three heads, the relative error is {known[right]['three heads']}; with one, 0."
    answers = _choices(rng, right, _pick(rng, seen, 3))
    return (
        f"{text} (Choose among: {'; '.join(a.value for a in answers[0])}.)",
        *answers,
        why,
        ("6. Mistakes that keep the shape"),
    )


def what_shows_it(rng):
    """Find the input that shows a mistake."""
    known = _known()
    inputs = ["one head", "three heads", "a mask", "a context"]
    alone = {
        mistake: shows[0]
        for mistake, effects in known.items()
        if len(shows := [s for s in inputs if effects[s].noticed]) == 1
    }
    mistake = _pick(rng, alone, 1)[0]
    text = (
        f"A function for multi-head attention has this mistake: {mistake}. Which of four tests, "
        "each of which compares all numbers, sees it? (“a mask” and “a context” have three heads.)"
    )
    others = [one for one in inputs if one != alone[mistake]]
    why = BY_NAME[mistake].sentence
    return text, *_choices(rng, alone[mistake], others), why, "6. Which test sees which mistake"


def _whose_count(rng, step, arguments, described, section):
    entries = [entry for entry in CATALOGUE if entry.step == step]
    given = {entry.name: entry.function(*arguments) for entry in entries}
    unique = [name for name, count in given.items() if list(given.values()).count(count) == 1]
    right = _pick(rng, unique, 1)[0]
    others = _pick(rng, set(unique) - {right}, 3)
    text = f"{described} A student's answer is {given[right]:,}. Which mistake explains it?"
    return text, *_choices(rng, right, others), BY_NAME[right].sentence, section


def whose_parameters(rng):
    """Tell from a number which mistake made it."""
    _, d, h = _sizes(rng)
    described = f"How many parameters has a layer of width {d} with {h} heads?"
    return _whose_count(rng, "count_parameters", (d, h), described, "3. Count first")


def whose_entries(rng):
    """Tell from a number which mistake made it."""
    n, _, h = _sizes(rng)
    described = f"How many scores pass through the softmax for {n} tokens and {h} heads?"
    return _whose_count(rng, "count_softmax_entries", (n, h), described, "3. What grows with h")


def whose_weights(rng):
    """Tell from a row of weights which mistake made it."""
    scores = rng.permutation([0.0, 1.0, 2.0])
    q, k, v = np.ones((1, 1)), scores[:, None], np.eye(3)
    mask = np.array([[True, True, False]])
    rows: dict[str, str] = {}
    for entry in CATALOGUE:
        if entry.step != "scaled_dot_product_attention":
            continue
        try:
            with np.errstate(all="ignore"):  # what overflows shows in the numbers
                row = np.asarray(entry.function(q, k, v, mask=mask)[1][0], float).round(3)
        except (ValueError, TypeError, IndexError):
            continue
        rows[entry.name] = str([float(weight) for weight in row])
    right_row = str([float(w) for w in softmax(np.where(mask[0], scores, -np.inf)).round(3)])
    telling = {
        name: row
        for name, row in rows.items()
        if row != right_row and list(rows.values()).count(row) == 1
    }
    right = _pick(rng, telling, 1)[0]
    others = _pick(rng, set(telling) - {right}, min(3, len(telling) - 1))
    text = (
        f"One query has the scores {[float(s) for s in scores]} for three keys; the third key is "
        f"hidden by a mask. A student's function gives the weights {telling[right]} instead of "
        f"{right_row}. Which mistake explains it?"
    )
    return text, *_choices(rng, right, others), BY_NAME[right].sentence, "6. Mistakes with masks"


Template = Callable[[np.random.Generator], tuple]
TEMPLATES: tuple[Template, ...] = (
    parameters, softmax_entries, head_width, full_width_heads, matrix_flops, score_memory, cache,
    shared_scores, least_errors, best_weight, one_score, spread_of_scores, allowed_pairs,
    hidden_with_one_head, what_shows_it, whose_parameters, whose_entries, whose_weights,
)  # fmt: skip
__all__ = ["Answer", "Misconception", "Question", "bank"]
