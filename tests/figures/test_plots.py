"""Figures must show the numbers that they were given."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from mha_lib.figures import plots
from mha_lib.figures.palette import head_colour, ink


@pytest.fixture(autouse=True)
def _no_window():
    mpl.use("agg")
    with mpl.rc_context():
        plots.use_style()
        yield
        plt.close("all")


@pytest.fixture
def weights():
    raw = np.random.default_rng(0).random(size=(3, 5, 7))
    return raw / raw.sum(axis=-1, keepdims=True)


TOKENS = [f"t{i}" for i in range(7)]


def test_map_shows_queries_as_rows_on_one_scale(weights):
    ax = plots.plot_attention_map(weights[1], TOKENS, plt.subplots()[1])
    image = ax.images[0]
    np.testing.assert_array_equal(image.get_array(), weights[1])
    assert image.get_clim() == (0, 1)
    assert [label.get_text() for label in ax.get_xticklabels()] == TOKENS
    assert [label.get_text() for label in ax.get_yticklabels()] == TOKENS[:5]


def test_maps_carry_number_and_colour_of_their_head(weights):
    axes = plots.plot_attention_maps(weights, TOKENS, plots.panel_axes(3))
    for head, ax in enumerate(axes):
        np.testing.assert_array_equal(ax.images[0].get_array(), weights[head])
        assert ax.get_title() == f"head {head + 1}"
        assert ax.title.get_color() == ink(head_colour(head))
        assert ax.title.get_bbox_patch().get_facecolor() == mpl.colors.to_rgba(head_colour(head))
    assert "query" in axes[0].get_ylabel()
    assert "key" in axes[0].get_xlabel()


@pytest.mark.parametrize("roles", [None, ["broad", "previous token"]])
def test_small_maps_carry_number_colour_and_role_of_their_head(weights, roles):
    axes = plots.plot_role_maps(weights, [2, 0], plots.panel_axes(2), "step 7", roles)
    for i, (head, ax) in enumerate(zip([2, 0], axes, strict=True)):
        np.testing.assert_array_equal(ax.images[0].get_array(), weights[head])
        assert ax.images[0].get_clim() == (0, 1)
        assert ax.get_title().split("\n") == [f"head {head + 1}", *([roles[i]] if roles else [])]
        assert ax.title.get_bbox_patch().get_facecolor() == mpl.colors.to_rgba(head_colour(head))
    assert "step 7" in axes[0].get_ylabel()


def test_bars_have_the_height_of_the_weights():
    rows = np.array([[0.5, 0.2, 0.3], [0.1, 0.1, 0.8]])
    ax = plots.plot_weight_rows(rows, ["one", "two"], plt.subplots()[1])
    heights = [[bar.get_height() for bar in container] for container in ax.containers]
    np.testing.assert_array_equal(heights, rows)
    assert [(text.get_text(), text.xy[1]) for text in ax.texts] == [("one", 0.5), ("two", 0.8)]


def test_frontier_shows_all_points():
    errors = np.random.default_rng(1).random((2, 11))
    best = np.array([[0.0, 0.25, 0.5, 0.75], [0.875, 0.5, 0.375, 0.25]])  # least sum: the second
    ax = plots.plot_frontier(errors, best, plt.subplots()[1])
    np.testing.assert_allclose(ax.collections[0].get_offsets(), errors.T)
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), best.T)
    np.testing.assert_array_equal(ax.lines[1].get_xydata(), [best[:, 1]])
    assert "0.250 + 0.500" in ax.texts[0].get_text()
    np.testing.assert_array_equal(ax.lines[2].get_xydata(), [[0, 0]])


def test_trained_layers_are_drawn_where_their_errors_are():
    best = np.array([[0.0, 0.25, 0.5], [0.875, 0.5, 0.375]])
    trained = {"a": np.array([[0.1, 0.3], [0.2, 0.7]]), "b": np.array([[0.9, 0.4]])}
    ax = plots.plot_trained_frontier(best, trained, plt.subplots()[1])
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), best.T)
    names = [text for text in ax.texts if text.get_text() in trained]
    for line, name, (called, errors) in zip(ax.lines[2:], names, trained.items(), strict=True):
        assert name.get_text() == called
        assert name.xy in [tuple(point) for point in errors]
        assert name.get_color() == line.get_color()
        np.testing.assert_array_equal(line.get_xydata(), errors)


def test_the_bisector_lies_between_two_unit_rows_and_misses_both_alike():
    cosine = 0.28  # with a sine of 0.96
    ax = plots.plot_bisector(cosine, plt.subplots()[1], "n = 7")
    labels = {text.get_text(): text for text in ax.texts if text.get_text()}
    tips = [arrow.xy for arrow in ax.texts if not arrow.get_text()]
    f, g, a = tips
    np.testing.assert_allclose([f, g, a], [(1, 0), (0.28, 0.96), (0.8, 0.6)], atol=1e-12)
    for name, tip in zip("fga", tips, strict=True):
        np.testing.assert_allclose(labels[name].get_position(), 1.16 * np.array(tip))
    # The dotted lines go from each row straight to the line of a; squared, they are the errors.
    for line, tip in zip(ax.lines, (f, g), strict=False):
        start, end = line.get_xydata()
        np.testing.assert_allclose(start, tip)
        assert (end - start) @ a == pytest.approx(0, abs=1e-12)
        np.testing.assert_allclose(end, (end @ a) * np.array(a), atol=1e-12)
        assert f"each error {(end - start) @ (end - start):.3f}" in ax.get_xlabel()
    assert f"angle {np.degrees(np.arccos(cosine)):.0f}°" in ax.get_xlabel()
    assert ax.get_title() == "n = 7"


def test_columns_are_marked_where_they_depend_on_a_head():
    depends = np.array([[True, False, True], [False, True, True]])
    ax = plots.plot_head_columns(depends, plt.subplots()[1])
    marked = sorted((text.get_position()[1], text.get_position()[0]) for text in ax.texts)
    assert marked == [(0, 0), (0, 2), (1, 1), (1, 2)]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "3"]


def test_dealt_numbers_have_the_colour_and_word_of_their_place():
    heads = np.array([[0, 2, 1], [1, 1, 0]])
    words = np.array([["a", "b", "c"], ["d", "e", "f"]])
    ax = plots.plot_dealt(heads, words, plt.subplots()[1], "wrong")
    image = ax.images[0]
    drawn = image.cmap(image.norm(image.get_array()))
    expected = [[mpl.colors.to_rgba(head_colour(head)) for head in row] for row in heads]
    np.testing.assert_allclose(drawn, expected)
    shown = {text.get_position(): text.get_text() for text in ax.texts}
    assert shown == {(j, i): words[i, j] for i in range(2) for j in range(3)}
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1", "2"]
    assert ax.get_title() == "wrong"


def test_sums_stand_by_their_rows_and_wrong_ones_are_marked(weights):
    wrong = weights[1] * np.array([1, 0.5, 1, 0, 2])[:, None]
    axes = plots.plot_row_sums({"right": weights[0], "wrong": wrong}, plots.panel_axes(2))
    for ax, name, shown in zip(axes, ("right", "wrong"), (weights[0], wrong), strict=True):
        np.testing.assert_array_equal(ax.images[0].get_array(), shown)
        assert ax.images[0].get_clim() == (0, 1)
        assert ax.get_title() == name
    sums = {text.get_position()[1]: text for text in axes[1].texts[1:]}
    found = {row: (text.get_text(), text.get_color()) for row, text in sums.items()}
    assert found == {
        0: ("1.00", plots.INK), 1: ("0.50", plots.MARK), 2: ("1.00", plots.INK),
        3: ("0.00", plots.MARK), 4: ("2.00", plots.MARK),
    }  # fmt: skip
    assert all(text.get_color() == plots.INK for text in axes[0].texts[1:])


@pytest.mark.parametrize("plot", [plots.plot_against_heads, plots.plot_memory, plots.plot_time])
def test_curves_go_through_their_values(plot):
    x, series = np.array([1, 2, 4]), {"a": np.array([3, 5, 7]), "b": np.array([2, 4, 11])}
    ylabel = {"ylabel": "cost"} if plot is plots.plot_against_heads else {}
    ax = plot(x, series, plt.subplots()[1], **ylabel)
    names = ax.texts
    for line, name, (called, values) in zip(ax.lines, names, series.items(), strict=True):
        assert name.get_text() == called
        assert name.get_color() == line.get_color()
        np.testing.assert_array_equal(line.get_xdata(), x)
        np.testing.assert_allclose(line.get_ydata(), values)


def test_names_at_the_ends_of_curves_keep_their_order_and_their_distance():
    x = np.array([1, 2, 4])
    series = {"top": x * 8, "upper": x * 7, "lower": x + 0.001, "a name of two lines": x}
    series["flat"] = 0 * x + 1
    ax = plots.plot_against_heads(x, series, plt.subplots()[1], "cost")
    places = {text.get_text(): text.xy[1] for text in ax.texts}
    assert max(places.values()) < 1
    ordered = ["flat", "a name of two\nlines", "lower", "upper", "top"]
    assert sorted(places, key=places.get) == ordered
    assert np.diff(sorted(places.values())).min() > 0.079


def pruned():
    """Return made-up curves of 5 heads over 3 seeds, for `plots.plot_pruning`."""
    drawn = np.sort(np.random.default_rng(1).random((5, 3, 6)), axis=2)[..., ::-1]
    names = ("greedy", "path", "mean of all", "best choice", "worst choice")
    return dict(zip(names, drawn, strict=True))


def test_pruning_runs_from_all_heads_to_none_and_names_its_curves_at_half():
    curves = pruned()
    ax = plots.plot_pruning(curves, 0.125, plt.subplots()[1])
    assert ax.get_xlim()[0] > ax.get_xlim()[1]
    expected = {name: np.median(curves[name], axis=0) for name in list(curves)[:3]}
    expected |= {"best choice": curves["best choice"].max(axis=0), "no attention": [0.125] * 6}
    cursor, *lines = ax.lines
    assert set(cursor.get_xdata()) == {2}
    looks = {"greedy": (plots.INK, "o"), "path": (plots.CURVE_COLOURS[3], "^")}
    for line, text, (name, curve) in zip(lines[:5], ax.texts, expected.items(), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), [5, 4, 3, 2, 1, 0])
        np.testing.assert_allclose(line.get_ydata(), curve)
        assert (line.get_color(), line.get_marker()) == looks.get(name, (plots.SOFT, ""))
        assert text.get_text() == f"{name} {curve[3]:.2f}"
        assert text.get_color() == line.get_color()
    values = [curve[3] for curve in expected.values()]
    assert np.all(np.diff([values[i] for i in np.argsort([t.xy[1] for t in ax.texts])]) >= 0)
    # A leader goes from each curve, where it is named, to its name.
    for lead, text, curve in zip(lines[5:], ax.texts, expected.values(), strict=True):
        start, end = lead.get_transform().transform(np.transpose(lead.get_data()))
        np.testing.assert_allclose(start, ax.transData.transform((2, curve[3])))
        assert end[1] == pytest.approx(ax.transAxes.transform(text.xy)[1])
    area, *spreads = ax.collections
    area = area.get_paths()[0].vertices
    assert area[:, 1].min() == curves["worst choice"].min()
    assert area[:, 1].max() == curves["best choice"].max()
    for strokes, name in zip(spreads, list(curves)[:3], strict=True):
        ends = np.array(strokes.get_segments())[..., 1]  # lowest and highest seed, heads falling
        np.testing.assert_allclose(ends.T, [curves[name].min(axis=0), curves[name].max(axis=0)])
    assert ax.get_legend() is None


def test_pruning_names_its_curves_where_it_is_asked_to():
    curves = pruned()
    del curves["worst choice"]
    ax = plots.plot_pruning(curves, 0.125, plt.subplots()[1], at=np.int64(4))
    assert ax.texts[0].get_text() == f"greedy {np.median(curves['greedy'], axis=0)[1]:.2f}"
    assert len(ax.collections) == 3  # the spreads, and no area
    with pytest.raises(ValueError, match="at=6, but there are 5 heads: use at <= 5"):
        plots.plot_pruning(curves, 0.1, ax, at=6)


def test_panels_are_as_many_as_asked_for():
    axes = plots.panel_axes(3, n_columns=2)
    assert len(axes) == len(axes[0].figure.axes) == 3
    assert axes[0].figure.get_size_inches()[0] == plots.FIGURE_WIDTH


def test_memory_is_labelled_in_short_units():
    ax = plots.plot_memory([1, 2], {"a": [2**9, 3 * 2**20]}, plt.subplots()[1])
    label = ax.yaxis.get_major_formatter()
    assert [label(b) for b in (512, 3 * 2**20, 2**35)] == ["512 B", "3 MiB", "32 GiB"]


def test_a_text_names_tokens_word_by_word(weights):
    ax = plots.plot_attention_map(weights[1], " ".join(TOKENS), plt.subplots()[1])
    assert [label.get_text() for label in ax.get_xticklabels()] == TOKENS
    with pytest.raises(ValueError, match=r"tokens has size 2, but weights .* has size 7"):
        plots.plot_attention_map(weights[1], "too few", ax)
    with pytest.raises(TypeError, match="tokens must be a list of words, but holds int 0"):
        plots.plot_attention_map(weights[1], range(7), ax)
    assert plots.plot_weight_rows([0.5, 0.5], "one", plt.subplots()[1]).get_ylabel() == "weight"


def test_shares_stand_in_their_line_with_their_interval_and_their_rivals():
    names, shares = ["first", "second", "third"], [0.75, 0.5, 0.875]
    intervals = np.array([[0.625, 0.8125], [0.25, 0.75], [0.84375, 0.9375]])
    rivals = {"offset": [0.25, 0.125, 0.375], "rule": [1.0, 0.75, 0.5]}
    ax = plots.plot_shares(names, shares, intervals, rivals, plt.subplots()[1], "a text")
    drawn = [line.get_xydata() for line in ax.lines]
    for points, expected in zip(drawn, [shares, *rivals.values()], strict=True):
        np.testing.assert_array_equal(points, np.transpose([expected, range(3)]))
    ends = [[[low, i], [high, i]] for i, (low, high) in enumerate(intervals)]
    np.testing.assert_array_equal(ax.collections[0].get_segments(), ends)
    over = {text.get_text(): text.xy[0] for text in ax.texts}
    assert over == {"head": 0.75, "offset": 0.25, "rule": 1.0}
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "from the top down"
    assert [label.get_text() for label in ax.get_yticklabels()] == names
    assert ax.get_title("left") == "a text"


def test_counts_of_heads_stand_in_their_layer_and_nothing_is_a_dot():
    counts = np.array([[0, 3, 1], [2, 0, 0]])
    ax = plots.plot_head_counts(counts, plt.subplots()[1])
    written = {text.get_position()[::-1]: int(text.get_text()) for text in ax.texts}
    assert written == {(0, 1): 3, (0, 2): 1, (1, 0): 2}
    discs, dots = ax.collections
    np.testing.assert_array_equal(discs.get_offsets(), [(1, 0), (2, 0), (0, 1)])
    assert np.argsort(discs.get_sizes()).tolist() == [1, 2, 0]
    np.testing.assert_array_equal(dots.get_offsets(), [(0, 0), (1, 1), (2, 1)])
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "layer 1 on top"


def test_removal_shows_each_order_the_spread_of_chance_and_the_floor():
    curves = {"one": ([0, 1, 2], [0.75, 0.5, 0.25]), "two": ([0, 2], [0.875, 0.25])}
    spread = [0, 1, 2], [0.75, 0.375, 0.25], [0.75, 0.625, 0.25]
    places = [(1.5, 0.5), (0.5, 0.75)]
    ax = plots.plot_removal(curves, places, spread, 0.25, plt.subplots()[1], "score")
    floor, *lines = ax.lines
    assert floor.get_ydata() == [0.25, 0.25]
    for line, values in zip(lines, curves.values(), strict=True):
        np.testing.assert_array_equal(line.get_xydata(), np.transpose(values))
    corners = {tuple(point) for point in ax.collections[0].get_paths()[0].vertices}
    assert {(1, 0.375), (1, 0.625)} <= corners
    names = {text.get_text(): text for text in ax.texts}
    for line, name, place in zip(lines, curves, places, strict=True):
        assert names[name].get_position() == place
        assert names[name].get_color() == line.get_color()
    assert "no attention at all" in names
    assert ax.get_xlim() == (0, 2)
