"""The annotations of the public API are right, as mypy finds in this file too.

That there are annotations is ruff's and mypy's business: ANN and disallow_incomplete_defs.
"""

import inspect
from pathlib import Path
from typing import assert_type, get_overloads

import numpy as np

import mha_lib
from mha_lib import (
    AttentionCost,
    attention_cost,
    causal_mask,
    combine_masks,
    merge_heads,
    multi_head_attention,
    padding_mask,
    scaled_dot_product_attention,
    softmax,
    split_heads,
)
from mha_lib._types import BoolArray, FloatArray
from mha_lib.learning.layer import MultiHeadAttention
from mha_lib.learning.models import TokenModel, VectorModel
from mha_lib.learning.tasks import MarkedAndMean, ThreeJobs
from mha_lib.learning.train import History, Recipe, fit


def test_the_package_tells_type_checkers_that_it_is_typed():
    assert Path(mha_lib.__file__).with_name("py.typed").is_file()


def test_the_two_forms_of_a_call_differ_in_what_they_return_alone():
    for form in get_overloads(multi_head_attention):
        names = list(inspect.signature(form).parameters)
        assert names == list(inspect.signature(multi_head_attention).parameters)


def test_results_have_the_types_that_mypy_infers() -> None:  # annotated, so that mypy reads it
    x, w = np.ones((2, 3, 4)), np.eye(4)
    assert_type(softmax([[0.0, 1.0]]), FloatArray)
    out, weights = scaled_dot_product_attention(x, x, x, causal_mask(3))
    assert_type(out, FloatArray)
    assert_type(weights, FloatArray)
    assert_type(merge_heads(split_heads(x, np.int64(2))), FloatArray)
    assert_type(padding_mask([2, 3], n=3), BoolArray)
    assert_type(combine_masks(causal_mask(3), None), BoolArray | None)
    assert_type(multi_head_attention(x, w, w, w, w, 2), FloatArray)
    with_weights = multi_head_attention(x, w, w, w, w, n_heads=2, return_weights=True)
    assert_type(with_weights, tuple[FloatArray, FloatArray])
    assert [a.shape for a in with_weights] == [(2, 3, 4), (2, 2, 3, 3)]
    assert_type(attention_cost(3, 4, 2), AttentionCost)
    layer = MultiHeadAttention(4, 2, np.random.default_rng(0), positions="rotary")
    assert_type(layer.forward(x), FloatArray)


def test_both_models_are_what_training_takes() -> None:
    recipe = Recipe(n_steps=2, learning_rate=0.01)
    assert_type(fit(VectorModel(MarkedAndMean(), 2, 0), MarkedAndMean(), recipe, 0), History)
    history = fit(
        TokenModel(ThreeJobs(), 8, 2, 0), ThreeJobs(), recipe, 0, watch=lambda m: m.layers
    )
    assert_type(history.losses, list[float])
    assert len(history.losses) == 2


def refused_by_mypy() -> None:
    """Hold the calls that must not pass; mypy complains of an ``ignore`` that it does not need."""
    x, w = np.ones((3, 4)), np.eye(4)
    causal_mask(3.0)  # type: ignore[arg-type]
    split_heads(x, n_heads="2")  # type: ignore[arg-type]
    scaled_dot_product_attention(x, x)  # type: ignore[call-arg]
    multi_head_attention(x, w, w, w, w, heads=2)  # type: ignore[call-overload]
    softmax(None)  # type: ignore[arg-type]
    MultiHeadAttention(4, 2, np.random.default_rng(0), positions="absolute")  # type: ignore[arg-type]
    fit(ThreeJobs(), ThreeJobs(), Recipe(2, 0.1), 0)  # type: ignore[type-var]
