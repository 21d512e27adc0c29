import re

import matplotlib.pyplot as plt
import pytest
from inline_figures import style_sheet, themed

from mha_lib.figures import plots
from mha_lib.figures.palette import HEAD_COLOURS, TOKENS


@pytest.fixture
def drawn(tmp_path):
    with plt.rc_context():
        plots.use_style()
        figure, ax = plt.subplots()
        ax.plot([1, 2, 3], [5, 3, 7], clip_on=True)
        ax.set_title("a < b")
        figure.savefig(tmp_path / "it.svg", metadata={"Date": None})
        plt.close(figure)
    return (tmp_path / "it.svg").read_text("utf-8")


def test_colours_follow_the_theme(drawn):
    html = themed(drawn, 'Says "what"', "f1")
    assert "var(--mha-ink)" in html
    assert "var(--mha-page)" not in html  # it has no ground of its own
    for light, _ in TOKENS.values():
        assert light not in html
    assert HEAD_COLOURS[0].lower() in html  # a head's colour is the same everywhere
    used = {colour.upper() for colour in re.findall("#[0-9a-f]{6}", html)}
    assert used <= set(HEAD_COLOURS), "another colour would be the same in the dark"
    assert 'aria-label="Says &quot;what&quot;"' in html


def test_words_stay_words(drawn):
    assert ">a &lt; b</text>" in themed(drawn, "", "f1")


def test_nothing_reaches_the_page_around(drawn):
    html = themed(drawn, "", "f1")
    assert "<style" not in html
    ids = re.findall(r' id="([^"]*)"', html)
    used = re.findall(r'(?:url\(#|href="#)([^)"]+)', html)
    assert used
    assert set(used) == set(ids)
    assert all(one.startswith("f1-") for one in ids)


def test_style_sheet_has_every_colour_in_every_look():
    for name in TOKENS:
        assert style_sheet().count(f"--mha-{name}:") == 4
