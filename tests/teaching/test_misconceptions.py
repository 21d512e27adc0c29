"""The catalogue of wrong implementations: each hides where it says, and nowhere else."""

import inspect
import json
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mha_lib.teaching import CATALOGUE, built_with, draw, right_function

BOOK = Path(__file__).parents[2]
PARTS = {
    "scaled_dot_product_attention": ["softmax"],
    "multi_head_attention": [
        "softmax", "scaled_dot_product_attention", "split_heads", "merge_heads",
    ],
}  # fmt: skip
# What the library offers beyond the step that a student writes.
BEYOND = {("softmax", "axis"), ("multi_head_attention", "n_kv_heads")}


def as_arrays(value):
    return tuple(map(np.asarray, value if isinstance(value, tuple) else (value,)))


def name_of(entry):
    return entry.name


def headings(chapter):
    """Return the headings of a chapter, without their marks."""
    cells = json.loads((BOOK / chapter).read_text(encoding="utf-8"))["cells"]
    lines = "".join("".join([*c["source"], "\n"]) for c in cells if c["cell_type"] == "markdown")
    return {line.lstrip("# ") for line in lines.splitlines() if line.startswith("#")}


def test_there_are_enough_entries_and_each_step_has_some():
    assert len(CATALOGUE) >= 18
    assert {entry.step for entry in CATALOGUE} == {
        "softmax", "scaled_dot_product_attention", "split_heads", "merge_heads",
        "multi_head_attention", "causal_mask", "padding_mask", "combine_masks",
        "count_parameters", "count_softmax_entries",
    }  # fmt: skip


def test_no_two_entries_share_a_name_or_a_sentence():
    assert len({entry.name for entry in CATALOGUE}) == len(CATALOGUE)
    assert len({entry.sentence for entry in CATALOGUE}) == len(CATALOGUE)
    assert len({entry.question for entry in CATALOGUE}) == len(CATALOGUE)


@pytest.mark.parametrize("entry", CATALOGUE, ids=name_of)
def test_an_entry_has_the_signature_of_what_it_stands_in_for(entry):
    right = inspect.signature(right_function(entry.step)).parameters
    wrong = inspect.signature(entry.function).parameters
    expected = [name for name in right if (entry.step, name) not in BEYOND]
    assert list(wrong) == expected
    for name in expected:
        assert wrong[name].kind == right[name].kind
        assert wrong[name].default == right[name].default


@pytest.mark.parametrize("entry", CATALOGUE, ids=name_of)
def test_an_entry_speaks_to_the_student_in_one_sentence(entry):
    assert entry.sentence.startswith("Your code ")
    assert entry.sentence.endswith(".")
    assert ". " not in entry.sentence
    assert entry.question.endswith("?")
    assert len(entry.question) <= 160
    assert entry.section in headings(entry.chapter)
    assert not entry.hides.endswith(".")


CODE = re.compile(r"\w\(|\w\.\w|[=\[\]]|keepdims|swapaxes|np\.(?!dot)")
ADVICE = re.compile(r"\b(reshape to|then swap|swap |transpose |use |write |divide by|subtract the)")


@pytest.mark.parametrize("entry", CATALOGUE, ids=name_of)
def test_an_entry_never_gives_the_solution(entry):
    """It may quote what the code does, never what it should do."""
    told = entry.sentence.replace("np.dot", "that function").replace("h * d_v", "")
    assert not CODE.search(told)
    assert not ADVICE.search(told)
    assert not ADVICE.search(entry.question)


@pytest.mark.parametrize("entry", CATALOGUE, ids=name_of)
def test_an_entry_says_where_to_read_on_as_a_reader_would(entry):
    first_lines = json.loads((BOOK / entry.chapter).read_text("utf-8"))["cells"][0]["source"]
    title = re.sub(r"^# (\d\. )?", "", first_lines[0].rstrip())  # without its number
    page, section = re.fullmatch(r"(.*), '(.*)'", entry.where).groups()
    if page != title:
        assert page == f"chapter {int(Path(entry.chapter).name[:2])}"
    assert section in [heading.replace("$", "") for heading in headings(entry.chapter)]


def test_the_pages_of_mistakes_are_called_by_their_title():
    names = {entry.name: entry.where for entry in CATALOGUE}
    assert names["mask polarity flipped"] == "Watch out for, 'Mistakes with masks'"
    assert names["W_O forgotten"] == "chapter 2, 'What W_O adds'"


def test_a_condition_that_hides_for_forms_sake_says_only():
    for entry in CATALOGUE:
        assert entry.formal == entry.hides.startswith("only "), entry.name


def test_what_an_entry_covers_is_a_part_that_gives_the_same():
    covering = [entry for entry in CATALOGUE if entry.covers]
    assert [entry.name for entry in covering] == ["mask not handed on"]
    (part,) = (entry for entry in CATALOGUE if entry.name == covering[0].covers)
    args, kwargs = draw(covering[0].step, "a mask", 0)
    built = built_with(part, covering[0].step)
    assert_array_equal(built(*args, **kwargs), covering[0].function(*args, **kwargs))


@pytest.mark.parametrize("entry", CATALOGUE, ids=name_of)
def test_an_entry_hides_where_it_says(entry):
    args, kwargs = entry.hiding_input()
    right = as_arrays(right_function(entry.step)(*args, **kwargs))
    wrong = as_arrays(entry.function(*args, **kwargs))
    for expected, found in zip(right, wrong, strict=True):
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        if entry.exactness == 0:
            assert_array_equal(found, expected)
        else:
            assert_allclose(found, expected, rtol=0, atol=entry.exactness)


@pytest.mark.parametrize("entry", CATALOGUE, ids=name_of)
def test_a_hiding_input_is_made_anew_for_each_caller(entry):
    first, second = entry.hiding_input()[0], entry.hiding_input()[0]
    for a, b in zip(first, second, strict=True):
        assert_array_equal(a, b)
        assert not isinstance(a, np.ndarray) or not np.shares_memory(a, b)


@pytest.mark.parametrize(
    ("entry", "step"),
    [(e, step) for step, parts in PARTS.items() for e in CATALOGUE if e.step in parts],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_step_built_with_a_wrong_part_is_wrong(entry, step, rng):
    function, right = built_with(entry, step), right_function(step)
    expected = [name for name in inspect.signature(right).parameters if (step, name) not in BEYOND]
    assert list(inspect.signature(function).parameters) == expected
    size = np.array([100.0, 1.0])[:, None, None]  # of the two sequences of the batch
    if step == "multi_head_attention":
        w = [rng.normal(size=shape) for shape in ((6, 6), (6, 6), (6, 9), (9, 6))]
        args = (size * rng.normal(size=(2, 5, 6)), *w, 3)  # values are wider than keys
    else:
        args = tuple(size * rng.normal(size=(2, 5, width)) for width in (5, 5, 4))
    mask = np.tri(5, dtype=bool)
    mask[2] = False
    with np.errstate(all="ignore"):
        try:
            found = as_arrays(function(*args, mask=mask))[0]
        except ValueError:
            return  # sizes that do not fit are a way of being wrong
    expected = as_arrays(right(*args, mask=mask))[0]
    assert found.shape != expected.shape or not np.allclose(found, expected)


def test_a_step_has_no_part_that_it_does_not_use():
    entry = next(entry for entry in CATALOGUE if entry.step == "split_heads")
    with pytest.raises(ValueError, match="scaled_dot_product_attention has no part split_heads"):
        built_with(entry, "scaled_dot_product_attention")
    with pytest.raises(ValueError, match="softmax has no part split_heads"):
        built_with(entry, "softmax")
