"""Who handed in what: every person is an entry, under names as systems and people write them."""

import os
import re
import stat
import sys
import unicodedata
import zipfile
from datetime import datetime

import pytest

from assignments.grader import files, people
from assignments.grader.collect import NOTHING, collect
from assignments.grader.roster import Person

CELL = b'"grade_id": "softmax"'


def fits(data):
    return data.count(b"grade_id")


def hand_in(folder, **contents):
    """Write files, whose names are in ``contents``, into a folder."""
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def archive(path, contents, method=zipfile.ZIP_DEFLATED):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", method) as opened:
        for name, content in contents.items():
            opened.writestr(name, content)
    return path


def collected(tmp_path, submitted, **options):
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir(exist_ok=True)
    return collect(submitted, unpacked, fits=fits, **options)


def by_student(tmp_path, submitted, **options):
    return {one.student: one for one in collected(tmp_path, submitted, **options)[0]}


# --- names that systems write -----------------------------------------------------------------

NAMES = {  # name: system, person's name, number, file, late
    "leeann_4711_98765_multi_head_attention.ipynb": (
        "Canvas", "leeann", "4711", "multi_head_attention.ipynb", False),
    "leeann_LATE_4711_98765_multi_head_attention-2.ipynb": (
        "Canvas", "leeann", "4711", "multi_head_attention-2.ipynb", True),
    "obrienseán_77_88_part_1_2.ipynb": ("Canvas", "obrienseán", "77", "part_1_2.ipynb", False),
    "müllerlüdenscheidthans_7_8_a.pdf": (
        "Canvas", "müllerlüdenscheidthans", "7", "a.pdf", False),
    "李雷_12_345_作业.ipynb": ("Canvas", "李雷", "12", "作业.ipynb", False),
    "de_la_cruz_12_345_x.ipynb": ("Canvas", "de_la_cruz", "12", "x.ipynb", False),
    "leeann_4711_text.html": ("Canvas", "leeann", "4711", "", False),
    "LATE_anon_Ab1x9_77_x.ipynb": ("Canvas, anonymous", "anon_Ab1x9", "Ab1x9", "x.ipynb", True),
    "Seán O'Brien_4711_assignsubmission_file_": ("Moodle", "Seán O'Brien", "4711", "", False),
    "李 雷_4712_assignsubmission_file": ("Moodle", "李 雷", "4712", "", False),
    "José Müller-Lüdenscheidt_4713_assignsubmission_file_my_work_2.ipynb": (
        "Moodle", "José Müller-Lüdenscheidt", "4713", "my_work_2.ipynb", False),
    "Ann_Lee_4714_assignsubmission_onlinetext_onlinetext.html": (
        "Moodle", "Ann_Lee", "4714", "onlinetext.html", False),
    "Homework 1_alee_attempt_2026-12-01-10-20-30_my_work.ipynb": (
        "Blackboard", "", "alee", "my_work.ipynb", False),
    "Homework 1_alee_attempt_2026-12-01-10-20-30.txt": ("Blackboard", "", "alee", "", False),
    "12345-67890 - Ann Lee - Dec 1, 2026 1020 PM": ("Brightspace", "Ann Lee", "12345", "", False),
    "12345-67890 - 李 雷 - 05 March 2026 612 AM - my - work.ipynb": (
        "Brightspace", "李 雷", "12345", "my - work.ipynb", False),
    "O'Brien, Seán(sobrien)": ("Sakai", "O'Brien, Seán", "sobrien", "", False),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_as_the_systems_write_them(name):
    label = people.read(name)
    assert (label.system, label.name, label.id, label.file, label.late) == NAMES[name]
    assert people.read(unicodedata.normalize("NFD", name)) == label  # as macOS keeps names


@pytest.mark.parametrize(
    "name",
    [
        "multi_head_attention.ipynb", "multi_head_attention (1).ipynb", "ann_lee.ipynb",
        "week_01.ipynb", "Ann_Lee_12_34_x.ipynb", "2026-12-01 - Ann.ipynb", "Ann (group 1)",
        "lab 3 - Ann Lee - final.ipynb", "index.html", "ann_1_2.ipynb",
    ],
)  # fmt: skip
def test_other_names_are_no_systems(name):
    assert people.read(name) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-12-01-10-20-30", datetime(2026, 12, 1, 10, 20, 30)),
        ("2026-12-01 23:59", datetime(2026, 12, 1, 23, 59)),
        ("2026-12-01", datetime(2026, 12, 1)),
        ("Dec 1, 2026 1020 PM", datetime(2026, 12, 1, 22, 20)),
        ("Dec 1, 2026 110 PM", datetime(2026, 12, 1, 13, 10)),
        ("Dec 1, 2026 1205 AM", datetime(2026, 12, 1, 0, 5)),
        ("05 March 2026 612 PM", datetime(2026, 3, 5, 18, 12)),
        ("5 March 2026 1812", datetime(2026, 3, 5, 18, 12)),
        ("1 déc. 2026 1812", datetime(2026, 12, 1, 18, 12)),
        ("Dec 41, 2026 1020 PM", None),
        ("soon", None),
        ("", None),
    ],
)
def test_moments(text, expected):
    found = people.moment(text)
    if text.startswith("1 déc"):  # no English name of a month
        assert found is None
    else:
        assert found == expected


def test_a_receipt_names_the_person():
    text = "Name: José Müller (jmueller)\nAssignment: Homework 1\nDate Submitted: Tuesday"
    assert people.receipt(text) == ("José Müller", "jmueller")
    assert people.receipt("nothing") == ("", "")


def test_a_name_is_the_same_however_it_is_written():
    ways = ["José Müller-Lee", "muller lee, jose", "MÜLLER-LEE José", "Jose\u0301 Müller Lee"]
    assert len(set(map(people.plain, ways))) == 1
    assert people.plain("Seán O\u2019Brien") == people.plain("sean o'brien")
    assert people.plain("李 雷") != people.plain("王 雷")


# --- archives of systems, flat and in folders ---------------------------------------------------

CANVAS = {
    "leeann_LATE_4711_98765_multi_head_attention-1.ipynb": CELL,
    "李雷_12_98766_multi_head_attention.ipynb": CELL,
    "smithjo_13_98767_essay.pdf": b"%PDF",
    "smithjo_14_98768_multi_head_attention.ipynb": CELL,
    "obrienseán_15_98769_multi_head_attention.ipynb.txt": CELL,
    "roeeve_16_98770_multi_head_attention.7z": b"7z",
    "poejim_17_text.html": b"<p>my answer</p>",
}
MOODLE = {
    "Ann Lee_4711_assignsubmission_file_/multi_head_attention.ipynb": CELL,
    "李 雷_4712_assignsubmission_file_/work.ipynb": CELL,
    "Jo Smith_4713_assignsubmission_file_/essay.pdf": b"%PDF",
    "Jo Smith_4714_assignsubmission_file_/week/multi_head_attention.ipynb": CELL,
    "Jo Smith_4714_assignsubmission_onlinetext_/onlinetext.html": b"",
}
BLACKBOARD = {
    "Homework 1_alee_attempt_2026-12-01-10-20-30_work.ipynb": CELL,
    "Homework 1_alee_attempt_2026-12-01-10-20-30.txt": b"Name: Ann Lee (alee)\n",
    "Homework 1_alee_attempt_2026-12-02-08-00-00_again.ipynb": CELL + b"2",
    "Homework 1_alee_attempt_2026-12-02-08-00-00.txt": b"Name: Ann Lee (alee)\n",
    "Homework 1_j_smith_attempt_2026-12-01-09-00-00_work.ipynb": CELL,
    "Homework 1_k_smith_attempt_2026-12-01-09-00-00_work.ipynb": CELL,
    "Homework 1_evroe_attempt_2026-12-01-09-00-00.txt": b"Name: Eve Roe (evroe)\n",
}
BRIGHTSPACE = {
    "index.html": b"<html>",
    "101-67890 - Ann Lee - Dec 1, 2026 1020 AM/work.ipynb": CELL,
    "101-67890 - Ann Lee - Dec 1, 2026 1020 PM/other name.ipynb": CELL + b"2",
    "102-67890 - Müller-Lüdenscheidt José - Nov 30, 2026 905 PM/work.ipynb": CELL,
    "103-67890 - Jo Smith - Dec 1, 2026 900 AM/essay.docx": b"",
    "104-67890 - Jo Smith - Dec 1, 2026 900 AM/work.ipynb": CELL,
}


def laid(tmp_path, contents, form):
    """Return an archive or a folder with these files."""
    if form == "zip":
        return archive(tmp_path / "in.zip", contents)
    if form == "wrapped":
        return archive(tmp_path / "in.zip", {f"Submissions 1/{k}": v for k, v in contents.items()})
    hand_in(tmp_path / "in", **contents)
    return tmp_path / "in"


@pytest.mark.parametrize("form", ["zip", "folder", "wrapped"])
def test_canvas(tmp_path, form):
    found = by_student(tmp_path, laid(tmp_path, CANVAS, form))
    assert len(found) == 7
    assert sum(one.read is not None for one in found.values()) == 4
    assert found["leeann_4711"].late
    assert [one.late for one in found.values()].count(True) == 1
    assert found["smithjo_14"].read
    assert found["smithjo_13"].problem == "it is no notebook"
    assert "zip" in found["roeeve_16"].problem
    assert found["poejim_17"].problem == "it is no notebook"
    assert {one.name for one in found.values()} >= {"李雷", "obrienseán"}
    assert found["leeann_4711"].person.canvas == "4711"


@pytest.mark.parametrize("form", ["zip", "folder", "wrapped", "flat"])
def test_moodle(tmp_path, form):
    contents = MOODLE
    if form == "flat":
        contents = {k.replace("week/", "").replace("/", ""): v for k, v in MOODLE.items()}
    found = by_student(tmp_path, laid(tmp_path, contents, form))
    assert set(found) >= {"Ann_Lee_4711", "Jo_Smith_4713", "Jo_Smith_4714"}
    assert len(found) == 4
    assert [one.name for one in found.values() if not one.read] == ["Jo Smith"]
    assert found["Ann_Lee_4711"].person.participant == "Participant 4711"


@pytest.mark.parametrize("form", ["zip", "folder", "wrapped"])
def test_blackboard(tmp_path, form):
    due = datetime(2026, 12, 1, 23, 59)
    found = by_student(tmp_path, laid(tmp_path, BLACKBOARD, form), due=due)
    assert len(found) == 4
    ann = found["alee"]
    assert ann.read() == CELL + b"2"  # the latest counts
    assert ann.late
    assert ann.when == datetime(2026, 12, 2, 8)
    assert [name.rpartition("_")[2] for name in ann.earlier] == ["work.ipynb"]
    assert {"alee", "j_smith", "k_smith", "evroe"} == set(found)
    assert {one.name for one in found.values()} == {"Ann Lee", "j_smith", "k_smith", "Eve Roe"}
    assert sum(one.read is not None for one in found.values()) == 3
    assert "only" in found["evroe"].problem or "no notebook" in found["evroe"].problem


@pytest.mark.parametrize("form", ["zip", "folder", "wrapped", "flat"])
def test_brightspace(tmp_path, form):
    contents = BRIGHTSPACE
    if form == "flat":
        contents = {k.replace("/", " - "): v for k, v in BRIGHTSPACE.items()}
    found, left_aside, _ = collected(tmp_path, laid(tmp_path, contents, form))
    names = [one.name for one in found]
    assert sorted(names) == ["Ann Lee", "Jo Smith", "Jo Smith", "Müller-Lüdenscheidt José"]
    ann = next(one for one in found if one.name == "Ann Lee")
    assert ann.read() == CELL + b"2"
    assert len(ann.earlier) == 1
    assert [one.name for one in found if not one.read] == ["Jo Smith"]
    assert [name.rpartition("/")[2] for name in left_aside] == ["index.html"]


def test_a_pdf_in_the_latest_attempt_does_not_lose_the_notebook_before(tmp_path):
    contents = {
        "HW_alee_attempt_2026-12-01-10-20-30_work.ipynb": CELL,
        "HW_alee_attempt_2026-12-02-10-20-30_work.pdf": b"",
    }
    one = by_student(tmp_path, archive(tmp_path / "in.zip", contents))["alee"]
    assert one.read() == CELL
    assert any("an earlier one counts" in flag for flag in one.flags)


def test_a_new_file_name_is_no_new_person(tmp_path):
    first = archive(tmp_path / "a.zip", {"leeann_4711_98765_work.ipynb": CELL})
    later = archive(tmp_path / "b.zip", {"leeann_LATE_4711_99999_final-1.ipynb": CELL})
    _, _, names = collected(tmp_path, first)
    assert [one.student for one in collected(tmp_path, later, known=names)[0]] == ["leeann_4711"]


def test_numbers_that_canvas_would_not_give_make_no_person(tmp_path):
    """Else everybody in lab 1 would be one person."""
    hand_in(tmp_path / "in", **{"lab_1_2_ann.ipynb": CELL, "lab_1_2_bob.ipynb": CELL})
    assert set(by_student(tmp_path, tmp_path / "in")) == {"lab_1_2_ann", "lab_1_2_bob"}


def test_a_students_own_numbers_are_not_canvas(tmp_path):
    hand_in(
        tmp_path / "in",
        **{"ann/part_1_2_x.ipynb": CELL, "bob/part_1_2_x.ipynb": CELL, "eve/lab_3_4_x.ipynb": CELL},
    )
    assert set(by_student(tmp_path, tmp_path / "in")) == {"ann", "bob", "eve"}


def test_logins_of_blackboard_with_a_line_in_them(tmp_path):
    contents = {
        f"HW 1_{login}_attempt_2026-12-01-10-20-30_work.ipynb": CELL
        for login in ("s_ann", "s_bob", "s_eve")
    }
    everybody = [Person("Ann", login="s_ann"), Person("Bob", login="s_bob"), Person("Ann Lee")]
    submitted = archive(tmp_path / "in.zip", contents)
    found, _, _ = collected(tmp_path, submitted, everybody=everybody)
    assert [one.name for one in found if not one.flags] == ["Ann", "Bob", "Ann Lee"]
    assert len({one.student for one in found}) == 4


def test_resubmissions_of_canvas_and_a_helper_beside(tmp_path):
    contents = {
        "leeann_4711_5_work.ipynb": CELL,
        "leeann_4711_7_work-1.ipynb": CELL + b"later",
        "leeann_4711_9_helper.ipynb": b"{}",
    }
    one = by_student(tmp_path, archive(tmp_path / "in.zip", contents))["leeann_4711"]
    assert one.read() == CELL + b"later"
    assert len(one.earlier) == 2


# --- names of no system -----------------------------------------------------------------------


def test_any_file_naming(tmp_path):
    names = [
        "week 3/Zoë Ångström_17_file/notebook.ipynb",
        "week 3/李雷/notebook.ipynb",
        "week 3/王/notebook.ipynb",
        "week 3/two/a.ipynb",
        "week 3/two/b.ipynb",
        "week 3/=1+1.IPYNB",
        "week 3/two_a.ipynb",
        "week 3/.hidden.ipynb",
        "week 3/x/.ipynb_checkpoints/x-checkpoint.ipynb",
        "week 3/x/x.ipynb",
        "__MACOSX/x.ipynb",
    ]
    hand_in(tmp_path / "in", **dict.fromkeys(names, CELL))
    found = {one.source: one.student for one in collected(tmp_path, tmp_path / "in")[0]}
    assert len(found) == len(set(found.values())) == 8
    assert found["week 3/Zoë Ångström_17_file/notebook.ipynb"] == "Zoe_Angstrom_17_file"
    assert found["week 3/two/b.ipynb"] == "two_b"
    assert found["week 3/x/x.ipynb"] == "x"
    assert {"two_a"} < {re.sub("-[0-9a-f]{8}$", "", name) for name in found.values()}
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) for name in found.values())


def test_several_notebooks_of_one_person(tmp_path):
    hand_in(
        tmp_path / "in",
        **{
            "ann/multi_head_attention.ipynb": CELL,
            "ann/scratch.ipynb": b"{}",
            "bob/multi_head_attention.ipynb": CELL,
            "bob/multi_head_attention-Copy1.ipynb": CELL + b"2",
            "eve/deep/er/x.ipynb": CELL,
        },
    )
    os.utime(tmp_path / "in/bob/multi_head_attention.ipynb", (1, 1))
    found = by_student(tmp_path, tmp_path / "in")
    assert set(found) == {"ann", "bob", "eve"}
    assert found["ann"].read() == CELL
    assert found["ann"].flags == ()
    assert found["bob"].read() == CELL + b"2"  # the newer one
    assert any("several notebooks" in flag for flag in found["bob"].flags)


LACKING = {  # folder or file: what is said of it
    "pdf/essay.pdf": "no notebook in it, only essay.pdf",
    "py/solution.py": "no notebook in it, only solution.py",
    "checkpoints/.ipynb_checkpoints/x-checkpoint.ipynb": "no notebook in it",
    "store/.DS_Store": "no notebook in it",
    "hidden/.work.ipynb": "no notebook in it",
    "mac/__MACOSX/._x.ipynb": "no notebook in it",
    "seven/work.7z": "only zip archives can be opened",
    "loose.pdf": "it is no notebook",
    "loose1.rar": "only zip archives can be opened",
    "loose2.tar.gz": "only zip archives can be opened",
    "loose3.html": "it is no notebook",
    "loose4": "it is no notebook",
    "broken.zip": "cannot be opened",
}


@pytest.mark.parametrize("form", ["folder", "zip", "zip in zip"])
def test_everybody_is_an_entry(tmp_path, form):
    contents = dict.fromkeys(LACKING, b"x") | {"good/x.ipynb": CELL, "ann.ipynb.json": CELL}
    contents["names.csv"] = b""
    if form == "folder":
        hand_in(tmp_path / "in", **contents)
        (tmp_path / "in" / "empty").mkdir()
        submitted = tmp_path / "in"
    else:
        submitted = archive(tmp_path / "in.zip", contents | {"empty/": b""})
        if form == "zip in zip":
            inner = submitted.read_bytes()
            submitted = archive(tmp_path / "outer.zip", {"all.zip": inner})
    found, left_aside, _ = collected(tmp_path, submitted)
    said = {one.source.removeprefix("all.zip/").rstrip("/"): one.problem for one in found}
    assert said.pop("good/x.ipynb") == said.pop("ann.ipynb.json") == ""
    assert said.pop("empty") == "there is no notebook in it"
    expected = {
        name if "/" not in name else name.partition("/")[0]: text for name, text in LACKING.items()
    }
    assert set(said) == set(expected)
    for name, text in expected.items():
        assert text in said[name], name
    assert [name.rpartition("/")[2] for name in left_aside] == ["names.csv"]


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_archives_in_archives(tmp_path, method):
    inner = archive(tmp_path / "ann.zip", {"work.ipynb": "inner"}, method).read_bytes()
    names = {
        "ann.zip": inner,
        "../../escaped.ipynb": "escaped",
        "bob\\work.ipynb": "bob",
        "/abs/work.ipynb": "absolute",
    }
    found = collected(tmp_path, archive(tmp_path / "class.zip", names, method))[0]
    texts = {one.student: one.read().decode() for one in found}
    assert texts == {"ann": "inner", "escaped": "escaped", "bob": "bob", "abs": "absolute"}
    assert not list(tmp_path.parent.glob("escaped*"))


def test_what_is_too_large_is_one_persons_trouble(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST_FILE", 1000)
    monkeypatch.setattr(files, "MOST_IN_ARCHIVES", 1500)
    bomb = archive(tmp_path / "b.zip", {"x.ipynb": b"0" * 2000}).read_bytes()
    many = archive(tmp_path / "m.zip", {f"{i}.zip": os.urandom(600) for i in range(5)}).read_bytes()
    monkeypatch.setattr(files, "LARGEST_FILE", 5000)
    submitted = archive(
        tmp_path / "class.zip", {"bob.zip": bomb, "eve.zip": many, "ann/x.ipynb": CELL}
    )
    monkeypatch.setattr(files, "LARGEST_FILE", 4500)
    found = by_student(tmp_path, submitted)
    assert found["ann"].read
    monkeypatch.setattr(files, "LARGEST_FILE", 1000)
    found = by_student(tmp_path, archive(tmp_path / "c.zip", {"bob.zip": bomb, "a.ipynb": CELL}))
    assert "MB, more than" in found["bob"].problem
    assert found["a"].read


def test_an_archive_in_itself_without_end(tmp_path):
    data = archive(tmp_path / "0.zip", {"x.ipynb": CELL}).read_bytes()
    for i in range(40):
        data = archive(tmp_path / f"{i}.zip", {"again.zip": data}).read_bytes()
    hand_in(tmp_path / "in", **{"bob.zip": data, "ann.ipynb": CELL})
    found = by_student(tmp_path, tmp_path / "in")
    assert "folders in folders" in found["bob"].problem
    assert found["ann"].read


def test_locked_and_damaged_members(tmp_path):
    path = archive(tmp_path / "in" / "bad.zip", {"x.ipynb": "a" * 10_000})
    data = bytearray(path.read_bytes())
    data[45:50] = b"\xff" * 5  # inside the compressed text
    path.write_bytes(data)
    locked = bytearray(archive(tmp_path / "in" / "locked.zip", {"x.ipynb": CELL}).read_bytes())
    locked[6] |= 1
    locked[locked.rindex(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "in" / "locked.zip").write_bytes(locked)
    hand_in(tmp_path / "in", **{"good.ipynb": CELL})
    found = by_student(tmp_path, tmp_path / "in")
    assert "password" in found["locked"].problem
    with pytest.raises(Exception, match=r"."):  # told when it is graded
        found["bad"].read()
    assert found["good"].read


def test_names_in_archives_of_macos(tmp_path):
    """They are UTF-8 without saying so."""
    path = archive(tmp_path / "in.zip", {"José/x.ipynb": CELL, "王/x.ipynb": CELL})
    data = path.read_bytes()
    for mark, at in ((b"PK\x03\x04", 7), (b"PK\x01\x02", 9)):
        start = 0
        while (start := data.find(mark, start)) >= 0:
            data = data[: start + at] + bytes([data[start + at] & ~8]) + data[start + at + 1 :]
            start += 4
    path.write_bytes(data)
    assert {one.name for one in collected(tmp_path, path)[0]} == {"José", "王"}


@pytest.mark.skipif(sys.platform != "linux", reason="makes links, pipes and bytes of Linux")
def test_links_pipes_and_names_that_are_no_text(tmp_path):
    folder = tmp_path / "in"
    hand_in(folder, **{"ann.ipynb": CELL})
    (tmp_path / "secret.ipynb").write_bytes(b"secret")
    (folder / "bob.ipynb").symlink_to(tmp_path / "secret.ipynb")
    (folder / "eve.ipynb").symlink_to(folder / "gone.ipynb")
    (folder / "dan").symlink_to(tmp_path)
    (folder / "loop").symlink_to(folder)
    (folder / "same.ipynb").symlink_to(folder / "ann.ipynb")
    os.mkfifo(folder / "pipe.ipynb")
    (folder / os.fsdecode(b"ren\xe9.ipynb")).write_bytes(CELL)
    (folder / ("x" * 240 + ".ipynb")).write_bytes(CELL)
    found = by_student(tmp_path, folder)
    assert len(found) == 9
    for name in ("bob", "eve", "dan", "loop"):
        assert "link" in found[name].problem, name
    assert "pipe" in found["pipe"].problem
    assert found["same"].read() == CELL
    assert all(len(name) <= 90 for name in found)
    for one in found.values():
        one.source.encode("utf-8")


@pytest.mark.skipif(sys.platform == "win32", reason="paths are shorter there")
def test_1500_nested_folders(tmp_path):
    hand_in(tmp_path / "in", **{"ann.ipynb": CELL, "bob/work.ipynb": CELL})
    before = os.getcwd()  # noqa: PTH109
    try:
        os.chdir(tmp_path / "in" / "bob")
        for _ in range(1500):
            os.mkdir("d")  # noqa: PTH102
            os.chdir("d")
    finally:
        os.chdir(before)
    found = by_student(tmp_path, tmp_path / "in")
    assert set(found) == {"ann", "bob"}
    assert found["bob"].read() == CELL
    os.system(f"rm -rf {tmp_path / 'in'}")  # noqa: S605 - pytest's own cleaning is not so deep


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_a_folder_without_rights(tmp_path):
    hand_in(tmp_path / "in", **{"ann.ipynb": CELL, "bob/work.ipynb": CELL})
    (tmp_path / "in" / "bob").chmod(0)
    try:
        found = by_student(tmp_path, tmp_path / "in")
        assert "cannot be read" in found["bob"].problem
    finally:
        (tmp_path / "in" / "bob").chmod(stat.S_IRWXU)


def test_a_folder_that_cannot_be_listed(tmp_path, monkeypatch):
    """As the test above, for root."""
    hand_in(tmp_path / "in", **{"ann.ipynb": CELL, "bob/work.ipynb": CELL})
    scandir = os.scandir

    def refuses(path):
        if str(path).endswith("bob"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuses)
    found = by_student(tmp_path, tmp_path / "in")
    assert "it cannot be read: Permission denied" in found["bob"].problem
    assert found["ann"].read


def test_a_name_once_given_stays(tmp_path):
    folder = tmp_path / "in"
    hand_in(folder, **{"week/ann.ipynb": CELL})
    _, _, names = collected(tmp_path, folder)
    hand_in(folder, **{"Week/x.ipynb": CELL, "week2/x.ipynb": CELL})
    found, _, names = collected(tmp_path, folder, known=names)
    later = {one.source: one.student for one in found}
    assert later["week/ann.ipynb"] == "week"
    assert len(set(later.values())) == 3
    (folder / "week" / "ann.ipynb").rename(folder / "week" / "bob.ipynb")
    found, _, _ = collected(tmp_path, folder, known=names)
    assert {one.source: one.student for one in found}["week/bob.ipynb"] == "week"


def test_the_same_name_in_another_normal_form_is_the_same_person(tmp_path):
    _, _, names = collected(tmp_path, archive(tmp_path / "a.zip", {
        unicodedata.normalize("NFC", "José/x.ipynb"): CELL, "b/x.ipynb": CELL}))  # fmt: skip
    again = archive(tmp_path / "b.zip", {
        unicodedata.normalize("NFD", "José/y.ipynb"): CELL, "b/x.ipynb": CELL})  # fmt: skip
    found, _, later = collected(tmp_path, again, known=names)
    assert later == names
    assert {one.student for one in found} == {"Jose", "b"}


def test_a_folder_and_an_archive_of_one_name(tmp_path):
    hand_in(tmp_path / "in", **{"ann/x.ipynb": CELL})
    archive(tmp_path / "in" / "ann.zip", {"x.ipynb": CELL})
    assert len(by_student(tmp_path, tmp_path / "in")) == 2


# --- the roster -------------------------------------------------------------------------------


def test_the_roster_names_who_is_missing_and_who_is_unknown(tmp_path):
    everybody = [
        Person("Lee, Ann", id="a1", login="alee", email="ann@example.org", canvas="4711"),
        Person("Jo Smith", id="s1"),
        Person("Jo Smith", id="s2"),
        Person("李 雷", id="l1"),
        Person("Gone, Away", id="g1"),
        Person("Cruz, María", login="mcruz"),
    ]
    submitted = archive(tmp_path / "in.zip", {
        "leeann_4711_98765_work.ipynb": CELL, "smithjo_13_98766_work.ipynb": CELL,
        "李雷_12_98767_work.ipynb": CELL, "nobody_99_98768_work.ipynb": CELL,
        "mcruz.ipynb": CELL,
    })  # fmt: skip
    found, _, _ = collected(tmp_path, submitted, everybody=everybody)
    ids = {one.student: one.person.id or one.person.login for one in found if not one.is_missing}
    assert ids["leeann_4711"] == "a1"
    assert ids["mcruz"] == "mcruz"
    assert next(one for one in found if one.name == "李 雷").person.id == "l1"
    unknown = {one.student for one in found if "is not in the roster" in one.flags}
    assert unknown == {"smithjo_13", "nobody_99"}  # two people are called Jo Smith
    missing = [one for one in found if one.is_missing]
    assert [one.person.id for one in missing] == ["s1", "s2", "g1"]
    assert {one.problem for one in missing} == {NOTHING}
    assert len({one.student for one in found}) == len(found)
