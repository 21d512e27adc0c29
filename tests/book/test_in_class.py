"""The lesson plans: minutes without a gap, votes that the chapters ask, numbers that are true."""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from mha_lib import attention_cost, softmax
from mha_lib.learning import CLAIMS, best_row, job_errors

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"

PAGE = Path(CHAPTERS, "in_class.md").read_text("utf-8")
SESSIONS = re.findall(r"(?:^\| \d+ to \d+ \|.*\n)+", PAGE, re.MULTILINE)
VOTES = re.findall(r"\*\*[Vv]ote:\*\* \[(.+?)\]\((\w+)\.ipynb#([\w-]+)\)", PAGE)


def slug(heading):
    """Return what MyST makes of a heading, in which a formula counts for nothing."""
    words = re.sub(r"\$.*?\$", "", heading).lower().replace(" ", "-")
    return re.sub(r"[^\w-]", "", words)


def section(chapter, anchor):
    """Return the Markdown of a section, up to the next heading."""
    notebook = json.loads(Path(CHAPTERS, f"{chapter}.ipynb").read_text("utf-8"))
    texts = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "markdown"]
    parts = re.split(r"^#+ (.+)\n", "\n\n".join(texts), flags=re.MULTILINE)
    found = {slug(heading): text for heading, text in zip(parts[1::2], parts[2::2], strict=True)}
    return found[anchor]


def test_there_are_a_plan_for_one_session_and_one_for_two():
    assert len(SESSIONS) == 3
    assert len(VOTES) >= 12


@pytest.mark.parametrize("session", SESSIONS)
def test_minutes_follow_each_other_up_to_75(session):
    minutes = [tuple(map(int, row)) for row in re.findall(r"^\| (\d+) to (\d+) \|", session, re.M)]
    assert minutes[0][0] == 0
    assert minutes[-1][1] == 75
    assert all(end == start for (_, end), (start, _) in itertools.pairwise(minutes))


@pytest.mark.parametrize("vote", VOTES, ids=lambda vote: vote[2])
def test_a_vote_leads_to_a_prediction_in_the_same_words(vote):
    question, chapter, anchor = vote
    asked = " ".join(re.findall(r"\*\*Predict:\*\*(.*)", section(chapter, anchor)))
    words = set(re.findall(r"[\w.]{3,}", question.lower()))
    known = words & set(re.findall(r"[\w.]{3,}", asked.lower()))
    assert len(known) >= 0.6 * len(words), (question, asked)


def bound(n):
    return sum(job_errors(best_row(n)))


def measured_times_ratio():
    """Return the ratio that a test demands between chapter 3's clock and its count."""
    tests = Path(__file__).with_name("test_clocks.py").read_text("utf-8")
    return re.search(r"> (1\.\d) \* counted", tests)


NUMBERS = {
    "The answer is 0.67.": lambda: softmax(np.r_[3.0, np.zeros(10)])[0].round(2) == 0.67,
    "never below 0.75": lambda: bound(16).round(2) == 0.75,
    ">1.5</a>": lambda: abs(np.log(5) - 1.5) <= 0.125,  # the slider's next step
    "8 times as many": lambda: ratio("softmax_entries") == 8,
    "Nothing. Show": lambda: ratio("parameters") == ratio("matmul_flops") == 1,
    "the scores take 2 GiB": lambda: attention_cost(8192, 512, 8).score_bytes == 2 * 2**30,
    "the weights take 4 MiB": lambda: attention_cost(8192, 512, 8).weight_bytes == 4 * 2**20,
    "At least a fifth more than counted": lambda: measured_times_ratio()[1] == "1.2",
    "Half of them, if chosen well": lambda: CLAIMS["half of the heads"]["greedy, median"] >= 0.98,
    "2 heads of width 4": lambda: 8 / 2 == 4,
}


def ratio(what):
    one, eight = (getattr(attention_cost(1024, 512, h), what) for h in (1, 8))
    return eight / one


@pytest.mark.parametrize("sentence", NUMBERS)
def test_what_the_plan_says_of_numbers_is_so(sentence):
    assert re.search(sentence, PAGE)
    assert NUMBERS[sentence]()
