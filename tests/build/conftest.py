"""A small book with a made-up address, and one without, that several modules look at."""

import shutil
import subprocess
import sys

import pytest
import yaml

from tests.notebooks import ROOT

ADDRESS = "https://github.com/somebody-else/their.book"
PAGES = (
    "index.ipynb", "02_split_attend_concat_project.ipynb", "for_students.md", "for_instructors.md",
    "notation.md",
)  # fmt: skip


def build_book(folder, pages, address="", execute="off"):
    """Build a book of some pages in an empty folder; return the site's folder."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    config["repository"]["url"] = address
    config["execute"]["execute_notebooks"] = execute
    (folder / "_config.yml").write_text(yaml.safe_dump(config), "utf-8")
    others = [{"file": f"chapters/{name.split('.')[0]}"} for name in pages[1:]]
    contents = {"format": "jb-book", "root": "chapters/index", "chapters": others}
    (folder / "_toc.yml").write_text(yaml.safe_dump(contents), "utf-8")
    for name in ("_ext", "_static"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "CITATION.cff", folder)
    shutil.copytree(ROOT / "assignments" / "release", folder / "assignments" / "release")
    (folder / "chapters").mkdir()
    for name in (*pages, "references.bib", "descriptions.yml"):
        shutil.copy(ROOT / "chapters" / name, folder / "chapters")
    shutil.copytree(ROOT / "chapters" / "data", folder / "chapters" / "data")
    program = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", program, "build", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603 - our own
    site = folder / "_build" / "html"
    assert (site / "chapters" / "index.html").exists(), done.stdout + done.stderr
    return site


@pytest.fixture(scope="session", params=["", ADDRESS], ids=["no address", "address"])
def book(request, tmp_path_factory):
    """Build some pages with an address and without one; return it, and the site's folder."""
    return request.param, build_book(tmp_path_factory.mktemp("book"), PAGES, request.param)
