"""Check the built book, as readers get it.  `make book` must have run."""

from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
PAGES = sorted((SITE / "chapters").rglob("*.html")) or [SITE / "chapters" / "index.html"]
ALL_PAGES = sorted([*PAGES, *SITE.glob("*.html")])  # those that Sphinx adds as well


@pytest.fixture(scope="module")
def soups():
    """Parse every page once; give them by path."""
    if not (SITE / "index.html").exists():
        pytest.fail(f"{SITE} is not there: run `make book` first")
    return {path: BeautifulSoup(path.read_text("utf-8"), "html.parser") for path in PAGES}


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


def test_no_internal_link_is_broken(page, soups):
    path, soup = page
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


@pytest.mark.parametrize("path", ALL_PAGES, ids=lambda path: path.stem)
def test_no_id_repeats_on_a_page(path):
    soup = BeautifulSoup(path.read_text("utf-8"), "html.parser")
    ids = Counter(tag["id"] for tag in soup.find_all(id=True))
    assert [name for name, count in ids.items() if count > 1] == []


def test_every_file_that_the_page_loads_is_on_the_site(page):
    path, soup = page
    for tag in soup.find_all(["script", "img", "source", "iframe", "link"]):
        address = tag.get("src") or (tag.name == "link" and tag.get("href"))
        if not address or address.startswith("data:"):
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
