"""Slow implementations that are easy to believe, for the library to be compared with.

`multi_head_attention` is the loop over heads of the source document.  The other functions
are written number by number from the equations, and count the multiply-adds that they do.
"""

import cmath
import math
from collections import Counter

import numpy as np

# Multiply-adds by stage: "projection", "score", "value", "output".  Clear before counting.
multiply_adds = Counter()


def multi_head_attention(x, w_q, w_k, w_v, w_o, n_heads):
    """Attend in one head after the other: x (n, d), square weights -> (n, d)."""
    d_k = x.shape[1] // n_heads
    queries, keys, values = x @ w_q, x @ w_k, x @ w_v
    outputs = []
    for head in range(n_heads):
        columns = np.arange(head * d_k, (head + 1) * d_k)
        scores = queries[:, columns] @ keys[:, columns].T / np.sqrt(d_k)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        outputs.append(weights @ values[:, columns])
    return np.hstack(outputs) @ w_o


def dot(a, b, stage):
    """Multiply two rows number by number and add up."""
    total = 0.0
    for left, right in zip(a, b, strict=True):
        total += float(left) * float(right)
        multiply_adds[stage] += 1
    return total


def project(x, w, stage):
    """Return x (n, a) times w (a, b): one dot product per number of the result."""
    out = np.empty((x.shape[0], w.shape[1]))
    for i in range(x.shape[0]):
        for j in range(w.shape[1]):
            out[i, j] = dot(x[i], w[:, j], stage)
    return out


def softmax_row(scores):
    """Return the weights of one non-empty row of finite scores."""
    largest = max(scores)
    exponentials = [math.exp(score - largest) for score in scores]
    return [e / math.fsum(exponentials) for e in exponentials]


def attend(q, k, v, mask=None):
    """One head: q (Tq, Dk), k (Tk, Dk), v (Tk, Dv), mask (Tq, Tk) -> out and weights.

    A key that the mask hides is not read at all.
    """
    weights = np.zeros((len(q), len(k)))
    out = np.zeros((len(q), v.shape[1]))
    for i in range(len(q)):
        allowed = [j for j in range(len(k)) if mask is None or mask[i, j]]
        if not allowed:
            continue
        row = softmax_row([dot(q[i], k[j], "score") / math.sqrt(len(q[i])) for j in allowed])
        weights[i, allowed] = row
        for c in range(v.shape[1]):
            out[i, c] = dot(row, v[allowed, c], "value")
    return out, weights


def attend_everywhere(q, k, v, mask=None):
    """Repeat `attend` for every index of the leading axes, which broadcast."""
    leading = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    if mask is not None:
        mask = np.broadcast_to(mask, (*leading, q.shape[-2], k.shape[-2]))
    q, k, v = (np.broadcast_to(a, (*leading, *a.shape[-2:])) for a in (q, k, v))
    out = np.empty((*leading, q.shape[-2], v.shape[-1]))
    weights = np.empty((*leading, q.shape[-2], k.shape[-2]))
    for index in np.ndindex(*leading):
        here = None if mask is None else mask[index]
        out[index], weights[index] = attend(q[index], k[index], v[index], here)
    return out, weights


def turn(rows):
    """Turn the coordinate pairs of row i, (n, d_k), by i times their frequencies.

    Coordinates j and j + d_k / 2 are one complex number, which a turn multiplies.
    """
    n, d_k = rows.shape
    turned = np.empty((n, d_k))
    for i in range(n):
        for j in range(d_k // 2):
            angle = i * 10_000 ** (-2 * j / d_k)
            number = complex(rows[i, j], rows[i, j + d_k // 2]) * cmath.exp(1j * angle)
            turned[i, j], turned[i, j + d_k // 2] = number.real, number.imag
    return turned


def attend_in_heads(
    x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, n_kv_heads=None, rotary=False
):
    """Multi-head attention of one sequence: x (n, d), context (m, d_c), mask (h, n, m).

    With ``n_kv_heads``, neighbouring query heads share the columns of ``w_k`` and ``w_v``.
    With ``rotary``, each head's queries and keys are turned.
    """
    context = x if context is None else context
    n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
    q, k, v = (
        project(tokens, w, "projection") for tokens, w in ((x, w_q), (context, w_k), (context, w_v))
    )
    d_k, d_v = q.shape[1] // n_heads, v.shape[1] // n_kv_heads
    concatenated = np.empty((len(x), n_heads * d_v))
    weights = np.empty((n_heads, len(x), len(context)))
    for head in range(n_heads):
        kv_head = head * n_kv_heads // n_heads
        q_head = q[:, head * d_k : (head + 1) * d_k]
        k_head = k[:, kv_head * d_k : (kv_head + 1) * d_k]
        if rotary:
            q_head, k_head = turn(q_head), turn(k_head)
        concatenated[:, head * d_v : (head + 1) * d_v], weights[head] = attend(
            q_head,
            k_head,
            v[:, kv_head * d_v : (kv_head + 1) * d_v],
            None if mask is None else mask[head],
        )
    return project(concatenated, w_o, "output"), weights
