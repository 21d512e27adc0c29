"""How to cite the book: ``CITATION.cff`` in a line, where a page says ``<!-- how to cite -->``."""

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
MARK = "<!-- how to cite -->"


def read(path=ROOT / "CITATION.cff"):
    """Return what the file says."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _name(author):
    if "name" in author:
        return author["name"]
    particle = f"{author['name-particle']} " if "name-particle" in author else ""
    return f"{author['given-names']} {particle}{author['family-names']}"


def line(citation, address):
    """Return a reference in Markdown, with the book's address or without one.

    Parameters
    ----------
    citation : dict
        As `read` returns it.
    address : str
        Where the book is published, or "".
    """
    *first, last = map(_name, citation["authors"])
    authors = f"{', '.join(first)} and {last}" if first else last
    year = str(citation["date-released"])[:4] if "date-released" in citation else ""
    made = ", ".join(filter(None, [f"version {citation['version']}", year]))
    dot = "" if authors.endswith(".") else "."
    where = f" <{address}>" if address else ""
    return f"{authors}{dot} *{citation['title']}*, {made}.{where}"
