"""Losses, Adam, and the training loop."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mha_lib import softmax
from mha_lib.learning.models import TokenModel, VectorModel
from mha_lib.learning.tasks import MarkedAndMean, RepeatedSequence, ThreeJobs
from mha_lib.learning.train import (
    Adam,
    Recipe,
    accuracy,
    clip_gradients,
    cross_entropy,
    fit,
    squared_error,
)
from tests.gradients import TOLERANCE, relative_error

pytestmark = pytest.mark.filterwarnings("error")
B, N, J, V = 2, 5, 3, 7


@pytest.fixture
def answers(rng):
    """Return logits (B, N, J, V), targets (B, N, J) and where they are counted."""
    logits = rng.normal(size=(B, N, J, V))
    return logits, rng.integers(V, size=(B, N, J)), rng.random((B, N, J)) < 0.6


# --- cross-entropy --------------------------------------------------------------------------


def test_cross_entropy_worked_out_by_hand():
    # The right symbols have probability 5/8 and 1/4; the third row is not counted.
    logits = np.log([[1.0, 2.0, 5.0], [4.0, 8.0, 4.0], [1.0, 1.0, 1.0]])
    loss, d_logits = cross_entropy(logits, [2, 0, 1], [True, True, False])
    assert_allclose(loss, (math.log(8 / 5) + math.log(4)) / 2, rtol=1e-14)
    expected = [[1 / 16, 1 / 8, -3 / 16], [-3 / 8, 1 / 4, 1 / 8], [0, 0, 0]]
    assert_allclose(d_logits, expected, atol=1e-15)


def test_cross_entropy_and_accuracy_agree_with_slow_loops(answers):
    logits, targets, counted = answers
    losses, right = [], [[] for _ in range(J)]
    for index in np.ndindex(B, N, J):
        if counted[index]:
            probabilities = softmax(logits[index])
            losses.append(-math.log(probabilities[targets[index]]))
            right[index[-1]].append(probabilities[targets[index]] == max(probabilities))
    loss, _ = cross_entropy(*answers)
    assert_allclose(loss, np.mean(losses), rtol=1e-13)
    assert_allclose(accuracy(*answers), [np.mean(job) for job in right], rtol=1e-13)


def test_the_gradient_of_cross_entropy(answers):
    loss, d_logits = cross_entropy(*answers)
    assert isinstance(loss, float)
    assert relative_error(d_logits, lambda: cross_entropy(*answers)[0], answers[0]) < TOLERANCE
    assert_array_equal(d_logits[~answers[2]], 0.0)
    assert_allclose(d_logits.sum(axis=-1), 0, atol=1e-15)


def test_even_guessing_loses_the_logarithm_of_the_number_of_symbols():
    loss, _ = cross_entropy(np.full((N, V), 3.0), np.arange(N), np.ones(N, bool))
    assert_allclose(loss, math.log(V), rtol=1e-14)


def test_what_is_not_counted_does_not_matter(rng, answers):
    logits, targets, counted = answers
    expected = *cross_entropy(*answers), *accuracy(*answers)
    logits[~counted] = rng.normal(size=(np.count_nonzero(~counted), V))
    targets[~counted] = (targets[~counted] + 1) % V
    found = *cross_entropy(*answers), *accuracy(*answers)
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, atol=1e-14)


@pytest.mark.parametrize("size", [1e4, 1e300])
def test_huge_logits_have_a_finite_gradient(size):
    loss, d_logits = cross_entropy([[size, -size], [size, -size]], [0, 1], [True, True])
    assert_allclose(loss, size, rtol=1e-14)  # 0 and twice the size, in the mean
    assert_array_equal(d_logits, [[0.0, 0.0], [0.5, -0.5]])


def test_logits_beyond_each_others_range_lose_without_end():
    loss, d_logits = cross_entropy([[1.7e308, -1.7e308]], [1], [True])
    assert loss == np.inf
    assert_array_equal(d_logits, [[1.0, -1.0]])


def test_float32_logits_have_float32_gradients(answers):
    logits, targets, counted = answers
    loss, d_logits = cross_entropy(logits.astype(np.float32), targets, counted)
    expected_loss, expected = cross_entropy(*answers)
    assert d_logits.dtype == np.float32
    assert_allclose(d_logits, expected, atol=1e-7)
    assert_allclose(loss, expected_loss, rtol=1e-6)


def test_losses_leave_read_only_arrays_in_any_memory_order_alone(rng, answers, awkward):
    for loss in (cross_entropy, accuracy):
        for found, expected in zip(loss(*map(awkward, answers)), loss(*answers), strict=True):
            assert_allclose(found, expected, rtol=1e-13)
    arrays = *rng.normal(size=(2, B, N, V)), rng.random(V)
    found, expected = squared_error(*map(awkward, arrays)), squared_error(*arrays)
    assert_allclose(found[0], expected[0], rtol=1e-13)
    assert_allclose(found[1], expected[1], rtol=1e-13)


# --- squared error --------------------------------------------------------------------------


def test_squared_error_worked_out_by_hand():
    loss, d_outputs = squared_error([[1, 2], [4, 3]], [[0, 0], [1, 3]], [1.0, 0.5])
    assert loss == (1 * 1 + 0.5 * 4 + 1 * 9 + 0) / 4
    assert_array_equal(d_outputs, [[0.5, 0.5], [1.5, 0.0]])


def test_the_gradient_of_squared_error(rng):
    outputs, targets = rng.normal(size=(2, B, N, V))
    importance = rng.random(V)

    def loss():
        return squared_error(outputs, targets, importance)[0]

    assert relative_error(squared_error(outputs, targets, importance)[1], loss, outputs) < TOLERANCE


# --- Adam, clipping and the learning rate ---------------------------------------------------


def test_adam_agrees_with_its_equations_number_by_number(rng):
    parameters = {"a": rng.normal(size=(2, 3)), "b": rng.normal(size=5)}
    expected = {name: p.copy() for name, p in parameters.items()}
    mean = {name: np.zeros(p.shape) for name, p in parameters.items()}
    square = {name: np.zeros(p.shape) for name, p in parameters.items()}
    adam = Adam(parameters, decay=(0.8, 0.95), epsilon=0.03)
    for step in range(1, 8):
        gradients = {name: rng.normal(scale=step, size=p.shape) for name, p in parameters.items()}
        rate = 0.1 / step
        adam.step(gradients, rate)
        for name, gradient in gradients.items():
            for i in np.ndindex(gradient.shape):
                mean[name][i] = 0.8 * mean[name][i] + 0.2 * gradient[i]
                square[name][i] = 0.95 * square[name][i] + 0.05 * gradient[i] ** 2
                direction = mean[name][i] / (1 - 0.8**step)
                length = math.sqrt(square[name][i] / (1 - 0.95**step))
                expected[name][i] -= rate * direction / (length + 0.03)
            assert_allclose(parameters[name], expected[name], rtol=1e-12)


@pytest.mark.parametrize("gradient", [1e-3, -7.0, 1e5])
def test_adams_first_step_is_as_long_as_the_rate(gradient):
    w = np.array([3.0])
    Adam({"w": w}).step({"w": np.array([gradient])}, 0.25)
    assert_allclose(w, 3.0 - 0.25 * np.sign(gradient), rtol=1e-5)


def test_adam_keeps_means_as_long_as_its_paper_and_ours_say():
    w = np.array([0.0])
    adam = Adam({"w": w})
    for gradient in (1.0, 0.0):
        adam.step({"w": np.array([gradient])}, 1.0)
    # After a gradient of 1 and one of 0: means 0.9 * 0.1 and 0.99 * 0.01, both too small yet.
    second = (0.9 * 0.1 / (1 - 0.9**2)) / math.sqrt(0.99 * 0.01 / (1 - 0.99**2))
    assert_allclose(w, -1 - second, rtol=1e-6)


def test_adam_does_not_step_when_it_refuses():
    w = np.array([3.0])
    adam = Adam({"w": w})
    with pytest.raises(ValueError, match="every parameter"):
        adam.step({}, 0.25)
    adam.step({"w": np.array([7.0])}, 0.25)
    assert_allclose(w, [2.75], rtol=1e-6)


def test_clipping_shrinks_all_gradients_alike():
    gradients = {"a": np.array([[3.0, 0.0]]), "b": np.array([4.0, 12.0])}
    assert clip_gradients(gradients, 6.5) == 13.0
    assert_array_equal(gradients["a"], [[1.5, 0.0]])
    assert_array_equal(gradients["b"], [2.0, 6.0])
    assert clip_gradients(gradients, 6.5) == 6.5
    assert_array_equal(gradients["b"], [2.0, 6.0])
    assert clip_gradients(gradients, 100) == 6.5
    assert_array_equal(gradients["a"], [[1.5, 0.0]])


def test_the_learning_rate_worked_out_by_hand():
    recipe = Recipe(n_steps=120, learning_rate=0.01, n_warm_up=40, last_rate=0.2)
    # The cosine falls from 1 to 0: 3/4 after a third, 1/2 after a half, 1/4 after two thirds.
    expected = {
        0: 0.0,
        20: 0.01 * 0.5 * (0.2 + 0.8 * (1 + math.cos(math.pi / 6)) / 2),
        40: 0.01 * (0.2 + 0.8 * 0.75),
        60: 0.01 * (0.2 + 0.8 * 0.5),
        80: 0.01 * (0.2 + 0.8 * 0.25),
        120: 0.01 * 0.2,
    }
    assert_allclose([recipe.rate(step) for step in expected], [*expected.values()], atol=1e-16)
    rates = [recipe.rate(step) for step in range(121)]
    assert rates == sorted(rates[:41]) + sorted(rates[41:], reverse=True)


def test_a_recipe_says_how_it_warms_up_and_cools_down():
    recipe = Recipe(n_steps=1000, learning_rate=0.01)
    assert_allclose(recipe.rate(10) / recipe.rate(20), 0.5, rtol=1e-3)  # 20 steps of warm-up
    assert_allclose(recipe.rate(1000), 0.02 * 0.01, rtol=1e-12)
    assert (recipe.n_sequences, recipe.largest_norm) == (32, 1.0)


@pytest.mark.parametrize("integer", [np.int8, np.uint64, np.array])
def test_any_integer_type_counts_steps(integer):
    recipe = Recipe(integer(7), 0.01, n_sequences=integer(3), n_warm_up=integer(2))
    assert recipe == Recipe(7, 0.01, n_sequences=3, n_warm_up=2)


# --- the loop -------------------------------------------------------------------------------


class Recorder:
    """A task that keeps the batches that it gave."""

    def __init__(self, task):
        self.task, self.batches = task, []

    def batch(self, rng, n_sequences):
        """Return a batch of the task, and keep it."""
        self.batches.append(self.task.batch(rng, n_sequences))
        return self.batches[-1]


JOBS = ThreeJobs(n=5, n_symbols=3)


def small_model(seed=0):
    """Return a model of 2 heads for three small jobs."""
    return TokenModel(JOBS, d=14, n_heads=2, seed=seed)


def copies(model):
    """Return copies of a model's parameters."""
    return {name: parameter.copy() for name, parameter in model.parameters.items()}


@pytest.mark.parametrize("largest_norm", [0.1, 1e6])
def test_fit_is_forward_loss_backward_clip_and_step(largest_norm):
    recipe = Recipe(7, 0.03, n_sequences=11, n_warm_up=3, largest_norm=largest_norm)
    model, task = small_model(), Recorder(JOBS)
    history = fit(model, task, recipe, seed=5)
    other = small_model()
    adam = Adam(other.parameters)
    assert len(history.losses) == len(history.measures) == len(task.batches) == 7
    norms = []
    for step, batch in enumerate(task.batches, start=1):
        loss, d_logits, shares = other.loss(other.forward(batch), batch)
        assert history.losses[step - 1] == loss  # of that step's batch, before the step
        assert_array_equal(history.measures[step - 1], shares)
        other.backward(d_logits)
        norms.append(clip_gradients(other.gradients, largest_norm))
        adam.step(other.gradients, recipe.rate(step))
    assert (min(norms) > largest_norm) == (largest_norm < 1)  # clipping did something, or nothing
    for name, parameter in model.parameters.items():
        assert_array_equal(parameter, other.parameters[name])
    assert history.snapshots == {}


def test_a_seed_fixes_training_and_another_seed_gives_other_batches():
    recipe = Recipe(5, 0.02, n_sequences=11)
    one, same, other = (fit(small_model(), JOBS, recipe, seed).losses for seed in (5, 5, 7))
    assert one == same
    assert all(a != b for a, b in zip(one, other, strict=True))


def test_every_step_draws_a_new_batch_of_the_right_size():
    task = Recorder(JOBS)
    fit(small_model(), task, Recipe(7, 0.02, n_sequences=11), seed=0)
    tokens = {batch.tokens.tobytes() for batch in task.batches}
    assert len(tokens) == 7
    assert {batch.tokens.shape for batch in task.batches} == {(11, 5)}


@pytest.mark.parametrize("seed", [0, 7, 99])
@pytest.mark.parametrize("task", [MarkedAndMean(), ThreeJobs(), RepeatedSequence()])
def test_no_batch_is_what_the_plain_seed_draws(seed, task):
    # Data to choose and to report on are drawn from plain seeds.
    recorder = Recorder(task)
    model = (
        VectorModel(task, 2, 0) if isinstance(task, MarkedAndMean) else TokenModel(task, 4, 2, 0)
    )
    fit(model, recorder, Recipe(3, 0.01, n_sequences=64), seed)
    plain = task.batch(np.random.default_rng(seed), 64)
    for batch in recorder.batches:
        same = (batch.targets == plain.targets).all(axis=(1, 2))
        assert same.mean() < 0.05  # a short sequence may come twice by chance


def test_snapshots_are_taken_when_they_should_be():
    n_seen = []

    def watch(model):
        n_seen.append(len(n_seen))
        return copies(model)

    task, model = Recorder(JOBS), small_model()
    before = copies(model)
    recipe = Recipe(5, 0.02, n_sequences=11)
    history = fit(model, task, recipe, 0, watch=watch, watch_at=[5, 0, 3, 3])
    assert sorted(history.snapshots) == [0, 3, 5]
    assert len(n_seen) == 3
    for name, parameter in model.parameters.items():
        assert_array_equal(history.snapshots[0][name], before[name])
        assert_array_equal(history.snapshots[5][name], parameter)
    # After three steps, the fourth batch has the loss that the history says.
    other = small_model()
    for name, parameter in history.snapshots[3].items():
        other.parameters[name] = parameter
    assert other.evaluate(task.batches[3])[0] == history.losses[3]


def test_snapshots_do_not_disturb_training():
    recipe = Recipe(5, 0.02, n_sequences=11)
    watched, plain = small_model(), small_model()
    data = JOBS.batch(np.random.default_rng(3), 7)
    fit(watched, JOBS, recipe, 0, watch=lambda model: model.evaluate(data), watch_at=range(6))
    fit(plain, JOBS, recipe, 0)
    for name, parameter in plain.parameters.items():
        assert_array_equal(watched.parameters[name], parameter)


def test_progress_wraps_the_steps():
    seen = []

    def progress(steps):
        assert len(steps) == 5  # a progress bar must know how many there are
        for step in steps:
            seen.append(step)
            yield step

    history = fit(small_model(), JOBS, Recipe(5, 0.02), 0, progress=progress)
    assert seen == [1, 2, 3, 4, 5]
    assert len(history.losses) == 5


@pytest.mark.parametrize("rate", [1e60, 1e100, 1e160, 1e300])
@pytest.mark.parametrize(
    ("model", "task"),
    [
        (lambda: small_model(), JOBS),
        (lambda: TokenModel(JOBS, 14, 2, 0, n_layers=2), JOBS),
        (lambda: VectorModel(MarkedAndMean(), 2, 0), MarkedAndMean()),
    ],
    ids=["one layer", "two layers", "vectors"],
)
def test_training_that_diverges_stops_and_keeps_what_was_learned_before(rate, model, task):
    model, seen = model(), []
    recipe = Recipe(20, rate, n_warm_up=1)
    with pytest.raises(ValueError, match=r"diverged at step \d+.*use a learning_rate below"):
        fit(model, task, recipe, 0, watch=lambda m: seen.append(copies(m)), watch_at=range(20))
    assert 2 <= len(seen) < 20  # before training, and after every step that was taken
    for name, parameter in model.parameters.items():
        assert_array_equal(parameter, seen[-1][name])
        assert np.isfinite(parameter).all()


def test_a_model_that_is_broken_from_the_start_is_not_said_to_diverge():
    model = small_model()
    model.parameters["unembedding"][0, 0] = np.nan
    with pytest.raises(ValueError, match=r"'unembedding'. holds inf or NaN"):
        fit(model, JOBS, Recipe(5, 0.02), 0)


# --- numbers near the ends of the range -------------------------------------------------------


def test_places_that_do_not_count_do_not_spoil_the_loss():
    loss, d_logits = cross_entropy([[1.7e308, -1.7e308], [0, 0]], [1, 0], [False, True])
    assert_allclose(loss, math.log(2))
    assert_allclose(d_logits, [[0, 0], [-0.5, 0.5]])
    loss, d_outputs = squared_error([[1.7e308, 3.0]], [[-1.7e308, 1.0]], [0.0, 1.0])
    assert loss == 2.0
    assert_allclose(d_outputs, [[0.0, 2.0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-30, 1e-22, 1e-15, 1.0, 1e20, 1e37])
@pytest.mark.parametrize("largest", [1e-25, 1.0, 1e22])
def test_gradients_of_any_size_are_clipped_to_their_length(dtype, size, largest):
    gradients = {"w": np.array([3, 0], dtype) * dtype(size), "v": np.array([[4]], dtype)}
    gradients["v"] *= dtype(size)
    assert_allclose(clip_gradients(gradients, largest), 5 * size, rtol=1e-6)
    length = min(5 * size, largest)
    assert_allclose(gradients["w"], [0.6 * length, 0], rtol=1e-6)
    assert_allclose(gradients["v"], [[0.8 * length]], rtol=1e-6)
    assert gradients["w"].dtype == dtype


def test_gradients_longer_than_any_float_are_clipped_too():
    gradients = {"w": np.full(4, 1.5e308)}
    assert clip_gradients(gradients, 1.0) == np.inf
    assert_allclose(gradients["w"], np.full(4, 0.5))
    assert clip_gradients({}, 1.0) == clip_gradients({"w": np.zeros(3)}, 1.0) == 0.0


@pytest.mark.parametrize(
    ("gradient", "rate"),
    [(1e200, 0.1), (np.nan, 0.1), (1.0, np.nan), (1.0, "0.1"), ([1.0, 2.0], 0.1), (1.0, 1.7e308)],
)
def test_adam_changes_nothing_before_it_refuses(gradient, rate):
    w, v = np.array([1.0]), np.array([2.0, 1e308])
    asked, other = Adam({"v": v, "w": w}), Adam({"v": v.copy(), "w": w.copy()})
    for adam in (asked, other):
        adam.step({"v": np.array([0.5, -0.5]), "w": np.array([0.5])}, 0.1)
    before = {name: p.copy() for name, p in asked.parameters.items()}
    with pytest.raises((TypeError, ValueError)):
        asked.step({"v": np.array([1.0, -1.0]), "w": np.atleast_1d(gradient)}, rate)
    for name, parameter in asked.parameters.items():
        assert_array_equal(parameter, before[name])
    for adam in (asked, other):  # the running means are those of one that was not asked
        adam.step({"v": np.array([-1.0, 2.0]), "w": np.array([1.0])}, 0.1)
    for name in before:
        assert_array_equal(asked.parameters[name], other.parameters[name])


def test_adam_takes_lists_and_tiny_gradients():
    w = np.array([1.0, 1.0])
    Adam({"w": w}).step({"w": [1e-200, 0]}, 0.1)
    assert_allclose(w, [1.0, 1.0])
