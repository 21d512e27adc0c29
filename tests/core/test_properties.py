"""What holds for all shapes, dtypes, masks and memory layouts, for huge numbers, inf and NaN.

Every call goes through `untouched`: no warning, no change of an argument.  The examples are the
same in every run; a failure prints the smallest case that hypothesis found.
"""

import contextlib
import math
import os
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from mha_lib import (
    causal_mask,
    combine_masks,
    merge_heads,
    multi_head_attention,
    padding_mask,
    scaled_dot_product_attention,
    softmax,
    split_heads,
)
from mha_lib._blocked import attend_in_blocks
from mha_lib.activations import softmax_backward
from mha_lib.attention import scaled_dot_product_attention_backward
from tests import reference
from tests.blocks import in_small_blocks

INF, NAN = np.inf, np.nan
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}

repeated = settings(
    max_examples=int(os.environ.get("EXAMPLES", "200")), deadline=None,
    derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
dtypes = st.sampled_from([np.float32, np.float64])
seeds = st.integers(0, 2**32 - 1)
# 0 is rare, since one axis without entries leaves nothing to compare.
lengths = st.sampled_from([1, 2, 3, 5, 7, 2, 3, 5, 7, 0])
widths = st.integers(1, 5)
leading_axes = st.lists(st.sampled_from([1, 2, 3, 1, 2, 3, 2, 3, 0]), max_size=2).map(tuple)
bad_numbers = st.sampled_from([INF, -INF, NAN])


def in_order(array):
    return array.copy()


def in_fortran_order(array):
    return np.asfortranarray(array.copy())


def backwards(array):
    return np.flip(np.flip(array).copy())


def every_other_column(array):
    return np.repeat(array, 2, axis=-1)[..., ::2]


def one_row_for_all(array):
    """Repeat the first entry of the first axis without a copy: another array, of stride 0."""
    return np.broadcast_to(array[:1], array.shape) if len(array) else array


layouts = st.sampled_from(
    [in_order, in_fortran_order, backwards, every_other_column, one_row_for_all]
)


def untouched(function, *args, **kwargs):
    """Call a function with arrays that nobody may write to; see that nothing changed or warned."""
    values = [*args, *kwargs.values()]
    before = [value.copy() if isinstance(value, np.ndarray) else None for value in values]
    for value in values:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = function(*args, **kwargs)
    for value, old in zip(values, before, strict=True):
        if old is not None:
            assert_array_equal(value, old, strict=True)
    return result


def assert_weights(weights):
    """Raise unless all rows are weights: from 0 to 1, and with sum 1, or 0 throughout."""
    assert ((weights >= 0) & (weights <= 1)).all()
    expected = (weights > 0).any(axis=-1)
    assert_allclose(weights.sum(axis=-1), expected, atol=TOLERANCE[weights.dtype.type])


def numbers(seed, shape, dtype, layout=in_order, size=1.0):
    """Return random numbers of about this size, laid out in memory in this way."""
    array = (size * np.random.default_rng(seed).normal(size=shape)).astype(dtype)
    return layout(array)


@st.composite
def masks(draw, shape):
    """Draw None, or a mask that broadcasts to a shape; often with a row that may look nowhere."""
    first = draw(st.integers(0, len(shape)))
    axes = tuple(draw(st.sampled_from([1, size, size])) for size in shape[first:])
    density = draw(st.sampled_from([None, 0.4, 0.9, 0.4, 0.9, 0.0, 1.0]))
    if density is None:
        return None
    rng = np.random.default_rng(draw(seeds))
    mask = rng.random(axes) < density
    if len(axes) > 1:
        mask[..., rng.random(axes[-2]) < 0.2, :] = False
        mask = draw(layouts)(mask)
    return mask


# --- softmax --------------------------------------------------------------------------------

extremes = st.sampled_from(
    [0.0, -0.0, 1.0, -3.5, 80.0, -80.0, 1e4, -1e4, 1e-30, 3e38, -3e38, INF, -INF, NAN]
)


@st.composite
def scores(draw, numbers=extremes, width=lengths):
    """Draw scores, (..., T), of one to three axes, in any layout."""
    shape = (*draw(leading_axes), draw(width))
    count = math.prod(shape)
    flat = draw(st.lists(numbers, min_size=count, max_size=count))
    return draw(layouts)(np.array(flat, draw(dtypes)).reshape(shape))


def slow_softmax(row):
    """Return the weights of one row, by the rules of the docstring."""
    row = [float(z) for z in row]
    if any(math.isnan(z) for z in row):
        return [NAN] * len(row)
    if INF in row:
        return [(z == INF) / row.count(INF) for z in row]
    if all(z == -INF for z in row):
        return [0.0] * len(row)
    return reference.softmax_row(row)


@repeated
@given(z=scores(), data=st.data())
def test_softmax_along_any_axis_follows_its_rules(z, data):
    axis = data.draw(st.integers(-z.ndim, z.ndim - 1))
    weights = untouched(softmax, z, axis)
    assert weights.dtype == z.dtype
    assert weights.shape == z.shape
    rows, found = np.moveaxis(z, axis, -1), np.moveaxis(weights, axis, -1)
    for index in np.ndindex(rows.shape[:-1]):
        assert_allclose(found[index], slow_softmax(rows[index]), rtol=2e-5, atol=1e-30)


@repeated
@given(seed=seeds, z=scores(st.floats(-9, 9, width=32), widths), layout=layouts, data=st.data())
def test_the_gradient_of_softmax_along_any_axis_follows_its_formula(seed, z, layout, data):
    axis = data.draw(st.integers(-z.ndim, z.ndim - 1))
    weights = softmax(z, axis)
    d_weights = numbers(seed, z.shape, z.dtype, layout)
    d_z = untouched(softmax_backward, d_weights, weights, axis)
    mean = (weights * d_weights).sum(axis=axis, keepdims=True)
    assert d_z.dtype == z.dtype
    assert_allclose(d_z, weights * (d_weights - mean), atol=TOLERANCE[z.dtype.type])


# --- one head -------------------------------------------------------------------------------


@st.composite
def attention_calls(draw, exponents=(0,)):
    """Draw q, k, v and a mask that fit together; exponents -1 and 1 are tiny and huge numbers."""
    leading, tq, tk = draw(leading_axes), draw(lengths), draw(lengths)
    dk, dv, dtype = draw(widths), draw(lengths), draw(dtypes)

    def some(*shape):
        cut = draw(st.integers(0, len(leading)))
        axes = tuple(draw(st.sampled_from([1, size])) for size in leading[cut:])
        # Products of two numbers must stay below the largest of their type.
        size = 10.0 ** (draw(st.sampled_from(exponents)) * (15 if dtype is np.float32 else 140))
        return numbers(draw(seeds), (*axes, *shape), dtype, draw(layouts), size)

    q, k, v = some(tq, dk), some(tk, dk), some(tk, dv)
    common = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    return q, k, v, draw(masks((*common, tq, tk)))


def fully(array, shape):
    """Return an array with all its leading axes written out."""
    return np.broadcast_to(array, (*shape, *array.shape[-2:]))


@repeated
@given(call=attention_calls())
def test_attention_agrees_with_the_slow_one(call):
    q, k, v, mask = call
    out, weights = untouched(scaled_dot_product_attention, q, k, v, mask)
    expected_out, expected_weights = reference.attend_everywhere(q, k, v, mask)
    assert out.dtype == weights.dtype == q.dtype
    assert out.shape == expected_out.shape
    assert weights.shape == expected_weights.shape
    tolerance = TOLERANCE[q.dtype.type]
    assert_allclose(out, expected_out, atol=10 * tolerance)
    assert_allclose(weights, expected_weights, atol=tolerance)


@repeated
@given(call=attention_calls(exponents=(-1, 0, 0.5, 1)))
def test_attention_to_huge_and_tiny_numbers_stays_a_blend_of_what_is_seen(call):
    q, k, v, mask = call
    out, weights = untouched(scaled_dot_product_attention, q, k, v, mask)
    assert_weights(weights)
    seen = np.broadcast_to(True if mask is None else mask, weights.shape)
    assert_array_equal((weights > 0).any(axis=-1), seen.any(axis=-1))
    assert (weights[~seen] == 0).all()
    values = fully(v, weights.shape[:-2])[..., None, :, :]  # (..., 1, Tk, Dv)
    looks = seen[..., None]  # (..., Tq, Tk, 1)
    smallest = np.where(looks, values, INF).min(axis=-2, initial=INF)
    largest = np.where(looks, values, -INF).max(axis=-2, initial=-INF)
    slack = TOLERANCE[v.dtype.type] * np.abs(v).max(initial=0)
    nowhere = ~seen.any(axis=-1)
    assert_array_equal(out[nowhere], 0)
    assert (out >= smallest - slack)[~nowhere].all()
    assert (out <= largest + slack)[~nowhere].all()


@repeated
@given(call=attention_calls(exponents=(-1, 0, 0.5, 1)))
def test_attention_in_blocks_is_attention(call):
    q, k, v, mask = call
    expected, weights = scaled_dot_product_attention(q, k, v, mask)
    heads = [array[..., None, :, :] for array in (q, k, v)]
    if mask is not None:
        mask = np.broadcast_to(mask, weights.shape)[..., None, :, :]
    with in_small_blocks(), np.errstate(all="ignore"):  # as its caller does
        out = untouched(attend_in_blocks, *heads, mask)
    slack = 10 * TOLERANCE[v.dtype.type] * np.abs(v).max(initial=0)
    assert_allclose(out[..., 0, :, :], expected, rtol=0, atol=slack, strict=True)


@repeated
@given(call=attention_calls(), bad=bad_numbers, data=st.data())
def test_a_bad_query_or_key_stays_in_the_rows_that_touch_it(call, bad, data):
    q, k, v, mask = call
    name = data.draw(st.sampled_from(["q", "k"]))
    arrays = {"q": q.copy(), "k": k.copy()}
    array = arrays[name]
    where = [data.draw(st.integers(0, size - 1)) for size in array.shape if size]
    if len(where) < array.ndim:
        return  # there is no number to spoil
    good_out, good_weights = scaled_dot_product_attention(q, k, v, mask)
    array[tuple(where)] = bad
    out, weights = untouched(scaled_dot_product_attention, **arrays, v=v, mask=mask)

    leading = weights.shape[:-2]
    seen = np.broadcast_to(True if mask is None else mask, weights.shape)
    spoilt = ~np.isfinite(fully(array, leading)).all(axis=-1)  # (..., Tq) or (..., Tk)
    touched = spoilt[..., :, None] if name == "q" else spoilt[..., None, :]
    touched = (touched & seen).any(axis=-1)  # (..., Tq)
    assert_allclose(out[~touched], good_out[~touched], atol=10 * TOLERANCE[q.dtype.type])
    assert_allclose(weights[~touched], good_weights[~touched], atol=TOLERANCE[q.dtype.type])
    if math.isnan(bad):
        assert np.isnan(weights[touched]).all()
        assert np.isnan(out[touched]).all()
    else:  # the row is NaN throughout, or made of weights
        row_is_nan = np.isnan(weights).any(axis=-1)
        assert np.isnan(weights[row_is_nan]).all()
        assert np.isnan(out[row_is_nan]).all()
        assert_weights(weights[~row_is_nan])
        assert np.isfinite(out[~row_is_nan]).all()


@repeated
@given(call=attention_calls(), data=st.data())
def test_a_bad_value_reaches_exactly_what_weights_it(call, data):
    q, k, v, mask = call
    v = v.copy()
    spoilt = data.draw(st.lists(st.tuples(seeds, bad_numbers), max_size=3))
    for place, bad in spoilt:
        if v.size:
            v.flat[place % v.size] = bad
    out, weights = untouched(scaled_dot_product_attention, q, k, v, mask)
    _, good_weights = scaled_dot_product_attention(q, k, np.zeros_like(v), mask)
    assert_array_equal(weights, good_weights, strict=True)
    values = fully(v, weights.shape[:-2])
    for index in np.ndindex(out.shape):
        *lead, i, c = index
        row, column = weights[(*lead, i)], values[(*lead, slice(None), c)]
        with np.errstate(invalid="ignore"):  # inf - inf
            expected = sum(float(w) * float(x) for w, x in zip(row, column, strict=True) if w)
        assert_allclose(out[index], expected, atol=10 * TOLERANCE[v.dtype.type])


@repeated
@given(call=attention_calls(), seed=seeds, layout=layouts)
def test_the_gradients_of_attention_are_finite_and_of_the_shapes_of_their_arrays(
    call, seed, layout
):
    q, k, v, mask = call
    out, weights = scaled_dot_product_attention(q, k, v, mask)
    d_out = numbers(seed, out.shape, out.dtype, layout)
    found = untouched(scaled_dot_product_attention_backward, d_out, q, k, v, weights)
    for gradient, array in zip(found, (q, k, v), strict=True):
        assert gradient.shape == array.shape
        assert gradient.dtype == array.dtype
        assert np.isfinite(gradient).all()
    # The output is linear in v: the gradient against v is the output against its own.
    tolerance = 100 * TOLERANCE[q.dtype.type]
    assert_allclose(np.vdot(found[2], v), np.vdot(d_out, out), rtol=tolerance, atol=tolerance)
    # It depends on q and k by their products alone, so scaling up either does the same.
    assert_allclose(np.vdot(found[0], q), np.vdot(found[1], k), rtol=tolerance, atol=tolerance)


# --- heads ----------------------------------------------------------------------------------


@repeated
@given(
    seed=seeds, leading=leading_axes, n=lengths, h=widths, d_k=widths, dtype=dtypes, layout=layouts
)
def test_head_i_is_the_ith_block_of_columns_and_merging_undoes_splitting(
    seed, leading, n, h, d_k, dtype, layout
):
    x = numbers(seed, (*leading, n, h * d_k), dtype, layout)
    heads = untouched(split_heads, x, h)
    assert heads.shape == (*leading, h, n, d_k)
    for i in range(h):
        assert_array_equal(heads[..., i, :, :], x[..., i * d_k : (i + 1) * d_k], strict=True)
    assert_array_equal(untouched(merge_heads, heads), x, strict=True)
    y = numbers(seed, (*leading, h, n, d_k), dtype, layout)
    assert_array_equal(split_heads(untouched(merge_heads, y), h), y, strict=True)


@st.composite
def layer_calls(draw):
    """Draw the arguments of multi-head attention, and the shape (..., h, Tq, Tk)."""
    leading, n, m, dtype = draw(leading_axes), draw(lengths), draw(lengths), draw(dtypes)
    d, d_c, d_out = draw(lengths), draw(lengths), draw(lengths)
    d_k, d_v, h_kv, group = draw(widths), draw(widths), draw(st.integers(1, 3)), draw(widths)
    h = h_kv * group

    def some(*shape):
        return numbers(draw(seeds), shape, dtype, draw(layouts), 0.5)

    call = {"x": some(*leading, n, d), "w_q": some(d, h * d_k), "w_o": some(h * d_v, d_out)}
    if draw(st.booleans()):
        call["context"] = some(*leading[draw(st.integers(0, len(leading))) :], m, d_c)
    else:
        m, d_c = n, d
    call |= {"w_k": some(d_c, h_kv * d_k), "w_v": some(d_c, h_kv * d_v)}
    call |= {"n_heads": h, "mask": draw(masks((*leading, h, n, m)))}
    if group > 1 or draw(st.booleans()):
        call["n_kv_heads"] = h_kv
    return call, (*leading, h, n, m)


@repeated
@given(drawn=layer_calls())
def test_multi_head_attention_agrees_with_the_slow_one(drawn):
    call, shape = drawn
    out, weights = untouched(multi_head_attention, **call, return_weights=True)
    with in_small_blocks():
        blocked = untouched(multi_head_attention, **call)
    x = call.pop("x")
    context, mask = call.pop("context", None), call.pop("mask")
    assert out.shape == (*x.shape[:-1], call["w_o"].shape[1])
    assert weights.shape == shape
    assert out.dtype == weights.dtype == x.dtype
    mask = np.broadcast_to(True if mask is None else mask, shape)
    context = None if context is None else fully(context, shape[:-3])
    tolerance = TOLERANCE[x.dtype.type]
    assert_allclose(blocked, out, rtol=10 * tolerance, atol=10 * tolerance, strict=True)
    for index in np.ndindex(shape[:-3]):
        there = None if context is None else context[index]
        expected_out, expected_weights = reference.attend_in_heads(
            x[index], **call, context=there, mask=mask[index]
        )
        assert_allclose(out[index], expected_out, rtol=10 * tolerance, atol=50 * tolerance)
        assert_allclose(weights[index], expected_weights, atol=10 * tolerance)


@pytest.mark.parametrize("way", [contextlib.nullcontext, in_small_blocks])
@repeated
@given(drawn=layer_calls(), bad=bad_numbers, place=seeds)
def test_a_bad_token_stays_in_the_rows_that_touch_it(way, drawn, bad, place):
    call, shape = drawn
    name = "context" if "context" in call else "x"
    tokens = call[name].copy()
    if tokens.size == 0:
        return
    good = multi_head_attention(**call)
    tokens.flat[place % tokens.size] = bad
    with way():
        out = untouched(multi_head_attention, **(call | {name: tokens}))
    seen = np.broadcast_to(True if call["mask"] is None else call["mask"], shape)
    spoilt = ~np.isfinite(fully(tokens, shape[:-3])).all(axis=-1)  # (..., m)
    touched = (seen & spoilt[..., None, None, :]).any(axis=(-3, -1))  # (..., n)
    if name == "x":  # a bad token asks, too, where it may look at something
        touched |= spoilt & seen.any(axis=(-3, -1))
    tolerance = 50 * TOLERANCE[good.dtype.type]
    assert_allclose(out[~touched], good[~touched], rtol=tolerance, atol=tolerance)
    if math.isnan(bad):
        assert np.isnan(out[touched]).all()


# --- masks ----------------------------------------------------------------------------------


@repeated
@given(n=st.integers(0, 9), n_past=st.integers(0, 9))
def test_a_causal_query_sees_the_past_and_itself(n, n_past):
    mask = causal_mask(n, n_past=n_past)
    query, key = np.ogrid[:n, : n + n_past]
    assert_array_equal(mask, key - n_past <= query, strict=True)


@repeated
@given(
    shape=leading_axes,
    n=st.integers(0, 9),
    dtype=st.sampled_from([np.int8, np.uint64]),
    seed=seeds,
    layout=layouts,
)
def test_padding_hides_what_stands_behind_the_real_tokens(shape, n, dtype, seed, layout):
    counts = np.random.default_rng(seed).integers(0, n + 1, size=shape).astype(dtype)
    counts = np.array(counts) if counts.ndim == 0 else layout(counts)
    mask = untouched(padding_mask, counts, n)
    assert mask.dtype == bool
    assert mask.shape == (*shape, 1, 1, n)
    assert_array_equal(mask.sum(axis=(-3, -2, -1)), counts)
    assert (mask[..., :-1] >= mask[..., 1:]).all()  # real tokens come first


@repeated
@example(parts=[None])
@given(
    parts=st.tuples(leading_axes, lengths, lengths).flatmap(
        lambda sizes: st.lists(masks((*sizes[0], *sizes[1:])), max_size=4)
    )
)
def test_combined_masks_allow_what_all_allow_in_any_order(parts):
    combined = untouched(combine_masks, *parts)
    there = [part for part in parts if part is not None]
    if not there:
        assert combined is None
        return
    assert_array_equal(combined, np.all(np.broadcast_arrays(*there), axis=0), strict=True)
    assert_array_equal(combine_masks(*parts[::-1]), combined, strict=True)
    assert_array_equal(combine_masks(combined, *parts), combined, strict=True)
    assert not any(np.shares_memory(combined, part) for part in there)
