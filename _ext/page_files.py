"""Let a page be seen before all that it loads is there.

A browser shows nothing until it has each style sheet of a page and has run each script of its head.
There are a dozen of each.  Here the style sheets become one, without the many rules of the theme
for what the book does not have, and scripts run once the page is read.
"""

import functools
import hashlib
import posixpath
import re
from pathlib import Path

import tinycss2

SHEET = re.compile(
    r'\s*<link (?=[^>]*rel="stylesheet")[^>]*href="([^"]*?)_static/([^"?]+)[^"]*"[^>]*>'
)
OPTIONS = re.compile(r'<script src="[^"]*documentation_options\.js[^"]*"></script>')
HURRIED = re.compile(r"<script (?![^>]*\bdefer)(?=[^>]*\bsrc=)")
GROUPS = ("media", "supports", "container", "layer")  # which hold rules themselves
# Beginnings of classes that scripts put together.
MADE_UP = ("bs-", "tooltip", "popover", "modal", "offcanvas", "collaps", "dropdown", "sd-")
NEEDS_ORDER = ("search.html",)  # whose page has a script of its own between the others


def sheet(static, name):
    """Return a style sheet as it is read from the folder of static files, imports included."""
    folder = posixpath.dirname(name)
    css = (static / name).read_text("utf-8").removeprefix("\ufeff")
    css = re.sub(r'@charset "[^"]*";', "", css)

    def rebased(found):
        address = found[2]
        if re.match(r"[a-z]+:|#|%23", address):
            return found[0]
        return f"url({found[1]}{posixpath.normpath(posixpath.join(folder, address))}{found[1]})"

    css = re.sub(r"""url\((["']?)([^"')]+)\1\)""", rebased, css)
    return re.sub(
        r'@import "([^"]+)";',
        lambda found: sheet(static, posixpath.normpath(posixpath.join(folder, found[1]))),
        css,
    )


def trimmed(rules, words):
    """Return CSS without comments and without rules for classes that nothing names.

    Parameters
    ----------
    rules : list of tinycss2.ast.Node
    words : set of str
        All that occur in the pages and scripts of the site.
    """
    kept = []
    for rule in rules:
        if rule.type == "at-rule" and rule.lower_at_keyword in GROUPS:
            inside = trimmed(tinycss2.parse_rule_list(rule.content), words)
            if inside:
                kept.append(f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}{{{inside}}}")
        elif rule.type == "at-rule":
            kept.append(rule.serialize())
        elif rule.type == "qualified-rule":
            selectors = tinycss2.serialize(rule.prelude)
            # What is excluded need not be there: `a:not(.button)`.
            needed = re.findall(r"\.(-?[A-Za-z_][\w-]*)", re.sub(r":not\([^)]*\)", "", selectors))
            several = "," in selectors or ":is(" in selectors or ":where(" in selectors
            known = [name in words or name.startswith(MADE_UP) for name in needed]
            if not needed or (any(known) if several else all(known)):
                kept.append(f"{selectors.strip()}{{{tinycss2.serialize(rule.content).strip()}}}")
    return "\n".join(kept)


def words_of(site):
    """Return all words of the site's pages and scripts, among them the names of classes."""
    files = [*site.rglob("*.html"), *(site / "_static").rglob("*.js")]
    files = [path for path in files if path.name != "search_words.js"]
    return {word for path in files for word in re.findall(r"[\w-]+", path.read_text("utf-8"))}


def join_sheets(html, static, words):
    """Return a page with one style sheet in place of those of the book, which is written."""
    found = list(SHEET.finditer(html))
    if not found:
        return html
    css = _joined(static, tuple(each[2] for each in found), words)
    name = f"page-{hashlib.sha256(css.encode()).hexdigest()[:8]}.css"
    (static / name).write_text(css, encoding="utf-8")
    link = f'\n    <link rel="stylesheet" type="text/css" href="{found[0][1]}_static/{name}" />'
    whole = iter([link])
    return SHEET.sub(lambda _: next(whole, ""), html)


@functools.cache
def _joined(static, names, words):
    css = "\n".join(sheet(static, name) for name in names)
    rules = tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True)
    return trimmed(rules, words)


def settle_scripts(html, static):
    """Return a page whose scripts run once it is read, in their order."""
    options = (static / "documentation_options.js").read_text("utf-8")
    html = OPTIONS.sub(lambda _: f"<script>{options}</script>", html)
    return HURRIED.sub("<script defer ", html)


def lighten(app, exception):
    """Change each page of the finished site."""
    if exception is not None or app.builder.format != "html":
        return
    site = Path(app.outdir)
    _joined.cache_clear()
    words = frozenset(words_of(site))
    for path in site.rglob("*.html"):
        if "_static" in path.parts:
            continue
        html = join_sheets(path.read_text("utf-8"), site / "_static", words)
        if path.name not in NEEDS_ORDER:
            html = settle_scripts(html, site / "_static")
        path.write_text(html, encoding="utf-8")


def setup(app):
    app.connect("build-finished", lighten, priority=800)  # after sheets and scripts are complete
    return {"parallel_read_safe": True, "parallel_write_safe": True}
