"""The widgets of the built book: every position of every slider, against the library.

By keyboard on the served site, and by pointer on the same pages opened from their files.
"""

import itertools
import re

import ipywidgets
import numpy as np
import pytest

from mha_lib import multi_head_attention, split_heads
from mha_lib.figures.palette import WEIGHT_COLOURS
from mha_lib.learning.roles import chance_scores, head_roles
from mha_lib.widgets import Budget, HeadSplitter, OneDistribution, Pruning, TrainingPlayback
from tests.browser.conftest import SITE
from tests.browser.moves import WAYS, positions, slider
from tests.browser.test_pages import AXE, RUN_AXE

SPLITTER, ONE, BUDGET = "Head splitter", "One distribution", "Budget"
PLAYBACK, PRUNING = "Training playback: previous, marked, most common", "Pruning"

# Each way goes through all positions, and so does each kind of page.
by_every_way = pytest.mark.parametrize(
    ("way", "from_file"), [("keyboard", False), ("pointer", True)], ids=["served", "file"]
)


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


# Training playback, on a bare page ---------------------------------------------------------------


@pytest.fixture(params=["three jobs", "induction"])
def run(request, tiny_runs):
    """Return a model of one layer, then one of two."""
    return tiny_runs[request.param]


def step_of(widget):
    return int(settings(widget)["training step"].split()[1])


def numbers_in(locator):
    """Return the first number in each of the texts."""
    return [float(re.search(r"[\d.]+", text)[0]) for text in locator.all_inner_texts()]


def pixels(canvas):
    """Return the colours of a map, (rows, columns, 4)."""
    size, data = canvas.evaluate(
        "(canvas) => { const { height, width } = canvas;"
        "const image = canvas.getContext('2d').getImageData(0, 0, width, height);"
        "return [[height, width], [...image.data]]; }"
    )
    return np.array(data).reshape(*size, 4)


def expect_map(canvas, weights, causal):
    """Compare the colours of a map with weights, (n, n); what lies ahead is left blank."""
    anchors = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in WEIGHT_COLOURS])
    at = np.linspace(0, 1, len(anchors))
    expected = np.stack([np.interp(weights, at, anchors[:, i]) for i in range(3)], axis=-1)
    drawn = pixels(canvas)
    seen = np.tri(len(weights), dtype=bool) if causal else np.ones_like(weights, bool)
    np.testing.assert_allclose(drawn[seen, :3], expected[seen], atol=3)
    np.testing.assert_array_equal(drawn[..., 3], 255 * seen)


def expect_playback(widget, run, head=0):
    """Compare everything that the playback shows with the snapshot of its step."""
    step = step_of(widget)
    snapshot = run.history.snapshots[step]
    n_steps, names = len(run.history.losses), head_roles(snapshot.scores)  # (L, h)
    assert settings(widget)["training step"] == f"step {step} of {n_steps}"
    said = widget.get_by_role("status").inner_text()
    loss = f"{snapshot.loss:.3f}"
    assert f"Loss {loss}, " in said
    assert widget.locator(".mha-progress figcaption .mha-value").inner_text() == loss
    for line in (".mha-cursor", ".mha-dot"):
        x = float(widget.locator(line).get_attribute("x1"))
        assert x == pytest.approx(100 * step / n_steps)
    jobs = widget.locator(".mha-jobs .mha-value")
    np.testing.assert_allclose(numbers_in(jobs), snapshot.measures, atol=0.00501)
    for role in {*names.flat} - {""}:
        assert role.lower() in said.lower()

    scores = np.stack([*snapshot.scores.values()])  # (R, L, h)
    chance = [*chance_scores(run.model, run.reporting).values()]
    cards = widget.locator(".mha-card")
    assert cards.count() == names.size
    for i, (layer, h) in enumerate(np.ndindex(names.shape)):
        card, name = cards.nth(i), names[layer, h]
        assert card.locator(".mha-chip").inner_text() == f"head {h + 1}"
        assert card.locator(".mha-role").inner_text() == name
        spoken = f"layer {layer + 1} head {h + 1}" if len(names) > 1 else f"head {h + 1}"
        radio = card.get_by_role("radio")
        assert radio.get_attribute("aria-label") == (f"{spoken}, {name}" if name else spoken)
        assert radio.is_checked() == (i == head)
        shown = numbers_in(card.locator(".mha-scores .mha-value"))
        np.testing.assert_allclose(shown, scores[:, layer, h], atol=0.00501)
        brackets = numbers_in(card.locator(".mha-scores .mha-chance"))
        np.testing.assert_allclose(brackets, chance, atol=0.00501)
        assert card.locator(".mha-scores b").count() == (name != "")
        causal = run.model.layers[0].causal
        expect_map(card.locator("canvas"), snapshot.weights[layer, h], causal)
        if i == head:
            expect_map(widget.locator(".mha-large canvas"), snapshot.weights[layer, h], causal)
            chosen = widget.locator(".mha-chosen")
            title = f"{spoken} {name or 'no clear role'}"
            assert chosen.locator("figcaption").inner_text() == title
            shown = numbers_in(chosen.locator(".mha-meter > .mha-value"))
            np.testing.assert_allclose(shown, scores[:, layer, h], atol=0.00501)


def expect_score_table(widget, run):
    """Compare the table with all scores at the present step; its last row is chance."""
    snapshot = run.history.snapshots[step_of(widget)]
    cells = widget.locator(".mha-table tbody tr").all()
    rows = [row.locator("td").all_inner_texts() for row in cells]
    shown = [[float(number) for number in row[:-1]] for row in rows]
    scores = np.stack([*snapshot.scores.values()], axis=-1).reshape(-1, len(snapshot.scores))
    chance = [*chance_scores(run.model, run.reporting).values()]
    np.testing.assert_allclose(shown, [*scores, chance], atol=0.00501)
    assert [row[-1] for row in rows[:-1]] == [n or "none" for n in head_roles(snapshot.scores).flat]


@pytest.mark.parametrize("way", WAYS)
def test_playback_shows_every_snapshot(open_static, run, way):
    widget = open_static(TrainingPlayback(run)).page.get_by_role("region", name="Training playback")
    widget.locator("summary").click()
    widget.locator(".mha-table tbody tr").first.wait_for()
    steps = sorted(run.history.snapshots)
    for position in WAYS[way](slider(widget, "training step")):
        assert step_of(widget) == steps[position]
        expect_playback(widget, run)
        expect_score_table(widget, run)


def test_playback_names_the_example(open_static, run):
    page = open_static(TrainingPlayback(run)).page
    letters = ["ABCDEFGHIJKLMNOP"[i] for i in run.reporting.tokens[0]]
    for side in (".mha-across", ".mha-down"):
        assert page.locator(f"{side} span").all_inner_texts() == letters
        stars = page.locator(f"{side} span").evaluate_all(
            "(all) => all.map((one) => getComputedStyle(one, '::before').content)"
        )
        marked = [i for i, star in enumerate(stars) if star == '"★"']
        assert marked == ([] if run.reporting.marked is None else [run.reporting.marked[0]])


def test_playback_chooses_a_head(open_static, run):
    widget = TrainingPlayback(run, step=max(run.history.snapshots), head=1)
    page = open_static(widget).page
    expect_playback(page, run, head=1)
    radios = page.get_by_role("radio")
    radios.nth(1).press("ArrowRight")
    expect_playback(page, run, head=2)
    radios.nth(2).press("ArrowUp")
    expect_playback(page, run, head=1)
    radios.nth(3).click()
    expect_playback(page, run, head=3)
    slider(page, "training step").press("Home")
    expect_playback(page, run, head=3)


PACE = 500  # milliseconds from one snapshot to the next


def stop_the_clock(page):
    """Let time pass only when a test says so, however slow the machine."""
    page.clock.install(time=0)
    page.clock.pause_at(1000)


def test_playback_plays_to_the_end_and_is_silent_meanwhile(open_static, tiny_runs):
    run = tiny_runs["three jobs"]
    page = open_static(TrainingPlayback(run)).page
    stop_the_clock(page)
    status, button = page.get_by_role("status"), page.locator(".mha-button")
    button.press("Enter")
    for step in (3, 13):
        assert step_of(page) == step
        assert status.get_attribute("aria-live") == "off"
        assert button.inner_text() == "Pause"
        expect_playback(page, run)
        page.clock.run_for(PACE)
    assert button.inner_text() == "Play again"
    assert status.get_attribute("aria-live") is None  # a status is polite by itself
    assert status.inner_text().startswith("The end of training. From step 13 to 30. Loss ")
    expect_playback(page, run)
    page.clock.run_for(3 * PACE)
    assert step_of(page) == 30
    button.click()
    assert step_of(page) == 0
    page.clock.run_for(PACE)
    assert step_of(page) == 3


@pytest.mark.parametrize("way", ["Escape", "button", "slider"])
def test_playback_pauses(open_static, tiny_runs, way):
    page = open_static(TrainingPlayback(tiny_runs["induction"])).page
    stop_the_clock(page)
    button, status = page.locator(".mha-button"), page.get_by_role("status")
    button.click()
    assert step_of(page) == 4
    if way == "Escape":
        page.keyboard.press("Escape")
    elif way == "button":
        button.click()
    else:
        slider(page, "training step").press("Home")
    assert button.inner_text() == "Play"
    assert status.get_attribute("aria-live") is None
    assert status.inner_text().startswith("Paused. ") == (way != "slider")
    page.clock.run_for(3 * PACE)
    assert step_of(page) == (0 if way == "slider" else 4)


def test_playback_moves_nothing_by_itself_for_those_who_asked_for_less_motion(
    open_static, tiny_runs
):
    run = tiny_runs["induction"]
    page = open_static(TrainingPlayback(run), reduced_motion="reduce").page
    stop_the_clock(page)
    button = page.locator(".mha-button")
    for step in (4, 15, 33):
        assert button.inner_text() == "Next snapshot"
        button.click()
        page.clock.run_for(3 * PACE)
        assert step_of(page) == step
        expect_playback(page, run)
    assert button.inner_text() == "Back to the start"
    button.click()
    page.clock.run_for(3 * PACE)
    assert step_of(page) == 0
    # The wish may change while the page is open.
    page.emulate_media(reduced_motion="no-preference")
    page.get_by_role("button", name="Play").click()
    assert step_of(page) == 4
    page.emulate_media(reduced_motion="reduce")
    page.get_by_role("button", name="Next snapshot").wait_for()
    page.clock.run_for(3 * PACE)
    assert step_of(page) == 4


# Pruning, on a bare page -------------------------------------------------------------------------


def kept_of(widget):
    return int(settings(widget)["heads kept"].split()[0])


def expect_pruning(widget, studies, name):
    """Compare everything that the widget shows with the studies of the chosen model."""
    seeds, kept = np.atleast_1d(studies[name]), kept_of(widget)
    total = len(seeds[0].greedy)
    assert settings(widget)["heads kept"] == f"{kept} of {total}"
    keys = ("greedy", "ablation", "gradient", "path")
    per_seed = [[seed.curves[key][total - kept] for seed in seeds] for key in keys]
    means, worst, best = np.transpose([seed.subsets[:, total - kept] for seed in seeds])
    floors = [seed.curves["greedy"][total] for seed in seeds]
    rows = [(np.median(each), min(each), max(each)) for each in per_seed]
    rows += [(np.median(means), min(worst), max(best))]
    rows += [(np.median(floors), min(floors), max(floors))]
    shown = widget.locator("tbody tr").all()
    for i, (row, expected) in enumerate(zip(shown, rows, strict=True)):
        cells = row.locator("td").all_inner_texts()
        if len(seeds) == 1 and i != 4:  # only the choices have a range
            assert cells[1:] == ["", ""]
            cells, expected = cells[:1], expected[:1]
        np.testing.assert_allclose([float(cell) for cell in cells], expected, atol=0.000501)
    said = widget.get_by_role("status").inner_text()
    found = re.search(
        r"(\d) of (\d) heads kept: greedy (.*), mean of all choices (.*), without .* (.*)\.$", said
    )
    expected = [kept, total, rows[0][0], rows[4][0], rows[5][0]]
    np.testing.assert_allclose([float(n) for n in found.groups()], expected, atol=0.000501)
    assert float(widget.locator(".mha-cursor").get_attribute("x1")) == 100 * kept / total

    curves = [np.median([seed.curves[key] for seed in seeds], axis=0) for key in keys]
    curves += [np.median([seed.subsets[0] for seed in seeds], axis=0)]
    for i, curve in enumerate([*curves, np.full(total + 1, np.median(floors))]):
        points = widget.locator(f"figure polyline.mha-series-{i}").get_attribute("points")
        drawn = np.array([point.split(",") for point in points.split()], float)
        np.testing.assert_allclose(drawn[:, 0], np.linspace(0, 100, total + 1))
        np.testing.assert_allclose(1 - drawn[:, 1] / 100, curve[::-1], atol=1e-4)

    layers = 1 + seeds[0].greedy[:, 0].max()
    heads = [
        (f"layer {layer + 1} " if layers > 1 else "") + f"head {head + 1}"
        for layer, head in seeds[0].greedy
    ]
    fate = [" removed"] * (total - kept) + [" kept"] * kept
    texts = widget.locator(".mha-order li").evaluate_all("(all) => all.map((li) => li.textContent)")
    assert texts == [head + what for head, what in zip(heads, fate, strict=True)]
    assert widget.locator(".mha-gone").count() == total - kept
    assert ("of the first seed" in widget.inner_text()) == (len(seeds) > 1)


@pytest.mark.parametrize("way", WAYS)
def test_pruning_shows_every_number_of_heads(open_static, tiny_studies, way):
    page = open_static(Pruning(tiny_studies)).page
    widget = page.get_by_role("region", name=PRUNING, exact=True)
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


def test_pruning_says_which_heads_went_and_came_back(open_static, tiny_studies):
    study = tiny_studies["induction"]
    page = open_static(Pruning({"one": study})).page
    heads = [f"layer {layer + 1} head {head + 1}" for layer, head in study.greedy]
    status, control = page.get_by_role("status"), slider(page, "heads kept")
    assert not page.get_by_role("group", name="model").is_visible()
    control.press("Home")
    assert status.inner_text().startswith(f"Greedy removes {', '.join(heads)}. 0 of 4 heads kept")
    control.press("ArrowRight")
    assert status.inner_text().startswith(f"Greedy keeps {heads[3]}. 1 of 4 heads kept")
    control.press("ArrowRight")
    control.press("ArrowLeft")
    assert status.inner_text().startswith(f"Greedy removes {heads[2]}. 1 of 4 heads kept")


def test_lines_differ_by_more_than_colour(open_static, tiny_studies):
    page = open_static(Pruning(tiny_studies)).page
    style = "(l) => [getComputedStyle(l).strokeDasharray, getComputedStyle(l).strokeWidth].join()"
    drawn = [page.locator(f"polyline.mha-series-{i}").evaluate(style) for i in range(6)]
    assert len(set(drawn)) == 6
    samples = page.locator("tbody .mha-sample:not(.mha-marker)")
    assert [line.evaluate(style) for line in samples.all()] == drawn


# Manners, on a bare page -------------------------------------------------------------------------

KINDS = {
    SPLITTER: lambda runs, studies: HeadSplitter(),
    ONE: lambda runs, studies: OneDistribution(),
    BUDGET: lambda runs, studies: Budget(),
    PLAYBACK: lambda runs, studies: TrainingPlayback(runs["three jobs"]),
    PRUNING: lambda runs, studies: Pruning(studies),
}


NEW = [PLAYBACK, PRUNING]
RADIOS = [ONE, BUDGET, *NEW]  # with radio buttons


@pytest.fixture(params=KINDS)
def kind(request, tiny_runs, tiny_studies):
    """Return a new widget of each kind, and its name on the page."""
    return KINDS[request.param](tiny_runs, tiny_studies), request.param


def test_widget_is_usable_by_touch_and_by_keyboard(open_static, kind):
    window = open_static(kind[0], viewport={"width": 390, "height": 800}, has_touch=True)
    widget = window.page.get_by_role("region", name=kind[1], exact=True)
    targets = widget.locator("input, button, summary").all()
    assert len(targets) >= 2
    for target in targets:
        box = target.bounding_box()
        assert box["height"] >= 44, target
        assert box["width"] >= 44, target
    assert window.page.evaluate("document.documentElement.scrollWidth") <= 390
    # Nothing sticks out of the place that it has; the table of numbers may be scrolled.
    wide = widget.evaluate(
        "(section) => [...section.querySelectorAll('*:not(.mha-table)')]"
        ".filter((node) => node instanceof HTMLElement && node.clientWidth > 1)"
        ".filter((node) => node.scrollWidth > node.clientWidth + 4)"
        ".map((node) => node.outerHTML.slice(0, 80))"
    )
    assert wide == []
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


def test_every_control_is_reached_by_tab(open_static, kind):
    page = open_static(kind[0]).page
    page.locator("summary").evaluate_all("(all) => all.forEach((one) => one.click())")
    controls = page.locator("input[type=range]:enabled, button, summary, [role=region][tabindex]")
    wanted = controls.evaluate_all(
        "(all) => all.filter((one) => one.tabIndex >= 0).map((one) => one.outerHTML)"
    )
    seen = []
    for _ in range(len(wanted) + 2 * (kind[1] in RADIOS)):
        page.keyboard.press("Tab")
        html, ring = page.evaluate(
            "() => { let node = document.activeElement; const { outerHTML } = node;"
            "if (getComputedStyle(node).opacity === '0') node = node.parentElement;"
            "return [outerHTML, getComputedStyle(node).outlineStyle]; }"
        )
        seen.append(html)
        assert ring == "solid" or html.startswith("<body"), html
    assert set(wanted) <= set(seen)
    assert any('type="radio"' in one for one in seen) == (kind[1] in RADIOS)


# The theme's dark colours; a bare page has none.
DARK = """:root { --pst-color-text-base: #ced6dd; --pst-color-text-muted: #9ca4af;
  --pst-color-border: #48566b; --pst-color-surface: #29313d; --pst-color-background: #14181e;
  --pst-color-primary: #459db9; color-scheme: dark; }
  body { background: #14181e; color: #ced6dd; }"""


@pytest.mark.parametrize("kind", NEW, indirect=True)
@pytest.mark.parametrize(
    ("width", "style"), [(1280, "body { background: #fff }"), (390, DARK)], ids=["light", "dark"]
)
def test_widget_has_no_accessibility_violation(open_static, kind, width, style):
    page = open_static(kind[0], viewport={"width": width, "height": 800}).page
    page.add_style_tag(content=style)
    page.locator("summary").evaluate_all("(all) => all.forEach((one) => one.click())")
    page.get_by_role("slider").press("End")
    page.get_by_role("slider").press("ArrowLeft")
    page.add_script_tag(path=AXE)
    assert page.evaluate(RUN_AXE) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("kind", NEW, indirect=True)
def test_without_javascript_there_is_a_picture_with_a_text(open_static, visit, kind):
    address = open_static(kind[0]).page.url
    page = visit(java_script_enabled=False).page
    page.goto(address)
    assert page.locator("noscript figure figcaption").is_visible()
    images = page.locator("noscript img").all()
    drawings = page.locator("noscript svg[role=img]").all()
    texts = [image.get_attribute("alt") for image in images]
    texts += [drawing.locator("desc").text_content() for drawing in drawings]
    # Four heads, before and after training, and the curve; or curves alone.
    assert (len(images), len(drawings)) == ((8, 1) if kind[1] == PLAYBACK else (0, 1))
    assert min(map(len, texts)) > 20
    for image in images + drawings:
        assert image.bounding_box()["width"] >= 90


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
    window = open_static(HeadSplitter())
    assert "▸" not in window.page.get_by_role("region", name=SPLITTER).aria_snapshot()


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


def test_two_playbacks_and_two_prunings_share_a_page(open_static, tiny_runs, tiny_studies):
    runs = list(tiny_runs.values())
    widgets = [*map(TrainingPlayback, runs), Pruning(tiny_studies), Pruning(tiny_studies, kept=1)]
    window = open_static(*widgets)
    first, second = window.page.get_by_role("region", name="Training playback").all()
    third, fourth = window.page.get_by_role("region", name=PRUNING).all()
    put(first, "training step", "step 13 of 30")
    first.get_by_role("radio").nth(2).click()
    put(second, "training step", "step 4 of 33")
    third.get_by_role("radio").nth(1).click()
    put(third, "heads kept", "3 of 4")
    expect_playback(first, runs[0], head=2)
    expect_playback(second, runs[1])
    expect_pruning(third, tiny_studies, "induction")
    expect_pruning(fourth, tiny_studies, "three jobs")
    assert (step_of(first), step_of(second), kept_of(third), kept_of(fourth)) == (13, 4, 3, 1)
    ids = window.page.evaluate("[...document.querySelectorAll('[id]')].map((node) => node.id)")
    assert len(ids) == len(set(ids))
    assert window.complaints == []


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


@pytest.mark.parametrize("kind", NEW, indirect=True)
def test_chosen_value_and_bars_can_be_told_in_forced_colours(open_static, kind):
    page = open_static(kind[0], forced_colors="active").page
    chosen, other = page.locator(".mha-card, .mha-option").all()[:2]
    look = (
        "(node) => { const style = getComputedStyle(node);"
        "return [style.borderTopColor, style.textDecorationLine].join(); }"
    )
    assert chosen.evaluate(look) != other.evaluate(look)
    if kind[1] == PLAYBACK:  # only the chosen map is framed
        canvas = "(node) => { node.style.borderTopColor = 'Canvas'; }"
        before = other.evaluate(look)
        other.evaluate(canvas)
        assert other.evaluate(look) == before
    page.emulate_media(media="print", forced_colors="none")
    assert not page.get_by_role("slider").is_visible()
    assert page.locator(".mha-result").is_visible()


def test_heads_carry_number_and_colour_everywhere(open_static):
    window = open_static(HeadSplitter(n_heads=8, d=8))
    chips = window.page.locator(".mha-map .mha-chip")
    assert chips.all_inner_texts() == [f"head {i}" for i in range(1, 9)]
    colours = chips.evaluate_all("(all) => all.map((one) => getComputedStyle(one).backgroundColor)")
    assert len(set(colours)) == 8
    for one, other in itertools.pairwise(colours):
        assert one != other
