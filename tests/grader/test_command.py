"""The command itself: mistaken calls, limits, and what goes wrong with the grader."""

import os
import zipfile

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
        ("empty", "text.txt/out", "Not a directory"),
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("odd")])
@pytest.mark.slow
def test_a_run_that_is_stopped_writes_its_report_and_goes_on(tmp_path, monkeypatch, capsys, error):
    from assignments.grader import __main__ as grader

    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for name in ("ann", "bob", "eve"):
        nbformat.write(submissions.submission(), folder / f"{name}.ipynb")
    (folder / "dan.pdf").write_bytes(b"")
    run_all = grader._run_all

    def stops(*arguments):
        for result in run_all(*arguments):
            yield result
            if not result["problem"]:
                raise error

    with monkeypatch.context() as patch:
        patch.setattr(grader, "_run_all", stops)
        assert grader.main([str(folder), str(out), "--jobs", "1"]) == 2
    assert "What is graded is kept" in capsys.readouterr().err
    rows = table(out)
    assert set(rows) == {"ann", "bob", "dan", "eve"}
    assert sum(row["status"] == "graded" for row in rows.values()) == 1
    assert sum("had to stop" in row["remarks"] for row in rows.values()) >= 2
    assert (out / "report.html").exists()
    code, said, _ = run(folder, out)
    assert code == 1
    assert [row["status"] for row in table(out).values()].count("graded") == 3
    assert "1 were done before" in said or "2 were done before" in said


@pytest.mark.slow
def test_a_class_with_a_roster_from_the_archive_to_the_tables(tmp_path):
    """All that the instructors' page says of OUT, in one run of the command and a second one."""
    from nbgrader.api import Gradebook

    good = nbformat.writes(submissions.submission(specialisation="An answer")).encode()
    submitted = tmp_path / "submissions.zip"
    with zipfile.ZipFile(submitted, "w") as archive:
        archive.writestr("leeann_LATE_4711_98765_multi_head_attention-1.ipynb", good)
        archive.writestr("李雷_12_98766_multi_head_attention.ipynb", good)
        archive.writestr("smithjo_13_98767_essay.pdf", b"%PDF")
    listed = tmp_path / "roster.csv"
    listed.write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section,HW\n    Points Possible,,,,,24\n"
        '"Lee, Ann",4711,S1,alee,A,\n李雷,12,S2,lei,A,\n"Gone, Away",15,S3,away,A,\n',
        "utf-8-sig",
    )
    out = tmp_path / "out"
    options = ("--roster", listed, "--book", "https://example.org/book")
    code, said, _ = run(submitted, out, *options)
    assert code == 1
    assert "Graded 2 of 3 submissions" in said
    assert "Handed in nothing: 1\n  Gone, Away" in said
    assert "Late: leeann_4711" in said
    rows = {row["name"]: row for row in table(out).values()}
    assert set(rows) == {"Lee, Ann", "李雷", "smithjo", "Gone, Away"}
    assert rows["Lee, Ann"]["late"] == "late"
    assert rows["smithjo"]["look_at"] == "is not in the roster"
    assert len((out / "canvas.csv").read_text("utf-8").splitlines()) == 2  # nobody is final yet
    database = f"sqlite:///{(out / 'course' / 'gradebook.db').as_posix()}"
    with Gradebook(database) as gradebook:
        submission = gradebook.find_submission("multi_head_attention", "leeann_4711")
        open_ones = [g for notebook in submission.notebooks for g in notebook.grades
                     if g.needs_manual_grade]  # fmt: skip
        assert sum(grade.max_score for grade in open_ones) == 14
        for grade in open_ones:
            grade.manual_score, grade.needs_manual_grade = grade.max_score - 0.5, False
        total = sum(FULL.values()) + 14 - len(open_ones) / 2
        gradebook.db.commit()
    # Graded anew, with other limits: the marks stay.
    code, said, _ = run(submitted, out, *options, "--seconds", "70")
    assert "0 were done before" in said
    assert table(out)["leeann_4711"]["total"] == f"{total:g}"
    assert f'"Lee, Ann",4711,S1,alee,A,{total:g}\n' in (out / "canvas.csv").read_text("utf-8")
    page = (out / "feedback" / "leeann_4711.html").read_text("utf-8")
    assert "Feedback for Lee, Ann" in page
    assert "What went well" in page
    text = (ROOT / "chapters" / "for_instructors.md").read_text("utf-8")
    for path in out.iterdir():
        shown = f"`{path.name}/`" if path.is_dir() else f"`{path.name}`"
        assert text.split("`OUT` then holds:")[1].count(shown) >= 1, path


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
