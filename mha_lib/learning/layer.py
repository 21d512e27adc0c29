"""A multi-head attention layer that can be trained: parameters, forward, backward."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from mha_lib import _check
from mha_lib._types import FloatArray, Integer
from mha_lib.attention import _attend, scaled_dot_product_attention_backward
from mha_lib.learning.positions import rotary_angles, rotate
from mha_lib.masks import causal_mask, combine_masks
from mha_lib.multihead import _merge, _split

POSITIONS = (None, "learned", "rotary")
Positions = Literal["learned", "rotary"]


class NamedArrays(Mapping):
    """Float64 arrays by name; to set one is to copy numbers into it.

    A model, its layers and an optimiser share their arrays.  Were a name given another array, the
    others would go on with the old one.

    Parameters
    ----------
    arrays : dict of str to float64 array
        The arrays that are shared; not copied.

    Examples
    --------
    >>> shared = np.zeros(2)
    >>> NamedArrays({"w": shared})["w"] = [3.0, 4.0]
    >>> shared
    array([3., 4.])
    """

    def __init__(self, arrays: Mapping[str, FloatArray]) -> None:
        self._arrays = dict(arrays)

    def __getitem__(self, name: str) -> FloatArray:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __setitem__(self, name: str, value: ArrayLike) -> None:
        if not isinstance(name, str) or name not in self._arrays:
            raise ValueError(f"there is no array {name!r}: use one of {', '.join(self._arrays)}")
        value = _check.real_array(name, value)
        _check.same_shape(f"the new {name}", value, "the old", self[name], "keep the shape")
        self[name][...] = value


class MultiHeadAttention:
    """Multi-head attention with parameters, and gradients for them.

    Parameters
    ----------
    d : int
        Model width of the tokens that ask, and of the output.
    n_heads : int
        Number of heads h; it must divide d.
    rng : numpy.random.Generator
        Draws the initial weights, normal with variance 1 / (number of rows).
    d_context : int, optional
        Width of the tokens that answer, in cross-attention.  None = self-attention.
    d_v : int, optional
        Width of one head's values.  None = d / h.
    positions : {None, "learned", "rotary"}
        How tokens know where they stand.  None = not at all.  "learned" adds a trained row per
        place to ``x``; "rotary" turns queries and keys, see ``mha_lib.learning.positions``.
    n_max : int, optional
        Longest sequence; only needed for learned positions.
    causal : bool, default False
        Whether each token may look only at itself and at those before it.
    value_columns : int array, (c,), optional
        The columns of the context that the values may see; the rows of ``w_v`` for all others
        stay 0.  None = all columns.

    Attributes
    ----------
    parameters : NamedArrays
        ``w_q`` (d, d), ``w_k`` (d_c, d), ``w_v`` (d_c, h * d_v) and ``w_o`` (h * d_v, d), with
        d_c = d without a context; and ``positions`` (n_max, d) if they are learned.
    gradients : NamedArrays
        The same names and shapes; filled by `backward`.
    gate_gradients : float64 array, (..., h)
        Gradient for each gate, one per sequence; filled by `backward`.
    weights : float64 array, (..., h, Tq, Tk)
        The attention weights of the last `forward`; read-only, since `backward` needs them.

    Raises
    ------
    ValueError
        ``n_heads`` does not divide d, or d / h is odd with rotary positions.

    See Also
    --------
    mha_lib.multi_head_attention : the forward pass as one function.

    Examples
    --------
    >>> layer = MultiHeadAttention(d=8, n_heads=2, rng=np.random.default_rng(0))
    >>> x = np.ones((3, 5, 8))
    >>> out = layer.forward(x)
    >>> layer.backward(np.ones_like(out)).shape
    (3, 5, 8)
    >>> layer.gradients["w_o"].shape
    (8, 8)
    """

    def __init__(
        self,
        d: Integer,
        n_heads: Integer,
        rng: np.random.Generator,
        *,
        d_context: Integer | None = None,
        d_v: Integer | None = None,
        positions: Positions | None = None,
        n_max: Integer | None = None,
        causal: bool = False,
        value_columns: ArrayLike | None = None,
    ) -> None:
        self.d = _check.integer("d", d, minimum=1)
        self.n_heads = _check.integer("n_heads", n_heads, minimum=1)
        _check.divides("n_heads", self.n_heads, "d", self.d)
        causal = _check.flag("causal", causal)
        self.d_context = None if d_context is None else _check.integer("d_context", d_context, 1)
        d_v = self.d // self.n_heads if d_v is None else _check.integer("d_v", d_v, minimum=1)
        rng = _check.generator("rng", rng)
        if positions is not None and (not isinstance(positions, str) or positions not in POSITIONS):
            raise ValueError(
                f"positions={positions!r} is unknown: use one of {', '.join(map(repr, POSITIONS))}"
            )
        if n_max is not None:
            n_max = _check.integer("n_max", n_max, minimum=1)
        if self.d_context is not None and (positions or causal):
            raise ValueError(
                "positions and causal compare places in one sequence, but with d_context="
                f"{d_context} there are two: leave them out, or leave out d_context"
            )
        self.rotary, self.causal = positions == "rotary", causal
        d_k = self.d // self.n_heads
        if self.rotary and d_k % 2:
            even = [2 * self.n_heads * times for times in (d_k // 2, d_k // 2 + 1) if times]
            raise ValueError(
                f"d={d} and n_heads={n_heads} give each head d_k={d_k}, which is odd, but rotary "
                f"positions turn coordinates in pairs: use d={' or '.join(map(str, even))}"
            )

        width = self.d if self.d_context is None else self.d_context

        def draw(rows, columns):
            return rng.normal(scale=1 / np.sqrt(rows), size=(rows, columns))

        parameters = {
            "w_q": draw(self.d, self.d),
            "w_k": draw(width, self.d),
            "w_v": draw(width, self.n_heads * d_v),
            "w_o": draw(self.n_heads * d_v, self.d),
        }
        if positions == "learned":
            if n_max is None:
                raise ValueError(
                    "n_max is missing: positions='learned' needs the length of the longest "
                    "sequence, such as n_max=16"
                )
            parameters["positions"] = rng.normal(size=(n_max, self.d))
        self._unseen = np.zeros(width, bool)
        if value_columns is not None:
            self._unseen[:] = True
            value_columns = _check.integer_array(
                "value_columns", value_columns, flags="np.flatnonzero(value_columns)"
            )
            _check.within("value_columns", value_columns, width, "columns")
            self._unseen[value_columns] = False
            parameters["w_v"][self._unseen] = 0.0
        self.parameters = NamedArrays(parameters)
        self.gradients = NamedArrays({name: np.zeros_like(p) for name, p in parameters.items()})
        self.gate_gradients: FloatArray | None = None
        self.weights: FloatArray | None = None
        self._saved: Any = None

    def forward(
        self,
        x: ArrayLike,
        context: ArrayLike | None = None,
        *,
        mask: ArrayLike | None = None,
        gates: ArrayLike | None = None,
    ) -> FloatArray:
        """Return the layer's output for ``x``, and keep what `backward` needs.

        Tokens are kept, not copied: leave them as they are until `backward` is done.

        Parameters
        ----------
        x : float array, (..., n, d)
            One token per row.
        context : float array, (..., m, d_c), optional
            The tokens that answer; only for a layer made with ``d_context``.
        mask : bool array broadcastable to (..., h, Tq, Tk), optional
            True = this query may look at this key; besides the causal mask, if there is one.
        gates : float array broadcastable to (..., h), optional
            A factor for each head's output: 1 leaves it, 0 removes it.  None = all 1.

        Returns
        -------
        out : float64 array, (..., n, d)

        Raises
        ------
        ValueError
            An array holds inf or NaN, or a number leaves the range of floats.
        """
        x = self._tokens("x", x, "d", self.d)
        if (context is None) != (self.d_context is None):
            raise ValueError(
                f"context is {'missing' if context is None else 'given'}, but the layer has "
                f"d_context={self.d_context}: make it with the width of the context, or None"
            )
        if context is not None:
            context = self._tokens("context", context, "d_c", len(self.parameters["w_k"]))
        elif "positions" in self.parameters:
            n, n_max = x.shape[-2], len(self.parameters["positions"])
            if n > n_max:
                raise ValueError(
                    f"x has n={n} tokens, but positions were made for n_max={n_max}: "
                    f"make the layer with n_max={n}"
                )
            x = x + self.parameters["positions"][:n]
        source = x if context is None else context
        leading, n, m = x.shape[:-2], x.shape[-2], source.shape[-2]
        _check.same_size(
            "x (all but its last two axes)", leading, "context", source.shape[:-2],
            "give every sequence its own context",
        )  # fmt: skip
        if mask is not None:
            mask = _check.boolean_mask("mask", mask, (*leading, self.n_heads, n, m))
        if self.causal:
            mask = combine_masks(causal_mask(n), mask)
        if gates is not None:
            gates = _check.real_array("gates", gates, axes=("h",))
            _check.finite("gates", gates)
            _check.broadcasts("gates", gates, (*leading, self.n_heads), "one gate per head")
            gates = np.array(gates[..., None, None], np.float64)  # (..., h, 1, 1)

        numbers = {"x": x} if context is None else {"x": x, "context": context}
        numbers |= {name: self.parameters[name] for name in ("w_q", "w_k", "w_v", "w_o")}
        if gates is not None:
            numbers["gates"] = gates
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
            q, k, v = (
                _split(_times(tokens, self.parameters[name]), self.n_heads)
                for name, tokens in (("w_q", x), ("w_k", source), ("w_v", source))
            )  # (..., h, Tq, d_k), (..., h, Tk, d_k), (..., h, Tk, d_v)
            _check.no_overflow("a projection", (q, k, v), numbers)
            if self.rotary:
                angles = rotary_angles(n, q.shape[-1])
                q, k = rotate(q, angles), rotate(k, angles)
            # No score can be larger than this.
            largest = np.abs(q).max(initial=0) * np.abs(k).max(initial=0) * q.shape[-1]
            _check.no_overflow("a score", (largest,), numbers)
            heads, weights = _attend(q, k, v, mask)  # (..., h, Tq, d_v), (..., h, Tq, Tk)
            gated = heads if gates is None else heads * gates
            merged = _merge(gated)  # (..., Tq, h * d_v)
            out = _times(merged, self.parameters["w_o"])  # (..., Tq, d)
        _check.no_overflow("the output", (out,), numbers)
        weights.flags.writeable = False
        self.weights = weights
        self._saved = x, source, context is not None, q, k, v, weights, heads, merged, gates
        return out

    def backward(self, d_out: ArrayLike) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Fill ``gradients`` and ``gate_gradients``, and return the gradient of the input.

        Parameters
        ----------
        d_out : float array, (..., n, d)
            Gradient of a number L with respect to the output of the last `forward`.

        Returns
        -------
        d_x : float64 array, (..., n, d)
            Gradient of L with respect to ``x``; with a context, the pair ``(d_x, d_context)``.

        Raises
        ------
        ValueError
            There was no `forward`, or a gradient leaves the range of floats.  No gradient has
            changed then.
        """
        if self._saved is None:
            raise ValueError("backward needs a forward pass: call forward(x) first")
        x, source, crossed, q, k, v, weights, heads, merged, gates = self._saved
        d_out = _check.real_array("d_out", d_out, axes=("n", "d"))
        _check.same_shape("d_out", d_out, "x", x, "pass the gradient of the last output")
        _check.finite("d_out", d_out)

        w = self.parameters
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
            d_merged = _times(d_out, w["w_o"].T)
            d_gated = _split(d_merged, self.n_heads)  # (..., h, Tq, d_v)
            d_gates = np.einsum("...ij,...ij->...", d_gated, heads)  # (..., h)
            d_heads = d_gated if gates is None else d_gated * gates  # (..., h, Tq, d_v)
            _check.no_overflow("the gradient", (d_heads,), {"d_out": d_out, "w_o": w["w_o"]})
            d_q, d_k, d_v = scaled_dot_product_attention_backward(d_heads, q, k, v, weights)
            if self.rotary:
                angles = rotary_angles(x.shape[-2], q.shape[-1])
                d_q, d_k = rotate(d_q, -angles), rotate(d_k, -angles)
            gradients = {"w_o": _rows(merged).T @ _rows(d_out)}
            d_x = np.zeros_like(x)
            d_source = np.zeros_like(source) if crossed else d_x
            for name, d_heads_of, tokens, d_tokens in (
                ("w_q", d_q, x, d_x),
                ("w_k", d_k, source, d_source),
                ("w_v", d_v, source, d_source),
            ):
                d_projected = _merge(d_heads_of)  # (..., T, columns of the projection)
                gradients[name] = _rows(tokens).T @ _rows(d_projected)
                d_tokens += _times(d_projected, w[name].T)
            gradients["w_v"][self._unseen] = 0.0
            if "positions" in w:
                n = x.shape[-2]
                gradients["positions"] = np.zeros_like(w["positions"])
                gradients["positions"][:n] = d_x.sum(axis=tuple(range(d_x.ndim - 2)))
        _check.no_overflow(
            "the gradient", (*gradients.values(), d_gates, d_x, d_source),
            {"d_out": d_out, "x": x, **w},
        )  # fmt: skip
        for name, gradient in gradients.items():  # nothing was changed until here
            self.gradients[name][...] = gradient
        self.gate_gradients = d_gates
        return (d_x, d_source) if crossed else d_x

    @staticmethod
    def _tokens(name: str, value: ArrayLike, axis: str, width: int) -> FloatArray:
        """Return ``value`` as finite float64 tokens of this width."""
        tokens = _check.real_array(name, value, axes=("n", axis)).astype(np.float64, copy=False)
        _check.same_size(
            f"{name} (its last axis)", tokens.shape[-1], "the layer", width,
            f"make the layer with the width of {name}",
        )  # fmt: skip
        _check.finite(name, tokens)
        return tokens


def _times(x, w):
    """Return ``x @ w`` as one product of two matrices, which is twice as fast as one a sequence."""
    return (_rows(x) @ w).reshape(*x.shape[:-1], w.shape[1])


def _rows(x):
    """Return all tokens of all sequences as the rows of one matrix."""
    return x.reshape(-1, x.shape[-1])
