"""The diagram must show the arrays of the computation, in picture and in words."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from mha_lib import multi_head_attention
from mha_lib.figures.diagram import MechanismDiagram
from mha_lib.figures.palette import WEIGHT_COLOURS
from tests.notebooks import README_PICTURE, readme_picture

N, D, H = 5, 6, 3
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def arrays():
    rng = np.random.default_rng(7)
    return rng.normal(size=(N, D)), *rng.normal(size=(4, D, D))


def squares(svg):
    return list(ElementTree.fromstring(svg).iter(f"{SVG}rect"))  # noqa: S314, our own text


def forms(diagram):
    return {"wide": diagram.svg, "narrow": diagram.narrow}


@pytest.fixture(params=["wide", "narrow"])
def form(request):
    """Return a function that gives one of the two forms of a diagram."""
    return lambda diagram: forms(diagram)[request.param]


def test_each_number_is_one_square(arrays, form):
    numbers = N * D * (1 + 3) + H * N * N + N * D + N * D + D * D + N * D
    assert len(squares(form(MechanismDiagram(*arrays, H)))) == numbers


def test_last_squares_show_the_output(arrays, form):
    out = multi_head_attention(*arrays, H)
    drawn = squares(form(MechanismDiagram(*arrays, H)))[-N * D :]
    shown = [float(square.get("fill-opacity")) for square in drawn]
    expected = 0.12 + 0.88 * np.abs(out) / np.abs(out).max()
    np.testing.assert_allclose(shown, expected.ravel(), rtol=0, atol=0.00501)
    assert {square.get("fill") for square in drawn} == {"currentColor"}  # the page's own ink


def test_columns_keep_their_heads_colour(arrays, form):
    drawn = [square.get("fill") for square in squares(form(MechanismDiagram(*arrays, H)))]
    by_head = ["#0072B2"] * 2 + ["#E69F00"] * 2 + ["#009E73"] * 2
    end = -N * D - D * D
    assert drawn[end - N * D : end] == by_head * N  # the concatenation
    assert drawn[end : -N * D] == [colour for colour in by_head for _ in range(D)]  # rows of w_o
    assert drawn[N * D : 4 * N * D] == by_head * 3 * N  # q, k and v


def test_weights_have_the_colours_of_all_attention(arrays, form):
    _, weights = multi_head_attention(*arrays, H, return_weights=True)
    drawn = [square.get("fill") for square in squares(form(MechanismDiagram(*arrays, H)))]
    start, step = 4 * N * D, N * N + N * D // H  # map and blend, head by head
    for head in range(H):
        fills = drawn[start + head * step : start + head * step + N * N]
        places = [WEIGHT_COLOURS.index(fill) / (len(WEIGHT_COLOURS) - 1) for fill in fills]
        np.testing.assert_allclose(places, weights[head].ravel(), rtol=0, atol=1 / 32 + 1e-9)


@pytest.mark.parametrize(("n_heads", "d"), [(1, 4), (2, 8), (8, 16), (3, 30)])
def test_everything_stands_inside_the_picture(rng, form, n_heads, d):
    arrays = rng.normal(size=(4, d)), *rng.normal(size=(4, d, d))
    svg = form(MechanismDiagram(*arrays, n_heads, tokens=["a", "longestword", "c", "d"]))
    *_, width, height = map(float, re.search(r'viewBox="([^"]*)"', svg)[1].split())
    for square in squares(svg):
        x, y, side = (float(square.get(name)) for name in ("x", "y", "width"))
        assert 0 <= x <= width - side + 0.6
        assert 0 <= y <= height - side


def test_the_picture_of_the_book_fits_one_screen(form):
    *_, width, height = map(
        float, re.search(r'viewBox="([^"]*)"', form(MechanismDiagram.example()))[1].split()
    )
    column = 350 if width < 400 else 688
    assert height * column / width <= 700
    size = float(re.search(r'font-size="([\d.]+)"', form(MechanismDiagram.example()))[1])
    assert size * min(280, column) / min(width, 320) >= 11  # also where the page is 320 wide


def test_the_picture_of_the_book_shows_two_different_heads():
    text = MechanismDiagram.example().text
    assert re.search(r"head 1: .* the largest, 0\.9\d, is from she to queen", text)
    assert re.search(r"head 2: .* is from said to queen", text)


def test_words_stand_at_the_rows_and_columns(arrays, form):
    words = ["one", "two", "three", "four", "five"]
    svg = form(MechanismDiagram(*arrays, H, tokens=words))
    written = [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]  # noqa: S314
    for word in words:
        assert written.count(word) == 1 + 2 * H  # rows of x, rows and columns of each map
    assert (
        MechanismDiagram(*arrays, H, tokens="one two three four five").svg
        == forms(MechanismDiagram(*arrays, H, tokens=words))["wide"]
    )


def test_the_output_bears_the_colours_of_all_heads(arrays, form):
    root = ElementTree.fromstring(form(MechanismDiagram(*arrays, H)))  # noqa: S314
    thin = [p for p in root.iter(f"{SVG}path") if re.search(r"v4h-[\d.]+z$", p.get("d"))]
    assert [path.get("fill") for path in thin] == ["#0072B2", "#E69F00", "#009E73"] * D


def test_a_file_has_ink_and_paper_of_its_own(arrays):
    file = MechanismDiagram(*arrays, H).file
    root = ElementTree.fromstring(file)  # noqa: S314
    assert root.get("color") == "#222222"
    assert root[0].get("fill") == "white"


def test_words_name_the_largest_weight_of_every_head(arrays):
    _, weights = multi_head_attention(*arrays, H, return_weights=True)
    text = MechanismDiagram(*arrays, H).text
    for head, head_weights in enumerate(weights, start=1):
        query, key = np.unravel_index(head_weights.argmax(), head_weights.shape)
        assert (
            f"head {head}: columns {2 * head - 1} to {2 * head} give 5 by 5 weights; the "
            f"largest, {head_weights.max():.2f}, is from token {query + 1} to token {key + 1}."
        ) in text


def test_picture_carries_the_words_for_screen_readers(arrays):
    diagram = MechanismDiagram(*arrays, H)
    assert ElementTree.fromstring(diagram.svg).find(f"{SVG}desc").text == diagram.text  # noqa: S314
    assert repr(diagram) == diagram.text


def test_readme_shows_the_computed_picture():
    assert README_PICTURE.read_text("utf-8") == readme_picture(), "run `make notebooks`"
