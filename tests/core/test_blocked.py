"""Attention in blocks gives what the plain computation gives, and holds less."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mha_lib import _blocked as blocked
from mha_lib import multihead
from mha_lib._blocked import attend_in_blocks
from mha_lib.attention import scaled_dot_product_attention

# 311 queries are a block and a rest; 13 keys are two and a rest.
SIZES = {"n_heads": 3, "n_queries": 311, "n_keys": 13, "d_k": 7, "d_v": 5}


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(blocked, "BLOCK", 256)
    monkeypatch.setattr(blocked, "KEYS", 5)
    with np.errstate(all="ignore"):  # as its caller does
        yield


def qkv(rng, sequences=(2,), n_kv_heads=3, dtype=float, scale=1.0, **changed):
    h, tq, tk, d_k, d_v = (SIZES | changed).values()
    q = scale * rng.normal(size=(*sequences, h, tq, d_k))
    k = rng.normal(size=(*sequences, n_kv_heads, tk, d_k))
    v = rng.normal(size=(*sequences, n_kv_heads, tk, d_v))
    return tuple(a.astype(dtype) for a in (q, k, v))


def plain(q, k, v, mask=None):
    group = q.shape[-3] // k.shape[-3]
    k, v = (np.repeat(a, group, axis=-3) for a in (k, v))
    return scaled_dot_product_attention(q, k, v, mask)[0]


def masks(rng):
    some = rng.random((2, 1, 311, 13)) < 0.5
    some[0, 0, [5, 255, 256, 310]] = False  # nobody to look at, at the edges of blocks too
    return {
        "none": None,
        "one for all": some[0, 0],
        "for each sequence": some,
        "for each head": rng.random((3, 311, 13)) < 0.3,
        "keys only": np.arange(13) < 11,
        "nothing allowed": np.zeros((311, 13), dtype=bool),
    }


@pytest.mark.parametrize("name", ["none", "one for all", "for each sequence", "for each head",
                                  "keys only", "nothing allowed"])  # fmt: skip
@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 30.0, 1e4])
def test_it_agrees_with_the_plain_computation(rng, name, scale):
    q, k, v = qkv(rng, scale=scale)
    mask = masks(rng)[name]
    found = attend_in_blocks(q, k, v, mask)
    np.testing.assert_allclose(found, plain(q, k, v, mask), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_kv_heads", [1, 3])
@pytest.mark.parametrize("sequences", [(), (2,), (2, 5)])
def test_heads_read_their_own_keys_and_values(rng, n_kv_heads, sequences):
    q, k, v = qkv(rng, sequences, n_kv_heads)
    np.testing.assert_allclose(attend_in_blocks(q, k, v), plain(q, k, v), rtol=0, atol=1e-13)


def test_grouped_heads_share_with_their_neighbours(rng):
    q, k, v = qkv(rng, n_heads=6, n_kv_heads=3)
    np.testing.assert_allclose(attend_in_blocks(q, k, v), plain(q, k, v), rtol=0, atol=1e-13)


def test_sequences_broadcast(rng):
    q, k, v = qkv(rng)
    np.testing.assert_allclose(
        attend_in_blocks(q[:1], k, v), plain(q[:1], k, v), rtol=0, atol=1e-13
    )
    np.testing.assert_allclose(
        attend_in_blocks(q, k[:1], v[:1]), plain(q, k[:1], v[:1]), rtol=0, atol=1e-13
    )


def test_float32_stays_float32(rng):
    q, k, v = qkv(rng, dtype=np.float32)
    found = attend_in_blocks(q, k, v)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, plain(q, k, v), rtol=0, atol=3e-6)


@pytest.fixture
def plain_calls(monkeypatch):
    """Count the blocks that go through the plain computation."""
    calls = []

    def noted(q, *others):
        calls.append(len(q))
        return scaled_dot_product_attention(q, *others)

    monkeypatch.setattr(blocked, "_attend", noted)
    return calls


@pytest.mark.parametrize(
    ("scale", "size", "plain_blocks"),
    [
        (1.0, 1.0, 0),
        (1.0, 0.0, 0),  # nothing but zeros: no digits to lose
        (1.0, 1e-20, 0),
        (1.0, 1e25, 0),
        (1.0, 1e37, 2),  # 13 powers of up to e^3.4, times this, are more than a float32 holds
        (1.0, 1e-36, 2),
        (8.0, 1.0, 0),
        (8.0, 1e-20, 2),
        (25.0, 1.0, 2),  # a float32 holds e^-85, but not to its last digit
        (1e18, 1.0, 2),  # the square of a length overflows
    ],
)
def test_powers_that_could_overflow_or_vanish_are_left_to_the_plain_way(
    rng, plain_calls, scale, size, plain_blocks
):
    q, k, v = qkv(rng, (), dtype=np.float32)
    q, k = (3 * a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (q, k))
    q, v = np.float32(scale) * q, np.float32(size) * v  # the bound is scale * 3 * 3 / sqrt(7)
    found = attend_in_blocks(q, k, v)
    expected = plain(*(a.astype(float) for a in (q, k, v)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=4e-6 * size * max(1, scale))
    assert len(plain_calls) == 3 * plain_blocks


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_no_column_of_values_loses_digits_beside_another(rng, size):
    """Powers of e^-41 times 1e-30 are below all float32; the weights are what they always are."""
    q, k, v = (np.ones((3, *shape), np.float32) for shape in ((7, 5), (11, 5), (11, 2)))
    q, k = -q, 18 * k + rng.normal(size=k.shape).astype(np.float32) / 10
    v[..., 1] *= np.float32(size)
    v += v * rng.random(v.shape).astype(np.float32)
    expected = plain(*(a.astype(float) for a in (q, k, v)))
    np.testing.assert_allclose(attend_in_blocks(q, k, v), expected, rtol=1e-5)


def test_a_column_of_zeros_costs_nothing(rng, plain_calls):
    q, k, v = qkv(rng, ())
    v[..., 2] = 0.0
    np.testing.assert_allclose(attend_in_blocks(q, k, v), plain(q, k, v), rtol=0, atol=1e-13)
    assert not plain_calls


def test_one_head_with_large_scores_does_not_slow_the_others(rng, plain_calls):
    q, k, v = qkv(rng, ())
    q[1] *= 1e4
    np.testing.assert_allclose(attend_in_blocks(q, k, v), plain(q, k, v), rtol=0, atol=1e-12)
    assert plain_calls == [256, 55]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["q", "k", "v"])
@pytest.mark.parametrize("hidden", [False, True])
def test_inf_and_nan_reach_only_the_rows_that_meet_them(rng, bad, where, hidden):
    arrays = dict(zip("qkv", qkv(rng), strict=True))
    arrays[where][1, 2, 11, 4] = bad
    mask = np.ones((311, 13), dtype=bool)
    mask[200:, 11] = not hidden
    found = attend_in_blocks(**arrays, mask=mask)
    expected = plain(**arrays, mask=mask)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)  # inf and NaN at one place


def test_no_queries_and_no_keys(rng):
    q, k, v = qkv(rng)
    assert attend_in_blocks(q[..., :0, :], k, v).shape == (2, 3, 0, 5)
    assert not attend_in_blocks(q, k[..., :0, :], v[..., :0, :]).any()


def test_inputs_stay_as_they_are(rng, awkward):
    q, k, v = (awkward(a) for a in qkv(rng))  # read-only
    np.testing.assert_allclose(attend_in_blocks(q, k, v), plain(q, k, v), rtol=0, atol=1e-13)


# --- the layer chooses ------------------------------------------------------------------------


@pytest.mark.parametrize("n_kv_heads", [None, 1])
@pytest.mark.parametrize("with_context", [False, True])
def test_the_layer_gives_the_same_either_way(rng, n_kv_heads, with_context):
    x, context = rng.normal(size=(2, 263, 15)), rng.normal(size=(2, 269, 15))
    width = 15 if n_kv_heads is None else 5
    w_q, w_o = rng.normal(size=(2, 15, 15)) / 4
    w_k, w_v = rng.normal(size=(2, 15, width)) / 4
    keywords = {"n_kv_heads": n_kv_heads, "context": context if with_context else None}
    mask = rng.random((263, 269 if with_context else 263)) < 0.7
    fast = multihead.multi_head_attention(x, w_q, w_k, w_v, w_o, 3, mask=mask, **keywords)
    slow, _ = multihead.multi_head_attention(
        x, w_q, w_k, w_v, w_o, 3, mask=mask, return_weights=True, **keywords
    )
    np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-12)


def test_many_scores_go_through_blocks_and_few_do_not(rng, monkeypatch):
    calls = []

    def noted(*arguments):
        calls.append(arguments[0].shape[-2])
        return attend_in_blocks(*arguments)

    monkeypatch.setattr(multihead, "attend_in_blocks", noted)
    w = rng.normal(size=(4, 6, 6))
    for n in (255, 256, 311):
        multihead.multi_head_attention(rng.normal(size=(n, 6)), *w, 2)
    multihead.multi_head_attention(rng.normal(size=(311, 6)), *w, 2, return_weights=True)
    assert calls == [256, 311]


def test_memory_grows_with_n_and_not_with_its_square(rng, monkeypatch):
    monkeypatch.setattr(blocked, "KEYS", 512)
    n, d, h = 2003, 12, 3
    x, w = rng.normal(size=(n, d)), rng.normal(size=(4, d, d)) / 3
    tracemalloc.start()
    try:
        multihead.multi_head_attention(x, *w, h)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    one_block = 8 * blocked.BLOCK * blocked.KEYS
    assert peak < 2 * one_block + 10 * x.nbytes  # all weights would be over 20 such blocks


def test_values_that_are_small_beside_others_keep_their_digits():
    q, k = np.array([[[-30.0]]], np.float32), np.array([[[1.0], [1.0]]], np.float32)
    v = np.array([[[1.0, 1e-35], [1.0, 1e-35]]], np.float32)
    assert_allclose(attend_in_blocks(q, k, v), scaled_dot_product_attention(q, k, v)[0], rtol=1e-6)
    assert_allclose(attend_in_blocks(q, k, v)[0, 0], [1, 1e-35], rtol=1e-6)
