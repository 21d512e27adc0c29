"""What each step is: its right function, and inputs in which no mistake hides."""

import subprocess
import sys

import numpy as np
import pytest

import mha_lib
from mha_lib.teaching import prepare, right_function, steps
from tests.teaching.students import CHECKS, LIBRARY, STEPS


@pytest.mark.parametrize("step", STEPS)
def test_the_right_function_is_the_librarys(step):
    if hasattr(mha_lib, step):
        assert right_function(step) is getattr(mha_lib, step)
    else:
        assert right_function(step)(14, 7) == LIBRARY[step](14, 7) > 0
    with pytest.raises(ValueError, match="there is no step 'nothing': use one of softmax, "):
        right_function("nothing")


@pytest.mark.parametrize("step", STEPS)
def test_another_seed_gives_other_inputs_and_the_same_seed_the_same(step):
    def inputs(seed):
        seen = []

        def note(*args, **kwargs):
            arrays = [*args, *(kwargs[name] for name in sorted(kwargs))]
            seen.append([(np.shape(a), np.asarray(a).tolist()) for a in arrays if a is not None])

        CHECKS[step](note, seed=seed)
        return seen

    assert inputs(7) == inputs(np.int64(7))
    assert all(first != second for first, second in zip(inputs(7), inputs(8), strict=True))
    if step not in ("causal_mask", "count_parameters", "count_softmax_entries"):
        shapes = [[[shape for shape, _ in case] for case in inputs(seed)] for seed in (7, 8)]
        assert shapes[0] == shapes[1]


def test_no_input_of_a_check_has_sizes_under_which_all_mistakes_hide():
    """At least one case of each check has different sizes along all axes."""
    for step in STEPS:
        cases = steps.cases(step, 7)
        for candidate, (entry, _) in enumerate(steps.CANDIDATES[step]):
            right_anyway = [
                case.name
                for case in cases
                if case.wrong[candidate].equals(case.right, case.tolerance)
            ]
            assert len(right_anyway) < len(cases), (step, entry.name)
            assert [candidate not in case.mistaken for case in cases] == [
                case.name in right_anyway for case in cases
            ]


def test_what_is_prepared_is_not_computed_again(monkeypatch):
    """Whatever happens to NumPy or the library afterwards, the right answers stay."""
    assert prepare(np.int64(103)) == 103
    before = {step: steps.cases(step, 103) for step in STEPS}
    monkeypatch.setattr(steps, "compute", lambda *_: pytest.fail("an answer is computed"))
    assert all(steps.cases(step, 103) is before[step] for step in STEPS)
    assert all(case.wrong is not None and case.mistaken for step in STEPS for case in before[step])


def test_the_library_loads_no_checks_and_the_checks_compute_nothing_before_they_are_asked():
    command = (
        "import sys, mha_lib; loaded = 'mha_lib.teaching' in sys.modules; "
        "from mha_lib.teaching import steps; print(loaded, len(steps._CASES))"
    )
    result = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", command], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["False", "0"]
