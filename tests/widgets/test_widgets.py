"""The Python side of the widgets: numbers, errors, and manners as ipywidgets."""

import base64
import gzip
import io
import json
import math
import re
from dataclasses import replace

import ipywidgets
import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_hex
from PIL import Image
from static_widgets import rewrite_page

from mha_lib import attention_cost, multi_head_attention
from mha_lib.figures import palette
from mha_lib.figures.palette import ink
from mha_lib.learning.experiments import (
    run_induction,
    run_marked_and_mean,
    run_three_jobs,
    snapshot_steps,
)
from mha_lib.learning.frontier import job_errors
from mha_lib.learning.roles import chance_scores, head_roles
from mha_lib.learning.train import History
from mha_lib.widgets import (
    Budget,
    HeadSplitter,
    OneDistribution,
    Pruning,
    TrainingPlayback,
    _picture,
)
from mha_lib.widgets._base import FOLDER
from mha_lib.widgets.one_distribution import (
    MINUS,
    TIMES,
    combination,
    combined,
    combined_errors,
)
from mha_lib.widgets.training_playback import smoothed, symbol


def places(widget, names, *values):
    """Return where values stand among the choices of their sliders."""
    pairs = zip(names, values, strict=True)
    return ",".join(str(widget._choices[name].index(value)) for name, value in pairs)


def unpacked(data, layout):
    """Return the arrays of a frame by name, as its layout says."""
    arrays, start = {}, 0
    for name, dtype, shape in layout:
        arrays[name] = np.frombuffer(data, dtype, math.prod(shape), start).reshape(shape)
        start += arrays[name].nbytes
    return arrays


def frame(widget, *values):
    """Return a frame of the grid that travels with a widget."""
    start, layout = widget._index[places(widget, widget.frame_settings, *values)]
    return unpacked(widget._frames[start:], widget._layouts[layout])


def live(widget):
    """Return the frame that Python computed last."""
    arrays = unpacked(widget._live, widget._live_layout)
    assert sum(array.nbytes for array in arrays.values()) == len(widget._live)
    return arrays


def weights_of(widget, n_heads, d):
    x, *w = widget.arrays(d)
    return multi_head_attention(x, *w, n_heads, return_weights=True)[1]


# Numbers -----------------------------------------------------------------------------------------


def matrices(widget, d):
    """Return Q, K, V and W_O of a width as the head splitter draws them, from 0 to 1."""
    n, start = len(widget.tokens), 0
    for width in widget._widths:
        layout = [(name, "|u1", (n, width)) for name in "qkv"] + [("w_o", "|u1", (width, width))]
        if width == d:
            drawn = unpacked(widget._matrices[start:], layout)
            return {name: matrix / 255 for name, matrix in drawn.items()}
        start += 3 * n * width + width**2
    pytest.fail(f"nothing of width {d}")


def test_head_splitter_holds_the_weights_of_every_possible_pair():
    widget = HeadSplitter(tokens=["she", "opened", "it"])
    assert widget.choices()["d"] == [4, 6, 8, 10, 12, 14, 15, 16, 18, 20, 24, 30]
    assert not widget._problems
    for h, d in ((h, d) for h in range(1, 9) for d in widget.choices()["d"]):
        got = frame(widget, h, d)
        if d % h:
            assert got == {}
            continue
        hundredths = 100 * weights_of(widget, h, d)
        np.testing.assert_allclose(got["weights"], hundredths, rtol=0, atol=0.5)
        assert got["weights"].shape == (h, 3, 3)


def relative(matrix):
    return np.abs(matrix) / np.abs(matrix).max()


def test_head_splitter_draws_the_arrays_that_it_says(rng):
    x, *w = (rng.normal(size=(6, 6)) for _ in range(5))
    widget = HeadSplitter(x=x[:5], w_q=w[0], w_k=w[1], w_v=w[2], w_o=w[3], n_heads=3)
    drawn = {name: matrix / 255 for name, matrix in live(widget).items() if name != "weights"}
    expected = {
        "q": x[:5] @ w[0],
        "k": x[:5] @ w[1],
        "v": x[:5] @ w[2],
        "w_o": w[3],
        "merged": multi_head_attention(x[:5], *w[:3], np.eye(6), 3),
        "out": multi_head_attention(x[:5], *w[:4], 3),
    }
    drawn |= matrices(widget, 6)
    assert set(drawn) == set(expected)
    for name, matrix in expected.items():
        np.testing.assert_allclose(drawn[name], relative(matrix), atol=0.002, err_msg=name)
    assert not widget._random


def test_head_splitter_has_the_columns_of_every_width():
    widget = HeadSplitter(tokens=["she", "opened", "it"])
    for d in widget.choices()["d"]:
        x, w_q, *_, w_o = widget.arrays(d)
        np.testing.assert_allclose(matrices(widget, d)["q"], relative(x @ w_q), atol=0.002)
        np.testing.assert_allclose(matrices(widget, d)["w_o"], relative(w_o), atol=0.002)


def test_head_splitter_computes_what_is_not_in_the_grid():
    widget = HeadSplitter(tokens=["a", "b"])
    widget.n_heads, widget.d = 5, 35
    assert 35 not in widget._choices["d"]
    assert widget._live_settings == {"n_heads": 5, "d": 35}
    hundredths = 100 * weights_of(widget, 5, 35)
    np.testing.assert_allclose(live(widget)["weights"], hundredths, rtol=0, atol=0.5)
    np.testing.assert_array_equal(widget.weights(), weights_of(widget, 5, 35))
    x, _, w_k, *_ = widget.arrays(35)
    np.testing.assert_allclose(matrices(widget, 35)["k"], relative(x @ w_k), atol=0.002)
    widget.n_heads = 6  # impossible, and its columns are there
    assert live(widget) == {}
    assert matrices(widget, 35)["q"].shape == (2, 35)


def test_head_splitter_follows_new_tokens():
    widget = HeadSplitter(tokens=["she", "opened", "it"], token=2)
    widget.tokens = ["she", "left"]
    assert widget.token == 1
    assert frame(widget, 1, 4)["weights"].shape == (1, 2, 2)
    assert matrices(widget, 30)["q"].shape == (2, 30)
    x, w_q, *_ = widget.arrays(4)
    np.testing.assert_allclose(matrices(widget, 4)["q"], relative(x @ w_q), atol=0.002)
    assert widget.weights().shape == (4, 2, 2)


def test_head_splitter_of_the_book_is_small():
    models = json.loads(page_data(HeadSplitter()))["models"]
    data = json.dumps(models).encode()
    assert len(data) <= 75_000
    assert len(gzip.compress(data)) <= 50_000


@pytest.mark.parametrize(
    ("make", "images", "says"),
    [
        # Q, K, V, a map for each head, blends, W_O, output
        (lambda w: None, 3 + 4 + 3, "16 columns split among 4 heads"),
        (lambda w: w.set_trait("n_heads", 2), 3 + 2 + 3, "16 columns split among 2 heads"),
        (lambda w: w.set_trait("d", 8), 3 + 4 + 3, "8 columns split among 4 heads"),
        (lambda w: w.set_trait("token", 4), 3 + 4 + 3, "where “queen” looks most"),
        (lambda w: w.set_trait("n_heads", 3), 3, "1 column left over: 3 does not divide 16."),
        (lambda w: w.set_trait("n_heads", 5), 3, "1 column left over: 5 does not divide 16."),
        (lambda w: w.set_trait("n_heads", 17), 3, "16 columns left over: 17 does not divide 16."),
    ],
)
def test_the_static_head_splitter_follows_its_settings(make, images, says):
    widget = HeadSplitter()
    make(widget)
    assert widget._picture.count("<img ") == images
    assert says in widget._picture
    chips = re.findall(r">head (\d+)<", widget._picture)
    assert chips == [str(i + 1) for i in range(widget.n_heads if images > 3 else 0)]


def test_the_static_head_splitter_says_where_each_head_looks():
    widget = HeadSplitter()
    for head, row in enumerate(widget.weights()[:, widget.token]):
        word, largest = widget.tokens[row.argmax()], row.max()
        alt = f"Attention map of head {head + 1}, columns {4 * head + 1} to {4 * head + 4}: "
        assert f"{alt}“she” looks most at “{word}”, {largest:.2f}." in widget._picture
        assert f"{word}<br>{largest:.2f}" in widget._picture


def test_the_static_head_splitter_deals_out_columns_by_head():
    picture = HeadSplitter(n_heads=2, d=8)._picture
    data = re.findall(r'alt="Q: [^>]*base64,([^"]+)"', picture)
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(data[0]))))  # (n, d, 4)
    assert pixels.shape == (11, 8, 4)
    colours = [to_hex(pixel[:3] / 255).upper() for pixel in pixels[0]]
    assert colours == ["#0072B2"] * 4 + ["#E69F00"] * 4


@pytest.mark.parametrize("n", [4, 16, 36])
@pytest.mark.parametrize("score", [0, 0.25, 1.5, 6])
def test_one_distribution_holds_the_errors_of_one_row(n, score):
    numbers = frame(OneDistribution(), score, n, 1)
    row = np.exp([score] + [0] * (n - 1))
    row /= row.sum()
    fetch, mean = job_errors(row)
    # The best multiples of the row, by their projections on it.
    factors = np.array([row[0], 1 / n]) / (row @ row)
    expected = {
        "errors": [fetch, mean], "sum": fetch + mean, "bound": 1 - n**-0.5,
        "on_marked": row[:1], "on_others": row[1:2],
        "factors": factors[:, None], "made": np.outer(factors, row[:2]),
    }  # fmt: skip
    assert set(numbers) == set(expected)
    for name, number in expected.items():
        np.testing.assert_allclose(numbers[name], number, atol=1e-6, err_msg=name)
    assert numbers["sum"] >= numbers["bound"] - 1e-6


def test_two_rows_are_offered_and_four_on_demand():
    assert OneDistribution().choices()["n_heads"] == [1, 2]
    assert OneDistribution(n_heads=4).choices()["n_heads"] == [1, 2, 4]


def test_the_combination_of_two_rows_is_the_one_worked_out_by_hand():
    # Rows (a, b, b, b) and (1, 1, 1, 1)/4: fetching takes 1/(a - b) of the first and -4b/(a - b)
    # of the second; averaging takes none of the first.
    widget = OneDistribution(score=1.0, n=4, n_heads=2)
    a, b = widget.rows()[0, :2]
    expected = [[1 / (a - b), -4 * b / (a - b)], [0, 1]]
    np.testing.assert_allclose(frame(widget, 1.0, 4, 2)["factors"], expected, rtol=1e-5)
    assert combination([2.5, -0.25]) == f"2.5 {TIMES} row 1 {MINUS} 0.25 {TIMES} row 2"


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


@pytest.mark.parametrize(
    ("n_heads", "expected"),
    [
        (1, "1 row of weights over 9 tokens, 0.48 on"),
        (2, "2 rows of weights over 9 tokens, 0.48 and 0.11 on"),
    ],
)
def test_the_picture_of_one_distribution_speaks_of_all_its_rows(n_heads, expected):
    widget = OneDistribution(score=2.0, n=9, n_heads=n_heads)
    picture = widget._picture
    assert expected in picture
    assert f"{n_heads} row{'s' * (n_heads > 1)} of weights and two errors<" in picture
    assert f"fetch = {combination(combined(widget.rows())[0][0])}<" in picture
    assert picture.count("<rect") == 9 * n_heads


def test_frontier_curve_comes_with_n():
    widget = OneDistribution()
    assert set(widget._curves) == {"4", "9", "16", "25", "36"}
    sums = np.sum(widget._curves["16"], axis=1)
    assert sums.min() == pytest.approx(0.75, abs=1e-3)
    widget.n = 49
    assert "49" in widget._curves


def test_budget_holds_exact_counts():
    widget = Budget()
    for values in ((128, 512, 8, None), (8192, 1024, 16, 1), (4096, 768, 12, 2)):
        n, d, h, kv = values
        counts, ratios, lengths = frame(widget, *values).values()
        cost, one = attention_cost(n, d, h, n_kv_heads=kv), attention_cost(n, d, 1)
        for i, name in enumerate(
            ("parameters", "matmul_flops", "softmax_entries", "weight_bytes", "score_bytes",
             "kv_cache_bytes")
        ):  # fmt: skip
            assert counts[i] == getattr(cost, name)
            assert ratios[i] == np.float32(getattr(cost, name) / getattr(one, name))
            for length, each in zip(lengths[:, i], (cost, one), strict=True):
                power = 3 + 9 * (length / 255)  # of ten: from a thousand to a million millions
                assert power == pytest.approx(math.log10(getattr(each, name)), abs=0.018)
    assert widget._labels["counts"][2] == "softmax entries"


def test_budget_computes_what_is_not_in_the_grid():
    widget = Budget(n=77, d=60, n_heads=5)
    assert live(widget)["counts"][2] == attention_cost(77, 60, 5).softmax_entries
    assert widget.cost() == attention_cost(77, 60, 5)


def test_the_picture_of_the_budget_says_what_heads_add():
    picture = Budget(n=1024, d=512, n_heads=8, n_kv_heads=1)._picture
    assert "softmax entries 8.39 M, 8 times one head" in picture
    assert "key/value cache 524 kB, 0.125 times one head" in picture
    assert "parameters 1.05 M, as with one head" in Budget()._picture


@pytest.mark.parametrize("name", ["three jobs", "induction"])
def test_playback_holds_every_snapshot(tiny_runs, name):
    run = tiny_runs[name]
    widget = TrainingPlayback(run)
    assert widget.choices()["step"] == sorted(run.history.snapshots)
    for step, snapshot in run.history.snapshots.items():
        drawn = frame(widget, step)
        np.testing.assert_allclose(drawn["weights"] / 255, snapshot.weights, atol=0.5 / 255)
        roles = np.array(widget._run["names"])[drawn["roles"]]
        np.testing.assert_array_equal(roles, head_roles(snapshot.scores))
        for score, values in zip(widget._run["scores"], drawn["scores"], strict=True):
            np.testing.assert_allclose(values, snapshot.scores[score], rtol=1e-6)
        np.testing.assert_allclose(drawn["loss"], snapshot.loss, rtol=1e-6)
        np.testing.assert_allclose(drawn["measures"], snapshot.measures, rtol=1e-6)
        assert drawn["measures"].shape == (len(run.task.jobs),)


def test_playback_knows_which_name_a_score_gives(tiny_runs):
    fixed = TrainingPlayback(tiny_runs["three jobs"])._run
    assert fixed["names"] == ["", "previous token", "marked token", "broad"]
    assert fixed["name_of"] == {
        "previous token": "previous token", "marked token": "marked token", "entropy": "broad",
    }  # fmt: skip


def test_playback_says_what_stays_the_same(tiny_runs):
    for run in tiny_runs.values():
        fixed = TrainingPlayback(run)._run
        chance = chance_scores(run.model, run.reporting)
        assert dict(zip(fixed["scores"], fixed["chance"], strict=True)) == chance
        assert fixed["n_steps"] == len(run.history.losses) == len(fixed["losses"])
        assert fixed["tokens"] == ["ABCDEFGHIJKLMNOP"[i] for i in run.reporting.tokens[0]]
        assert fixed["jobs"] == list(run.task.jobs)
        assert fixed["n_sequences"] == len(run.reporting.tokens)
        assert fixed["highest"] >= max(fixed["losses"])
    assert TrainingPlayback(tiny_runs["induction"])._run["marked"] is None
    marked = TrainingPlayback(tiny_runs["three jobs"])._run["marked"]
    assert marked == tiny_runs["three jobs"].reporting.marked[0]


def test_losses_are_smoothed_by_the_mean_of_their_neighbours(rng):
    losses = rng.random(23)
    expected = [losses[max(0, i - 3) : i + 4].mean() for i in range(23)]
    np.testing.assert_allclose(smoothed(losses, 7), expected)


def test_symbols_are_letters_as_long_as_there_are_any():
    assert [symbol(i) for i in (0, 25, 26)] == ["A", "Z", "26"]


def test_playback_goes_to_the_steps_that_have_a_snapshot(tiny_runs):
    widget = TrainingPlayback(tiny_runs["induction"], step=4, head=3)
    assert widget.snapshot() is tiny_runs["induction"].history.snapshots[4]
    widget.step = np.int64(33)
    np.testing.assert_equal(live(widget), frame(widget, 33))
    for wrong, near in ((12, "step=4 or 15"), (40, "step=33")):
        with pytest.raises(ValueError, match=f"no snapshot of that step: use {near}$"):
            widget.step = wrong
    assert widget.step == 33


def test_playback_of_the_book_is_small(rng):
    """Both runs together, as a page carries them, even if all they hold were noise."""
    widgets = []
    for run, n_steps in (
        (run_three_jobs(n_steps=1, n_snapshots=2), 500),
        (run_induction(n_steps=1, n_snapshots=2), 300),
    ):
        start = run.history.snapshots[0]
        noise = {
            step: replace(
                start,
                weights=rng.random(start.weights.shape),
                scores={name: rng.random(score.shape) for name, score in start.scores.items()},
                measures=rng.random(start.measures.shape),
            )
            for step in snapshot_steps(n_steps, 32)
        }
        history = History(rng.random(n_steps).tolist(), [], noise)
        widgets.append(TrainingPlayback(replace(run, history=history)))
    page = page_data(*widgets)
    models = json.loads(page)["models"].values()
    assert min(len(model["state"]["_index"]) for model in models) > 24  # what the book promises
    assert len(gzip.compress(page.encode())) <= 300_000


def page_data(*widgets):
    """Return what a published page carries for these widgets, as JSON."""
    state = ipywidgets.Widget.get_manager_state(widgets=widgets, drop_defaults=False)["state"]
    view = '<script type="application/vnd.jupyter.widget-view+json">{"model_id": "%s"}</script>'
    body, _ = rewrite_page("".join(view % widget.model_id for widget in widgets), state)
    return re.search(r'id="widget-data">(.*)</script>', body, re.DOTALL)[1]


def middle(curves):
    """Return the middle, least and largest of an odd number of curves, point by point."""
    ordered = np.sort(curves, axis=0)
    return ordered[[len(curves) // 2, 0, -1]]


@pytest.mark.parametrize("name", ["three jobs", "induction"])
def test_pruning_holds_every_number_of_heads(tiny_studies, name):
    seeds = np.atleast_1d(tiny_studies[name])
    widget = Pruning(tiny_studies, study=name)
    keys = ("greedy", "ablation", "gradient", "path")
    orders = [middle([seed.curves[key] for seed in seeds]) for key in keys]
    choices = middle([seed.subsets[0] for seed in seeds])
    choices[1] = np.min([seed.subsets[1] for seed in seeds], axis=0)
    choices[2] = np.max([seed.subsets[2] for seed in seeds], axis=0)
    floor = np.repeat(orders[0][:, -1:], 5, axis=1)
    expected = np.array([*orders, choices, floor])[..., ::-1]  # (orders, 3, heads kept)
    for kept in range(5):
        got = frame(widget, name, kept)["results"]
        np.testing.assert_allclose(got, expected[..., kept], rtol=1e-6)
        widget.kept = kept
        np.testing.assert_allclose([*widget.results().values()], expected[..., kept])
    assert widget._labels["results"][-2:] == [widget._labels["choices"], widget._labels["floor"]]
    fixed = widget._studies[name]
    assert list(fixed["curves"]) == widget._labels["results"]
    np.testing.assert_allclose([*fixed["curves"].values()], expected, atol=5e-5)
    assert fixed["greedy"] == seeds[0].greedy.tolist()
    assert fixed["n_seeds"] == len(seeds)
    assert fixed["n_layers"] == (2 if name == "induction" else 1)
    assert fixed["roles"] is None


def test_pruning_runs_as_the_figure_does_and_gives_heads_their_roles(tiny_studies):
    roles = np.array([["previous token", "broad"], ["induction", ""]])
    widget = Pruning(tiny_studies, roles={"induction": roles})
    assert widget.choices()["kept"] == [4, 3, 2, 1, 0]
    greedy = tiny_studies["induction"].greedy
    assert widget._studies["induction"]["roles"] == [roles[layer, head] for layer, head in greedy]
    assert widget._studies["three jobs"]["roles"] is None


def test_pruning_is_a_picture_of_the_present_setting(tiny_studies):
    widget = Pruning(tiny_studies, study="induction")
    study = tiny_studies["induction"]
    for kept in (4, 1):
        widget.kept = kept
        named = {key: study.curves[key][4 - kept] for key in ("greedy", "ablation", "gradient")}
        named |= {"path": study.curves["path"][4 - kept], "best choice": study.subsets[2, 4 - kept]}
        named |= {"mean of all": study.subsets[0, 4 - kept], "no attention": study.subsets[0, 4]}
        shown = re.findall(r' y="([\d.]+)"[^>]*>([a-z ]+) (\d\.\d\d)<', widget._picture)
        assert [name for _, name, _ in shown] == list(named)
        found = [float(value) for *_, value in shown]
        np.testing.assert_allclose(found, [*named.values()], atol=0.00501)
        # The higher, the further up, and none on another.
        heights = [float(y) for y, *_ in shown]
        assert max(heights) < 232 + 6  # none below the plot
        order = np.argsort(heights)
        assert np.diff(np.array(heights)[order]).min() > 17.8
        assert np.all(np.diff(np.array([*named.values()])[order]) <= 0)
    assert "var(--mha-curve-3, " in widget._picture


def test_pruning_starts_with_all_heads_of_the_first_model(tiny_studies):
    assert repr(Pruning(tiny_studies)) == "Pruning(study='three jobs', kept=4)"


# Impossible and wrong settings -------------------------------------------------------------------


def test_impossible_pairs_say_why_and_what_is_near():
    widget = HeadSplitter(n_heads=5, d=16)
    with pytest.raises(ValueError, match="n_heads=5 does not divide d=16: use n_heads=4 or 8"):
        widget.weights()
    assert widget._live == b""  # columns are dealt out, and no head attends
    assert "does not divide" in widget._picture
    shared = "h = 2 heads cannot share 4 sets of keys and values evenly"
    assert Budget(n_heads=2, n_kv_heads=4)._live_problem == shared
    assert Budget(n_heads=3)._live_problem == "h = 3 heads cannot share d = 512 columns evenly"
    assert shared in Budget(n_heads=2, n_kv_heads=4)._picture


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
        (lambda: HeadSplitter(head=-1), ValueError, "head=-1 is too small"),
        (lambda: HeadSplitter(head=1.0), TypeError, "head must be an integer, not float"),
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


def test_playback_refuses_what_it_cannot_show(tiny_runs):
    run = tiny_runs["three jobs"]

    def only(n_snapshots):
        kept = dict(list(run.history.snapshots.items())[:n_snapshots])
        return replace(run, history=History(run.history.losses, run.history.measures, kept))

    vectors = replace(run_marked_and_mean(n_heads=2, n_steps=1), history=run.history)
    for make, error, message in (
        (lambda: TrainingPlayback(run.model), TypeError, "not TokenModel: make one with run_three"),
        (lambda: TrainingPlayback(only(0)), ValueError, "0 snapshots, but needs at least 2: train"),
        (lambda: TrainingPlayback(only(1)), ValueError, "run has 1 snapshots, but needs at least"),
        (lambda: TrainingPlayback(vectors), ValueError, "run.reporting has no tokens"),
        (lambda: TrainingPlayback(run, step=5), ValueError, "use step=3 or 13"),
        (lambda: TrainingPlayback(run, step="5"), TypeError, "step must be an integer"),
        (lambda: TrainingPlayback(run, head=4), ValueError, "there are 4 heads: use head <= 3"),
        (lambda: TrainingPlayback(run, head=-1), ValueError, "head=-1 is too small"),
    ):
        with pytest.raises(error, match=re.escape(message)):
            make()
    assert len(TrainingPlayback(only(2))._index) == 2


def test_pruning_refuses_what_it_cannot_show(tiny_studies):
    study = tiny_studies["induction"]
    smaller = replace(study, greedy=study.greedy[:3])
    for make, error, message in (
        (lambda: Pruning(study), TypeError, "studies must be a dict of studies by name, not Pru"),
        (lambda: Pruning({}), ValueError, "studies is empty"),
        (lambda: Pruning({"a": []}), ValueError, "studies['a'] is empty: pass at least one"),
        (lambda: Pruning({"a": [study, 5]}), TypeError, "studies['a'] holds a int: pass what"),
        (lambda: Pruning({"a": 5}), TypeError, "studies['a'] holds a int: pass what"),
        (lambda: Pruning({"a": [study, smaller]}), ValueError, "studies['a'] have 3 and 4 heads"),
        (lambda: Pruning({"a": study}, study="b"), ValueError, "study='b' is not there: use 'a'"),
        (lambda: Pruning({"a": study}, kept=5), ValueError, "no model has more than 4 heads: use"),
        (lambda: Pruning({"a": study}, kept=-1), ValueError, "kept=-1 is too small"),
        (lambda: Pruning({"a": study}, kept=1.0), TypeError, "kept must be an integer"),
        (lambda: Pruning({"a": study}, roles=["x"]), TypeError, "roles must be a dict of roles by"),
        (lambda: Pruning({"a": study}, roles={"b": []}), ValueError, "roles has 'b', which is not"),
        (
            lambda: Pruning({"a": study}, roles={"a": ["broad"] * 4}),
            ValueError,
            "roles['a'] has shape (4,), but the study's heads are (2, 2): pass what head_roles",
        ),
    ):
        with pytest.raises(error, match=re.escape(message)):
            make()


def test_pruning_says_when_a_model_has_fewer_heads(tiny_studies):
    study = tiny_studies["induction"]
    curves = {name: curve[:3] for name, curve in study.curves.items()}
    small = replace(study, curves=curves, subsets=study.subsets[:, :3], greedy=study.greedy[:2])
    widget = Pruning({"large": study, "small": small}, kept=3)
    widget.study = "small"
    problem = "kept=3, but “small” has 2 heads: use kept <= 2"
    assert widget._problems[places(widget, ["study", "kept"], "small", 3)] == problem
    assert widget._live_problem == problem
    widget.kept = 2
    np.testing.assert_equal(live(widget), frame(widget, "small", 2))


def test_a_refused_value_changes_nothing():
    widget = HeadSplitter()
    with pytest.raises(TypeError, match="n_heads"):
        widget.n_heads = 2.5
    assert widget.n_heads == 4
    assert widget._live_settings == {"n_heads": 4, "d": 16}


def test_own_width_is_the_only_one_offered():
    widget = HeadSplitter(x=np.eye(6))
    assert widget.choices()["d"] == [6]
    assert widget.tokens[:2] == ["token 1", "token 2"]
    widget.d = 8
    assert "arrays passed in have width 6" in widget._live_problem


# Manners -----------------------------------------------------------------------------------------

# How to make each, a setting, and two values of it.
ALL = {
    "HeadSplitter": (lambda *_: HeadSplitter(), "n_heads", (1, 2)),
    "OneDistribution": (lambda *_: OneDistribution(), "n_heads", (4, 2)),
    "Budget": (lambda *_: Budget(), "n_heads", (1, 2)),
    "TrainingPlayback": (
        lambda runs, _: TrainingPlayback(runs["induction"], step=0),
        "step",
        (33, 4),
    ),
    "Pruning": (lambda _, studies: Pruning(studies), "kept", (0, 2)),
}


@pytest.fixture(params=ALL)
def case(request, tiny_runs, tiny_studies):
    """Return a function that makes a widget, the name of a setting, and two values of it."""
    make, setting, values = ALL[request.param]
    return lambda: make(tiny_runs, tiny_studies), setting, values


def test_repr_says_the_settings_and_no_address(case):
    make, setting, _ = case
    widget = make()
    assert repr(widget).startswith(f"{type(widget).__name__}(")
    assert f"{setting}={getattr(widget, setting)!r}" in repr(widget)
    assert not re.search("0x|object at", repr(widget))
    assert repr(make()) == repr(widget)
    assert widget._repr_mimebundle_()[0]["text/plain"] == repr(widget)


def test_any_integer_type_will_do(case):
    make, setting, (value, _) = case
    widget = make()
    setattr(widget, setting, np.int64(value))
    assert getattr(widget, setting) == value


def test_works_in_a_container_with_observe_and_jslink(case):
    make, setting, values = case
    widget, other = make(), make()
    box = ipywidgets.VBox([widget, other])
    assert box.children == (widget, other)
    link = ipywidgets.jslink((widget, setting), (other, setting))
    assert link.source == (widget, setting)
    seen = []
    widget.observe(lambda change: seen.append(change.new), setting)
    for value in values:
        setattr(widget, setting, value)
    assert seen[-2:] == list(values)


def test_a_change_from_the_front_end_is_computed(case):
    make, setting, (value, _) = case
    widget = make()
    before = widget._live_settings
    widget.set_state({setting: value})
    assert widget._live_settings != before


def test_picture_has_a_text_equivalent(case):
    picture = case[0]()._picture
    assert re.search(r'alt="[^"]{20,}"|<desc>[^<]{20,}</desc>', picture)


def test_picture_follows_the_settings(case):
    make, setting, values = case
    widget = make()
    for value in values:
        setattr(widget, setting, value)
        assert widget._picture == widget.picture()


def test_front_end_is_one_module_without_imports_or_arithmetic_of_attention(case):
    module = case[0]()._esm
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


@pytest.mark.parametrize("text", ["the cat sat", " the  cat\nsat "])
def test_a_text_is_split_into_words(text):
    widget = HeadSplitter(tokens=text)
    assert widget.tokens == ["the", "cat", "sat"]
    assert widget.weights().shape == (4, 3, 3)
    widget.tokens = "the cat sat down"
    assert widget.tokens == ["the", "cat", "sat", "down"]
    assert widget.weights().shape == (4, 4, 4)
    assert HeadSplitter(tokens=("a", "b")).tokens == ["a", "b"]


@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        ([1, 2], r"tokens must be a list of words, but holds int 1: pass \[str\(word\)"),
        (["a", None], "tokens must be a list of words, but holds NoneType None"),
        (7, "tokens must be a list of words, not int 7: pass a list or a text"),
        (b"the cat", "tokens must be a list of words, but holds int"),
    ],
)
def test_what_are_no_words_is_refused(tokens, told):
    with pytest.raises(TypeError, match=told):
        HeadSplitter(tokens=tokens)
    widget = HeadSplitter(tokens="the cat")
    with pytest.raises(TypeError, match=told):
        widget.tokens = tokens
    assert widget.tokens == ["the", "cat"]


@pytest.mark.parametrize(
    ("widget", "setting", "value"),
    [
        (lambda: OneDistribution(score=1000.25), "score", 1000.75),  # all weight on one token
        (lambda: Budget(d=640, n_heads=3), "n", 512),
        (lambda: HeadSplitter(d=15, n_heads=6), "n_heads", 7),
    ],
)
def test_an_answer_with_the_bytes_of_the_one_before_is_told_by_its_settings(widget, setting, value):
    widget, changed = widget(), []
    widget.observe(lambda change: changed.append(change.name))
    frame = widget._live
    setattr(widget, setting, value)
    assert widget._live == frame
    assert "_live" not in changed  # so that the page has to watch the settings
    assert "_live_settings" in changed


def test_the_page_watches_everything_that_a_frame_is_read_from():
    source = (FOLDER / "common.js").read_text(encoding="utf-8")
    (read,) = re.findall(r"function frameOf.*?\n}", source, re.DOTALL)
    (watched,) = re.findall(r"const watched = .*?;", source, re.DOTALL)
    names = set(re.findall(r'model\.get\("(_\w+)"\)', read)) - {"_settings"}  # these stay
    assert len(names) == 9
    assert names <= set(re.findall(r'"(_\w+)"', watched))


def test_the_page_reads_the_arrays_that_python_sends(case):
    """By name and in whatever order; the types are those that the page knows."""
    widget = case[0]()
    name = type(widget).__module__.rsplit(".", 1)[-1]
    source = (FOLDER / f"{name}.js").read_text(encoding="utf-8")
    (read,) = re.findall(r"function draw\(\{ (.*?) \}\)", source, re.DOTALL)
    assert {part.split(":")[0].strip() for part in read.split(",")} == set(live(widget))
    known = re.search(r"const TYPES = .*", (FOLDER / "common.js").read_text(encoding="utf-8"))[0]
    assert all(f'"{dtype}"' in known for _, dtype, _ in widget._live_layout)


def test_the_static_map_has_queries_from_top_to_bottom_and_the_colours_of_the_figures():
    weights = np.array([[0.0, 0.5, 1.0], [1.0, 0.0, 0.25]])
    image = _picture.weight_map(weights, "a map")
    (data,) = re.findall(r'base64,([^"]+)"', image)
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))  # (2, 3, 3)
    expected = 255 * np.array(colormaps["viridis"](weights))[..., :3]
    assert pixels.shape == (2, 3, 3)
    np.testing.assert_allclose(pixels, expected, atol=8)  # between a few anchors
