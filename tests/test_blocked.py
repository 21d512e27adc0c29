"""Attention in blocks gives what the plain computation gives, and holds less."""

import re
import tracemalloc

import numpy as np
import pytest

from mha_lib import blocked, multihead
from mha_lib.attention import scaled_dot_product_attention
from mha_lib.blocked import attention_output

# 311 queries are two blocks and a rest.
SIZES = {"n_heads": 3, "n_queries": 311, "n_keys": 13, "d_k": 7, "d_v": 5}


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
    some[0, 0, [5, 127, 128, 310]] = False  # nobody to look at, at the edges of blocks too
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
    found = attention_output(q, k, v, mask)
    np.testing.assert_allclose(found, plain(q, k, v, mask), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_kv_heads", [1, 3])
@pytest.mark.parametrize("sequences", [(), (2,), (2, 5)])
def test_heads_read_their_own_keys_and_values(rng, n_kv_heads, sequences):
    q, k, v = qkv(rng, sequences, n_kv_heads)
    np.testing.assert_allclose(attention_output(q, k, v), plain(q, k, v), rtol=0, atol=1e-13)


def test_grouped_heads_share_with_their_neighbours(rng):
    q, k, v = qkv(rng, n_heads=6, n_kv_heads=3)
    np.testing.assert_allclose(attention_output(q, k, v), plain(q, k, v), rtol=0, atol=1e-13)


def test_sequences_broadcast(rng):
    q, k, v = qkv(rng)
    np.testing.assert_allclose(
        attention_output(q[:1], k, v), plain(q[:1], k, v), rtol=0, atol=1e-13
    )
    np.testing.assert_allclose(
        attention_output(q, k[:1], v[:1]), plain(q, k[:1], v[:1]), rtol=0, atol=1e-13
    )


def test_float32_stays_float32(rng):
    q, k, v = qkv(rng, dtype=np.float32)
    found = attention_output(q, k, v)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, plain(q, k, v), rtol=0, atol=3e-6)


def test_a_bound_far_above_the_scores_is_noticed(rng):
    # One long key that nobody agrees with: all scores lie far below the bound that it makes.
    q, k, v = qkv(rng, scale=5.0)
    q[..., 0], k[..., 0] = 0.0, 0.0
    k[..., 3, 0] = 1e4
    found = attention_output(q, k, v)
    np.testing.assert_allclose(found, plain(q, k, v), rtol=0, atol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["q", "k", "v"])
@pytest.mark.parametrize("hidden", [False, True])
def test_inf_and_nan_reach_only_the_rows_that_meet_them(rng, bad, where, hidden):
    arrays = dict(zip("qkv", qkv(rng), strict=True))
    arrays[where][1, 2, 11, 4] = bad
    mask = np.ones((311, 13), dtype=bool)
    mask[200:, 11] = not hidden
    found = attention_output(**arrays, mask=mask)
    np.testing.assert_array_almost_equal_nulp(
        np.nan_to_num(found, posinf=7.0, neginf=-7.0).round(12),
        np.nan_to_num(plain(**arrays, mask=mask), posinf=7.0, neginf=-7.0).round(12),
    )
    np.testing.assert_array_equal(np.isnan(found), np.isnan(plain(**arrays, mask=mask)))


def test_no_queries_and_no_keys(rng):
    q, k, v = qkv(rng)
    assert attention_output(q[..., :0, :], k, v).shape == (2, 3, 0, 5)
    assert not attention_output(q, k[..., :0, :], v[..., :0, :]).any()


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("q", (2, 3, 311, 5), ["q axis Dk", "5", "7"]),
        ("k", (2, 3, 11, 7), ["k axis Tk", "11", "13"]),
        ("v", (2, 1, 13, 5), ["v axis Hkv", "3", "1"]),
        ("q", (2, 5, 311, 7), ["Hkv=3", "H=5"]),
        ("q", (3, 3, 311, 7), ["leading axes", "(3,)", "(2,)"]),
        ("q", (7,), ["q", "H"]),
        ("mask", (311, 11), ["mask", "(311, 11)", "(2, 3, 311, 13)"]),
    ],
)
def test_sizes_that_do_not_fit_are_named(rng, name, shape, words):
    arrays = dict(zip("qkv", qkv(rng), strict=True))
    arrays[name] = np.ones(shape, dtype=bool if name == "mask" else float)
    with pytest.raises(ValueError, match=re.escape(words[0])) as error:
        attention_output(**arrays)
    assert all(word in str(error.value) for word in words), error.value


def test_inputs_stay_as_they_are(rng, awkward):
    q, k, v = (awkward(a) for a in qkv(rng))  # read-only
    np.testing.assert_allclose(attention_output(q, k, v), plain(q, k, v), rtol=0, atol=1e-13)


# --- the layer chooses ------------------------------------------------------------------------


@pytest.mark.parametrize("n_kv_heads", [None, 1])
@pytest.mark.parametrize("with_context", [False, True])
def test_the_layer_gives_the_same_either_way(rng, n_kv_heads, with_context):
    x, context = rng.normal(size=(2, 149, 15)), rng.normal(size=(2, 151, 15))
    width = 15 if n_kv_heads is None else 5
    w_q, w_o = rng.normal(size=(2, 15, 15)) / 4
    w_k, w_v = rng.normal(size=(2, 15, width)) / 4
    keywords = {"n_kv_heads": n_kv_heads, "context": context if with_context else None}
    mask = rng.random((149, 151 if with_context else 149)) < 0.7
    fast = multihead.multi_head_attention(x, w_q, w_k, w_v, w_o, 3, mask=mask, **keywords)
    slow, _ = multihead.multi_head_attention(
        x, w_q, w_k, w_v, w_o, 3, mask=mask, return_weights=True, **keywords
    )
    np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-12)


def test_many_scores_go_through_blocks_and_few_do_not(rng, monkeypatch):
    calls = []

    def noted(*arguments):
        calls.append(arguments[0].shape[-2])
        return attention_output(*arguments)

    monkeypatch.setattr(multihead, "attention_output", noted)
    w = rng.normal(size=(4, 6, 6))
    for n in (127, 128, 311):
        multihead.multi_head_attention(rng.normal(size=(n, 6)), *w, 2)
    multihead.multi_head_attention(rng.normal(size=(311, 6)), *w, 2, return_weights=True)
    assert calls == [128, 311]


def test_memory_grows_with_n_and_not_with_its_square(rng):
    n, d, h = 2003, 12, 3
    x, w = rng.normal(size=(n, d)), rng.normal(size=(4, d, d)) / 3
    tracemalloc.start()
    try:
        multihead.multi_head_attention(x, *w, h)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    one_block = 8 * blocked.BLOCK * n
    assert peak < 2 * one_block + 20 * x.nbytes  # all weights would be 47 blocks
