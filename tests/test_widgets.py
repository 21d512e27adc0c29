"""The Python side of the widgets: numbers, errors, and manners as ipywidgets."""

import re

import ipywidgets
import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_hex

from mha_lib import attention_cost, multi_head_attention, palette
from mha_lib.frontier import job_errors
from mha_lib.palette import ink
from mha_lib.widgets import Budget, HeadSplitter, OneDistribution
from mha_lib.widgets.one_distribution import combined_errors

ALL = (HeadSplitter, OneDistribution, Budget)


def frame(widget, *values):
    """Return the bytes of a frame of the grid that travels with a widget."""
    key = ",".join("null" if value is None else str(value) for value in values)
    start, length = widget._index[key]
    return widget._frames[start : start + length]


def weights_of(widget, n_heads, d):
    x, *w = widget.arrays(d)
    return multi_head_attention(x, *w, n_heads, return_weights=True)[1]


# Numbers -----------------------------------------------------------------------------------------


def test_head_splitter_holds_the_weights_of_every_possible_pair():
    widget = HeadSplitter(tokens=["she", "opened", "it"])
    pairs = [(h, d) for h in range(1, 9) for d in widget.choices()["d"]]
    possible = [(h, d) for h, d in pairs if d % h == 0]
    assert sorted(widget._index) == sorted(f"{h},{d}" for h, d in possible)
    assert sorted(widget._problems) == sorted(f"{h},{d}" for h, d in set(pairs) - set(possible))
    for h, d in possible:
        got = np.frombuffer(frame(widget, h, d)[: 4 * h * 9], "<f4").reshape(h, 3, 3)
        np.testing.assert_allclose(got, weights_of(widget, h, d), rtol=0, atol=1e-7)


def test_head_splitter_draws_the_arrays_that_it_says(rng):
    x, *w = (rng.normal(size=(6, 6)) for _ in range(5))
    widget = HeadSplitter(x=x[:5], w_q=w[0], w_k=w[1], w_v=w[2], w_o=w[3], n_heads=3)
    shades = np.frombuffer(widget._live[4 * 3 * 25 :], np.uint8)
    q, k, v, merged, w_o, out = np.split(shades, np.cumsum([30, 30, 30, 30, 36]))
    expected = {
        "q": x[:5] @ w[0],
        "k": x[:5] @ w[1],
        "v": x[:5] @ w[2],
        "merged": multi_head_attention(x[:5], *w[:3], np.eye(6), 3),
        "w_o": w[3],
        "out": multi_head_attention(x[:5], *w[:4], 3),
    }
    for (name, matrix), drawn in zip(expected.items(), (q, k, v, merged, w_o, out), strict=True):
        relative = np.abs(matrix) / np.abs(matrix).max()
        np.testing.assert_allclose(drawn / 255, relative.ravel(), atol=0.002, err_msg=name)
    assert not widget._random


def test_head_splitter_computes_what_is_not_in_the_grid():
    widget = HeadSplitter(tokens=["a", "b"])
    widget.n_heads, widget.d = 5, 35
    assert "5,35" not in widget._index
    assert widget._live_key == "5,35"
    got = np.frombuffer(widget._live[: 4 * 5 * 4], "<f4").reshape(5, 2, 2)
    np.testing.assert_allclose(got, weights_of(widget, 5, 35), rtol=0, atol=1e-7)
    np.testing.assert_array_equal(widget.weights(), weights_of(widget, 5, 35))


def test_head_splitter_follows_new_tokens():
    widget = HeadSplitter(tokens=["she", "opened", "it"], token=2)
    widget.tokens = ["she", "left"]
    assert widget.token == 1
    assert len(frame(widget, 1, 4)) == 4 * 4 + 5 * 2 * 4 + 4 * 4
    assert widget.weights().shape == (4, 2, 2)


@pytest.mark.parametrize("n", [4, 16, 36])
@pytest.mark.parametrize("score", [0, 0.25, 1.5, 6])
def test_one_distribution_holds_the_errors_of_one_row(n, score):
    widget = OneDistribution()
    numbers = np.frombuffer(frame(widget, score, n, 1), "<f4")
    row = np.exp([score] + [0] * (n - 1))
    row /= row.sum()
    fetch, mean = job_errors(row)
    np.testing.assert_allclose(numbers[:2], [fetch, mean], atol=1e-6)
    np.testing.assert_allclose(numbers[2:4], [fetch + mean, 1 - n**-0.5], atol=1e-6)
    np.testing.assert_allclose(numbers[4:], row[:2], atol=1e-6)
    assert numbers[2] >= numbers[3] - 1e-6


@pytest.mark.parametrize("n_heads", [2, 4])
def test_two_different_rows_do_both_jobs(n_heads):
    widget = OneDistribution(score=0.25, n_heads=n_heads)
    np.testing.assert_allclose(widget.errors(), 0, atol=1e-12)


def test_two_equal_rows_are_worth_one():
    widget = OneDistribution(score=0.0, n_heads=2)
    np.testing.assert_allclose(widget.errors(), job_errors(widget.rows()[0]), atol=1e-12)


def test_combined_errors_of_one_row_are_its_own(rng):
    row = rng.random(7)
    np.testing.assert_allclose(combined_errors(row[None], 3), job_errors(row, 3), atol=1e-12)


def test_width_does_not_change_the_errors():
    assert [OneDistribution(d=d).errors() for d in (6, 16)] == [OneDistribution().errors()] * 2


def test_frontier_curve_comes_with_n():
    widget = OneDistribution()
    assert set(widget._curves) == {"4", "9", "16", "25", "36"}
    sums = np.sum(widget._curves["16"], axis=1)
    assert sums.min() == pytest.approx(0.75, abs=1e-3)
    widget.n = 49
    assert "49" in widget._curves


def test_budget_holds_exact_counts():
    widget = Budget()
    for values in ((128, 512, 8, None), (8192, 1024, 16, 1), (4096, 768, 12, 4)):
        n, d, h, kv = values
        numbers = np.frombuffer(frame(widget, *values), "<f8").reshape(2, 6)
        cost, one = attention_cost(n, d, h, n_kv_heads=kv), attention_cost(n, d, 1)
        for i, name in enumerate(
            ("parameters", "matmul_flops", "softmax_entries", "weight_bytes", "score_bytes",
             "kv_cache_bytes")
        ):  # fmt: skip
            assert numbers[0, i] == getattr(cost, name)
            assert numbers[1, i] == getattr(cost, name) / getattr(one, name)


def test_budget_computes_what_is_not_in_the_grid():
    widget = Budget(n=77, d=60, n_heads=5)
    counts = np.frombuffer(widget._live, "<f8")
    assert counts[2] == attention_cost(77, 60, 5).softmax_entries
    assert widget.cost() == attention_cost(77, 60, 5)


# Impossible and wrong settings -------------------------------------------------------------------


def test_impossible_pairs_say_why_and_what_is_near():
    widget = HeadSplitter(n_heads=5, d=16)
    assert "n_heads=5 does not divide d=16: use n_heads=4 or 8" in widget._live_problem
    assert widget._problems["5,16"] == widget._live_problem
    assert widget._live == b""
    assert "does not divide" in widget._picture
    assert "n_kv_heads=4 does not divide n_heads=2" in Budget(n_heads=2, n_kv_heads=4)._live_problem
    assert "does not divide d=6" in OneDistribution(n_heads=4, d=6)._live_problem


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: HeadSplitter(n_heads=0), ValueError, "n_heads=0 is too small"),
        (lambda: HeadSplitter(n_heads=2.0), TypeError, "n_heads must be an integer, not float"),
        (lambda: HeadSplitter(n_heads=True), TypeError, "n_heads must be an integer, not bool"),
        (lambda: HeadSplitter(d="16"), TypeError, "d must be an integer"),
        (lambda: HeadSplitter(tokens=[]), ValueError, "tokens has 0 entries"),
        (lambda: HeadSplitter(tokens=["a"] * 33), ValueError, "tokens has 33 entries"),
        (lambda: HeadSplitter(token=11), ValueError, "token=11, but there are 11 tokens"),
        (lambda: HeadSplitter(seed=-1), ValueError, "seed=-1 is too small"),
        (lambda: HeadSplitter(x=np.ones((3, 4, 5))), ValueError, "x has shape"),
        (lambda: HeadSplitter(x=np.ones((3, 4)), w_q=np.ones((5, 5))), ValueError, "w_q axis"),
        (lambda: HeadSplitter(w_q=np.ones((4, 5))), ValueError, "w_q axis 0 has size 4"),
        (lambda: HeadSplitter(x=np.ones((3, 4)), d=8), ValueError, "d has size 8"),
        (lambda: HeadSplitter(["a"], x=np.ones((3, 4))), ValueError, "tokens has size 1"),
        (lambda: OneDistribution(score="1"), TypeError, "score must be a number"),
        (lambda: OneDistribution(score=float("nan")), ValueError, "not finite"),
        (lambda: OneDistribution(n=1), ValueError, "n=1 is too small: use n >= 2"),
        (lambda: OneDistribution(n_heads=5), ValueError, "n_heads=5 is too large"),
        (lambda: Budget(n=-1), ValueError, "n=-1 is too small"),
        (lambda: Budget(n_kv_heads=0), ValueError, "n_kv_heads=0 is too small"),
    ],
)
def test_bad_values_are_refused_by_name(make, error, message):
    with pytest.raises(error, match=re.escape(message)):
        make()


def test_a_refused_value_changes_nothing():
    widget = HeadSplitter()
    with pytest.raises(TypeError, match="n_heads"):
        widget.n_heads = 2.5
    assert widget.n_heads == 4
    assert widget._live_key == "4,16"


def test_own_width_is_the_only_one_offered():
    widget = HeadSplitter(x=np.eye(6))
    assert widget.choices()["d"] == [6]
    assert widget.tokens[:2] == ["token 1", "token 2"]
    widget.d = 8
    assert "arrays passed in have width 6" in widget._live_problem


# Manners -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ALL)
def test_repr_says_the_settings_and_no_address(make):
    assert repr(make()).startswith(f"{make.__name__}(")
    assert not re.search("0x|object at", repr(make()))
    assert repr(make()) == repr(make())
    assert make()._repr_mimebundle_()[0]["text/plain"] == repr(make())


@pytest.mark.parametrize("make", ALL)
def test_any_integer_type_will_do(make):
    assert make(n_heads=np.int64(2)).n_heads == 2


@pytest.mark.parametrize("make", ALL)
def test_works_in_a_container_with_observe_and_jslink(make):
    widget, other = make(), make()
    box = ipywidgets.VBox([widget, other])
    assert box.children == (widget, other)
    link = ipywidgets.jslink((widget, "n_heads"), (other, "n_heads"))
    assert link.source == (widget, "n_heads")
    seen = []
    widget.observe(lambda change: seen.append(change.new), "n_heads")
    widget.n_heads = 1
    widget.n_heads = 2
    assert seen[-1] == 2


@pytest.mark.parametrize("make", ALL)
def test_a_change_from_the_front_end_is_computed(make):
    widget = make()
    before = widget._live_key
    widget.set_state({"n_heads": 1 if widget.n_heads != 1 else 2})
    assert widget._live_key != before


@pytest.mark.parametrize("make", ALL)
def test_picture_has_a_text_equivalent(make):
    picture = make()._picture
    assert re.search(r'alt="[^"]{20,}"|<desc>[^<]{20,}</desc>', picture)


@pytest.mark.parametrize("make", ALL)
def test_front_end_is_one_module_without_imports_or_arithmetic_of_attention(make):
    module = make._esm
    assert not re.search(
        r"^\s*import\b|\bimport\(|https?://(?!www\.w3\.org/2000/svg)", module, re.M
    )
    assert not re.search(r"Math\.(exp|log|sqrt|pow)|\*\*", module)
    assert module.count("export default") == 1


def test_two_widgets_do_not_share_settings():
    one, two = HeadSplitter(), HeadSplitter()
    one.n_heads, one.tokens = 2, ["a"]
    assert two.n_heads == 4
    assert len(two.tokens) == 11


# Colours -----------------------------------------------------------------------------------------


def test_weight_colours_are_those_of_the_figures():
    places = np.linspace(0, 1, len(palette.WEIGHT_COLOURS))
    assert [to_hex(c) for c in colormaps["viridis"](places)] == palette.WEIGHT_COLOURS


@pytest.mark.parametrize("colour", palette.HEAD_COLOURS)
def test_head_numbers_can_be_read_on_their_colours(colour):
    def luminance(value):
        channels = np.array([int(value[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(
            channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
        )
        return linear @ (0.2126, 0.7152, 0.0722)

    low, high = sorted([luminance(colour), luminance(ink(colour))])
    assert (high + 0.05) / (low + 0.05) >= 4.5
