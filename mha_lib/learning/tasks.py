"""Data for three small tasks, each with the score that needs no attention.

Every batch is drawn from the generator that is passed in, so that a seed fixes it.
"""

from dataclasses import dataclass

import numpy as np

from mha_lib import _check
from mha_lib._types import BoolArray, FloatArray, IntArray, Integer


@dataclass(frozen=True, eq=False)
class VectorBatch:
    """Sequences of vectors, and the vectors that are asked for.

    Attributes
    ----------
    x : float64 array, (B, n, d)
        One token per row.
    targets : float64 array, (B, n, 2 * width)
        What every token is to output.
    marked : int array, (B,)
        Index of each sequence's marked token.

    Examples
    --------
    >>> MarkedAndMean().batch(np.random.default_rng(0), 3).targets.shape
    (3, 16, 12)
    """

    x: FloatArray
    targets: FloatArray
    marked: IntArray


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """Sequences of symbols, and the symbols that are asked for.

    Attributes
    ----------
    tokens : int array, (B, n)
        Symbols, counted from 0.
    targets : int array, (B, n, J)
        The right answer at each place, for each of J jobs.
    counted : bool array, (B, n, J)
        Where there is a right answer.  Other places count neither in a loss nor in an accuracy.
    marked : int array, (B,), or None
        Index of each sequence's marked token, if the task marks one.
    period : int array, (B,), or None
        Length of each sequence's block, if the task repeats one.

    Examples
    --------
    >>> ThreeJobs().batch(np.random.default_rng(0), 3).targets.shape
    (3, 16, 3)
    """

    tokens: IntArray
    targets: IntArray
    counted: BoolArray
    marked: IntArray | None = None
    period: IntArray | None = None


@dataclass(frozen=True)
class MarkedAndMean:
    """Every token must output the marked token's vector, and a scaled mean of all, or of a few.

    Each token is a standard normal vector of ``width`` numbers, a column that is 1 at the marked
    token, a column that is 1 everywhere, and a column that is 1 at the ``n_near`` last tokens;
    the columns after that are 0.

    Attributes
    ----------
    n : int, default 16
        Tokens in a sequence, at least 2.
    width : int, default 6
        Numbers in a token's vector.
    d : int, default 16
        Columns of ``x``: those above, and at least 2 * ``width`` (the output).
    n_near : int, default 0
        The mean is of the last ``n_near`` tokens, and the marked token stands before them;
        0 = the mean is of all tokens, and any may be marked.

    Notes
    -----
    A mean of r tokens is multiplied by sqrt(r).  Chance: an answer of 0 then has an expected
    squared error of 1 per number in each job.

    Examples
    --------
    >>> batch = MarkedAndMean().batch(np.random.default_rng(0), 1)
    >>> bool((batch.targets[0, 0, :6] == batch.x[0, batch.marked[0], :6]).all())
    True
    """

    n: int = 16
    width: int = 6
    d: int = 16
    n_near: int = 0
    jobs = ("fetch", "average")

    def __post_init__(self) -> None:
        _check.integer_fields(self, ["n"], minimum=2)
        _check.integer_fields(self, ["width"], minimum=1)
        _check.integer_fields(self, ["n_near"], minimum=0)
        _check.integer_fields(self, ["d"], minimum=-np.inf)  # refused below, with what is enough
        if self.n_near >= self.n:
            raise ValueError(
                f"n_near={self.n_near} leaves none of n={self.n} tokens to mark: "
                f"use n_near <= {self.n - 1}"
            )
        least = max(self.width + 2 + len(self.near_columns), 2 * self.width)
        if self.d < least:
            raise ValueError(
                f"d={self.d} is too small for width={self.width} and n_near={self.n_near}: "
                f"use d >= {least}"
            )

    @property
    def near_columns(self) -> list[int]:
        """Columns of ``x`` that say which tokens are near: one, or none if all are averaged."""
        return [self.width + 2] if self.n_near else []

    def batch(self, rng: np.random.Generator, n_sequences: Integer) -> VectorBatch:
        """Return a `VectorBatch` of ``n_sequences`` sequences, drawn from ``rng``."""
        rng = _check.generator("rng", rng)
        n_sequences = _check.integer("n_sequences", n_sequences, minimum=1)
        _check.room("n_sequences", n_sequences, n_sequences * self.n * self.d)
        x = np.zeros((n_sequences, self.n, self.d))  # (B, n, d)
        vectors = rng.normal(size=(n_sequences, self.n, self.width))  # (B, n, width)
        marked = rng.integers(self.n - self.n_near, size=n_sequences)  # (B,)
        sequence, n_averaged = np.arange(n_sequences), self.n_near or self.n
        x[..., : self.width] = vectors
        x[sequence, marked, self.width] = 1.0
        x[..., self.width + 1] = 1.0
        x[:, -n_averaged:, self.near_columns] = 1.0
        fetch = vectors[sequence, marked]  # (B, width)
        average = np.sqrt(n_averaged) * vectors[:, -n_averaged:].mean(axis=1)  # (B, width)
        target = np.concatenate([fetch, average], axis=-1)[:, None]  # (B, 1, 2 * width)
        return VectorBatch(x, np.repeat(target, self.n, axis=1), marked)


@dataclass(frozen=True)
class ThreeJobs:
    """Every token must name the previous, the marked and the most common symbol.

    Each sequence draws its symbols with probabilities of its own, so some are common in it.

    Attributes
    ----------
    n : int, default 16
        Tokens in a sequence, at least 2.
    n_symbols : int, default 8
        Different symbols, at least 2.
    jobs : tuple of str
        The jobs that are asked for, and their order: "previous", "marked", "most common".

    Notes
    -----
    Chance: no symbol is preferred, so any constant answer is right with probability
    1 / ``n_symbols`` in each job.  The first token has no previous one, and a sequence with two
    most common symbols has no right answer for the third job: these are not counted.

    Examples
    --------
    >>> batch = ThreeJobs(n=5).batch(np.random.default_rng(0), 1)
    >>> batch.tokens[0]
    array([6, 5, 3, 5, 0])
    >>> batch.targets[0, :, 0]  # the previous symbol
    array([0, 6, 5, 3, 5])
    """

    n: int = 16
    n_symbols: int = 8
    jobs: tuple[str, ...] = ("previous", "marked", "most common")

    def __post_init__(self) -> None:
        _check.integer_fields(self, ["n", "n_symbols"], minimum=2)
        every = ThreeJobs.jobs
        if not isinstance(self.jobs, tuple):
            raise TypeError(
                f"jobs must be a tuple, not {type(self.jobs).__name__}: use some of {every}"
            )
        if not self.jobs or len(set(self.jobs)) < len(self.jobs) or set(self.jobs) - set(every):
            raise ValueError(f"jobs={self.jobs!r}: use some of {every}, each once")

    @property
    def chance(self) -> float:
        """Accuracy of a constant answer, in every job."""
        return 1 / self.n_symbols

    def batch(self, rng: np.random.Generator, n_sequences: Integer) -> TokenBatch:
        """Return a `TokenBatch` of ``n_sequences`` sequences, drawn from ``rng``."""
        rng = _check.generator("rng", rng)
        n_sequences = _check.integer("n_sequences", n_sequences, minimum=1)
        _check.room("n_sequences", n_sequences, n_sequences * self.n * self.n_symbols)
        # A small shape makes some probabilities much larger than others; none is exactly 0.
        likely = rng.gamma(0.5, size=(n_sequences, self.n_symbols)) + 1e-6
        ends = np.cumsum(likely, axis=1) / likely.sum(axis=1, keepdims=True)  # (B, V)
        draws = rng.random((n_sequences, self.n, 1))
        # The last end is 1 but for rounding, so it is left out: no draw may lie above all ends.
        tokens = (draws > ends[:, None, :-1]).sum(axis=-1)  # (B, n)
        marked = rng.integers(self.n, size=n_sequences)  # (B,)

        counts = (tokens[..., None] == np.arange(self.n_symbols)).sum(axis=1)  # (B, V)
        first, second = np.sort(counts, axis=1)[:, [-1, -2]].T  # (B,) each
        targets = np.zeros((n_sequences, self.n, 3), int)  # (B, n, J)
        targets[:, 1:, 0] = tokens[:, :-1]
        targets[:, :, 1] = tokens[np.arange(n_sequences), marked, None]
        targets[:, :, 2] = counts.argmax(axis=1)[:, None]
        counted = np.ones(targets.shape, bool)
        counted[:, 0, 0] = False
        counted[:, :, 2] = (first > second)[:, None]
        asked = [ThreeJobs.jobs.index(job) for job in self.jobs]
        return TokenBatch(tokens, targets[..., asked], counted[..., asked], marked=marked)


@dataclass(frozen=True)
class RepeatedSequence:
    """A random block of symbols is repeated; every token must name the next one.

    Attributes
    ----------
    n : int, default 24
        Tokens in a sequence.
    n_symbols : int, default 16
        Different symbols; a block holds each at most once.
    shortest : int, default 6
        Least length of a block; it is drawn for each sequence.
    longest : int, default 12
        Greatest length of a block.

    Notes
    -----
    Chance: any constant answer is right with probability 1 / ``n_symbols``.  Inside the first
    block the next symbol cannot be known, so only the places after it are counted.

    Examples
    --------
    >>> task = RepeatedSequence(n=6, n_symbols=4, shortest=3, longest=3)
    >>> batch = task.batch(np.random.default_rng(0), 1)
    >>> batch.tokens[0]
    array([3, 2, 1, 3, 2, 1])
    >>> batch.counted[0, :, 0].astype(int)
    array([0, 0, 0, 1, 1, 1])
    """

    n: int = 24
    n_symbols: int = 16
    shortest: int = 6
    longest: int = 12
    jobs = ("next",)

    def __post_init__(self) -> None:
        _check.integer_fields(self, ["n", "n_symbols", "shortest", "longest"], minimum=2)
        if self.n < 3:
            raise ValueError("n=2 has no room for a block of 2 and its repetition: use n >= 3")
        if not self.shortest <= self.longest <= min(self.n_symbols, self.n - 1):
            raise ValueError(
                f"shortest={self.shortest} and longest={self.longest} do not fit "
                f"n_symbols={self.n_symbols} and n={self.n}: use "
                f"shortest <= longest <= {min(self.n_symbols, self.n - 1)}"
            )

    @property
    def chance(self) -> float:
        """Accuracy of a constant answer."""
        return 1 / self.n_symbols

    def batch(self, rng: np.random.Generator, n_sequences: Integer) -> TokenBatch:
        """Return a `TokenBatch` of ``n_sequences`` sequences, drawn from ``rng``."""
        rng = _check.generator("rng", rng)
        n_sequences = _check.integer("n_sequences", n_sequences, minimum=1)
        _check.room("n_sequences", n_sequences, n_sequences * self.n * self.n_symbols)
        period = rng.integers(self.shortest, self.longest + 1, size=n_sequences)  # (B,)
        order = rng.random((n_sequences, self.n_symbols)).argsort(axis=1)  # (B, V): a shuffle each
        place = np.arange(self.n + 1) % period[:, None]  # (B, n + 1): place in the block
        sequence = np.take_along_axis(order, place, axis=1)  # (B, n + 1)
        counted = np.arange(self.n) >= period[:, None]  # (B, n)
        return TokenBatch(
            sequence[:, :-1], sequence[:, 1:, None], counted[..., None], period=period
        )
