"""Links from a result to the page of the book that explains it."""

import os
from html import escape
from pathlib import Path

from mha_lib.teaching.misconceptions import Misconception

_BOOK = Path(__file__).parents[2]


def linked(text: str, entry: Misconception) -> str:
    """Return a text as HTML in which the place to read on is a link.

    Parameters
    ----------
    text : str
        Any text; where it holds ``entry.where``, that becomes the link.
    entry : Misconception
        Where it sends a reader.

    Returns
    -------
    html : str
        With a link relative to the folder that the notebook runs in, where Jupyter opens the
        chapter; in a built book the link leads to the chapter's page.  Without a link where the
        library was installed without the book.

    Examples
    --------
    >>> from mha_lib.teaching import CATALOGUE
    >>> linked("1 < 2", CATALOGUE[0])
    '1 &lt; 2'
    """
    chapters = _BOOK / Path(entry.chapter).parent
    where = escape(entry.where)
    if not (_BOOK / entry.chapter).is_file():
        return escape(text)
    try:
        folder = Path(os.path.relpath(chapters)).as_posix()
    except (OSError, ValueError):  # no folder any more, or another drive
        return escape(text)
    address = escape(entry.page if folder == "." else f"{folder}/{entry.page}")
    return escape(text).replace(where, f'<a href="{address}">{where}</a>')
