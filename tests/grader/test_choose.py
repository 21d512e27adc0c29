"""Assignments of some parts: what they hold, and that their reference solutions earn all."""

import re

import nbformat
import pytest

from assignments import choose
from tests.grader import assignment
from tests.grader.test_assignment import POINTS, marks, part_of, said

SETS = re.findall(
    r"^\| ([\d ]+) \| .* \| (\d+) \| (\d+) \| (\d+) \|$",
    (assignment.ROOT / "chapters" / "for_instructors.md").read_text("utf-8"),
    re.MULTILINE,
)


@pytest.fixture(scope="module")
def source():
    return nbformat.read(assignment.SOURCE, as_version=4)


def numbers(text):
    return [int(number) for number in text.split()]


def test_the_sets_of_the_instructors_page_are_all_parts_in_20_to_30_minutes():
    assert sorted(n for parts, *_ in SETS for n in numbers(parts)) == list(range(1, 13))
    assert all(20 <= int(minutes) <= 30 for *_, minutes in SETS)


@pytest.mark.parametrize(("parts", "points", "by_hand", "minutes"), SETS)
def test_a_set_has_the_points_and_minutes_that_the_page_says(
    source, parts, points, by_hand, minutes
):
    chosen = choose.choose(source, numbers(parts))
    cells = assignment.graded(chosen)
    expected = {n: p for n, p in POINTS.items() if part_of(source, n) in numbers(parts)}
    assert {name: assignment.grading(cell).points for name, cell in cells.items()} == expected
    assert sum(expected.values()) == int(points)
    assert sum(p for n, p in expected.items() if not n.startswith("test_")) == int(by_hand)
    assert f"up to {points} points" in chosen.cells[0].source
    assert f"about {minutes} minutes" in chosen.cells[0].source
    assert len(re.findall(r"^\| \d+ \|", chosen.cells[0].source, re.M)) == len(numbers(parts))


def test_all_parts_with_hints_are_the_assignment_itself(source):
    assert choose.choose(source) == source


@pytest.mark.parametrize("helps", [True, False])
@pytest.mark.parametrize("parts", [parts for parts, *_ in SETS])
def test_the_reference_earns_all_and_the_blank_nothing_in_every_set(source, parts, helps, tmp_path):
    chosen = choose.choose(source, numbers(parts), helps)
    assignment.run(chosen, tmp_path)
    for name, mark in marks(chosen).items():
        assert mark == (POINTS[name] if name.startswith("test_") else None)
    for cell in chosen.cells:
        assert not [o for o in cell.get("outputs", []) if o.output_type == "error"], cell.source


def test_the_open_version_has_no_hints_and_the_same_checks(source):
    both = [choose.choose(source, helps=helps) for helps in (True, False)]
    with_hints, without = map(said, both)
    for words in ("<details>", "Read in the book:"):
        assert words in with_hints
        assert words not in without
    assert without.count("**Predict:**") == with_hints.count("**Predict:**")
    one, other = ({n: c.source for n, c in assignment.graded(nb).items()} for nb in both)
    assert one == other


def test_the_command_writes_a_course_whose_release_gives_nothing_away(tmp_path, capsys):
    assert choose.main([str(tmp_path / "out"), "--parts", "10", "--open"]) == 0
    release = tmp_path / "out" / "release" / choose.NAME
    assert assignment.leaks(release) == set()
    notebook = assignment.run(nbformat.read(release, as_version=4), tmp_path)
    assert marks(notebook) == {"test_mended_head": 0, "why_mended": 0}
    assert str(release) in capsys.readouterr().out


def test_a_part_that_is_not_there_is_named(tmp_path, capsys):
    with pytest.raises(SystemExit):
        choose.main([str(tmp_path), "--parts", "13"])
    assert "there is no part 13: choose from 1 to 12" in capsys.readouterr().err
