"""Write exam questions for learning-management systems: Moodle XML, and QTI for Canvas.

QTI packages are written by text2qti.  Moodle's XML is a short list of elements, for which no
maintained library was found that knows feedback to a wrong number; it is written here.

References
----------
Moodle documentation, "Moodle XML format"; text2qti, "File format".
"""

import re
from pathlib import Path
from xml.etree import ElementTree

from text2qti.config import Config
from text2qti.qti import QTI
from text2qti.quiz import Quiz

TITLE = "Multi-head attention"


def write_moodle(questions, path):
    """Write questions as Moodle XML, in a category of their own."""
    quiz = ElementTree.Element("quiz")
    category = ElementTree.SubElement(quiz, "question", type="category")
    _text(ElementTree.SubElement(category, "category"), f"$course$/top/{TITLE}")
    for question in questions:
        is_number = question.tolerance is not None
        entry = ElementTree.SubElement(
            quiz, "question", type="numerical" if is_number else "multichoice"
        )
        _text(ElementTree.SubElement(entry, "name"), question.name)
        _html(entry, "questiontext", question.text)
        _html(entry, "generalfeedback", _reason(question))
        ElementTree.SubElement(entry, "defaultgrade").text = "1"
        if not is_number:
            ElementTree.SubElement(entry, "single").text = "true"
            ElementTree.SubElement(entry, "shuffleanswers").text = "true"
        for answer in question.answers:
            element = ElementTree.SubElement(
                entry, "answer", fraction="100" if answer.is_right else "0", format="html"
            )
            ElementTree.SubElement(element, "text").text = _plain(answer.value)
            _html(element, "feedback", answer.feedback)
            if is_number:
                ElementTree.SubElement(element, "tolerance").text = f"{question.tolerance:g}"
    ElementTree.indent(quiz)
    ElementTree.ElementTree(quiz).write(path, encoding="utf-8", xml_declaration=True)


def write_qti(questions, path):
    """Write questions as a QTI 1.2 package, as Canvas imports it."""
    lines = [f"Quiz title: {TITLE}", ""]
    for question in questions:
        # text2qti counts them itself; a title is what a person who picks questions sees.
        lines += [f"Title: {question.name}", f"1. {question.text}", f"... {_reason(question)}"]
        if question.tolerance is not None:
            lines.append(f"= {question.right:.6f} +- {max(question.tolerance, 1e-6):.6f}")
        else:
            lines += [
                f"{'*' if answer.is_right else ''}{letter}) {answer.value}"
                for letter, answer in zip("abcdef", question.answers, strict=False)
            ]
        lines.append("")
    config = Config()
    config["latex_render_url"] = "/equation_images/"
    config["run_code_blocks"] = False
    quiz = Quiz("\n".join(lines), config=config, source_name=Path(path).name)
    QTI(quiz).save(path)


def write_text(questions, path):
    """Write questions and their key as text, to be read or printed."""
    lines = []
    for number, question in enumerate(questions, 1):
        lines += [f"{number}. {question.text}"]
        if question.tolerance is None:
            lines += [f"   ( ) {answer.value}" for answer in question.answers]
        lines.append("")
    lines += ["Key", ""]
    lines += [
        f"{number}. {_plain(question.right)}. {_reason(question)}"
        for number, question in enumerate(questions, 1)
    ]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _reason(question):
    return f"{question.why} See chapter {question.section}."


def _plain(value):
    """Return an answer as it is typed: a whole number without a point."""
    return value if isinstance(value, str) else f"{value:.10g}"


def _text(parent, words):
    ElementTree.SubElement(parent, "text").text = words


def _html(parent, tag, markdown):
    """Add text in HTML; Moodle draws formulas between \\( and \\)."""
    words = markdown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    _text(
        ElementTree.SubElement(parent, tag, format="html"),
        re.sub(r"\$([^$]+)\$", r"\\(\1\\)", words),
    )
