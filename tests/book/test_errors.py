"""Bad calls, what the error must say, and what comes of following its advice."""

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
from mha_lib.activations import softmax_backward
from mha_lib.attention import scaled_dot_product_attention_backward
from mha_lib.figures.diagram import MechanismDiagram
from mha_lib.figures.palette import head_colour, ink
from mha_lib.learning.experiments import (
    mean_rows,
    run_induction,
    run_marked_and_mean,
    run_three_jobs,
    snapshot,
    snapshot_steps,
)
from mha_lib.learning.frontier import best_row, job_errors
from mha_lib.learning.importance import (
    gradient_by_job,
    gradient_importance,
    path_importance,
    spearman,
)
from mha_lib.learning.layer import MultiHeadAttention
from mha_lib.learning.models import TokenModel, VectorModel
from mha_lib.learning.positions import rotary_angles, rotate
from mha_lib.learning.pruning import (
    greedy_order,
    losses_without,
    order_by,
    pruning_curve,
    study_pruning,
    subset_curves,
)
from mha_lib.learning.roles import (
    attention_mass,
    chance_mass,
    chance_scores,
    head_roles,
    head_scores,
    induction_targets,
    marked_token,
    normalised_entropy,
    previous_token,
)
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
from mha_lib.teaching.effects import draw, effect, hidden_error, measure, situations
from mha_lib.teaching.misconceptions import CATALOGUE, built_with
from mha_lib.teaching.steps import right_function

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
    rng = np.random.default_rng(0)
    return MultiHeadAttention(**{"d": 33, "n_heads": 3, "rng": rng} | changes)


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


def draw_mechanism(**changes):
    """Draw the mechanism with good arguments (n=4, d=6, h=2) but for some."""
    good = {"x": ones((4, 6)), "n_heads": 2} | dict.fromkeys(
        ("w_q", "w_k", "w_v", "w_o"), np.eye(6)
    )
    return MechanismDiagram(**good | changes)


def clipped_step(gradients):
    """Take a step after clipping the gradients."""
    clip_gradients(gradients, 1.0)
    Adam({"w": ones(3)}).step(gradients, 0.1)
    return gradients["w"]


def arrays_in(result):
    """Return the float arrays that a result is or holds."""
    parts = result.values() if isinstance(result, dict) else result
    if isinstance(parts, tuple | list) or isinstance(result, dict):
        return [array for part in parts for array in arrays_in(part)]
    return [result] if isinstance(result, np.ndarray) and result.dtype.kind == "f" else []


def message_of(call, exception):
    """Return what the error of a bad call says, once its type and its origin are as they must be.

    It must be raised by a ``raise`` of `mha_lib`, not inside NumPy or by Python itself.
    """
    with pytest.raises(exception) as caught:
        call()
    assert caught.type is exception
    origin = traceback.extract_tb(caught.tb)[-1]
    assert PACKAGE in Path(origin.filename).parents
    assert origin.line.startswith("raise ")
    return str(caught.value)


def bad_answers(call):
    """Return the bad calls that cross-entropy and accuracy share."""
    whole = np.asarray(ones((2, 5, 3)), np.float64).astype(int)
    return [
        (lambda: call(targets=ones((2, 5), int)), ValueError,
         ["targets (its shape) has size (2, 5)", "logits (all but the last axis)", "(2, 5, 3)",
          "every row of logits one entry"],
         lambda: call(targets=ones((2, 5, 3), int))),
        (lambda: call(counted=ones((5, 3), bool)), ValueError,
         ["counted (its shape) has size (5, 3)", "logits", "(2, 5, 3)"],
         lambda: call(counted=ones((2, 5, 3), bool))),
        (lambda: call(targets=np.full((2, 5, 3), 7)), ValueError,
         ["targets runs from 7 to 7", "symbols V=7", "use 0 to 6"],
         lambda: call(targets=np.full((2, 5, 3), 6))),
        (lambda: call(targets=np.full((2, 5, 3), -1)), ValueError,
         ["targets runs from -1 to -1", "use 0 to 6"],
         lambda: call(targets=np.full((2, 5, 3), 0))),
        (lambda: call(targets=ones((2, 5, 3))), TypeError,
         ["targets has dtype float64", "np.asarray(targets, np.float64).astype(int)"],
         lambda: call(targets=whole)),
        (lambda: call(counted=ones((2, 5, 3))), TypeError,
         ["counted has dtype float64", "bool, True where there is a right answer",
          "np.asarray(counted, bool)"],
         lambda: call(counted=np.asarray(ones((2, 5, 3)), bool))),
        (lambda: call(logits=ones((2, 5, 3, 0))), ValueError, ["logits", "V=0", "a symbol"],
         lambda: call(logits=ones((2, 5, 3, 1)), targets=zeros((2, 5, 3), int))),
        (lambda: call(logits=np.full((2, 5, 3, 7), np.inf)), NotFiniteError,
         ["logits holds inf or NaN", "argwhere", "put finite numbers there"],
         lambda: call(logits=zeros((2, 5, 3, 7)))),
    ]  # fmt: skip


FLAGS = {
    "return_weights": lambda flag: attend_in_heads(return_weights=flag),
    "causal": lambda flag: layer(causal=flag),
    "marker_in_values": lambda flag: VectorModel(VECTORS, 2, 0, marker_in_values=flag),
}
SIGNED = np.where(np.arange(19) % 2, 1.0, -1.0)[:, None] * ones(33)  # (19, 33): sums overflow

BAD_CALLS = [
    # softmax
    (lambda: softmax(1.0), ValueError,
     ["z has shape ()", "0 axes", "at least 1", "np.asarray(z)[None]"],
     lambda: softmax(np.asarray(1.0)[None])),
    (lambda: softmax(RAGGED), ValueError, ["z is ragged", "every row the same length"],
     lambda: softmax([[1, 2], [3, 4]])),
    (lambda: softmax(ones((2, 3)), 2), ValueError, ["axis=2", "z has 2 axes", "axis <= 1"],
     lambda: softmax(ones((2, 3)), 1)),
    (lambda: softmax(ones((2, 3)), -3), ValueError, ["axis=-3", "axis >= -2"],
     lambda: softmax(ones((2, 3)), -2)),
    # scaled_dot_product_attention
    (lambda: attend(q=ones(11)), ValueError,
     ["q has shape (11,)", "1 axis,", "at least 2", "(..., Tq, Dk)", "q[None]"],
     lambda: attend(q=ones(11)[None])),
    (lambda: attend(k=ones(11)), ValueError, ["k has shape (11,)", "(..., Tk, Dk)"],
     lambda: attend(k=ones(11)[None], v=ones((1, 13)))),
    (lambda: attend(v=ones(7)), ValueError, ["v has shape (7,)", "(..., Tk, Dv)"],
     lambda: attend(v=ones(7)[:, None])),
    (lambda: attend(q=ones((5, 17))), ValueError,
     ["q axis Dk has size 17", "k axis Dk has size 11", "to one width"],
     lambda: attend(q=ones((5, 17)) @ ones((17, 11)))),
    (lambda: attend(v=ones((19, 13))), ValueError,
     ["k axis Tk has size 7", "v axis Tk has size 19", "every key exactly one value"],
     lambda: attend(v=ones((19, 13))[:7])),
    (lambda: attend(q=ones((5, 0)), k=ones((7, 0))), ValueError,
     ["q and k", "Dk=0", "at least one number"],
     lambda: attend(q=ones((5, 1)), k=ones((7, 1)))),
    (lambda: attend(q=ones((2, 5, 11)), k=ones((3, 7, 11))), ValueError,
     ["leading axes", "q (2,)", "k (3,)", "v ()", "make them equal, or 1"],
     lambda: attend(q=ones((2, 5, 11)), k=ones((1, 7, 11)))),
    (lambda: attend(mask=ones((7, 5), bool)), ValueError,
     ["mask has shape (7, 5)", "(..., Tq, Tk) = (5, 7)", "or 1"],
     lambda: attend(mask=ones((7, 5), bool).T)),
    (lambda: attend(mask=ones((2, 5, 7), bool)), ValueError,
     ["mask has shape (2, 5, 7)", "(..., Tq, Tk) = (5, 7)"],
     lambda: attend(mask=ones((2, 5, 7), bool)[0])),
    (lambda: attend(mask=RAGGED), ValueError, ["mask is ragged", "every row the same length"],
     lambda: attend(mask=np.ones((5, 1)) == [[1] * 7])),
    (lambda: attend(mask=ones((5, 7))), TypeError,
     ["mask has dtype float64", "must be bool", "True where this query may look",
      "convert 0 and 1 with np.asarray(mask, bool)"],
     lambda: attend(mask=np.asarray(ones((5, 7)), bool))),
    (lambda: attend(mask=ones((5, 7), int)), TypeError,
     ["mask has dtype int64", "np.asarray(mask, bool)"],
     lambda: attend(mask=np.asarray(ones((5, 7), int), bool))),
    # split_heads, merge_heads
    (lambda: split_heads(ones(33), 3), ValueError, ["x has shape (33,)", "(..., n, d)", "x[None]"],
     lambda: split_heads(ones(33)[None], 3)),
    (lambda: split_heads(ones((5, 33)), 4), ValueError,
     ["n_heads=4", "d=33", "n_heads=3 or 11", "multiple of 4", "32 or 36"],
     lambda: split_heads(ones((5, 33)), 11)),
    (lambda: split_heads(ones((5, 33)), 34), ValueError,
     ["n_heads=34", "d=33", "n_heads=33,", "multiple of 34, such as 34"],
     lambda: split_heads(ones((5, 34)), 34)),
    (lambda: split_heads(ones((5, 33)), 0), ValueError, ["n_heads=0", "n_heads >= 1"],
     lambda: split_heads(ones((5, 33)), 1)),
    (lambda: split_heads(ones((5, 33)), np.int8(-3)), ValueError, ["n_heads=-3", "n_heads >= 1"],
     lambda: split_heads(ones((5, 33)), 1)),
    (lambda: split_heads(ones((5, 0)), 3), ValueError, ["d=0", "n_heads=3"],
     lambda: split_heads(ones((5, 3)), 3)),
    (lambda: merge_heads(ones((5, 11))), ValueError,
     ["x has shape (5, 11)", "2 axes", "at least 3", "(..., h, n, d_k)", "x[None]"],
     lambda: merge_heads(ones((5, 11))[None])),
    # multi_head_attention
    (lambda: attend_in_heads(x=ones(19)), ValueError, ["x has shape (19,)", "(..., n, d)"],
     lambda: attend_in_heads(x=ones(19)[None])),
    (lambda: attend_in_heads(context=ones(23)), ValueError,
     ["context has shape (23,)", "(..., m, d_c)"],
     lambda: attend_in_heads(context=ones(23)[None])),
    (lambda: attend_in_heads(w_q=ones(19)), ValueError,
     ["w_q has shape (19,)", "(..., d, h * d_k)"],
     lambda: attend_in_heads(w_q=ones(19)[:, None], w_k=ones((23, 1)), w_v=ones((23, 1)),
         w_o=ones((1, 17)), n_heads=1)),
    (lambda: attend_in_heads(w_k=ones((2, 23, 33))), ValueError,
     ["w_k has shape (2, 23, 33)", "3 axes", "exactly 2", "(d_c, h_kv * d_k)", "w_k[0]"],
     lambda: attend_in_heads(w_k=ones((2, 23, 33))[0])),
    (lambda: attend_in_heads(w_v=ones((2, 23, 39))), ValueError,
     ["w_v has shape (2, 23, 39)", "exactly 2", "(d_c, h_kv * d_v)"],
     lambda: attend_in_heads(w_v=ones((2, 23, 39))[0])),
    (lambda: attend_in_heads(w_o=ones((2, 39, 17))), ValueError,
     ["w_o has shape (2, 39, 17)", "exactly 2", "(h * d_v, d_out)"],
     lambda: attend_in_heads(w_o=ones((2, 39, 17))[0])),
    (lambda: attend_in_heads(w_q=ones((29, 33))), ValueError,
     ["x (its last axis) has size 19", "w_q (its rows) has size 29", "each column of x"],
     lambda: attend_in_heads(w_q=ones((19, 33)))),
    (lambda: attend_in_heads(w_k=ones((19, 33))), ValueError,
     ["context (its last axis) has size 23", "w_k (its rows) has size 19", "column of context"],
     lambda: attend_in_heads(w_k=ones((23, 33)))),
    (lambda: attend_in_heads(w_v=ones((19, 39))), ValueError,
     ["context (its last axis) has size 23", "w_v (its rows) has size 19", "column of context"],
     lambda: attend_in_heads(w_v=ones((23, 39)))),
    (lambda: attend_in_heads(context=None), ValueError,
     ["x (its last axis) has size 19", "w_k (its rows) has size 23", "each column of x"],
     lambda: attend_in_heads(context=None, w_k=ones((19, 33)), w_v=ones((19, 39)))),
    (lambda: attend_in_heads(w_k=ones((23, 36))), ValueError,
     ["w_q (its columns) has size 33", "w_k (its columns) has size 36", "same number of columns"],
     lambda: attend_in_heads(w_k=ones((23, 33)))),
    (lambda: attend_in_heads(w_o=ones((33, 17))), ValueError,
     ["w_v (its columns) has size 39", "w_o (its rows) has size 33", "concatenated heads"],
     lambda: attend_in_heads(w_o=ones((39, 17)))),
    (lambda: attend_in_heads(n_heads=13), ValueError,
     ["n_heads=13", "w_q.shape[1]=33", "n_heads=11 or 33", "26 or 39"],
     lambda: attend_in_heads(n_heads=11, w_v=ones((23, 44)), w_o=ones((44, 17)))),
    (lambda: attend_in_heads(n_heads=11), ValueError,
     ["n_heads=11", "w_v.shape[1]=39", "n_heads=3 or 13", "33 or 44"],
     lambda: attend_in_heads(n_heads=3)),
    (lambda: attend_in_heads(n_heads=0), ValueError, ["n_heads=0", "n_heads >= 1"],
     lambda: attend_in_heads(n_heads=1)),
    (lambda: attend_in_heads(w_q=ones((19, 0)), w_k=ones((23, 0))), ValueError,
     ["w_q.shape[1]=0", "n_heads=3"],
     lambda: attend_in_heads(w_q=ones((19, 3)), w_k=ones((23, 3)))),
    (lambda: attend_in_heads(mask=ones((2, 5, 7), bool)), ValueError,
     ["mask has shape (2, 5, 7)", "(..., Tq, Tk) = (2, 3, 5, 7)", "pass mask[:, None]"],
     lambda: attend_in_heads(mask=ones((2, 5, 7), bool)[:, None])),
    (lambda: attend_in_heads(mask=ones((7, 2, 3, 5, 7), bool)), ValueError,
     ["mask has shape (7, 2, 3, 5, 7)", "(2, 3, 5, 7)"],
     lambda: attend_in_heads(mask=ones((7, 2, 3, 5, 7), bool)[0])),
    (lambda: attend_in_heads(mask=zeros((5, 7))), TypeError,
     ["mask has dtype float64", "bool", "if 0 forbids", "np.asarray(mask) == 0"],
     lambda: attend_in_heads(mask=np.asarray(zeros((5, 7))) == 0)),
    (lambda: attend_in_heads(context=ones((3, 7, 23))), ValueError,
     ["leading axes", "x (2,)", "context (3,)", "make them equal, or 1"],
     lambda: attend_in_heads(context=ones((1, 7, 23)))),
    (lambda: attend_in_heads(context=ones((3, 7, 23)), mask=True), ValueError,
     ["leading axes", "x (2,)", "context (3,)", "make them equal, or 1"],
     lambda: attend_in_heads(context=ones((2, 7, 23)), mask=True)),
    (lambda: attend_in_heads(n_kv_heads=0), ValueError, ["n_kv_heads=0", "n_kv_heads >= 1"],
     lambda: attend_in_heads(n_kv_heads=3)),
    (lambda: attend_in_heads(n_kv_heads=2), ValueError,
     ["n_kv_heads=2", "n_heads=3", "n_kv_heads=1 or 3", "2 or 4"],
     lambda: attend_in_heads(n_kv_heads=3)),
    (lambda: attend_in_heads(n_kv_heads=5), ValueError,
     ["n_kv_heads=5", "n_heads=3", "n_kv_heads=3", "multiple of 5, such as 5"],
     lambda: attend_in_heads(n_kv_heads=3)),
    (lambda: attend_in_heads(n_kv_heads=1), ValueError,
     ["w_k (its columns) has size 33", "n_kv_heads * d_k has size 11", "d_k=11 columns",
      "each of n_kv_heads=1"],
     lambda: attend_in_heads(n_kv_heads=1, w_k=ones((23, 11)), w_v=ones((23, 13)))),
    (lambda: attend_in_heads(n_kv_heads=1, w_k=ones((23, 11))), ValueError,
     ["w_o (its rows) has size 39", "n_heads * d_v has size 117", "d_v=39 rows",
      "each of n_heads=3"],
     lambda: attend_in_heads(n_kv_heads=1, w_k=ones((23, 11)), w_o=ones((117, 17)))),
    (lambda: attend_in_heads(n_heads=9, n_kv_heads=3), ValueError,
     ["n_heads=9", "w_q.shape[1]=33", "n_heads=3 or 11", "27 or 36"],
     lambda: attend_in_heads(n_heads=3, n_kv_heads=3)),
    (lambda: attend_in_heads(n_heads=33, n_kv_heads=11, w_k=ones((23, 11))), ValueError,
     ["n_kv_heads=11", "w_v.shape[1]=39", "n_kv_heads=3 or 13", "33 or 44"],
     lambda: attend_in_heads(n_heads=33, n_kv_heads=3, w_k=ones((23, 3)), w_o=ones((429, 17)))),
    (lambda: attend_in_heads(n_kv_heads=1, w_v=ones((23, 0))), ValueError,
     ["w_v.shape[1]=0", "n_kv_heads=1"],
     lambda: attend_in_heads(n_kv_heads=1, w_k=ones((23, 11)), w_v=ones((23, 1)), w_o=ones((3,
         17)))),
    # masks
    (lambda: causal_mask(-1), ValueError, ["n=-1", "n >= 0"],
     lambda: causal_mask(0)),
    (lambda: causal_mask(5, n_past=-2), ValueError, ["n_past=-2", "n_past >= 0"],
     lambda: causal_mask(5, n_past=0)),
    (lambda: padding_mask([5, 8, 9], 7), ValueError,
     ["lengths contains 8", "0 and n=7", "n larger"],
     lambda: padding_mask([5, 8, 9], 9)),
    (lambda: padding_mask([5, -1], 7), ValueError, ["lengths contains -1", "0 and n=7"],
     lambda: padding_mask([5, 0], 7)),
    (lambda: padding_mask(5, -1), ValueError, ["n=-1", "n >= 0"],
     lambda: padding_mask(0, 0)),
    (lambda: padding_mask(RAGGED, 7), ValueError,
     ["lengths is ragged", "every row the same length"],
     lambda: padding_mask([[1, 2], [3, 3]], 7)),
    (lambda: padding_mask([5.0], 7), TypeError,
     ["lengths has dtype float64", "integers", "np.asarray(lengths, np.float64).astype(int)"],
     lambda: padding_mask(np.asarray([5.0], np.float64).astype(int), 7)),
    (lambda: padding_mask([True], 7), TypeError,
     ["lengths has dtype bool", "integers", "np.sum(lengths, axis=-1)"],
     lambda: padding_mask(np.sum([True], axis=-1), 7)),
    (lambda: combine_masks(None, ones((5, 7), bool), ones((7, 5), bool)), ValueError,
     ["the shapes do not broadcast", "masks[1] (5, 7)", "masks[2] (7, 5)", "or 1"],
     lambda: combine_masks(None, ones((5, 7), bool), ones((7, 5), bool).T)),
    (lambda: combine_masks(ones(5, bool), ones(5)), TypeError,
     ["masks[1] has dtype float64", "np.asarray(masks[1], bool)"],
     lambda: combine_masks(ones(5, bool), np.asarray(ones(5), bool))),
    # attention_cost
    (lambda: attention_cost(-1, 12, 3), ValueError, ["n=-1", "n >= 0"],
     lambda: attention_cost(0, 12, 3)),
    (lambda: attention_cost(5, 0, 3), ValueError, ["d=0", "d >= 1"],
     lambda: attention_cost(5, 1, 1)),
    (lambda: attention_cost(5, 12, 0), ValueError, ["n_heads=0", "n_heads >= 1"],
     lambda: attention_cost(5, 12, 1)),
    (lambda: attention_cost(5, 12, 5), ValueError,
     ["n_heads=5", "d=12", "n_heads=4 or 6", "10 or 15"],
     lambda: attention_cost(5, 12, 6)),
    (lambda: attention_cost(5, 12, 3, n_context=-1), ValueError,
     ["n_context=-1", "n_context >= 0"],
     lambda: attention_cost(5, 12, 3, n_context=0)),
    (lambda: attention_cost(5, 12, 3, n_kv_heads=0), ValueError,
     ["n_kv_heads=0", "n_kv_heads >= 1"],
     lambda: attention_cost(5, 12, 3, n_kv_heads=1)),
    (lambda: attention_cost(5, 12, 3, n_kv_heads=2), ValueError,
     ["n_kv_heads=2", "n_heads=3", "n_kv_heads=1 or 3", "2 or 4"],
     lambda: attention_cost(5, 12, 3, n_kv_heads=3)),
    (lambda: attention_cost(5, 12, 3, bytes_per_number=0), ValueError,
     ["bytes_per_number=0", "bytes_per_number >= 1"],
     lambda: attention_cost(5, 12, 3, bytes_per_number=1)),
    # frontier
    (lambda: job_errors(1.0), ValueError, ["weights has shape ()", "(..., n)"],
     lambda: job_errors(np.asarray(1.0)[None])),
    (lambda: job_errors([[0, 0], [0, 1]]), ValueError, ["weights", "all 0"],
     lambda: job_errors([[0, 1], [0, 1]])),
    (lambda: job_errors([[0, np.nan], [0, 1]]), ValueError, ["weights", "finite"],
     lambda: job_errors([[0, 1], [0, 1]])),
    (lambda: job_errors([np.inf, 1]), ValueError, ["weights", "finite"],
     lambda: job_errors([2, 1])),
    (lambda: job_errors(ones((3, 0))), ValueError, ["weights", "(3, 0)", "use n >= 1"],
     lambda: job_errors(ones((3, 1)))),
    (lambda: job_errors(ones(7), 7), ValueError, ["marked=7", "7 entries", "marked <= 6"],
     lambda: job_errors(ones(7), 6)),
    (lambda: job_errors(ones(7), -1), ValueError, ["marked=-1", "marked >= 0"],
     lambda: job_errors(ones(7), 0)),
    (lambda: job_errors(ones(7), n_near=8), ValueError, ["n_near=8", "7 entries", "n_near <= 7"],
     lambda: job_errors(ones(7), n_near=7)),
    (lambda: job_errors(ones(7), n_near=-1), ValueError, ["n_near=-1", "n_near >= 0"],
     lambda: job_errors(ones(7), n_near=0)),
    (lambda: best_row(1), ValueError, ["n=1", "n >= 2"],
     lambda: best_row(2)),
    (lambda: best_row(7, marked=7), ValueError, ["marked=7", "n=7", "marked <= 6"],
     lambda: best_row(7, marked=6)),
    (lambda: best_row(7, marked=-1), ValueError, ["marked=-1", "marked >= 0"],
     lambda: best_row(7, marked=0)),
    (lambda: best_row(7, 1.5), ValueError, ["importance=1.5", "between 0 and 1"],
     lambda: best_row(7, importance=0.5)),
    (lambda: best_row(7, -0.1), ValueError, ["importance=-0.1", "between 0 and 1"],
     lambda: best_row(7, importance=0.5)),
    (lambda: best_row(7, np.nan), ValueError, ["importance=nan", "between 0 and 1"],
     lambda: best_row(7, importance=0.5)),
    (lambda: best_row(7, "0.5"), TypeError, ["importance has dtype <U3", "float64"],
     lambda: best_row(7, np.asarray("0.5", np.float64))),
    (lambda: best_row(7, None), TypeError, ["importance has dtype object", "float64"],
     lambda: best_row(7, 0.5)),
    (lambda: best_row(7, [0.1, 0.5]), TypeError, ["importance", "one number"],
     lambda: best_row(7, [0.1, 0.5][0])),
    # softmax_backward
    (lambda: softmax_backward(ones((5, 7)), ones(7)), ValueError,
     ["d_weights has shape (5, 7)", "weights has shape (7,)", "pass the gradient of weights"],
     lambda: softmax_backward(ones(7), ones(7))),
    (lambda: softmax_backward(1.0, ones(7)), ValueError, ["d_weights has shape ()", "at least 1"],
     lambda: softmax_backward(np.asarray(1.0)[None], ones(1))),
    (lambda: softmax_backward(ones(7), 1.0), ValueError, ["weights has shape ()", "at least 1"],
     lambda: softmax_backward(ones(1), np.asarray(1.0)[None])),
    (lambda: softmax_backward(ones(7), ones(7), 1), ValueError,
     ["axis=1", "weights has 1 axes", "axis <= 0"],
     lambda: softmax_backward(ones(7), ones(7), 0)),
    # scaled_dot_product_attention_backward
    (lambda: attend_backward(q=ones(11)), ValueError, ["q has shape (11,)", "(..., Tq, Dk)"],
     lambda: attend_backward(q=ones(11)[None], d_out=ones((1, 13)), weights=ones((1, 7)))),
    (lambda: attend_backward(q=ones((5, 17))), ValueError,
     ["q axis Dk has size 17", "k axis Dk has size 11", "to one width"],
     lambda: attend_backward(q=ones((5, 17)) @ ones((17, 11)))),
    (lambda: attend_backward(d_out=ones(13)), ValueError,
     ["d_out has shape (13,)", "(..., Tq, Dv)"],
     lambda: attend_backward(d_out=ones(13)[None], q=ones((1, 11)), weights=ones((1, 7)))),
    (lambda: attend_backward(d_out=ones((13, 5))), ValueError,
     ["d_out has shape (13, 5)", "make it (5, 13)", "belongs to their forward pass"],
     lambda: attend_backward(d_out=ones((13, 5)).T)),
    (lambda: attend_backward(d_out=ones((2, 5, 13))), ValueError,
     ["d_out has shape (2, 5, 13)", "make it (5, 13)"],
     lambda: attend_backward(d_out=ones((2, 5, 13))[0])),
    (lambda: attend_backward(weights=ones(7)), ValueError,
     ["weights has shape (7,)", "(..., Tq, Tk)"],
     lambda: attend_backward(weights=ones(7)[None], q=ones((1, 11)), d_out=ones((1, 13)))),
    (lambda: attend_backward(weights=ones((7, 5))), ValueError,
     ["weights has shape (7, 5)", "make it (5, 7)", "belongs to their forward pass"],
     lambda: attend_backward(weights=ones((7, 5)).T)),
    *((lambda n=name, s=shape, b=bad: attend_backward(**{n: np.full(s, b)}), NotFiniteError,
       [f"{name} holds inf or NaN", "np.argwhere"],
     lambda n=name, s=shape: attend_backward(**{n: np.full(s, 1.0)}))
      for name, shape in (("d_out", (5, 13)), ("q", (5, 11)), ("k", (7, 11)), ("v", (7, 13)),
                          ("weights", (5, 7)))
      for bad in (np.nan, -np.inf)),
    # rotary positions
    (lambda: rotary_angles(-1, 4), ValueError, ["n=-1", "n >= 0"],
     lambda: rotary_angles(0, 4)),
    (lambda: rotary_angles(5, 0), ValueError, ["d_k=0", "d_k >= 2"],
     lambda: rotary_angles(5, 2)),
    (lambda: rotary_angles(5, 7), ValueError, ["d_k=7 is odd", "in pairs", "use 6 or 8"],
     lambda: rotary_angles(5, 8)),
    (lambda: rotate(ones(4), ones((5, 2))), ValueError, ["x has shape (4,)", "(..., n, d_k)"],
     lambda: rotate(ones(4)[None], ones((1, 2)))),
    (lambda: rotate(ones((5, 7)), ones((5, 3))), ValueError,
     ["x axis d_k=7 is odd", "in pairs", "use 6 or 8"],
     lambda: rotate(ones((5, 8)), ones((5, 4)))),
    (lambda: rotate(ones((5, 4)), ones((3, 2))), ValueError,
     ["angles has shape (3, 2)", "x has shape (5, 4)", "rotary_angles(n=5, d_k=4)"],
     lambda: rotate(ones((5, 4)), rotary_angles(n=5, d_k=4))),
    (lambda: rotate(ones((5, 4)), ones((2, 5, 2))), ValueError,
     ["angles has shape (2, 5, 2)", "exactly 2", "(n, d_k // 2)"],
     lambda: rotate(ones((5, 4)), ones((2, 5, 2))[0])),
    # the layer
    (lambda: layer(d=0), ValueError, ["d=0", "d >= 1"],
     lambda: layer(d=1, n_heads=1)),
    (lambda: layer(n_heads=0), ValueError, ["n_heads=0", "n_heads >= 1"],
     lambda: layer(n_heads=1)),
    (lambda: layer(n_heads=4), ValueError, ["n_heads=4", "d=33", "n_heads=3 or 11", "32 or 36"],
     lambda: layer(n_heads=11)),
    (lambda: layer(d_v=0), ValueError, ["d_v=0", "d_v >= 1"],
     lambda: layer(d_v=1)),
    (lambda: layer(d_context=0), ValueError, ["d_context=0", "d_context >= 1"],
     lambda: layer(d_context=1)),
    (lambda: layer(rng=7), TypeError,
     ["rng must be a generator, not int", "np.random.default_rng(seed)"],
     lambda: layer(rng=np.random.default_rng(7))),
    (lambda: layer(positions="absolute"), ValueError,
     ["positions='absolute'", "use one of None, 'learned', 'rotary'"],
     lambda: layer(positions=None)),
    (lambda: layer(positions="rotary"), ValueError,
     ["d=33 and n_heads=3", "d_k=11", "is odd", "use d=30 or 36"],
     lambda: layer(positions="rotary", d=36)),
    (lambda: layer(positions="learned"), ValueError,
     ["n_max is missing", "longest sequence", "n_max=16"],
     lambda: layer(positions="learned", n_max=16)),
    (lambda: layer(positions="learned", n_max=0), ValueError, ["n_max=0", "n_max >= 1"],
     lambda: layer(positions="learned", n_max=1)),
    (lambda: layer(positions="learned", n_max=5, d_context=7), ValueError,
     ["positions and causal", "d_context=7", "leave them out"],
     lambda: layer(d_context=7)),
    (lambda: layer(causal=True, d_context=7), ValueError, ["positions and causal", "d_context=7"],
     lambda: layer(causal=True)),
    (lambda: layer(value_columns=[0, 33]), ValueError,
     ["value_columns runs from 0 to 33", "columns=33", "use 0 to 32"],
     lambda: layer(value_columns=[0, 32])),
    (lambda: layer(value_columns=[-1]), ValueError, ["value_columns runs from -1", "use 0 to 32"],
     lambda: layer(value_columns=[0])),
    (lambda: layer(value_columns=[7], d_context=7), ValueError, ["value_columns", "columns=7"],
     lambda: layer(value_columns=[6], d_context=7)),
    (lambda: layer(value_columns=ones(33, bool)), TypeError,
     ["value_columns has dtype bool", "integers", "np.flatnonzero(value_columns)"],
     lambda: layer(value_columns=np.flatnonzero(ones(33, bool)))),
    (lambda: layer().backward(ones((5, 33))), ValueError,
     ["backward needs a forward pass", "forward(x) first"],
     lambda: backward(ones((2, 5, 33)))),
    (lambda: forward(ones(33)), ValueError, ["x has shape (33,)", "(..., n, d)"],
     lambda: forward(ones(33)[None])),
    (lambda: forward(ones((5, 19))), ValueError,
     ["x (its last axis) has size 19", "the layer has size 33", "the width of x"],
     lambda: forward(ones((5, 19)), made={"d": 19, "n_heads": 1})),
    (lambda: forward(np.full((5, 33), np.nan)), NotFiniteError, ["x holds inf or NaN", "argwhere"],
     lambda: forward(np.where(np.isfinite(x := np.full((5, 33), np.nan)), x, 1.0))),
    (lambda: forward(np.full((5, 33), 1e200)), NotFiniteError,
     ["a score leaves the range", "x up to 1.0e+200", "dividing x by 1e+200"],
     lambda: forward(np.full((5, 33), 1e200) / 1e200)),
    (lambda: forward(context=ones((2, 7, 33))), ValueError,
     ["context is given", "d_context=None", "or None"],
     lambda: forward(context=ones((2, 7, 33)), made={"d_context": 33})),
    (lambda: forward(made={"d_context": 19}), ValueError,
     ["context is missing", "d_context=19", "the width of the context"],
     lambda: forward(made={"d_context": None})),
    (lambda: forward(context=ones((2, 7, 33)), made={"d_context": 19}), ValueError,
     ["context (its last axis) has size 33", "the layer has size 19"],
     lambda: forward(context=ones((2, 7, 33)), made={"d_context": 33})),
    (lambda: forward(context=ones((7, 19)), made={"d_context": 19}), ValueError,
     ["x (all but its last two axes) has size (2,)", "context has size ()", "its own context"],
     lambda: forward(context=ones((2, 7, 19)), made={"d_context": 19})),
    (lambda: forward(context=np.full((2, 7, 19), np.inf), made={"d_context": 19}), NotFiniteError,
     ["context holds inf or NaN", "argwhere"],
     lambda: forward(context=ones((2, 7, 19)), made={"d_context": 19})),
    (lambda: forward(made={"positions": "learned", "n_max": 3}), ValueError,
     ["x has n=5 tokens", "n_max=3", "make the layer with n_max=5"],
     lambda: forward(made={"positions": "learned", "n_max": 5})),
    (lambda: forward(mask=ones((5, 7), bool)), ValueError,
     ["mask has shape (5, 7)", "(..., Tq, Tk) = (2, 3, 5, 5)"],
     lambda: forward(mask=ones((5, 1), bool))),
    (lambda: forward(mask=ones((5, 5))), TypeError, ["mask has dtype float64", "bool"],
     lambda: forward(mask=np.asarray(ones((5, 5)), bool))),
    (lambda: forward(mask=ones((2, 5, 5), bool), made={"causal": True}), ValueError,
     ["mask has shape (2, 5, 5)", "(2, 3, 5, 5)"],
     lambda: forward(mask=ones((2, 5, 5), bool)[:, None], made={"causal": True})),
    (lambda: forward(gates=ones(2)), ValueError,
     ["gates has shape (2,)", "(2, 3)", "one gate per head"],
     lambda: forward(gates=ones(3))),
    (lambda: forward(gates=ones((7, 2, 3))), ValueError, ["gates has shape (7, 2, 3)", "(2, 3)"],
     lambda: forward(gates=ones((2, 3)))),
    (lambda: forward(gates=1.0), ValueError, ["gates has shape ()", "(..., h)"],
     lambda: forward(gates=np.asarray(1.0)[None])),
    (lambda: forward(gates=[1, np.nan, 1]), NotFiniteError, ["gates holds inf or NaN"],
     lambda: forward(gates=[1, 1, 1])),
    (lambda: forward(gates=[1e308, 1e308, 1e308]), NotFiniteError,
     ["the output leaves the range", "gates up to 1.0e+308", "dividing gates by 1e+308"],
     lambda: forward(gates=np.divide([1e308, 1e308, 1e308], 1e308))),
    (lambda: backward(ones((5, 33))), ValueError,
     ["d_out has shape (5, 33)", "x has shape (2, 5, 33)", "gradient of the last output"],
     lambda: backward(ones((2, 5, 33)))),
    (lambda: backward(np.full((2, 5, 33), np.inf)), NotFiniteError, ["d_out holds inf or NaN"],
     lambda: backward(ones((2, 5, 33)))),
    (lambda: set_parameter("w_x", 1.0), ValueError,
     ["no array 'w_x'", "use one of w_q, w_k, w_v, w_o"],
     lambda: set_parameter("w_o", ones((33, 33)))),
    (lambda: set_parameter("w_q", ones((33, 11))), ValueError,
     ["the new w_q has shape (33, 11)", "the old has shape (33, 33)", "keep the shape"],
     lambda: set_parameter("w_q", ones((33, 33)))),
    (lambda: set_parameter("w_q", None), TypeError, ["w_q has dtype object", "float64"],
     lambda: set_parameter("w_q", ones((33, 33)))),
    # tasks
    (lambda: MarkedAndMean(n=1), ValueError, ["n=1", "n >= 2"],
     lambda: MarkedAndMean(n=2)),
    (lambda: MarkedAndMean(width=0), ValueError, ["width=0", "width >= 1"],
     lambda: MarkedAndMean(width=1)),
    (lambda: MarkedAndMean(d=0), ValueError, ["d=0", "d >= 1"],
     lambda: MarkedAndMean(d=12)),
    (lambda: MarkedAndMean(width=7, d=13), ValueError,
     ["d=13", "too small", "width=7", "use d >= 14"],
     lambda: MarkedAndMean(width=7, d=14)),
    (lambda: MarkedAndMean(width=1, d=2), ValueError, ["d=2", "width=1", "use d >= 3"],
     lambda: MarkedAndMean(width=1, d=3)),
    (lambda: MarkedAndMean(width=1, d=3, n_near=2), ValueError, ["n_near=2", "use d >= 4"],
     lambda: MarkedAndMean(width=1, d=4, n_near=2)),
    (lambda: MarkedAndMean(n=7, n_near=7), ValueError, ["n_near=7", "n=7", "n_near <= 6"],
     lambda: MarkedAndMean(n=7, n_near=6)),
    (lambda: MarkedAndMean(n_near=-1), ValueError, ["n_near=-1", "n_near >= 0"],
     lambda: MarkedAndMean(n_near=0)),
    (lambda: ThreeJobs(jobs="marked"), TypeError,
     ["jobs must be a tuple, not str", "some of ('previous'"],
     lambda: ThreeJobs(jobs=("marked",))),
    *((lambda jobs=jobs: ThreeJobs(jobs=jobs), ValueError, ["jobs=", "'most common'", "once"],
       lambda: ThreeJobs(jobs=("marked",)))
      for jobs in ((), ("next",), ("marked", "marked"))),
    (lambda: ThreeJobs(n=1), ValueError, ["n=1", "n >= 2"],
     lambda: ThreeJobs(n=2)),
    (lambda: ThreeJobs(n_symbols=1), ValueError, ["n_symbols=1", "n_symbols >= 2"],
     lambda: ThreeJobs(n_symbols=2)),
    (lambda: RepeatedSequence(shortest=1), ValueError, ["shortest=1", "shortest >= 2"],
     lambda: RepeatedSequence(shortest=2)),
    (lambda: RepeatedSequence(shortest=7, longest=5), ValueError,
     ["shortest=7", "longest=5", "shortest <= longest <= 16"],
     lambda: RepeatedSequence(shortest=7, longest=7)),
    (lambda: RepeatedSequence(longest=17), ValueError,
     ["longest=17", "n_symbols=16", "longest <= 16"],
     lambda: RepeatedSequence(longest=16)),
    (lambda: RepeatedSequence(n=11, longest=11), ValueError,
     ["longest=11", "n=11", "longest <= 10"],
     lambda: RepeatedSequence(n=11, longest=10)),
    *((lambda task=task: task.batch(7, 5), TypeError,
       ["rng must be a generator, not int", "np.random.default_rng(seed)"],
     lambda task=task: task.batch(np.random.default_rng(7), 5))
      for task in (VECTORS, JOBS, REPEATED)),
    *((lambda task=task: task.batch(RNG, 0), ValueError, ["n_sequences=0", "n_sequences >= 1"],
     lambda task=task: task.batch(RNG, 1))
      for task in (VECTORS, JOBS, REPEATED)),
    # losses
    *bad_answers(entropy_of), *bad_answers(accuracy_of),
    (lambda: entropy_of(logits=1.0), ValueError, ["logits has shape ()", "(..., V)"],
     lambda: entropy_of(logits=np.asarray(1.0)[None], targets=0, counted=True)),
    (lambda: entropy_of(counted=zeros((2, 5, 3), bool)), ValueError,
     ["counted is False everywhere", "at least one place"],
     lambda: entropy_of(counted=np.arange(3) == zeros((2, 5, 1)))),
    (lambda: accuracy_of(logits=ones((5, 3, 7))), ValueError,
     ["logits has shape (5, 3, 7)", "(..., B, n, J, V)"],
     lambda: accuracy_of(logits=ones((5, 3, 7))[None], targets=ones((1, 5, 3), int),
         counted=ones((1, 5, 3), bool))),
    (lambda: accuracy_of(counted=np.arange(3) != np.full((2, 5, 1), 1)), ValueError,
     ["counted is False everywhere for job 1", "more sequences"],
     lambda: accuracy_of()),
    (lambda: error_of(outputs=1.0), ValueError, ["outputs has shape ()", "(..., c)"],
     lambda: error_of(outputs=np.asarray(1.0)[None], targets=ones(1), importance=ones(1))),
    (lambda: error_of(targets=ones((5, 7))), ValueError,
     ["outputs has shape (2, 5, 7)", "targets has shape (5, 7)", "every number its target"],
     lambda: error_of(targets=np.broadcast_to(ones((5, 7)), (2, 5, 7)))),
    (lambda: error_of(importance=ones(5)), ValueError,
     ["importance has size 5", "outputs axis c has size 7", "every column its importance"],
     lambda: error_of(importance=ones(7))),
    (lambda: error_of(importance=1.0), ValueError, ["importance has shape ()", "c"],
     lambda: error_of(outputs=ones(1), targets=ones(1), importance=np.asarray(1.0)[None])),
    (lambda: error_of(importance=ones((5, 7))), ValueError,
     ["importance has shape (5, 7)", "exactly 1"],
     lambda: error_of(importance=ones((5, 7))[0])),
    (lambda: error_of(outputs=ones((0, 7)), targets=ones((0, 7))), ValueError,
     ["outputs has shape (0, 7)", "at least one"],
     lambda: error_of(outputs=ones((1, 7)), targets=ones((1, 7)))),
    *((lambda n=name, s=shape: error_of(**{n: np.full(s, np.nan)}), NotFiniteError,
       [f"{name} holds inf or NaN"],
     lambda n=name, s=shape: error_of(**{n: np.ones(s)}))
      for name, shape in (("outputs", (2, 5, 7)), ("targets", (2, 5, 7)), ("importance", (7,)))),
    # Adam, clip_gradients, Recipe
    (lambda: Adam({"w": [1.0]}), TypeError,
     ["parameters['w'] must be a float array", "np.array(parameters['w'], np.float64)"],
     lambda: Adam({"w": np.array([1.0], np.float64)})),
    (lambda: Adam({"w": ones(3, int)}), TypeError, ["parameters['w'] must be a float array"],
     lambda: Adam({"w": np.array(ones(3, int), np.float64)})),
    (lambda: Adam({"w": ones(3)}, decay=0.9), ValueError,
     ["decay=0.9", "a pair", "decay=(0.9, 0.99)"],
     lambda: Adam({"w": ones(3)}, decay=(0.9, 0.99))),
    (lambda: Adam({"w": ones(3)}, decay=(0.9, 1.5)), ValueError,
     ["decay=(0.9, 1.5)", "from 0 to below 1", "decay=(0.9, 0.99)"],
     lambda: Adam({"w": ones(3)}, decay=(0.9, 0.99))),
    (lambda: Adam({"w": ones(3)}, decay=(1.0, 0.9)), ValueError,
     ["decay=(1.0, 0.9)", "from 0 to below 1", "decay=(0.9, 0.99)"],
     lambda: Adam({"w": ones(3)}, decay=(0.9, 0.99))),
    (lambda: Adam({"w": ones(3)}, epsilon=0), ValueError,
     ["epsilon=0.0", "above 0", "epsilon=1e-08"],
     lambda: Adam({"w": ones(3)}, epsilon=1e-8)),
    (lambda: Adam({"w": ones(3)}).step({"v": ones(3)}, 0.1), ValueError,
     ["gradients are for v", "parameters are w", "every parameter its gradient"],
     lambda: Adam({"w": ones(3)}).step({"w": ones(3)}, 0.1)),
    (lambda: Adam({"w": ones(3)}).step({"w": ones(1)}, 0.1), ValueError,
     ["gradients['w'] has shape (1,)", "its parameter has shape (3,)", "every number its gradient"],
     lambda: Adam({"w": ones(3)}).step({"w": ones(3)}, 0.1)),
    (lambda: clip_gradients({"w": ones(3)}, 0), ValueError, ["largest_norm=0.0", "above 0"],
     lambda: clip_gradients({"w": ones(3)}, largest_norm=1.0)),
    (lambda: clip_gradients({"w": ones(3)}, np.nan), ValueError, ["largest_norm=nan", "above 0"],
     lambda: clip_gradients({"w": ones(3)}, largest_norm=1.0)),
    (lambda: clip_gradients({"w": ones(3)}, "1"), TypeError, ["largest_norm has dtype <U1"],
     lambda: clip_gradients({"w": ones(3)}, np.asarray("1", np.float64))),
    (lambda: clip_gradients({"w": ones(3)}, [1, 2]), TypeError,
     ["largest_norm has shape (2,)", "one number"],
     lambda: clip_gradients({"w": ones(3)}, [1, 2][0])),
    (lambda: Recipe(0, 0.01), ValueError, ["n_steps=0", "n_steps >= 1"],
     lambda: Recipe(1, 0.01)),
    (lambda: Recipe(7, 0.01, n_sequences=0), ValueError, ["n_sequences=0", "n_sequences >= 1"],
     lambda: Recipe(7, 0.01, n_sequences=1)),
    (lambda: Recipe(7, 0.01, n_warm_up=0), ValueError, ["n_warm_up=0", "n_warm_up >= 1"],
     lambda: Recipe(7, 0.01, n_warm_up=1)),
    (lambda: Recipe(7, 0), ValueError, ["learning_rate=0.0", "above 0", "0.01"],
     lambda: Recipe(7, learning_rate=0.01)),
    (lambda: Recipe(7, np.inf), ValueError, ["learning_rate=inf", "finite", "0.01"],
     lambda: Recipe(7, learning_rate=0.01)),
    (lambda: Recipe(7, "0.01"), TypeError, ["learning_rate has dtype <U4"],
     lambda: Recipe(7, np.asarray("0.01", np.float64))),
    (lambda: Recipe(7, 0.01, last_rate=1.5), ValueError, ["last_rate=1.5", "between 0 and 1"],
     lambda: Recipe(7, 0.01, last_rate=0.5)),
    (lambda: Recipe(7, 0.01, largest_norm=-1), ValueError, ["largest_norm=-1.0", "above 0"],
     lambda: Recipe(7, 0.01, largest_norm=1.0)),
    # fit
    (lambda: train(model=None), TypeError,
     ["model is of type NoneType", "no parameters", "TokenModel"],
     lambda: train(model=token_model())),
    (lambda: train(task=7), TypeError,
     ["task is of type int", "no batch", "mha_lib.learning.tasks"],
     lambda: train(task=ThreeJobs(n=5, n_symbols=7))),
    (lambda: train(recipe=500), TypeError, ["recipe is of type int", "no rate", "Recipe"],
     lambda: train(recipe=Recipe(3, 0.01))),
    (lambda: train(seed=-1), ValueError, ["seed=-1", "seed >= 0"],
     lambda: train(seed=0)),
    (lambda: train(watch=7), TypeError, ["watch is of type int", "a function, or None"],
     lambda: train(watch=None)),
    (lambda: train(progress=True), TypeError, ["progress is of type bool", "a function, or None"],
     lambda: train(progress=None)),
    (lambda: train(watch_at=3), TypeError, ["watch_at is of type int", "a list of steps"],
     lambda: train(watch_at=[3])),
    (lambda: train(watch_at=[0, 4]), ValueError, ["watch_at names step 4", "n_steps=3"],
     lambda: train(watch_at=[0, 3])),
    (lambda: train(watch_at=[-1]), ValueError, ["watch_at=-1", "watch_at >= 0"],
     lambda: train(watch_at=[0])),
    (lambda: train(task=VECTORS), TypeError, ["batch is of type VectorBatch", "no tokens"],
     lambda: train(task=JOBS)),
    (lambda: train(task=ThreeJobs(n=5, n_symbols=11)), ValueError,
     ["tokens runs from 0 to", "symbols V=7", "use 0 to 6"],
     lambda: train(task=ThreeJobs(n=5, n_symbols=7))),
    (lambda: train(task=ThreeJobs(n=7, n_symbols=7)), ValueError,
     ["x has n=7 tokens", "n_max=5", "n_max=7"],
     lambda: train(task=(t := ThreeJobs(n=7, n_symbols=7)), model=token_model(t))),
    # models
    (lambda: VectorModel(JOBS, 2, 0), TypeError,
     ["task is of type ThreeJobs", "no d", "MarkedAndMean()"],
     lambda: VectorModel(MarkedAndMean(), 2, 0)),
    (lambda: VectorModel(VECTORS, 3, 0), ValueError, ["n_heads=3", "d=14", "2 or 7"],
     lambda: VectorModel(VECTORS, 7, 0)),
    (lambda: VectorModel(VECTORS, 2, -1), ValueError, ["seed=-1", "seed >= 0"],
     lambda: VectorModel(VECTORS, 2, 0)),
    (lambda: VectorModel(VECTORS, 2, 0, importance=2), ValueError,
     ["importance=2.0", "between 0 and 1"],
     lambda: VectorModel(VECTORS, 2, 0, importance=0.5)),
    (lambda: VectorModel(VECTORS, 2, 0).forward(BATCH), TypeError,
     ["batch is of type TokenBatch", "no x", "VectorBatch"],
     lambda: VectorModel(VECTORS, 2, 0).forward(VECTORS.batch(RNG, 3))),
    (lambda: VectorModel(VECTORS, 2, 0).forward(MarkedAndMean().batch(RNG, 3)), ValueError,
     ["x (its last axis) has size 16", "the layer has size 14"],
     lambda: VectorModel(MarkedAndMean(), 2, 0).forward(MarkedAndMean().batch(RNG, 3))),
    (lambda: VectorModel(VECTORS, 2, 0).forward(VECTORS.batch(RNG, 3), ones(2)), ValueError,
     ["gates has shape (2,)", "(..., L, h)"],
     lambda: VectorModel(VECTORS, 2, 0).forward(VECTORS.batch(RNG, 3), ones(2)[None])),
    (lambda: VectorModel(VECTORS, 2, 0).forward(VECTORS.batch(RNG, 3), ones((3, 2))), ValueError,
     ["gates has shape (3, 2)", "(1, 2)", "one gate per head"],
     lambda: VectorModel(VECTORS, 2, 0).forward(VECTORS.batch(RNG, 3), ones((1, 2)))),
    (lambda: VectorModel(VECTORS, 2, 0).backward(ones((3, 5, 6))), ValueError,
     ["backward needs a forward pass", "forward(batch) first"],
     lambda: after_forward(VectorModel(VECTORS, 2, 0), VECTORS.batch(RNG, 3), ones((3, 5, 6)))),
    (lambda: after_forward(VectorModel(VECTORS, 2, 0), VECTORS.batch(RNG, 3), ones((3, 5, 14))),
     ValueError, ["d_outputs has shape (3, 5, 14)", "(3, 5, 6)", "gradient of the last output"],
     lambda: after_forward(VectorModel(VECTORS, 2, 0), VECTORS.batch(RNG, 3), ones((3, 5, 6)))),
    (lambda: token_model(VECTORS), TypeError,
     ["task is of type MarkedAndMean", "no n_symbols", "ThreeJobs()"],
     lambda: token_model(ThreeJobs())),
    (lambda: token_model(n_heads=4), ValueError, ["n_heads=4", "d=6", "3 or 6"],
     lambda: token_model(n_heads=3)),
    (lambda: token_model(n_layers=0), ValueError, ["n_layers=0", "n_layers >= 1"],
     lambda: token_model(n_layers=1)),
    (lambda: token_model(seed=-1), ValueError, ["seed=-1", "seed >= 0"],
     lambda: token_model(seed=0)),
    (lambda: token_model(positions="sinus"), ValueError, ["positions='sinus'", "'learned'"],
     lambda: token_model(positions="rotary")),
    (lambda: token_model(d=9, positions="rotary"), ValueError,
     ["d=9 and n_heads=3", "d_k=3", "use d=6 or 12"],
     lambda: token_model(d=12, positions="rotary")),
    (lambda: token_model().forward(VECTORS.batch(RNG, 3)), TypeError,
     ["batch is of type VectorBatch", "no tokens", "TokenBatch"],
     lambda: token_model().forward(JOBS.batch(RNG, 3))),
    (lambda: token_model().forward(batch(tokens=ones((13, 5)))), TypeError,
     ["tokens has dtype float64", "integers"],
     lambda: token_model().forward(batch(tokens=np.asarray(ones((13, 5)),
         np.float64).astype(int)))),
    (lambda: token_model().forward(batch(tokens=ones(5, int))), ValueError,
     ["tokens has shape (5,)", "(B, n)", "tokens[None]"],
     lambda: token_model().forward(batch(tokens=ones(5, int)[None], marked=None))),
    (lambda: token_model().forward(batch(tokens=np.full((13, 5), -1))), ValueError,
     ["tokens runs from -1 to -1", "symbols V=7", "use 0 to 6"],
     lambda: token_model().forward(batch(tokens=np.full((13, 5), 6)))),
    (lambda: token_model().forward(batch(marked=np.arange(13))), ValueError,
     ["marked runs from 0 to 12", "tokens n=5", "use 0 to 4"],
     lambda: token_model().forward(batch(marked=np.arange(13) % 5))),
    (lambda: token_model().forward(batch(marked=np.arange(5))), ValueError,
     ["marked has shape (5,)", "tokens[:, 0] has shape (13,)", "one token each"],
     lambda: token_model().forward(batch(marked=np.resize(np.arange(5), 13)))),
    (lambda: token_model().forward(BATCH, ones((1, 2))), ValueError,
     ["gates has shape (1, 2)", "(1, 3)", "one gate per head"],
     lambda: token_model().forward(BATCH, ones((1, 3)))),
    (lambda: token_model(n_layers=2).forward(BATCH, ones((1, 3))), ValueError,
     ["gates has shape (1, 3)", "(2, 3)"],
     lambda: token_model(n_layers=2).forward(BATCH, ones((2, 3)))),
    (lambda: token_model().backward(ones((13, 5, 3, 7))), ValueError,
     ["backward needs a forward pass", "forward(batch) first"],
     lambda: after_forward(token_model(), BATCH, ones((13, 5, 3, 7)))),
    (lambda: after_forward(token_model(), BATCH, ones((13, 5, 7, 3))), ValueError,
     ["d_logits has shape (13, 5, 7, 3)", "(13, 5, 3, 7)", "gradient of the last output"],
     lambda: after_forward(token_model(), BATCH, ones((13, 5, 3, 7)))),
    (lambda: after_forward(token_model(), BATCH, np.full((13, 5, 3, 7), np.nan)), NotFiniteError,
     ["d_logits holds inf or NaN"],
     lambda: after_forward(token_model(), BATCH, ones((13, 5, 3, 7)))),
    # head scores
    (lambda: attention_mass(ones((5, 7)), True), ValueError,
     ["weights has shape (5, 7)", "(..., h, Tq, Tk)"],
     lambda: attention_mass(ones((5, 7))[None], True)),
    (lambda: attention_mass(ones((2, 3, 5, 7)), ones((7, 5), bool)), ValueError,
     ["targets has shape (7, 5)", "(2, 5, 7)"],
     lambda: attention_mass(ones((2, 3, 5, 7)), ones((7, 5), bool).T)),
    (lambda: attention_mass(ones((3, 5, 7)), ones((5, 7))), TypeError,
     ["targets has dtype float64", "bool"],
     lambda: attention_mass(ones((3, 5, 7)), np.asarray(ones((5, 7)), bool))),
    (lambda: attention_mass(ones((3, 5, 7)), True, ones(7, bool)), ValueError,
     ["rows has shape (7,)", "(5,)", "one entry per query"],
     lambda: attention_mass(ones((3, 5, 7)), True, ones(5, bool))),
    (lambda: attention_mass(ones((3, 5, 7)), True, ones(5)), TypeError, ["rows has dtype float64"],
     lambda: attention_mass(ones((3, 5, 7)), True, np.asarray(ones(5), bool))),
    (lambda: attention_mass(ones((3, 5, 7)), False), ValueError,
     ["targets selects no query", "at least one True"],
     lambda: attention_mass(ones((3, 5, 7)), True)),
    (lambda: attention_mass(ones((3, 5, 7)), True, zeros(5, bool)), ValueError,
     ["rows selects no query", "at least one True"],
     lambda: attention_mass(ones((3, 5, 7)), True, ones(5, bool))),
    (lambda: chance_mass(ones(7, bool)), ValueError,
     ["targets has shape (7,)", "at least 2", "np.atleast_2d(targets)"],
     lambda: chance_mass(np.atleast_2d(ones(7, bool)))),
    (lambda: chance_mass(ones((5, 7))), TypeError, ["targets has dtype float64", "bool"],
     lambda: chance_mass(np.asarray(ones((5, 7)), bool))),
    (lambda: chance_mass(ones((5, 7), bool), ones((7, 5), bool)), ValueError,
     ["shapes do not broadcast", "targets (5, 7)", "mask (7, 5)"],
     lambda: chance_mass(ones((5, 7), bool), ones((5, 7), bool))),
    (lambda: chance_mass(ones((5, 7), bool), ones(7)), TypeError, ["mask has dtype float64"],
     lambda: chance_mass(ones((5, 7), bool), np.asarray(ones(7), bool))),
    (lambda: chance_mass(zeros((5, 7), bool)), ValueError, ["targets selects no query"],
     lambda: chance_mass(np.eye(5, 7, dtype=bool))),
    (lambda: previous_token(1), ValueError, ["n=1", "n >= 2"],
     lambda: previous_token(2)),
    (lambda: marked_token([3, 5], 5), ValueError,
     ["marked runs from 3 to 5", "tokens n=5", "use 0 to 4"],
     lambda: marked_token([3, 4], 5)),
    (lambda: marked_token([-1], 5), ValueError, ["marked runs from -1", "tokens n=5"],
     lambda: marked_token([0], 5)),
    (lambda: marked_token([1.0], 5), TypeError, ["marked has dtype float64", "integers"],
     lambda: marked_token(np.asarray([1.0], np.float64).astype(int), 5)),
    (lambda: marked_token([0], 0), ValueError, ["n=0", "n >= 1"],
     lambda: marked_token([0], 1)),
    (lambda: induction_targets(3), ValueError, ["tokens has shape ()", "np.atleast_1d(tokens)"],
     lambda: induction_targets(np.atleast_1d(3))),
    (lambda: induction_targets([1.0]), TypeError, ["tokens has dtype float64", "integers"],
     lambda: induction_targets(np.asarray([1.0], np.float64).astype(int))),
    (lambda: normalised_entropy(ones((5, 7))), ValueError,
     ["weights has shape (5, 7)", "(..., h, Tq, Tk)"],
     lambda: normalised_entropy(ones((5, 7))[None] / 7)),
    (lambda: normalised_entropy(ones((3, 5, 7)), ones((7, 5), bool)), ValueError,
     ["mask has shape (7, 5)", "(3, 5, 7)"],
     lambda: normalised_entropy(ones((3, 5, 7)) / 7, ones((7, 5), bool).T)),
    (lambda: normalised_entropy(ones((3, 5, 7)), ones(7)), TypeError, ["mask has dtype float64"],
     lambda: normalised_entropy(ones((3, 5, 7)) / 7, np.asarray(ones(7), bool))),
    (lambda: normalised_entropy(ones((3, 5, 1))), ValueError,
     ["no query of head 0", "two keys", "longer rows"],
     lambda: normalised_entropy(ones((3, 5, 2)) / 2)),
    (lambda: normalised_entropy(ones((2, 5, 3)), np.array([[[True] * 3], [[True, False, False]]])),
     ValueError, ["no query of head 1", "two keys", "wider mask"],
     lambda: normalised_entropy(ones((2, 5, 3)) / 3, np.array([[[True] * 3], [[True, True,
         False]]]))),
    # orders
    (lambda: losses_without(gain, ones(3)), ValueError, ["gates has shape (3,)", "(..., L, h)"],
     lambda: losses_without(gain, ones(3)[None])),
    (lambda: losses_without(None, ones((2, 3))), TypeError,
     ["evaluate is of type NoneType", "a function of gates, (L, h)"],
     lambda: losses_without(gain, ones((2, 3)))),
    (lambda: losses_without(no_loss, ones((2, 3))), ValueError,
     ["evaluate returned a loss of NaN", "layer 0, head 0", "return a number"],
     lambda: losses_without(gain, ones((2, 3)))),
    (lambda: greedy_order(gain, 3), ValueError, ["shape=3", "a pair (L, h)"],
     lambda: greedy_order(gain, (1, 3))),
    (lambda: greedy_order(gain, (2, 3, 5)), ValueError, ["shape=(2, 3, 5)", "a pair (L, h)"],
     lambda: greedy_order(gain, (2, 3))),
    (lambda: greedy_order(gain, (0, 3)), ValueError, ["L=0", "L >= 1"],
     lambda: greedy_order(gain, (1, 3))),
    (lambda: greedy_order(gain, (2, 0)), ValueError, ["h=0", "h >= 1"],
     lambda: greedy_order(gain, (2, 1))),
    (lambda: greedy_order(gain, (2, 3.0)), TypeError, ["h must be an integer", "int(h)"],
     lambda: greedy_order(gain, (2, int(3.0)))),
    (lambda: greedy_order(no_loss, (2, 3)), ValueError, ["evaluate returned a loss of NaN"],
     lambda: greedy_order(gain, (2, 3))),
    (lambda: greedy_order(7, (2, 3)), TypeError, ["evaluate is of type int", "a function"],
     lambda: greedy_order(gain, (2, 3))),
    (lambda: order_by(ones(3)), ValueError, ["importance has shape (3,)", "(..., L, h)"],
     lambda: order_by(ones(3)[None])),
    (lambda: order_by([[1, np.nan]]), NotFiniteError, ["importance holds inf or NaN"],
     lambda: order_by([[1, 0]])),
    (lambda: subset_curves(gain, 3), ValueError, ["shape=3", "a pair (L, h)"],
     lambda: subset_curves(gain, (1, 3))),
    (lambda: subset_curves(7, (2, 3)), TypeError, ["evaluate is of type int", "a function"],
     lambda: subset_curves(gain, (2, 3))),
    (lambda: subset_curves(gain, (5, 3)), ValueError,
     ["shape=(5, 3)", "15 heads", "2^15 choices", "at most 12"],
     lambda: subset_curves(gain, (1, 3))),
    *((lambda order=order: pruning_curve(gain, order, (1, 2)), ValueError,
       ["order has shape", "each of the 2 heads of 1 layers once", "greedy_order"],
     lambda order=order: pruning_curve(gain, greedy_order(gain, (1, 2)), (1, 2)))
      for order in (3, [0, 1], [[0, 0]], [[0, 0], [0, 0]], [[0, 1], [0, 2]], [[[0, 0], [0, 1]]])),
    (lambda: pruning_curve(gain, [[0.0, 1.0]], (1, 2)), TypeError, ["order has dtype float64"],
     lambda: pruning_curve(gain, np.asarray([[0.0, 0.0], [0.0, 1.0]], np.float64).astype(int), (1,
         2))),
    (lambda: pruning_curve(7, [[0, 0], [0, 1]], (1, 2)), TypeError,
     ["evaluate is of type int", "a function"],
     lambda: pruning_curve(gain, [[0, 0], [0, 1]], (1, 2))),
    (lambda: pruning_curve(gain, [[0, 0]], 1), ValueError, ["shape=1", "a pair (L, h)"],
     lambda: pruning_curve(gain, [[0, 0]], (1, 1))),
    # importance
    *((lambda importance=importance: importance(None, BATCH), TypeError,
       ["model is of type NoneType", "no layers", "TokenModel"],
     lambda importance=importance: importance(token_model(), BATCH))
      for importance in (gradient_importance, path_importance)),
    *((lambda importance=importance: importance(token_model(), None), TypeError,
       ["batch is of type NoneType", "no tokens", "TokenBatch"],
     lambda importance=importance: importance(token_model(), BATCH))
      for importance in (gradient_importance, path_importance)),
    (lambda: gradient_by_job(None, BATCH), TypeError,
     ["model is of type NoneType", "no layers", "TokenModel"],
     lambda: gradient_by_job(token_model(), BATCH)),
    (lambda: gradient_by_job(VectorModel(VECTORS, 2, 0), BATCH), TypeError,
     ["model is of type VectorModel", "no n_jobs", "a TokenModel"],
     lambda: gradient_by_job(token_model(), BATCH)),
    (lambda: gradient_by_job(token_model(), None), TypeError,
     ["batch is of type NoneType", "no tokens", "TokenBatch"],
     lambda: gradient_by_job(token_model(), BATCH)),
    (lambda: gradient_importance(token_model(), BATCH, ones(3)), ValueError,
     ["gates has shape (3,)", "(..., L, h)"],
     lambda: gradient_importance(token_model(), BATCH, ones(3)[None])),
    (lambda: path_importance(token_model(), BATCH, 0), ValueError, ["n_points=0", "n_points >= 1"],
     lambda: path_importance(token_model(), BATCH, 1)),
    (lambda: spearman(ones(3), ones(5)), ValueError,
     ["a has shape (3,)", "b has shape (5,)", "one number in both"],
     lambda: spearman(np.arange(3), np.arange(5)[:3])),
    (lambda: spearman([1, 2, np.nan], [1, 2, 3]), NotFiniteError, ["a holds inf or NaN"],
     lambda: spearman([1, 2, 4], [1, 2, 3])),
    (lambda: spearman([1, 2, 3], [1, 2, np.inf]), NotFiniteError, ["b holds inf or NaN"],
     lambda: spearman([1, 2, 3], [1, 2, 4])),
    (lambda: spearman([1, 2, 3], ones(3)), ValueError, ["all numbers of b are equal"],
     lambda: spearman([1, 2, 3], [1, 1, 2])),
    (lambda: spearman([], []), ValueError, ["all numbers of a are equal"],
     lambda: spearman([1, 2], [1, 2])),
    # study_pruning
    (lambda: study(model=7), TypeError, ["model is of type int", "no layers", "TokenModel"],
     lambda: study(model=token_model())),
    (lambda: study(model=token_model(n_heads=1)), ValueError,
     ["model has only one head", "n_heads >= 2"],
     lambda: study(model=token_model(n_heads=2))),
    (lambda: study(tuning=None), TypeError, ["tuning is of type NoneType", "no targets"],
     lambda: study(tuning=BATCH)),
    (lambda: study(reporting=None), TypeError, ["reporting is of type NoneType", "no targets"],
     lambda: study(reporting=OTHER_BATCH)),
    (lambda: study(reporting=BATCH), ValueError,
     ["tuning and reporting are the same data", "draw two batches"],
     lambda: study(reporting=JOBS.batch(RNG, 13))),
    (lambda: study(model=token_model(n_heads=15, d=30)), ValueError,
     ["shape=(1, 15)", "at most 12"],
     lambda: study(model=token_model(n_heads=3, d=30))),
    # experiments
    (lambda: mean_rows(token_model(), RepeatedSequence().batch(RNG, 3)), ValueError,
     ["batch has no marked tokens", "MarkedAndMean or ThreeJobs"],
     lambda: mean_rows(token_model(), BATCH)),
    *((lambda score=score: score(None, BATCH), TypeError,
       ["model is of type NoneType", "no layers", "TokenModel"],
     lambda score=score: score(token_model(), BATCH))
      for score in (head_scores, chance_scores, mean_rows)),
    *((lambda score=score: score(token_model(), None), TypeError,
       ["batch is of type NoneType", "TokenBatch"],
     lambda score=score: score(token_model(), BATCH))
      for score in (head_scores, chance_scores, mean_rows)),
    (lambda: head_roles([ones((1, 3))]), TypeError,
     ["scores must be a dict, not list", "what head_scores returned"],
     lambda: head_roles(head_scores(token_model(), BATCH))),
    *((lambda scores=scores: head_roles(scores), ValueError,
       ["scores has the keys", "'entropy' and at least one role", "what head_scores returned"],
       lambda: head_roles(head_scores(token_model(), BATCH)))
      for scores in ({}, {"entropy": ones((1, 3))}, {"previous token": ones((1, 3))})),
    (lambda: head_scores(token_model(), BATCH, ones(3)), ValueError,
     ["gates has shape (3,)", "(..., L, h)"],
     lambda: head_scores(token_model(), BATCH, ones(3)[None])),
    (lambda: snapshot_steps(0, 2), ValueError, ["n_steps=0", "n_steps >= 1"],
     lambda: snapshot_steps(1, 2)),
    (lambda: snapshot_steps(7, 1), ValueError, ["n_snapshots=1", "n_snapshots >= 2"],
     lambda: snapshot_steps(7, 2)),
    (lambda: run_marked_and_mean(3), ValueError, ["n_heads=3", "d=16", "2 or 4"],
     lambda: run_marked_and_mean(4, n_steps=1)),
    (lambda: run_marked_and_mean(2, n=1), ValueError, ["n=1", "n >= 2"],
     lambda: run_marked_and_mean(2, n=2, n_steps=1)),
    (lambda: run_marked_and_mean(2, importance=2), ValueError, ["importance=2.0"],
     lambda: run_marked_and_mean(2, importance=0.5, n_steps=1)),
    (lambda: run_three_jobs(jobs=("next",)), ValueError, ["jobs=('next',)", "'previous'"],
     lambda: run_three_jobs(jobs=("previous",), n_steps=1)),
    (lambda: run_three_jobs(3), ValueError, ["n_heads=3", "d=64", "2 or 4"],
     lambda: run_three_jobs(4, n_steps=1)),
    (lambda: run_three_jobs(n_steps=0), ValueError, ["n_steps=0", "n_steps >= 1"],
     lambda: run_three_jobs(n_steps=1)),
    (lambda: run_three_jobs(n_snapshots=1), ValueError, ["n_snapshots=1", "n_snapshots >= 2"],
     lambda: run_three_jobs(n_snapshots=2, n_steps=1)),
    (lambda: run_induction(32), ValueError, ["n_heads=32", "d_k=1", "use d=64"],
     lambda: run_induction(32, d=64, n_steps=1)),
    (lambda: run_induction(seed=-1), ValueError, ["seed=-1", "seed >= 0"],
     lambda: run_induction(seed=0, n_steps=1)),
    # flags
    *((lambda call=call: call("False"), TypeError,
       [f"{name} must be True or False, not str 'False'", f"pass {name}=True or {name}=False"],
       lambda call=call: call(False))
      for name, call in FLAGS.items()),
    (lambda: layer(n_max="a"), TypeError, ["n_max must be an integer", "n_max=1"],
     lambda: layer(n_max=1)),
    (lambda: layer(positions=["rotary"]), ValueError, ["positions=['rotary']", "use one of None"],
     lambda: layer(positions="rotary", d=36)),
    # numbers beyond floats and memory
    (lambda: attend_in_heads(x=np.full((2, 5, 19), 1e200), w_q=1e200 * SIGNED), NotFiniteError,
     ["a projection leaves the range", "w_q up to 1.0e+200", "smaller"],
     lambda: attend_in_heads(x=ones((2, 5, 19)), w_q=SIGNED)),
    (lambda: attend_backward(d_out=np.full((5, 13), 1e300), v=np.full((7, 13), 1e300)),
     NotFiniteError, ["the gradient leaves the range", "d_out up to 1.0e+300", "dividing d_out"],
     lambda: attend_backward(d_out=np.full((5, 13), 1e300) / 1e300, v=np.full((7, 13), 1e300))),
    (lambda: backward(np.full((2, 5, 33), 1e308)), NotFiniteError,
     ["the gradient leaves the range", "d_out up to 1.0e+308", "dividing d_out by 1e+308"],
     lambda: backward(np.full((2, 5, 33), 1e308) / 1e308)),
    (lambda: rotate([[np.inf, 1.0]], [[1.0]]), NotFiniteError, ["x holds inf or NaN"],
     lambda: rotate([[0.0, 1.0]], [[1.0]])),
    (lambda: rotate([[1.0, 1.0]], [[np.nan]]), NotFiniteError, ["angles holds inf or NaN"],
     lambda: rotate([[1.0, 1.0]], [[0.0]])),
    *((lambda call=call: call(10**19), ValueError,
       [f"{name}={10**19} asks for", "memory", f"use a smaller {name}"],
       lambda call=call: call(10))
      for name, call in (
          ("n", causal_mask), ("n_past", lambda n: causal_mask(1, n_past=n)),
          ("n", lambda n: padding_mask([1, 2], n)), ("n", lambda n: rotary_angles(n, 2)),
          ("n", best_row), ("n", previous_token), ("n", lambda n: marked_token([1], n)),
      )),
    # training
    (lambda: error_of(importance=-ones(7)), ValueError,
     ["importance holds -1.0", "importance >= 0"],
     lambda: error_of(importance=ones(7))),
    (lambda: Adam({"w": np.array([np.nan])}), NotFiniteError,
     ["parameters['w'] holds inf or NaN", "np.isfinite(parameters['w'])"],
     lambda: Adam({"w": np.array([0.0])})),
    *((lambda bad=bad: Adam({"w": bad}), TypeError, ["parameters['w']", fragment],
       lambda bad=bad: Adam({"w": np.array(np.ma.filled(bad, 0.0), np.float64)}))
      for bad, fragment in (
          (np.broadcast_to(1.0, 3), "np.array(parameters['w'], np.float64)"),
          (np.ma.ones(3), "masked array"), (1.0, "np.array(parameters['w'], np.float64)"),
      )),
    (lambda: Adam([ones(3)]), TypeError, ["parameters is of type list", "a dict"],
     lambda: Adam({"w": ones(3)})),
    (lambda: clip_gradients([ones(3)], 1.0), TypeError, ["gradients is of type list", "a dict"],
     lambda: clip_gradients({"w": ones(3)}, 1.0)),
    *((lambda bad=bad: clip_gradients({"w": bad}, 1.0), TypeError,
       ["gradients['w'] must be a float array", "np.array(gradients['w'], np.float64)"],
       lambda bad=bad: clip_gradients({"w": np.array(bad, np.float64)}, 1.0))
      for bad in ([3, 4], np.array([3, 4]), np.broadcast_to(1.0, 3), np.ones(3, np.float16))),
    (lambda: clip_gradients({"w": np.array([np.nan])}, 1.0), NotFiniteError,
     ["gradients['w'] holds inf or NaN"], lambda: clip_gradients({"w": np.array([1.0])}, 1.0)),
    *((lambda rate=rate: Adam({"w": ones(3)}).step({"w": ones(3)}, rate), exception,
       ["learning_rate", fragment], lambda: Adam({"w": ones(3)}).step({"w": ones(3)}, 0.01))
      for rate, exception, fragment in (
          (np.nan, ValueError, "learning_rate=0.01"), (-0.1, ValueError, "learning_rate=0.01"),
          ("0.1", TypeError, "np.asarray(learning_rate, np.float64)"),
          (None, TypeError, "in the place of None"),
      )),
    (lambda: Adam({"w": ones(3)}).step({"w": ones(3) * 1e200}, 0.1), ValueError,
     ["gradients['w'] holds a number of size 1e+200", "clip_gradients(gradients, 1.0)"],
     lambda: clipped_step({"w": ones(3) * 1e200})),
    (lambda: Adam({"w": ones(3) * 1e308}).step({"w": -ones(3)}, 1e308), ValueError,
     ["parameters['w'] would leave the range", "learning_rate=1e+308", "smaller learning_rate"],
     lambda: Adam({"w": ones(3) * 1e308}).step({"w": -ones(3)}, 0.01)),
    (lambda: Adam({"w": ones(3)}).step([ones(3)], 0.1), TypeError,
     ["gradients is of type list", "a dict"],
     lambda: Adam({"w": ones(3)}).step({"w": ones(3)}, 0.1)),
    (lambda: Recipe(7, 0.01).rate("a"), TypeError, ["step must be an integer", "step=1"],
     lambda: Recipe(7, 0.01).rate(1)),
    (lambda: train(task=ThreeJobs), TypeError,
     ["task is the class ThreeJobs itself", "one of mha_lib.learning.tasks"],
     lambda: train(task=JOBS)),
    (lambda: RepeatedSequence(n=2), ValueError, ["n=2", "use n >= 3"],
     lambda: RepeatedSequence(n=3, shortest=2, longest=2)),
    # heads
    (lambda: chance_mass(marked_token([0, 1], 4), padding_mask([1, 4], 4)), ValueError,
     ["mask has shape (2, 1, 1, 4)", "(2, 4, 4)", "pass mask[:, 0]"],
     lambda: chance_mass(marked_token([0, 1], 4), padding_mask([1, 4], 4)[:, 0])),
    *((lambda call=call: call(ones((0, 5, 7))), ValueError, ["weights", "h=0", "at least one head"],
       lambda call=call: call(ones((1, 5, 7)) / 7))
      for call in (lambda weights: attention_mass(weights, True), normalised_entropy)),
    *((lambda call=call: call(np.full((3, 5, 7), np.nan)), NotFiniteError, ["weights holds inf"],
       lambda call=call: call(ones((3, 5, 7)) / 7))
      for call in (lambda weights: attention_mass(weights, True), normalised_entropy)),
    *((lambda found=found: losses_without(lambda gates: found, ones((2, 3))), TypeError,
       [fragment, remedy], lambda: losses_without(lambda gates: (1.0, None), ones((2, 3))))
      for found, fragment, remedy in (
          (1.0, "evaluate returned float 1.0", "return (loss, results)"),
          (None, "evaluate returned NoneType", "return (loss, results)"),
          (("a", 1), "the loss that evaluate returned", "real numbers"),
          ((ones(2), 1), "loss of shape (2,)", "return its mean"),
      )),
    (lambda: pruning_curve(lambda gates: (0.0, None), [[0, 0]], (1, 1)), TypeError,
     ["evaluate's results", "None"],
     lambda: pruning_curve(lambda gates: (0.0, gates), [[0, 0]], (1, 1))),
    (lambda: snapshot(1, 2), TypeError, ["model is of type int", "TokenModel"],
     lambda: snapshot(token_model(), BATCH)),
    *((lambda call=call: call(np.array([[[3.0, -1.0]]])), ValueError,
       ["weights runs from -1 to 3", "between 0 and 1", "what softmax returns"],
       lambda call=call: call(softmax(np.array([[[3.0, -1.0]]]))))
      for call in (lambda weights: attention_mass(weights, True), normalised_entropy)),
    *((lambda shape=shape: greedy_order(gain, shape), ValueError, ["shape=", "shape=(1, 8)"],
       lambda: greedy_order(gain, (1, 8)))
      for shape in (RAGGED[0] + [3], "abc", {1, 2}, None)),
    (lambda: greedy_order(gain, (10**12, 10**12)), ValueError, ["L=", "memory"],
     lambda: greedy_order(gain, (2, 2))),
    (lambda: greedy_order(gain, RAGGED), TypeError, ["L must be an integer", "L=1"],
     lambda: greedy_order(gain, (1, 1))),
    (lambda: path_importance(token_model(), BATCH, 10**19), ValueError, ["n_points=", "memory"],
     lambda: path_importance(token_model(), BATCH, 3)),
    *((lambda task=task: task.batch(RNG, 10**19), ValueError, ["n_sequences=", "memory"],
       lambda task=task: task.batch(RNG, 10))
      for task in (VECTORS, JOBS, REPEATED)),
    (lambda: snapshot_steps(7, 10**19), ValueError, ["n_snapshots=", "memory"],
     lambda: snapshot_steps(7, 3)),
    (lambda: Recipe(7, 0.01).rate(8), ValueError, ["step=8", "n_steps=7", "step <= n_steps"],
     lambda: Recipe(7, 0.01).rate(7)),
    (lambda: train(watch_at=np.array(3)), TypeError, ["watch_at is of type ndarray", "a list"],
     lambda: train(watch_at=[3])),
    # pictures
    (lambda: draw_mechanism(x=ones(6)), ValueError, ["x has shape (6,)", "x[None]"],
     lambda: draw_mechanism(x=ones(6)[None]).text),
    (lambda: draw_mechanism(tokens=["a"]), ValueError, ["tokens has size 1", "x axis n"],
     lambda: draw_mechanism(tokens=list("abcd")).text),
    (lambda: draw_mechanism(n_heads=4), ValueError, ["n_heads=4", "d=6", "3 or 6"],
     lambda: draw_mechanism(n_heads=3).text),
    (lambda: draw_mechanism(w_v=ones((6, 7))), ValueError, ["w_v has size (6, 7)", "(6, 6)"],
     lambda: draw_mechanism(w_v=ones((6, 6))).text),
    (lambda: draw_mechanism(x=np.full((4, 6), np.nan)), NotFiniteError, ["x holds inf or NaN"],
     lambda: draw_mechanism(x=zeros((4, 6))).text),
    (lambda: draw_mechanism(x=ones((0, 6))), ValueError, ["x", "n=0", "one token"],
     lambda: draw_mechanism(x=ones((1, 6))).text),
    (lambda: head_colour(None), TypeError, ["head must be an integer", "head=1"],
     lambda: head_colour(1)),
    (lambda: ink("blue"), ValueError, ["colour='blue'", "like '#0072B2'"], lambda: ink("#0072B2")),
    # effects
    *((lambda call=call: call(None), TypeError, ["entry is of type NoneType", "of CATALOGUE"],
       lambda call=call: call(CATALOGUE[0]))
      for call in (
          effect, hidden_error, lambda entry: measure(entry, "5 rows of 7 scores"),
          lambda entry: built_with(entry, "multi_head_attention"),
      )),
    (lambda: measure(CATALOGUE[0], "5 rows of 7 scores", step=ones(3)), ValueError,
     ["step is array", "choose from softmax"], lambda: measure(CATALOGUE[0], "5 rows of 7 scores")),
    (lambda: right_function(["softmax"]), ValueError, ["no step ['softmax']", "one of softmax"],
     lambda: right_function("softmax")),
    (lambda: draw("softmax", "one query", 0), ValueError, ["situation is 'one query'", "choose"],
     lambda: draw("softmax", "5 rows of 7 scores", 0)),
    (lambda: situations(["softmax"]), ValueError, ["step is ['softmax']", "choose from softmax"],
     lambda: situations("softmax")),
    (lambda: draw("softmax", "5 rows of 7 scores", -1), ValueError, ["seed=-1", "seed >= 0"],
     lambda: draw("softmax", "5 rows of 7 scores", 0)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "exception", "fragments", "repaired"),
    BAD_CALLS,
    ids=[", ".join(row[2][:2]) for row in BAD_CALLS],
)
def test_the_error_names_argument_and_sizes_and_its_advice_works(
    call, exception, fragments, repaired
):
    message = message_of(call, exception)
    assert [fragment for fragment in fragments if fragment not in message] == [], message
    for array in arrays_in(repaired()):
        assert not np.isnan(array).any()


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
    "n_near of job_errors": lambda n_near: job_errors(ones(7), n_near=n_near),
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
    "n_near of MarkedAndMean": lambda n_near: MarkedAndMean(n_near=n_near),
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
    "n_steps of snapshot_steps": lambda n_steps: snapshot_steps(n_steps, 2),
    "n_snapshots": lambda n_snapshots: snapshot_steps(7, n_snapshots),
}


MAY_BE_NONE = {"n_context", "n_kv_heads", "d_v", "d_context", "n_max"}
NO_INTEGERS = [
    True, np.True_, np.array(True), 3.0, np.float64(3), 3.4, np.array(3.4), "3", "three", [3],
    RAGGED, {}, np.zeros(0),
    np.array([3]), None, np.nan, np.inf, 1j, len,
]  # fmt: skip


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        (argument, value)
        for argument in INTEGERS
        for value in NO_INTEGERS
        if value is not None or argument.split()[0] not in MAY_BE_NONE
    ],
)
def test_what_is_no_integer_is_refused_by_name_with_advice_that_makes_one(argument, value):
    name = argument.split()[0]
    message = message_of(lambda: INTEGERS[argument](value), TypeError)
    assert message.startswith(f"{name} must be an integer, not {type(value).__name__} {value!r}: ")
    if value is len:
        assert message.endswith("call the function, and pass what it returns")
    elif example := re.search(rf"pass a whole number, such as {name}=(-?\d+)$", message):
        assert int(example[1]) >= -1
    else:
        advice = re.search(r": pass (\w+\(\w+\)|\w+\[0\])$", message)[1]
        found = eval(advice, {name: value})  # noqa: S307 - the advice is code
        assert found == 3
        assert np.issubdtype(type(found), np.integer) or type(found) is int


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


def outcome(call):
    """Return what a call gives, or the error that it raises."""
    try:
        return [array.tolist() for array in arrays_in(call())]
    except (TypeError, ValueError) as error:
        return str(error)


def advised(message, name, value):
    """Return what the code in the advice of an error makes of an argument."""
    parts = r"\[np\..*\]|(?:np\.|\b)\S*\(.*\)\S*?(?: == \S+)?"
    code = re.search(rf": .*?({parts})(?:, and|, to|$)", message)[1]
    root, *index = re.findall(r"\w+", name)
    value = {int(index[0]): value} if index else value
    return eval(code, {"np": np, root: value})  # noqa: S307 - the advice is code


NOT_REAL = {  # what came in, and what was meant
    "float16": lambda x: (x.astype(np.float16), x),
    "longdouble": lambda x: (x.astype(np.longdouble), x),
    "other byte order": lambda x: (x.astype(">f8"), x),
    "bool": lambda x: (x.astype(bool), x),
    "complex": lambda x: (x + 2j, x),
    "complex64": lambda x: (x.astype(np.complex64), x),
    "list of complex": lambda x: ((x + 2j).tolist(), x),
    "objects": lambda x: (x.astype(object), x),
    "list of text": lambda x: (x.astype("U3").tolist(), x),
    "text": lambda x: (x.astype("U3"), x),
    "bytes": lambda x: (x.astype("S3"), x),
    "huge integers": lambda x: (np.full(x.shape, 10**30, object), np.full(x.shape, 1e30)),
}


@pytest.mark.parametrize("argument", ARRAYS)
@pytest.mark.parametrize("kind", NOT_REAL)
def test_arrays_that_are_not_real_are_refused_with_advice_that_does_what_was_meant(argument, kind):
    name = argument.split()[0]
    array, meant = NOT_REAL[kind](ones((2, 3, 5)))
    message = message_of(lambda: ARRAYS[argument](array), TypeError)
    dtype = np.asarray(array).dtype
    assert message.startswith(f"{name} has dtype {dtype}, but must be float32, float64")
    repaired = advised(message, name, array)
    assert repaired.dtype == np.float64
    np.testing.assert_array_equal(repaired, meant)
    assert outcome(lambda: ARRAYS[argument](repaired)) == outcome(lambda: ARRAYS[argument](meant))


WORDLESS = {  # no code makes numbers of these
    "pass a list or an array of real numbers": (
        np.array(["the", "cat"]), [["a"]], {1.0, 2.0}, {"a": 1.0}, (i for i in (1.0, 2.0)),
        object(), np.array([(1.0, 2)], "f8, i8"), slice(3),
    ),
    "put numbers in the place of None": (None, [1.0, None], np.array([None])),
    "call the function, and pass what it returns": (np.ones, len, [np.ones], lambda: ones(3)),
}  # fmt: skip


@pytest.mark.parametrize("argument", ARRAYS)
@pytest.mark.parametrize("advice", WORDLESS)
def test_what_no_cast_makes_numbers_of_gets_no_cast_as_advice(argument, advice):
    optional = {"x of the layer", "context", "context of the layer", "gates", "gates of a model"}
    for value in WORDLESS[advice]:
        if value is None and argument in optional:
            continue
        message = message_of(lambda value=value: ARRAYS[argument](value), TypeError)
        assert message.startswith(f"{argument.split()[0]} has dtype ")
        assert message.endswith(f": {advice}")


MASKS = {
    "mask": lambda mask: attend(mask=mask),
    "mask of multi_head_attention": lambda mask: attend_in_heads(mask=mask),
    "mask of the layer": lambda mask: forward(mask=mask),
    "masks[0]": lambda mask: combine_masks(mask),
    "counted": lambda counted: entropy_of(counted=counted),
    "targets": lambda targets: attention_mass(ones((3, 5, 7)), targets),
    "rows": lambda rows: attention_mass(ones((3, 5, 7)), True, rows),
    "targets of chance_mass": lambda targets: chance_mass(targets),
    "mask of chance_mass": lambda mask: chance_mass(ones((5, 7), bool), mask),
    "mask of normalised_entropy": lambda mask: normalised_entropy(ones((3, 5, 7)) / 7, mask),
}
ALLOWED = np.arange(35).reshape(5, 7) % 3 > 0
NOT_BOOLEAN = {  # each means ALLOWED
    "0 and 1": ALLOWED.astype(int),
    "0.0 and 1.0": ALLOWED.astype(float),
    "list of 0 and 1": ALLOWED.astype(int).tolist(),
    "objects": ALLOWED.astype(object),
    "numbers as objects": ALLOWED.astype(int).astype(object),
    "text": ALLOWED.astype(str),
    "list of text": ALLOWED.astype(str).tolist(),
    "0 and 1 as text": ALLOWED.astype(int).astype(str),
    "added -inf": np.where(ALLOWED, 0.0, -np.inf),
    "added -1e9": np.where(ALLOWED, 0.0, -1e9),
    "list of added": np.where(ALLOWED, 0.0, -1e9).tolist(),
}


@pytest.mark.parametrize("argument", MASKS)
@pytest.mark.parametrize("kind", NOT_BOOLEAN)
def test_masks_of_another_kind_are_refused_with_advice_that_does_what_was_meant(argument, kind):
    name = argument.split()[0]
    message = message_of(lambda: MASKS[argument](NOT_BOOLEAN[kind]), TypeError)
    assert re.match(rf"{re.escape(name)} has dtype .*, but must be bool, True where ", message)
    repaired = advised(message, name, NOT_BOOLEAN[kind])
    assert repaired.dtype == np.bool_
    np.testing.assert_array_equal(repaired, ALLOWED)


@pytest.mark.parametrize("argument", MASKS)
@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (np.full((5, 7), 0.5), "pass a list or an array of True and False"),
        (np.full((5, 7), np.nan), "pass a list or an array of True and False"),
        (np.array([["may", "not"]]), "pass a list or an array of True and False"),
        (np.array([[True, None]]), "put True or False in the place of None"),
        (causal_mask, "call the function, and pass what it returns"),
        ({True}, "pass a list or an array of True and False"),
        (1j * ones((5, 7)), "pass a list or an array of True and False"),
    ],
)
def test_what_says_neither_true_nor_false_gets_no_cast_as_advice(argument, value, advice):
    assert message_of(lambda: MASKS[argument](value), TypeError).endswith(f": {advice}")


@pytest.mark.parametrize("argument", MASKS)
def test_a_mask_of_zeros_gets_both_readings(argument):
    message = message_of(lambda: MASKS[argument](zeros((5, 7))), TypeError)
    name = argument.split()[0]
    assert f"if 0 forbids, convert it with np.asarray({name}, bool)" in message
    assert message.endswith(f"with np.asarray({name}) == 0")


@pytest.mark.parametrize(
    ("bad", "index"),
    [
        (ones((2, 5, 7), bool), "[:, None]"),
        (ones((2, 5, 7), bool).tolist(), "[:, None]"),
        (ones((2, 7), bool), "[:, None, None]"),
        (ones((2, 1, 7), bool), "[:, None]"),
    ],
)
def test_a_mask_for_each_sequence_is_told_its_form(rng, bad, index):
    bad = (rng.random(np.shape(bad)) < 0.7).tolist() if isinstance(bad, list) else bad
    if isinstance(bad, np.ndarray):
        bad = rng.random(bad.shape) < 0.7
    message = message_of(lambda: attend_in_heads(mask=bad), ValueError)
    code = re.search(r": pass (.*), one", message)[1]
    assert code == ("mask" if isinstance(bad, np.ndarray) else "np.asarray(mask)") + index
    repaired = eval(code, {"np": np, "mask": bad})  # noqa: S307 - the advice is code
    x, context = rng.normal(size=(2, 5, 19)), rng.normal(size=(2, 7, 23))
    both = attend_in_heads(x=x, context=context, mask=repaired)
    for i in range(2):
        one = attend_in_heads(x=x[i], context=context[i], mask=np.asarray(bad)[i])
        np.testing.assert_allclose(both[i], one, rtol=1e-12)


WHOLE = {
    "lengths": lambda lengths: padding_mask(lengths, 7),
    "marked": lambda marked: marked_token(marked, 7),
    "tokens": lambda tokens: induction_targets(tokens),
    "value_columns": lambda columns: layer(value_columns=columns),
    "order": lambda order: pruning_curve(gain, order, (1, 2)),
    "targets": lambda targets: entropy_of(targets=targets),
}


@pytest.mark.parametrize("argument", WHOLE)
@pytest.mark.parametrize(
    "value",
    [[2.0, 3.0], np.array([2.0, 3.0]), ["2", "3"], np.array([2, 3], object), [2.2, 2.9]],
    ids=["list", "array", "text", "objects", "fractions"],
)
def test_what_holds_no_integers_is_refused_with_advice_that_makes_them(argument, value):
    message = message_of(lambda: WHOLE[argument](value), TypeError)
    repaired = advised(message, argument, value)
    assert repaired.dtype == int
    assert repaired.tolist() == [2, 3]


@pytest.mark.parametrize("argument", WHOLE)
def test_what_no_cast_makes_integers_of_gets_no_cast_as_advice(argument):
    for value in (
        ["a"],
        [np.nan],
        [1e300],
        {1, 2},
        np.array(["2020-01-01"], "M8[D]"),
        [10**30],
        [1j],
    ):
        message = message_of(lambda value=value: WHOLE[argument](value), TypeError)
        assert message.endswith(": pass a list or an array of whole numbers")
    assert message_of(lambda: WHOLE[argument]([None]), TypeError).endswith("in the place of None")
    assert message_of(lambda: WHOLE[argument](len), TypeError).endswith("pass what it returns")


@pytest.mark.parametrize(
    ("argument", "flags", "meant"),
    [
        ("lengths", [[True, True, False], [True, False, False]], [2, 1]),
        ("marked", [[False, False, True], [True, False, False]], [2, 0]),
        ("value_columns", [True, False, True], [0, 2]),
        ("tokens", [True, False, True], [1, 0, 1]),
    ],
)
def test_flags_in_the_place_of_integers_are_told_what_makes_integers_of_them(
    argument, flags, meant
):
    message = message_of(lambda: WHOLE[argument](flags), TypeError)
    assert advised(message, argument, flags).tolist() == meant


def test_no_lengths_are_a_mask_for_no_sequences():
    assert padding_mask([], 7).shape == (0, 1, 1, 7)
    assert marked_token([], 7).shape == (0, 7, 7)
    assert induction_targets([]).shape == (0, 0)
    assert combine_masks([]).shape == (0,)


@pytest.mark.parametrize("argument", ARRAYS)
@pytest.mark.parametrize("kind", ["array", "list"])
def test_masked_arrays_are_refused_with_advice_that_fills_their_gaps(argument, kind):
    name = argument.split()[0]
    whole = np.ma.masked_array(ones((2, 3, 5)), mask=np.arange(30).reshape(2, 3, 5) % 2)
    masked = whole if kind == "array" else list(whole)
    message = message_of(lambda: ARRAYS[argument](masked), TypeError)
    gap = -np.inf if name == "z" else 0.0  # softmax hides by -inf
    assert message.startswith(
        f"{name} is a masked array" if kind == "array" else f"{name} holds a masked array"
    )
    np.testing.assert_array_equal(advised(message, name, masked), whole.filled(gap))
    assert ("pass a boolean mask to hide those entries" in message) == (name != "z")


@pytest.mark.parametrize(
    ("name", "call", "gap"),
    [
        ("mask", lambda mask: attend(mask=mask), False),
        ("masks[0]", lambda mask: combine_masks(mask), False),
        ("lengths", lambda lengths: padding_mask(lengths, 7), 0),
    ],
)
def test_masked_arrays_are_refused_as_masks_and_lengths_too(name, call, gap):
    masked = np.ma.masked_array([1, 1, 1], [0, 1, 0]).astype(bool if gap is False else int)
    for value in (masked, [masked, masked]):
        message = message_of(lambda value=value: call(value), TypeError)
        found = np.asarray(advised(message, name, value))
        assert found.dtype == (bool if gap is False else int)
        assert found.reshape(-1, 3)[0].tolist() == [1, gap, 1]


def named_argument(call):
    """Return which public function refuses a call, and by the name of which argument."""
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    frames = (frame for frame, _ in traceback.walk_tb(caught.tb))
    code = next(f.f_code for f in frames if PACKAGE in Path(f.f_code.co_filename).parents)
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    first_word = re.match(r"\w*", str(caught.value)).group()
    return code.co_name, first_word if first_word in arguments else None


def test_every_argument_of_the_core_is_refused_by_its_name():
    calls = [row[0] for row in BAD_CALLS]
    calls += [lambda call=call: call(3.5) for call in INTEGERS.values()]
    refused = Counter(named_argument(call) for call in calls)
    functions = filter(inspect.isfunction, map(vars(mha_lib).get, mha_lib.__all__))
    expected = {
        (function.__name__, parameter.name)
        for function in functions
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind != parameter.VAR_POSITIONAL
    }
    assert expected - set(refused) == set()
    assert sum(refused[pair] for pair in expected) >= 40


def test_a_huge_width_is_refused_at_once():
    start = time.perf_counter()
    message = message_of(lambda: attention_cost(5, 10**9, 3), ValueError)
    assert "n_heads=2 or 4" in message
    message_of(lambda: attention_cost(5, 10**18, 7), ValueError)
    assert time.perf_counter() - start < 5  # trying every divisor would take a minute
