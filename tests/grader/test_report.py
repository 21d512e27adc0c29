"""Tables, pages and the comparison of answers."""

import csv
import io
import re

import pytest

from assignments.grader import __main__ as grader
from assignments.grader import collect, exports, report, similar
from assignments.grader.roster import Person


def result(student, name="", flags=(), **person):
    one = collect.Submission(student, f"{student}.ipynb", bytes, name=name,
                             person=Person(name, **person))  # fmt: skip
    made = grader._result(one, "") | {"flags": list(flags)}
    return made | grader._about(one, made)


def rows(text):
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))


MARKS = {
    "ann": {"softmax": (2, 2, False), "question": (3, 4, False)},
    "bob": {"softmax": (1.5, 2, False), "question": (0, 4, True)},
}
CLASS = [
    result("ann", "Müller-Lüdenscheidt, José", canvas="4711", login="jml", email="j@x.org"),
    result("bob", "O'Brien", id="b7"),
]


def test_open_marks_do_not_reach_a_system():
    """Canvas would delete the mark of an empty cell; a sum without it would be wrong."""
    canvas = rows(exports.canvas(CLASS, MARKS, "HW"))
    assert list(canvas[0]) == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "HW"]
    assert (canvas[0]["Student"], canvas[0]["HW"]) == ("    Points Possible", "6")
    assert [(row["Student"], row["ID"], row["SIS Login ID"], row["HW"]) for row in canvas[1:]] == [
        ("Müller-Lüdenscheidt, José", "4711", "jml", "5")
    ]
    moodle = rows(exports.moodle(CLASS, MARKS, {"ann": "Well done"}))
    assert [(row["Email address"], row["Grade"], row["Feedback comments"]) for row in moodle] == [
        ("j@x.org", "5", "Well done")
    ]
    # Moodle's worksheet is refused without these three.
    assert {"Identifier", "Grade", "Last modified (grade)"} <= set(moodle[0])


def test_a_number_of_another_system_is_no_number_of_canvas():
    marks = {"bob": {"softmax": (2, 2, False)}}
    assert rows(exports.canvas(CLASS, marks, "HW"))[1]["ID"] == ""
    assert rows(exports.canvas(CLASS, marks, "HW"))[1]["SIS User ID"] == "b7"


def test_grades_have_a_row_for_each_and_excel_reads_the_names():
    lacking = collect.Submission("eve", "", None, collect.NOTHING, "Eve", Person("Eve", id="e1"))
    made = grader._result(lacking, "", lacking.problem)
    everybody = [*CLASS, made | grader._about(lacking, made)]
    text = exports.grades(everybody, MARKS, ["softmax", "question"])
    assert text.startswith("\ufeff")
    table = {row["student"]: row for row in rows(text)}
    assert [row["status"] for row in table.values()] == ["graded", "graded", "nothing handed in"]
    assert table["ann"]["total"] == "5"
    assert (table["bob"]["total"], table["bob"]["to_be_marked"]) == ("1.5", "question")
    assert (table["eve"]["id"], table["eve"]["total"]) == ("e1", "")
    assert table["bob"]["name"] == "O'Brien"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("\uff1d1+1", "'\uff1d1+1"),  # some spreadsheets take the wide one as well
        ("+49 170", "'+49 170"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-2+3", "'-2+3"),
        ("\t=1", "'=1"),
        ("-1.5", "-1.5"),
        ("O'Brien", "O'Brien"),
        ("Müller-Lüdenscheidt", "Müller-Lüdenscheidt"),
        ("李 雷", "李 雷"),
        ("", ""),
    ],
)
def test_no_cell_is_a_formula_and_no_name_is_harmed(text, shown):
    assert exports.cell(text) == shown


def test_marks_that_are_open_do_not_count():
    assert exports.total({"a": (2, 2, False), "b": (3, 4, True), "c": (5, 4, False)}) == 6


def test_places_to_read_are_links_where_the_book_is():
    line = "Read on in chapter 2, 'Step 2: split'. <b>"
    assert "<a" not in report._linked(line, "")
    linked = report._linked(line, "https://example.org/book/")
    address = "https://example.org/book/chapters/02_split_attend_concat_project.html#step-2-split"
    assert f'<a href="{address}">chapter 2, ' in linked
    assert "&lt;b&gt;" in linked
    assert "06_watch_out_for.html#mistakes-with-masks" in report._linked(
        "Watch out for, 'Mistakes with masks'", "https://example.org"
    )


# --- what is alike ----------------------------------------------------------------------------

OWN = """def attend(q, k, v):
    # first all products, then one row at a time
    table = np.zeros((len(q), len(k)))
    for i, row in enumerate(q):
        table[i] = [sum(a * b for a, b in zip(row, other)) for other in k]
    table /= len(k[0]) ** 0.5
    return softmax(table) @ v
"""
LOOPS = """def attend(q, k, v):
    out = []
    for one in q:
        weight = np.exp((k * one).sum(axis=1) / np.sqrt(k.shape[-1]))
        out.append((weight[:, None] * v).sum(0) / weight.sum())
    return np.stack(out)
"""
SOLUTION = """def attend(q, k, v):
    d_k = q.shape[-1]
    compared = q @ k.swapaxes(-1, -2) / np.sqrt(d_k)
    return softmax(compared) @ v
"""


def alike(*codes, given=SOLUTION):
    answers = {f"s{i}": {"attend": (code, True)} for i, code in enumerate(codes)}
    return similar.pairs(answers, {"attend": [(given, True)]})


def test_other_names_do_not_hide_a_copy():
    renamed = OWN.replace("table", "grid").replace("row", "line").replace("other", "key")
    assert [row[:2] for row in alike(OWN, LOOPS, renamed)] == [("s0", "s2")]
    assert alike(OWN, LOOPS, OWN)[0][3:] == (1.0, "yes")
    assert alike(OWN, renamed)[0][4] == "no"


def test_what_the_solution_or_the_class_shares_says_nothing():
    assert alike(SOLUTION, SOLUTION.replace("compared", "s"), LOOPS) == []
    assert alike(*[OWN] * 6) == []
    assert len(alike(*[OWN] * 4, *[LOOPS] * 30)) == 6


def test_written_answers_are_compared_by_their_words():
    answer = (
        "The heads before training reach as much by luck, so nothing follows from this number "
        "alone, and a map says where a head looks but not whether anybody needs what it sees."
    )
    texts = [answer, answer.replace("luck", "chance"), "She is right, since accuracy stays."]
    answers = {f"s{i}": {"question": (text, False)} for i, text in enumerate(texts)}
    assert [row[:3] for row in similar.pairs(answers, {})] == [("s0", "s1", "question")]


def test_code_that_is_not_finished_is_compared_as_well():
    broken = OWN.replace("enumerate(q):", "enumerate(q:")
    assert len(alike(broken, broken)) == 1


def test_hints_of_the_feedback_unfold_step_by_step():
    """As in the notebook; a system that shows one line gets the question alone."""
    hints = [
        {step: f"{step} {i}" for step in ("question", "idea", "place")} for i in range(2)
    ]  # fmt: skip
    steps = ["\n".join(hint.values()) for hint in hints]
    diagnosis = "\n".join(["Before.", steps[0], "Between.", steps[1], "After."])
    check = {"verdict": "wrong", "diagnosis": diagnosis, "hints": hints}
    made = {"checks": {"test_softmax": check}, "troubles": {}}
    parts = report._parts(made, {"softmax": (0, 2, False)}, {})
    assert parts[0]["told"] == ["Before.", hints[0], "Between.", hints[1], "After."]
    words = report._in_words(parts)
    assert "Before. | question 0 | Between. | question 1 | After." in words
    page = report.TEMPLATES.get_template("feedback.html").render(
        result=CLASS[0], parts=parts, score=0, most=2, linked=lambda text: report._linked(text, "")
    )
    folded = re.sub(r"<details>.*</details>", "", page, flags=re.S)
    assert "question 0" in folded
    for step in ("idea", "place"):
        assert f"<p>{step} 0</p>" in page
        assert f"{step} 0" not in folded
    right = check | {"verdict": "right"}
    assert not report._parts(made | {"checks": {"test_softmax": right}},
                             {"softmax": (2, 2, False)}, {})[0]["told"]  # fmt: skip
