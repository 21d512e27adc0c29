"""Make links of the places to read on that checks and tables of mistakes name.

`mha_lib` names them in words, such as "chapter 2, 'Step 2: split'", since a check is also shown
where the book's pages are not.  On a page of the book they are a click away.
"""

import re
from html import escape, unescape

from docutils import nodes
from sphinx.transforms import SphinxTransform

# With the link around it, if there is one: to the notebook, for whoever reads it in Jupyter.
PLACE = re.compile(
    r'(?:<a href="[^"]*">)?((?:chapter (\d)|Watch out for), &#x27;(.+?)&#x27;)(?:</a>)?'
)
WATCH_OUT = "6"  # the chapter that is called by its name


def linked(html, pages):
    """Return ``html`` with links to the places that it names.

    Parameters
    ----------
    html : str
    pages : dict of str to str
        Addresses of the chapters, by their number.
    """

    def link(found):
        page = pages.get(found[2] or WATCH_OUT)
        address = f"{page}#{nodes.make_id(unescape(found[3]))}"
        return f'<a href="{escape(address)}">{found[1]}</a>' if page else found[0]

    return PLACE.sub(link, html)


class ReadOn(SphinxTransform):
    """Link the places in what cells put out as HTML."""

    default_priority = 400

    def apply(self):
        here = self.env.docname
        names = (re.fullmatch(r"chapters/0(\d)_\w+", name) for name in self.env.found_docs)
        pages = {
            name[1]: self.app.builder.get_relative_uri(here, name[0]) for name in names if name
        }
        for raw in list(self.document.findall(nodes.raw)):
            html = linked(raw.astext(), pages) if raw.get("format") == "html" else None
            if html and html != raw.astext():
                raw.replace_self(nodes.raw(raw.rawsource, html, **raw.attributes))


def setup(app):
    app.add_transform(ReadOn)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
