"""Whose answers are alike: a reason to look, never a proof.

Short functions with one right way to write them are alike anyway.  So what the assignment, its
solution and many people share does not count, and neither do short answers.
"""

import io
import keyword
import re
import tokenize
from collections import Counter, defaultdict
from itertools import combinations

RUN = 5  # neighbouring words or tokens that are compared as one
FEWEST = 12  # such runs that an answer must have of its own
ALIKE = 0.6  # share of the shorter one's runs that the other has too
MANY = 0.1  # share of the class, at least five, that may have a run before it says nothing
CANNOT = (
    "It cannot tell who copied, nor whether two people worked together as you allow. It does not "
    "see a text that was written anew, or that only one person has from elsewhere."
)


def pairs(answers, given):
    """Return which answers are alike.

    Parameters
    ----------
    answers : dict
        For each student a dictionary from the part's name to the text, and whether it is code.
    given : dict
        For each part the texts that everybody had: the template and the solution.

    Returns
    -------
    found : list of tuple
        Two students, the part, the share of runs that the shorter answer has in common with the
        other when names are exchanged, and whether the two are the same to the letter.  The most
        alike come first.
    """
    found = []
    for part in dict.fromkeys(part for own in answers.values() for part in own):
        runs, texts = {}, {}
        known = set()
        for text, is_code in given.get(part, ()):
            known |= _runs(text, is_code)
        for student, own in answers.items():
            if part in own:
                texts[student] = " ".join(own[part][0].split())
                runs[student] = _runs(*own[part]) - known
        common = Counter(run for own in runs.values() for run in own)
        most = max(5, MANY * len(runs))
        runs = {student: {r for r in own if common[r] <= most} for student, own in runs.items()}
        owners = defaultdict(list)
        for student, own in runs.items():
            if len(own) >= FEWEST:
                for run in own:
                    owners[run].append(student)
        shared = Counter(pair for who in owners.values() for pair in combinations(who, 2))
        for (one, other), n in shared.items():
            share = n / min(len(runs[one]), len(runs[other]))
            if share >= ALIKE:
                same = texts[one] == texts[other]
                found.append((one, other, part, round(share, 2), "yes" if same else "no"))
    return sorted(found, key=lambda row: (row[4] != "yes", -row[3], row))


def _runs(text, is_code):
    words = _tokens(text) if is_code else re.findall(r"\w+", text.casefold())
    return {tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1)}


def _tokens(code):
    """Return the tokens of code; names of its own are all the same, comments are words."""
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type == tokenize.NAME:
                found.append(token.string if _is_fixed(token.string) else "name")
            elif token.type == tokenize.COMMENT:
                found += re.findall(r"\w+", token.string.casefold())
            elif token.type in (tokenize.OP, tokenize.NUMBER, tokenize.STRING):
                found.append(token.string)
    except (tokenize.TokenError, SyntaxError):  # not finished: words are all there is
        return re.findall(r"\w+|[^\w\s]", code)
    return found


def _is_fixed(name):
    return keyword.iskeyword(name) or name in {"np", "mha_lib", "None", "True", "False"}
