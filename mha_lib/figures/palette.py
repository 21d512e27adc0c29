"""The colours of the book, the same in every figure, diagram and widget: one for each head.

The colours can be told apart by readers with the common kinds of colour blindness, and in
grey print by their lightness in part; heads therefore always carry their number as well.

References
----------
Okabe and Ito (2008), "Color universal design"; the last two colours are our extension.
"""

import re

import numpy as np

from mha_lib import _check

HEAD_COLOURS = [
    "#0072B2",  # blue
    "#E69F00",  # orange
    "#009E73",  # green
    "#CC79A7",  # pink
    "#56B4E9",  # light blue
    "#D55E00",  # red
    "#7F6A00",  # olive
    "#555555",  # grey
]

# What belongs to no head, as (light, dark).  Figures are drawn in the light colours; the book's
# pages turn them into the CSS variables `--mha-NAME`, which follow the reader's theme.
TOKENS = {
    "ink": ("#1f2733", "#ced6dd"),  # text, axes
    "soft": ("#48566b", "#9ca4af"),  # what matters less
    "line": ("#c9ced5", "#48566b"),  # grids and frames
    "page": ("#fefefe", "#121212"),  # not the white of what is written on a head's colour
    "mark": ("#b3261e", "#ff8a80"),  # what cannot be, is lost or is left over
    "curve-1": ("#882255", "#e58fb8"),  # curves of quantities
    "curve-2": ("#117733", "#63c482"),
    "curve-3": ("#4a3aa7", "#a79bf0"),
}
INK, SOFT, LINE, PAGE, MARK, *_ = (light for light, _ in TOKENS.values())
CURVE_COLOURS = [INK, *(light for name, (light, _) in TOKENS.items() if name[:5] == "curve")]

# Curves of what is left as heads go, the same in figure and widget: token and mark of each order
# of removal.  What the orders are compared with is "soft" and has no marks.
ORDER_LOOKS = {
    "greedy": ("ink", "o"),
    "ablation": ("curve-1", "s"),
    "gradient": ("curve-2", "D"),
    "path": ("curve-3", "^"),
}

# The colour map of attention weights, viridis, at 0, 1/16, ..., 1: what `plots` shows them in.
WEIGHT_COLOURS = (
    "#440154 #48186a #472d7b #424086 #3b528b #33638d #2c728e #26828e #21918c "
    "#1fa088 #28ae80 #3fbc73 #5ec962 #84d44b #addc30 #d8e219 #fde725"
).split()


def head_colour(head: int) -> str:
    """Return the colour of a head, counted from 0; after the eighth the colours repeat."""
    return HEAD_COLOURS[_check.integer("head", head, minimum=0) % len(HEAD_COLOURS)]


def ink(colour: str) -> str:
    """Return black or white, whichever is easier to read on a colour (WCAG 2 contrast)."""
    if not isinstance(colour, str) or not re.fullmatch("#[0-9a-fA-F]{6}", colour):
        raise ValueError(f"colour={colour!r}, but must be like {HEAD_COLOURS[0]!r}: use six digits")
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return "#000000" if linear @ (0.2126, 0.7152, 0.0722) > 0.179 else "#ffffff"
