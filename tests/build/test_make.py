"""What make does before there is an environment: it chooses a Python, and says what is missing."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.notebooks import ROOT

CHOOSE = ROOT / ".ci" / "newest_python"
TESTED = ("3.11", "3.12", "3.13")
SH, MAKE = shutil.which("sh"), shutil.which("make")

pytestmark = pytest.mark.skipif(not (SH and MAKE), reason="needs sh and make")

# This Python, which says that it is another and may lack what makes environments.
FAKE = """#!{sh}
case $1 in
-m) shift; exec "{make_venv}" "$@" ;;
esac
exec "{python}" -c '
import sys
sys.version_info = ({version}, 0, "final", 0)
sys.implementation.name = "{implementation}"
sys.modules.update(dict.fromkeys({missing}))
exec(sys.argv[2])
' "$@"
"""
# What "python -m venv --clear folder" leaves: an environment whose pip does nothing.
VENV = """#!{sh}
mkdir -p "$3/bin" && printf '#!%s\\nexit 0\\n' "{sh}" > "$3/bin/python" && chmod +x "$3/bin/python"
"""


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def install(tmp_path):
    """Return a function that installs a Python which is not there."""
    script(tmp_path / "make_venv", VENV.format(sh=SH))

    def do(name, version, missing=(), implementation="cpython", folder="bin"):
        script(
            tmp_path / folder / name,
            FAKE.format(
                sh=SH, python=sys.executable, make_venv=tmp_path / "make_venv",
                version=version.replace(".", ", "), missing=json.dumps(missing),
                implementation=implementation,
            ),
        )  # fmt: skip
        return str(tmp_path / folder / name)

    (tmp_path / "bin").mkdir(exist_ok=True)
    return do


def run(tmp_path, command, python="", folders=("bin",)):
    """Run a command with these folders, and no others, for a PATH."""
    path = os.pathsep.join(str(tmp_path / folder) for folder in folders)
    environment = {"PATH": path, "HOME": str(tmp_path), "PYTHON": python}
    return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)  # noqa: S603


def choose(tmp_path, **options):
    done = run(tmp_path, [SH, str(CHOOSE), *TESTED], **options)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def test_the_newest_of_those_that_are_tested_is_taken(tmp_path, install):
    install("python3", "3.14")
    install("python3.11", "3.11")
    expected = install("python3.12", "3.12")
    assert choose(tmp_path) == (0, expected, "")


def test_a_python_counts_for_what_it_is_not_for_its_name(tmp_path, install):
    install("python3.12", "3.12")
    expected = install("python", "3.13")
    install("python3", "3.9")
    assert choose(tmp_path) == (0, expected, "")


def test_the_first_of_two_alike_is_taken_as_on_any_path(tmp_path, install):
    expected = install("python3", "3.13", folder="a folder with blanks")
    install("python3", "3.13")
    assert choose(tmp_path, folders=("a folder with blanks", "bin")) == (0, expected, "")


def test_a_shim_that_leads_nowhere_is_passed_over_and_what_is_behind_it_found(tmp_path, install):
    refusal = f"#!{SH}\necho 'pyenv: python3.13: command not found' >&2\nexit 127\n"
    script(tmp_path / "bin" / "python3.13", refusal)
    selected = install("python3", "3.12")
    assert choose(tmp_path) == (0, selected, "")
    behind = install("python3", "3.13", folder=".pyenv/versions/3.13.0/bin")
    assert choose(tmp_path) == (0, behind, "")


@pytest.mark.parametrize("module", ["ensurepip", "venv"])
def test_a_python_that_cannot_make_environments_is_passed_over(tmp_path, install, module):
    bare = install("python3.13", "3.13", missing=[module])
    code, chosen, said = choose(tmp_path)
    assert (code, chosen) == (1, "")
    assert said.startswith(f"{bare} has no venv; install that")
    expected = install("python3", "3.11")
    assert choose(tmp_path) == (0, expected, "")


def test_another_implementation_is_not_what_was_tested(tmp_path, install):
    install("python3.13", "3.13", implementation="pypy")
    expected = install("python3", "3.11")
    assert choose(tmp_path) == (0, expected, "")


def test_where_there_are_only_newer_ones_the_nearest_is_taken_and_said_so(tmp_path, install):
    install("python3.15", "3.15")
    expected = install("python3.14", "3.14")
    install("python3", "3.10")
    said = "Python 3.14 is not among those tested (3.11 3.12 3.13); going on with it"
    assert choose(tmp_path) == (0, expected, said)


@pytest.mark.parametrize("version", [None, "3.10", "2.7"])
def test_without_a_python_that_is_new_enough_it_says_what_to_do(tmp_path, install, version):
    if version:
        install("python3", version)
    said = "Python 3.11 or newer is needed; name it with: make PYTHON=python3.13"
    assert choose(tmp_path) == (1, "", said)


def test_a_python_that_is_named_is_taken_or_refused_whatever_else_is_there(tmp_path, install):
    install("python3", "3.13")
    old, named, new = (install(f"python3.{n}", f"3.{n}") for n in (10, 11, 14))
    assert choose(tmp_path, python="python3.11") == (0, "python3.11", "")
    assert choose(tmp_path, python=named) == (0, named, "")
    assert choose(tmp_path, python=old)[0] == choose(tmp_path, python="python9")[0] == 1
    assert choose(tmp_path, python=new)[::2] == (
        0, "Python 3.14 is not among those tested (3.11 3.12 3.13); going on with it",
    )  # fmt: skip


@pytest.fixture
def checkout(tmp_path):
    """Give a folder in which make finds what it needs to set up the environment."""
    for name in ("Makefile", "pyproject.toml", "requirements.txt", "_config.yml"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    for tool in ("sh", "sed", "find", "touch", "mkdir", "chmod", "grep"):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    return tmp_path


def make(checkout, *words, **options):
    return run(checkout, [MAKE, *words], **options)


def test_make_sets_up_the_environment_with_it(checkout, install):
    install("python3", "3.11")
    newest = install("python3.13", "3.13")
    done = make(checkout, ".venv/.ready")
    assert done.returncode == 0, done.stderr
    assert f"{newest} -m venv --clear .venv\n" in done.stdout
    assert (checkout / ".venv" / ".ready").exists()
    # What works is kept when a requirement changes, unless another Python is named.
    (checkout / ".venv" / ".ready").unlink()
    assert "-m venv" not in make(checkout, ".venv/.ready").stdout
    (checkout / ".venv" / ".ready").unlink()
    done = make(checkout, ".venv/.ready", "PYTHON=python3")
    assert "python3 -m venv --clear .venv\n" in done.stdout


def test_make_ends_where_there_is_none(checkout, install):
    install("python3", "3.10")
    done = make(checkout, ".venv/.ready")
    assert done.returncode != 0
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "pip" not in done.stdout
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize(
    ("url", "is_set"),
    [
        ('""', False), ("", False), ("  # https://github.com/a/b", False),
        ("https://github.com/a/b", True), ('"https://github.com/a/b"', True),
    ],
)  # fmt: skip
def test_make_book_says_how_to_set_the_address_until_it_is_set(checkout, url, is_set):
    config = (ROOT / "_config.yml").read_text("utf-8")
    new, count = re.subn(r"(?<=\nrepository:\n  url:).*", f" {url}", config)
    assert count == 1
    (checkout / "_config.yml").write_text(new, encoding="utf-8")
    done = make(checkout, "book", "--old-file=_build/html/.built")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "_config.yml at repository: url:" in line]
    assert len(lines) == (not is_set)
