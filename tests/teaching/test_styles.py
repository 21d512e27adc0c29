"""A right solution earns all marks, whatever its style."""

import pytest

from tests.teaching.students import CHECKS, STEPS
from tests.teaching.styles import STYLES


def test_there_are_enough_styles_of_the_whole_and_each_part_has_some():
    assert sum("multi_head_attention" in style for style in STYLES.values()) >= 12
    for step in set(STEPS) - {"combine_masks", "count_softmax_entries"}:
        assert any(step in style for style in STYLES.values()), step


@pytest.mark.parametrize("seed", [7, 0, 4391])
@pytest.mark.parametrize(
    ("style", "step"), [(name, step) for name, style in STYLES.items() for step in style]
)
def test_a_right_solution_earns_all_marks_in_every_style(style, step, seed):
    result = CHECKS[step](STYLES[style][step], seed=seed)
    assert (result.score, result.verdict, result.misconceptions) == (1, "right", ()), result
