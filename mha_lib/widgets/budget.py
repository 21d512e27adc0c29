"""Count what attention costs, and what of it depends on the number of heads."""

from dataclasses import asdict

import numpy as np

from mha_lib import _check
from mha_lib._types import Integer
from mha_lib.cost import AttentionCost, attention_cost
from mha_lib.widgets import _picture
from mha_lib.widgets._base import FrameWidget, Whole, front_end, reason, style

# What is shown, in this order: attribute of `AttentionCost`, and its name on the page.
SHOWN = {
    "parameters": "parameters",
    "matmul_flops": "matrix FLOPs",
    "softmax_entries": "softmax entries",
    "weight_bytes": "bytes of weights",
    "score_bytes": "bytes of scores",
    "kv_cache_bytes": "bytes of key/value cache",
}


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
        self._labels = {"counts": list(SHOWN.values())}
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
            "n_kv_heads": [1, 2, 4, None],
        }

    def frame(self, n, d, n_heads, n_kv_heads):
        counts, ratios = np.array(_counts(n, d, n_heads, n_kv_heads), "<f8")
        return {"counts": counts, "ratios": ratios}

    def problem(self, d, n_heads, n_kv_heads):
        kv = n_heads if n_kv_heads is None else n_kv_heads
        return reason(_check.divides, "n_heads", n_heads, "d", d) or reason(
            _check.divides, "n_kv_heads", kv, "n_heads", n_heads
        )

    def picture(self):
        if problem := self.current_problem():
            return _picture.figure("", problem + ".")
        counts, ratios = _counts(**self.current())
        rows = [
            (name, ratio / max(ratios), f"{count:,.0f} ({ratio:g} times)")
            for name, count, ratio in zip(SHOWN.values(), counts, ratios, strict=True)
        ]
        text = f"Cost with n = {self.n}, d = {self.d} and {self.n_heads} heads: " + "; ".join(
            f"{name} {value}" for name, _, value in rows
        )
        return _picture.figure(
            _picture.bars(rows, "Cost of attention, relative to one head", text + "."),
            f"n = {self.n}, d = {self.d}, {self.n_heads} heads; bars relative to one head.",
        )


def _counts(n, d, n_heads, n_kv_heads):
    """Return the counts, and their ratios to those of one head, (2, len(SHOWN))."""
    cost = asdict(attention_cost(n, d, n_heads, n_kv_heads=n_kv_heads))
    one = asdict(attention_cost(n, d, 1))
    return [cost[key] for key in SHOWN], [cost[key] / one[key] for key in SHOWN]
