"""The roster, in the forms in which Excel and learning-management systems write it."""

import pytest

from assignments.grader import roster
from assignments.grader.roster import Person, find, read

CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,HW 1 (123)\n"
    "    Points Possible,,,,,24\n"
    '"Müller-Lüdenscheidt, José",4711,S01,jml@example.org,Section A,\n'
)
MOODLE = (
    '\ufeffIdentifier,"Full name","Email address",Status,Grade,"Maximum Grade"\n'
    '"Participant 4712","Seán O\'Brien",sean@example.org,"Submitted for grading - ",,24.00\n'
)
BLACKBOARD = '\ufeff"Last Name"\t"First Name"\t"Username"\t"Student ID"\n"雷"\t"李"\t"lei"\t"007"\n'
BRIGHTSPACE = (
    "OrgDefinedId,Username,Last Name,First Name,Email,End-of-Line Indicator\n"
    "#0042,#alee,Lee,Ann,ann@example.org,#\n"
)


def test_lists_as_systems_write_them():
    assert read(CANVAS.encode()) == [
        Person("Müller-Lüdenscheidt, José", "4711", "", "jml@example.org", "S01", "Section A", "",
               "4711")
    ]  # fmt: skip
    assert read(MOODLE.encode()) == [
        Person("Seán O'Brien", email="sean@example.org", participant="Participant 4712")
    ]
    assert read(BLACKBOARD.encode("utf-16")) == [Person("李 雷", "007", login="lei")]
    assert read(BRIGHTSPACE.encode()) == [Person("Ann Lee", "0042", "ann@example.org", "alee")]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("first", ["", "sep=\n"])
def test_lists_as_excel_writes_them(separator, encoding, first):
    row = ["7", f'"José {separator} X"', "j@x"]
    lines = [separator.join(["ID", "Name", "E-Mail"]), separator.join(row), "", ""]
    text = first.replace("=", f"={separator}") + "\r\n".join(lines)
    assert read(text.encode(encoding)) == [Person(f"José {separator} X", "7", "j@x")]


@pytest.mark.parametrize("data", [b"", b"\n", b"a,b\n1,2\n", b"\xff\xfe"])
def test_a_list_without_people_is_refused(data):
    with pytest.raises(ValueError, match="name its columns"):
        read(data)


EVERYBODY = [
    Person("Lee, Ann", id="a1", login="alee", email="ann@example.org"),
    Person("Jo Smith", id="s1"),
    Person("Jo Smith", id="s2"),
    Person("José de la Cruz", participant="Participant 12"),
]


@pytest.mark.parametrize(
    ("system", "number", "name", "place"),
    [
        ("Canvas", "a1", "", 0),
        ("Blackboard", "ALEE", "", 0),
        ("Canvas", "99", "leeann", 0),
        ("Brightspace", "99", "Ann Lee", 0),
        ("", "", "ann", 0),  # of the address
        ("", "", "an", None),
        ("", "", "ann@example.org", 0),
        ("", "", "s2", 2),
        ("Brightspace", "99", "Jo Smith", None),  # which of the two?
        ("Moodle", "12", "somebody", 3),
        ("Moodle", "1", "Jose de la Cruz", 3),
        ("Canvas", "12", "delacruzjosé", 3),
        ("Canvas", "", "", None),
    ],
)
def test_people_are_found(system, number, name, place):
    assert find(EVERYBODY, system, number, name) == place


def test_a_name_is_not_found_in_part_of_another():
    assert roster.find([Person("Ann Leeds")], "", "", "ann lee") is None
