"""Write a bank of exam questions: ``python -m assignments.exam OUT [SEED]``."""

import sys
from pathlib import Path

from assignments.exam.bank import bank
from assignments.exam.export import write_moodle, write_qti, write_text


def main(arguments):
    """Write the files and say where they are; return the exit code."""
    if not 1 <= len(arguments) <= 2 or (not arguments[-1].isdigit() and len(arguments) == 2):
        print(__doc__)
        return 2
    folder = Path(arguments[0])
    questions = bank(seed=int(arguments[1]) if len(arguments) == 2 else 0, n_each=3)
    folder.mkdir(parents=True, exist_ok=True)
    write_moodle(questions, folder / "moodle.xml")
    write_qti(questions, folder / "canvas.zip")
    write_text(questions, folder / "questions.txt")
    print(f"{len(questions)} questions, in {folder}: moodle.xml, canvas.zip (QTI), questions.txt")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
