"""Options meet in the cases: what is dropped or bent only where it meets another costs marks."""

import itertools

import numpy as np
import pytest

from mha_lib.teaching import check_attention, steps
from tests.teaching.students import score
from tests.teaching.styles import einsum_attention, einsum_layer

# --- multi-head attention ---------------------------------------------------------------------

ASKED = {  # whether a call asks for an option
    "mask": lambda call: call["mask"] is not None,
    "context": lambda call: call["context"] is not None,
    "weights": lambda call: call["return_weights"],
    "batch": lambda call: call["x"].ndim > 2,
    "float32": lambda call: call["x"].dtype == np.float32,
    "large scores": lambda call: abs(call["x"]).max() * abs(call["w"][0]).max() > 20,
    "unequal widths": lambda call: call["w"][2].shape[0] != call["w"][2].shape[1],
    "rows of nothing": lambda call: call["mask"] is not None and not call["mask"].any(-1).all(),
}


def only_first(call):
    """Return the answer for the first sequence, for all of them."""
    call = dict(call)
    n = len(call["x"])
    call["x"] = call["x"][:1].repeat(n, axis=0)
    if call["context"] is not None:
        call["context"] = call["context"][:1].repeat(n, axis=0)
    return answer(call)


def half_precision(call):
    out, weights = answer(call | {"return_weights": True})
    out, weights = (a.astype(np.float16).astype(a.dtype) for a in (out, weights))
    return (out, weights) if call["return_weights"] else out


DROPPED = {
    "mask": lambda call: answer(call | {"mask": None}),
    "context": lambda call: answer(call | {"context": call["x"]}),
    "weights": lambda call: answer(call | {"return_weights": False}),
    "batch": only_first,
    "float32": lambda call: half_precision(call),
    "large scores": lambda call: answer(call | {"w": [call["w"][0] / 2, *call["w"][1:]]}),
    "unequal widths": lambda call: answer(call | {"w": [*call["w"][:3], call["w"][3][:, ::-1]]}),
    "rows of nothing": lambda call: answer(
        call | {"mask": call["mask"] | ~call["mask"].any(-1, keepdims=True)}
    ),
}


def answer(call):
    options = {name: call[name] for name in ("context", "mask", "return_weights")}
    return einsum_layer(call["x"], *call["w"], call["n_heads"], **options)


def layer_that(is_bent, bend):
    """Return a right layer that is bent where it is asked for certain things."""

    def multi_head_attention(
        x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
    ):
        call = {
            "x": x, "w": [w_q, w_k, w_v, w_o], "n_heads": n_heads,
            "context": context, "mask": mask, "return_weights": return_weights,
        }  # fmt: skip
        return bend(call) if is_bent(call) else answer(call)

    return multi_head_attention


@pytest.mark.parametrize("seed", [7, 4391])
@pytest.mark.parametrize(
    ("dropped", "other"),
    [pair for pair in itertools.permutations(ASKED, 2) if pair != ("rows of nothing", "mask")],
)
def test_what_is_dropped_only_where_it_meets_another_costs_marks(dropped, other, seed):
    function = layer_that(
        lambda call: ASKED[dropped](call) and ASKED[other](call), DROPPED[dropped]
    )
    assert 0.5 < score("multi_head_attention", function, seed) < 1


def test_a_layer_that_drops_nothing_earns_all():
    assert score("multi_head_attention", layer_that(lambda call: False, None)) == 1


def refuse(call):
    raise ValueError("no such mask")


# Masks with more axes than two are those of a batch; one of the keys alone must broadcast there.
@pytest.mark.parametrize(
    ("n_axes", "batched"), [(1, True), (2, True), (3, True), (4, True), (2, False)]
)
def test_masks_of_every_rank_are_asked_for_with_and_without_a_batch(n_axes, batched):
    function = layer_that(
        lambda call: (
            call["mask"] is not None
            and call["mask"].ndim == n_axes
            and (call["x"].ndim > 2) == batched
        ),
        refuse,
    )
    assert score("multi_head_attention", function) < 1


def test_a_mask_for_each_head_is_not_one_for_each_sequence():
    """Where there are as many sequences as heads, nothing fails."""
    function = layer_that(
        lambda call: (
            call["mask"] is not None
            and call["mask"].ndim == call["x"].ndim == 3
            and len(call["mask"]) == len(call["x"])
        ),
        lambda call: answer(call | {"mask": call["mask"][:, None]}),
    )
    assert score("multi_head_attention", function) < 1


# --- attention --------------------------------------------------------------------------------

OF_ATTENTION = {
    "mask": lambda q, k, v, mask: mask is not None,
    "leading axes": lambda q, k, v, mask: q.ndim > 2,
    "float32": lambda q, k, v, mask: q.dtype == np.float32,
    "large scores": lambda q, k, v, mask: abs(q).max() > 9,
    "rows of nothing": lambda q, k, v, mask: mask is not None and not mask.any(axis=-1).all(),
}


@pytest.mark.parametrize(
    "pair",
    [
        pair
        for pair in itertools.combinations(OF_ATTENTION, 2)
        if pair != ("float32", "rows of nothing")  # they meet in the layer
    ],
)
def test_every_two_options_of_attention_meet(pair):
    def function(q, k, v, mask=None):
        out, weights = einsum_attention(q, k, v, mask)
        if all(OF_ATTENTION[option](q, k, v, mask) for option in pair):
            return out / 2, weights
        return out, weights

    assert score("scaled_dot_product_attention", function) < 1


@pytest.mark.parametrize("n_axes", [1, 2, 3, 4])
def test_masks_of_every_rank_broadcast_to_leading_axes(n_axes):
    def function(q, k, v, mask=None):
        if mask is not None and mask.ndim == n_axes and q.ndim == 4:
            raise ValueError("no such mask")
        return einsum_attention(q, k, v, mask)

    result = check_attention(function)
    assert 0.5 < result.score < 1
    assert result.misconceptions == ()


# --- what the numbers are ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_single_precision_on_the_way_is_far_from_the_tolerance(seed):
    for step, function in (
        ("scaled_dot_product_attention", einsum_attention),
        ("multi_head_attention", einsum_layer),
    ):
        for case in steps.cases(step, seed):
            args = [a.astype(np.float32) if isinstance(a, np.ndarray) else a for a in case.args]
            kwargs = {
                name: a.astype(np.float32) if name == "context" else a
                for name, a in case.kwargs.items()
            }
            found = function(*args, **kwargs)
            found = found if isinstance(found, tuple) else (found,)
            for (_, _, right), array in zip(case.right.arrays, found, strict=True):
                error = abs(np.ravel(array) - right).max() / max(abs(number) for number in right)
                assert error < case.tolerance / 2, (case.name, error)
