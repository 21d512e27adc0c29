"""The head gallery in a browser, against the measurement that it shows."""

import base64
import json

import numpy as np
import pytest

from mha_lib.widgets import HeadGallery
from tests.browser.conftest import ROOT, SITE
from tests.browser.test_pages import AXE, RUN_AXE
from tests.browser.test_widgets import DARK

DATA = ROOT / "chapters" / "data"
MEASURED = json.loads((DATA / "gallery.json").read_text("utf-8"))
HEADS = [one["head"] for one in MEASURED["heads"]]


def attention(sentence):
    """Return words and weights of a sentence, (heads, W + 2, W + 2)."""
    one = MEASURED["sentences"][sentence]
    n = len(one["words"]) + 2
    return one["words"], np.frombuffer(base64.b64decode(one["attention"]), np.uint8).reshape(
        -1, n, n
    ) / 255


def two_digits(value):
    return f"{value:.2f}".removeprefix("0")


def expect(gallery, sentence, head, word):
    """Compare what stands under each word, and what is read out, with the measurement."""
    words, weights = attention(sentence)
    row = weights[HEADS.index(head), word + 1]
    shown = gallery.locator(".mha-share").all_inner_texts()
    for text, weight in zip(shown, row[1:-1], strict=True):
        assert text == "" if weight < 0.02 else abs(float(text) - weight) <= 0.0051
    said = gallery.get_by_role("status").inner_text()
    most = words[row[1:-1].argmax()]
    assert f"Head {head}: “{words[word]}” takes {two_digits(row[1:-1].max())} from “{most}”" in said
    assert f"{two_digits(row[0] + row[-1])} rests on the marks" in said


@pytest.fixture
def gallery(visit, site):
    page = visit().open(f"{site}/chapters/05_trained_model.html")
    return page.get_by_role("region", name="Head gallery", exact=True)


def test_every_word_of_a_sentence_by_keyboard(gallery):
    gallery.get_by_role("radio", name="she").focus()
    gallery.page.keyboard.press("Home")
    for word in range(12):
        expect(gallery, 0, "2-4", word)
        gallery.page.keyboard.press("ArrowRight")
    expect(gallery, 0, "2-4", 0)  # round the corner


@pytest.mark.parametrize(("sentence", "head", "word"), [(4, "4-2", 8), (17, "1-3", 5)])
def test_another_sentence_another_head(gallery, sentence, head, word):
    gallery.get_by_label("Sentence").select_option(index=sentence)
    gallery.get_by_label("Head", exact=True).select_option(str(HEADS.index(head)))
    gallery.locator(".mha-sentence").get_by_role("radio").nth(word).click()
    expect(gallery, sentence, head, word)


def test_a_head_from_the_list_shows_its_measures(gallery):
    gallery.get_by_label("Head", exact=True).select_option(
        label="3-1: object → verb .75, offset .35"
    )
    gallery.get_by_role("radio", name="queen").click()
    expect(gallery, 0, "3-1", 4)
    found = next(
        one
        for one in MEASURED["heads"][HEADS.index("3-1")]["measures"]
        if one["text"] == "UD English-EWT"
    )
    line = gallery.locator(".mha-measures").inner_text()
    assert f"object → verb: {two_digits(found['value'])}" in line
    assert f"n = {found['n']}; best offset {two_digits(found['offset'])}" in line


def test_lines_are_as_thick_as_the_attention(gallery):
    words, weights = attention(0)
    row = weights[HEADS.index("2-4"), words.index("she") + 1, 1:-1]
    drawn = gallery.locator("svg.mha-arcs path[opacity='0.9']")
    widths = [float(w) for w in drawn.evaluate_all(
        "(all) => all.map((one) => one.getAttribute('stroke-width'))")]  # fmt: skip
    expected = [12 * w for i, w in enumerate(row) if w >= 0.02 and i != words.index("she")]
    np.testing.assert_allclose(widths, expected)


def test_two_heads_are_compared(gallery):
    gallery.get_by_label("Compare with").select_option(index=1 + HEADS.index("3-9"))
    expect(gallery, 0, "2-4", 6)
    said = gallery.get_by_role("status").inner_text()
    words, weights = attention(0)
    most = weights[HEADS.index("3-9"), 7, 1:-1].argmax()
    assert (
        f"Head 3-9: “she” takes {two_digits(weights[32, 7, most + 1])} from “{words[most]}”" in said
    )


def test_all_is_on_one_screen(visit, site):
    for name in ("index", "05_trained_model"):
        page = visit(viewport={"width": 1280, "height": 800}).open(f"{site}/chapters/{name}.html")
        gallery = page.get_by_role("region", name="Head gallery", exact=True)
        gallery.get_by_label("Compare with").select_option(label="4-2: determiner → noun")
        assert gallery.bounding_box()["height"] <= 800


@pytest.mark.parametrize("width", [1280, 320])
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_fits_and_has_no_accessibility_violation(open_static, width, colours):
    window = open_static(
        HeadGallery(MEASURED, word="she"), viewport={"width": width, "height": 800}, has_touch=True
    )
    page = window.page
    page.add_style_tag(content=DARK if colours == "dark" else "body { background: #fff }")
    page.add_script_tag(path=AXE)
    assert page.evaluate(RUN_AXE) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for target in page.locator(".mha-gallery").locator("button, select, input").all():
        box = target.bounding_box()
        assert box["height"] >= 44, target
        assert box["width"] >= 30, target
    assert window.complaints == []


def test_without_javascript_there_is_the_sentence_with_its_lines(visit):
    page = visit(java_script_enabled=False).page
    page.goto((SITE / "chapters" / "index.html").as_uri())
    drawing = page.locator("noscript svg[role=img]").first
    assert drawing.is_visible()
    assert "“she” takes 0.61 from “queen”" in drawing.locator("desc").text_content()
    assert drawing.locator("path[opacity='1']").count() > 3
