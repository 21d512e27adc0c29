"""The book's address: nothing names one until it is set, and everything follows it then."""

import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import book_options
import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup
from sphinx.errors import ExtensionError

from tests.notebooks import ROOT

ADDRESS = "https://github.com/somebody-else/their.book"
INSTALL = f'pip install "mha_lib[book] @ git+{ADDRESS}"'
PAGES = ("index.ipynb", "for_students.md", "for_instructors.md")
HOSTS = ("github.com", "mybinder.org", "colab.research.google.com")
UNRESOLVED = ("{{", "ADDRESS", "with an address")


@pytest.fixture(scope="module", params=["", ADDRESS], ids=["no address", "address"])
def book(request, tmp_path_factory):
    """Build the first page and those for the classroom, with an address and without one."""
    folder = tmp_path_factory.mktemp("book")
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    config["repository"]["url"] = request.param
    config["execute"]["execute_notebooks"] = "off"
    (folder / "_config.yml").write_text(yaml.safe_dump(config), "utf-8")
    others = [{"file": f"chapters/{name.split('.')[0]}"} for name in PAGES[1:]]
    contents = {"format": "jb-book", "root": "chapters/index", "chapters": others}
    (folder / "_toc.yml").write_text(yaml.safe_dump(contents), "utf-8")
    for name in ("_ext", "_static"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copytree(ROOT / "assignments" / "release", folder / "assignments" / "release")
    (folder / "chapters").mkdir()
    for name in (*PAGES, "references.bib"):
        shutil.copy(ROOT / "chapters" / name, folder / "chapters")
    program = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", program, "build", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603 - our own
    site = folder / "_build" / "html"
    assert (site / "chapters" / "index.html").exists(), done.stdout + done.stderr
    return request.param, site


def text_of(path):
    """Return what readers see of a page, a download or a notebook."""
    if path.suffix == ".ipynb":
        cells = nbformat.read(path, as_version=4).cells
        return "\n".join(cell.source for cell in cells)
    text = path.read_text("utf-8")
    return BeautifulSoup(text, "html.parser").get_text() if path.suffix == ".html" else text


def files(site):
    return [site / "chapters" / f"{name.split('.')[0]}.html" for name in PAGES] + [
        site / "_sources" / "chapters" / name for name in PAGES
    ]


def test_no_page_names_an_address_but_the_one_that_is_set(book):
    address, site = book
    for path in (path for path in site.rglob("*") if path.suffix in (".html", ".md", ".ipynb")):
        text = path.read_text("utf-8")
        if address:
            named = re.findall(r"https://github\.com/[\w-]+/[\w.-]*[\w-]", text)
            assert set(named) <= {address}, path
        else:
            assert not [host for host in HOSTS if host in text], path


def test_nothing_is_left_unresolved_in_pages_and_downloads(book):
    _, site = book
    for path in files(site):
        text = text_of(path)
        if path.name == "for_students.md":  # a page, which says what a check says
            text = text.replace("{{ check_example }}", "")
        assert not [mark for mark in UNRESOLVED if mark in text], path


def test_the_lines_that_install_from_the_address_follow_it(book):
    address, site = book
    for path in files(site):
        assert (INSTALL in text_of(path)) == bool(address and "instructors" not in path.name), path
        assert ("git+" in text_of(path)) == (INSTALL in text_of(path)), path
    assert (ADDRESS in text_of(site / "_sources/chapters/for_instructors.md")) == bool(address)


def test_the_menus_follow_it_and_the_download_stays(book):
    address, site = book
    page = BeautifulSoup((site / "chapters" / "index.html").read_text("utf-8"), "html.parser")
    links = {link["href"] for link in page.select("header a[href], .bd-header-article a[href]")}
    expected = {
        f"https://mybinder.org/v2/gh/{ADDRESS[19:]}/main?urlpath=lab/tree/chapters/index.ipynb",
        f"https://colab.research.google.com/github/{ADDRESS[19:]}/blob/main/chapters/index.ipynb",
        ADDRESS,
    }
    assert links & expected == (expected if address else set())
    assert bool(page.select(".dropdown-launch-buttons")) == bool(address)
    assert bool(page.select(".btn-source-repository-button")) == bool(address)
    assert page.select_one("a.btn-download-source-button")["href"].endswith("index.ipynb")


@pytest.mark.parametrize(
    "address",
    [
        "github.com/owner/name", "http://github.com/owner/name", "https://github.com/owner",
        "https://github.com/owner/name/", "https://github.com/owner/name.git",
        "git@github.com:owner/name.git", "https://example.org/owner/name", "OWNER/NAME",
    ],
)  # fmt: skip
def test_an_address_that_would_lead_nowhere_is_refused_with_the_right_form(address):
    config = SimpleNamespace(html_theme_options={"repository_url": address}, myst_substitutions={})
    with pytest.raises(ExtensionError, match=r"write it as https://github\.com/OWNER/NAME, or"):
        book_options._set_options(None, config)


def test_a_book_without_a_repository_in_its_settings_has_no_address():
    config = SimpleNamespace(html_theme_options={"launch_buttons": {}}, myst_substitutions={})
    book_options._set_options(None, config)
    assert config.html_theme_options["repository_url"] == ""
    assert "launch_buttons" not in config.html_theme_options


def test_the_address_is_committed_empty_and_stands_nowhere_else():
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    assert config["repository"]["url"] == ""
    patterns = ("*.md", "*.cff", "*.toml", "chapters/*", "assignments/**/*.ipynb", "mha_lib/*.py")
    for path in (path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()):
        assert "github.com" not in path.read_text("utf-8"), path
