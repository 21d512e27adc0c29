"""Terms and symbols of the chapters are explained where they stand, in the notation's words."""

import pytest
from bs4 import BeautifulSoup

from tests.browser.conftest import SITE

CHAPTERS = sorted(SITE.glob("chapters/0*.html")) or [SITE / "chapters" / "index.html"]
CHAPTER = "chapters/02_split_attend_concat_project.html"
HEAD = "One complete attention computation on its own slice of the width."


def soup_of(path):
    return BeautifulSoup(path.read_text("utf-8"), "html.parser")


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_each_term_is_explained_once_in_a_section(path):
    page, notation = soup_of(path), soup_of(SITE / "chapters" / "notation.html")
    links = page.select("article a.defined")
    assert len(links) > 5
    seen = set()
    for link in links:
        row = notation.find(id=link["href"].removeprefix("notation.html#"))
        definition = page.find(id=link["aria-describedby"])
        assert row.name == "tr"
        meaning = "".join(row.find_all("td")[-1].get_text().split())
        assert "".join(definition.get_text().split()).startswith(meaning)
        sections = link.find_parents("section")
        place = link["href"], (sections[-2] if len(sections) > 1 else sections[0]).get("id")
        assert place not in seen
        seen.add(place)
        assert not link.find_parent(["h1", "h2", "h3", "pre", "code", "table", "summary"])
        assert not link.find_parent("a")


def test_a_chapter_has_meanings_of_its_own():
    """An offset is a rule in chapter 5 only, and M a matrix in the proofs of chapter 1."""
    for chapter, own in (("1", "symbol-M"), ("5", "word-offset")):
        place = f'"notation.html#chapter-{chapter}-{own}"'
        found = [path.stem[1] for path in CHAPTERS if place in path.read_text("utf-8")]
        assert found == [chapter]


@pytest.fixture
def term(visit, site):
    """Return a link of a chapter, and the place that shows definitions."""
    page = visit().open(f"{site}/{CHAPTER}")
    link = page.locator("article a.defined", has_text="head").first
    return link, page.locator(".definition")


def test_pointing_at_a_term_shows_its_definition_until_one_leaves_both(term):
    link, shown = term
    assert not shown.is_visible()
    link.hover()
    assert shown.inner_text() == HEAD
    shown.hover()
    link.page.wait_for_timeout(300)
    assert shown.is_visible()
    link.page.mouse.move(5, 5)
    shown.wait_for(state="hidden")


def test_so_does_the_keyboard_and_escape_puts_it_away(term):
    link, shown = term
    link.focus()
    assert shown.inner_text() == HEAD
    link.press("Escape")
    assert not shown.is_visible()
    assert link.evaluate("(link) => link === document.activeElement")
    link.press("Tab")
    link.press("Shift+Tab")
    assert not shown.is_visible() or shown.inner_text() == HEAD


def test_screen_readers_tell_it(term):
    link, _ = term
    session = link.page.context.new_cdp_session(link.page)
    found = session.send("Accessibility.getFullAXTree")["nodes"]
    told = {
        node["description"]["value"]
        for node in found
        if node["role"]["value"] == "link" and node.get("description")
    }
    assert HEAD in told


@pytest.mark.parametrize("width", [390, 1280])
def test_every_definition_stands_in_the_window(visit, site, width):
    page = visit(viewport={"width": width, "height": 800}).open(f"{site}/{CHAPTER}")
    boxes = page.evaluate("""() => [...document.querySelectorAll("a.defined")]
      .filter((link) => link.checkVisibility()).map((link) => {
        link.focus();
        const box = document.querySelector(".definition").getBoundingClientRect();
        return [box.left, box.right, box.width, box.height];
      })""")
    assert len(boxes) > 5
    for left, right, wide, high in boxes:
        assert left >= 0
        assert right <= width
        assert wide > 100
        assert high > 20


def test_without_scripts_a_term_is_a_link_to_its_row(visit, site):
    page = visit(java_script_enabled=False).open(f"{site}/{CHAPTER}")
    page.locator("article a.defined", has_text="head").first.click()
    page.wait_for_url("**/notation.html#word-Head")
    assert page.locator("#word-Head").is_visible()
