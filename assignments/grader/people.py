"""Who handed a file in: what learning-management systems write into the names of files."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime

_DAY = r"\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d"
# The forms in which systems name what they hand out, each with what tells its people apart.  Names
# of attempts and of months are in the language of the system.
FORMS = {
    # lastfirst_[LATE_]user_attachment_filename; a text or a link has no attachment
    "Canvas": r"(?P<name>[^\W_](?:\w*?[^\W_])?)_(?:(?P<late>LATE)_)?(?P<id>\d+)_"
    r"(?:(?P<order>\d+)_(?P<file>.+)|(?:text|link)\.html)",
    "Canvas, anonymous": r"(?:(?P<late>LATE)_)?(?P<name>anon_(?P<id>[A-Za-z0-9]+))_"
    r"(?:(?P<order>\d+)_(?P<file>.+)|(?:text|link)\.html)",
    # Full Name_participant_assignsubmission_file_, as a folder or before the file's name
    "Moodle": r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_[a-z]+(?:_(?P<file>.*))?",
    # Assignment_user_attempt_date_filename, and a receipt without filename
    "Blackboard": rf"(?P<all>.+_(?P<id>[^_]+))_[^\W\d_]+_(?P<when>{_DAY})"
    r"(?:\.txt|_(?P<file>.+))?",
    # number-number - Full Name - Dec 1, 2026 1020 PM [- filename]
    "Brightspace": r"(?P<id>\d+)-\d+ - (?P<name>.+?) - (?P<when>[^-]*\b\d{4}\b[^-]*?)"
    r"(?: - (?P<file>.+))?",
    # Last, First(user)
    "Sakai": r"(?P<name>[^()/]+,[^()/]*)\((?P<id>[^()/]+)\)",
}
_FORMS = {system: re.compile(form) for system, form in FORMS.items()}
_APOSTROPHES = dict.fromkeys(map(ord, "'\u2019`\u00b4\u02bc"))
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()


@dataclass(frozen=True)
class Label:
    """What a name of a file or folder says of a person.

    Attributes
    ----------
    system : str
        Which system writes such names.
    key : str
        The same in all files of a person, and in those of nobody else.
    name : str
        As the system writes it; empty if it does not.
    id : str
        The number or login by which the system knows the person.
    file : str
        What the person called the file; empty for a folder.
    when : datetime.datetime or None
        When it was handed in, in the system's own time.
    order : int
        Grows with each file that is handed in, where there is no time.
    late : bool
        Whether the system calls it late.
    """

    system: str
    key: str
    name: str
    id: str
    file: str = ""
    when: datetime | None = None
    order: int = 0
    late: bool = False


def read(name):
    """Return what the name of a file or folder says, or None if no known system writes it so."""
    name = unicodedata.normalize("NFC", name)
    for system, form in _FORMS.items():
        found = form.fullmatch(name)
        if found is None:
            continue
        parts = found.groupdict()
        shown = (parts.get("name") or "").strip()
        if system == "Canvas" and shown != shown.lower():  # it writes no capitals
            continue
        key = parts["id"]
        if system == "Brightspace":  # whose number some sites give to everybody
            key = f"{key} {plain(shown)}"
        elif system == "Blackboard":  # where a login may hold what stands before it
            key = parts["all"]
        return Label(
            system=system,
            key=f"{system.partition(',')[0]}: {key}",
            name=shown,
            id=parts["id"],
            file=parts.get("file") or "",
            when=moment(parts.get("when") or ""),
            order=int(parts.get("order") or 0),
            late=bool(parts.get("late")),
        )
    return None


def moment(text):
    """Return the date and time in a text, or None.

    Understood are 2026-12-01-22-20-30, 2026-12-01 22:20, and what Brightspace writes: Dec 1, 2026
    1020 PM, or 1 December 2026 2220.
    """
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    try:
        if re.match(r"\d{4}-", text):
            return datetime(*numbers) if len(numbers) in {3, 5, 6} else None
        month = next(i for i, name in enumerate(_MONTHS, 1) if name in text.lower())
        day, year, clock = (*numbers, 0)[:3] if len(numbers) < 4 else (
            *numbers[:2], numbers[2] * 100 + numbers[3])  # fmt: skip
        hour, minute = divmod(clock, 100)
        half = re.search(r"\b([ap])\.?m\b", text.lower())
        if half:
            hour = hour % 12 + 12 * (half[1] == "p")
        return datetime(year, month, day, hour, minute)
    except (StopIteration, TypeError, ValueError):
        return None


def receipt(text):
    """Return name and login from the text file that Blackboard lays beside each attempt."""
    found = re.search(r"^\s*Name:\s*(.+?)\s*\(([^()\n]+)\)\s*$", text, re.MULTILINE)
    return (found[1], found[2]) if found else ("", "")


def plain(name):
    """Return the words of a name in order, without case, accents and marks between them.

    Names that people write in different ways are the same then: ``José Müller-Lee`` and ``muller
    lee, jose``.
    """
    return " ".join(sorted(_words(name)))


def squeezed(name):
    """Return the letters of a name as Canvas writes it, without accents."""
    return "".join(_words(name))


def _words(name):
    decomposed = unicodedata.normalize("NFKD", name.casefold())
    letters = "".join(c for c in decomposed if not unicodedata.combining(c))
    return re.findall(r"[^\W_]+", letters.translate(_APOSTROPHES))
