"""Find the submitted notebooks, whatever the files are called."""

import hashlib
import re
import unicodedata
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

LARGEST_FILE = 100_000_000  # bytes
MOST_UNPACKED = 4_000_000_000  # bytes, over all archives
IGNORED_FOLDERS = {"__MACOSX", ".ipynb_checkpoints"}


@dataclass(frozen=True)
class Submission:
    """One notebook that somebody handed in, or the lack of one.

    Attributes
    ----------
    student : str
        A name made of letters, digits, ``-``, ``_`` and ``.`` that no other submission has.
    source : str
        Where the notebook lies, relative to what was handed to the grader.
    path : pathlib.Path or None
        The file to read.  None if there is nothing to grade.
    problem : str
        Why there is nothing to grade; empty if there is.
    """

    student: str
    source: str
    path: Path | None
    problem: str = ""


def collect(submissions, unpacked):
    """Find all notebooks in a folder or an archive.

    A folder of its own for each student gives the student its name.  Otherwise the file does.

    Parameters
    ----------
    submissions : pathlib.Path
        A folder, a ``.zip`` file or a single ``.ipynb`` file.  Archives in the folder are opened
        too.  Nothing in it is changed.
    unpacked : pathlib.Path
        An empty folder for what archives hold.

    Returns
    -------
    found : list of Submission
        In the order of their names.

    Raises
    ------
    FileNotFoundError
        There is nothing at that place.
    ValueError
        It is neither a folder nor a file that can hold notebooks.
    """
    if not submissions.exists():
        raise FileNotFoundError(
            f"there is no {submissions}: pass the folder or the zip with the notebooks"
        )
    if submissions.is_dir():
        entries = _in_folder(submissions, unpacked)
    elif submissions.suffix.lower() == ".ipynb":
        entries = [(submissions.name, submissions, "")]
    elif zipfile.is_zipfile(submissions):
        entries = _in_archive(submissions, "", unpacked, [0])
    else:
        raise ValueError(
            f"{submissions} is neither a folder, a zip nor a notebook: pass one of these"
        )
    return _named(entries)


def _in_folder(folder, unpacked):
    """Return (relative name, path, problem) of all notebooks below a folder."""
    entries, total = [], [0]
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if IGNORED_FOLDERS.intersection(relative.parts) or path.name.startswith("."):
            continue
        name, suffix = relative.as_posix(), path.suffix.lower()
        if suffix == ".ipynb" and path.is_file():
            entries.append((name, path, _too_large(path)))
        elif suffix == ".zip" and path.is_file():
            entries += _in_archive(path, name, unpacked, total)
    return entries + _folders_without(folder, entries)


def _too_large(path):
    size = path.stat().st_size
    if size <= LARGEST_FILE:
        return ""
    return f"the file has {size / 1e6:.0f} MB, more than {LARGEST_FILE / 1e6:.0f}"


def _folders_without(folder, entries):
    """Return an entry for each folder of a student in which there is no notebook."""
    filled = {PurePosixPath(name).parts[0] for name, _, _ in entries}
    empty = [
        path.name
        for path in sorted(folder.iterdir())
        if path.is_dir()
        and path.name not in filled | IGNORED_FOLDERS
        and not path.name.startswith(".")
    ]
    return [(f"{name}/", None, "there is no notebook in this folder") for name in empty]


def _in_archive(archive, name, unpacked, total):
    """Unpack the notebooks of an archive, and of archives in it, and return their entries."""
    entries = []
    prefix = f"{name}/" if name else ""
    try:
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                inside = PurePosixPath(info.filename.replace("\\", "/"))
                suffix = inside.suffix.lower()
                if (
                    info.is_dir()
                    or suffix not in {".ipynb", ".zip"}
                    or IGNORED_FOLDERS.intersection(inside.parts)
                    or inside.name.startswith(".")
                ):
                    continue
                label = f"{prefix}{inside}"
                total[0] += info.file_size
                if info.file_size > LARGEST_FILE or total[0] > MOST_UNPACKED:
                    entries.append((label, None, "too large to unpack"))
                    continue
                # The name inside the archive is not trusted: ours has no folders.
                target = unpacked / f"{hashlib.sha256(label.encode()).hexdigest()}{suffix}"
                target.write_bytes(opened.read(info))
                if suffix == ".zip":
                    entries += _in_archive(target, label, unpacked, total)
                else:
                    entries.append((label, target, ""))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as error:
        # RuntimeError: the archive has a password.
        entries.append((prefix or archive.name, None, f"the archive cannot be opened: {error}"))
    return entries


def _named(entries):
    """Give each entry a student's name that is short, safe as a file name and not taken."""
    entries = sorted(entries, key=lambda entry: entry[0])
    paths = [PurePosixPath(re.sub(r"\.zip(?=/)", "", name, flags=re.I)) for name, _, _ in entries]
    # What all have in common, such as the name of the course, tells nobody apart.
    common = 0
    if len(paths) > 1:
        while len({path.parts[: common + 1] for path in paths}) == 1:
            common += 1
    in_folder = Counter(path.parent for path in paths)
    found, taken = [], set()
    for path, (name, file, problem) in zip(paths, entries, strict=True):
        folders = path.parts[common:-1]
        # With a folder for each student, the notebooks in them may all have the same name.
        if folders and in_folder[path.parent] == 1:
            label = "_".join(folders)
        else:
            label = "_".join((*folders, re.sub(r"\.(ipynb|zip)$", "", path.name, flags=re.I)))
        student = _safe(label)
        if student.lower() in taken:  # some systems do not tell upper from lower case
            student = f"{student}-{_digest(name)}"
        taken.add(student.lower())
        found.append(Submission(student, name, file, problem))
    return found


def _safe(label):
    """Return a label as a file name that every system takes."""
    decomposed = unicodedata.normalize("NFKD", label)
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", decomposed.encode("ascii", "ignore").decode())
    plain = plain.strip("._-")[:80]
    # Names in other scripts must stay apart when their letters are gone.
    lost = any(ord(c) > 127 and not unicodedata.combining(c) for c in decomposed)
    return f"{plain or 'student'}-{_digest(label)}" if lost or not plain else plain


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:8]
