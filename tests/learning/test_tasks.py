"""The data of the small tasks."""

from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mha_lib.learning.tasks import MarkedAndMean, RepeatedSequence, ThreeJobs

pytestmark = pytest.mark.filterwarnings("error")
B = 13
TASKS = {
    "marked and mean": MarkedAndMean(n=5, width=3, d=11),
    "three jobs": ThreeJobs(n=5, n_symbols=7),
    "repeated sequence": RepeatedSequence(n=11, n_symbols=7, shortest=3, longest=5),
}


def arrays(batch):
    """Return the arrays of a batch by name."""
    return {name: array for name, array in vars(batch).items() if array is not None}


# --- all tasks ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TASKS)
def test_a_seed_fixes_the_data_and_other_seeds_give_other_data(name):
    one, same, other = (
        arrays(TASKS[name].batch(np.random.default_rng(seed), B)) for seed in (5, 5, 7)
    )
    for field, array in one.items():
        assert_array_equal(array, same[field], strict=True)
        assert (array != other[field]).any()


@pytest.mark.parametrize("name", TASKS)
def test_a_generator_gives_new_data_each_time(rng, name):
    first, second = (arrays(TASKS[name].batch(rng, B)) for _ in range(2))
    for field, array in first.items():
        assert (array != second[field]).any()


@pytest.mark.parametrize("task", [MarkedAndMean, ThreeJobs, RepeatedSequence])
@pytest.mark.parametrize("integer", [np.int8, np.uint64, np.array])
def test_any_integer_type_gives_the_sizes(task, integer):
    # In int8, 2 * width and n + 1 would overflow.
    sizes = {
        MarkedAndMean: {"n": 5, "width": 60, "d": 127, "n_near": 3},
        ThreeJobs: {"n": 5, "n_symbols": 7},
        RepeatedSequence: {"n": 127, "n_symbols": 7, "shortest": 3, "longest": 5},
    }[task]
    plain, other = task(**sizes), task(**{name: integer(size) for name, size in sizes.items()})
    assert other == plain
    one, same = (arrays(t.batch(np.random.default_rng(0), integer(3))) for t in (plain, other))
    for field, array in one.items():
        assert_array_equal(array, same[field], strict=True)


# --- marked and mean ------------------------------------------------------------------------


def test_targets_are_the_marked_vector_and_the_scaled_mean(rng):
    batch = TASKS["marked and mean"].batch(rng, B)
    assert batch.targets.shape == (B, 5, 6)
    for b in range(B):
        (marked,) = (i for i in range(5) if batch.x[b, i, 3] == 1)
        assert marked == batch.marked[b]
        for i in range(5):
            assert_array_equal(batch.targets[b, i, :3], batch.x[b, marked, :3])
            for c in range(3):
                total = sum(batch.x[b, j, c] for j in range(5))
                assert_allclose(batch.targets[b, i, 3 + c], total / np.sqrt(5), rtol=1e-12)


def test_behind_the_vector_stand_the_marker_a_one_and_nothing(rng):
    x = TASKS["marked and mean"].batch(rng, B).x
    assert x.shape == (B, 5, 11)
    assert_array_equal(np.sort(x[..., 3], axis=1), np.tile([0.0, 0, 0, 0, 1], (B, 1)))
    assert_array_equal(x[..., 4], 1.0)
    assert_array_equal(x[..., 5:], 0.0)


def test_near_tokens_are_the_last_and_the_marked_one_stands_before_them(rng):
    batch = MarkedAndMean(n=7, width=3, d=11, n_near=2).batch(rng, 97)
    assert set(batch.marked) == set(range(5))
    for b in range(97):
        assert_array_equal(batch.x[b, :, 3], np.arange(7) == batch.marked[b])
        assert_array_equal(batch.x[b, :, 5], [0, 0, 0, 0, 0, 1, 1])
        for i in range(7):
            assert_array_equal(batch.targets[b, i, :3], batch.x[b, batch.marked[b], :3])
            near = (batch.x[b, 5, :3] + batch.x[b, 6, :3]) / np.sqrt(2)
            assert_allclose(batch.targets[b, i, 3:], near, rtol=1e-12)
    assert_array_equal(batch.x[..., 4], 1.0)
    assert_array_equal(batch.x[..., 6:], 0.0)


@pytest.mark.parametrize("n_near", [0, 3])
def test_an_answer_of_0_has_error_1_in_each_job(rng, n_near):
    batch = MarkedAndMean(n_near=n_near).batch(rng, 4096)
    errors = (batch.targets[:, 0] ** 2).reshape(-1, 2, 6).mean(axis=(0, 2))
    # 4096 * 6 squares of variance 2: their mean is known to 0.009, of which we allow 4.
    assert_allclose(errors, 1, atol=0.036)
    n_places = 16 - n_near
    share = np.bincount(batch.marked, minlength=n_places) / 4096
    assert_allclose(share, 1 / n_places, atol=0.019)


# --- three jobs -----------------------------------------------------------------------------


def test_the_three_jobs_as_slow_loops_see_them(rng):
    batch = TASKS["three jobs"].batch(rng, 97)
    n_ties = 0
    for b in range(97):
        tokens = batch.tokens[b].tolist()
        (most, count), *others = Counter(tokens).most_common()
        tie = any(other == count for _, other in others)
        n_ties += tie
        for i in range(5):
            assert_array_equal(batch.counted[b, i], [i > 0, True, not tie])
            if i > 0:
                assert batch.targets[b, i, 0] == tokens[i - 1]
            assert batch.targets[b, i, 1] == tokens[batch.marked[b]]
            if not tie:
                assert batch.targets[b, i, 2] == most
    assert 0 < n_ties < 97  # both kinds were there
    assert set(batch.tokens.flat) == set(range(7))
    assert set(batch.marked) == set(range(5))
    assert (batch.targets >= 0).all()  # where nothing is counted, too: they are indices
    assert (batch.targets < 7).all()


def test_some_of_the_jobs_are_the_same_jobs_on_the_same_sequences():
    every, some = (
        task.batch(np.random.default_rng(5), B)
        for task in (ThreeJobs(n=5), ThreeJobs(n=5, jobs=("most common", "previous")))
    )
    assert_array_equal(some.tokens, every.tokens)
    assert_array_equal(some.marked, every.marked)
    assert_array_equal(some.targets, every.targets[..., [2, 0]])
    assert_array_equal(some.counted, every.counted[..., [2, 0]])


@pytest.mark.parametrize("n_symbols", [3, 8])
def test_a_constant_answer_is_right_by_chance_in_every_job(rng, n_symbols):
    task = ThreeJobs(n_symbols=n_symbols)
    batch = task.batch(rng, 8192)
    assert task.chance == 1 / n_symbols
    for answer in range(n_symbols):
        right = (batch.targets == answer) & batch.counted
        shares = right.sum(axis=(0, 1)) / batch.counted.sum(axis=(0, 1))
        # A share of 8192 sequences is known to 0.0055, of which we allow 4.
        assert_allclose(shares, task.chance, atol=0.022)


def test_some_symbols_are_common_in_a_sequence(rng):
    # With equal probabilities, the most common of 8 symbols would stand at 4 of 16 places.
    tokens = ThreeJobs().batch(rng, 1024).tokens
    counts = (tokens[..., None] == np.arange(8)).sum(axis=1)
    assert counts.max(axis=1).mean() > 6


# --- repeated sequence ----------------------------------------------------------------------


def test_a_block_of_different_symbols_is_repeated(rng):
    task = TASKS["repeated sequence"]
    batch = task.batch(rng, 97)
    assert set(batch.period) == {3, 4, 5}
    for b in range(97):
        tokens, period = batch.tokens[b].tolist(), batch.period[b]
        assert len(set(tokens[:period])) == period
        for i in range(11):
            assert tokens[i] == tokens[i % period]
            assert batch.targets[b, i, 0] == tokens[(i + 1) % period]
            assert batch.counted[b, i, 0] == (i >= period)
    assert batch.targets.shape == batch.counted.shape == (97, 11, 1)
    assert set(batch.tokens.flat) == set(range(7))


def test_a_constant_answer_is_right_by_chance_where_the_next_symbol_is_known(rng):
    task = RepeatedSequence()
    batch = task.batch(rng, 8192)
    assert task.chance == 1 / 16
    for answer in range(16):
        share = (batch.targets == answer)[batch.counted].mean()
        assert_allclose(share, task.chance, atol=0.011)  # 4 times what 8192 sequences leave open
