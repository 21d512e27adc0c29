"""The grader: submissions of every kind in one run of the command, stopped and taken up again."""

import csv
import hashlib
import html
import json
import os
import re
import signal
import subprocess
import sys
import time

import nbformat
import psutil
import pytest

from assignments.grader.execute import PROGRAM
from mha_lib.teaching import CATALOGUE
from tests.grader import assignment, submissions

ROOT = assignment.ROOT
pytestmark = pytest.mark.slow
WRITTEN = ["specialisation", "why_predicted", "why_mended", "why_memory", "why_reading"]
FULL = {
    "softmax": 2, "attention": 4, "split_heads": 2, "merge_heads": 2,
    "multi_head_attention": 5, "masks": 3, "budget": 2,
    "predicted": 2, "mended_head": 2, "memory": 2, "reading": 2,
}  # fmt: skip
# The cell of the assignment in which each step of the catalogue is written, if there is one.
CELLS = {
    "softmax": "softmax",
    "scaled_dot_product_attention": "attention",
    "split_heads": "split_heads",
    "merge_heads": "merge_heads",
    "multi_head_attention": "multi_head_attention",
    "causal_mask": "masks",
    "padding_mask": "masks",
    "count_parameters": "budget",
    "count_softmax_entries": "budget",
}
LOST = {  # what each kind of submission earns for its softmax, where that is less than full
    "blank", "syntax error", "import error", "loop in a function", "loop at top level",
    "loop that cannot be interrupted", "sys.exit", "os._exit", "50 processes",
    "endless recursion", *(kind for kind in submissions.CODE if kind.startswith("patches ")),
    "stops the watch", "shows points of its own", "shows no points", "rewrites the tests",
    "the library's function", "function and test deleted", "test edited", "replaces display",
    "switches the guard off",
}  # fmt: skip
TOKEN = f"token-{os.getpid()}"


def wrong_notebooks():
    """Return notebooks that hold all entries of the catalogue, and where each entry is.

    A notebook takes one entry for each cell, so that there are few of them.
    """
    by_cell = {}
    for entry in CATALOGUE:
        if entry.step in CELLS:
            by_cell.setdefault(CELLS[entry.step], []).append(entry)
    notebooks, places = {}, []
    for i in range(max(map(len, by_cell.values()))):
        student, exchanged = f"catalogue-{i}", {}
        for cell, entries in by_cell.items():
            if i < len(entries):
                entry = entries[i]
                exchanged[cell] = (
                    f"{submissions.solutions()[cell]}\n\n\n"
                    f"{submissions.pasted_catalogue()}\n"
                    f"names = [entry.name for entry in CATALOGUE]\n"
                    f"{entry.step} = CATALOGUE[names.index({entry.name!r})].function"
                )
                places.append((entry, student, cell))
        notebooks[student] = submissions.submission(**exchanged)
    return notebooks, places


WRONG, PLACES = wrong_notebooks()


def command(*arguments):
    return [sys.executable, "-m", "assignments.grader", *map(str, arguments), "--jobs", "2"]


def run(*arguments):
    done = subprocess.run(  # noqa: S603
        command(*arguments), cwd=ROOT, capture_output=True, text=True, timeout=900, check=False
    )
    return done.returncode, done.stdout, done.stderr


def prints(folder):
    """Return a fingerprint and the time of every file in a folder."""
    return {
        path.relative_to(folder).as_posix(): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
        )
        for path in folder.rglob("*")
        if path.is_file()
    }


def table(out):
    with (out / "grades.csv").open(newline="", encoding="utf-8-sig") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def safe(kind):
    return re.sub(r"[^A-Za-z0-9._-]+", "_", kind).strip("._-")


class Batch:
    """One folder of submissions, graded by a run that was killed and by another that went on."""

    def __init__(self, folder):
        self.folder, self.out = folder / "handed in", folder / "results"
        self.folder.mkdir()
        for kind, data in submissions.all_kinds(TOKEN).items():
            (self.folder / f"{kind}.ipynb").write_bytes(data)
        for student, notebook in WRONG.items():
            nbformat.write(notebook, self.folder / f"{student}.ipynb")
        self.before = prints(self.folder)

        killed = subprocess.Popen(  # noqa: S603
            command(self.folder, self.out), cwd=ROOT, stderr=subprocess.DEVNULL
        )
        finished = self.out / "results"
        while len(list(finished.glob("*.json"))) < 5 and killed.poll() is None:
            time.sleep(0.1)
        killed.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        killed.wait()
        self.after_the_kill = prints(finished)
        self.code, self.said, self.progress = run(self.folder, self.out)
        self.rows = table(self.out)
        self.report = (self.out / "report.html").read_text("utf-8")  # further runs change it
        self.results = {
            path.stem: json.loads(path.read_text("utf-8")) for path in finished.glob("*.json")
        }


@pytest.fixture(scope="module")
def batch(tmp_path_factory):
    return Batch(tmp_path_factory.mktemp("grader"))


def points(batch, student):
    row = batch.rows[student]
    return {part: float(row[part]) for part in FULL}


# --- what each submission gets ----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["good", *submissions.CODE])
def test_a_mistake_in_one_part_costs_that_part(batch, kind):
    student = safe(kind)
    part = submissions.CODE.get(kind, (None,))[0]
    got = points(batch, student)
    for name, most in FULL.items():
        if name == part and kind in LOST:
            assert got[name] == 0, name
        elif name == part == "split_heads":
            assert 0 <= got[name] < most
        else:
            assert got[name] == most, name


def test_a_blank_earns_nothing(batch):
    assert points(batch, "blank") == dict.fromkeys(FULL, 0)
    row = batch.rows["blank"]
    assert (row["total"], row["out_of"], row["to_be_marked"]) == ("0", "42", "")


def test_the_reference_earns_all_that_needs_no_person(batch):
    row = batch.rows["good"]
    assert (row["total"], row["out_of"], row["to_be_marked"]) == ("28", "42", "; ".join(WRITTEN))


@pytest.mark.parametrize(
    ("entry", "student", "cell"), PLACES, ids=[entry.name for entry, _, _ in PLACES]
)
def test_every_entry_of_the_catalogue_loses_marks_and_is_named(batch, entry, student, cell):
    assert points(batch, student)[cell] < FULL[cell]
    assert batch.results[student]["checks"][f"test_{cell}"]["misconceptions"] == [entry.name]
    page = (batch.out / "feedback" / f"{student}.html").read_text("utf-8")
    assert entry.sentence in html.unescape(page)


def test_all_entries_that_the_assignment_asks_for_were_tried():
    asked = [entry for entry in CATALOGUE if entry.step != "combine_masks"]
    assert len(PLACES) == len(asked)


@pytest.mark.parametrize("kind", ["test deleted", "solution cell twice", "not UTF-8"])
def test_what_can_be_put_right_costs_nothing(batch, kind):
    assert points(batch, safe(kind)) == FULL


@pytest.mark.parametrize(
    ("kind", "remark"),
    [
        ("test deleted", "the cell test_softmax was missing; it was put back"),
        ("function and test deleted", "the cell softmax was missing; it was put back"),
        ("test edited", "the cell test_softmax was changed; it was put back"),
        ("solution cell twice", "the cell softmax is there 2 times"),
        ("installs", "a line that installs packages was left out"),
    ],
)
def test_what_was_put_right_is_said(batch, kind, remark):
    assert remark in batch.rows[safe(kind)]["remarks"]


@pytest.mark.parametrize("kind", ["function and test deleted", "test edited"])
def test_deleting_or_editing_a_test_gains_nothing(batch, kind):
    assert points(batch, safe(kind)) == FULL | {"softmax": 0}


@pytest.mark.parametrize(
    ("kind", "flag"),
    [
        ("patches the checks", "mha_lib.teaching.check_softmax"),
        ("patches builtins", "builtins.all"),
        ("patches builtins while the checks run", "builtins.abs"),
        ("patches NumPy", "numpy.ndarray"),
        ("patches isnan", "math.isnan"),
        ("patches the comparison", "answers.complaint"),
        ("patches what is prepared", "steps.STEPS"),
        ("patches the checks while they run", "CheckResult.score"),
        ("stops the watch", "softmax of mha_lib"),
        ("the library's function", "softmax of mha_lib"),
    ],
)
def test_what_a_person_should_see_is_flagged(batch, kind, flag):
    assert flag in batch.rows[safe(kind)]["look_at"]
    assert safe(kind) in batch.said


def test_nobody_honest_is_flagged(batch):
    honest = {"good", "blank", "warns", "installs", "slow", "10_GB", *WRONG}
    assert not any(batch.rows[student]["look_at"] for student in honest)


# --- what cannot be graded --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("invalid JSON", "no valid JSON"),
        ("empty file", "empty"),
        ("a list", "no notebook"),
        ("not a notebook", "no notebook"),
        ("another assignment", "another assignment"),
    ],
)
def test_what_cannot_be_graded_has_no_total_but_a_reason(batch, kind, reason):
    row = batch.rows[safe(kind)]
    assert (row["status"], row["total"]) == ("not graded", "")
    assert reason in row["remarks"]
    assert f"{kind}.ipynb" in batch.said
    assert reason in (batch.out / "feedback" / f"{safe(kind)}.html").read_text("utf-8")


def test_the_exit_code_and_the_summary_say_that_some_are_missing(batch):
    n = len(batch.rows)
    assert batch.code == 1
    assert f"Graded {n - 5} of {n} submissions" in batch.said
    assert f"{n}/{n}" in batch.progress  # the bar came to its end


# --- nothing is lost, nothing is left ---------------------------------------------------------


def test_originals_stay_as_they_are(batch):
    assert prints(batch.folder) == batch.before


def test_no_process_is_left(batch):
    def lines():
        for process in psutil.process_iter():
            try:
                yield " ".join(process.cmdline())
            except psutil.Error:
                continue

    program = PROGRAM.format(packages=[], root=str(ROOT)).splitlines()[-2]
    assert not [line for line in lines() if TOKEN in line or program in line]


def test_nothing_is_written_outside_the_folder(batch):
    trouble = nbformat.read(
        next((batch.out / "course" / "autograded" / "writes_outside_its_folder").rglob("*.ipynb")),
        as_version=4,
    )
    errors = [
        output.evalue
        for cell in trouble.cells
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    ]
    assert len(errors) == 1
    assert "to its own folder only" in errors[0]


def test_too_much_memory_is_an_error_in_its_cell(batch):
    file = next((batch.out / "course" / "autograded" / "10_GB").rglob("*.ipynb"))
    assert "Unable to allocate" in file.read_text("utf-8")


def test_output_is_kept_within_bounds(batch):
    file = next((batch.out / "course" / "autograded" / "large_and_odd_output").rglob("*.ipynb"))
    assert "the rest is left out" in file.read_text("utf-8")
    assert file.stat().st_size < 300_000


def test_a_killed_run_goes_on_where_it_was(batch):
    done = batch.after_the_kill
    assert 5 <= len(done) < len(batch.rows)
    now = prints(batch.out / "results")
    assert {name: now[name] for name in done} == done
    assert f"{len(done)} were done before" in batch.said


def test_a_second_run_grades_only_what_is_new_or_changed(batch):
    before = prints(batch.out / "results")
    softmax = submissions.submission(softmax="def softmax(z):\n    return z")
    nbformat.write(softmax, batch.folder / "blank.ipynb")
    nbformat.write(submissions.submission(), batch.folder / "late.ipynb")
    try:
        code, said, _ = run(batch.folder, batch.out)
        assert code == 1
        assert f"{len(batch.rows) - 1} were done before" in said
        after = prints(batch.out / "results")
        assert {name for name in after if after[name] != before.get(name)} == {
            "blank.json",
            "late.json",
        }
        rows = table(batch.out)
        assert rows["blank"]["split_heads"] == "2"
        assert rows["late"]["total"] == "28"
    finally:
        (batch.folder / "late.ipynb").unlink()


def test_marks_that_a_person_gives_are_taken_up(batch):
    from nbgrader.api import Gradebook

    database = f"sqlite:///{(batch.out / 'course' / 'gradebook.db').as_posix()}"
    name = "multi_head_attention"
    with Gradebook(database) as gradebook:  # as the formgrader does
        grade = gradebook.find_grade("specialisation", name, name, "good")
        grade.manual_score, grade.needs_manual_grade = 3, False
        comment = gradebook.find_comment("specialisation", name, name, "good")
        comment.manual_comment = "A <good> start"
        gradebook.db.commit()
    run(batch.folder, batch.out)
    row = table(batch.out)["good"]
    assert (row["total"], row["specialisation"]) == ("31", "3")
    assert row["to_be_marked"] == "; ".join(WRITTEN[1:])
    page = (batch.out / "feedback" / "good.html").read_text("utf-8")
    assert '>31</td><td class="number">42</td>' in page
    assert "A &lt;good&gt; start" in page


# --- the report -------------------------------------------------------------------------------


def test_the_class_report_counts_students_not_checks(batch):
    page = html.unescape(batch.report)
    who = {}
    for student, result in batch.results.items():
        for check in result["checks"].values():
            for name in check["misconceptions"]:
                who.setdefault(name, set()).add(student)
    n_graded = sum(not result["problem"] for result in batch.results.values())
    for name, students in who.items():
        text = page.split(f"<dt>{name}: {len(students)} of {n_graded}</dt>")[1].split("<dt>")[0]
        assert students == set(text.split("<dd>")[2].split("</dd>")[0].split(", ")), name
    assert page.count("<svg") == 2
    assert "Déjà vu" in page  # an answer for a person to mark


def test_the_class_report_lists_every_student(batch):
    for student, row in batch.rows.items():
        link = f'<a href="feedback/{student}.html">{student}</a></th>'
        total = row["total"] or "-"
        cells = batch.report.split(link)[1].split("</tr>")[0].replace("\n", "")
        assert html.unescape(cells).startswith(f"<td>{row['name']}</td>")
        assert f'<td class="number">{total}</td>' in cells
        assert (batch.out / "feedback" / f"{student}.html").exists()


def test_pages_ask_nobody_for_anything(batch):
    for page in [batch.out / "report.html", *(batch.out / "feedback").glob("*.html")]:
        text = re.sub(r'xmlns(:\w+)?="[^"]*"', "", page.read_text("utf-8"))
        assert not re.search(r'(src|href)="(?!#)[^"]*//|url\(\s*["\']?http|@import', text), page


def test_hidden_tests_do_not_reach_the_students(batch):
    for page in (batch.out / "feedback").glob("*.html"):
        text = page.read_text("utf-8")
        assert "HIDDEN" not in text
        assert "4391" not in text
