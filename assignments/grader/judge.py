"""Judge a notebook: its code runs in a process of its own, its tests in this one.

A test cell is run as the instructor wrote it, in a process that never runs a student's code.  What
the student has defined is called from there as any function is, and runs elsewhere: arguments go
out one call at a time, and what comes back is read as data.
"""

import ast
import json
import linecache
import re
import tempfile
import time
from contextlib import contextmanager, suppress

import nbformat

from assignments.grader import cells, execute, library, pasted, wire
from assignments.grader.elsewhere import Calls, KernelDied, NotRun, StoppedError, meanings
from assignments.grader.shell import Recorder

MOST_PROCESSES = 3  # a notebook whose Python ends is taken up again this often, less one


def run_notebook(notebook, scratch, limits, mark, connection):
    """Run and judge a prepared notebook, and send what came of it.

    To be called in a process of its own, which changes its session.

    Parameters
    ----------
    notebook : dict
        A notebook, with the instructor's test cells.
    scratch : str
        A folder for the student's code, which knows of no other.
    limits : Limits
        What the notebook may use.
    mark : str
        A text by which the processes can be found, in their environment.
    connection : multiprocessing.connection.Connection
        Gets a dictionary as JSON: ``notebook`` with outputs, ``told`` with what to tell a student
        of each test that ended in an error, ``flags``, and ``lack``; or ``error``.
    """
    execute.stand_alone()
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            judged = _Judge(nbformat.from_dict(notebook), scratch, folder, limits, mark).judged()
    except Exception as error:
        judged = {"error": f"{type(error).__name__}: {error}"[:500]}
    finally:
        execute.end_processes(mark)
    connection.send_bytes(json.dumps(cells.clean(judged)).encode("utf-8"))
    connection.close()


class _Clock:
    """How long the next cell may take."""

    def __init__(self, limits):
        self.limits = limits
        self.used = 0.0
        self.somebody_hung = False

    @property
    def left(self):
        return self.limits.seconds - self.used

    def allowance(self):
        one = self.limits.later_seconds if self.somebody_hung else self.limits.cell_seconds
        return max(0.1, min(one, self.left))


class _Judge:
    """Runs one notebook."""

    def __init__(self, notebook, scratch, folder, limits, mark):
        self.notebook, self.scratch, self.limits, self.mark = notebook, scratch, limits, mark
        self.clock = _Clock(limits)
        self.recorder = Recorder(folder, limits.output_bytes)
        self.process = None
        self.n_processes = 0
        self.next_cell = 0  # the first that has not run yet
        self.ended = set()  # cells in which Python ended
        self.away = set()  # cells that needed more of the library than there was
        self.given = {}  # for each cell that a process was given data for, these
        self.sent = frozenset()  # functions of the library that the process has
        self.found = {}  # for each test, what its names mean in the notebook
        self.told, self.flags, self.lack = {}, [], ""
        self.tests = {}  # the cells, and the names that they take from the notebook
        self.imports = cells.imports(notebook)
        imported = {name for line in self.imports for name in cells.imported(ast.parse(line))}
        for i, cell in enumerate(notebook.cells):
            if cell.cell_type == "code":
                if cells.is_test(cell):
                    self.tests[i] = sorted(cells.names(cell.source) - imported)
                cell.outputs, name = [], f"<cell {i}>"
                lines = re.sub(r"^(\s*\n)+", "", cell.source).splitlines(
                    keepends=True
                )  # as IPython
                linecache.cache[name] = (len(cell.source), None, lines, name)

    def judged(self):
        """Return what `run_notebook` sends."""
        try:
            self._run_cells()
            # The less of the library a test allows, the earlier it comes: what has been sent
            # cannot be taken back.
            order = sorted(self.tests, key=lambda i: (len(library.allowed(self.tests[i])), i))
            for i in order:
                self._run_test(i)
            self._run_again()
        finally:
            self._end()
        flags = self.flags + pasted.found(self.notebook)
        return {
            "notebook": self.notebook,
            "told": self.told,
            "flags": list(dict.fromkeys(flags)),
            "lack": self.lack,
        }

    # --- the student's cells ------------------------------------------------------------------

    def _run_cells(self):
        """Run all cells but the tests.  If Python ends in one, go on behind it with a new one."""
        all_cells = self.notebook.cells
        while self.next_cell < len(all_cells) and self._has_python():
            i = self.next_cell
            self.next_cell += 1
            if all_cells[i].cell_type == "code":
                self._run_cell(i, again=False)
        for cell in all_cells[self.next_cell :]:
            if cell.cell_type == "code" and not cells.is_test(cell):
                cells.fail(cell, "NotRun", "this cell was not run, because of what happened above")
        self.next_cell = len(all_cells)

    def _has_python(self):
        """Return whether there is a process with all cells so far, started anew if need be."""
        while self.process is None:
            if self.n_processes == MOST_PROCESSES or self.clock.left <= 0:
                return False
            self.n_processes += 1
            self.process = execute.Process(self.scratch, self.limits, self.mark)
            self.lack, self.sent = self.process.lack, frozenset()
            for i, cell in enumerate(self.notebook.cells[: self.next_cell]):
                if self.process and cell.cell_type == "code" and i not in self.ended:
                    self._run_cell(i, again=True)
        return self.clock.left > 0

    def _run_cell(self, i, again):
        cell = self.notebook.cells[i]
        try:
            if i in self.tests:
                answer, _ = self._ask(do="keep", part=str(i), names=self.tests[i])
                self.found[i] = answer.get("found")
                return
            answer, in_time = self._ask(do="cell", number=i, source=cell.source)
        except KernelDied as error:
            if not again:
                cell.outputs = []
            self.ended.add(i)
            cells.fail(cell, "KernelDied", str(error))
            return
        if not again:
            cell.outputs = cells.outputs(answer.get("outputs"), self.limits.output_bytes)
            if not in_time:
                cells.fail(cell, "CellTimeoutError", self._too_long)
            if answer.get("away") is True:
                self.away.add(i)
        if answer.get("away") is True and cells.is_given(cell):
            self._give(i)

    def _give(self, i):
        """Hand over, as data, what a cell of the instructor takes from the library."""
        cell = self.notebook.cells[i]
        if i not in self.given:
            with self._names() as names, self.recorder.recording() as outputs:
                error = self.recorder.run(cell.source)
                values = {name: names[name] for name in cells.assigned(cell.source) & names.keys()}
            packed = {name: wire.pack(value) for name, value in values.items()}
            self.given[i] = {n: data for n, data in packed.items() if data[0] not in wire.NO_DATA}
            if error is None:
                cell.outputs = [nbformat.from_dict(output) for output in outputs]
                self.away.discard(i)
        with suppress(KernelDied):
            self._ask(do="give", values=self.given[i])

    @contextmanager
    def _names(self):
        """Have the names that the instructor's cells import, for a while."""
        names = self.recorder.names
        before = dict(names)
        try:
            for line in self.imports:
                self.recorder.run(line)
            yield names
        finally:
            names.clear()
            names.update(before)

    def _run_again(self):
        """Show what the cells show that needed the library, now that it is there."""
        for i in sorted(self.away - self.ended):
            if self.process is None or self.clock.left <= 0:
                return
            try:
                answer, in_time = self._ask(
                    do="cell", number=i, source=self.notebook.cells[i].source
                )
            except KernelDied:
                return
            if in_time:
                outputs = cells.outputs(answer.get("outputs"), self.limits.output_bytes)
                self.notebook.cells[i].outputs = outputs

    def _ask(self, seconds=None, **request):
        """Ask the process, and count the time."""
        allowance = self.clock.allowance() if seconds is None else seconds
        began = time.monotonic()
        try:
            answer, in_time = self.process.ask(allowance, **request)
        except execute.DiedError as error:
            self.clock.somebody_hung |= "too long" in str(error)
            self._end()
            raise KernelDied(str(error)) from None
        finally:
            self.clock.used += time.monotonic() - began
        if not in_time:
            self.clock.somebody_hung = True
            self._too_long = f"stopped after {allowance:g} seconds: a loop without end?"
        return answer, in_time

    def _end(self):
        if self.process is not None:
            self.flags += self.process.seen
            self.process.end()
            self.process = None

    # --- the tests ----------------------------------------------------------------------------

    def _run_test(self, i):
        cell = self.notebook.cells[i]
        part = cell.metadata.nbgrader.grade_id
        if not self._has_python():
            why = "the time was over" if self.clock.left <= 0 else "of what happened above"
            cells.fail(cell, "NotRun", f"this test was not run, because {why}")
            self.told[part] = f"NotRun: this test was not run, because {why}"
            return
        functions = library.allowed(self.tests[i])
        try:
            if not self.sent <= functions and not self._renewed():
                raise NotRun("this test was not run, because of what happened above")
            if self.sent != functions:
                texts, homes = library.modules(functions)
                self._ask(do="take", texts=texts, homes=homes)
                self.sent = functions
        except StoppedError as error:
            cells.fail(cell, type(error).__name__, str(error))
            self.told[part] = f"{type(error).__name__}: {error}"
            return
        raised = []
        call = Calls(self, str(i), self.clock.allowance(), raised)
        with self._names() as names, self.recorder.recording() as outputs:
            names.update(meanings(self.found.get(i), call))
            for packed in self.given.values():  # whatever the student has made of these names
                names.update((name, wire.unpack(data)) for name, data in packed.items())
            error = self.recorder.run(cell.source, "<test>")
        cell.outputs = [nbformat.from_dict(output) for output in outputs]
        if error is not None:
            told = f"{type(error).__name__}: {error}"
            own = isinstance(error, StoppedError | NameError) or any(error is one for one in raised)
            # What a test says itself may hold what it looks for.
            self.told[part] = told if own else "one of its tests did not pass"
            if not any(output.output_type == "error" for output in cell.outputs):
                cells.fail(cell, type(error).__name__, str(error))

    def _renewed(self):
        """Return whether there is a new process, which has nothing of the library."""
        self._end()
        return self._has_python()

    def call(self, part, name, seconds, args, kwargs):
        """Call a student's function; return what came back."""
        if self.process is None:
            raise KernelDied("Python ended before")
        packed = wire.pack(args), wire.pack(kwargs)
        return self._ask(seconds, do="call", part=part, name=name, args=packed[0], kwargs=packed[1])
