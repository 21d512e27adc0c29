"""Run the checks in stages, each with its name and its seconds.

    python -m tests check   # before every commit: style, types, imports and the fast tests
    python -m tests         # all that a contributor's machine should see, the book's build included
    python -m tests seeds   # what the book claims of trained models, trained and measured anew
    python -m tests screens # each setting of each widget, on each screen and in Firefox
    python -m tests slow    # submissions of every kind, all pairs of mistakes

The commands of a stage run at the same time.  The first stage that fails is the last.
"""

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "mha_lib").rglob("*.py"))
ALONE = ["pytest", "-q"]
SHARED = [*ALONE, "-n", "logical", "--dist"]
WAITING = str((os.cpu_count() or 1) + 1)  # one more than cores: who visits a page often waits
LATER = [
    f"--ignore=tests/{folder}" for folder in ("browser", "build", "exam", "grader", "measured")
]
NBVAL = ["--nbval", "--nbval-current-env", "--nbval-sanitize-with", "tests/nbval.ini"]
LAB = "tests/browser/test_lab.py"
LINKS = "tests/browser/test_site.py"  # reads all pages once, without a browser
SEEDS = [*ALONE, "-m", "slow", "tests/learning"]
BUILD = ["jupyter-book", "build", ".", "--all", "-W", "-n", "--keep-going"]
if shutil.which("make"):  # which leaves out what is there already
    BUILD = ["make", "--no-print-directory", "book"]

CHECK = {
    "style, types, imports, docstrings": [
        ["ruff", "check"],
        ["ruff", "format", "--check"],
        ["mypy"],
        ["lint-imports"],
        ["numpydoc", "lint", *MODULES],
    ],
    "the library and the notebooks' form": [
        [*SHARED, "worksteal", "--doctest-modules", "mha_lib", "tests", *LATER]
    ],
}
TEST = CHECK | {
    # For the pages, and to compare what they print: both run notebooks.
    "the book, its notebooks": [BUILD, [*ALONE, *NBVAL, "chapters"]],
    # Page after page to whoever is free; the notebook in JupyterLab is one, cell after cell.
    "pages and JupyterLab in a browser, the assignment, how all is made": [
        [
            *ALONE,
            "-n",
            WAITING,
            "--dist",
            "load",
            "--maxschedchunk=1",
            "tests/browser",
            f"--ignore={LAB}",
            f"--ignore={LINKS}",
        ],
        [*ALONE, LAB, LINKS, "tests/build", "tests/exam", "tests/grader"],
    ],
}
CLAIMS = {
    # Each of the two models trains for a minute or more: one for each core.
    "twenty seeds": [[*SEEDS, "-k", "three"], [*SEEDS, "-k", "not three"]],
    # Skipped without the weights that `make weights` fetches.
    "the trained encoder, measured again": [[*SHARED, "loadfile", "-rs", "tests/measured"]],
}
SCREENS = {
    # What shares one print of the chapter, or the decks of slides, is one group.
    "each setting of each widget, on each screen, in Firefox, on slides; two builds; a release": [
        [*ALONE, "-n", WAITING, "--dist", "loadgroup", "-m", "slow", "tests/build", "tests/browser"]
    ],
}
SLOW = {
    # What shares one run of the grader is one file.
    "submissions of every kind, all pairs of mistakes": [
        [*SHARED, "loadfile", "-m", "slow", "tests/grader", "tests/teaching"]
    ],
}


def run(commands):
    """Run commands side by side; of several, show only what fails.  Return whether all pass."""
    alone = len(commands) == 1
    output = None if alone else subprocess.PIPE
    started = [
        subprocess.Popen(  # noqa: S603 - our own tools
            [shutil.which(name, path=str(BIN)) or name, *rest],
            cwd=ROOT, stdout=output, stderr=subprocess.STDOUT if output else None, text=True,
            encoding="utf-8", errors="replace",
        )
        for name, *rest in commands
    ]  # fmt: skip
    # A tool that has much to say waits until it is heard: one that is slow may not hold it up.
    with ThreadPoolExecutor(len(started)) as listeners:
        said = [listeners.submit(process.communicate) for process in started]
    for command, process, words in zip(commands, started, said, strict=True):
        if process.returncode and not alone:
            print(f"{words.result()[0]}\n-- {' '.join(command)[:99]}: failed", flush=True)
    return not any(process.returncode for process in started)


def main(stages):
    """Run stages until one fails; return the exit code."""
    for number, (name, commands) in enumerate(stages.items(), 1):
        title = f"== {number}/{len(stages)} {name}"
        print(title, flush=True)
        start = time.monotonic()
        passed = run(commands)
        seconds = f"{time.monotonic() - start:.0f} s"
        print(f"{title}: {'passed' if passed else 'FAILED'} after {seconds}", flush=True)
        if not passed:
            return 1
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    wanted = {
        "check": CHECK, "test": TEST, "seeds": CLAIMS, "screens": SCREENS, "slow": SLOW,
    }.get(" ".join(sys.argv[1:]) or "test")  # fmt: skip
    sys.exit(main(wanted) if wanted else __doc__)
