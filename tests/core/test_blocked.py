"""Attention in blocks gives what the plain computation gives, and holds less."""

import re
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mha_lib import _blocked as blocked
from mha_lib import multihead
from mha_lib._blocked import attention_output
from mha_lib.attention import scaled_dot_product_attention

# 311 queries are a block and a rest; 13 keys are two and a rest.
SIZES = {"n_heads": 3, "n_queries": 311, "n_keys": 13, "d_k": 7, "d_v": 5}


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(blocked, "BLOCK", 256)
    monkeypatch.setattr(blocked, "KEYS", 5)


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


@pytest.fixture
def plain_calls(monkeypatch):
    """Count the blocks that go through the plain computation."""
    calls = []

    def noted(q, *others):
        calls.append(len(q))
        return scaled_dot_product_attention(q, *others)

    monkeypatch.setattr(blocked, "scaled_dot_product_attention", noted)
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
    found = attention_output(q, k, v)
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
    np.testing.assert_allclose(attention_output(q, k, v), expected, rtol=1e-5)


def test_a_column_of_zeros_costs_nothing(rng, plain_calls):
    q, k, v = qkv(rng, ())
    v[..., 2] = 0.0
    np.testing.assert_allclose(attention_output(q, k, v), plain(q, k, v), rtol=0, atol=1e-13)
    assert not plain_calls


def test_one_head_with_large_scores_does_not_slow_the_others(rng, plain_calls):
    q, k, v = qkv(rng, ())
    q[1] *= 1e4
    np.testing.assert_allclose(attention_output(q, k, v), plain(q, k, v), rtol=0, atol=1e-12)
    assert plain_calls == [256, 55]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["q", "k", "v"])
@pytest.mark.parametrize("hidden", [False, True])
def test_inf_and_nan_reach_only_the_rows_that_meet_them(rng, bad, where, hidden):
    arrays = dict(zip("qkv", qkv(rng), strict=True))
    arrays[where][1, 2, 11, 4] = bad
    mask = np.ones((311, 13), dtype=bool)
    mask[200:, 11] = not hidden
    found = attention_output(**arrays, mask=mask)
    expected = plain(**arrays, mask=mask)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)  # inf and NaN at one place


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
        ("q", (7,), ["q has shape (7,)", "H"]),
        ("k", (7,), ["k has shape (7,)", "Hkv"]),
        ("v", (5,), ["v has shape (5,)", "Hkv"]),
        ("mask", (311, 11), ["mask", "(311, 11)", "(2, 3, 311, 13)"]),
    ],
)
def test_sizes_that_do_not_fit_are_named(rng, name, shape, words):
    arrays = dict(zip("qkv", qkv(rng), strict=True))
    arrays[name] = np.ones(shape, dtype=bool if name == "mask" else float)
    with pytest.raises(ValueError, match=re.escape(words[0])) as error:
        attention_output(**arrays)
    assert all(word in str(error.value) for word in words), error.value


@pytest.mark.parametrize(
    ("shapes", "name"),
    [
        ({"q": (3, 11, 0), "k": (3, 13, 0)}, "q and k"),
        ({"k": (0, 13, 7), "v": (0, 13, 5)}, "k and v"),
    ],
)
def test_nothing_to_compare_is_refused(rng, shapes, name):
    arrays = dict(zip("qkv", qkv(rng, ()), strict=True))
    arrays |= {name: np.ones(shape) for name, shape in shapes.items()}
    with pytest.raises(ValueError, match=name):
        attention_output(**arrays)


def test_lists_of_integers_are_arrays_too(rng):
    q, k, v = (np.round(a).astype(int) for a in qkv(rng, ()))
    found = attention_output(q.tolist(), k.tolist(), v.tolist())
    np.testing.assert_allclose(found, plain(q, k, v), rtol=0, atol=1e-12)


def test_inputs_stay_as_they_are(rng, awkward):
    q, k, v = (awkward(a) for a in qkv(rng))  # read-only
    np.testing.assert_allclose(attention_output(q, k, v), plain(q, k, v), rtol=0, atol=1e-13)


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
        return attention_output(*arguments)

    monkeypatch.setattr(multihead, "attention_output", noted)
    w = rng.normal(size=(4, 6, 6))
    for n in (255, 256, 311):
        multihead.multi_head_attention(rng.normal(size=(n, 6)), *w, 2)
    multihead.multi_head_attention(rng.normal(size=(311, 6)), *w, 2, return_weights=True)
    assert calls == [256, 311]


@pytest.mark.parametrize(
    ("order", "one_product"),
    [("qkv", True), ("kqv", False), ("qvk", False), ("copies", False), ("a fourth", False)],
)
def test_weights_that_lie_side_by_side_take_one_product(rng, order, one_product):
    x, w_o = rng.normal(size=(2, 257, 7)), rng.normal(size=(7, 7)) / 3
    whole = rng.normal(size=(7, 28 if order == "a fourth" else 21)) / 3
    letters = order if order in ("kqv", "qvk") else "qkv"
    w = {name: whole[:, 7 * i : 7 * i + 7] for i, name in enumerate(letters)}
    if order == "copies":
        w = {name: part.copy() for name, part in w.items()}

    found = multihead.multi_head_attention(x, w["q"], w["k"], w["v"], w_o, 1)
    q, k, v = (x @ w[name] for name in "qkv")
    expected = plain(q[:, None], k[:, None], v[:, None])[:, 0] @ w_o
    np.testing.assert_allclose(found, expected, atol=1e-13)
    assert (multihead._side_by_side(w["q"], w["k"], w["v"]) is not None) == one_product


@pytest.mark.parametrize(
    "in_lent_memory",
    [
        np.from_dlpack,
        lambda w: np.ndarray(w.shape, w.dtype, buffer=bytearray(w.tobytes())),
        lambda w: np.concatenate([w.ravel(), w.ravel()])[: w.size].reshape(w.shape),
    ],
    ids=["DLPack", "bytes", "a longer array"],
)
def test_weights_may_lie_in_memory_of_anything(rng, in_lent_memory):
    """Their base is then no array, or one with another number of axes."""
    x, w = rng.normal(size=(257, 6)), rng.normal(size=(4, 6, 6)) / 3
    lent = [in_lent_memory(each) for each in w]
    assert all(each.base is not None for each in lent)
    np.testing.assert_array_equal(
        multihead.multi_head_attention(x, *lent, 2),
        multihead.multi_head_attention(x, *(each.copy() for each in w), 2),
    )


def test_weights_side_by_side_do_not_mix_tokens_and_context(rng):
    x, context, whole = (rng.normal(size=s) / 3 for s in ((257, 7), (263, 7), (7, 21)))
    w_q, w_k, w_v = np.split(whole, 3, axis=1)
    found = multihead.multi_head_attention(x, w_q, w_k, w_v, np.eye(7), 1, context=context)
    expected = plain((x @ w_q)[None], (context @ w_k)[None], (context @ w_v)[None])[0]
    np.testing.assert_allclose(found, expected, atol=1e-13)


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
    assert_allclose(attention_output(q, k, v), scaled_dot_product_attention(q, k, v)[0], rtol=1e-6)
    assert_allclose(attention_output(q, k, v)[0, 0], [1, 1e-35], rtol=1e-6)
