"""One distribution in a browser: every setting against the library, its height, its drawings."""

import re

import numpy as np
import pytest

from mha_lib import softmax
from mha_lib.learning.frontier import job_errors
from mha_lib.widgets import OneDistribution
from mha_lib.widgets.one_distribution import MINUS, TIMES
from tests.browser.moves import WAYS, positions, slider
from tests.browser.test_pages import AXE, RUN_AXE
from tests.browser.test_widgets import DARK, by_every_way, widget_on_site  # noqa: F401

ONE = "One distribution"
LABELS = ("score of the marked token", "tokens n")


# All that a setting shows, read at once: the smallest setting has dozens of bars.
READ = """(widget) => {
  const all = (what) => [...widget.querySelectorAll(what)];
  const texts = (what) => all(what).map((one) => one.innerText);
  const heights = (bars) => [...bars].map((one) => Number(one.getAttribute("height")));
  const dot = (what) => ["cx", "cy"].map((at) => Number(all(what)[0].getAttribute(at)));
  return {
    sliders: Object.fromEntries(all("[type=range]").map((one) => [one.labels[0].textContent,
      one.ariaValueText])),
    two: all("[type=radio]")[1].checked,
    errors: texts(".mha-made b"), captions: texts(".mha-row-says"), sums: texts(".mha-sum"),
    rows: heights(all(".mha-rows rect")),
    made: all(".mha-made svg").map((one) => heights(one.querySelectorAll("rect"))),
    point: dot(".mha-point"), best: dot(".mha-best"),
    said: all("[role=status]")[0].innerText,
  };
}"""


def weights(sliders, two):
    """Return the rows of weights, (h, n), of the setting that the controls show."""
    score, n = (float(sliders[label]) for label in LABELS)
    scores = np.zeros((1 + two, int(n)))
    scores[0, 0] = score
    return softmax(scores)


def errors_at(dot):
    """Return the errors of fetching and averaging at which a dot stands."""
    return (dot[0] - 34) / 220, 1 - (dot[1] - 8) / 220


def expect_one_distribution(widget):
    """Compare what the widget says and draws with the library, at its present setting."""
    shown = widget.evaluate(READ)
    rows = weights(shown["sliders"], shown["two"])
    h, n = rows.shape
    alike = np.ptp(rows[:, 0]) == 0
    fetch, mean = job_errors(rows[0]) if alike else (0.0, 0.0)
    errors = [float(text.removeprefix("error ")) for text in shown["errors"]]
    np.testing.assert_allclose(errors, [fetch, mean], atol=0.00501)
    np.testing.assert_allclose(errors_at(shown["point"]), [fetch, mean], atol=1e-5)
    np.testing.assert_allclose(errors_at(shown["best"]), (1 - n**-0.5) / 2, atol=1e-6)

    assert len(shown["captions"]) == h
    for row, caption in zip(rows, shown["captions"], strict=True):
        numbers = [float(number) for number in re.findall(r"\d\.\d{3}", caption)]
        np.testing.assert_allclose(numbers, row[: len(numbers)], atol=0.000501)
    np.testing.assert_allclose(shown["rows"], 60 * (rows / rows.max()).ravel(), atol=1e-4)

    # The combinations that are printed make what is drawn, with the errors that are shown.
    for i, wanted in enumerate((np.eye(n)[0], np.full(n, 1 / n))):
        text = shown["sums"][i].removeprefix("= ").replace(f"{MINUS} ", "-")
        terms = re.findall(rf"(-?[\d.e+]+) {TIMES} row (\d)", text)
        assert [int(row) for _, row in terms] == [*range(1, h + 1)]
        factors = [float(factor) for factor, _ in terms]
        made = factors @ rows
        error = ((made - wanted) ** 2).sum() / (wanted**2).sum()
        # Three digits of large factors that nearly cancel say less.
        assert error == pytest.approx((fetch, mean)[i], abs=0.004 * max(1, *np.abs(factors)))
        top = max(made[0], made[1], wanted[0])
        tolerance = 0.4 * max(1, *np.abs(factors))
        np.testing.assert_allclose(shown["made"][i], 60 * made / top, atol=tolerance)
    assert (f"below {1 - n**-0.5:.2f}" in shown["said"]) == (h == 1)


@by_every_way
def test_shows_what_the_library_computes(widget_on_site, way, from_file):  # noqa: F811
    widget = widget_on_site(OneDistribution, ONE, from_file=from_file)
    for count in ("one", "two"):
        widget.get_by_role("radio", name=count).click()
        for label in LABELS:
            for _ in WAYS[way](slider(widget, label)):
                expect_one_distribution(widget)


def test_starts_where_the_first_drag_traces_the_curve(open_static):
    page = open_static(OneDistribution()).page
    curve = OneDistribution()._curves["16"]
    assert page.locator(".mha-trace").count() == 1
    control = slider(page, "score of the marked token")
    assert control.input_value() == "0"
    for _ in range(positions(control) - 1):
        control.press("ArrowRight")
    traced = [
        (
            (float(one.get_attribute("cx")) - 34) / 220,
            1 - (float(one.get_attribute("cy")) - 8) / 220,
        )
        for one in page.locator(".mha-trace").all()
    ]
    assert len(traced) == positions(control)
    for fetch, mean in traced:  # on the curve, which is made of short straight pieces
        assert mean == pytest.approx(np.interp(fetch, *np.transpose(curve[::-1])), abs=0.003)
    # Another number of tokens has another curve and a trace of its own.
    slider(page, "tokens n").press("Home")
    assert page.locator(".mha-trace").count() == 1
    slider(page, "tokens n").press("ArrowRight")
    slider(page, "tokens n").press("ArrowRight")
    assert page.locator(".mha-trace").count() == positions(control)


def test_a_second_row_does_both_jobs(open_static):
    page = open_static(OneDistribution(score=1.5)).page
    page.get_by_role("radio", name="two").click()
    expect_one_distribution(page.locator(".mha-widget"))
    assert page.locator(".mha-sum").all_inner_texts() == [
        f"= 5.6 {TIMES} row 1 {MINUS} 4.6 {TIMES} row 2",
        f"= 0 {TIMES} row 1 + 1 {TIMES} row 2",
    ]
    said = page.get_by_role("status").inner_text()
    assert said.startswith("Rows of weights: from one to two. Errors 0.00 and 0.00")
    slider(page, "score of the marked token").press("Home")
    assert "equal rows are worth one" in page.get_by_role("status").inner_text()


@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 390, 704])
def test_no_setting_moves_the_page(open_static, width):
    page = open_static(OneDistribution(), viewport={"width": width, "height": 800}).page
    widget = page.get_by_role("region", name=ONE)
    seen = set()
    for count in ("one", "two"):
        page.get_by_role("radio", name=count).click()
        for tokens in range(5):
            slider(page, "tokens n").fill(str(tokens))
            for place in range(25):
                slider(page, "score of the marked token").fill(str(place))
                seen.add(widget.bounding_box()["height"])
    (height,) = seen
    assert width < 704 or height <= 720
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 360, 390, 704])
@pytest.mark.parametrize("style", ["body { background: #fff }", DARK], ids=["light", "dark"])
def test_nothing_sticks_out_and_all_can_be_read(open_static, width, style):
    page = open_static(OneDistribution(n_heads=2), viewport={"width": width, "height": 800}).page
    page.add_style_tag(content=style)
    page.evaluate("document.documentElement.dataset.theme = 'dark'" if "dark" in style else "0")
    right, boxes = page.locator(".mha-widget").evaluate(
        "(widget) => [widget.getBoundingClientRect().right, [...widget.querySelectorAll('*')]"
        ".filter((one) => !one.closest('.mha-unseen, .mha-moved'))"
        ".map((one) => one.getBoundingClientRect().right)]"
    )
    assert max(boxes) <= right
    sizes = page.locator(".mha-plot text").evaluate_all(
        "(all) => all.map((one) => parseFloat(getComputedStyle(one).fontSize)"
        " * one.ownerSVGElement.getScreenCTM().a)"
    )
    assert min(sizes) >= 11
    page.add_script_tag(path=AXE)
    assert page.evaluate(RUN_AXE) == []


def test_nothing_is_read_out_that_says_nothing_new(open_static):
    page = open_static(OneDistribution()).page
    drawn = page.get_by_role("img")
    # The caption of a row says its weights; of the plot, the numbers on its axes say nothing.
    assert drawn.count() == 1
    assert drawn.locator("text:not([aria-hidden])").count() == 0
    start = OneDistribution()._curves["16"][0]
    assert f"from {start[0]:.2f} and {start[1]:.2f}" in drawn.get_attribute("aria-label")
