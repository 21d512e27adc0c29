"""Right solutions in many styles: all of them earn full marks.

Each style writes the whole layer, and those of its parts in which the style shows.
"""

import functools

import numpy as np

# --- pieces that are written the usual way in most styles -------------------------------------


def split(x, n_heads):
    return x.reshape(*x.shape[:-1], n_heads, -1).swapaxes(-3, -2)


def merge(x):
    x = x.swapaxes(-3, -2)
    return x.reshape(*x.shape[:-2], -1)


def layer(attention, split=split, merge=merge):
    """Return a whole layer around an attention."""

    def multi_head_attention(
        x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
    ):
        source = x if context is None else context
        q, k, v = (
            split(x @ w_q, n_heads),
            split(source @ w_k, n_heads),
            split(source @ w_v, n_heads),
        )
        heads, weights = attention(q, k, v, mask)
        out = merge(heads) @ w_o
        return (out, weights) if return_weights else out

    return multi_head_attention


def style(softmax, attention, whole=None, **more):
    return {
        "softmax": softmax,
        "scaled_dot_product_attention": attention,
        "multi_head_attention": whole or layer(attention),
        **more,
    }


def safe_softmax(z):
    top = z.max(axis=-1, keepdims=True)
    e = np.exp(z - np.where(np.isfinite(top), top, 0))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total > 0, total, 1)


# --- loops over every number ------------------------------------------------------------------


def looped_softmax(z):
    result = np.empty_like(z)
    for place in np.ndindex(z.shape[:-1]):
        largest = max(float(score) for score in z[place])
        if largest == -np.inf:
            result[place] = 0
            continue
        powers = [np.exp(float(score) - largest) for score in z[place]]
        for j, power in enumerate(powers):
            result[(*place, j)] = power / sum(powers)
    return result


def looped_attention(q, k, v, mask=None):
    *leading, n_queries, d_k = q.shape
    n_keys = k.shape[-2]
    allowed = np.broadcast_to(True if mask is None else mask, (*leading, n_queries, n_keys))
    weights = np.zeros((*leading, n_queries, n_keys), q.dtype)
    out = np.zeros((*leading, n_queries, v.shape[-1]), q.dtype)
    for place in np.ndindex(*leading):
        for i in range(n_queries):
            scores = np.full(n_keys, -np.inf)
            for j in range(n_keys):
                if allowed[place][i, j]:
                    scores[j] = q[place][i] @ k[place][j] / np.sqrt(d_k)
            weights[place][i] = looped_softmax(scores)
            for j in range(n_keys):
                out[place][i] += weights[place][i, j] * v[place][j]
    return out, weights


def looped_split(x, n_heads):
    d_k = x.shape[-1] // n_heads
    result = np.zeros((*x.shape[:-2], n_heads, x.shape[-2], d_k), x.dtype)
    for i in range(n_heads):
        for token in range(x.shape[-2]):
            for column in range(d_k):
                result[..., i, token, column] = x[..., token, i * d_k + column]
    return result


def looped_merge(x):
    *leading, h, n, d_k = x.shape
    result = np.zeros((*leading, n, h * d_k), x.dtype)
    for i in range(h):
        result[..., i * d_k : (i + 1) * d_k] = x[..., i, :, :]
    return result


# --- einsum -----------------------------------------------------------------------------------


def einsum_softmax(z):
    e = np.exp(z - np.max(z, axis=-1, keepdims=True))
    return np.einsum("...i,...->...i", e, 1 / np.einsum("...i->...", e))


def einsum_attention(q, k, v, mask=None):
    scores = np.einsum("...id,...jd->...ij", q, k) * float(q.shape[-1]) ** -0.5
    weights = safe_softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return np.einsum("...ij,...jd->...id", weights, v), weights


def einsum_layer(x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False):
    source = x if context is None else context
    q, k, v = (
        np.einsum("...nd,dhk->...hnk", tokens, w.reshape(len(w), n_heads, -1))
        for tokens, w in ((x, w_q), (source, w_k), (source, w_v))
    )
    heads, weights = einsum_attention(q, k, v, mask)
    out = np.einsum("...hnk,hkd->...nd", heads, w_o.reshape(n_heads, -1, w_o.shape[-1]))
    return (out, weights) if return_weights else out


def einsum_split(x, n_heads):
    return np.einsum("...nhk->...hnk", x.reshape(*x.shape[:-1], n_heads, -1)).copy()


# --- np.matmul, np.divide and their like ------------------------------------------------------


def matmul_softmax(z):
    e = np.exp(np.subtract(z, np.amax(z, axis=-1)[..., np.newaxis]))
    return np.divide(e, np.sum(e, axis=-1)[..., None])


def matmul_attention(q, k, v, mask=None):
    axes = (*range(k.ndim - 2), k.ndim - 1, k.ndim - 2)
    scores = np.matmul(q, np.transpose(k, axes)) / float(np.sqrt(k.shape[-1]))
    if mask is not None:
        scores = np.add(scores, np.log(mask.astype(q.dtype)))  # the log of 0 is -inf
    weights = safe_softmax(scores)
    return np.matmul(weights, v), weights


# --- np.dot, one matrix after another ---------------------------------------------------------


def dot_attention(q, k, v, mask=None):
    if q.ndim > 2:
        if mask is not None:
            mask = np.broadcast_to(mask, (*q.shape[:-1], k.shape[-2]))
        results = [
            dot_attention(q[i], k[i], v[i], None if mask is None else mask[i])
            for i in range(len(q))
        ]
        return tuple(np.array(part) for part in zip(*results, strict=True))
    scores = np.dot(q, k.T) / np.sqrt(q.shape[1])
    weights = safe_softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return np.dot(weights, v), weights


# --- in place, on a copy ----------------------------------------------------------------------


def in_place_softmax(z):
    z = z.copy()
    z -= z.max(axis=-1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=-1, keepdims=True)
    return z


def in_place_attention(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2)
    scores /= np.sqrt(q.shape[-1])
    if mask is None:
        return in_place_softmax(scores) @ v, in_place_softmax(scores)
    scores[~np.broadcast_to(mask, scores.shape)] = -np.inf
    weights = np.zeros_like(scores)
    some = np.isfinite(scores).any(axis=-1)  # rows in which anything is allowed
    weights[some] = in_place_softmax(scores[some])
    return weights @ v, weights


# --- float32 inside ---------------------------------------------------------------------------


def single_softmax(z):
    return safe_softmax(z.astype(np.float32))


def single_attention(q, k, v, mask=None):
    dtype = q.dtype
    q, k, v = (np.asarray(a, dtype="float32") for a in (q, k, v))
    out, weights = einsum_attention(q, k, v, mask)
    return out.astype(dtype), weights.astype(dtype)


def single_layer(x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False):
    x, w_q, w_k, w_v, w_o = (a.astype(np.float32) for a in (x, w_q, w_k, w_v, w_o))
    context = None if context is None else context.astype(np.float32)
    return layer(einsum_attention)(
        x, w_q, w_k, w_v, w_o, n_heads, context=context, mask=mask, return_weights=return_weights
    )


# --- lists of heads ---------------------------------------------------------------------------


def listed_layer(x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False):
    source = x if context is None else context
    if mask is not None:
        shape = (*x.shape[:-2], n_heads, x.shape[-2], source.shape[-2])
        mask = np.broadcast_to(mask, shape)
    outs, maps = [], []
    for i, (of_q, of_k, of_v) in enumerate(
        zip(*(np.split(w, n_heads, axis=1) for w in (w_q, w_k, w_v)), strict=True)
    ):
        out, weights = einsum_attention(
            x @ of_q, source @ of_k, source @ of_v, None if mask is None else mask[..., i, :, :]
        )
        outs.append(out)
        maps.append(weights)
    out = np.concatenate(outs, axis=-1) @ w_o
    return (out, np.stack(maps, axis=-3)) if return_weights else out


def listed_split(x, n_heads):
    return np.stack(np.split(x, n_heads, axis=-1), axis=-3)


def listed_merge(x):
    return np.concatenate([x[..., i, :, :] for i in range(x.shape[-3])], axis=-1)


# --- the sum of what each head adds -----------------------------------------------------------


def summed_layer(x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False):
    source = x if context is None else context
    heads, weights = einsum_attention(
        split(x @ w_q, n_heads), split(source @ w_k, n_heads), split(source @ w_v, n_heads), mask
    )
    out = sum(heads[..., i, :, :] @ rows for i, rows in enumerate(np.split(w_o, n_heads)))
    if return_weights:
        return out, weights
    return out


# --- the logarithm of the sum -----------------------------------------------------------------


def log_softmax(z):
    top = np.maximum(z.max(axis=-1, keepdims=True), np.finfo(z.dtype).min)  # finite
    with np.errstate(divide="ignore"):
        log_sum = top + np.log(np.exp(z - top).sum(axis=-1, keepdims=True))
    return np.exp(z - np.where(log_sum > np.finfo(z.dtype).min, log_sum, 0))


def log_attention(q, k, v, mask=None):
    scores = q @ np.moveaxis(k, -1, -2) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores + np.where(mask, 0, -np.inf).astype(q.dtype)
    weights = log_softmax(scores)
    return weights @ v, weights


# --- every score against every other ----------------------------------------------------------


def compared_softmax(z):
    """Weight i is one over the sum of exp(z_j - z_i)."""
    allowed = z > -np.inf
    z = np.where(allowed, z, 0)
    with np.errstate(over="ignore"):
        powers = np.exp(z[..., None, :] - z[..., :, None])
    total = (powers * allowed[..., None, :]).sum(axis=-1)
    return np.where(allowed, 1 / np.where(allowed, total, 1), 0).astype(z.dtype)


def compared_attention(q, k, v, mask=None):
    scores = (q[..., :, None, :] * k[..., None, :, :]).sum(axis=-1) / float(np.sqrt(q.shape[-1]))
    weights = compared_softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return (weights[..., None] * v[..., None, :, :]).sum(axis=-2), weights


# --- powers times the mask --------------------------------------------------------------------


def multiplied_attention(q, k, v, mask=None):
    scores = q @ k.swapaxes(-2, -1) / float(np.sqrt(q.shape[-1]))
    mask = np.ones_like(scores, dtype=bool) if mask is None else np.broadcast_to(mask, scores.shape)
    lowest = np.where(mask, scores, scores.min())
    powers = np.exp(lowest - lowest.max(axis=-1, keepdims=True)) * mask
    weights = powers / np.maximum(powers.sum(axis=-1, keepdims=True), 1e-30)
    return weights @ v, weights


# --- heads folded into the batch --------------------------------------------------------------


def folded_layer(x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False):
    source = x if context is None else context
    leading, n, m = x.shape[:-2], x.shape[-2], source.shape[-2]
    q, k, v = (
        np.ascontiguousarray(split(tokens @ w, n_heads)).reshape(
            -1, tokens.shape[-2], w.shape[1] // n_heads
        )
        for tokens, w in ((x, w_q), (source, w_k), (source, w_v))
    )
    if mask is not None:
        mask = np.broadcast_to(mask, (*leading, n_heads, n, m)).reshape(-1, n, m)
    heads, weights = in_place_attention(q, k, v, mask)
    out = merge(heads.reshape(*leading, n_heads, n, -1)) @ w_o
    return (out, weights.reshape(*leading, n_heads, n, m)) if return_weights else out


# --- one sequence after another, by recursion -------------------------------------------------


def recursive_layer(
    x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
):
    if x.ndim == 2:
        return listed_layer(
            x,
            w_q,
            w_k,
            w_v,
            w_o,
            n_heads,
            context=context,
            mask=mask,
            return_weights=return_weights,
        )
    of_each = [None] * len(x)
    if mask is not None:
        of_each = mask if mask.ndim == x.ndim + 1 and len(mask) == len(x) else [
            mask[0] if mask.ndim == x.ndim + 1 else mask
        ] * len(x)  # fmt: skip
    results = [
        recursive_layer(
            one, w_q, w_k, w_v, w_o, n_heads,
            context=None if context is None else context[i], mask=of_each[i], return_weights=True,
        )
        for i, one in enumerate(x)
    ]  # fmt: skip
    out, weights = map(np.stack, zip(*results, strict=True))
    return (out, weights) if return_weights else out


# --- along an axis, in masked arrays, as an object --------------------------------------------


def _one_row(row):
    if row.max() == -np.inf:
        return np.zeros_like(row)
    e = np.exp(row - row.max())
    return e / e.sum()


def applied_softmax(z):
    return np.apply_along_axis(_one_row, -1, z)


def applied_attention(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2) / float(np.sqrt(q.shape[-1]))
    if mask is not None:
        scores = np.where(np.logical_not(mask), float("-inf"), scores)
    weights = applied_softmax(scores)
    return weights @ v, weights


def masked_attention(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2) / float(np.sqrt(q.shape[-1]))
    hidden = False if mask is None else np.broadcast_to(~mask, scores.shape)
    scores = np.ma.array(scores, mask=hidden)
    e = np.ma.exp(scores - scores.max(axis=-1)[..., None])
    weights = (e / e.sum(axis=-1)[..., None]).filled(0).astype(q.dtype)
    return weights @ v, weights


class Attention:
    """A callable object."""

    def __init__(self, softmax):
        self.softmax = softmax

    def __call__(self, q, k, v, mask=None):
        weights = self.softmax(self.scores(q, k, mask))
        return weights @ v, weights

    def scores(self, q, k, mask):
        scores = (q / float(np.sqrt(q.shape[-1]))) @ k.swapaxes(-1, -2)
        return scores if mask is None else np.where(mask, scores, -np.inf)


def unrolled_split(x, n_heads):
    heads = np.reshape(x, (*x.shape[:-1], n_heads, x.shape[-1] // n_heads))
    return np.moveaxis(heads, -2, -3)


def unrolled_merge(x):
    *leading, h, n, d_k = x.shape
    return np.moveaxis(x, -3, -2).reshape((*leading, n, h * d_k))


# --- masks and counts -------------------------------------------------------------------------


def compared_causal(n, *, n_past=0):
    return np.greater_equal.outer(np.arange(n) + n_past, np.arange(n + n_past))


def triangle_causal(n, *, n_past=0):
    return np.tril(np.ones((n, n + n_past), dtype=bool), k=n_past)


def upper_causal(n, *, n_past=0):
    return ~np.triu(np.ones((n, n + n_past), dtype=bool), n_past + 1)


def joined_causal(n, *, n_past=0):
    return np.hstack([np.full((n, n_past), True), np.tri(n).astype(bool)])


def listed_causal(n, *, n_past=0):
    rows = [[True] * (n_past + i + 1) + [False] * (n - i - 1) for i in range(n)]
    return np.array(rows)


def compared_padding(lengths, n):
    lengths = np.asarray(lengths)
    return (np.arange(n) < lengths[..., None]).reshape(*lengths.shape, 1, 1, n)


def expanded_padding(lengths, n):
    return np.expand_dims(lengths, (-1, -2, -3)) > np.arange(n)


def looped_padding(lengths, n):
    mask = np.zeros((*lengths.shape, 1, 1, n), bool)
    for place, length in np.ndenumerate(lengths):
        for key in range(length):
            mask[(*place, 0, 0, key)] = True
    return mask


# --- all of them ------------------------------------------------------------------------------

STYLES = {
    "loops": style(
        looped_softmax, looped_attention, layer(looped_attention, looped_split, looped_merge),
        split_heads=looped_split, merge_heads=looped_merge, padding_mask=looped_padding,
        count_parameters=lambda d, n_heads: sum(4 * d for _ in range(d)),
    ),
    "einsum": style(einsum_softmax, einsum_attention, einsum_layer, split_heads=einsum_split),
    "matmul": style(matmul_softmax, matmul_attention, causal_mask=compared_causal),
    "np.dot of each matrix": style(matmul_softmax, dot_attention, causal_mask=triangle_causal),
    "in place on a copy": style(in_place_softmax, in_place_attention, causal_mask=upper_causal),
    "float32 inside": style(single_softmax, single_attention, single_layer),
    "lists of heads": style(
        safe_softmax, einsum_attention, listed_layer,
        split_heads=listed_split, merge_heads=listed_merge, causal_mask=listed_causal,
    ),
    "the sum of heads": style(safe_softmax, einsum_attention, summed_layer),
    "the logarithm of the sum": style(log_softmax, log_attention, causal_mask=joined_causal),
    "every score against every other": style(
        compared_softmax, compared_attention, padding_mask=compared_padding
    ),
    "powers times the mask": style(safe_softmax, multiplied_attention),
    "heads folded into the batch": style(
        safe_softmax, in_place_attention, folded_layer, padding_mask=expanded_padding
    ),
    "recursion": style(safe_softmax, dot_attention, recursive_layer),
    "along an axis": style(
        applied_softmax, applied_attention,
        layer(applied_attention, unrolled_split, unrolled_merge),
        split_heads=unrolled_split, merge_heads=unrolled_merge,
    ),
    "masked arrays": style(safe_softmax, masked_attention),
    "objects": style(functools.partial(safe_softmax), Attention(applied_softmax)),
}  # fmt: skip
