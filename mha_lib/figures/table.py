"""Results as a table, for readers of a page and of a terminal alike."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from mha_lib import _check

MISSING = "-"


class Table:
    """A few columns of results, as a table in HTML and as lined-up text.

    Parameters
    ----------
    rows : list of dict
        One dict a row, from the headings to what stands under them.  All rows have the same
        headings, in the same order; the first column names the row.
    digits : int or dict, default 3
        Decimal places of numbers with a fraction, for all columns or by heading.
    caption : str, optional
        What all rows have in common.

    Raises
    ------
    ValueError
        ``rows`` is empty, its dicts have different headings, or ``digits`` names a heading that
        they do not have.

    Notes
    -----
    Whole numbers are written with commas, truth values as yes and no, and None as a dash.

    Examples
    --------
    >>> Table([{"heads": 1, "error": 0.75}, {"heads": 2, "error": 0.0}], digits=2)
    heads  error
        1   0.75
        2   0.00
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        digits: int | Mapping[str, int] = 3,
        caption: str = "",
    ) -> None:
        rows = list(rows)
        if not rows:
            raise ValueError("rows is empty: give at least one row")
        self.headings = list(rows[0])
        for i, row in enumerate(rows):
            if list(row) != self.headings:
                raise ValueError(
                    f"rows[{i}] has the headings {list(row)}, but rows[0] has {self.headings}: "
                    f"give all rows the same headings, and None where there is nothing"
                )
        if isinstance(digits, Mapping):
            if unknown := set(digits) - set(self.headings):
                raise ValueError(
                    f"digits names {sorted(unknown)}, but the headings are {self.headings}: "
                    f"use some of these"
                )
            places = {heading: digits.get(heading, 3) for heading in self.headings}
        else:
            places = dict.fromkeys(self.headings, _check.integer("digits", digits, minimum=0))
        self.caption = caption
        self._cells = [
            [_written(row[name], places[name]) for name in self.headings] for row in rows
        ]
        # A column of words begins at the left, numbers end at the right.
        self._is_words = [
            all(isinstance(row[name], str | bool | np.bool_ | None) for row in rows)
            for name in self.headings
        ]

    def __repr__(self) -> str:
        lines = [self.headings, *self._cells]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [self.caption] if self.caption else []
        for line in lines:
            cells = zip(line, widths, self._is_words, strict=True)
            aligned = (cell.ljust(w) if words else cell.rjust(w) for cell, w, words in cells)
            text.append("  ".join(aligned).rstrip())
        return "\n".join(text)

    def _repr_html_(self):
        sides = [' class="words"' if words else "" for words in self._is_words]
        heads = "".join(
            f'<th scope="col"{side}>{escape(heading)}</th>'
            for heading, side in zip(self.headings, sides, strict=True)
        )
        body = "".join(
            f'<tr><th scope="row"{sides[0]}>{escape(first)}</th>'
            + "".join(
                f"<td{side}>{escape(cell)}</td>" for cell, side in zip(rest, sides[1:], strict=True)
            )
            + "</tr>\n"
            for first, *rest in self._cells
        )
        caption = f"<caption>{escape(self.caption)}</caption>" if self.caption else ""
        return (
            f'<table class="results">{caption}\n<thead><tr>{heads}</tr></thead>\n'
            f"<tbody>\n{body}</tbody></table>"
        )


def _written(value, places):
    """Return what a cell shows of a value."""
    if value is None:
        return MISSING
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    number = f"{value:,.{places}f}"
    return number.removeprefix("-") if float(number.replace(",", "")) == 0 else number
