"""Check the built book, as readers get it.  `make book` must have run."""

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
PAGES = sorted((SITE / "chapters").rglob("*.html")) or [SITE / "chapters" / "index.html"]
ALL_PAGES = sorted([*PAGES, *SITE.glob("*.html")])  # those that Sphinx adds as well


ADDRESS = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["repository"]["url"]


@pytest.fixture(scope="module")
def soups():
    """Parse every page once; give them by path."""
    if not (SITE / "index.html").exists():
        pytest.fail(f"{SITE} is not there: run `make book` first")
    return {path: BeautifulSoup(path.read_text("utf-8"), "html.parser") for path in ALL_PAGES}


@pytest.fixture(params=PAGES, ids=lambda path: path.stem)
def page(request, soups):
    return request.param, soups[request.param]


def is_local(address):
    parts = urlsplit(address)
    return not parts.scheme and not parts.netloc


def test_every_page_of_the_table_of_contents_was_built():
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    named = [contents["root"]]
    named += [entry["file"] for part in contents["parts"] for entry in part["chapters"]]
    built = [path.relative_to(SITE).with_suffix("").as_posix() for path in PAGES]
    assert sorted(named) == sorted(built)


@pytest.fixture(params=ALL_PAGES, ids=lambda path: path.stem)
def any_page(request, soups):
    if request.param.name == "404.html" and ADDRESS:
        pytest.skip("its addresses begin at the book's: tests/build/test_published.py follows them")
    return request.param, soups[request.param]


def test_no_internal_link_is_broken(any_page, soups):
    path, soup = any_page
    for link in soup.find_all("a", href=True):
        address = link["href"]
        if not is_local(address) or address == "#":
            continue
        parts = urlsplit(address)
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        assert target.exists(), f"{address} leads nowhere"
        # A widget's setting is no place on the page; test_in_class.py tries each.
        if parts.fragment and "=" not in parts.fragment and target in soups:
            assert soups[target].find(id=unquote(parts.fragment)), f"{address}: no such place"


def test_every_file_that_a_style_sheet_loads_is_on_the_site():
    sheets = list(SITE.rglob("_static/**/*.css"))
    assert len(sheets) > 5
    for path in sheets:
        for address in re.findall(r"url\(['\"]?([^'\")]+)", path.read_text("utf-8")):
            if address.startswith(("data:", "#", "%23")):
                continue
            assert is_local(address), f"{path.name}: {address} is on another host"
            file = (path.parent / unquote(urlsplit(address).path)).resolve()
            assert file.exists(), f"{path.name}: {address} is missing"


def test_every_page_says_what_it_is(soups):
    """In a title of its own and one or two sentences, for search engines and link previews."""
    titles = Counter(soup.title.text for soup in soups.values())
    assert max(titles.values()) == 1
    first = {SITE / "index.html", SITE / "chapters" / "index.html"}  # one leads to the other
    described = Counter()
    for path, soup in soups.items():
        (words,) = (tag["content"] for tag in soup.select("meta[name=description]"))
        assert 50 <= len(words) <= 160, f"{path.stem}: {words}"
        described[words] += path not in first
        if path != SITE / "index.html":
            (seen,) = (tag["content"] for tag in soup.select("meta[property='og:description']"))
            assert seen == words
            (seen,) = (tag["content"] for tag in soup.select("meta[property='og:title']"))
            assert soup.title.text.startswith(seen) or (path in first and "Multi-head" in seen)
    assert max(described.values()) == 1


def test_previous_and_next_lead_through_the_whole_contents(soups):
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    pages = [contents["root"]]
    pages += [entry["file"] for part in contents["parts"] for entry in part["chapters"]]
    paths = [SITE / f"{page}.html" for page in pages]

    def leads(path, where):
        links = soups[path].select(f".prev-next-area a.{where}")
        return [(path.parent / link["href"]).resolve() for link in links]

    for before, after in pairwise(paths):
        assert leads(before, "right-next") == [after.resolve()]
        assert leads(after, "left-prev") == [before.resolve()]


def test_every_heading_has_an_address_to_copy(page):
    _, soup = page
    for heading in soup.article.select("h2, h3"):
        if "admonition" in " ".join(heading.parent.get("class", ())):
            continue
        link = heading.select_one("a.headerlink")
        assert link, heading.text
        assert soup.find(id=link["href"].removeprefix("#")), heading.text


@pytest.mark.parametrize("path", ALL_PAGES, ids=lambda path: path.stem)
def test_no_id_repeats_on_a_page(path):
    soup = BeautifulSoup(path.read_text("utf-8"), "html.parser")
    ids = Counter(tag["id"] for tag in soup.find_all(id=True))
    assert [name for name, count in ids.items() if count > 1] == []


def test_every_file_that_the_page_loads_is_on_the_site(any_page):
    path, soup = any_page
    for tag in soup.find_all(["script", "img", "source", "iframe", "link"]):
        address = tag.get("src") or (tag.name == "link" and tag.get("href"))
        if not address or address.startswith("data:") or tag.get("rel") == ["canonical"]:
            continue
        assert is_local(address), f"{address} is on another host"
        file = (path.parent / unquote(urlsplit(address).path)).resolve()
        assert file.exists(), f"{address} is missing"


def test_every_picture_has_a_text(page):
    _, soup = page
    for image in soup.find_all("img"):
        assert image.get("alt", "").strip(), image
    for drawing in soup.select("svg[role=img]"):
        if "mha-figure" in drawing.get("class", ()):
            assert drawing["aria-label"].strip()
            continue
        assert drawing.title.text.strip()
        assert drawing.desc.text.strip()


def test_no_page_shows_a_traceback_or_stderr(page):
    _, soup = page
    assert "Traceback (most recent call last)" not in soup.get_text()
    assert not soup.select(".output.stderr")


def test_nothing_was_left_unreplaced(page):
    _, soup = page
    text = soup.article.get_text()
    for leftover in ("{{", "```", ":::", "{cite", "{math}"):
        assert leftover not in text


def test_scripts_that_call_other_hosts_are_gone(page):
    _, soup = page
    scripts = " ".join(script.get_text() for script in soup.find_all("script")).lower()
    for name in ("thebe", "unpkg", "cdn.", "jsdelivr", "googletagmanager"):
        assert name not in scripts


def test_a_page_is_painted_with_one_style_sheet_and_no_script_before_it(any_page):
    """Else a browser shows nothing until it has each of a dozen."""
    path, soup = any_page
    if path == SITE / "index.html":  # which only leads on
        return
    assert len(soup.select("link[rel=stylesheet]")) == 1
    waits = [tag["src"] for tag in soup.select("script[src]:not([defer])")]
    assert waits == [] or path.name == "search.html"
