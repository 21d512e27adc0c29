"""The head splitter: every setting against the library, on one screen, and nothing moves."""

import itertools

import numpy as np
import pytest

from mha_lib import multi_head_attention
from mha_lib.figures.palette import HEAD_COLOURS
from mha_lib.widgets import HeadSplitter
from tests.browser.conftest import SITE
from tests.browser.moves import WAYS, expect_map, pixels, positions, put, settings, slider
from tests.browser.test_pages import AXE, RUN_AXE
from tests.browser.test_widgets import DARK

SPLITTER = "Head splitter"
WORDS = HeadSplitter().tokens
# The column of the book and its text; a bare page has neither.
COLUMN = """body { margin: 0; font-family: sans-serif } main { width: %dpx }
  h1 { height: 0; margin: 0; overflow: hidden } * { box-sizing: border-box }"""


def open_numbers(widget):
    """Open the table of numbers."""
    widget.locator("summary").click()
    widget.locator(".mha-table tbody tr").first.wait_for()


def shown_weights(widget):
    """Return the marked token's weights as the table shows them, (keys, heads)."""
    rows = widget.locator(".mha-table tbody tr").all_inner_texts()
    return np.array([[float(n) for n in row.split("\t")[1:]] for row in rows])


@pytest.fixture
def splitter(open_static):
    """Return a function that opens a head splitter in a column of some width."""

    def start(widget=None, column=688, style="", **options):
        options = {"viewport": {"width": max(column, 320), "height": 844}, **options}
        page = open_static(widget or HeadSplitter(), **options).page
        page.add_style_tag(content=COLUMN % column + style)
        return page.get_by_role("region", name=SPLITTER, exact=True)

    return start


def part(strip, first, last):
    """Return how opaque some columns of a strip are."""
    return pixels(strip.locator("canvas"))[:, first:last, 3]


def expect_setting(widget, token=6):
    """Compare everything that the head splitter says with the library, at its present setting."""
    h, d = map(int, settings(widget).values())
    d_k, left = divmod(d, h)
    q, k, v, merged, w_o, out = widget.locator(".mha-strip").all()
    bars = q.locator(".mha-heads span").all_inner_texts()
    assert bars == [str(i + 1) for i in range(h)]
    x, *w = HeadSplitter().arrays(d)
    for strip, matrix in zip((q, k, v), w[:3], strict=True):
        shown = (pixels(strip.locator("canvas"))[..., 3] - 30) / 225
        expected = np.abs(x @ matrix) / np.abs(x @ matrix).max()
        np.testing.assert_allclose(shown, expected, atol=0.01)
        assert strip.locator(".mha-left").is_visible() == bool(left)
    said = widget.locator(".mha-sentence").inner_text()
    if left:
        assert said == f"{left} column{'s' * (left > 1)} left over: {h} does not divide {d}."
        box, hatched = (q.locator(part).bounding_box() for part in (".mha-canvas", ".mha-left"))
        assert hatched["width"] == pytest.approx(box["width"] * left / d, abs=1)
        assert hatched["x"] + hatched["width"] == pytest.approx(box["x"] + box["width"], abs=1)
        assert widget.locator(".mha-map:visible").count() == 0
        return
    weights = multi_head_attention(x, *w, h, return_weights=True)[1]  # (h, n, n)
    assert (f"{d_k} of the {d} columns" if h > 1 else f"all {d} columns") in said
    maps = expect_row(widget, weights, token)
    assert len(maps) == h
    expect_map(maps[h - 1].locator(".mha-weights canvas"), weights[h - 1], causal=False)
    blends = [pixels(one.locator(".mha-blend canvas")) for one in maps]
    np.testing.assert_array_equal(np.hstack(blends), pixels(merged.locator("canvas")))
    owners = [HEAD_COLOURS[i // d_k] for i in range(d)]
    rgb = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in owners]
    np.testing.assert_allclose(pixels(w_o.locator("canvas"))[:, 0, :3], rgb, atol=8)
    assert pixels(out.locator("canvas")).shape == (11, d, 4)


def expect_row(widget, weights, token):
    """Compare what is said of a token's row in every head; return the maps."""
    maps = widget.locator(".mha-map").all()
    for head, row in enumerate(weights[:, token]):
        word, number = maps[head].locator(".mha-says").inner_text().split("\n")
        assert number == f"{row.max():.2f}"
        assert row[WORDS.index(word)] > row.max() - 0.01 or WORDS.count(word) > 1
        label = maps[head].get_by_role("img").first.get_attribute("aria-label")
        assert f"“{WORDS[token]}” looks most at “{word}”, {number}." in label
    return maps


@pytest.mark.parametrize("way", WAYS)
def test_it_shows_what_the_library_computes(splitter, way):
    widget = splitter()
    for label in ("heads h", "width d"):
        for _ in WAYS[way](slider(widget, label)):
            expect_setting(widget)
        if label == "heads h":
            put(widget, "heads h", "4" if way == "keyboard" else "5")


def test_the_book_shows_it(visit, site):
    mark = f'"_anywidget_id":"{HeadSplitter.__module__}.{HeadSplitter.__name__}"'
    pages = [p for p in SITE.glob("chapters/*.html") if mark in p.read_text(encoding="utf-8")]
    assert pages
    for home in (site, SITE.as_uri()):
        page = visit().open(f"{home}/chapters/{pages[0].name}")
        widget = page.get_by_role("region", name=SPLITTER, exact=True).first
        widget.wait_for()
        expect_setting(widget)


def test_the_table_shows_the_marked_row(splitter):
    widget = splitter()
    open_numbers(widget)
    for h in (1, 4, 8):
        put(widget, "heads h", str(h))
        weights = HeadSplitter(n_heads=h).weights()[:, 6]
        np.testing.assert_allclose(shown_weights(widget).T, weights, atol=0.00501)
    widget.locator(".mha-tokens input").nth(2).check()
    weights = HeadSplitter(n_heads=8).weights()[:, 2]
    np.testing.assert_allclose(shown_weights(widget).T, weights, atol=0.00501)


# Places ------------------------------------------------------------------------------------------


def heights(widget):
    """Return the height for every setting."""
    found = {}
    for h, d in itertools.product(range(8), range(12)):
        slider(widget, "heads h").fill(str(h))
        slider(widget, "width d").fill(str(d))
        found[tuple(settings(widget).values())] = widget.bounding_box()["height"]
    assert len(found) == 8 * 12
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("column", "most"), [(688, 720), (350, 1100), (280, 1100)])
def test_its_height_is_the_same_for_every_setting(splitter, column, most):
    widget = splitter(column=column)
    found = heights(widget)
    assert len(set(found.values())) == 1, found
    assert max(found.values()) <= most


# Boxes that reach out of the block they stand in, or over the block that follows.
OUTSIDE = """(section) => {
  const shown = (one) => one.checkVisibility({ visibilityProperty: true });
  const box = (one) => one.getBoundingClientRect();
  const edge = box(section), found = [];
  const blocks = section.querySelectorAll(
    ".mha-strips, .mha-maps, .mha-none, .mha-step, .mha-foot");
  for (const block of [...blocks].filter(shown)) {
    for (const one of [...block.querySelectorAll("*")].filter(shown)) {
      const { left, right, top, bottom } = box(one);
      if (left < edge.left - 1 || right > edge.right + 1) found.push(`side: ${one.className}`);
      if (one.matches("input, .mha-row-mark")) continue;
      if (top < box(block).top - 2 || bottom > box(block).bottom + 2) {
        found.push(`${block.className}: ${one.className} ${one.textContent}`);
      }
    }
  }
  return found;
}"""
SMALL = """(section) => [...section.querySelectorAll("*")].filter((one) =>
  [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) &&
  parseFloat(getComputedStyle(one).fontSize) < 11).map((one) => one.outerHTML)"""


@pytest.mark.slow
@pytest.mark.parametrize("zoom", [1, 2])
@pytest.mark.parametrize("column", [688, 350, 320, 280])
def test_nothing_sticks_out_and_no_text_is_small(splitter, column, zoom):
    widget = splitter(column=column, style=f"html {{ font-size: {100 * zoom}% }}")
    for h, d in itertools.product(range(1, 9), (8, 14, 30)):
        slider(widget, "heads h").fill(str(h - 1))
        place = [4, 6, 8, 10, 12, 14, 15, 16, 18, 20, 24, 30].index(d)
        slider(widget, "width d").fill(str(place))
        assert list(settings(widget).values()) == [str(h), str(d)]
        assert widget.evaluate(OUTSIDE) == [], (h, d)
        assert widget.evaluate("(node) => node.scrollWidth <= node.clientWidth"), (h, d)
        assert widget.evaluate(SMALL) == []
    maps = widget.page.evaluate("document.documentElement.scrollWidth")
    assert maps <= max(column, 320)


def test_numbers_have_one_size_and_rows_are_in_line(splitter):
    widget = splitter()
    for h, d in ((4, 16), (8, 24), (2, 4), (5, 30)):
        put(widget, "heads h", str(h))
        put(widget, "width d", str(d))
        boxes = [one.bounding_box() for one in widget.locator(".mha-strip .mha-canvas").all()]
        for box in boxes:
            assert box["width"] / d == pytest.approx(boxes[0]["width"] / d)
        assert boxes[4]["height"] == pytest.approx(boxes[4]["width"])  # W_O is square
        for row in (boxes[:3], boxes[3:]):
            assert len({box["y"] for box in row}) == 1
        for one, other in zip(boxes[:3], boxes[3:], strict=True):
            assert one["x"] == other["x"]
        card = widget.locator(".mha-map").first
        first, blend = (
            card.locator(name).bounding_box() for name in (".mha-weights", ".mha-blend")
        )
        assert blend["height"] == pytest.approx(first["height"])
        assert blend["width"] / (d // h) == pytest.approx(first["width"] / 11, abs=0.02)


def test_maps_of_all_heads_stand_in_one_line(splitter):
    widget = splitter()
    for h in range(1, 9):
        put(widget, "heads h", str(h))
        put(widget, "width d", str({5: 30, 6: 30, 7: 14}.get(h, 24)))
        tops = widget.locator(".mha-map").evaluate_all("(all) => all.map((one) => one.offsetTop)")
        assert len(tops) == h
        assert len(set(tops)) == 1


def test_controls_stay_in_sight(splitter):
    widget = splitter(column=350, viewport={"width": 390, "height": 844}, has_touch=True)
    widget.page.add_style_tag(content="main { padding-bottom: 2000px }")
    widget.page.evaluate("scrollTo(0, 500)")
    box = slider(widget, "heads h").bounding_box()
    assert 0 <= box["y"] <= 60
    style = ":root { --mha-header: 3.5rem }"
    widget.page.add_style_tag(content=style)  # the book's own header is 3.5rem high
    assert slider(widget, "heads h").bounding_box()["y"] == pytest.approx(box["y"] + 56, abs=1)


# Pairs that do not divide ------------------------------------------------------------------------


NEAREST = {
    (3, 16): ["h = 2", "h = 4", "d = 15", "d = 18"],
    (5, 12): ["h = 4", "h = 6", "d = 10", "d = 15"],
    (7, 4): ["h = 4", "d = 14"],
    (8, 30): ["h = 6", "d = 24"],
}


def test_pairs_that_do_not_divide_offer_the_nearest_that_do(splitter):
    widget = splitter()
    for ((h, d), near), at in ((item, i) for item in NEAREST.items() for i in range(len(item[1]))):
        put(widget, "heads h", str(h))
        put(widget, "width d", str(d))
        assert widget.locator(".mha-advice button").all_inner_texts() == near
        assert widget.locator(".mha-strip canvas").first.is_visible()
        assert "n_heads" not in widget.inner_text()
        widget.get_by_role("button", name=near[at], exact=True).click()
        letter, value = near[at].split(" = ")
        moved = "heads h" if letter == "h" else "width d"
        assert settings(widget)[moved] == value
        assert slider(widget, moved).evaluate("(node) => node === document.activeElement")
        assert widget.locator(".mha-map:visible").count() == int(settings(widget)["heads h"])


# Choices -----------------------------------------------------------------------------------------


def marked(widget):
    """Return the token whose radio button is checked."""
    checked = widget.locator(".mha-tokens input").evaluate_all(
        "(all) => all.map((one) => one.checked)"
    )
    assert sum(checked) == 1
    return checked.index(True)


def row_of(widget, mark, where=".mha-weights"):
    """Return the row that a mark is on, in every head."""
    rows = []
    for area in widget.locator(f".mha-map {where}").all():
        box, line = area.bounding_box(), area.locator(mark).bounding_box()
        if line is None:
            return None
        rows.append(int((line["y"] + line["height"] / 2 - box["y"]) / box["height"] * 11))
    assert len(set(rows)) == 1
    return rows[0]


def at_row(widget, row, where=".mha-weights"):
    box = widget.locator(where).first.bounding_box()
    return box["x"] + 10, box["y"] + (row + 0.5) * box["height"] / 11


def test_words_are_chosen_by_keyboard_and_by_click(splitter):
    widget = splitter()
    chosen = widget.locator(".mha-tokens input:checked")
    radios = widget.locator(".mha-tokens input")
    ways = [
        (5, lambda: chosen.press("ArrowLeft")),
        (6, lambda: chosen.press("ArrowDown")),
        (2, lambda: radios.nth(2).click()),
        (9, lambda: widget.page.mouse.click(*at_row(widget, 9))),
        (3, lambda: widget.page.mouse.click(*at_row(widget, 3, ".mha-strip .mha-canvas"))),
        (7, lambda: widget.page.mouse.click(*at_row(widget, 7, ".mha-blend"))),
    ]
    for token, act in ways:
        act()
        widget.page.mouse.move(1, 1)
        assert marked(widget) == token
        assert row_of(widget, ".mha-pin") == row_of(widget, ".mha-pin", ".mha-blend") == token
        assert row_of(widget, ".mha-peek") is None
        assert widget.locator(".mha-names .mha-on").inner_text() == WORDS[token]
        assert f"“{WORDS[token]}” looks most at" in widget.inner_text()
        expect_setting(widget, token)


def test_equal_words_have_different_names(splitter):
    radios = splitter().locator(".mha-tokens").get_by_role("radio")
    assert [one.get_attribute("aria-label") for one in radios.all()] == [
        f"{word}, token {i + 1}" for i, word in enumerate(WORDS)
    ]


def test_a_pointer_previews_and_leaves_everything_as_it_was(splitter):
    widget = splitter()
    before = widget.inner_text(), heights_of_parts(widget)
    said = widget.get_by_role("status").inner_text()
    weights = HeadSplitter().weights()
    for row in range(11):
        widget.page.mouse.move(*at_row(widget, row))
        assert row_of(widget, ".mha-peek") == row
        assert marked(widget) == row_of(widget, ".mha-pin") == 6
        expect_row(widget, weights, row)
        assert heights_of_parts(widget) == before[1]
        assert widget.get_by_role("status").inner_text() == said
    widget.page.mouse.move(1, 1)
    assert widget.inner_text() == before[0]
    assert row_of(widget, ".mha-peek") is None
    widget.locator(".mha-tokens .mha-option").nth(4).hover()
    assert row_of(widget, ".mha-peek") == 4
    assert marked(widget) == 6


def heights_of_parts(widget):
    """Return where every part stands, but for marks, ticks and words."""
    return widget.locator("canvas, p, input, .mha-names, .mha-head").evaluate_all(
        "(all) => all.map((one) => JSON.stringify(one.getBoundingClientRect()))"
    )


def test_a_finger_that_scrolls_marks_nothing(splitter):
    widget = splitter(column=350, viewport={"width": 390, "height": 844}, has_touch=True)
    widget.locator(".mha-weights").first.evaluate(
        "(node) => node.dispatchEvent(new PointerEvent('pointermove',"
        " { bubbles: true, pointerType: 'touch', clientX: 50, clientY: 400, movementY: 9 }))"
    )
    assert row_of(widget, ".mha-peek") is None
    box = widget.locator(".mha-weights").first.bounding_box()
    widget.page.evaluate(f"scrollTo(0, {box['y'] - 300})")
    widget.page.touchscreen.tap(*at_row(widget, 8))
    assert marked(widget) == 8


def lit(widget):
    """Return which heads are lit in Q, in the maps, in the concatenation and in W_O."""
    h, d = map(int, settings(widget).values())
    d_k = d // h
    strips = widget.locator(".mha-strip").all()
    full = [pixels(strips[i].locator("canvas"))[..., 3] for i in (0, 1, 2, 3)]
    by_column = [
        [i for i in range(h) if one[:, i * d_k : (i + 1) * d_k].max() > 40] for one in full
    ]
    w_o = pixels(strips[4].locator("canvas"))[..., 3]
    by_row = [i for i in range(h) if w_o[i * d_k : (i + 1) * d_k].max() > 40]
    dim = widget.locator(".mha-map").evaluate_all(
        "(all) => all.map((one) => [...one.querySelectorAll('canvas')]"
        ".every((canvas) => getComputedStyle(canvas).opacity < 0.5))"
    )
    maps = [i for i in range(h) if not dim[i]]
    assert all(found == maps for found in [*by_column, by_row])
    return maps


def test_a_head_lights_its_whole_way(splitter):
    widget = splitter()
    group = widget.get_by_role("radiogroup", name="Head whose way is lit")
    radios = group.get_by_role("radio")
    names = ["all heads"] + [f"head {i}, columns {4 * i - 3} to {4 * i}" for i in (1, 2, 3, 4)]
    assert [one.get_attribute("aria-label") for one in radios.all()] == names
    assert lit(widget) == [0, 1, 2, 3]
    chosen = group.get_by_role("radio", checked=True)
    status = widget.get_by_role("status")
    chosen.press("ArrowRight")
    assert lit(widget) == [0]
    assert status.inner_text() == (
        "Head 1: columns 1 to 4 of Q, K, V and the concatenation, rows 1 to 4 of W O."
    )
    radios.nth(3).click()
    widget.page.mouse.move(1, 1)
    assert lit(widget) == [2]
    # A pointer previews another one: on its map, on its columns, on its rows of W_O.
    for where, at in ((".mha-map", 1), (".mha-map .mha-head", 3)):
        widget.locator(where).nth(at).hover(position={"x": 12, "y": 12})
        assert lit(widget) == [at]
    box = widget.locator(".mha-strip .mha-canvas").first.bounding_box()
    widget.page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 5)
    assert lit(widget) == [1]
    box = widget.locator(".mha-square").bounding_box()
    widget.page.mouse.move(box["x"] + 9, box["y"] + box["height"] * 0.9)
    assert lit(widget) == [3]
    widget.page.mouse.move(1, 1)
    assert lit(widget) == [2]
    # Without this head all are lit; it comes back with it.
    put(widget, "heads h", "2")
    assert lit(widget) == [0, 1]
    assert radios.first.is_checked()
    put(widget, "heads h", "4")
    assert lit(widget) == [2]
    radios.first.click()
    assert lit(widget) == [0, 1, 2, 3]


def test_a_choice_is_read_out_once(splitter):
    made = HeadSplitter(n_heads=2)
    widget = splitter(made)
    assert widget.locator("[role=status], [aria-live]").count() == 1
    status = widget.get_by_role("status")
    widget.locator(".mha-tokens input:checked").press("ArrowRight")
    rows, chosen = made.weights()[:, 7], WORDS[7]
    tops = (f"head {i + 1}, {WORDS[row.argmax()]} {row.max():.2f}" for i, row in enumerate(rows))
    assert status.inner_text() == f"“{chosen}” looks most at: {'; '.join(tops)}."
    slider(widget, "heads h").press("ArrowLeft")
    assert status.inner_text() == "Heads h: from 2 to 1. One head gets all 16 columns."


def test_line_says_what_changed(splitter):
    widget = splitter()
    status = widget.get_by_role("status")
    assert status.inner_text() == "Each head gets 4 of the 16 columns."
    put(widget, "heads h", "2")
    assert status.inner_text() == "Heads h: from 1 to 2. Each head gets 8 of the 16 columns."
    put(widget, "heads h", "3")
    said = "Heads h: from 2 to 3. 1 column left over: 3 does not divide 16."
    assert status.inner_text() == said
    assert "▸" not in widget.aria_snapshot()


def test_heads_carry_number_and_colour_everywhere(splitter):
    widget = splitter(HeadSplitter(n_heads=8, d=8))
    chips = widget.locator(".mha-map .mha-chip")
    names = [text.split()[:2] for text in chips.all_inner_texts()]
    assert names == [["head", str(i)] for i in range(1, 9)]
    colours = chips.evaluate_all("(all) => all.map((one) => getComputedStyle(one).backgroundColor)")
    assert len(set(colours)) == 8


def test_words_of_the_rows_stand_where_they_fit(splitter):
    widget = splitter(HeadSplitter(n_heads=2, d=8))
    names = widget.locator(".mha-names span")
    shown = "(all) => all.filter((one) => one.offsetWidth > 5).map((one) => one.textContent)"
    assert names.evaluate_all(shown) == WORDS
    area = widget.locator(".mha-weights").first.bounding_box()
    for row, name in enumerate(names.all()):
        box = name.bounding_box()
        middle = area["y"] + (row + 0.5) * area["height"] / 11
        assert box["y"] + box["height"] / 2 == pytest.approx(middle, abs=1.5)
    put(widget, "heads h", "8")
    assert names.evaluate_all(shown) == ["she"]


def test_the_chosen_word_is_in_sight_on_a_phone(splitter):
    for token in (0, 6, 10):
        widget = splitter(HeadSplitter(token=token), column=280)
        widget.page.wait_for_timeout(50)
        strip = widget.locator(".mha-tokens").bounding_box()
        word = widget.locator(".mha-tokens .mha-option").nth(token).bounding_box()
        assert strip["x"] - 1 <= word["x"]
        assert word["x"] + word["width"] <= strip["x"] + strip["width"] + 1


@pytest.mark.parametrize(("column", "style"), [(688, ""), (350, DARK), (280, "")])
def test_it_has_no_accessibility_violation(splitter, column, style):
    widget = splitter(column=column, style=style)
    widget.page.evaluate(f"document.documentElement.dataset.theme = '{'dark' if style else ''}'")
    open_numbers(widget)
    widget.page.add_script_tag(path=AXE)
    for h in ("4", "5", "8"):
        put(widget, "heads h", h)
        assert widget.page.evaluate(RUN_AXE) == []


def test_other_tokens_and_widths_are_drawn(splitter):
    for made in (
        HeadSplitter("one two", n_heads=1, d=64),
        HeadSplitter([f"w{i}" for i in range(32)], n_heads=8, d=64),
        HeadSplitter(["a"], n_heads=12, d=36),
    ):
        widget = splitter(made)
        assert widget.locator(".mha-map").count() == made.n_heads
        assert widget.bounding_box()["height"] <= 720
        assert widget.evaluate(OUTSIDE) == []


def test_without_javascript_there_is_a_picture(open_static, visit):
    address = open_static(HeadSplitter(n_heads=4)).page.url
    for width in (688, 320):
        page = visit(java_script_enabled=False, viewport={"width": width, "height": 900}).page
        page.goto(address)
        figure = page.locator("noscript figure")
        assert figure.locator("figcaption").is_visible()
        assert figure.locator("img").count() == 3 + 4 + 3
        for name in ("Q", "K", "V", "head 1", "head 4", "output"):
            assert figure.get_by_text(name, exact=name != "output").first.is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    maps = page.locator("noscript img[alt^='Attention map']")
    assert len({one.bounding_box()["x"] for one in maps.all()}) > 1


def test_positions_are_those_of_the_choices(splitter):
    widget = splitter()
    assert [positions(slider(widget, label)) for label in ("heads h", "width d")] == [8, 12]


def test_marks_are_seen_in_forced_colours_whatever_theme_is_stored(splitter, subtests):
    widget = splitter(HeadSplitter(n_heads=5), forced_colors="active")
    look = "(node, name) => getComputedStyle(node)[name]"
    for system, stored in itertools.product(("light", "dark"), repeat=2):
        widget.page.emulate_media(color_scheme=system)
        widget.page.evaluate(f"document.documentElement.dataset.theme = '{stored}'")
        highlight, text, page = widget.evaluate(
            "(node) => ['Highlight', 'CanvasText', 'Canvas'].map((colour) => {"
            " node.style.forcedColorAdjust = 'none'; node.style.color = colour;"
            " const found = getComputedStyle(node).color; node.style.color = ''; return found; })"
        )
        with subtests.test(f"{stored} theme on a {system} system"):
            put(widget, "heads h", "5")
            hatch = widget.locator(".mha-left").first
            assert text in hatch.evaluate(look, "backgroundImage")
            assert page in hatch.evaluate(look, "backgroundImage")
            put(widget, "heads h", "4")
            mark = widget.locator(".mha-weights .mha-pin").first
            assert mark.evaluate(look, "borderTopColor") == highlight


def test_print_has_no_controls(splitter):
    widget = splitter()
    widget.page.emulate_media(media="print")
    for role in ("slider", "radio", "button"):
        assert widget.get_by_role(role).count() == 0
    assert widget.locator(".mha-weights canvas").first.is_visible()
    assert widget.evaluate(OUTSIDE) == []
