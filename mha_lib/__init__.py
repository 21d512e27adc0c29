"""Multi-head attention in NumPy, written to be read.

Axis letters, the same in every docstring and comment:

====  =========================================================
B     sequences in a batch
h     heads (``n_heads``)
h_kv  heads with keys and values of their own (``n_kv_heads``); usually h
n     tokens of the sequence that asks
m     tokens of the sequence that answers; n in self-attention
Tq    queries of one head: n
Tk    keys of one head: m
d     model width
d_k   width of one head's queries and keys: d / h
d_v   width of one head's values; usually d_k
====  =========================================================

A single head's functions write Dk and Dv for the widths d_k and d_v.
A mask is boolean, and True means: this query may look at this key.
"""

from mha_lib.activations import softmax
from mha_lib.attention import scaled_dot_product_attention
from mha_lib.cost import AttentionCost, attention_cost
from mha_lib.masks import causal_mask, combine_masks, padding_mask
from mha_lib.multihead import merge_heads, multi_head_attention, split_heads

__all__ = [
    "AttentionCost",
    "attention_cost",
    "causal_mask",
    "combine_masks",
    "merge_heads",
    "multi_head_attention",
    "padding_mask",
    "scaled_dot_product_attention",
    "softmax",
    "split_heads",
]
