"""Figures of the book.  Every function takes arrays and axes, draws, and returns the axes."""

import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mha_lib import _check
from mha_lib._types import FloatArray, IntArray, Integer
from mha_lib.figures.palette import (
    CURVE_COLOURS,
    HEAD_COLOURS,
    INK,
    LINE,
    MARK,
    ORDER_LOOKS,
    PAGE,
    SOFT,
    TOKENS,
    head_colour,
    ink,
)

with _check.needing("mha_lib.figures.plots"):
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.backends import BackendFilter, backend_registry
    from matplotlib.colors import ListedColormap
    from matplotlib.ticker import MaxNLocator

# A page's column is a quarter wider, a telephone not quite two thirds as wide: type that is a
# little small here can be read on both.
FIGURE_WIDTH = 5.8  # inches
FONT_SIZE = 11  # points

WEIGHT_MAP = "viridis"  # one map, always from 0 to 1, for attention weights


def use_style() -> None:
    """Set fonts, sizes and background for all figures of a notebook, and have it show them."""
    plt.rcParams.update(
        {
            "figure.figsize": (FIGURE_WIDTH, 3.4),
            "figure.constrained_layout.use": True,
            "figure.facecolor": PAGE,
            "savefig.facecolor": PAGE,
            "axes.facecolor": PAGE,
            "font.size": FONT_SIZE,
            "text.color": INK,
            "axes.titlesize": FONT_SIZE,
            "axes.edgecolor": SOFT,
            "axes.labelcolor": INK,
            "xtick.color": SOFT,
            "ytick.color": SOFT,
            "xtick.labelcolor": INK,
            "ytick.labelcolor": INK,
            "grid.color": LINE,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.prop_cycle": plt.cycler(color=HEAD_COLOURS),
            "legend.frameon": False,
            "lines.linewidth": 2,
            "image.interpolation": "none",  # one square a number, whatever the size
            # Words stay words, in the page's own type, and two runs give the same file.
            "svg.fonttype": "none",
            "svg.hashsalt": "mha_lib",
        }
    )
    try:
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:  # a script rather than a notebook
        return
    cannot_show = backend_registry.list_builtin(BackendFilter.NON_INTERACTIVE)
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if hasattr(shell, "kernel") and plt.get_backend().lower() in cannot_show:
        # MPLBACKEND=Agg, say, which servers set for scripts, loses every figure of a notebook.
        shell.enable_matplotlib("inline")
    # Lines and words that follow the page's theme; all figures are equally wide.
    set_matplotlib_formats("svg", bbox_inches=None, metadata={"Date": None})


def panel_axes(n_panels: int, n_columns: int = 2, panel_height: float = 2.6) -> list[Axes]:
    """Return ``n_panels`` axes on a new figure, in rows of ``n_columns``.

    Parameters
    ----------
    n_panels : int
        How many axes.
    n_columns : int, default 2
        How many side by side.
    panel_height : float, default 2.6
        Height of one row, in inches.

    Returns
    -------
    axes : list of matplotlib Axes, length n_panels
    """
    n_rows = -(-n_panels // n_columns)
    figure, grid = plt.subplots(
        n_rows, n_columns, figsize=(FIGURE_WIDTH, panel_height * n_rows), squeeze=False
    )
    axes = list(grid.flat)
    for unused in axes[n_panels:]:
        figure.delaxes(unused)
    return axes[:n_panels]


def plot_weight_rows(rows: ArrayLike, names: str | Sequence[str], ax: Axes) -> Axes:
    """Draw rows of attention weights as bars, one bar a token.

    Parameters
    ----------
    rows : float array, (r, n)
        One row of weights per series.
    names : list of str, length r, or str for one row
        What to call each row, beside its tallest bar.
    ax : matplotlib Axes

    Returns
    -------
    ax : matplotlib Axes
    """
    rows = np.atleast_2d(rows)  # (r, n)
    names = [names] if isinstance(names, str) else names
    n_rows, n = rows.shape
    width = 0.8 / n_rows
    for i, (row, name) in enumerate(zip(rows, names, strict=True)):
        offset = (i - (n_rows - 1) / 2) * width
        bars = ax.bar(np.arange(1, n + 1) + offset, row, width, color=head_colour(i), label=name)
        for bar in bars:  # a pattern beside the colour, for grey print
            bar.set_hatch(("", "///", "...", "xxx")[i % 4])
            bar.set_edgecolor(PAGE)
        # Over the row's tallest bar, to its right, where the others are low.
        tallest = int(np.argmax(row))
        if n_rows > 1:
            ax.annotate(
                name, (tallest + 1 + offset, row[tallest]), (5, -2), textcoords="offset points",
                va="top" if i == 0 else "bottom", fontweight="bold",
            )  # fmt: skip
    ax.set(xlabel="token", ylabel="weight", ylim=(0, None))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return ax


def plot_bisector(cosine: float, ax: Axes, title: str = "") -> Axes:
    """Draw two unit rows of weights, the bisector between them, and what it misses of each.

    Parameters
    ----------
    cosine : float
        Of the angle between the two rows, f and g.
    ax : matplotlib Axes
    title : str, optional

    Returns
    -------
    ax : matplotlib Axes

    Notes
    -----
    The dotted lines are the perpendiculars from f and g to the bisector.  Their squared lengths
    are the two errors of `mha_lib.learning.job_errors`, here both alike.
    """
    angle = np.arccos(cosine)
    ways = {"f": 0.0, "g": angle, "a": angle / 2}
    colours = {"f": CURVE_COLOURS[1], "g": CURVE_COLOURS[3], "a": CURVE_COLOURS[0]}
    foot = np.cos(angle / 2) * np.array([np.cos(angle / 2), np.sin(angle / 2)])
    for name, way in ways.items():
        tip = float(np.cos(way)), float(np.sin(way))
        ax.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "-|>", "color": colours[name],
                    "linewidth": 2, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 14})  # fmt: skip
        ax.text(1.16 * tip[0], 1.16 * tip[1], name, color=colours[name], ha="center", va="center",
                style="italic", fontsize=FONT_SIZE + 1)  # fmt: skip
        if name != "a":
            ax.plot(*np.transpose([tip, foot]), ":", color=colours[name])
    turn = np.linspace(0, angle, 50)
    ax.plot(0.25 * np.cos(turn), 0.25 * np.sin(turn), color=SOFT, linewidth=1)
    ax.set(xlim=(-0.2, 1.3), ylim=(-0.15, 1.25), xticks=[], yticks=[])
    ax.set_xlabel(f"angle {np.degrees(angle):.0f}°\neach error {np.sin(angle / 2) ** 2:.3f}")
    ax.set_title(title)
    ax.set_aspect("equal")
    ax.spines[:].set_visible(False)
    return ax


def _frontier(best_errors, ax):
    """Draw the best errors that one row can have, and mark the least sum of them."""
    middle = np.argmin(np.sum(best_errors, axis=0))
    fetch, average = best_errors[0][middle], best_errors[1][middle]
    ax.plot(*best_errors, color=INK, linewidth=3)
    ax.plot(fetch, average, marker="o", markersize=9, color=INK)
    ax.text(fetch - 0.02, average - 0.02, f"best sum:\n{fetch:.3f} + {average:.3f}",
            ha="right", va="top")  # fmt: skip
    ax.text(0.01, 0.5, "curve:\nbest rows")
    # The axes start below 0, so that what lies in the corner hides no label.
    ax.set(xlabel="error of fetching", ylabel="error of averaging",
           xlim=(-0.04, 1.02), ylim=(-0.04, 1.02))  # fmt: skip
    ax.set_aspect("equal")


def plot_frontier(
    errors: tuple[ArrayLike, ArrayLike], best_errors: tuple[ArrayLike, ArrayLike], ax: Axes
) -> Axes:
    """Draw the two errors of many rows of weights, and the best that any row can reach.

    Parameters
    ----------
    errors : pair of float arrays, each (r,)
        Fetching and averaging error of r rows.
    best_errors : pair of float arrays, each (s,)
        The same for the best rows, ordered along the frontier.
    ax : matplotlib Axes

    Returns
    -------
    ax : matplotlib Axes
    """
    # Ten thousand dots are a picture in the picture.
    ax.scatter(*errors, s=3, color=HEAD_COLOURS[0], alpha=0.4, linewidths=0, rasterized=True)
    _frontier(best_errors, ax)
    ax.text(0.5, 0.96, "each dot: one random row", ha="center")
    ax.plot(0, 0, marker="*", markersize=16, color=MARK, linestyle="")
    ax.text(0.05, 0, "both jobs done", color=MARK, va="center")
    return ax


def plot_trained_frontier(
    best_errors: tuple[ArrayLike, ArrayLike], trained: Mapping[str, ArrayLike], ax: Axes
) -> Axes:
    """Draw the errors that trained layers reach, and the best that any row can reach.

    Parameters
    ----------
    best_errors : pair of float arrays, each (s,)
        Fetching and averaging error of the best rows, ordered along the frontier.
    trained : dict of str to float array, each (r, 2)
        Errors of r layers, by what to call them.
    ax : matplotlib Axes

    Returns
    -------
    ax : matplotlib Axes
    """
    _frontier(best_errors, ax)
    for i, (name, errors) in enumerate(trained.items()):
        colour = CURVE_COLOURS[1 + i % 3]
        ax.plot(*np.transpose(errors), marker="os"[i % 2], markersize=8, linestyle="",
                color=colour)  # fmt: skip
        # Beside the dot that is farthest from all corners of the plot but its own.
        x, y = max(np.array(errors), key=lambda point: point.min())
        ax.annotate(name, (x, y), (9, 5), textcoords="offset points", color=colour)
    return ax


def plot_attention_map(
    weights: ArrayLike, tokens: str | Sequence[str], ax: Axes, title: str = ""
) -> Axes:
    """Draw one head's attention weights: a row per query, a column per key.

    Parameters
    ----------
    weights : float array, (Tq, Tk)
        Each between 0 (dark) and 1 (light).
    tokens : list of str, or str
        Names of the tokens, or a text with spaces between them; used for keys and, where their
        number fits, for queries.
    ax : matplotlib Axes
    title : str, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    ax.imshow(weights, cmap=WEIGHT_MAP, vmin=0, vmax=1)
    n_queries, n_keys = np.shape(weights)
    tokens = _check.words("tokens", tokens)
    _check.same_size(
        "tokens", len(tokens[: max(n_queries, n_keys)]), "weights (its longer side)",
        max(n_queries, n_keys), "name each token",
    )  # fmt: skip
    ax.set_xticks(range(n_keys), tokens[:n_keys], rotation=90)
    ax.set_yticks(range(n_queries), tokens[:n_queries])
    ax.tick_params(length=0, labelsize=FONT_SIZE - 1)
    ax.spines[:].set_visible(False)
    ax.set_title(title)
    return ax


def plot_attention_maps(
    weights: FloatArray, tokens: str | Sequence[str], axes: Sequence[Axes]
) -> Sequence[Axes]:
    """Draw the attention weights of several heads, each under its number and colour.

    Parameters
    ----------
    weights : float array, (h, Tq, Tk)
    tokens : list of str, or str, Tk words
    axes : list of matplotlib Axes, length h

    Returns
    -------
    axes : list of matplotlib Axes
    """
    for head, (head_weights, ax) in enumerate(zip(weights, axes, strict=True)):
        plot_attention_map(head_weights, tokens, ax)
        colour = head_colour(head)
        ax.set_title(f"head {head + 1}", color=ink(colour), backgroundcolor=colour)
    axes[0].set_ylabel("query (looks)")
    axes[0].set_xlabel("key (is looked at)")
    axes[0].figure.colorbar(
        axes[0].images[0], ax=axes, location="bottom", shrink=0.6, label="attention weight"
    )
    return axes


def plot_role_maps(
    weights: FloatArray,
    heads: Sequence[int],
    axes: Sequence[Axes],
    label: str,
    roles: Sequence[str] | None = None,
) -> Sequence[Axes]:
    """Draw the maps of a few heads of a layer small, side by side, without the tokens' names.

    Parameters
    ----------
    weights : float array, (h, n, n)
        Attention weights of all heads.
    heads : list of int
        Which heads to draw, counted from 0.
    axes : list of matplotlib Axes, as many as heads
    label : str
        Written beside the first map.
    roles : list of str, as many as heads, optional
        What to call the heads, below their numbers.

    Returns
    -------
    axes : list of matplotlib Axes
    """
    names = [f"head {head + 1}" for head in heads]
    if roles is not None:
        names = [f"{name}\n{role}" for name, role in zip(names, roles, strict=True)]
    for head, name, ax in zip(heads, names, axes, strict=True):
        ax.imshow(weights[head], cmap=WEIGHT_MAP, vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        colour = head_colour(head)
        ax.set_title(name, color=ink(colour), backgroundcolor=colour, fontsize=FONT_SIZE - 1)
    axes[0].set_ylabel(f"{label}\nquery")
    axes[0].set_xlabel("key")
    return axes


def _cells(heads, words, n_heads, ax, size=FONT_SIZE):
    """Draw a matrix of cells in the colours of heads, grey for -1, with a word in each."""
    colours = ListedColormap([head_colour(head) for head in range(n_heads)])
    own = np.ma.masked_less(heads, 0)  # there the axes show, whose colour follows the theme
    ax.imshow(own, cmap=colours, vmin=-0.5, vmax=n_heads - 0.5, aspect="auto")
    ax.set_facecolor(LINE)
    for (row, column), head in np.ndenumerate(heads):
        if head >= 0:
            ax.text(column, row, words[row][column], color=ink(head_colour(head)), ha="center",
                    va="center", fontsize=size, fontweight="bold")  # fmt: skip
    n_rows, n_columns = np.shape(heads)
    ax.set_xticks(range(n_columns))
    ax.set_xticks(np.arange(1, n_columns) - 0.5, minor=True)
    ax.set_yticks(np.arange(1, n_rows) - 0.5, minor=True)
    ax.grid(which="minor", color=PAGE, linewidth=2)
    ax.tick_params(which="both", length=0)


def plot_head_columns(depends: ArrayLike, ax: Axes) -> Axes:
    """Draw which output columns change when a head changes.

    Parameters
    ----------
    depends : bool array, (h, d)
        True where output column j changes with head i.
    ax : matplotlib Axes

    Returns
    -------
    ax : matplotlib Axes
    """
    n_heads, d = np.shape(depends)
    heads = np.where(depends, np.arange(n_heads)[:, None], -1)
    _cells(heads, np.full((n_heads, d), "yes"), n_heads, ax, FONT_SIZE - 3)
    ax.set_yticks(range(n_heads), [f"head {head + 1}" for head in range(n_heads)])
    ax.set_xticks(range(d), [str(column + 1) for column in range(d)])
    ax.set(xlabel="column of the output")
    return ax


def plot_dealt(heads: IntArray, words: ArrayLike, ax: Axes, title: str = "") -> Axes:
    """Draw which head each number of a matrix goes to or comes from.

    Parameters
    ----------
    heads : int array, (n, d)
        The head of each number, counted from 0.
    words : array, (n, d)
        What to write on each number.
    ax : matplotlib Axes
    title : str, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    _cells(np.asarray(heads), np.asarray(words), int(np.max(heads)) + 1, ax)
    ax.set_yticks(range(len(heads)), [str(token + 1) for token in range(len(heads))])
    ax.set_xticks([])
    ax.set(xlabel=f"{len(np.transpose(heads))} columns", ylabel="token", title=title)
    return ax


def plot_row_sums(maps: Mapping[str, FloatArray], axes: Sequence[Axes]) -> Sequence[Axes]:
    """Draw maps of attention weights with the sum of each row to its right.

    Parameters
    ----------
    maps : dict of str to float array, each (Tq, Tk)
        Attention weights, by what to call them.
    axes : list of matplotlib Axes, as many as maps

    Returns
    -------
    axes : list of matplotlib Axes

    Notes
    -----
    A sum that is not 1 is written in the colour of what is wrong.
    """
    for (name, weights), ax in zip(maps.items(), axes, strict=True):
        n_queries, n_keys = np.shape(weights)
        plot_attention_map(weights, [str(i + 1) for i in range(max(n_queries, n_keys))], ax, name)
        ax.tick_params(axis="x", rotation=0)
        ax.text(n_keys, -0.8, "sum", ha="center", va="center", color=SOFT)
        for row, total in enumerate(np.sum(weights, axis=-1)):
            colour = INK if np.isclose(total, 1) else MARK
            ax.text(n_keys - 0.3, row, f"{total:.2f}", va="center", color=colour)
    axes[0].set_ylabel("query (looks)")
    axes[0].set_xlabel("key (is looked at)")
    axes[0].figure.colorbar(
        axes[0].images[0], ax=axes, location="bottom", shrink=0.6, label="attention weight"
    )
    return axes


def _plot_curves(x, series, ax, y_label):
    """Draw the series over ``x`` in powers of two, told apart by more than colour."""
    for i, (values, marker) in enumerate(zip(series.values(), "osD^", strict=False)):
        ax.plot(x, values, marker=marker, color=CURVE_COLOURS[i])
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set_xticks(x, [str(tick) for tick in x])
    ax.yaxis.set_major_formatter(y_label)
    ax.minorticks_off()
    _name_ends(ax, series, ((x[-1], np.asarray(values)[-1]) for values in series.values()))


def _name_ends(ax, names, ends, apart=0.08, colours=CURVE_COLOURS):
    """Write each curve's name behind its right end, in its colour; names keep their distance.

    ``ends`` are in the units of the data; ``apart`` is that distance for each line of a name, as
    a share of the axes' height.  Returns the names' heights as such shares.
    """
    to_axes = ax.transData + ax.transAxes.inverted()
    heights = [float(to_axes.transform(end)[1]) for end in ends]
    wrapped = [textwrap.fill(name, 17) for name in names]
    half = [apart * (1 + name.count("\n")) / 2 for name in wrapped]
    order = np.argsort(heights, kind="stable")
    # Upwards from the lowest, each above the one before; then, from the top, back into the axes.
    floor, ceiling = -np.inf, 1.0
    for i in order:
        heights[i] = max(heights[i], floor + half[i])
        floor = heights[i] + half[i]
    for i in order[::-1]:
        heights[i] = min(heights[i], ceiling - half[i])
        ceiling = heights[i] - half[i]
    for i, (name, height) in enumerate(zip(wrapped, heights, strict=True)):
        ax.annotate(
            name, (1, height), (8, 0), "axes fraction", textcoords="offset points",
            va="center", color=colours[i % len(colours)], linespacing=1.1,
        )  # fmt: skip
    return heights


def plot_against_heads(
    n_heads: Sequence[int] | IntArray, series: Mapping[str, ArrayLike], ax: Axes, ylabel: str
) -> Axes:
    """Draw quantities against the number of heads, both axes in powers of two.

    Parameters
    ----------
    n_heads : int array, (r,)
        Numbers of heads.
    series : dict of str to float array, each (r,)
        What to draw, by name.
    ax : matplotlib Axes
    ylabel : str

    Returns
    -------
    ax : matplotlib Axes
    """
    _plot_curves(n_heads, series, ax, lambda value, _: f"{value:g}")
    ax.set(xlabel="number of heads h", ylabel=ylabel)
    return ax


def _bytes_label(value, _):
    """Return a number of bytes in the unit that keeps it short."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:g} {unit}"
        value /= 1024


def plot_memory(
    lengths: Sequence[int] | IntArray, series: Mapping[str, ArrayLike], ax: Axes
) -> Axes:
    """Draw bytes against sequence length, both axes logarithmic.

    Parameters
    ----------
    lengths : int array, (r,)
        Sequence lengths n.
    series : dict of str to float array, each (r,)
        Bytes, by name.
    ax : matplotlib Axes

    Returns
    -------
    ax : matplotlib Axes
    """
    _plot_curves(lengths, series, ax, _bytes_label)
    ax.set(xlabel="sequence length n", ylabel="memory")
    return ax


def plot_time(lengths: Sequence[int] | IntArray, series: Mapping[str, ArrayLike], ax: Axes) -> Axes:
    """Draw milliseconds against sequence length, both axes logarithmic.

    Parameters
    ----------
    lengths : int array, (r,)
        Sequence lengths n.
    series : dict of str to float array, each (r,)
        Milliseconds, by name.
    ax : matplotlib Axes

    Returns
    -------
    ax : matplotlib Axes
    """
    _plot_curves(lengths, series, ax, lambda value, _: f"{value:g}")
    ax.set(xlabel="sequence length n", ylabel="milliseconds")
    return ax


def plot_steps(series: Mapping[str, tuple[ArrayLike, ArrayLike]], ax: Axes, ylabel: str) -> Axes:
    """Draw how quantities change over the steps of training.

    Parameters
    ----------
    series : dict of str to pair of float arrays, each (r,)
        Steps and values, by name.
    ax : matplotlib Axes
    ylabel : str

    Returns
    -------
    ax : matplotlib Axes
    """
    for i, (steps, values) in enumerate(series.values()):
        ax.plot(steps, values, color=CURVE_COLOURS[i % 4])
    ax.set(xlabel="training step", ylabel=ylabel, xlim=(0, None), ylim=(0, None))
    if len(series) > 1:
        ends = ((np.asarray(x)[-1], np.asarray(y)[-1]) for x, y in series.values())
        _name_ends(ax, series, ends, apart=0.14)
    return ax


def plot_pruning(
    curves: Mapping[str, FloatArray], floor: float, ax: Axes, at: Integer | None = None
) -> Axes:
    """Draw the accuracy that is left against the number of heads that are left.

    The widget `mha_lib.widgets.Pruning` shows the same picture, with ``at`` to be moved.

    Parameters
    ----------
    curves : dict of str to float array, each (S, L * h + 1)
        Accuracy with all heads, without one, ..., without any; one row per seed.  Lines are
        medians over the seeds, and strokes reach from the lowest seed to the highest.  "best
        choice" and "worst choice", of all choices of as many heads, are the edges of an area: the
        largest and the smallest over the seeds.
    floor : float
        Accuracy without any head.
    ax : matplotlib Axes
    at : int, optional
        Number of heads kept where the curves are named, and their values given.  None = half.

    Returns
    -------
    ax : matplotlib Axes
    """
    total = next(iter(curves.values())).shape[1] - 1
    at = total // 2 if at is None else _check.integer("at", at, minimum=0)
    if at > total:
        raise ValueError(f"at={at}, but there are {total} heads: use at <= {total}")
    kept = np.arange(total, -1, -1)
    shown = {name: np.median(rows, axis=0) for name, rows in curves.items()}
    if "best choice" in curves:
        shown["best choice"] = curves["best choice"].max(axis=0)
    if {"best choice", "worst choice"} <= set(curves):
        del shown["worst choice"]
        worst, best = curves["worst choice"].min(axis=0), shown["best choice"]
        ax.fill_between(kept, worst, best, color=SOFT, alpha=0.16, linewidth=0)
    shown["no attention"] = np.full(total + 1, floor)
    ax.axvline(at, color=SOFT, linewidth=1)
    # The first on top: marks that lie on one another stay in sight, as they grow downwards.
    for i, (name, curve) in enumerate(shown.items()):
        colour, mark, width, size = _order_look(name)
        style: dict[str, Any] = {"color": colour, "marker": mark, "zorder": 9 - i}
        ax.plot(kept, curve, linewidth=width, markersize=size, markeredgecolor=PAGE, **style)
        if name in curves and name != "best choice":
            low, high = curves[name].min(axis=0), curves[name].max(axis=0)
            ax.vlines(kept, low, high, color=colour, linewidth=3, alpha=0.4, zorder=8 - i)
    ax.set(xlabel="heads kept", ylabel="accuracy", ylim=(0, 1.03), xlim=(total + 0.2, -0.2))
    ax.set_xticks(kept)
    values = [curve[total - at] for curve in shown.values()]
    colours = [_order_look(name)[0] for name in shown]
    heights = _name_ends(
        ax,
        [f"{name} {value:.2f}" for name, value in zip(shown, values, strict=True)],
        [(at, value) for value in values],
        colours=colours,
    )
    left = (total + 0.2 - at) / (total + 0.4)
    for value, height, colour in zip(values, heights, colours, strict=True):
        ax.plot(
            [left, 1.015], [value / 1.03, height], ":", transform=ax.transAxes, color=colour,
            linewidth=1, clip_on=False,
        )  # fmt: skip
    return ax


def _order_look(name):
    """Return colour, mark, line width and size of mark of the curve of an order of removal."""
    token, mark = ORDER_LOOKS.get(name, ("soft", ""))
    colour = TOKENS[token][0]
    if mark:
        return colour, mark, 2, {"o": 5, "s": 7.5, "D": 6.5, "^": 9}[mark]
    return colour, "", 2.5 if name.startswith("mean") else 1, 0


def plot_shares(
    names: Sequence[str],
    shares: ArrayLike,
    intervals: ArrayLike,
    rivals: Mapping[str, ArrayLike],
    ax: Axes,
    title: str = "",
) -> Axes:
    """Draw shares with their intervals, a line a name, each beside its rivals.

    Parameters
    ----------
    names : list of str, length r
        What was counted, from the top down.
    shares : float array, (r,)
        Each between 0 and 1.
    intervals : float array, (r, 2)
        Lower and upper ends.
    rivals : dict of str to float array, each (r,)
        Shares that others reach, by what to call them, which is written over the first line.
    ax : matplotlib Axes
    title : str, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    lines = np.arange(len(names))
    ax.hlines(lines, *np.transpose(intervals), color=CURVE_COLOURS[3], linewidth=3)
    ax.plot(shares, lines, "o", color=CURVE_COLOURS[3], markersize=7)
    labels = {"head": (np.asarray(shares)[0], CURVE_COLOURS[3])}
    for i, (rival, reached) in enumerate(rivals.items()):
        colour = (INK, SOFT)[i % 2]
        ax.plot(reached, lines, ("|", "D", "x")[i % 3], color=colour, markersize=(12, 5, 6)[i % 3],
                markeredgewidth=2, markerfacecolor="none")  # fmt: skip
        labels[rival] = (np.asarray(reached)[0], colour)
    # In two heights by turns, since neighbours would touch.
    for i, label in enumerate(sorted(labels, key=lambda label: labels[label][0])):
        share, colour = labels[label]
        ax.annotate(label, (share, -0.3 - 0.4 * (i % 2)), color=colour, ha="center", va="bottom",
                    fontsize=FONT_SIZE - 1)  # fmt: skip
    ax.set(xlim=(-0.06, 1.08), ylim=(len(names) - 0.5, -1.2), xlabel="share that is right")
    ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    ax.set_yticks(lines, names)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", linewidth=1)
    ax.set_axisbelow(True)
    ax.set_title(title, loc="left")
    return ax


def plot_head_counts(counts: ArrayLike, ax: Axes) -> Axes:
    """Draw a number for each head of a model: the larger, the larger its disc.

    Parameters
    ----------
    counts : int array, (L, h)
        One row a layer.  Heads with 0 are dots.
    ax : matplotlib Axes

    Returns
    -------
    ax : matplotlib Axes
    """
    counts = np.asarray(counts)
    layers, heads = np.nonzero(counts)
    sizes = 200 + 100 * counts[layers, heads]  # of the area, in square points
    ax.scatter(heads, layers, s=sizes, facecolor="none", edgecolor=CURVE_COLOURS[3], linewidth=2)
    for layer, head in zip(layers, heads, strict=True):
        ax.text(int(head), int(layer), str(counts[layer, head]), ha="center", va="center")
    layers, heads = np.nonzero(counts == 0)
    ax.scatter(heads, layers, s=9, color=SOFT)
    n_layers, n_heads = counts.shape
    ax.set_xticks(range(n_heads), [str(head + 1) for head in range(n_heads)])
    ax.set_yticks(range(n_layers), [str(layer + 1) for layer in range(n_layers)])
    ax.set(xlabel="head", ylabel="layer", xlim=(-0.6, n_heads - 0.4), ylim=(n_layers - 0.4, -0.6))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def plot_removal(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    places: Sequence[tuple[float, float]],
    spread: tuple[ArrayLike, ArrayLike, ArrayLike],
    floor: float,
    ax: Axes,
    ylabel: str,
) -> Axes:
    """Draw what is left of a score as heads are removed in several orders.

    Parameters
    ----------
    curves : dict of str to pair of float arrays, each (r,)
        Numbers of removed heads and scores, by what to call them.
    places : list of pairs of float, as many as curves
        Where each name begins, since all curves end in the same point.
    spread : three float arrays, each (s,)
        Numbers of removed heads, and the lowest and highest score of random orders.
    floor : float
        The score without any head.
    ax : matplotlib Axes
    ylabel : str

    Returns
    -------
    ax : matplotlib Axes
    """
    ax.fill_between(*spread, color=SOFT, alpha=0.2, linewidth=0)
    ax.axhline(floor, color=MARK, linewidth=1)
    for i, (removed, scores) in enumerate(curves.values()):
        ax.plot(removed, scores, ("-", "--", ":", "-.")[i % 4], color=CURVE_COLOURS[i % 4])
    ax.annotate("no attention at all", (0, floor), (4, -4), textcoords="offset points",
                color=MARK, va="top")  # fmt: skip
    for i, (name, place) in enumerate(zip(curves, places, strict=True)):
        ax.text(*place, name, color=CURVE_COLOURS[i % 4])
    ax.set(xlabel="heads removed", ylabel=ylabel, xlim=(0, np.max(spread[0])))
    return ax
