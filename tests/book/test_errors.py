"""Bad calls, and what the error must say: the argument, both sizes and the way out."""

import inspect
import re
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy import ones, zeros

import mha_lib
from mha_lib import (
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
from mha_lib._check import NotFiniteError
from mha_lib.activations import softmax_backward, softmax_in_place
from mha_lib.attention import scaled_dot_product_attention_backward
from mha_lib.learning.experiments import (
    chance_scores,
    head_scores,
    run_induction,
    run_marked_and_mean,
    run_three_jobs,
    snapshot_steps,
)
from mha_lib.learning.frontier import best_row, job_errors
from mha_lib.learning.heads import (
    attention_mass,
    chance_mass,
    gradient_importance,
    greedy_order,
    induction_targets,
    losses_without,
    marked_token,
    normalised_entropy,
    order_by,
    path_importance,
    previous_token,
    pruning_curve,
    random_order,
    spearman,
    study_pruning,
)
from mha_lib.learning.layer import MultiHeadAttention
from mha_lib.learning.models import TokenModel, VectorModel
from mha_lib.learning.positions import rotary_angles, rotate
from mha_lib.learning.tasks import MarkedAndMean, RepeatedSequence, ThreeJobs, TokenBatch
from mha_lib.learning.train import (
    Adam,
    Recipe,
    accuracy,
    clip_gradients,
    cross_entropy,
    fit,
    squared_error,
)

PACKAGE = Path(mha_lib.__file__).parent
RAGGED = [[1, 2], [3]]
RNG = np.random.default_rng(0)
VECTORS, JOBS = MarkedAndMean(n=5, width=3, d=14), ThreeJobs(n=5, n_symbols=7)
REPEATED = RepeatedSequence(n=11, n_symbols=7, shortest=3, longest=5)
BATCH, OTHER_BATCH = JOBS.batch(RNG, 13), JOBS.batch(RNG, 13)


def attend(**changes):
    """Call single-head attention with good arguments (Tq=5, Tk=7, Dk=11, Dv=13) but for some."""
    good = {"q": ones((5, 11)), "k": ones((7, 11)), "v": ones((7, 13))}
    return scaled_dot_product_attention(**good | changes)


def attend_in_heads(**changes):
    """Call multi-head attention with good arguments (h=3, d_k=11, d_v=13) but for some."""
    good = {
        "x": ones((2, 5, 19)), "context": ones((2, 7, 23)), "n_heads": 3,
        "w_q": ones((19, 33)), "w_k": ones((23, 33)), "w_v": ones((23, 39)), "w_o": ones((39, 17)),
    }  # fmt: skip
    return multi_head_attention(**good | changes)


def attend_backward(**changes):
    """Call the backward of `attend` with good arguments but for some."""
    good = {
        "d_out": ones((5, 13)), "q": ones((5, 11)), "k": ones((7, 11)), "v": ones((7, 13)),
        "weights": ones((5, 7)) / 7,
    }  # fmt: skip
    return scaled_dot_product_attention_backward(**good | changes)


def layer(**changes):
    """Make a layer with good arguments (d=33, h=3) but for some."""
    return MultiHeadAttention(**{"d": 33, "n_heads": 3, "rng": RNG} | changes)


def forward(x=None, context=None, made=None, **changes):
    """Run a layer, with ``made`` beside `layer`'s arguments, on good arguments but for some."""
    x = ones((2, 5, 33)) if x is None else x
    return layer(**made or {}).forward(x, context, **changes)


def backward(d_out, n=5):
    """Run the backward of a layer after a forward with x (2, n, 33)."""
    asked = layer()
    asked.forward(ones((2, n, 33)))
    return asked.backward(d_out)


def set_parameter(name, value):
    """Set a parameter of a layer."""
    layer().parameters[name] = value


def entropy_of(**changes):
    """Call cross-entropy with good arguments (..., 2, 5, 3) and V=7 but for some."""
    good = {
        "logits": ones((2, 5, 3, 7)),
        "targets": ones((2, 5, 3), int),
        "counted": ones((2, 5, 3), bool),
    }
    return cross_entropy(**good | changes)


def accuracy_of(**changes):
    """Call accuracy with the same."""
    good = {
        "logits": ones((2, 5, 3, 7)),
        "targets": ones((2, 5, 3), int),
        "counted": ones((2, 5, 3), bool),
    }
    return accuracy(**good | changes)


def error_of(**changes):
    """Call the squared error with good arguments (2, 5, 7) but for some."""
    good = {"outputs": ones((2, 5, 7)), "targets": ones((2, 5, 7)), "importance": ones(7)}
    return squared_error(**good | changes)


def train(**changes):
    """Train a small model for 3 steps with good arguments but for some."""
    good = {"model": token_model(), "task": JOBS, "recipe": Recipe(3, 0.01), "seed": 0}
    return fit(**good | changes)


def token_model(task=None, d=6, n_heads=3, seed=0, **options):
    """Return a small model of three jobs."""
    return TokenModel(JOBS if task is None else task, d, n_heads, seed, **options)


def batch(**changes):
    """Return a batch of three jobs but for some arrays."""
    return TokenBatch(**vars(BATCH) | changes)


def after_forward(model, batch, gradient):
    """Run a model forward, then backward."""
    model.forward(batch)
    model.backward(gradient)


def study(**changes):
    """Study a small model with good arguments but for some."""
    good = {"model": token_model(), "tuning": BATCH, "reporting": OTHER_BATCH}
    return study_pruning(**good | changes)


def no_loss(gates):
    """Return what cannot be compared."""
    return np.nan, None


def gain(gates):
    """Return a loss and a result."""
    return -gates.sum(), gates


def message_of(call, exception):
    """Return what the error of a bad call says, once its type and its origin are as they must be.

    It must be raised by a ``raise`` of `mha_lib`, not inside NumPy or by Python itself.
    """
    with pytest.raises(exception) as caught:
        call()
    assert caught.type is exception
    origin = traceback.extract_tb(caught.tb)[-1]
    assert Path(origin.filename).parent == PACKAGE
    assert origin.line.startswith("raise ")
    return str(caught.value)


def bad_answers(call):
    """Return the bad calls that cross-entropy and accuracy share."""
    return [
        (lambda: call(targets=ones((2, 5), int)), ValueError,
         ["targets (its shape) has size (2, 5)", "logits (all but the last axis)", "(2, 5, 3)",
          "every row of logits one entry"]),
        (lambda: call(counted=ones((5, 3), bool)), ValueError,
         ["counted (its shape) has size (5, 3)", "logits", "(2, 5, 3)"]),
        (lambda: call(targets=np.full((2, 5, 3), 7)), ValueError,
         ["targets runs from 7 to 7", "symbols V=7", "use 0 to 6"]),
        (lambda: call(targets=np.full((2, 5, 3), -1)), ValueError, ["targets runs from -1 to -1"]),
        (lambda: call(targets=ones((2, 5, 3))), TypeError,
         ["targets has dtype float64", "integers"]),
        (lambda: call(counted=ones((2, 5, 3))), TypeError, ["counted has dtype float64", "bool"]),
        (lambda: call(logits=ones((2, 5, 3, 0))), ValueError, ["logits", "V=0", "a symbol"]),
        (lambda: call(logits=np.full((2, 5, 3, 7), np.inf)), NotFiniteError,
         ["logits holds inf or NaN", "argwhere"]),
    ]  # fmt: skip


BAD_CALLS = [
    # softmax
    (lambda: softmax(1.0), ValueError, ["z has shape ()", "0 axes", "at least 1", "z[None]"]),
    (lambda: softmax(RAGGED), ValueError, ["z is ragged", "every row the same length"]),
    (lambda: softmax(ones((2, 3)), 2), ValueError, ["axis=2", "z has 2 axes", "axis <= 1"]),
    (lambda: softmax(ones((2, 3)), -3), ValueError, ["axis=-3", "axis >= -2"]),
    # scaled_dot_product_attention
    (lambda: attend(q=ones(11)), ValueError,
     ["q has shape (11,)", "1 axis,", "at least 2", "(..., Tq, Dk)", "q[None]"]),
    (lambda: attend(k=ones(11)), ValueError, ["k has shape (11,)", "(..., Tk, Dk)"]),
    (lambda: attend(v=ones(7)), ValueError, ["v has shape (7,)", "(..., Tk, Dv)"]),
    (lambda: attend(q=ones((5, 17))), ValueError,
     ["q axis Dk has size 17", "k axis Dk has size 11", "to one width"]),
    (lambda: attend(v=ones((19, 13))), ValueError,
     ["k axis Tk has size 7", "v axis Tk has size 19", "every key exactly one value"]),
    (lambda: attend(q=ones((5, 0)), k=ones((7, 0))), ValueError,
     ["q and k", "Dk=0", "at least one number"]),
    (lambda: attend(q=ones((2, 5, 11)), k=ones((3, 7, 11))), ValueError,
     ["leading axes", "q (2,)", "k (3,)", "v ()", "make them equal, or 1"]),
    (lambda: attend(mask=ones((7, 5), bool)), ValueError,
     ["mask has shape (7, 5)", "(..., Tq, Tk) = (5, 7)", "or 1"]),
    (lambda: attend(mask=ones((2, 5, 7), bool)), ValueError,
     ["mask has shape (2, 5, 7)", "(..., Tq, Tk) = (5, 7)"]),
    (lambda: attend(mask=RAGGED), ValueError, ["mask is ragged", "every row the same length"]),
    (lambda: attend(mask=ones((5, 7))), TypeError,
     ["mask has dtype float64", "must be bool", "True where this query may look",
      "mask.astype(bool)", "mask == 0"]),
    (lambda: attend(mask=ones((5, 7), int)), TypeError, ["mask has dtype int64", "mask.astype"]),
    # split_heads, merge_heads
    (lambda: split_heads(ones(33), 3), ValueError, ["x has shape (33,)", "(..., n, d)", "x[None]"]),
    (lambda: split_heads(ones((5, 33)), 4), ValueError,
     ["n_heads=4", "d=33", "n_heads=3 or 11", "multiple of 4", "32 or 36"]),
    (lambda: split_heads(ones((5, 33)), 34), ValueError,
     ["n_heads=34", "d=33", "n_heads=33,", "multiple of 34, such as 34"]),
    (lambda: split_heads(ones((5, 33)), 0), ValueError, ["n_heads=0", "n_heads >= 1"]),
    (lambda: split_heads(ones((5, 33)), np.int8(-3)), ValueError, ["n_heads=-3", "n_heads >= 1"]),
    (lambda: split_heads(ones((5, 0)), 3), ValueError, ["d=0", "n_heads=3"]),
    (lambda: merge_heads(ones((5, 11))), ValueError,
     ["x has shape (5, 11)", "2 axes", "at least 3", "(..., h, n, d_k)", "x[None]"]),
    # multi_head_attention
    (lambda: attend_in_heads(x=ones(19)), ValueError, ["x has shape (19,)", "(..., n, d)"]),
    (lambda: attend_in_heads(context=ones(23)), ValueError,
     ["context has shape (23,)", "(..., m, d_c)"]),
    (lambda: attend_in_heads(w_q=ones(19)), ValueError,
     ["w_q has shape (19,)", "(..., d, h * d_k)"]),
    (lambda: attend_in_heads(w_k=ones((2, 23, 33))), ValueError,
     ["w_k has shape (2, 23, 33)", "3 axes", "exactly 2", "(d_c, h_kv * d_k)", "one matrix"]),
    (lambda: attend_in_heads(w_v=ones((2, 23, 39))), ValueError,
     ["w_v has shape (2, 23, 39)", "exactly 2", "(d_c, h_kv * d_v)"]),
    (lambda: attend_in_heads(w_o=ones((2, 39, 17))), ValueError,
     ["w_o has shape (2, 39, 17)", "exactly 2", "(h * d_v, d_out)"]),
    (lambda: attend_in_heads(w_q=ones((29, 33))), ValueError,
     ["x (its last axis) has size 19", "w_q (its rows) has size 29", "each column of x"]),
    (lambda: attend_in_heads(w_k=ones((19, 33))), ValueError,
     ["context (its last axis) has size 23", "w_k (its rows) has size 19", "column of context"]),
    (lambda: attend_in_heads(w_v=ones((19, 39))), ValueError,
     ["context (its last axis) has size 23", "w_v (its rows) has size 19", "column of context"]),
    (lambda: attend_in_heads(context=None), ValueError,
     ["x (its last axis) has size 19", "w_k (its rows) has size 23", "each column of x"]),
    (lambda: attend_in_heads(w_k=ones((23, 36))), ValueError,
     ["w_q (its columns) has size 33", "w_k (its columns) has size 36", "same number of columns"]),
    (lambda: attend_in_heads(w_o=ones((33, 17))), ValueError,
     ["w_v (its columns) has size 39", "w_o (its rows) has size 33", "concatenated heads"]),
    (lambda: attend_in_heads(n_heads=13), ValueError,
     ["n_heads=13", "w_q.shape[1]=33", "n_heads=11 or 33", "26 or 39"]),
    (lambda: attend_in_heads(n_heads=11), ValueError,
     ["n_heads=11", "w_v.shape[1]=39", "n_heads=3 or 13", "33 or 44"]),
    (lambda: attend_in_heads(n_heads=0), ValueError, ["n_heads=0", "n_heads >= 1"]),
    (lambda: attend_in_heads(w_q=ones((19, 0)), w_k=ones((23, 0))), ValueError,
     ["w_q.shape[1]=0", "n_heads=3"]),
    (lambda: attend_in_heads(mask=ones((2, 5, 7), bool)), ValueError,
     ["mask has shape (2, 5, 7)", "(..., Tq, Tk) = (2, 3, 5, 7)", "or 1"]),
    (lambda: attend_in_heads(mask=ones((7, 2, 3, 5, 7), bool)), ValueError,
     ["mask has shape (7, 2, 3, 5, 7)", "(2, 3, 5, 7)"]),
    (lambda: attend_in_heads(mask=zeros((5, 7))), TypeError, ["mask has dtype float64", "bool"]),
    (lambda: attend_in_heads(context=ones((3, 7, 23))), ValueError,
     ["leading axes", "x (2,)", "context (3,)", "make them equal, or 1"]),
    (lambda: attend_in_heads(context=ones((3, 7, 23)), mask=True), ValueError,
     ["leading axes", "x (2,)", "context (3,)", "make them equal, or 1"]),
    (lambda: attend_in_heads(n_kv_heads=0), ValueError, ["n_kv_heads=0", "n_kv_heads >= 1"]),
    (lambda: attend_in_heads(n_kv_heads=2), ValueError,
     ["n_kv_heads=2", "n_heads=3", "n_kv_heads=1 or 3", "2 or 4"]),
    (lambda: attend_in_heads(n_kv_heads=5), ValueError,
     ["n_kv_heads=5", "n_heads=3", "n_kv_heads=3", "multiple of 5, such as 5"]),
    (lambda: attend_in_heads(n_kv_heads=1), ValueError,
     ["w_k (its columns) has size 33", "n_kv_heads * d_k has size 11", "d_k=11 columns",
      "each of n_kv_heads=1"]),
    (lambda: attend_in_heads(n_kv_heads=1, w_k=ones((23, 11))), ValueError,
     ["w_o (its rows) has size 39", "n_heads * d_v has size 117", "d_v=39 rows",
      "each of n_heads=3"]),
    (lambda: attend_in_heads(n_heads=9, n_kv_heads=3), ValueError,
     ["n_heads=9", "w_q.shape[1]=33", "n_heads=3 or 11", "27 or 36"]),
    (lambda: attend_in_heads(n_heads=33, n_kv_heads=11, w_k=ones((23, 11))), ValueError,
     ["n_kv_heads=11", "w_v.shape[1]=39", "n_kv_heads=3 or 13", "33 or 44"]),
    (lambda: attend_in_heads(n_kv_heads=1, w_v=ones((23, 0))), ValueError,
     ["w_v.shape[1]=0", "n_kv_heads=1"]),
    # masks
    (lambda: causal_mask(-1), ValueError, ["n=-1", "n >= 0"]),
    (lambda: causal_mask(5, n_past=-2), ValueError, ["n_past=-2", "n_past >= 0"]),
    (lambda: padding_mask([5, 8, 9], 7), ValueError,
     ["lengths contains 8", "0 and n=7", "n larger"]),
    (lambda: padding_mask([5, -1], 7), ValueError, ["lengths contains -1", "0 and n=7"]),
    (lambda: padding_mask(5, -1), ValueError, ["n=-1", "n >= 0"]),
    (lambda: padding_mask(RAGGED, 7), ValueError,
     ["lengths is ragged", "every row the same length"]),
    (lambda: padding_mask([5.0], 7), TypeError,
     ["lengths has dtype float64", "integers", "lengths.astype(int)"]),
    (lambda: padding_mask([True], 7), TypeError, ["lengths has dtype bool", "integers"]),
    (lambda: combine_masks(None, ones((5, 7), bool), ones((7, 5), bool)), ValueError,
     ["the shapes do not broadcast", "masks[1] (5, 7)", "masks[2] (7, 5)", "or 1"]),
    (lambda: combine_masks(ones(5, bool), ones(5)), TypeError,
     ["masks[1] has dtype float64", "masks[1].astype(bool)"]),
    # attention_cost
    (lambda: attention_cost(-1, 12, 3), ValueError, ["n=-1", "n >= 0"]),
    (lambda: attention_cost(5, 0, 3), ValueError, ["d=0", "d >= 1"]),
    (lambda: attention_cost(5, 12, 0), ValueError, ["n_heads=0", "n_heads >= 1"]),
    (lambda: attention_cost(5, 12, 5), ValueError,
     ["n_heads=5", "d=12", "n_heads=4 or 6", "10 or 15"]),
    (lambda: attention_cost(5, 12, 3, n_context=-1), ValueError,
     ["n_context=-1", "n_context >= 0"]),
    (lambda: attention_cost(5, 12, 3, n_kv_heads=0), ValueError,
     ["n_kv_heads=0", "n_kv_heads >= 1"]),
    (lambda: attention_cost(5, 12, 3, n_kv_heads=2), ValueError,
     ["n_kv_heads=2", "n_heads=3", "n_kv_heads=1 or 3", "2 or 4"]),
    (lambda: attention_cost(5, 12, 3, bytes_per_number=0), ValueError,
     ["bytes_per_number=0", "bytes_per_number >= 1"]),
    # frontier
    (lambda: job_errors(1.0), ValueError, ["weights has shape ()", "(..., n)"]),
    (lambda: job_errors([[0, 0], [0, 1]]), ValueError, ["weights", "all 0"]),
    (lambda: job_errors([[0, np.nan], [0, 1]]), ValueError, ["weights", "finite"]),
    (lambda: job_errors([np.inf, 1]), ValueError, ["weights", "finite"]),
    (lambda: job_errors(ones((3, 0))), ValueError, ["weights", "all 0"]),
    (lambda: job_errors(ones(7), 7), ValueError, ["marked=7", "7 entries", "marked <= 6"]),
    (lambda: job_errors(ones(7), -1), ValueError, ["marked=-1", "marked >= 0"]),
    (lambda: best_row(1), ValueError, ["n=1", "n >= 2"]),
    (lambda: best_row(7, marked=7), ValueError, ["marked=7", "n=7", "marked <= 6"]),
    (lambda: best_row(7, marked=-1), ValueError, ["marked=-1", "marked >= 0"]),
    (lambda: best_row(7, 1.5), ValueError, ["importance=1.5", "between 0 and 1"]),
    (lambda: best_row(7, -0.1), ValueError, ["importance=-0.1", "between 0 and 1"]),
    (lambda: best_row(7, np.nan), ValueError, ["importance=nan", "between 0 and 1"]),
    (lambda: best_row(7, "0.5"), TypeError, ["importance has dtype <U3", "float64"]),
    (lambda: best_row(7, None), TypeError, ["importance has dtype object", "float64"]),
    (lambda: best_row(7, [0.1, 0.5]), TypeError, ["importance", "one number"]),
    # softmax_in_place, softmax_backward
    (lambda: softmax_in_place([0.0, 1.0]), TypeError, ["z must be a float array", "np.array(z"]),
    (lambda: softmax_in_place(ones(3, int)), TypeError, ["z must be a float array", "np.array(z"]),
    (lambda: softmax_in_place(np.broadcast_to(1.0, 3)), TypeError,
     ["z must be a float array that may be overwritten", "np.array(z"]),
    (lambda: softmax_in_place(np.array(1.0)), ValueError, ["z has shape ()", "at least 1"]),
    (lambda: softmax_in_place(np.ma.ones(3)), TypeError, ["z is a masked array", "z.filled("]),
    (lambda: softmax_backward(ones((5, 7)), ones(7)), ValueError,
     ["d_weights has shape (5, 7)", "weights has shape (7,)", "pass the gradient of weights"]),
    (lambda: softmax_backward(1.0, ones(7)), ValueError, ["d_weights has shape ()", "at least 1"]),
    (lambda: softmax_backward(ones(7), 1.0), ValueError, ["weights has shape ()", "at least 1"]),
    (lambda: softmax_backward(ones(7), ones(7), 1), ValueError,
     ["axis=1", "weights has 1 axes", "axis <= 0"]),
    # scaled_dot_product_attention_backward
    (lambda: attend_backward(q=ones(11)), ValueError, ["q has shape (11,)", "(..., Tq, Dk)"]),
    (lambda: attend_backward(q=ones((5, 17))), ValueError,
     ["q axis Dk has size 17", "k axis Dk has size 11", "to one width"]),
    (lambda: attend_backward(d_out=ones(13)), ValueError,
     ["d_out has shape (13,)", "(..., Tq, Dv)"]),
    (lambda: attend_backward(d_out=ones((13, 5))), ValueError,
     ["d_out has shape (13, 5)", "make it (5, 13)", "belongs to their forward pass"]),
    (lambda: attend_backward(d_out=ones((2, 5, 13))), ValueError,
     ["d_out has shape (2, 5, 13)", "make it (5, 13)"]),
    (lambda: attend_backward(weights=ones(7)), ValueError,
     ["weights has shape (7,)", "(..., Tq, Tk)"]),
    (lambda: attend_backward(weights=ones((7, 5))), ValueError,
     ["weights has shape (7, 5)", "make it (5, 7)", "belongs to their forward pass"]),
    *((lambda n=name, s=shape, b=bad: attend_backward(**{n: np.full(s, b)}), NotFiniteError,
       [f"{name} holds inf or NaN", "np.argwhere"])
      for name, shape in (("d_out", (5, 13)), ("q", (5, 11)), ("k", (7, 11)), ("v", (7, 13)),
                          ("weights", (5, 7)))
      for bad in (np.nan, -np.inf)),
    # rotary positions
    (lambda: rotary_angles(-1, 4), ValueError, ["n=-1", "n >= 0"]),
    (lambda: rotary_angles(5, 0), ValueError, ["d_k=0", "d_k >= 2"]),
    (lambda: rotary_angles(5, 7), ValueError, ["d_k=7 is odd", "in pairs", "use 6 or 8"]),
    (lambda: rotate(ones(4), ones((5, 2))), ValueError, ["x has shape (4,)", "(..., n, d_k)"]),
    (lambda: rotate(ones((5, 7)), ones((5, 3))), ValueError,
     ["x axis d_k=7 is odd", "in pairs", "use 6 or 8"]),
    (lambda: rotate(ones((5, 4)), ones((3, 2))), ValueError,
     ["angles has shape (3, 2)", "x has shape (5, 4)", "rotary_angles(n=5, d_k=4)"]),
    (lambda: rotate(ones((5, 4)), ones((2, 5, 2))), ValueError,
     ["angles has shape (2, 5, 2)", "exactly 2", "(n, d_k // 2)"]),
    # the layer
    (lambda: layer(d=0), ValueError, ["d=0", "d >= 1"]),
    (lambda: layer(n_heads=0), ValueError, ["n_heads=0", "n_heads >= 1"]),
    (lambda: layer(n_heads=4), ValueError, ["n_heads=4", "d=33", "n_heads=3 or 11", "32 or 36"]),
    (lambda: layer(d_v=0), ValueError, ["d_v=0", "d_v >= 1"]),
    (lambda: layer(d_context=0), ValueError, ["d_context=0", "d_context >= 1"]),
    (lambda: layer(rng=7), TypeError,
     ["rng must be a generator, not int", "np.random.default_rng(seed)"]),
    (lambda: layer(positions="absolute"), ValueError,
     ["positions='absolute'", "(None, 'learned', 'rotary')"]),
    (lambda: layer(positions="rotary"), ValueError,
     ["d_k=11 is odd", "use 10 or 12, that is another d or n_heads"]),
    (lambda: layer(positions="learned"), ValueError, ["n_max is missing", "longest length"]),
    (lambda: layer(positions="learned", n_max=0), ValueError, ["n_max=0", "n_max >= 1"]),
    (lambda: layer(positions="learned", n_max=5, d_context=7), ValueError,
     ["positions and causal", "d_context=7", "leave them out"]),
    (lambda: layer(causal=True, d_context=7), ValueError, ["positions and causal", "d_context=7"]),
    (lambda: layer(value_columns=[0, 33]), ValueError,
     ["value_columns runs from 0 to 33", "columns=33", "use 0 to 32"]),
    (lambda: layer(value_columns=[-1]), ValueError, ["value_columns runs from -1", "use 0 to 32"]),
    (lambda: layer(value_columns=[7], d_context=7), ValueError, ["value_columns", "columns=7"]),
    (lambda: layer(value_columns=ones(33, bool)), TypeError,
     ["value_columns has dtype bool", "integers"]),
    (lambda: layer().backward(ones((5, 33))), ValueError,
     ["backward needs a forward pass", "forward(x) first"]),
    (lambda: forward(ones(33)), ValueError, ["x has shape (33,)", "(..., n, d)"]),
    (lambda: forward(ones((5, 19))), ValueError,
     ["x (its last axis) has size 19", "the layer has size 33", "the width of x"]),
    (lambda: forward(np.full((5, 33), np.nan)), NotFiniteError, ["x holds inf or NaN", "argwhere"]),
    (lambda: forward(np.full((5, 33), 1e200)), NotFiniteError, ["scores holds inf or NaN"]),
    (lambda: forward(context=ones((2, 7, 33))), ValueError,
     ["context is given", "d_context=None", "or None"]),
    (lambda: forward(made={"d_context": 19}), ValueError,
     ["context is missing", "d_context=19", "the width of the context"]),
    (lambda: forward(context=ones((2, 7, 33)), made={"d_context": 19}), ValueError,
     ["context (its last axis) has size 33", "the layer has size 19"]),
    (lambda: forward(context=ones((7, 19)), made={"d_context": 19}), ValueError,
     ["x (all but its last two axes) has size (2,)", "context has size ()", "its own context"]),
    (lambda: forward(context=np.full((2, 7, 19), np.inf), made={"d_context": 19}), NotFiniteError,
     ["context holds inf or NaN", "argwhere"]),
    (lambda: forward(made={"positions": "learned", "n_max": 3}), ValueError,
     ["x has n=5 tokens", "n_max=3", "make the layer with n_max=5"]),
    (lambda: forward(mask=ones((5, 7), bool)), ValueError,
     ["mask has shape (5, 7)", "(..., Tq, Tk) = (2, 3, 5, 5)"]),
    (lambda: forward(mask=ones((5, 5))), TypeError, ["mask has dtype float64", "bool"]),
    (lambda: forward(mask=ones((2, 5, 5), bool), made={"causal": True}), ValueError,
     ["mask has shape (2, 5, 5)", "(2, 3, 5, 5)"]),
    (lambda: forward(gates=ones(2)), ValueError,
     ["gates has shape (2,)", "(2, 3)", "one gate per head"]),
    (lambda: forward(gates=ones((7, 2, 3))), ValueError, ["gates has shape (7, 2, 3)", "(2, 3)"]),
    (lambda: forward(gates=1.0), ValueError, ["gates has shape ()", "(..., h)"]),
    (lambda: forward(gates=[1, np.nan, 1]), NotFiniteError, ["gates holds inf or NaN"]),
    (lambda: forward(gates=[1e308, 1e308, 1e308]), NotFiniteError, ["out holds inf or NaN"]),
    (lambda: backward(ones((5, 33))), ValueError,
     ["d_out has shape (5, 33)", "x has shape (2, 5, 33)", "gradient of the last output"]),
    (lambda: backward(np.full((2, 5, 33), np.inf)), NotFiniteError, ["d_out holds inf or NaN"]),
    (lambda: set_parameter("w_x", 1.0), ValueError,
     ["no array 'w_x'", "use one of w_q, w_k, w_v, w_o"]),
    (lambda: set_parameter("w_q", ones((33, 11))), ValueError,
     ["the new w_q has shape (33, 11)", "the old has shape (33, 33)", "keep the shape"]),
    (lambda: set_parameter("w_q", None), TypeError, ["w_q has dtype object", "float64"]),
    # tasks
    (lambda: MarkedAndMean(n=1), ValueError, ["n=1", "n >= 2"]),
    (lambda: MarkedAndMean(width=0), ValueError, ["width=0", "width >= 1"]),
    (lambda: MarkedAndMean(d=0), ValueError, ["d=0", "d >= 1"]),
    (lambda: MarkedAndMean(width=7, d=13), ValueError,
     ["d=13", "too small", "width=7", "use d >= 14"]),
    (lambda: MarkedAndMean(width=1, d=2), ValueError, ["d=2", "width=1", "use d >= 3"]),
    (lambda: ThreeJobs(n=1), ValueError, ["n=1", "n >= 2"]),
    (lambda: ThreeJobs(n_symbols=1), ValueError, ["n_symbols=1", "n_symbols >= 2"]),
    (lambda: RepeatedSequence(shortest=1), ValueError, ["shortest=1", "shortest >= 2"]),
    (lambda: RepeatedSequence(shortest=7, longest=5), ValueError,
     ["shortest=7", "longest=5", "shortest <= longest <= 16"]),
    (lambda: RepeatedSequence(longest=17), ValueError,
     ["longest=17", "n_symbols=16", "longest <= 16"]),
    (lambda: RepeatedSequence(n=11, longest=11), ValueError,
     ["longest=11", "n=11", "longest <= 10"]),
    *((lambda task=task: task.batch(7, 5), TypeError,
       ["rng must be a generator, not int", "np.random.default_rng(seed)"])
      for task in (VECTORS, JOBS, REPEATED)),
    *((lambda task=task: task.batch(RNG, 0), ValueError, ["n_sequences=0", "n_sequences >= 1"])
      for task in (VECTORS, JOBS, REPEATED)),
    # losses
    *bad_answers(entropy_of), *bad_answers(accuracy_of),
    (lambda: entropy_of(logits=1.0), ValueError, ["logits has shape ()", "(..., V)"]),
    (lambda: entropy_of(counted=zeros((2, 5, 3), bool)), ValueError,
     ["counted is False everywhere", "at least one place"]),
    (lambda: accuracy_of(logits=ones((5, 3, 7))), ValueError,
     ["logits has shape (5, 3, 7)", "(..., B, n, J, V)"]),
    (lambda: accuracy_of(counted=np.arange(3) != np.full((2, 5, 1), 1)), ValueError,
     ["counted is False everywhere for job 1", "more sequences"]),
    (lambda: error_of(outputs=1.0), ValueError, ["outputs has shape ()", "(..., c)"]),
    (lambda: error_of(targets=ones((5, 7))), ValueError,
     ["outputs has shape (2, 5, 7)", "targets has shape (5, 7)", "every number its target"]),
    (lambda: error_of(importance=ones(5)), ValueError,
     ["importance has size 5", "outputs axis c has size 7", "every column its importance"]),
    (lambda: error_of(importance=1.0), ValueError, ["importance has shape ()", "c"]),
    (lambda: error_of(importance=ones((5, 7))), ValueError,
     ["importance has shape (5, 7)", "exactly 1"]),
    (lambda: error_of(outputs=ones((0, 7)), targets=ones((0, 7))), ValueError,
     ["outputs has shape (0, 7)", "at least one"]),
    *((lambda n=name, s=shape: error_of(**{n: np.full(s, np.nan)}), NotFiniteError,
       [f"{name} holds inf or NaN"])
      for name, shape in (("outputs", (2, 5, 7)), ("targets", (2, 5, 7)), ("importance", (7,)))),
    # Adam, clip_gradients, Recipe
    (lambda: Adam({"w": [1.0]}), TypeError, ["parameter 'w' must be a float array", "np.array("]),
    (lambda: Adam({"w": ones(3, int)}), TypeError, ["parameter 'w' must be a float array"]),
    (lambda: Adam({"w": ones(3)}, decay=0.9), ValueError, ["decay=0.9", "a pair", "(0.9, 0.99)"]),
    (lambda: Adam({"w": ones(3)}, decay=(0.9, 1.5)), ValueError, ["decay=1.5", "between 0 and 1"]),
    (lambda: Adam({"w": ones(3)}, decay=(1.0, 0.9)), ValueError,
     ["decay=(1.0, 0.9)", "numbers below 1"]),
    (lambda: Adam({"w": ones(3)}, epsilon=0), ValueError, ["epsilon=0.0", "above 0"]),
    (lambda: Adam({"w": ones(3)}).step({"v": ones(3)}, 0.1), ValueError,
     ["gradients are for v", "parameters are w", "every parameter its gradient"]),
    (lambda: Adam({"w": ones(3)}).step({"w": ones(1)}, 0.1), ValueError,
     ["gradient 'w' has shape (1,)", "its parameter has shape (3,)", "every number its gradient"]),
    (lambda: clip_gradients({"w": ones(3)}, 0), ValueError, ["largest_norm=0.0", "above 0"]),
    (lambda: clip_gradients({"w": ones(3)}, np.nan), ValueError, ["largest_norm=nan", "above 0"]),
    (lambda: clip_gradients({"w": ones(3)}, "1"), TypeError, ["largest_norm has dtype <U1"]),
    (lambda: clip_gradients({"w": ones(3)}, [1, 2]), TypeError,
     ["largest_norm has shape (2,)", "one number"]),
    (lambda: Recipe(0, 0.01), ValueError, ["n_steps=0", "n_steps >= 1"]),
    (lambda: Recipe(7, 0.01, n_sequences=0), ValueError, ["n_sequences=0", "n_sequences >= 1"]),
    (lambda: Recipe(7, 0.01, n_warm_up=0), ValueError, ["n_warm_up=0", "n_warm_up >= 1"]),
    (lambda: Recipe(7, 0), ValueError, ["learning_rate=0.0", "above 0", "0.01"]),
    (lambda: Recipe(7, np.inf), ValueError, ["learning_rate=inf", "finite", "0.01"]),
    (lambda: Recipe(7, "0.01"), TypeError, ["learning_rate has dtype <U4"]),
    (lambda: Recipe(7, 0.01, last_rate=1.5), ValueError, ["last_rate=1.5", "between 0 and 1"]),
    (lambda: Recipe(7, 0.01, largest_norm=-1), ValueError, ["largest_norm=-1.0", "above 0"]),
    # fit
    (lambda: train(model=None), TypeError,
     ["model is of type NoneType", "no parameters", "TokenModel"]),
    (lambda: train(task=7), TypeError, ["task is of type int", "no batch", "mha_lib.learning.tasks"]),
    (lambda: train(recipe=500), TypeError, ["recipe is of type int", "no rate", "Recipe"]),
    (lambda: train(seed=-1), ValueError, ["seed=-1", "seed >= 0"]),
    (lambda: train(watch=7), TypeError, ["watch is of type int", "a function, or None"]),
    (lambda: train(progress=True), TypeError, ["progress is of type bool", "a function, or None"]),
    (lambda: train(watch_at=3), TypeError, ["watch_at is of type int", "a list of steps"]),
    (lambda: train(watch_at=[0, 4]), ValueError, ["watch_at names step 4", "n_steps=3"]),
    (lambda: train(watch_at=[-1]), ValueError, ["watch_at=-1", "watch_at >= 0"]),
    (lambda: train(task=VECTORS), TypeError, ["batch is of type VectorBatch", "no tokens"]),
    (lambda: train(task=ThreeJobs(n=5, n_symbols=11)), ValueError,
     ["tokens runs from 0 to", "symbols V=7", "use 0 to 6"]),
    (lambda: train(task=ThreeJobs(n=7, n_symbols=7)), ValueError,
     ["x has n=7 tokens", "n_max=5", "n_max=7"]),
    # models
    (lambda: VectorModel(JOBS, 2, 0), TypeError,
     ["task is of type ThreeJobs", "no d", "MarkedAndMean()"]),
    (lambda: VectorModel(VECTORS, 3, 0), ValueError, ["n_heads=3", "d=14", "2 or 7"]),
    (lambda: VectorModel(VECTORS, 2, -1), ValueError, ["seed=-1", "seed >= 0"]),
    (lambda: VectorModel(VECTORS, 2, 0, importance=2), ValueError,
     ["importance=2.0", "between 0 and 1"]),
    (lambda: VectorModel(VECTORS, 2, 0).forward(BATCH), TypeError,
     ["batch is of type TokenBatch", "no x", "VectorBatch"]),
    (lambda: VectorModel(VECTORS, 2, 0).forward(MarkedAndMean().batch(RNG, 3)), ValueError,
     ["x (its last axis) has size 16", "the layer has size 14"]),
    (lambda: VectorModel(VECTORS, 2, 0).forward(VECTORS.batch(RNG, 3), ones(2)), ValueError,
     ["gates has shape (2,)", "(..., L, h)"]),
    (lambda: VectorModel(VECTORS, 2, 0).forward(VECTORS.batch(RNG, 3), ones((3, 2))), ValueError,
     ["gates has shape (3, 2)", "(1, 2)", "one gate per head"]),
    (lambda: VectorModel(VECTORS, 2, 0).backward(ones((3, 5, 6))), ValueError,
     ["backward needs a forward pass", "forward(batch) first"]),
    (lambda: after_forward(VectorModel(VECTORS, 2, 0), VECTORS.batch(RNG, 3), ones((3, 5, 14))),
     ValueError, ["d_outputs has shape (3, 5, 14)", "(3, 5, 6)", "gradient of the last output"]),
    (lambda: token_model(VECTORS), TypeError,
     ["task is of type MarkedAndMean", "no n_symbols", "ThreeJobs()"]),
    (lambda: token_model(n_heads=4), ValueError, ["n_heads=4", "d=6", "3 or 6"]),
    (lambda: token_model(n_layers=0), ValueError, ["n_layers=0", "n_layers >= 1"]),
    (lambda: token_model(seed=-1), ValueError, ["seed=-1", "seed >= 0"]),
    (lambda: token_model(positions="sinus"), ValueError, ["positions='sinus'", "'learned'"]),
    (lambda: token_model(d=9, positions="rotary"), ValueError, ["d_k=3 is odd", "use 2 or 4"]),
    (lambda: token_model().forward(VECTORS.batch(RNG, 3)), TypeError,
     ["batch is of type VectorBatch", "no tokens", "TokenBatch"]),
    (lambda: token_model().forward(batch(tokens=ones((13, 5)))), TypeError,
     ["tokens has dtype float64", "integers"]),
    (lambda: token_model().forward(batch(tokens=ones(5, int))), ValueError,
     ["tokens has shape (5,)", "(B, n)", "tokens[None]"]),
    (lambda: token_model().forward(batch(tokens=np.full((13, 5), -1))), ValueError,
     ["tokens runs from -1 to -1", "symbols V=7", "use 0 to 6"]),
    (lambda: token_model().forward(batch(marked=np.arange(13))), ValueError,
     ["marked runs from 0 to 12", "tokens n=5", "use 0 to 4"]),
    (lambda: token_model().forward(batch(marked=np.arange(5))), ValueError,
     ["marked has shape (5,)", "tokens[:, 0] has shape (13,)", "one token each"]),
    (lambda: token_model().forward(BATCH, ones((1, 2))), ValueError,
     ["gates has shape (1, 2)", "(1, 3)", "one gate per head"]),
    (lambda: token_model(n_layers=2).forward(BATCH, ones((1, 3))), ValueError,
     ["gates has shape (1, 3)", "(2, 3)"]),
    (lambda: token_model().backward(ones((13, 5, 3, 7))), ValueError,
     ["backward needs a forward pass", "forward(batch) first"]),
    (lambda: after_forward(token_model(), BATCH, ones((13, 5, 7, 3))), ValueError,
     ["d_logits has shape (13, 5, 7, 3)", "(13, 5, 3, 7)", "gradient of the last output"]),
    (lambda: after_forward(token_model(), BATCH, np.full((13, 5, 3, 7), np.nan)), NotFiniteError,
     ["d_logits holds inf or NaN"]),
    # head scores
    (lambda: attention_mass(ones((5, 7)), True), ValueError,
     ["weights has shape (5, 7)", "(..., h, Tq, Tk)"]),
    (lambda: attention_mass(ones((2, 3, 5, 7)), ones((7, 5), bool)), ValueError,
     ["targets has shape (7, 5)", "(2, 5, 7)"]),
    (lambda: attention_mass(ones((3, 5, 7)), ones((5, 7))), TypeError,
     ["targets has dtype float64", "bool"]),
    (lambda: attention_mass(ones((3, 5, 7)), True, ones(7, bool)), ValueError,
     ["rows has shape (7,)", "(5,)", "one entry per query"]),
    (lambda: attention_mass(ones((3, 5, 7)), True, ones(5)), TypeError, ["rows has dtype float64"]),
    (lambda: attention_mass(ones((3, 5, 7)), False), ValueError,
     ["rows asks no query", "at least one True"]),
    (lambda: attention_mass(ones((3, 5, 7)), True, zeros(5, bool)), ValueError,
     ["rows asks no query"]),
    (lambda: chance_mass(ones(7, bool)), ValueError,
     ["targets has shape (7,)", "at least 2", "(..., Tq, Tk)"]),
    (lambda: chance_mass(ones((5, 7))), TypeError, ["targets has dtype float64", "bool"]),
    (lambda: chance_mass(ones((5, 7), bool), ones((7, 5), bool)), ValueError,
     ["shapes do not broadcast", "targets (5, 7)", "mask (7, 5)"]),
    (lambda: chance_mass(ones((5, 7), bool), ones(7)), TypeError, ["mask has dtype float64"]),
    (lambda: chance_mass(zeros((5, 7), bool)), ValueError, ["rows asks no query"]),
    (lambda: previous_token(1), ValueError, ["n=1", "n >= 2"]),
    (lambda: marked_token([3, 5], 5), ValueError,
     ["marked runs from 3 to 5", "tokens n=5", "use 0 to 4"]),
    (lambda: marked_token([-1], 5), ValueError, ["marked runs from -1", "tokens n=5"]),
    (lambda: marked_token([1.0], 5), TypeError, ["marked has dtype float64", "integers"]),
    (lambda: marked_token([0], 0), ValueError, ["n=0", "n >= 1"]),
    (lambda: induction_targets(3), ValueError, ["tokens has shape ()", "tokens[None]"]),
    (lambda: induction_targets([1.0]), TypeError, ["tokens has dtype float64", "integers"]),
    (lambda: normalised_entropy(ones((5, 7))), ValueError,
     ["weights has shape (5, 7)", "(..., h, Tq, Tk)"]),
    (lambda: normalised_entropy(ones((3, 5, 7)), ones((7, 5), bool)), ValueError,
     ["mask has shape (7, 5)", "(3, 5, 7)"]),
    (lambda: normalised_entropy(ones((3, 5, 7)), ones(7)), TypeError, ["mask has dtype float64"]),
    (lambda: normalised_entropy(ones((3, 5, 1))), ValueError,
     ["no query of head 0", "two keys", "longer rows"]),
    (lambda: normalised_entropy(ones((2, 5, 3)), np.array([[[True] * 3], [[True, False, False]]])),
     ValueError, ["no query of head 1", "two keys", "wider mask"]),
    # orders
    (lambda: losses_without(gain, ones(3)), ValueError, ["gates has shape (3,)", "(..., L, h)"]),
    (lambda: losses_without(None, ones((2, 3))), TypeError,
     ["evaluate is of type NoneType", "a function of gates, (L, h)"]),
    (lambda: losses_without(no_loss, ones((2, 3))), ValueError,
     ["evaluate returned a loss of NaN", "layer 0, head 0", "return a number"]),
    (lambda: greedy_order(gain, 3), ValueError, ["shape=3", "a pair (L, h)"]),
    (lambda: greedy_order(gain, (2, 3, 5)), ValueError, ["shape=(2, 3, 5)", "a pair (L, h)"]),
    (lambda: greedy_order(gain, (0, 3)), ValueError, ["L=0", "L >= 1"]),
    (lambda: greedy_order(gain, (2, 0)), ValueError, ["h=0", "h >= 1"]),
    (lambda: greedy_order(gain, (2, 3.0)), TypeError, ["h must be an integer", "int(h)"]),
    (lambda: greedy_order(no_loss, (2, 3)), ValueError, ["evaluate returned a loss of NaN"]),
    (lambda: greedy_order(7, (2, 3)), TypeError, ["evaluate is of type int", "a function"]),
    (lambda: order_by(ones(3)), ValueError, ["importance has shape (3,)", "(..., L, h)"]),
    (lambda: order_by([[1, np.nan]]), NotFiniteError, ["importance holds inf or NaN"]),
    (lambda: random_order(RNG, 3), ValueError, ["shape=3", "a pair (L, h)"]),
    (lambda: random_order(7, (2, 3)), TypeError,
     ["rng must be a generator, not int", "np.random.default_rng(seed)"]),
    *((lambda order=order: pruning_curve(gain, order, (1, 2)), ValueError,
       ["order has shape", "each of the 2 heads of 1 layers once", "greedy_order"])
      for order in (3, [0, 1], [[0, 0]], [[0, 0], [0, 0]], [[0, 1], [0, 2]], [[[0, 0], [0, 1]]])),
    (lambda: pruning_curve(gain, [[0.0, 1.0]], (1, 2)), TypeError, ["order has dtype float64"]),
    (lambda: pruning_curve(7, [[0, 0], [0, 1]], (1, 2)), TypeError,
     ["evaluate is of type int", "a function"]),
    (lambda: pruning_curve(gain, [[0, 0]], 1), ValueError, ["shape=1", "a pair (L, h)"]),
    # importance
    *((lambda importance=importance: importance(None, BATCH), TypeError,
       ["model is of type NoneType", "no layers", "TokenModel"])
      for importance in (gradient_importance, path_importance)),
    *((lambda importance=importance: importance(token_model(), None), TypeError,
       ["batch is of type NoneType", "no tokens", "TokenBatch"])
      for importance in (gradient_importance, path_importance)),
    (lambda: gradient_importance(token_model(), BATCH, ones(3)), ValueError,
     ["gates has shape (3,)", "(..., L, h)"]),
    (lambda: path_importance(token_model(), BATCH, 0), ValueError, ["n_points=0", "n_points >= 1"]),
    (lambda: spearman(ones(3), ones(5)), ValueError,
     ["a has shape (3,)", "b has shape (5,)", "one number in both"]),
    (lambda: spearman([1, 2, np.nan], [1, 2, 3]), NotFiniteError, ["a holds inf or NaN"]),
    (lambda: spearman([1, 2, 3], [1, 2, np.inf]), NotFiniteError, ["b holds inf or NaN"]),
    (lambda: spearman([1, 2, 3], ones(3)), ValueError, ["all numbers of b are equal"]),
    (lambda: spearman([], []), ValueError, ["all numbers of a are equal"]),
    # study_pruning
    (lambda: study(model=7), TypeError, ["model is of type int", "no layers", "TokenModel"]),
    (lambda: study(model=token_model(n_heads=1)), ValueError,
     ["model has one head alone", "n_heads >= 2"]),
    (lambda: study(tuning=None), TypeError, ["tuning is of type NoneType", "no targets"]),
    (lambda: study(reporting=None), TypeError, ["reporting is of type NoneType", "no targets"]),
    (lambda: study(reporting=BATCH), ValueError,
     ["tuning and reporting are the same data", "draw two batches"]),
    (lambda: study(seed=-1), ValueError, ["seed=-1", "seed >= 0"]),
    (lambda: study(n_random=0), ValueError, ["n_random=0", "n_random >= 1"]),
    # experiments
    *((lambda score=score: score(None, BATCH), TypeError,
       ["model is of type NoneType", "no layers", "TokenModel"])
      for score in (head_scores, chance_scores)),
    *((lambda score=score: score(token_model(), None), TypeError,
       ["batch is of type NoneType", "TokenBatch"])
      for score in (head_scores, chance_scores)),
    (lambda: snapshot_steps(0, 2), ValueError, ["n_steps=0", "n_steps >= 1"]),
    (lambda: snapshot_steps(7, 1), ValueError, ["n_snapshots=1", "n_snapshots >= 2"]),
    (lambda: run_marked_and_mean(3), ValueError, ["n_heads=3", "d=16", "2 or 4"]),
    (lambda: run_marked_and_mean(2, n=1), ValueError, ["n=1", "n >= 2"]),
    (lambda: run_marked_and_mean(2, importance=2), ValueError, ["importance=2.0"]),
    (lambda: run_three_jobs(3), ValueError, ["n_heads=3", "d=64", "2 or 4"]),
    (lambda: run_three_jobs(n_steps=0), ValueError, ["n_steps=0", "n_steps >= 1"]),
    (lambda: run_three_jobs(n_snapshots=1), ValueError, ["n_snapshots=1", "n_snapshots >= 2"]),
    (lambda: run_induction(32), ValueError, ["d_k=1", "d_k >= 2"]),
    (lambda: run_induction(seed=-1), ValueError, ["seed=-1", "seed >= 0"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "exception", "fragments"),
    BAD_CALLS,
    ids=[", ".join(fragments[:2]) for _, _, fragments in BAD_CALLS],
)
def test_the_error_names_the_argument_the_sizes_and_the_way_out(call, exception, fragments):
    message = message_of(call, exception)
    assert [fragment for fragment in fragments if fragment not in message] == [], message


INTEGERS = {
    "axis": lambda axis: softmax(ones(5), axis),
    "n_heads": lambda n_heads: attend_in_heads(n_heads=n_heads),
    "n_kv_heads of multi_head_attention": lambda h_kv: attend_in_heads(n_kv_heads=h_kv),
    "n_heads of split_heads": lambda n_heads: split_heads(ones((5, 33)), n_heads),
    "n": lambda n: causal_mask(n),
    "n_past": lambda n_past: causal_mask(5, n_past=n_past),
    "n of padding_mask": lambda n: padding_mask([1], n),
    "n of attention_cost": lambda n: attention_cost(n, 12, 3),
    "d": lambda d: attention_cost(5, d, 3),
    "n_heads of attention_cost": lambda n_heads: attention_cost(5, 12, n_heads),
    "n_context": lambda m: attention_cost(5, 12, 3, n_context=m),
    "n_kv_heads": lambda n_kv_heads: attention_cost(5, 12, 3, n_kv_heads=n_kv_heads),
    "bytes_per_number": lambda size: attention_cost(5, 12, 3, bytes_per_number=size),
    "marked": lambda marked: job_errors(ones(7), marked),
    "n of best_row": lambda n: best_row(n),
    "marked of best_row": lambda marked: best_row(7, marked=marked),
    "axis of softmax_backward": lambda axis: softmax_backward(ones(5), ones(5), axis),
    "n of rotary_angles": lambda n: rotary_angles(n, 4),
    "d_k": lambda d_k: rotary_angles(5, d_k),
    "d of the layer": lambda d: layer(d=d),
    "n_heads of the layer": lambda n_heads: layer(n_heads=n_heads),
    "d_v": lambda d_v: layer(d_v=d_v),
    "d_context": lambda d_context: layer(d_context=d_context),
    "n_max": lambda n_max: layer(positions="learned", n_max=n_max),
    "n of MarkedAndMean": lambda n: MarkedAndMean(n=n),
    "width": lambda width: MarkedAndMean(width=width),
    "d of MarkedAndMean": lambda d: MarkedAndMean(d=d),
    "n of ThreeJobs": lambda n: ThreeJobs(n=n),
    "n_symbols of ThreeJobs": lambda n_symbols: ThreeJobs(n_symbols=n_symbols),
    "n of RepeatedSequence": lambda n: RepeatedSequence(n=n),
    "n_symbols of RepeatedSequence": lambda n_symbols: RepeatedSequence(n_symbols=n_symbols),
    "shortest": lambda shortest: RepeatedSequence(shortest=shortest),
    "longest": lambda longest: RepeatedSequence(longest=longest),
    "n_sequences": lambda n_sequences: JOBS.batch(RNG, n_sequences),
    "n_sequences of MarkedAndMean": lambda n_sequences: VECTORS.batch(RNG, n_sequences),
    "n_sequences of RepeatedSequence": lambda n_sequences: REPEATED.batch(RNG, n_sequences),
    "n_steps": lambda n_steps: Recipe(n_steps, 0.01),
    "n_sequences of Recipe": lambda n_sequences: Recipe(7, 0.01, n_sequences=n_sequences),
    "n_warm_up": lambda n_warm_up: Recipe(7, 0.01, n_warm_up=n_warm_up),
    "seed of fit": lambda seed: train(seed=seed),
    "watch_at": lambda step: train(watch_at=[step]),
    "seed of VectorModel": lambda seed: VectorModel(VECTORS, 2, seed),
    "seed of TokenModel": lambda seed: token_model(seed=seed),
    "n_layers": lambda n_layers: token_model(n_layers=n_layers),
    "n_layers of run_induction": lambda n_layers: run_induction(n_layers=n_layers),
    "n of previous_token": lambda n: previous_token(n),
    "n of marked_token": lambda n: marked_token([0], n),
    "n_points": lambda n_points: path_importance(token_model(), BATCH, n_points),
    "seed of study_pruning": lambda seed: study(seed=seed),
    "n_random": lambda n_random: study(n_random=n_random),
    "n_steps of snapshot_steps": lambda n_steps: snapshot_steps(n_steps, 2),
    "n_snapshots": lambda n_snapshots: snapshot_steps(7, n_snapshots),
}


MAY_BE_NONE = {"n_context", "n_kv_heads", "d_v", "d_context", "n_max"}
NO_INTEGERS = [True, np.True_, np.array(True), 3.0, np.float64(3), "3", [3], np.array([3]), None]


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        (argument, value)
        for argument in INTEGERS
        for value in NO_INTEGERS
        if value is not None or argument.split()[0] not in MAY_BE_NONE
    ],
)
def test_what_is_no_integer_is_refused_by_name(argument, value):
    name = argument.split()[0]
    message = message_of(lambda: INTEGERS[argument](value), TypeError)
    assert message.startswith(f"{name} must be an integer, not {type(value).__name__} {value!r}")
    assert f"int({name})" in message


ARRAYS = {
    "z": lambda z: softmax(z),
    "q": lambda q: attend(q=q),
    "k": lambda k: attend(k=k),
    "v": lambda v: attend(v=v),
    "x": lambda x: attend_in_heads(x=x),
    "context": lambda context: attend_in_heads(context=context),
    "w_q": lambda w_q: attend_in_heads(w_q=w_q),
    "w_k": lambda w_k: attend_in_heads(w_k=w_k),
    "w_v": lambda w_v: attend_in_heads(w_v=w_v),
    "w_o": lambda w_o: attend_in_heads(w_o=w_o),
    "x of split_heads": lambda x: split_heads(x, 1),
    "x of merge_heads": lambda x: merge_heads(x),
    "weights": lambda weights: job_errors(weights),
    "d_weights": lambda d_weights: softmax_backward(d_weights, ones((2, 3, 5))),
    "weights of softmax_backward": lambda weights: softmax_backward(ones((2, 3, 5)), weights),
    "d_out": lambda d_out: attend_backward(d_out=d_out),
    "q of the backward": lambda q: attend_backward(q=q),
    "k of the backward": lambda k: attend_backward(k=k),
    "v of the backward": lambda v: attend_backward(v=v),
    "weights of the backward": lambda weights: attend_backward(weights=weights),
    "x of rotate": lambda x: rotate(x, ones((3, 2))),
    "angles": lambda angles: rotate(ones((3, 4)), angles),
    "x of the layer": lambda x: forward(x),
    "context of the layer": lambda x: forward(context=x, made={"d_context": 5}),
    "gates": lambda gates: forward(gates=gates),
    "d_out of the layer": lambda d_out: backward(d_out),
    "w_q of the layer": lambda w_q: set_parameter("w_q", w_q),
    "logits": lambda logits: entropy_of(logits=logits),
    "logits of accuracy": lambda logits: accuracy_of(logits=logits),
    "outputs": lambda outputs: error_of(outputs=outputs),
    "targets": lambda targets: error_of(targets=targets),
    "importance": lambda importance: error_of(importance=importance),
    "d_logits": lambda d_logits: after_forward(token_model(), BATCH, d_logits),
    "d_outputs": lambda d: after_forward(VectorModel(VECTORS, 2, 0), VECTORS.batch(RNG, 3), d),
    "gates of a model": lambda gates: token_model().forward(BATCH, gates),
    "weights of attention_mass": lambda weights: attention_mass(weights, True),
    "weights of normalised_entropy": lambda weights: normalised_entropy(weights),
    "gates of losses_without": lambda gates: losses_without(gain, gates),
    "importance of order_by": lambda importance: order_by(importance),
    "a": lambda a: spearman(a, ones((2, 3, 5))),
    "b": lambda b: spearman(ones((2, 3, 5)), b),
}


@pytest.mark.parametrize("argument", ARRAYS)
@pytest.mark.parametrize("dtype", ["float16", "longdouble", "complex128", "bool", "object", "U1"])
def test_arrays_that_are_not_real_are_refused_by_name(argument, dtype):
    name, array = argument.split()[0], ones((2, 3, 5)).astype(dtype)
    message = message_of(lambda: ARRAYS[argument](array), TypeError)
    assert message.startswith(f"{name} has dtype {array.dtype}, but must be float32, float64")
    way_out = message.split(": ", 1)[1]
    convert = f"convert it with {name}.astype(np.float64)"
    assert way_out == {
        "float16": convert,
        "longdouble": convert,
        "bool": convert,
        "complex128": f"take its real part, {name}.real",
    }.get(dtype, f"make every entry a number, then {convert}")


@pytest.mark.parametrize("argument", ARRAYS)
def test_masked_arrays_are_refused_since_their_mask_would_be_ignored(argument):
    name = argument.split()[0]
    message = message_of(lambda: ARRAYS[argument](np.ma.ones((2, 3, 5))), TypeError)
    assert message.startswith(f"{name} is a masked array")
    assert f"{name}.filled(" in message


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("mask", lambda: attend(mask=np.ma.ones((5, 7), bool))),
        ("masks[0]", lambda: combine_masks(np.ma.ones(5, bool))),
        ("lengths", lambda: padding_mask(np.ma.ones(5, int), 7)),
    ],
)
def test_masked_arrays_are_refused_as_masks_and_lengths_too(name, call):
    message = message_of(call, TypeError)
    assert message.startswith(f"{name} is a masked array")
    assert ".filled(" in message


def named_argument(call):
    """Return which public function refuses a call, and by the name of which argument."""
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    frames = (frame for frame, _ in traceback.walk_tb(caught.tb))
    code = next(f.f_code for f in frames if Path(f.f_code.co_filename).parent == PACKAGE)
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    first_word = re.match(r"\w*", str(caught.value)).group()
    return code.co_name, first_word if first_word in arguments else None


def test_every_argument_of_the_core_is_refused_by_its_name():
    calls = [call for call, _, _ in BAD_CALLS]
    calls += [lambda call=call: call(3.5) for call in INTEGERS.values()]
    refused = Counter(named_argument(call) for call in calls)
    functions = filter(inspect.isfunction, map(vars(mha_lib).get, mha_lib.__all__))
    expected = {
        (function.__name__, parameter.name)
        for function in functions
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind != parameter.VAR_POSITIONAL and parameter.name != "return_weights"
    }
    assert expected - set(refused) == set()
    assert sum(refused[pair] for pair in expected) >= 40


def test_a_huge_width_is_refused_at_once():
    start = time.perf_counter()
    message = message_of(lambda: attention_cost(5, 10**9, 3), ValueError)
    assert "n_heads=2 or 4" in message
    assert time.perf_counter() - start < 5  # trying every divisor would take a minute
