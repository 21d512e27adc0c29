"""Every page in Firefox: it loads, every formula is drawn, every slider moves; `make screens`."""

import os

import pytest

from tests.browser.conftest import PAGES, SITE
from tests.browser.firefox import installed, running

pytestmark = pytest.mark.slow
RIGHT, LEFT = "\ue014", "\ue012"

READY = """(async () => {
  await document.fonts.ready;
  const places = [...document.querySelectorAll(".static-widget")];
  const waits = (place) => !("ready" in place.dataset) && !place.querySelector("[role=alert]");
  for (let i = 0; i < 200 && places.some(waits); i++) await new Promise((r) => setTimeout(r, 50));
  for (const part of document.querySelectorAll("details")) part.open = true;
  return places.filter((place) => !("ready" in place.dataset)).length;
})()"""
FLAT = """[...document.querySelectorAll("article math")].filter((one) => {
  const { width, height } = one.getBoundingClientRect();
  return one.checkVisibility() && (width < 3 || height < 7);
}).map((one) => one.dataset.tex)"""
# Fonts are of use only if Firefox has taken them.
DRAWN_WITH = """document.querySelector("math") === null
  || document.fonts.check("16px Formulas", "x")"""
SLIDERS = 'document.querySelectorAll(".mha-widget input[type=range]")'
# The slider itself, what it says, and all else that its widget shows.
STATE = """(() => {
  const one = [...%s][%d], widget = one.closest(".mha-widget");
  one.focus();
  return [one.value, one.max, one.ariaValueText, widget.innerHTML.replace(/<input[^>]*>/g, "")];
})()"""


@pytest.fixture(scope="session")
def firefox():
    path = installed()
    if path is None:
        report = pytest.fail if os.environ.get("CI") else pytest.skip
        report("no Firefox found: install firefox-esr")
    with running(path) as window:
        yield window


@pytest.mark.parametrize("page", PAGES)
def test_page_in_firefox(firefox, site, page):
    firefox.open(f"{site}/{page}")
    assert firefox.evaluate(READY) == 0
    assert firefox.evaluate(FLAT) == []
    assert firefox.evaluate(DRAWN_WITH)
    for number in range(firefox.evaluate(f"{SLIDERS}.length")):
        state = STATE % (SLIDERS, number)
        value, most, said, shown = firefox.evaluate(state)
        firefox.press(LEFT if value == most else RIGHT)
        after = firefox.evaluate(state)
        assert abs(float(after[0]) - float(value)) > 0
        assert after[2] != said
        assert after[3] != shown
    assert firefox.complaints == []
    assert [url for url in firefox.asked if not url.startswith((site, "data:", "blob:"))] == []


def test_there_are_sliders_and_formulas_to_try():
    """Else nothing would be said of them."""
    text = "".join((SITE / page).read_text("utf-8") for page in PAGES)
    assert text.count('class="static-widget"') >= 8
    assert text.count("<math") > 100
