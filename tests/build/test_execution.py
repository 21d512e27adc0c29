"""Notebooks are run without standing still, and whatever the reader's machine is set to.

A lost answer is made certain: an Output widget sends its state to the kernel only when the kernel's
answer is there.  See _ext/execution.py.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbclient.output_widget import OutputWidget

from _ext import execution
from mha_lib.learning.weights import weights_folder
from tests import notebooks
from tests.grader import assignment

INTERACT = "from ipywidgets import interact\n\n@interact(h=[1, 2, 4])\ndef show(h=2):\n    print(h)"
TIMEOUT = 20  # seconds that a stalled cell takes
# Only what cells create matters below, not what they learn.
HURRY = """
from dataclasses import replace
from mha_lib.learning import experiments
run = experiments._run
def hurried(model, task, recipe, seed, n_sequences, **options):
    return run(model, task, replace(recipe, n_steps=2, n_warm_up=1), seed, 8, **options)
experiments._run = hurried
"""


def pasted(path):
    """Return a notebook in which code that readers are to paste stands in a cell, and this cell."""
    notebook = notebooks.read(path)
    for number, cell in enumerate(notebook.cells):
        code = re.search(r"```python\n(.*?)```", cell.source, re.DOTALL)
        if cell.cell_type == "markdown" and "new cell" in cell.source and code:
            notebook.cells.insert(number + 1, nbformat.v4.new_code_cell(code[1]))
            return notebook, notebook.cells[number + 1]
    return notebook, None


def notebook_of(*sources):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    return nbformat.v4.new_notebook(cells=cells)


@pytest.fixture(autouse=True)
def _environment():
    with mock.patch.dict(os.environ):  # is put back
        execution.set_environment()
        yield


# Whether something has come is asked of the file behind the socket: that changes nothing.
LATE = """
import select
import time
import zmq
from nbclient.output_widget import OutputWidget

sent, send = [], OutputWidget.send


def late(self, *args, **kwargs):
    sent.append(args)
    socket = zmq.Socket.shadow(self.kernel_client.shell_channel.socket.underlying)
    select.select([socket.get(zmq.FD)], [], [], 10)
    time.sleep(0.3)  # the file may have been readable from before
    return send(self, *args, **kwargs)


OutputWidget.send = late
"""


@pytest.fixture
def sent(monkeypatch):
    """Let the kernel's answer arrive before an Output widget sends; return what was sent."""
    monkeypatch.setattr(OutputWidget, "send", OutputWidget.send)  # is put back
    names = {}
    exec(LATE, names)  # noqa: S102
    return names["sent"]


@pytest.fixture
def seconds(monkeypatch):
    """Return how long each cell took, whatever runs it."""
    taken, execute = [], NotebookClient.async_execute_cell

    async def timed(self, *args, **kwargs):
        began = time.monotonic()
        cell = await execute(self, *args, **kwargs)
        taken.append(time.monotonic() - began)
        return cell

    monkeypatch.setattr(NotebookClient, "async_execute_cell", timed)
    return taken


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [*notebooks.PATHS, assignment.SOURCE, assignment.RELEASE], ids=lambda p: p.stem
)
def test_whoever_runs_a_notebook_of_the_book_never_waits_for_an_answer_that_came(
    path, sent, tmp_path
):
    """With nbclient as it is: tools of readers have no mended one."""
    notebook = notebooks.read(path)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(HURRY))
    NotebookClient(
        notebook,
        timeout=TIMEOUT * 3,  # a busy machine is no failure
        allow_errors=True,
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    assert notebook.cells[0].outputs == [], "nothing was hurried"
    assert sent == [], "a cell needs an Output widget: let readers paste its code"


def test_the_client_of_make_notebooks_does_not_lose_the_answer(sent, seconds, tmp_path):
    notebook = notebook_of(INTERACT, "print('after')")
    execution.BookClient(notebook, tmp_path / "page.ipynb", timeout=TIMEOUT).execute()
    assert sent
    assert max(seconds) < TIMEOUT
    assert notebook.cells[1].outputs[0].text == "after\n"


def test_a_line_that_is_printed_in_parts_is_one_line(tmp_path):
    notebook = notebook_of(
        "import time\nfor part in 'one line\\n':\n"
        "    print(part, end='', flush=True)\n    time.sleep(0.05)",
        "x = 5",
    )
    notebook.cells.append(nbformat.v4.new_markdown_cell("words"))
    execution.BookClient(notebook, tmp_path / "page.ipynb", timeout=TIMEOUT).execute()
    assert [output.text for output in notebook.cells[0].outputs] == ["one line\n"]
    assert notebook.cells[1].outputs == []
    nbformat.validate(notebook)


PASTED = [path for path in notebooks.PATHS if pasted(path)[1]]


@pytest.mark.parametrize("path", PASTED, ids=lambda path: path.stem)
def test_code_to_paste_into_a_new_cell_shows_a_widget(path):
    """No page and no comparison runs it."""
    notebook, cell = pasted(path)
    if "Encoder.load" in cell.source and not weights_folder().is_dir():
        pytest.skip("the weights are not there: run `make weights`")
    execution.BookClient(notebook, path).execute()
    shown = [output.get("data", {}) for output in cell.outputs]
    assert any("application/vnd.jupyter.widget-view+json" in one for one in shown)


def test_two_pages_have_code_to_paste():
    """Else nothing would be said of it."""
    assert [path.stem[:2] for path in PASTED] == ["02", "05"]


def test_nbclient_as_it_is_loses_the_answer(sent, seconds):
    """Where this fails, nbclient was mended, and our mend can go."""
    NotebookClient(notebook_of(INTERACT), timeout=3).execute()
    assert sent
    assert seconds[0] >= 3


def test_who_waits_is_told_which_cell_is_running(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(execution, "TELL_AFTER", 0.3)
    notebook = notebook_of("1", "import time  # first line\ntime.sleep(1)")
    execution.BookClient(notebook, tmp_path / "page.ipynb").execute()
    lines = capsys.readouterr().err.splitlines()
    assert lines
    for line in lines:
        assert line.endswith(f"s: {tmp_path.name}/page.ipynb, cell [2]: import time  # first line")


@pytest.mark.parametrize(
    ("cell", "error", "said"),
    [
        ("while True: pass", CellTimeoutError, "while True: pass"),
        ("1 / 0", CellExecutionError, "ZeroDivisionError"),
        ("import sys\nprint('a warning', file=sys.stderr)", CellExecutionError, "a warning"),
        ("import warnings\nwarnings.warn('old')", CellExecutionError, "UserWarning: old"),
    ],
)
def test_an_error_names_notebook_and_cell(cell, error, said, tmp_path):
    client = execution.BookClient(notebook_of("1", cell), tmp_path / "page.ipynb", timeout=4)
    with pytest.raises(error) as caught:
        client.execute()
    assert f"{tmp_path.name}/page.ipynb, cell [2]" in str(caught.value)
    assert said in str(caught.value)


HOSTILE = {
    "HOME": os.devnull,  # where nothing can be written
    "LC_ALL": "C",
    "MPLBACKEND": "Agg",
    "PYTHONOPTIMIZE": "1",
    "PYTHONSTARTUP": __file__,  # what it imports is not there
    "PYTHONWARNINGS": "error",
    # What the tests themselves set.
    **dict.fromkeys(("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR", "PYTHONUTF8")),
}
PAGE = """\
import warnings

import matplotlib.pyplot as plt
from mha_lib.figures import plots
plots.use_style()
plt.subplots()
plt.show()
print("é", __debug__, warnings.filters[0][0] != "error")
"""
# The tiniest book that is built as ours is.
BOOK = """
import sys
from sphinx.cmd.build import build_main
sys.exit(build_main(["-q", "-E", "-W", "--keep-going", "-c", ".", ".", "built"]))
"""
CONF = """
extensions = ["myst_nb", "_ext.execution"]
nb_execution_mode = "force"
nb_execution_timeout = 60
nb_execution_show_tb = True
nb_output_stderr = "remove-warn"
"""


def build(folder, *sources, change=None, before=""):
    """Build a book of one page; return the exit code, what was said, and the page."""
    folder.mkdir()
    notebook = notebook_of(*sources)
    notebook.cells.insert(0, nbformat.v4.new_markdown_cell("# A page"))
    nbformat.write(notebook, folder / "index.ipynb")
    (folder / "conf.py").write_text(CONF, encoding="utf-8")
    env = {k: v for k, v in (os.environ | (change or {})).items() if v is not None}
    env["PYTHONPATH"] = os.pathsep.join([str(notebooks.ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(  # noqa: S603
        # Sphinx itself cannot start with PYTHONWARNINGS=error; `make` leaves that out.
        [sys.executable, "-W", "ignore", "-c", before + BOOK],
        cwd=folder, env=env, capture_output=True, encoding="utf-8", timeout=180, check=False,
    )  # fmt: skip
    page = folder / "built" / "index.html"
    return done.returncode, done.stderr, page.read_text("utf-8") if page.exists() else ""


def test_a_page_is_the_same_whatever_the_reader_has_set(tmp_path):
    code, said, page = build(tmp_path / "bök", PAGE, change=HOSTILE)
    assert (code, said) == (0, "")
    assert page.count("<img alt") == 1
    assert "é True True" in page


def test_a_build_does_not_lose_the_answer(tmp_path):
    began = time.monotonic()
    code, said, page = build(tmp_path / "book", INTERACT, "print('after')", before=LATE)
    assert (code, said) == (0, "")
    assert time.monotonic() - began < 60  # the time that nbclient would have waited
    assert "after" in page


def test_what_libraries_write_to_stderr_fails_the_build_and_is_on_no_page(tmp_path):
    code, said, page = build(tmp_path / "book", "import warnings\nwarnings.warn('too' + ' old')")
    assert code != 0
    assert "book/index.ipynb, cell [1] wrote to stderr" in said
    assert "UserWarning: too old" in said
    assert "UserWarning: too old" not in page


@pytest.mark.parametrize("backend", ["Agg", "svg"])
def test_another_tool_loses_no_figure_to_the_backend_that_is_set(backend, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", backend)
    notebook = notebook_of(PAGE)
    NotebookClient(notebook, timeout=60).execute()
    assert any("image/svg+xml" in output.get("data", ()) for output in notebook.cells[0].outputs)
    assert [output.text for output in notebook.cells[0].outputs if "text" in output] == [
        "é True True\n"
    ]


def test_time_outs_of_build_and_tests_are_the_one_that_was_measured(pytestconfig):
    config = (notebooks.ROOT / "_config.yml").read_text("utf-8")
    assert f"timeout: {execution.CELL_SECONDS} " in config
    assert float(pytestconfig.getoption("nbval_cell_timeout")) == execution.CELL_SECONDS


def test_folders_of_the_home_are_not_needed():
    execution.set_environment()
    for name in ("MPLCONFIGDIR", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
        assert Path(os.environ[name]).parent == notebooks.ROOT / "_build" / "kernels"
