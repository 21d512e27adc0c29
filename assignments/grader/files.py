"""All files below a folder or in an archive, without trust in any of them."""

import os
import stat
import unicodedata
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

LARGEST_FILE = 100_000_000  # bytes
LARGEST_RECEIPT = 100_000
MOST_IN_ARCHIVES = 300_000_000  # bytes of the archives in one person's archive
MOST_FILES = 20_000  # in one archive
DEEPEST = 30  # folders in folders
IGNORED = {"__MACOSX", "__pycache__", "Thumbs.db", "desktop.ini"}
NOTEBOOKS = (".ipynb", ".ipynb.txt", ".ipynb.json")  # browsers add the last part
OTHER_ARCHIVES = (".7z", ".rar", ".tar", ".gz", ".tgz", ".bz2", ".xz")
EMPTY = "(empty)"


@dataclass(frozen=True)
class File:
    """A file, or a place where there is none.

    Attributes
    ----------
    parts : tuple of str
        Names from the outermost folder to the file; archives stand among them like folders.
    read : callable or None
        Returns what is in a notebook.  None for all other files.
    problem : str
        Why a notebook or an archive cannot be read; empty if it can.
    order : float
        Grows with the time at which the file was last changed.
    peek : callable or None
        Returns what is in a small text, such as the receipt of a system.
    """

    parts: tuple[str, ...]
    read: Callable[[], bytes] | None = None
    problem: str = ""
    order: float = 0.0
    peek: Callable[[], bytes] | None = None

    @property
    def label(self):
        """Where the file lies, as a text that can be shown."""
        return "/".join(part for part in self.parts if part != EMPTY)

    @property
    def is_there(self):
        return self.parts[-1] != EMPTY


def found(submissions, unpacked):
    """Return all files in a folder, or in an archive, or the one notebook that is given.

    Parameters
    ----------
    submissions : pathlib.Path
        Nothing in it is changed.
    unpacked : pathlib.Path
        An empty folder for archives that lie in archives.

    Raises
    ------
    FileNotFoundError, ValueError
        There is nothing at that place, or nothing that can hold notebooks.
    """
    if not submissions.exists():
        raise FileNotFoundError(
            f"there is no {submissions}: pass the folder or the zip with the notebooks"
        )
    if submissions.is_dir():
        return _in_folder(submissions, unpacked)
    if submissions.name.lower().endswith(NOTEBOOKS):
        return [_file((_text(submissions.name),), submissions, unpacked)[0]]
    if zipfile.is_zipfile(submissions):
        return _in_archive(submissions, (), unpacked, None)
    raise ValueError(f"{submissions} is neither a folder, a zip nor a notebook: pass one of these")


def is_notebook(name):
    """Return whether a file is a notebook by its name."""
    return name.lower().endswith(NOTEBOOKS)


def stem(name):
    """Return the name of a file without what says its kind."""
    for ending in (*sorted(NOTEBOOKS, key=len, reverse=True), ".tar.gz"):
        if name.lower().endswith(ending) and len(name) > len(ending):
            return name[: -len(ending)]
    return PurePosixPath(name).stem


def _in_folder(folder, unpacked):
    """Return all files below a folder; links lead no further than it."""
    files, waiting = [], [(os.fspath(folder), ())]
    top = os.path.realpath(folder)
    while waiting:
        path, parts = waiting.pop()
        if len(parts) > DEEPEST:
            files.append(File((*parts, EMPTY), problem=f"more than {DEEPEST} folders in folders"))
            continue
        try:
            with os.scandir(path) as entries:
                entries = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            files.append(File((*parts, EMPTY), problem=f"it cannot be read: {error.strerror}"))
            continue
        shown = [entry for entry in entries if not _is_ignored(entry.name)]
        if not shown and parts:
            files.append(File((*parts, EMPTY)))
        for entry in shown:
            place = (*parts, _text(entry.name))
            if entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, place))
            elif entry.is_symlink() and not _is_inside(entry.path, top):
                files.append(File(place, problem="it is a link that leads elsewhere"))
            elif entry.is_symlink() and os.path.isdir(entry.path):  # noqa: PTH112
                files.append(File((*place, EMPTY), problem="it is a link to another folder"))
            else:
                files += _file(place, Path(entry.path), unpacked)
    return files


def _is_inside(link, top):
    return os.path.exists(link) and os.path.realpath(link).startswith(top + os.sep)  # noqa: PTH110


def _file(parts, path, unpacked):
    """Return a file of a folder, or what is in it."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            return [File(parts, problem="it is no file but a pipe or a device")]
        if not (is_notebook(parts[-1]) or parts[-1].lower().endswith(".zip")):
            peek = path.read_bytes if _is_receipt(parts[-1], about.st_size) else None
            why = _why_not(parts[-1])
            return [File(parts, problem=why, order=about.st_mtime, peek=peek)]
        with path.open("rb"):
            pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return [File(parts, problem=f"the file cannot be read: {reason}")]
    if not is_notebook(parts[-1]):
        return _in_archive(path, parts, unpacked, [0])
    if about.st_size > LARGEST_FILE:
        return [File(parts, problem=_too_large(about.st_size))]
    return [File(parts, path.read_bytes, order=about.st_mtime)]


def _in_archive(archive, parts, unpacked, spent):
    """Return all files in an archive, and in archives in it.

    ``spent`` has the bytes that were unpacked for one person so far; a class has None.
    """
    files, hidden = [], set()
    try:
        with zipfile.ZipFile(archive) as opened:
            infos = opened.infolist()
            if len(infos) > MOST_FILES:
                raise ValueError(f"it holds {len(infos)} files, more than {MOST_FILES}")
            taken = set()
            for info in infos:
                inside = _inside(info)
                visible = next(
                    (i for i, name in enumerate(inside) if _is_ignored(name)), len(inside)
                )
                if visible < len(inside) or info.is_dir():
                    hidden.add((*parts, *inside[:visible]))
                    continue
                if not inside:
                    continue
                place = (*parts, *inside)
                if place in taken:  # twice in one archive
                    place = (*place[:-1], f"({len(taken)}) {place[-1]}")
                taken.add(place)
                files += _in_member(archive, opened, info, place, unpacked, spent)
    except Exception as error:  # whatever is wrong with one archive, the others go on
        reason = f"the archive cannot be opened: {_text(str(error)) or type(error).__name__}"
        files.append(File((*parts, EMPTY), problem=reason))
    filled = {file.parts[:n] for file in files for n in range(len(file.parts))}
    files += [File((*folder, EMPTY)) for folder in sorted(hidden - filled) if folder]
    return files or [File((*parts, EMPTY))]


def _in_member(archive, opened, info, place, unpacked, spent):
    name, order = place[-1].lower(), _stamp(info)
    if not (is_notebook(name) or name.endswith(".zip")):
        receipt = _is_receipt(name, info.file_size)
        peek = partial(_read_member, archive, info) if receipt else None
        return [File(place, problem=_why_not(name), order=order, peek=peek)]
    if info.flag_bits & 1:
        return [File(place, problem="it is locked with a password")]
    if info.file_size > LARGEST_FILE:
        return [File(place, problem=_too_large(info.file_size))]
    if len(place) > DEEPEST:
        return [File(place, problem=f"more than {DEEPEST} folders in folders")]
    if is_notebook(name):
        return [File(place, partial(_read_member, archive, info), order=order)]
    spent = [0] if spent is None else spent
    spent[0] += info.file_size
    if spent[0] > MOST_IN_ARCHIVES:
        return [File((*place, EMPTY), problem="too large to unpack")]
    # The name inside the archive is not trusted.
    target = unpacked / f"{sum(1 for _ in unpacked.iterdir())}.zip"
    try:
        target.write_bytes(opened.read(info))
    except Exception as error:  # damaged, or packed in a way that is not known here
        return [File((*place, EMPTY), problem=f"the archive cannot be opened: {error}")]
    return _in_archive(target, place, unpacked, spent)


def _read_member(archive, info):
    with zipfile.ZipFile(archive) as opened:
        return opened.read(info)


def _inside(info):
    """Return the names of the folders and of the file, none of which leads out of the archive."""
    name = info.filename
    if not info.flag_bits & 0x800:  # by the standard in an old encoding; macOS writes UTF-8
        try:
            name = name.encode("cp437").decode("utf-8")
        except UnicodeError:
            name = info.filename
    names = name.replace("\\", "/").split("/")
    return tuple(_text(part) for part in names if part not in {"", ".", ".."})


def _stamp(info):
    """Return a number that grows with the time of a file in an archive."""
    year, month, day, hour, minute, second = info.date_time
    return ((((year * 12 + month) * 31 + day) * 24 + hour) * 60 + minute) * 60.0 + second


def _why_not(name):
    if name.lower().endswith(OTHER_ARCHIVES):
        return "only zip archives can be opened: unpack it, or hand in the notebook itself"
    return ""


def _is_receipt(name, size):
    return name.lower().endswith(".txt") and size < LARGEST_RECEIPT


def _too_large(size):
    return f"the file has {size / 1e6:.0f} MB, more than {LARGEST_FILE / 1e6:.0f}"


def _is_ignored(name):
    return name.startswith(".") or name in IGNORED


def _text(name):
    """Return a name without bytes that are no text, which can be neither shown nor kept."""
    text = name.encode("utf-8", "backslashreplace").decode()
    text = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return unicodedata.normalize("NFC", text)
