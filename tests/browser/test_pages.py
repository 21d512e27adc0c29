"""Every page of the built book, in a browser.

A page is opened once for each look, and everything that holds in this look is checked there, each
check as a subtest of its own.  What changes the page comes last.
"""

from pathlib import Path

import axe_playwright_python
import pypdfium2
import pytest

from tests.browser.conftest import PAGES, SITE

AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
STRUCTURE = {"rules": {"color-contrast": {"enabled": False}}}
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
RUN_AXE = """async (options) => {
  // Style sheets, which axe would fetch once more, are for a rule that is off by default.
  options = { resultTypes: ["violations"], preload: { assets: ["media"] }, ...options };
  const { violations } = await axe.run(document, options);
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${help}: ${target}: ${failureSummary}`));
}"""
# A page has thousands of words in a few looks: of those alike, the first speaks for all.
LEAVE_ONE_OF_EACH_LOOK = """() => {
  const looks = new Map([[null, ""]]), known = new Set(), alike = [];
  for (const element of document.querySelectorAll("html, body, body *")) {
    const { color, opacity, fontSize, fontWeight, background, textShadow } =
      getComputedStyle(element);
    const own = [element.tagName, color, opacity, fontSize, fontWeight, background, textShadow];
    const look = own.join() + looks.get(element.parentElement);
    looks.set(element, look);
    const texts = [...element.childNodes]
      .filter((node) => node.nodeType === Node.TEXT_NODE && node.data.trim() !== "");
    if (texts.length > 0 && known.size === known.add(look).size) {
      alike.push(...texts);
    } else if (texts.length > 0) {
      texts[0].data = texts[0].data.repeat(2); // axe does not judge a text of one character
    }
  }
  alike.forEach((text) => text.remove());
}"""

# Words outside the window, or cut by what does not scroll, or by what scrolls and cannot take the
# focus.  A table of results may not scroll at all, but in large type.
FIND_WHAT_IS_CUT = """(inLargeType) => {
  const width = document.documentElement.clientWidth, found = new Set();
  const shown = { visibilityProperty: true, opacityProperty: true };
  const unseen = ".visually-hidden, noscript, script, style";
  const focusable = (box) => box.tabIndex >= 0 || box.querySelector("a[href], button, input");
  const place = document.querySelector("main");
  const words = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
  for (let text = words.nextNode(); text; text = words.nextNode()) {
    const parent = text.parentElement;
    if (!text.data.trim() || !parent.checkVisibility(shown) || parent.closest(unseen)) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    for (const { left, right, width: wide, height } of range.getClientRects()) {
      if (wide < 1 || height < 1) continue;
      let [from, to, by, isReadOut] = [left, right, "", false];
      for (let box = parent; box && box !== document.body; box = box.parentElement) {
        const { overflowX, display, clipPath } = getComputedStyle(box);
        isReadOut ||= clipPath === "inset(50%)"; // and not seen
        const frame = box.getBoundingClientRect();
        const fits = from >= frame.left - 1.5 && to <= frame.right + 1.5;
        if (overflowX === "visible" || display === "inline" || fits) continue;
        const scrolls = ["auto", "scroll"].includes(overflowX) && focusable(box);
        const isTable = !inLargeType && box.querySelector("table.results");
        if (!scrolls || isTable) by = box.className || box.tagName;
        [from, to] = [Math.max(from, frame.left), Math.min(to, frame.right)];
      }
      if (to > width + 1 || from < -1) by = "the window";
      if (by && !isReadOut) found.add(`“${text.data.trim().slice(0, 40)}” is cut by ${by}`);
    }
  }
  return [...found];
}"""


# What holds in some look or other ----------------------------------------------------------------


def asks_nobody(window):
    assert window.foreign == []


def complains_of_nothing(window):
    assert window.complaints == []


def formulas_and_icons_are_drawn(window):
    page = window.page
    assert page.locator("span.math, div.math, mjx-container, merror").count() == 0
    flat = """(all) => all.filter((one) => {
      const { width, height } = one.getBoundingClientRect();
      return one.checkVisibility() && (width < 3 || height < 7);
    }).map((one) => one.dataset.tex)"""
    assert page.locator("math").evaluate_all(flat) == []
    if page.locator("math").count():
        assert page.evaluate("document.fonts.check('16px Formulas', 'x')")
    drawn = "(all) => all.map((icon) => getComputedStyle(icon, '::before').content)"
    icons = page.locator("i[class*='fa-']").evaluate_all(drawn)
    assert icons
    assert not {"none", "normal"} & set(icons)


def does_not_scroll_sideways(window):
    width = window.page.viewport_size["width"]
    assert window.page.evaluate("document.documentElement.scrollWidth") <= width


def nothing_is_cut(window):
    assert window.page.evaluate(FIND_WHAT_IS_CUT, False) == []


def nothing_is_cut_in_large_type(window):
    window.page.evaluate("document.documentElement.style.fontSize = '200%'")
    window.page.wait_for_timeout(500)  # as below
    found = window.page.evaluate(FIND_WHAT_IS_CUT, True)
    window.page.evaluate("document.documentElement.style.fontSize = ''")
    assert found == []


def names_of_parameters_stay_whole(window):
    broken = window.page.locator("dt:has(> .classifier) > strong").evaluate_all("""(all) =>
      all.filter((name) => {
        const words = document.createRange();
        words.selectNodeContents(name);
        const lines = new Set([...words.getClientRects()].map((line) => Math.round(line.top)));
        return !name.textContent.includes(" ") && lines.size > 1;
      }).map((name) => name.textContent)""")
    assert broken == []


def code_fits_into_its_column(window):
    wide = """(all) => all.filter((one) => one.scrollWidth > one.clientWidth)
      .map((one) => one.innerText)"""
    assert window.page.locator(".bd-article pre").evaluate_all(wide) == []


def code_is_not_cut_on_paper(window):
    window.page.emulate_media(media="print")
    cut = "(all) => all.filter((pre) => pre.scrollWidth > pre.clientWidth).length"
    n_cut = window.page.locator("pre").evaluate_all(cut)
    window.page.emulate_media(media="screen")
    assert n_cut == 0


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


def has_no_violation(window):
    window.page.add_script_tag(path=AXE)
    assert window.page.evaluate(RUN_AXE, STRUCTURE) == []


def texts_stand_out(window):
    """Last of all, since most of the texts go."""
    window.page.add_script_tag(path=AXE)
    window.page.evaluate(LEAVE_ONE_OF_EACH_LOOK)
    assert window.page.evaluate(RUN_AXE, COLOURS) == []


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
CALM = [colours_are_the_readers, nothing_moves]
NARROW = [nothing_is_cut, does_not_scroll_sideways, names_of_parameters_stay_whole]
STILL = {"reduced_motion": "reduce"}
# Options of the window, and the checks at each width.
LOOKS = {
    "light": (
        STILL,
        {
            1280: [
                formulas_and_icons_are_drawn,
                code_fits_into_its_column,
                *CALM,
                has_no_violation,
                texts_stand_out,
            ]
        },
    ),
    "dark, from its file": (
        STILL | {"color_scheme": "dark"},
        {1280: [formulas_and_icons_are_drawn, *CALM, texts_stand_out]},
    ),
    # A phone, and a window of 1280 pixels enlarged four times.
    "narrow": (
        STILL,
        {390: NARROW, 320: [*NARROW, code_is_not_cut_on_paper, *CALM]},
    ),
    # One window that is drawn ever narrower, with axe on a phone's widths; with `make screens`.
    "ever narrower": (
        STILL,
        {
            1280: [nothing_is_cut, nothing_is_cut_in_large_type],
            768: [nothing_is_cut],
            390: [nothing_is_cut, has_no_violation],
            360: [nothing_is_cut],
            320: [nothing_is_cut, has_no_violation],
        },
    ),
    "without JavaScript": (
        {"java_script_enabled": False},
        {1280: [widgets_have_pictures_with_texts]},
    ),
}


def looks():
    """Yield every page with each look; without JavaScript only those that lose a widget by it."""
    for page in PAGES:
        text = (SITE / page).read_text("utf-8") if (SITE / page).exists() else ""
        if 'http-equiv="refresh"' in text.lower():
            continue
        alive = "static-widget" in text
        for look in LOOKS:
            if alive or look != "without JavaScript":
                # The reference's pages are alike: with `make test` each is looked at once.
                later = look == "ever narrower" or ("reference/" in page and look != "light")
                marks = [pytest.mark.slow] if later else []
                yield pytest.param(page, look, id=f"{page}, {look}", marks=marks)


@pytest.mark.parametrize(("page", "look"), [*looks()])
def test_page(visit, site, subtests, page, look):
    options, at_width = LOOKS[look]
    window = visit(**options, viewport={"width": max(at_width), "height": 800})
    window.open((SITE / page).as_uri() if "file" in look else f"{site}/{page}")
    for width, checks in at_width.items():
        if width != max(at_width):
            window.page.set_viewport_size({"width": width, "height": 800})
            window.page.wait_for_timeout(500)  # the theme looks 300 ms later what scrolls now
        for check in [*checks, *ALWAYS]:
            with subtests.test(f"{check.__name__.replace('_', ' ')}, {width} pixels"):
                check(window)


def test_the_address_alone_leads_to_the_first_page(visit, site):
    page = visit(**STILL).page
    page.goto(f"{site}/")
    page.wait_for_url("**/chapters/index.html")


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


def words_on(paper):
    """Return the letters of printed pages, and those of them that have no ink."""
    letters, unseen = "", ""
    for page in pypdfium2.PdfDocument(paper):
        text, height = page.get_textpage(), page.get_height()
        drawn = page.render(scale=2, grayscale=True).to_numpy().squeeze()  # (rows, columns)
        for i in range(text.count_chars()):
            letter = text.get_text_range(i, 1).strip()
            letters += letter
            left, bottom, right, top = (round(2 * edge) for edge in text.get_charbox(i))
            rows = slice(max(round(2 * height) - top - 1, 0), round(2 * height) - bottom + 2)
            box = drawn[rows, max(left - 1, 0) : right + 2]
            if letter and int(box.max()) - int(box.min()) < 20:
                unseen += letter
    return letters, unseen


@pytest.mark.parametrize(
    "name",
    [pytest.param("01_why_one_head_is_not_enough", marks=pytest.mark.slow), "06_watch_out_for"],
)
def test_paper_shows_what_was_folded_except_code_and_the_screen_folds_it_again(visit, site, name):
    tab = visit().open(f"{site}/chapters/{name}.html")
    unfolded = "document.querySelector('.sd-dropdown').open = true"  # by the reader, to stay so
    folded = """[...document.querySelectorAll("details:not([open]), .toggle-hidden")]
      .map((part) => part.matches(".above-input") ? "code" : part.textContent.trim())"""
    answers = """[...document.querySelectorAll("details.below-input :is(td, pre, .caption-text)")]
      .map((one) => one.textContent)"""
    tab.evaluate(unfolded)
    before = tab.evaluate(folded)
    tab.evaluate(f'addEventListener("beforeprint", () => {{ window.paper = {folded}; }})')
    paper, unseen = words_on(tab.pdf())
    assert tab.evaluate("paper") == [part for part in before if part == "code"]
    assert tab.evaluate(folded) == before
    assert tab.evaluate("document.querySelector('.sd-dropdown').open")
    assert len(set(before)) > 4  # answers, solutions, and tables or code
    # What fades in on the screen can be seen on paper, and nothing is there that is to be pressed.
    assert unseen == ""
    seen = tab.evaluate(answers)
    assert seen
    for words in seen:
        assert "".join(words.split()) in paper
    for button in ("Showtheanswer", "Hidetheanswer", "Showcodecellsource"):
        assert button not in paper


@pytest.mark.parametrize("words", ["d_k", "width", "eigenvectors", "frac", "axes"])
@pytest.mark.parametrize("from_file", [False, True], ids=["served", "file"])
def test_search_quotes_pages_as_they_are_read(visit, site, words, from_file):
    window = visit()
    tab = window.open(f"{SITE.as_uri() if from_file else site}/search.html?q={words}")
    said = tab.locator(".search-summary", has_text="found ").inner_text()  # once it has searched
    n_found = int(said.split("found ")[1].split()[0])
    quoted = tab.locator("ul.search > li:has(p.context)")
    pages = tab.locator("ul.search > li > a:not([href*='#'])").count()
    quoted.nth(pages - 1).wait_for()
    texts = quoted.locator("p.context").all_inner_texts()
    assert 0 < pages <= n_found
    for markup in ("\\", "$", ":::", "```", "Contents"):
        assert not [text for text in texts if markup in text]
    if words == "d_k":
        assert any("values of width d_k = d/h." in text for text in texts)
    if words == "eigenvectors":  # a formula that cannot be told in a line is left out
        assert any("… where λ_max is the largest eigenvalue of ffᵀ + ggᵀ:" in t for t in texts)
    assert window.complaints == []
