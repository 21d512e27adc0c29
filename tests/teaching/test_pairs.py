"""Two mistakes in one function: how many such pairs are named, and that no wrong name is given."""

from collections import Counter

import pytest

from mha_lib.teaching import steps
from mha_lib.teaching.answers import ask
from tests.teaching.students import CHECKS
from tests.teaching.styles import STYLES

RIGHT = STYLES["einsum"]
# The least share of the pairs of each step that must be named in full, and of how many one is tried
# here.  All are tried with `-m slow`.
FLOORS = {
    "softmax": (1.0, 1),
    "scaled_dot_product_attention": (0.7, 23),
    "multi_head_attention": (0.6, 101),
    "causal_mask": (0.7, 1),
    "padding_mask": (1.0, 1),
    "count_parameters": (1.0, 1),
    "count_softmax_entries": (1.0, 1),
}


def names_of(both, step):
    return {steps.CANDIDATES[step][place][0].name for place in both}


def same_as_one(step, function, seed):
    """Return the names of the entries that answer like this function in every case."""
    asked = steps.cases(step, seed)
    given = [ask(function, case.args, case.kwargs, case.parts) for case in asked]
    return {
        entry.name
        for place, (entry, _) in enumerate(steps.CANDIDATES[step])
        if all(
            answer.likeness(case.wrong[place], case.tolerance) == 2
            for answer, case in zip(given, asked, strict=True)
        )
    }


def hold_the_floor(step, tried, seed):
    """Diagnose pairs; most must be named in full, and none wrongly."""
    found = Counter()
    for both, function in tried:
        result = CHECKS[step](function, seed=seed)
        named, meant = set(result.misconceptions), names_of(both, step)
        assert result.score < 1, meant
        if named == meant:
            found["both"] += 1
        elif named <= meant:
            found["one" if named else "none"] += 1
        else:  # another name is right only where the code does the same as that mistake alone
            assert named <= meant | same_as_one(step, function, seed), (meant, named)
            found["the same as another"] += 1
    assert found["both"] >= FLOORS[step][0] * found.total(), found


@pytest.mark.parametrize("seed", [7, 4391])
@pytest.mark.parametrize("step", FLOORS)
def test_most_pairs_are_named_and_none_is_named_wrongly(step, seed):
    every = FLOORS[step][1]
    first = 0 if seed == 7 else every // 2  # other pairs with another seed
    hold_the_floor(step, steps.pairs(step)[first::every], seed)


@pytest.mark.slow
@pytest.mark.parametrize("step", FLOORS)
def test_most_of_all_pairs_are_named_and_none_is_named_wrongly(step):
    hold_the_floor(step, steps.pairs(step), 7)


@pytest.mark.parametrize(
    ("step", "names"),
    [
        ("multi_head_attention", {"split by a bare reshape", "W_O forgotten"}),
        ("multi_head_attention", {"no scale", "W_O forgotten"}),
        ("multi_head_attention", {"no scale", "mask polarity flipped"}),
        ("multi_head_attention", {"W_O forgotten", "mask not handed on"}),
        ("multi_head_attention", {"attention without projections", "W_O forgotten"}),
        ("scaled_dot_product_attention", {"no scale", "mask polarity flipped"}),
        ("scaled_dot_product_attention", {"scores clipped", "mask added to the scores"}),
        ("causal_mask", {"True where the future is hidden", "the keys of the past not counted"}),
    ],
)
def test_a_common_pair_is_named(step, names):
    functions = [function for both, function in steps.pairs(step) if names_of(both, step) == names]
    assert functions
    for function in functions:
        result = CHECKS[step](function)
        assert set(result.misconceptions) == names
        assert result.unnamed == ()
        assert result.diagnosis.startswith("Two things are wrong or missing:\n")


@pytest.mark.parametrize(
    "step", ["softmax", "scaled_dot_product_attention", "multi_head_attention"]
)
def test_what_a_right_answer_contradicts_is_not_named(step):
    """Right code that fails in some cases, with the very words with which a mistake fails."""
    asked = steps.cases(step, 7)
    n_tried = 0
    for place, (entry, wrong) in enumerate(steps.CANDIDATES[step]):
        failing = [case for case in asked if case.wrong[place].error]
        if not failing or len(failing) == sum(place in case.mistaken for case in asked):
            continue
        shapes = [tuple(getattr(a, "shape", a) for a in case.args) for case in failing]

        def code(*args, wrong=wrong, shapes=shapes, **kwargs):
            if tuple(getattr(a, "shape", a) for a in args) in shapes:
                return wrong(*args, **kwargs)
            return RIGHT[step](*args, **kwargs)

        result = CHECKS[step](code)
        assert 0 < result.score < 1
        assert entry.name not in result.misconceptions
        n_tried += 1
    assert n_tried >= 2
