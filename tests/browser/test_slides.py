"""The decks of slides, as a lecturer opens them: from their files, without a network."""

import re

import pytest

from assignments.slides.__main__ import main
from assignments.slides.deck import EXECUTED, make_decks
from tests.browser.conftest import ROOT, Visit

# The decks are made once, for all of them.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slides")]
CHAPTERS = sorted(path.stem for path in (ROOT / "chapters").glob("[0-9][0-9]_*.ipynb"))
# How a slide stands once all its answers are shown: beyond its frame, and how small.
FIT = """() => {
  const slide = deck.getCurrentSlide();
  return { title: slide.querySelector("h1, h2")?.innerText ?? "",
           down: slide.scrollHeight - slide.clientHeight,
           right: slide.scrollWidth - slide.clientWidth,
           size: Number(slide.style.getPropertyValue('--size') || 1) };
}"""
READY = "'ready' in document.documentElement.dataset"


@pytest.fixture(scope="session")
def decks(tmp_path_factory):
    """Make the decks of the built book once; give their folder."""
    if not EXECUTED.exists():
        pytest.fail(f"{EXECUTED} is not there: run `make book` first")
    folder = tmp_path_factory.mktemp("slides")
    make_decks(folder)
    return folder


@pytest.fixture
def show(decks, browser):
    """Return a function that opens a deck, at the size of a projector."""
    visits = []

    def start(chapter, query=""):
        window = Visit(browser, "file:", viewport={"width": 1280, "height": 720})
        visits.append(window)
        window.open((decks / f"{chapter}.html").as_uri() + query)
        window.page.wait_for_function(READY)
        return window

    yield start
    for each in visits:
        each.context.close()


def test_every_chapter_has_a_deck_and_the_list_leads_to_it(decks):
    listing = (decks / "index.html").read_text("utf-8")
    assert sorted(path.stem for path in decks.glob("[0-9]*.html")) == CHAPTERS
    assert all(f'href="{chapter}.html"' in listing for chapter in CHAPTERS)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_slide_fits_asks_nobody_else_and_answers_after_asking(show, chapter):
    window = show(chapter)
    page = window.page
    n_slides = page.evaluate("deck.getTotalSlides()")
    assert n_slides == page.locator("section.leaf").count() > 15  # a widget is no slide
    asked = 0
    for number in range(n_slides):
        page.evaluate("(number) => deck.slide(number)", number)
        current = page.locator("section.leaf.present")
        if question := current.locator(".celltag_question").all():
            asked += "Predict:" in question[0].inner_text()
            # Whatever the slide says after the question is still hidden.
            later = question[0].evaluate(
                "(node) => { let cell = node.closest('.jp-Cell'), open = [];"
                "while ((cell = cell.nextElementSibling))"
                " if (!cell.matches('.fragment:not(.visible), .notes')) open.push(cell.innerText);"
                "return open; }"
            )
            assert later == []
        page.evaluate("() => { while (deck.availableFragments().next) deck.nextFragment(); }")
        fit = page.evaluate(FIT)
        assert fit["down"] <= 0, (number, fit)
        assert fit["right"] <= 1, (number, fit)
        assert fit["size"] >= 0.7, (number, fit)
    assert asked == page.locator(".celltag_question:has-text('Predict:')").count() >= 1
    left = "(all) => all.map((one) => one.textContent).filter((text) => text.includes('$'))"
    assert page.locator(".jp-RenderedMarkdown :is(p, li, td, h2)").evaluate_all(left) == []
    assert window.foreign == window.complaints == []


def test_a_deck_is_led_by_the_keyboard_and_a_widget_keeps_its_own_keys(show):
    page = show("03_compute_budget").page
    page.keyboard.press("Space")
    assert page.evaluate("deck.getIndices().h") == 1
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("deck.getIndices().h") == 0
    slides = page.locator("section.leaf")
    number = slides.evaluate_all("(all) => all.findIndex((s) => s.querySelector('.static-widget'))")
    page.evaluate("(number) => deck.slide(number)", number)
    heads = page.get_by_role("slider", name="heads h")
    before = heads.get_attribute("aria-valuetext") or heads.input_value()
    heads.press("ArrowRight")
    assert (heads.get_attribute("aria-valuetext") or heads.input_value()) != before
    assert page.evaluate("deck.getIndices().h") == number


def test_a_deck_prints_with_a_page_for_each_step(show):
    window = show("02_split_attend_concat_project", "?print-pdf")
    pages = window.page.locator(".pdf-page")
    assert window.page.locator(".pdf-page:has(h1, h2)").count() == pages.count()  # a widget is none
    for box in window.page.locator(".pdf-page section.leaf").all():
        assert box.evaluate("(node) => node.scrollHeight - node.clientHeight") <= 0
        size = box.evaluate("({ offsetHeight, style }) => [offsetHeight, style.cssText]")
        scale = float(dict(re.findall(r"(--size): ([\d.]+)", size[1])).get("--size", 1))
        assert size[0] == pytest.approx(720 / scale, abs=1)
    assert window.page.pdf(prefer_css_page_size=True)[:5] == b"%PDF-"
    assert window.complaints == []


def test_the_command_says_what_is_missing(tmp_path, monkeypatch, capsys):
    assert main([]) == 2
    monkeypatch.setattr("assignments.slides.__main__.make_decks", lambda out: make_decks(out, out))
    assert main([str(tmp_path)]) == 2
    assert "make book" in capsys.readouterr().out
