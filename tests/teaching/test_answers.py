"""What a student's function returns or raises is read and told for what it is."""

import functools
import inspect
import json
import sys
import warnings

import numpy as np
import pytest

import mha_lib
from mha_lib.teaching import (
    CATALOGUE,
    check_attention,
    check_budget,
    check_masks,
    check_softmax,
    check_split_heads,
)
from mha_lib.teaching.answers import Answer, ask
from tests.teaching.students import (
    attention,
    causal_mask,
    first_message,
    raising,
    softmax,
    split_heads,
)


def test_an_exception_is_told_with_its_line():
    def broken(x, n_heads):
        parts = x.shape[-1] // n_heads
        return x.reshap(n_heads, parts)

    message = first_message(check_split_heads, broken)
    line = inspect.getsourcelines(broken)[1] + 2
    assert message.startswith("raised AttributeError: 'numpy.ndarray' object has no attribute")
    assert message.endswith(f", in line {line}: return x.reshap(n_heads, parts)")


def test_the_line_is_that_of_the_innermost_function_of_the_students():
    def cut(x, parts):
        return x.reshape(parts, -1, 5)

    def split(x, n_heads):
        return cut(x, n_heads + 1)

    assert ": return x.reshape(parts, -1, 5) (the new" in first_message(check_split_heads, split)


def test_the_line_is_the_students_even_if_the_error_arises_in_a_library():
    def refused(q, k, v, mask=None):
        return mha_lib.softmax("scores"), None

    message = first_message(check_attention, refused)
    assert message.endswith('return mha_lib.softmax("scores"), None')
    assert "TypeError: z has dtype" in message


def test_the_line_is_the_students_even_if_another_library_fails():
    def split(x, n_heads):
        return json.loads("no JSON")

    assert first_message(check_split_heads, split).endswith('return json.loads("no JSON")')


def test_the_line_is_the_students_even_if_numpy_fails_in_a_function_without_code():
    def split(x, n_heads):
        return np.split(x, 4)

    message = first_message(check_split_heads, functools.partial(split))
    assert "array split does not result in an equal division" in message
    assert message.endswith("return np.split(x, 4)")


def test_warnings_change_no_mark():
    def loud(z):
        warnings.warn("careful", stacklevel=1)
        return softmax(z)

    assert check_softmax(loud).score == 1
    entry = next(entry for entry in CATALOGUE if entry.step == "softmax")  # it overflows
    expected = check_softmax(entry.function)
    with np.errstate(all="raise"):
        assert check_softmax(entry.function) == expected


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x, n: x @ x, "a matrix product whose left side has 6 columns, but the right 5"),
        (lambda x, n: x + np.ones(7), "two arrays whose sizes do not fit"),
        (lambda x, n: x.reshape(7, 2), "the new shape does not have as many numbers"),
        (lambda x, n: x if x else n, "to ask whether an argument was given, test with `is"),
        (lambda x, n: x or n, "to ask whether an argument was given, test with `is"),
        (
            lambda x, n: x.reshape(5, n, 6 / n),
            "a size must be a whole number: divide sizes with //",
        ),
    ],
)
def test_what_numpy_says_is_put_into_words(function, words):
    # After a bracket, since the line of the student's code, here with the words, is told too.
    assert f" ({words}" in first_message(check_split_heads, function)


class NamelessError(Exception):
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    "error", [SystemExit(0), GeneratorExit(), RecursionError("too deep"), NamelessError()]
)
def test_no_exception_ends_the_check(error):
    result = check_split_heads(raising(error))
    assert (result.score, result.misconception) == (0.0, None)
    assert f"raised {type(error).__name__}" in result.diagnosis


def test_a_person_can_still_interrupt():
    with pytest.raises(KeyboardInterrupt):
        check_split_heads(raising(KeyboardInterrupt()))
    assert sys.getprofile() is None


class Liar(np.ndarray):
    """An array that says it equals everything."""

    def __eq__(self, other):
        return True


@pytest.mark.parametrize(
    ("check", "function", "words"),
    [
        (check_softmax, lambda z: softmax(z).tolist(), "weights is a list: it must be a NumPy"),
        (check_softmax, lambda z: softmax(z).view(Liar), "weights is a Liar"),
        (check_softmax, lambda z: np.ma.array(softmax(z)), "is a MaskedArray"),
        (check_softmax, lambda z: softmax(z).astype(complex), "dtype complex128"),
        (check_softmax, lambda z: softmax(z).astype(np.float16), "float16, but should have"),
        (check_softmax, lambda z: softmax(z).astype(object), "dtype object"),
        (check_softmax, lambda z: softmax(z)[None], "has shape (1, 7), but should have (7,)"),
        (check_softmax, lambda z: softmax(z) * np.nan, "holds NaN in 7 of its 7 numbers"),
        (check_attention, lambda q, k, v, mask=None: attention(q, k, v)[0], "must return two arr"),
        (check_attention, lambda q, k, v, mask=None: (q, k, v), "returned 3 values"),
        (check_attention, lambda q, k, v, mask=None: attention(q, k, v)[::-1], "out has shape"),
        (check_attention, lambda q, k, v, mask=None: (attention(q, k, v)[0], 1.0), "is a float"),
        (check_split_heads, lambda x, n: x, "(..., h, n, d_k): heads in front of tokens"),
        (check_masks, lambda n, n_past=0: causal_mask(n, n_past=n_past) * 1.0, "dtype float64"),
        (check_budget, lambda d, n_heads: str(4 * d * d), "the count is a str: it must be a whole"),
        (check_budget, lambda d, n_heads: np.array([4 * d * d]), "the count is an ndarray"),
        (check_budget, lambda d, n_heads: True, "the count is a bool"),
        (check_budget, lambda d, n_heads: float("nan"), "the count is NaN, inf or huge"),
        (check_budget, lambda d, n_heads: 10**5000, "the count is NaN, inf or huge"),
        (check_budget, lambda d, n_heads: 4 * d * d + 1, "but should be"),
        (check_masks, lambda n, n_past=0: ~causal_mask(n, n_past=n_past), "wrong in 25 of its 25"),
        (check_masks, lambda n: causal_mask(n).T, "wrong in 20 of its 25 entries"),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_told_for_what_it_is(check, function, words):
    assert words in check(function).cases[0].message


def test_weights_that_do_not_sum_to_1_are_told_so():
    def half(q, k, v, mask=None):
        out, weights = attention(q, k, v, mask)
        return out, weights / 2

    assert first_message(check_attention, half) == (
        "a row of weights sums to 0.5, but should sum to 1"
    )


def test_changing_the_input_costs_the_case_and_is_told():
    def in_place(z):
        z -= z.max(axis=-1, keepdims=True)
        return np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)

    result = check_softmax(in_place)
    assert (result.score, result.misconception) == (0.0, None)
    assert "changed its input in place" in result.diagnosis
    assert "on a copy" in result.diagnosis
    assert result.unnamed == ("softmax",)


def test_student_code_gets_copies():
    """Whatever it does to its arguments, the next check is fair."""

    def vandal(x, n_heads):
        x[...] = 0
        return split_heads(x, n_heads)

    assert check_split_heads(vandal).score == 0
    assert check_split_heads(split_heads).score == 1


@pytest.mark.parametrize(("off", "right"), [(1e-6, True), (1e-4, False)])
def test_numbers_may_be_off_by_what_single_precision_rounds_off(off, right):
    assert (check_softmax(lambda z: softmax(z) * (1 + off)).cases[0].passed) == right


def test_without_arrays_or_with_an_error_nothing_equals_anything():
    array = Answer(arrays=(((2,), "float64", (1.0, 2.0)),))
    assert array.equals(array, 1e-8)
    assert not Answer(problem="returned None").equals(Answer(problem="returned None"), 1e-8)
    failed = Answer(arrays=array.arrays, error="ValueError: no", error_type="ValueError")
    assert not array.equals(failed, 1e-8)
    assert not failed.equals(array, 1e-8)


def test_errors_are_alike_in_message_or_in_type_alone():
    def raised(error):
        return ask(raising(error), (), {}, ("out",))

    one = raised(ValueError("one"))
    assert one.likeness(raised(ValueError("one")), 1e-8) == 2
    assert one.likeness(raised(ValueError("two")), 1e-8) == 1
    assert one.likeness(raised(TypeError("one")), 1e-8) == 0


def test_a_long_message_is_cut():
    assert f"Error: {'x' * 300}, in" in first_message(
        check_split_heads, raising(ValueError("x" * 400))
    )
