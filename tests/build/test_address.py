"""The book's address: nothing names one until it is set, and everything follows it then."""

import re
import sys
from types import SimpleNamespace

import book_options
import nbformat
import pytest
from bs4 import BeautifulSoup
from IPython.core.interactiveshell import InteractiveShell
from sphinx.errors import ExtensionError

from tests import notebooks
from tests.build.conftest import ADDRESS
from tests.notebooks import ROOT

INSTALL = f'pip install "mha_lib[book] @ git+{ADDRESS}"'
PAGES = ("index.ipynb", "for_students.md", "for_instructors.md")
CHAPTER = "02_split_attend_concat_project"
HOSTS = ("github.com", "mybinder.org", "colab.research.google.com")
UNRESOLVED = ("{{", "ADDRESS", "with an address")


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
    config = SimpleNamespace(
        html_theme_options={"repository_url": address}, myst_substitutions={}, html_baseurl=""
    )
    with pytest.raises(ExtensionError, match=r"write it as https://github\.com/OWNER/NAME, or"):
        book_options._set_options(None, config)


def test_a_book_without_a_repository_in_its_settings_has_no_address():
    config = SimpleNamespace(
        html_theme_options={"launch_buttons": {}}, myst_substitutions={}, html_baseurl=""
    )
    book_options._set_options(None, config)
    assert config.html_theme_options["repository_url"] == ""
    assert "launch_buttons" not in config.html_theme_options


def test_pages_can_be_mended_and_asked_about_where_they_come_from(book):
    address, site = book
    page = BeautifulSoup((site / "chapters" / f"{CHAPTER}.html").read_text("utf-8"), "html.parser")
    links = {link["href"] for link in page.select("header a[href], .bd-header-article a[href]")}
    edit = f"{ADDRESS}/edit/main/chapters/{CHAPTER}.ipynb"
    issue = next((link for link in links if "/issues/new" in link), "")
    assert (edit in links) == bool(address)
    assert issue.startswith(f"{ADDRESS}/issues/new?") == bool(address)
    assert (f"chapters/{CHAPTER}.html" in issue) == bool(address)


def test_a_notebook_installs_the_library_in_colab_and_nowhere_else(monkeypatch):
    path = ROOT / "chapters" / f"{CHAPTER}.ipynb"
    before = notebooks.with_colab(notebooks.read(path), "")
    twice = notebooks.with_colab(notebooks.with_colab(before, "https://github.com/a/b"), ADDRESS)
    nbformat.validate(twice)
    cell = next(cell for cell in twice.cells if cell.cell_type == "code")
    assert twice.cells[0] == before.cells[0]  # the title
    assert INSTALL.removeprefix("pip install ") in cell.source
    assert [other for other in twice.cells if other is not cell] == before.cells
    assert cell.metadata.tags == ["remove-cell"]  # not on the page
    assert notebooks.with_colab(twice, "") == before

    shell, ran = InteractiveShell.instance(), []
    monkeypatch.setattr(shell, "run_line_magic", lambda name, line, **_: ran.append((name, line)))
    shell.run_cell(cell.source).raise_error()
    assert ran == []
    monkeypatch.setitem(sys.modules, "google.colab", sys)
    shell.run_cell(cell.source).raise_error()
    assert ran == [("pip", f'install --quiet "mha_lib[book] @ git+{ADDRESS}"')]


@pytest.mark.parametrize(
    ("address", "published"),
    [
        (ADDRESS, "https://somebody-else.github.io/their.book/"),
        ("https://github.com/Some-Body/Book", "https://some-body.github.io/Book/"),
        ("https://github.com/Some-Body/some-body.github.io", "https://some-body.github.io/"),
    ],
)
def test_where_github_publishes_it_follows(address, published):
    assert book_options.pages_address(address) == published


def test_the_address_stands_in_one_place():
    """Those who publish write it there; the cells for Colab are made from it."""
    patterns = ("*.md", "*.cff", "*.toml", "chapters/*", "assignments/**/*.ipynb", "mha_lib/*.py")
    for path in (path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()):
        text = path.read_text("utf-8")
        if path in notebooks.PATHS:
            text = nbformat.writes(notebooks.with_colab(notebooks.read(path), ""))
        assert "github.com" not in text, path
