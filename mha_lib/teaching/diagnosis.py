"""Which misconceptions explain the wrong cases, and what to say of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dis import get_instructions

import numpy as np

from mha_lib.teaching.answers import Answer, compute
from mha_lib.teaching.misconceptions import Misconception
from mha_lib.teaching.steps import CANDIDATES, STEPS, Case, pairs

_NUMBER_WORDS = {2: "Two", 3: "Three"}
_FIRST = 3  # cases in which two mistakes at once must show, or they are not looked at any further


@dataclass(frozen=True)
class Hint:
    """What to say of one mistake, in three steps.

    Attributes
    ----------
    question : str
        To think about before anything is told.
    idea : str
        What the code does instead of what was meant; never how to write it.
    place : str
        Where to read on, and when the mistake is invisible.
    entry : Misconception
        The mistake.

    Examples
    --------
    >>> from mha_lib.teaching import check_merge_heads
    >>> check_merge_heads(lambda x: x.mean(axis=-3)).told[0].place
    "Read on in chapter 2, 'Step 4: concatenate'. The mistake is invisible with one head."
    """

    question: str
    idea: str
    place: str
    entry: Misconception

    @property
    def steps(self) -> tuple[str, str, str]:
        """All three, in the order in which they are told."""
        return self.question, self.idea, self.place


@dataclass(frozen=True)
class Diagnosis:
    """What was found behind wrong answers.

    Attributes
    ----------
    names : tuple of str
        Of the misconceptions that were recognised, without those that cannot be told apart.
    told : tuple of str or Hint
        What to say to the student, line by line.
    explains_all : bool
        Whether those that have a name explain all wrong cases.

    Examples
    --------
    >>> Diagnosis((), ("In the case 'three heads': raised ValueError.",), explains_all=False).names
    ()
    """

    names: tuple[str, ...]
    told: tuple[str | Hint, ...]
    explains_all: bool


def diagnose(
    step: str, cases: Sequence[Case], answers: Sequence[Answer], complaints: Sequence[str]
) -> Diagnosis:
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
    diagnosis : Diagnosis
        Names, what to say, and whether that is all.

    Examples
    --------
    >>> from mha_lib.teaching.answers import ask
    >>> from mha_lib.teaching.steps import cases
    >>> asked = cases("merge_heads", seed=7)
    >>> given = [ask(lambda x: x.mean(axis=-3), c.args, c.kwargs, c.parts) for c in asked]
    >>> diagnose("merge_heads", asked, given, ["wrong"] * 4).names
    ('heads averaged',)
    """
    failed = [i for i, message in enumerate(complaints) if message]
    mistakes = _mistakes(step, cases, answers, failed)
    if not mistakes:
        told = f"In the case '{cases[failed[0]].name}': {complaints[failed[0]]}."
        return Diagnosis((), (told,), explains_all=False)
    alone = [found.entries[0] for found in mistakes if len(found.entries) == 1]
    lines: list[str | Hint] = []
    if len(mistakes) > 1:
        lines.append(
            f"{_NUMBER_WORDS.get(len(mistakes), str(len(mistakes)))} things are wrong or missing:"
        )
    for found in mistakes:
        if len(found.entries) > 1:
            n_alike = len(found.entries)
            lines.append(f"It is one of these {n_alike}; from outside they look the same.")
        lines += [_hint(step, entry) for entry in found.entries]
    explained = frozenset().union(*(found.explained for found in mistakes))
    unlike = [i for i in failed if i not in explained]
    if unlike:
        lines += [
            f"This explains {len(explained)} of {len(failed)} wrong cases.",
            f"Besides, in the case '{cases[unlike[0]].name}': {complaints[unlike[0]]}.",
        ]
    return Diagnosis(
        tuple(entry.name for entry in alone),
        tuple(lines),
        explains_all=not unlike and len(alone) == len(mistakes),
    )


def _hint(step, entry):
    where = "" if entry.step == step else f"In the step {entry.step}: "
    hides = "" if entry.formal else f" The mistake is invisible {entry.hides}."
    return Hint(
        f"{where}{entry.question}", entry.sentence, f"Read on in {entry.where}.{hides}", entry
    )


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
    """How one mistake or two of the catalogue compare with a student's answers.

    ``match`` has the result of `Answer.likeness` for each case, and ``explained`` holds the wrong
    cases in which catalogue and student are wrong alike.
    """

    entries: tuple
    match: tuple
    explained: frozenset


@dataclass(frozen=True)
class _Mistake:
    """One mistake: an entry, or several that explain the same cases alike."""

    entries: tuple
    explained: frozenset


def _likeness(entries, wrong, cases, answers, failed):
    """Compare a student's answers with wrong ones; None if something contradicts them.

    A right answer contradicts whatever is wrong there.  Equal errors are weaker than equal numbers,
    since different mistakes fail with the same words: they count only where the catalogue and the
    student fail with the same words everywhere.
    """
    mistaken = [
        i
        for i, (other, case) in enumerate(zip(wrong, cases, strict=True))
        if not other.equals(case.right, case.tolerance)
    ]
    if any(i not in failed for i in mistaken):
        return None
    match = tuple(
        answer.likeness(other, case.tolerance) if i in failed else 0
        for i, (answer, other, case) in enumerate(zip(answers, wrong, cases, strict=True))
    )
    explained = frozenset(i for i in mistaken if i in failed and match[i])
    numbers = any(match[i] == 2 and answers[i].arrays for i in explained)
    if not (numbers or (mistaken and all(match[i] == 2 for i in mistaken))):
        return None
    return _Likeness(entries, match, explained)


def _singles(step, cases, answers, failed):
    """Return the likenesses of all entries."""
    found = (
        _likeness((entry,), [case.wrong[j] for case in cases], cases, answers, failed)
        for j, (entry, _) in enumerate(CANDIDATES[step])
        if not any(j in case.mistaken for i, case in enumerate(cases) if i not in failed)
    )
    return [likeness for likeness in found if likeness]


def _doubles(step, cases, answers, failed, likely):
    """Return the likenesses of two mistakes at once, at least one of which is likely."""
    numbers = [i for i in failed if answers[i].arrays]
    found = []
    for i, ((j, k), function) in enumerate(pairs(step)):
        entries = (CANDIDATES[step][j][0], CANDIDATES[step][k][0])
        if likely.isdisjoint(entry.name for entry in entries):
            continue
        both = [n for n in numbers if {j, k} <= cases[n].mistaken]
        either = [n for n in numbers if {j, k} & cases[n].mistaken]
        telling = (both or either)[:_FIRST]
        if any(_is_like(answers[n], i, function, cases[n]) for n in telling):
            wrong = [compute(function, case.args, case.kwargs, case.parts) for case in cases]
            found.append(_likeness(entries, wrong, cases, answers, failed))
    return [likeness for likeness in found if likeness]


def _is_like(answer, place, function, case):
    """Return whether a pair gives the same shape and the same first number, as fast as can be."""
    if place not in case.of_pairs:
        try:
            with np.errstate(all="ignore"):
                result = function(*case.args, **case.kwargs)
            result = result[0] if isinstance(result, tuple) else result
            case.of_pairs[place] = np.shape(result), float(np.ravel(result)[0])
        except Exception:  # sizes that do not fit
            case.of_pairs[place] = None
    shape, _, numbers = answer.arrays[0]
    if case.of_pairs[place] is None or case.of_pairs[place][0] != shape or not numbers:
        return False
    first = case.of_pairs[place][1]
    if first != first or numbers[0] != numbers[0]:  # NaN
        return first != first and numbers[0] != numbers[0]
    largest = max(abs(number) for number in numbers if number == number)
    return abs(numbers[0] - first) <= case.tolerance * max(1e-3, largest)


def _most_alike(likenesses, left, wrong_numbers, share):
    """Return the likenesses that explain the same of the wrong cases that are left, and best.

    They must explain a share of what has wrong numbers: at least one of so many.  What failed in
    its own way, as where an argument is not there yet or the dtype is wrong, says nothing for or
    against an idea.  One mistake is believed before two.
    """
    best, best_rank = [], (0, 0)
    for likeness in likenesses:
        explained = likeness.explained & left
        telling = explained | (wrong_numbers & left)
        if share * len(explained) < len(telling) or all(likeness.match[i] < 2 for i in explained):
            continue
        rank = (sum(likeness.match[i] for i in explained), -len(likeness.entries))
        if rank > best_rank:
            best, best_rank = [likeness], rank
        elif rank == best_rank:
            best.append(likeness)
    # One that is as good, but for other cases, is another mistake: it is considered in the next
    # round.
    return [one for one in best if one.explained & left == best[0].explained & left]


def _mistakes(step, cases, answers, failed):
    """Return the mistakes that explain wrong cases, each with what cannot be told from it."""
    wrong_numbers = frozenset(
        i
        for i in failed
        if answers[i].arrays and not answers[i].equals(cases[i].right, cases[i].tolerance)
    )
    singles = _singles(step, cases, answers, failed)
    likely = {one.entries[0].name for one in singles}
    others = {entry.name for entry, _ in CANDIDATES[step]} - likely
    likenesses = singles
    # Two mistakes at once are looked for where one is not enough, and most of all with one that is
    # seen somewhere by itself.
    for names in (likely, others):
        if not any(sum(one.match[i] for i in failed) == 2 * len(failed) for one in likenesses):
            likenesses = likenesses + _doubles(step, cases, answers, failed, names)
    # Random numbers are never equal by accident; a few zeros and ones, or a count, may be.
    share = 3 if all(case.right.arrays[0][1].startswith("float") for case in cases) else 2
    left, found = frozenset(failed), []
    while left:
        best = _most_alike(likenesses, left, wrong_numbers, share)
        if not best:
            break
        found += _told_apart(best, left)
        left -= best[0].explained
    named = [
        entry for mistake in found for entry in mistake.entries[:1] if len(mistake.entries) == 1
    ]
    return [
        mistake
        for i, mistake in enumerate(found)
        if mistake.entries not in [other.entries for other in found[:i]]
        and (len(mistake.entries) == 1 or not {one.name for one in mistake.entries} & set(named))
    ]


def _told_apart(best, left):
    """Return what all likenesses share as mistakes, and what differs as one more."""
    sets = [frozenset(entry.name for entry in one.entries) for one in best]
    by_name = {entry.name: entry for one in best for entry in one.entries}  # in order
    shared = frozenset.intersection(*sets)
    rest = [name for name in by_name if name not in shared]
    explained = best[0].explained & left
    groups = [[name] for name in by_name if name in shared] + ([rest] if rest else [])
    return [_Mistake(tuple(by_name[name] for name in group), explained) for group in groups]
