"""Scaled dot-product attention and its backward."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mha_lib import causal_mask, scaled_dot_product_attention, softmax
from mha_lib._blocked import attend_in_blocks
from mha_lib.attention import scaled_dot_product_attention_backward
from tests import reference
from tests.gradients import TOLERANCE, relative_error

pytestmark = pytest.mark.filterwarnings("error")
INF, NAN = np.inf, np.nan
B, H, TQ, TK, DK, DV = 2, 3, 5, 7, 11, 13


@pytest.fixture
def qkv(rng):
    """Return q (Tq, Dk), k (Tk, Dk), v (Tk, Dv)."""
    return rng.normal(size=(TQ, DK)), rng.normal(size=(TK, DK)), rng.normal(size=(TK, DV))


def test_weights_and_output_worked_out_by_hand():
    q = [[2 * np.log(3), 0, 0, 0], [0, 2 * np.log(7), 0, 0]]
    k = [[1, 0, 0, 5], [0, 1, 0, 5]]
    v = [[8, 0, 1], [4, 16, 1]]  # Dk = 4, so that scores are half the dot products
    out, weights = scaled_dot_product_attention(q, k, v)
    assert_allclose(weights, [[3 / 4, 1 / 4], [1 / 8, 7 / 8]], rtol=1e-14)
    assert_allclose(out, [[7, 4, 1], [4.5, 14, 1]], rtol=1e-14)


@pytest.mark.parametrize(
    ("q_lead", "k_lead", "v_lead", "mask_shape"),
    [
        pytest.param((), (), (), None, id="one head"),
        pytest.param((), (), (), (TQ, TK), id="one head, masked"),
        pytest.param((), (), (), (TK,), id="one row of mask for all queries"),
        pytest.param((B, H), (B, H), (B, H), None, id="batch and heads"),
        pytest.param((B, H), (B, H), (B, H), (H, 1, TK), id="mask per head"),
        pytest.param((B, H), (B, H), (B, H), (B, 1, TQ, TK), id="mask per sequence"),
        pytest.param((B, 1), (H,), (), (TQ, 1), id="leading axes from q and from k"),
        pytest.param((), (), (B, H), None, id="leading axes from v alone"),
        pytest.param((), (H,), (B, 1), (B, H, TQ, TK), id="leading axes from v and the mask"),
        pytest.param((1, 1), (1, 1), (1, 1), (1, 1, 1, 1), id="leading axes of size 1"),
    ],
)
def test_it_agrees_with_the_slow_attention(rng, q_lead, k_lead, v_lead, mask_shape):
    q = rng.normal(size=(*q_lead, TQ, DK))
    k = rng.normal(size=(*k_lead, TK, DK))
    v = rng.normal(size=(*v_lead, TK, DV))
    mask = None if mask_shape is None else rng.random(mask_shape) < 0.6
    out, weights = scaled_dot_product_attention(q, k, v, mask)
    expected_out, expected_weights = reference.attend_everywhere(q, k, v, mask)
    assert out.shape == expected_out.shape
    assert weights.shape == expected_weights.shape
    assert_allclose(out, expected_out, atol=1e-12)
    assert_allclose(weights, expected_weights, atol=1e-12)
    assert_allclose(weights.sum(axis=-1), expected_weights.any(axis=-1), atol=1e-12)
    out[...], weights[...] = 0, 0  # both may be written to, whatever was broadcast


def test_true_means_that_the_query_may_look(qkv):
    q, k, v = qkv
    target = np.array([4, 0, 6, 2, 2])  # the only key that each query may look at
    mask = target[:, None] == np.arange(TK)
    out, weights = scaled_dot_product_attention(q, k, v, mask)
    assert_array_equal(weights, mask.astype(float))
    assert_array_equal(out, v[target])


def test_a_mask_that_allows_everything_changes_nothing(qkv):
    for masked, plain in zip(
        scaled_dot_product_attention(*qkv, True),
        scaled_dot_product_attention(*qkv),
        strict=True,
    ):
        assert_array_equal(masked, plain, strict=True)


def test_a_fully_masked_row_is_exactly_0_and_leaves_the_others_alone(qkv):
    mask = np.ones((TQ, TK), bool)
    mask[3] = False
    out, weights = scaled_dot_product_attention(*qkv, mask)
    plain_out, plain_weights = scaled_dot_product_attention(*qkv)
    plain_out[3], plain_weights[3] = 0, 0
    assert_array_equal(out, plain_out)
    assert_array_equal(weights, plain_weights)


@pytest.mark.parametrize("bad", [NAN, INF, -INF, 1e300])
@pytest.mark.parametrize("argument", ["k", "v"])
@pytest.mark.parametrize("column", [2, slice(None)], ids=["one number", "the whole row"])
def test_what_a_query_may_not_look_at_cannot_touch_its_row(qkv, argument, bad, column):
    q, k, v = qkv
    mask = np.ones((TQ, TK), bool)
    mask[1:, 4] = False
    expected_out, expected_weights = scaled_dot_product_attention(q, k, v, mask)
    {"k": k, "v": v}[argument][4, column] = bad
    out, weights = scaled_dot_product_attention(q, k, v, mask)
    assert_array_equal(out[1:], expected_out[1:])
    assert_array_equal(weights[1:], expected_weights[1:])


@pytest.mark.parametrize(
    ("values", "expected"),
    [((INF,), INF), ((-INF,), -INF), ((NAN,), NAN), ((INF, INF), INF), ((INF, -INF), NAN),
     ((NAN, INF), NAN)],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_infinite_or_nan_value_reaches_the_rows_that_look_at_it(qkv, values, expected, dtype):
    q, k, v = (array.astype(dtype) for array in qkv)
    mask = np.arange(TQ)[:, None] >= np.zeros(TK)
    mask[2:, : len(values)] = False  # only queries 0 and 1 look
    plain, _ = scaled_dot_product_attention(q, k, v, mask)
    v[: len(values), 3] = values
    out, _ = scaled_dot_product_attention(q, k, v, mask)
    plain[:2, 3] = expected
    untouched = np.arange(DV) != 3
    assert_array_equal(out[:, 3], plain[:, 3], strict=True)
    assert_array_equal(out[:, untouched], plain[:, untouched])


@pytest.mark.parametrize("bad", [NAN, INF])
@pytest.mark.parametrize("value", [1.0, INF, -INF, NAN])
def test_a_bad_query_spoils_its_own_row_alone(qkv, bad, value):
    q, k, v = qkv
    v[3, 4] = value
    expected, _ = scaled_dot_product_attention(q, k, v)
    q[2] = bad
    out, _ = scaled_dot_product_attention(q, k, v)
    others = np.arange(TQ) != 2
    assert_array_equal(out[others], expected[others])
    assert_array_equal(out[2], NAN)


@pytest.mark.parametrize("n_past", [0, 2])
@pytest.mark.parametrize("future", [1e4, INF, NAN])
def test_a_future_key_cannot_change_a_causal_row(qkv, n_past, future):
    q, k, v = qkv
    q = q[: TK - n_past]
    mask = causal_mask(len(q), n_past=n_past)
    k, v = k[: n_past + len(q)], v[: n_past + len(q)]
    before, _ = scaled_dot_product_attention(q, k, v, mask)
    for now in range(len(q) - 1):
        later_k, later_v = k.copy(), v.copy()
        later_k[n_past + now + 1 :] = later_v[n_past + now + 1 :] = future
        after, _ = scaled_dot_product_attention(q, later_k, later_v, mask)
        assert_array_equal(after[: now + 1], before[: now + 1])


def test_the_order_of_keys_does_not_matter_and_queries_answer_in_their_order(rng, qkv):
    q, k, v = qkv
    keys, queries = rng.permutation(TK), rng.permutation(TQ)
    mask = rng.random((TQ, TK)) < 0.7
    out, weights = scaled_dot_product_attention(q, k, v, mask)
    new_out, new_weights = scaled_dot_product_attention(
        q[queries], k[keys], v[keys], mask[np.ix_(queries, keys)]
    )
    assert_allclose(new_out, out[queries], atol=1e-12)
    assert_allclose(new_weights, weights[np.ix_(queries, keys)], atol=1e-12)


def test_adding_one_vector_to_all_keys_changes_no_weight(rng, qkv):
    q, k, v = qkv
    _, weights = scaled_dot_product_attention(q, k, v)
    _, shifted = scaled_dot_product_attention(q, k + rng.normal(scale=10, size=DK), v)
    assert_allclose(shifted, weights, atol=1e-12)


@pytest.mark.parametrize("size", [1e4, 1e150])
def test_huge_scores_pick_the_best_key_exactly(qkv, size):
    q, k, v = qkv
    best = (q @ k.T).argmax(axis=1)
    out, weights = scaled_dot_product_attention(q * size, k * size, v)
    assert_array_equal(weights, np.eye(TK)[best])
    assert_array_equal(out, v[best])


@pytest.mark.parametrize("tq", [0, TQ])
@pytest.mark.parametrize("tk", [0, TK])
@pytest.mark.parametrize("masked", [False, True])
def test_sequences_of_length_0_are_allowed(qkv, tq, tk, masked):
    q, k, v = qkv
    mask = np.ones((tq, tk), bool) if masked else None
    out, weights = scaled_dot_product_attention(q[:tq], k[:tk], v[:tk], mask)
    expected_out, expected_weights = reference.attend(q[:tq], k[:tk], v[:tk])
    assert out.shape == (tq, DV)
    assert weights.shape == (tq, tk)
    assert_allclose(out, expected_out, atol=1e-12)
    assert_allclose(weights, expected_weights, atol=1e-12)


@pytest.mark.parametrize(
    ("q_type", "v_type", "out_type", "weights_type"),
    [
        ("float32", "float32", "float32", "float32"),
        ("float64", "float64", "float64", "float64"),
        ("float32", "float64", "float64", "float32"),
        ("float64", "float32", "float64", "float64"),
    ],
)
@pytest.mark.parametrize("mask", [None, np.arange(TK) > 1])
def test_the_dtype_is_kept(qkv, q_type, v_type, out_type, weights_type, mask):
    q, k, v = qkv
    out, weights = scaled_dot_product_attention(
        q.astype(q_type), k.astype(q_type), v.astype(v_type), mask
    )
    expected_out, expected_weights = reference.attend_everywhere(q, k, v, mask)
    assert (out.dtype, weights.dtype) == (out_type, weights_type)
    assert_allclose(out, expected_out, atol=1e-5)
    assert_allclose(weights, expected_weights, atol=1e-5)


def test_integers_are_computed_in_float64():
    q, k, v = np.array([[1, 0]]), np.array([[0, 3], [0, -3]], np.int8), np.array([[2], [4]])
    out, weights = scaled_dot_product_attention(q, k, v)
    assert_array_equal(out, [[3.0]], strict=True)
    assert_array_equal(weights, [[0.5, 0.5]], strict=True)


@pytest.mark.parametrize("value", [1.0, INF])
def test_read_only_arrays_in_any_memory_order_are_left_alone(qkv, awkward, value):
    q, k, v = qkv
    v[3, 4] = value
    mask = np.tri(TQ, TK, dtype=bool)
    out, weights = scaled_dot_product_attention(*map(awkward, (q, k, v, mask)))
    expected_out, expected_weights = scaled_dot_product_attention(q, k, v, mask)
    assert_allclose(out, expected_out, atol=1e-12)
    assert_allclose(weights, expected_weights, atol=1e-12)


# --- backward -------------------------------------------------------------------------------


def gradients(d_out, q, k, v, mask=None):
    """Return d_q, d_k and d_v after a forward pass."""
    _, weights = scaled_dot_product_attention(q, k, v, mask)
    return scaled_dot_product_attention_backward(d_out, q, k, v, weights)


def test_gradients_worked_out_by_hand():
    # Two equal keys share the weight.  The output rises by (6 - 2) / 2 per weight that moves, and
    # a weight moves by 1/4 of the score; scores are half the dot products, since Dk = 4.
    q, k = np.array([[1.0, 2.0, 0.0, 0.0]]), np.array([[8.0, 0, 0, 0], [0, 4.0, 0, 0]])
    v = np.array([[6.0], [2.0]])
    d_q, d_k, d_v = gradients(np.array([[1.0]]), q, k, v)
    assert_allclose(d_q, [[4.0, -2.0, 0.0, 0.0]], rtol=1e-14)
    assert_allclose(d_k, [[0.5, 1.0, 0.0, 0.0], [-0.5, -1.0, 0.0, 0.0]], rtol=1e-14)
    assert_allclose(d_v, [[0.5], [0.5]], rtol=1e-14)


@pytest.mark.parametrize(
    ("q_lead", "k_lead", "v_lead", "mask_shape"),
    [
        pytest.param((), (), (), None, id="one head"),
        pytest.param((), (), (), (TQ, TK), id="one head, masked"),
        pytest.param((B, H), (B, H), (B, H), None, id="batch and heads"),
        pytest.param((B, H), (B, H), (B, H), (H, TQ, TK), id="mask per head"),
        pytest.param((B, 1), (H,), (), (TQ, TK), id="leading axes from q and from k"),
        pytest.param((), (), (B, H), None, id="leading axes from v alone"),
        pytest.param((), (H, 1), (1, 1, B), (TQ, TK), id="three leading axes"),
    ],
)
def test_the_backward_is_the_gradient(rng, q_lead, k_lead, v_lead, mask_shape):
    arrays = {
        "q": rng.normal(size=(*q_lead, TQ, DK)),
        "k": rng.normal(size=(*k_lead, TK, DK)),
        "v": rng.normal(size=(*v_lead, TK, DV)),
    }
    mask = None
    if mask_shape is not None:
        mask = rng.random(mask_shape) < 0.6
        mask[..., 3, :] = False  # a query that may look nowhere
    out, weights = scaled_dot_product_attention(**arrays, mask=mask)
    d_out = rng.normal(size=out.shape)
    d_q, d_k, d_v = scaled_dot_product_attention_backward(d_out, **arrays, weights=weights)

    def loss():
        return np.sum(d_out * scaled_dot_product_attention(**arrays, mask=mask)[0])

    errors = {
        name: relative_error(gradient, loss, arrays[name])
        for name, gradient in (("q", d_q), ("k", d_k), ("v", d_v))
    }
    assert max(errors.values()) < TOLERANCE, errors
    assert mask is None or (d_q[..., 3, :] == 0).all()


def test_a_pair_that_is_masked_passes_no_gradient(rng, qkv):
    q, k, v = qkv
    d_out = rng.normal(size=(TQ, DV))
    mask = rng.random((TQ, TK)) < 0.6
    mask[:, 4] = False  # a key that nobody may look at
    mask[2] = np.arange(TK) == 1  # a query without a choice
    mask[3] = False
    d_q, d_k, d_v = gradients(d_out, q, k, v, mask)
    assert_array_equal(d_q[[2, 3]], 0)
    assert_array_equal(d_k[4], 0)
    assert_array_equal(d_v[4], 0)
    # What a query may not look at may change: its gradient stays.
    hidden = ~mask[0]
    k[hidden], v[hidden] = 1e3, -1e3
    new_d_q, _, _ = gradients(d_out, q, k, v, mask)
    assert_array_equal(new_d_q[0], d_q[0])
    assert (new_d_q[1] != d_q[1]).any()


@pytest.mark.parametrize("size", [1e4, 1e150])
def test_gradients_of_huge_scores_are_finite(rng, qkv, size):
    q, k, v = qkv
    d_out = rng.normal(size=(TQ, DV))
    best = (q @ k.T).argmax(axis=1)
    d_q, d_k, d_v = gradients(d_out, q * size, k * size, v)
    assert_array_equal(d_q, np.zeros((TQ, DK)))  # the choice is made for good
    assert_array_equal(d_k, np.zeros((TK, DK)))
    assert_allclose(d_v, np.eye(TK)[:, best] @ d_out, rtol=1e-12)


@pytest.mark.parametrize("tq", [0, TQ])
@pytest.mark.parametrize("tk", [0, TK])
@pytest.mark.parametrize("n_sequences", [0, B])
def test_gradients_of_sequences_of_length_0_are_allowed(qkv, n_sequences, tq, tk):
    q, k, v = qkv
    q = np.broadcast_to(q, (n_sequences, TQ, DK))[:, :tq]
    k, v = k[None, :tk], v[:tk]
    found = gradients(np.ones((n_sequences, tq, DV)), q, k, v)
    assert [gradient.shape for gradient in found] == [q.shape, k.shape, v.shape]
    if n_sequences * tq == 0:
        assert_array_equal(found[1], np.zeros((1, tk, DK)))
        assert_array_equal(found[2], np.zeros((tk, DV)))


def test_float32_gradients_stay_float32(rng, qkv):
    d_out = rng.normal(size=(TQ, DV))
    found = gradients(*(array.astype(np.float32) for array in (d_out, *qkv)))
    for gradient, expected in zip(found, gradients(d_out, *qkv), strict=True):
        assert gradient.dtype == np.float32
        assert_allclose(gradient, expected, atol=1e-5)


def test_the_backward_leaves_read_only_arrays_in_any_memory_order_alone(rng, qkv, awkward):
    arrays = rng.normal(size=(TQ, DV)), *qkv
    for gradient, expected in zip(
        gradients(*map(awkward, arrays)), gradients(*arrays), strict=True
    ):
        assert_allclose(gradient, expected, atol=1e-13)


# --- numbers near the ends of the range -------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_that_overflow_with_both_signs_are_added_up_right(dtype):
    huge = np.sqrt(np.finfo(dtype).max) * 2  # its square overflows
    q = np.full((1, 4), huge, dtype)
    k = np.array([[huge, -huge, huge, -huge], [0, 0, 0, 0], [1 / huge, 0, 0, 0]], dtype)
    v = np.array([[2.0], [3.0], [5.0]], dtype)
    out, weights = scaled_dot_product_attention(q, k, v)
    expected = np.exp([0, 0, 0.5]) / np.exp([0, 0, 0.5]).sum()  # the scores are 0, 0 and 1 / 2
    assert_allclose(weights, [expected], rtol=1e-6)
    assert_allclose(out, expected[None] @ v, rtol=1e-6)
    assert weights.dtype == out.dtype == dtype
    with np.errstate(all="ignore"):  # as its caller does
        in_blocks = attend_in_blocks(q[None], k[None], v[None])
    assert_allclose(in_blocks[0], out, rtol=1e-6)


def test_a_row_with_a_tiny_number_beside_huge_ones_is_added_up_right_too():
    q = np.array([[-1e300, -1e300, 1e-300]])
    k = np.array([[1e300, -1e300, 0.0], [0.0, 0.0, 1e300]])  # scores: 0, and 1 / sqrt(3)
    _, weights = scaled_dot_product_attention(q, k, np.eye(2))
    assert_allclose(weights, [softmax([0, 1 / np.sqrt(3)])], rtol=1e-12)


def test_scores_of_inf_share_the_weight():
    _, weights = scaled_dot_product_attention([[INF, 1.0]], [[1.0, 1.0], [2.0, 1.0]], np.eye(2))
    assert_array_equal(weights, [[0.5, 0.5]])


def test_a_score_that_only_overflows_on_the_way_is_finite():
    big = 1.5e154  # its square is 2.25e308, beyond float64; half of that is not
    q = np.full((1, 3), big)
    k = np.array([[big, big, -big], [big, 0.1 * big, 0.0]])  # scores: 1, and 1.1, times 2.25e308
    _, weights = scaled_dot_product_attention(q / 2, k, np.ones((2, 5)))
    assert_array_equal(weights, [[0.0, 1.0]])


def test_scores_that_do_overflow_count_as_infinite():
    q, k = np.full((1, 2), 1e200), np.array([[1e200, 0], [-1e200, 0], [1e200, 1e200]])
    _, weights = scaled_dot_product_attention(q, k, np.ones((3, 5)))
    assert_array_equal(weights, [[0.5, 0.0, 0.5]])
    _, weights = scaled_dot_product_attention(q, k[1:2], np.ones((1, 5)))
    assert_array_equal(weights, [[0.0]])  # -inf alone, without a mask


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e200, 1e300])
def test_finite_numbers_of_any_size_make_no_nan(rng, size):
    for _ in range(20):
        q, k, v = (size * rng.normal(size=shape) for shape in ((5, 11), (7, 11), (7, 13)))
        out, weights = scaled_dot_product_attention(q, k, v, rng.random((5, 7)) < 0.7)
        assert not np.isnan(out).any()
        assert not np.isnan(weights).any()


def test_empty_axes_are_empty_answers():
    out, weights = scaled_dot_product_attention(np.ones((0, 3)), np.ones((7, 3)), np.ones((7, 5)))
    assert (out.shape, weights.shape) == ((0, 5), (0, 7))
    out, weights = scaled_dot_product_attention(np.ones((5, 3)), np.ones((0, 3)), np.ones((0, 2)))
    assert_array_equal(out, np.zeros((5, 2)))
    assert weights.shape == (5, 0)
    out, _ = scaled_dot_product_attention(np.ones((5, 3)), np.ones((7, 3)), np.ones((7, 0)))
    assert out.shape == (5, 0)
