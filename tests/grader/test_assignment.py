"""The assignment: the students' version is current and tells nothing, and marks are fair."""

import base64
import contextlib
import copy
import io
import json
import re
import tomllib

import nbformat
import numpy as np
import pytest
from nbgrader.utils import determine_grade

from mha_lib.teaching import check_mended
from tests import notebooks
from tests.grader import assignment

POINTS = {
    "test_softmax": 2,
    "test_attention": 4,
    "test_split_heads": 2,
    "test_merge_heads": 2,
    "test_multi_head_attention": 5,
    "test_masks": 3,
    "test_budget": 2,
    "specialisation": 4,
    "test_predicted": 2,
    "why_predicted": 2,
    "test_mended_head": 2,
    "why_mended": 2,
    "test_memory": 2,
    "why_memory": 3,
    "test_reading": 2,
    "why_reading": 3,
}
TESTS = [name for name in POINTS if name.startswith("test_")]
CHECKED = [name for name in TESTS if name != "test_predicted"]
WRITTEN = [name for name in POINTS if name not in TESTS]
N_PARTS = 12
SITE = assignment.ROOT / "_build" / "html"


def read(path):
    return nbformat.read(path, as_version=4)


@pytest.fixture(scope="module")
def source():
    return read(assignment.SOURCE)


@pytest.fixture(scope="module")
def release():
    return read(assignment.RELEASE)


def said(notebook):
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


# --- the two notebooks ------------------------------------------------------------------------


def test_the_source_is_stored_without_outputs_in_its_normal_form(source):
    assert source == notebooks.normalised(source)
    assert assignment.SOURCE.read_text("utf-8") == f"{nbformat.writes(source)}\n"
    for cell in source.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_both_say_that_they_are_python(source, release):
    assert source.metadata == release.metadata == notebooks.METADATA


def test_the_students_version_is_current(tmp_path):
    fresh = assignment.generate(tmp_path)
    assert fresh.read_bytes() == assignment.RELEASE.read_bytes(), "run `make assignment`"
    written = {path for path in tmp_path.rglob("*") if path.is_file()}
    given_out = {path for path in written if path.is_relative_to(tmp_path / "release")}
    assert given_out == {fresh}
    assert not [path for path in written if path.suffix in (".db", ".log")]


def test_points_add_up_and_the_text_says_the_same(source, release):
    for notebook in (source, release):
        cells = assignment.graded(notebook)
        assert {name: assignment.grading(cell).points for name, cell in cells.items()} == POINTS
    heading = r"^## (\d+)\. .* \((\d) points, about (\d+) minutes\)"
    headings = re.findall(heading, said(source), re.M)
    table = re.findall(r"^\| (\d+) \| .* \| (\d) \| (\d+) \|$", said(source), re.M)
    assert headings == table
    numbers, points, minutes = ([int(n) for n in column] for column in zip(*table, strict=True))
    assert numbers == list(range(1, N_PARTS + 1))
    of_parts = [0] * N_PARTS
    for name, most in POINTS.items():
        of_parts[part_of(source, name) - 1] += most
    assert points == of_parts
    by_code, by_hand = (sum(POINTS[name] for name in names) for names in (TESTS, WRITTEN))
    assert by_hand * 3 == by_code + by_hand
    told = f"{sum(points)} points in all: {by_code} for what you write in code, {by_hand} for what"
    assert told in said(source)
    assert f"about {sum(minutes)} minutes, without installation and reading" in said(source)


def part_of(notebook, name):
    """Return the number of the part in which a graded cell stands."""
    numbers = []
    for cell in notebook.cells:
        numbers += re.findall(r"^## (\d+)\. ", cell.source, re.M)
        if assignment.grading(cell).get("grade_id") == name:
            return int(numbers[-1])
    raise ValueError(name)


def test_the_cells_that_students_fill_in_are_the_only_ones_they_may_change(release):
    stub = "# YOUR CODE HERE\n    raise NotImplementedError()"
    n_functions = 0
    predicted = next(cell for cell in release.cells if cell.id == "predicted")
    assert predicted.source.count("None,") == 5
    for cell in release.cells:
        about = assignment.grading(cell)
        assert about.get("locked", False) == (cell.metadata.get("editable") is False)
        if cell is predicted:
            assert cell.source.endswith(stub.replace("    ", ""))
        elif about.get("solution") and cell.cell_type == "code":
            assert cell.source.count(stub) == cell.source.count("def ") > 0
            n_functions += cell.source.count(stub)
        elif cell.cell_type == "code":
            assert "NotImplementedError" not in cell.source
    assert n_functions == 16
    assert "sixteen short functions" in said(release)
    for name in WRITTEN:
        assert assignment.graded(release)[name].source == "YOUR ANSWER HERE"


@pytest.mark.parametrize("name", [name for name in TESTS if name != "test_predicted"])
def test_a_test_cell_imports_what_it_uses_and_ends_in_the_points(source, name):
    """And its hidden test is the visible check with another seed, one for the whole course."""
    lines = assignment.graded(source)[name].source.splitlines()
    visible, begin, hidden, end = lines[3:7]
    check = re.fullmatch(r"result = (check_\w+)\((.*)\)", visible)
    assert lines[0] == "from IPython.display import display"
    assert lines[1] == f"from mha_lib.teaching import {check[1]}"
    assert (begin, end) == ("### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS")
    assert hidden == f"{visible[:-1]}, seed={seed_of(source)})"
    assert lines[7:] == ["display(result)", f"{POINTS[name]} * result.score"]


def may_fail(cell):
    return "raises-exception" in cell.metadata.get("tags", [])


def test_the_cells_to_play_with_and_no_others_may_fail(source, release):
    """Jupyter stops at an error, unless the cell has this tag."""
    for notebook in (source, release):
        for cell in notebook.cells:
            about = assignment.grading(cell)
            plays = cell.cell_type == "code" and about.get("grade_id") in (
                None, "masks_demonstration", "predicted",
            )  # fmt: skip
            assert may_fail(cell) == plays, cell.source
            assert set(cell.metadata.get("tags", [])) <= notebooks.TAGS
        assert sum(map(may_fail, notebook.cells)) == 12


def test_the_shapes_of_the_layer_are_given_one_by_one(source):
    text = next(cell.source for cell in source.cells if cell.id == "multi_head_attention")
    for shape in ("w_q: (d, h * d_k)", "w_k: (d_context, h * d_k)", "w_v: (d_context, h * d_v)"):
        assert shape in text


def test_what_no_chapter_explains_is_explained(source):
    part = next(cell.source for cell in source.cells if cell.source.startswith("## 6."))
    assert "`n_past` is the number of" in part
    for path in notebooks.PATHS:  # or this could point there instead
        assert "n_past" not in said(read(path))


def seed_of(source):
    seeds = {int(seed) for cell in source.cells for seed in re.findall(r"seed=(\d+)", cell.source)}
    assert len(seeds) == 1
    assert seeds != {7}  # the visible checks' own
    return seeds.pop()


def test_every_part_asks_predicts_hints_and_says_where_to_read(source):
    parts = re.split(r"^## \d+\. ", said(source), flags=re.M)[1:]
    assert len(parts) == N_PARTS
    for part in parts[:7] + parts[8:]:  # the open question gives no hint
        assert part.count("**Predict:**") == 1
        assert part.count("<details><summary>Hint</summary>") == part.count("</details>") == 1
    for part in parts:
        assert "?" in part
        assert "Read in the book: " in part


def headings(path):
    text = said(read(path))
    return {line.lstrip("# ") for line in text.splitlines() if line.startswith("#")}


def test_the_places_to_read_exist(source):
    pages = {f"chapter {path.stem[1]}": path for path in notebooks.PATHS if path.stem[0] == "0"}
    pages["Watch out for"] = pages["chapter 6"]
    places = re.findall(r"^Read in the book: (.*)\.$", said(source), re.M)
    assert len(places) == N_PARTS
    for place in places:
        page = None
        for name in re.findall(r"chapter \d|\"[^\"]+\"", place):
            if name.strip('"') in pages:
                page = pages[name.strip('"')]
            else:
                assert name.strip('"') in headings(page), f"{page} has no heading {name}"


def test_the_way_to_install_is_on_the_students_page(source):
    """The notebook sends them there: it cannot know where this copy of the book is kept."""
    assert 'with the line that the book\'s page "For students" shows' in said(source)
    assert "pip install" not in said(source)
    page = (assignment.ROOT / "chapters" / "for_students.md").read_text("utf-8")
    project = tomllib.loads((assignment.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f'"mha_lib-{project["version"]}-py3-none-any.whl[book]"' in page


def test_the_question_and_the_rubric_quote_what_chapter_4_measured(source):
    chapter = next(path for path in notebooks.PATHS if path.stem.startswith("04"))
    printed = " ".join(
        output.text if output.output_type == "stream" else output.data["text/plain"]
        for cell in read(chapter).cells
        for output in cell.get("outputs", [])
    )
    assert re.search(r"an even head .* 0\.06 ", printed)
    assert re.search(r"before +0\.\d\d +0\.15 ", printed)
    rubric = assignment.RUBRIC.read_text("utf-8")
    quoted = said(source).split("## 8.")[1].split("## 9.")[0] + rubric.split("## Part 9")[0]
    assert set(re.findall(r"\d\.\d+", quoted)) == {"0.06", "0.15", "1.00"}


def test_part_12_shows_the_numbers_that_chapter_5_measured(source):
    data = assignment.ROOT / "chapters" / "data"
    measured = json.loads((data / "heads.json").read_text("utf-8"))["relations"]
    made_up = {row["relation"]: row for row in measured["made up"]["rows"]}["adjective → noun"]
    ewt = {row["relation"]: row for row in measured["natural"][0]["rows"]}["adjective → noun"]
    rows = [made_up, ewt, ewt["far"] | {"head": ewt["head"]}]
    shown = re.findall(r"\| ([\d,]+) \| (\d-\d) \| (\d\.\d+) \| (\d\.\d+) \|", said(source))
    assert shown == [
        (f"{r['n']:,}", r["head"], f"{r['accuracy']:.2f}", f"{r['offset accuracy']:.2f}")
        for r in rows
    ]
    feature = json.loads((data / "feature.json").read_text("utf-8"))
    (sentence,) = feature["sentences"]
    n = len(sentence["words"]) + 2
    maps = np.frombuffer(base64.b64decode(sentence["attention"]), np.uint8).reshape(72, n, n)
    head = np.rint(maps[12 * (2 - 1) + (4 - 1), 1:-1, 1:-1] / feature["full"] * 100)
    names = {"np": np}
    exec(next(c.source for c in source.cells if c.id == "head_2_4"), names)  # noqa: S102 - ours
    assert names["words"] == sentence["words"]
    assert (names["percent"] == head).all()


def test_every_written_answer_has_a_rubric_of_as_many_points(source):
    rubric = assignment.RUBRIC.read_text("utf-8")
    told = re.findall(r"^## Part (\d+): .*, (\d) points \(`(\w+)`\)$", rubric, re.M)
    assert told == [(str(part_of(source, name)), str(POINTS[name]), name) for name in WRITTEN]
    assert f"({sum(POINTS[name] for name in WRITTEN)} points)" in rubric.splitlines()[0]


def test_the_given_head_passes_its_authors_tests_and_is_wrong(source):
    names = {"np": np}
    given = next(cell.source for cell in source.cells if cell.id == "wrong_head")
    with contextlib.redirect_stdout(io.StringIO()) as said_there:
        exec(given, names)  # noqa: S102 - ours
    assert said_there.getvalue().count("True") == 3
    assert check_mended(names["wrong_head"]).verdict == "wrong"


# --- nothing leaks ----------------------------------------------------------------------------


def test_the_secrets_are_found_in_the_source_and_the_rubric():
    secrets = assignment.secrets()
    hidden = [secret for secret in secrets if secret.startswith("result = ")]
    bodies = [secret for secret in secrets if re.search(r"\breturn [\w(]+.*[\])]?$", secret)]
    assert len(hidden) == len(TESTS) - 1  # predictions are compared, not tested
    assert all(len(secret) > 40 for secret in bodies)  # one line may stand anywhere by chance
    in_source, in_rubric = assignment.leaks(assignment.SOURCE), assignment.leaks(assignment.RUBRIC)
    samples = in_rubric - in_source
    assert len(samples) == 9  # one for each number of points of part 8, one of each other part
    assert in_source | samples == secrets - {"BEGIN MARK SCHEME"}


@pytest.mark.parametrize("form", ["html", "ipynb", "md"])
def test_a_leak_is_seen_in_every_form(form, tmp_path):
    body = next(secret for secret in assignment.secrets() if "swapaxes(-3, -2) # (" in secret)
    code = body.replace(" ", "\n    ")
    file = tmp_path / f"page.{form}"
    if form == "html":  # as colours of code divide it
        code = "".join(f"<span class='n'>{line}</span>\n" for line in code.splitlines())
    elif form == "ipynb":
        code = json.dumps({"cells": [{"source": code.splitlines(keepends=True)}]})
    file.write_text(f"before {code} after" if form != "ipynb" else code, "utf-8")
    assert assignment.leaks(file) == {body}


def test_the_students_version_gives_nothing_away():
    assert assignment.leaks(assignment.RELEASE) == set()


def test_the_site_gives_nothing_away():
    if not (SITE / "index.html").exists():
        pytest.fail(f"{SITE} is not there: run `make book` first")
    files = [path for path in SITE.rglob("*") if path.is_file()]
    assert len(files) > 50
    for file in files:
        assert assignment.leaks(file) == set(), file


# --- marks ------------------------------------------------------------------------------------


def marks(notebook):
    """Return nbgrader's marks of the graded cells of a notebook that has run."""
    cells = assignment.graded(notebook)
    return {name: determine_grade(cells[name])[0] for name in cells}


def test_the_solution_earns_full_marks_visible_and_hidden(source, tmp_path):
    """And the demonstration shows what it is there for."""
    notebook = copy.deepcopy(source)
    for name, cell in assignment.graded(notebook).items():
        if name in TESTS:  # show the visible result as well
            cell.source = cell.source.replace("### BEGIN", "display(result)\n### BEGIN")
    assignment.run(notebook, tmp_path)
    assert marks(notebook) == POINTS | dict.fromkeys(WRITTEN)  # a person marks these
    for name in CHECKED:
        results = [
            output.data["application/vnd.mha-lib.check+json"]
            for output in assignment.graded(notebook)[name].outputs
            if output.output_type == "display_data"
        ]
        assert [result["verdict"] for result in results] == ["right", "right"], name
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "error", cell.source
            assert output.get("name") != "stderr", output.text
    demonstration = next(cell for cell in notebook.cells if cell.id == "masks_demonstration")
    assert demonstration.outputs[0].text == (
        "no mask: tokens [1 2 3 4 5] change\ncausal mask: tokens [4 5] change\n"
    )


def test_the_blank_earns_nothing(release, tmp_path):
    notebook = assignment.run(copy.deepcopy(release), tmp_path)
    assert marks(notebook) == dict.fromkeys(POINTS, 0)
    for name in CHECKED:  # by a verdict, not by an error
        outputs = assignment.graded(notebook)[name].outputs
        assert outputs[0].data["application/vnd.mha-lib.check+json"]["verdict"] == "blank"
        assert outputs[1].data["text/plain"] == "0.0"


def test_all_cells_of_the_blank_run_as_under_run_all(release, tmp_path):
    """Where an untagged cell fails, Jupyter runs none of those below it."""
    notebook = assignment.run(copy.deepcopy(release), tmp_path, allow_errors=False)
    assert marks(notebook) == dict.fromkeys(POINTS, 0)
    failed = [
        cell
        for cell in notebook.cells
        if any(output.output_type == "error" for output in cell.get("outputs", []))
    ]
    assert failed
    assert all(map(may_fail, failed))


def test_functions_that_are_not_there_earn_nothing(source, tmp_path):
    """nbgrader's own rule is full marks where a test cell shows no number."""
    notebook = copy.deepcopy(source)
    for cell in notebook.cells:
        if assignment.grading(cell).get("solution") and cell.cell_type == "code":
            cell.source = "pass"
    assignment.run(notebook, tmp_path)
    assert {name: marks(notebook)[name] for name in TESTS} == dict.fromkeys(TESTS, 0)


def test_a_part_that_is_not_done_costs_its_own_points_only(source, release, tmp_path):
    """With the library's function in its place, as the text promises."""
    notebook = copy.deepcopy(source)
    blank = {cell.id: cell.source for cell in release.cells}
    done = {"multi_head_attention", "masks"}
    for cell in notebook.cells:
        if assignment.grading(cell).get("solution") and cell.cell_type == "code":
            if cell.id not in done:
                cell.source = blank[cell.id]
            for name in ("split_heads", "merge_heads", "scaled_dot_product_attention"):
                if cell.id in done:
                    cell.source = cell.source.replace(f" {name}(", f" mha_lib.{name}(")
    assignment.run(notebook, tmp_path)
    earned = {"test_multi_head_attention": 5, "test_masks": 3}
    assert {name: marks(notebook)[name] for name in TESTS} == dict.fromkeys(TESTS, 0) | earned


@pytest.mark.parametrize("name", ["check_softmax", "display", "result"])
def test_a_name_that_a_student_has_used_changes_nothing(source, name, tmp_path):
    notebook = copy.deepcopy(source)
    ids = [cell.id for cell in notebook.cells]
    del notebook.cells[ids.index("test_softmax") + 1 :]
    solution = next(cell for cell in notebook.cells if cell.id == "softmax")
    solution.source = f"{name} = None\ndef softmax(z):\n    return z"
    assignment.run(notebook, tmp_path)
    assert marks(notebook) == {"test_softmax": 0}
    assert len(assignment.graded(notebook)["test_softmax"].outputs) == 2
