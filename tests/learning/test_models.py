"""The two small models."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mha_lib import causal_mask, multi_head_attention, softmax
from mha_lib.learning.models import TokenModel, VectorModel
from mha_lib.learning.tasks import MarkedAndMean, RepeatedSequence, ThreeJobs, TokenBatch
from mha_lib.learning.train import Adam
from tests.gradients import TOLERANCE, relative_error

pytestmark = pytest.mark.filterwarnings("error")
B = 13
VECTORS = MarkedAndMean(n=5, width=3, d=14)
JOBS = ThreeJobs(n=7, n_symbols=11)
REPEATED = RepeatedSequence(n=7, n_symbols=11, shortest=2, longest=5)
WEIGHTS = ("w_q", "w_k", "w_v", "w_o")

MODELS = {
    "vectors": (VECTORS, lambda: VectorModel(VECTORS, 2, 0, importance=0.3)),
    "vectors, marker in values": (
        VECTORS, lambda: VectorModel(VECTORS, 2, 0, marker_in_values=True)),
    "three jobs": (JOBS, lambda: TokenModel(JOBS, 10, 2, 0)),
    "three jobs, causal": (JOBS, lambda: TokenModel(JOBS, 10, 2, 0, causal=True)),
    "two layers, learned positions": (JOBS, lambda: TokenModel(JOBS, 6, 2, 0, n_layers=2)),
    "two layers, causal, rotary": (
        REPEATED,
        lambda: TokenModel(REPEATED, 8, 2, 0, n_layers=2, positions="rotary", causal=True)),
    "marked, causal, rotary": (
        JOBS, lambda: TokenModel(JOBS, 8, 2, 0, n_layers=2, positions="rotary", causal=True)),
}  # fmt: skip


@pytest.fixture(params=MODELS)
def model_and_batch(rng, request):
    """Return each of the models above, and a batch of its task."""
    task, make = MODELS[request.param]
    return make(), task.batch(rng, B)


# --- gradients ------------------------------------------------------------------------------


def test_the_backward_is_the_gradient_of_the_loss(rng, model_and_batch):
    model, batch = model_and_batch
    gates = rng.uniform(0.5, 1.5, size=(len(model.layers), model.layers[0].n_heads))

    def loss():
        return model.evaluate(batch, gates)[0]

    _, d_outputs, _ = model.loss(model.forward(batch, gates), batch)
    model.backward(d_outputs)
    gradients = {name: gradient.copy() for name, gradient in model.gradients.items()}
    arrays = {**model.parameters, "gates": gates}
    gradients["gates"] = np.stack([layer.gate_gradients.sum(axis=0) for layer in model.layers])
    assert gradients.keys() == arrays.keys()
    if isinstance(model, TokenModel) and batch.marked is None:
        assert_array_equal(gradients.pop("marker"), 0.0)
        arrays.pop("marker")
    held = model.layers[0].parameters["w_v"]
    if isinstance(model, VectorModel) and not held[3].any():  # the marker's row is held at 0
        assert_array_equal(gradients["w_v"][3], 0.0)
        gradients["w_v"] = np.delete(gradients["w_v"], 3, axis=0)
        seen = np.delete(held, 3, axis=0)
        arrays["w_v"], plain_loss = seen, loss

        def loss():
            held[[0, 1, 2, *range(4, 14)]] = seen
            return plain_loss()

    errors = {name: relative_error(gradients[name], loss, arrays[name]) for name in arrays}
    assert max(errors.values()) < TOLERANCE, errors


def test_gradients_do_not_add_up(model_and_batch):
    model, batch = model_and_batch
    found = []
    for _ in range(2):
        _, d_outputs, _ = model.loss(model.forward(batch), batch)
        model.backward(d_outputs)
        found.append({name: gradient.copy() for name, gradient in model.gradients.items()})
    for name, gradient in found[0].items():
        assert_array_equal(gradient, found[1][name])


def test_the_gradient_of_a_symbol_that_did_not_come_is_0(rng):
    model, batch = TokenModel(JOBS, 10, 2, 0), JOBS.batch(rng, B)
    tokens = np.minimum(batch.tokens, 9)
    batch = TokenBatch(tokens, batch.targets, batch.counted, batch.marked)
    _, d_logits, _ = model.loss(model.forward(batch), batch)
    model.backward(d_logits)
    assert_array_equal(model.gradients["embedding"][10], 0.0)
    assert (model.gradients["embedding"][:10] != 0).all()


# --- the vector model -----------------------------------------------------------------------


def test_the_vector_model_is_the_first_columns_of_attention(rng):
    model, batch = VectorModel(VECTORS, 2, 0), VECTORS.batch(rng, B)
    out = multi_head_attention(batch.x, *(model.parameters[name] for name in WEIGHTS), 2)
    assert_allclose(model.forward(batch), out[..., :6], atol=1e-13)


@pytest.mark.parametrize("importance", [0.0, 0.3, 1.0])
def test_the_vector_models_loss_weighs_the_two_errors(rng, importance):
    model = VectorModel(VECTORS, 2, 0, importance=importance)
    batch = VECTORS.batch(rng, B)
    outputs = model.forward(batch)
    squares = [[], []]
    for b, i, c in np.ndindex(outputs.shape):
        squares[c // 3].append((outputs[b, i, c] - batch.targets[b, i, c]) ** 2)
    loss, errors = model.evaluate(batch)
    assert_allclose(errors, [np.mean(job) for job in squares], rtol=1e-12)
    assert_allclose(loss, importance * errors[0] + (1 - importance) * errors[1], rtol=1e-12)
    assert (loss, *errors) == (model.loss(outputs, batch)[0], *model.loss(outputs, batch)[2])


def test_the_values_see_the_marker_only_if_they_may(rng):
    batch = VECTORS.batch(rng, B)
    for may in (False, True):
        model = VectorModel(VECTORS, 2, 0, marker_in_values=may)
        rows = (model.parameters["w_v"] != 0).all(axis=1)
        assert_array_equal(rows, [True, True, True, may] + [True] * 10)
    near = MarkedAndMean(n=5, width=3, d=14, n_near=2)
    for may in (False, True):
        rows = (VectorModel(near, 2, 0, marker_in_values=may).parameters["w_v"] != 0).all(axis=1)
        assert_array_equal(rows, [True, True, True, may, True, may] + [True] * 8)
    # Neither training nor gates change that.
    model = VectorModel(VECTORS, 2, 0)
    _, d_outputs, _ = model.loss(model.forward(batch), batch)
    model.backward(d_outputs)
    Adam(model.parameters).step(model.gradients, 0.1)
    assert_array_equal(model.parameters["w_v"][3], 0.0)


@pytest.mark.parametrize("n_heads", [1, 2, 7])
def test_the_vector_model_has_as_many_parameters_with_any_number_of_heads(n_heads):
    model = VectorModel(VECTORS, n_heads, 0)
    assert sum(p.size for p in model.parameters.values()) == 4 * 14**2
    assert model.layers[0].n_heads == n_heads


# --- the token model ------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
def test_the_token_model_is_embedding_attention_and_a_linear_map(rng, causal):
    model = TokenModel(JOBS, 10, 2, 0, n_layers=3, causal=causal)
    batch = JOBS.batch(rng, B)
    p = model.parameters
    x = np.empty((B, 7, 10))
    for b, i in np.ndindex(B, 7):
        x[b, i] = p["embedding"][batch.tokens[b, i]]
        if batch.marked[b] == i:
            x[b, i] += p["marker"]
    mask = causal_mask(7) if causal else None
    for layer in (1, 2, 3):
        w = [p[f"layer {layer} {name}"] for name in WEIGHTS]
        x = x + multi_head_attention(x + p[f"layer {layer} positions"], *w, 2, mask=mask)
    logits = model.forward(batch)
    assert logits.shape == (B, 7, 3, 11)
    for job in range(3):
        columns = p["unembedding"][:, 11 * job : 11 * (job + 1)]
        assert_allclose(logits[:, :, job], x @ columns, atol=1e-12)


@pytest.mark.parametrize("task", [JOBS, REPEATED])
def test_the_token_models_loss_and_accuracies_are_of_what_is_counted(rng, task):
    model, batch = TokenModel(task, 10, 2, 0), task.batch(rng, B)
    logits = model.forward(batch)
    losses, right = [], [[] for _ in task.jobs]
    for index in zip(*np.nonzero(batch.counted), strict=True):
        losses.append(-np.log(softmax(logits[index])[batch.targets[index]]))
        right[index[-1]].append(logits[index].argmax() == batch.targets[index])
    loss, shares = model.evaluate(batch)
    assert not batch.counted.all()
    assert_allclose(loss, np.mean(losses), rtol=1e-12)
    assert_allclose(shares, [np.mean(job) for job in right], rtol=1e-12)


def test_without_heads_a_token_knows_itself_alone(rng):
    model = TokenModel(REPEATED, 12, 3, 0, n_layers=2, positions="rotary", causal=True)
    batch = REPEATED.batch(rng, B)
    logits = model.forward(batch, np.zeros((2, 3)))[:, :, 0]
    expected = model.parameters["embedding"] @ model.parameters["unembedding"]
    assert_allclose(logits, expected[batch.tokens], atol=1e-13)


@pytest.mark.parametrize("layer", [0, 1])
def test_the_gates_of_a_layer_are_its_own(rng, layer):
    model, batch = TokenModel(JOBS, 10, 2, 0, n_layers=2), JOBS.batch(rng, B)
    gates = np.ones((2, 2))
    gates[layer] = [0.0, 1.0]
    gated = model.forward(batch, gates)
    w_o = model.parameters[f"layer {layer + 1} w_o"].copy()
    w_o[:5] = 0.0  # what the first head of d_k = 5 adds
    model.parameters[f"layer {layer + 1} w_o"] = w_o
    assert_allclose(model.forward(batch), gated, atol=1e-13)


@pytest.mark.parametrize(
    "make", [lambda seed: VectorModel(VECTORS, 2, seed), lambda seed: TokenModel(JOBS, 10, 2, seed)]
)
def test_a_seed_fixes_the_initial_weights_and_another_gives_others(make):
    one, same, other = (make(seed).parameters for seed in (5, 5, 7))
    for name, parameter in one.items():
        assert_array_equal(parameter, same[name])
        assert (parameter != other[name]).any()
    assert len({parameter.tobytes() for parameter in one.values()}) == len(
        one
    )  # no draw comes twice


def test_the_initial_embedding_has_size_1_and_the_unembedding_keeps_sizes():
    model = TokenModel(ThreeJobs(n_symbols=53), 150, 2, 0)
    # 7,950 and 23,850 numbers: their variance is known to 2 %, of which we allow 4 times as much.
    assert_allclose(model.parameters["embedding"].var(), 1, atol=0.08)
    assert_allclose(model.parameters["unembedding"].var() * 150, 1, atol=0.08)


def test_evaluate_is_loss_and_measures_of_forward(rng, model_and_batch):
    model, batch = model_and_batch
    gates = rng.random((len(model.layers), model.layers[0].n_heads))
    for arguments in ((batch,), (batch, gates)):
        loss, _, measures = model.loss(model.forward(*arguments), batch)
        found_loss, found = model.evaluate(*arguments)
        assert found_loss == loss
        assert_array_equal(found, measures)
    assert model.evaluate(batch)[0] != model.evaluate(batch, gates)[0]


# --- parameters that several share ----------------------------------------------------------


def test_setting_a_parameter_reaches_its_layer(rng):
    model, batch = TokenModel(JOBS, 10, 2, 0), JOBS.batch(rng, B)
    new = rng.normal(size=(10, 10))
    model.parameters["layer 1 w_o"] = new
    assert_array_equal(model.layers[0].parameters["w_o"], new)
    before = model.forward(batch)
    model.layers[0].parameters["w_o"] = -new
    assert_array_equal(model.parameters["layer 1 w_o"], -new)
    assert (model.forward(batch) != before).any()


def test_a_deep_copy_is_trained_alone(model_and_batch):
    model, batch = model_and_batch
    other = copy.deepcopy(model)
    before = model.evaluate(batch)[0]
    _, d_outputs, _ = other.loss(other.forward(batch), batch)
    other.backward(d_outputs)
    Adam(other.parameters).step(other.gradients, 0.01)
    assert model.evaluate(batch)[0] == before
    assert other.evaluate(batch)[0] < before
    shared = other.layers[0].parameters["w_q"]
    assert any(parameter is shared for parameter in other.parameters.values())


def test_a_backward_that_was_refused_changes_no_gradient_of_the_model():
    task = ThreeJobs(n=5, n_symbols=7)
    model = TokenModel(task, 6, 3, 0)
    logits = model.forward(task.batch(np.random.default_rng(0), 11))
    model.backward(np.ones_like(logits))
    before = {name: g.copy() for name, g in model.gradients.items()}
    with pytest.raises(ValueError, match="leaves the range of floats"):
        model.backward(np.full_like(logits, 1.7e308))
    for name, gradient in model.gradients.items():
        np.testing.assert_array_equal(gradient, before[name])
