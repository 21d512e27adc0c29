"""The pruning widget on a bare page: what it shows, against the studies that it was given."""

import re
from dataclasses import replace

import numpy as np
import pytest

from mha_lib.figures.palette import ORDER_LOOKS, TOKENS
from mha_lib.widgets import Pruning
from tests.browser.moves import WAYS, slider
from tests.browser.test_pages import AXE, RUN_AXE

KEYS = tuple(ORDER_LOOKS)
NAMES = (*KEYS, "best choice", "mean of all", "no attention")


@pytest.fixture
def roles(tiny_studies):
    """Return made-up roles for one of the two models."""
    return {"induction": np.array([["previous token", "broad"], ["induction", ""]])}


def kept_of(widget):
    return int(slider(widget, "heads kept").get_attribute("aria-valuetext").split()[0])


def expect_pruning(widget, studies, name):
    """Compare everything that the widget shows with the studies of the chosen model."""
    seeds, kept = np.atleast_1d(studies[name]), kept_of(widget)
    total = len(seeds[0].greedy)
    gone = total - kept
    assert widget.locator(".mha-value").inner_text() == f"{kept} of {total}"
    per_seed = [[seed.curves[key][gone] for seed in seeds] for key in KEYS]
    means, worst, best = np.transpose([seed.subsets[:, gone] for seed in seeds])
    floors = [seed.curves["greedy"][total] for seed in seeds]
    rows = [(np.median(each), min(each), max(each)) for each in per_seed]
    rows += [(np.median(means), min(worst), max(best))]
    rows += [(np.median(floors), min(floors), max(floors))]
    page = widget.evaluate(
        """(section) => {
          const all = (selector, of) => [...section.querySelectorAll(selector)].map(of);
          const text = (node) => node.textContent;
          const number = (name) => (node) => parseFloat(node.getAttribute(name));
          return {
            cells: all("tbody tr", (row) => [...row.querySelectorAll("td")].map(text)),
            tags: all(".mha-tag", (tag) => [...tag.childNodes].map(text)),
            curves: [0, 1, 2, 3, 4, 5].map((i) =>
              section.querySelector(`polyline.mha-series-${i}`).getAttribute("points")),
            area: section.querySelector("polygon").getAttribute("points"),
            cursor: section.querySelector(".mha-cursor").getAttribute("x1"),
            leads: all(".mha-lead", number("y1")),
            picture: section.querySelector("[role=img]").getAttribute("aria-label"),
            heads: all(".mha-order .mha-unseen", text),
            struck: all(".mha-gone", text).length,
            now: all(".mha-now", text),
          };
        }"""
    )
    for i, (cells, expected) in enumerate(zip(page["cells"], rows, strict=True)):
        if len(seeds) == 1 and i != 4:  # only the choices have a range
            assert cells[1:] == ["", ""]
            cells, expected = cells[:1], expected[:1]
        np.testing.assert_allclose([float(cell) for cell in cells], expected, atol=0.000501)
    named = [*(row[0] for row in rows[:4]), rows[4][2], rows[4][0], rows[5][0]]
    assert [tag[0] for tag in page["tags"]] == list(NAMES)
    np.testing.assert_allclose([float(tag[2]) for tag in page["tags"]], named, atol=0.00501)
    np.testing.assert_allclose(page["leads"], 100 - 100 * np.array(named), atol=0.0101)
    said = widget.get_by_role("status").inner_text()
    found = re.search(
        r"(\d) of (\d) heads kept: greedy (.*), mean of all choices (.*), without .* (.*)\.$", said
    )
    expected = [kept, total, rows[0][0], rows[4][0], rows[5][0]]
    np.testing.assert_allclose([float(n) for n in found.groups()], expected, atol=0.000501)
    for name_, value in zip(NAMES, named, strict=True):
        read = re.search(rf"{name_} (\d\.\d+)", page["picture"])[1]
        assert float(read) == pytest.approx(value, abs=0.000501)
    # All heads are at the left, none at the right, as in the figure.
    assert float(page["cursor"].removesuffix("%")) == pytest.approx(100 * gone / total)
    assert page["now"] == [str(kept)]

    curves = [np.median([seed.curves[key] for seed in seeds], axis=0) for key in KEYS]
    curves += [np.median([seed.subsets[0] for seed in seeds], axis=0)]

    def drawn(points):
        xy = np.array([point.split(",") for point in points.split()], float)
        return xy[:, 0] / 100 * total, 1 - xy[:, 1] / 100

    for points, curve in zip(
        page["curves"], [*curves, np.full(total + 1, np.median(floors))], strict=True
    ):
        x, y = drawn(points)
        np.testing.assert_allclose(x, np.arange(total, -1, -1))
        np.testing.assert_allclose(y, curve[::-1], atol=1e-4)
    _, y = drawn(page["area"])
    edges = [
        np.max([s.subsets[2] for s in seeds], 0)[::-1],
        np.min([s.subsets[1] for s in seeds], 0),
    ]
    np.testing.assert_allclose(y, np.concatenate(edges), atol=1e-4)

    layers = 1 + seeds[0].greedy[:, 0].max()
    heads = [
        (f"layer {layer + 1} " if layers > 1 else "") + f"head {head + 1}"
        for layer, head in seeds[0].greedy
    ]
    assert [re.sub(", (?!removed|kept)[^,]*", "", text) for text in page["heads"]] == [
        f"{head}, {'removed' if i < gone else 'kept'}" for i, head in enumerate(heads)
    ]
    assert page["struck"] == gone


@pytest.mark.parametrize("way", WAYS)
def test_shows_every_number_of_heads(open_static, tiny_studies, way):
    page = open_static(Pruning(tiny_studies)).page
    widget = page.get_by_role("region", name="Pruning", exact=True)
    for name in ("three jobs", "induction"):
        radio = widget.get_by_role("radio", name=name)
        if name == "induction":
            if way == "keyboard":
                widget.get_by_role("radio", checked=True).press("ArrowRight")
            else:
                radio.click()
            said = widget.get_by_role("status").inner_text()
            assert said.startswith("Model: from three jobs to induction. ")
        assert radio.is_checked()
        assert widget.get_by_role("radio", checked=True).count() == 1
        for _ in WAYS[way](slider(widget, "heads kept")):
            expect_pruning(widget, tiny_studies, name)


def test_says_which_heads_went_and_came_back(open_static, tiny_studies, roles):
    study = tiny_studies["induction"]
    page = open_static(Pruning({"induction": study}, roles=roles)).page
    heads = [
        f"layer {layer + 1} head {head + 1}, {roles['induction'][layer, head] or 'no clear role'}"
        for layer, head in study.greedy
    ]
    status, control = page.get_by_role("status"), slider(page, "heads kept")
    assert not page.get_by_role("group", name="model").is_visible()
    control.press("End")
    assert status.inner_text().startswith(f"Greedy removes {'; '.join(heads)}. 0 of 4 heads kept")
    control.press("ArrowLeft")
    assert status.inner_text().startswith(f"Greedy keeps {heads[3]}. 1 of 4 heads kept")
    control.press("ArrowLeft")
    control.press("ArrowRight")
    assert status.inner_text().startswith(f"Greedy removes {heads[2]}. 1 of 4 heads kept")
    shown = page.locator(".mha-order li b").all_inner_texts()
    short = {"previous token": "previous", "": "unclear"}
    found = [roles["induction"][tuple(at)] for at in study.greedy]
    assert shown == [short.get(role, role) for role in found]
    read = page.locator(".mha-order .mha-unseen").all_text_contents()
    assert read == [f"{head}, {'removed' if i < 3 else 'kept'}" for i, head in enumerate(heads)]


def test_the_plot_can_be_clicked_and_dragged_and_its_line_is_below_the_thumb(
    open_static, tiny_studies
):
    page = open_static(Pruning(tiny_studies)).page
    plot = page.locator(".mha-drawing").bounding_box()
    y = plot["y"] + plot["height"] / 2
    page.mouse.click(plot["x"] + 0.3 * plot["width"], y)
    assert kept_of(page) == 3
    page.mouse.move(plot["x"] + 0.9 * plot["width"], y)  # no button is down
    assert kept_of(page) == 3
    page.mouse.down()
    for share, kept in ((0.7, 1), (0.2, 3), (-0.2, 4), (1.1, 0)):
        page.mouse.move(plot["x"] + share * plot["width"], y)
        if 0 <= share <= 1:
            assert kept_of(page) == kept
    page.mouse.up()
    track = slider(page, "heads kept").bounding_box()
    assert track["x"] + 8 == pytest.approx(plot["x"], abs=0.6)
    assert track["x"] + track["width"] - 8 == pytest.approx(plot["x"] + plot["width"], abs=0.6)


# Boxes of all that is seen, where they stick out of the widget or of the page.
OUT = """(section) => {
  const frame = section.getBoundingClientRect();
  return [...section.querySelectorAll("*")]
    .filter((node) => !node.closest(".mha-unseen, .mha-said, details:not([open]) > table"))
    .filter((node) => { const box = node.getBoundingClientRect();
      return box.width && (box.left < frame.left - 1 || box.right > frame.right + 1); })
    .map((node) => node.outerHTML.slice(0, 90));
}"""
# Words that lie on one another, or on the next head.
OVERLAP = """(section) => {
  const boxes = [...section.querySelectorAll(".mha-tag")]
    .map((node) => node.getBoundingClientRect())
    .sort((a, b) => a.top - b.top);
  const tags = boxes.slice(1).filter((box, i) => box.top < boxes[i].bottom - 1.5).length;
  const plot = section.querySelector(".mha-frame").getBoundingClientRect();
  const below = boxes.filter((box) => box.bottom > plot.bottom).length;
  const wide = [...section.querySelectorAll(".mha-order .mha-chip > span, .mha-order b")]
    .filter((node) => !node.matches(".mha-unseen"))
    .filter((node) => { const range = document.createRange(); range.selectNodeContents(node);
      return range.getBoundingClientRect().width > node.closest("li").clientWidth + 1; }).length;
  return [tags + below, wide];
}"""


def test_nothing_sticks_out_and_no_setting_moves_the_page(open_static, tiny_studies, roles):
    study = tiny_studies["induction"]
    curves = {name: curve[1:] for name, curve in study.curves.items()}
    small = replace(study, curves=curves, subsets=study.subsets[:, 1:], greedy=study.greedy[1:])
    shown = {**tiny_studies, "small": small}
    window = open_static(Pruning(shown, roles=roles))
    page, widget = window.page, window.page.locator(".mha-widget")
    page.add_style_tag(content="body { margin: 0 }")
    highest = {280: 720, 320: 720, 350: 680, 390: 680, 560: 620, 688: 620}
    for width, most in highest.items():
        page.set_viewport_size({"width": width, "height": 844})
        heights = set()
        for name in shown:
            widget.get_by_role("radio", name=name).check()
            control = slider(widget, "heads kept")
            control.press("Home")
            for _ in range(5):
                heights.add(round(widget.bounding_box()["height"], 1))
                if not widget.locator(".mha-problem").is_visible():
                    assert widget.evaluate(OUT) == []
                    assert widget.evaluate(OVERLAP) == [0, 0], (width, name)
                control.press("ArrowRight")
        assert len(heights) == 1, (width, heights)
        widget.locator("summary").click()
        assert widget.evaluate(OUT) == []
        widget.locator("summary").click()
        assert heights.pop() <= most
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        smallest = widget.evaluate(
            "(s) => Math.min(...[...s.querySelectorAll('span, b, p, figcaption')]"
            ".map((node) => parseFloat(getComputedStyle(node).fontSize)))"
        )
        assert smallest >= 11
    # On a phone the slider and all of the plot are on one screen.
    page.set_viewport_size({"width": 390, "height": 844})
    top = slider(widget, "heads kept").bounding_box()["y"]
    plot = widget.locator(".mha-frame").bounding_box()
    assert plot["y"] + plot["height"] - top < 844 - 64


@pytest.mark.parametrize("width", [320, 390, 688])
def test_letters_of_twice_the_size(open_static, tiny_studies, roles, width):
    study = tiny_studies["induction"]
    curves = {name: curve[2:] for name, curve in study.curves.items()}
    small = replace(study, curves=curves, subsets=study.subsets[:, 2:], greedy=study.greedy[2:])
    shown = {**tiny_studies, "small": small}
    window = open_static(Pruning(shown, roles=roles))
    page, widget = window.page, window.page.locator(".mha-widget")
    page.add_style_tag(content="html { font-size: 200% } body { margin: 0 }")
    page.set_viewport_size({"width": width, "height": 844})
    heights = set()
    for name in shown:
        widget.get_by_role("radio", name=name).check()
        for key in ("Home", "End"):
            slider(widget, "heads kept").press(key)
            heights.add(round(widget.bounding_box()["height"], 1))
            assert widget.evaluate(OVERLAP) == [0, 0]
    assert len(heights) == 1
    widget.locator("summary").click()
    assert widget.evaluate(OUT) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert widget.locator(".mha-drawing").bounding_box()["width"] >= 170


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_curves_have_the_colours_of_the_figure_and_marks_of_their_own(
    open_static, tiny_studies, scheme
):
    page = open_static(Pruning(tiny_studies), color_scheme=scheme).page
    page.evaluate("(name) => { document.documentElement.dataset.theme = name; }", scheme)

    def colour(selector):
        found = page.locator(selector).first.evaluate("(n) => getComputedStyle(n).stroke")
        return "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", found)[:3])

    place = ("light", "dark").index(scheme)
    for i, (name, _) in enumerate(ORDER_LOOKS.values()):
        if name != "ink":  # a page has its own
            assert colour(f"polyline.mha-series-{i}") == TOKENS[name][place]
    found = [
        page.locator(f"path.mha-series-{i}").first.get_attribute("d") for i in range(len(KEYS))
    ]
    assert len(set(found)) == len(KEYS)
    widths = page.locator("polyline").evaluate_all(
        "(all) => all.map((one) => getComputedStyle(one).strokeDasharray)"
    )
    assert set(widths) == {"none"}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_forced_colours_and_print(open_static, tiny_studies, roles, theme):
    window = open_static(Pruning(tiny_studies, roles=roles), color_scheme=theme)
    page = window.page
    other = {"light": "dark", "dark": "light"}[theme]
    page.evaluate("(name) => { document.documentElement.dataset.theme = name; }", other)
    stroke = "(n) => [getComputedStyle(n).stroke, getComputedStyle(document.body).color]"
    lines = [page.locator(f"polyline.mha-series-{i}") for i in range(6)]
    page.emulate_media(forced_colors="active")
    for line in lines:
        drawn, system = line.evaluate(stroke)
        assert drawn == system
    chosen = page.locator(".mha-option:has(:checked)").evaluate(
        "(n) => [getComputedStyle(n).forcedColorAdjust, getComputedStyle(n).color,"
        " getComputedStyle(n).backgroundColor]"
    )
    assert chosen[0] == "none"
    assert chosen[1] != chosen[2]
    page.emulate_media(forced_colors="none", media="print")
    for line, (name, _) in zip(lines, ORDER_LOOKS.values(), strict=False):
        light = "#000000" if name == "ink" else TOKENS[name][0]
        drawn, _ = line.evaluate(stroke)
        assert "#" + "".join(f"{int(n):02x}" for n in re.findall(r"\d+", drawn)[:3]) == light
    assert page.locator("figcaption").inner_text().startswith("three jobs: ")


def test_no_violation_at_any_width(open_static, tiny_studies, roles):
    page = open_static(Pruning(tiny_studies, roles=roles)).page
    page.locator("summary").click()
    page.add_script_tag(path=AXE)
    for width in (280, 390, 688):
        page.set_viewport_size({"width": width, "height": 800})
        slider(page, "heads kept").press("ArrowRight")
        assert page.evaluate(RUN_AXE) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_two_share_a_page(open_static, tiny_studies):
    window = open_static(Pruning(tiny_studies), Pruning(tiny_studies, kept=1))
    one, other = window.page.get_by_role("region", name="Pruning").all()
    one.get_by_role("radio").nth(1).click()
    slider(one, "heads kept").press("ArrowRight")
    expect_pruning(one, tiny_studies, "induction")
    expect_pruning(other, tiny_studies, "three jobs")
    assert (kept_of(one), kept_of(other)) == (3, 1)
    ids = window.page.evaluate("[...document.querySelectorAll('[id]')].map((node) => node.id)")
    assert len(ids) == len(set(ids))
    assert window.complaints == []


def test_the_picture_without_javascript_is_the_same(open_static, visit, tiny_studies):
    address = open_static(Pruning(tiny_studies, kept=2)).page.url
    page = visit(java_script_enabled=False, viewport={"width": 390, "height": 800}).page
    page.goto(address)
    drawing = page.locator("noscript svg[role=img]")
    texts = drawing.locator("text").all_text_contents()
    assert [re.sub(r" \d\.\d\d$", "", text) for text in texts[:7]] == list(NAMES)
    frame = drawing.bounding_box()
    for text in drawing.locator("text").all():
        box = text.bounding_box()
        assert frame["x"] <= box["x"]
        assert box["x"] + box["width"] <= frame["x"] + frame["width"]
