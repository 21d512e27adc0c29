"""How to cite the book: valid for those who read CITATION.cff by program, and said on its page."""

import os
import subprocess
import sys
import tomllib

import citation
import pytest
from book_options import complete

from tests.notebooks import ROOT

FILE = ROOT / "CITATION.cff"
VALIDATOR = "cffconvert==2.0.0"
TOOLS = ROOT / "_build" / VALIDATOR.replace("==", "-")


@pytest.fixture(scope="module")
def validate():
    """Return a function that runs the format's own validator.

    It has an environment of its own, since it needs a jsonschema that Jupyter's is too new for.
    """
    script = TOOLS / ("Scripts" if os.name == "nt" else "bin") / "cffconvert"
    if not (TOOLS / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(TOOLS)], check=True)  # noqa: S603
        python = script.with_name("python")
        done = subprocess.run(  # noqa: S603
            [str(python), "-m", "pip", "install", "--quiet", "--retries=1", VALIDATOR],
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            report = pytest.fail if os.environ.get("CI") else pytest.skip
            report(f"{VALIDATOR} cannot be installed, is there a network? {done.stderr[-300:]}")
        (TOOLS / "ready").touch()
    return lambda path: subprocess.run(  # noqa: S603
        [str(script), "--validate", "-i", str(path)], capture_output=True, text=True
    )


def test_its_validator_accepts_the_file(validate):
    done = validate(FILE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "valid according to schema version 1.2.0" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("word", "wrong"), [("title:", "titel:"), ("0.1.0", "[0.1]"), ("software", "book")]
)
def test_the_validator_refuses_what_is_wrong(validate, tmp_path, word, wrong):
    text = FILE.read_text("utf-8")
    assert word in text
    path = tmp_path / "CITATION.cff"
    path.write_text(text.replace(word, wrong, 1), encoding="utf-8")
    assert validate(path).returncode != 0


def test_the_version_is_that_of_the_library():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert citation.read()["version"] == project["version"]


def test_the_line_says_who_what_which_and_where():
    person = {"given-names": "Ada", "family-names": "King"}
    noble = {"given-names": "Ludwig", "name-particle": "van", "family-names": "Beethoven"}
    known = {"title": "A book", "version": "1.2", "authors": [person]}
    assert citation.line(known, "") == "Ada King. *A book*, version 1.2."
    known |= {"authors": [person, noble, {"name": "Some Co."}], "date-released": "2026-12-03"}
    assert citation.line(known, "https://a.example/b/") == (
        "Ada King, Ludwig van Beethoven and Some Co. *A book*, version 1.2, 2026. "
        "<https://a.example/b/>"
    )


def test_a_notebook_that_has_it_is_still_one(monkeypatch):
    quoted = {"title": 'A "book"', "version": "1", "authors": [{"name": "B"}]}
    monkeypatch.setattr(citation, "read", lambda: quoted)
    assert complete('{"source": "<!-- how to cite -->"}', "") == (
        '{"source": "B. *A \\"book\\"*, version 1."}'
    )
    assert complete("<!-- how to cite -->", "") == 'B. *A "book"*, version 1.'
