"""Predictions, a mended head, memory, and reading a head: what earns points, and what does not."""

import math

import numpy as np
import pytest

from mha_lib import attention_cost
from mha_lib.teaching import check_memory, check_mended, check_predictions, check_reading
from mha_lib.teaching.tasks import PREDICTIONS

NAMES = list(PREDICTIONS)


def head(width):
    """Return a causal head that divides by the root of ``width(keys seen)``."""

    def mended_head(q, k, v):
        blends = []
        for i in range(len(q)):
            seen = k[: i + 1]
            scores = seen @ q[i] / np.sqrt(width(seen))
            powers = np.exp(scores - scores.max())
            blends.append(powers / powers.sum() @ v[: i + 1])
        return np.array(blends)

    return mended_head


def score_bytes(n, n_heads):
    return 4 * n_heads * n * n


def matmul_flops(n, d):
    return 8 * n * d * d + 4 * n * n * d


def longest_text(n_heads, n_bytes):
    return math.isqrt(n_bytes // (4 * n_heads))


def most_looked_at(weights):
    others = weights.copy()
    np.fill_diagonal(others, -1)
    return others.argmax(axis=1)


def share_right(looked, pairs):
    return sum(looked[start] == end for start, end in pairs) / len(pairs)


def best_offset(pairs):
    offsets = [end - start for start, end in pairs.tolist()]
    return max(offsets.count(offset) for offset in offsets) / len(offsets)


def blank(*_):
    raise NotImplementedError()


# --- predictions ------------------------------------------------------------------------------


def test_having_predicted_counts_and_not_being_right():
    wrong = check_predictions(dict.fromkeys(NAMES, -1))
    right = check_predictions({name: compute() for name, (_, compute) in PREDICTIONS.items()})
    assert wrong.score == right.score == 1
    assert [row[2] for row in wrong.rows] == [row[2] for row in right.rows] == [1, 8, 2, 0, 8]


@pytest.mark.parametrize("nothing", [None, "eight", math.nan, math.inf, True, [8], ...])
def test_what_is_no_number_is_no_prediction_and_is_told_nothing(nothing):
    found = check_predictions(dict.fromkeys(NAMES, 1) | {"scores": nothing})
    assert found.score == 0.8
    assert found.rows[NAMES.index("scores")][1:] == (None, None)


@pytest.mark.parametrize("nothing", [None, 3, [], "parameters"])
def test_what_holds_no_predictions_earns_nothing(nothing):
    assert check_predictions(nothing).score == 0


def test_both_numbers_are_shown_side_by_side():
    found = check_predictions({"scores": 64})
    assert "You said 64; computed: 8" in repr(found)
    assert "<td>64</td><td>8</td>" in found._repr_html_()


# --- a mended head ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_mended_head_earns_all_and_one_that_is_not_nothing(seed):
    assert check_mended(head(lambda seen: seen.shape[1]), seed=seed).verdict == "right"
    for width in (len, np.size, lambda seen: 1, lambda seen: seen.shape[1] ** 2):
        found = check_mended(head(width), seed=seed)
        assert (found.score, found.verdict) == (0, "wrong")


def test_the_check_does_not_say_what_is_wrong():
    said = repr(check_mended(head(len)))
    assert "there is still a mistake" in said
    assert not {"root", "width", "scale", "divide"} & set(said.lower().split())


def test_a_head_that_is_not_written_or_breaks_earns_nothing():
    assert check_mended(blank).verdict == "blank"
    assert check_mended(lambda q, k, v: 1 / 0).score == 0


def test_calls_of_the_library_that_the_grader_saw_earn_nothing():
    mended = head(lambda seen: seen.shape[1])
    mended.seen = "This calls scaled_dot_product_attention of mha_lib."
    assert (check_mended(mended).score, check_mended(mended).verdict) == (0, "not your own")


# --- memory and reading -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_right_functions_earn_all(seed):
    assert check_memory(score_bytes, matmul_flops, longest_text, seed=seed).score == 1
    assert check_reading(most_looked_at, share_right, best_offset, seed=seed).score == 1


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("place", "function"),
    [
        (0, lambda n, h: 2 * h * n * n),
        (0, lambda n, h: 4 * n * n),
        (1, lambda n, d: 8 * n * d * d),
        (1, lambda n, d: attention_cost(n, d, 1).projection_flops),
        (2, lambda h, room: math.isqrt(room // (4 * h)) + 1),
        (2, lambda h, room: math.isqrt(room // 4)),
    ],
)
def test_a_count_that_is_wrong_costs_its_third(place, function, seed):
    given = [score_bytes, matmul_flops, longest_text]
    given[place] = function
    n_right = 9 * check_memory(*given, seed=seed).score
    # With one head two ways of counting agree.
    assert 6 <= round(n_right) <= 8


@pytest.mark.parametrize(
    ("place", "function"),
    [
        (0, lambda weights: weights.argmax(axis=1)),  # the word itself
        (0, lambda weights: most_looked_at(weights.T)),
        (1, lambda looked, pairs: share_right(looked, pairs[:, ::-1])),
        (1, lambda looked, pairs: (looked[pairs[:, 0]] == pairs[:, 1]).sum()),
        (2, lambda pairs: (pairs[:, 1] - pairs[:, 0] == -1).mean()),
        (2, lambda pairs: 1 / len(pairs)),
    ],
)
def test_a_reading_that_is_wrong_costs_its_third(place, function):
    given = [most_looked_at, share_right, best_offset]
    given[place] = function
    assert check_reading(*given).score == pytest.approx(2 / 3)


def test_what_is_not_written_is_blank_and_what_breaks_is_named():
    assert check_memory(blank, blank, blank).verdict == "blank"
    found = check_reading(lambda w: w[0, 99], share_right, lambda pairs: "half")
    messages = {case.message for case in found.cases}
    assert any(message.startswith("IndexError") for message in messages)
    assert "returned no numbers" in messages


def test_no_message_names_a_right_number():
    found = check_memory(lambda *_: -1, lambda *_: -1, lambda *_: -1)
    assert {case.message for case in found.cases} == {"another number is right"}
