"""The diagram of multi-head attention, drawn from the arrays of one actual computation."""

from html import escape

import numpy as np

from mha_lib import _check
from mha_lib._types import FloatArray, Integer
from mha_lib.figures.palette import head_colour
from mha_lib.multihead import attention_steps, merge_heads

CELL = 12  # side of one number, in SVG units
GAP = 12  # between matrices
LINE = 18  # height of a line of text
GREY = "#777777"  # for numbers that belong to no single head
WEIGHT = "#7B3FA0"  # for attention weights


class MechanismDiagram:
    """A picture of split, attend, concatenate, project, with a text that says the same.

    In a notebook it shows itself; ``svg`` and ``text`` give its two forms, and ``file`` the
    picture as a file of its own, in dark ink on white.

    Parameters
    ----------
    x : float array, (n, d)
        One token per row.
    w_q, w_k, w_v, w_o : float arrays, (d, d)
        Projections as in `mha_lib.multi_head_attention`.
    n_heads : int
        Number of heads; it must divide d.

    Raises
    ------
    ValueError
        ``n_heads`` does not divide d, or an array holds inf or NaN.

    Examples
    --------
    >>> x, w = np.eye(4), np.eye(4)
    >>> print(MechanismDiagram(x, w, w, w, w, n_heads=2).text.splitlines()[0])
    1. Project: x, 4 tokens of width 4, times w_q, w_k and w_v gives q, k and v, each 4 by 4.
    """

    def __init__(
        self,
        x: FloatArray,
        w_q: FloatArray,
        w_k: FloatArray,
        w_v: FloatArray,
        w_o: FloatArray,
        n_heads: Integer,
    ) -> None:
        x = _check.matrix("x", x, axes=("n", "d"))
        n, d = x.shape
        _check.not_empty("x", "n", n, "give at least one token")
        n_heads = _check.integer("n_heads", n_heads, minimum=1)
        _check.divides("n_heads", n_heads, "d", d)
        _check.finite("x", x)
        projections = {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": w_o}
        for name, w in projections.items():
            projections[name] = w = _check.matrix(name, w, axes=("d", "d"))
            _check.same_size(name, w.shape, "(d, d) of x", (d, d), "pass square projections")
            _check.finite(name, w)
        steps = attention_steps(x, **projections, n_heads=n_heads)
        self.text = _describe(x, n_heads, steps.weights)
        self.svg = _draw(x, steps, self.text)

    @property
    def file(self) -> str:
        """The picture with a background and an ink of its own, to stand outside a page."""
        opening, rest = self.svg.split("<g ", 1)
        paper = '<rect width="100%" height="100%" fill="white"/>'
        ink = rest.replace("currentColor", "#222222", 1)
        return f'{opening}{paper}<g font-family="sans-serif" {ink}\n'

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self):
        words = "".join(f"<li>{escape(line[3:])}</li>" for line in self.text.splitlines())
        return (
            f"{self.svg}<details><summary>The diagram in words</summary><ul>{words}</ul></details>"
        )


def _describe(x, n_heads, weights):
    n, d = x.shape
    d_k = d // n_heads
    lines = [
        f"1. Project: x, {n} tokens of width {d}, times w_q, w_k and w_v gives q, k and v, "
        f"each {n} by {d}.",
        f"2. Split: the {d} columns are cut into {n_heads} heads of d_k = {d_k}.",
    ]
    for head in range(n_heads):
        query, key = np.unravel_index(weights[head].argmax(), (n, n))
        lines.append(
            f"3. Attend, head {head + 1}: columns {head * d_k + 1} to {(head + 1) * d_k} give "
            f"{n} by {n} weights; the largest, {weights[head, query, key]:.2f}, is from "
            f"token {query + 1} to token {key + 1}."
        )
    lines.append(f"4. Concatenate: {n_heads} outputs of {n} by {d_k} side by side are {n} by {d}.")
    lines.append(f"5. Project: times w_o gives the output, {n} by {d}; heads are mixed.")
    return "\n".join(lines)


def _draw(x, steps, text):
    n, d = x.shape
    n_heads, _, d_k = steps.heads.shape
    projected = [merge_heads(heads) for heads in (steps.q, steps.k, steps.v)]  # (n, d) each
    colours = [head_colour(column // d_k) for column in range(d)]
    head_width = max(3 * (d_k * CELL + GAP), (n + d_k) * CELL + 3 * GAP) + GAP
    width = max(3 * (d * CELL + GAP), n_heads * head_width, 330)
    middle = (width - d * CELL) // 2
    parts = []

    y = _heading(parts, "x: one row per token", 0)
    y = _matrix(parts, x, [GREY] * d, middle, y)

    top = _heading(parts, "1. Project: times w_q, w_k and w_v", y)
    for i, (name, matrix) in enumerate(zip("qkv", projected, strict=True)):
        y = _labelled(parts, name, matrix, colours, i * (d * CELL + GAP), top)

    top = _heading(parts, f"2. Split: {d_k} columns of each go to each head", y)
    for head in range(n_heads):
        columns = slice(head * d_k, (head + 1) * d_k)
        for i, (name, matrix) in enumerate(zip("qkv", projected, strict=True)):
            corner = head * head_width + i * (d_k * CELL + GAP)
            largest = np.abs(matrix).max()
            y = _labelled(
                parts,
                f"{name} {head + 1}",
                matrix[:, columns],
                colours[columns],
                corner,
                top,
                largest,
            )

    top = _heading(parts, "3. Attend: weights, then a blend of v", y)
    for head in range(n_heads):
        corner = head * head_width
        columns = slice(head * d_k, (head + 1) * d_k)
        _labelled(
            parts, f"head {head + 1}", steps.weights[head], [WEIGHT] * n, corner, top, largest=1.0
        )
        corner += n * CELL + 2 * GAP
        largest = np.abs(steps.merged).max()
        y = _labelled(parts, "blend", steps.heads[head], colours[columns], corner, top, largest)

    y = _heading(parts, "4. Concatenate: the blends side by side", y)
    y = _matrix(parts, steps.merged, colours, middle, y)

    y = _heading(parts, "5. Project: times w_o, heads mixed", y)
    y = _matrix(parts, steps.out, [GREY] * d, middle, y)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" role="img" '
        f'style="max-width: {width * 5 // 4}px; width: 100%; height: auto" class="mha-diagram">'
        f"<title>Split, attend, concatenate, project</title><desc>{escape(text)}</desc>"
        f'<g font-size="13" fill="currentColor">{"".join(parts)}</g></svg>'
    )


def _heading(parts, words, y):
    _text(parts, words, 0, y + LINE)
    return y + LINE + 8


def _labelled(parts, label, matrix, column_colours, left, top, largest=None):
    _text(parts, label, left, top + LINE - 8)
    return _matrix(parts, matrix, column_colours, left, top + LINE - 2, largest)


def _text(parts, words, x, y):
    parts.append(f'<text x="{x}" y="{y}">{escape(words)}</text>')


def _matrix(parts, matrix, column_colours, left, top, largest=None):
    """Draw one square per number, the darker the larger its absolute value; return the bottom."""
    largest = largest or np.abs(matrix).max() or 1.0
    for i, row in enumerate(matrix):
        for j, number in enumerate(row):
            parts.append(
                f'<rect x="{left + j * CELL}" y="{top + i * CELL}" width="{CELL - 1}" '
                f'height="{CELL - 1}" fill="{column_colours[j]}" '
                f'fill-opacity="{0.12 + 0.88 * abs(number) / largest:.2f}"/>'
            )
    return top + len(matrix) * CELL + 8
