"""Serve everything from the site itself, small: no page asks a third party for anything.

- sphinx-thebe, which Jupyter Book always loads, is disconnected: its scripts point to another host.
- The theme's icon script (1.5 MB) is replaced by the theme's own icon font, cut down to the
  icons that occur on the site.
- The search index is loaded by the search page alone: the book does not search while one types.
- On the way, markup that accessibility checkers reject is mended.
"""

import re
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

ICON_CSS = "styles/pydata-sphinx-theme.css"
ICON_FONTS = "vendor/fontawesome/webfonts"
ICON_SCRIPT = re.compile(r'\s*<script[^>]*src="[^"]*fontawesome\.js[^"]*"[^>]*></script>')
ICON_RULE = re.compile(r'((?:\.fa-[\w-]+:before,?)+)\{content:"\\([0-9a-f]+)"\}')
SEARCH_SCRIPT = re.compile(
    r'\s*<script[^>]*src="[^"]*(?:searchtools|language_data|searchindex)\.js[^"]*"[^>]*></script>'
)
# Markup of the theme and of the bibliography that accessibility checkers reject.
MENDED = (
    # The book's title in the sidebar stands in no landmark.
    (
        re.compile(r'<div class="sidebar-primary-item">(?=\s*<a class="navbar-brand)'),
        '<div class="sidebar-primary-item" role="navigation" aria-label="Home">',
    ),
    # A role that is no longer in use, and a list whose children are not list items.
    (re.compile(r' role="doc-biblioentry"|(?<=<div) role="list"(?= class="citation-list")'), ""),
    # sphinx-exercise gives all exercises of a page the same ids, which nothing leads to.
    (re.compile(r'(?<=<section) id="(?:exercise|solution)-content"'), ""),
    # myst-nb names what unfolds otherwise than what is written on it.
    (re.compile(r'(?<=<summary) aria-label="Toggle hidden content"'), ""),
)
# Never loaded by a page that the two functions below have passed.
UNUSED_FILES = ("*.map", "*webpack-macros.html", "scripts/fontawesome.js*")


def disconnect_thebe(app, config):
    """Undo what sphinx-thebe's ``setup`` connected."""
    for listeners in list(app.events.listeners.values()):
        for listener in list(listeners):
            if listener.handler.__module__ == "sphinx_thebe":
                app.disconnect(listener.id)
    app.registry.css_files[:] = [
        (name, attributes) for name, attributes in app.registry.css_files if "thebe" not in name
    ]


def trim_site(app, exception):
    """Take what no reader needs out of the finished pages and static files."""
    if exception is not None or app.builder.format != "html":
        return
    site = Path(app.outdir)
    icons = set()
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        trimmed = ICON_SCRIPT.sub("", text)
        if page.name != "search.html":
            trimmed = SEARCH_SCRIPT.sub("", trimmed)
        for pattern, replacement in MENDED:
            trimmed = pattern.sub(replacement, trimmed)
        if trimmed != text:
            page.write_text(trimmed, encoding="utf-8")
        icons.update(re.findall(r"\bfa-[\w-]+", trimmed))
    for pattern in UNUSED_FILES:
        for file in (site / "_static").rglob(pattern):
            file.unlink()
    keep_icons(site / "_static", icons)


def keep_icons(static, icons):
    """Cut the theme's icon fonts, and the rules for them, down to the icons named.

    Parameters
    ----------
    static : pathlib.Path
        The built site's folder of static files.
    icons : set of str
        Class names such as ``"fa-bars"``.
    """
    code_points = set()

    def keep_if_used(rule):
        names = set(re.findall(r"\.(fa-[\w-]+):before", rule[1]))
        if not names & icons:
            return ""
        code_points.add(int(rule[2], 16))
        return rule[0]

    css = static / ICON_CSS
    rules = ICON_RULE.sub(keep_if_used, css.read_text(encoding="utf-8"))
    for font_file in sorted((static / ICON_FONTS).glob("*.ttf")):
        font = TTFont(font_file, recalcTimestamp=False)  # or no two builds are alike
        cutter = subset.Subsetter()
        cutter.populate(unicodes=code_points)
        cutter.subset(font)
        font.flavor = "woff"
        font.save(font_file.with_suffix(".woff"))
        font_file.unlink()
        font_file.with_suffix(".woff2").unlink()
        rules = re.sub(
            rf'url\([^)]*{font_file.stem}\.woff2\) format\("woff2"\),'
            rf'url\([^)]*{font_file.stem}\.ttf\) format\("truetype"\)',
            f'url(../{ICON_FONTS}/{font_file.stem}.woff) format("woff")',
            rules,
        )
    css.write_text(rules, encoding="utf-8")


def setup(app):
    app.connect("config-inited", disconnect_thebe)
    app.connect("build-finished", trim_site)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
