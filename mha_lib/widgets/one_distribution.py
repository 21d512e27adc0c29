"""Let one row of weights try two jobs, then give it company."""

import numpy as np
import traitlets

from mha_lib._types import FloatArray, Integer
from mha_lib.activations import softmax
from mha_lib.learning.frontier import best_row, job_errors
from mha_lib.widgets import _picture
from mha_lib.widgets._base import FrameWidget, Number, Whole, front_end, style

# Scores of the marked token in the rows after the first; the other tokens always have score 0.
MORE_SCORES = (0.0, 1.0, 2.0)


class OneDistribution(FrameWidget):
    """Vary one softmax row, and see what it costs to fetch one token and average all at once.

    Parameters
    ----------
    score : float, default 1.5
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
    score = Number(1.5)
    n = Whole(16, minimum=2)
    n_heads = Whole(1)
    _curves = traitlets.Dict().tag(sync=True)  # n -> the best errors that one row can have

    def __init__(self, score: float = 1.5, n: Integer = 16, n_heads: Integer = 1) -> None:
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
            "n_heads": [1, 2, 4],
        }

    def frame(self, score, n, n_heads):
        rows = _rows(score, n, n_heads)
        fetch_error, mean_error = combined_errors(rows)
        bound = 1 - 1 / np.sqrt(n)
        numbers = {
            "fetch_error": fetch_error, "mean_error": mean_error,
            "sum": fetch_error + mean_error, "bound": bound,
            # Each row has two different weights: that of the marked token, and that of any other.
            "on_marked": rows[:, 0], "on_others": rows[:, 1],
        }  # fmt: skip
        return {name: np.asarray(number, "<f4") for name, number in numbers.items()}

    def problem(self):
        return ""  # every setting is possible

    def picture(self):
        fetch_error, mean_error = self.errors()
        on_marked = " and ".join(f"{weight:.2f}" for weight in self.rows()[:, 0])
        rows = f"{self.n_heads} row{'s' * (self.n_heads > 1)}"
        text = (
            f"{rows} of weights over {self.n} tokens, {on_marked} on the marked one. "
            f"Error of fetching it: {fetch_error:.2f}; error of averaging all: {mean_error:.2f}. "
            f"One row's errors cannot sum to less than {1 - 1 / np.sqrt(self.n):.2f}."
        )
        jobs = [("fetch one", fetch_error), ("average all", mean_error)]
        drawn = [(name, float(error), f"error {error:.2f}") for name, error in jobs]
        return _picture.figure(_picture.bars(drawn, f"Two errors of {rows}", text), text)


def _rows(score, n, n_heads):
    scores = np.zeros((n_heads, n))
    scores[:, 0] = [score, *MORE_SCORES][:n_heads]
    return softmax(scores)


def combined_errors(rows, marked=0):
    """Return the two errors of ``mha_lib.learning.frontier`` when several rows work together.

    Each job may use its own combination of the rows, found by least squares.

    Parameters
    ----------
    rows : float array, (h, n)
        Rows of weights.
    marked : int, default 0
        Index of the marked token.

    Returns
    -------
    fetch_error, mean_error : float
        For one row the same as `job_errors`.
    """
    n = rows.shape[1]
    jobs = np.zeros((n, 2))
    jobs[marked, 0] = 1.0  # fetch
    jobs[:, 1] = 1 / np.sqrt(n)  # average, times sqrt(n)
    coefficients = np.linalg.lstsq(rows.T, jobs, rcond=None)[0]
    fetch_error, mean_error = ((rows.T @ coefficients - jobs) ** 2).sum(axis=0)
    return fetch_error, mean_error


def _curve(n):
    """Return the least errors that one row can have, from only averaging to only fetching."""
    best = np.array([best_row(n, importance) for importance in np.linspace(0, 1, 41)])
    return np.stack(job_errors(best), axis=-1).round(4).tolist()
