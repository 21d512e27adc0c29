"""The diagram must show the arrays of the computation, in picture and in words."""

from xml.etree import ElementTree

import numpy as np
import pytest

from mha_lib import multi_head_attention
from mha_lib.figures.diagram import MechanismDiagram
from tests.notebooks import README_PICTURE, readme_picture

N, D, H = 5, 6, 3
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def arrays():
    rng = np.random.default_rng(7)
    return rng.normal(size=(N, D)), *rng.normal(size=(4, D, D))


def squares(diagram):
    return ElementTree.fromstring(diagram.svg).iter(f"{SVG}rect")  # noqa: S314, our own text


def test_each_number_is_one_square(arrays):
    numbers = N * D * (1 + 3 + 3) + H * N * N + N * D + N * D + N * D
    assert len(list(squares(MechanismDiagram(*arrays, H)))) == numbers


def test_last_squares_show_the_output(arrays):
    out = multi_head_attention(*arrays, H)
    shown = [float(s.get("fill-opacity")) for s in squares(MechanismDiagram(*arrays, H))][-N * D :]
    expected = 0.12 + 0.88 * np.abs(out) / np.abs(out).max()
    np.testing.assert_allclose(shown, expected.ravel(), rtol=0, atol=0.005)


def test_squares_before_the_output_have_their_heads_colour(arrays):
    concatenated = list(squares(MechanismDiagram(*arrays, H)))[-2 * N * D : -N * D]
    colours = [square.get("fill") for square in concatenated[:D]]
    assert colours == ["#0072B2"] * 2 + ["#E69F00"] * 2 + ["#009E73"] * 2


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
