"""The budget in a browser: every setting against `attention_cost`, its bars, its height."""

from itertools import pairwise, product

import numpy as np
import pytest

from mha_lib import attention_cost
from mha_lib.widgets import Budget
from tests.browser.moves import WAYS, slider
from tests.browser.test_pages import AXE, RUN_AXE
from tests.browser.test_widgets import (  # noqa: F401
    DARK,
    by_every_way,
    put,
    widget_on_site,
)

BUDGET = "Budget"
LABELS = ("tokens n", "width d", "heads h")
NAMES = (
    "parameters",
    "matmul_flops",
    "softmax_entries",
    "weight_bytes",
    "score_bytes",
    "kv_cache_bytes",
)


# All that a setting shows, read at once.
READ = """(widget) => {
  const all = (what) => [...widget.querySelectorAll(what)];
  const texts = (what) => all(what).map((one) => one.textContent);
  const width = (bar) => [parseFloat(bar.style.left) || 0, parseFloat(bar.style.width)];
  const chosen = all("[type=radio]:checked")[0];
  return {
    sliders: Object.fromEntries(all("[type=range]").map((one) => [one.labels[0].textContent,
      one.ariaValueText])),
    sets: chosen.ariaLabel, problem: all(".mha-problem")[0].innerText,
    possible: !all(".mha-problem")[0].checkVisibility({ visibilityProperty: true }),
    digits: texts(".mha-digits"), counts: texts(".mha-count b"), ratios: texts(".mha-ratio"),
    own: all(".mha-own").map(width), more: all(".mha-more").map(width),
    saved: all(".mha-cost-row:has(.mha-own)").map((row) => row.classList.contains("mha-saved")),
  };
}"""


def setting(shown):
    """Return n, d, h and the number of sets of keys and values that the controls show."""
    n, d, h = (int(shown["sliders"][label].replace(",", "")) for label in LABELS)
    return n, d, h, h if shown["sets"] == "one per head" else int(shown["sets"])


def three_digits(value):
    power = max((power for power in (3, 6, 9, 12) if value >= 10**power), default=0)
    return f"{value / 10**power:.3g} " + {0: "", 3: "k", 6: "M", 9: "G", 12: "T"}[power]


def bar_ends(shown):
    """Return where each bar, and that of one head, ends on the axis, as powers of ten, (6, 2)."""
    own = np.array(shown["own"])[:, 1]
    left, more = np.array(shown["more"]).T
    np.testing.assert_allclose(left, own)
    low, high = 3 + 0.09 * own, 3 + 0.09 * (own + more)
    return np.where(shown["saved"], [low, high], [high, low]).T


def expect_budget(widget):
    """Compare what is shown with `attention_cost`, at the present setting."""
    shown = widget.evaluate(READ)
    n, d, h, kv = setting(shown)
    assert shown["possible"] == (not (d % h or h % kv))
    if d % h or h % kv:
        what = f"share d = {d:,} columns" if d % h else f"share {kv} sets of keys and values"
        assert f"h = {h} head" in shown["problem"]
        assert what in shown["problem"]
        return
    cost, one = attention_cost(n, d, h, n_kv_heads=kv), attention_cost(n, d, 1)
    counts = np.array([[getattr(each, name) for name in NAMES] for each in (cost, one)])
    assert shown["digits"] == [f"{count:,}" for count in counts[0]]
    units = ["", "", "", "B", "B", "B"]
    assert [text.strip() for text in shown["counts"]] == [
        three_digits(count) + unit for count, unit in zip(counts[0], units, strict=True)
    ]
    ratios = counts[0] / counts[1]
    for text, ratio in zip(shown["ratios"], ratios, strict=True):
        assert text.endswith(" one head")
        assert (text == "= one head") == (ratio == 1)
        assert ratio == 1 or float(text.split()[0]) == pytest.approx(ratio, rel=0.006)
    # To a 255th of the axis; what is the same ends at the same place.
    np.testing.assert_allclose(bar_ends(shown), np.log10(counts).T, atol=0.018)
    assert (np.diff(bar_ends(shown))[ratios == 1] == 0).all()


@by_every_way
def test_shows_what_the_library_computes(widget_on_site, way, from_file):  # noqa: F811
    widget = widget_on_site(Budget, BUDGET, from_file=from_file)
    for sets in ("one per head", "1", "2"):
        widget.get_by_role("radio", name=sets, exact=True).click()
        for label in LABELS:
            for _ in WAYS[way](slider(widget, label)):
                expect_budget(widget)
            put(widget, "heads h", "8")
            put(widget, "width d", "512")


@pytest.mark.parametrize("label", ["tokens n", "width d"])
def test_bars_move_for_n_and_d(open_static, label):
    page = open_static(Budget(n_heads=4)).page
    seen = []
    for _ in WAYS["keyboard"](slider(page, label)):
        seen.append(bar_ends(page.locator(".mha-widget").evaluate(READ))[:, 0])
    moves = {"tokens n": [1, 2, 4, 5], "width d": [0, 1, 3, 5]}[label]
    for before, after in pairwise(seen):
        assert (after[moves] > before[moves]).all()


def test_the_axis_says_what_its_lines_are(open_static):
    page = open_static(Budget()).page
    places = page.locator(".mha-power").evaluate_all(
        "(all) => all.filter((one) => one.textContent)"
        ".map((one) => [one.textContent, parseFloat(one.style.left)])"
    )
    assert places == [
        [text, pytest.approx(100 * (power - 3) / 9, abs=0.01)]
        for text, power in (("1 k", 3), ("1 M", 6), ("1 G", 9), ("1 T", 12))
    ]


def test_an_impossible_pair_offers_the_nearest_possible_ones(open_static):
    page = open_static(Budget()).page
    widget = page.locator(".mha-widget")
    kept = page.locator(".mha-result").inner_html()
    put(page, "heads h", "12")
    problem = page.locator(".mha-problem")
    assert problem.get_by_role("button").all_inner_texts() == [
        "d = 192",
        "d = 768",
        "h = 8",
        "h = 16",
    ]
    assert page.locator(".mha-result").is_visible()
    assert page.locator(".mha-result").inner_html() == kept
    # Said once, and with the move.
    said = page.get_by_role("status").text_content()
    assert said.startswith("Heads h: from 8 to 12. Impossible: h = 12 heads cannot share d = 512")
    assert said.lower().count("impossible") == 1
    problem.get_by_role("button", name="d = 768").click()
    assert setting(widget.evaluate(READ)) == (1024, 768, 12, 12)
    assert slider(page, "width d").evaluate("(node) => node === document.activeElement")
    expect_budget(widget)

    put(page, "heads h", "1")
    page.get_by_role("radio", name="2", exact=True).click()
    assert problem.get_by_role("button").all_inner_texts() == ["h = 2", "1 set", "one set per head"]
    problem.get_by_role("button", name="1 set").click()
    expect_budget(widget)


@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 390, 704])
def test_no_setting_moves_the_page(open_static, width):
    page = open_static(Budget(), viewport={"width": width, "height": 800}).page
    widget = page.get_by_role("region", name=BUDGET)
    seen = set()
    for sets in page.get_by_role("radio").all():
        sets.click()
        for d, h in product(range(4), range(6)):
            slider(page, "width d").fill(str(d))
            slider(page, "heads h").fill(str(h))
            for n in (0, 4):
                slider(page, "tokens n").fill(str(n))
                seen.add(widget.bounding_box()["height"])
    (height,) = seen
    assert height <= 720
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 360, 390, 704])
@pytest.mark.parametrize("style", ["body { background: #fff }", DARK], ids=["light", "dark"])
def test_nothing_sticks_out_and_all_can_be_read(open_static, width, style):
    budget = Budget(n=8192, d=1024, n_heads=16, n_kv_heads=1)  # the longest numbers
    page = open_static(budget, viewport={"width": width, "height": 800}).page
    page.add_style_tag(content=style)
    page.add_script_tag(path=AXE)
    for heads in ("16", "12"):
        put(page, "heads h", heads)
        right, boxes, wide = page.locator(".mha-widget").evaluate(
            "(widget) => { const all = [...widget.querySelectorAll('*')]"
            ".filter((one) => !one.closest('.mha-unseen, .mha-moved, .mha-cost-head'));"
            "return [widget.getBoundingClientRect().right,"
            " all.map((one) => one.getBoundingClientRect().right),"
            " all.filter((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 1)"
            ".map((one) => one.outerHTML)]; }"
        )
        assert max(boxes) <= right
        assert wide == []
        assert page.evaluate(RUN_AXE) == []


def test_large_letters_do_not_run_into_each_other(open_static):
    page = open_static(
        Budget(n_heads=16, n_kv_heads=1), viewport={"width": 390, "height": 844}
    ).page
    page.add_style_tag(content="html { font-size: 200% }")
    for row in page.locator(".mha-cost-row:has(.mha-own)").all():
        ends = [
            row.locator(part).evaluate(
                "(node) => { const range = document.createRange(); range.selectNodeContents(node);"
                "const { left, right, top, bottom } = range.getBoundingClientRect();"
                "return [left, right, top, bottom]; }"
            )
            for part in (".mha-what", ".mha-ratio", ".mha-count")
        ]
        for one, other in ((0, 1), (0, 2), (1, 2)):
            a, b = ends[one], ends[other]
            assert a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] + 1 or b[3] <= a[2] + 1


def test_the_chosen_number_of_sets_can_be_read_in_forced_colours(open_static):
    page = open_static(Budget(), forced_colors="active").page
    look = "(node) => [getComputedStyle(node).color, getComputedStyle(node).backgroundColor]"
    ink, ground = page.locator(".mha-option:has(:checked)").evaluate(look)
    other = page.locator(".mha-option:not(:has(:checked))").first.evaluate(look)
    assert ink != ground
    assert [ink, ground] != other


def test_costs_are_a_table_for_those_who_listen(open_static):
    page = open_static(Budget(), viewport={"width": 390, "height": 800}).page
    headers = page.get_by_role("columnheader").all_inner_texts()
    assert headers == ["cost", "count", "relative to one head"]
    row = page.get_by_role("row").nth(3)
    assert row.get_by_role("rowheader").inner_text() == "softmax entries"
    assert row.get_by_role("cell").all_inner_texts()[0].startswith("8.39 M")
