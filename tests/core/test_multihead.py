"""Heads split and merged, and multi-head attention."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mha_lib import causal_mask, merge_heads, multi_head_attention, padding_mask, split_heads
from mha_lib.multihead import attention_steps
from tests import reference

pytestmark = pytest.mark.filterwarnings("error")
B, N, M, H, DK, DV = 2, 5, 7, 3, 11, 13
D, DC, DOUT = 19, 23, 17


@pytest.fixture
def layer(rng):
    """Return weights and tokens of cross-attention in which all sizes differ."""
    shapes = {
        "x": (B, N, D), "context": (B, M, DC), "w_q": (D, H * DK), "w_k": (DC, H * DK),
        "w_v": (DC, H * DV), "w_o": (H * DV, DOUT),
    }  # fmt: skip
    scale = {"x": 1, "context": 1}
    return {
        name: rng.normal(scale=scale.get(name, 0.3), size=shape) for name, shape in shapes.items()
    }


@pytest.fixture
def square(rng):
    """Return x (N, 33) and four square weights, for self-attention in three heads."""
    width = H * DK
    return rng.normal(size=(N, width)), *rng.normal(scale=0.3, size=(4, width, width))


# --- split and merge ------------------------------------------------------------------------


@pytest.mark.parametrize("leading", [(), (2,), (2, 7), (0,), (2, 1)])
@pytest.mark.parametrize("n", [0, 5])
def test_head_i_gets_the_ith_block_of_columns_and_merging_puts_it_back(rng, leading, n):
    x = rng.normal(size=(*leading, n, H * DK))
    heads = split_heads(x, H)
    assert heads.shape == (*leading, H, n, DK)
    for i in range(H):
        assert_array_equal(heads[..., i, :, :], x[..., i * DK : (i + 1) * DK])
    assert_array_equal(merge_heads(heads), x, strict=True)


def test_merging_lays_head_0_leftmost(rng):
    heads = rng.normal(size=(B, H, N, DV))
    expected = np.concatenate([heads[:, i] for i in range(H)], axis=-1)
    assert_array_equal(merge_heads(heads), expected, strict=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_read_only_arrays_in_any_memory_order_are_split_and_merged(rng, awkward, dtype):
    x = rng.normal(size=(B, N, H * DK)).astype(dtype)
    heads = split_heads(awkward(x), H)
    assert_array_equal(heads, split_heads(x, H), strict=True)
    assert_array_equal(merge_heads(awkward(heads)), x, strict=True)
    transposed = x.swapaxes(0, 1)
    assert_array_equal(merge_heads(split_heads(transposed, H)), transposed, strict=True)


def test_splitting_copies_nothing(rng):
    x = rng.normal(size=(N, H * DK))
    assert np.shares_memory(split_heads(x, H), x)


# --- against the references -----------------------------------------------------------------


@pytest.mark.parametrize("n_heads", [1, 2, 3, 4, 6, 12])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_it_agrees_with_the_documents_loop_for_every_head_count(rng, n_heads, dtype, tolerance):
    x, w_q, w_k, w_v, w_o = rng.normal(size=(N, 12)), *rng.normal(scale=0.3, size=(4, 12, 12))
    expected = reference.multi_head_attention(x, w_q, w_k, w_v, w_o, n_heads)
    arguments = (array.astype(dtype) for array in (x, w_q, w_k, w_v, w_o))
    out = multi_head_attention(*arguments, n_heads)
    assert out.dtype == dtype
    assert_allclose(out, expected, atol=tolerance)


def test_the_two_references_agree(square):
    expected = reference.multi_head_attention(*square, H)
    assert_allclose(reference.attend_in_heads(*square, H)[0], expected, atol=1e-12)


@pytest.mark.parametrize(
    "mask_shape",
    [None, (), (M,), (N, M), (H, 1, M), (B, 1, N, M), (B, 1, 1, M), (B, H, N, M), (B, H, N, 1)],
    ids=str,
)
def test_cross_attention_agrees_with_the_slow_reference(rng, layer, mask_shape):
    mask = None if mask_shape is None else rng.random(mask_shape) < 0.6
    full = np.broadcast_to(True if mask is None else mask, (B, H, N, M))
    out, weights = multi_head_attention(**layer, n_heads=H, mask=mask, return_weights=True)
    x, context = layer.pop("x"), layer.pop("context")
    assert out.shape == (B, N, DOUT)
    assert weights.shape == (B, H, N, M)
    for b in range(B):
        expected_out, expected_weights = reference.attend_in_heads(
            x[b], **layer, n_heads=H, context=context[b], mask=full[b]
        )
        assert_allclose(out[b], expected_out, atol=1e-12)
        assert_allclose(weights[b], expected_weights, atol=1e-12)


def test_one_head_worked_out_by_hand():
    # Token 0 asks for (2 ln 3) / sqrt(4) more of token 0 than of token 1; token 1 has no wish.
    x = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    w_q = np.zeros((4, 4))
    w_q[0, 0] = 2 * np.log(3)
    w_o = np.array([[0.0, 8.0], [4.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    out, weights = multi_head_attention(x, w_q, np.eye(4), np.eye(4), w_o, 1, return_weights=True)
    assert_allclose(weights, [[[0.75, 0.25], [0.5, 0.5]]], rtol=1e-14)
    assert_allclose(out, [[1.0, 6.0], [2.0, 4.0]], rtol=1e-14)


def test_two_heads_worked_out_by_hand():
    # d_k = 1.  Head 0 sees column 0 and is undecided; head 1 sees column 1 and prefers token 1.
    x = np.array([[0.0, 1.0], [0.0, 2.0]])
    w_k = np.diag([1.0, np.log(3)])
    w_v, w_o = np.array([[0.0, 0.0], [4.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 10.0]])
    out, weights = multi_head_attention(x, np.eye(2), w_k, w_v, w_o, 2, return_weights=True)
    assert_allclose(weights[0], [[1 / 2, 1 / 2], [1 / 2, 1 / 2]], rtol=1e-14)
    assert_allclose(weights[1], [[1 / 4, 3 / 4], [1 / 10, 9 / 10]], rtol=1e-14)
    assert_allclose(out, [[6.0, 70.0], [6.0, 76.0]], rtol=1e-14)


def test_self_attention_is_cross_attention_to_oneself(square):
    assert_array_equal(
        multi_head_attention(*square, H), multi_head_attention(*square, H, context=square[0])
    )


def test_leading_axes_of_tokens_and_context_broadcast(rng, layer):
    layer["x"] = rng.normal(size=(B, 1, N, D))
    layer["context"] = rng.normal(size=(3, M, DC))
    out, weights = multi_head_attention(**layer, n_heads=H, return_weights=True)
    x, context = layer.pop("x"), layer.pop("context")
    assert out.shape == (B, 3, N, DOUT)
    assert weights.shape == (B, 3, H, N, M)
    for i, j in np.ndindex(B, 3):
        expected = multi_head_attention(
            x[i, 0], **layer, n_heads=H, context=context[j], return_weights=True
        )
        assert_allclose(out[i, j], expected[0], atol=1e-12)
        assert_allclose(weights[i, j], expected[1], atol=1e-12)


# --- fewer heads of keys and values ---------------------------------------------------------


@pytest.fixture
def grouped(rng):
    """Return a function that makes the arrays of six heads which share n_kv_heads."""

    def make(n_kv_heads):
        shapes = {
            "x": (B, N, D), "context": (B, M, DC), "w_q": (D, 6 * DK), "w_k": (DC, n_kv_heads * DK),
            "w_v": (DC, n_kv_heads * DV), "w_o": (6 * DV, DOUT),
        }  # fmt: skip
        return {name: rng.normal(scale=0.3, size=shape) for name, shape in shapes.items()}

    return make


@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
@pytest.mark.parametrize("mask_shape", [None, (N, M), (6, 1, M), (B, 1, N, M), (B, 6, N, M)])
def test_shared_keys_and_values_agree_with_the_slow_reference(rng, grouped, n_kv_heads, mask_shape):
    arrays = grouped(n_kv_heads)
    mask = None if mask_shape is None else rng.random(mask_shape) < 0.6
    full = np.broadcast_to(True if mask is None else mask, (B, 6, N, M))
    out, weights = multi_head_attention(
        **arrays, n_heads=6, n_kv_heads=n_kv_heads, mask=mask, return_weights=True
    )
    x, context = arrays.pop("x"), arrays.pop("context")
    assert out.shape == (B, N, DOUT)
    assert weights.shape == (B, 6, N, M)
    for b in range(B):
        expected_out, expected_weights = reference.attend_in_heads(
            x[b], **arrays, n_heads=6, n_kv_heads=n_kv_heads, context=context[b], mask=full[b]
        )
        assert_allclose(out[b], expected_out, atol=1e-12)
        assert_allclose(weights[b], expected_weights, atol=1e-12)


def test_neighbouring_heads_share_keys_worked_out_by_hand():
    # d_k = 1, four heads, two of keys.  Token 0 asks 1, token 1 nothing.  Key head 0 prefers
    # token 0 by ln 3, key head 1 prefers token 1 by ln 7: heads 0 and 1 read the first.
    x, context = np.array([[1.0], [0.0]]), np.diag([np.log(3), np.log(7)])
    _, weights = multi_head_attention(
        x, np.ones((1, 4)), np.eye(2), np.eye(2), np.eye(4), 4,
        context=context, n_kv_heads=2, return_weights=True,
    )  # fmt: skip
    first, second, neither = [3 / 4, 1 / 4], [1 / 8, 7 / 8], [1 / 2, 1 / 2]
    assert_allclose(weights[:, 0], [first, first, second, second], rtol=1e-14)
    assert_allclose(weights[:, 1], [neither] * 4, rtol=1e-14)


def test_as_many_heads_of_keys_as_of_queries_is_the_ordinary_layer(layer):
    assert_array_equal(
        multi_head_attention(**layer, n_heads=H, n_kv_heads=np.int8(H)),
        multi_head_attention(**layer, n_heads=H),
        strict=True,
    )


@pytest.mark.parametrize("changed", range(3))
@pytest.mark.parametrize("weight", ["w_k", "w_v"])
def test_changing_one_head_of_keys_or_values_changes_the_heads_that_read_it(
    grouped, weight, changed
):
    arrays = grouped(3)
    arrays["w_o"] = np.eye(6 * DV)
    before = split_heads(multi_head_attention(**arrays, n_heads=6, n_kv_heads=3), 6)
    width = arrays[weight].shape[1] // 3
    arrays[weight][:, changed * width : (changed + 1) * width] *= -3
    after = split_heads(multi_head_attention(**arrays, n_heads=6, n_kv_heads=3), 6)
    reads = np.arange(6) // 2 == changed
    assert_array_equal(after[:, ~reads], before[:, ~reads])
    assert (after[:, reads] != before[:, reads]).all()


# --- what heads do and do not share ---------------------------------------------------------


@pytest.mark.parametrize("changed", range(H))
@pytest.mark.parametrize("weight", ["w_q", "w_k", "w_v"])
def test_changing_one_heads_projection_changes_no_other_head_to_the_bit(layer, weight, changed):
    layer["w_o"] = np.eye(H * DV)  # without mixing, each output column belongs to one head
    before = split_heads(multi_head_attention(**layer, n_heads=H), H)
    width = layer[weight].shape[1] // H
    layer[weight][:, changed * width : (changed + 1) * width] *= -3
    after = split_heads(multi_head_attention(**layer, n_heads=H), H)
    others = np.arange(H) != changed
    assert_array_equal(after[:, others], before[:, others])
    assert (after[:, changed] != before[:, changed]).all()


def test_the_output_projection_mixes_heads(layer):
    before = multi_head_attention(**layer, n_heads=H)
    layer["w_v"][:, :DV] *= -3  # head 0 alone
    assert (multi_head_attention(**layer, n_heads=H) != before).all()


def test_tokens_in_another_order_give_the_same_rows_in_that_order(rng, square):
    x, *weights = square
    order = rng.permutation(N)
    out = multi_head_attention(x, *weights, H)
    assert_allclose(multi_head_attention(x[order], *weights, H), out[order], atol=1e-12)


# --- masks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("future", [1e4, np.inf, -np.inf, np.nan])
def test_a_future_token_cannot_change_a_causal_output(square, future):
    x, *weights = square
    before = multi_head_attention(x, *weights, H, mask=causal_mask(N))
    for now in range(N - 1):
        later = x.copy()
        later[now + 1 :] = future
        after = multi_head_attention(later, *weights, H, mask=causal_mask(N))
        assert_array_equal(after[: now + 1], before[: now + 1])


def test_filler_in_a_batch_changes_nothing(layer):
    lengths = [M, 4]
    mask = padding_mask(lengths, M)
    layer["context"][1, 4:] = np.nan
    out = multi_head_attention(**layer, n_heads=H, mask=mask)
    x, context = layer.pop("x"), layer.pop("context")
    for b, length in enumerate(lengths):
        alone = multi_head_attention(x[b], **layer, n_heads=H, context=context[b, :length])
        assert_allclose(out[b], alone, atol=1e-12)


def test_each_sequence_and_head_is_masked_by_its_own_mask(layer):
    target = np.arange(B * H).reshape(B, H, 1) % M  # the one key that a head may look at
    mask = np.broadcast_to(target[..., None] == np.arange(M), (B, H, N, M))
    layer["w_o"] = np.eye(H * DV)
    out = split_heads(multi_head_attention(**layer, n_heads=H, mask=mask), H)
    values = split_heads(layer["context"] @ layer["w_v"], H)
    for b, h in np.ndindex(B, H):
        assert_array_equal(out[b, h], np.tile(values[b, h, target[b, h, 0]], (N, 1)))


def test_a_token_that_may_look_nowhere_gets_exactly_0(layer):
    mask = np.ones((N, M), bool)
    mask[2] = False
    out, weights = multi_head_attention(**layer, n_heads=H, mask=mask, return_weights=True)
    assert_array_equal(out[:, 2], 0)
    assert_array_equal(weights[:, :, 2], 0)
    assert (out[:, [0, 1, 3, 4]] != 0).all()


# --- arguments ------------------------------------------------------------------------------


@pytest.mark.parametrize("integer", [int, np.int8, np.uint64, np.array])
def test_any_integer_type_counts_heads(square, integer):
    assert_array_equal(
        multi_head_attention(*square, integer(H)), multi_head_attention(*square, H), strict=True
    )
    assert_array_equal(split_heads(square[0], integer(H)), split_heads(square[0], H), strict=True)


def test_weights_are_returned_only_when_asked_for(square):
    out, weights = multi_head_attention(*square, H, return_weights=True)
    assert_array_equal(multi_head_attention(*square, H), out, strict=True)
    assert_allclose(weights.sum(axis=-1), np.ones((H, N)), atol=1e-12)


def test_integers_are_computed_in_float64(square):
    integers = [np.rint(4 * array).astype(int) for array in square]
    floats = [array.astype(float) for array in integers]
    assert_array_equal(
        multi_head_attention(*integers, H), multi_head_attention(*floats, H), strict=True
    )
    assert_array_equal(merge_heads([[[1, 2]], [[3, 4]]]), [[1.0, 2.0, 3.0, 4.0]], strict=True)


def test_read_only_arrays_in_any_memory_order_are_left_alone(rng, layer, awkward):
    layer["mask"] = rng.random((B, 1, N, M)) < 0.6
    expected = multi_head_attention(**layer, n_heads=H)
    out = multi_head_attention(**{k: awkward(v) for k, v in layer.items()}, n_heads=H)
    assert_allclose(out, expected, atol=1e-12)


@pytest.mark.parametrize(("n", "m"), [(0, M), (N, 0), (0, 0)])
def test_sequences_of_length_0_are_allowed(layer, n, m):
    layer["x"], layer["context"] = layer["x"][:, :n], layer["context"][:, :m]
    out, weights = multi_head_attention(**layer, n_heads=H, return_weights=True)
    assert_array_equal(out, np.zeros((B, n, DOUT)), strict=True)  # no query, or no key
    assert_array_equal(weights, np.zeros((B, H, n, m)), strict=True)


def test_a_mask_without_a_head_axis_is_one_for_each_head(rng):
    x, w = rng.normal(size=(3, 5, 6)), rng.normal(size=(4, 6, 6))
    masks = np.tri(5, dtype=bool) & (rng.random((3, 5, 5)) < 0.6)
    read = multi_head_attention(x, *w, 3, mask=masks, return_weights=True)[1]  # B = h = 3
    assert_array_equal(
        read > 0, np.broadcast_to(masks, (3, 3, 5, 5))
    )  # the head axis is the second
    meant = multi_head_attention(x, *w, 3, mask=masks[:, None], return_weights=True)[1]
    assert_array_equal(meant > 0, np.broadcast_to(masks[:, None], (3, 3, 5, 5)))


def test_all_steps_keep_their_weights_however_many(rng):
    x, w = rng.normal(size=(256, 2)), np.eye(2)
    assert attention_steps(x, w, w, w, w, n_heads=1).weights.shape == (1, 256, 256)


@pytest.mark.parametrize(
    ("leading", "n", "shape"), [((), 3, (5, 4)), ((), 5, (5, 8)), ((2,), 5, (5, 8))]
)
def test_a_projection_with_other_rows_is_refused_whatever_else_has_its_size(leading, n, shape):
    x, w = np.ones((*leading, n, 4)), np.ones(shape)
    with pytest.raises(ValueError, match=r"^x \(its last axis\) has size 4, but w_q \(its rows\)"):
        multi_head_attention(x, w, w, w, w, n_heads=1)


@pytest.mark.parametrize("crossed", [False, True])
def test_one_row_that_leaves_the_range_is_told_with_the_arrays_that_made_it(crossed):
    source = np.array([[1.0, 1.0], [1e300, 1e300]])
    x, context = (np.ones((3, 2)), source) if crossed else (source, None)
    w, w_v = np.eye(2), np.array([[1e300, 1.0], [-1e300, 1.0]])
    with pytest.raises(ValueError, match="leaves the range of floats") as caught:
        multi_head_attention(x, w, w, w_v, w, n_heads=1, context=context)
    assert ("context up to" in str(caught.value)) == crossed
