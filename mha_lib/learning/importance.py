"""How strongly the loss depends on a head, by gradients: without removing any.

Whether that agrees with what removing a head does is for `spearman` to say.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mha_lib import _check
from mha_lib._types import FloatArray, Integer, Model
from mha_lib.learning.tasks import TokenBatch
from mha_lib.learning.train import cross_entropy


def gradient_importance(
    model: Model, batch: Any, gates: ArrayLike | None = None, *, by_layer: bool = True
) -> FloatArray:
    """Return how strongly the loss of a sequence depends on each gate, to first order.

    Parameters
    ----------
    model : VectorModel or TokenModel
        See ``mha_lib.learning.models``.  Its gradients are overwritten.
    batch : VectorBatch or TokenBatch
        Data to measure on.
    gates : float array, (L, h), optional
        Where to take the gradient.  None = all 1.
    by_layer : bool, default True
        Divide each layer's numbers by their Euclidean length, as Michel et al. do.

    Returns
    -------
    importance : float64 array, (L, h)
        Mean over sequences of the absolute gradient of that sequence's part of the loss.

    See Also
    --------
    path_importance : the same along the way from no heads to all.

    References
    ----------
    Michel et al. (2019), arXiv:1905.10650.

    Examples
    --------
    >>> from mha_lib.learning.models import VectorModel
    >>> from mha_lib.learning.tasks import MarkedAndMean
    >>> model = VectorModel(MarkedAndMean(), n_heads=4, seed=0)
    >>> gradient_importance(model, MarkedAndMean().batch(np.random.default_rng(0), 8)).shape
    (1, 4)
    """
    importance = np.stack([np.abs(g).mean(axis=0) for g in _gate_gradients(model, batch, gates)])
    if by_layer:
        length = np.linalg.norm(importance, axis=1, keepdims=True)  # (L, 1)
        importance /= np.where(length > 0, length, 1.0)
    return importance


def path_importance(model: Model, batch: Any, n_points: Integer = 8) -> FloatArray:
    """Return how much loss each gate takes away on the straight way from no heads to all.

    Parameters
    ----------
    model : VectorModel or TokenModel
        See ``mha_lib.learning.models``.  Its gradients are overwritten.
    batch : VectorBatch or TokenBatch
        Data to measure on.
    n_points : int, default 8
        How many points of the way are measured.

    Returns
    -------
    importance : float64 array, (L, h)
        They sum to the loss without heads less the loss with all, up to the error of taking
        few points.

    References
    ----------
    Sundararajan et al. (2017), integrated gradients, arXiv:1703.01365.

    Examples
    --------
    >>> from mha_lib.learning.models import VectorModel
    >>> from mha_lib.learning.tasks import MarkedAndMean
    >>> model = VectorModel(MarkedAndMean(), n_heads=4, seed=0)
    >>> path_importance(model, MarkedAndMean().batch(np.random.default_rng(0), 8)).shape
    (1, 4)
    """
    n_points = _check.integer("n_points", n_points, minimum=1)
    _check.room("n_points", n_points, n_points)
    shape = _shape_of(model)
    total = np.zeros(shape)
    for point in (np.arange(n_points) + 0.5) / n_points:  # middles of equal steps
        gradients = _gate_gradients(model, batch, np.full(shape, point))
        total -= np.stack([g.sum(axis=0) for g in gradients]) / len(gradients[0])
    return total / n_points


def _gate_gradients(model, batch, gates):
    """Return per layer the gradient of B times the loss for each sequence's gates, (B, h)."""
    _shape_of(model)
    _, d_outputs, _ = model.loss(model.forward(batch, gates), batch)
    model.backward(d_outputs)
    return [len(layer.gate_gradients) * layer.gate_gradients for layer in model.layers]


def _shape_of(model):
    """Return (L, h) of a model."""
    _check.has("model", model, ["layers", "evaluate"], "a VectorModel or TokenModel")
    return len(model.layers), model.layers[0].n_heads


def gradient_by_job(model: Model, batch: TokenBatch) -> tuple[FloatArray, FloatArray]:
    """Return the loss of each job by itself, and how strongly it depends on each gate.

    Parameters
    ----------
    model : TokenModel
        See ``mha_lib.learning.models``.  Its gradients are overwritten.
    batch : TokenBatch
        Data to measure on.

    Returns
    -------
    losses : float64 array, (J,)
        In nats, each the mean over the places where its job is counted.
    importance : float64 array, (J, L, h)
        Mean over sequences of the absolute gradient of that sequence's part of the job's loss, at
        gates of 1.

    Raises
    ------
    ValueError
        The batch counts no place of a job.

    See Also
    --------
    mha_lib.learning.gradient_importance : the same for the loss of all jobs.

    Examples
    --------
    >>> from mha_lib.learning import ThreeJobs, TokenModel
    >>> model = TokenModel(ThreeJobs(), d=8, n_heads=4, seed=0)
    >>> losses, importance = gradient_by_job(model, ThreeJobs().batch(np.random.default_rng(0), 8))
    >>> losses.shape, importance.shape
    ((3,), (3, 1, 4))
    """
    _check.has("model", model, ["layers", "n_jobs"], "a TokenModel")
    logits = model.forward(batch)  # (B, n, J, V)
    losses, importance = [], []
    for job in range(logits.shape[2]):
        counted = batch.counted & (np.arange(logits.shape[2]) == job)  # (B, n, J)
        loss, d_logits = cross_entropy(logits, batch.targets, counted)
        model.backward(d_logits)
        losses.append(loss)
        importance.append([np.abs(layer.gate_gradients).sum(axis=0) for layer in model.layers])
    return np.array(losses), np.array(importance)


def spearman(a: ArrayLike, b: ArrayLike) -> float:
    """Return the rank correlation of two lists of numbers.

    Parameters
    ----------
    a, b : float array, (...)
        Of one shape, with at least two different numbers each.

    Returns
    -------
    correlation : float
        1 when both put things in the same order, -1 for the reverse.  Ties share their ranks.

    Raises
    ------
    ValueError
        All numbers of an array are equal, or one is inf or NaN.

    Examples
    --------
    >>> round(spearman([1.0, 2.0, 30.0], [0.1, 0.2, 0.3]), 6)
    1.0
    """
    a, b = _check.real_array("a", a), _check.real_array("b", b)
    _check.same_shape("a", a, "b", b, "give each thing one number in both")
    ranks = []
    for name, array in (("a", a), ("b", b)):
        _check.finite(name, array)
        flat = array.ravel()
        if flat.size == 0 or (flat == flat[0]).all():
            raise ValueError(f"all numbers of {name} are equal: there is no order to compare")
        below = (flat[:, None] > flat).sum(axis=1)
        equal = (flat[:, None] == flat).sum(axis=1)
        ranks.append(below + (equal - 1) / 2)
    return float(np.corrcoef(*ranks)[0, 1])
