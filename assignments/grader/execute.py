"""Start the process of a student, ask it things, and end it with all that it has started."""

import ctypes
import os
import queue
import secrets
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

import mha_lib
from assignments.grader import wire
from assignments.grader.watch import Watch

ROOT = Path(__file__).resolve().parents[2]
MARK = "MHA_GRADER_MARK"  # every process of a submission carries this variable
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36  # from <linux/prctl.h>
START_SECONDS = 60
PROGRAM = (
    "import sys; sys.path += {packages!r}; sys.path.insert(0, {root!r})\n"
    "from assignments.grader import guard, shell, wire, worker\n"
    "sys.path.remove({root!r})\n"
    "worker.main(shell, wire, guard)\n"
)


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
    disk_megabytes : int
        What it may write.
    processes : int
        Number of its processes.
    output_bytes : int
        What is kept of the output of one cell.
    """

    seconds: float = 60.0
    cell_seconds: float = 5.0
    later_seconds: float = 1.0
    megabytes: int = 2048
    disk_megabytes: int = 1000
    processes: int = 32
    output_bytes: int = 100_000


class DiedError(Exception):
    """The process ended, or had to be ended; the message says why."""


class StartError(Exception):
    """There is no process to ask."""


class Process:
    """A Python for one student's code.

    Parameters
    ----------
    scratch : str
        A folder in which it gets one of its own.
    limits : Limits
        What it may use.
    mark : str
        A text by which it and its children can be found, in their environment.

    Raises
    ------
    StartError
        It did not start.
    """

    def __init__(self, scratch, limits, mark):
        # A Python that is started anew must not meet what the one before it has left.
        home = os.path.realpath(tempfile.mkdtemp(dir=scratch))
        packages = [path for path in _package_folders() if Path(path).is_dir()]
        program = PROGRAM.format(packages=packages, root=str(ROOT))
        self.lack = ""  # what the system cannot refuse it
        self.seen = []  # what a person should know of
        self._watch = None
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-I", "-S", "-B", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=home,
            env=_environment(home, mark),
            start_new_session=True,
        )
        self._watch = Watch(limits, home, self._process.pid)
        self._answers = queue.Queue(maxsize=2)  # whoever floods it waits
        threading.Thread(target=self._read, daemon=True).start()
        self._write(
            {
                "home": home,
                "kept": [str(ROOT), str(Path(mha_lib.__file__).parent)],
                "packages": packages,
                "limits": _system_limits(limits),
                "most_output": limits.output_bytes,
                "public": [*mha_lib.__all__, *_module_names()],
            }
        )
        hello = self._next(START_SECONDS)
        if hello is None or not isinstance(hello.get("lack"), str):
            self.end()
            raise StartError("the Python for the student's code did not start")
        self.lack = hello["lack"]

    def ask(self, seconds, **request):
        """Ask it to do something, and return its answer.

        Parameters
        ----------
        seconds : float
            How long that may take.
        **request
            What to do, as in `worker`.

        Returns
        -------
        answer : dict
            Whatever it says.  None of it is to be trusted.
        in_time : bool
            False if it had to be interrupted.

        Raises
        ------
        DiedError
            It did not answer, and is no more.
        """
        number = secrets.token_hex(8)  # no answer is taken that was written before the question
        self._write(request | {"id": number})
        answer, in_time = self._next(seconds), True
        if answer is None and self._is_silent():
            in_time = False
            with suppress(OSError, ValueError):  # gone, or a system without such signals
                self._process.send_signal(signal.SIGINT)
                answer = self._next(1.0)
        if answer is not None and answer.get("id") == number:
            seen = answer.get("seen")
            new = map(wire.printable, seen) if isinstance(seen, list) else []
            self.seen += [text for text in new if text not in self.seen][: 10 - len(self.seen)]
            return answer, in_time
        reason = self._why(answer, in_time)
        self.end()
        raise DiedError(reason)

    @property
    def is_alive(self):
        return self._process.poll() is None

    def end(self):
        """Kill it, and all processes that it has started."""
        with suppress(OSError):
            self._process.kill()
        self._watch.stop()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe.close()
        self._process.wait()

    def _is_silent(self):
        return self._watch.reason == "" and self.is_alive and not self._closed

    def _why(self, answer, in_time):
        if self._watch.reason:
            return f"the code {self._watch.reason}, and was ended"
        if answer is not None:
            self.seen.append("writes answers that nobody asked for")
            return "the code answered out of turn, and was ended"
        if not in_time:
            return "the code ran too long, could not be interrupted, and was ended"
        return "Python itself ended while this cell ran: os._exit, or a crash"

    _closed = False

    def _read(self):
        """Put what comes into the queue, and None at the end."""
        while True:
            try:
                content = wire.receive(self._process.stdout)
            except (OSError, ValueError):  # closed
                content = None
            if content is None:
                self._closed = True
            self._answers.put(content)
            if content is None:
                return

    def _write(self, content):
        """Write from a thread of its own, since the other side need not read."""

        def write():
            with suppress(OSError, ValueError):
                wire.send(self._process.stdin, content)

        threading.Thread(target=write, daemon=True).start()

    def _next(self, seconds):
        """Return what comes next, or None if nothing does."""
        try:
            return self._answers.get(timeout=max(0.05, seconds))
        except queue.Empty:
            return None


def stand_alone():
    """Leave the grader's session and terminal, and keep out of other processes' sight."""
    if hasattr(os, "setsid"):
        os.setsid()
    if sys.platform == "linux":
        control = ctypes.CDLL(None).prctl
        # Processes whose parent ends come under this one, however they were started.
        control(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # Other processes of the same user cannot look into this one, which knows the answers.
        control(PR_SET_DUMPABLE, 0, 0, 0, 0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)


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


def remove(folder):
    """Remove a folder, however deep, and whatever its rights.

    Parameters
    ----------
    folder : str
        The folder.

    Returns
    -------
    is_gone : bool
        Whether nothing is left.
    """
    if os.name == "posix":  # these two do not care how deep it is
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*command, "--", folder], capture_output=True, check=False)  # noqa: S603
    else:
        with suppress(OSError, RecursionError):
            shutil.rmtree(folder, ignore_errors=True)
    return not os.path.lexists(folder)


def _package_folders():
    return dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))


def _module_names():
    """Return the names of the modules of `mha_lib`."""
    folder = Path(mha_lib.__file__).parent
    names = {path.stem for path in folder.glob("*.py")}
    return sorted(names | {path.parent.name for path in folder.glob("*/__init__.py")})


def _system_limits(limits):
    return {
        "RLIMIT_AS": limits.megabytes * 1_000_000,  # a large allocation fails as an error
        "RLIMIT_FSIZE": 100_000_000,
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": int(limits.seconds) + 60,
    }


def _environment(home, mark):
    """Return all variables that the process has."""
    taken = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT")
    folders = ("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "MPLCONFIGDIR", "IPYTHONDIR")
    return {name: os.environ[name] for name in taken if name in os.environ} | {
        **dict.fromkeys(folders, home),
        MARK: mark,
        "PYTHONUTF8": "1",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
