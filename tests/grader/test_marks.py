"""Marks that a person has given stay with the text that was read."""

import json
import shutil

import nbformat
import pytest
from nbgrader.api import Gradebook

from assignments.grader.course import Course
from assignments.grader.marks import GivenMarks, answers, digest
from tests.grader import assignment, submissions

NAME = "multi_head_attention"
ANSWER = "Her first conclusion does not follow, since untrained heads reach as much by chance."
OTHER = "All of her conclusions follow, since accuracy is what counts and it did not change."


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    root = tmp_path_factory.mktemp("course") / "course"
    Course(root, assignment.COURSE)
    return root


class Class:
    """A course in which notebooks are saved as they would be after a run."""

    def __init__(self, folder, empty):
        self.folder, self.empty = folder, empty
        shutil.copytree(empty, folder / "course")
        self.start()

    def start(self, *present):
        """Begin another run of the command, with these people."""
        self.given = GivenMarks(self.folder / "marks.json")
        self.book = Course(self.folder / "course", assignment.COURSE, self.given)
        self.given.present = set(present)
        self.book.note_given()

    def grade(self, student, **cells):
        data = nbformat.writes(submissions.submission(**cells)).encode()
        notebook, _ = self.book.prepared(data, student)
        for cell in notebook.cells:
            if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("grade"):
                points = nbformat.v4.new_output("execute_result", {"text/plain": "1.0"})
                cell.outputs = [points]
        return self.book.save(notebook, data, student, {})[2]

    def mark(self, student, score, cell="specialisation", comment=None, extra=None):
        """Give a mark, as the formgrader does."""
        with Gradebook(self.book.db_url) as gradebook:
            grade = gradebook.find_grade(cell, NAME, NAME, student)
            grade.manual_score, grade.extra_credit = score, extra
            grade.needs_manual_grade = score is None and grade.auto_score is None
            if comment:
                given = gradebook.find_comment(cell, NAME, NAME, student)
                given.manual_comment = comment
            gradebook.db.commit()

    def part(self, student, part="specialisation"):
        """Return points, whether a person must mark, and the comment."""
        marks, comments = self.book.marks([student])
        score, _, is_open = marks[student][part]
        return score, is_open, comments[student].get(part)

    def again(self, *students):
        return self.book.to_read_again(list(students))


@pytest.fixture
def course(tmp_path, empty):
    return Class(tmp_path, empty)


def test_a_mark_stays_when_the_notebook_is_graded_again(course):
    """As with other limits, or a new version of the library."""
    course.grade("ann", specialisation=ANSWER)
    assert course.part("ann") == (0, True, None)
    course.mark("ann", 3, comment="Good", extra=0.5)
    for _ in range(3):
        course.start("ann")
        course.grade("ann", specialisation=ANSWER)
        assert course.part("ann") == (3.5, False, "Good")
        assert course.again("ann") == []


@pytest.mark.parametrize(
    "cells",
    [
        {"specialisation": ANSWER, "softmax": "def softmax(z):\n    return z"},
        {"specialisation": f"\n{ANSWER}   \r\n"},
    ],
    ids=["other cells", "spaces at the end"],
)
def test_a_mark_stays_in_a_corrected_notebook(course, cells):
    course.grade("ann", specialisation=ANSWER)
    course.mark("ann", 3)
    course.start("ann")
    course.grade("ann", **cells)
    assert course.part("ann")[:2] == (3, False)


def test_a_mark_of_nothing_is_a_mark(course):
    course.grade("ann", specialisation=ANSWER)
    course.mark("ann", 0)
    course.start("ann")
    course.grade("ann", specialisation=ANSWER)
    assert course.part("ann")[:2] == (0, False)


def test_a_changed_answer_is_to_be_read_again_and_nothing_is_forgotten(course):
    course.grade("ann", specialisation=ANSWER)
    course.mark("ann", 3)
    course.start("ann")
    course.grade("ann", specialisation=OTHER)
    assert course.part("ann")[1]
    assert course.again("ann") == [("ann", "specialisation", 3)]
    course.start("ann")  # and still so
    course.grade("ann", specialisation=OTHER)
    assert course.part("ann")[1]
    assert course.again("ann") == [("ann", "specialisation", 3)]
    course.mark("ann", 1)
    assert course.again("ann") == []
    course.start("ann")
    course.grade("ann", specialisation=ANSWER)  # another attempt, with the first answer
    assert course.part("ann")[:2] == (3, False)
    course.start("ann")
    course.grade("ann", specialisation=OTHER)
    assert course.part("ann")[:2] == (1, False)


def test_marks_outlive_the_gradebook(course):
    course.grade("ann", specialisation=ANSWER)
    course.mark("ann", 2, comment="Say why")
    course.start("ann")
    shutil.rmtree(course.folder / "course")
    shutil.copytree(course.empty, course.folder / "course")
    course.start("ann")
    course.grade("ann", specialisation=ANSWER)
    assert course.part("ann") == (2, False, "Say why")


def test_a_mark_that_was_taken_back_stays_taken_back(course):
    course.grade("ann", specialisation=ANSWER)
    course.mark("ann", 3)
    course.start("ann")
    course.mark("ann", None)
    course.start("ann")
    course.grade("ann", specialisation=ANSWER)
    assert course.part("ann")[1]


def test_a_mark_given_while_the_command_runs_stays(course):
    course.grade("ann", specialisation=ANSWER)
    course.start("ann")
    course.mark("ann", 4)
    course.grade("ann", specialisation=ANSWER)
    assert course.part("ann")[:2] == (4, False)


def test_points_that_a_person_corrects_in_a_test_stay_with_the_code(course):
    wrong = "def softmax(z):\n    return z"
    course.grade("ann", softmax=wrong)
    course.mark("ann", 1.5, cell="test_softmax")
    course.start("ann")
    course.grade("ann", softmax=wrong, specialisation=OTHER)
    assert course.part("ann", "softmax")[:2] == (1.5, False)
    course.start("ann")
    course.grade("ann", softmax="def softmax(z):\n    return z + 1")
    assert course.part("ann", "softmax")[1]
    assert course.again("ann") == [("ann", "softmax", 1.5)]


def test_a_renamed_file_takes_its_mark_along(course):
    course.grade("ann", specialisation=ANSWER)
    course.mark("ann", 3)
    course.start("ann_final")
    flags = course.grade("ann_final", specialisation=ANSWER)
    assert course.part("ann_final")[:2] == (3, False)
    assert "specialisation: marked before, as ann" in flags


def test_nobody_takes_the_mark_of_somebody_who_is_there(course):
    course.grade("ann", specialisation=ANSWER)
    course.mark("ann", 3)
    course.start("ann", "bob")
    assert course.grade("bob", specialisation=ANSWER) == []
    assert course.part("bob")[1]


def test_a_short_answer_is_nobodys_in_particular(course):
    course.grade("ann", specialisation="No idea")
    course.mark("ann", 1)
    course.start("bob")
    course.grade("bob", specialisation="No idea")
    assert course.part("bob")[1]


def test_a_damaged_file_of_marks_stops_nothing(course):
    course.grade("ann", specialisation=ANSWER)
    course.mark("ann", 3)
    (course.folder / "marks.json").write_text('{"ann": ', "utf-8")
    course.start("ann")
    course.grade("ann", specialisation=ANSWER)
    assert course.part("ann")[:2] == (3, False)
    assert json.loads((course.folder / "marks.json").read_text("utf-8"))["ann"]


def test_a_damaged_notebook_of_the_course_stops_nothing(course):
    course.grade("ann", specialisation=ANSWER)
    course.mark("ann", 3)
    course.start("ann")
    next((course.folder / "course" / "autograded").rglob("*.ipynb")).write_text("{", "utf-8")
    course.start("ann")
    course.grade("ann", specialisation=ANSWER)
    assert course.part("ann")[:2] == (3, False)


def test_what_a_mark_belongs_to():
    notebook = submissions.submission(specialisation=ANSWER)
    texts = answers(notebook.cells)
    assert texts["specialisation"] == ANSWER
    assert texts["test_softmax"] == texts["softmax"] == submissions.solutions()["softmax"]
    assert digest("a \r\nb\n") == digest("a\nb")
    assert digest("a\n  b") != digest("a\nb")
