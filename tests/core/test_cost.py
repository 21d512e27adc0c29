"""Costs, against counts that the test makes itself."""

from dataclasses import FrozenInstanceError, asdict

import numpy as np
import pytest

from mha_lib import AttentionCost, attention_cost, multi_head_attention
from tests import reference

N, M, D = 5, 7, 12
DIVISORS = [1, 2, 3, 4, 6, 12]


def counted(n, m, d, n_heads, n_kv_heads, dtype):
    """Return the cost of one pass through the slow reference, as it happened."""
    rng = np.random.default_rng(0)
    x, context = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(m, d)).astype(dtype)
    d_kv = n_kv_heads * (d // n_heads)
    w_q, w_o = rng.normal(size=(2, d, d)).astype(dtype)
    w_k, w_v = rng.normal(size=(2, d, d_kv)).astype(dtype)
    reference.multiply_adds.clear()
    _, weights = reference.attend_in_heads(
        x, w_q, w_k, w_v, w_o, n_heads, context=context, n_kv_heads=n_kv_heads
    )
    flops = {stage: 2 * count for stage, count in reference.multiply_adds.items()}
    return AttentionCost(
        parameters=w_q.size + w_k.size + w_v.size + w_o.size,
        projection_flops=flops["projection"],
        score_flops=flops["score"],
        value_flops=flops["value"],
        output_flops=flops["output"],
        matmul_flops=sum(flops.values()),
        softmax_entries=weights.size,
        weight_bytes=w_q.nbytes + w_k.nbytes + w_v.nbytes + w_o.nbytes,
        score_bytes=weights.astype(dtype).nbytes,
        kv_cache_bytes=(context @ w_k).nbytes + (context @ w_v).nbytes,
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("n_heads", "n_kv_heads"), [(h, g) for h in DIVISORS for g in DIVISORS if h % g == 0]
)
def test_every_count_is_what_the_slow_reference_really_does(n_heads, n_kv_heads, dtype):
    cost = attention_cost(
        N, D, n_heads, n_context=M, n_kv_heads=n_kv_heads,
        bytes_per_number=np.dtype(dtype).itemsize,
    )  # fmt: skip
    assert cost == counted(N, M, D, n_heads, n_kv_heads, dtype)


@pytest.mark.parametrize("n_heads", DIVISORS)
def test_left_out_arguments_mean_self_attention_in_float32(n_heads):
    assert attention_cost(N, D, n_heads) == counted(N, N, D, n_heads, n_heads, np.float32)


def test_a_small_layer_counted_by_hand():
    assert asdict(attention_cost(3, 4, 2, n_context=5)) == {
        "parameters": 64,  # 4 matrices of 4 * 4
        "projection_flops": 416,  # 2 * (3 + 5 + 5) * 4 * 4
        "score_flops": 120,  # 2 * 2 heads * 3 * 5 pairs * 2 wide
        "value_flops": 120,
        "output_flops": 96,  # 2 * 3 * 4 * 4
        "matmul_flops": 752,
        "softmax_entries": 30,  # 2 heads * 3 * 5
        "weight_bytes": 256,
        "score_bytes": 120,
        "kv_cache_bytes": 160,  # 2 * 5 tokens * 4 wide * 4 bytes
    }


def test_the_number_of_heads_changes_nothing_but_the_softmax():
    d = 360
    one = asdict(attention_cost(64, d, 1))
    for h in (h for h in range(1, d + 1) if d % h == 0):
        many = asdict(attention_cost(64, d, h))
        assert many.pop("softmax_entries") == h * one["softmax_entries"]
        assert many.pop("score_bytes") == h * one["score_bytes"]
        assert many.items() <= one.items()


def test_bytes_are_those_of_the_arrays_that_the_library_makes(rng):
    x, *weights = rng.normal(size=(N, D)), *rng.normal(size=(4, D, D))
    _, maps = multi_head_attention(x, *weights, 3, return_weights=True)
    cost = attention_cost(N, D, 3, bytes_per_number=8)
    assert (cost.softmax_entries, cost.score_bytes) == (maps.size, maps.nbytes)
    assert cost.weight_bytes == sum(w.nbytes for w in weights)


@pytest.mark.parametrize(("n", "m"), [(0, 7), (5, 0), (0, 0)])
def test_without_tokens_there_is_no_work(n, m):
    cost = attention_cost(n, D, 3, n_context=m)
    assert cost.matmul_flops == 2 * (2 * n + 2 * m) * D * D
    assert cost.softmax_entries == cost.score_flops == cost.value_flops == 0


def test_counts_are_exact_python_integers_of_any_size():
    n = 10**12
    cost = attention_cost(np.uint64(n), np.int32(2**14), np.int8(64))
    assert cost.softmax_entries == 64 * n * n
    assert {type(count) for count in asdict(cost).values()} == {int}


def test_a_cost_cannot_be_changed_by_accident():
    with pytest.raises(FrozenInstanceError):
        attention_cost(N, D, 3).parameters = 0
