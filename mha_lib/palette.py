"""One colour per head, the same in every figure, diagram and widget of the book.

The colours can be told apart by readers with the common kinds of colour blindness, and in
grey print by their lightness in part; heads therefore always carry their number as well.

References
----------
Okabe and Ito (2008), "Color universal design"; the last two colours are our extension.
"""

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


def head_colour(head):
    """Return the colour of a head, counted from 0; after the eighth the colours repeat."""
    return HEAD_COLOURS[head % len(HEAD_COLOURS)]
