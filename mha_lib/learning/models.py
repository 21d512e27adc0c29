"""Two small models around multi-head attention: one for vectors, one for symbols."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mha_lib import _check
from mha_lib._types import FloatArray, Integer, Shape
from mha_lib.learning.layer import MultiHeadAttention, NamedArrays, Positions
from mha_lib.learning.tasks import (
    MarkedAndMean,
    RepeatedSequence,
    ThreeJobs,
    TokenBatch,
    VectorBatch,
)
from mha_lib.learning.train import accuracy, cross_entropy, squared_error


class VectorModel:
    """One attention layer and nothing else, for `mha_lib.learning.MarkedAndMean`.

    Parameters
    ----------
    task : MarkedAndMean
        Gives the sizes.
    n_heads : int
        Number of heads; it must divide the task's d.
    seed : int
        Seed of the initial weights.
    importance : float, default 0.5
        Weight of fetching in the loss, between 0 and 1; averaging gets the rest.
    marker_in_values : bool, default False
        Whether the values may see which token is marked, and which are near.  The lower bound
        that the book proves needs that they do not.

    Attributes
    ----------
    layers : list of MultiHeadAttention, length 1
    parameters, gradients : NamedArrays
        Those of the layer: 4 d² numbers, whatever the number of heads.

    Raises
    ------
    ValueError
        ``n_heads`` does not divide the task's d.

    Examples
    --------
    >>> from mha_lib.learning.tasks import MarkedAndMean
    >>> model = VectorModel(MarkedAndMean(), n_heads=2, seed=0)
    >>> sum(p.size for p in model.parameters.values())
    1024
    """

    def __init__(
        self,
        task: MarkedAndMean,
        n_heads: Integer,
        seed: Integer,
        *,
        importance: float = 0.5,
        marker_in_values: bool = False,
    ) -> None:
        _check.has("task", task, ["d", "width"], "MarkedAndMean()")
        share = _check.fraction("importance", importance)
        marker_in_values = _check.flag("marker_in_values", marker_in_values)
        seen = np.arange(task.d)
        if not marker_in_values:
            # The column that marks a token, and the one that says which are near.
            seen = np.delete(seen, [task.width, *task.near_columns])
        rng = np.random.default_rng(_check.integer("seed", seed, minimum=0))
        layer = MultiHeadAttention(task.d, n_heads, rng, value_columns=seen)
        self.layers, self.width = [layer], task.width
        self.parameters, self.gradients = layer.parameters, layer.gradients
        self._importance = np.repeat([2 * share, 2 * (1 - share)], task.width)  # (2 * width,)
        self._output_shape: Shape | None = None

    def forward(self, batch: VectorBatch, gates: ArrayLike | None = None) -> FloatArray:
        """Return the first 2 * width columns of the layer's output, (B, n, 2 * width).

        ``gates``, (1, h), multiplies the heads' outputs: 1 leaves a head, 0 removes it.
        """
        _check.has("batch", batch, ["x", "targets"], "a VectorBatch, from a task's batch()")
        (gates,) = _gates_by_layer(gates, self.layers)
        outputs = self.layers[0].forward(batch.x, gates=gates)[..., : 2 * self.width]
        self._output_shape = outputs.shape
        return outputs

    def backward(self, d_outputs: ArrayLike) -> None:
        """Fill the gradients from that of the outputs, (B, n, 2 * width)."""
        d_outputs = _gradient_of("d_outputs", d_outputs, self._output_shape)
        d_out = np.zeros((*d_outputs.shape[:-1], self.layers[0].d))  # (B, n, d)
        d_out[..., : 2 * self.width] = d_outputs
        self.layers[0].backward(d_out)

    def loss(self, outputs: FloatArray, batch: VectorBatch) -> tuple[float, FloatArray, FloatArray]:
        """Return the loss, its gradient, and the two errors, (2,)."""
        loss, d_outputs = squared_error(outputs, batch.targets, self._importance)
        squares = (outputs - batch.targets) ** 2  # (B, n, 2 * width)
        errors = squares.reshape(-1, 2, self.width).mean(axis=(0, 2))
        return loss, d_outputs, errors

    def evaluate(
        self, batch: VectorBatch, gates: ArrayLike | None = None
    ) -> tuple[float, FloatArray]:
        """Return the loss and the errors of fetching and averaging, (2,)."""
        loss, _, errors = self.loss(self.forward(batch, gates), batch)
        return loss, errors


class TokenModel:
    """Embedding, attention layers with residual connections, one linear map to the answers.

    There is no layer normalisation and no feed-forward part: what is learned here is learned by
    attention.

    Parameters
    ----------
    task : ThreeJobs or RepeatedSequence
        Gives the number of symbols, the longest sequence and the jobs.
    d : int
        Model width.
    n_heads : int
        Number of heads in each layer; it must divide d.
    seed : int
        Seed of the initial weights.
    n_layers : int, default 1
        Number of attention layers.
    positions : {"learned", "rotary"}
        See `mha_lib.learning.MultiHeadAttention`.
    causal : bool, default False
        Whether a token sees only itself and those before it.

    Attributes
    ----------
    layers : list of MultiHeadAttention
    parameters, gradients : NamedArrays
        ``embedding`` (V, d), ``marker`` (d,), ``unembedding`` (d, J * V), and those of each layer
        under "layer 1 w_q" and so on.

    Raises
    ------
    ValueError
        ``n_heads`` does not divide d, or d / h is odd with rotary positions.

    Examples
    --------
    >>> from mha_lib.learning.tasks import ThreeJobs
    >>> model = TokenModel(ThreeJobs(), d=16, n_heads=4, seed=0)
    >>> batch = ThreeJobs().batch(np.random.default_rng(0), 5)
    >>> model.forward(batch).shape  # (B, n, J, V)
    (5, 16, 3, 8)
    """

    def __init__(
        self,
        task: ThreeJobs | RepeatedSequence,
        d: int,
        n_heads: Integer,
        seed: Integer,
        *,
        n_layers: Integer = 1,
        positions: Positions = "learned",
        causal: bool = False,
    ) -> None:
        _check.has("task", task, ["n", "n_symbols", "jobs"], "ThreeJobs() or RepeatedSequence()")
        n_layers = _check.integer("n_layers", n_layers, minimum=1)
        rng = np.random.default_rng(_check.integer("seed", seed, minimum=0))
        self.layers = [
            MultiHeadAttention(d, n_heads, rng, positions=positions, n_max=task.n, causal=causal)
            for _ in range(n_layers)
        ]
        self.n_symbols, self.n_jobs = task.n_symbols, len(task.jobs)
        n_answers = self.n_jobs * self.n_symbols
        parameters: dict[str, FloatArray] = {
            "embedding": rng.normal(size=(self.n_symbols, d)),
            "marker": rng.normal(size=d),
            "unembedding": rng.normal(scale=1 / np.sqrt(d), size=(d, n_answers)),
        }
        gradients = {name: np.zeros_like(p) for name, p in parameters.items()}
        for i, layer in enumerate(self.layers, start=1):
            for name in layer.parameters:
                parameters[f"layer {i} {name}"] = layer.parameters[name]
                gradients[f"layer {i} {name}"] = layer.gradients[name]
        self.parameters, self.gradients = NamedArrays(parameters), NamedArrays(gradients)
        self._saved: Any = None
        self._output_shape: Shape | None = None

    def forward(self, batch: TokenBatch, gates: ArrayLike | None = None) -> FloatArray:
        """Return the scores of all symbols for every job, (B, n, J, V).

        ``gates``, (L, h), multiplies the heads' outputs: 1 leaves a head, 0 removes it.
        """
        _check.has("batch", batch, ["tokens", "marked"], "a TokenBatch, from a task's batch()")
        tokens, marked = _check.integer_array("tokens", batch.tokens), batch.marked
        if tokens.ndim != 2:
            raise ValueError(
                f"tokens has shape {tokens.shape}, but must be (B, n): use tokens[None]"
            )
        _check.within("tokens", tokens, self.n_symbols, "symbols V")
        x = self.parameters["embedding"][tokens]  # (B, n, d)
        if marked is not None:
            marked = _check.integer_array("marked", marked)
            _check.same_shape("marked", marked, "tokens[:, 0]", tokens[:, 0], "mark one token each")
            _check.within("marked", marked, tokens.shape[1], "tokens n")
            x[np.arange(len(x)), marked] += self.parameters["marker"]
        for layer, gates_here in zip(self.layers, _gates_by_layer(gates, self.layers), strict=True):
            x = x + layer.forward(x, gates=gates_here)
        self._saved = tokens, marked, x
        logits = x.reshape(-1, x.shape[-1]) @ self.parameters["unembedding"]  # (B n, J V)
        self._output_shape = (*tokens.shape, self.n_jobs, self.n_symbols)
        return logits.reshape(self._output_shape)

    def backward(self, d_logits: ArrayLike) -> None:
        """Fill all gradients from that of the scores, (B, n, J, V)."""
        d_logits = _gradient_of("d_logits", d_logits, self._output_shape)
        tokens, marked, x = self._saved
        d = x.shape[-1]
        d_logits = d_logits.reshape(-1, self.n_jobs * self.n_symbols)  # (B n, J V)
        with np.errstate(over="ignore", invalid="ignore"):  # the layers refuse what overflows
            d_unembedding = x.reshape(-1, d).T @ d_logits  # (d, J V)
            d_x = (d_logits @ self.parameters["unembedding"].T).reshape(x.shape)  # (B, n, d)
        _check.no_overflow(
            "the gradient", (d_unembedding, d_x), {"d_logits": d_logits, **self.parameters}
        )
        for layer in reversed(self.layers):
            d_x = d_x + layer.backward(d_x)
        self.gradients["unembedding"][...] = d_unembedding
        self.gradients["marker"][...] = 0.0
        if marked is not None:
            self.gradients["marker"] += d_x[np.arange(len(d_x)), marked].sum(axis=0)
        # One row of ones and zeros per symbol: the sum over its places as a matrix product.
        places = (tokens.ravel() == np.arange(self.n_symbols)[:, None]).astype(float)
        self.gradients["embedding"][...] = places @ d_x.reshape(-1, d)

    def loss(self, logits: ArrayLike, batch: TokenBatch) -> tuple[float, FloatArray, FloatArray]:
        """Return the mean cross-entropy, its gradient, and the accuracies, (J,)."""
        loss, d_logits = cross_entropy(logits, batch.targets, batch.counted)
        return loss, d_logits, accuracy(logits, batch.targets, batch.counted)

    def evaluate(
        self, batch: TokenBatch, gates: ArrayLike | None = None
    ) -> tuple[float, FloatArray]:
        """Return the loss and the accuracy in each job, (J,)."""
        loss, _, shares = self.loss(self.forward(batch, gates), batch)
        return loss, shares


def _gates_by_layer(gates, layers):
    """Return one row of ``gates``, (L, h), for each layer; None for each where there are none."""
    if gates is None:
        return [None] * len(layers)
    gates = _check.matrix("gates", gates, axes=("L", "h"))
    shape = (len(layers), layers[0].n_heads)
    if gates.shape != shape:
        raise ValueError(
            f"gates has shape {gates.shape}, but the model has {shape}, (layers, heads): "
            f"give one gate per head"
        )
    return gates


def _gradient_of(name: str, gradient: ArrayLike, shape: Shape | None) -> FloatArray:
    """Return the gradient of a model's last output, of the ``shape`` that this had."""
    if shape is None:
        raise ValueError("backward needs a forward pass: call forward(batch) first")
    gradient = _check.real_array(name, gradient)
    _check.finite(name, gradient)
    if gradient.shape != shape:
        raise ValueError(
            f"{name} has shape {gradient.shape}, but the last output has {shape}: "
            f"pass the gradient of the last output"
        )
    return gradient
