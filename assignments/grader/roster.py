"""Who should have handed in: a list that an instructor or a learning-management system writes."""

import csv
import io
from dataclasses import dataclass

from assignments.grader import people

# What the columns may be called, in any case: a list may come straight from a system's gradebook.
COLUMNS = {
    "id": "id,user id,student id,id number,idnumber,orgdefinedid,matriculation number",
    "name": "name,full name,student,student name,display name",
    "first": "first name,given name,firstname",
    "last": "last name,surname,family name,lastname",
    "email": "email,e-mail,email address,e-mail address,mail",
    "login": "login,username,user name,sis login id,login id",
    "sis": "sis user id",
    "section": "section",
    "participant": "identifier",
}
_COLUMNS = {word: column for column, words in COLUMNS.items() for word in words.split(",")}


@dataclass(frozen=True)
class Person:
    """One line of a roster; what it does not say is empty.

    Attributes
    ----------
    name, id, email, login, sis, section : str
        As the roster writes them.
    participant : str
        Moodle's name for a person in one assignment, such as Participant 4711.
    canvas : str
        Canvas's own number.
    """

    name: str
    id: str = ""
    email: str = ""
    login: str = ""
    sis: str = ""
    section: str = ""
    participant: str = ""
    canvas: str = ""


def read(data):
    """Return the people of a roster.

    Parameters
    ----------
    data : bytes
        A CSV file: with commas, semicolons or tabs, in UTF-8, UTF-16 or as old versions of Excel
        write it.

    Returns
    -------
    everybody : list of Person
        In the order of the file.

    Raises
    ------
    ValueError
        No column says who the people are.
    """
    text = decoded(data)
    first = text.lstrip("\n").partition("\n")[0]
    if first.lower().startswith("sep="):  # as Excel may put above the table
        text, first = text.lstrip("\n").partition("\n")[2], ""
        first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    rows = [[cell.strip() for cell in row] for row in rows if any(map(str.strip, row))]
    heads = [_COLUMNS.get(head.lower().strip("#* "), "") for head in rows[0]] if rows else []
    if not {"id", "name", "last", "email", "login"}.intersection(heads):
        raise ValueError(
            "the roster's first line must name its columns: id, name, email or login (found: "
            f"{', '.join(rows[0][:8]) if rows else 'nothing'})"
        )
    is_canvas = {"student", "id", "section"} <= {head.lower() for head in rows[0]}
    everybody = []
    for row in rows[1:]:
        cells = {}
        for head, cell in zip(heads, row, strict=False):
            if head and cell and head not in cells:
                cells[head] = cell.lstrip("#") if head in {"id", "login"} else cell
        first_name, last_name = cells.pop("first", ""), cells.pop("last", "")
        name = cells.pop("name", "") or f"{first_name} {last_name}".strip()
        if name.lower().startswith("points possible"):  # of Canvas
            continue
        if is_canvas:
            cells["canvas"] = cells.get("id", "")
        if name or cells:
            everybody.append(Person(name=name, **cells))
    return everybody


def decoded(data):
    """Return the text in some bytes, whoever wrote them."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", "replace")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = data.decode("cp1252", "replace")
    return text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def find(everybody, system, number, name):
    """Return the place in the roster of whoever handed something in, or None.

    Parameters
    ----------
    everybody : list of Person
        The roster.
    system, number, name : str
        What is known of the person; ``number`` is what the system calls him or her.

    Returns
    -------
    place : int or None
        None also where several people fit equally well: names alone may be shared.
    """
    digits = "".join(filter(str.isdigit, number))
    tests = [
        lambda one: system == "Moodle" and digits
        and one.participant.lower().removeprefix("participant").strip() == digits,
        lambda one: system != "Moodle" and number
        and number.casefold() in {text.casefold() for text in (one.id, one.login, one.sis)},
        lambda one: number and "@" in number and number.casefold() == one.email.casefold(),
        lambda one: name and people.plain(name) == people.plain(one.name),
        lambda one: name and people.squeezed(name) in _squeezed(one.name),
        lambda one: name and name.casefold() in _single(one),
    ]  # fmt: skip
    for fits in tests:
        places = [i for i, one in enumerate(everybody) if fits(one)]
        if places:
            return places[0] if len(places) == 1 else None
    return None


def _squeezed(name):
    """Return a name in one word, beginning with each of its words: one is the last name."""
    words = name.replace(",", " ").split()
    return {people.squeezed(" ".join(words[i:] + words[:i])) for i in range(len(words))} - {""}


def _single(one):
    """Return what a plain file may be named after."""
    words = {one.id, one.login, one.email, one.email.partition("@")[0]}
    return {word.casefold() for word in words} - {""}
