"""Tables of marks: for people, for spreadsheets, and as Canvas and Moodle import them."""

import csv
import io
import unicodedata

FORMULA = "=+-@\t\r"  # what a spreadsheet computes begins so


def cell(text):
    """Return a text that no spreadsheet takes for a formula; names stay as they are."""
    text = " ".join(str(text).split())
    first = unicodedata.normalize("NFKC", text[:1])
    return f"'{text}" if first and first in FORMULA and not _is_number(text) else text


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def points(number):
    """Return a number of points as people write it."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


def total(marks):
    """Return the points that are certain; what a person has yet to mark counts nothing."""
    return sum(min(score, most) for score, most, to_mark in marks.values() if not to_mark)


def most(marks):
    """Return the points that can be had."""
    return sum(most for _, most, _ in marks.values())


def is_final(marks):
    """Return whether no part waits for a person."""
    return bool(marks) and not any(to_mark for _, _, to_mark in marks.values())


def misconceptions(result):
    """Return the names that the checks of one submission gave, each once."""
    names = (name for check in result["checks"].values() for name in check["misconceptions"])
    return list(dict.fromkeys(names))


def grades(results, marks, parts):
    """Return the text of grades.csv: a row for each person.

    Parameters
    ----------
    results : list of dict
        What came of each submission.
    marks : dict
        From `Course.marks`.
    parts : list of str
        Names of the parts of the assignment.
    """
    heads = [
        *"student name id email file attempts late status total out_of".split(),
        *parts,
        *"to_be_marked misconceptions look_at remarks seconds".split(),
    ]
    rows = []
    for result in results:
        mine, person = marks.get(result["student"]), result["person"]
        if mine is None:
            status = "nothing handed in" if result["missing"] else "not graded"
            row = [status, "", "", *("" for _ in parts), ""]
        else:
            scores = ["" if mine[part][2] else points(mine[part][0]) for part in parts]
            to_mark = "; ".join(part for part in parts if mine[part][2])
            row = ["graded", points(total(mine)), points(most(mine)), *scores, to_mark]
        about = [
            result["student"],
            result["name"],
            person["id"] or person["canvas"] or person["participant"] or person["login"],
            person["email"],
            result["source"],
            0 if result["missing"] else 1 + len(result["earlier"]),
            "late" if result["late"] else "",
        ]
        texts = [misconceptions(result), result["flags"], [*result["remarks"], result["problem"]]]
        rows.append(
            [*about, *row, *("; ".join(filter(None, text)) for text in texts), result["seconds"]]
        )
    return "\ufeff" + _table([heads, *rows])  # Excel needs the mark to read names


def canvas(results, marks, title):
    """Return what Canvas's gradebook imports: final marks only.

    Canvas takes an empty mark for the wish to delete one, and leaves alone whoever is not listed.
    """
    finals = _finals(results, marks)
    highest = points(most(next(iter(marks.values()), {})))
    rows = [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", title],
        ["    Points Possible", "", "", "", "", highest],
    ]
    for result, mine in finals:
        person = result["person"]
        sis = person["sis"] or ("" if person["canvas"] else person["id"])
        about = [result["name"], person["canvas"], sis, person["login"], person["section"]]
        rows.append([*about, points(total(mine))])
    return _table(rows, keep=1)


def moodle(results, marks, pages):
    """Return what Moodle's grading worksheet, and its gradebook, import: final marks only.

    Parameters
    ----------
    results, marks
        As in `grades`.
    pages : dict
        For each student what to write as feedback.
    """
    heads = [
        "Identifier", "Full name", "Email address", "ID number", "Username", "Grade",
        "Maximum Grade", "Last modified (grade)", "Feedback comments",
    ]  # fmt: skip
    rows = []
    for result, mine in _finals(results, marks):
        person = result["person"]
        about = [person["participant"], result["name"], person["email"], person["id"]]
        scores = [points(total(mine)), points(most(mine))]
        feedback = pages.get(result["student"], "")
        rows.append([*about, person["login"], *scores, "-", feedback])
    return _table([heads, *rows])


def again(rows):
    """Return the text of read_again.csv: what a person must mark anew, and the mark before."""
    heads = ["student", "part", "points_before"]
    return "\ufeff" + _table([heads, *([a, b, points(c)] for a, b, c in rows)])


def similar(rows):
    """Return the text of similar.csv."""
    heads = ["student", "other", "part", "shared", "as_written"]
    return "\ufeff" + _table([heads, *rows])


def _finals(results, marks):
    return [
        (result, marks[result["student"]])
        for result in results
        if is_final(marks.get(result["student"], {}))
    ]


def _table(rows, keep=0):
    """Return rows as CSV; the first ones but one are taken as they are."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    for i, row in enumerate(rows):
        table.writerow(row if 0 < i <= keep else [cell(one) for one in row])
    return text.getvalue()
