"""Put the figures of cells into their page, in the colours of the reader's theme.

`mha_lib.figures.plots` draws SVG in the light colours of `mha_lib.figures.palette`.  In the page
itself, instead of in a file of its own, a drawing can take its colours from CSS variables, which
follow the theme, the system's colours and the printer, and its words are words of the page.
"""

import hashlib
import re
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform

from mha_lib.figures.palette import PAGE, TOKENS

SYSTEM = {"ink": "CanvasText", "soft": "CanvasText", "line": "GrayText", "page": "Canvas"}


def themed(svg, alt, name):
    """Return a drawing as HTML to stand in a page.

    Parameters
    ----------
    svg : str
        The file that matplotlib wrote.
    alt : str
        Text equivalent.
    name : str
        What to begin the drawing's ids with, which must be unique in the page.
    """
    svg = svg[svg.index("<svg") :]
    # Rules for all elements, also those of the page; book.css has them for drawings.
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.DOTALL)
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))
    svg = re.sub(
        r' id="([^"]*)"', lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", svg
    )
    svg = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", svg)
    # A drawing stands on the page, or in the box of an answer, and has no ground of its own.
    svg = svg.replace(f'style="fill: {PAGE}"', 'style="fill: none"')
    for token, (light, _) in TOKENS.items():
        svg = svg.replace(light, f"var(--mha-{token})")
    opening = f'<svg role="img" aria-label="{escape(alt)}" class="mha-figure" '
    svg = re.sub(r'<svg width="[^"]*" height="[^"]*"', "<svg", svg, count=1)
    return svg.replace("<svg ", opening, 1).strip()


class InlineFigures(SphinxTransform):
    """Replace the drawings that cells made by themselves, before Sphinx collects images."""

    default_priority = 400

    def apply(self):
        for image in list(self.document.findall(nodes.image)):
            path = Path(self.env.relfn2path(image["uri"])[1])
            if path.suffix != ".svg" or "jupyter_execute" not in path.parts:
                continue
            svg = path.read_text(encoding="utf-8")
            name = "f" + hashlib.sha256(svg.encode()).hexdigest()[:6]
            html = themed(svg, image.get("alt", ""), name)
            image.replace_self(nodes.raw("", html, format="html"))


def style_sheet():
    """Return the CSS variables of the palette: light, dark, the system's, and on paper."""

    def rule(where, values):
        return f"{where} {{" + "".join(f"--mha-{k}: {v};" for k, v in values.items()) + "}\n"

    light = {name: pair[0] for name, pair in TOKENS.items()}
    dark = {name: pair[1] for name, pair in TOKENS.items()}
    root, night = ":root", 'html[data-theme="dark"]'
    system = {name: SYSTEM.get(name, "CanvasText") for name in TOKENS}
    return (
        rule(root, light)
        + rule(night, dark)
        + f"@media (forced-colors: active) {{ {rule(f'{root}, {night}', system)}}}\n"
        + f"@media print {{ {rule(f'{root}, {night}', light)}}}"
    )


def write_style_sheet(app):
    path = Path(app.outdir, "_static", "palette.css")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(style_sheet(), encoding="utf-8")


def setup(app):
    app.add_transform(InlineFigures)
    app.connect("builder-inited", write_style_sheet)
    app.add_css_file("palette.css", priority=400)  # before book.css
    return {"parallel_read_safe": True, "parallel_write_safe": True}
