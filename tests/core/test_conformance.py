"""`multi_head_attention` beside the Attention operator of ONNX, which others wrote and maintain.

https://onnx.ai/onnx/operators/onnx__Attention.html; its cases and its evaluator are pure NumPy.
"""

from functools import partial

import numpy as np
import onnx.backend.test.case.node.attention  # importing it makes its cases  # noqa: F401
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onnx.backend.test.case import node as onnx_cases
from onnx.helper import get_attribute_value, make_node
from onnx.reference import ReferenceEvaluator

from mha_lib import causal_mask, combine_masks, merge_heads, multi_head_attention, padding_mask
from tests.blocks import in_small_blocks

# Names are those of the package without "test_attention_".
IN_SCOPE = """
    4d 4d_gqa 4d_diff_heads_sizes 4d_scaled 4d_gqa_scaled 4d_diff_heads_sizes_scaled
    4d_causal 4d_gqa_causal 4d_diff_heads_sizes_causal
    4d_attn_mask_bool 4d_attn_mask_bool_4d 4d_with_qk_matmul 4d_causal_with_past_and_present
    3d 3d_gqa 3d_diff_heads_sizes 3d_scaled 3d_gqa_scaled 3d_diff_heads_sizes_scaled
    3d_causal 3d_gqa_causal 3d_diff_heads_sizes_causal 3d_transpose_verification
    causal_boolmask_nan_robustness 23_boolmask_fullymasked_row_nan_robustness
    23_fullymasked_qk_matmul_output_mode3_zero 24_fullymasked_qk_matmul_output_mode3_zero
    local_window_default
""".split()
OUT_OF_SCOPE = {
    # A mask of ours says yes or no.  These are random numbers that are added to the scores.
    "additive mask": """
        4d_attn_mask 4d_attn_mask_3d 4d_attn_mask_3d_causal 4d_attn_mask_4d 4d_attn_mask_4d_causal
        4d_gqa_attn_mask 4d_diff_heads_sizes_attn_mask
        3d_attn_mask 3d_gqa_attn_mask 3d_diff_heads_sizes_attn_mask
        4d_with_past_and_present 4d_gqa_with_past_and_present 4d_diff_heads_with_past_and_present
        4d_diff_heads_with_past_and_present_mask3d 4d_diff_heads_with_past_and_present_mask4d
        3d_with_past_and_present 3d_gqa_with_past_and_present 3d_diff_heads_with_past_and_present
        4d_with_qk_matmul_bias 4d_with_qk_matmul_softmax
        4d_with_past_and_present_qk_matmul 4d_with_past_and_present_qk_matmul_bias
        4d_with_past_and_present_qk_matmul_bias_3d_mask
        4d_with_past_and_present_qk_matmul_bias_4d_mask
        4d_with_past_and_present_qk_matmul_bias_3d_mask_causal
        4d_with_past_and_present_qk_matmul_bias_4d_mask_causal
        3d_with_past_and_present_qk_matmul 3d_with_past_and_present_qk_matmul_bias
        3d_with_past_and_present_qk_matmul_softmax 4d_diff_heads_mask4d_padded_kv
    """.split(),
    # Scores are bent by tanh before the softmax: another formula than the book's.
    "softcap": """
        4d_softcap 4d_gqa_softcap 4d_diff_heads_sizes_softcap
        3d_softcap 3d_gqa_softcap 3d_diff_heads_sizes_softcap
        4d_with_qk_matmul_softcap 3d_with_past_and_present_qk_matmul_softcap
        4d_softcap_neginf_mask 4d_softcap_neginf_mask_poison
    """.split(),
    # The library computes in float32 and float64 only, and says so.
    "half precision": """
        4d_fp16 4d_causal_fp16 4d_gqa_with_past_and_present_fp16 4d_gqa_causal_nonpad_decode_fp16
        4d_causal_bf16 3d_causal_bf16 4d_padded_kv_bf16 4d_causal_padded_kv_bf16
        4d_attn_mask_causal_bf16 24_qk_matmul_output_mode3_softmax_precision
        local_window_ext_cache_float16_mask
    """.split(),
    # `causal_mask` has one number of past keys; here each sequence of the batch has its own.
    "past per sequence": """
        4d_gqa_causal_nonpad_decode 4d_causal_nonpad_continued_prefill
        4d_causal_nonpad_negative_offset_structural_empty
        4d_causal_nonpad_attn_mask_composition 4d_causal_nonpad_batch_prefill
    """.split(),
    # The library makes no mask of this kind.
    "window": """
        local_window bidirectional_window local_window_rank1_boolean_mask local_window_with_past
        local_window_ext_cache_rank3_head_mask local_window_ext_cache_rank4_batch_mask
        local_window_ext_cache_rank2_mask 3d_local_window local_window_gqa_rank4_mask
    """.split(),
}
B, H, TQ, TK, DK, DV = 2, 6, 5, 7, 11, 13


def named(names, arrays):
    """Return the arrays that are there by the names that the operator gives them."""
    return dict(zip([name for name in names if name], arrays, strict=True))


def unpacked(case):
    """Return attributes, inputs and outputs of a case, by name."""
    (node,), ((inputs, outputs),) = case.model.graph.node, case.data_sets
    attributes = {entry.name: get_attribute_value(entry) for entry in node.attribute}
    return attributes, named(node.input, inputs), named(node.output, outputs)


def short_name(case):
    return case.name.removeprefix("test_attention_")


# An expanded case has the operator's definition in the place of the operator, and the same arrays.
ALL = {short_name(case): case for case in onnx_cases._NodeTestCases}
CASES = {name: unpacked(case) for name, case in ALL.items() if "_expanded" not in name}


def ours(inputs, scale=None, is_causal=0, q_num_heads=None, kv_num_heads=None, **_):
    """Compute a case with `multi_head_attention`: return output, (B, Tq, h * d_v), and weights.

    Projections by identity matrices leave queries, keys and values as they are.  The way without
    weights, in blocks, is held to the other one, and so to everything that is compared with it.
    """
    q, k, v = inputs["Q"], inputs["K"], inputs["V"]
    if q.ndim == 4:
        q_num_heads, kv_num_heads = q.shape[1], k.shape[1]
        q, k, v = merge_heads(q), merge_heads(k), merge_heads(v)
    n_past = 0
    if "past_key" in inputs:
        n_past = inputs["past_key"].shape[2]
        k = np.concatenate([merge_heads(inputs["past_key"]), k], axis=1)
        v = np.concatenate([merge_heads(inputs["past_value"]), v], axis=1)
    n, m, width_k, width_v = q.shape[1], k.shape[1], k.shape[2], v.shape[2]
    if scale is not None:  # the library's own is 1 / sqrt(d_k)
        q = q * q.dtype.type(scale * np.sqrt(width_k // kv_num_heads))
    lengths = inputs.get("nonpad_kv_seqlen")
    mask = combine_masks(
        inputs.get("attn_mask"),
        causal_mask(m)[n_past : n_past + n] if is_causal else None,
        padding_mask(lengths, m) if lengths is not None else None,
    )
    attend = partial(
        multi_head_attention,
        q,
        np.eye(q.shape[2], dtype=q.dtype),
        np.eye(width_k + width_v, width_k, dtype=q.dtype),
        np.eye(width_k + width_v, width_v, k=-width_k, dtype=q.dtype),
        np.eye(width_v * q_num_heads // kv_num_heads, dtype=q.dtype),
        q_num_heads,
        context=np.concatenate([k, v], axis=2),
        mask=mask,
        n_kv_heads=kv_num_heads,
    )
    out, weights = attend(return_weights=True)
    with in_small_blocks():
        assert_allclose(attend(), out, rtol=1e-5, atol=1e-6, strict=True)
    return out, weights


def obstacles(attributes, inputs):
    """Return why the library does not compute a case; keys of OUT_OF_SCOPE."""
    mask, windows = inputs.get("attn_mask"), ("left_window_size", "right_window_size")
    reasons = {
        "additive mask": mask is not None and mask.dtype != bool,
        "softcap": attributes.get("softcap", 0) != 0,
        "half precision": inputs["Q"].dtype not in (np.float32, np.float64),
        "past per sequence": "nonpad_kv_seqlen" in inputs and attributes.get("is_causal", 0) == 1,
        "window": any(attributes.get(name, -1) >= 0 for name in windows),
    }
    return {reason for reason, applies in reasons.items() if applies}


def assert_same(found, expected, rtol, atol):
    """Compare our two results with the operator's outputs that we have too."""
    out, weights = found
    y = expected["Y"]
    y = merge_heads(y) if y.ndim == 4 else y
    assert out.dtype == y.dtype
    assert out.shape == y.shape
    assert_allclose(out, y, rtol=rtol, atol=atol)
    if "weights" in expected:
        assert weights.shape == expected["weights"].shape
        assert_allclose(weights, expected["weights"], rtol=rtol, atol=atol)


# --- the cases of the package ---------------------------------------------------------------


def test_every_case_of_the_package_is_in_one_of_the_lists():
    listed = [*IN_SCOPE, *(name for names in OUT_OF_SCOPE.values() for name in names)]
    assert sorted(listed) == sorted(CASES)


@pytest.mark.parametrize(
    ("name", "reason"), [(name, reason) for reason, names in OUT_OF_SCOPE.items() for name in names]
)
def test_a_case_out_of_scope_has_the_reason_that_is_given(name, reason):
    attributes, inputs, _ = CASES[name]
    assert reason in obstacles(attributes, inputs)


@pytest.mark.parametrize("name", IN_SCOPE)
def test_a_case_of_the_package_passes(name):
    attributes, inputs, outputs = CASES[name]
    assert obstacles(attributes, inputs) == set()
    if attributes.get("qk_matmul_output_mode") == 3:  # other modes are scores, which stay inside
        outputs["weights"] = outputs["qk_matmul_output"]
    # Tighter than the package's own tolerances, which are 1e-3 and 1e-7.
    assert_same(ours(inputs, **attributes), outputs, rtol=1e-5, atol=1e-6)


def test_expanded_cases_have_the_arrays_of_the_others():
    expanded = {name: case for name, case in ALL.items() if "_expanded" in name}
    assert len(expanded) >= len(CASES)
    for name, case in expanded.items():
        original = ALL[name.split("_expanded")[0]].data_sets
        for arrays, others in zip(case.data_sets[0], original[0], strict=True):
            for array, other in zip(arrays, others, strict=True):
                assert_array_equal(array, other, strict=True)


# --- what they leave out, by the operator's evaluator ---------------------------------------


def evaluated(inputs, **attributes):
    """Return what the reference evaluator makes of a case; output and weights by name."""
    places = ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"]
    node = make_node(
        "Attention",
        [name if name in inputs else "" for name in places],
        ["Y", "", "", "weights"],
        qk_matmul_output_mode=3,
        **attributes,
    )
    y, _, _, weights = ReferenceEvaluator(node).run(None, inputs)
    return {"Y": y, "weights": weights}


def laid_out(axes, q, k, v, past=None):
    """Return inputs and head counts in the layout of 3 or of 4 axes."""
    heads = {"q_num_heads": q.shape[1], "kv_num_heads": k.shape[1]} if axes == 3 else {}
    q, k, v = (merge_heads(a) for a in (q, k, v)) if axes == 3 else (q, k, v)
    return {"Q": q, "K": k, "V": v} | (past or {}), heads


@pytest.fixture
def arrays(rng):
    """Return a function that makes q, k and v for six heads that share n_kv_heads."""

    def make(n_kv_heads, dtype=np.float64, tk=TK):
        shapes = (B, H, TQ, DK), (B, n_kv_heads, tk, DK), (B, n_kv_heads, tk, DV)
        return [rng.normal(scale=2, size=shape).astype(dtype) for shape in shapes]

    return make


@pytest.mark.parametrize("axes", [3, 4])
@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize(
    "mask_shape",
    [None, (TK,), (TQ, TK), (H, TQ, TK), (H, 1, TK), (B, 1, TQ, TK), (B, H, TQ, TK)],
    ids=str,
)
def test_masks_of_every_shape_and_shared_heads_agree_with_the_evaluator(
    rng, arrays, axes, n_kv_heads, is_causal, mask_shape
):
    inputs, heads = laid_out(axes, *arrays(n_kv_heads))
    theirs = inputs.copy()
    if mask_shape is not None:
        mask = rng.random(mask_shape) < 0.6
        if mask_shape[-2:] == (TQ, TK):
            mask[..., 3, :] = False  # a query that may look nowhere
        inputs["attn_mask"] = mask
        # With is_causal the evaluator reads the number of queries off the mask.
        theirs["attn_mask"] = np.broadcast_to(mask, (*mask_shape[:-2], TQ, TK))
    expected = evaluated(theirs, is_causal=is_causal, **heads)
    assert_same(ours(inputs, is_causal=is_causal, **heads), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("axes", [3, 4])
@pytest.mark.parametrize("n_kv_heads", [2, 6])
@pytest.mark.parametrize("scale", [0.0625, 2.25])  # roots exact in float32, the type of attributes
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-5), (np.float64, 1e-12)])
def test_scale_and_padding_agree_with_the_evaluator(
    arrays, axes, n_kv_heads, scale, dtype, tolerance
):
    inputs, heads = laid_out(axes, *arrays(n_kv_heads, dtype))
    inputs["nonpad_kv_seqlen"] = np.array([3, 0])
    expected = evaluated(inputs, scale=scale, **heads)
    assert_same(ours(inputs, scale=scale, **heads), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("axes", [3, 4])
@pytest.mark.parametrize("n_kv_heads", [1, 3, 6])
def test_a_causal_query_with_past_keys_agrees_with_the_evaluator(rng, arrays, axes, n_kv_heads):
    past = {
        "past_key": rng.normal(size=(B, n_kv_heads, 3, DK)),
        "past_value": rng.normal(size=(B, n_kv_heads, 3, DV)),
    }
    inputs, heads = laid_out(axes, *arrays(n_kv_heads, tk=TQ), past)
    expected = evaluated(inputs, is_causal=1, **heads)
    assert_same(ours(inputs, is_causal=1, **heads), expected, rtol=1e-12, atol=1e-13)
