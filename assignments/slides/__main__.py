"""Write slides of each chapter: ``python -m assignments.slides OUT``, after ``make book``."""

import sys
from pathlib import Path

from assignments.slides.deck import make_decks


def main(arguments):
    """Write the decks and say where they are; return the exit code."""
    if len(arguments) != 1:
        print(__doc__)
        return 2
    try:
        decks = make_decks(Path(arguments[0]))
    except (FileNotFoundError, NotADirectoryError) as error:
        print(error)
        return 2
    print(f"{len(decks)} decks: open {Path(arguments[0], 'index.html')} in a browser")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
