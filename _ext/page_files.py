"""Let a page be seen before all that it loads is there.

A browser shows nothing until it has each style sheet of a page and has run each script of its head.
There are a dozen of each.  Here the style sheets become one, and scripts run once the page is read.
"""

import hashlib
import posixpath
import re
from pathlib import Path

SHEET = re.compile(
    r'\s*<link (?=[^>]*rel="stylesheet")[^>]*href="([^"]*?)_static/([^"?]+)[^"]*"[^>]*>'
)
OPTIONS = re.compile(r'<script src="[^"]*documentation_options\.js[^"]*"></script>')
HURRIED = re.compile(r"<script (?![^>]*\bdefer)(?=[^>]*\bsrc=)")
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


def join_sheets(html, static):
    """Return a page with one style sheet in place of those of the book, which is written."""
    found = list(SHEET.finditer(html))
    if not found:
        return html
    css = "\n".join(sheet(static, each[2]) for each in found)
    name = f"page-{hashlib.sha256(css.encode()).hexdigest()[:8]}.css"
    (static / name).write_text(css, encoding="utf-8")
    link = f'\n    <link rel="stylesheet" type="text/css" href="{found[0][1]}_static/{name}" />'
    whole = iter([link])
    return SHEET.sub(lambda _: next(whole, ""), html)


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
    for path in site.rglob("*.html"):
        if "_static" in path.parts:
            continue
        html = join_sheets(path.read_text("utf-8"), site / "_static")
        if path.name not in NEEDS_ORDER:
            html = settle_scripts(html, site / "_static")
        path.write_text(html, encoding="utf-8")


def setup(app):
    app.connect("build-finished", lighten, priority=800)  # after sheets and scripts are complete
    return {"parallel_read_safe": True, "parallel_write_safe": True}
