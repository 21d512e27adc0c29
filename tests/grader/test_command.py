"""The command itself: mistaken calls, limits, and what goes wrong with the grader."""

import os

import nbformat
import pytest

from tests.grader import assignment, submissions
from tests.grader.test_grader import FULL, ROOT, run, table


@pytest.mark.parametrize(
    ("submitted", "out", "message"),
    [
        ("missing", "out", "there is no"),
        ("empty", "out", "no notebook in"),
        ("empty", "empty/out", "lies in SUBMISSIONS"),
        ("text.txt", "out", "neither a folder, a zip nor a notebook"),
        ("empty", "text.txt", "is a file"),
        ("empty", "busy", "another grader"),
    ],
)
def test_a_mistaken_call_is_told(tmp_path, capsys, submitted, out, message):
    from assignments.grader.__main__ import main

    (tmp_path / "empty").mkdir()
    (tmp_path / "busy").mkdir()
    (tmp_path / "busy" / ".lock").write_text(str(os.getppid()), "utf-8")
    (tmp_path / "text.txt").write_text("", "utf-8")
    assert main([str(tmp_path / submitted), str(tmp_path / out)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--jobs", "--seconds", "--cell-seconds", "--megabytes"])
def test_a_limit_of_nothing_is_refused(option, capsys):
    from assignments.grader.__main__ import main

    with pytest.raises(SystemExit):
        main(["in", "out", option, "0"])
    assert f"{option} must be above 0" in capsys.readouterr().err


def test_a_damaged_grader_stops_until_it_is_whole_again(tmp_path, monkeypatch):
    from assignments.grader import __main__ as grader
    from assignments.grader.execute import Limits

    call = tmp_path / "ann.ipynb", tmp_path / "out", 1, Limits()
    nbformat.write(submissions.submission(), call[0])
    prints = iter(["whole", "damaged", "damaged"])
    monkeypatch.setattr(grader, "_tools_print", lambda: next(prints))
    with pytest.raises(grader.GraderDamagedError, match="while ann ran"):
        grader.grade(*call)
    assert not list((tmp_path / "out" / "results").glob("*.json"))
    assert "the run had to stop" in table(tmp_path / "out")["ann"]["remarks"]
    monkeypatch.setattr(grader, "_tools_print", lambda: "damaged")
    with pytest.raises(grader.GraderDamagedError, match="earlier submission"):
        grader.grade(*call)
    monkeypatch.setattr(grader, "_tools_print", lambda: "whole")
    assert grader.grade(*call) == 0


@pytest.mark.parametrize("error", [RecursionError("too deep"), KeyboardInterrupt()])
def test_what_stops_the_command_has_a_code_of_its_own(tmp_path, monkeypatch, capsys, error):
    from assignments.grader import __main__ as grader

    def stops(*_):
        raise error

    monkeypatch.setattr(grader, "grade", stops)
    assert grader.main([str(tmp_path / "in"), str(tmp_path / "out")]) == 2
    assert "What is graded is kept" in capsys.readouterr().err


def test_a_notebook_that_ends_the_grader_again_and_again_is_left_out(tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    out.mkdir()
    for name in ("ann", "bob"):
        nbformat.write(submissions.submission(), folder / f"{name}.ipynb")
    (out / "running.json").write_text('{"ann": 3, "bob": 2}', "utf-8")
    assert run(folder, out)[0] == 1
    rows = table(out)
    assert "the grader was ended 3 times while it ran" in rows["ann"]["remarks"]
    assert rows["bob"]["total"] == "28"
    (out / "running.json").unlink()
    assert run(folder, out)[0] == 0


def test_ending_the_process_that_judges_it_is_refused_or_passes(tmp_path):
    code = "import os, signal\n\nos.kill(os.getppid(), signal.SIGKILL)"
    nbformat.write(submissions.submission(softmax=code), tmp_path / "ann.ipynb")
    assert run(tmp_path / "ann.ipynb", tmp_path / "out")[0] == 0
    row = table(tmp_path / "out")["ann"]
    assert row["softmax"] == "0"
    assert "os.kill" in row["look_at"]


def test_a_judge_that_ends_is_told_and_passes(tmp_path, monkeypatch):
    from assignments.grader import __main__ as grader
    from assignments.grader import judge
    from assignments.grader.execute import Limits

    nbformat.write(submissions.submission(), tmp_path / "ann.ipynb")
    call = tmp_path / "ann.ipynb", tmp_path / "out", 1, Limits()
    with monkeypatch.context() as patch:
        patch.setattr(judge, "run_notebook", os.abort)  # with arguments it raises
        assert grader.grade(*call) == 1
    assert "ended with code 1" in table(tmp_path / "out")["ann"]["remarks"]
    assert grader.grade(*call) == 0


def test_another_assignment_needs_another_folder(tmp_path):
    from assignments.grader.course import Course

    source = tmp_path / "assignments" / "source" / assignment.NAME
    source.parent.mkdir(parents=True)
    source.write_bytes(assignment.SOURCE.read_bytes())
    (tmp_path / "assignments" / "nbgrader_config.py").write_bytes(
        (assignment.COURSE / "nbgrader_config.py").read_bytes()
    )
    Course(tmp_path / "course", tmp_path / "assignments")
    source.write_bytes(assignment.SOURCE.read_bytes().replace(b"4391", b"4392"))
    with pytest.raises(ValueError, match="choose another OUT"):
        Course(tmp_path / "course", tmp_path / "assignments")
    Course(tmp_path / "other", tmp_path / "assignments")


def test_marks_that_are_open_do_not_count():
    from assignments.grader.report import _total

    assert _total({"a": (2, 2, False), "b": (3, 4, True), "c": (5, 4, False)}) == 6


def test_the_pages_say_the_limits_and_the_points_that_hold():
    from assignments.grader.execute import Limits

    students, instructors = (
        (ROOT / "chapters" / f"for_{who}.md").read_text("utf-8")
        for who in ("students", "instructors")
    )
    limit = f"A cell may take {Limits().cell_seconds:g} seconds, and the whole notebook a minute"
    assert limit in students
    assert Limits().seconds == 60
    assert f"earns {sum(FULL.values())} points without you; 14 more" in instructors
