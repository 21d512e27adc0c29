"""Find out who has handed in what, whatever the files are called: every person is an entry."""

import hashlib
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from assignments.grader import files, people, roster

HANDED_OUT = "multi_head_attention"  # the assignment's own name tells nobody apart
_NO_NAME = re.compile(
    rf"(copy of )?({HANDED_OUT}|untitled|notebook)[-_ ()\d]*(copy[-_ ()\d]*)?", re.I
)
# What instructors and systems lay beside the submissions.
_BESIDE = re.compile(r"index\.html?|readme.*|.*\.(csv|xlsx?|ods|log)|timestamp\.txt", re.I)
NOTHING = "nothing was handed in"


@dataclass(frozen=True)
class Submission:
    """What one person handed in, or the lack of it.

    Attributes
    ----------
    student : str
        A name made of letters, digits, ``-``, ``_`` and ``.`` that no other submission has.
    source : str
        Where the notebook lies, relative to what was handed to the grader.
    read : callable or None
        Returns the bytes of the notebook.  None if there is nothing to grade.
    problem : str
        Why there is nothing to grade; empty if there is.
    name : str
        As people write it.
    person : roster.Person
        What is known of the person.
    late : bool
    when : datetime.datetime or None
        When it was handed in, where the system says so.
    earlier : tuple of str
        Other notebooks of the same person, which do not count.
    flags : tuple of str
        What a person should look at.
    """

    student: str
    source: str
    read: Callable[[], bytes] | None
    problem: str = ""
    name: str = ""
    person: roster.Person = field(default_factory=lambda: roster.Person(""))
    late: bool = False
    when: datetime | None = None
    earlier: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def is_missing(self):
        return self.problem == NOTHING


@dataclass
class _Person:
    """Whoever the files belong to."""

    key: str
    name: str
    number: str = ""
    system: str = ""
    home: str = ""  # what to call the place of the files if there is no notebook
    files: list = field(default_factory=list)  # pairs of a file and a label


def collect(submissions, unpacked, known=None, everybody=(), due=None, fits=None):
    """Find the notebook of each person in a folder or an archive.

    Parameters
    ----------
    submissions : pathlib.Path
        A folder, a ``.zip`` file or a single notebook.  Nothing in it is changed.
    unpacked : pathlib.Path
        An empty folder for archives in archives.
    known : dict, optional
        The student's name for each key of an earlier run; a name once given stays.
    everybody : list of roster.Person, optional
        Who should have handed in.
    due : datetime.datetime, optional
        What was handed in later is late.
    fits : callable, optional
        Says of the bytes of a file how much of the assignment is in it.

    Returns
    -------
    found : list of Submission
        In the order of their sources.
    left_aside : list of str
        Files beside the submissions that belong to nobody.
    names : dict
        Like ``known``, with everybody who is here.

    Raises
    ------
    FileNotFoundError, ValueError
        As `files.found`.
    """
    all_files = files.found(submissions, unpacked)
    persons, left_aside = _grouped(all_files)
    names = dict(known or {})
    _name_students(persons, names)
    found = []
    here = set()
    for person in persons:
        one = _submission(person, names[person.key], due, fits or (lambda data: 1))
        if everybody:
            if person.system == "Blackboard":  # whose logins may hold what stands before them
                logins = [p.login for p in everybody if person.key.endswith(f"_{p.login}")]
                person.number = max([person.number, *logins], key=len)
            place = roster.find(everybody, person.system, person.number, person.name)
            if place is None:
                one = replace(one, flags=(*one.flags, "is not in the roster"))
            elif place in here:
                one = replace(one, flags=(*one.flags, f"is {everybody[place].name} a second time"))
            if place is not None:
                here.add(place)
                listed = everybody[place]
                listed = replace(
                    listed,
                    canvas=listed.canvas or one.person.canvas,
                    participant=listed.participant or one.person.participant,
                )
                one = replace(one, person=listed, name=listed.name or one.name)
        found.append(one)
    found.sort(key=lambda one: one.source)
    absent = dict(names)  # who has a name of their own as soon as they hand in
    for i, person in enumerate(everybody):
        if i not in here:
            shown = person.name or person.id or person.login or person.email
            lacking = _Person(f"roster: {i}", shown)
            _name_students([lacking], absent)
            student = absent[lacking.key]
            found.append(Submission(student, "", None, NOTHING, shown, person))
    return found, left_aside, names


# --- whose files ------------------------------------------------------------------------------


def _grouped(all_files):
    """Return who the files belong to, and the files that belong to nobody."""
    labels = [_label(file) for file in all_files]
    _forget_impossible(all_files, labels)
    persons, plain = {}, []
    for file, found in zip(all_files, labels, strict=True):
        if found is None:
            plain.append(file)
            continue
        depth, label = found
        home = "/".join(file.parts[: depth + 1])
        person = persons.setdefault(
            label.key, _Person(label.key, label.name, label.id, label.system, home)
        )
        person.files.append((file, label))
    board = [person for person in persons.values() if person.system == "Blackboard"]
    start = os.path.commonprefix([person.key for person in board])  # noqa: RUF071 - of letters
    start = start.rpartition("_")[0]
    for person in board:
        if len(board) > 1:  # what all have in common is the assignment
            person.number = person.key[len(start) :].lstrip("_")
        _take_receipts(person)
    of_many = {
        file.parts[:n]
        for file, found in zip(all_files, labels, strict=True)
        if found
        for n in range(1, found[0] + 1)
    }
    homes, left_aside = _plain_homes(plain, of_many)
    shared = _shared(list(homes))
    for home, own in homes.items():
        key = "/".join(home[shared:])
        label = people.Label("", key, home[-1], "")
        persons[f"file: {key}"] = _Person(
            f"file: {key}", _shown(home[-1]), home="/".join(own[0].parts[: len(home)]),
            files=[(file, label) for file in own],
        )  # fmt: skip
    return list(persons.values()), left_aside


def _take_receipts(person):
    """Give a person the name and the login that stand in the texts beside the attempts."""
    for file, _ in person.files:
        with suppress(Exception):  # whatever is wrong with it, there is another way
            name, login = people.receipt(roster.decoded(file.peek())) if file.peek else ("", "")
            person.name, person.number = name or person.name, login or person.number
    person.name = person.name or person.number


def _label(file):
    """Return how deep a system's name stands in a path, and what it says; or None."""
    for depth, name in enumerate(file.parts):
        label = people.read(name)
        if label is None and name.lower().endswith(".zip"):
            label = people.read(name[:-4])
        if label is not None and not (label.system == "Sakai" and depth == len(file.parts) - 1):
            return depth, label
    return None


def _forget_impossible(all_files, labels):
    """Take names for plain ones again that Canvas would not have given.

    Its second number belongs to one file.  In lab_1_2_ann.ipynb and lab_1_2_bob.ipynb it does not.
    And it makes no folder for each person, as in ann/part_1_2_x.ipynb beside bob/work.ipynb.
    """
    owners, children = defaultdict(set), defaultdict(set)
    for file, found in zip(all_files, labels, strict=True):
        for n, name in enumerate(file.parts):
            if not _BESIDE.fullmatch(name):
                children[file.parts[:n]].add(name)
        if found and found[1].system == "Canvas" and found[1].order:
            depth, label = found
            owners[label.id, label.order].add((*file.parts[:depth], files.stem(file.parts[depth])))
    for i, (file, found) in enumerate(zip(all_files, labels, strict=True)):
        if found and found[1].system == "Canvas":
            depth, label = found
            above = file.parts[:depth]
            alone = above and len(children[above]) == 1 and len(children[above[:-1]]) > 1
            if alone or len(owners[label.id, label.order]) > 1:
                labels[i] = None


def _plain_homes(plain, of_many):
    """Return the files of each person for whom no system has written the names.

    A folder is a person's, unless several people's notebooks lie in it; a loose file is a person's
    too.  Folders in ``of_many`` are known to hold several people's files.
    """
    homes, left_aside = defaultdict(list), []

    def visit(below, depth):
        """Share out the files of a folder in which people's files and folders lie."""
        groups = defaultdict(list)
        for file in below:
            groups[file.parts[depth]].append(file)
        for name, group in groups.items():
            file = group[0]
            if len(file.parts) > depth + 1:  # a folder or an archive
                if file.parts[: depth + 1] in of_many or _is_of_many(group, depth + 1):
                    visit(group, depth + 1)
                else:
                    homes[(*file.parts[:depth], name)] += group
            elif not file.is_there:
                if depth:
                    homes[file.parts[:depth]] += group
                elif file.problem:
                    homes[("submissions",)] += group
            elif _BESIDE.fullmatch(name) and not file.read:
                left_aside.append(file.label)
            else:
                homes[(*file.parts[:depth], files.stem(name))] += group

    visit(plain, 0)
    # A folder ann/ and an archive ann.zip may be two people.
    return dict(homes), left_aside


def _shown(name):
    """Return the name of a person in that of a file or folder, as far as there is one."""
    name = re.sub(r"\.zip$", "", name, flags=re.I)
    return re.sub(rf"^[-_ ]*{HANDED_OUT}[-_ ]+|[-_ ]+{HANDED_OUT}$", "", name, flags=re.I) or name


def _is_of_many(group, depth):
    """Return whether a folder holds the notebooks of several people."""
    direct = [file for file in group if len(file.parts) == depth + 1 and file.is_there]
    folders = {file.parts[depth] for file in group if len(file.parts) > depth + 1}
    notebooks = [file for file in direct if files.is_notebook(file.parts[-1])]
    if any(_NO_NAME.fullmatch(files.stem(file.parts[-1])) for file in notebooks):
        return False
    if len(notebooks) > 1:
        return True
    inside = [file for file in group if len(file.parts) > depth + 1]
    if notebooks:
        return any(files.is_notebook(file.parts[-1]) for file in inside)
    if len(folders) > 1:
        return True
    others = [file for file in direct if not _BESIDE.fullmatch(file.parts[-1])]
    return bool(folders) and not others and _is_of_many(inside, depth + 1)


def _shared(homes):
    """Return how many folders all homes have in common: they tell nobody apart."""
    common = 0
    if len(homes) > 1:
        shortest = min(map(len, homes))
        while common < shortest - 1 and len({home[: common + 1] for home in homes}) == 1:
            common += 1
    return common


# --- names ------------------------------------------------------------------------------------


def _name_students(persons, names):
    """Give each person a name that is short, safe as a file name and not taken."""
    taken = {name.lower() for name in names.values()}
    for person in sorted(persons, key=lambda one: one.key):
        if person.key in names:
            continue
        system, _, rest = person.key.partition(": ")
        if system == "file":
            label = "_".join(re.sub(r"\.zip$", "", part, flags=re.I) for part in rest.split("/"))
        else:
            label = "_".join(filter(None, (person.name, person.number)))
        if person.system == "Blackboard":
            label = person.number
        student = safe(label)
        if student.lower() in taken:  # some systems do not tell upper from lower case
            student = f"{student}-{_digest(person.key)}"
        taken.add(student.lower())
        names[person.key] = student


def safe(label):
    """Return a label as a file name that every system takes."""
    decomposed = unicodedata.normalize("NFKD", label)
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", decomposed.encode("ascii", "ignore").decode())
    plain = plain.strip("._-")[:80]
    # Names in other scripts must stay apart when their letters are gone.
    lost = any(ord(c) > 127 and not unicodedata.combining(c) for c in decomposed)
    return f"{plain or 'student'}-{_digest(label)}" if lost or not plain else plain


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:8]


# --- what counts ------------------------------------------------------------------------------


def _submission(person, student, due, fits):
    """Return what counts of the files of one person."""
    shown = person.name
    notebooks = [pair for pair in person.files if pair[0].read]
    about = {"name": shown, "person": roster.Person(shown, **_known(person))}
    if not notebooks:
        problem = next((file.problem for file, _ in person.files if file.problem), "")
        handed_in = [file.parts[-1] for file, _ in person.files if file.is_there]
        files_here = ", only " + ", ".join(handed_in[:5]) if handed_in else ""
        source = person.home
        single = len(person.files) == 1 and person.files[0][0].is_there
        if single and person.files[0][0].label == person.home:
            problem = problem or "it is no notebook"
        else:
            source = f"{source}/"
            problem = problem or f"there is no notebook in it{files_here}"
        return Submission(student, source, None, problem, late=_late(person, due), **about)
    chosen, earlier, flags = _latest(person, notebooks, fits)
    file, label = chosen
    unreadable = [f"{file.label}: {file.problem}" for file, _ in person.files if file.problem]
    flags += [f"also handed in, but not read: {text}" for text in unreadable[:3]]
    return Submission(
        student, file.label, file.read, "",
        late=label.late or bool(due and label.when and label.when > due),
        when=label.when, earlier=tuple(earlier), flags=tuple(flags), **about,
    )  # fmt: skip


def _late(person, due):
    return any(label.late or (due and label.when and label.when > due) for _, label in person.files)


def _known(person):
    """Return what a system's name says of a person, as a roster says it."""
    if not person.system or "anonymous" in person.system:
        return {}
    column = {"Moodle": "participant", "Canvas": "canvas"}.get(person.system, "login")
    if person.system == "Brightspace":
        return {}
    number = f"Participant {person.number}" if column == "participant" else person.number
    return {column: number}


def _latest(person, notebooks, fits):
    """Return the notebook that counts, the others, and what to say of the choice.

    The latest attempt counts, and the newest notebook of this assignment in it.
    """
    if len(notebooks) == 1:
        chosen = notebooks[0]
        flags = []
    else:
        parts = {}
        for file, _ in notebooks:
            try:
                parts[file] = fits(file.read())
            except Exception:  # damaged; it is told when it is graded
                parts[file] = 0
        most = max(parts.values())

        def rank(pair):
            file, label = pair
            of_this = 2 * parts[file] >= most  # a scratch file may hold a cell of it
            when = label.when or datetime.min
            return of_this, when, label.order, _copy(file), file.order

        ordered = sorted(notebooks, key=rank)
        chosen, flags = ordered[-1], []
        rivals = [
            file.label for file, label in ordered[:-1]
            if 2 * parts[file] >= most and label.when == chosen[1].when and label.order == 0
        ]  # fmt: skip
        if rivals:
            flags.append(f"several notebooks: {chosen[0].label} counts, not {', '.join(rivals)}")
    moments = [label.when for _, label in person.files if label.when]
    if moments and chosen[1].when and max(moments) > chosen[1].when:
        flags.append(
            "the latest attempt holds no notebook of this assignment: an earlier one counts"
        )
    return chosen, [file.label for file, _ in notebooks if file is not chosen[0]], flags


def _copy(file):
    """Return the number that a system or a browser has added to a name."""
    found = re.search(r"(?:-|\()(\d{1,3})\)?$", files.stem(file.parts[-1]))
    return int(found[1]) if found else 0
