"""Which misconceptions explain the wrong cases, and what to say of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dis import get_instructions

from mha_lib.teaching.answers import Answer
from mha_lib.teaching.misconceptions import Misconception
from mha_lib.teaching.steps import CANDIDATES, STEPS, Case

_NUMBER_WORDS = {2: "Two", 3: "Three"}


def diagnose(
    step: str, cases: Sequence[Case], answers: Sequence[Answer], complaints: Sequence[str]
) -> tuple[tuple[str, ...], str]:
    """Find the misconceptions behind wrong answers.

    Parameters
    ----------
    step : str
        What the function is meant to do, one of ``mha_lib.teaching.steps.STEPS``.
    cases : sequence of Case
        All cases of the step.
    answers : sequence of Answer
        The student's, for each case.
    complaints : sequence of str
        What is wrong in each case, at least in one; empty where nothing is.

    Returns
    -------
    names : tuple of str
        Of the misconceptions that were recognised, without those that cannot be told apart.
    text : str
        What to say to the student.

    Examples
    --------
    >>> from mha_lib.teaching.answers import ask
    >>> from mha_lib.teaching.steps import cases
    >>> asked = cases("merge_heads", seed=7)
    >>> given = [ask(lambda x: x.mean(axis=-3), c.args, c.kwargs, c.parts) for c in asked]
    >>> diagnose("merge_heads", asked, given, ["wrong"] * 4)[0]
    ('heads averaged',)
    """
    failed = [i for i, message in enumerate(complaints) if message]
    mistakes = _mistakes(step, cases, answers, failed)
    if not mistakes:
        return (), f"In the case '{cases[failed[0]].name}': {complaints[failed[0]]}."
    lines = []
    if len(mistakes) > 1:
        count = _NUMBER_WORDS.get(len(mistakes), str(len(mistakes)))
        lines.append(f"{count} things are wrong or missing, each in cases of its own:")
    for alike in mistakes:
        if len(alike) > 1:
            lines.append(f"It is one of these {len(alike)}; from outside they look the same.")
        for entry in (likeness.entry for likeness in alike):
            where = "" if entry.step == step else f"In the step {entry.step}: "
            hides = "" if entry.formal else f" The mistake is invisible {entry.hides}."
            lines += [f"{where}{entry.sentence}", f"Read on in {entry.where}.{hides}"]
    explained = frozenset().union(*(alike[0].explained for alike in mistakes))
    unlike = [i for i in failed if i not in explained]
    if unlike:
        lines += [
            f"This explains {len(explained)} of {len(failed)} wrong cases.",
            f"Besides, in the case '{cases[unlike[0]].name}': {complaints[unlike[0]]}.",
        ]
    return tuple(alike[0].entry.name for alike in mistakes if len(alike) == 1), "\n".join(lines)


def why_nothing(step: str, function: Callable, answers: Sequence[Answer]) -> tuple[str, str] | None:
    """Say why a function returns nothing in any case, if it does not.

    Parameters
    ----------
    step : str
        What the function is meant to do.
    function : callable
        The student's function.
    answers : sequence of Answer
        What it gave, for each case.

    Returns
    -------
    why : tuple of str or None
        Verdict and text, or None where something came back.

    Examples
    --------
    >>> why_nothing("softmax", lambda z: None, [Answer(problem="returned None")])[0]
    'blank'
    """
    if not all(map(_is_nothing, answers)):
        return None
    called = next((answer for answer in answers if answer.callees), None)
    if called:
        name = called.callees[0]
        instead = f"; use `mha_lib.{name}` here" if name in STEPS[step].allowed else ""
        return "wrong", f"Your function calls {called.chain}, which is not written yet{instead}."
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    if code is not None and _instructions(code) not in _STUBS:
        if any(answer.error for answer in answers):
            return "wrong", (
                "Your function does something and then raises NotImplementedError all the same: "
                "delete that line."
            )
        if any(answer.problem.startswith("returned None") for answer in answers):
            return "wrong", (
                "Your function computes something but returns nothing: is `return` missing?"
            )
    return "blank", "There is nothing here yet: the function returns nothing, or says so itself."


# --- nothing came back ------------------------------------------------------------------------


def _is_nothing(answer):
    return answer.error_type == "NotImplementedError" or answer.problem.startswith(
        ("returned None", "returned NotImplemented", "returned Ellipsis")
    )  # fmt: skip


def _returns_nothing():
    pass


def _raises_a_type():
    raise NotImplementedError


def _raises_an_error():
    raise NotImplementedError()


def _raises_with_a_text():
    raise NotImplementedError("")


def _instructions(code):
    """Return what a function does, whatever its constants and its version of Python."""
    return tuple(one.opname for one in get_instructions(code)), code.co_names


_STUBS = frozenset(
    _instructions(stub.__code__)
    for stub in (_returns_nothing, _raises_a_type, _raises_an_error, _raises_with_a_text)
)


# --- which misconceptions ---------------------------------------------------------------------


@dataclass(frozen=True)
class _Likeness:
    """How an entry of the catalogue compares with a student's answers.

    ``match`` has the result of `Answer.likeness` for each case, and ``explained`` holds the wrong
    cases in which entry and student are wrong alike.
    """

    entry: Misconception
    match: tuple
    explained: frozenset
    contradicted: bool  # by a right answer where the entry is wrong


def _likenesses(step, cases, answers, failed):
    """Compare a student's answers with those of all candidates."""
    found = []
    for j, (entry, _) in enumerate(CANDIDATES[step]):
        match = tuple(
            answer.likeness(case.wrong[j], case.tolerance)
            for answer, case in zip(answers, cases, strict=True)
        )
        mistaken = [i for i, case in enumerate(cases) if j in case.mistaken]
        explained = frozenset(i for i in mistaken if i in failed and match[i])
        contradicted = any(i not in failed for i in mistaken)
        found.append(_Likeness(entry, match, explained, contradicted))
    return found


def _most_alike(likenesses, left, open_cases, wrong_numbers):
    """Return the candidates that explain the same of the wrong cases that are left, and best.

    What is not open is explained already.  Equal wrong numbers are no accident.  What failed in
    its own way, as where an argument is not there yet or the dtype is wrong, says nothing for or
    against an idea.
    """
    best, best_rank = [], 0
    for likeness in likenesses:
        explained = likeness.explained & left
        telling = explained | (wrong_numbers & left)
        if 3 * len(explained) < len(telling) or all(likeness.match[i] < 2 for i in explained):
            continue
        rank = sum(likeness.match[i] for i in open_cases)
        if rank > best_rank:
            best, best_rank = [likeness], rank
        elif rank == best_rank:
            best.append(likeness)
    # One that is as good, but for other cases, is another mistake: it is considered in the next
    # round.
    return [one for one in best if one.explained & left == best[0].explained & left]


def _mistakes(step, cases, answers, failed):
    """Return one list of candidates for each mistake: those that explain the same cases alike."""
    likenesses = _likenesses(step, cases, answers, failed)
    wrong_numbers = frozenset(
        i
        for i in failed
        if answers[i].arrays and not answers[i].equals(cases[i].right, cases[i].tolerance)
    )
    left, found = frozenset(failed), []
    while left:
        open_cases = [i for i in range(len(cases)) if i in left or i not in failed]
        best = _most_alike(likenesses, left, open_cases, wrong_numbers)
        if not best:
            break
        found.append(best)
        left -= best[0].explained
        # Besides another mistake, only one that fits all that is right is believed.
        likenesses = [one for one in likenesses if not one.contradicted]
    return found
