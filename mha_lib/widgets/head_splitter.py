"""See how the columns of Q, K and V are dealt out to heads, and what each head makes of them."""

from collections.abc import Sequence

import numpy as np
import traitlets
from numpy.typing import ArrayLike

from mha_lib import _check
from mha_lib._types import FloatArray, Integer
from mha_lib.multihead import attention_steps, merge_heads
from mha_lib.widgets import _picture
from mha_lib.widgets._base import FrameWidget, Whole, Words, front_end, reason, style

SENTENCE = "the general visited the queen when she opened the new hospital"
MOST_TOKENS = 32  # more rows than this cannot be told apart on a page
Arrays = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]
WEIGHT_NAMES = ("w_q", "w_k", "w_v", "w_o")


class HeadSplitter(FrameWidget):
    """Vary the number of heads and the width, and follow the columns of each head.

    Parameters
    ----------
    tokens : list of str, or str, optional
        The words; a text is split at spaces.  Default: the book's sentence, or "token 1",
        "token 2", ... for your own ``x``.
    n_heads : int, default 4
        Number of heads h.  A value that does not divide ``d`` is shown as impossible.
    d : int, optional
        Model width.  Default: 16, or the width of your own arrays.
    x : float array, (n, d), optional
        Your own token vectors.  None = random numbers.
    w_q, w_k, w_v, w_o : float arrays, (d, d), optional
        Your own projections.  None = random numbers.
    token : int, optional
        Index of the token whose rows are marked.  Default: that of "she", or 0.
    seed : int, default 0
        Seed of the random numbers.

    Notes
    -----
    The traits ``tokens``, ``n_heads``, ``d`` and ``token`` can be read, set, observed and linked.

    Examples
    --------
    >>> splitter = HeadSplitter(tokens=["she", "opened", "it"], n_heads=2, d=8)
    >>> splitter
    HeadSplitter(n_heads=2, d=8)
    >>> splitter.weights().shape  # (h, n, n)
    (2, 3, 3)
    """

    _esm = front_end("head_splitter")
    _css = style("head_splitter")

    settings = frame_settings = problem_settings = ("n_heads", "d")
    tokens = Words()
    n_heads = Whole(4)
    d = Whole(16)
    token = Whole(0, minimum=0)
    _random = traitlets.Bool(True).tag(sync=True)

    def __init__(
        self,
        tokens: str | Sequence[str] | None = None,
        n_heads: Integer = 4,
        d: Integer | None = None,
        *,
        x: ArrayLike | None = None,
        w_q: ArrayLike | None = None,
        w_k: ArrayLike | None = None,
        w_v: ArrayLike | None = None,
        w_o: ArrayLike | None = None,
        token: Integer | None = None,
        seed: Integer = 0,
    ) -> None:
        self._seed = _check.integer("seed", seed, minimum=0)
        self._own = {
            name: _check.matrix(name, value, axes)
            for name, value, axes in (
                ("x", x, ("n", "d")),
                ("w_q", w_q, ("d", "d")),
                ("w_k", w_k, ("d", "d")),
                ("w_v", w_v, ("d", "d")),
                ("w_o", w_o, ("d", "d")),
            )
            if value is not None
        }
        widths = [(f"{name} axis d", a.shape[-1]) for name, a in self._own.items()]
        widths += [(f"{n} axis 0", a.shape[0]) for n, a in self._own.items() if n != "x"]
        for name, width in widths[1:]:
            _check.same_size(*widths[0], name, width, "give all arrays the same width d")
        if d is None:
            d = widths[0][1] if widths else 16
        if tokens is None:
            tokens = SENTENCE.split()
            if "x" in self._own:
                tokens = [f"token {i + 1}" for i in range(len(self._own["x"]))]
        super().__init__(tokens=tokens, n_heads=n_heads, d=d)
        if widths:
            _check.same_size("d", self.d, *widths[0], "leave out d, or give it the arrays' width")
        self._random = not set(WEIGHT_NAMES) <= set(self._own)
        if token is None:
            token = self.tokens.index("she") if "she" in self.tokens else 0
        self.token = token
        self.recompute()
        self.follow_settings()
        self.observe(self._new_tokens, "tokens")

    @traitlets.validate("tokens")
    def _check_tokens(self, proposal):
        tokens = proposal["value"]
        if not 1 <= len(tokens) <= MOST_TOKENS:
            raise ValueError(
                f"tokens has {len(tokens)} entries: use between 1 and {MOST_TOKENS}, "
                f"as many as rows can be told apart"
            )
        if "x" in self._own:
            _check.same_size(
                "tokens", len(tokens), "x axis n", len(self._own["x"]), "name each row of x once"
            )
        return tokens

    @traitlets.validate("token")
    def _check_token(self, proposal):
        if proposal["value"] >= len(self.tokens):
            raise ValueError(
                f"token={proposal['value']}, but there are {len(self.tokens)} tokens: "
                f"use token <= {len(self.tokens) - 1}"
            )
        return proposal["value"]

    def _new_tokens(self, change):
        self.token = min(self.token, len(self.tokens) - 1)
        self.recompute()

    def arrays(self, d: int | None = None) -> Arrays:
        """Return x, w_q, w_k, w_v and w_o of width ``d`` (default: the present width)."""
        d = self.d if d is None else d
        rng = np.random.default_rng([self._seed, d])
        arrays: dict[str, FloatArray] = {"x": rng.normal(size=(len(self.tokens), d))}
        for name in WEIGHT_NAMES:
            # Queries and keys a little larger than usual, so that the maps are not flat.
            scale = 1.5 if name in ("w_q", "w_k") else 1.0
            arrays[name] = rng.normal(scale=scale / np.sqrt(d), size=(d, d))
        x, w_q, w_k, w_v, w_o = {**arrays, **self._own}.values()
        return x, w_q, w_k, w_v, w_o

    def weights(self) -> FloatArray:
        """Return the attention weights of the present setting, (h, n, n)."""
        return attention_steps(*self.arrays(), self.n_heads).weights

    def choices(self):
        return {
            "n_heads": list(range(1, 9)),
            "d": [4, 6, 8, 12, 16, 24] if not self._own else [self.d],
        }

    def frame(self, n_heads, d):
        *_, w_o = arrays = self.arrays(d)
        steps = attention_steps(*arrays, n_heads)
        side_by_side = {name: merge_heads(getattr(steps, name)) for name in ("q", "k", "v")}
        matrices = side_by_side | {"merged": steps.merged, "w_o": w_o, "out": steps.out}  # (., d)
        shades = {name: _shade(matrix) for name, matrix in matrices.items()}
        return {"weights": steps.weights.astype("<f4"), **shades}

    def problem(self, n_heads, d):
        own = next(iter(self._own.values()), None)
        if own is not None and own.shape[-1] != d:
            return f"d={d}, but the arrays passed in have width {own.shape[-1]}: use that d"
        return reason(_check.divides, "n_heads", n_heads, "d", d)

    def picture(self):
        if problem := self.current_problem():
            return _picture.figure("", problem + ".")
        weights, d_k, word = self.weights(), self.d // self.n_heads, self.tokens[self.token]
        maps = []
        for head, row in enumerate(weights[:, self.token]):
            first, last = head * d_k + 1, (head + 1) * d_k
            columns = f"column {first}" if first == last else f"columns {first} to {last}"
            maps.append(
                _picture.weight_map(
                    weights[head],
                    f"Attention map of head {head + 1}, {columns}: “{word}” looks most at "
                    f"“{self.tokens[row.argmax()]}”, {row.max():.2f}.",
                )
            )
        return _picture.figure(
            " ".join(maps),
            f"{self.d} columns split among {self.n_heads} heads, and each head's attention map; "
            "query rows, key columns, from 0 (dark) to 1 (light).",
        )


def _shade(matrix):
    """Return how dark each number is drawn: its absolute value, 255 for the largest."""
    return (255 * np.abs(matrix) / (np.abs(matrix).max() or 1.0)).round().astype(np.uint8)
