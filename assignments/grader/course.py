"""The nbgrader side: prepare a submission, read the marks of an executed one, keep them."""

import ast
import json
import logging
import os
import re
import shutil
import sys
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearOutput,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
)
from nbgrader.utils import setenv
from traitlets.config import Config

from assignments.grader import marks as given_marks
from assignments.grader import points

CHECK = "application/vnd.mha-lib.check+json"
INSTALLS = re.compile(r"^([ \t]*)([%!]+ *(?:pip3?|conda|mamba|uv|apt|apt-get)\b.*)$", re.MULTILINE)


class NotGradableError(Exception):
    """A submission cannot be graded; the message says why, to the instructor."""


class Course:
    """A course folder of nbgrader with one assignment of one notebook.

    It can be opened with nbgrader's own tools, such as the formgrader.

    Parameters
    ----------
    root : pathlib.Path
        Folder of the course; made if it is not there.
    assignments : pathlib.Path
        Folder with ``nbgrader_config.py`` and ``source/NAME/NAME.ipynb``.
    given : GivenMarks, optional
        The marks that people have given.

    Raises
    ------
    FileNotFoundError
        There is not exactly one notebook in ``source``.
    ValueError
        It is another one than before, or contradicts itself.
    """

    def __init__(self, root, assignments, given=None):
        sources = sorted(assignments.glob("source/*/*.ipynb"))
        if len(sources) != 1:
            raise FileNotFoundError(
                f"found {len(sources)} notebooks in {assignments / 'source'}: keep exactly one "
                "assignment there, with one notebook"
            )
        self.root = root
        self.given = given or given_marks.GivenMarks(root.with_name("marks.json"))
        self.source = sources[0]
        self.assignment, self.notebook = self.source.parent.name, self.source.stem
        self.db_url = _database(root)
        if not root.exists():
            wrong = points.contradictions(nbformat.read(self.source, as_version=4))
            if wrong:
                raise ValueError(f"{self.source} contradicts itself: {'; '.join(wrong)}")
            self._generate(assignments)
        elif self._file("source").read_bytes() != self.source.read_bytes():
            raise ValueError(
                f"{self.source} is not the assignment that {root} was made for: choose another OUT "
                "folder (what is in the present one stays)"
            )
        self._release = _by_id(nbformat.read(self._file("release"), as_version=4))

    def prepared(self, data, student):
        """Return a notebook that is ready to run, and what was put right in it.

        Parameters
        ----------
        data : bytes
            The file that was handed in.
        student : str
            The name under which it is graded.

        Returns
        -------
        notebook : NotebookNode
            With all test cells as the instructor wrote them, and without outputs.
        remarks : list of str
            What was changed that a reader should know.

        Raises
        ------
        NotGradableError
            It is no notebook, or one of another assignment.
        """
        notebook = _parsed(data)
        remarks = self._restored(notebook)
        resources = self._resources(student)
        for step in (
            ClearOutput,
            OverwriteKernelspec,
            OverwriteCells,
            CheckCellMetadata,
        ):
            notebook, resources = _quiet(step()).preprocess(notebook, resources)
        return notebook, remarks

    def has(self, student):
        """Return whether the marks of a student are here."""
        return self._file("autograded", student).exists()

    def save(self, notebook, data, student, told):
        """Keep a judged notebook and its marks.

        Parameters
        ----------
        notebook : NotebookNode
            A prepared notebook, with the outputs of its tests from `judge`.
        data : bytes
            The file that was handed in.
        student : str
            The name under which it is graded.
        told : dict
            For each test cell that ended in an error, what the student may know of it.

        Returns
        -------
        checks : dict
            For each test cell that showed the result of a check, that result.
        troubles : dict
            For each test cell that ended in an error, what to say of it.
        flags : list of str
            What a person should look at.
        """
        flags, checks, troubles = [], {}, {}
        for name, cell in _by_id(notebook).items():
            if not _is_test(cell):
                continue
            flags += _ordered(cell)
            for check in filter(None, map(_shown_check, cell.outputs)):
                checks[name] = check
            if _errors(cell):
                troubles[name] = told.get(name, "one of its tests did not pass")
        if any(text.startswith("NotRun") for text in troubles.values()):
            flags.append("the time was over before all tests had run")
        for name, check in checks.items():
            if check["verdict"] == "not your own":
                flags.append(f"{_label(name)}: {check['diagnosis']}")

        with _silence(), Gradebook(self.db_url) as gradebook:
            gradebook.update_or_create_student(student)
            gradebook.update_or_create_submission(self.assignment, student)
        self._file("submitted", student).parent.mkdir(parents=True, exist_ok=True)
        self._file("submitted", student).write_bytes(data)
        self._file("autograded", student).parent.mkdir(parents=True, exist_ok=True)
        self.note_given([student])
        with _silence():
            notebook, _ = _quiet(SaveAutoGrades()).preprocess(notebook, self._resources(student))
        flags += self._give_back(notebook, student)
        partial = self._file("autograded", student).with_suffix(".part")
        nbformat.write(notebook, partial)
        partial.replace(self._file("autograded", student))  # from now on `has` is True
        return checks, troubles, list(dict.fromkeys(flags))

    def note_given(self, students=None):
        """Keep the marks that stand in the gradebook now, with the answers that they are for.

        Parameters
        ----------
        students : list of str, optional
            Only theirs.
        """
        with _silence(), Gradebook(self.db_url) as gradebook:
            if students is None:
                students = [student.id for student in gradebook.students]
            for student in students:
                try:
                    found = gradebook.find_submission_notebook(
                        self.notebook, self.assignment, student
                    )
                    texts = self._answers(student)
                except (MissingEntry, OSError, ValueError, KeyError):
                    continue  # nothing whole is there to which a mark could belong
                comments = {comment.name: comment.manual_comment for comment in found.comments}
                for grade in found.grades:
                    if grade.name not in texts:
                        continue
                    comment = comments.pop(grade.name, None)
                    if grade.manual_score is None:
                        self.given.note(student, grade.name, texts[grade.name], None)
                    elif not grade.needs_manual_grade:
                        mark = {"score": grade.manual_score, "extra": grade.extra_credit}
                        mark["comment"] = comment
                        self.given.note(student, grade.name, texts[grade.name], mark)
                for name, comment in comments.items():
                    if name in texts and comment:
                        mark = {"score": None, "extra": None, "comment": comment}
                        self.given.note(student, name, texts[name], mark)

    def _give_back(self, notebook, student):
        """Put the marks for unchanged answers into the gradebook; say whose they were."""
        flags = []
        texts = given_marks.answers(notebook.cells)
        with _silence(), Gradebook(self.db_url) as gradebook:
            found = gradebook.find_submission_notebook(self.notebook, self.assignment, student)
            comments = {comment.name: comment for comment in found.comments}
            for grade in found.grades:
                mark, owner = self.given.given(student, grade.name, texts.get(grade.name, ""))
                if mark is not None and mark["score"] is not None:
                    grade.manual_score, grade.extra_credit = mark["score"], mark["extra"]
                    grade.needs_manual_grade = False
                    if owner != student:
                        flags.append(f"{_label(grade.name)}: marked before, as {owner}")
                elif self.given.before(student, grade.name) is not None:
                    grade.needs_manual_grade = True
            for name, comment in comments.items():
                mark, _ = self.given.given(student, name, texts.get(name, ""))
                if mark is not None and mark["comment"] and not comment.manual_comment:
                    comment.manual_comment = mark["comment"]
            gradebook.db.commit()
        return flags

    def to_read_again(self, students):
        """Return what a person has marked before the answer was changed.

        Parameters
        ----------
        students : list of str
            Names under which submissions were saved.

        Returns
        -------
        again : list of tuple
            Student, part, and the points that were given for the answer before.
        """
        again = []
        with _silence(), Gradebook(self.db_url) as gradebook:
            for student in students:
                found = gradebook.find_submission_notebook(self.notebook, self.assignment, student)
                for grade in found.grades:
                    before = self.given.before(student, grade.name)
                    if grade.needs_manual_grade and before is not None:
                        again.append((student, _label(grade.name), before["score"]))
        return again

    def _answers(self, student):
        content = json.loads(self._file("autograded", student).read_text("utf-8"))
        return given_marks.answers(content["cells"])

    def amount(self, data):
        """Return how many cells of the assignment are in the bytes of a file."""
        text = data.replace(b"\0", b"")  # in UTF-16 as well
        return sum(f'"{name}"'.encode() in text for name in self._release)

    def marks(self, students):
        """Return the marks that the gradebook holds now, those given by hand among them.

        Parameters
        ----------
        students : list of str
            Names under which submissions were saved.

        Returns
        -------
        marks : dict
            For each student a dictionary from the part's name to ``(score, max_score, open)``.
            ``open`` says that a person has yet to give the score.
        comments : dict
            For each student a dictionary from the part's name to an instructor's comment.
        """
        marks, comments = {}, {}
        with _silence(), Gradebook(self.db_url) as gradebook:
            order = [
                cell.name
                for cell in gradebook.find_notebook(self.notebook, self.assignment).source_cells
            ]
            for student in students:
                found = gradebook.find_submission_notebook(self.notebook, self.assignment, student)
                grades = sorted(found.grades, key=lambda grade: order.index(grade.name))
                marks[student] = {
                    _label(grade.name): (grade.score, grade.max_score, grade.needs_manual_grade)
                    for grade in grades
                }
                comments[student] = {
                    _label(comment.name): comment.manual_comment
                    for comment in found.comments
                    if comment.manual_comment
                }
        return marks, comments

    def written(self, students):
        """Return what students have written, and what all had, as `similar.pairs` takes it."""
        parts, given = {}, {}
        for kind in ("source", "release"):
            for name, cell in _by_id(nbformat.read(self._file(kind), as_version=4)).items():
                if cell.metadata.nbgrader.get("solution"):
                    is_code = parts[name] = cell.cell_type == "code"
                    given.setdefault(name, []).append((cell.source, is_code))
        answers = {}
        for student in students:
            try:
                texts = self._answers(student)
            except (OSError, ValueError, KeyError):
                continue
            answers[student] = {
                name: (texts[name], is_code) for name, is_code in parts.items() if name in texts
            }
        return answers, given

    def answer(self, student, part):
        """Return the text of a written answer, or an empty text if there is none."""
        cells = _by_id(nbformat.read(self._file("autograded", student), as_version=4))
        return cells[part].source if part in cells else ""

    def _generate(self, assignments):
        """Make the course with the student's version and the gradebook, as nbgrader does."""
        partial = self.root.with_name(f"{self.root.name}.part")  # whole, or not there
        shutil.rmtree(partial, ignore_errors=True)
        source = partial / "source" / self.assignment / f"{self.notebook}.ipynb"
        source.parent.mkdir(parents=True)
        shutil.copyfile(self.source, source)
        shutil.copyfile(assignments / "nbgrader_config.py", partial / "nbgrader_config.py")
        settings = Config()
        settings.CourseDirectory.root = str(partial.resolve())
        settings.CourseDirectory.db_url = _database(partial)
        settings.CourseDirectory.assignment_id = self.assignment
        generate = _quiet(
            GenerateAssignment(coursedir=CourseDirectory(config=settings), config=settings)
        )
        # nbgrader starts the program alembic, which lies beside this Python.
        beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        try:
            with _silence(), setenv(PATH=beside):
                generate.start()
        except NbGraderException:
            raise ValueError(
                f"nbgrader finds a fault in {self.source}; `make assignment` says which"
            ) from None
        partial.rename(self.root)

    def _file(self, kind, student=None):
        folder = self.root / kind if student is None else self.root / kind / student
        return folder / self.assignment / f"{self.notebook}.ipynb"

    def _resources(self, student):
        return {
            "nbgrader": {
                "student": student,
                "assignment": self.assignment,
                "notebook": self.notebook,
                "db_url": self.db_url,
            }
        }

    def _restored(self, notebook):
        """Give every cell of the assignment its own form again; say what was different."""
        remarks = []
        count = Counter(map(_grade_id, notebook.cells))
        seen = Counter()
        for cell in notebook.cells:
            name = _grade_id(cell)
            seen[name] += 1
            if name not in self._release or seen[name] < count[name]:
                cell.metadata.pop("nbgrader", None)
                continue
            original = self._release[name]
            if _is_locked(original) and cell.source.strip() != original.source.strip():
                remarks.append(f"the cell {name} was changed; it was put back")
            if cell.cell_type != original.cell_type:
                remarks.append(f"the cell {name} was no {original.cell_type} cell any more")
                _retype(cell, original.cell_type)
            cell.metadata = nbformat.from_dict(dict(original.metadata))
        if not count.keys() & self._release.keys():
            raise NotGradableError(
                "none of this assignment's cells is in it: a notebook of another assignment, or "
                "one into which the code was copied"
            )
        remarks += [
            f"the cell {name} is there {n} times; the last one counts, all of them run"
            for name, n in count.items()
            if n > 1 and name in self._release
        ]
        previous = None
        for name, original in self._release.items():
            if name not in count:
                remarks.append(f"the cell {name} was missing; it was put back as it was handed out")
                names = [_grade_id(cell) for cell in notebook.cells]
                at = names.index(previous) + 1 if previous else 0
                notebook.cells.insert(at, nbformat.from_dict(dict(original)))
            previous = name
        for cell in notebook.cells:
            if cell.cell_type == "code" and INSTALLS.search(cell.source):
                remarks.append("a line that installs packages was left out")
                cell.source = INSTALLS.sub(r"\1pass  # left out by the grader: \2", cell.source)
        for i, cell in enumerate(notebook.cells):
            cell.id = f"cell-{i}"  # lost, or there twice, where cells were copied
        return remarks


def _database(root):
    return f"sqlite:///{(root / 'gradebook.db').resolve().as_posix()}"


def _parsed(data):
    """Return the notebook in these bytes."""
    if not data.strip(b"\0 \t\r\n"):
        raise NotGradableError("the file is empty")
    for encoding in ("utf-8-sig", "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "cp1252"):
        try:
            text = data.decode(encoding)
            break
        except UnicodeDecodeError:
            continue
    else:
        text = data.decode("latin-1")  # takes any byte
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotGradableError(f"the file is no valid JSON, perhaps cut off: {error}") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            notebook = nbformat.reads(_valid_text(content), as_version=4)
        for cell in notebook.cells:
            cell.source = "".join(cell.source)
            # Tags could keep a cell from running, and need not be what they should be.
            known = cell.metadata.get("nbgrader") if isinstance(cell.metadata, dict) else None
            cell.metadata = nbformat.from_dict({} if known is None else {"nbgrader": known})
            if cell.cell_type not in {"code", "markdown", "raw"}:
                raise ValueError(f"unknown type of cell: {cell.cell_type}")
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
    except Exception as error:  # whatever the file holds, the batch goes on
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise NotGradableError(f"the file is JSON, but no notebook ({reason})") from None
    return notebook


def _valid_text(content):
    """Return JSON without the outputs, which may be of any size, and without lone surrogates."""
    if isinstance(content, dict):
        for cell in content.get("cells") or []:
            if isinstance(cell, dict) and "outputs" in cell:
                cell["outputs"] = []
    text = json.dumps(content, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()


def _ordered(cell):
    """Put the outputs of a test into an order that nbgrader reads correctly; return flags.

    nbgrader gives full marks where it sees no error before the first result.
    """
    flags = []
    name, most = _label(_grade_id(cell)), cell.metadata.nbgrader.points
    results = [output for output in cell.outputs if output.output_type == "execute_result"]
    if not results and not _errors(cell) and _ends_in_points(cell.source):
        flags.append(f"{name}: shows no points")
        _put_error(cell, "NoPoints", "the test did not come to its points")
    for shown in filter(None, map(_number, results)):
        if not 0 <= shown <= most:
            flags.append(f"{name}: shows {shown:g} of {most:g} points")
            _put_error(cell, "NoPoints", "the points are out of range")
    for output in cell.outputs:
        if output.output_type == "stream":
            output.name = "stdout"  # a warning is no reason to give no marks
    cell.outputs.sort(key=lambda output: output.output_type != "error")
    return flags


def _shown_check(output):
    """Return the result of a check that an output of a test holds, or None."""
    shown = output.get("data", {}).get(CHECK)
    try:
        names = [str(name)[:200] for name in shown["misconceptions"]]
        texts = {key: str(shown[key])[:5000] for key in ("function", "verdict", "diagnosis")}
        unnamed = [str(name)[:200] for name in shown.get("unnamed", [])]
        hints = [
            {step: str(hint[step])[:2000] for step in ("question", "idea", "place")}
            for hint in shown.get("hints", [])
        ]
        return texts | {
            "score": float(shown["score"]), "misconceptions": names, "unnamed": unnamed,
            "hints": hints,
        }  # fmt: skip
    except (KeyError, TypeError, ValueError):
        return None


def _errors(cell):
    return [output for output in cell.outputs if output.output_type == "error"]


def _ends_in_points(source):
    """Return whether a test ends in a number of points, rather than in assertions."""
    body = ast.parse(source).body
    return (
        bool(body) and isinstance(body[-1], ast.Expr) and not isinstance(body[-1].value, ast.Call)
    )


def _put_error(cell, name, text):
    cell.outputs.insert(
        0, nbformat.v4.new_output("error", ename=name, evalue=text, traceback=[f"{name}: {text}"])
    )


def _number(output):
    try:
        return float(output.data["text/plain"])
    except (KeyError, TypeError, ValueError):
        return None


def _grade_id(cell):
    graded = cell.metadata.get("nbgrader")
    name = graded.get("grade_id") if isinstance(graded, dict) else None
    return name if isinstance(name, str) else None


def _by_id(notebook):
    return {_grade_id(cell): cell for cell in notebook.cells if _grade_id(cell)}


def _is_test(cell):
    graded = cell.metadata.get("nbgrader", {})
    return cell.cell_type == "code" and graded.get("grade") and not graded.get("solution")


def _is_locked(cell):
    return cell.metadata.nbgrader.get("locked") and not cell.metadata.nbgrader.get("solution")


def _retype(cell, cell_type):
    cell.cell_type = cell_type
    for key in ("outputs", "execution_count", "attachments"):
        cell.pop(key, None)
    if cell_type == "code":
        cell.outputs, cell.execution_count = [], None


def _label(name):
    """Return the name of a part of the assignment, from that of its cell."""
    return name.removeprefix("test_")


@contextmanager
def _silence():
    """Keep the warnings of nbgrader's use of its database away from the instructor."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _quiet(configurable):
    """Keep nbgrader from writing to the terminal; what matters is in the report."""
    log = logging.getLogger("assignments.grader.nbgrader")
    log.propagate = False
    log.addHandler(logging.NullHandler())
    configurable.log = log
    return configurable
