"""Measure the grader: seconds a submission, and what a second worker gains.

``python -m bench.grade`` grades the same folder with one worker and with two, and then notebooks
that hang, one at a time.  ``--n 200`` takes a large class.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.grader import submissions

HANGING = ("loop in a function", "loop at top level", "loop that cannot be interrupted")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=40, help="number of normal submissions")
    n = parser.parse_args().n
    print(f"Python {platform.python_version()}, {n} solved notebooks\n")
    print("| workers | seconds in all | seconds a submission (median) | times as fast |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        normal = Path(folder) / "normal"
        normal.mkdir()
        for i in range(n):
            notebook = submissions.submission(specialisation=f"answer {i}")
            (normal / f"student-{i:03}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
        alone = None
        for jobs in (1, 2):
            seconds, each = grade(normal, Path(folder) / f"out-{jobs}", jobs)
            alone = alone or seconds
            one = statistics.median(each.values())
            print(f"| {jobs} | {seconds:.1f} | {one:.2f} | {alone / seconds:.2f} |")
        hanging = Path(folder) / "hanging"
        hanging.mkdir()
        kinds = submissions.all_kinds("bench")
        for kind in HANGING:
            (hanging / f"{kind}.ipynb").write_bytes(kinds[kind])
        (hanging / "0.ipynb").write_bytes(kinds["good"])  # the first one waits for the start
        _, each = grade(hanging, Path(folder) / "out-hanging", 1)
        print("\n| hanging submission | seconds |\n|---|---|")
        for kind in HANGING:
            print(f"| {kind} | {each[kind]:.1f} |")


def grade(submitted, out, jobs):
    """Return the seconds of the whole command, and those of each submission."""
    command = [sys.executable, "-m", "assignments.grader", submitted, out, "--jobs", jobs]
    began = time.perf_counter()
    done = subprocess.run(  # noqa: S603 - our own command
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        sys.exit(f"{done.stdout}\n{done.stderr}")
    results = [json.loads(path.read_text("utf-8")) for path in (out / "results").glob("*.json")]
    return seconds, {Path(result["source"]).stem: result["seconds"] for result in results}


if __name__ == "__main__":
    main()
