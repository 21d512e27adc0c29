"""Every formula of the book says in MathML what it says in TeX."""
# ruff: noqa: RUF001 - signs that look like letters are what this is about

import json
import re
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from formulas import mathml
from math_core import LatexError

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$\w])\$([^$`\n]+?)\$(?!\w)", re.DOTALL)
# What each command is drawn as; those of structure, of type and of space are nothing by themselves.
SIGNS = {
    "angle": "∠", "blacksquare": "■", "cdot": "⋅", "cos": "cos", "dots": "…", "ge": "≥", "in": "∈",
    "lambda": "λ", "le": "≤", "ln": "ln", "max": "max", "min": "min", "odot": "⊙", "sigma": "σ",
    "sum": "∑", "times": "×", "to": "→", "top": "⊤", "varepsilon": "ε", "mathbb": "", "Sigma": "Σ",
    **dict.fromkeys("frac sqrt text mathrm operatorname left right quad".split(), ""),
}  # fmt: skip
ALIKE = str.maketrans({"𝔼": "E", "ℝ": "R", "−": "-", "∗": "*", "·": "⋅", "∣": "|"})
SCRIPTS = ("msub", "msup", "msubsup", "munder", "munderover")


def formulas():
    """Yield each formula of the chapters once."""
    found = set()
    for path in sorted(CHAPTERS.glob("*.*")):
        text = path.read_text("utf-8") if path.suffix in (".md", ".ipynb") else ""
        if path.suffix == ".ipynb":
            cells = json.loads(text)["cells"]
            text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
        text = re.sub(r"```(?!\{).*?```|`[^`]*`", "", text, flags=re.DOTALL)
        found |= {(block or line, bool(block)) for block, line in FORMULA.findall(text)}
    return sorted(found)


def signs(tex):
    """Return what is to be read of a formula, from left to right."""
    tex = re.sub(r"\\(begin|end)\{\w+\}|\\\\|\\[,!;: ]|\\[Bb]igg?[lr]?(?![a-z])", " ", tex)
    tex = re.sub(r"\\([A-Za-z]+)", lambda command: SIGNS[command[1]], tex)
    return re.sub(r"[\s{}^_&]", "", tex)


def read(tex, display):
    """Return a formula's MathML: its signs, and how often each element occurs."""
    formula = re.sub(r' data-tex="[^"]*"', "", mathml(tex, display))
    named = re.sub(r"&(?!lt;|gt;|amp;)\w+;", lambda sign: unescape(sign[0]), formula)
    root = ElementTree.fromstring(named)  # noqa: S314 - ours
    tags = [node.tag for node in root.iter()]
    text = "".join("".join(root.itertext()).split()).translate(ALIKE)
    return re.sub("[\u2061-\u2064]", "", text).replace("⋅⋅⋅", "…"), tags


@pytest.mark.parametrize(("tex", "display"), formulas())
def test_mathml_has_every_sign_and_every_part(tex, display):
    text, tags = read(tex, display)
    assert text == signs(tex)
    assert tags.count("mfrac") == tex.count(r"\frac")
    assert tags.count("msqrt") == tex.count(r"\sqrt")
    n_scripts = sum(
        tags.count(name) * (1 + (name in ("msubsup", "munderover"))) for name in SCRIPTS
    )
    assert n_scripts == len(re.findall(r"[_^]", tex))
    if r"\\" in tex:
        body = re.search(r"\\begin\{aligned\}(.*)\\end", tex, re.DOTALL)[1]
        assert tags.count("mtr") == len(re.split(r"\\\\", body.strip().removesuffix("\\\\")))


def test_there_are_formulas():
    assert len(formulas()) > 100
    assert sum(display for _, display in formulas()) >= 6


@pytest.mark.parametrize("tex", [r"\nosuch{a}", r"\frac{a", r"\begin{nosuch}a\end{nosuch}"])
def test_what_is_not_understood_is_refused(tex):
    with pytest.raises(LatexError):
        mathml(tex)


def test_lines_need_no_frame():
    _, tags = read(r"a &= b \\ c &= d", True)
    assert (tags.count("mtr"), tags.count("mtd")) == (2, 4)


def test_the_source_travels_along():
    assert 'data-tex="a &lt; &quot;b&quot;"' in mathml('a < "b"')
