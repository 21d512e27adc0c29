"""Static pictures of the widgets, for pages that are read without JavaScript."""

import base64
import io
from html import escape

import numpy as np
from PIL import Image

from mha_lib.figures.palette import WEIGHT_COLOURS


def figure(content, caption):
    """Return an HTML figure."""
    return (
        f'<figure class="mha-picture">{content}<figcaption>{escape(caption)} '
        "Turn on JavaScript to change the settings.</figcaption></figure>"
    )


def weight_map(weights, alt, width=160):
    """Return an HTML image of attention weights, query rows by key columns."""
    anchors = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in WEIGHT_COLOURS])
    at = np.linspace(0, 1, len(anchors))
    rgb = np.stack([np.interp(weights, at, anchors[:, i]) for i in range(3)], axis=-1)
    file = io.BytesIO()
    Image.fromarray(rgb.round().astype(np.uint8)).save(file, "png", optimize=True)
    data = base64.b64encode(file.getvalue()).decode()
    return (
        f'<img alt="{escape(alt)}" width="{width}" height="{width}" '
        f'style="image-rendering: pixelated" src="data:image/png;base64,{data}">'
    )


def bars(rows, title, text):
    """Return an SVG of labelled bars.

    Parameters
    ----------
    rows : list of (str, float, str)
        Label, length between 0 and 1, and the text after the bar.
    title, text : str
        Short name and text equivalent.
    """
    parts = []
    for i, (label, length, value) in enumerate(rows):
        y = 22 * i
        parts.append(
            f'<text x="0" y="{y + 15}">{escape(label)}</text>'
            f'<rect x="150" y="{y + 3}" width="{max(200 * length, 1):.1f}" height="15" '
            f'fill="#0072B2"/>'
            f'<text x="{156 + 200 * length:.1f}" y="{y + 15}">{escape(value)}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 500 {22 * len(rows)}" role="img" '
        'style="width: 100%; max-width: 500px; height: auto">'
        f"<title>{escape(title)}</title><desc>{escape(text)}</desc>"
        f'<g font-size="13" fill="currentColor">{"".join(parts)}</g></svg>'
    )


def lines(series, highest, title, text):
    """Return an SVG of curves from left to right, above 0.

    Parameters
    ----------
    series : list of (str, list of float, str)
        Label, heights at equal distances, and dashes as SVG writes them ("" = unbroken).
    highest : float
        Height of the drawing.
    title, text : str
        Short name and text equivalent.
    """
    parts = ['<path d="M30 5V105H330" fill="none" stroke="currentColor"/>']
    parts.append(f'<text x="26" y="14" text-anchor="end">{highest:.2g}</text>')
    parts.append('<text x="26" y="105" text-anchor="end">0</text>')
    for i, (label, heights, dashes) in enumerate(series):
        xs = np.linspace(30, 330, len(heights))
        points = " ".join(
            f"{x:.1f},{105 - 100 * y / highest:.1f}" for x, y in zip(xs, heights, strict=True)
        )
        drawn = f'fill="none" stroke="currentColor" stroke-width="2" stroke-dasharray="{dashes}"'
        y = 16 + 17 * i
        parts.append(f'<polyline points="{points}" {drawn}/><path d="M345 {y - 4}h30" {drawn}/>')
        parts.append(f'<text x="382" y="{y}">{escape(label)}</text>')
    height = max(115, 17 * len(series) + 5)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 540 {height}" role="img" '
        'style="width: 100%; max-width: 540px; height: auto">'
        f"<title>{escape(title)}</title><desc>{escape(text)}</desc>"
        f'<g font-size="13" fill="currentColor">{"".join(parts)}</g></svg>'
    )
