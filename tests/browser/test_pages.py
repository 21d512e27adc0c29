"""Every page of the built book, in a browser."""

from pathlib import Path

import axe_playwright_python
import pytest

from tests.browser.conftest import PAGES, SITE

AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
RUN_AXE = """async (rules) => {
  const options = { resultTypes: ["violations"], rules: rules ?? {} };
  const { violations } = await axe.run(document, options);
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${help}: ${target}: ${failureSummary}`));
}"""


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("scheme", ["http", "file"])
def test_page_asks_nobody_and_complains_of_nothing(visit, site, scheme, page):
    window = visit()
    window.open(f"{site}/{page}" if scheme == "http" else (SITE / page).as_uri())
    assert window.foreign == []
    assert window.complaints == []


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("colours", "width"), [("light", 1280), ("dark", 1280), ("light", 320)])
def test_page_has_no_accessibility_violation(visit, site, colours, width, page):
    window = visit(
        color_scheme=colours, reduced_motion="reduce", viewport={"width": width, "height": 900}
    )
    tab = window.open(f"{site}/{page}")
    assert tab.evaluate("document.documentElement.dataset.theme") == colours
    tab.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    # A reader who asked for less motion sees none, and axe no colours that are still fading in.
    assert tab.evaluate("document.getAnimations().length") == 0
    tab.add_script_tag(path=AXE)
    # Contrast takes most of the time, and the two wide pages have shown it.
    rules = {"color-contrast": {"enabled": width > 320}}
    assert tab.evaluate(RUN_AXE, rules) == []


# A phone, and a window of 1280 pixels enlarged four times.
@pytest.mark.parametrize("width", [390, 320])
@pytest.mark.parametrize("page", PAGES)
def test_narrow_page_does_not_scroll_sideways_nor_code_on_paper(visit, site, page, width):
    tab = visit(viewport={"width": width, "height": 800}).open(f"{site}/{page}")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    tab.emulate_media(media="print")
    cut = "(all) => all.filter((pre) => pre.scrollWidth > pre.clientWidth).length"
    assert tab.locator("pre").evaluate_all(cut) == 0


def test_names_of_parameters_stay_whole_on_a_phone(visit, site):
    tab = visit(viewport={"width": 390, "height": 800}).open(f"{site}/chapters/reference.html")
    names = tab.locator("dt:has(> .classifier) > strong")
    broken = names.evaluate_all("""(all) => all.filter((name) => {
      const words = document.createRange();
      words.selectNodeContents(name);
      const lines = new Set([...words.getClientRects()].map((line) => Math.round(line.top)));
      return !name.textContent.includes(" ") && lines.size > 1;
    }).map((name) => name.textContent)""")
    assert broken == []
    assert names.count() > 100


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


@pytest.mark.parametrize("page", PAGES)
def test_formulas_and_icons_are_drawn(visit, site, page):
    tab = visit().open(f"{site}/{page}")
    assert tab.locator(".math:not(:has(mjx-container))").count() == 0
    assert tab.locator("mjx-merror").count() == 0
    content = "getComputedStyle(icon, '::before').content"
    icons = tab.locator("i[class*='fa-']").all()
    assert icons
    for icon in icons:
        assert icon.evaluate(f"(icon) => {content}") not in ("none", "normal")


@pytest.mark.parametrize("page", PAGES)
def test_without_javascript_each_widget_has_a_picture_with_a_text(visit, site, page):
    window = visit(java_script_enabled=False)
    window.page.goto(f"{site}/{page}")
    for place in window.page.locator(".static-widget + noscript").all():
        assert place.locator("figure").is_visible()
        images = place.locator("img, svg[role=img]")
        assert images.count() > 0
        for image in images.all():
            tag = image.evaluate("(node) => node.tagName.toLowerCase()")
            text = (
                image.get_attribute("alt") if tag == "img" else image.locator("desc").text_content()
            )
            assert len(text) > 20


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
