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
IGNORED_FOLDERS = {"__MACOSX", ".ipynb_checkpoints", "__pycache__"}


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


def collect(submissions, unpacked, known=None):
    """Find all notebooks in a folder or an archive.

    A folder of its own for each student gives the student its name.  Otherwise the file does.

    Parameters
    ----------
    submissions : pathlib.Path
        A folder, a ``.zip`` file or a single ``.ipynb`` file.  Archives in the folder are opened
        too.  Nothing in it is changed.
    unpacked : pathlib.Path
        An empty folder for what archives hold.
    known : dict, optional
        The student's name for each source of an earlier run; a name once given stays.

    Returns
    -------
    found : list of Submission
        In the order of their sources.
    left_aside : list of str
        Files beside the submissions that are no notebooks.

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
        files = _in_folder(submissions, unpacked)
    elif submissions.suffix.lower() == ".ipynb":
        files = [_File(submissions.name, submissions)]
    elif zipfile.is_zipfile(submissions):
        files = _in_archive(submissions, "", unpacked, [0])
    else:
        raise ValueError(
            f"{submissions} is neither a folder, a zip nor a notebook: pass one of these"
        )
    notebooks = [file for file in files if file.path or file.problem]
    others = [PurePosixPath(file.label) for file in files if not file.path and not file.problem]
    missing, left_aside = _without_notebook(notebooks, others)
    return _named(notebooks + missing, known or {}), left_aside


@dataclass(frozen=True)
class _File:
    """A file in the folder or in an archive; no notebook if it has neither path nor problem."""

    label: str
    path: Path | None = None
    problem: str = ""


def _in_folder(folder, unpacked):
    """Return all files below a folder, those in archives too."""
    files, total = [], [0]
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if _is_ignored(relative.parts):
            continue
        label, suffix = _printable(relative.as_posix()), path.suffix.lower()
        if path.is_dir():
            if not any(path.iterdir()):
                files.append(_File(f"{label}/(empty)"))
        elif suffix == ".ipynb":
            files.append(_notebook(label, path))
        elif suffix == ".zip":
            files += _in_archive(path, label, unpacked, total)
        else:
            files.append(_File(label))
    return files


def _notebook(label, path):
    try:
        size = path.stat().st_size
        with path.open("rb"):
            pass
    except OSError as error:
        return _File(label, None, f"the file cannot be read: {error.strerror}")
    if size > LARGEST_FILE:
        too_large = f"the file has {size / 1e6:.0f} MB, more than {LARGEST_FILE / 1e6:.0f}"
        return _File(label, None, too_large)
    return _File(label, path)


def _in_archive(archive, name, unpacked, total):
    """Unpack the notebooks of an archive, and of archives in it, and return all its files."""
    files = []
    prefix = f"{name}/" if name else ""
    try:
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                inside = PurePosixPath(info.filename.replace("\\", "/"))
                if info.is_dir() or _is_ignored(inside.parts):
                    continue
                label = _printable(f"{prefix}{inside}")
                if any(file.label == label for file in files):
                    label = f"{label} ({len(files)})"
                if inside.suffix.lower() not in {".ipynb", ".zip"}:
                    files.append(_File(label))
                    continue
                total[0] += info.file_size
                if info.file_size > LARGEST_FILE or total[0] > MOST_UNPACKED:
                    files.append(_File(label, None, "too large to unpack"))
                    continue
                # The name inside the archive is not trusted: ours has no folders.
                target = unpacked / f"{_digest(label)}-{len(files)}{inside.suffix.lower()}"
                target.write_bytes(opened.read(info))
                if inside.suffix.lower() == ".zip":
                    files += _in_archive(target, label, unpacked, total)
                else:
                    files.append(_File(label, target))
    except Exception as error:  # whatever is wrong with one archive, the batch goes on
        reason = f"the archive cannot be opened: {type(error).__name__}: {error}"
        files.append(_File(prefix or archive.name, None, _printable(reason)))
    return files or [_File(f"{prefix}(empty)")]


def _is_ignored(parts):
    hidden = any(part.startswith(".") and part != ".." for part in parts)
    return hidden or bool(IGNORED_FOLDERS.intersection(parts))


def _without_notebook(notebooks, others):
    """Return an entry for each folder or archive without a notebook, and the loose files."""
    homes = {PurePosixPath(notebook.label).parent for notebook in notebooks}
    filled = {folder for home in homes for folder in (home, *home.parents)}
    root = PurePosixPath()
    missing, loose = set(), []
    for other in others:
        folders = [folder for folder in other.parents if folder != root]  # the nearest first
        if not folders:
            loose.append(str(other))
        elif not homes.intersection(folders) and folders[0] not in filled:
            missing.add(next(f for f in reversed(folders) if f not in filled))
    text = "there is no notebook in it"
    return [_File(f"{folder}/", None, text) for folder in sorted(missing)], loose


def _named(files, known):
    """Give each file a student's name that is short, safe as a file name and not taken."""
    files = sorted(files, key=lambda file: file.label)
    paths = [PurePosixPath(re.sub(r"\.zip(?=/)", "", file.label, flags=re.I)) for file in files]
    # What all have in common, such as the name of the course, tells nobody apart.
    common = 0
    if len(paths) > 1:
        shortest = min(len(path.parts) for path in paths)
        while common < shortest - 1 and len({path.parts[: common + 1] for path in paths}) == 1:
            common += 1
    in_folder = Counter(path.parent for path in paths)
    names = {file.label: known[file.label] for file in files if file.label in known}
    taken = {name.lower() for name in names.values()}
    for path, file in zip(paths, files, strict=True):
        if file.label in names:
            continue
        folders = path.parts[common:-1]
        # With a folder for each student, the notebooks in them may all have the same name.
        if folders and in_folder[path.parent] == 1:
            label = "_".join(folders)
        else:
            label = "_".join((*folders, re.sub(r"\.(ipynb|zip)$", "", path.name, flags=re.I)))
        student = _safe(label)
        if student.lower() in taken:  # some systems do not tell upper from lower case
            student = f"{student}-{_digest(file.label)}"
        taken.add(student.lower())
        names[file.label] = student
    return [Submission(names[file.label], file.label, file.path, file.problem) for file in files]


def _safe(label):
    """Return a label as a file name that every system takes."""
    decomposed = unicodedata.normalize("NFKD", label)
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", decomposed.encode("ascii", "ignore").decode())
    plain = plain.strip("._-")[:80]
    # Names in other scripts must stay apart when their letters are gone.
    lost = any(ord(c) > 127 and not unicodedata.combining(c) for c in decomposed)
    return f"{plain or 'student'}-{_digest(label)}" if lost or not plain else plain


def _printable(text):
    """Return a file's name without bytes that are no text, which can be neither shown nor kept."""
    return text.encode("utf-8", "backslashreplace").decode()


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:8]
