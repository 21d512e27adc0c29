"""Write what people read: tables, a page of feedback for each student, the class report."""

import io
import re
from html import unescape
from pathlib import Path

from docutils.nodes import make_id
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from assignments.grader import exports, similar
from assignments.grader.exports import most, points, total
from mha_lib.teaching import CATALOGUE

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters["points"] = points
BAR = "#0072B2"
PLACE = re.compile(r"(?:chapter (\d)|Watch out for), &#39;(.+?)&#39;")
PAGES = {  # of the book, by the number of the chapter
    path.stem[1]: path.stem
    for path in (Path(__file__).resolve().parents[2] / "chapters").glob("0*.ipynb")
}
TEXT = "#010203"  # replaced by the colour of the page's text, which may be dark or light


def write(out, book, results, marks, comments, again=(), address=""):
    """Write all files for a class: each that can be written, whatever is wrong with another.

    Parameters
    ----------
    out : pathlib.Path
        Folder to write to.
    book : assignments.grader.course.Course
        The course, for the written answers.
    results : list of dict
        What came of each submission.
    marks, comments : dict
        From `Course.marks`.
    again : list of tuple
        From `Course.to_read_again`.
    address : str
        Where the book is; its sections are links then.

    Returns
    -------
    failed : list of str
        What could not be written, and why.
    """
    parts = list(next(iter(marks.values()), {}))
    feedback = out / "feedback"
    failed, alike, told = [], [], {}

    def attempt(path, make):
        try:
            path.parent.mkdir(exist_ok=True)
            _replace(path, make())
        except Exception as error:  # the others are written
            failed.append(f"{path}: {type(error).__name__}: {error}")

    attempt(out / "grades.csv", lambda: exports.grades(results, marks, parts))
    attempt(out / "read_again.csv", lambda: exports.again(again))
    for result in results:
        student = result["student"]
        mine = _parts(result, marks.get(student, {}), comments.get(student, {}))
        told[student] = _in_words(mine)
        about = {
            "result": result,
            "parts": mine,
            "score": total(marks.get(student, {})),
            "most": most(marks.get(student, {})),
            "linked": lambda text: _linked(text, address),
        }
        if not result["missing"]:
            page = TEMPLATES.get_template("feedback.html")
            attempt(feedback / f"{student}.html", lambda page=page, about=about: page.render(about))
    attempt(out / "canvas.csv", lambda: exports.canvas(results, marks, book.assignment))
    attempt(out / "moodle.csv", lambda: exports.moodle(results, marks, told))

    def compare():
        alike.extend(similar.pairs(*book.written(list(marks))))
        return exports.similar(alike)

    attempt(out / "similar.csv", compare)
    attempt(
        out / "report.html",
        lambda: _class_report(book, results, marks, parts, again, alike),
    )
    return failed


def summary(out, results, marks, n_before, left_aside, again=()):
    """Return what to print when all is done: how many, who not and why, where the files are."""
    missing = [result for result in results if result["missing"]]
    handed_in = [result for result in results if not result["missing"]]
    failed = [result for result in handed_in if result["problem"]]
    flagged = [result for result in results if result["flags"]]
    late = [result["student"] for result in handed_in if result["late"]]
    n_graded = len(handed_in) - len(failed)
    lines = [f"Graded {n_graded} of {len(handed_in)} submissions; {n_before} were done before."]
    if failed:
        lines += ["", f"Not graded: {len(failed)}"]
        lines += [f"  {result['source']}: {result['problem']}" for result in failed]
    if missing:
        lines += ["", f"Handed in nothing: {len(missing)}"]
        lines += [f"  {result['name']}" for result in missing]
    if late:
        lines += ["", f"Late: {', '.join(late)}"]
    if flagged:
        lines += ["", f"To look at: {len(flagged)}"]
        lines += [f"  {result['student']}: {'; '.join(result['flags'])}" for result in flagged]
    if left_aside:
        lines += ["", f"Left aside, since they belong to nobody: {', '.join(left_aside)}"]
    if again:
        lines += ["", f"To be read again, since the answer has changed: {len(again)}"]
        lines += [f"  {who}: {part} (before: {points(score)})" for who, part, score in again]
    to_mark = sum(any(part[2] for part in one.values()) for one in marks.values())
    if to_mark:
        lines += ["", f"Answers to be marked by a person: {to_mark} (in {out / 'report.html'})"]
    lines += ["", f"Grades: {out / 'grades.csv'}", f"Class report: {out / 'report.html'}"]
    lines += [f"Feedback for each student: {out / 'feedback'}"]
    return "\n".join(lines)


def _linked(text, address):
    """Return a text in which the places to read on in are links, if the book's address is known."""
    shown = str(escape(text))
    if not address:
        return Markup(shown)  # noqa: S704 - escaped
    base = address.rstrip("/")

    def link(found):
        page = PAGES.get(found[1] or "6")
        if page is None:
            return found[0]
        anchor = make_id(unescape(found[2]))
        return f'<a href="{escape(base)}/chapters/{page}.html#{anchor}">{found[0]}</a>'

    return Markup(PLACE.sub(link, shown))  # noqa: S704


def _parts(result, marks, comments):
    """Return what the feedback says of each part."""
    checks = {name.removeprefix("test_"): check for name, check in result["checks"].items()}
    troubles = {name.removeprefix("test_"): text for name, text in result["troubles"].items()}
    return [
        {
            "name": part,
            "score": score,
            "most": most,
            "to_mark": to_mark,
            "told": _to_read(checks.get(part)),
            "is_right": not to_mark and score >= most > 0,
            "trouble": troubles.get(part, ""),
            "comment": comments.get(part, ""),
        }
        for part, (score, most, to_mark) in marks.items()
    ]


def _in_words(parts):
    """Return the feedback as a text of one line, for systems that show no pages.

    Of a hint it has the first step only, since nothing can be folded there.
    """
    lines = []
    for part in parts:
        earned = "open" if part["to_mark"] else points(part["score"])
        lines.append(f"{part['name']}: {earned} of {points(part['most'])}")
        told = [line if isinstance(line, str) else line["question"] for line in part["told"]]
        lines += [*told, part["trouble"], part["comment"]]
    return " | ".join(filter(None, lines))


def _to_read(check):
    """Return what a diagnosis says, if something is not right: lines, and hints in steps."""
    if check is None or check["verdict"] == "right":
        return []
    text, told = check["diagnosis"], []
    for hint in check.get("hints", []):
        before, steps, text_after = text.partition("\n".join(hint.values()))
        if steps:
            told += [*before.strip().splitlines(), hint]
            text = text_after
    return told + text.strip().splitlines()


def _class_report(book, results, marks, parts, again, alike):
    """Return the page about the class."""
    who = {}
    for result in results:
        for name in exports.misconceptions(result):
            who.setdefault(name, []).append(result["student"])
    misconceptions = sorted(
        ((entry, who[entry.name]) for entry in CATALOGUE if entry.name in who),
        key=lambda pair: -len(pair[1]),
    )
    unnamed = [
        result["student"]
        for result in results
        if any(
            check.get("unnamed")
            or (check["verdict"] in {"wrong", "partly right"} and not check["misconceptions"])
            for check in result["checks"].values()
        )
    ]
    totals = [total(mine) for mine in marks.values()]
    highest = most(next(iter(marks.values()), {}))
    averages = []
    for part in parts:
        scores = [mine[part][0] for mine in marks.values() if not mine[part][2]]
        mean = sum(scores) / len(scores) if scores else None
        full = sum(score == next(iter(marks.values()))[part][1] for score in scores)
        averages.append((part, mean, next(iter(marks.values()))[part][1], full, len(scores)))
    answers = [
        (student, part, book.answer(student, part), (student, part) in {row[:2] for row in again})
        for student, mine in marks.items()
        for part in parts
        if mine[part][2]
    ]
    return TEMPLATES.get_template("report.html").render(
        results=results,
        n_graded=len(marks),
        flagged=[result for result in results if result["flags"]],
        averages=averages,
        misconceptions=misconceptions,
        unnamed=unnamed,
        total_of={student: total(mine) for student, mine in marks.items()},
        open_of={
            student: [part for part in parts if mine[part][2]] for student, mine in marks.items()
        },
        answers=answers,
        totals=sorted(totals),
        most=highest,
        again=again,
        alike=alike,
        cannot=similar.CANNOT,
        n_handed_in=sum(not result["missing"] for result in results),
        failed=[result for result in results if result["problem"] and not result["missing"]],
        missing=[result for result in results if result["missing"]],
        misconception_plot=_bars(misconceptions) if misconceptions else "",
        total_plot=_histogram(totals, highest) if totals else "",
    )


def _bars(misconceptions):
    """Return an SVG: one bar for each misconception."""
    names = [entry.name for entry, _ in misconceptions[::-1]]
    numbers = [len(who) for _, who in misconceptions[::-1]]
    figure = Figure(figsize=(7, 0.8 + 0.32 * len(names)), layout="constrained")
    axes = figure.add_subplot()
    axes.barh(names, numbers, color=BAR)
    axes.bar_label(axes.containers[0], padding=3, color=TEXT)
    axes.set_xlabel("students")
    axes.xaxis.get_major_locator().set_params(integer=True)
    return _svg(figure, axes)


def _histogram(totals, highest):
    """Return an SVG: how many submissions reached how many points."""
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    axes = figure.add_subplot()
    width = max(1, round(highest / 12))
    edges = [width * i for i in range(int(highest // width) + 2)]
    axes.hist(totals, bins=edges, color=BAR, edgecolor=TEXT)
    axes.set_xlabel(f"points so far, out of {highest:g}")
    axes.set_ylabel("submissions")
    axes.yaxis.get_major_locator().set_params(integer=True)
    return _svg(figure, axes)


def _svg(figure, axes):
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(TEXT)
    axes.tick_params(colors=TEXT)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_color(TEXT)
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :].replace(TEXT, "currentColor")


def _replace(path, text):
    """Write a file that is either whole or as it was."""
    partial = path.with_name(f"{path.name}.part")
    partial.write_text(text, encoding="utf-8", newline="\n")
    partial.replace(path)
