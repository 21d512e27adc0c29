"""The diagram of multi-head attention, drawn from the arrays of one actual computation."""

from collections.abc import Sequence
from html import escape

import numpy as np

from mha_lib import _check
from mha_lib._types import FloatArray, Integer
from mha_lib.figures.palette import WEIGHT_COLOURS, head_colour, ink
from mha_lib.multihead import AttentionSteps, attention_steps, merge_heads

INK = "currentColor"  # for numbers that belong to no single head
LINE = 18  # height of a line of text
SIGN = 40  # between a map and its blend, and between x and q
BETWEEN = 10  # between heads
BAR = 18  # over a head
LETTER = 8  # width that is kept for one
TIMES = "\N{MULTIPLICATION SIGN}"
WIDE, NARROW = 688, 320  # units: a column of the book, and one on a phone
# Where there is no room for the wide form, the narrow one is shown.
STYLE = (
    ".mha-mechanism{container-type:inline-size}"
    ".mha-diagram{display:block;width:100%;height:auto;margin-inline:auto}"
    ".mha-narrow{display:none;max-width:420px}"
    "@container (max-width:520px){.mha-wide{display:none}.mha-narrow{display:block}}"
)


class MechanismDiagram:
    """A picture of split, attend, concatenate, project, with a text that says the same.

    In a notebook it shows itself; ``svg``, ``narrow`` and ``text`` give its forms for a page, for
    a phone and in words, and ``file`` the picture as a file of its own, in dark ink on white.

    Parameters
    ----------
    x : float array, (n, d)
        One token per row.
    w_q, w_k, w_v, w_o : float arrays, (d, d)
        Projections as in `mha_lib.multi_head_attention`.
    n_heads : int
        Number of heads; it must divide d.
    tokens : list of str, or str, optional
        The words; a text is split at spaces.  None = "token 1", "token 2", ...

    Raises
    ------
    ValueError
        ``n_heads`` does not divide d, there are not n words, or an array holds inf or NaN.

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
        tokens: str | Sequence[str] | None = None,
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
        if tokens is None:
            words = [f"token {i + 1}" for i in range(n)]
        else:
            words = _check.words("tokens", tokens)
            _check.same_size("tokens", len(words), "x axis n", n, "name each row of x once")
        steps = attention_steps(x, **projections, n_heads=n_heads)
        self.text = _describe(x, n_heads, steps.weights, words)
        self.svg, self.narrow = (
            _Drawing(x, projections["w_o"], steps, words, width).svg(self.text)
            for width in (WIDE, NARROW)
        )

    @classmethod
    def example(cls) -> "MechanismDiagram":
        """Return the book's picture: four words, two heads that were made by hand.

        Words are random vectors.  Queries and keys are chosen so that head 1 looks for the noun
        and head 2 for the word before.
        """
        rng = np.random.default_rng(0)
        x, w_v, w_o = rng.normal(size=(4, 8)), *rng.normal(scale=0.3, size=(2, 8, 8))
        word, find = np.eye(4), np.linalg.pinv(x)  # x @ find is word
        noun, before = word[[1, 1, 1, 1]], word[[0, 0, 1, 2]]
        strength = np.array([[4.0], [5.0], [5.0], [7.0]])  # "she" needs its noun most
        w_q = find @ np.hstack([strength * noun, 5 * before])
        w_k = find @ np.hstack([word, word])
        return cls(x, w_q, w_k, w_v, w_o, n_heads=2, tokens="the queen said she")

    @property
    def file(self) -> str:
        """The picture with a background and an ink of its own, to stand outside a page."""
        opening, rest = self.svg.split(">", 1)
        paper = '<rect width="100%" height="100%" fill="white"/>'
        return f'{opening} color="#222222" font-family="sans-serif">{paper}{rest}\n'

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self):
        words = "".join(f"<li>{escape(line[3:])}</li>" for line in self.text.splitlines())
        return (
            f'<div class="mha-mechanism"><style>{STYLE}</style>{self.svg}{self.narrow}</div>'
            f"<details><summary>The diagram in words</summary><ul>{words}</ul></details>"
        )


def _describe(x, n_heads, weights, words):
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
            f"{words[query]} to {words[key]}."
        )
    lines.append(f"4. Concatenate: {n_heads} outputs of {n} by {d_k} side by side are {n} by {d}.")
    lines.append(f"5. Project: times w_o gives the output, {n} by {d}; heads are mixed.")
    return "\n".join(lines)


class _Drawing:
    """One picture, ``width`` units wide, or wider where many numbers need it."""

    def __init__(
        self,
        x: FloatArray,
        w_o: FloatArray,
        steps: AttentionSteps,
        words: list[str],
        width: float,
    ) -> None:
        self.x, self.w_o, self.steps = x, w_o, steps
        self.is_narrow = width < WIDE
        (n, d), (n_heads, _, d_k) = x.shape, steps.heads.shape
        letters = 7 if self.is_narrow else 12
        self.words = [
            w if len(w) <= letters else w[: letters - 1] + "\N{HORIZONTAL ELLIPSIS}" for w in words
        ]
        self.label = LETTER * max(map(len, self.words)) + 6  # room for a word before its row
        self.gap = 8 if self.is_narrow else 24  # between q, k and v
        before = 0 if self.is_narrow else self.label + SIGN  # x stands above q, or beside it
        in_a_row = 3 * d if self.is_narrow else 4 * d
        # One size for all numbers; where it would be too small, heads stand in several lines.
        for lines in range(1, n_heads + 1):
            self.per_line = -(-n_heads // lines)
            self.lane = (width - BETWEEN * (self.per_line - 1)) / self.per_line
            # A head's blend stands below its map, or beside it.
            across = max(n, d_k) if self.is_narrow else n + d_k
            of_head = (self.lane - self.label - (10 if self.is_narrow else SIGN + 10)) / across
            self.cell = min(18, (width - before - 2 * self.gap) / in_a_row, of_head)
            if self.cell >= 7:
                break
        self.cell = max(self.cell, 6)
        self.side = self.cell * d
        self.width = max(width, before + in_a_row * self.cell + 2 * self.gap)
        self.front: list[str] = []
        self.behind: list[str] = []  # ribbons lie behind all else

    def svg(self, text):
        """Return the picture, with the text for those who do not see it."""
        y, starts = self.project()
        y, blends = self.attend(y, starts)
        height = self.mix(y, blends)
        kind = "mha-narrow" if self.is_narrow else "mha-wide"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:.0f} {height:.0f}" '
            f'role="img" class="mha-diagram {kind}"><title>Split, attend, concatenate, project'
            f'</title><desc>{escape(text)}</desc><g font-size="{12.75 if self.is_narrow else 13}" '
            f'fill="currentColor">{"".join(self.behind + self.front)}</g></svg>'
        )

    def project(self):
        """Draw x, q, k and v; return where they end, and where q, k and v start."""
        n, cell, side = len(self.x), self.cell, self.side
        self.heading("1 Project: x times w_q, w_k and w_v", 0, 14)
        top = 2 * LINE + 4
        self.row_words(self.label - 4, top)
        self.write("x", self.label, top - 5)
        end = self.matrix(self.x, [INK] * self.x.shape[1], self.label, top)
        if self.is_narrow:
            self.arrow(self.label + side / 2, end + 3, 0, 12)
            top, left = end + 2 * LINE, 0
        else:
            left = self.width - 3 * side - 2 * self.gap
            self.arrow(self.label + side + 8, top + n * cell / 2, left - self.label - side - 16, 0)
        starts = [left + i * (side + self.gap) for i in range(3)]
        projected = self.steps.q, self.steps.k, self.steps.v
        for name, start, heads in zip("qkv", starts, projected, strict=True):
            self.write(name, start, top - 5)
            end = self.matrix(merge_heads(heads), self.owners(), start, top)
        return end, starts

    def attend(self, y, starts):
        """Draw the heads below ``y``; return where they end, and the places of their blends."""
        n_heads, n, d_k = self.steps.heads.shape
        self.heading(f"2 Split: {d_k} column{'s' * (d_k > 1)} to each head", 0, y + 17)
        self.heading("3 Attend: each head on its own", 0, y + 17 + LINE + 4)
        if not self.is_narrow:
            self.key(self.width - 154, y + 17 + LINE + 4)
        top = y + 2 * LINE + 14
        above = BAR + 8 + LETTER * max(map(len, self.words))  # the words of the keys stand upright
        self.says_twice = self.lane < 20 * LETTER + 2 * self.label
        high = above + n * self.cell + (2 * LINE if self.says_twice else LINE) + 6
        high += n * self.cell + SIGN - 10 if self.is_narrow else 0
        blends = {}  # of the last line: others would flow through these heads
        for head in range(n_heads):
            line, place = divmod(head, self.per_line)
            left, upper = place * (self.lane + BETWEEN), top + line * (high + BETWEEN)
            for i, start in enumerate(starts if line == 0 else []):  # through no other head
                third = self.lane / 3
                self.ribbon(
                    (start + head * d_k * self.cell, d_k * self.cell, y),
                    (left + i * third, third, upper),
                    head,
                )
            self.frame(head, left, upper, high)
            blend = self.head(head, left, upper + above)
            if line == (n_heads - 1) // self.per_line:
                blends[head] = blend
        return upper + high, blends

    def frame(self, head, left, top, high):
        colour, width = head_colour(head), self.lane
        self.front.append(
            f'<path d="M{left:.1f} {top:.1f}h{width:.1f}v{BAR}h{-width:.1f}z" fill="{colour}"/>'
            f'<path d="M{left + 0.5:.1f} {top:.1f}h{width - 1:.1f}v{high:.1f}h{1 - width:.1f}z" '
            f'fill="none" stroke="{colour}"/>'
        )
        self.write(f"head {head + 1}", left + 6, top + 13, f'fill="{ink(colour)}"')

    def head(self, head, left, top):
        """Draw a head's map and blend, its numbers from ``top`` on; return the blend's place."""
        n, d_k = self.steps.heads.shape[1:]
        cell, weights = self.cell, self.steps.weights[head]
        start = left + self.label + 6
        self.row_words(start - 4, top)
        for i, word in enumerate(self.words):
            x, y = start + (i + 0.5) * cell + 4, top - 4
            self.write(word, 0, 0, f'transform="translate({x:.1f} {y:.1f}) rotate(-90)"')
        self.squares([[_weight_colour(weight) for weight in row] for row in weights], start, top)
        end = top + n * cell
        if self.is_narrow:
            blend, top = start, end + SIGN - 10
            self.arrow(start + 8, end + 6, 0, SIGN - 20)
            self.write(f"{TIMES} v", start + 18, end + 21)
        else:
            blend = start + n * cell + SIGN
            self.arrow(blend - SIGN + 4, top + n * cell / 2, SIGN - 8, 0)
            self.write(f"{TIMES} v", blend - SIGN + 4, top + n * cell / 2 - 7)
        largest = np.abs(self.steps.merged).max()
        colours = [head_colour(head)] * d_k
        end = self.matrix(self.steps.heads[head], colours, blend, top, largest)
        query, key = np.unravel_index(weights.argmax(), (n, n))
        says = f"“{self.words[query]}” looks most at", f"“{self.words[key]}”, {weights.max():.2f}"
        for i, line in enumerate(says if self.says_twice else [" ".join(says)]):
            self.write(line, left + 6, end + 15 + i * 16)
        return blend, end

    def mix(self, y, blends):
        """Draw the concatenation, w_o and the output below ``y``; return where they end."""
        (n_heads, n, d_k), cell, side = self.steps.heads.shape, self.cell, self.side
        step = (self.width - side) / 2  # from one matrix to the next
        self.heading("4 Concatenate", 0, y + LINE + 2)
        self.heading("5 Project: times w_o", step, y + LINE + 2)
        top = y + LINE + 12
        for head, (blend, end) in blends.items():
            wide = d_k * cell
            self.ribbon((blend, wide, end), (head * wide, wide, top), head)
        end = self.matrix(self.steps.merged, self.owners(), 0, top)
        for i, sign in enumerate(f"{TIMES}="):
            self.write(sign, (i + 0.5) * step + side / 2 - 4, top + n * cell / 2 + 4)
        rows = [[colour] * len(self.w_o) for colour in self.owners()]
        low = self.squares(rows, step, top, self.w_o)
        # Each column of the output bears the colours of all heads.
        thin = (cell - 1) / n_heads
        for column in range(len(self.w_o)):
            for head in range(n_heads):
                x = 2 * step + column * cell + head * thin
                path = f"M{x:.1f} {top + n * cell + 1:.1f}h{thin:.1f}v4h{-thin:.1f}z"
                self.front.append(f'<path d="{path}" fill="{head_colour(head)}"/>')
        self.write("output: heads mixed", self.width, end + 20, 'text-anchor="end"')
        if self.is_narrow:
            self.key(0, low + LINE)
            low += LINE
        self.matrix(self.steps.out, [INK] * len(self.w_o), 2 * step, top)
        return max(low, end + 20) + 6

    def owners(self):
        n_heads, _, d_k = self.steps.heads.shape
        return [head_colour(head) for head in range(n_heads) for _ in range(d_k)]

    def heading(self, words, x, y):
        number, words = words[0], words[2:]
        title, colon, rest = words.partition(":")
        self.front.append(
            f'<text x="{x:.1f}" y="{y:.1f}">{number}  <tspan font-weight="bold">{escape(title)}'
            f"</tspan>{colon}{escape(rest)}</text>"
        )

    def write(self, words, x, y, more=""):
        place = "" if more.startswith("transform") else f'x="{x:.1f}" y="{y:.1f}" '
        self.front.append(f"<text {place}{more}>{escape(words)}</text>")

    def row_words(self, right, top):
        for i, word in enumerate(self.words):
            self.write(word, right, top + (i + 0.5) * self.cell + 4, 'text-anchor="end"')

    def arrow(self, x, y, across, down):
        wings = "l-5 -4m5 4l-5 4" if across else "l-4 -5m4 5l4 -5"
        self.front.append(
            f'<path d="M{x:.1f} {y:.1f}l{across:.1f} {down:.1f}{wings}" fill="none" '
            'stroke="currentColor" stroke-width="1.5"/>'
        )

    def ribbon(self, start, end, head):
        """Let a head's columns flow from one place to another: left, width and height of each."""
        (x1, width1, y1), (x2, width2, y2) = start, end
        middle = (y1 + y2) / 2
        self.behind.append(
            f'<path d="M{x1:.1f} {y1:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} '
            f"{y2:.1f}h{width2:.1f}C{x2 + width2:.1f} {middle:.1f} {x1 + width1:.1f} {middle:.1f} "
            f'{x1 + width1:.1f} {y1:.1f}z" fill="{head_colour(head)}" fill-opacity="0.22"/>'
        )

    def key(self, x, y):
        self.write("weight 0", x, y)
        for i, colour in enumerate(WEIGHT_COLOURS):
            path = f"M{x + 62 + 4.5 * i:.1f} {y - 9:.1f}h4.7v10h-4.7z"
            self.front.append(f'<path d="{path}" fill="{colour}"/>')
        self.write("1", x + 143, y)

    def matrix(self, matrix, column_colours, left, top, largest=None):
        """Draw numbers in the colours of their columns; return the bottom."""
        return self.squares([column_colours] * len(matrix), left, top, matrix, largest)

    def squares(self, colours, left, top, matrix=None, largest=None):
        """Draw one square per colour, the stronger the larger the number; return the bottom."""
        if matrix is not None:
            strength = 0.12 + 0.88 * np.abs(matrix) / (largest or np.abs(matrix).max() or 1.0)
        size = f"{self.cell - 1:.1f}"
        for i, row in enumerate(colours):
            for j, colour in enumerate(row):
                opacity = "" if matrix is None else f' fill-opacity="{strength[i, j]:.2f}"'
                self.front.append(
                    f'<rect x="{left + j * self.cell:.1f}" y="{top + i * self.cell:.1f}" '
                    f'width="{size}" height="{size}" fill="{colour}"{opacity}/>'
                )
        return top + len(colours) * self.cell


def _weight_colour(weight):
    return WEIGHT_COLOURS[round(weight * (len(WEIGHT_COLOURS) - 1))]
