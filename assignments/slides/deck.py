"""Make decks of slides, and the folder of files that they need."""

import html
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import nbformat
from jinja2 import pass_context
from nbconvert import SlidesExporter
from pybtex.database import parse_file

from _ext.formulas import FONT_FILE, mathml
from _ext.inline_figures import style_sheet, themed
from _ext.static_widgets import FOLDER as HOST
from _ext.static_widgets import STATE_TYPE, rewrite_page
from assignments.slides.outline import outline

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXECUTED = ROOT / "_build" / "jupyter_execute" / "chapters"
REVEAL = ("dist/reset.css", "dist/reveal.css", "dist/reveal.js", "plugin/notes/notes.js", "LICENSE")
END = "<!-- end of slides -->"
HOST_SCRIPT = re.compile(r"<script[^>]*host\.js[^>]*></script>\n")
CITATION = re.compile(r"\{cite(?::([pt]))?\}`([^`]+)`")
ROLE = re.compile(r"\{doc\}`([^<`]+?)(?: <([^>`]+)>)?`")
FORMULA = re.compile(r"(`+)(?:.+?)\1|\$\$(.+?)\$\$|\$([^$`\n]+?)\$", re.DOTALL)
LINK = re.compile(r"(?<!!)\[((?:[^\]\\]|\\.)+)\]\((?!https?:)([^)\s]*)\)")


def make_decks(out, executed=EXECUTED):
    """Write a deck for each chapter that has a number, and a page that lists them.

    Parameters
    ----------
    out : pathlib.Path
        Folder to write to.
    executed : pathlib.Path
        Folder of the executed notebooks, which `make book` leaves.

    Returns
    -------
    decks : list of pathlib.Path
    """
    notebooks = sorted(executed.glob("[0-9][0-9]_*.ipynb"))
    if not notebooks:
        raise FileNotFoundError(f"no executed chapters in {executed}: run `make book` first")
    copy_files(out / "static", executed.parents[1] / "html" / "_static" / FONT_FILE)
    sources = Sources(ROOT / "chapters" / "references.bib", {path.stem for path in notebooks})
    decks, titles = [], []
    for path in notebooks:
        notebook = nbformat.read(path, as_version=4)
        decks.append(out / f"{path.stem}.html")
        decks[-1].write_text(deck(notebook, sources), encoding="utf-8")
        titles.append(re.search(r"^# (.+)", notebook.cells[0].source, re.MULTILINE)[1])
    links = "".join(
        f'<li><a href="{path.name}">{html.escape(title)}</a></li>'
        for path, title in zip(decks, titles, strict=True)
    )
    listing = (HERE / "index.html").read_text("utf-8").replace("<!-- decks -->", links)
    (out / "index.html").write_text(listing, encoding="utf-8")
    return decks


def copy_files(static, font):
    """Copy reveal.js, the widgets' host, the style sheets and the formulas' font."""
    # Only its folder is used: what the package itself does, nbconvert does here.
    package = Path(find_spec("sphinx_revealjs").origin).parent / "_static" / "revealjs"
    for name in REVEAL:
        (static / "reveal" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(package / name, static / "reveal" / name)
    shutil.copy(font, static)
    shutil.copytree(HOST / "static_widgets", static / "static_widgets", dirs_exist_ok=True)
    (static / "palette.css").write_text(style_sheet(), encoding="utf-8")
    shutil.copy(ROOT / "_static" / "book.css", static)
    shutil.copy(ROOT / "_static" / "favicon.svg", static)
    for name in ("slides.css", "slides.js"):
        shutil.copy(HERE / name, static)


class DeckExporter(SlidesExporter):
    """Writes formulas as MathML, as the book does."""

    @pass_context
    def markdown2html(self, context, source):
        return super().markdown2html(context, FORMULA.sub(_as_mathml, source))


def _as_mathml(found):
    _, block, line = found.groups()
    if block:
        return f'<div class="math-block">{mathml(block, display=True)}</div>'
    return mathml(line) if line else found[0]


def deck(notebook, sources):
    """Return a chapter's slides as HTML."""
    exporter = DeckExporter(
        template_name="deck",
        extra_template_basedirs=[str(HERE / "templates")],
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
    )
    chapter = outline(notebook, sources.plain, outputs_of)
    title = sources.plain(re.search(r"^# (.+)", notebook.cells[0].source, re.MULTILINE)[1])
    chapter.metadata["title"] = title
    page, _ = exporter.from_notebook_node(chapter)
    slides, _, rest = page.partition(END)
    state = notebook.metadata.get("widgets", {}).get(STATE_TYPE, {}).get("state", {})
    slides, alive = rewrite_page(slides, state)
    return slides + (rest if alive else HOST_SCRIPT.sub("", rest))


def outputs_of(cell):
    """Return a cell's outputs: drawings with their text equivalent and caption, no warnings."""
    extra = cell.metadata.get("mystnb", {})
    outputs = []
    for number, output in enumerate(cell.outputs):
        if output.output_type == "stream" and output.name == "stderr":
            continue
        svg = output.get("data", {}).get("image/svg+xml")
        if svg:
            alt = extra.get("image", {}).get("alt", "")
            picture = themed(svg, alt, f"{cell.id}-{number}" if "id" in cell else f"f{id(cell)}")
            caption = extra.get("figure", {}).get("caption", "")
            words = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
            output = nbformat.v4.new_output(
                "display_data", {"text/html": f"<figure>{picture}{words}</figure>"}
            )
        outputs.append(output)
    return outputs


class Sources:
    """Turns MyST into Markdown: citations into names and years, links between pages into decks'."""

    def __init__(self, bibliography, chapters):
        self.entries = parse_file(bibliography).entries
        self.chapters = chapters

    def plain(self, text):
        text = CITATION.sub(self._cite, text)
        text = ROLE.sub(lambda role: role[1], text)
        return LINK.sub(self._link, text)

    def _cite(self, found):
        named = [self._name_and_year(key.strip()) for key in found[2].split(",")]
        if found[1] == "t":
            return "; ".join(f"{name} ({year})" for name, year in named)
        return "(" + "; ".join(f"{name} {year}" for name, year in named) + ")"

    def _name_and_year(self, key):
        entry = self.entries[key]
        names = [" ".join(person.last_names) for person in entry.persons["author"]]
        name = names[0] if len(names) == 1 else f"{names[0]} and {names[1]}"
        return (name if len(names) < 3 else f"{names[0]} et al."), entry.fields["year"]

    def _link(self, found):
        page = Path(found[2].partition("#")[0]).stem
        return f"[{found[1]}]({page}.html)" if page in self.chapters else found[1]
