"""What the chapters say of time, where a reader's machine may be too busy to show it.

No cell of a chapter asserts a time: on a busy machine the book would not build.  Here the same
cells run in a process of their own, with one thread, and again as long as they have not shown
what the text says.
"""

import json
import os
import subprocess
import sys

import pytest

from tests.notebooks import ROOT, read

BUDGET = "03_compute_budget.ipynb"
ROUNDS = 5
RUN = """
import json, sys
import matplotlib
matplotlib.use("agg")
cells, claim = json.load(sys.stdin)
names = {}
for cell in cells:
    exec(cell, names)
print("holds:", bool(eval(claim, names)))
"""


def holds(page, last, claim):
    """Run the code of ``page`` up to the cell ``last``; return whether ``claim`` holds then."""
    cells = [cell for cell in read(ROOT / "chapters" / page).cells if cell.cell_type == "code"]
    cells = cells[: [cell.id for cell in cells].index(last) + 1]
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-W", "ignore", "-c", RUN],
        input=json.dumps([[cell.source for cell in cells], claim]), cwd=ROOT,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return "holds: True" in done.stdout


@pytest.mark.parametrize(
    ("page", "last", "claim"),
    [
        (BUDGET, "3a9bfea2", "curves['measured, n = 512'][-1] > 1.2 * counted[-1]"),
        (BUDGET, "49dbb9b2", "price[64] > 1.3 * price[1]"),
        (BUDGET, "49dbb9b2", "min(row['FLOPs for an exp'] for row in rows) > 5"),
        ("speed.ipynb", "beaabc57", "copied > 1.15 * in_place"),
    ],
    ids=["narrow heads take longer than counted", "thin products too", "exp is dear", "new memory"],
)  # fmt: skip
def test_the_clock_shows_what_the_text_says(page, last, claim):
    assert any(holds(page, last, claim) for _ in range(ROUNDS))


@pytest.mark.parametrize("path", sorted((ROOT / "chapters").glob("*.ipynb")), ids=lambda p: p.stem)
def test_no_cell_that_reads_a_clock_asserts(path):
    """Their outputs differ from run to run, and so nbval does not compare them."""
    for cell in read(path).cells:
        if "nbval-ignore-output" in cell.metadata.get("tags", ()):
            assert "assert " not in cell.source, cell.source
