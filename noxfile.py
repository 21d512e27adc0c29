"""Test the library on every Python that it names, with the oldest and the newest NumPy.

    python -m nox                       # make versions; all of them, about ten minutes
    python -m nox -s "versions(3.13-newest)"

The package is built and installed, and the tests run in an empty folder, so that nothing comes from
the repository.  A Python that is not installed is skipped, and said so.
"""

import os
import shutil
import tempfile
from pathlib import Path

import nox

ROOT = Path(__file__).parent
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
PYTHONS = nox.project.python_versions(PROJECT)
(NUMPY,) = PROJECT["project"]["dependencies"]
OLDEST = NUMPY.replace(">=", "==")

# What needs no more than NumPy; the rest is the site, its notebooks and figures, the classroom.
TESTED = ["tests/core", "tests/learning", "tests/teaching", "tests/book/test_errors.py"]

nox.options.error_on_missing_interpreters = False  # not in CI either
nox.options.reuse_venv = "yes"

# pyenv hides all versions but one; a list of them shows them all.
if hidden := sorted(Path(os.environ.get("PYENV_ROOT", os.devnull), "versions").glob("3.*")):
    os.environ.setdefault("PYENV_VERSION", ":".join(path.name for path in hidden))


@nox.session
@nox.parametrize(
    ("python", "numpy"),
    [(PYTHONS[0], OLDEST), *((python, NUMPY) for python in PYTHONS)],
    ids=[f"{PYTHONS[0]}-oldest", *(f"{python}-newest" for python in PYTHONS)],
)
def versions(session, numpy):
    """Install the package with one NumPy, and run the tests that need no more."""
    with tempfile.TemporaryDirectory() as folder:
        source, empty = Path(folder, "source"), Path(folder, "empty")
        # A build leaves its traces where the sources are.
        shutil.copytree(ROOT / "mha_lib", source / "mha_lib")
        for name in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-CC-BY-4.0"):
            shutil.copy(ROOT / name, source)
        shutil.copytree(ROOT / "tests", empty / "tests")
        shutil.copytree(ROOT / "chapters", empty / "chapters")  # where misconceptions send readers
        session.install("--upgrade", numpy, "beautifulsoup4", "hypothesis", "onnx", "pytest")
        session.install("--no-deps", "--force-reinstall", str(source))
        with session.chdir(empty):
            session.run("python", "-m", "pip", "freeze")
            session.run(
                "python", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider",
                "-c", str(source / "pyproject.toml"), f"--rootdir={empty}", "-o", "addopts=",
                "--strict-markers", "-m", "not slow", *TESTED,
                env={"EXAMPLES": "50"},  # of each property; all 200 in the book's own environment
            )  # fmt: skip
