"""Checks of student code: right answers earn all, wrong ones are named, tricks earn nothing."""

import builtins
import functools
import inspect
import json
import subprocess
import sys
import warnings
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

import mha_lib
import mha_lib.attention
import mha_lib.cost
from mha_lib.teaching import checks, misconceptions
from mha_lib.teaching.checks import (
    check_attention,
    check_budget,
    check_masks,
    check_merge_heads,
    check_multi_head_attention,
    check_softmax,
    check_split_heads,
    prepare,
    right_function,
)
from mha_lib.teaching.misconceptions import CATALOGUE, built_with
from tests import reference

CHECKS = {
    "softmax": check_softmax,
    "scaled_dot_product_attention": check_attention,
    "split_heads": check_split_heads,
    "merge_heads": check_merge_heads,
    "multi_head_attention": check_multi_head_attention,
    "causal_mask": check_masks,
    "padding_mask": lambda f, **seed: check_masks(padding=f, **seed),
    "combine_masks": lambda f, **seed: check_masks(combine=f, **seed),
    "count_parameters": check_budget,
    "count_softmax_entries": lambda f, **seed: check_budget(softmax_entries=f, **seed),
}
STEPS = list(CHECKS)


# --- the reference solution: loops, and none of the library's functions -----------------------


def softmax(z):
    weights = np.zeros(z.shape, z.dtype)
    for index in np.ndindex(z.shape[:-1]):
        row = [float(score) for score in z[index]]
        weights[index] = reference.softmax_row(row)
    return weights


def attention(q, k, v, mask=None):
    out, weights = reference.attend_everywhere(q, k, v, mask)
    return out.astype(q.dtype), weights.astype(q.dtype)


def split_heads(x, n_heads):
    *leading, n, d = x.shape
    heads = np.empty((*leading, n_heads, n, d // n_heads), x.dtype)
    for head in range(n_heads):
        for column in range(d // n_heads):
            heads[..., head, :, column] = x[..., head * (d // n_heads) + column]
    return heads


def merge_heads(x):
    return np.concatenate([x[..., head, :, :] for head in range(x.shape[-3])], axis=-1)


def multi_head_attention(
    x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
):
    if x.ndim > 2:
        masks = [None] * len(x) if mask is None else mask
        results = [
            multi_head_attention(
                x[i], w_q, w_k, w_v, w_o, n_heads, mask=masks[i], return_weights=True
            )
            for i in range(len(x))
        ]
        out, weights = (np.stack(part) for part in zip(*results, strict=True))
    else:
        n_keys = len(x if context is None else context)
        if mask is not None:
            mask = np.broadcast_to(mask, (n_heads, len(x), n_keys))
        out, weights = reference.attend_in_heads(
            x, w_q, w_k, w_v, w_o, n_heads, context=context, mask=mask
        )
    out, weights = out.astype(x.dtype), weights.astype(x.dtype)
    return (out, weights) if return_weights else out


def causal_mask(n, *, n_past=0):
    rows = [[key <= n_past + query for key in range(n_past + n)] for query in range(n)]
    return np.array(rows, dtype=bool).reshape(n, n_past + n)


def padding_mask(lengths, n):
    mask = np.zeros((*lengths.shape, 1, 1, n), dtype=bool)
    for index in np.ndindex(lengths.shape):
        mask[index][..., : lengths[index]] = True
    return mask


def combine_masks(*masks):
    return functools.reduce(np.logical_and, [mask for mask in masks if mask is not None])


def count_parameters(d, n_heads):
    d_k = d // n_heads
    return sum(np.zeros((d, d_k)).size * 3 for _ in range(n_heads)) + np.zeros((d, d)).size


def count_softmax_entries(n, n_heads):
    return np.zeros((n_heads, n, n)).size


SOLUTION = {
    "softmax": softmax,
    "scaled_dot_product_attention": attention,
    "split_heads": split_heads,
    "merge_heads": merge_heads,
    "multi_head_attention": multi_head_attention,
    "causal_mask": causal_mask,
    "padding_mask": padding_mask,
    "combine_masks": combine_masks,
    "count_parameters": count_parameters,
    "count_softmax_entries": count_softmax_entries,
}


@pytest.mark.parametrize("step", STEPS)
def test_the_reference_solution_earns_full_marks(step):
    result = CHECKS[step](SOLUTION[step])
    assert (result.score, result.verdict, result.misconception) == (1.0, "right", None), result
    assert result.diagnosis == "Right in every case."
    assert all(case.passed and not case.message for case in result.cases)


SEEDS = [0, 11, 2**40]


@pytest.mark.parametrize("seed", [*range(20), 2**40])
def test_the_reference_solution_earns_full_marks_with_every_seed(seed):
    for step in STEPS:
        result = CHECKS[step](SOLUTION[step], seed=seed)
        assert (result.score, result.diagnosis) == (1.0, "Right in every case."), result


@pytest.mark.parametrize("step", STEPS)
def test_another_seed_gives_other_inputs_and_the_same_seed_the_same(step):
    def inputs(seed):
        seen = []

        def note(*args, **kwargs):
            arrays = [*args, *(kwargs[name] for name in sorted(kwargs))]
            seen.append([(np.shape(a), np.asarray(a).tolist()) for a in arrays if a is not None])

        CHECKS[step](note, seed=seed)
        return seen

    assert inputs(7) == inputs(np.int64(7))
    assert all(first != second for first, second in zip(inputs(7), inputs(8), strict=True))
    if step not in ("causal_mask", "count_parameters", "count_softmax_entries"):
        shapes = [[[shape for shape, _ in case] for case in inputs(seed)] for seed in (7, 8)]
        assert shapes[0] == shapes[1]


@pytest.mark.parametrize("step", STEPS)
def test_a_seed_must_be_a_whole_number(step):
    with pytest.raises(TypeError, match=r"seed must be an integer, not float 1\.5"):
        CHECKS[step](SOLUTION[step], seed=1.5)
    with pytest.raises(ValueError, match="seed=-1 is too small: use seed >= 0"):
        CHECKS[step](SOLUTION[step], seed=-1)


def test_all_masks_together_earn_full_marks():
    result = check_masks(causal_mask, padding_mask, combine_masks)
    assert (result.score, result.verdict) == (1.0, "right")
    assert len(result.cases) == 9


def test_masks_earn_what_each_of_them_earns():
    result = check_masks(causal_mask, padding_mask, lambda *masks: masks[-1])
    assert (result.score, result.verdict) == (6 / 9, "partly right")
    assert result.misconceptions == ("only the last mask used",)
    with pytest.raises(TypeError, match="got no function"):
        check_masks()


def test_counts_earn_what_each_of_them_earns():
    assert check_budget(count_parameters, count_softmax_entries).score == 1
    result = check_budget(count_parameters, lambda n, n_heads: n * n)
    assert (result.score, result.verdict) == (3 / 6, "partly right")
    assert result.misconceptions == ("one map counted for all heads",)
    both = check_budget(lambda d, n_heads: 3 * d * d, lambda n, n_heads: n * n)
    assert both.misconceptions == ("W_O not counted", "one map counted for all heads")
    assert both.misconception == "W_O not counted"
    with pytest.raises(TypeError, match="check_budget got no function: pass your count_param"):
        check_budget()


@pytest.mark.parametrize("kind", [int, float, np.int32, np.int64, np.float64])
@pytest.mark.parametrize("off", [-1, 0, 1])
def test_a_count_may_be_any_number_but_never_off_by_one(kind, off):
    result = check_budget(
        lambda d, n_heads: kind(count_parameters(d, n_heads) + off),
        lambda n, n_heads: kind(count_softmax_entries(n, n_heads) + off),
    )
    assert result.score == (off == 0)
    assert result.misconception is None
    assert ("// divides whole numbers exactly" in result.diagnosis) == (
        off == 0 and kind in (float, np.float64)
    )


def test_float64_from_float32_is_a_remark_and_costs_nothing():
    def shorter(q, k, v, mask=None):
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        scores = scores if mask is None else np.where(mask, scores, -np.inf)
        weights = mha_lib.softmax(scores)
        return weights @ v, weights

    result = check_attention(shorter)
    assert result.score == 1.0
    assert "float(np.sqrt(d_k))" in result.diagnosis
    assert repr(result).count("float(np.sqrt(d_k))") == 1
    assert result._repr_html_().count("float(np.sqrt(d_k))") == 1
    assert [case.name for case in result.cases if case.message] == ["float32, scores of about 100"]


def test_a_remark_on_two_counts_is_shown_once_and_beside_a_mistake_with_its_cases():
    both = check_budget(lambda d, n_heads: 4.0 * d * d, lambda n, n_heads: 1.0 * n_heads * n * n)
    assert repr(both).count("// divides whole numbers") == 1
    assert repr(both).count("\n  right  ") == 6
    one = check_budget(lambda d, n_heads: 4.0 * d * d, lambda n, n_heads: 0)
    assert repr(one).count("// divides whole numbers") == 1


# --- every entry of the catalogue -------------------------------------------------------------


def exact_matches(step, function):
    """Return the names of the entries whose answers equal this function's in every case."""
    names = set()
    for j, (entry, _) in enumerate(checks._CANDIDATES[step]):
        if all(
            checks._matches(
                checks._answer(function, case.args, case.kwargs, case.parts),
                case.wrong[j],
                case.tolerance,
            )
            == 2
            for case in checks._PREPARED[7][step]
        ):
            names.add(entry.name)
    return names


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)
def test_an_entry_handed_in_loses_marks_and_is_named(entry):
    result = CHECKS[entry.step](entry.function)
    assert result.score < 1
    assert result.verdict in ("wrong", "partly right")
    assert result.misconceptions == (entry.name,)
    assert result.misconception == entry.name
    hides = "" if entry.formal else f" The mistake is invisible {entry.hides}."
    assert result.diagnosis == f"{entry.sentence}\nRead on in {entry.where}.{hides}"
    assert exact_matches(entry.step, entry.function) == {entry.name}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)
def test_an_entry_is_named_with_every_seed(entry, seed):
    result = CHECKS[entry.step](entry.function, seed=seed)
    assert result.score < 1
    assert result.misconceptions == (entry.name,)


# Both make an array that does not fit W_O, and so the same error.
ALIKE = {"heads put below each other", "heads averaged"}


def steps_with_parts():
    for step in ("scaled_dot_product_attention", "multi_head_attention"):
        for entry in CATALOGUE:
            try:
                function = built_with(entry, step)
            except ValueError:
                continue
            if (entry.name, step) == ("mask ignored", "multi_head_attention"):
                continue  # a test of its own
            yield pytest.param(entry, step, function, id=f"{entry.name} in {step}")


@pytest.mark.parametrize("seed", [7, *SEEDS])
@pytest.mark.parametrize(("entry", "step", "function"), [*steps_with_parts()])
def test_a_wrong_part_is_named_in_a_larger_step(entry, step, function, seed):
    result = CHECKS[step](function, seed=seed)
    assert result.score < 1
    assert f"In the step {entry.step}: {entry.sentence}" in result.diagnosis
    if step == "multi_head_attention" and entry.name in ALIKE:
        assert result.misconceptions == ()
        assert result.misconception is None
        assert "One of these 2 it is" in result.diagnosis
    else:
        assert result.misconceptions == (entry.name,)


BY_NAME = {entry.name: entry for entry in CATALOGUE}


@pytest.mark.parametrize("seed", [7, *SEEDS])
def test_a_mask_that_is_lost_is_said_to_be_lost_on_the_way_or_in_attention(seed):
    """From outside, a layer that keeps the mask to itself is like attention that ignores it."""
    ignored = built_with(BY_NAME["mask ignored"], "multi_head_attention")
    result = check_multi_head_attention(ignored, seed=seed)
    assert result.misconceptions == ("mask not handed on",)
    assert "In the step" not in result.diagnosis
    assert "does not hand the mask on" in result.diagnosis
    assert "the attention that it calls never uses the mask" in result.diagnosis


def test_two_mistakes_in_different_cases_are_both_named():
    def start(x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False):
        q, k, v = (mha_lib.split_heads(x @ w, n_heads) for w in (w_q, w_k, w_v))
        heads, weights = mha_lib.scaled_dot_product_attention(q, k, v)
        out = mha_lib.merge_heads(heads) @ w_o
        return (out, weights) if return_weights else out

    result = check_multi_head_attention(start)
    assert result.misconceptions == ("context ignored", "mask not handed on")
    assert result.misconception == "context ignored"
    assert result.diagnosis.startswith("Two things are wrong or missing, each in cases of its own")
    for name in result.misconceptions:
        assert BY_NAME[name].sentence in result.diagnosis
    assert "One of these" not in result.diagnosis
    assert "This explains" not in result.diagnosis  # since it explains everything


def test_two_mistakes_that_meet_in_one_case_are_both_named():
    def short(q, k, v, mask=None):
        weights = mha_lib.softmax(q @ k.T / np.sqrt(q.shape[-1]))
        return weights @ v, weights

    result = check_attention(short)
    assert set(result.misconceptions) == {"all axes transposed", "mask ignored"}


def test_a_second_mistake_is_not_named_where_the_code_is_right():
    """What it would break, the code has right, although it would explain a case that is left."""

    def own(q, k, v, mask=None):
        if q.ndim == 4:  # k.T fails here
            q @ k.T
        if mask is not None and mask.any(axis=-1).all():
            mask = None  # but a mask with empty rows is used
        return attention(q, k, v, mask)

    assert check_attention(own).misconceptions == ("all axes transposed",)


def test_what_is_explained_is_counted():
    def split(x, n_heads):
        n, d = x.shape
        return x.reshape(n_heads, n, d // n_heads)

    lines = check_split_heads(split).diagnosis.splitlines()
    assert lines[0] == BY_NAME["split by a bare reshape"].sentence
    assert lines[2] == "This explains 3 of 4 wrong cases."
    assert lines[3].startswith("Besides, in the case 'leading axes': raised ValueError")


def test_a_mistake_is_named_although_there_is_another_beside_it():
    def two_mistakes(q, k, v, mask=None):
        scores = q @ k.swapaxes(-1, -2) / q.shape[-1]  # no root
        scores = scores if mask is None else np.where(mask, scores, -np.inf)
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))  # NaN where nothing is allowed
        weights = e / e.sum(axis=-1, keepdims=True)
        return weights @ v, weights

    result = check_attention(two_mistakes)
    assert result.misconception == "scale by d_k without the root"
    assert "\nThis explains 8 of 9 wrong cases.\n" in result.diagnosis
    assert "'queries that may look nowhere': out holds NaN" in result.diagnosis


def test_another_way_of_writing_a_mistake_is_named_too():
    def own(x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False):
        source = x if context is None else context
        q, k, v = x @ w_q, source @ w_k, source @ w_v
        outs, maps = [], []
        for q_i, k_i, v_i in zip(*(np.split(a, n_heads, axis=-1) for a in (q, k, v)), strict=True):
            scores = np.einsum("...id,...jd->...ij", q_i, k_i) * x.shape[-1] ** -0.5
            if mask is not None:
                scores = np.where(mask[:, 0] if mask.ndim == 4 else mask, scores, -np.inf)
            maps.append(mha_lib.softmax(scores))
            outs.append(maps[-1] @ v_i)
        out = np.concatenate(outs, axis=-1) @ w_o
        return (out, np.stack(maps, axis=-3)) if return_weights else out

    assert check_multi_head_attention(own).misconception == "scale by the root of d"


def test_a_mistake_is_named_in_a_function_that_takes_no_mask_yet():
    def short(x, w_q, w_k, w_v, w_o, n_heads):
        n = len(x)
        q, k, v = ((x @ w).reshape(n_heads, n, -1) for w in (w_q, w_k, w_v))
        weights = mha_lib.softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
        return (weights @ v).reshape(n, -1) @ w_o

    result = check_multi_head_attention(short)
    assert result.misconception == "bare reshapes there and back"
    messages = {case.name: case.message for case in result.cases}
    assert "does not take this argument" in messages["a causal mask"]
    assert messages["a batch"].startswith("raised ValueError")


def test_a_mistake_is_named_that_shows_alone_in_half_of_the_cases():
    def half(x, w_q, w_k, w_v, w_o, n_heads, context=None, mask=None, return_weights=False):
        if x.ndim > 2:
            raise TypeError("no batch yet")
        n = len(x)  # neither context nor mask is used, and the heads are left behind the tokens
        q, k, v = ((x @ w).reshape(n, n_heads, -1) for w in (w_q, w_k, w_v))
        weights = mha_lib.softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
        return (weights @ v).reshape(n, -1) @ w_o

    result = check_multi_head_attention(half)
    assert result.misconception == "each token attends among its own heads"


def test_a_mistake_is_not_named_for_one_case_among_many():
    def rarely(q, k, v, mask=None):
        if q.ndim == 4 and mask is None:
            weights = mha_lib.softmax(q @ k.swapaxes(-1, -2))  # no scale
            return weights @ v, weights
        return WRONG["scaled_dot_product_attention"](q, k, v)

    assert check_attention(rarely).misconception is None


def test_an_error_alone_names_nothing():
    result = check_multi_head_attention(raising(ValueError("something else")))
    assert result.misconception is None
    assert result.diagnosis.startswith("In the case 'three heads': raised ValueError: something")


def test_right_numbers_of_the_wrong_dtype_are_not_taken_for_another_mistake():
    result = check_masks(lambda n: np.tril(np.ones((n, n))))
    assert (result.score, result.misconception) == (0.0, None)
    assert "dtype float64, but should have bool" in result.diagnosis


def test_a_mistake_that_nobody_listed_is_described():
    result = check_merge_heads(lambda x: np.zeros((*x.shape[:-3], x.shape[-2], 6), x.dtype))
    assert result.misconception is None
    assert result.score == 0
    assert "three heads" in result.diagnosis
    assert "right shape, but numbers that are off by up to" in result.diagnosis


# --- nothing there yet ------------------------------------------------------------------------


def unfinished(*args, **kwargs):
    raise NotImplementedError


def empty(*args, **kwargs):
    pass


BLANKS = [unfinished, empty, lambda *a, **k: ..., lambda *a, **k: NotImplemented]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("blank", BLANKS)
def test_the_blank_earns_nothing(step, blank):
    result = CHECKS[step](blank)
    assert (result.score, result.verdict, result.misconception) == (0.0, "blank", None)
    assert "nothing here yet" in result.diagnosis


@pytest.mark.parametrize("i", range(4))
def test_a_blank_is_one_however_it_is_wrapped(i):
    def split_heads(x, n_heads):
        """Cut the columns into heads."""
        # YOUR CODE HERE
        raise NotImplementedError()

    wrapper = wrappers(split_heads)[(0, 2, 3, 4)[i]]
    expected = "wrong" if i == 3 else "blank"  # an object that calls a function is no stub
    assert check_split_heads(wrapper).verdict == expected


def test_a_function_that_is_not_written_yet_is_named_where_it_is_called():
    def softmax(z):
        raise NotImplementedError()

    def scaled_dot_product_attention(q, k, v, mask=None):
        weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
        return weights @ v, weights

    result = check_attention(scaled_dot_product_attention)
    assert (result.score, result.verdict) == (0, "wrong")
    assert result.diagnosis == (
        "Your function calls `softmax`, which is not written yet; use `mha_lib.softmax` here."
    )

    def layer(x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False):
        return scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)[0] @ w_o

    result = check_multi_head_attention(layer)
    assert (result.score, result.verdict) == (0, "wrong")
    assert result.diagnosis == (
        "Your function calls `scaled_dot_product_attention`, which calls `softmax`, which is not "
        "written yet; use `mha_lib.scaled_dot_product_attention` here."
    )


def test_no_function_is_recommended_that_there_is_not_or_that_earns_nothing():
    def helper(x, n_heads):
        raise NotImplementedError

    def split(x, n_heads):
        return [helper(x, n_heads) for _ in range(n_heads)]

    told = "Your function calls `helper`, which is not written yet."
    assert check_split_heads(split).diagnosis == told

    def split_heads(x, n_heads):
        raise NotImplementedError

    told = "Your function calls `split_heads`, which is not written yet."
    assert check_merge_heads(lambda x: split_heads(x, 3)).diagnosis == told


def test_an_unwritten_function_in_some_of_the_cases_is_told_there():
    def hide(scores):
        raise NotImplementedError

    def own(q, k, v, mask=None):
        return attention(q, k, v) if mask is None else hide(q @ k.swapaxes(-1, -2))

    result = check_attention(own)
    assert (result.score, result.verdict) == (6 / 9, "partly right")
    assert result.diagnosis == ("In the case 'a mask': calls `hide`, which is not written yet.")


def test_a_missing_return_is_told_for_what_it_is():
    def split(x, n_heads):
        x.reshape(*x.shape[:-1], n_heads, -1).swapaxes(-3, -2)

    result = check_split_heads(split)
    assert (result.score, result.verdict) == (0, "wrong")
    told = "Your function computes something but returns nothing: is `return` missing?"
    assert result.diagnosis == told


def test_a_stubs_line_that_was_left_in_is_told_for_what_it_is():
    def split(x, n_heads):
        heads = x.reshape(*x.shape[:-1], n_heads, -1).swapaxes(-3, -2)
        raise NotImplementedError()
        return heads

    result = check_split_heads(split)
    assert (result.score, result.verdict) == (0, "wrong")
    assert result.diagnosis.endswith("raises NotImplementedError all the same: delete that line.")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("thing", [3, "softmax", np.zeros(3)])
def test_what_is_no_function_earns_nothing(step, thing):
    result = CHECKS[step](thing)
    assert (result.score, result.verdict) == (0.0, "wrong")
    assert "not a function" in result.diagnosis


# --- what can go wrong in a call --------------------------------------------------------------


def first_message(check, function):
    return check(function).cases[0].message


def test_an_exception_is_told_with_its_line():
    def broken(x, n_heads):
        parts = x.shape[-1] // n_heads
        return x.reshap(n_heads, parts)

    message = first_message(check_split_heads, broken)
    line = inspect.getsourcelines(broken)[1] + 2
    assert message.startswith("raised AttributeError: 'numpy.ndarray' object has no attribute")
    assert message.endswith(f", in line {line}: return x.reshap(n_heads, parts)")


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


def raising(error):
    def function(*args, **kwargs):
        raise error

    return function


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


def test_student_code_gets_copies():
    """Whatever it does to its arguments, the next check is fair."""

    def vandal(x, n_heads):
        x[...] = 0
        return split_heads(x, n_heads)

    assert check_split_heads(vandal).score == 0
    assert check_split_heads(split_heads).score == 1


# --- tricks -----------------------------------------------------------------------------------


def wrappers(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        return function(*args, **kwargs)

    class Callable:
        def __call__(self, *args, **kwargs):
            return function(*args, **kwargs)

    return [function, wrapper, wrapped, functools.partial(function), Callable()]


LIBRARY = {step: getattr(mha_lib, step, None) for step in STEPS} | {
    "count_parameters": lambda d, n_heads: mha_lib.attention_cost(1, d, n_heads).parameters,
    "count_softmax_entries": lambda n, n_heads: (
        mha_lib.attention_cost(n, n_heads, n_heads).softmax_entries
    ),
}


@pytest.mark.parametrize("step", STEPS)
def test_the_right_function_is_the_librarys(step):
    if hasattr(mha_lib, step):
        assert right_function(step) is getattr(mha_lib, step)
    else:
        assert right_function(step)(14, 7) == LIBRARY[step](14, 7) > 0
    with pytest.raises(ValueError, match="there is no step 'nothing': use one of softmax, "):
        right_function("nothing")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("i", range(5))
def test_the_librarys_own_function_is_flagged_however_it_is_wrapped(step, i):
    result = CHECKS[step](wrappers(LIBRARY[step])[i])
    assert (result.score, result.verdict) == (0.0, "not your own")
    assert "it earns nothing" in result.diagnosis


def test_the_right_parts_in_the_catalogues_module_are_flagged_too():
    assert check_multi_head_attention(misconceptions._multi_head).verdict == "not your own"
    assert check_split_heads(lambda x, n: misconceptions._split(x, n)).verdict == "not your own"


def test_switching_off_the_watch_is_flagged():
    def sly(x, n_heads):
        sys.setprofile(None)
        return mha_lib.split_heads(x, n_heads)

    result = check_split_heads(sly)
    assert (result.score, result.verdict) == (0.0, "not your own")
    assert "profile function" in result.diagnosis


def test_the_code_of_the_library_is_flagged_under_another_name():
    def split(x, n_heads):
        """Pretend to be a student's."""

    split.__code__ = mha_lib.split_heads.__code__
    assert check_split_heads(split).verdict == "not your own"


def test_one_library_function_among_the_masks_costs_its_own_cases():
    result = check_masks(mha_lib.causal_mask, padding_mask, combine_masks)
    assert (result.score, result.verdict) == (6 / 9, "not your own")


def test_the_steps_before_may_be_the_librarys():
    def own(x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False):
        source = x if context is None else context
        q, k, v = (
            mha_lib.split_heads(tokens @ w, n_heads)
            for tokens, w in ((x, w_q), (source, w_k), (source, w_v))
        )
        heads, weights = mha_lib.scaled_dot_product_attention(q, k, v, mask)
        out = mha_lib.merge_heads(heads) @ w_o
        return (out, weights) if return_weights else out

    assert check_multi_head_attention(own).score == 1


def right(*args, **kwargs):
    return True


def zeros_like_the_answer(z):
    return np.zeros(z.shape, z.dtype)


WRONG = {
    "softmax": zeros_like_the_answer,
    "scaled_dot_product_attention": lambda q, k, v, mask=None: (
        np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype),
        np.zeros((*q.shape[:-1], k.shape[-2]), q.dtype),
    ),
    "split_heads": lambda x, n: np.zeros((*x.shape[:-2], n, x.shape[-2], x.shape[-1] // n)),
    "merge_heads": lambda x: np.zeros((*x.shape[:-3], x.shape[-2], x.shape[-3] * x.shape[-1])),
    "multi_head_attention": lambda x, *w, **k: np.zeros((*x.shape[:-1], w[3].shape[1]), x.dtype),
    "causal_mask": lambda n, *, n_past=0: np.zeros((n, n + n_past), bool),
    "padding_mask": lambda lengths, n: np.zeros((*lengths.shape, 1, 1, n), bool),
    "combine_masks": lambda *masks: np.zeros((5, 5), bool),
    "count_parameters": lambda d, n_heads: 0,
    "count_softmax_entries": lambda n, n_heads: 0,
}
COMPARISONS = [
    "allclose", "array_equal", "array_equiv", "isclose", "all", "any", "isnan", "isfinite", "abs",
    "absolute", "max", "sum", "equal", "less_equal", "shape", "asarray", "array", "errstate",
    "broadcast_shapes", "where", "exp",
]  # fmt: skip


@pytest.mark.parametrize("seed", [7, 101])
@pytest.mark.parametrize("step", STEPS)
def test_patched_comparisons_and_library_functions_earn_nothing(step, seed, monkeypatch):
    wrong = WRONG[step]
    prepare(seed)
    before = CHECKS[step](wrong, seed=seed)
    for name in COMPARISONS:
        monkeypatch.setattr(np, name, right)
    for name in ("assert_allclose", "assert_array_equal", "assert_equal"):
        monkeypatch.setattr(np.testing, name, right)
    for module in (mha_lib, mha_lib.attention, mha_lib.multihead, mha_lib.masks):
        for name, function in WRONG.items():
            if hasattr(module, name):
                monkeypatch.setattr(module, name, function)
    monkeypatch.setattr(mha_lib.cost, "attention_cost", lambda *a: SimpleNamespace(parameters=0))
    result = CHECKS[step](wrong, seed=seed)
    monkeypatch.undo()
    assert result == before
    assert result.score == 0


def test_patched_builtins_earn_nothing(monkeypatch):
    before = check_split_heads(WRONG["split_heads"])
    with monkeypatch.context() as patch:
        patch.setattr(builtins, "all", right)
        patch.setattr(builtins, "abs", lambda x: 0)
        patch.setattr(builtins, "max", lambda *a, **k: 0)
        result = check_split_heads(WRONG["split_heads"])
    assert result == before
    assert result.score == 0


def test_a_function_that_patches_while_it_runs_earns_nothing(monkeypatch):
    monkeypatch.setattr(np, "allclose", np.allclose)  # to be put back afterwards
    monkeypatch.setattr(mha_lib, "split_heads", mha_lib.split_heads)
    monkeypatch.setattr(mha_lib.multihead, "split_heads", mha_lib.multihead.split_heads)

    def patching(x, n_heads):
        np.allclose = right
        mha_lib.split_heads = mha_lib.multihead.split_heads = patching
        return WRONG["split_heads"](x, n_heads)

    assert check_split_heads(patching).score == 0


def test_the_library_loads_no_checks_by_itself():
    command = "import sys, mha_lib; print('mha_lib.teaching.checks' in sys.modules)"
    result = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", command], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"


# --- what the student sees --------------------------------------------------------------------


class Text(HTMLParser):
    """Collect the tags and the text of a piece of HTML."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def test_the_text_shows_score_diagnosis_and_every_case():
    result = check_split_heads(next(e for e in CATALOGUE if e.step == "split_heads").function)
    lines = repr(result).splitlines()
    assert lines[0] == "split_heads: wrong, 0 of 4 cases right, score 0.00"
    assert lines[1].startswith("  Your code reshapes straight to")
    assert sum(line.startswith("  wrong  ") for line in lines) == 4


def test_a_case_whose_context_decides_says_so():
    context_ignored = check_multi_head_attention(BY_NAME["context ignored"].function)
    assert all("a context" in case.name for case in context_ignored.cases if not case.passed)


def test_what_is_said_of_many_cases_is_said_once():
    result = check_split_heads(raising(ValueError("no")))
    assert len(result.cases) == 4
    assert repr(result).splitlines()[2:] == [f"  wrong  in all 4 cases: {result.cases[0].message}"]
    page = Text(result._repr_html_())
    assert page.tags.count("tr") == 2
    assert "in all 4 cases" in page.text

    def no_batch(x, n_heads):
        if x.ndim > 2 or len(x) == 3:
            raise ValueError("no")
        return split_heads(x, n_heads)

    lines = repr(check_split_heads(no_batch)).splitlines()[2:]
    assert lines[0] == "  right  three heads"
    assert lines[1].startswith("  wrong  as many heads as tokens; leading axes: raised ValueError")
    assert lines[2] == "  right  heads that divide the tokens too"
    assert len(lines) == 3


def test_no_file_name_is_shown():
    for entry in CATALOGUE:
        result = CHECKS[entry.step](entry.function)
        for shown in (repr(result), result._repr_html_()):
            assert ".ipynb" not in shown


def test_the_html_says_the_same_and_runs_nothing_of_the_students():
    result = check_split_heads(raising(ValueError("<script>alert(1)</script> & more")))
    page = Text(result._repr_html_())
    assert set(page.tags) == {
        "div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td",
    }  # fmt: skip
    assert "<script>alert(1)</script> & more" in page.text
    assert result.cases[0].message in page.text


def test_a_program_finds_the_verdict_in_the_outputs_of_a_notebook():
    """What a cell of a notebook stores, made by IPython's own formatter."""
    entry = next(entry for entry in CATALOGUE if entry.step == "split_heads")
    result = check_split_heads(entry.function)
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    stored, _ = shell.instance().display_formatter.format(result)
    assert stored["text/plain"] == repr(result)
    assert stored["text/html"] == result._repr_html_()
    assert json.loads(json.dumps(stored["application/vnd.mha-lib.check+json"])) == {
        "function": "split_heads",
        "score": 0.0,
        "verdict": "wrong",
        "diagnosis": result.diagnosis,
        "misconception": entry.name,
        "misconceptions": [entry.name],
    }


def test_a_result_cannot_be_changed():
    result = check_split_heads(empty)
    with pytest.raises(AttributeError):
        result.score = 1.0


def test_no_input_of_a_check_has_sizes_under_which_all_mistakes_hide():
    """At least one case of each check has different sizes along all axes."""
    for step, cases in checks._PREPARED[7].items():
        for candidate, (entry, _) in enumerate(checks._CANDIDATES[step]):
            right_anyway = [
                case.name
                for case in cases
                if checks._same(case.wrong[candidate], case.right, case.tolerance)
            ]
            assert len(right_anyway) < len(cases), (step, entry.name)
