"""What search engines, link previews and lost readers need: titles, descriptions, a card, a map.

``chapters/descriptions.yml`` has a sentence for each page.  A preview's picture and the site map
need absolute addresses, so they exist once the book has one; ``book_options`` says where it is.
"""

import re
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

import citation
import matplotlib
import resvg_py
import yaml
from sphinx.util import logging

from mha_lib.figures.diagram import MechanismDiagram

DESCRIPTIONS = "chapters/descriptions.yml"
CARD = "_static/card.png"
WIDTH, HEIGHT = 1200, 630  # pixels, which previews ask for
NOT_FOUND = "404"
# An address that begins where the page stands; a place on the page itself stays.
RELATIVE = re.compile(
    r"""(?<=\s)(href|src|action|data-content_root)="(?!\#|/|[a-z]+:)(?:\./)?([^"]*)\""""
)
LOST = """<h1>Page not found</h1>
<p>The address leads to no page of this book. It may have moved. Begin with <a href="{first}">the
first page</a>, choose a chapter from the contents, or <a href="search.html">search</a>.</p>
"""
REDIRECT = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="{description}">
<meta http-equiv="refresh" content="0; url={first}"><link rel="canonical" href="{canonical}"></head>
<body><p><a href="{first}">{title}</a></p></body></html>
"""
logger = logging.getLogger(__name__)


def card():
    """Return the picture for link previews, PNG: the book's diagram beside its title."""
    height = HEIGHT - 40
    diagram = MechanismDiagram.example().file.replace(
        "<svg ", f'<svg x="380" y="20" width="{WIDTH - 400}" height="{height}" ', 1
    )
    title = "".join(f'<tspan x="40" dy="62">{word}</tspan>' for word in ("Multi-head", "attention"))
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">'
        f'<rect width="100%" height="100%" fill="white"/>{diagram}'
        '<g font-family="DejaVu Sans" fill="#222222">'
        f'<text y="190" font-size="50" font-weight="bold">{title}</text>'
        '<text x="40" y="370" font-size="25">the interactive chapter</text></g></svg>'
    )
    fonts = Path(matplotlib.get_data_path(), "fonts", "ttf")  # the same on every system
    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=svg,
            skip_system_fonts=True,
            font_files=[str(fonts / f"DejaVuSans{weight}.ttf") for weight in ("", "-Bold")],
            sans_serif_family="DejaVu Sans",
        )
    )


def read_descriptions(app):
    path = Path(app.srcdir, DESCRIPTIONS)
    found = yaml.safe_load(path.read_text("utf-8")) if path.exists() else None
    app.env.book_descriptions = {str(page): words for page, words in (found or {}).items()}


def pages_without_description(env, pages):
    """Return the pages that have none, in order."""
    return sorted(set(pages) - set(env.book_descriptions)) if env.book_descriptions else []


def ask_for_descriptions(app, env):
    for page in pages_without_description(env, env.found_docs):
        logger.warning(
            "%s has no description for search engines: add a line to %s", page, DESCRIPTIONS
        )


def _meta(kind, name, content):
    return f'<meta {kind}="{name}" content="{escape(content)}" />'


def write_head(app, page, template, context, doctree):
    """Add title, description and preview to the head of a page."""
    words = app.env.book_descriptions.get(page, "")
    title = re.sub("<[^>]*>", "", context.get("title", ""))
    if page == app.config.root_doc:  # whose heading is the book's name, which follows each title
        title = citation.read()["title"]
        context["title"] = title.partition(": ")[2].capitalize() or title
    tags = [_meta("property", "og:title", title), _meta("property", "og:type", "article")]
    tags.append(_meta("property", "og:site_name", app.config.html_title or app.config.project))
    if words:
        tags += [_meta("name", "description", words), _meta("property", "og:description", words)]
    if address := app.config.html_baseurl:
        text = "Multi-head attention: 4 tokens pass through 2 heads, drawn from actual numbers"
        tags += [
            _meta("property", "og:url", f"{address}{page}.html"),
            _meta("property", "og:image", f"{address}{CARD}"),
            _meta("property", "og:image:width", str(WIDTH)),
            _meta("property", "og:image:height", str(HEIGHT)),
            _meta("property", "og:image:alt", text),
            _meta("name", "twitter:card", "summary_large_image"),
        ]
    context["metatags"] = context.get("metatags", "") + "\n".join(tags)


def add_not_found(app):
    first = app.builder.get_target_uri(app.config.root_doc)
    yield NOT_FOUND, {"title": "Page not found", "body": LOST.format(first=first)}, "page.html"


def anchored(html, address):
    """Return a page that works wherever it is shown: its addresses begin at the book's."""
    root = urlsplit(address).path
    return RELATIVE.sub(lambda found: f'{found[1]}="{root}{found[2]}"', html)


def write_files(app, exception):
    """Write the first page's redirect and, with an address, the picture and the map."""
    if exception is not None or app.builder.format != "html":
        return
    site, address = Path(app.outdir), app.config.html_baseurl
    first = app.builder.get_target_uri(app.config.root_doc)
    words = app.env.book_descriptions.get(app.config.root_doc, "")
    head = {
        "title": escape(citation.read()["title"]), "description": escape(words),
        "first": first, "canonical": (address or "") + first,
    }  # fmt: skip
    (site / "index.html").write_text(REDIRECT.format(**head), encoding="utf-8")
    if not address:
        return
    page = site / f"{NOT_FOUND}.html"
    page.write_text(anchored(page.read_text("utf-8"), address), encoding="utf-8")
    (site / CARD).write_bytes(card())
    places = "".join(
        f"<url><loc>{escape(address)}{page}.html</loc></url>\n"
        for page in sorted(app.env.found_docs)
    )
    (site / "sitemap.xml").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{places}</urlset>\n',
        encoding="utf-8",
    )


def setup(app):
    app.connect("builder-inited", read_descriptions)
    app.connect("env-check-consistency", ask_for_descriptions)
    app.connect("html-page-context", write_head)
    app.connect("html-collect-pages", add_not_found)
    app.connect("build-finished", write_files, priority=900)  # after pages have been trimmed
    return {"parallel_read_safe": True, "parallel_write_safe": True}
