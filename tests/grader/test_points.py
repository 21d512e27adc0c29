"""Points stand in one place, and what contradicts it is refused."""

import copy
import json

import nbformat
import pytest

from assignments.grader import points
from assignments.grader.course import Course
from tests.grader import assignment


@pytest.fixture(scope="module")
def source():
    return nbformat.read(assignment.SOURCE, as_version=4)


def changed(source, before, after):
    text = nbformat.writes(source)
    assert before in text
    return nbformat.reads(text.replace(before, after, 1), as_version=4)


def test_the_assignment_and_all_that_speaks_of_its_points_agree(source):
    assert points.contradictions(source) == []
    assert points.elsewhere(source) == []
    assert points.main() == 0


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("2 * result.score", "3 * result.score", "the last line of test_softmax gives 3 points"),
        ('"points": 4', '"points": 5', "its cells give 5"),
        ("(4 points, about", "(6 points, about", "says 6 points, its cells give 4"),
        ("(4 points, about", "(about", "names no points"),
        ("| 2 | attention | 4 |", "| 2 | attention | 3 |", "the table says 3 points for part 2"),
        ("42 points in all", "43 points in all", "the text says 43 points, the cells 42"),
        ("42 points in all", "up to 41 points", "the text says 41 points, the cells 42"),
    ],
)
def test_a_contradiction_is_named(source, before, after, said):
    found = points.contradictions(changed(source, before, after))
    assert any(said in text for text in found), found


@pytest.mark.parametrize("at", range(3))
def test_other_pages_are_held_to_it(source, tmp_path, at):
    path, pattern, kinds = points.SAID[at]
    other = tmp_path / path.name
    text = path.read_text("utf-8")
    other.write_text(text, "utf-8")
    assert points.elsewhere(source, [(other, pattern, kinds)]) == []
    more = copy.deepcopy(source)
    for name in ("test_softmax", "specialisation"):
        assignment.graded(more)[name].metadata.nbgrader["points"] += 1
    assert len(points.elsewhere(more, [(other, pattern, kinds)])) == len(kinds)
    other.write_text("nothing", "utf-8")
    assert "does not name the points" in points.elsewhere(source, [(other, pattern, kinds)])[0]


def test_the_grader_refuses_a_notebook_that_contradicts_itself(source, tmp_path):
    folder = tmp_path / "assignments" / "source" / assignment.NAME
    folder.parent.mkdir(parents=True)
    wrong = changed(source, "2 * result.score", "3 * result.score")
    folder.write_text(json.dumps(wrong), "utf-8")
    with pytest.raises(ValueError, match="contradicts itself: the last line of test_softmax"):
        Course(tmp_path / "course", tmp_path / "assignments")
    assert not (tmp_path / "course").exists()
