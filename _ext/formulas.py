"""Write formulas as MathML when the book is built: browsers draw it and screen readers read it.

No page needs a script for its formulas.  What is not understood stops the build.  The font is STIX
Two Math, cut down to the signs that occur on the site.
"""

import re
from html import escape, unescape
from importlib.util import find_spec
from pathlib import Path

from docutils.nodes import SkipNode
from fontTools import subset
from fontTools.ttLib import TTFont
from math_core import LatexError, LatexToMathML
from sphinx.errors import ExtensionError

FONT_FILE = "formulas.woff"
# Letters that stand alone are drawn in italics, which have code points of their own.
ITALIC = {
    ord(letter): first + i
    for letters, first in (
        ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 0x1D434),
        ("abcdefghijklmnopqrstuvwxyz", 0x1D44E),
        ("αβγδεζηθικλμνξοπρςστυφχψω", 0x1D6FC),
    )
    for i, letter in enumerate(letters)
} | {ord("h"): 0x210E}
RADICAL = 0x221A  # browsers draw it around <msqrt>
CONVERTER = LatexToMathML()


def mathml(tex, display=False):
    """Return a formula as MathML that carries its TeX source.

    Parameters
    ----------
    tex : str
        The formula, without dollars.
    display : bool, optional
        Whether it stands in lines of its own.

    Raises
    ------
    math_core.LatexError
        The formula has something that is not understood.
    """
    body = tex.strip()
    if r"\\" in body and r"\begin" not in body:  # reStructuredText's lines need no frame
        body = rf"\begin{{aligned}}{body}\end{{aligned}}"
    found = CONVERTER.convert_with_local_state(body, displaystyle=display)
    return found.replace("<math", f'<math class="math" data-tex="{escape(body)}"', 1)


def visit(translator, node, display=False):
    """Write a formula where it stands."""
    try:
        found = mathml(node.astext(), display)
    except LatexError as error:
        place = ":".join(map(str, filter(None, (node.source, node.line))))
        why = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip().splitlines()[0]
        raise ExtensionError(f"{place}: cannot write ${node.astext()}$ as MathML: {why}") from error
    if node.get("number"):
        raise ExtensionError(f"{node.source}: formulas have no numbers here: take the label away")
    if display:
        found = f'<div class="math-block">{found}</div>\n'
    translator.body.append(found)
    raise SkipNode


def keep_signs(app, exception):
    """Publish the font with the signs of this site's formulas."""
    if exception is not None or app.builder.format != "html":
        return
    signs = {RADICAL}
    for page in Path(app.outdir).rglob("*.html"):
        for formula in re.findall(r"<math.*?</math>", page.read_text("utf-8"), flags=re.DOTALL):
            signs |= {ord(sign) for sign in unescape(re.sub(r"<[^>]*>", "", formula))}
    package = find_spec("ziamath").submodule_search_locations[0]
    font = TTFont(
        Path(package) / "fonts" / "STIXTwoMath-Regular.ttf",
        recalcTimestamp=False,  # or no two builds are alike
    )
    options = subset.Options(layout_features=["ssty", "kern"], notdef_outline=True, hinting=False)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=signs | {ITALIC[sign] for sign in signs if sign in ITALIC})
    cutter.subset(font)
    font.flavor = "woff"
    font.save(Path(app.outdir) / "_static" / FONT_FILE)


def setup(app):
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(visit, None),
        block_renderers=(lambda translator, node: visit(translator, node, display=True), None),
    )
    app.connect("build-finished", keep_signs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
