"""Head scores, and what happens as heads are removed."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mha_lib import causal_mask, padding_mask, softmax
from mha_lib.learning.importance import gradient_importance, path_importance, spearman
from mha_lib.learning.models import TokenModel, VectorModel
from mha_lib.learning.pruning import (
    greedy_order,
    losses_without,
    order_by,
    pruning_curve,
    study_pruning,
    subset_curves,
)
from mha_lib.learning.roles import (
    attention_mass,
    chance_mass,
    induction_targets,
    marked_token,
    normalised_entropy,
    previous_token,
)
from mha_lib.learning.tasks import (
    MarkedAndMean,
    RepeatedSequence,
    ThreeJobs,
    TokenBatch,
    VectorBatch,
)
from mha_lib.learning.train import cross_entropy
from tests.gradients import STEP

pytestmark = pytest.mark.filterwarnings("error")
B, H, TQ, TK = 2, 3, 5, 7


@pytest.fixture
def weights(rng):
    """Return attention weights (B, H, TQ, TK)."""
    return softmax(rng.normal(scale=2, size=(B, H, TQ, TK)))


# --- attention mass -------------------------------------------------------------------------


def test_a_mass_worked_out_by_hand():
    # Two heads, two queries, three keys; the first query has two targets, the second one.
    weights = [[[0.5, 0.25, 0.25], [0, 0, 1]], [[0.125, 0.75, 0.125], [0.5, 0.5, 0]]]
    targets = np.array([[True, True, False], [False, False, True]])
    assert_array_equal(attention_mass(weights, targets), [(0.75 + 1) / 2, (0.875 + 0) / 2])
    assert_array_equal(attention_mass(weights, targets, [False, True]), [1.0, 0.0])


@pytest.mark.parametrize("targets_shape", [(TK,), (TQ, TK), (TQ, 1), (B, TQ, TK), (B, 1, TK)])
@pytest.mark.parametrize("rows_shape", [None, (), (TQ,), (B, TQ), (B, 1)])
def test_the_mass_agrees_with_slow_loops(rng, weights, targets_shape, rows_shape):
    targets = rng.random(targets_shape) < 0.4
    rows = None if rows_shape is None else rng.random(rows_shape) < 0.6
    if rows is not None and not rows.any():
        rows = ~rows
    all_targets = np.broadcast_to(targets, (B, TQ, TK))
    all_rows = all_targets.any(axis=-1) if rows is None else np.broadcast_to(rows, (B, TQ))
    expected = []
    for h in range(H):
        masses = []
        for b, i in np.ndindex(B, TQ):
            if all_rows[b, i]:
                masses.append(sum(weights[b, h, i, j] for j in range(TK) if all_targets[b, i, j]))
        expected.append(np.mean(masses))
    assert_allclose(attention_mass(weights, targets, rows), expected, rtol=1e-12)


def test_leading_axes_of_the_mass_may_be_none_or_many(rng):
    weights, targets = (
        softmax(rng.normal(size=(2, 11, H, TQ, TK))),
        rng.random((2, 11, TQ, TK)) < 0.4,
    )
    flat = attention_mass(weights.reshape(22, H, TQ, TK), targets.reshape(22, TQ, TK))
    assert_allclose(attention_mass(weights, targets), flat, rtol=1e-13)
    one = attention_mass(weights[0, 0], targets[0, 0])
    assert_allclose(one, attention_mass(weights[0, :1], targets[0, :1]), rtol=1e-13)


@pytest.mark.parametrize("mask_shape", [None, (), (TK,), (TQ, TK), (B, 1, TK), (B, TQ, TK)])
@pytest.mark.parametrize("targets_shape", [(TQ, TK), (B, TQ, TK)])
@pytest.mark.parametrize("asked", [False, True])
def test_chance_is_the_mass_of_even_weights(rng, mask_shape, targets_shape, asked):
    targets = rng.random(targets_shape) < 0.4
    mask = None if mask_shape is None else rng.random(mask_shape) < 0.7
    if mask is not None and mask.shape[-2:] == (TQ, TK):
        mask[..., 3, :] = False  # a query that may look nowhere: its mass is 0
    rows = np.array([False, True, True, True, False]) if asked else None
    all_mask = np.broadcast_to(True if mask is None else mask, (B, TQ, TK))
    all_targets = np.broadcast_to(targets, (B, TQ, TK))
    all_rows = all_targets.any(axis=-1) if rows is None else np.broadcast_to(rows, (B, TQ))
    masses = []
    for b, i in np.ndindex(B, TQ):
        if all_rows[b, i]:
            allowed = [j for j in range(TK) if all_mask[b, i, j]]
            hits = sum(all_targets[b, i, j] for j in allowed)
            masses.append(hits / len(allowed) if allowed else 0.0)
    assert_allclose(chance_mass(targets, mask, rows), np.mean(masses), rtol=1e-12)


def test_chance_of_the_previous_token_worked_out_by_hand():
    assert_allclose(chance_mass(previous_token(5)), 1 / 5, rtol=1e-14)
    # With a causal mask, the queries 1 to 4 choose among 2, 3, 4 and 5 keys.
    expected = (1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 4
    assert_allclose(chance_mass(previous_token(5), causal_mask(5)), expected, rtol=1e-14)


# --- targets --------------------------------------------------------------------------------


def test_the_previous_token_stands_one_before():
    targets = previous_token(TQ)
    for i, j in np.ndindex(TQ, TQ):
        assert targets[i, j] == (j == i - 1)


def test_everyone_looks_for_the_marked_token():
    marked = [3, 0]
    targets = marked_token(marked, TQ)
    assert targets.shape == (B, TQ, TQ)
    for b, i, j in np.ndindex(B, TQ, TQ):
        assert targets[b, i, j] == (j == marked[b])
    assert_array_equal(marked_token(3, TQ), targets[0])


def test_induction_looks_behind_earlier_occurrences(rng):
    tokens = rng.integers(3, size=(B, 11))
    targets = induction_targets(tokens)
    assert targets.shape == (B, 11, 11)
    for b, i, j in np.ndindex(B, 11, 11):
        assert targets[b, i, j] == (1 <= j <= i and tokens[b, j - 1] == tokens[b, i])
    assert_array_equal(induction_targets(tokens[1]), targets[1])


def test_in_a_repeated_block_induction_finds_the_next_symbol(rng):
    batch = RepeatedSequence(n=11, n_symbols=7, shortest=3, longest=5).batch(rng, 13)
    targets = induction_targets(batch.tokens)
    for b, i, j in zip(*np.nonzero(targets), strict=True):
        assert batch.tokens[b, j] == batch.targets[b, i, 0]
    assert_array_equal(targets.any(axis=-1), batch.counted[..., 0])


# --- entropy --------------------------------------------------------------------------------


def test_an_entropy_worked_out_by_hand():
    # 1/2, 1/4, 1/4 has 1.5 bits of the ln 3 / ln 2 that it could have; 1/2, 1/2, 0 has 1 bit.
    weights = [[[0.5, 0.25, 0.25], [0.5, 0.5, 0.0]], [[0.0, 1.0, 0.0], [1 / 3, 1 / 3, 1 / 3]]]
    most = math.log2(3)
    assert_allclose(normalised_entropy(weights), [(1.5 + 1) / 2 / most, 1 / 2], rtol=1e-14)


@pytest.mark.parametrize("mask_shape", [None, (TK,), (TQ, TK), (H, 1, TK), (B, 1, TQ, TK)])
def test_the_entropy_agrees_with_slow_loops(rng, mask_shape):
    mask = np.ones(TK, bool) if mask_shape is None else rng.random(mask_shape) < 0.6
    mask[..., :2] = True  # some choice for every head
    if mask.shape[-2:] == (TQ, TK):
        mask[..., 2, :] = np.arange(TK) == 4  # a query without a choice
        mask[..., 3, :] = False
    scores = np.where(mask, rng.normal(size=(B, H, TQ, TK)), -np.inf)
    weights, mask = softmax(scores), np.broadcast_to(mask, scores.shape)
    expected = []
    for h in range(H):
        shares = []
        for b, i in np.ndindex(B, TQ):
            row = [weights[b, h, i, j] for j in range(TK) if mask[b, h, i, j]]
            if len(row) > 1:
                shares.append(-sum(w * math.log(w) for w in row) / math.log(len(row)))
        expected.append(np.mean(shares))
    found = normalised_entropy(weights, None if mask_shape is None else mask)
    assert_allclose(found, expected, rtol=1e-12)
    assert ((found > 0) & (found < 1)).all()


def test_a_head_is_broad_within_what_its_mask_allows():
    mask = causal_mask(TQ)
    even = mask / mask.sum(axis=-1, keepdims=True)
    assert_allclose(normalised_entropy(even[None], mask), [1.0], rtol=1e-14)
    assert normalised_entropy(even[None])[0] < 0.8
    assert_array_equal(normalised_entropy(np.eye(TQ)[None], mask), [0.0])


def test_scores_leave_read_only_arrays_in_any_memory_order_alone(rng, weights, awkward):
    targets, rows, mask = rng.random((B, TQ, TK)) < 0.4, np.ones((B, TQ), bool), np.ones(TK, bool)
    for score, arguments in (
        (attention_mass, (weights, targets, rows)),
        (chance_mass, (targets, mask, rows)),
        (normalised_entropy, (weights, mask)),
        (induction_targets, (rng.integers(3, size=(B, TQ)),)),
    ):
        assert_allclose(score(*map(awkward, arguments)), score(*arguments), rtol=1e-13)


# --- orders ---------------------------------------------------------------------------------


class MadeUp:
    """A made-up model: heads (0, 0) and (1, 1) can stand in for each other, the others add up."""

    shape = (2, 3)
    alone = np.array([[0.0, 3.0, 1.0], [2.0, 0.0, 4.0]])

    def __init__(self):
        self.asked = []

    def evaluate(self, gates):
        """Return a loss of at most 15, and two results with the mean 15 - loss."""
        self.asked.append(gates)
        gain = np.sum(self.alone * gates) + 5 * max(gates[0, 0], gates[1, 1])
        return 15 - gain, np.array([gain - 1, gain + 1])


def test_losses_without_each_head_that_is_left():
    gates = np.ones((2, 3))
    losses = losses_without(MadeUp().evaluate, gates)
    assert_array_equal(losses, [[0.0, 3.0, 1.0], [2.0, 0.0, 4.0]])
    assert_array_equal(gates, 1.0)
    gates[0, 0] = gates[1, 0] = 0.0
    losses = losses_without(MadeUp().evaluate, gates)
    assert_array_equal(losses, [[np.nan, 5.0, 3.0], [np.nan, 7.0, 6.0]])


def test_the_greedy_order_keeps_one_of_two_heads_that_can_replace_each_other():
    greedy = greedy_order(MadeUp().evaluate, (2, 3))
    # The first of the two can be spared, the second is worth 5 and goes last.
    assert_array_equal(greedy, [[0, 0], [0, 2], [1, 0], [0, 1], [1, 2], [1, 1]])
    ablation = order_by(losses_without(MadeUp().evaluate, np.ones((2, 3))))
    assert_array_equal(ablation[:2], [[0, 0], [1, 1]])  # both are missed by nobody, so both go
    one, other = (pruning_curve(MadeUp().evaluate, o, (2, 3)) for o in (greedy, ablation))
    assert_array_equal(one, [15, 15, 14, 12, 9, 5, 0])
    assert_array_equal(other, [15, 15, 10, 9, 7, 4, 0])


def test_the_greedy_order_asks_for_each_removal_and_changes_nothing_that_it_showed():
    made_up = MadeUp()
    greedy_order(made_up.evaluate, (2, 3))
    assert [gates.sum() for gates in made_up.asked] == [5] * 6 + [4] * 5 + [3] * 4 + [2] * 3 + [
        1, 1, 0,
    ]  # fmt: skip


def test_the_pruning_curve_shows_gates_that_stay_as_they_were():
    made_up = MadeUp()
    pruning_curve(made_up.evaluate, order_by(made_up.alone), (2, 3))
    assert [gates.sum() for gates in made_up.asked] == [6, 5, 4, 3, 2, 1, 0]


def test_an_infinite_loss_is_the_worst():
    def evaluate(gates):
        return (np.inf if gates[0, 0] == 0 else 1.0), None

    assert_array_equal(greedy_order(evaluate, (1, 3)), [[0, 1], [0, 2], [0, 0]])


def test_heads_are_ordered_from_the_least_important_and_ties_stay_as_they_stand():
    assert_array_equal(
        order_by([[3, 1, -2], [1, 0, 5]]), [[0, 2], [1, 1], [0, 1], [1, 0], [0, 0], [1, 2]]
    )


def test_every_choice_of_heads_is_tried_once():
    made_up = MadeUp()
    curves = subset_curves(made_up.evaluate, (2, 3))
    assert len({gates.tobytes() for gates in made_up.asked}) == len(made_up.asked) == 64
    expected = [[] for _ in range(7)]
    for removed in range(7):
        for heads in itertools.combinations(np.ndindex(2, 3), removed):
            gates = np.ones((2, 3))
            for head in heads:
                gates[head] = 0.0
            expected[removed].append(made_up.evaluate(gates)[1].mean())
    assert [len(some) for some in expected] == [1, 6, 15, 20, 15, 6, 1]
    for row, of in zip(curves, (np.mean, min, max), strict=True):
        assert_allclose(row, [of(some) for some in expected], rtol=1e-14)


def test_removing_heads_blindly_gets_the_mean_of_all_choices_on_average(rng):
    made_up = MadeUp()
    curves = [
        pruning_curve(made_up.evaluate, order_by(rng.random((2, 3))), (2, 3)) for _ in range(2048)
    ]
    mean, least, greatest = subset_curves(made_up.evaluate, (2, 3))
    errors = np.std(curves, axis=0) / np.sqrt(2048)
    assert (np.abs(np.mean(curves, axis=0) - mean) <= 4 * errors).all()
    assert_array_equal(np.min(curves, axis=0), least)
    assert_array_equal(np.max(curves, axis=0), greatest)


# --- importance -----------------------------------------------------------------------------

VECTORS, JOBS = MarkedAndMean(n=5, width=3, d=14), ThreeJobs(n=5, n_symbols=3)
SMALL = {
    "vectors": (VECTORS, lambda: VectorModel(VECTORS, 2, 0, importance=0.3)),
    "two layers": (JOBS, lambda: TokenModel(JOBS, 6, 3, 0, n_layers=2)),
}


def sequence(batch, b):
    """Return the batch of its sequence ``b`` alone."""
    return type(batch)(
        **{name: None if a is None else a[b : b + 1] for name, a in vars(batch).items()}
    )


@pytest.fixture(params=SMALL)
def small(rng, request):
    """Return a model, a batch of 13, and each sequence's part of 13 times the loss."""
    task, make = SMALL[request.param]
    model, batch = make(), task.batch(rng, 13)

    def part(b, gates):
        alone = sequence(batch, b)
        outputs = model.forward(alone, gates)
        if isinstance(batch, VectorBatch):
            return model.loss(outputs, alone)[0]
        # The loss is a mean over all that is counted, of which this sequence has its share.
        loss, _ = cross_entropy(outputs, alone.targets, alone.counted)
        return 13 * loss * alone.counted.sum() / batch.counted.sum()

    return model, batch, part


def test_the_parts_add_up_to_the_loss(small):
    model, batch, part = small
    gates = np.ones((len(model.layers), model.layers[0].n_heads))
    mean = np.mean([part(b, gates) for b in range(13)])
    assert_allclose(mean, model.evaluate(batch)[0], rtol=1e-12)


@pytest.mark.parametrize("given", [False, True])
def test_gradient_importance_is_the_mean_size_of_each_sequences_gradient(rng, small, given):
    model, batch, part = small
    shape = (len(model.layers), model.layers[0].n_heads)
    gates = rng.random(shape) if given else np.ones(shape)
    expected = np.zeros(shape)
    for b in range(13):
        for head in np.ndindex(shape):
            move = np.zeros(shape)
            move[head] = STEP
            expected[head] += abs(part(b, gates + move) - part(b, gates - move)) / (2 * STEP) / 13
    gates = gates if given else None
    importance = gradient_importance(model, batch, gates, by_layer=False)
    assert_allclose(importance, expected, rtol=1e-6)
    for found, raw in zip(gradient_importance(model, batch, gates), expected, strict=True):
        assert_allclose(found, raw / math.hypot(*raw), rtol=1e-6)


def test_a_layer_that_nothing_depends_on_has_no_importance(small):
    model, batch, _ = small
    model.layers[-1].parameters["w_o"][...] = 0.0
    assert_array_equal(gradient_importance(model, batch)[-1], 0.0)


def test_path_importance_adds_up_to_what_all_heads_do_together(small):
    model, batch, _ = small
    shape = (len(model.layers), model.layers[0].n_heads)
    difference = model.evaluate(batch, np.zeros(shape))[0] - model.evaluate(batch)[0]
    errors = {n: abs(path_importance(model, batch, n).sum() / difference - 1) for n in (4, 64, 256)}
    # Middles of steps err with the square of the step.
    assert errors[256] < 1e-4
    assert errors[256] <= max(errors[64] / 8, 1e-12)


def test_path_importance_takes_the_gradient_in_the_middle_of_each_step(small):
    model, batch, _ = small
    shape = (len(model.layers), model.layers[0].n_heads)
    expected = np.zeros(shape)
    for point in (1 / 6, 3 / 6, 5 / 6):
        for head in np.ndindex(shape):
            gates = np.full((2, *shape), point)
            gates[0][head] += STEP
            gates[1][head] -= STEP
            above, below = (model.evaluate(batch, g)[0] for g in gates)
            expected[head] -= (above - below) / (2 * STEP) / 3
    assert_allclose(path_importance(model, batch, 3), expected, rtol=1e-6)


def test_path_importance_takes_eight_points_unless_told_otherwise(small):
    model, batch, _ = small
    assert_array_equal(path_importance(model, batch), path_importance(model, batch, 8))


# --- rank correlation -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        pytest.param([1, 2, 30], [0.1, 0.2, 0.3], 1, id="same order"),
        pytest.param([1, 2, 30], [3, 2, 1], -1, id="reverse order"),
        # 1 - 6 (0 + 1 + 1 + 0) / (4 (16 - 1))
        pytest.param([1, 2, 3, 4], [10, 30, 20, 40], 0.8, id="one swap"),
        # Ranks 0, 1.5, 1.5, 3 against 0, 1, 2, 3: covariance 4.5, variances 4.5 and 5.
        pytest.param([1, 2, 2, 3], [1, 2, 3, 4], 4.5 / math.sqrt(4.5 * 5), id="a tie"),
        # Ranks 1, 1, 1, 3 against 0.5, 0.5, 2.5, 2.5: covariance 2, variances 3 and 4.
        pytest.param([0, 0, 0, 7], [5, 5, 6, 6], 2 / math.sqrt(3 * 4), id="ties in both"),
    ],
)
def test_rank_correlations_worked_out_by_hand(a, b, expected):
    assert_allclose(spearman(a, b), expected, rtol=1e-14)
    assert_allclose(spearman(b, a), expected, rtol=1e-14)
    shape = (1, len(a), 1)
    assert_allclose(spearman(np.reshape(a, shape), np.reshape(b, shape)), expected, rtol=1e-14)


def test_ranks_alone_matter(rng):
    a, b = rng.normal(size=(2, 3, 7))
    assert_allclose(spearman(np.exp(a), b**3), spearman(a, b), rtol=1e-13)
    assert_allclose(spearman(a, -b), -spearman(a, b), rtol=1e-13)


# --- the study ------------------------------------------------------------------------------


def test_orders_come_from_the_tuning_data_and_results_from_the_reporting_data(rng, small):
    # Data so few that the two sets disagree about everything: who mixes them up is found out.
    model, _, _ = small
    task = VECTORS if isinstance(model, VectorModel) else JOBS
    model = (
        VectorModel(VECTORS, 7, 0) if task is VECTORS else TokenModel(JOBS, 12, 6, 0, n_layers=2)
    )
    shape = (len(model.layers), model.layers[0].n_heads)
    tuning, reporting = task.batch(rng, 5), task.batch(rng, 5)

    def on(batch):
        return lambda gates: model.evaluate(batch, gates)

    def orders_on(batch):
        without = losses_without(on(batch), np.ones(shape))
        gradient, path = gradient_importance(model, batch), path_importance(model, batch)
        orders = {
            "greedy": greedy_order(on(batch), shape),
            "ablation": order_by(without),
            "gradient": order_by(gradient),
            "path": order_by(path),
        }
        return orders, spearman(gradient, without), spearman(path, without)

    study = study_pruning(model, tuning, reporting)
    orders, gradient_correlation, path_correlation = orders_on(tuning)
    wrong_orders, wrong_gradient, wrong_path = orders_on(reporting)
    assert study.curves.keys() == orders.keys()
    for name, order in orders.items():
        expected = pruning_curve(on(reporting), order, shape)
        assert_array_equal(study.curves[name], expected)
        assert (expected != pruning_curve(on(tuning), order, shape)).any()
        assert (expected != pruning_curve(on(reporting), wrong_orders[name], shape)).any()
    assert_array_equal(study.greedy, orders["greedy"])
    assert study.gradient_correlation == gradient_correlation != wrong_gradient
    assert study.path_correlation == path_correlation != wrong_path
    assert_array_equal(study.subsets, subset_curves(on(reporting), shape))
    assert (study.subsets != subset_curves(on(tuning), shape)).any()


def test_a_study_refuses_to_report_on_the_data_that_it_chose_on(rng):
    model, batch = TokenModel(JOBS, 6, 3, 0), JOBS.batch(rng, 5)
    copied = TokenBatch(batch.tokens.copy(), batch.targets.copy(), batch.counted, batch.marked)
    for same in (batch, copied):
        with pytest.raises(ValueError, match="tuning and reporting are the same data"):
            study_pruning(model, batch, same)


def test_chance_of_targets_of_many_sequences_needs_a_mask_of_each():
    targets, mask = marked_token([0, 1], 4), padding_mask([1, 4], 4)
    # Three of the eight queries' keys: the first sequence has one key, which is marked.
    assert chance_mass(targets, mask[:, 0]) == (1 + 0.25) / 2
    # Targets of one sequence may meet masks of many.
    assert chance_mass(targets[0], mask) == (1 + 0.25) / 2
