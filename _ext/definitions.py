"""Explain terms and symbols where they are read, in the words of the notation page.

The first time that a section of a chapter uses one, it is a link to its row on that page, described
by the row's definition, which screen readers tell; `_static/definitions.js` shows it to whoever
points at the link or reaches it with the keyboard.  A table under a heading that names a chapter
is for that chapter, and goes before the others there.
"""

import re
from html import escape

from docutils import nodes
from search_excerpts import plain

NOTATION = "chapters/notation"
EXPLAINED = re.compile(r"chapters/(0\d_\w+|index|quick_version)")
# A term in here stays as it is.
SILENT = (
    nodes.reference, nodes.literal, nodes.literal_block, nodes.table, nodes.title, nodes.raw,
)  # fmt: skip


def _first_cell(entry):
    """Return what a row explains: TeX of formulas with dollars around, and words."""
    names = [f"${formula.astext()}$" for formula in entry.findall(nodes.math)]
    texts = "".join(
        str(text) for text in entry.findall(nodes.Text) if text.parent.tagname == "paragraph"
    )
    return names + [word.strip() for word in texts.split(",") if word.strip()]


def _identifier(name, chapter):
    place = f"chapter-{chapter}-" if chapter else ""
    return f"{place}{'symbol' if name[0] == '$' else 'word'}-" + re.sub(r"\W+", "-", name).strip(
        "-"
    )


def _rows(doctree):
    """Yield names, the number of their chapter or "", and the cells of each row of the page."""
    for section in doctree.findall(nodes.section):
        chapter = re.search(r"chapter (\d)", section.next_node(nodes.title).astext())
        for table in (child for child in section.children if isinstance(child, nodes.table)):
            titles = [entry.astext() for entry in table.next_node(nodes.thead)[0]]
            for row in table.next_node(nodes.tbody):
                if names := _first_cell(row[0]):
                    yield (
                        names,
                        chapter[1] if chapter else "",
                        row,
                        dict(zip(titles, row, strict=True)),
                    )


def name_rows(app, doctree):
    """Give each row of the notation page a name that links lead to."""
    if app.env.docname == NOTATION:
        for names, chapter, row, _ in _rows(doctree):
            row["ids"].append(_identifier(names[0], chapter))


def _definition(cells):
    """Return the last cell's words, and the shape if the row has one."""
    words = [child.deepcopy() for child in cells["meaning"][0].children]
    shape = cells["shape"].astext() if "shape" in cells else ""
    return words + ([nodes.Text(f"; shape {shape}")] if shape.startswith("(") else [])


def terms_for(doctree, page):
    """Return what is explained on a page.

    Returns
    -------
    terms : dict of str to (str, list of docutils.nodes.Node)
        By name, in lower case for words: the id of the row and its definition.
    """
    general, own = {}, {}
    for names, chapter, row, cells in _rows(doctree):
        if chapter and not page.startswith(f"chapters/0{chapter}_"):
            continue
        for name in names:
            key = name if name[0] == "$" else name.lower()
            (own if chapter else general)[key] = row["ids"][0], _definition(cells)
    return general | own


def _in_a_sentence(node):
    around = []
    while node is not None:
        around.append(node)
        node = node.parent
    return any(isinstance(one, nodes.paragraph) for one in around) and not any(
        isinstance(one, SILENT) for one in around
    )


def _section_of(node):
    """Return the part of the page, below its title, in which a node stands."""
    sections = []
    while node is not None:
        if isinstance(node, nodes.section):
            sections.append(node)
        node = node.parent
    return sections[-2] if len(sections) > 1 else None


class _Linker:
    """Links what one page explains, once in each section."""

    def __init__(self, terms, address):
        self.terms, self.address, self.used, self._seen = terms, address, {}, set()
        words = sorted((name for name in terms if name[0] != "$"), key=len, reverse=True)
        each = "|".join(map(re.escape, words))
        self._words = re.compile(rf"(?<![\w-])({each})s?(?![\w-])", re.IGNORECASE)

    def _link(self, name, section, node):
        """Return the nodes to put for ``node``, or none if this section has explained it."""
        place, definition = self.terms[name]
        if (place, section) in self._seen:
            return []
        self._seen.add((place, section))
        self.used[place] = definition
        label = f' aria-label="{escape(plain(name[1:-1]))}"' if name[0] == "$" else ""
        opening = (
            f'<a class="defined" href="{escape(self.address)}#{place}"{label} '
            f'aria-describedby="defined-{place}">'
        )
        return [nodes.raw("", opening, format="html"), node, nodes.raw("", "</a>", format="html")]

    def formula(self, node):
        if (name := f"${node.astext()}$") in self.terms:
            new = self._link(name, _section_of(node), node.deepcopy())
            if new:
                node.parent.replace(node, new)

    def text(self, node):
        new, at, text = [], 0, str(node)
        for found in self._words.finditer(text):
            link = self._link(found[1].lower(), _section_of(node), nodes.Text(found[0]))
            if link:
                new += [nodes.Text(text[at : found.start()]), *link]
                at = found.end()
        if new:
            node.parent.replace(node, [*new, nodes.Text(text[at:])])


def explain(app, doctree, page):
    """Link the terms of a page, and keep their definitions for its end."""
    if app.builder.format != "html" or not EXPLAINED.fullmatch(page):
        return
    if NOTATION not in app.env.found_docs:
        return
    terms = terms_for(app.env.get_doctree(NOTATION), page)
    linker = _Linker(terms, app.builder.get_relative_uri(page, NOTATION))
    for node in list(doctree.findall(lambda node: isinstance(node, (nodes.Text, nodes.math)))):
        place = node.parent if isinstance(node, nodes.Text) else node
        if (isinstance(place, nodes.math) and place is not node) or not _in_a_sentence(place):
            continue
        (linker.formula if isinstance(node, nodes.math) else linker.text)(node)
    doctree["definitions"] = linker.used


def add_definitions(app, page, template, context, doctree):
    """Put the definitions that links are described by where nobody sees them."""
    used = doctree.get("definitions") if doctree is not None else None
    if not used:
        return
    parts = [
        f'<p id="defined-{place}">'
        + app.builder.render_partial(nodes.inline("", "", *words))["fragment"].strip()
        + "</p>"
        for place, words in used.items()
    ]
    context["body"] += f'<div class="definitions" hidden>{"".join(parts)}</div>\n'


def setup(app):
    app.connect("doctree-read", name_rows)
    app.connect("doctree-resolved", explain)
    app.connect("html-page-context", add_definitions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
