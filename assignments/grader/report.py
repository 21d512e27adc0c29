"""Write what people read: grades.csv, a page of feedback for each student, the class report."""

import csv
import io
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from matplotlib.figure import Figure

from mha_lib.teaching import CATALOGUE

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
BAR = "#0072B2"
TEXT = "#010203"  # replaced by the colour of the page's text, which may be dark or light


def write(out, book, results, marks, comments):
    """Write all files for a class.

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
    """
    parts = list(next(iter(marks.values()), {}))
    _replace(out / "grades.csv", _grades(results, marks, parts))
    feedback = out / "feedback"
    feedback.mkdir(exist_ok=True)
    for result in results:
        student = result["student"]
        page = TEMPLATES.get_template("feedback.html").render(
            result=result,
            parts=_parts(result, marks.get(student, {}), comments.get(student, {})),
            score=_total(marks.get(student, {})),
            most=_most(marks.get(student, {})),
        )
        _replace(feedback / f"{student}.html", page)
    _replace(out / "report.html", _class_report(book, results, marks, parts))


def summary(out, results, marks, n_before, left_aside):
    """Return what to print when all is done: how many, who not and why, where the files are."""
    failed = [result for result in results if result["problem"]]
    flagged = [result for result in results if result["flags"]]
    n_graded = len(results) - len(failed)
    lines = [f"Graded {n_graded} of {len(results)} submissions; {n_before} were done before."]
    if failed:
        lines += ["", f"Not graded: {len(failed)}"]
        lines += [f"  {result['source']}: {result['problem']}" for result in failed]
    if flagged:
        lines += ["", f"To look at: {len(flagged)}"]
        lines += [f"  {result['student']}: {'; '.join(result['flags'])}" for result in flagged]
    if left_aside:
        lines += ["", f"Left aside, since they are no notebooks: {', '.join(left_aside)}"]
    to_mark = sum(any(part[2] for part in one.values()) for one in marks.values())
    if to_mark:
        lines += ["", f"Answers to be marked by a person: {to_mark} (in {out / 'report.html'})"]
    lines += ["", f"Grades: {out / 'grades.csv'}", f"Class report: {out / 'report.html'}"]
    lines += [f"Feedback for each student: {out / 'feedback'}"]
    return "\n".join(lines)


def _total(marks):
    """Return the points that are certain; what a person has yet to mark counts nothing."""
    return sum(min(score, most) for score, most, to_mark in marks.values() if not to_mark)


def _most(marks):
    return sum(most for _, most, _ in marks.values())


def _grades(results, marks, parts):
    """Return the text of grades.csv."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(
        "student file status total out_of".split()
        + parts
        + "to_be_marked misconceptions look_at remarks seconds".split()
    )
    for result in results:
        mine = marks.get(result["student"])
        if mine is None:
            row = ["not graded", "", "", *("" for _ in parts), ""]
        else:
            scores = ["" if mine[part][2] else _points(mine[part][0]) for part in parts]
            to_mark = "; ".join(part for part in parts if mine[part][2])
            row = ["graded", _points(_total(mine)), _points(_most(mine)), *scores, to_mark]
        texts = [_misconceptions(result), result["flags"], [*result["remarks"], result["problem"]]]
        table.writerow(
            [_cell(result["student"]), _cell(result["source"]), *row]
            + [_cell("; ".join(filter(None, text))) for text in texts]
            + [result["seconds"]]
        )
    return text.getvalue()


def _misconceptions(result):
    """Return the names that the checks of one submission gave, each once."""
    names = (name for check in result["checks"].values() for name in check["misconceptions"])
    return list(dict.fromkeys(names))


def _points(number):
    return f"{number:.2f}".rstrip("0").rstrip(".")


TEMPLATES.filters["points"] = _points


def _cell(text):
    """Return a text that no spreadsheet takes for a formula."""
    text = " ".join(text.split())
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


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
            "diagnosis": _to_read(checks.get(part)),
            "trouble": troubles.get(part, ""),
            "comment": comments.get(part, ""),
        }
        for part, (score, most, to_mark) in marks.items()
    ]


def _to_read(check):
    """Return the lines of a diagnosis, if something is not right."""
    return [] if check is None or check["verdict"] == "right" else check["diagnosis"].splitlines()


def _class_report(book, results, marks, parts):
    """Return the page about the class."""
    who = {}
    for result in results:
        for name in _misconceptions(result):
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
    totals = [_total(mine) for mine in marks.values()]
    most = _most(next(iter(marks.values()), {}))
    averages = []
    for part in parts:
        scores = [mine[part][0] for mine in marks.values() if not mine[part][2]]
        mean = sum(scores) / len(scores) if scores else None
        full = sum(score == next(iter(marks.values()))[part][1] for score in scores)
        averages.append((part, mean, next(iter(marks.values()))[part][1], full, len(scores)))
    answers = [
        (student, part, book.answer(student, part))
        for student, mine in marks.items()
        for part in parts
        if mine[part][2]
    ]
    return TEMPLATES.get_template("report.html").render(
        results=results,
        n_graded=len(marks),
        failed=[result for result in results if result["problem"]],
        flagged=[result for result in results if result["flags"]],
        averages=averages,
        misconceptions=misconceptions,
        unnamed=unnamed,
        total_of={student: _total(mine) for student, mine in marks.items()},
        open_of={
            student: [part for part in parts if mine[part][2]] for student, mine in marks.items()
        },
        answers=answers,
        totals=sorted(totals),
        most=most,
        misconception_plot=_bars(misconceptions) if misconceptions else "",
        total_plot=_histogram(totals, most) if totals else "",
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


def _histogram(totals, most):
    """Return an SVG: how many submissions reached how many points."""
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    axes = figure.add_subplot()
    width = max(1, round(most / 12))
    edges = [width * i for i in range(int(most // width) + 2)]
    axes.hist(totals, bins=edges, color=BAR, edgecolor=TEXT)
    axes.set_xlabel(f"points so far, out of {most:g}")
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
