"""Let the search page quote the pages that it finds, also when the site is opened from its files.

Sphinx's own way fetches every page that it found, which browsers refuse between files, and quotes
what it finds there as it is written.  Here the words of all pages are one more script, which only
the search page loads: as they are read, formulas in a line, without drawings.
"""

import json
import re
from pathlib import Path

from bs4 import BeautifulSoup, NavigableString
from sphinx.errors import ExtensionError

SCRIPT = Path(__file__).with_suffix(".js")
WORDS_FILE = "search_words.js"
UNREAD = ".headerlink, script, style, noscript, svg, button, .static-widget, .definitions"
# What stands in Sphinx's script, and what takes its place: an excerpt is made of a page's name.
FETCHED = "fetch(requestUrl)\n      .then((responseData) => responseData.text())\n"
AT_HAND = "Promise.resolve(docName)\n"
SIGNS = {
    "top": "ᵀ", "cdot": "·", "sqrt": "√", "dots": "…", "le": "≤", "lambda": "λ", "sum": "∑",
    "angle": "∠", "ln": "ln", "max": "max", "cos": "cos", "blacksquare": "∎",
}  # fmt: skip


def plain(tex):
    """Return a formula in a line of text: ``d_k``, or an ellipsis for one that has no such form."""
    text = re.sub(r"\\mathrm |\\operatorname|\\text(?=\{)|\\[,!]", "", tex.strip())
    text = re.sub(r"\\([a-z]+)", lambda sign: SIGNS.get(sign[1], sign[0]), text)
    text = re.sub(r"\^(ᵀ|\{ᵀ\})", "ᵀ", text)
    return "…" if "\\" in text else re.sub("[{}]", "", text)


def words_of(article):
    """Return the words of a page, and where each of its places begins and ends in them.

    Parameters
    ----------
    article : bs4.Tag
        The page's text, which is changed.

    Returns
    -------
    text : str
    places : dict of str to list of int
        By id.  JavaScript counts in units of UTF-16, and so do these.
    """
    for unread in article.select(UNREAD):
        unread.decompose()
    for formula in article.select("math[data-tex]"):
        formula.replace_with(plain(formula["data-tex"]))
    text, places = [""], {}

    def length():
        return len("".join(text).encode("utf-16-le")) // 2

    def walk(node):
        if isinstance(node, NavigableString):
            words = re.sub(r"\s+", " ", node)
            text.append(words[1:] if text[-1][-1:] in ("", " ") and words[:1] == " " else words)
            return
        begin = length() if node.get("id") else 0
        for child in node.children:
            walk(child)
        if node.get("id"):
            places[node["id"]] = [begin, length()]

    walk(article)
    return "".join(text), places


def publish_words(app, exception):
    """Write the words of all pages, and have the search page take them from there."""
    if exception is not None or app.builder.format != "html":
        return
    site = Path(app.outdir)
    pages = {}
    for name in sorted(app.env.found_docs):
        soup = BeautifulSoup((site / f"{name}.html").read_text("utf-8"), "html.parser")
        pages[name] = words_of(soup.select_one("article.bd-article"))
    tools = site / "_static" / "searchtools.js"
    code = tools.read_text("utf-8")
    if code.count(FETCHED) != 1:
        raise ExtensionError(
            "Sphinx's searchtools.js no longer fetches pages as _ext/search_excerpts.py knows it: "
            "look for `fetch(` there, and mend FETCHED"
        )
    words = json.dumps(pages, ensure_ascii=False, separators=(",", ":"))
    tools.write_text(code.replace(FETCHED, AT_HAND) + SCRIPT.read_text("utf-8"), "utf-8")
    (site / "_static" / WORDS_FILE).write_text(f"const SEARCH_WORDS = {words};\n", "utf-8")


def load_words(app, pagename, templatename, context, doctree):
    if pagename == "search":
        app.add_js_file(WORDS_FILE)


def setup(app):
    app.connect("html-page-context", load_words)
    app.connect("build-finished", publish_words)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
