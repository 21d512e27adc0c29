"""What happens without a head: losses, orders of removal, and what is left along the way.

Heads are chosen on one set of data, and the result is reported on another.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mha_lib import _check
from mha_lib._types import FloatArray, IntArray, Integer, Model
from mha_lib.learning.importance import _shape_of, gradient_importance, path_importance, spearman

Evaluate = Callable[[FloatArray], tuple[Any, Any]]  # gates, (L, h), to loss and results
MOST_HEADS = 12  # of which all choices are tried: 4,096


def losses_without(evaluate: Evaluate, gates: ArrayLike) -> FloatArray:
    """Return the loss after removing each head that is left, one at a time.

    Parameters
    ----------
    evaluate : callable
        Takes gates, (L, h), and returns the loss and other results.
    gates : float array, (L, h)
        1 for heads that are there, 0 for those already removed.

    Returns
    -------
    losses : float64 array, (L, h)
        NaN where there is no head to remove.

    Raises
    ------
    ValueError
        ``evaluate`` returned a loss that is NaN.

    Examples
    --------
    >>> losses_without(lambda gates: (3 - gates.sum(), None), np.ones((1, 3)))
    array([[1., 1., 1.]])
    """
    gates = _check.matrix("gates", gates, axes=("L", "h"))
    _check.has("evaluate", evaluate, ["__call__"], "a function of gates, (L, h)")
    losses = np.full(gates.shape, np.nan)
    for head in zip(*np.nonzero(gates), strict=True):
        without = gates.copy()
        without[head] = 0.0
        losses[head] = _evaluated(evaluate, without)[0]
        if np.isnan(losses[head]):
            raise ValueError(
                f"evaluate returned a loss of NaN without layer {head[0]}, head {head[1]}, "
                f"which cannot be compared: return a number"
            )
    return losses


def _evaluated(evaluate, gates):
    """Return the loss and the results that ``evaluate`` gives for gates, if they are numbers."""
    found = evaluate(gates)
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise TypeError(
            f"evaluate returned {type(found).__name__} {found!r}, but must return a pair: "
            f"return (loss, results)"
        )
    loss = _check.real_array("the loss that evaluate returned", found[0])
    if loss.ndim:
        raise TypeError(
            f"evaluate returned a loss of shape {loss.shape}, but it must be one number: "
            f"return its mean"
        )
    return float(loss), found[1]


def greedy_order(evaluate: Evaluate, shape: Sequence[Integer]) -> IntArray:
    """Return all heads in the order in which they are missed least, one removed after the other.

    Parameters
    ----------
    evaluate : callable
        Takes gates, (L, h), and returns the loss and other results.
    shape : tuple of int
        (L, h): layers and heads in a layer.

    Returns
    -------
    order : int array, (L * h, 2)
        Layer and head, counted from 0.

    Raises
    ------
    ValueError
        ``evaluate`` returned a loss that is NaN.

    Notes
    -----
    About (L h)² / 2 evaluations.  After each removal the rest is judged anew, so of two heads
    that can stand in for each other one is kept.

    Examples
    --------
    >>> importance = np.array([[3.0, 1.0, 2.0]])
    >>> greedy_order(lambda gates: (-(gates * importance).sum(), None), (1, 3))
    array([[0, 1],
           [0, 2],
           [0, 0]])
    """
    gates = np.ones(_layers_and_heads(shape))
    order = []
    while gates.any():
        losses = losses_without(evaluate, gates)
        head = np.unravel_index(np.nanargmin(losses), gates.shape)
        gates[head] = 0.0
        order.append(head)
    return np.array(order)


def order_by(importance: ArrayLike) -> IntArray:
    """Return all heads from the least important to the most.

    Parameters
    ----------
    importance : float array, (L, h)
        One number per head.

    Returns
    -------
    order : int array, (L * h, 2)
        Layer and head, counted from 0.

    Examples
    --------
    >>> order_by([[3.0, 1.0], [2.0, 0.0]])
    array([[1, 1],
           [0, 1],
           [1, 0],
           [0, 0]])
    """
    importance = _check.matrix("importance", importance, axes=("L", "h"))
    _check.finite("importance", importance)
    flat = importance.argsort(axis=None, kind="stable")
    return np.stack(np.unravel_index(flat, importance.shape), axis=-1)


def pruning_curve(evaluate: Evaluate, order: ArrayLike, shape: Sequence[Integer]) -> FloatArray:
    """Return the mean result of a model while its heads are removed in a given order.

    Parameters
    ----------
    evaluate : callable
        Takes gates, (L, h), and returns the loss and an array of results, one per job.
    order : int array, (L * h, 2)
        Layer and head, the first to be removed first.
    shape : tuple of int
        (L, h): layers and heads in a layer.

    Returns
    -------
    results : float64 array, (L * h + 1,)
        Mean over jobs with all heads, without the first, ..., without any: the last is the floor
        that no choice of heads can change.

    Raises
    ------
    ValueError
        ``order`` does not name every head once.

    Examples
    --------
    >>> def evaluate(gates):
    ...     return 0.0, np.array([gates.sum()])
    >>> pruning_curve(evaluate, [[0, 1], [0, 0]], (1, 2))
    array([2., 1., 0.])
    """
    gates = np.ones(_layers_and_heads(shape))
    order = _check.integer_array("order", order)
    _check.has("evaluate", evaluate, ["__call__"], "a function of gates, (L, h)")
    everyone = [list(head) for head in np.ndindex(gates.shape)]
    if order.ndim != 2 or sorted(order.tolist()) != everyone:
        raise ValueError(
            f"order has shape {order.shape} and does not name each of the {gates.size} heads of "
            f"{gates.shape[0]} layers once: make it with greedy_order or order_by"
        )
    results = [_mean_result(evaluate, gates)]
    for layer, head in order:
        gates[layer, head] = 0.0
        results.append(_mean_result(evaluate, gates))
    return np.array(results)


def _mean_result(evaluate, gates):
    """Return the mean over jobs of what ``evaluate`` returns besides the loss."""
    results = _check.real_array("evaluate's results", _evaluated(evaluate, gates.copy())[1])
    if results.size == 0:
        raise ValueError("evaluate returned no results: return one number per job")
    return results.mean()


def subset_curves(evaluate: Evaluate, shape: Sequence[Integer]) -> FloatArray:
    """Return what is left of a model for every choice of heads to remove, by their number.

    Parameters
    ----------
    evaluate : callable
        Takes gates, (L, h), and returns the loss and an array of results, one per job.
    shape : tuple of int
        (L, h): layers and heads in a layer, at most 12 heads in all.

    Returns
    -------
    curves : float64 array, (3, L * h + 1)
        Mean, least and greatest result (each the mean over jobs) of all choices with all heads
        kept, with one removed, ..., with none kept.  The mean is what removing heads blindly
        gets on average.

    Raises
    ------
    ValueError
        There are more than ``MOST_HEADS`` heads, whose choices are too many to try.

    Notes
    -----
    2^(L h) evaluations: 256 for 8 heads.

    Examples
    --------
    >>> def evaluate(gates):
    ...     return 0.0, np.array([(gates * [[3.0, 1.0]]).sum()])
    >>> subset_curves(evaluate, (1, 2))
    array([[4., 2., 0.],
           [4., 1., 0.],
           [4., 3., 0.]])
    """
    gates = np.ones(_layers_and_heads(shape))
    _check.has("evaluate", evaluate, ["__call__"], "a function of gates, (L, h)")
    if gates.size > MOST_HEADS:
        raise ValueError(
            f"shape={gates.shape} has {gates.size} heads and so 2^{gates.size} choices: "
            f"use at most {MOST_HEADS} heads in all"
        )
    results: list[list[float]] = [[] for _ in range(gates.size + 1)]
    for kept in itertools.product((1.0, 0.0), repeat=gates.size):
        result = _mean_result(evaluate, np.reshape(kept, gates.shape))
        results[kept.count(0.0)].append(float(result))
    return np.array([[f(some) for some in results] for f in (np.mean, np.min, np.max)])


def _layers_and_heads(shape):
    """Return ``shape`` as a pair of ints."""
    if not isinstance(shape, Sequence | np.ndarray) or len(shape) != 2:
        raise ValueError(
            f"shape={shape!r}, but must be a pair (L, h), layers and heads in a layer: "
            f"use a pair such as shape=(1, 8)"
        )
    n_layers, n_heads = (
        _check.integer(name, n, minimum=1) for name, n in zip("Lh", shape, strict=True)
    )
    _check.room("L", n_layers, n_layers * n_heads)
    return n_layers, n_heads


@dataclass(frozen=True, eq=False)
class PruningStudy:
    """What is left of a model as heads are removed, in several orders.

    Attributes
    ----------
    curves : dict of str to float64 array, (L * h + 1,)
        Mean result on the reporting data by order: "greedy", "ablation", "gradient", "path".
    subsets : float64 array, (3, L * h + 1)
        Mean, least and greatest result of all choices of heads, see `subset_curves`.
    greedy : int array, (L * h, 2)
        The greedy order: layer and head.
    gradient_correlation : float
        Spearman correlation of gradient importance with the loss after removing each head.
    path_correlation : float
        The same for path importance.

    Examples
    --------
    >>> even = np.zeros((3, 3))
    >>> PruningStudy({}, even, order_by(even[:1, :2]), 1.0, 1.0).greedy
    array([[0, 0],
           [0, 1]])
    """

    curves: dict[str, FloatArray]
    subsets: FloatArray
    greedy: IntArray
    gradient_correlation: float
    path_correlation: float


def study_pruning(model: Model, tuning: Any, reporting: Any) -> PruningStudy:
    """Remove heads in several orders, chosen on one set of data and reported on another.

    Parameters
    ----------
    model : VectorModel or TokenModel
        A trained model, of at most 12 heads.
    tuning : VectorBatch or TokenBatch
        Data on which the orders are chosen.
    reporting : VectorBatch or TokenBatch
        Other data, for all results.

    Returns
    -------
    study : PruningStudy
        Curves and correlations.

    Raises
    ------
    ValueError
        ``tuning`` and ``reporting`` are the same data, or the model has only one head, or too many.

    Examples
    --------
    >>> from mha_lib.learning.models import TokenModel
    >>> from mha_lib.learning.tasks import ThreeJobs
    >>> model, rng = TokenModel(ThreeJobs(), 8, n_heads=2, seed=0), np.random.default_rng(0)
    >>> study = study_pruning(model, ThreeJobs().batch(rng, 4), ThreeJobs().batch(rng, 4))
    >>> study.subsets.shape
    (3, 3)
    """
    shape = _shape_of(model)
    if shape == (1, 1):
        raise ValueError("model has only one head, so there is no order: use n_heads >= 2")
    for name, batch in (("tuning", tuning), ("reporting", reporting)):
        _check.has(name, batch, ["targets"], "a VectorBatch or TokenBatch")
    if tuning is reporting or np.array_equal(tuning.targets, reporting.targets):
        raise ValueError(
            "tuning and reporting are the same data, so the choice of heads would be "
            "reported on what it was chosen for: draw two batches"
        )

    def tune(gates):
        return model.evaluate(tuning, gates)

    def report(gates):
        return model.evaluate(reporting, gates)

    subsets = subset_curves(report, shape)
    without = losses_without(tune, np.ones(shape))  # (L, h)
    gradient, path = gradient_importance(model, tuning), path_importance(model, tuning)
    greedy = greedy_order(tune, shape)
    orders = {
        "greedy": greedy,
        "ablation": order_by(without),
        "gradient": order_by(gradient),
        "path": order_by(path),
    }
    return PruningStudy(
        {name: pruning_curve(report, order, shape) for name, order in orders.items()},
        subsets,
        greedy,
        spearman(gradient, without),
        spearman(path, without),
    )
