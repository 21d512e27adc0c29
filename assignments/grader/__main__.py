"""The command: grade a folder of notebooks."""

import argparse
import hashlib
import json
import multiprocessing
import os
import secrets
import signal
import sys
import tempfile
import time
import traceback
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from multiprocessing.connection import wait
from pathlib import Path

import nbformat
import psutil
from tqdm import tqdm

import mha_lib
from assignments.grader import collect, course, execute, judge, marks, people, report, roster

ASSIGNMENTS = Path(__file__).resolve().parent.parent
PATIENCE = 60  # seconds, beyond its limit, in which a notebook's processes must have ended
MOST_STARTS = 3  # of a notebook during which the grader itself was ended by force


class GraderDamagedError(Exception):
    """The grader's own files are not what they were at the start."""


def main(arguments=None):
    """Grade what the command line names; return the exit code."""
    options = _options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up after that as well
    try:
        with _alone(options.out, options.submissions):
            return grade(
                options.submissions, options.out, options.jobs, options.limits,
                everybody=options.roster, due=options.due, address=options.book,
                assignments=options.assignment,
            )  # fmt: skip
    except (OSError, ValueError, GraderDamagedError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped.  What is graded is kept; the same command goes on.", file=sys.stderr)
        return 2
    except Exception as error:  # no submission should; the exit code must not say 1
        traceback.print_exc()
        print(f"error: {_first_line(error)}.  What is graded is kept.", file=sys.stderr)
        return 2


def grade(
    submissions, out, jobs, limits, everybody=(), due=None, address="", assignments=ASSIGNMENTS
):
    """Grade all notebooks that are new or changed, and write the report.

    Parameters
    ----------
    submissions : pathlib.Path
        Folder or archive with notebooks; nothing in it is changed.
    out : pathlib.Path
        Folder for all results.
    jobs : int
        How many notebooks run side by side.
    limits : execute.Limits
        What each may use.
    everybody : list of roster.Person, optional
        Who should have handed in.
    due : datetime.datetime, optional
        What was handed in later is called late.
    address : str, optional
        Where the book is, for links in the feedback.
    assignments : pathlib.Path, optional
        Folder of the assignment, such as `make assignment OUT=...` writes.

    Returns
    -------
    code : int
        0 if every submission was graded, 1 if not.

    Raises
    ------
    GraderDamagedError
        A submission changed the files of the grader or of `mha_lib`, in this run or before.
    KeyboardInterrupt
        It was stopped; what was graded before is in the report.
    """
    results = out / "results"
    results.mkdir(parents=True, exist_ok=True)
    tools = _tools_print()
    _refuse_if_damaged(out, tools)
    given = marks.GivenMarks(out / "marks.json")
    book = course.Course(out / "course", assignments, given)
    with tempfile.TemporaryDirectory(prefix="collected-", ignore_cleanup_errors=True) as unpacked:
        found, left_aside, names = collect.collect(
            submissions, Path(unpacked), _read(out / "students.json"), everybody, due, book.amount
        )
        if not found:
            raise FileNotFoundError(f"there is no notebook in {submissions}")
        _write(out / "students.json", names)
        given.present = {one.student for one in found}
        book.note_given()
        release = f"{tools} {book.source.read_bytes().hex()} {asdict(limits)}"
        done, waiting = {}, []
        for submission in found:
            mark = _mark(release, submission)
            earlier = _read(results / f"{submission.student}.json")
            if not submission.is_missing and _is_done(earlier, mark, book, submission.student):
                done[submission.student] = earlier
            else:
                waiting.append((submission, mark))
        n_before, stopped, damage = len(done), None, None
        to_run = [pair for pair in waiting if not pair[0].is_missing]
        handed_in = sum(not one.is_missing for one in found)
        with tqdm(total=handed_in, initial=n_before, unit="notebook", desc="grading") as bar:
            try:
                with closing(_run_all(to_run, book, jobs, limits, _Started(out))) as ended:
                    for result in ended:
                        if _tools_print() != tools:
                            _write(out / "damaged.json", tools)
                            damage = result["student"]
                            break
                        _write(results / f"{result['student']}.json", result)
                        done[result["student"]] = result
                        bar.update()
            except (Exception, KeyboardInterrupt) as error:  # told when the report is written
                stopped = error
    for submission, mark in waiting:  # nobody vanishes
        if submission.student not in done:
            why = submission.problem or "the run had to stop before"
            done[submission.student] = _result(submission, mark, why)
    ordered = [done[one.student] | _about(one, done[one.student]) for one in found]
    graded = [result["student"] for result in ordered if not result["problem"]]
    scores, comments = book.marks(graded)
    again = book.to_read_again(graded)
    lost = report.write(out, book, ordered, scores, comments, again, address)
    print(report.summary(out, ordered, scores, n_before, left_aside, again))
    lacks = sorted({result["lack"] for result in ordered if result.get("lack")})
    if lacks:
        print(f"\nThis system does not seal the students' code off ({'; '.join(lacks)}).")
        print("Python's own audit stood in the way, which a student can undo: use a container.")
    if damage:
        _refuse_if_damaged(out, _tools_print(), damage)
    if stopped is not None:
        raise stopped
    if lost:
        raise OSError(f"could not be written, all else was: {'; '.join(lost)}")
    return 0 if all(not one["problem"] or one["missing"] for one in ordered) else 1


def _mark(release, submission):
    """Return a fingerprint of all that the result of a submission depends on."""
    digest = hashlib.sha256(release.encode() + submission.problem.encode())
    if submission.read:
        try:
            digest.update(submission.read())
        except Exception as error:  # told when it is prepared
            digest.update(repr(error).encode())
    return digest.hexdigest()


def _about(submission, result):
    """Return what is known of a person now, whenever the notebook was graded."""
    return {
        "source": submission.source,
        "name": submission.name,
        "person": asdict(submission.person),
        "late": submission.late,
        "when": submission.when.isoformat(" ") if submission.when else "",
        "earlier": list(submission.earlier),
        "missing": submission.is_missing,
        "flags": list(dict.fromkeys([*submission.flags, *result["flags"]])),
    }


class _Started:
    """Remembers on disk which notebooks run, for the case that the grader is ended by force."""

    def __init__(self, out):
        self.path = out / "running.json"
        self.before = _read(self.path) or {}  # how often that happened while one ran
        self.now = dict(self.before)

    def allows(self, student):
        """Note that a notebook starts, or return False if the grader ended too often with it."""
        starts = self.before.get(student, 0) + 1
        if starts > MOST_STARTS:
            return False
        self.now[student] = starts
        _write(self.path, self.now)
        return True

    def ended(self, student):
        """Note that the grader outlived a notebook."""
        if self.now.pop(student, None):
            _write(self.path, self.now)


def _refuse_if_damaged(out, tools, student="an earlier submission"):
    """Raise if the grader's code is not what it was when it was last known to be whole."""
    whole = _read(out / "damaged.json")
    if whole is None:
        return
    if tools == whole:
        (out / "damaged.json").unlink()
        return
    raise GraderDamagedError(
        f"the files of the grader or of mha_lib changed while {student} ran, or another submission "
        "beside it: restore them (git status shows which), look into that submission, and grade "
        "in a container"
    )


def _is_done(earlier, mark, book, student):
    """Return whether a result of an earlier run still holds."""
    expected = _result(collect.Submission("", "", None), "").keys()
    if not isinstance(earlier, dict) or not expected <= earlier.keys() or earlier["mark"] != mark:
        return False
    return not earlier["may_pass"] if earlier["problem"] else book.has(student)


def _result(submission, mark, problem=""):
    """Return what there is to say of a submission that has not run."""
    return {
        "student": submission.student,
        "source": submission.source,
        "mark": mark,
        "problem": problem or submission.problem,
        "may_pass": False,  # whether the problem may be gone next time
        "remarks": [],
        "checks": {},
        "troubles": {},
        "flags": [],
        "lack": "",  # what the system cannot refuse the student's code
        "seconds": 0.0,
    }


def _run_all(waiting, book, jobs, limits, started):
    """Run what waits, some side by side, and yield a result for each as it ends."""
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(["assignments.grader.judge"])
    waiting = waiting[::-1]
    running = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                submission, mark = waiting.pop()
                result = _result(submission, mark)
                if not result["problem"]:
                    try:
                        data = submission.read()
                        notebook, result["remarks"] = book.prepared(data, submission.student)
                    except course.NotGradableError as error:
                        result["problem"] = str(error)
                    except Exception as error:  # one file must not stop the others
                        result["problem"] = f"it cannot be read: {_first_line(error)}"
                if not result["problem"] and not started.allows(submission.student):
                    result["problem"] = (
                        f"the grader was ended {MOST_STARTS} times while it ran: look into it, and "
                        f"delete {started.path} to try again"
                    )
                    result["may_pass"] = True
                if result["problem"]:
                    yield result
                    continue
                run = _Run(context, notebook, limits, result, data)
                running[run.connection] = run
            ended = wait(list(running), timeout=1)
            for connection, run in list(running.items()):
                if connection in ended or run.is_late:
                    del running[connection]
                    result = run.finished(book)
                    started.ended(result["student"])
                    yield result
    finally:
        for run in running.values():
            run.end()
            run.clean()
            started.ended(run.result["student"])


class _Run:
    """One notebook while it runs."""

    def __init__(self, context, notebook, limits, result, data):
        self.result, self.data, self.limits = result, data, limits
        # Nothing but the student's own process writes here; all else goes through the pipe.
        self.scratch = os.path.realpath(tempfile.mkdtemp(prefix="scratch-"))
        self.mark = secrets.token_hex()
        self.connection, theirs = context.Pipe(duplex=False)
        self.process = context.Process(
            target=judge.run_notebook,
            args=(json.loads(json.dumps(notebook)), self.scratch, limits, self.mark, theirs),
        )
        self.began = time.monotonic()
        self.process.start()
        theirs.close()

    @property
    def is_late(self):
        return time.monotonic() - self.began > self.limits.seconds + PATIENCE

    def finished(self, book):
        """Return what came of it."""
        late = self.is_late and not self.connection.poll()
        result = self.result
        try:
            judged = self._received()
            self.end()
            if judged is None:
                result["problem"] = (
                    f"it did not end within {self.limits.seconds + PATIENCE:g} seconds"
                    if late
                    else f"the process that ran it ended with code {self.process.exitcode}"
                )
            elif "error" in judged:
                result["problem"] = f"it could not be run: {judged['error']}"
            else:
                result["checks"], result["troubles"], flags = book.save(
                    nbformat.from_dict(judged["notebook"]),
                    self.data,
                    result["student"],
                    judged["told"],
                )
                result["flags"] = list(dict.fromkeys([*judged["flags"], *flags]))
                result["lack"] = judged["lack"]
        except Exception as error:  # one submission must not stop the others
            result["problem"] = f"its marks cannot be read: {_first_line(error)}"
        result["may_pass"] = bool(result["problem"])
        result["seconds"] = round(time.monotonic() - self.began, 2)
        self.clean()
        return result

    def _received(self):
        """Return what the process has sent, or None if it ended before."""
        try:
            return json.loads(self.connection.recv_bytes()) if self.connection.poll() else None
        except (EOFError, OSError):
            return None

    def end(self):
        """End every process that belongs to it."""
        if self.process.is_alive():
            self.process.join(timeout=1)  # it has sent all and is about to end
        if self.process.is_alive():
            with suppress(psutil.Error):  # one that ends by itself at this moment
                for child in psutil.Process(self.process.pid).children(recursive=True):
                    child.kill()
            self.process.kill()
        self.process.join()
        execute.end_processes(self.mark)

    def clean(self):
        """Remove its folder."""
        self.connection.close()
        if not execute.remove(self.scratch):
            self.result["remarks"].append(f"{self.scratch} could not be removed")


def _first_line(error):
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def _options(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m assignments.grader",
        description="Grade notebooks of the assignment.  Run again after a stop, or when new "
        "notebooks have come: only what is new or changed is graded.",
    )
    usual = execute.Limits()
    parser.add_argument("submissions", type=Path, help="folder, zip or notebook")
    parser.add_argument("out", type=Path, help="folder for grades, feedback and report")
    parser.add_argument("--roster", type=Path, help="CSV: who should have handed in")
    parser.add_argument("--due", help="what comes later is late: 2026-12-01 23:59")
    parser.add_argument("--book", default="", help="address of the book, for links in the feedback")
    parser.add_argument(
        "--assignment", type=Path, default=ASSIGNMENTS, help="folder of one that is not the whole"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="side by side")
    parser.add_argument("--seconds", type=float, default=usual.seconds, help="for a notebook")
    parser.add_argument("--cell-seconds", type=float, default=usual.cell_seconds, help="for a cell")
    parser.add_argument("--megabytes", type=int, default=usual.megabytes, help="for a notebook")
    options = parser.parse_args(arguments)
    for name in ("jobs", "seconds", "cell_seconds", "megabytes"):
        if getattr(options, name) <= 0:
            parser.error(f"--{name.replace('_', '-')} must be above 0")
    if options.due:
        options.due = people.moment(options.due) or parser.error(
            "--due must be a day and a time, as 2026-12-01 23:59"
        )
    try:
        options.roster = roster.read(options.roster.read_bytes()) if options.roster else []
    except (OSError, ValueError) as error:
        parser.error(f"--roster: {error}")
    options.limits = execute.Limits(
        seconds=options.seconds, cell_seconds=options.cell_seconds, megabytes=options.megabytes
    )
    return options


@contextmanager
def _alone(out, submissions):
    """Keep two graders from writing into one folder."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"OUT={out} is a file: name a folder")
    inside = submissions.resolve()
    if submissions.is_dir() and inside in (out.resolve(), *out.resolve().parents):
        raise ValueError(f"OUT={out} lies in SUBMISSIONS={submissions}: choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    lock = out / ".lock"
    try:
        owner = int(lock.read_text("utf-8"))
    except (OSError, ValueError):
        owner = None
    if owner is not None and owner != os.getpid() and psutil.pid_exists(owner):
        raise ValueError(f"another grader (process {owner}) writes to {out}: wait for it, or "
                         f"delete {lock} if that is no grader")  # fmt: skip
    lock.write_text(str(os.getpid()), "utf-8")
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _tools_print():
    """Return a fingerprint of all code that gives marks.

    A process that a submission starts is outside the guard and can write to these files: nothing
    else would notice.
    """
    digest = hashlib.sha256()
    for folder in (Path(mha_lib.__file__).parent, Path(__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _read(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _write(path, content):
    """Write a file that is either whole or not there."""
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(content, indent=1), encoding="utf-8")
    partial.replace(path)


if __name__ == "__main__":
    sys.exit(main())
