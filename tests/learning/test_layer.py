"""The multi-head attention layer that can be trained."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mha_lib import causal_mask, multi_head_attention
from mha_lib.learning.layer import MultiHeadAttention
from mha_lib.learning.train import Adam
from tests import reference
from tests.gradients import TOLERANCE, relative_error

pytestmark = pytest.mark.filterwarnings("error")
B, H, N, M, DK, DV, DC = 2, 3, 5, 11, 7, 13, 17
D = H * DK
EVEN = H * 4  # rotary positions need an even Dk
WEIGHTS = ("w_q", "w_k", "w_v", "w_o")
SEEN = [0, 3, 4, 8, 19]  # columns of the context that the values may see


def make(rng, d=D, **options):
    """Return a layer, x (B, N, d), and the context (B, M, DC) if the layer needs one."""
    layer = MultiHeadAttention(d, H, rng, **options)
    context = rng.normal(size=(B, M, DC)) if "d_context" in options else None
    return layer, rng.normal(size=(B, N, d)), context


def masks(rng, n_keys):
    """Return a mask per sequence and head, with a query that may look nowhere."""
    mask = rng.random((B, H, N, n_keys)) < 0.6
    mask[1, 2, 3] = False
    return mask


# --- forward --------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"d_v": DV}, {"value_columns": SEEN}], ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_it_is_multi_head_attention_of_its_parameters(rng, options, causal, masked):
    layer, x, _ = make(rng, causal=causal, **options)
    mask = masks(rng, N) if masked else np.ones((N, N), bool)
    out = layer.forward(x, mask=mask if masked else None)
    expected, weights = multi_head_attention(
        x, *(layer.parameters[name] for name in WEIGHTS), H,
        mask=mask & causal_mask(N) if causal else mask, return_weights=True,
    )  # fmt: skip
    assert_allclose(out, expected, atol=1e-13)
    assert_allclose(layer.weights, weights, atol=1e-13)


@pytest.mark.parametrize("masked", [False, True])
def test_with_a_context_it_is_multi_head_attention_too(rng, masked):
    layer, x, context = make(rng, d_context=DC, d_v=DV)
    mask = masks(rng, M) if masked else None
    expected, weights = multi_head_attention(
        x, *(layer.parameters[name] for name in WEIGHTS), H,
        context=context, mask=mask, return_weights=True,
    )  # fmt: skip
    assert_allclose(layer.forward(x, context, mask=mask), expected, atol=1e-13)
    assert_allclose(layer.weights, weights, atol=1e-13)


@pytest.mark.parametrize("causal", [False, True])
def test_with_rotary_positions_it_agrees_with_the_slow_reference(rng, causal):
    layer, x, _ = make(rng, EVEN, positions="rotary", causal=causal)
    out = layer.forward(x)
    for b in range(B):
        expected, weights = reference.attend_in_heads(
            x[b], *(layer.parameters[name] for name in WEIGHTS), H, rotary=True,
            mask=np.broadcast_to(causal_mask(N) if causal else True, (H, N, N)),
        )  # fmt: skip
        assert_allclose(out[b], expected, atol=1e-13)
        assert_allclose(layer.weights[b], weights, atol=1e-13)


def test_learned_positions_are_added_to_the_tokens(rng):
    layer, x, _ = make(rng, positions="learned", n_max=M)
    assert layer.parameters["positions"].shape == (M, D)
    places = layer.parameters["positions"][:N]
    expected = multi_head_attention(x + places, *(layer.parameters[name] for name in WEIGHTS), H)
    before = x.copy()
    assert_allclose(layer.forward(x), expected, atol=1e-13)
    assert_array_equal(x, before)


@pytest.mark.parametrize("positions", [None, "learned", "rotary"])
def test_only_positions_tell_the_order_of_tokens(rng, positions):
    layer, x, _ = make(rng, EVEN, positions=positions, n_max=N)
    order = rng.permutation(N)
    new, old = layer.forward(x[:, order]), layer.forward(x)[:, order]
    assert np.allclose(new, old) == (positions is None)


@pytest.mark.parametrize("positions", [None, "learned", "rotary"])
def test_a_future_token_cannot_change_a_causal_output(rng, positions):
    layer, x, _ = make(rng, EVEN, positions=positions, n_max=N, causal=True)
    before = layer.forward(x)
    for now in range(N - 1):
        later = x.copy()
        later[:, now + 1 :] = 1e4
        after = layer.forward(later)
        assert_allclose(after[:, : now + 1], before[:, : now + 1], atol=1e-13)


def test_a_gate_multiplies_what_its_head_adds(rng):
    layer, x, _ = make(rng)
    gates = rng.normal(size=(B, H))
    alone = np.stack([layer.forward(x, gates=np.eye(H)[head]) for head in range(H)], axis=1)
    expected = (gates[..., None, None] * alone).sum(axis=1)
    assert_allclose(layer.forward(x, gates=gates), expected, atol=1e-13)
    assert_allclose(alone.sum(axis=1), layer.forward(x), atol=1e-13)
    assert_array_equal(layer.forward(x, gates=np.zeros(H)), np.zeros((B, N, D)))


def test_values_see_their_columns_alone(rng):
    layer, x, _ = make(rng, value_columns=SEEN)
    unseen = np.delete(np.arange(D), SEEN)
    for name in ("w_q", "w_k"):  # so that all weights are even, whatever the tokens hold
        layer.parameters[name][...] = 0.0
    before = layer.forward(x)
    x[..., unseen] += 1.0
    assert_array_equal(layer.forward(x), before)
    x[..., SEEN[-1]] += 1.0
    assert (layer.forward(x) != before).all()


def test_leading_axes_are_sequences_of_their_own(rng):
    layer = MultiHeadAttention(D, H, rng, positions="learned", n_max=N)
    x, d_out = rng.normal(size=(2, B, 7, N, D))
    out, d_x = layer.forward(x), layer.backward(d_out)
    total = {name: np.zeros_like(g) for name, g in layer.gradients.items()}
    gate_gradients = layer.gate_gradients
    for b, i in np.ndindex(B, 7):
        assert_allclose(layer.forward(x[b, i]), out[b, i], atol=1e-13)
        assert_allclose(layer.backward(d_out[b, i]), d_x[b, i], atol=1e-13)
        assert_allclose(layer.gate_gradients, gate_gradients[b, i], atol=1e-12)
        for name, gradient in layer.gradients.items():
            total[name] += gradient
    layer.forward(x)
    layer.backward(d_out)
    for name, gradient in layer.gradients.items():
        assert_allclose(gradient, total[name], atol=1e-11)


# --- backward -------------------------------------------------------------------------------

CASES = {
    "plain": {},
    "causal": {"causal": True},
    "learned positions": {"positions": "learned", "n_max": N},
    "causal learned positions": {"positions": "learned", "n_max": N, "causal": True},
    "rotary": {"d": EVEN, "positions": "rotary"},
    "causal rotary": {"d": EVEN, "positions": "rotary", "causal": True},
    "other width of values": {"d_v": DV},
    "context": {"d_context": DC},
    "context, other width of values": {"d_context": DC, "d_v": DV},
    "masked": {"masked": True},
    "masked, causal, rotary": {"d": EVEN, "positions": "rotary", "causal": True, "masked": True},
    "masked context": {"d_context": DC, "masked": True},
    "gates": {"gates": (H,)},
    "gates per sequence": {"gates": (B, H)},
    "gates per sequence, causal, rotary, masked": {
        "d": EVEN, "positions": "rotary", "causal": True, "masked": True, "gates": (B, H)},
    "columns of the values": {"value_columns": SEEN},
    "columns of the context for the values": {"d_context": DC, "value_columns": [1, 16]},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_backward_is_the_gradient(rng, case):
    options = dict(CASES[case])
    masked, gate_shape = options.pop("masked", False), options.pop("gates", None)
    layer, x, context = make(rng, **options)
    mask = masks(rng, N if context is None else M) if masked else None
    gates = None if gate_shape is None else rng.normal(size=gate_shape)
    d_out = rng.normal(size=x.shape)

    def loss():
        return np.sum(d_out * layer.forward(x, context, mask=mask, gates=gates))

    loss()
    d_x = layer.backward(d_out)
    gradients = {name: gradient.copy() for name, gradient in layer.gradients.items()}
    arrays = dict(layer.parameters)
    if context is None:
        gradients["x"], arrays["x"] = d_x, x
    else:
        (gradients["x"], gradients["context"]), arrays["x"] = d_x, x
        arrays["context"] = context
    if gates is not None:
        found = layer.gate_gradients
        gradients["gates"], arrays["gates"] = found if gates.ndim == 2 else found.sum(axis=0), gates
    if "value_columns" in options:  # the other rows are held at 0
        unseen = np.delete(np.arange(len(arrays["w_v"])), options["value_columns"])
        assert_array_equal(gradients["w_v"][unseen], 0.0)
        assert_array_equal(arrays["w_v"][unseen], 0.0)
        gradients["w_v"] = gradients["w_v"][options["value_columns"]]
        arrays["w_v"], whole = arrays["w_v"][options["value_columns"]], arrays["w_v"]
        plain_loss = loss

        def loss():
            whole[options["value_columns"]] = arrays["w_v"]
            return plain_loss()

    assert gradients.keys() == arrays.keys()
    errors = {name: relative_error(gradients[name], loss, arrays[name]) for name in arrays}
    assert max(errors.values()) < TOLERANCE, errors


def test_gate_gradients_without_gates_are_those_of_gates_that_are_1(rng):
    layer, x, _ = make(rng)
    gates, d_out = np.ones((B, H)), rng.normal(size=x.shape)
    layer.forward(x)
    layer.backward(d_out)
    found = layer.gate_gradients

    def loss():
        return np.sum(d_out * layer.forward(x, gates=gates))

    assert relative_error(found, loss, gates) < TOLERANCE


def test_places_behind_the_last_token_get_no_gradient(rng):
    layer, x, _ = make(rng, positions="learned", n_max=M)
    for n in (N, 2):  # the longer one first, so that what it left must go
        layer.forward(x[:, :n])
        d_x = layer.backward(np.ones((B, n, D)))
        assert_allclose(layer.gradients["positions"][:n], d_x.sum(axis=0), rtol=1e-14)
        assert_array_equal(layer.gradients["positions"][n:], 0.0)


def test_a_token_that_nobody_sees_gets_no_gradient(rng):
    layer, x, context = make(rng, d_context=DC)
    mask = np.ones((N, M), bool)
    mask[:, 4] = False
    mask[3] = False
    layer.forward(x, context, mask=mask)
    d_x, d_context = layer.backward(rng.normal(size=x.shape))
    assert_array_equal(d_context[:, 4], 0.0)
    assert_array_equal(d_x[:, 3], 0.0)
    assert (d_context[:, 5] != 0).all()


def test_huge_tokens_have_finite_gradients(rng):
    layer, x, _ = make(rng, causal=True)
    out = layer.forward(x * 1e6)
    d_x = layer.backward(rng.normal(size=x.shape))
    assert set(np.unique(layer.weights)) == {0.0, 1.0}  # scores so far apart leave no doubt
    assert np.isfinite(out).all()
    assert np.isfinite(d_x).all()
    assert all(np.isfinite(gradient).all() for gradient in layer.gradients.values())


# --- between forward and backward -----------------------------------------------------------


def test_backward_belongs_to_the_last_forward(rng):
    layer, x, _ = make(rng)
    d_out = rng.normal(size=x.shape)
    layer.forward(x)
    d_x, w_q = layer.backward(d_out), layer.gradients["w_q"].copy()
    layer.forward(rng.normal(size=(7, N, D)))
    layer.forward(x)
    assert_array_equal(layer.backward(d_out), d_x)
    assert_array_equal(layer.backward(d_out), d_x)  # and may be called again
    assert_array_equal(layer.gradients["w_q"], w_q)  # without adding up


def test_a_forward_that_was_refused_leaves_the_one_before(rng):
    layer, x, _ = make(rng)
    layer.forward(x)
    weights, d_x = layer.weights, layer.backward(x)
    for refused in (x * np.inf, x * 1e200):
        with pytest.raises(ValueError, match=r"x holds inf or NaN|leaves the range of floats"):
            layer.forward(refused)
    assert layer.weights is weights
    assert_array_equal(layer.backward(x), d_x)


def test_what_others_do_to_weights_and_gates_does_not_reach_the_backward(rng):
    layer, x, _ = make(rng)
    d_out, gates = rng.normal(size=x.shape), rng.normal(size=H)
    layer.forward(x, gates=gates)
    d_x = layer.backward(d_out)
    layer.forward(x, gates=gates)
    gates[...] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        layer.weights[...] = 0.0
    layer.weights = np.zeros((B, H, N, N))
    assert_array_equal(layer.backward(d_out), d_x)


# --- parameters -----------------------------------------------------------------------------


def test_initial_weights_keep_the_size_of_numbers(rng):
    layer = MultiHeadAttention(60, 4, rng, d_context=150, d_v=50)
    shapes = {"w_q": (60, 60), "w_k": (150, 60), "w_v": (150, 200), "w_o": (200, 60)}
    assert {name: p.shape for name, p in layer.parameters.items()} == shapes
    for parameter in layer.parameters.values():
        # The variance of 3,600 draws and more is known to 3 %, of which we allow 4 times as much.
        assert abs(parameter.var() * len(parameter) - 1) < 0.12
        assert abs(parameter.mean() * np.sqrt(len(parameter))) < 0.07


def test_a_seed_fixes_the_initial_weights():
    one, same, other = (
        MultiHeadAttention(D, H, np.random.default_rng(seed), positions="learned", n_max=M)
        for seed in (5, 5, 7)
    )
    for name, parameter in one.parameters.items():
        assert_array_equal(parameter, same.parameters[name])
        assert (parameter != other.parameters[name]).all()


@pytest.mark.parametrize("integer", [np.int8, np.uint64, np.array])
def test_any_integer_type_gives_the_sizes(integer):
    sizes = {"d": D, "n_heads": H, "d_v": DV, "n_max": M}
    one, other = (
        MultiHeadAttention(
            **{name: kind(size) for name, size in sizes.items()},
            rng=np.random.default_rng(0),
            positions="learned",
        )
        for kind in (int, integer)
    )
    assert_array_equal(one.forward(np.ones((N, D))), other.forward(np.ones((N, D))))


def test_setting_a_parameter_copies_it_so_that_an_optimiser_goes_on_with_it(rng):
    layer, x, _ = make(rng)
    adam = Adam(layer.parameters)
    shared, new = layer.parameters["w_q"], rng.normal(size=(D, D))
    layer.parameters["w_q"] = new
    assert layer.parameters["w_q"] is shared
    assert_array_equal(shared, new)
    expected = multi_head_attention(x, *(layer.parameters[name] for name in WEIGHTS), H)
    assert_allclose(layer.forward(x), expected, atol=1e-13)
    layer.backward(x)
    adam.step(layer.gradients, 0.1)
    assert (shared != new).all()
    layer.gradients["w_q"] = np.zeros((D, D), int)
    assert_array_equal(layer.gradients["w_q"], np.zeros((D, D)), strict=True)


def test_a_deep_copy_is_a_layer_of_its_own(rng):
    layer, x, _ = make(rng)
    other = copy.deepcopy(layer)
    before = layer.forward(x)
    other.parameters["w_o"] = np.zeros((D, D))
    assert_array_equal(other.forward(x), np.zeros((B, N, D)))
    assert_array_equal(layer.forward(x), before)


# --- arguments ------------------------------------------------------------------------------


def test_float32_and_integers_are_computed_in_float64(rng):
    layer, x, _ = make(rng)
    x = np.rint(4 * x)
    expected, d_x = layer.forward(x, gates=[1.0, 2.0, 3.0]), layer.backward(x)
    for dtype in (np.float32, np.int8):
        out = layer.forward(x.astype(dtype), gates=np.array([1, 2, 3], dtype))
        assert_array_equal(out, expected, strict=True)
        assert_array_equal(layer.backward(x.astype(dtype)), d_x, strict=True)


def test_read_only_arrays_in_any_memory_order_are_left_alone(rng, awkward):
    layer, x, context = make(rng, d_context=DC)
    mask, gates = masks(rng, M), rng.normal(size=(B, H))
    expected = layer.forward(x, context, mask=mask, gates=gates)
    d_x, d_context = layer.backward(x)
    out = layer.forward(awkward(x), awkward(context), mask=awkward(mask), gates=awkward(gates))
    assert_allclose(out, expected, atol=1e-13)
    for found, gradient in zip(layer.backward(awkward(x)), (d_x, d_context), strict=True):
        assert_allclose(found, gradient, atol=1e-13)


@pytest.mark.parametrize("positions", [None, "learned", "rotary"])
@pytest.mark.parametrize("shape", [(0, N, EVEN), (B, 0, EVEN), (0, 0, EVEN)])
def test_no_sequences_and_sequences_of_length_0_are_allowed(rng, positions, shape):
    layer = MultiHeadAttention(EVEN, H, rng, positions=positions, n_max=N)
    layer.forward(np.ones((B, N, EVEN)))
    layer.backward(np.ones((B, N, EVEN)))
    empty = np.zeros(shape)
    assert_array_equal(layer.forward(empty), empty, strict=True)
    assert_array_equal(layer.backward(empty), empty, strict=True)
    for gradient in layer.gradients.values():
        assert_array_equal(gradient, np.zeros_like(gradient))


def test_an_empty_context_gives_nothing(rng):
    layer, x, _ = make(rng, d_context=DC)
    assert_array_equal(layer.forward(x, np.zeros((B, 0, DC))), np.zeros((B, N, D)), strict=True)
    d_x, d_context = layer.backward(x)
    assert_array_equal(d_x, np.zeros((B, N, D)), strict=True)
    assert_array_equal(d_context, np.zeros((B, 0, DC)), strict=True)


def test_a_backward_that_was_refused_changes_no_gradient(rng):
    layer = MultiHeadAttention(6, 3, rng)
    x = rng.normal(size=(2, 5, 6))
    layer.forward(x)
    layer.backward(np.ones_like(x))
    before = {name: g.copy() for name, g in layer.gradients.items()}
    gates = layer.gate_gradients.copy()
    with pytest.raises(ValueError, match=r"the gradient leaves .* d_out up to 1.7e\+308"):
        layer.backward(np.full_like(x, 1.7e308))
    for name, gradient in layer.gradients.items():
        assert_array_equal(gradient, before[name])
    assert_array_equal(layer.gate_gradients, gates)
