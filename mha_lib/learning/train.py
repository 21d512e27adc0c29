"""Losses, the Adam optimiser and a training loop that keeps a history."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from mha_lib import _check
from mha_lib._types import BoolArray, FloatArray, IntArray, Integer, Task, Trainable

ModelT = TypeVar("ModelT", bound=Trainable)
Progress = Callable[[range], Iterable[int]]


def cross_entropy(
    logits: ArrayLike, targets: ArrayLike, counted: ArrayLike
) -> tuple[float, FloatArray]:
    """Return the mean cross-entropy and its gradient.

    Parameters
    ----------
    logits : float array, (..., V)
        Scores of V symbols.
    targets : int array, (...)
        Index of the right symbol, 0 to V - 1.
    counted : bool array, (...)
        Where there is a right answer; the mean is taken over these places.

    Returns
    -------
    loss : float
        In nats.  ln V is the loss of even guessing.
    d_logits : float array, (..., V)
        Gradient of the loss; 0 where nothing is counted.

    Raises
    ------
    ValueError
        Shapes disagree, a target is outside 0 to V - 1, nothing is counted, or ``logits`` holds
        inf or NaN.
    TypeError
        ``logits`` is not real, ``targets`` not integer or ``counted`` not boolean.

    Examples
    --------
    >>> loss, d_logits = cross_entropy([[0.0, 0.0]], [1], [True])
    >>> round(loss, 3)
    0.693
    >>> d_logits
    array([[ 0.5, -0.5]])
    """
    logits, targets, counted = _answers(logits, targets, counted, axes=("V",))
    n_counted = np.count_nonzero(counted)
    if n_counted == 0:
        raise ValueError("counted is False everywhere: count at least one place")
    with np.errstate(over="ignore"):  # the loss of a hopeless answer may be inf
        z = logits - logits.max(axis=-1, keepdims=True)  # (..., V)
    e = np.exp(z)
    total = e.sum(axis=-1, keepdims=True)  # (..., 1)
    right = np.expand_dims(targets, -1)  # (..., 1)
    losses = np.log(total) - np.take_along_axis(z, right, axis=-1)  # (..., 1)
    share = np.where(counted, 1 / n_counted, 0.0)[..., None]  # (..., 1)
    d_logits = e / total
    np.put_along_axis(d_logits, right, np.take_along_axis(d_logits, right, axis=-1) - 1, axis=-1)
    d_logits *= share
    return float((losses * share).sum()), d_logits


def accuracy(logits: ArrayLike, targets: ArrayLike, counted: ArrayLike) -> FloatArray:
    """Return how often the largest logit is the right one, for each job.

    Parameters
    ----------
    logits : float array, (B, n, J, V)
        Scores of V symbols, for each of J jobs.
    targets : int array, (B, n, J)
        Index of the right symbol.
    counted : bool array, (B, n, J)
        Where there is a right answer.

    Returns
    -------
    shares : float64 array, (J,)
        Between 0 and 1.

    Raises
    ------
    ValueError
        Shapes disagree, a target is outside 0 to V - 1, a job is counted nowhere, or ``logits``
        holds inf or NaN.
    TypeError
        ``logits`` is not real, ``targets`` not integer or ``counted`` not boolean.

    Examples
    --------
    >>> accuracy(np.array([[[[0.0, 1.0]], [[1.0, 0.0]]]]), [[[1], [1]]], [[[True], [True]]])
    array([0.5])
    """
    logits, targets, counted = _answers(logits, targets, counted, axes=("B", "n", "J", "V"))
    n_counted = counted.sum(axis=(0, 1))  # (J,)
    if not n_counted.all():
        raise ValueError(
            f"counted is False everywhere for job {n_counted.argmin()}: use more sequences"
        )
    right = (logits.argmax(axis=-1) == targets) & counted  # (B, n, J)
    return right.sum(axis=(0, 1)) / n_counted


def _answers(
    logits: ArrayLike, targets: ArrayLike, counted: ArrayLike, axes: Sequence[str]
) -> tuple[FloatArray, IntArray, BoolArray]:
    """Return scores, right symbols and where they count as arrays that fit together."""
    logits = _check.real_array("logits", logits, axes)
    targets = _check.integer_array("targets", targets)
    counted = _check.boolean_mask("counted", counted)
    for name, array in (("targets", targets), ("counted", counted)):
        _check.same_size(
            f"{name} (its shape)", array.shape, "logits (all but the last axis)",
            logits.shape[:-1], "give every row of logits one entry",
        )  # fmt: skip
    _check.not_empty("logits", "V", logits.shape[-1], "there must be a symbol to choose")
    _check.within("targets", targets, logits.shape[-1], "symbols V")
    _check.finite("logits", logits)
    return logits, targets, counted


def squared_error(
    outputs: ArrayLike, targets: ArrayLike, importance: ArrayLike
) -> tuple[float, FloatArray]:
    """Return the mean squared error, columns weighted by importance, and its gradient.

    Parameters
    ----------
    outputs : float array, (..., c)
        What came out.
    targets : float array, (..., c)
        What should have.
    importance : float array, (c,)
        Factor of each column's error.

    Returns
    -------
    loss : float
        Mean over all numbers of importance times squared difference.
    d_outputs : float array, (..., c)
        Its gradient.

    Raises
    ------
    ValueError
        Shapes disagree, there are no numbers, or an array holds inf or NaN.
    TypeError
        An array is not real.

    Examples
    --------
    >>> loss, d_outputs = squared_error([[1.0, 2.0]], [[0.0, 0.0]], [1.0, 0.5])
    >>> loss, d_outputs
    (1.5, array([[1., 1.]]))
    """
    outputs = _check.real_array("outputs", outputs, axes=("c",))
    targets = _check.real_array("targets", targets, axes=("c",))
    importance = _check.matrix("importance", importance, axes=("c",))
    _check.same_shape("outputs", outputs, "targets", targets, "give every number its target")
    _check.same_size(
        "importance", importance.shape[0], "outputs axis c", outputs.shape[-1],
        "give every column its importance",
    )  # fmt: skip
    if outputs.size == 0:
        raise ValueError(f"outputs has shape {outputs.shape}, no number at all: give at least one")
    for name, array in (("outputs", outputs), ("targets", targets), ("importance", importance)):
        _check.finite(name, array)
    difference = outputs - targets
    weighted = importance * difference
    return float((weighted * difference).mean()), 2 * weighted / difference.size


class Adam:
    """The Adam optimiser: every parameter moves by about the learning rate at each step.

    Parameters
    ----------
    parameters : dict of str to float array
        Changed in place by `step`.
    decay : pair of float, default (0.9, 0.99)
        How much of the running means of gradients and squared gradients a step keeps, below 1.
    epsilon : float, default 1e-8
        Keeps the division away from 0.

    Raises
    ------
    TypeError
        A parameter is not a float array, or a number is not real.
    ValueError
        A number is out of range.

    References
    ----------
    Kingma and Ba (2015), arXiv:1412.6980.

    Examples
    --------
    >>> w = np.array([1.0])
    >>> Adam({"w": w}).step({"w": np.array([5.0])}, learning_rate=0.1)
    >>> w.round(6)
    array([0.9])
    """

    def __init__(
        self,
        parameters: Mapping[str, FloatArray],
        decay: Sequence[float] = (0.9, 0.99),
        epsilon: float = 1e-8,
    ) -> None:
        for name, parameter in parameters.items():
            if not isinstance(parameter, np.ndarray) or parameter.dtype not in _check.FLOATS:
                raise TypeError(
                    f"parameter {name!r} must be a float array, to be changed in place: "
                    f"make it one with np.array(..., np.float64)"
                )
        if np.shape(decay) != (2,):
            raise ValueError(f"decay={decay!r}, but must be a pair: use (0.9, 0.99)")
        self.decay = tuple(_check.fraction("decay", keep) for keep in decay)
        if 1.0 in self.decay:
            raise ValueError(f"decay={decay!r} would learn nothing: use numbers below 1")
        self.parameters, self.epsilon = parameters, _check.positive("epsilon", epsilon)
        self._mean = {name: np.zeros_like(p) for name, p in parameters.items()}
        self._square = {name: np.zeros_like(p) for name, p in parameters.items()}
        self._n_steps = 0

    def step(self, gradients: Mapping[str, FloatArray], learning_rate: float) -> None:
        """Move every parameter against its gradient, (same names and shapes)."""
        if gradients.keys() != self.parameters.keys():
            raise ValueError(
                f"gradients are for {', '.join(gradients)}, but parameters are "
                f"{', '.join(self.parameters)}: give every parameter its gradient"
            )
        for name, parameter in self.parameters.items():
            _check.same_shape(
                f"gradient {name!r}", gradients[name], "its parameter", parameter,
                "give every number its gradient",
            )  # fmt: skip
        self._n_steps += 1
        keep_mean, keep_square = self.decay
        # Both means start at 0; these factors undo what that takes from the first steps.
        full_mean = 1 - keep_mean**self._n_steps
        full_square = 1 - keep_square**self._n_steps
        for name, parameter in self.parameters.items():
            gradient, mean, square = gradients[name], self._mean[name], self._square[name]
            mean += (1 - keep_mean) * (gradient - mean)
            square += (1 - keep_square) * (gradient**2 - square)
            parameter -= (
                learning_rate * (mean / full_mean) / (np.sqrt(square / full_square) + self.epsilon)
            )


def clip_gradients(gradients: Mapping[str, FloatArray], largest_norm: float) -> float:
    """Shrink all gradients alike, in place, so that their joint length is at most a bound.

    Parameters
    ----------
    gradients : dict of str to float array, any shapes (...)
        Changed in place.
    largest_norm : float
        The bound, finite and above 0.

    Returns
    -------
    norm : float
        The length before.

    Raises
    ------
    ValueError
        ``largest_norm`` is not above 0, or not finite.
    TypeError
        ``largest_norm`` is not a real number.

    Examples
    --------
    >>> gradients = {"w": np.array([3.0, 4.0])}
    >>> clip_gradients(gradients, 1.0)
    5.0
    >>> gradients["w"]
    array([0.6, 0.8])
    """
    largest_norm = _check.positive("largest_norm", largest_norm)
    norm = float(np.sqrt(sum(np.vdot(g, g) for g in gradients.values())))
    if norm > largest_norm:
        for gradient in gradients.values():
            gradient *= largest_norm / norm
    return norm


@dataclass(frozen=True)
class Recipe:
    """How to train: length, batch size and learning rate.

    Attributes
    ----------
    n_steps : int
        Number of steps.
    learning_rate : float
        Its largest value.
    n_sequences : int, default 32
        Sequences in a batch, drawn anew for each step.
    n_warm_up : int, default 20
        Steps over which the rate rises from 0.
    last_rate : float, default 0.02
        Share of the rate that is left at the end.
    largest_norm : float, default 1.0
        Bound on the length of the gradient, see `clip_gradients`.

    Examples
    --------
    >>> round(Recipe(n_steps=100, learning_rate=0.01).rate(10), 4)  # half of the way up
    0.0049
    """

    n_steps: int
    learning_rate: float
    n_sequences: int = 32
    n_warm_up: int = 20
    last_rate: float = 0.02
    largest_norm: float = 1.0

    def __post_init__(self) -> None:
        _check.integer_fields(self, ["n_steps", "n_sequences", "n_warm_up"], minimum=1)
        _check.positive("learning_rate", self.learning_rate)
        _check.positive("largest_norm", self.largest_norm)
        _check.fraction("last_rate", self.last_rate)

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 1: a rise, then half a cosine."""
        warm = min(1.0, step / self.n_warm_up)
        cosine = (1 + np.cos(np.pi * step / self.n_steps)) / 2
        return float(self.learning_rate * warm * (self.last_rate + (1 - self.last_rate) * cosine))


@dataclass
class History:
    """What happened during training.

    Attributes
    ----------
    losses : list of float, one per step
        Loss of each step's batch, before the step.  Batches are new, so that it is no loss of
        memorised data.
    measures : list of float64 array, one per step
        What the model measures beside the loss, one number per job.
    snapshots : dict of int to object
        What ``watch`` returned, by the number of steps done.

    Examples
    --------
    >>> History().losses
    []
    """

    losses: list[float] = field(default_factory=list)
    measures: list[FloatArray] = field(default_factory=list)
    snapshots: dict[int, Any] = field(default_factory=dict)


def fit(
    model: ModelT,
    task: Task,
    recipe: Recipe,
    seed: Integer,
    *,
    watch: Callable[[ModelT], Any] | None = None,
    watch_at: Iterable[Integer] = (),
    progress: Progress | None = None,
) -> History:
    """Train a model on new batches of a task, and return the history.

    Parameters
    ----------
    model : object
        With ``parameters`` and ``gradients`` (dicts of arrays), ``forward(batch)``,
        ``loss(outputs, batch)`` returning loss, gradient and measures, and
        ``backward(d_outputs)``.  See ``mha_lib.learning.models``.
    task : object
        With ``batch(rng, n_sequences)``.  See ``mha_lib.learning.tasks``.
    recipe : Recipe
        How long and how fast.
    seed : int
        Seed of the batches.
    watch : callable, optional
        Called with the model; what it returns is kept as a snapshot.
    watch_at : iterable of int, optional
        Numbers of steps done at which to call ``watch``, up to ``n_steps``; 0 = before training.
    progress : callable, optional
        Wraps the steps, as ``tqdm.tqdm`` does.  None = no progress bar.

    Returns
    -------
    history : History
        Losses, measures and snapshots.

    Raises
    ------
    ValueError
        Training diverged: a number is no longer finite.  The parameters stay as they were before
        that step.  Or ``watch_at`` names a step that there is not.
    TypeError
        ``seed`` or an entry of ``watch_at`` is not an integer, or a model, task, recipe or
        function is something else.

    Examples
    --------
    >>> from mha_lib.learning.models import TokenModel
    >>> from mha_lib.learning.tasks import ThreeJobs
    >>> model = TokenModel(ThreeJobs(), d=8, n_heads=2, seed=0)
    >>> history = fit(model, ThreeJobs(), Recipe(n_steps=3, learning_rate=0.01), seed=0)
    >>> len(history.losses)
    3
    """
    parts = ("parameters", "gradients", "forward", "loss", "backward")
    _check.has("model", model, parts, "a VectorModel or TokenModel")
    _check.has("task", task, ["batch"], "one of mha_lib.learning.tasks")
    _check.has("recipe", recipe, ["rate"], "a Recipe")
    for name, function in (("watch", watch), ("progress", progress)):
        if function is not None:
            _check.has(name, function, ["__call__"], "a function, or None")
    # The 1 keeps these batches apart from those that anyone draws from a plain seed.
    rng = np.random.default_rng([_check.integer("seed", seed, minimum=0), 1])
    _check.has("watch_at", watch_at, ["__iter__"], "a list of steps")
    watched = {_check.integer("watch_at", step, minimum=0) for step in watch_at}
    if max(watched, default=0) > recipe.n_steps:
        raise ValueError(
            f"watch_at names step {max(watched)}, but there are n_steps={recipe.n_steps}: "
            f"name steps up to n_steps"
        )
    adam, history = Adam(model.parameters), History()
    if watch is not None and 0 in watched:
        history.snapshots[0] = watch(model)
    steps = range(1, recipe.n_steps + 1)
    for step in steps if progress is None else progress(steps):
        batch = task.batch(rng, recipe.n_sequences)
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
                loss, d_outputs, measures = model.loss(model.forward(batch), batch)
                model.backward(d_outputs)
                norm = clip_gradients(model.gradients, recipe.largest_norm)
            if not np.isfinite(loss + norm):
                raise _check.NotFiniteError(f"the loss is {loss}, its gradient has length {norm}")
        except _check.NotFiniteError as error:
            if step == 1:  # nothing was learned yet: the model or its data are to blame
                raise
            raise ValueError(
                f"training diverged at step {step}, where numbers left the range of floats: "
                f"use a learning_rate below {recipe.learning_rate}"
            ) from error
        adam.step(model.gradients, recipe.rate(step))
        history.losses.append(loss)
        history.measures.append(measures)
        if watch is not None and step in watched:
            history.snapshots[step] = watch(model)
    return history
