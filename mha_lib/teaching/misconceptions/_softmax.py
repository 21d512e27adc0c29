"""Wrong versions of ``softmax(z)``."""

from functools import partial

import numpy as np

from mha_lib.teaching.misconceptions._entry import (
    KEEP_THE_SHAPE,
    SOFTMAX_CHAPTER,
    Misconception,
    call,
    entry,
    numbers,
)

ENTRIES: list[Misconception] = []
_entry = partial(entry, ENTRIES, "softmax")
_ROW_OF_WEIGHTS = (SOFTMAX_CHAPTER, "One row of weights, one blend")


@_entry(
    "softmax without subtracting the largest score",
    "Your code takes exp of the scores as they are: a large score overflows to inf, and inf / inf "
    "is NaN; subtract the largest score of each row first, which changes no weight.",
    read=_ROW_OF_WEIGHTS,
    hides="with scores of ordinary size, up to rounding",
    hiding_input=call(numbers(5, 7)),
    exactness=1e-15,
)
def _softmax_without_shift(z):
    e = np.exp(z)
    return e / e.sum(axis=-1, keepdims=True)


@_entry(
    "softmax with one shift for all rows",
    "Your code subtracts the largest score of the whole array: in a row far below it every number "
    "underflows to 0, and 0 / 0 is NaN; each row needs its own largest score.",
    read=_ROW_OF_WEIGHTS,
    hides="while no row lies far below another, up to rounding",
    hiding_input=call(numbers(5, 7)),
    exactness=1e-15,
)
def _softmax_with_one_shift(z):
    e = np.exp(z - z.max())
    return e / e.sum(axis=-1, keepdims=True)


@_entry(
    "softmax over everything",
    "Your code divides by the sum of the whole array, and all weights together sum to 1 instead "
    "of those of each row.",
    read=_ROW_OF_WEIGHTS,
    hides="with a single row",
    hiding_input=call(numbers(7)),
)
def _softmax_over_everything(z):
    e = np.exp(z - z.max())
    return e / e.sum()


@_entry(
    "softmax along the first axis",
    "Your code sums along axis 0, which makes the columns sum to 1 instead of the rows; the "
    "weights of one query lie along the last axis.",
    read=KEEP_THE_SHAPE,
    hides="with a single row of one axis",
    hiding_input=call(numbers(7)),
)
def _softmax_along_first_axis(z):
    e = np.exp(z - z.max(axis=0))
    return e / e.sum(axis=0)


@_entry(
    "softmax without keepdims",
    "Your code lets the row sums lose their axis, and broadcasting then divides each column, "
    "instead of each row, by a sum; keepdims=True keeps the axis.",
    read=KEEP_THE_SHAPE,
    hides="with a single row of one axis; with unequal sizes it fails instead",
    hiding_input=call(numbers(7)),
)
def _softmax_without_keepdims(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1)


@_entry(
    "shares without exp",
    "Your code divides the scores by their sum and leaves out exp: weights can be negative, and "
    "change when all scores grow by the same number.",
    read=_ROW_OF_WEIGHTS,
    hides="where all scores of a row are equal, and not 0",
    hiding_input=call(np.full((5, 4), 2.0)),
)
def _shares_without_exp(z):
    return z / z.sum(axis=-1, keepdims=True)
