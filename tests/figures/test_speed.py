"""What the book says of time and memory: the stored measurement, and today's library."""

import itertools
import os
import subprocess
import sys
import tracemalloc
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from bench import attention as bench
from mha_lib import _blocked as blocked
from mha_lib import attention_cost, split_heads
from mha_lib.figures.speed import measured

ROOT = Path(__file__).parents[2]
MOST = 200e6 / 2**20  # 200 MB in MiB


def grown(**fixed):
    """Return the rows of one curve, sorted along it."""
    rows = [
        row for row in measured()["growth"]
        if all(row[name] == value for name, value in fixed.items())
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (row["n"], row["n_heads"]))


def test_the_measurement_is_whole():
    result = measured()
    machine = result["machine"]
    assert machine["contenders"] == list(bench.CONTENDERS)
    assert len(bench.CONTENDERS) == 6  # as the page says
    assert {"Python", "NumPy", "torch", "onnxruntime"} == set(machine["versions"])
    assert all(machine[name] for name in ("processor", "cores", "system"))
    assert date.fromisoformat(machine["date"]) <= date.today()
    assert [(row["n"], row["d"], row["n_heads"]) for row in result["sizes"]] == bench.SIZES
    assert [(row["n"], row["d"], row["n_heads"]) for row in result["growth"]] == bench.GROWTH
    for row in result["sizes"]:
        assert set(row["mebibytes"]) == set(bench.CONTENDERS)
        others = {*bench.CONTENDERS, bench.FLOOR} - {"mha_lib"}
        assert set(row["ms"]) == {"mha_lib", *others}
        assert set(row["ratio_half"]) == others
        for name, (low, high) in row["ratio_half"].items():
            # The ratio of the medians is what the page shows, and need not lie between exactly.
            assert 0.9 * low < row["ms"]["mha_lib"] / row["ms"][name] < 1.1 * high
    assert min(row["n_rounds"] for row in result["sizes"] + result["growth"]) >= 9


def test_blocks_are_lean_and_faster_than_the_loop():
    """Looser than what was aimed at, 0.35: the next measurement may be of another machine."""
    for row in measured()["sizes"]:
        if row["n"] >= 1024:
            assert row["ms"]["mha_lib"] <= 0.4 * row["ms"]["the document's loop"], row["n"]
    assert measured()["sizes"][-1]["mebibytes"]["mha_lib"] < MOST


def test_chapter_3_is_right_about_holding_all_scores():
    """The counted memory and the tokens'; no time for the shortest text, half for the longest."""
    rows = grown(d=512, n_heads=8)
    for row in rows:
        counted = attention_cost(row["n"], 512, 8).score_bytes / 2**20
        tokens = 4 * row["n"] * row["d"] / 2**20
        beyond = row["mebibytes"]["mha_lib, all weights"] - counted
        assert 2 * tokens < beyond < 7 * tokens
        assert row["n"] == 256 or row["ms"]["mha_lib"] < row["ms"]["mha_lib, all weights"]
    first, *_, last = (row["ms"]["mha_lib, all weights"] / row["ms"]["mha_lib"] for row in rows)
    assert first < 1.1
    assert last == pytest.approx(1.5, abs=0.15)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from Linux' /proc")
def test_the_longest_size_takes_little_memory_today():
    assert bench.memory_of("mha_lib", 8192, 512, 8) < MOST  # all weights: 2,048


def test_blocks_take_little_more_than_products_and_exp_today():
    """Measured: 1.1 times them, 1.4 with all weights held; 0.35 of the document's loop.

    These are one thread's own seconds, and a busy machine, whose caches are not free, gets
    further rounds.
    """
    code = """
from time import process_time
from bench import attention as bench
makers = bench.ours, bench.products_and_exp, bench.document
runs = [make(*bench.inputs(1024, 512), 8) for make in makers]
for run in 15 * runs:
    began = process_time()
    run()
    print(process_time() - began)
"""
    for _ in range(5):
        done = subprocess.run(  # noqa: S603 - ours
            [sys.executable, "-c", code], cwd=ROOT,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        seconds = [float(line) for line in done.stdout.split()]
        ours, floor, loop = (min(seconds[i::3]) for i in range(3))
        if ours < 1.35 * floor and ours < 0.5 * loop:
            return
    pytest.fail(f"{ours:.3f} s; products and exp {floor:.3f} s, the document's loop {loop:.3f} s")


def test_contenders_without_torch_agree(rng):
    x, weights = (rng.normal(size=s).astype(np.float32) for s in [(7, 6), (4, 6, 6)])
    makers = (bench.document, bench.document_in_float32, bench.ours, bench.with_weights)
    first, *others = (make(x, *weights, 3)() for make in makers)
    assert first.dtype == np.float64  # the page says so
    for other in others:
        assert other.dtype == np.float32
        np.testing.assert_allclose(other, first, atol=1e-5)


def test_the_counts_explain_what_the_page_says_they_do():
    """Time and memory, in blocks and with all scores held."""
    rows = measured()["growth"]
    costs = [attention_cost(row["n"], row["d"], row["n_heads"]) for row in rows]
    work = np.array([[cost.matmul_flops, cost.softmax_entries] for cost in costs], float)
    room = np.array([[cost.score_bytes, 4 * row["n"] * row["d"]]
                     for cost, row in zip(costs, rows, strict=True)]) / 2**20  # fmt: skip
    lengths = np.array([row["n"] for row in rows])
    factors, off = {}, {}
    for name in bench.OURS:
        for counts, what, used in ((work, "ms", lengths > 0), (room, "mebibytes", lengths > 256)):
            found = np.array([row[what][name] for row in rows])
            relative = (counts / found[:, None])[used]
            factors[what, name] = np.linalg.lstsq(relative, np.ones(len(relative)))[0]
            off[what, name] = abs(relative @ factors[what, name] - 1)
    blocks, held = bench.OURS
    assert off["ms", blocks].max() < 0.2
    assert off["ms", held].max() < 0.15
    times = factors["ms", held][1] / factors["ms", blocks][1]
    assert times == pytest.approx(3, abs=0.5)
    for name, n_scores in ((blocks, 0), (held, 1)):
        scores, tokens = factors["mebibytes", name]
        assert scores == pytest.approx(n_scores, abs=0.05)
        assert tokens == pytest.approx(5, abs=0.5)


def test_the_page_is_right_about_each_doubling():
    for short, long in itertools.pairwise(grown(d=512, n_heads=8)):
        ratio = {
            (what, name): long[what][name] / short[what][name]
            for what in ("ms", "mebibytes") for name in bench.OURS
        }  # fmt: skip
        assert 2 < ratio["ms", "mha_lib"] < 4
        if short["n"] >= 512:
            assert 1.9 < ratio["mebibytes", "mha_lib"] < 2.6
        assert 3 < ratio["mebibytes", "mha_lib, all weights"] < 4
        assert ratio["ms", "mha_lib, all weights"] > ratio["ms", "mha_lib"]
        if short["n"] >= 1024:
            assert attention_cost(long["n"], 512, 8).score_bytes > 100 * 2**20
    one, two, four, *_, sixteen = grown(n=1024)  # heads
    few = [row["ms"]["mha_lib"] for row in (one, two, four)]
    assert max(few) < 1.15 * min(few)
    assert sixteen["ms"]["mha_lib"] > 1.2 * max(few)
    assert sixteen["mebibytes"]["mha_lib"] < one["mebibytes"]["mha_lib"]


def test_the_page_is_right_about_the_loop_and_the_floor():
    for row in measured()["sizes"]:
        n, ms, mebibytes = row["n"], row["ms"], row["mebibytes"]
        loop, loop32 = (ms[name] for name in ("the document's loop", "the loop, all in float32"))
        if n <= 128:
            assert loop32 < 1.03 * ms["mha_lib"], n
        else:
            assert 0.85 * ms["mha_lib"] < ms[bench.FLOOR] < ms["mha_lib"], n
            assert 0.77 < ms[bench.FLOOR] / ms["PyTorch SDPA"] < 1, n
        if n >= 128:
            assert 0.8 < ms["mha_lib"] / ms["PyTorch SDPA"] < 1.25, n
        if n == 1024:
            assert ms[bench.FLOOR] / loop == pytest.approx(0.30, abs=0.005)
        counted = attention_cost(n, row["d"], row["n_heads"]).score_bytes / 2**20
        if n >= 512:
            assert mebibytes["onnxruntime"] > counted, n
        if n >= 1024:
            assert 0.4 < loop32 / loop < 0.6, n
            for name in ("PyTorch SDPA", "mha_lib", "PyTorch nn.MultiheadAttention"):
                assert mebibytes[name] < 0.5 * counted, (n, name)
    one_head = counted / row["n_heads"]  # of the longest size
    for name, arrays in (("the document's loop", 6), ("the loop, all in float32", 3)):
        assert mebibytes[name] / one_head == pytest.approx(arrays, rel=0.1)
    assert mebibytes["the document's loop"] > 0.5 * counted


@pytest.mark.parametrize(("make", "times"), [(bench.document, 6), (bench.document_in_float32, 3)])
def test_the_loop_holds_three_arrays_of_one_heads_scores(make, times):
    """With softmax written into the loop, a fourth would be left over from the head before."""
    n = 1009
    run = make(*bench.inputs(n, 6), 3)
    tracemalloc.start()
    try:
        run()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak / (4 * n * n) == pytest.approx(times, rel=0.05)


def test_the_block_is_the_one_that_the_page_names():
    assert blocked.BLOCK == blocked.KEYS == 512


@pytest.mark.parametrize(("n", "d", "n_heads"), bench.SIZES + bench.GROWTH)
def test_the_bound_is_below_the_limit_wherever_speed_was_measured(n, d, n_heads):
    """The limit is what the page computes; the library decides by it."""
    x, w_q, w_k, w_v, _ = bench.inputs(n, d)
    q, k, v = (split_heads(x @ w, n_heads) for w in (w_q, w_k, w_v))
    f32 = np.finfo(np.float32)
    for head in range(n_heads):
        sizes = abs(v[head]).max(axis=0)
        limit = -np.log(f32.tiny) - np.log(n / f32.eps) - abs(np.log(sizes)).max()
        bound = blocked._longest(q[head]) * blocked._longest(k[head]) / np.sqrt(d // n_heads)
        assert bound < 0.6 * limit
        assert blocked._is_moderate(limit - 0.01, v[head], np.float32)
        assert not blocked._is_moderate(limit + 0.01, v[head], np.float32)
