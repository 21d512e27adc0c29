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
SAFE_NORMS = (1e-9, 1e18)  # their squares neither overflow nor underflow, in float32 too


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
        Nothing is counted, or ``logits`` holds inf or NaN.

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
    losses[share == 0] = 0.0  # it may be inf, and 0 times inf is NaN
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
        A job is counted nowhere, or ``logits`` holds inf or NaN.

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
    counted = _check.boolean_mask("counted", counted, true="there is a right answer")
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
        Factor of each column's error, not negative.

    Returns
    -------
    loss : float
        Mean over all numbers of importance times squared difference.
    d_outputs : float array, (..., c)
        Its gradient.

    Raises
    ------
    ValueError
        An array holds inf or NaN, or ``importance`` is negative.

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
    if (importance < 0).any():
        raise ValueError(
            f"importance holds {importance.min()}, which would reward errors: use importance >= 0"
        )
    with np.errstate(over="ignore"):  # the loss of a hopeless answer may be inf
        # What has no importance may be as far off as it likes: 0 times inf is NaN.
        difference = np.where(importance == 0, 0, outputs - targets)  # (..., c)
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
        _changeable("parameters", parameters)
        for name, parameter in parameters.items():
            _check.finite(f"parameters[{name!r}]", parameter)
        pair = _check.real_array("decay", decay)
        if pair.shape != (2,) or not ((pair >= 0) & (pair < 1)).all():
            raise ValueError(
                f"decay={decay!r}, but must be a pair of numbers from 0 to below 1: "
                f"use decay=(0.9, 0.99)"
            )
        self.decay = float(pair[0]), float(pair[1])
        self.parameters, self.epsilon = parameters, _check.positive("epsilon", epsilon, 1e-8)
        self._mean = {name: np.zeros_like(p) for name, p in parameters.items()}
        self._square = {name: np.zeros_like(p) for name, p in parameters.items()}
        self._n_steps = 0

    def step(self, gradients: Mapping[str, FloatArray], learning_rate: float) -> None:
        """Move every parameter against its gradient, (same names and shapes).

        Raises
        ------
        ValueError
            A gradient holds inf, NaN or a number too large to be squared, or a parameter would
            leave the range of floats.  No parameter has moved then, and no running mean.
        """
        learning_rate = _check.positive("learning_rate", learning_rate, 0.01)
        _check.has("gradients", gradients, ["keys"], "a dict of float arrays")
        if gradients.keys() != self.parameters.keys():
            raise ValueError(
                f"gradients are for {', '.join(map(str, gradients))}, but parameters are "
                f"{', '.join(map(str, self.parameters))}: give every parameter its gradient"
            )
        checked = {name: self._gradient(name, gradients[name]) for name in self.parameters}
        n_steps = self._n_steps + 1
        keep_mean, keep_square = self.decay
        # Both means start at 0; these factors undo what that takes from the first steps.
        full_mean = 1 - keep_mean**n_steps
        full_square = 1 - keep_square**n_steps
        after = {}
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
            for name, parameter in self.parameters.items():
                gradient, mean, square = checked[name], self._mean[name], self._square[name]
                mean = mean + (1 - keep_mean) * (gradient - mean)
                square = square + (1 - keep_square) * (gradient**2 - square)
                moved = parameter - (
                    learning_rate
                    * (mean / full_mean)
                    / (np.sqrt(square / full_square) + self.epsilon)
                )
                after[name] = mean, square, moved.astype(parameter.dtype, copy=False)
                if not np.isfinite(after[name][-1]).all():
                    _check.finite(f"parameters[{name!r}]", parameter)
                    raise ValueError(
                        f"parameters[{name!r}] would leave the range of floats with "
                        f"learning_rate={learning_rate}: use a smaller learning_rate"
                    )
        self._n_steps = n_steps
        for name, parameter in self.parameters.items():
            self._mean[name][...], self._square[name][...], parameter[...] = after[name]

    def _gradient(self, name, gradient):
        """Return the gradient of a parameter as an array whose squares are finite."""
        parameter, name = self.parameters[name], f"gradients[{name!r}]"
        gradient = _check.real_array(name, gradient)
        _check.same_shape(
            name, gradient, "its parameter", parameter, "give every number its gradient"
        )
        largest = np.abs(gradient).max(initial=0)
        if not largest <= np.sqrt(np.finfo(parameter.dtype).max):  # nor is a NaN
            _check.finite(name, gradient)
            raise ValueError(
                f"{name} holds a number of size {largest:.0e}, whose square overflows: "
                f"shrink it with clip_gradients(gradients, 1.0)"
            )
        return gradient


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
        The length before; inf where that is beyond floats, and the gradients are shrunk still.

    Raises
    ------
    ValueError
        A gradient holds inf or NaN.

    Examples
    --------
    >>> gradients = {"w": np.array([3.0, 4.0])}
    >>> clip_gradients(gradients, 1.0)
    5.0
    >>> gradients["w"]
    array([0.6, 0.8])
    """
    largest_norm = _check.positive("largest_norm", largest_norm, 1.0)
    _changeable("gradients", gradients)
    with np.errstate(over="ignore", under="ignore"):
        norm = float(np.sqrt(sum(np.vdot(g, g) for g in gradients.values())))
    if SAFE_NORMS[0] < norm < SAFE_NORMS[1]:
        if norm > largest_norm:
            for gradient in gradients.values():
                gradient *= largest_norm / norm
        return norm
    # Squares overflow, or vanish, long before the gradients do: again, with moderate numbers.
    for name, gradient in gradients.items():
        _check.finite(f"gradients[{name!r}]", gradient)
    top = max((float(np.abs(g).max(initial=0)) for g in gradients.values()), default=0.0)
    if top == 0:
        return 0.0
    moderate = {name: g.astype(np.float64) / top for name, g in gradients.items()}
    share = float(np.sqrt(sum(np.vdot(g, g) for g in moderate.values())))  # norm / top
    if share > largest_norm / top:
        for name, gradient in gradients.items():
            gradient[...] = moderate[name] / share * largest_norm
    return top * share


def _changeable(kind, arrays):
    """Raise unless all arrays of a dict can be changed in place."""
    _check.has(kind, arrays, ["items"], "a dict of float arrays")
    for key, array in arrays.items():
        name = f"{kind}[{key!r}]"
        if (
            not isinstance(array, np.ndarray)
            or array.dtype not in _check.FLOATS
            or not array.flags.writeable
            or isinstance(array, np.matrix)  # its products are others
        ):
            raise TypeError(
                f"{name} must be a float array, to be changed in place: "
                f"make it one with np.array({name}, np.float64)"
            )
        _check.real_array(name, array)  # refuses masked arrays


@dataclass(frozen=True)
class Recipe:
    """How to train: length, batch size and learning rate.

    Attributes
    ----------
    n_steps : int
        Number of steps.
    learning_rate : float
        What warm-up and decay scale down, so that no rate is larger.
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
        _check.positive("learning_rate", self.learning_rate, 0.01)
        _check.positive("largest_norm", self.largest_norm, 1.0)
        _check.fraction("last_rate", self.last_rate)

    def rate(self, step: Integer) -> float:
        """Return the learning rate of a step, counted from 1: a rise, then half a cosine."""
        step = _check.integer("step", step, minimum=0)
        if step > self.n_steps:
            raise ValueError(
                f"step={step}, but there are n_steps={self.n_steps}: use step <= n_steps"
            )
        warm = min(1.0, step / self.n_warm_up)
        cosine = (1 + np.cos(np.pi * step / self.n_steps)) / 2
        return float(self.learning_rate * warm * (self.last_rate + (1 - self.last_rate) * cosine))


@dataclass
class History:
    """What happened during training.

    Attributes
    ----------
    losses : list of float, one per step
        Loss of each step's batch, before the step.  Batches are new, so it is no loss of
        memorised data.
    measures : list of float64 array, one per step
        What the model measures besides the loss, one number per job.
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
        that step.

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
    try:
        asked = list(watch_at)
    except TypeError:
        raise TypeError(
            f"watch_at is of type {type(watch_at).__name__}, which holds no steps: "
            f"pass a list of steps"
        ) from None
    watched = {_check.integer("watch_at", step, minimum=0) for step in asked}
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
            if not np.isfinite(loss + norm * norm):  # Adam squares the gradients
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
