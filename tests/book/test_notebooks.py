"""Guard against notebooks that strict nbval would pass without comparing anything."""

import ast
import re

import nbformat
import pytest
from nbconvert import ScriptExporter

from mha_lib import widgets
from tests import notebooks

LOOK_UP = {"all_mistakes"}  # nobody reads it from the first line to the last

NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?")
pytestmark = pytest.mark.parametrize("path", notebooks.PATHS, ids=lambda path: path.stem)


def code_cells(path):
    return [cell for cell in notebooks.read(path).cells if cell.cell_type == "code"]


def tags(cell):
    return set(cell.metadata.get("tags", []))


def is_folded(cell):
    """Whether the answer of ``cell`` waits until the reader asks for it."""
    words = cell.metadata.get("mystnb", {}).get("code_prompt_show")
    return "hide-output" in tags(cell) and words == "Show the answer"


def is_widget(cell):
    shown = "".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)
    return shown.partition("(")[0] in widgets.__all__


def writes(cell):
    """Whether a reader can take the answer to a question from what ``cell`` shows."""
    return any(
        output.output_type == "stream" or "image/svg+xml" not in output.get("data", {})
        for output in cell.outputs
    )


def test_all_cells_were_run_in_order_and_nothing_went_wrong(path):
    cells = code_cells(path)
    counts = [cell.execution_count for cell in cells]
    assert counts == list(range(1, len(cells) + 1)), "run `make notebooks` and commit the result"
    for cell in cells:
        for output in cell.outputs:
            assert output.get("name") != "stderr", output.text
            assert output.output_type != "error" or "raises-exception" in tags(cell)


def test_in_colab_it_installs_the_library_from_the_address_that_is_set(path):
    cells = notebooks.read(path)
    assert notebooks.with_colab(cells, notebooks.address()).cells == cells.cells, (
        "its cell for Colab has another address than _config.yml: run `make notebooks`"
    )


def test_outputs_name_no_place_on_the_machine_that_ran_them(path):
    for cell in code_cells(path):
        assert str(notebooks.ROOT) not in str(cell.outputs), cell.source
        assert "File /" not in str(cell.outputs), cell.source  # the trace of an error


def test_most_printing_cells_are_compared(path):
    """A page without outputs, or with all of them ignored, would prove nothing."""
    compared = [
        cell
        for cell in code_cells(path)
        if cell.outputs and "nbval-ignore-output" not in tags(cell)
    ]
    ignored = [cell for cell in code_cells(path) if "nbval-ignore-output" in tags(cell)]
    assert compared
    assert len(ignored) < len(compared)


def test_every_cell_that_prints_has_its_output(path):
    for cell in code_cells(path):
        if any(line.startswith("print(") for line in cell.source.splitlines()):
            assert cell.outputs, cell.source


def test_every_output_can_be_read(path):
    """An output without a form for readers would be left out of the page without a warning."""
    for cell in code_cells(path):
        for output in cell.outputs:
            assert "text/plain" in output.get("data", ["text/plain"]), cell.source


def test_stored_form_is_the_normalised_form(path):
    notebook = notebooks.read(path)
    assert notebook == notebooks.normalised(notebook), "run `make notebooks`"
    nbformat.validate(notebook)


def test_other_tools_know_that_it_is_python(path):
    """They go by what a notebook says of itself, not by what Jupyter would guess."""
    script, resources = ScriptExporter().from_filename(str(path))
    assert resources["output_extension"] == ".py"
    ast.parse(script)
    about = notebooks.read(path).metadata
    assert about.kernelspec.language == about.language_info.name == "python"
    assert about.language_info.mimetype == "text/x-python"


def test_nothing_waits_to_be_replaced(path):
    """Jupyter shows a notebook as it is stored; what the build alone knows is a comment in it."""
    for cell in notebooks.read(path).cells:
        shown = re.sub(r"<!--.*?-->", "", cell.source, flags=re.DOTALL)
        if cell.cell_type == "markdown":
            assert "{{" not in cell.source, cell.source
            assert "ADDRESS" not in shown, cell.source


def test_tags_come_from_the_closed_vocabulary(path):
    for cell in code_cells(path):
        assert tags(cell) <= notebooks.TAGS


def test_cells_are_short(path):
    for cell in code_cells(path):
        assert len(cell.source.splitlines()) <= 20, cell.source


def test_every_figure_has_an_alt_text_and_a_caption(path):
    for cell in code_cells(path):
        about = cell.metadata.get("mystnb", {})
        alt = about.get("image", {}).get("alt", "").strip()
        caption = about.get("figure", {}).get("caption", "").strip()
        shows_figure = any("<Figure" in str(output.get("data", "")) for output in cell.outputs)
        assert (bool(alt), bool(caption)) == (shows_figure, shows_figure), cell.source
        assert not caption or caption != alt, cell.source


def test_a_prediction_can_be_made_before_its_answer_shows(path):
    asked = None
    for cell in notebooks.read(path).cells:
        if cell.cell_type == "markdown" and "**Predict:**" in cell.source:
            assert asked is None, f"nothing answers {asked}"
            asked = cell.source.split("**Predict:**")[-1].strip()
        elif asked and cell.cell_type == "code" and writes(cell):
            assert is_folded(cell) or is_widget(cell), f"{cell.source} gives the answer to {asked}"
            asked = None
        elif asked and cell.cell_type == "code" and is_folded(cell):
            asked = None  # a figure is the answer
    assert asked is None, f"nothing answers {asked}"


def test_what_unfolds_is_called_an_answer(path):
    for cell in code_cells(path):
        assert is_folded(cell) == ("hide-output" in tags(cell)), cell.source
        if is_folded(cell):
            assert cell.outputs, cell.source
            assert "hide-input" not in tags(cell), "its code would be called an answer as well"


def test_no_cell_prints_a_table(path):
    """On a phone its columns would be cut, or break; `mha_lib.figures.Table` fits."""
    for cell in code_cells(path):
        printed = "".join(out.text for out in cell.outputs if out.output_type == "stream")
        lines = [line for line in printed.splitlines() if len(NUMBER.findall(line)) >= 2]
        assert len(lines) <= 3, printed


def test_titles_carry_the_numbers_of_chapters(path):
    title = notebooks.read(path).cells[0].source.splitlines()[0]
    number = re.match(r"0(\d)_", path.name)
    assert re.findall(r"^# (\d+)\. ", title) == ([number[1]] if number else []), title


def test_page_opens_and_closes_as_all_do(path):
    texts = [cell.source for cell in notebooks.read(path).cells if cell.cell_type == "markdown"]
    opening = "\n".join(texts).split("\n## ")[0]
    assert opening.startswith("# ")
    if path.stem in LOOK_UP:
        return
    assert "**The question.**" in texts[0]
    assert "What you will be able to do" in opening
    assert "You need" in opening
    if path.stem != "index":
        closing = "\n".join(texts).split("\n## In three sentences\n")[-1].split("\n## Appendix")[0]
        assert closing.count(". ") == 2, "three sentences, please"
        assert any("## Exercises" in text for text in texts)
        assert any("## Check yourself" in text for text in texts)
        assert any("**Predict:**" in text for text in texts)
