"""What a head attends to: its scores for a role, beside those of chance.

A score by itself says little, so every score here has its chance level beside it: what a head with
even weights would get.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mha_lib import _check
from mha_lib._types import BoolArray, FloatArray, Integer, Model, Shape
from mha_lib.learning.tasks import TokenBatch, VectorBatch
from mha_lib.masks import causal_mask

# A head is named after the role on which it puts more attention than this, ...
NAMED_MASS = 0.5
# ... or "broad" if there is no such role, but its entropy is above this.
BROAD_ENTROPY = 0.9

PAIR = "this pair of query and key counts"


def attention_mass(
    weights: ArrayLike, targets: ArrayLike, rows: ArrayLike | None = None
) -> FloatArray:
    """Return how much of its attention each head puts on certain pairs.

    Parameters
    ----------
    weights : float array, (..., h, Tq, Tk)
        Attention weights.
    targets : bool array broadcastable to (..., Tq, Tk)
        The pairs of query and key that count; the same for all heads.
    rows : bool array broadcastable to (..., Tq), optional
        The queries that are asked.  None = those that have a target.

    Returns
    -------
    mass : float64 array, (h,)
        Mean over all sequences and the queries asked, between 0 and 1.

    Raises
    ------
    ValueError
        No query is asked.

    See Also
    --------
    chance_mass : what an even head gets.

    Examples
    --------
    >>> weights = np.array([[[1.0, 0.0], [0.9, 0.1]]])  # one head, two tokens
    >>> attention_mass(weights, previous_token(2))
    array([0.9])
    """
    weights = _check.real_array("weights", weights, axes=("h", "Tq", "Tk"))
    *leading, n_heads, n, m = weights.shape
    _check.not_empty("weights", "h", n_heads, "give at least one head")
    _check.between_0_and_1("weights", weights)
    targets, rows = _asked(targets, rows, (*leading, n, m))
    mass = (weights * targets[..., None, :, :]).sum(axis=-1)  # (..., h, Tq)
    total = (mass * rows[..., None, :]).sum(axis=-1)  # (..., h)
    return total.reshape(-1, n_heads).sum(axis=0) / np.count_nonzero(rows)


def chance_mass(
    targets: ArrayLike, mask: ArrayLike | None = None, rows: ArrayLike | None = None
) -> float:
    """Return the attention mass of a head that looks at everything alike.

    Parameters
    ----------
    targets : bool array, (..., Tq, Tk)
        The pairs of query and key that count.
    mask : bool array broadcastable to (..., Tq, Tk), optional
        True = this query may look at this key.  None = all pairs allowed.
    rows : bool array broadcastable to (..., Tq), optional
        The queries that are asked.  None = those that have a target.

    Returns
    -------
    mass : float
        Between 0 and 1.

    Raises
    ------
    ValueError
        No query is asked.

    Examples
    --------
    >>> chance_mass(previous_token(11))  # one of eleven
    0.09090909090909091
    """
    targets = _check.boolean_mask("targets", targets, true=PAIR)
    if targets.ndim < 2:
        raise ValueError(
            f"targets has shape {targets.shape}, but needs at least 2 axes, (..., Tq, Tk): "
            f"pass np.atleast_2d(targets), one row of keys per query"
        )
    if mask is None:
        mask = np.ones(targets.shape[-2:], bool)
    # One sequence's targets may meet the masks of many.  Those of many must have one mask each:
    # (B, Tq, Tk) and (B, 1, Tq, Tk) would broadcast to (B, B, Tq, Tk).
    mask = _check.boolean_mask("mask", mask, targets.shape if targets.ndim > 2 else None)
    shape = _check.leading_shape({"targets": targets, "mask": mask}, n_trailing=0)
    mask = np.broadcast_to(mask, shape)
    even = mask / np.maximum(mask.sum(axis=-1, keepdims=True), 1)  # (..., Tq, Tk)
    return float(attention_mass(even[..., None, :, :], targets, rows)[0])


def _asked(targets: ArrayLike, rows: ArrayLike | None, shape: Shape) -> tuple[BoolArray, BoolArray]:
    """Return targets and rows, broadcast to (..., Tq, Tk) and (..., Tq)."""
    targets = np.broadcast_to(_check.boolean_mask("targets", targets, shape, PAIR), shape)
    if rows is None:
        if not targets.any():
            raise ValueError("targets selects no query: give targets at least one True")
        rows = np.asarray(targets.any(axis=-1))  # (..., Tq)
    else:
        rows = _check.boolean_mask("rows", rows, true="this query is asked")
        _check.broadcasts("rows", rows, shape[:-1], "one entry per query")
        rows = np.broadcast_to(rows, shape[:-1])
    if not rows.any():
        raise ValueError("rows selects no query: give rows at least one True")
    return targets, rows


def normalised_entropy(weights: ArrayLike, mask: ArrayLike | None = None) -> FloatArray:
    """Return how broadly each head looks: 0 for one token, 1 for all alike.

    Parameters
    ----------
    weights : float array, (..., h, Tq, Tk)
        Attention weights.
    mask : bool array broadcastable to (..., h, Tq, Tk), optional
        True = this query may look at this key.  None = all pairs allowed.

    Returns
    -------
    entropy : float64 array, (h,)
        Mean over sequences and queries of the entropy of a row, divided by the largest that
        it could have.  Queries with fewer than two keys to choose from are left out.

    Raises
    ------
    ValueError
        No query of a head has two keys to choose from.

    Examples
    --------
    >>> normalised_entropy([[[0.5, 0.5]], [[1.0, 0.0]]])  # two heads, one query each
    array([1., 0.])
    """
    weights = _check.real_array("weights", weights, axes=("h", "Tq", "Tk"))
    n_heads = weights.shape[-3]
    _check.not_empty("weights", "h", n_heads, "give at least one head")
    _check.between_0_and_1("weights", weights)
    mask = np.ones((), bool) if mask is None else mask
    mask = np.broadcast_to(_check.boolean_mask("mask", mask, weights.shape), weights.shape)
    n_allowed = mask.sum(axis=-1)  # (..., h, Tq)
    choice = n_allowed > 1
    # 0 ln 0 counts as 0.
    entropy = -(weights * np.log(np.where(weights > 0, weights, 1.0))).sum(axis=-1)  # (..., h, Tq)
    share = np.where(choice, entropy / np.log(np.maximum(n_allowed, 2)), 0.0)

    def per_head(values):
        return np.moveaxis(values, -2, 0).reshape(n_heads, -1).sum(axis=1)

    n_choices = per_head(choice)  # (h,)
    if not n_choices.all():
        raise ValueError(
            f"no query of head {n_choices.argmin()} has two keys to choose from: "
            f"use longer rows or a wider mask"
        )
    return per_head(share) / n_choices


# Who should look where ----------------------------------------------------------------------------


def previous_token(n: Integer) -> BoolArray:
    """Return the pairs of each token and the one before it.

    Parameters
    ----------
    n : int
        Number of tokens.

    Returns
    -------
    targets : bool array, (n, n)
        True where the key is the query's predecessor.

    Examples
    --------
    >>> previous_token(3).astype(int)
    array([[0, 0, 0],
           [1, 0, 0],
           [0, 1, 0]])
    """
    n = _check.integer("n", n, minimum=2)
    _check.room("n", n, n * n)
    return np.eye(n, k=-1, dtype=bool)


def marked_token(marked: ArrayLike, n: Integer) -> BoolArray:
    """Return the pairs of every token and its sequence's marked token.

    Parameters
    ----------
    marked : int array, (B,)
        Index of each sequence's marked token.
    n : int
        Number of tokens.

    Returns
    -------
    targets : bool array, (B, n, n)
        True where the key is marked.

    Examples
    --------
    >>> marked_token([1], 3).astype(int)
    array([[[0, 1, 0],
            [0, 1, 0],
            [0, 1, 0]]])
    """
    n = _check.integer("n", n, minimum=1)
    marked = _check.integer_array("marked", marked, flags="np.argmax(marked, axis=-1)")
    _check.within("marked", marked, n, "tokens n")
    _check.room("n", n, n * n * max(marked.size, 1))
    is_marked = np.arange(n) == marked[..., None, None]  # (B, 1, n)
    return np.repeat(is_marked, n, axis=-2)


def induction_targets(tokens: ArrayLike) -> BoolArray:
    """Return the pairs of each token and those that followed its earlier occurrences.

    Parameters
    ----------
    tokens : int array, (..., n)
        Symbols.

    Returns
    -------
    targets : bool array, (..., n, n)
        True where the key comes right after an earlier token equal to the query: looking there
        tells what came next the last time.

    References
    ----------
    Olsson et al. (2022), arXiv:2209.11895.

    Examples
    --------
    >>> induction_targets([5, 8, 5, 8]).astype(int)
    array([[0, 0, 0, 0],
           [0, 0, 0, 0],
           [0, 1, 0, 0],
           [0, 0, 1, 0]])
    """
    tokens = _check.integer_array("tokens", tokens)
    if tokens.ndim == 0:
        raise ValueError(
            "tokens has shape (), but needs at least one axis: pass np.atleast_1d(tokens)"
        )
    n = tokens.shape[-1]
    follows = np.zeros((*tokens.shape, n), bool)  # (..., n, n)
    follows[..., 1:] = tokens[..., :, None] == tokens[..., None, :-1]
    return follows & np.tri(n, dtype=bool)  # not what lies ahead


# The heads of a model -----------------------------------------------------------------------------


def head_scores(
    model: Model, batch: VectorBatch | TokenBatch, gates: ArrayLike | None = None
) -> dict[str, FloatArray]:
    """Return the scores of all heads for the roles that a task suggests.

    Parameters
    ----------
    model : VectorModel or TokenModel
        See ``mha_lib.learning.models``.
    batch : VectorBatch or TokenBatch
        Data to measure on.
    gates : float array, (L, h), optional
        0 for each head that is removed, 1 for the others.  None = all are there.

    Returns
    -------
    scores : dict of str to float64 array, (L, h)
        "previous token", "entropy"; "marked token" where a token is marked, and "induction" where
        a block is repeated.

    See Also
    --------
    chance_scores : the same for even heads.

    Examples
    --------
    >>> from mha_lib.learning import ThreeJobs, TokenModel
    >>> model = TokenModel(ThreeJobs(), d=16, n_heads=4, seed=0)
    >>> batch = ThreeJobs().batch(np.random.default_rng(0), 8)
    >>> head_scores(model, batch)["marked token"].shape
    (1, 4)
    """
    _check.has("model", model, ["layers", "evaluate"], "a VectorModel or TokenModel")
    model.forward(batch, gates)
    return _last_scores(model, batch)


def _last_scores(model, batch):
    """Return the scores of the heads in the last forward pass."""
    weights = [layer.weights for layer in model.layers]  # (B, h, n, n) each
    mask = _mask(model, weights[0].shape[-1])
    scores = {
        role: np.stack([attention_mass(w, targets) for w in weights])
        for role, targets in _roles(batch, weights[0].shape[-1]).items()
    }
    scores["entropy"] = np.stack([normalised_entropy(w, mask) for w in weights])
    return scores


def head_roles(scores: Mapping[str, FloatArray]) -> NDArray[np.str_]:
    """Return the role that each head has, or "" where no score clearly leads.

    Parameters
    ----------
    scores : dict of str to float array, (L, h)
        See `head_scores`.

    Returns
    -------
    roles : str array, (L, h)
        The role with the largest mass above ``NAMED_MASS``; else "broad" where the entropy is above
        ``BROAD_ENTROPY``.

    Examples
    --------
    >>> scores = {"previous token": [[0.9, 0.1, 0.3]], "entropy": [[0.2, 1.0, 0.6]]}
    >>> head_roles({role: np.array(values) for role, values in scores.items()})
    array([['previous token', 'broad', '']], dtype='<U14')
    """
    if not isinstance(scores, Mapping):
        raise TypeError(
            f"scores must be a dict, not {type(scores).__name__}: pass what head_scores returned"
        )
    roles = [score for score in scores if score != "entropy"]
    if not roles or "entropy" not in scores:
        raise ValueError(
            f"scores has the keys {list(scores)}, but needs 'entropy' and at least one role: "
            f"pass what head_scores returned"
        )
    masses = np.stack([scores[role] for role in roles])  # (R, L, h)
    rest = np.where(scores["entropy"] > BROAD_ENTROPY, "broad", "")
    return np.where(masses.max(axis=0) > NAMED_MASS, np.array(roles)[masses.argmax(axis=0)], rest)


def chance_scores(model: Model, batch: VectorBatch | TokenBatch) -> dict[str, float]:
    """Return what heads with even weights score, for the roles that a task suggests.

    Parameters
    ----------
    model : VectorModel or TokenModel
        Says whether attention is causal.
    batch : VectorBatch or TokenBatch
        Data to measure on.

    Returns
    -------
    scores : dict of str to float
        The roles of `head_scores`.

    Examples
    --------
    >>> from mha_lib.learning import ThreeJobs, TokenModel
    >>> model = TokenModel(ThreeJobs(), d=16, n_heads=4, seed=0)
    >>> batch = ThreeJobs().batch(np.random.default_rng(0), 8)
    >>> chance_scores(model, batch)
    {'previous token': 0.0625, 'marked token': 0.0625, 'entropy': 1.0}
    """
    _check.has("model", model, ["layers", "evaluate"], "a VectorModel or TokenModel")
    _check.has("batch", batch, ["targets", "marked"], "a VectorBatch or TokenBatch")
    n = batch.targets.shape[1]
    mask = _mask(model, n)
    scores = {role: chance_mass(targets, mask) for role, targets in _roles(batch, n).items()}
    return {**scores, "entropy": 1.0}


def _mask(model, n):
    return causal_mask(n) if model.layers[0].causal else None


def _roles(batch, n):
    """Return the pairs of query and key that each role is about."""
    roles = {"previous token": previous_token(n)}
    if batch.marked is not None:
        roles["marked token"] = marked_token(batch.marked, n)
    if getattr(batch, "period", None) is not None:
        roles["induction"] = induction_targets(batch.tokens)
    return roles
