"""Bad calls, and what the error must say: the argument, both sizes and the way out."""

import time
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
from mha_lib.frontier import best_row, job_errors

PUBLIC = {*mha_lib.__all__, "best_row", "job_errors"}
PACKAGE = Path(mha_lib.__file__).parent
RAGGED = [[1, 2], [3]]


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


def message_of(call, exception):
    """Return what the error of a bad call says, once its type and its origin are as they must be.

    It must be raised in `mha_lib._check` or in a public function, not inside NumPy.
    """
    with pytest.raises(exception) as caught:
        call()
    assert caught.type is exception
    origin = caught.traceback[-1]
    assert Path(origin.path).parent == PACKAGE
    assert Path(origin.path).name == "_check.py" or origin.name in PUBLIC
    return str(caught.value)


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
     ["w_k has shape (2, 23, 33)", "3 axes", "exactly 2", "(d_c, h * d_k)", "one matrix"]),
    (lambda: attend_in_heads(w_v=ones((2, 23, 39))), ValueError,
     ["w_v has shape (2, 23, 39)", "exactly 2", "(d_c, h * d_v)"]),
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
     ["the shapes do not broadcast", "mask 2 (5, 7)", "mask 3 (7, 5)", "or 1"]),
    (lambda: combine_masks(ones(5, bool), ones(5)), TypeError,
     ["mask 2 has dtype float64", "bool"]),
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
}


NO_INTEGERS = [True, np.True_, np.array(True), 3.0, np.float64(3), "3", [3], np.array([3]), None]


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        (argument, value)
        for argument in INTEGERS
        for value in NO_INTEGERS
        if value is not None or argument not in ("n_context", "n_kv_heads")  # there it means n, h
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
}


@pytest.mark.parametrize("argument", ARRAYS)
@pytest.mark.parametrize("dtype", ["float16", "longdouble", "complex128", "bool", "object", "U1"])
def test_arrays_that_are_not_real_are_refused_by_name(argument, dtype):
    name, array = argument.split()[0], ones((2, 3, 5)).astype(dtype)
    message = message_of(lambda: ARRAYS[argument](array), TypeError)
    assert message.startswith(f"{name} has dtype {array.dtype}, but must be float32, float64")
    assert f"{name}.astype(np.float64)" in message


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
        ("mask 1", lambda: combine_masks(np.ma.ones(5, bool))),
        ("lengths", lambda: padding_mask(np.ma.ones(5, int), 7)),
    ],
)
def test_masked_arrays_are_refused_as_masks_and_lengths_too(name, call):
    message = message_of(call, TypeError)
    assert message.startswith(f"{name} is a masked array")
    assert ".filled(" in message


def test_a_huge_width_is_refused_at_once():
    start = time.perf_counter()
    message = message_of(lambda: attention_cost(5, 10**9, 3), ValueError)
    assert "n_heads=2 or 4" in message
    assert time.perf_counter() - start < 5  # trying every divisor would take a minute
