"""Wrong versions of ``softmax(z)``.

Each is `naive` with wrong parts: what is subtracted, how powers are taken, what they are divided
by.
"""

from functools import partial

import numpy as np

from mha_lib.teaching.misconceptions._entry import (
    KEEP_THE_SHAPE,
    SOFTMAX_CHAPTER,
    Misconception,
    call,
    entry_of_part,
    numbers,
)

ENTRIES: list[Misconception] = []
PARTS = ("shift", "powers", "total")
_ROW_OF_WEIGHTS = (SOFTMAX_CHAPTER, "One row of weights, one blend")


def naive(z, *, shift=None, powers=np.exp, total=None):
    """Compute the softmax as people write it first: right but for rows of nothing but -inf."""
    e = powers(z - (_largest(z) if shift is None else shift(z)))
    return e / (e.sum(axis=-1, keepdims=True) if total is None else total(e))


def _largest(z):
    return z.max(axis=-1, keepdims=True)


def build(*, softmax=naive, **parts):
    """Return a softmax with these wrong parts."""
    wrong = partial(softmax, **parts)

    def softmax(z):
        return wrong(z)

    return softmax


_entry = partial(entry_of_part, ENTRIES, "softmax", build)


@_entry(
    "shift",
    "softmax without subtracting the largest score",
    "What is exp of 1000 on a computer, and which number can all scores of a row lose without "
    "changing its weights?",
    "Your code takes exp of the scores as they are: a large score overflows to inf, and inf / inf "
    "is NaN, although a row's weights depend only on how far its scores lie apart.",
    read=_ROW_OF_WEIGHTS,
    hides="with scores of ordinary size, up to rounding",
    hiding_input=call(numbers(5, 7)),
    exactness=1e-15,
    variants=({"shift": lambda z: np.zeros(())},),  # float64, where nothing of 100 overflows
)
def _no_shift(z):
    return np.zeros((), z.dtype)


@_entry(
    "shift",
    "softmax with one shift for all rows",
    "One row has scores around 1000 and another around -1000: what is left of the second one after "
    "what you subtract?",
    "Your code subtracts the same number from the whole array: in a row far below the others every "
    "power underflows to 0, and 0 / 0 is NaN; rows do not know of each other.",
    read=_ROW_OF_WEIGHTS,
    hides="while no row lies far below another, up to rounding",
    hiding_input=call(numbers(5, 7)),
    exactness=1e-15,
)
def _one_shift(z):
    return z.max()


@_entry(
    "powers",
    "scores clipped",
    "Two scores are 800 and 900: what are they after your clipping, and do they still differ?",
    "Your code cuts large scores off at a limit: nothing overflows any more, but scores beyond it "
    "become equal, and so do their weights; the largest should win.",
    read=_ROW_OF_WEIGHTS,
    hides="while all scores lie between the limits, up to rounding",
    hiding_input=call(numbers(5, 7)),
    exactness=1e-15,
    besides={"shift": _no_shift},
    variants=(
        {"powers": lambda z: np.exp(np.clip(z, -500, 500))},
        {"powers": lambda z: np.exp(np.minimum(z, 50))},
        {"powers": lambda z: np.exp(np.minimum(z, 500))},
        {"powers": lambda z: np.exp(np.clip(z.astype(float), -500, 500))},
        {"powers": lambda z: np.exp(np.minimum(z.astype(float), 500))},
    ),
)
def _clipped(z):
    return np.exp(np.clip(z, -50, 50))


@_entry(
    "total",
    "softmax over everything",
    "What do the weights of one row sum to, and what do all weights together?",
    "Your code divides by the sum of the whole array, and all weights together sum to 1 instead "
    "of those of each row.",
    read=_ROW_OF_WEIGHTS,
    hides="with a single row",
    hiding_input=call(numbers(7)),
    besides={"shift": _one_shift},
)
def _total_of_everything(e):
    return e.sum()


@_entry(
    "total",
    "softmax along the first axis",
    "Which sums are 1 in your result, those of the rows or those of the columns?",
    "Your code sums along axis 0, which makes the columns sum to 1 instead of the rows; the "
    "weights of one query lie along the last axis.",
    read=KEEP_THE_SHAPE,
    hides="with a single row of one axis",
    hiding_input=call(numbers(7)),
    besides={"shift": lambda z: z.max(axis=0)},
)
def _total_of_first_axis(e):
    return e.sum(axis=0)


@_entry(
    "total",
    "softmax along axis 1",
    "Which axis is number 1 if z has one axis, two, or three, and along which axis do the keys "
    "lie?",
    "Your code works along axis 1, counted from the front, which is the last axis only where there "
    "are two; leading axes push the keys further back.",
    read=KEEP_THE_SHAPE,
    hides="with two axes",
    hiding_input=call(numbers(5, 7)),
    besides={"shift": lambda z: z.max(axis=1, keepdims=True)},
)
def _total_of_axis_1(e):
    return e.sum(axis=1, keepdims=True)


@_entry(
    "total",
    "softmax without keepdims",
    "Which shape do the sums of the rows have, and along which axis does broadcasting lay them?",
    "Your code lets the row sums lose their axis, and broadcasting then divides each column, "
    "instead of each row, by a sum.",
    read=KEEP_THE_SHAPE,
    hides="with a single row of one axis; with unequal sizes it fails instead",
    hiding_input=call(numbers(7)),
)
def _total_without_axis(e):
    return e.sum(axis=-1)


@_entry(
    "powers",
    "shares without exp",
    "Can a weight be negative in your result, and may the weights change when all scores of a row "
    "grow by the same number?",
    "Your code divides the scores by their sum and leaves out exp: weights can be negative, and "
    "change when all scores grow by the same number.",
    read=_ROW_OF_WEIGHTS,
    hides="where all scores of a row are equal, and not 0",
    hiding_input=call(np.full((5, 4), 2.0)),
    besides={"shift": _no_shift},
)
def _no_exp(z):
    return z


@_entry(
    "softmax",
    "softmax of each part of the first axis",
    "If z has three axes, what is z[0], and how many rows of scores does it hold?",
    "Your code goes through the first axis and takes each part for one row of scores; that is so "
    "with two axes, but with leading axes a part holds many rows, and its weights sum to 1 all "
    "together.",
    read=KEEP_THE_SHAPE,
    hides="with two axes",
    hiding_input=call(numbers(5, 7)),
)
def _each_part(z):
    return np.array([naive(part, shift=_one_shift, total=_total_of_everything) for part in z])
