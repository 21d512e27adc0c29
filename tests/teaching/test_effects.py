"""What a mistake does: the size of its effect, and where it is hidden."""

import dataclasses
import re

import numpy as np
import pytest
from bs4 import BeautifulSoup

import mha_lib
from mha_lib.teaching import (
    CATALOGUE,
    Effect,
    draw,
    effect,
    effect_table,
    effects,
    hidden_error,
    measure,
    right_function,
    situations,
)

BY_NAME = {entry.name: entry for entry in CATALOGUE}
STEPS = tuple(dict.fromkeys(entry.step for entry in CATALOGUE))


def name_of(entry):
    return entry.name


@pytest.mark.parametrize("entry", CATALOGUE, ids=name_of)
def test_every_mistake_shows_somewhere_and_hides_where_it_says(entry):
    shown = effect(entry)
    assert shown.noticed
    assert hidden_error(entry) <= entry.exactness
    if shown.errors:
        assert min(shown.errors) > 0.01  # no seed hides it


@pytest.mark.parametrize("step", STEPS)
def test_the_right_function_has_no_effect_anywhere(step):
    entry = next(entry for entry in CATALOGUE if entry.step == step)
    right = dataclasses.replace(entry, name="nothing wrong", function=right_function(step))
    for situation in situations(step):
        found = measure(right, situation)
        assert (found.errors, found.problem) == ((0.0,) * 5, "")
        assert not found.noticed
    with pytest.raises(LookupError, match="'nothing wrong' shows in no situation"):
        effect(right)


def test_the_error_is_relative_to_the_right_result():
    found = measure(BY_NAME["softmax over everything"], "5 rows of 7 scores", n_seeds=2)
    for seed, error in enumerate(found.errors):
        (z,), _ = draw("softmax", "5 rows of 7 scores", seed)
        e = np.exp(z)
        right, wrong = e / e.sum(axis=1, keepdims=True), e / e.sum()
        assert error == pytest.approx(np.sqrt(((wrong - right) ** 2).sum() / (right**2).sum()))
    assert len(found.errors) == 2


def test_the_error_of_a_mask_is_the_share_of_wrong_entries():
    # Of 5 by 5 entries all but the 5 on the diagonal are wrong.
    found = measure(BY_NAME["the past hidden instead of the future"], "five tokens")
    assert found.errors == (0.8,) * 5
    assert repr(found) == "0.80"


@pytest.mark.parametrize(
    ("name", "three_heads", "one_head"),
    [
        ("the layer counted once for each head", 2, 0),  # 3 layers instead of 1
        ("projections of full width for each head", 3 / 2, 0),  # 10 matrices instead of 4
        ("W_O not counted", 1 / 4, 1 / 4),  # 3 of 4
        ("W_O counted as wide as one head", 1 / 6, 0),  # 3 1/3 instead of 4
        ("one head counted for all", 2 / 3, 0),
        ("one map counted for all heads", 2 / 3, 0),
        ("heads compared with each other", 2, 0),  # 9 maps instead of 3
    ],
)
def test_the_error_of_a_count_is_relative(name, three_heads, one_head):
    entry = BY_NAME[name]
    assert measure(entry, "three heads").errors == pytest.approx((three_heads,) * 5)
    assert measure(entry, "one head").errors == pytest.approx((one_head,) * 5)


def test_the_error_of_a_count_may_depend_on_the_size():
    # A bias of d numbers beside each d by d matrix; one score of n; (n + 1) / 2 of n.
    for name, error in (
        ("biases counted", lambda d: 1 / d),
        ("one score for each token", lambda n: 1 - 1 / n),
        ("only the causal half counted", lambda n: (n - 1) / (2 * n)),
    ):
        entry = BY_NAME[name]
        sizes = [draw(entry.step, "three heads", seed)[0][0] for seed in range(5)]
        assert measure(entry, "three heads").errors == pytest.approx(list(map(error, sizes)))
        assert len(set(sizes)) > 1


def test_the_sizes_of_a_count_are_whole_numbers_that_the_heads_divide():
    for seed in range(20):
        (d, n_heads), _ = draw("count_parameters", "three heads", seed)
        (n, same), _ = draw("count_softmax_entries", "three heads", seed)
        assert (type(d), type(n)) == (int, int)
        assert (n_heads, same, d % 3) == (3, 3, 0)
        assert n % 3


def test_nan_is_counted_in_rows():
    entry = BY_NAME["NaN where nothing is allowed"]
    found = measure(entry, "two queries that may look nowhere")
    assert (found.problem, found.loud) == ("NaN in 2 of 5 rows", False)
    assert not measure(entry, "a mask").noticed


def test_rows_of_nan_may_differ_between_seeds():
    def uneven(z):
        out = mha_lib.softmax(z)
        out[z[:, 0] > 0, 0] = np.nan
        return out

    first = [draw("softmax", "5 rows of 7 scores", seed)[0][0][:, 0] for seed in range(5)]
    counts = [int((column > 0).sum()) for column in first]
    assert min(counts) < max(counts)
    entry = dataclasses.replace(CATALOGUE[0], function=uneven)
    told = measure(entry, "5 rows of 7 scores").problem
    assert told == f"NaN in {min(counts)} to {max(counts)} of 5 rows"


def test_errors_and_shapes_are_loud():
    fails = measure(BY_NAME["keys not transposed"], "unequal sizes")
    assert (fails.problem, fails.loud, fails.errors) == ("fails with an error", True, ())
    shape = measure(BY_NAME["heads averaged"], "three heads")
    assert (shape.problem, shape.loud) == ("shape (5, 7) instead of (5, 21)", True)


def test_the_effect_is_the_first_that_shows_in_numbers_alone():
    assert effect(BY_NAME["split without the swap"]).situation == "as many heads as tokens"
    assert effect(BY_NAME["mask ignored"]).situation == "a mask"
    assert effect(BY_NAME["heads averaged"]).loud  # everywhere


@pytest.mark.parametrize(
    "name", ["split by a bare reshape", "merge without the swap", "scale by the root of d"]
)
def test_with_one_head_the_commonest_three_are_hidden_to_the_last_bit(name):
    step = "multi_head_attention"
    assert measure(BY_NAME[name], "one head", step=step).errors == (0.0,) * 5
    assert min(measure(BY_NAME[name], "three heads", step=step).errors) > 0.1


def test_each_seed_draws_its_own_arguments_and_the_same_again():
    first, again, other = (draw("split_heads", "three heads", seed)[0][0] for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.isclose(first, other).any()


def test_masks_allow_and_forbid_every_query_something():
    for seed in range(20):
        _, kwargs = draw("scaled_dot_product_attention", "a mask", seed)
        assert kwargs["mask"].any(axis=-1).all()
        assert not kwargs["mask"].all(axis=-1).any()
        _, kwargs = draw("multi_head_attention", "a token that may look nowhere", seed)
        assert kwargs["mask"].any(axis=-1).tolist() == [False, True, True, True, True]


def test_a_wrong_name_is_told_with_the_right_ones():
    with pytest.raises(ValueError, match="situation is 'x': choose from three heads, as many"):
        draw("split_heads", "x", 0)
    with pytest.raises(ValueError, match="step is 'x': choose from softmax, "):
        situations("x")
    with pytest.raises(ValueError, match="step is 'x': choose from softmax, "):
        effect_table("softmax", "x")
    with pytest.raises(ValueError, match="n_seeds"):
        measure(CATALOGUE[0], "5 rows of 7 scores", n_seeds=0)
    with pytest.raises(ValueError, match="softmax has no part merge_heads"):
        measure(BY_NAME["heads averaged"], "5 rows of 7 scores", step="softmax")


def test_a_hiding_input_that_changes_the_shape_is_refused():
    visible = dataclasses.replace(
        BY_NAME["heads averaged"], hiding_input=lambda: ((np.ones((3, 5, 7)),), {})
    )
    with pytest.raises(ValueError, match=r"gives shape \(5, 7\) instead of \(5, 21\)"):
        hidden_error(visible)


def test_the_hidden_error_is_the_largest_difference_of_all_results():
    entry = BY_NAME["no scale"]
    args, _ = draw(entry.step, "unequal sizes", 0)
    visible = dataclasses.replace(entry, hiding_input=lambda: (args, {}))
    right = mha_lib.scaled_dot_product_attention(*args)
    gaps = [np.abs(a - b).max() for a, b in zip(right, entry.function(*args), strict=True)]
    assert hidden_error(visible) == max(gaps)


def test_numbers_have_two_digits_behind_the_point_while_they_are_small():
    assert repr(Effect("s", (0.5, 1.0, 1.5))) == "1.00 (0.50 to 1.50)"
    assert repr(Effect("s", (2.0, 30.4))) == "16 (2.00 to 30)"
    assert repr(Effect("s", (1e-12, 0.0))) == "hidden"


# --- the table --------------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
def test_the_table_has_all_entries_of_a_step_as_html_and_as_text(step):
    table = effect_table(step)
    entries = [entry for entry in CATALOGUE if entry.step == step]
    soup = BeautifulSoup(table._repr_html_(), "html.parser")
    heads = [head.text for head in soup.find_all("th", scope="rowgroup")]
    assert heads == [entry.name for entry in entries]
    text = re.sub(r"\s+", " ", repr(table))
    for entry, row, body in zip(entries, table.rows, soup.find_all("tbody"), strict=True):
        cells = [cell.text for cell in body.find_all("td")]
        assert cells == [entry.sentence, row["effect"], row["hides"], row["read"]]
        for words in (entry.name, *cells):
            assert words in text
    assert max(map(len, repr(table).splitlines())) <= 78


def test_the_table_can_be_read_aloud():
    soup = BeautifulSoup(effect_table("softmax")._repr_html_(), "html.parser")
    assert soup.summary.text == "softmax: 9 mistakes"
    assert soup.caption.text.startswith("softmax")
    columns = [head.text for head in soup.thead.find_all("th", scope="col")]
    assert len(columns) == 3
    for body in soup.find_all("tbody"):
        assert [len(row.find_all("td")) for row in body.find_all("tr")] == [0, 1, 3]


def test_a_row_tells_where_it_is_loud_and_what_is_left_where_it_is_not():
    rows = {row["name"]: row for row in effect_table(*STEPS).rows}
    assert len(rows) == len(CATALOGUE)
    told = rows["keys not transposed"]["effect"]
    assert told.startswith("unequal sizes: fails with an error; all sizes equal: 0.")
    assert rows["heads averaged"]["effect"] == "three heads: shape (5, 7) instead of (5, 21)"
    assert rows["heads averaged"]["hides"] == "error 0 with one head"
    assert rows["heads averaged"]["read"] == "chapter 2, 'Step 4: concatenate'"
    assert rows["W_O forgotten"]["read"] == "chapter 2, 'What W_O adds'"
    assert rows["one map counted for all heads"] == {
        "name": "one map counted for all heads",
        "sentence": BY_NAME["one map counted for all heads"].sentence,
        "effect": "three heads: 0.67",
        "hides": "error 0 with one head",
        "read": "chapter 3, 'What grows with h'",
    }
    shift = rows["softmax without subtracting the largest score"]
    assert shift["hides"] == "only rounding with scores of ordinary size"


def test_a_mistake_that_does_not_hide_where_it_says_is_not_called_hidden(monkeypatch):
    entry = dataclasses.replace(
        CATALOGUE[0], hiding_input=BY_NAME["mask ignored"].hiding_input, step="softmax"
    )
    monkeypatch.setattr(effects, "hidden_error", lambda entry: 0.25)
    assert effects._hidden(entry).startswith("error 0.25 with")


def test_html_is_escaped():
    table = effects.EffectTable(
        "<i>", (dict.fromkeys(("name", "sentence", "effect", "hides", "read"), "<b>"),)
    )
    assert not {"i", "b"} & {
        tag.name for tag in BeautifulSoup(table._repr_html_(), "html.parser").find_all()
    }


def test_an_answer_of_nan_is_no_hidden_mistake():
    broken = dataclasses.replace(
        CATALOGUE[0],
        step="softmax",
        function=lambda z: np.full(np.shape(z), np.nan),
        hiding_input=lambda: ((np.ones((5, 7)),), {}),
    )
    assert np.isnan(hidden_error(broken))
    assert Effect("any", (0.0, np.nan)).noticed


def test_an_effect_without_numbers_shows_itself():
    assert repr(Effect("any")) == "hidden"
