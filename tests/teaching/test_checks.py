"""Checks of student code: right answers earn all, the library's own nothing, and all is shown."""

import json
import sys
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from bs4 import BeautifulSoup

import mha_lib
from mha_lib.teaching import (
    CATALOGUE,
    built_with,
    check_attention,
    check_budget,
    check_masks,
    check_multi_head_attention,
    check_softmax,
    check_split_heads,
    misconceptions,
    pages,
)
from tests.teaching.students import (
    BY_NAME,
    CHECKS,
    LIBRARY,
    SOLUTION,
    STEPS,
    causal_mask,
    combine_masks,
    count_parameters,
    count_softmax_entries,
    empty,
    padding_mask,
    raising,
    softmax,
    split_heads,
    wrappers,
)

BAD_PADDING = BY_NAME["filler marked with True"].function

# --- marks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
def test_the_reference_solution_earns_full_marks(step):
    result = CHECKS[step](SOLUTION[step])
    assert (result.score, result.verdict, result.misconception) == (1.0, "right", None), result
    assert result.diagnosis == "Right in every case."
    assert all(case.passed and not case.message for case in result.cases)


@pytest.mark.parametrize("seed", [*range(20), 2**40])
def test_the_reference_solution_earns_full_marks_with_every_seed(seed):
    for step in STEPS:
        result = CHECKS[step](SOLUTION[step], seed=seed)
        assert (result.score, result.diagnosis) == (1.0, "Right in every case."), result


@pytest.mark.parametrize("step", STEPS)
def test_a_seed_must_be_a_whole_number(step):
    with pytest.raises(TypeError, match=r"seed must be an integer, not float 1\.5"):
        CHECKS[step](SOLUTION[step], seed=1.5)
    with pytest.raises(ValueError, match="seed=-1 is too small: use seed >= 0"):
        CHECKS[step](SOLUTION[step], seed=-1)


def test_all_masks_together_earn_full_marks():
    result = check_masks(causal_mask, padding_mask, combine_masks)
    assert (result.score, result.verdict) == (1.0, "right")
    assert len(result.cases) == 9


def test_masks_earn_what_each_of_them_earns():
    result = check_masks(causal_mask, padding_mask, lambda *masks: masks[-1])
    assert (result.score, result.verdict) == (6 / 9, "partly right")
    assert result.misconceptions == ("only the last mask used",)
    with pytest.raises(TypeError, match="got no function"):
        check_masks()


def test_counts_earn_what_each_of_them_earns():
    assert check_budget(count_parameters, count_softmax_entries).score == 1
    result = check_budget(count_parameters, lambda n, n_heads: n * n)
    assert (result.score, result.verdict) == (3 / 6, "partly right")
    assert result.misconceptions == ("one map counted for all heads",)
    both = check_budget(lambda d, n_heads: 3 * d * d, lambda n, n_heads: n * n)
    assert both.unnamed == ()
    assert both.misconceptions == ("W_O not counted", "one map counted for all heads")
    assert both.misconception == "W_O not counted"
    with pytest.raises(TypeError, match="check_budget got no function: pass your count_param"):
        check_budget()


@pytest.mark.parametrize("kind", [int, float, np.int32, np.int64, np.float64])
@pytest.mark.parametrize("off", [-1, 0, 1])
def test_a_count_may_be_any_number_but_never_off_by_one(kind, off):
    result = check_budget(
        lambda d, n_heads: kind(count_parameters(d, n_heads) + off),
        lambda n, n_heads: kind(count_softmax_entries(n, n_heads) + off),
    )
    assert result.score == (off == 0)
    assert result.misconception is None
    assert ("// divides whole numbers exactly" in result.diagnosis) == (
        off == 0 and kind in (float, np.float64)
    )


def test_float64_from_float32_is_a_remark_and_costs_nothing():
    def shorter(q, k, v, mask=None):
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        scores = scores if mask is None else np.where(mask, scores, -np.inf)
        weights = mha_lib.softmax(scores)
        return weights @ v, weights

    result = check_attention(shorter)
    assert result.score == 1.0
    assert "float(np.sqrt(d_k))" in result.diagnosis
    assert repr(result).count("float(np.sqrt(d_k))") == 1
    assert result._repr_html_().count("float(np.sqrt(d_k))") == 1
    assert {case.name[:7] for case in result.cases if case.message} == {"float32"}


def test_float32_from_float64_is_a_remark_and_costs_nothing():
    result = check_softmax(lambda z: softmax(z.astype(np.float32)))
    assert result.score == 1.0
    assert "float64 came in and float32 came out" in result.diagnosis
    assert check_softmax(lambda z: softmax(z).astype(np.float16)).score == 0


def test_a_remark_on_two_counts_is_shown_once_and_beside_a_mistake_with_its_cases():
    both = check_budget(lambda d, n_heads: 4.0 * d * d, lambda n, n_heads: 1.0 * n_heads * n * n)
    assert repr(both).count("// divides whole numbers") == 1
    assert repr(both).count("\n  right  ") == 6
    one = check_budget(lambda d, n_heads: 4.0 * d * d, lambda n, n_heads: 0)
    assert repr(one).count("// divides whole numbers") == 1


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("thing", [3, "softmax", np.zeros(3)])
def test_what_is_no_function_earns_nothing(step, thing):
    result = CHECKS[step](thing)
    assert (result.score, result.verdict) == (0.0, "wrong")
    assert f"of type {type(thing).__name__}, not a function" in result.diagnosis


# --- the library's own functions --------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("i", range(5))
def test_the_librarys_own_function_is_flagged_however_it_is_wrapped(step, i):
    result = CHECKS[step](wrappers(LIBRARY[step])[i])
    assert (result.score, result.verdict) == (0.0, "not your own")
    assert "it earns nothing" in result.diagnosis


def test_the_right_parts_in_the_catalogues_module_are_flagged_too():
    right = misconceptions._layer
    assert check_split_heads(right.split).verdict == "not your own"
    assert check_attention(lambda q, k, v, mask=None: right.attend(q, k, v, mask)).score == 0

    def layer(x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False):
        out, weights = right.layer(
            x, x if context is None else context, (w_q, w_k, w_v, w_o), n_heads, mask
        )
        return (out, weights) if return_weights else out

    assert check_multi_head_attention(layer).verdict == "not your own"


def test_switching_off_the_watch_is_flagged():
    def sly(x, n_heads):
        sys.setprofile(None)
        return mha_lib.split_heads(x, n_heads)

    result = check_split_heads(sly)
    assert (result.score, result.verdict) == (0.0, "not your own")
    assert "profile function" in result.diagnosis


def test_a_profile_function_that_was_there_before_is_there_afterwards():
    def profile(*_):
        pass

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        check_split_heads(split_heads)
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(before)


def test_the_code_of_the_library_is_flagged_under_another_name():
    def split(x, n_heads):
        """Pretend to be a student's."""

    split.__code__ = mha_lib.split_heads.__code__
    assert check_split_heads(split).verdict == "not your own"


def test_one_library_function_among_the_masks_costs_its_own_cases():
    result = check_masks(mha_lib.causal_mask, padding_mask, combine_masks)
    assert (result.score, result.verdict) == (6 / 9, "not your own")


def test_the_steps_before_may_be_the_librarys():
    def own(x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False):
        source = x if context is None else context
        q, k, v = (
            mha_lib.split_heads(tokens @ w, n_heads)
            for tokens, w in ((x, w_q), (source, w_k), (source, w_v))
        )
        heads, weights = mha_lib.scaled_dot_product_attention(q, k, v, mask)
        out = mha_lib.merge_heads(heads) @ w_o
        return (out, weights) if return_weights else out

    assert check_multi_head_attention(own).score == 1


# --- what the student sees --------------------------------------------------------------------


class Text(HTMLParser):
    """Collect the tags and the text of a piece of HTML."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def test_the_text_shows_score_diagnosis_and_every_case():
    result = check_split_heads(next(e for e in CATALOGUE if e.step == "split_heads").function)
    lines = repr(result).splitlines()
    assert lines[0] == "split_heads: wrong, 0 of 4 cases right, score 0.00"
    assert lines[1] == f"  {BY_NAME['split by a bare reshape'].question}"
    assert lines[2] == "  To hear more: print(result.hint(2)), then print(result.hint(3))."
    assert sum(line.startswith("  wrong  ") for line in lines) == 4


def test_a_case_whose_context_decides_says_so():
    context_ignored = check_multi_head_attention(BY_NAME["context ignored"].function)
    assert all("context" in case.name for case in context_ignored.cases if not case.passed)


def test_what_is_said_of_many_cases_is_said_once():
    result = check_split_heads(raising(ValueError("no")))
    assert len(result.cases) == 4
    assert repr(result).splitlines()[2:] == [f"  wrong  in all 4 cases: {result.cases[0].message}"]
    page = Text(result._repr_html_())
    assert page.tags.count("tr") == 2
    assert "in all 4 cases" in page.text

    def no_batch(x, n_heads):
        if x.ndim > 2 or len(x) == 3:
            raise ValueError("no")
        return split_heads(x, n_heads)

    lines = repr(check_split_heads(no_batch)).splitlines()[2:]
    assert lines[0] == "  right  three heads"
    assert lines[1].startswith("  wrong  as many heads as tokens; leading axes: raised ValueError")
    assert lines[2] == "  right  heads that divide the tokens too"
    assert len(lines) == 3


def test_no_file_name_is_shown():
    for entry in CATALOGUE:
        result = CHECKS[entry.step](entry.function)
        for shown in (repr(result), Text(result._repr_html_()).text):
            assert ".ipynb" not in shown


def test_the_html_says_the_same_and_runs_nothing_of_the_students():
    result = check_split_heads(raising(ValueError("<script>alert(1)</script> & more")))
    page = Text(result._repr_html_())
    assert set(page.tags) == {
        "div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td",
    }  # fmt: skip
    assert "<script>alert(1)</script> & more" in page.text
    assert result.cases[0].message in page.text


def test_a_program_finds_the_verdict_in_the_outputs_of_a_notebook():
    """What a cell of a notebook stores, made by IPython's own formatter."""
    entry = next(entry for entry in CATALOGUE if entry.step == "split_heads")
    result = check_split_heads(entry.function)
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    stored, _ = shell.instance().display_formatter.format(result)
    assert stored["text/plain"] == repr(result)
    assert stored["text/html"] == result._repr_html_()
    assert json.loads(json.dumps(stored["application/vnd.mha-lib.check+json"])) == {
        "function": "split_heads",
        "score": 0.0,
        "verdict": "wrong",
        "diagnosis": result.diagnosis,
        "misconception": entry.name,
        "misconceptions": [entry.name],
        "unnamed": [],
        "hints": [
            {
                "question": entry.question,
                "idea": entry.sentence,
                "place": result.told[0].place,
                "chapter": entry.chapter,
                "section": entry.section,
            }
        ],
    }


def test_what_has_no_name_is_noted_although_something_else_in_the_check_has_one():
    """The class report counts by names, and nobody may vanish from it."""
    result = check_masks(lambda n, *, n_past=0: np.eye(n, n + n_past, dtype=bool), BAD_PADDING)
    assert result.misconceptions == ("filler marked with True",)
    assert result.unnamed == ("causal_mask",)
    alike = check_multi_head_attention(
        built_with(BY_NAME["heads averaged"], "multi_head_attention")
    )
    assert (alike.misconceptions, alike.unnamed) == ((), ("multi_head_attention",))
    assert check_masks(causal_mask, BAD_PADDING).unnamed == ()
    assert check_masks(empty, BAD_PADDING).unnamed == ()  # a blank is not wrong
    named = check_masks(BY_NAME["True where the future is hidden"].function, BAD_PADDING)
    assert named.misconceptions == ("True where the future is hidden", "filler marked with True")


def test_hints_come_in_steps_and_the_first_is_a_question():
    entry = BY_NAME["split by a bare reshape"]
    result = check_split_heads(entry.function)
    assert result.hint() == result.hint(1) == entry.question
    assert result.hint(2).splitlines() == [entry.question, entry.sentence]
    assert result.hint(3) == result.diagnosis
    assert entry.sentence not in repr(result)
    assert entry.where not in repr(result)
    for step in (0, 4):
        with pytest.raises(ValueError, match=f"step={step}"):
            result.hint(step)
    with pytest.raises(TypeError, match="step must be an integer"):
        result.hint("two")
    assert "To hear more" not in repr(check_split_heads(split_heads))


def test_in_a_notebook_the_later_steps_are_folded_up_and_the_place_is_a_link():
    entry = BY_NAME["split by a bare reshape"]
    soup = BeautifulSoup(check_split_heads(entry.function)._repr_html_(), "html.parser")
    assert entry.question in [p.text for p in soup.div.find_all("p", recursive=False)]
    outer = soup.details
    assert [s.text for s in soup.find_all("summary")] == [
        "What the code does", "Where to read on",
    ]  # fmt: skip
    assert outer.find("p").text == entry.sentence
    link = outer.details.find("a")
    assert link.text == entry.where
    file, heading = link["href"].split("#")
    assert Path(file).resolve() == Path(entry.chapter).resolve()
    assert heading == "step-2-split"


def test_without_a_book_there_is_no_link(monkeypatch, tmp_path):
    entry = BY_NAME["split by a bare reshape"]
    monkeypatch.setattr(pages, "_BOOK", tmp_path)
    html = check_split_heads(entry.function)._repr_html_()
    assert "<a" not in html
    assert f"Read on in {escape(entry.where)}" in html


def test_a_result_cannot_be_changed():
    result = check_split_heads(empty)
    with pytest.raises(AttributeError):
        result.score = 1.0
