"""The assignment, and what of it no student may find."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
COURSE = ROOT / "assignments"
NAME = Path("multi_head_attention") / "multi_head_attention.ipynb"
SOURCE, RELEASE = COURSE / "source" / NAME, COURSE / "release" / NAME
RUBRIC = COURSE / "rubric.md"
MARKERS = ("BEGIN SOLUTION", "END SOLUTION", "BEGIN HIDDEN", "END HIDDEN", "BEGIN MARK SCHEME")
_REGION = re.compile(r"### BEGIN (SOLUTION|HIDDEN TESTS)\n(.*?)\n *### END \1", re.DOTALL)


def grading(cell):
    """Return what nbgrader knows of a cell: grade_id, points, and so on."""
    return cell.metadata.get("nbgrader", {})


def graded(notebook):
    """Return the graded cells of a notebook by their ids."""
    return {
        grading(cell).grade_id: cell for cell in notebook.cells if grading(cell).get("grade", False)
    }


def words(text):
    """Return ``text`` with every run of white space as one space."""
    return " ".join(text.split())


def secrets():
    """Return what must not be found: solutions, hidden tests, answers and the rubric's samples."""
    found = set(MARKERS)
    for cell in nbformat.read(SOURCE, as_version=4).cells:
        for kind, region in _REGION.findall(cell.source):
            found |= {region} if kind == "SOLUTION" else set(region.splitlines())
        if cell.cell_type == "markdown" and grading(cell).get("solution"):
            found |= set(cell.source.split("\n\n"))
    found |= set(re.findall(r"^> (.*)", RUBRIC.read_text("utf-8"), re.MULTILINE))
    return {words(secret) for secret in found}


def readable(path):
    """Return what a file says, however its format dresses it up."""
    raw = path.read_bytes().decode("utf-8", errors="replace")
    if path.suffix == ".html":
        return raw + BeautifulSoup(raw, "html.parser").get_text()
    if path.suffix == ".ipynb":
        return raw + "\n".join("".join(cell["source"]) for cell in json.loads(raw)["cells"])
    return raw


def leaks(path):
    """Return the secrets that the file at ``path`` gives away."""
    text = words(readable(path))
    return {secret for secret in secrets() if secret in text}


def generate(folder):
    """Make the students' version in ``folder``, as `make assignment` does, and return its path."""
    shutil.copy(COURSE / "nbgrader_config.py", folder)
    shutil.copytree(COURSE / "source", folder / "source")
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", NAME.stem, "--no-db"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)  # noqa: S603 - our own
    return folder / "release" / NAME


def run(notebook, folder, allow_errors=True):
    """Run a notebook as nbgrader does: in a kernel of its own, on past errors."""
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=120, allow_errors=allow_errors, resources=resources).execute()
    return notebook
