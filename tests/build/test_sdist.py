"""What others build from the source: all that the library needs, and nothing that cannot run."""

import shutil
import subprocess
import sys
import tarfile

import pytest

from tests.notebooks import ROOT

LIBRARY = ("*.py", "*.js", "*.css", "*.json", "py.typed")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """Build the source distribution from a copy, and return the names of its files."""
    folder = tmp_path_factory.mktemp("source")
    passed_over = shutil.ignore_patterns(".git", ".venv", ".nox", "_build", "*.egg-info")
    shutil.copytree(ROOT, folder / "book", ignore=passed_over)
    program = "from setuptools import build_meta; build_meta.build_sdist('dist')"
    subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", program], cwd=folder / "book", check=True, capture_output=True
    )
    (archive,) = (folder / "book" / "dist").iterdir()
    with tarfile.open(archive) as files:
        return {name.partition("/")[2] for name in files.getnames()}


def test_the_sdist_holds_no_test_since_it_cannot_hold_what_the_tests_need(sdist):
    assert not [name for name in sdist if name.startswith(("tests", "chapters", "assignments"))]


def test_the_sdist_holds_the_whole_library_and_its_licences(sdist):
    library = {
        path.relative_to(ROOT).as_posix()
        for pattern in LIBRARY
        for path in (ROOT / "mha_lib").rglob(pattern)
    }
    assert len(library) > 20
    assert library <= sdist
    assert {"pyproject.toml", "README.md", "LICENSE", "LICENSE-CC-BY-4.0"} <= sdist
