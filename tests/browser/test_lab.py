"""The widgets in a live JupyterLab, with a kernel."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from urllib.error import URLError

import nbformat
import numpy as np
import pytest

from mha_lib import attention_cost, multi_head_attention
from mha_lib.widgets import HeadSplitter
from tests.browser.conftest import ROOT, Visit
from tests.browser.moves import slider
from tests.browser.test_head_splitter import open_numbers, shown_weights
from tests.browser.test_widgets import settings

CELLS = [
    "from mha_lib.widgets import Budget, HeadSplitter\n"
    "w = HeadSplitter(tokens=['she', 'opened', 'it'], token=0)\nw",
    "w.n_heads = 2",
    "w.d = 20",
    "print('Python has', w.n_heads, w.d, w.token)",
    "w.tokens = ['a', 'b', 'c', 'd']",
    "b = Budget()\nb",
    "b.n = 777",
    "from mha_lib.widgets import OneDistribution\none = OneDistribution(score=1000.25)\none",
    "one.score = 1000.75",
    "from mha_lib.widgets import Budget\nBudget(d=640, n_heads=3)",
    "from mha_lib.widgets import HeadSplitter\nHeadSplitter(d=15, n_heads=6)",
]  # fmt: skip


@pytest.fixture(scope="module")
def lab(browser, tmp_path_factory):
    """Start JupyterLab on a free port with one notebook, without a token; return its address."""
    home = tmp_path_factory.mktemp("lab")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    nbformat.write(notebook, home / "trial.ipynb")
    shutil.copy(ROOT / "chapters" / "index.ipynb", home)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = [
        f"--ServerApp.port={port}", "--ServerApp.ip=127.0.0.1", "--ServerApp.port_retries=0",
        "--IdentityProvider.token=", "--ServerApp.open_browser=False", "--allow-root",
        "--LabApp.news_url=", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        f"--ServerApp.root_dir={home}", "--LabApp.expose_app_in_browser=True",
    ]  # fmt: skip
    own = {f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "RUNTIME")}
    own |= {f"JUPYTERLAB_{name}_DIR": str(home / name) for name in ("SETTINGS", "WORKSPACES")}
    environment = os.environ | own
    with (home / "log").open("w") as log:
        server = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "jupyterlab", *options],
            cwd=home, env=environment, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"{address}/api", timeout=5).close()  # noqa: S310
                break
            except (URLError, ConnectionError):
                assert server.poll() is None, (home / "log").read_text("utf-8")
                time.sleep(0.5)
        else:
            pytest.fail("JupyterLab did not answer: " + (home / "log").read_text("utf-8")[-2000:])
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)


class Notebook:
    """One notebook open in JupyterLab."""

    def __init__(self, browser, address, name="trial"):
        self.window = Visit(browser, address, viewport={"width": 1280, "height": 1400})
        self.page = self.window.page
        self.page.goto(f"{address}/lab/tree/{name}.ipynb")
        # A cell that is run before the kernel is connected makes JupyterLab ask for a kernel.
        self.page.wait_for_function(
            "window.jupyterapp?.shell.currentWidget?.sessionContext?.isReady && "
            "jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.connectionStatus"
            " === 'connected'",
            timeout=120_000,
        )

    def run(self, number):
        """Run a cell and wait for it."""
        cell = self.page.locator(".jp-CodeCell").nth(number)
        cell.locator(".jp-InputArea-editor").click()
        self.page.keyboard.press("Control+Enter")
        prompt = cell.locator(".jp-InputPrompt", has_text="[")
        self.page.wait_for_function(
            "(node) => /\\[\\d+\\]/.test(node.textContent)",
            arg=prompt.element_handle(),
            timeout=60_000,
        )
        return cell

    def run_until(self, number, text):
        """Run a cell until it prints a text.

        A change is sent when Python has answered the one before it, which a cell can overtake.
        """
        for _ in range(20):
            printed = self.run(number).locator(".jp-OutputArea-output")
            printed.wait_for()
            if text in printed.inner_text():
                return
            self.page.wait_for_timeout(1000)
        pytest.fail(f"the cell does not print {text!r} but {printed.inner_text()!r}")


@pytest.fixture(scope="module")
def notebook(browser, lab):
    notebook = Notebook(browser, lab)
    yield notebook
    notebook.window.context.close()


def expect(widget, h, d, words, token=0):
    """Wait for a setting that the kernel computed, and compare the numbers."""
    widget.page.wait_for_function(
        "([node, heads]) => node.dataset.source === 'kernel' &&"
        " node.querySelectorAll('.mha-map').length === heads",
        arg=[widget.element_handle(), h],
    )
    x, *w = HeadSplitter(tokens=words).arrays(d)
    weights = multi_head_attention(x, *w, h, return_weights=True)[1][:, token]
    np.testing.assert_allclose(shown_weights(widget).T, weights, atol=0.00501)


def test_widget_lives_in_jupyterlab(notebook):
    words = ["she", "opened", "it"]
    cell = notebook.run(0)
    widget = cell.get_by_role("region", name="Head splitter", exact=True)
    widget.wait_for(timeout=60_000)
    open_numbers(widget)
    expect(widget, 4, 16, words)

    # A change made from Python.
    notebook.run(1)
    expect(widget, 2, 16, words)
    assert settings(widget)["heads h"] == "2"

    # A width that is not in the grid: the kernel computes it, and the slider has it.
    notebook.run(2)
    expect(widget, 2, 20, words)
    assert settings(widget)["width d"] == "20"

    # The arrow keys move the slider, not JupyterLab's selection.
    heads = slider(widget, "heads h")
    heads.focus()
    for key in ("ArrowLeft", "End", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
        heads.press(key)
    assert settings(widget)["heads h"] == "4"
    assert heads.evaluate("(node) => node === document.activeElement")
    expect(widget, 4, 20, words)
    heads.press("ArrowRight")
    expect(widget, 5, 20, words)
    heads.press("ArrowRight")
    widget.locator(".mha-sentence", has_text="6 does not divide 20").wait_for()
    heads.press("ArrowLeft")

    # Marking a token reaches Python, and so do the settings.
    widget.get_by_role("radio", name="opened, token 2").click()
    notebook.run_until(3, "Python has 5 20 1")

    # The reader's own words.
    notebook.run(4)
    widget.get_by_role("radio", name="d, token 4", exact=True).wait_for()
    expect(widget, 5, 20, ["a", "b", "c", "d"], token=1)


def test_number_of_tokens_outside_the_grid_is_counted_by_the_kernel(notebook):
    cell = notebook.run(5)
    widget = cell.get_by_role("region", name="Budget", exact=True)
    widget.wait_for(timeout=60_000)
    notebook.run(6)
    widget.locator(
        ".mha-digits", has_text=f"{attention_cost(777, 512, 8).matmul_flops:,}"
    ).wait_for()
    assert settings(widget)["tokens n"] == "777"
    assert notebook.window.foreign == []


def test_the_first_page_shows_nothing_that_only_the_build_could_replace(browser, lab):
    first = Notebook(browser, lab, "index")
    cell = first.page.locator(".jp-MarkdownCell", has_text="Teach with it")
    text = cell.inner_text(timeout=60_000)
    first.window.context.close()
    assert "make lab installs it and opens JupyterLab" in text
    assert not [mark for mark in ("{{", "ADDRESS", "<!--", "-->") if mark in text], text


def test_an_answer_like_the_one_before_is_shown_too(notebook):
    """The kernel sends no new bytes then, only the key that they belong to, or the reason."""

    def answered(widget, label, value):
        """Wait until a slider stands at a value, and Python is said to compute no more."""
        widget.page.wait_for_function(
            "([slider, value, status]) => slider.getAttribute('aria-valuetext') === value &&"
            " !status.textContent.includes('Python is computing')",
            arg=[
                slider(widget, label).element_handle(),
                value,
                widget.locator(".mha-status").element_handle(),
            ],
        )

    widget = notebook.run(7).get_by_role("region", name="One distribution", exact=True)
    widget.wait_for(timeout=60_000)
    notebook.run(8)  # another score, the same weights
    answered(widget, "score of the marked token", "1000.75")
    assert widget.get_attribute("data-source") == "kernel"

    for number, name, label, value, where, problem in (
        (9, "Budget", "tokens n", "4,096", ".mha-problem", "h = 3 heads cannot share d = 640"),
        (10, "Head splitter", "heads h", "7", ".mha-sentence", "7 does not divide 15"),
    ):
        widget = notebook.run(number).get_by_role("region", name=name, exact=True)
        impossible = re.compile("does not divide|cannot share")
        widget.locator(where, has_text=impossible).wait_for(timeout=60_000)
        slider(widget, label).focus()
        slider(widget, label).press("ArrowRight")
        answered(widget, label, value)
        assert problem in widget.locator(where).inner_text()
