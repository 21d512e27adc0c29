"""What an entry of the catalogue is, and how a wrong function is entered."""

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import numpy as np

SPLIT_CHAPTER = "chapters/02_split_attend_concat_project.ipynb"
SOFTMAX_CHAPTER = "chapters/01_why_one_head_is_not_enough.ipynb"
BUDGET_CHAPTER = "chapters/03_compute_budget.ipynb"
PITFALLS_CHAPTER = "chapters/06_watch_out_for.ipynb"
_PAGES = {  # as a reader knows them
    SOFTMAX_CHAPTER: "chapter 1",
    SPLIT_CHAPTER: "chapter 2",
    BUDGET_CHAPTER: "chapter 3",
    PITFALLS_CHAPTER: "Watch out for",
}
# Where several entries send a reader: page and heading.
KEEP_THE_SHAPE = (PITFALLS_CHAPTER, "Mistakes that keep the shape")
MASKS = (PITFALLS_CHAPTER, "Mistakes with masks")
SPLIT = (SPLIT_CHAPTER, "Step 2: split")
ATTEND = (SPLIT_CHAPTER, "Step 3: attend")
OTHER_USES = (SPLIT_CHAPTER, "The same function, other uses")


@dataclass(frozen=True)
class Misconception:
    """One wrong implementation: what to ask about it, what it does, and when nobody sees it.

    Attributes
    ----------
    name : str
        A few words that no other entry has.
    step : str
        Name of the function that it stands in for: one of ``mha_lib``, or one of the two counts
        that `mha_lib.teaching.check_budget` asks for.
    function : callable
        The wrong code, with the signature of the right one.
    question : str
        What the student hears first, and may answer without hearing more.
    sentence : str
        What the code does instead of what was meant, said to the student; never how to write it.
    chapter : str
        File of the book to read on in.
    section : str
        Heading in that file.
    hides : str
        The condition under which the result is right all the same.
    hiding_input : callable
        Returns positional and keyword arguments, ``(args, kwargs)``, that fulfil it.
    exactness : float
        Largest difference from the right result for that input; 0.0 = equal to the bit.
    formal : bool
        Whether such inputs are too far-fetched for the condition to help anybody.
    covers : str
        Name of an entry for a part of the same step that gives the same results from outside; the
        sentence then speaks of both.  Empty if there is none.
    parts : mapping
        From the names of the parts of the step that are wrong to the wrong parts.  Mistakes in
        different parts can be made in one function.  Empty where the function has no parts.
    variants : tuple of mapping
        Other wrong parts by which people make the same mistake.

    Notes
    -----
    The property ``where`` says in words where to read on, and ``page`` is its address
    among the chapters.

    Examples
    --------
    >>> from mha_lib.teaching import CATALOGUE
    >>> entry = next(m for m in CATALOGUE if m.name == "split by a bare reshape")
    >>> entry.hides
    'with one head, or one token'
    >>> entry.where
    "chapter 2, 'Step 2: split'"
    >>> entry.page
    '02_split_attend_concat_project.ipynb#step-2-split'
    >>> entry.function(np.arange(4.0).reshape(2, 2), 2).tolist()  # right: 0 and 2 together
    [[[0.0], [1.0]], [[2.0], [3.0]]]
    """

    name: str
    step: str
    function: Callable
    question: str
    sentence: str
    chapter: str
    section: str
    hides: str
    hiding_input: Callable
    exactness: float = 0.0
    formal: bool = False
    covers: str = ""
    parts: Mapping[str, Callable] = field(default_factory=dict, compare=False)
    variants: tuple[Mapping[str, Callable], ...] = field(default=(), compare=False)

    @property
    def where(self) -> str:
        """Page and section to read on in, as a reader knows them."""
        section = self.section.replace("$", "")
        return f"{_PAGES[self.chapter]}, '{section}'"

    @property
    def page(self) -> str:
        """File and heading of the book, relative to the folder of its chapters."""
        heading = re.sub(r"[^a-z0-9]+", "-", self.section.lower().replace("$", "")).strip("-")
        return f"{PurePosixPath(self.chapter).name}#{heading}"


def entry(entries, step, name, question, sentence, *, read, **about):
    """Return a decorator that appends a wrong function, as an entry, to a list."""
    chapter, section = read

    def enter(function):
        entries.append(
            Misconception(name, step, function, question, sentence, chapter, section, **about)
        )
        return function

    return enter


def entry_of_part(entries, step, build, part, name, question, sentence, **about):
    """Return a decorator that enters a step in which one part is wrong.

    ``build`` takes wrong parts by their names, and makes the step with them.
    """

    def enter(wrong):
        parts = {part: wrong, **about.pop("besides", {})}
        about["variants"] = tuple({**parts, **other} for other in about.get("variants", ()))
        entry(entries, step, name, question, sentence, parts=parts, **about)(build(**parts))
        return wrong

    return enter


# --- inputs that hide a mistake ---------------------------------------------------------------


def numbers(*shape):
    """Return small whole numbers as floats, whose products and sums are exact."""
    return np.random.default_rng(shape).integers(-3, 4, shape).astype(float)


def call(*args, **kwargs):
    """Return a function that gives copies of these arguments."""
    return lambda: copy.deepcopy((args, kwargs))
