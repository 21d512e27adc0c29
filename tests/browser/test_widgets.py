"""The widgets of the built book: every position of every slider, against the library.

By keyboard on the served site, and by pointer on the same pages opened from their files.
"""

import re

import ipywidgets
import numpy as np
import pytest

from mha_lib import attention_cost, softmax
from mha_lib.figures.palette import WEIGHT_COLOURS
from mha_lib.learning.frontier import job_errors
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


def expect_one_distribution(widget):
    """Compare what the widget says with the library, at its present setting."""
    values = settings(widget).values()
    score, n, h = (float(value.split()[0]) for value in values)
    n, h = int(n), int(h)
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
def test_one_distribution_shows_what_the_library_computes(widget_on_site, way, from_file):
    widget = widget_on_site(OneDistribution, ONE, from_file=from_file)
    for label in ("score of the marked token", "tokens n", "heads h"):
        for _ in WAYS[way](slider(widget, label)):
            expect_one_distribution(widget)


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
def test_budget_shows_what_the_library_computes(widget_on_site, way, from_file):
    widget = widget_on_site(Budget, BUDGET, from_file=from_file)
    for label in ("tokens n", "width d", "heads h", "key/value heads"):
        for _ in WAYS[way](slider(widget, label)):
            expect_budget(widget)


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


# Manners, on a bare page -------------------------------------------------------------------------

KINDS = {
    SPLITTER: lambda runs, studies: HeadSplitter(),
    ONE: lambda runs, studies: OneDistribution(),
    BUDGET: lambda runs, studies: Budget(),
    PLAYBACK: lambda runs, studies: TrainingPlayback(runs["three jobs"]),
    PRUNING: lambda runs, studies: Pruning(studies),
}


NEW = [PLAYBACK, PRUNING]
RADIOS = [SPLITTER, PLAYBACK, PRUNING]  # with radio buttons


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
    # Nothing sticks out of the place that it has; tables of numbers and words may be scrolled.
    wide = widget.evaluate(
        "(section) => [...section.querySelectorAll('*:not(.mha-table, .mha-tokens)')]"
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
    if style == DARK:
        page.evaluate("() => { document.documentElement.dataset.theme = 'dark'; }")
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


def test_nothing_is_read_out_that_says_nothing_new(open_static):
    window = open_static(OneDistribution())
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


def test_two_playbacks_share_a_page(open_static, tiny_runs):
    runs = list(tiny_runs.values())
    window = open_static(*map(TrainingPlayback, runs))
    first, second = window.page.get_by_role("region", name="Training playback").all()
    put(first, "training step", "step 13 of 30")
    first.get_by_role("radio").nth(2).click()
    put(second, "training step", "step 4 of 33")
    expect_playback(first, runs[0], head=2)
    expect_playback(second, runs[1])
    assert (step_of(first), step_of(second)) == (13, 4)
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
