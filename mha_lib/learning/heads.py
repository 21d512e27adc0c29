"""What a head attends to, and what happens without it.

A score alone says little, so every score here has its chance level beside it: what a head with
even weights would get.  Heads are chosen on one set of data and reported on another.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mha_lib import _check
from mha_lib._types import BoolArray, FloatArray, IntArray, Integer, Model, Shape

Evaluate = Callable[[FloatArray], tuple[Any, Any]]  # gates, (L, h), to loss and results
MOST_HEADS = 12  # of which all choices are tried: 4,096
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
        Shapes do not broadcast, or no query is asked.
    TypeError
        ``weights`` is not real, or ``targets`` or ``rows`` is not boolean.

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
        Shapes do not broadcast, or no query is asked.
    TypeError
        An array is not boolean.

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

    Raises
    ------
    ValueError
        ``n`` is below 2.
    TypeError
        ``n`` is not an integer.

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

    Raises
    ------
    ValueError
        An index is outside 0 to n - 1.
    TypeError
        ``marked`` does not hold integers, or ``n`` is not one.

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

    Raises
    ------
    ValueError
        ``tokens`` has no axis.
    TypeError
        ``tokens`` does not hold integers.

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
        The mask does not broadcast, or no query of a head has a choice.
    TypeError
        ``weights`` is not real, or ``mask`` is not boolean.

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


# Removing heads ------------------------------------------------------------------------------


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
        ``gates`` does not have two axes, or ``evaluate`` returned a loss that is NaN.
    TypeError
        ``gates`` is not real, or ``evaluate`` not a function.

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
        ``shape`` is not a pair, or ``evaluate`` returned a loss that is NaN.
    TypeError
        A size is not an integer, or ``evaluate`` not a function.

    Notes
    -----
    About (L h)² / 2 evaluations.  After each removal the rest is judged anew, so that of two heads
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

    Raises
    ------
    ValueError
        ``importance`` does not have two axes, or holds inf or NaN.
    TypeError
        ``importance`` is not real.

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
    TypeError
        ``order`` does not hold integers, or ``evaluate`` is not a function.

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
    """Return the mean over jobs of what ``evaluate`` returns beside the loss."""
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
        ``shape`` is not a pair, or there are too many heads.
    TypeError
        A size is not an integer, or ``evaluate`` not a function.

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

    Raises
    ------
    ValueError
        ``gates`` does not have one number per head.
    TypeError
        ``gates`` is not real, or ``model`` or ``batch`` is of another kind.

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

    Raises
    ------
    ValueError
        ``n_points`` is below 1.
    TypeError
        ``n_points`` is not an integer, or ``model`` or ``batch`` is of another kind.

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
        Shapes differ, an array holds inf or NaN, or all its numbers are equal.
    TypeError
        An array is not real.

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
        ``tuning`` and ``reporting`` are the same data, or the model has one head alone or too
        many.
    TypeError
        An argument is of another kind.

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
        raise ValueError("model has one head alone, so that there is no order: use n_heads >= 2")
    for name, batch in (("tuning", tuning), ("reporting", reporting)):
        _check.has(name, batch, ["targets"], "a VectorBatch or TokenBatch")
    if tuning is reporting or np.array_equal(tuning.targets, reporting.targets):
        raise ValueError(
            "tuning and reporting are the same data, so that the choice of heads would be "
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
