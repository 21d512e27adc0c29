"""The training playback in a browser: every snapshot of tiny models, against what was kept."""

import json
import re

import numpy as np
import pytest

from mha_lib.learning.roles import chance_scores, head_roles
from mha_lib.widgets import TrainingPlayback
from tests.browser.moves import expect_map, settings, slider

KEYS = {"ArrowRight": 1, "ArrowLeft": -1, "PageUp": 5, "PageDown": -5}


@pytest.fixture(params=["three jobs", "induction"])
def run(request, tiny_runs):
    """Return a model of one layer, then one of two."""
    return tiny_runs[request.param]


def step_of(widget):
    return int(settings(widget)["training step"].split()[1])


def numbers_in(locator):
    """Return the first number in each of the texts."""
    return [float(re.search(r"[\d.]+", text)[0]) for text in locator.all_inner_texts()]


def expect_playback(widget, run, head):
    """Compare everything that the playback shows with the snapshot of its step."""
    step = step_of(widget)
    snapshot = run.history.snapshots[step]
    n_steps, names = len(run.history.losses), head_roles(snapshot.scores)  # (L, h)
    assert settings(widget)["training step"] == f"step {step} of {n_steps}"
    said = widget.get_by_role("status").inner_text()
    loss = f"{snapshot.loss:.3f}"
    assert f"Loss {loss}, " in said
    assert widget.locator(".mha-loss").inner_text() == loss
    thumb = widget.locator(".mha-scrub input").bounding_box()
    at = thumb["x"] + 8 + (thumb["width"] - 16) * step / n_steps  # the middle of the thumb
    drawn = widget.locator(".mha-cursor").bounding_box()
    assert drawn["x"] + drawn["width"] / 2 == pytest.approx(at, abs=1.1)
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
        number = f"{layer + 1}-{h + 1}" if len(names) > 1 else str(h + 1)
        assert card.locator(".mha-chip").inner_text() == f"head {number}"
        assert card.locator(".mha-role").inner_text() == name
        spoken = f"layer {layer + 1} head {h + 1}" if len(names) > 1 else f"head {h + 1}"
        radio = card.get_by_role("radio")
        assert radio.get_attribute("aria-label") == (f"{spoken}, {name}" if name else spoken)
        assert radio.is_checked() == (i == head)
        causal = run.model.layers[0].causal
        expect_map(card.locator("canvas"), snapshot.weights[layer, h], causal)
        if i == head:
            expect_map(widget.locator(".mha-large canvas"), snapshot.weights[layer, h], causal)
            chosen = widget.locator(".mha-chosen")
            title = f"{spoken} {name or 'no clear role'}"
            assert chosen.locator("figcaption").inner_text() == title
            shown = numbers_in(chosen.locator(".mha-meter > .mha-value"))
            np.testing.assert_allclose(shown, scores[:, layer, h], atol=0.00501)
            levels = numbers_in(chosen.locator(".mha-chance"))
            np.testing.assert_allclose(levels, chance, atol=0.00501)
            assert chosen.locator(".mha-meter b").count() == (name != "")
            assert (chosen.locator(".mha-spread").inner_text() != "") == (name == "broad")


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


def by_keyboard(control, steps):
    control.press("Home")
    yield steps[0]
    for step in steps[1:]:
        control.press("ArrowRight")
        yield step


def by_pointer(control, steps):
    """Click a little beside each snapshot: the nearest is taken."""
    box = control.bounding_box()
    for step in steps[::-1]:
        x = 8 + (box["width"] - 16) * step / steps[-1]
        control.page.mouse.click(box["x"] + x, box["y"] + box["height"] / 3)
        yield step


def by_screen_reader(control, steps):
    """Ask for the next value, as a slider is moved that has the keys of a screen reader."""
    control.press("Home")
    more = """(one) => { one.value = Number(one.value) + 1;
      one.dispatchEvent(new Event("input", { bubbles: true })); }"""
    yield steps[0]
    for step in steps[1:]:
        control.evaluate(more)
        yield step


@pytest.mark.parametrize("way", [by_keyboard, by_pointer, by_screen_reader])
def test_playback_shows_every_snapshot(open_static, run, way):
    page = open_static(TrainingPlayback(run, head=1)).page
    widget = page.get_by_role("region", name="Training playback")
    widget.locator("summary").click()
    widget.locator(".mha-table tbody tr").first.wait_for()
    for step in way(slider(widget, "training step"), sorted(run.history.snapshots)):
        assert step_of(widget) == step
        expect_playback(widget, run, head=1)
        expect_score_table(widget, run)


def test_keys_go_from_snapshot_to_snapshot(open_static, run):
    page = open_static(TrainingPlayback(run, step=0)).page
    control, steps = slider(page, "training step"), sorted(run.history.snapshots)
    at = 0
    for key in ("ArrowRight", "PageUp", "ArrowLeft", "PageDown", "ArrowLeft"):
        control.press(key)
        at = min(max(at + KEYS[key], 0), len(steps) - 1)
        assert step_of(page) == steps[at]


def test_a_swipe_over_the_curve_changes_nothing(open_static, run):
    page = open_static(TrainingPlayback(run, step=0)).page
    slider(page, "training step").evaluate("""(one) => {
      const tell = (kind) => one.dispatchEvent(new PointerEvent(kind, { bubbles: true }));
      tell("pointerdown");
      one.value = one.max;
      one.dispatchEvent(new Event("input", { bubbles: true }));
      tell("pointercancel");
    }""")
    page.wait_for_timeout(50)
    assert step_of(page) == 0


def test_it_opens_on_a_head_that_becomes_something(open_static, run):
    page = open_static(TrainingPlayback(run)).page
    # Of the made-up scores, the first head's have grown most; only at the end it has a name.
    expect_playback(page, run, head=0)
    assert step_of(page) == max(run.history.snapshots)


@pytest.mark.slow
@pytest.mark.parametrize("width", [688, 350, 280])
def test_no_step_and_no_head_moves_the_page(open_static, run, width):
    size = {"width": width + 16, "height": 800}
    page = open_static(TrainingPlayback(run), viewport=size).page
    # Type as wide as any system has.
    page.add_style_tag(content=".mha-widget { font-family: 'DejaVu Sans', Verdana; }")
    widget, control = page.locator(".mha-training"), slider(page, "training step")
    places = set()
    for _ in by_keyboard(control, sorted(run.history.snapshots)):
        for radio in widget.get_by_role("radio").all():
            radio.check()
            places.add(
                widget.evaluate("""(one) => {
              const { top, height } = one.getBoundingClientRect();
              const boxes = [...one.querySelectorAll(".mha-canvas")]
                .map((box) => box.getBoundingClientRect());
              return JSON.stringify([height, one.scrollWidth <= one.clientWidth,
                boxes.map((box) => [box.left, box.top - top, box.width, box.height])]);
            }""")
            )
    assert len(places) == 1
    height, fits, _ = json.loads(places.pop())
    assert fits
    assert height <= (740 if width == 688 else 1300)


def test_a_chosen_head_is_announced_once(open_static, run):
    page = open_static(TrainingPlayback(run, step=0, head=0)).page
    page.get_by_role("radio").nth(1).check()
    spoken = "layer 1 head 2" if len(run.model.layers) > 1 else "head 2"
    scores = run.history.snapshots[0].scores
    said = [text for text in page.locator("[role=status], [aria-live]").all_inner_texts()
            if f"{spoken.capitalize()}: " in text]  # fmt: skip
    assert len(said) == 1
    for score, values in scores.items():
        assert f"{score} {values.flat[1]:.2f}" in said[0]


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


def test_letters_stand_at_their_rows_and_columns(open_static, run):
    page = open_static(TrainingPlayback(run)).page
    area = page.locator(".mha-large .mha-canvas").bounding_box()
    n = len(run.reporting.tokens[0])
    for side, axis, size in ((".mha-down", "y", "height"), (".mha-across", "x", "width")):
        boxes = [letter.bounding_box() for letter in page.locator(f"{side} span").all()]
        middles = [box[axis] + box[size] / 2 for box in boxes]
        expected = [area[axis] + area[size] * (i + 0.5) / n for i in range(n)]
        np.testing.assert_allclose(middles, expected, atol=2)


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
    page = open_static(TrainingPlayback(run, step=0, head=0)).page
    stop_the_clock(page)
    status, button = page.get_by_role("status"), page.locator(".mha-button")
    button.press("Enter")
    for step in (3, 13):
        assert step_of(page) == step
        assert status.get_attribute("aria-live") == "off"
        assert button.inner_text() == "Pause"
        expect_playback(page, run, head=0)
        page.clock.run_for(PACE)
    assert button.inner_text() == "Play again"
    assert status.get_attribute("aria-live") is None  # a status is polite by itself
    assert status.inner_text().startswith("The end of training. From step 13 to 30. Loss ")
    expect_playback(page, run, head=0)
    page.clock.run_for(3 * PACE)
    assert step_of(page) == 30
    button.click()
    assert step_of(page) == 0
    page.clock.run_for(PACE)
    assert step_of(page) == 3


@pytest.mark.parametrize("way", ["Escape", "button", "slider"])
def test_playback_pauses(open_static, tiny_runs, way):
    page = open_static(TrainingPlayback(tiny_runs["induction"], step=0)).page
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
    page = open_static(TrainingPlayback(run, step=0, head=0), reduced_motion="reduce").page
    stop_the_clock(page)
    button = page.locator(".mha-button")
    for step in (4, 15, 33):
        assert button.inner_text() == "Next snapshot"
        button.click()
        page.clock.run_for(3 * PACE)
        assert step_of(page) == step
        expect_playback(page, run, head=0)
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
