"""Run one notebook in processes of its own, under limits, and note what happened."""

import asyncio
import ctypes
import json
import os
import signal
import sys
import tempfile
import threading
import time
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil
from nbclient.exceptions import CellTimeoutError, DeadKernelError

from _ext.execution import Client

try:
    import resource
except ImportError:  # Windows has no such limits; the watch below is all there is
    resource = None

GUARD = Path(__file__).with_name("guard.py")
MARK = "MHA_GRADER_MARK"  # every process of a submission carries this variable
PR_SET_CHILD_SUBREAPER = 36  # from <linux/prctl.h>
MOST_KERNELS = 3  # a notebook whose Python ends is taken up again this often, less one


@dataclass(frozen=True)
class Limits:
    """What one submission may use.

    Attributes
    ----------
    seconds : float
        Time for all cells together, without that in which Python starts.
    cell_seconds : float
        Time for one cell.
    later_seconds : float
        Time for one cell after another has been stopped: what hangs once hangs again.
    megabytes : int
        Memory of all its processes together.
    processes : int
        Number of its processes.
    output_bytes : int
        What is kept of the output of one cell.
    """

    seconds: float = 60.0
    cell_seconds: float = 5.0
    later_seconds: float = 1.0
    megabytes: int = 2048
    processes: int = 32
    output_bytes: int = 100_000


def run_notebook(source, target, scratch, seeds, limits, mark, nonce):
    """Run the notebook in ``source`` and write it, with outputs, to ``target``.

    To be called in a process of its own, which changes its session, folder and limits.  Every
    cell that did not run to its end holds an error.  If there is no Python to run it with, the
    reason is written to ``target`` with ``.error`` behind it.

    Parameters
    ----------
    source, target : str
        Notebook files.  ``target`` appears once all is done.
    scratch : str
        A folder for the student's code, which knows of no other.
    seeds : list of int
        The seeds of the hidden checks, prepared before the student's code runs.
    limits : Limits
        What the notebook may use.
    mark : str
        A text by which the processes can be found, in their environment.
    nonce : str
        A text by which the reports of the guard are known to come from the guard.
    """
    _stand_alone()
    _limit_resources(limits)
    notebook = nbformat.read(source, as_version=4)
    os.environ.update(_environment(scratch, seeds, mark, nonce))
    watch = _Watch(limits)
    try:
        asyncio.run(_run(notebook, limits, watch, scratch))
    except Exception as error:
        Path(f"{target}.error").write_text(f"{type(error).__name__}: {error}"[:500], "utf-8")
        raise
    finally:
        watch.stop()
        end_processes(mark, but=os.getpid())
    partial = Path(f"{target}.part")
    partial.write_text(json.dumps(_clean(notebook)), encoding="utf-8")
    partial.replace(target)


def end_processes(mark, but=None):
    """Kill every process that carries a mark in its environment.

    Parameters
    ----------
    mark : str
        The value of the variable `MARK`.
    but : int, optional
        A process to spare.
    """
    for process in psutil.process_iter():
        try:
            if process.pid != but and process.environ().get(MARK) == mark:
                process.kill()
        except (psutil.Error, OSError):  # gone, or somebody else's
            continue


def _stand_alone():
    """Leave the grader's session and terminal."""
    if hasattr(os, "setsid"):
        os.setsid()
    if sys.platform == "linux":
        # Processes whose parent ends come under this one, however they were started.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)


def _limit_resources(limits):
    """Set the limits that the system itself keeps; child processes inherit them."""
    if resource is None:
        return
    memory = limits.megabytes * 1_000_000
    wanted = {
        "RLIMIT_AS": memory,  # a large allocation fails at once, as an error in its cell
        "RLIMIT_FSIZE": 100_000_000,
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": int(limits.seconds) + 60,
    }
    for name, most in wanted.items():
        kind = getattr(resource, name, None)
        if kind is not None:
            hard = resource.getrlimit(kind)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (most, most))
    # A file that grows too large is an error to be shown, not the end of the process.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def _environment(scratch, seeds, mark, nonce):
    """Return the variables that all of a notebook's processes have."""
    return {
        MARK: mark,
        "MHA_GRADER_SEEDS": json.dumps(seeds),
        "MHA_GRADER_NONCE": nonce,
        "PIP_NO_INDEX": "1",  # nothing is installed into the grader's own environment
        "PIP_TARGET": scratch,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }


def _home(scratch):
    """Make a new folder for one Python, and return it with the variables that name it.

    A Python that is started anew must not meet what the one before it has left.
    """
    home = Path(tempfile.mkdtemp(dir=scratch))
    startup = home / ".ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00-guard.py").write_bytes(GUARD.read_bytes())
    folders = ("HOME", "USERPROFILE", "TMPDIR", "TEMP", "MPLCONFIGDIR", "MHA_GRADER_SCRATCH")
    return home, dict.fromkeys(folders, str(home)) | {
        "IPYTHONDIR": str(home / ".ipython"),
        "JUPYTER_RUNTIME_DIR": str(home / ".runtime"),
    }


class _Watch:
    """Count the memory and the processes below this one, and end what is too much."""

    def __init__(self, limits):
        self.limits = limits
        self.reason = ""
        self._seen = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self):
        while not self._stopped.wait(0.1):
            self._look_once()

    def _look_once(self):
        processes = psutil.Process().children(recursive=True)
        self._seen.update((process.pid, process) for process in processes)
        used = count = 0
        for process in processes:
            try:
                used += process.memory_info().rss
                count += process.status() != psutil.STATUS_ZOMBIE
            except psutil.Error:
                continue
        if used > self.limits.megabytes * 1_000_000:
            self.reason = f"used more than {self.limits.megabytes} MB of memory"
        elif count > self.limits.processes:
            self.reason = f"started more than {self.limits.processes} processes"
        else:
            return
        self.end_all()

    def end_all(self):
        """Kill all processes that were ever seen below this one."""
        for process in list(self._seen.values()):
            try:
                if process.is_running():  # False also where the number belongs to another now
                    process.kill()
            except psutil.Error:
                continue

    def stop(self):
        self._stopped.set()
        self._thread.join()
        self._look_once()
        self.end_all()


async def _run(notebook, limits, watch, scratch):
    """Run all cells.  If Python ends in one of them, go on behind it with a new Python."""
    clock = _Clock(limits)
    ended = set()  # cells in which Python ended
    start = 0
    for _ in range(MOST_KERNELS):
        start = await _run_from(notebook, start, ended, clock, watch, scratch)
        if start >= len(notebook.cells) or clock.left <= 0:
            break
    for cell in notebook.cells[start:]:
        _fail(cell, "NotRun", "this cell was not run, because of what happened above")


class _Clock:
    """How long the next cell may take."""

    def __init__(self, limits):
        self.limits = limits
        self.used = 0.0
        self.somebody_hung = False

    @property
    def left(self):
        return self.limits.seconds - self.used

    def allowance(self, _cell=None):
        one = self.limits.later_seconds if self.somebody_hung else self.limits.cell_seconds
        return max(0.1, min(one, self.left))


async def _run_from(notebook, start, ended, clock, watch, scratch):
    """Run the cells from ``start`` on in a new Python; return where to go on."""
    home, folders = _home(scratch)
    os.environ.update(folders)
    client = _Client(
        notebook,
        allow_errors=True,
        interrupt_on_timeout=True,
        error_on_timeout={"ename": "CellTimeoutError", "evalue": "", "traceback": []},
        timeout_func=clock.allowance,
        iopub_timeout=1,
        raise_on_iopub_timeout=True,
        record_timing=False,
        startup_timeout=60,
        shutdown_kernel="immediate",
        kernel_name="python3",
        extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
        resources={"metadata": {"path": str(home)}},
    )
    client.log.setLevel("CRITICAL")  # what happens is in the notebook
    client.most_output = clock.limits.output_bytes
    async with client.async_setup_kernel():
        for i, cell in enumerate(notebook.cells):
            again = i < start
            if cell.cell_type != "code" or (again and (_is_test(cell) or i in ended)):
                continue
            if clock.left <= 0:
                return i
            began = time.monotonic()
            try:
                await client.run_cell(deepcopy(cell) if again else cell, i, clock)
            except (DeadKernelError, CellTimeoutError, RuntimeError) as error:
                notebook.cells[i] = cell
                _fail(cell, *_what_ended(error, clock, watch))
                ended.add(i)
                watch.end_all()
                return max(start, i + 1)
            finally:
                clock.used += time.monotonic() - began
            notebook.cells[i] = cell
    return len(notebook.cells)


def _is_test(cell):
    graded = cell.metadata.get("nbgrader", {})
    return graded.get("grade", False) and not graded.get("solution", False)


def _what_ended(error, clock, watch):
    if watch.reason:
        reason, watch.reason = watch.reason, ""
        return "KernelDied", f"the code {reason}, and was ended"
    if isinstance(error, CellTimeoutError):
        clock.somebody_hung = True
        return "CellTimeoutError", "the code ran too long, could not be interrupted, and was ended"
    return "KernelDied", "Python itself ended while this cell ran: os._exit, or a crash"


def _fail(cell, name, text):
    if cell.cell_type == "code":
        cell.outputs = [
            *cell.get("outputs", []),
            nbformat.v4.new_output("error", ename=name, evalue=text, traceback=[f"{name}: {text}"]),
        ]


class _Client(Client):
    """Runs single cells, and keeps no more output than is allowed."""

    most_output = 0

    async def run_cell(self, cell, index, clock):
        """Run one cell; whatever did not end well is an error output."""
        allowance = clock.allowance()
        self.kept = 0
        self.reply = None
        await self.async_execute_cell(cell, index)
        if cell.source.strip() and self.reply is None:
            _fail(cell, "NotRun", "the cell gave no answer")
        elif self.reply and self.reply["status"] != "ok":
            name = self.reply.get("ename", "Error")
            if name == "CellTimeoutError":
                clock.somebody_hung = True
                _fail(cell, name, f"stopped after {allowance:g} seconds: a loop without end?")
            elif not any(output.output_type == "error" for output in cell.outputs):
                _fail(cell, name, str(self.reply.get("evalue", "")))

    def on_cell_executed_hook(self, cell, cell_index, execute_reply):
        self.reply = execute_reply["content"]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.on_cell_executed = self.on_cell_executed_hook
        self.skip_cells_with_tag = ""

    def output(self, outs, msg, display_id, cell_index):
        if msg["msg_type"] == "error":  # an endless recursion has a long way back
            msg["content"]["traceback"] = [
                text[-self.most_output // 10 :] for text in msg["content"]["traceback"][-10:]
            ]
        size = len(str(msg["content"]))
        needed = msg["msg_type"] in {"execute_result", "error"} and size <= self.most_output
        if not needed and self.kept + size > self.most_output:
            if self.kept <= self.most_output:
                self.kept = self.most_output + 1
                text = f"\n(more than {self.most_output} bytes of output; the rest is left out)\n"
                outs.append(nbformat.v4.new_output("stream", name="stdout", text=text))
            return None
        self.kept += 0 if needed else size
        return super().output(outs, msg, display_id, cell_index)


def _clean(value):
    """Return a copy whose texts can all be written as UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value
