"""What all widgets share, on a bare page: frame, controls, live text, the link to a setting."""

import pytest

from mha_lib.widgets import Budget, OneDistribution
from tests.browser.moves import slider
from tests.browser.test_pages import AXE, RUN_AXE
from tests.browser.test_widgets import KINDS, settings

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
# The theme's header, which stays on top, and a page around the widgets.
SITE = (
    "() => { document.body.insertAdjacentHTML('afterbegin', '<div class=\"bd-header-article\" "
    'style="position: sticky; top: 0; height: 3.5rem; z-index: 1020; background: #fff"></div>\');'
    "document.querySelector('h1').style.height = '900px';"
    "document.querySelector('main')"
    ".insertAdjacentHTML('beforeend', '<p style=\"height: 900px\">'); }"
)


@pytest.fixture(params=KINDS)
def kind(request, tiny_runs, tiny_studies):
    """Return a new widget of each kind, and its name on the page."""
    return KINDS[request.param](tiny_runs, tiny_studies), request.param


def finger(page):
    """Return a function that sends touch events to the page, as the hardware does."""
    session = page.context.new_cdp_session(page)

    def touch(kind, *points):
        points = [{"x": x, "y": y} for x, y in points]
        session.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})

    return touch


def test_a_swipe_down_the_page_that_begins_on_a_slider_changes_no_setting(open_static):
    page = open_static(Budget(), **PHONE).page
    page.evaluate(SITE)
    control = slider(page, "tokens n")
    control.scroll_into_view_if_needed()
    touch, box = finger(page), control.bounding_box()
    y = box["y"] + 22
    # A finger that only taps, and one that goes along the slider, move it.
    control.tap(position={"x": 4, "y": 22})
    assert settings(page)["tokens n"] == "128"
    touch("Start", (box["x"] + 4, y))
    for step in range(11):
        touch("Move", (box["x"] + 0.1 * step * box["width"], y))
    touch("End")
    assert settings(page)["tokens n"] == "8,192"
    before, place = settings(page), page.evaluate("scrollY")
    x = box["x"] + 0.1 * box["width"]
    touch("Start", (x, y))
    for step in range(1, 12):
        touch("Move", (x, y - 15 * step))
    touch("End")
    page.wait_for_function("(place) => scrollY > place + 50", arg=place)
    assert settings(page) == before


def controls_stay_in_sight(page, kind):
    widget = page.get_by_role("region", name=kind, exact=True)
    controls = widget.locator(".mha-controls")
    height = controls.bounding_box()["height"]
    assert height < 0.4 * 844
    box = widget.bounding_box()
    for down in (100, box["height"] - height - 70):
        page.evaluate("(y) => scrollTo(0, y)", box["y"] + down)
        here = controls.bounding_box()
        assert here["y"] == pytest.approx(56, abs=1)  # right below the header
        hit = "([x, y]) => document.elementFromPoint(x, y).closest('.mha-controls') !== null"
        assert page.evaluate(hit, [here["x"] + 3, here["y"] + here["height"] - 4])
    colour = controls.evaluate("(node) => getComputedStyle(node).backgroundColor")
    assert "rgba" not in colour
    page.evaluate("(y) => scrollTo(0, y)", box["y"] + box["height"])
    assert controls.bounding_box()["y"] < 0  # gone with its widget


def what_gets_the_focus_does_not_hide_below_the_controls(page):
    targets = page.locator(".mha-result").locator("button, input, summary, [tabindex='0']")
    controls = page.locator(".mha-controls")
    for target in [one for one in targets.all() if one.is_visible()]:
        for y in (60, 400):  # below the controls, and in sight
            target.evaluate("(node, y) => scrollBy(0, node.getBoundingClientRect().y - y)", y)
            target.focus()
            edge = controls.bounding_box()
            assert target.bounding_box()["y"] >= edge["y"] + edge["height"]
            target.blur()


def test_controls_on_a_narrow_screen(open_static, kind, subtests):
    page = open_static(kind[0], **PHONE).page
    page.evaluate(SITE)
    for width in (390, 320):
        page.set_viewport_size({"width": width, "height": 844})
        page.evaluate("scrollTo(0, 0)")
        with subtests.test(f"stay in sight, {width} pixels"):
            controls_stay_in_sight(page, kind[1])
    with subtests.test("hide nothing that gets the focus"):
        what_gets_the_focus_does_not_hide_below_the_controls(page)


def test_large_letters_do_not_leave_the_screen_to_the_controls(open_static):
    page = open_static(OneDistribution(), viewport={"width": 320, "height": 500}).page
    page.add_style_tag(content="html { font-size: 200% }")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    place = "(node) => getComputedStyle(node).position"
    assert page.locator(".mha-controls").evaluate(place) == "static"


def test_names_headings_and_rings(open_static, kind, subtests):
    page = open_static(kind[0]).page
    widget = page.get_by_role("region", name=kind[1], exact=True)
    with subtests.test("a heading and one live region"):
        assert widget.get_by_role("heading", name=kind[1], exact=True, level=2).count() == 1
        assert widget.get_by_role("status").count() == 1
    with subtests.test("a ring is drawn through no neighbour"):
        for control in page.get_by_role("slider").all():
            control.focus()
            ring = control.evaluate(
                "(node) => { const { outlineWidth, outlineOffset } = getComputedStyle(node);"
                "return parseFloat(outlineWidth) + parseFloat(outlineOffset); }"
            )
            assert ring <= 0  # inside the slider's own height; the label stands right above
    with subtests.test("names of sliders are the words beside them"):
        for label in page.locator(".mha-slider label").all():
            assert page.get_by_role("slider", name=label.inner_text(), exact=True).count() == 1
        page.add_script_tag(path=AXE)
        assert page.evaluate(RUN_AXE, {"runOnly": ["label-content-name-mismatch"]}) == []


def test_in_forced_colours_no_colour_of_the_theme_is_left(open_static, kind, subtests):
    page = open_static(kind[0], forced_colors="active").page
    page.add_style_tag(
        content=":root { --pst-color-text-base: rgb(1, 2, 3); --pst-color-text-muted: rgb(1, 2, 4);"
        "--pst-color-border: rgb(1, 2, 5); --pst-color-primary: rgb(1, 2, 6);"
        "--pst-color-background: rgb(1, 2, 7); --pst-color-surface: rgb(1, 2, 8); }"
    )
    # The reader once chose the other theme.
    for system, theme in (("light", "dark"), ("dark", "light")):
        page.emulate_media(color_scheme=system)
        page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
        used = page.locator(".mha-widget *").evaluate_all(
            "(all) => [...new Set(all.flatMap((node) => { const style = getComputedStyle(node);"
            "return [style.color, style.fill, style.stroke, style.borderTopColor,"
            " style.backgroundColor]; }))]"
        )
        mark = page.locator(".mha-widget").evaluate(
            "(node) => getComputedStyle(node).getPropertyValue('--mha-mark')"
        )
        with subtests.test(f"a {system} system"):
            assert not [colour for colour in used if colour.startswith("rgb(1, 2,")]
            assert mark.strip() == "LinkText"


# A link to a setting -----------------------------------------------------------------------------


@pytest.fixture
def three(open_static):
    """Two widgets of one kind and one of another."""
    return open_static(Budget(), OneDistribution(), Budget(), **PHONE)


def sliders_of(page):
    return [settings(widget) for widget in page.locator(".mha-widget").all()]


def test_a_setting_can_be_shared_by_the_address(three, visit):
    page = three.page
    page.evaluate(SITE)
    three.context.grant_permissions(["clipboard-read", "clipboard-write"])
    third = page.locator(".mha-widget").nth(2)
    slider(third, "heads h").press("Home")
    slider(third, "tokens n").press("End")
    button = third.get_by_role("button", name="Link to this setting")
    button.click()
    address = page.url
    assert address.endswith("#Budget.2=n:8192,d:512,n_heads:1,n_kv_heads:null")
    third.get_by_role("button", name="Link copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == address
    assert "Link copied." in third.get_by_role("status").inner_text()
    wanted = sliders_of(page)

    window = visit(viewport={"width": 390, "height": 400})
    again = window.open(address)
    assert sliders_of(again) == wanted
    place = again.locator(".static-widget").nth(2)
    assert 0 <= place.bounding_box()["y"] < 100
    assert place.evaluate("(node) => node === document.activeElement")
    assert window.complaints == []


def test_a_copy_that_is_not_allowed_is_said(three):
    page = three.page
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error()); }")
    page.get_by_role("button", name="Link to this setting").nth(1).click()
    page.get_by_role("button", name="Link is in the address bar").wait_for()
    assert page.url.endswith(",n:16,n_heads:1")


# What the controls do not offer is left out.
ADDRESSES = {
    "#Budget=n_heads:4": {"heads h": "4"},
    "#Budget=n_heads:4,d:7,nobody:3,,:,n:": {"heads h": "4"},
    "#Budget=n_heads:3": {},  # the slider has no 3
    "#Budget=toString:1,__proto__:2,_frames:3": {},
    "#Budget=": {},
    "#Budget": {},
    "#Budget.3=n_heads:4": {},
    "#Nobody=n_heads:4": {},
    "#=": {},
    "#%E0%A4%A=%": {},
}


def test_only_what_the_controls_offer_is_taken_from_an_address(three, visit, subtests):
    before = sliders_of(three.page)
    window = visit(**PHONE)
    for address, changes in ADDRESSES.items():
        with subtests.test(address):
            window.page.goto("about:blank")  # else only the end of the address changes
            assert sliders_of(window.open(three.page.url + address)) == [
                before[0] | changes,
                *before[1:],
            ]
            assert window.complaints == []


def test_a_link_on_the_page_sets_a_widget_and_an_anchor_still_works(three):
    page = three.page
    page.evaluate(SITE)
    page.evaluate("location.hash = 'OneDistribution=n:36'")
    page.wait_for_function("document.activeElement.matches('.static-widget')")
    assert sliders_of(page)[1]["tokens n"] == "36"
    page.evaluate("document.querySelector('h1').id = 'top'; location.hash = 'top'")
    page.wait_for_function("scrollY < 200")
    assert sliders_of(page)[1]["tokens n"] == "36"
    assert three.complaints == []


def test_the_link_is_no_part_of_a_printed_page(three):
    three.page.emulate_media(media="print")
    assert three.page.get_by_role("button").count() == 0
