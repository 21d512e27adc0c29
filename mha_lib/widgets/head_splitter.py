"""See how the columns of Q, K and V are dealt out to heads, and what each head makes of them."""

import base64
import io
import re
from collections.abc import Sequence
from html import escape

import numpy as np
import traitlets
from numpy.typing import ArrayLike
from PIL import Image

from mha_lib import _check
from mha_lib._types import FloatArray, Integer
from mha_lib.figures.palette import head_colour, ink
from mha_lib.multihead import attention_steps
from mha_lib.widgets import _picture
from mha_lib.widgets._base import FrameWidget, Whole, Words, front_end, style

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
    head : int, optional
        Index of the head whose way is lit.  None = all heads.
    seed : int, default 0
        Seed of the random numbers.

    Notes
    -----
    The traits ``tokens``, ``n_heads``, ``d``, ``token`` and ``head`` can be read, set, observed
    and linked.

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
    # What a width has for every number of heads, also for those that do not divide it: shades of
    # Q, K, V (n, d) and W_O (d, d), end to end, for each of `_widths` in turn.
    _matrices = traitlets.Bytes().tag(sync=True)
    _widths: traitlets.List = traitlets.List().tag(sync=True)
    tokens = Words()
    n_heads = Whole(4)
    d = Whole(16)
    token = Whole(0, minimum=0)
    head = Whole(None, minimum=0, allow_none=True)
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
        head: Integer | None = None,
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
        self.token, self.head = token, head
        self.recompute()
        self.follow_settings()
        self.observe(self._new_tokens, "tokens")
        self.observe(self._new_picture, [*self.settings, "token", "head"])

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
        _check.divides("n_heads", self.n_heads, "d", self.d)
        return attention_steps(*self.arrays(), self.n_heads).weights

    def choices(self):
        return {
            "n_heads": list(range(1, 9)),
            "d": [4, 6, 8, 10, 12, 14, 15, 16, 18, 20, 24, 30] if not self._own else [self.d],
        }

    def frame(self, n_heads, d):
        if d % n_heads:
            return {}  # no head attends; the page deals out the columns as far as they go
        steps = attention_steps(*self.arrays(d), n_heads)
        return {
            # In hundredths, as they are shown.
            "weights": (100 * steps.weights).round().astype(np.uint8),
            "merged": _shade(steps.merged),
            "out": _shade(steps.out),
        }

    def problem(self, n_heads, d):
        own = next(iter(self._own.values()), None)
        if own is not None and own.shape[-1] != d:
            return f"d={d}, but the arrays passed in have width {own.shape[-1]}: use that d"
        return ""

    def recompute(self):
        """Compute all frames again, after the data behind them changed."""
        with self.hold_sync():
            self._widths = []
            super().recompute()

    def _compute_live(self, change=None):
        with self.hold_sync():
            if self.d not in self._widths and not self.current_problem():
                widths = sorted({*self.choices()["d"], self.d})
                shades = (_shade(m).tobytes() for d in widths for m in self._by_width(d).values())
                self._widths, self._matrices = widths, b"".join(shades)
            super()._compute_live(change)

    def _by_width(self, d):
        x, w_q, w_k, w_v, w_o = self.arrays(d)
        return {"q": x @ w_q, "k": x @ w_k, "v": x @ w_v, "w_o": w_o}

    def _new_picture(self, change):
        self._picture = self.picture()

    def picture(self):
        if problem := self.current_problem():
            return _picture.figure("", problem + ".")
        x, *w = self.arrays()
        matrices, d_k, left = self._by_width(self.d), self.d // self.n_heads, self.d % self.n_heads
        owners = [column // d_k if d_k else None for column in range(self.d)]
        owners = [None if owner == self.n_heads else owner for owner in owners]
        split = [_strip(name.upper(), matrices[name], owners, d_k, self.n_heads) for name in "qkv"]
        parts = [_row(split)]
        if left:
            columns = f"{left} column{'s' * (left > 1)}"
            said = f"{columns} left over: {self.n_heads} does not divide {self.d}."
            return _picture.figure("".join(parts), said)
        steps = attention_steps(x, *w, self.n_heads)
        size = min(11, 500 // (self.n_heads * len(self.tokens)))
        maps = [_names(self.tokens, self.token, size)]
        for head, weights in enumerate(steps.weights):
            key = weights[self.token].argmax()
            says = f"{escape(self.tokens[key])}<br>{weights[self.token, key]:.2f}"
            first, last = head * d_k + 1, (head + 1) * d_k
            columns = f"column {first}" if first == last else f"columns {first} to {last}"
            image = _picture.weight_map(
                weights,
                f"Attention map of head {head + 1}, {columns}: “{self.tokens[self.token]}” looks "
                f"most at “{self.tokens[key]}”, {weights[self.token, key]:.2f}.",
                size * len(weights),
            )
            chip = _chip(head, f"head {head + 1}")
            maps.append(f'<div style="font-size: 12px">{chip}{says}<br>{image}</div>')
        joined = [
            _strip("blends", steps.merged, owners, d_k, self.n_heads),
            _strip("&times; W<sub>O</sub>", matrices["w_o"], owners, by_row=True),
            _strip("= output", steps.out, [None] * self.d),
        ]
        parts += [_row(maps), _row(joined)]
        return _picture.figure(
            "".join(parts),
            f"{self.d} columns split among {self.n_heads} heads, each head's attention map (rows "
            f"look at columns, from 0, dark, to 1, light; above it, where "
            f"“{self.tokens[self.token]}” looks most), and the heads' blends, mixed by W_O.",
        )


def _shade(matrix):
    """Return how dark each number is drawn: its absolute value, 255 for the largest."""
    return (255 * np.abs(matrix) / (np.abs(matrix).max() or 1.0)).round().astype(np.uint8)


def _row(parts):
    style = "display: flex; flex-wrap: wrap; gap: 8px 12px; align-items: end; margin-bottom: 12px"
    return f'<div style="{style}">{"".join(parts)}</div>'


def _chip(head, text, width=None):
    colour, size = head_colour(head), f"width: {width}px; overflow: hidden; " if width else ""
    return (
        f'<div style="{size}box-sizing: border-box; background: {colour}; color: {ink(colour)}; '
        f'font-size: 11px; line-height: 14px; text-align: center">{text}</div>'
    )


def _names(words, marked, size):
    """Return the words of the rows of a map, or where these are too low, the marked one."""
    shown = words if size >= 11 else ["" if i != marked else word for i, word in enumerate(words)]
    lines = "<br>".join(
        f"<b>{escape(word)}</b>" if i == marked else escape(word) for i, word in enumerate(shown)
    )
    return f'<div style="font-size: 11px; line-height: {size}px; text-align: end">{lines}</div>'


def _strip(name, matrix, owners, d_k=0, n_heads=0, by_row=False):
    """Return a matrix as an image, its columns or rows in the colours of their heads."""
    n, d = matrix.shape
    side = min(6, 150 / d)
    colours = [(119, 119, 119) if o is None else _rgb(head_colour(o)) for o in owners]
    rgba = np.empty((n, d, 4), np.uint8)
    rgba[..., :3] = np.array(colours)[:, None] if by_row else colours
    rgba[..., 3] = 30 + 0.88 * _shade(matrix)
    file = io.BytesIO()
    Image.fromarray(rgba).save(file, "png", optimize=True)
    data = base64.b64encode(file.getvalue()).decode()
    bars = "".join(_chip(head, head + 1, d_k * side) for head in range(n_heads if d_k else 0))
    hatch, left = "", d - d_k * n_heads
    if n_heads and left:
        hatch = (
            f'<div style="position: absolute; inset: 0 0 0 auto; width: {left * side}px; '
            'background: repeating-linear-gradient(45deg, #d0453a 0 2px, transparent 2px 5px)">'
            "</div>"
        )
    alt = re.sub("<.*?>|&times; |= ", "", name)
    return (
        f'<div><div>{name}</div><div style="display: flex">{bars}</div>'
        f'<div style="position: relative; width: {d * side}px">{hatch}'
        f'<img alt="{alt}: {n} rows, {d} columns" width="{d * side:g}" height="{n * side:g}" '
        f'style="image-rendering: pixelated; display: block; max-width: none; width: {d * side}px; '
        f'height: {n * side}px" src="data:image/png;base64,{data}"></div></div>'
    )


def _rgb(colour):
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))
