"""Points stand in the cells of the assignment; whatever else names them must say the same.

``python -m assignments.grader.points`` lists what does not, and `make assignment` begins with it.
"""

import ast
import re
import sys
from pathlib import Path

import nbformat

ASSIGNMENTS = Path(__file__).resolve().parent.parent
CHAPTERS = ASSIGNMENTS.parent / "chapters"
NUMBER = r"(\d+(?:\.\d+)?)"
HEADING = re.compile(rf"^## (.+?) \({NUMBER} points?\b", re.MULTILINE)
ANY_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
ROW = re.compile(rf"^\| (\d+) \|.*?\| {NUMBER} \|", re.MULTILINE)
# What other pages say: file, pattern, and which points its numbers are.
SAID = [
    (CHAPTERS / "for_students.md", rf"up to {NUMBER} points", ["all"]),
    (
        CHAPTERS / "for_instructors.md",
        rf"earns {NUMBER} points without you; {NUMBER} more",
        ["tests", "by hand"],
    ),
    (ASSIGNMENTS / "rubric.md", rf"\A# .*\({NUMBER} points\)", ["by hand"]),
]


def contradictions(notebook):
    """Return where a notebook names points that its cells do not give.

    Parameters
    ----------
    notebook : NotebookNode
        The source of an assignment.

    Returns
    -------
    found : list of str
        Empty if there are none.
    """
    found, sections, title, named = [], {}, "", {}
    for cell in notebook.cells:
        about = cell.metadata.get("nbgrader") or {}
        if cell.cell_type == "markdown" and not about.get("solution"):
            for heading in ANY_HEADING.finditer(cell.source):
                title = heading[1]
                points = HEADING.match(heading[0])
                if points:
                    named[title] = float(points[2])
        if about.get("grade"):
            sections[title] = sections.get(title, 0) + about["points"]
            if not about.get("solution") and cell.cell_type == "code":
                factor = _factor(cell.source)
                if factor is not None and factor != about["points"]:
                    found.append(
                        f"the last line of {about['grade_id']} gives {factor:g} points, "
                        f"its cell {about['points']:g}"
                    )
    for title in {**sections, **named}:
        said, given = named.get(title), sections.get(title, 0)
        if said is None and named:
            found.append(f'the heading "{title}" names no points, its cells give {given:g}')
        elif said is not None and said != given:
            found.append(f'the heading "{title}" says {said:g} points, its cells give {given:g}')
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    numbered = {title.partition(".")[0]: points for title, points in sections.items()}
    for number, points in ROW.findall(text):
        if number in numbered and float(points) != numbered[number]:
            found.append(
                f"the table says {points} points for part {number}, its cells give "
                f"{numbered[number]:g}"
            )
    for first, second in re.findall(rf"up to {NUMBER} points|{NUMBER} points in all", text):
        total = first or second
        if float(total) != sum(sections.values()):
            found.append(f"the text says {total} points, the cells {sum(sections.values()):g}")
    return found


def elsewhere(notebook, said=None):
    """Return where other files name points that the cells of a notebook do not give.

    Parameters
    ----------
    notebook : NotebookNode
        The source of the assignment.
    said : list of tuple, optional
        File, pattern, and which points its numbers are.
    """
    points = {"tests": 0.0, "by hand": 0.0}
    for cell in notebook.cells:
        about = cell.metadata.get("nbgrader") or {}
        if about.get("grade"):
            points["by hand" if about.get("solution") else "tests"] += about["points"]
    points["all"] = sum(points.values())
    found = []
    for path, pattern, kinds in said or SAID:
        numbers = re.search(pattern, path.read_text("utf-8"))
        if numbers is None:
            found.append(f"{path.name} does not name the points as {pattern!r}")
            continue
        for number, kind in zip(numbers.groups(), kinds, strict=True):
            if float(number) != points[kind]:
                where = {"all": "of all cells", "tests": "of the tests", "by hand": "given by hand"}
                found.append(
                    f"{path.name} says {number} points, those {where[kind]} are {points[kind]:g}"
                )
    return found


def _factor(source):
    """Return the number by which the last line of a test multiplies a result, or None."""
    body = ast.parse(source).body
    last = body[-1].value if body and isinstance(body[-1], ast.Expr) else None
    if isinstance(last, ast.BinOp) and isinstance(last.op, ast.Mult):
        for side in (last.left, last.right):
            if isinstance(side, ast.Constant) and isinstance(side.value, int | float):
                return float(side.value)
    return None


def main():
    """Print the contradictions of the assignment; return 1 if there are some."""
    found = []
    for path in sorted(ASSIGNMENTS.glob("source/*/*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        found += [f"{path.name}: {text}" for text in contradictions(notebook)]
        found += elsewhere(notebook)
    for text in found:
        print(f"error: {text}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
