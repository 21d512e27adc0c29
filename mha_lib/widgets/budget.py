"""Count what attention costs, and what of it depends on the number of heads."""

from dataclasses import asdict
from html import escape

import numpy as np

from mha_lib import _check
from mha_lib._types import Integer
from mha_lib.cost import AttentionCost, attention_cost
from mha_lib.widgets import _picture
from mha_lib.widgets._base import FrameWidget, Whole, front_end, reason, style

# What is shown, in this order: attribute of `AttentionCost`, its name on the page, its unit.
SHOWN = {
    "parameters": ("parameters", ""),
    "matmul_flops": ("matrix FLOPs", ""),
    "softmax_entries": ("softmax entries", ""),
    "weight_bytes": ("bytes of weights", "B"),
    "score_bytes": ("bytes of scores", "B"),
    "kv_cache_bytes": ("key/value cache", "B"),
}
# The axis of the bars: a step for each factor of 10, from a thousand to a million millions.
FIRST, LAST = 3, 12
PREFIXES = {3: "k", 6: "M", 9: "G", 12: "T"}


class Budget(FrameWidget):
    """Vary n, d, h and the key/value heads, and see which costs move.

    Parameters
    ----------
    n : int, default 1024
        Number of tokens.
    d : int, default 512
        Model width.
    n_heads : int, default 8
        Number of heads h.  A value that does not divide ``d`` is shown as impossible.
    n_kv_heads : int, optional
        Number of heads with keys and values of their own.  None = ``n_heads``.

    See Also
    --------
    mha_lib.attention_cost : where all numbers come from; here with 4 bytes per number.

    Notes
    -----
    The traits ``n``, ``d``, ``n_heads`` and ``n_kv_heads`` can be read, set, observed and linked.

    Examples
    --------
    >>> budget = Budget(n=64, d=512, n_heads=8)
    >>> budget.cost().softmax_entries
    32768
    """

    _esm = front_end("budget")
    _css = style("budget")

    settings = frame_settings = ("n", "d", "n_heads", "n_kv_heads")
    problem_settings = ("d", "n_heads", "n_kv_heads")
    n = Whole(1024)
    d = Whole(512)
    n_heads = Whole(8)
    n_kv_heads = Whole(None, allow_none=True)

    def __init__(
        self,
        n: Integer = 1024,
        d: Integer = 512,
        n_heads: Integer = 8,
        n_kv_heads: Integer | None = None,
    ) -> None:
        super().__init__(n=n, d=d, n_heads=n_heads, n_kv_heads=n_kv_heads)
        self._labels = {
            "counts": [name for name, _ in SHOWN.values()],
            "units": [unit for _, unit in SHOWN.values()],
            "axis": [PREFIXES.get(power, "") for power in range(FIRST, LAST + 1)],
        }
        self.recompute()
        self.follow_settings()

    def cost(self) -> AttentionCost:
        """Return the `AttentionCost` of the present setting."""
        return attention_cost(self.n, self.d, self.n_heads, n_kv_heads=self.n_kv_heads)

    def choices(self):
        return {
            "n": [128, 512, 1024, 4096, 8192],
            "d": [192, 512, 768, 1024],
            "n_heads": [1, 2, 4, 8, 12, 16],
            "n_kv_heads": [1, 2, None],
        }

    def frame(self, n, d, n_heads, n_kv_heads):
        counts, ratios = np.array(_counts(n, d, n_heads, n_kv_heads), "<f8")
        # Lengths of bars on the axis, for the layer and for one with one head, in 255ths.
        lengths = np.round(255 * _length(np.array([counts, counts / ratios])))
        return {"counts": counts, "ratios": ratios.astype("<f4"), "lengths": lengths.astype("|u1")}

    def problem(self, d, n_heads, n_kv_heads):
        if reason(_check.divides, "n_heads", n_heads, "d", d):
            return f"h = {n_heads} heads cannot share d = {d:,} columns evenly"
        kv = n_heads if n_kv_heads is None else n_kv_heads
        if reason(_check.divides, "n_kv_heads", kv, "n_heads", n_heads):
            sets = f"{kv} set{'s' * (kv > 1)} of keys and values"
            return f"h = {n_heads} head{'s' * (n_heads > 1)} cannot share {sets} evenly"
        return ""

    def picture(self):
        n_kv = self.n_heads if self.n_kv_heads is None else self.n_kv_heads
        setting = f"n = {self.n:,}, d = {self.d:,}, {self.n_heads} heads" + (
            f", {n_kv} set{'s' * (n_kv > 1)} of keys and values" if n_kv != self.n_heads else ""
        )
        if problem := self.current_problem():
            return _picture.figure("", f"{setting}: {problem}.")
        counts, ratios = _counts(**self.current())
        rows = [
            (name, count, ratio, f"{short(count)}{unit}, {compared(ratio)}")
            for (name, unit), count, ratio in zip(SHOWN.values(), counts, ratios, strict=True)
        ]
        text = f"Cost with {setting}: " + "; ".join(f"{row[0]} {row[3]}" for row in rows) + "."
        return _picture.figure(_drawing(rows, text), f"{setting}. Each line: ten times as much.")


def _counts(n, d, n_heads, n_kv_heads):
    """Return the counts, and their ratios to those of one head, (2, len(SHOWN))."""
    cost = asdict(attention_cost(n, d, n_heads, n_kv_heads=n_kv_heads))
    one = asdict(attention_cost(n, d, 1))
    return [cost[key] for key in SHOWN], [cost[key] / one[key] for key in SHOWN]


def _length(counts):
    """Return where counts stand on the axis, from 0 to 1."""
    return np.clip((np.log10(counts) - FIRST) / (LAST - FIRST), 0, 1)


def short(count):
    """Return a count with three digits and a prefix: "1.07 G"."""
    power = max((power for power in PREFIXES if count >= 10**power), default=0)
    return f"{count / 10**power:.3g} {PREFIXES.get(power, '')}"


def compared(ratio):
    """Say how a cost compares with that of one head."""
    return "as with one head" if ratio == 1 else f"{ratio:.3g} times one head"


def _drawing(rows, text):
    """Return an SVG of the costs as bars on the axis; what heads add has another colour."""
    left, width, top, step = 115, 230, 20, 24
    parts = []
    for power in range(FIRST, LAST + 1):
        x = left + width * (power - FIRST) / (LAST - FIRST)
        parts.append(
            f'<path d="M{x:.1f} {top}V{top + step * len(rows)}" stroke="currentColor" '
            'opacity="0.3"/>'
        )
        if power in PREFIXES:
            parts.append(f'<text x="{x:.1f}" y="14" text-anchor="middle">{PREFIXES[power]}</text>')
    for i, (name, count, ratio, says) in enumerate(rows):
        y = top + step * i
        now, one = width * _length(np.array([count, count / ratio]))
        parts.append(
            f'<text x="0" y="{y + 16}">{escape(name)}</text>'
            f'<rect x="{left}" y="{y + 4}" width="{min(now, one):.1f}" height="15" fill="#777"/>'
        )
        if ratio != 1:
            look = 'fill="#0072B2"' if ratio > 1 else 'fill="none" stroke="currentColor"'
            parts.append(
                f'<rect x="{left + min(now, one):.1f}" y="{y + 4}" width="{abs(now - one):.1f}" '
                f'height="15" {look}/>'
            )
        parts.append(f'<text x="{left + width + 10}" y="{y + 16}">{escape(says)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 570 {top + step * len(rows) + 4}" '
        'role="img" style="width: 100%; max-width: 570px; height: auto">'
        f"<title>Cost of attention</title><desc>{escape(text)}</desc>"
        f'<g font-size="13" fill="currentColor">{"".join(parts)}</g></svg>'
    )
