"""The widgets of the built book: every position of every slider, against the library.

By keyboard and by pointer, each on the served site and on the same pages opened from their files.
"""

import itertools
import re

import ipywidgets
import numpy as np
import pytest

from mha_lib import attention_cost, multi_head_attention, softmax, split_heads
from mha_lib.frontier import job_errors
from mha_lib.widgets import Budget, HeadSplitter, OneDistribution
from tests.browser.conftest import SITE
from tests.browser.moves import WAYS, positions, slider

SPLITTER, ONE, BUDGET = "Head splitter", "One distribution", "Budget"

by_every_way = pytest.mark.parametrize("way", WAYS)
served_and_from_file = pytest.mark.parametrize("from_file", [False, True], ids=["served", "file"])


@pytest.fixture
def widget_on_site(visit, site):
    """Return a function that opens the first page with a widget, and finds the widget there."""

    def start(kind, name, *, from_file=False, **options):
        home = SITE.as_uri() if from_file else site
        mark = f'"_anywidget_id":"{kind.__module__}.{kind.__name__}"'
        for path in sorted(SITE.glob("chapters/*.html")):
            if mark in path.read_text(encoding="utf-8"):
                page = visit(**options).open(f"{home}/chapters/{path.name}")
                page.get_by_role("region", name=name, exact=True).first.wait_for()
                # By its attribute from here on: to look through a page's roles takes long.
                return page.locator(f'section[aria-label="{name}"]').first
        pytest.fail(f"no page of the book shows {kind.__name__}")

    return start


def settings(widget):
    """Return what each slider says, by its label."""
    return dict(
        widget.get_by_role("slider").evaluate_all(
            "(all) => all.map((one) => [one.labels[0].textContent, one.ariaValueText])"
        )
    )


def put(widget, label, spoken):
    """Move a slider by keyboard to the position that says ``spoken``."""
    control = slider(widget, label)
    for _ in WAYS["keyboard"](control):
        if control.get_attribute("aria-valuetext") == spoken:
            return
    pytest.fail(f"{label} has no position {spoken}")


def open_numbers(widget):
    """Open the head splitter's table of numbers."""
    widget.locator("summary").click()
    widget.locator(".mha-table tbody tr").first.wait_for()


def shown_weights(widget):
    """Return the marked token's weights as the table shows them, (keys, heads)."""
    rows = widget.locator(".mha-table tbody tr").all_inner_texts()
    return np.array([[float(n) for n in row.split("\t")[1:]] for row in rows])


def expect_head_splitter(widget, token=6):
    """Compare everything that the head splitter says with the library, at its present setting."""
    h, d = map(int, settings(widget).values())
    if d % h:
        try:
            split_heads(np.zeros((1, d)), h)
        except ValueError as error:
            nearest = re.search(r"use n_heads=[^,]*", str(error))[0]
        said = widget.locator(".mha-problem").inner_text()
        assert said.startswith(f"Impossible: n_heads={h} does not divide d={d}")
        assert nearest in said
        assert not widget.locator(".mha-result").is_visible()
        return
    x, *w = HeadSplitter().arrays(d)
    weights = multi_head_attention(x, *w, h, return_weights=True)[1][:, token]  # (h, n)
    np.testing.assert_allclose(shown_weights(widget).T, weights, atol=0.00501)
    assert widget.locator(".mha-map").count() == h
    says = widget.locator(".mha-says").all_inner_texts()
    for row, text in zip(weights, says, strict=True):
        assert f"{row.max():.2f}" in text
    # The strip of Q has one numbered bar per head.
    bars = widget.locator(".mha-strip").first.locator(".mha-heads span").all_inner_texts()
    assert bars == [str(i + 1) for i in range(h)]
    assert f"{d // h} of the {d} columns" in widget.get_by_role("status").inner_text()


@by_every_way
@served_and_from_file
def test_head_splitter_shows_what_the_library_computes(widget_on_site, way, from_file):
    widget = widget_on_site(HeadSplitter, SPLITTER, from_file=from_file)
    open_numbers(widget)
    for label in ("heads h", "width d"):
        for _ in WAYS[way](slider(widget, label)):
            expect_head_splitter(widget)
        if label == "heads h":
            put(widget, "heads h", "4")


def test_head_splitter_tells_impossible_pairs_from_possible_ones(widget_on_site):
    widget = widget_on_site(HeadSplitter, SPLITTER)
    open_numbers(widget)
    put(widget, "heads h", "5")
    put(widget, "width d", "16")
    assert widget.get_by_text("use n_heads=4 or 8").is_visible()
    # The reason is read out too, and with the move.
    said = widget.get_by_role("status").inner_text()
    assert said.startswith("Width d: from 12 to 16.")
    assert "use n_heads=4 or 8" in said
    put(widget, "heads h", "4")
    assert not widget.locator(".mha-problem").is_visible()


def test_head_splitter_marks_a_token_in_every_head(widget_on_site):
    widget = widget_on_site(HeadSplitter, SPLITTER)
    h = int(settings(widget)["heads h"])
    open_numbers(widget)
    group = widget.get_by_role("radiogroup")
    marked = group.locator("[tabindex='0']")
    ways = [
        (5, lambda: marked.press("ArrowLeft")),
        (0, lambda: marked.press("Home")),
        (10, lambda: marked.press("ArrowUp")),  # round the corner
        (0, lambda: marked.press("ArrowRight")),
        (10, lambda: marked.press("End")),
        (2, lambda: group.get_by_role("radio").nth(2).click()),
        (4, lambda: group.get_by_role("radio").nth(4).hover()),
        (9, lambda: hover_row(widget, 9)),
    ]
    for token, act in ways:
        act()
        assert group.get_by_role("radio", checked=True).count() == 1
        assert group.get_by_role("radio").nth(token).get_attribute("aria-checked") == "true"
        expect_head_splitter(widget, token)
        for head in range(h):
            area = widget.locator(".mha-map .mha-canvas").nth(head).bounding_box()
            mark = widget.locator(".mha-map .mha-row-mark").nth(head).bounding_box()
            middle = mark["y"] + mark["height"] / 2 - area["y"]
            assert int(middle / area["height"] * 11) == token


def hover_row(widget, row):
    area = widget.locator(".mha-map .mha-canvas").first
    area.scroll_into_view_if_needed()
    height = area.bounding_box()["height"]
    area.hover(position={"x": 20, "y": (row + 0.5) * height / 11})


def expect_one_distribution(widget):
    """Compare what the widget says with the library, at its present setting."""
    values = settings(widget).values()
    score, n, h, d = (float(value.split()[0]) for value in values)
    n, h, d = int(n), int(h), int(d)
    if d % h:
        assert f"n_heads={h} does not divide d={d}" in widget.locator(".mha-problem").inner_text()
        return
    scores = np.zeros((h, n))
    scores[:, 0] = [score, 0, 1, 2][:h]
    rows = softmax(scores)
    fetch, mean = job_errors(rows[0]) if np.ptp(rows[:, 0]) == 0 else (0.0, 0.0)
    meters = widget.locator(".mha-meter .mha-value").all_inner_texts()
    shown = [float(text.removeprefix("error ")) for text in meters]
    np.testing.assert_allclose(shown, [fetch, mean], atol=0.00501)
    captions = widget.locator(".mha-bars figcaption").all_inner_texts()
    assert len(captions) == h
    for row, caption in zip(rows, captions, strict=True):
        marked, other = map(float, re.findall(r"\d\.\d{3}", caption))
        np.testing.assert_allclose([marked, other], row[:2], atol=0.000501)
    assert widget.locator(".mha-bars svg").first.locator("rect").count() == n
    if h == 1:
        said = widget.get_by_role("status").inner_text()
        assert f"below {1 - n**-0.5:.2f}" in said
    assert f"= {1 - n**-0.5:.2f}" in widget.locator(".mha-plot figcaption").inner_text()


@by_every_way
@served_and_from_file
def test_one_distribution_shows_what_the_library_computes(widget_on_site, way, from_file):
    widget = widget_on_site(OneDistribution, ONE, from_file=from_file)
    for label in ("score of the marked token", "tokens n", "width d", "heads h"):
        for _ in WAYS[way](slider(widget, label)):
            expect_one_distribution(widget)
    put(widget, "heads h", "4 rows")
    put(widget, "width d", "6")
    expect_one_distribution(widget)
    assert widget.locator(".mha-problem").is_visible()


def test_a_second_row_removes_both_errors(widget_on_site):
    widget = widget_on_site(OneDistribution, ONE)
    widget.get_by_role("button", name="Add a second row").click()
    assert settings(widget)["heads h"] == "2 rows"
    expect_one_distribution(widget)
    assert widget.locator(".mha-meter .mha-value").all_inner_texts() == ["error 0.00"] * 2
    widget.get_by_role("button", name="Back to one row").click()
    assert settings(widget)["heads h"] == "1 row"
    expect_one_distribution(widget)


def expect_budget(widget):
    """Compare the counts shown with `attention_cost`, at the present setting."""
    *counts, kv = settings(widget).values()
    n, d, h = (int(count.replace(",", "")) for count in counts)
    kv = h if kv == "as many as h" else int(kv)
    if d % h or h % kv:
        said = widget.locator(".mha-problem").inner_text()
        assert f"n_heads={h} does not divide d={d}" in said or f"n_kv_heads={kv} does not" in said
        return
    cost, one = attention_cost(n, d, h, n_kv_heads=kv), attention_cost(n, d, 1)
    names = ("parameters", "matmul_flops", "softmax_entries")
    names += ("weight_bytes", "score_bytes", "kv_cache_bytes")
    counts = widget.locator(".mha-count").all_inner_texts()
    assert counts == [f"{getattr(cost, name):,}" for name in names]
    ratios = [float(text.split()[0]) for text in widget.locator("td .mha-value").all_inner_texts()]
    expected = [getattr(cost, name) / getattr(one, name) for name in names]
    np.testing.assert_allclose(ratios, expected, rtol=0.006)


@by_every_way
@served_and_from_file
def test_budget_shows_what_the_library_computes(widget_on_site, way, from_file):
    widget = widget_on_site(Budget, BUDGET, from_file=from_file)
    for label in ("tokens n", "width d", "heads h", "key/value heads"):
        for _ in WAYS[way](slider(widget, label)):
            expect_budget(widget)


# Manners, on a bare page -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name"), [(HeadSplitter, SPLITTER), (OneDistribution, ONE), (Budget, BUDGET)]
)
def test_widget_is_usable_by_touch_and_by_keyboard(open_static, kind, name):
    window = open_static(kind(), viewport={"width": 390, "height": 800}, has_touch=True)
    widget = window.page.get_by_role("region", name=name, exact=True)
    targets = widget.locator("input, button, summary").all()
    assert len(targets) >= 2
    for target in targets:
        box = target.bounding_box()
        assert box["height"] >= 44, target
        assert box["width"] >= 44, target
    assert window.page.evaluate("document.documentElement.scrollWidth") <= 390
    control = widget.get_by_role("slider").first
    control.focus()
    before = control.get_attribute("aria-valuetext")
    for key, expected in (("Home", "0"), ("End", control.get_attribute("max"))):
        control.press(key)
        assert control.input_value() == expected
    control.press("ArrowLeft")
    assert control.get_attribute("aria-valuetext") != before or positions(control) < 3
    assert control.get_attribute("aria-valuetext") in widget.locator(".mha-value").all_inner_texts()
    assert window.complaints == []


def test_line_says_what_changed(open_static):
    window = open_static(HeadSplitter())
    status = window.page.get_by_role("status")
    assert "from" not in status.inner_text()
    put(window.page, "heads h", "2")
    said = "Heads h: from 1 to 2. Each head gets 8 of the 16 columns"
    assert status.inner_text().startswith(said)


def test_choice_of_a_token_is_read_out(open_static):
    splitter = HeadSplitter(n_heads=2)
    page = open_static(splitter).page
    heard = page.locator("[aria-live]")
    assert heard.inner_text() == ""
    page.get_by_role("radio", checked=True).press("ArrowRight")
    words = splitter.tokens
    rows = splitter.weights()[:, splitter.token + 1]
    tops = (f"head {i + 1}, {words[row.argmax()]} {row.max():.2f}" for i, row in enumerate(rows))
    chosen = words[splitter.token + 1]
    assert heard.inner_text() == f"“{chosen}” looks most at: {'; '.join(tops)}."
    # After a move of a slider this would be out of date.
    put(page, "heads h", "4")
    assert heard.inner_text() == ""


def test_nothing_is_read_out_that_says_nothing_new(open_static):
    window = open_static(HeadSplitter(), OneDistribution())
    assert "▸" not in window.page.get_by_role("region", name=SPLITTER).aria_snapshot()
    drawn = window.page.get_by_role("region", name=ONE).get_by_role("img")
    # The caption of a row says its weights; of the plot, the numbers on its axes say nothing.
    assert drawn.count() == 1
    assert drawn.locator("text:not([aria-hidden])").count() == 0
    start = OneDistribution()._curves["16"][0]
    assert f"from {start[0]:.2f} and {start[1]:.2f}" in drawn.get_attribute("aria-label")


def test_columns_of_the_budget_have_names_on_a_phone(open_static):
    window = open_static(Budget(), viewport={"width": 390, "height": 800})
    headers = window.page.get_by_role("columnheader")
    assert headers.all_inner_texts() == ["what", "count", "relative to one head"]
    assert window.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_two_widgets_do_not_disturb_each_other(open_static):
    window = open_static(HeadSplitter(), HeadSplitter(n_heads=2, d=8), Budget())
    first, second = window.page.get_by_role("region", name=SPLITTER, exact=True).all()
    text = second.inner_text(), window.page.get_by_role("region", name=BUDGET).inner_text()
    put(first, "heads h", "8")
    put(first, "width d", "24")
    assert (
        second.inner_text(),
        window.page.get_by_role("region", name=BUDGET).inner_text(),
    ) == text
    ids = window.page.evaluate("[...document.querySelectorAll('[id]')].map((node) => node.id)")
    assert len(ids) == len(set(ids))


def test_setting_outside_the_grid_that_was_saved_is_shown(open_static):
    widget = HeadSplitter(tokens=["a", "b"], n_heads=5, d=35)
    window = open_static(widget)
    assert settings(window.page)["width d"] == "35"
    assert window.page.locator(".mha-map").count() == 5


def test_container_and_link_work_on_a_page(open_static):
    one, two = Budget(), Budget()
    link = ipywidgets.jslink((one, "n_heads"), (two, "n_heads"))
    window = open_static(ipywidgets.VBox([one, ipywidgets.IntSlider(), two]))
    first, second = window.page.get_by_role("region", name=BUDGET, exact=True).all()
    put(first, "heads h", "2")
    assert settings(second)["heads h"] == "2"
    put(second, "heads h", "16")
    assert settings(first)["heads h"] == "16"
    expect_budget(first)
    assert window.page.get_by_text("run in Jupyter").count() == 1
    link.unlink()


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_forced_colours_and_print_show_the_maps(open_static, colours):
    window = open_static(HeadSplitter(), color_scheme=colours, forced_colors="active")
    canvas = window.page.locator(".mha-map canvas").first
    assert canvas.is_visible()
    window.page.emulate_media(media="print")
    assert canvas.is_visible()
    for role in ("slider", "radio", "button"):
        assert window.page.get_by_role(role).count() == 0
    ink = window.page.locator(".mha-widget").evaluate("(node) => getComputedStyle(node).color")
    assert ink in ("rgb(0, 0, 0)", "rgb(255, 255, 255)")


def test_heads_carry_number_and_colour_everywhere(open_static):
    window = open_static(HeadSplitter(n_heads=8, d=8))
    chips = window.page.locator(".mha-map .mha-chip")
    assert chips.all_inner_texts() == [f"head {i}" for i in range(1, 9)]
    colours = chips.evaluate_all("(all) => all.map((one) => getComputedStyle(one).backgroundColor)")
    assert len(set(colours)) == 8
    for one, other in itertools.pairwise(colours):
        assert one != other
