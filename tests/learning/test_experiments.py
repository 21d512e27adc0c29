"""The trained models of the book, made small."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mha_lib.learning import experiments
from mha_lib.learning.experiments import (
    REPORTING_SEED,
    TUNING_SEED,
    mean_rows,
    run_induction,
    run_marked_and_mean,
    run_three_jobs,
    snapshot,
    snapshot_steps,
)
from mha_lib.learning.importance import gradient_by_job
from mha_lib.learning.models import TokenModel, VectorModel
from mha_lib.learning.roles import chance_scores, head_roles, head_scores
from mha_lib.learning.tasks import MarkedAndMean, RepeatedSequence, ThreeJobs, TokenBatch
from mha_lib.learning.train import History, cross_entropy
from tests.gradients import STEP

pytestmark = pytest.mark.filterwarnings("error")
B = 13
VECTORS = MarkedAndMean(n=5, width=3, d=14)
JOBS = ThreeJobs(n=5, n_symbols=3)
REPEATED = RepeatedSequence(n=11, n_symbols=7, shortest=3, longest=5)
MODELS = {
    "vectors": (VECTORS, lambda: VectorModel(VECTORS, 7, 0)),
    "three jobs": (JOBS, lambda: TokenModel(JOBS, 14, 7, 0, n_layers=2)),
    "repeated sequence": (
        REPEATED,
        lambda: TokenModel(REPEATED, 12, 3, 0, n_layers=2, positions="rotary", causal=True),
    ),
}
RUNS = {
    "marked and mean": lambda seed=0: run_marked_and_mean(2, seed, n=5, n_steps=3),
    "three jobs": lambda seed=0: run_three_jobs(2, seed, d=6, n_steps=3, n_snapshots=3),
    "induction": lambda seed=0: run_induction(3, seed, d=12, n_steps=3, n_snapshots=3),
}


@pytest.fixture(params=MODELS)
def model_and_batch(rng, request):
    """Return each of the models above, and a batch of its task."""
    task, make = MODELS[request.param]
    return make(), task.batch(rng, B)


# --- scores ---------------------------------------------------------------------------------


def expected_scores(weights, batch, causal):
    """Return the scores of one head's weights, (B, n, n), from slow loops."""
    n_sequences, n, _ = weights.shape
    scores = {"previous token": [], "entropy": [], "marked token": [], "induction": []}
    for b, i in np.ndindex(n_sequences, n):
        row = weights[b, i]
        if i > 0:
            scores["previous token"].append(row[i - 1])
        allowed = row[: i + 1] if causal else row
        if len(allowed) > 1:
            share = -np.sum(allowed * np.log(allowed)) / np.log(len(allowed))
            scores["entropy"].append(share)
        if batch.marked is not None:
            scores["marked token"].append(row[batch.marked[b]])
        if getattr(batch, "period", None) is not None and i >= batch.period[b]:
            tokens = batch.tokens[b]
            hits = [j for j in range(1, i + 1) if tokens[j - 1] == tokens[i]]
            scores["induction"].append(sum(row[hits]))
    return {role: np.mean(values) for role, values in scores.items() if values}


def test_scores_agree_with_slow_loops(model_and_batch):
    model, batch = model_and_batch
    scores = head_scores(model, batch)
    model.forward(batch)
    for i, layer in enumerate(model.layers):
        for head in range(layer.n_heads):
            expected = expected_scores(layer.weights[:, head], batch, layer.causal)
            assert scores.keys() == expected.keys()
            for role, value in expected.items():
                assert_allclose(scores[role][i, head], value, rtol=1e-12)
    for role in scores:
        assert scores[role].shape == (len(model.layers), model.layers[0].n_heads)


def test_scores_without_a_head_are_those_of_the_others_without_it(rng):
    model = TokenModel(JOBS, 14, 7, 0, n_layers=2)
    batch = JOBS.batch(rng, B)
    gates = np.ones((2, 7))
    gates[0, 3] = 0.0
    scores, all_there = head_scores(model, batch, gates), head_scores(model, batch)
    model.layers[0].parameters["w_o"][6:8] = 0.0  # what head 4 puts out
    for role, expected in head_scores(model, batch).items():
        assert_allclose(scores[role], expected, rtol=1e-12)
        assert (scores[role][1] != all_there[role][1]).all()  # layer 2 sees what is missing


def test_chance_is_what_even_heads_score(model_and_batch):
    model, batch = model_and_batch
    for layer in model.layers:
        layer.parameters["w_q"][...] = 0.0  # all scores are 0, so that weights are even
    chance = chance_scores(model, batch)
    scores = head_scores(model, batch)
    assert scores.keys() == chance.keys()
    for role, value in chance.items():
        assert_allclose(scores[role], value, rtol=1e-12)


@pytest.mark.parametrize("name", ["vectors", "three jobs"])
def test_mean_rows_agree_with_slow_loops(rng, name):
    task, make = MODELS[name]
    model, batch = make(), task.batch(rng, B)
    rows = mean_rows(model, batch)
    weights = model.layers[0].weights
    expected = np.zeros((7, 5))
    for b, head, i, j in np.ndindex(B, 7, 5, 5):
        expected[head, (j - batch.marked[b]) % 5] += weights[b, head, i, j] / (B * 5)
    assert_allclose(rows, expected, rtol=1e-12)


def test_heads_are_named_after_scores_that_clearly_lead():
    scores = {
        "previous token": np.array([[0.51, 0.5, 0.7, 0.1, 0.6]]),
        "marked token": np.array([[0.2, 0.5, 0.8, 0.1, 0.1]]),
        "entropy": np.array([[0.1, 0.9, 0.1, 0.91, 0.95]]),
    }
    expected = [["previous token", "", "marked token", "broad", "previous token"]]
    assert head_roles(scores).tolist() == expected


def test_a_snapshot_is_what_the_model_does_now(model_and_batch):
    model, batch = model_and_batch
    now = snapshot(model, batch)
    loss, measures = model.evaluate(batch)
    assert now.loss == loss
    assert_array_equal(now.measures, measures)
    scores = head_scores(model, batch)
    assert now.scores.keys() == scores.keys()
    for role, values in scores.items():
        assert_array_equal(now.scores[role], values)
    kept = now.weights.copy()
    for i, layer in enumerate(model.layers):
        assert_array_equal(kept[i], layer.weights[0])
        layer.parameters["w_q"][...] = 0.0
    assert (snapshot(model, batch).weights != kept).any()
    assert_array_equal(now.weights, kept)  # later training does not reach it


def test_the_gradient_by_job_is_that_of_each_jobs_own_loss(rng):
    model, batch = TokenModel(JOBS, 6, 3, 0, n_layers=2), JOBS.batch(rng, 13)

    def part(b, job, gates):
        alone = TokenBatch(
            **{k: None if a is None else a[b : b + 1] for k, a in vars(batch).items()}
        )
        logits = model.forward(alone, gates)[:, :, job : job + 1]
        counted = alone.counted[..., job : job + 1]
        if not counted.any():
            return 0.0
        loss, _ = cross_entropy(logits, alone.targets[..., job : job + 1], counted)
        return loss * counted.sum() / batch.counted[..., job].sum()

    losses, importance = gradient_by_job(model, batch)
    gates = np.ones((2, 3))
    for job in range(3):
        assert_allclose(losses[job], sum(part(b, job, gates) for b in range(13)), rtol=1e-12)
        for head in np.ndindex(2, 3):
            move = np.zeros((2, 3))
            move[head] = STEP
            slopes = [
                (part(b, job, gates + move) - part(b, job, gates - move)) / (2 * STEP)
                for b in range(13)
            ]
            assert_allclose(importance[job][head], np.abs(slopes).sum(), rtol=1e-6)


@pytest.mark.parametrize(
    ("n_steps", "n_snapshots", "expected"),
    [
        (300, 4, [0, 33, 133, 300]),
        (7, 2, [0, 7]),
        (10, 4, [0, 1, 4, 10]),
        (3, 23, [0, 1, 2, 3]),  # there are not more moments than these
    ],
)
def test_snapshots_run_from_first_to_last_and_lie_dense_at_first(n_steps, n_snapshots, expected):
    assert snapshot_steps(n_steps, n_snapshots) == expected


# --- runs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RUNS)
def test_heads_are_chosen_and_reported_on_different_data_of_the_same_task(name):
    run = RUNS[name]()
    n_sequences = len(run.tuning.targets)
    assert TUNING_SEED != REPORTING_SEED
    for batch, seed in ((run.tuning, TUNING_SEED), (run.reporting, REPORTING_SEED)):
        expected = run.task.batch(np.random.default_rng(seed), n_sequences)
        assert_array_equal(batch.targets, expected.targets)
    same = (run.tuning.targets == run.reporting.targets).all(axis=(1, 2))
    assert not same.any()


@pytest.mark.parametrize("name", RUNS)
def test_a_seed_fixes_a_run_and_another_seed_gives_another(name):
    one, same, other = (RUNS[name](seed) for seed in (5, 5, 7))
    assert one.history.losses == same.history.losses
    assert len(one.history.losses) == len(one.history.measures) == 3
    assert all(a != b for a, b in zip(one.history.losses, other.history.losses, strict=True))
    for key, parameter in one.model.parameters.items():
        assert_array_equal(parameter, same.model.parameters[key])
        assert key == "marker" or (parameter != other.model.parameters[key]).any()
    for one_batch, other_batch in ((one.tuning, other.tuning), (one.reporting, other.reporting)):
        assert_array_equal(one_batch.targets, other_batch.targets)  # all seeds compete on the same


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("seed", [0, 5])
def test_the_seed_is_that_of_the_initial_weights_and_of_the_batches(monkeypatch, name, seed):
    asked = []

    def fit(model, task, recipe, seed, **options):
        asked.append(({key: p.copy() for key, p in model.parameters.items()}, seed))
        return History()

    monkeypatch.setattr(experiments, "fit", fit)
    run = RUNS[name](seed)
    first = run.model.layers[0]
    expected = (
        VectorModel(run.task, first.n_heads, seed)
        if isinstance(run.model, VectorModel)
        else TokenModel(
            run.task, first.d, first.n_heads, seed, n_layers=len(run.model.layers),
            positions="rotary" if first.rotary else "learned", causal=first.causal,
        )
    )  # fmt: skip
    ((parameters, batch_seed),) = asked
    assert batch_seed == seed
    assert parameters.keys() == expected.parameters.keys()
    for key, parameter in parameters.items():
        assert_array_equal(parameter, expected.parameters[key])


@pytest.mark.parametrize("name", ["three jobs", "induction"])
def test_snapshots_show_the_reporting_data_from_first_to_last(name):
    run = RUNS[name]()
    assert sorted(run.history.snapshots) == snapshot_steps(3, 3)
    last, now = run.history.snapshots[3], snapshot(run.model, run.reporting)
    assert last.loss == now.loss
    assert_array_equal(last.weights, now.weights)
    first = run.history.snapshots[0]
    assert first.loss != last.loss
    # Before the first step, the model of the same seed stands there.
    untrained = TokenModel(
        run.task, run.model.layers[0].d, run.model.layers[0].n_heads, 0,
        n_layers=len(run.model.layers), causal=run.model.layers[0].causal,
        positions="rotary" if run.model.layers[0].rotary else "learned",
    )  # fmt: skip
    assert first.loss == untrained.evaluate(run.reporting)[0]


def test_a_run_learns_the_jobs_that_are_asked_for():
    run = run_three_jobs(2, d=6, n_steps=2, jobs=("most common", "previous"))
    assert run.task.jobs == ("most common", "previous")
    assert len(run.model.evaluate(run.reporting)[1]) == len(run.history.measures[-1]) == 2


def test_the_learning_rate_rises_over_as_many_steps_as_are_asked_for():
    slow, fast, usual, fifty = (
        run_induction(2, d=8, n_steps=3, **warm_up).history.losses
        for warm_up in ({"n_warm_up": 3}, {"n_warm_up": 1}, {}, {"n_warm_up": 50})
    )
    assert slow[0] == fast[0]  # before the first step
    assert slow[1] != fast[1]
    assert usual == fifty != slow


@pytest.mark.parametrize("name", RUNS)
def test_progress_is_told_of_every_step(name):
    seen = []

    def progress(steps):
        for step in steps:
            seen.append(step)
            yield step

    {
        "marked and mean": run_marked_and_mean,
        "three jobs": run_three_jobs,
        "induction": run_induction,
    }[name](2, n_steps=3, progress=progress)
    assert seen == [1, 2, 3]


def test_runs_are_of_the_models_that_the_book_describes():
    model = RUNS["marked and mean"]().model
    assert isinstance(model, VectorModel)
    assert_array_equal(model.parameters["w_v"][6], 0.0)  # the marker's row
    seeing = run_marked_and_mean(2, n_steps=1, marker_in_values=True).model
    assert (seeing.parameters["w_v"][6] != 0).all()
    jobs, induction = RUNS["three jobs"]().model.layers, RUNS["induction"]().model.layers
    assert [(layer.rotary, layer.causal, "positions" in layer.parameters) for layer in jobs] == [
        (False, False, True)
    ]
    assert [(layer.rotary, layer.causal) for layer in induction] == [(True, True), (True, True)]


def test_importance_says_which_job_the_loss_is_about():
    fetch, average = (run_marked_and_mean(1, n=5, n_steps=60, importance=i) for i in (1.0, 0.0))
    one, other = (run.model.evaluate(run.reporting) for run in (fetch, average))
    assert_allclose([one[0], other[0]], [one[1][0], other[1][1]], rtol=1e-12)
    assert one[1][0] < other[1][0]
    assert one[1][1] > other[1][1]


def test_near_tokens_are_those_of_the_task():
    run = run_marked_and_mean(2, n=7, n_near=3, n_steps=1)
    assert run.task == MarkedAndMean(n=7, n_near=3)
    assert run.reporting.marked.max() < 4


def test_one_head_stops_at_its_bound_and_two_heads_pass_it():
    # The bound of the two errors' sum is 1 - 1 / sqrt(n), here 1/2.
    one, two = (run_marked_and_mean(n_heads, n=4, n_steps=300) for n_heads in (1, 2))
    errors = [run.model.evaluate(run.reporting)[1].sum() for run in (one, two)]
    assert 0.48 < errors[0] < 0.55  # 2,048 sequences may let it look 0.02 better than it can be
    assert errors[1] < 0.05


def test_the_three_jobs_are_learned_and_so_is_induction():
    for run in (run_three_jobs(d=32, n_steps=150), run_induction(2, n_steps=120)):
        _, shares = run.model.evaluate(run.reporting)
        assert (shares > 0.85).all()
        assert (shares > run.task.chance + 0.5).all()
        chance = chance_scores(run.model, run.reporting)
        scores = head_scores(run.model, run.reporting)
        role = "marked token" if isinstance(run.task, ThreeJobs) else "induction"
        assert scores[role].max() > 0.8 > chance[role] + 0.5  # some head took that role
