"""Write an assignment of some parts, with hints or without: ``python -m assignments.choose OUT``.

Both versions come from the one source.  OUT gets a course folder of nbgrader: the source for the
grader, and what to hand out.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat

HERE = Path(__file__).parent
NAME = Path("multi_head_attention") / "multi_head_attention.ipynb"
HEADING = re.compile(r"^## (\d+)\. .* \((\d+) points, about (\d+) minutes\)", re.MULTILINE)
HELP = re.compile(
    r"\n\n(?:Read in the book: [^\n]*|<details><summary>Hint</summary>.*?</details>)", re.DOTALL
)
# These show several parts together.
DEMONSTRATION = {"masks-demonstration-text", "masks_demonstration"}
NEEDED = set(range(1, 7))  # by the demonstration


def choose(notebook, parts=(), helps=True):
    """Return an assignment of some parts.

    Parameters
    ----------
    notebook : nbformat.NotebookNode
        The source of the whole assignment.
    parts : iterable of int, optional
        Their numbers, which they keep; all if there are none.
    helps : bool, default True
        Whether there are hints, places to read and cells to play with.

    Returns
    -------
    notebook : nbformat.NotebookNode
        A new one.

    Raises
    ------
    ValueError
        There is no such part.
    """
    head, sections = divided(notebook)
    parts = sorted(set(parts)) or list(sections)
    if unknown := sorted(set(parts) - set(sections)):
        raise ValueError(f"there is no part {unknown[0]}: choose from 1 to {max(sections)}")
    notebook = nbformat.from_dict(notebook)
    left_out = [defined(cell) for n, cells in sections.items() if n not in parts for cell in cells]
    elsewhere = {name for names in left_out for name in names}
    notebook.cells = [nbformat.from_dict(cell) for cell in head]
    for number in parts:
        for cell in map(nbformat.from_dict, sections[number]):
            if cell.id in DEMONSTRATION and not set(parts) >= NEEDED:
                continue
            about = cell.metadata.get("nbgrader", {})
            if cell.cell_type == "markdown" and not helps:
                cell.source = HELP.sub("", cell.source)
            elif cell.cell_type == "code" and not about and not helps:
                continue
            elif about.get("solution") and cell.cell_type == "code":
                # As students do who have no such function.
                for name in elsewhere:
                    cell.source = re.sub(rf"(?<![\w.]){name}\(", f"mha_lib.{name}(", cell.source)
            notebook.cells.append(cell)
    if len(parts) < len(sections):
        notebook.cells[0].source = title(notebook, parts)
    return notebook


def divided(notebook):
    """Return the cells before the first part, and those of each part by its number."""
    head, sections, number = [], {}, None
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and (heading := HEADING.match(cell.source)):
            number = int(heading[1])
        (head if number is None else sections.setdefault(number, [])).append(cell)
    return head, sections


def defined(cell):
    """Return the names of the functions that a student writes in a cell."""
    solution = cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("solution")
    return re.findall(r"^def (\w+)", cell.source, re.MULTILINE) if solution else []


def title(notebook, parts):
    """Return the first cell, with the points and the minutes of these parts."""
    before, rest = notebook.cells[0].source.split("You write ", 1)
    points = {True: 0, False: 0}
    for cell in notebook.cells:
        about = cell.metadata.get("nbgrader", {})
        if about.get("grade"):
            points[about["solution"]] += about["points"]
    _, *table = rest.split("\n\n", 1)
    rows = table[0].splitlines()
    kept = rows[:2] + [row for row in rows[2:] if int(row.split("|")[1]) in parts]
    minutes = sum(int(row.split("|")[4]) for row in kept[2:])
    kinds = [
        f"{points[by_hand]} for what you {what}"
        for by_hand, what in ((False, "write in code"), (True, "explain"))
        if points[by_hand]
    ]
    return (
        f"{before}This notebook gives up to {sum(points.values())} points, {' and '.join(kinds)}. "
        f"Set aside about {minutes} minutes, without installation and reading. (The minutes are "
        "estimates.)\n\n" + "\n".join(kept)
    )


def write(out, parts=(), helps=True):
    """Write a course folder with the source and the students' version; return the latter."""
    source = nbformat.read(HERE / "source" / NAME, as_version=4)
    chosen = choose(source, parts, helps)
    (out / "source" / NAME).parent.mkdir(parents=True, exist_ok=True)
    (out / "source" / NAME).write_text(f"{nbformat.writes(chosen)}\n", encoding="utf-8")
    shutil.copy(HERE / "nbgrader_config.py", out)
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", NAME.stem]
    subprocess.run([*command, "--force", "--no-db"], cwd=out, check=True, capture_output=True)  # noqa: S603 - our own
    return out / "release" / NAME


def main(arguments=None):
    """Write what the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m assignments.choose", description=__doc__.splitlines()[0]
    )
    parser.add_argument("out", type=Path, help="folder for the source and what to hand out")
    parser.add_argument("--parts", type=int, nargs="*", default=[], help="such as 1 2; all if none")
    parser.add_argument("--open", action="store_true", help="without hints and cells to play with")
    options = parser.parse_args(arguments)
    try:
        release = write(options.out, options.parts, not options.open)
    except ValueError as error:
        parser.error(str(error))
    except subprocess.CalledProcessError as error:
        print(error.stderr.decode("utf-8", "replace"))
        return 2
    print(f"hand out {release}; grade it with ASSIGNMENT={options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
