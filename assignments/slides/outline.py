"""What of a chapter stands on which slide.

The rules, in the order of the page:

- a heading begins a slide, and so does whatever would not fit below what is there;
- a prediction has a slide of its own.  What its cell gives, and what the page says about it, come
  one after the other, when the speaker goes on;
- of a long paragraph its beginning is shown, the whole of it is in the speaker's notes;
- a figure or a widget shares its slide with a few words only;
- code is shown, small, where a cell prints something or defines a function, and left out where
  the page folds it, and where it draws or tabulates;
- exercises stay on the page; each question of "Check yourself" is a slide, with its answer.
"""

import math
import re
from copy import deepcopy

from markdown_it import MarkdownIt
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

# Heights at 1280 x 720, in pixels: what is left below the title, and what stands in it.
ROOM, LETTERS, LINE, GAP, CODE_LINE, TABLE_ROW, FORMULA_LINE = 520, 80, 38, 16, 25, 36, 48
FEW_WORDS = 3 * LINE  # what may stand beside a figure or a widget
SHORT = 220  # letters of a paragraph that is shown whole, or of the sentences that begin it
LONGEST_CODE = 18  # lines
LEFT_OUT = ("Exercises",)
WHOLE = ("In three sentences",)

SENTENCE_END = re.compile(r"(?:(?<=[.?!])|(?<=[.?!]\*\*)|(?<=[.?!][)\"”]))\s+(?=[A-Z\"“`$(*\[])")
DROPDOWN = re.compile(r":::\{dropdown\} (.*)\n((?:.*\n)*?):::")
ADMONITION = re.compile(r":::\{admonition\} (.*)\n(?::class: .*\n)?((?:.*\n)*?):::")
PREDICT = "**Predict:**"


class Slide:
    """One slide: its title, and cells below it."""

    def __init__(self, title):
        self.title = title
        self.cells = []  # with metadata.slideshow
        self.texts = []  # cells that show a text, and the whole of it
        self.used = 0  # of ROOM
        self.asks = False  # a prediction, or a question, whose answer comes next
        self.full = False  # a figure or a widget: nothing else fits, but a few words
        self.closed = False  # nor these

    @property
    def notes(self):
        return [whole for cell, whole in self.texts if cell.source != whole]

    def show_whole_if_it_fits(self):
        """Show every text whole, if there is nothing else and they leave room."""
        only_texts = len(self.texts) == len(self.cells)
        if only_texts and sum(height(whole) for _, whole in self.texts) < 0.8 * ROOM:
            for cell, whole in self.texts:
                cell.source = whole

    def add_text(self, shown, whole, kind="-", needs=None):
        cell = new_markdown_cell(shown)
        self.add(cell, height(shown) if needs is None else needs, kind)
        self.texts.append((cell, whole))

    def add(self, cell, height, kind="-"):
        cell.metadata["slideshow"] = {"slide_type": kind}
        self.cells.append(cell)
        self.used += height


def outline(notebook, plain, show):
    """Return a notebook whose cells say which slide they stand on.

    Parameters
    ----------
    notebook : nbformat.NotebookNode
        A chapter, executed.
    plain : callable
        Makes Markdown that nbconvert knows of a text in MyST.
    show : callable
        Makes the outputs of a cell ready for a slide.
    """
    slides = Deck(plain, show).read(notebook)
    cells = []
    for slide in slides:
        slide.show_whole_if_it_fits()
        level = "#" if slide is slides[0] else "##"
        title = new_markdown_cell(f"{level} {slide.title}", metadata={"tags": []})
        title.metadata["slideshow"] = {"slide_type": "slide"}
        cells.append(title)
        if slide.notes:
            notes = new_markdown_cell("\n\n".join(slide.notes))
            notes.metadata["slideshow"] = {"slide_type": "notes"}
            cells.append(notes)
        cells += slide.cells
    return new_notebook(cells=cells, metadata=deepcopy(notebook.metadata))


class Deck:
    """The slides of a chapter, while it is read."""

    def __init__(self, plain, show):
        self.plain, self.show = plain, show
        self.slides = []
        self.skipping = False
        self.fresh = True  # no sentence has followed the last answer yet

    @property
    def now(self):
        return self.slides[-1]

    def read(self, notebook):
        following = [*notebook.cells[1:], None]
        for cell, after in zip(notebook.cells, following, strict=True):
            if cell.cell_type == "markdown":
                self.read_words(cell.source, after is not None and only_in_jupyter(after))
            elif cell.cell_type == "code" and not self.skipping:
                self.read_code(cell)
        return [s for s in self.slides if s.cells or s is self.slides[0] or "Part" in s.title]

    def begin(self, title=None):
        self.slides.append(Slide(self.now.title if title is None else title))

    def fits(self, height):
        return not self.now.used or self.now.used + height <= ROOM

    def make_room(self, height):
        """Begin a slide if so much does not fit on this one."""
        if self.now.full or self.now.asks or not self.fits(height):
            self.begin()

    def begin_with_lead(self):
        """Begin a slide for something large, and take along the words that lead to it."""
        before = self.now
        self.begin()
        lead = before.texts[-1:]
        if lead and len(before.cells) > 1 and before.cells[-1] is lead[0][0]:
            cell, whole = before.texts.pop()
            before.cells.pop()
            if height(cell.source) <= FEW_WORDS:
                self.now.add_text(cell.source, whole)
            else:
                before.add_text(cell.source, whole)

    # Words ---------------------------------------------------------------------------------------

    def read_words(self, text, leads_nowhere=False):
        text = ADMONITION.sub(lambda box: f"## {box[1]}\n\n{box[2]}\n\n## \n", text)
        before = self.slides and self.now.title
        blocks = [block for block in split_blocks(text) if not block.startswith(":::{exercise")]
        if leads_nowhere:
            del blocks[-1]
        for i, block in enumerate(blocks):
            if heading := re.match(r"#+ ?(.*)", block):
                self.skipping = heading[1] in LEFT_OUT
                title = self.plain(heading[1]) or before
                before = title
                if heading[1] and not self.skipping:
                    self.begin_section(title)
                elif not self.skipping:
                    self.begin()
            elif not self.skipping:
                following = blocks[i + 1] if i + 1 < len(blocks) else ""
                self.add_block(block, following)

    def begin_section(self, title):
        self.slides.append(Slide(title))

    def add_block(self, block, following):
        if question := DROPDOWN.match(block + "\n"):
            return self.ask(question[1], [question[2].strip()])
        if block.startswith(PREDICT):
            return self.ask(block)
        if following.startswith(PREDICT) and len(block) < 3 * LETTERS and is_prose(block):
            # What a prediction is about stands beside it.
            self.pending = block
            return None
        text = self.plain(block)
        shown = text if self.now.title in WHOLE else shorten(text, following)
        needs = height(shown)
        if needs <= FEW_WORDS:
            needs /= 2  # rather a little smaller than alone on a slide
        if self.now.asks and is_prose(block) and (self.fresh or self.fits(needs)):
            # What the answer means.
            self.now.add_text(shown, text, "fragment", needs)
            self.fresh = False
        elif self.now.full and not self.now.closed and height(shown) <= FEW_WORDS:
            self.now.add_text(shown, text, needs=needs)
            self.now.closed = True
        else:
            self.make_room(needs)
            self.now.add_text(shown, text)
        return None

    pending = ""

    def ask(self, question, answers=()):
        """Give a question a slide; its answers come one by one."""
        if self.now.used:
            self.begin()
        if self.pending:
            text = self.plain(self.pending)
            self.now.add(new_markdown_cell(text), height(text))
            self.pending = ""
        text = self.plain(question)
        cell = new_markdown_cell(text, metadata={"tags": ["question"]})
        self.now.add(cell, height(text))
        for answer in answers:
            text = self.plain(answer)
            self.now.add(new_markdown_cell(text), height(text), "fragment")
        self.now.asks = self.fresh = True
        if answers:
            self.now.full = self.now.closed = True
            self.fresh = False

    # Code ----------------------------------------------------------------------------------------

    def read_code(self, cell):
        tags = cell.metadata.get("tags", [])
        outputs = self.show(cell)
        if only_in_jupyter(cell):
            return
        answer = "hide-output" in tags
        large = any(is_large(output) for output in outputs)
        drawn = any("text/html" in output.get("data", {}) for output in outputs)
        code = "" if answer or "hide-input" in tags or large or drawn else shown_code(cell.source)
        if not outputs and (not code or self.now.asks or "assert " in code):
            return
        needs = CODE_LINE * (code.count("\n") + 1 if code else 0) + sum(map(rows_of, outputs))
        shown = new_code_cell(code, outputs=outputs)
        shown.metadata["tags"] = ["large" if large else "small", "code" if code else "no-code"]
        if answer and self.now.asks and not self.now.full:
            self.now.full = self.now.closed = True
            self.now.add(shown, needs, "fragment")
            return
        if answer or self.now.full or self.now.asks:
            self.begin()
        elif large and self.now.used > FEW_WORDS:
            self.begin_with_lead()
        else:
            self.make_room(needs)
        self.now.add(shown, needs)
        self.now.full = large


def only_in_jupyter(cell):
    return "skip-execution" in cell.metadata.get("tags", [])


def split_blocks(text):
    """Return the top-level blocks of a text in MyST, directives whole."""
    blocks = []
    parser = MarkdownIt("commonmark").enable("table")
    for part in re.split(r"^(:::\{[^\n]*\n(?:(?!:::$).*\n)*:::)$", text, flags=re.MULTILINE):
        if part.startswith(":::"):
            blocks.append(part)
            continue
        lines = part.split("\n")
        for token in parser.parse(part):
            if token.level == 0 and token.nesting >= 0 and token.map:
                start, end = token.map
                blocks.append("\n".join(lines[start:end]).strip())
    return [block for block in blocks if block]


def is_prose(block):
    return not re.match(r"\$\$|[-*] |\d+\. |\||```|:::|#", block)


def shorten(text, following=""):
    """Return what of a block is shown: its beginning, or what leads over to what follows."""
    if re.match(r"[-*] ", text):
        items = re.split(r"\n(?=[-*] )", text)
        return "\n".join(f"{item[:2]}{shorten(item[2:])}" for item in items)
    if not is_prose(text) or len(text) <= SHORT or "$$" in text:
        return text
    sentences = SENTENCE_END.split(text)
    lead = 1
    if re.fullmatch(r"\*\*[^*]+\*\*", sentences[0]) or len(sentences[0]) < 30:
        lead = 2  # a name, or a word such as "No."
    if following and not is_prose(following) and not following.startswith("#"):
        return " ".join([*sentences[: lead - 1], sentences[-1]])
    while lead < len(sentences) and len(" ".join(sentences[: lead + 1])) <= SHORT:
        lead += 1
    return " ".join(sentences[:lead])


def shown_code(source):
    """Return the code that a slide shows: none that only imports, and none that is long."""
    lines = source.strip().split("\n")
    n_imports = sum(
        re.match(r"from|import|plots\.use_style|\)|$", line) is not None for line in lines
    )
    return "" if 2 * n_imports > len(lines) or len(lines) > LONGEST_CODE else source.strip()


def height(markdown):
    """Estimate the height of some text, in pixels."""
    if markdown.startswith("$$"):
        return FORMULA_LINE * (markdown.count(r"\\") + 1) + 2 * GAP
    if markdown.startswith("|"):
        return TABLE_ROW * (markdown.count("\n") + 1) + GAP
    if markdown.startswith("```"):
        return CODE_LINE * (markdown.count("\n") + 1) + GAP
    lines = sum(math.ceil(max(len(line), 1) / LETTERS) for line in markdown.split("\n"))
    return LINE * lines + GAP


def is_large(output):
    """Whether an output is a figure or a widget."""
    data = output.get("data", {})
    return "<svg" in data.get("text/html", "") or any("widget" in kind for kind in data)


def rows_of(output):
    """Estimate the height of an output, in pixels."""
    if is_large(output):
        return ROOM - FEW_WORDS
    data = output.get("data", {})
    if "text/html" in data:
        return TABLE_ROW * data["text/html"].count("<tr") + GAP
    text = output.get("text", "") or data.get("text/plain", "")
    return CODE_LINE * (text.count("\n") + 1) + GAP
