"""Which idea is behind a wrong answer: each entry is named, alone or in a step."""

import numpy as np
import pytest

import mha_lib
from mha_lib.teaching import (
    CATALOGUE,
    built_with,
    check_attention,
    check_masks,
    check_merge_heads,
    check_multi_head_attention,
    check_softmax,
    check_split_heads,
    steps,
)
from mha_lib.teaching.answers import ask
from mha_lib.teaching.diagnosis import diagnose
from tests.teaching.students import (
    BY_NAME,
    CHECKS,
    SEEDS,
    STEPS,
    WRONG,
    attention,
    empty,
    raising,
    unfinished,
    wrappers,
)


def exact_matches(step, function):
    """Return the names of the entries whose answers equal this function's in every case."""
    names = set()
    for j, (entry, _) in enumerate(steps.CANDIDATES[step]):
        if all(
            ask(function, case.args, case.kwargs, case.parts).likeness(
                case.wrong[j], case.tolerance
            )
            == 2
            for case in steps.cases(step, 7)
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
    assert result.diagnosis == (
        f"{entry.question}\n{entry.sentence}\nRead on in {entry.where}.{hides}"
    )
    assert result.unnamed == ()
    assert exact_matches(entry.step, entry.function) == {entry.name}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)
def test_an_entry_is_named_with_every_seed(entry, seed):
    result = CHECKS[entry.step](entry.function, seed=seed)
    assert result.score < 1
    assert result.misconceptions == (entry.name,)


# They make an array that does not fit W_O, and so the same error.
ALIKE = {"heads put below each other", "heads averaged", "heads summed"}


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
    assert f"In the step {entry.step}: {entry.question}\n{entry.sentence}" in result.diagnosis
    if step == "multi_head_attention" and entry.name in ALIKE:
        assert result.misconceptions == ()
        assert result.misconception is None
        assert "It is one of these 3" in result.diagnosis
    else:
        assert result.misconceptions == (entry.name,)


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
    assert result.diagnosis.startswith("Two things are wrong or missing:\n")
    for name in result.misconceptions:
        assert BY_NAME[name].sentence in result.diagnosis
    assert "It is one of these" not in result.diagnosis
    assert "This explains" not in result.diagnosis  # since it explains everything


def test_two_mistakes_that_meet_in_one_case_are_both_named():
    def short(q, k, v, mask=None):
        weights = mha_lib.softmax(q @ k.T / np.sqrt(q.shape[-1]))
        return weights @ v, weights

    result = check_attention(short)
    assert set(result.misconceptions) == {"all axes transposed", "mask ignored"}


def test_a_mistake_is_not_named_where_the_code_is_right():
    """What it would break, the code has right, although it would explain other cases."""

    def own(q, k, v, mask=None):
        if q.ndim == 4 and k.shape != q.shape:  # k.T fails here
            q @ k.T
        if mask is not None and mask.any(axis=-1).all():
            mask = None  # but a mask with empty rows is used
        return attention(q, k, v, mask)

    assert check_attention(own).misconceptions == ()


def test_loops_that_know_no_leading_axes_are_not_told_that_queries_meet_no_key():
    """Two failures say the same: one matrix product is q[i] @ k[j], and the other q @ k."""

    def looped(q, k, v, mask=None):
        scores = np.array([[q[i] @ k[j] for j in range(len(k))] for i in range(len(q))])
        scores = scores / np.sqrt(q.shape[-1])
        weights = mha_lib.softmax(scores if mask is None else np.where(mask, scores, -np.inf))
        return weights @ v, weights

    result = check_attention(looped)
    assert result.misconceptions == ()
    assert result.unnamed == ("scaled_dot_product_attention",)
    assert result.diagnosis.startswith("In the case 'leading axes': raised ValueError: matmul")


def test_equal_errors_name_nothing_where_the_numbers_differ():
    """The same loops with another mistake: `q @ k` fails with the same words and is not theirs."""

    def looped(q, k, v, mask=None):
        scores = np.array([[q[i] @ k[j] for j in range(len(k))] for i in range(len(q))])
        weights = mha_lib.softmax(scores if mask is None else np.where(mask, scores, -np.inf))
        return weights @ v, weights

    result = check_attention(looped)
    assert result.misconceptions == ("no scale",)
    assert result.unnamed == ("scaled_dot_product_attention",)


def test_two_mistakes_are_not_named_where_a_right_answer_contradicts_one():
    """Wrong twice with a mask; without one, where the scale is seen alone, it is right."""
    names = {"no scale", "hidden scores set to 0"}
    both = next(
        function
        for places, function in steps.pairs("scaled_dot_product_attention")
        if {steps.CANDIDATES["scaled_dot_product_attention"][j][0].name for j in places} == names
    )

    def own(q, k, v, mask=None):
        return attention(q, k, v) if mask is None else both(q, k, v, mask)

    assert "no scale" not in check_attention(own).misconceptions


@pytest.mark.parametrize("limit", [20, 50, 88, 100, 500, 700])
def test_clipping_is_named_whatever_its_limit_and_in_every_step(limit):
    def softmax(z):
        e = np.exp(np.clip(z, -limit, limit))
        return e / e.sum(axis=-1, keepdims=True)

    assert check_softmax(softmax).misconceptions == ("scores clipped",)

    def own(q, k, v, mask=None):
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        weights = softmax(scores) if mask is None else softmax(np.where(mask, scores, -np.inf))
        return weights @ v, weights

    assert "scores clipped" in check_attention(own).misconceptions


@pytest.mark.parametrize("root", [np.sqrt, lambda d: float(np.sqrt(d))])
def test_overflow_is_named_whether_or_not_single_precision_is_kept(root):
    """NumPy's root is of double precision, in which scores of 100 do not overflow."""

    def own(q, k, v, mask=None):
        scores = q @ k.swapaxes(-1, -2) / root(q.shape[-1])
        e = np.exp(scores if mask is None else np.where(mask, scores, -np.inf))
        weights = e / e.sum(axis=-1, keepdims=True)
        return weights @ v, weights

    name = "softmax without subtracting the largest score"
    assert check_attention(own).misconceptions == (name,)


def test_pytorchs_meaning_of_a_mask_is_named():
    def causal(n, *, n_past=0):
        return np.triu(np.ones((n, n_past + n), dtype=bool), k=n_past + 1)

    assert check_masks(causal).misconceptions == ("True where the future is hidden",)


@pytest.mark.parametrize("product", [lambda q, k: np.dot(q, k.T), lambda q, k: q.dot(k.T)])
def test_np_dot_of_batches_is_named(product):
    def own(q, k, v, mask=None):
        scores = product(q, k) / np.sqrt(q.shape[-1])
        weights = mha_lib.softmax(scores if mask is None else np.where(mask, scores, -np.inf))
        return weights @ v, weights

    name = "every query dotted with the keys of every head"
    assert check_attention(own).misconceptions == (name,)


def test_what_is_explained_is_counted():
    def split(x, n_heads):
        n, d = x.shape
        return x.reshape(n_heads, n, d // n_heads)

    result = check_split_heads(split)
    assert result.misconceptions == ("split by a bare reshape",)
    assert result.unnamed == ("split_heads",)  # something else is wrong, too
    lines = result.diagnosis.splitlines()
    assert lines[1] == BY_NAME["split by a bare reshape"].sentence
    assert lines[3] == "This explains 3 of 4 wrong cases."
    assert lines[4].startswith("Besides, in the case 'leading axes': raised ValueError")


def test_two_mistakes_that_meet_in_every_case_are_both_named():
    def two_mistakes(q, k, v, mask=None):
        scores = q @ k.swapaxes(-1, -2) / q.shape[-1]  # no root
        scores = scores if mask is None else np.where(mask, scores, -np.inf)
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))  # NaN where nothing is allowed
        weights = e / e.sum(axis=-1, keepdims=True)
        return weights @ v, weights

    result = check_attention(two_mistakes)
    assert result.misconception == "scale by d_k without the root"
    assert result.misconceptions == (
        "scale by d_k without the root", "NaN where nothing is allowed",
    )  # fmt: skip
    assert "This explains" not in result.diagnosis


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


@pytest.mark.parametrize(("n_alike", "named"), [(3, True), (2, False)])
def test_a_mistake_is_named_that_explains_a_third_of_the_wrong_numbers(n_alike, named):
    entry = BY_NAME["softmax along the first axis"]
    asked = steps.cases("softmax", 7)
    alike = {case.name for case in asked[1:4][:n_alike]}
    others = {case.name for case in asked[1:]} - alike
    assert len(alike | others) == 7
    given = [
        ask(
            entry.function
            if case.name in alike
            else (WRONG["softmax"] if case.name in others else mha_lib.softmax),
            case.args,
            case.kwargs,
            case.parts,
        )
        for case in asked
    ]
    complaints = ["wrong" if case.name in alike | others else "" for case in asked]
    found = diagnose("softmax", asked, given, complaints)
    assert found.names == ((entry.name,) if named else ())
    assert ("This explains 3 of 7 wrong cases." in found.told) == named
    assert not found.explains_all


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
    assert (result.score, result.verdict) == (7 / 13, "partly right")
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
