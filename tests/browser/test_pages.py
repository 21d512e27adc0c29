"""Every page of the built book, in a browser.

A page is opened once for each look, and everything that holds in this look is checked there, each
check as a subtest of its own.  What changes the page comes last.
"""

from pathlib import Path

import axe_playwright_python
import pytest

from tests.browser.conftest import PAGES, SITE

AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
RUN_AXE = """async (rules) => {
  // Style sheets, which axe would fetch once more, are for a rule that is off by default.
  const preload = { assets: ["media"] };
  const options = { resultTypes: ["violations"], rules: rules ?? {}, preload };
  const { violations } = await axe.run(document, options);
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${help}: ${target}: ${failureSummary}`));
}"""


# What holds in some look or other ----------------------------------------------------------------


def asks_nobody(window):
    assert window.foreign == []


def complains_of_nothing(window):
    assert window.complaints == []


def formulas_and_icons_are_drawn(window):
    page = window.page
    assert page.locator(".math:not(:has(mjx-container))").count() == 0
    assert page.locator("mjx-merror").count() == 0
    drawn = "(all) => all.map((icon) => getComputedStyle(icon, '::before').content)"
    icons = page.locator("i[class*='fa-']").evaluate_all(drawn)
    assert icons
    assert not {"none", "normal"} & set(icons)


def does_not_scroll_sideways(window):
    width = window.page.viewport_size["width"]
    assert window.page.evaluate("document.documentElement.scrollWidth") <= width


def names_of_parameters_stay_whole(window):
    broken = window.page.locator("dt:has(> .classifier) > strong").evaluate_all("""(all) =>
      all.filter((name) => {
        const words = document.createRange();
        words.selectNodeContents(name);
        const lines = new Set([...words.getClientRects()].map((line) => Math.round(line.top)));
        return !name.textContent.includes(" ") && lines.size > 1;
      }).map((name) => name.textContent)""")
    assert broken == []


def code_is_not_cut_on_paper(window):
    window.page.emulate_media(media="print")
    cut = "(all) => all.filter((pre) => pre.scrollWidth > pre.clientWidth).length"
    assert window.page.locator("pre").evaluate_all(cut) == 0


def colours_are_the_readers(window):
    page = window.page
    wanted = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'")
    assert page.evaluate("document.documentElement.dataset.theme") == wanted


def nothing_moves(window):
    """A reader who asked for less motion sees none, and axe no colours that are still fading in."""
    window.page.evaluate(
        "document.querySelectorAll('details').forEach((part) => { part.open = true; })"
    )
    assert window.page.evaluate("document.getAnimations().length") == 0


def has_no_accessibility_violation(window):
    page = window.page
    page.add_script_tag(path=AXE)
    # Contrast takes most of the time, and the two wide looks have shown it.
    rules = {"color-contrast": {"enabled": page.viewport_size["width"] > 320}}
    assert page.evaluate(RUN_AXE, rules) == []


def widgets_have_pictures_with_texts(window):
    for place in window.page.locator(".static-widget + noscript").all():
        assert place.locator("figure").is_visible()
        images = place.locator("img, svg[role=img]")
        assert images.count() > 0
        texts = images.evaluate_all(
            "(all) => all.map((one) => one.alt ?? one.querySelector('desc').textContent)"
        )
        assert min(map(len, texts)) > 20


# The looks ---------------------------------------------------------------------------------------

ALWAYS = [asks_nobody, complains_of_nothing]
CALM = [colours_are_the_readers, nothing_moves, has_no_accessibility_violation]
PHONE = [does_not_scroll_sideways, names_of_parameters_stay_whole]
LOOKS = {
    "light": (
        {"reduced_motion": "reduce"},
        [formulas_and_icons_are_drawn, *CALM],
    ),
    "dark, from its file": (
        {"color_scheme": "dark", "reduced_motion": "reduce"},
        [formulas_and_icons_are_drawn, *CALM],
    ),
    "phone": (
        {"viewport": {"width": 390, "height": 800}},
        [*PHONE, code_is_not_cut_on_paper],
    ),
    # A window of 1280 pixels, enlarged four times.
    "enlarged": (
        {"viewport": {"width": 320, "height": 800}, "reduced_motion": "reduce"},
        [*PHONE, *CALM, code_is_not_cut_on_paper],
    ),
    "without JavaScript": (
        {"java_script_enabled": False},
        [widgets_have_pictures_with_texts],
    ),
}


def looks():
    """Yield every page with each look; without JavaScript only those that lose a widget by it."""
    for page in PAGES:
        alive = (SITE / page).exists() and "static-widget" in (SITE / page).read_text("utf-8")
        for look in LOOKS:
            if alive or look != "without JavaScript":
                yield pytest.param(page, look, id=f"{page}, {look}")


@pytest.mark.parametrize(("page", "look"), [*looks()])
def test_page(visit, site, subtests, page, look):
    options, checks = LOOKS[look]
    window = visit(**options)
    window.open((SITE / page).as_uri() if "file" in look else f"{site}/{page}")
    for check in [*checks, *ALWAYS]:
        with subtests.test(check.__name__.replace("_", " ")):
            check(window)


def test_the_reference_pages_show_parameters():
    """Else nothing would be said of their names."""
    pages = [(SITE / page).read_text("utf-8") for page in PAGES]
    assert sum(page.count('class="classifier"') for page in pages) > 100


def test_dark_page_is_printed_in_light(visit, site):
    tab = visit(color_scheme="dark").open(f"{site}/chapters/index.html")
    tab.evaluate("""addEventListener("beforeprint", () => {
      window.paper = getComputedStyle(document.body).backgroundColor;
    })""")
    tab.pdf()
    assert tab.evaluate("paper") == "rgb(255, 255, 255)"
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize("name", ["01_why_one_head_is_not_enough", "06_watch_out_for"])
def test_paper_shows_what_was_folded_except_code_and_the_screen_folds_it_again(visit, site, name):
    tab = visit().open(f"{site}/chapters/{name}.html")
    unfolded = "document.querySelector('.sd-dropdown').open = true"  # by the reader, to stay so
    folded = """[...document.querySelectorAll("details:not([open]), .toggle-hidden")]
      .map((part) => part.matches(".hide") ? "code" : part.textContent.trim())"""
    tab.evaluate(unfolded)
    before = tab.evaluate(folded)
    tab.evaluate(f'addEventListener("beforeprint", () => {{ window.paper = {folded}; }})')
    tab.pdf()
    assert tab.evaluate("paper") == [part for part in before if part == "code"]
    assert tab.evaluate(folded) == before
    assert tab.evaluate("document.querySelector('.sd-dropdown').open")
    assert len(set(before)) > 4  # answers, solutions, and tables or code


@pytest.mark.parametrize("words", ["d_k", "width", "eigenvectors", "frac", "axes"])
def test_search_quotes_formulas_as_they_are_read(visit, site, words):
    window = visit()
    tab = window.open(f"{site}/search.html?q={words}")
    n_found = int(tab.locator(".search-summary").inner_text().split("found ")[1].split()[0])
    quoted = tab.locator("ul.search > li:has(p.context)")
    pages = tab.locator("ul.search > li > a:not([href*='#'])").count()
    quoted.nth(pages - 1).wait_for()
    texts = quoted.locator("p.context").all_inner_texts()
    assert 0 < pages <= n_found
    assert not [text for text in texts if "\\" in text or "Contents" in text]
    if words == "d_k":
        assert any("values of width d_k = d/h." in text for text in texts)
    if words == "eigenvectors":  # a formula that cannot be told in a line is left out
        assert any("… where λ_max is the largest eigenvalue of ffᵀ + ggᵀ:" in t for t in texts)
    assert window.complaints == []
