"""Marks that a person has given: each belongs to the text that was read, and stays with it."""

import hashlib
import json


class GivenMarks:
    """What people have given so far, in a file of its own.

    The gradebook of nbgrader opens a mark again whenever the notebook is graded anew, and is gone
    with its folder.  Here a mark is kept under the text of the answer.

    Parameters
    ----------
    path : pathlib.Path
        The file; it need not exist.
    """

    def __init__(self, path):
        self.path = path
        try:
            kept = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            kept = None
        self._kept = kept if isinstance(kept, dict) else {}
        self.present = set()  # whoever is among the submissions now

    def note(self, student, cell, answer, mark):
        """Keep a mark for an answer, or forget it if ``mark`` is None.

        Parameters
        ----------
        student, cell : str
            Whose answer, and in which cell.
        answer : str
            The text that was read.
        mark : dict or None
            ``score``, ``extra`` and ``comment``.
        """
        own = self._kept.setdefault(student, {}).setdefault(cell, {})
        key = digest(answer)
        if own.get(key) == mark:
            return
        own.pop(key, None)
        if mark is not None:
            own[key] = mark  # the last one given stands last
        self._write()

    def given(self, student, cell, answer):
        """Return the mark for an answer, and whose it was; or None and an empty text.

        A file under a new name may make a new student.  So a mark is also taken from somebody who
        is no longer among the submissions, if the answer is the same and not just a few words.
        """
        key = digest(answer)
        mark = self._kept.get(student, {}).get(cell, {}).get(key)
        if mark is not None or len(answer.split()) < 8:
            return mark, student if mark is not None else ""
        for other, cells in self._kept.items():
            if other not in self.present and key in cells.get(cell, {}):
                return cells[cell][key], other
        return None, ""

    def before(self, student, cell):
        """Return the last mark that was given for another answer in this cell, or None."""
        marks = list(self._kept.get(student, {}).get(cell, {}).values())
        marks = [mark for mark in marks if mark.get("score") is not None]
        return marks[-1] if marks else None

    def _write(self):
        partial = self.path.with_suffix(".part")
        partial.write_text(json.dumps(self._kept, indent=1), encoding="utf-8")
        partial.replace(self.path)


def digest(answer):
    """Return a fingerprint of a text that says nothing of spaces at the ends of lines."""
    lines = [line.rstrip() for line in answer.strip().splitlines()]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()


def answers(cells):
    """Return what a student has written for each graded cell.

    Parameters
    ----------
    cells : list
        Of a notebook, as nbgrader has marked them.

    Returns
    -------
    texts : dict
        By the name of the cell.  For a test it is the solutions since the last graded cell.
    """
    texts, since = {}, []
    for cell in cells:
        about = cell["metadata"].get("nbgrader") or {}
        source = "".join(cell["source"])
        if about.get("solution"):
            since.append(source)
            texts[about["grade_id"]] = source
        if about.get("grade"):
            if not about.get("solution"):
                texts[about["grade_id"]] = "\n".join(since)
            since = []
    return texts
