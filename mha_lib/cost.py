"""What one multi-head attention layer costs, counted exactly."""

from dataclasses import dataclass

from mha_lib import _check
from mha_lib._types import Integer


@dataclass(frozen=True)
class AttentionCost:
    """The cost of one forward pass, in exact integers, as counted by `attention_cost`.

    Attributes
    ----------
    parameters : int
        Numbers in ``w_q``, ``w_k``, ``w_v`` and ``w_o``; no biases.
    projection_flops : int
        Making queries, keys and values.  A multiply-add is 2 FLOPs.
    score_flops : int
        Comparing all queries with all keys, over all heads.
    value_flops : int
        Blending the values with the weights, over all heads.
    output_flops : int
        The output projection.
    matmul_flops : int
        The sum of the four above.
    softmax_entries : int
        Scores that pass through the softmax: h * n * m.
    weight_bytes : int
        Memory of the parameters.
    score_bytes : int
        Memory of all scores of all heads, if they are held at the same time.
    kv_cache_bytes : int
        Memory of the keys and values that are kept while text is generated.

    Examples
    --------
    >>> attention_cost(3, 4, 2).softmax_entries
    18
    """

    parameters: int
    projection_flops: int
    score_flops: int
    value_flops: int
    output_flops: int
    matmul_flops: int
    softmax_entries: int
    weight_bytes: int
    score_bytes: int
    kv_cache_bytes: int


def attention_cost(
    n: Integer,
    d: Integer,
    n_heads: Integer,
    *,
    n_context: Integer | None = None,
    n_kv_heads: Integer | None = None,
    bytes_per_number: Integer = 4,
) -> AttentionCost:
    """Count parameters, FLOPs, softmax entries and bytes of one attention layer.

    Parameters
    ----------
    n : int
        Number of queries.
    d : int
        Model width, the same for queries, context and output.
    n_heads : int
        Number of query heads h; it must divide ``d``.
    n_context : int, optional
        Number m of tokens that keys and values are made from.  None = ``n``: self-attention.
    n_kv_heads : int, optional
        Number of heads that have keys and values of their own; it must divide ``n_heads``.
        None = ``n_heads``.  1 is multi-query attention, values between are grouped-query.
    bytes_per_number : int, default 4
        4 for float32, 8 for float64, 2 for half precision.

    Returns
    -------
    cost : AttentionCost
        Counts for a batch of one sequence, without masks, biases or caching of earlier work.

    Raises
    ------
    ValueError
        ``n_heads`` does not divide ``d``, or ``n_kv_heads`` does not divide ``n_heads``.

    References
    ----------
    Vaswani et al. (2017), section 3.2.2, arXiv:1706.03762.
    Shazeer (2019), arXiv:1911.02150 (multi-query attention).
    Ainslie et al. (2023), arXiv:2305.13245 (grouped-query attention).

    Examples
    --------
    >>> one, eight = attention_cost(64, 512, 1), attention_cost(64, 512, 8)
    >>> one.matmul_flops == eight.matmul_flops
    True
    >>> eight.softmax_entries // one.softmax_entries
    8
    """
    n = _check.integer("n", n, minimum=0)
    d = _check.integer("d", d, minimum=1)
    h = _check.integer("n_heads", n_heads, minimum=1)
    m = n if n_context is None else _check.integer("n_context", n_context, minimum=0)
    h_kv = h if n_kv_heads is None else _check.integer("n_kv_heads", n_kv_heads, minimum=1)
    size = _check.integer("bytes_per_number", bytes_per_number, minimum=1)
    _check.divides("n_heads", h, "d", d)
    _check.divides("n_kv_heads", h_kv, "n_heads", h)

    d_k = d // h
    d_kv = h_kv * d_k  # width of all keys, and of all values, side by side
    parameters = 2 * d * d + 2 * d * d_kv  # w_q and w_o, then w_k and w_v
    projection_flops = 2 * n * d * d + 2 * 2 * m * d * d_kv
    score_flops = 2 * h * n * m * d_k
    value_flops = 2 * h * n * m * d_k
    output_flops = 2 * n * d * d
    softmax_entries = h * n * m
    return AttentionCost(
        parameters=parameters,
        projection_flops=projection_flops,
        score_flops=score_flops,
        value_flops=value_flops,
        output_flops=output_flops,
        matmul_flops=projection_flops + score_flops + value_flops + output_flops,
        softmax_entries=softmax_entries,
        weight_bytes=parameters * size,
        score_bytes=softmax_entries * size,
        kv_cache_bytes=2 * m * d_kv * size,
    )
