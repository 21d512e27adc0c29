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
    measures = gallery.locator(".mha-measures")
    row = measures.get_by_role("row").filter(has_text="object → verb, UD English-EWT")
    numbers = [two_digits(found[key]) for key in ("value", "offset", "rule", "untrained")]
    assert row.get_by_role("cell").all_inner_texts() == [*numbers, str(found["n"])]


def test_a_pointer_shows_a_word_and_a_click_chooses_it(gallery):
    words, weights = attention(0)
    head = weights[HEADS.index("2-4")]
    shown = gallery.locator(".mha-share")
    new = gallery.get_by_role("radio", name="new")
    new.hover()
    expected = ["" if w < 0.02 else two_digits(w) for w in head[words.index("new") + 1, 1:-1]]
    assert shown.all_inner_texts() == expected
    gallery.get_by_label("Compare with").hover()
    expect(gallery, 0, "2-4", words.index("she"))
    new.click()
    gallery.get_by_label("Compare with").hover()
    expect(gallery, 0, "2-4", words.index("new"))


@pytest.mark.slow
@pytest.mark.parametrize("width", [688, 350, 288])
def test_no_setting_moves_the_page(open_static, width):
    page = open_static(
        HeadGallery(MEASURED, word="she"), viewport={"width": width + 32, "height": 800}
    ).page
    gallery = page.locator(".mha-gallery")
    heights = {gallery.bounding_box()["height"]}
    for head in (*range(0, 72, 5), HEADS.index("3-9")):
        gallery.get_by_label("Head", exact=True).select_option(str(head))
        for other in ("-1", str(HEADS.index("3-9"))):
            gallery.get_by_label("Compare with").select_option(other)
            heights.add(gallery.bounding_box()["height"])
    gallery.get_by_role("radio").last.click()
    heights.add(gallery.bounding_box()["height"])
    assert len(heights) == 1


def test_words_that_do_not_fit_into_a_line_stand_in_a_column(open_static):
    page = open_static(
        HeadGallery(MEASURED, word="she"), viewport={"width": 688, "height": 800}
    ).page
    words = page.locator(".mha-sentence").get_by_role("radio")

    def places():
        boxes = [word.bounding_box() for word in words.all()]
        return len({box["x"] for box in boxes}), len({box["y"] for box in boxes})

    assert places() == (12, 1)
    page.set_viewport_size({"width": 350, "height": 800})
    page.wait_for_timeout(200)
    assert places() == (1, 12)
    for line in page.locator(".mha-arcs path").all():
        box = line.bounding_box()
        assert 0 <= box["x"] <= box["x"] + box["width"] <= 350


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
    for target in (
        page.locator(".mha-gallery").locator("button:not(.mha-link), select, input").all()
    ):
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
