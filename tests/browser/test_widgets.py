"""The widgets of the built book: every position of every slider, against the library.

By keyboard on the served site, and by pointer on the same pages opened from their files.
"""

import ipywidgets
import pytest

from mha_lib.widgets import Budget, HeadSplitter, OneDistribution, Pruning, TrainingPlayback
from tests.browser.conftest import SITE
from tests.browser.moves import positions, put, settings, slider
from tests.browser.test_pages import AXE, RUN_AXE
from tests.browser.test_training_playback import expect_playback, step_of

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
                return page.locator(f'.mha-widget[aria-label="{name}"]').first
        pytest.fail(f"no page of the book shows {kind.__name__}")

    return start


# Manners, on a bare page -------------------------------------------------------------------------

KINDS = {
    SPLITTER: lambda runs, studies: HeadSplitter(),
    ONE: lambda runs, studies: OneDistribution(),
    BUDGET: lambda runs, studies: Budget(),
    PLAYBACK: lambda runs, studies: TrainingPlayback(runs["three jobs"]),
    PRUNING: lambda runs, studies: Pruning(studies),
}


NEW = [PLAYBACK, PRUNING]
RADIOS = [SPLITTER, ONE, BUDGET, *NEW]  # with radio buttons


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


@pytest.mark.parametrize("name", ["02_split", "04_learned", "05_trained"])
def test_tables_of_widgets_fit_on_a_phone(visit, site, name):
    (path,) = SITE.glob(f"chapters/{name}*.html")
    page = visit(viewport={"width": 390, "height": 800}).open(f"{site}/chapters/{path.name}")
    page.locator(".mha-widget summary").evaluate_all("(all) => all.forEach((one) => one.click())")
    tables = page.locator(".mha-widget table")
    tables.first.wait_for()
    wide = """(all) => all.map((one) => one.closest(".mha-table") ?? one)
      .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.innerText)"""
    assert tables.evaluate_all(wide) == []


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
  --pst-color-border: #48566b; --pst-color-surface: #29313d; --pst-color-background: #121212;
  --pst-color-primary: #459db9; color-scheme: dark; }
  body { background: #121212; color: #ced6dd; }"""


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
    for key in ("Home", "ArrowRight", "ArrowRight"):
        slider(first, "training step").press(key)
    first.get_by_role("radio").nth(2).click()
    for key in ("Home", "ArrowRight"):
        slider(second, "training step").press(key)
    expect_playback(first, runs[0], head=2)
    expect_playback(second, runs[1], head=0)
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
