"""What a check found: as text, as HTML, and for programs."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from mha_lib import _check
from mha_lib._types import Integer
from mha_lib.teaching.diagnosis import Hint
from mha_lib.teaching.pages import linked

N_STEPS = 3  # of a hint


def lines_of(told: Iterable[str | Hint], n_steps: int) -> list[str]:
    """Return as lines of text what there is to say.

    Parameters
    ----------
    told : iterable of str or Hint
        As ``told`` of `CheckResult`.
    n_steps : int
        How many steps of each hint.

    Returns
    -------
    lines : list of str
        What is no hint is one line.

    Examples
    --------
    >>> lines_of(["Right in every case."], n_steps=1)
    ['Right in every case.']
    """
    return [
        text
        for line in told
        for text in (line.steps[:n_steps] if isinstance(line, Hint) else [line])
    ]


@dataclass(frozen=True)
class CaseResult:
    """How one case of a check went.

    Attributes
    ----------
    name : str
        What is special about the input.
    passed : bool
        Whether the answer was right.
    message : str
        What was wrong, or a remark on a right answer; empty if there is nothing to say.

    Examples
    --------
    >>> from mha_lib.teaching import check_split_heads
    >>> check_split_heads(lambda x, n_heads: None).cases[0].message
    'returned None: the function has no return, or returns nothing'
    """

    name: str
    passed: bool
    message: str


@dataclass(frozen=True)
class CheckResult:
    """What a check found: a mark, and what to think about.

    Attributes
    ----------
    function : str
        Name of the function that was asked for.
    score : float
        Share of the cases that were right, from 0 to 1.
    verdict : str
        ``"right"``, ``"partly right"``, ``"wrong"``, ``"blank"`` (there is nothing yet) or
        ``"not your own"`` (the library's function was called, which scores 0).
    diagnosis : str
        What the code does instead and where to read on, or what went wrong first.
    misconceptions : tuple of str
        Names of the entries of ``mha_lib.teaching.CATALOGUE`` that answer like this code: one for
        each mistake that was recognised, in each function that was checked.  A mistake for which
        several entries answer alike has no name here; the diagnosis gives them all.
    cases : tuple of CaseResult
        One for each input.
    unnamed : tuple of str
        Those of the functions in which something is wrong that has no name in ``misconceptions``.
    told : tuple of str or Hint
        The diagnosis line by line; what is said of a mistake is a hint of three steps.

    Notes
    -----
    A result shows of each mistake a question first.  What the code does, and where to read on, is
    folded up beneath; ``hint()`` tells it where nothing can be folded.  The diagnosis holds it all.

    ``IPython.display.display`` also stores function, score, verdict, diagnosis, misconception,
    misconceptions, unnamed and hints as ``application/vnd.mha-lib.check+json``, for programs that
    read an executed notebook.

    Examples
    --------
    >>> from mha_lib.teaching import check_split_heads
    >>> result = check_split_heads(lambda x, n_heads: x.reshape(n_heads, x.shape[0], -1))
    >>> result.verdict, result.misconception
    ('wrong', 'split by a bare reshape')
    """

    function: str
    score: float
    verdict: str
    diagnosis: str
    misconceptions: tuple[str, ...]
    cases: tuple[CaseResult, ...]
    unnamed: tuple[str, ...] = ()
    told: tuple[str | Hint, ...] = ()

    def hint(self, step: Integer = 1) -> str:
        """Return what there is to say of the mistakes, up to a step.

        Parameters
        ----------
        step : int, default 1
            1 asks a question about each mistake, 2 also says what the code does, and 3 also where
            to read on.

        Returns
        -------
        hint : str
            One or more lines.

        Examples
        --------
        >>> from mha_lib.teaching import check_merge_heads
        >>> result = check_merge_heads(lambda x: x.mean(axis=-3))
        >>> print(result.hint(2))
        How wide is your result, and can anybody still tell from it what head 2 found?
        Your code takes the mean of the heads, which throws away what makes them different; they \
are laid side by side, and W_O learns how to mix them.
        """
        step = _check.integer("step", step, minimum=1)
        if step > N_STEPS:
            raise ValueError(f"step={step}, but a hint has {N_STEPS} steps: use 1, 2 or 3")
        return "\n".join(lines_of(self.told or self.diagnosis.splitlines(), step))

    @property
    def misconception(self) -> str | None:
        """The first of the misconceptions, or None."""
        return self.misconceptions[0] if self.misconceptions else None

    def __repr__(self) -> str:
        lines = [self._headline(), *(f"  {line}" for line in self.hint(1).splitlines())]
        if self._hints():
            lines.append("  To hear more: print(result.hint(2)), then print(result.hint(3)).")
        for mark, names, message in self._rows():
            lines.append(f"  {mark}  {names}{': ' if message else ''}{message}")
        return "\n".join(lines)

    def _repr_html_(self):
        rows = "".join(
            f"<tr><td>{mark}</td><td>{escape(names)}</td><td>{escape(message)}</td></tr>"
            for mark, names, message in self._rows()
        )
        told = "".join(map(_as_html, self.told or self.diagnosis.splitlines()))
        return (
            f"<div><p><strong>{escape(self._headline())}</strong></p>{told}"
            f"<table><thead><tr><th>result</th><th>case</th><th>what happened</th></tr></thead>"
            f"<tbody>{rows}</tbody></table></div>"
        )

    def _repr_mimebundle_(self, include=None, exclude=None):
        names = ("function", "score", "verdict", "diagnosis", "misconception")
        hints = [
            dict(zip(("question", "idea", "place"), hint.steps, strict=True))
            | {"chapter": hint.entry.chapter, "section": hint.entry.section}
            for hint in self._hints()
        ]
        return {
            "text/plain": repr(self),
            "text/html": self._repr_html_(),
            "application/vnd.mha-lib.check+json": {name: getattr(self, name) for name in names}
            | {
                "misconceptions": list(self.misconceptions),
                "unnamed": list(self.unnamed),
                "hints": hints,
            },
        }

    def _hints(self):
        return [line for line in self.told if isinstance(line, Hint)]

    def _rows(self):
        """Return mark, cases and message of each row; cases with the same message share one."""
        shared = {}
        for case in self.cases:
            # The diagnosis may hold a remark on a right answer already.
            told = case.passed and case.message in self.diagnosis.splitlines()
            message = "" if told else case.message
            alone = None if message else case.name
            shared.setdefault((case.passed, message, alone), []).append(case.name)
        rows = []
        for (passed, message, _), names in shared.items():
            everywhere = len(names) == len(self.cases) > 1
            where = f"in all {len(names)} cases" if everywhere else "; ".join(names)
            rows.append(("right" if passed else "wrong", where, message))
        return rows

    def _headline(self):
        n_right = sum(case.passed for case in self.cases)
        return (
            f"{self.function}: {self.verdict}, {n_right} of {len(self.cases)} cases right, "
            f"score {self.score:.2f}"
        )


def _as_html(line):
    """Return a line, or a hint whose later steps are folded up."""
    if not isinstance(line, Hint):
        return f"<p>{escape(line)}</p>"
    return (
        f"<p>{escape(line.question)}</p>"
        f"<details><summary>What the code does</summary><p>{escape(line.idea)}</p>"
        f"<details><summary>Where to read on</summary><p>{linked(line.place, line.entry)}</p>"
        f"</details></details>"
    )
