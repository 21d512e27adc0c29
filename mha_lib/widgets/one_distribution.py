"""Let one row of weights try two jobs, then give it company."""

from html import escape

import numpy as np
import traitlets

from mha_lib._types import FloatArray, Integer
from mha_lib.activations import softmax
from mha_lib.figures.palette import HEAD_COLOURS, head_colour
from mha_lib.learning.frontier import best_row, job_errors
from mha_lib.widgets import _picture
from mha_lib.widgets._base import FrameWidget, Number, Whole, front_end, style

# Scores of the marked token in the rows after the first; the other tokens always have score 0.
MORE_SCORES = (0.0, 1.0, 2.0)
TIMES, MINUS = "\N{MULTIPLICATION SIGN}", "\N{MINUS SIGN}"


class OneDistribution(FrameWidget):
    """Vary one softmax row, and see what it costs to fetch one token and average all at once.

    Parameters
    ----------
    score : float, default 0
        Score of the marked token in the first row; all other tokens have score 0.
    n : int, default 16
        Number of tokens, at least 2.
    n_heads : int, default 1
        Number of heads, each with one row of weights over the same values.  At most 4.

    Notes
    -----
    The traits ``score``, ``n`` and ``n_heads`` can be read, set, observed and linked.
    ``mha_lib.learning.frontier`` says what the two jobs are, and what an error of 1 means.

    Examples
    --------
    >>> one = OneDistribution(score=0.0, n=4)
    >>> [round(float(error), 3) for error in one.errors()]  # of fetching, of averaging
    [0.75, 0.0]
    >>> one.n_heads, one.score = 2, 3.0
    >>> [round(float(error), 3) for error in one.errors()]
    [0.0, 0.0]
    """

    _esm = front_end("one_distribution")
    _css = style("one_distribution")

    settings = frame_settings = ("score", "n", "n_heads")
    score = Number(0.0)
    n = Whole(16, minimum=2)
    n_heads = Whole(1)
    _curves = traitlets.Dict().tag(sync=True)  # n -> the best errors that one row can have

    def __init__(self, score: float = 0.0, n: Integer = 16, n_heads: Integer = 1) -> None:
        super().__init__(score=score, n=n, n_heads=n_heads)
        self.recompute()
        self._curves = {str(n): _curve(n) for n in {*self.choices()["n"], self.n}}
        self.observe(self._add_curve, "n")
        self.follow_settings()

    @traitlets.validate("n_heads")
    def _check_n_heads(self, proposal):
        most = 1 + len(MORE_SCORES)
        if proposal["value"] > most:
            raise ValueError(f"n_heads={proposal['value']} is too large: use n_heads <= {most}")
        return proposal["value"]

    def _add_curve(self, change):
        if str(self.n) not in self._curves:
            self._curves = {**self._curves, str(self.n): _curve(self.n)}

    def rows(self) -> FloatArray:
        """Return the rows of weights of the present setting, (h, n)."""
        return _rows(self.score, self.n, self.n_heads)

    def errors(self) -> tuple[float, float]:
        """Return the errors of fetching and of averaging, as the rows together can do it."""
        return combined_errors(self.rows())

    def choices(self):
        return {
            "score": [i / 4 for i in range(25)],
            "n": [4, 9, 16, 25, 36],
            # Two rows do all that more could do; who asks for more in Python gets more.
            "n_heads": sorted({1, 2, self.n_heads}),
        }

    def frame(self, score, n, n_heads):
        rows = _rows(score, n, n_heads)
        factors, made, errors = combined(rows)
        bound = 1 - 1 / np.sqrt(n)
        numbers = {
            "errors": errors, "sum": sum(errors), "bound": bound,
            # Each row has two different weights: that of the marked token, and that of any other.
            "on_marked": rows[:, 0], "on_others": rows[:, 1],
            "factors": factors, "made": made[:, :2],
        }  # fmt: skip
        return {name: np.asarray(number, "<f4") for name, number in numbers.items()}

    def problem(self):
        return ""  # every setting is possible

    def picture(self):
        rows = self.rows()
        factors, _, (fetch_error, mean_error) = combined(rows)
        on_marked = " and ".join(f"{weight:.2f}" for weight in rows[:, 0])
        count = f"{self.n_heads} row{'s' * (self.n_heads > 1)}"
        text = (
            f"{count} of weights over {self.n} tokens, {on_marked} on the marked one. "
            f"Error of fetching it: {fetch_error:.2f}; error of averaging all: {mean_error:.2f}. "
            f"One row's errors cannot sum to less than {1 - 1 / np.sqrt(self.n):.2f}."
        )
        jobs = [
            f"{job} = {combination(row)}"
            for job, row in zip(("fetch", "average"), factors, strict=True)
        ]
        drawing = _drawing(rows, (fetch_error, mean_error), _curve(self.n), jobs, text)
        return _picture.figure(drawing, text)


def _rows(score, n, n_heads):
    scores = np.zeros((n_heads, n))
    scores[:, 0] = [score, *MORE_SCORES][:n_heads]
    return softmax(scores)


def combined(rows, marked=0):
    """Return how several rows do the two jobs of ``mha_lib.learning.frontier`` together.

    Each job may use its own combination of the rows, found by least squares.

    Parameters
    ----------
    rows : float array, (h, n)
        Rows of weights.
    marked : int, default 0
        Index of the marked token.

    Returns
    -------
    factors : float array, (2, h)
        What each row is multiplied by to fetch, and to average.
    made : float array, (2, n)
        The sums of the rows so multiplied.
    errors : float array, (2,)
        Of fetching and of averaging.  For one row the same as `job_errors`.
    """
    n = rows.shape[1]
    jobs = np.zeros((2, n))
    jobs[0, marked] = 1.0  # fetch
    jobs[1] = 1 / n  # average
    factors = np.linalg.lstsq(rows.T, jobs.T, rcond=None)[0].T
    factors[abs(factors) < 1e-9] = 0  # of rounding
    made = factors @ rows
    errors = ((made - jobs) ** 2).sum(axis=1) / (jobs**2).sum(axis=1)
    return factors, made, errors


def combined_errors(rows, marked=0):
    """Return the two errors of `combined`."""
    fetch_error, mean_error = combined(rows, marked)[2]
    return fetch_error, mean_error


def combination(factors):
    """Return in words what each row is multiplied by, and that the results are added."""
    text = ""
    for i, factor in enumerate(factors):
        sign = MINUS if factor < 0 else "+" if i else ""
        text += f" {sign} {abs(factor):.3g} {TIMES} row {i + 1}"
    return text.strip()


def _drawing(rows, errors, curve, jobs, text):
    """Return an SVG of the rows as bars, beside the place of their errors on the frontier."""
    n_rows, n = rows.shape
    step, top = 270 / n, rows.max()
    parts = []
    for i, row in enumerate(rows):
        width = 0.8 * step / n_rows
        for token, weight in enumerate(row):
            x, height = (token + 0.1) * step + i * width, 110 * weight / top
            parts.append(
                f'<rect x="{x:.1f}" y="{140 - height:.1f}" width="{width:.1f}" '
                f'height="{height:.1f}" fill="{head_colour(i)}"/>'
            )
    parts.append('<path d="M0 140H270M340 10V230H560" fill="none" stroke="currentColor"/>')
    parts.append(f'<text x="0" y="18">weights, the highest {top:.2f}</text>')
    parts.append('<text x="0" y="156">marked</text>')
    parts += [f'<text x="0" y="{190 + 22 * i}">{escape(job)}</text>' for i, job in enumerate(jobs)]

    def place(fetch_error, mean_error):
        return f"{340 + 220 * fetch_error:.1f},{230 - 220 * mean_error:.1f}"

    points = " ".join(place(*pair) for pair in curve)
    x, y = place(*errors).split(",")
    parts.append(
        f'<polyline points="{points}" fill="none" stroke="{HEAD_COLOURS[0]}" stroke-width="3"/>'
        f'<circle cx="{x}" cy="{y}" r="6" fill="{HEAD_COLOURS[5]}" stroke="currentColor"/>'
        '<text x="450" y="250" text-anchor="middle">error of fetching</text>'
        '<text transform="translate(328,120) rotate(-90)" text-anchor="middle">'
        "error of averaging</text>"
    )
    title = f"{n_rows} row{'s' * (n_rows > 1)} of weights and two errors"
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 570 258" role="img" '
        'style="width: 100%; max-width: 570px; height: auto">'
        f"<title>{title}</title><desc>{escape(text)}</desc>"
        f'<g font-size="13" fill="currentColor">{"".join(parts)}</g></svg>'
    )


def _curve(n):
    """Return the least errors that one row can have, from only averaging to only fetching."""
    best = np.array([best_row(n, importance) for importance in np.linspace(0, 1, 41)])
    return np.stack(job_errors(best), axis=-1).round(4).tolist()
