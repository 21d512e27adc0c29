"""What the process of a student may do, from before its first line of code.

`seal` asks the system, and code in the process cannot undo that.  `watch` asks Python: it says
kindly what is not allowed, and holds where the system has nothing to offer, but code in the same
process can undo it.
"""

import ctypes  # noqa: F401  loading it later would be refused
import os
import signal
import sys
import sysconfig
from pathlib import Path

try:
    import resource
except ImportError:  # Windows has no such limits; the grader's own watch is all there is
    resource = None

# Files outside Python that NumPy, Matplotlib and the C library read, where they are there.
_SYSTEM = tuple(
    f"/{path}"
    for path in (
        "lib lib64 usr/lib usr/lib64 usr/share/fonts usr/share/zoneinfo etc/fonts etc/ld.so.cache "
        "etc/localtime etc/passwd sys/devices/system/cpu dev/null dev/zero dev/random dev/urandom"
    ).split()
)
# Events of Python's audit, by what they do.
_PROGRAMS = frozenset({
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork",
    "os.forkpty", "os.startfile", "pty.spawn",
})  # fmt: skip
_CHANGING = frozenset({
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod", "os.chown",
    "os.chflags", "os.lchmod", "os.link", "os.symlink", "os.utime", "os.setxattr",
    "os.removexattr", "shutil.rmtree", "shutil.move", "shutil.chown", "sqlite3.connect",
})  # fmt: skip
_NETWORK = frozenset({"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"})
_NEVER = frozenset({
    "ctypes.dlopen", "ctypes.dlsym", "ctypes.dlsym/handle", "ctypes.call_function",
    "os.kill", "os.killpg", "resource.setrlimit", "resource.prlimit",
})  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC


class Refused(PermissionError):  # noqa: N818 - it is what a student reads
    """The grader does not let a notebook do this."""


def limit(most):
    """Set limits that the system itself keeps; child processes inherit them.

    Parameters
    ----------
    most : dict
        From the names of limits in the module ``resource`` to their values.
    """
    if resource is None:
        return
    for name, value in most.items():
        kind = getattr(resource, name, None)
        if kind is not None:
            hard = resource.getrlimit(kind)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (value, value))
    # A file that grows too large is an error to be shown, not the end of the process.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def readable(packages, kept):
    """Return the files and folders that Python and its packages are read from.

    Parameters
    ----------
    packages : list of str
        Folders with installed packages.
    kept : list of str
        Folders of which nothing may be read, except where packages lie in them.

    Returns
    -------
    paths : list of str
        None of which holds a kept folder.
    """
    python = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    libraries = Path(sys.base_exec_prefix, "lib")
    kept = [Path(path).resolve() for path in kept]
    found = []
    for path in map(Path, (*_SYSTEM, *python, libraries, *packages)):
        if path.exists():
            found += _around(path.resolve(), kept)
    return list(dict.fromkeys(map(str, found)))


def seal(home, paths):
    """Have the system refuse this process, and all that it starts, whatever it does not need.

    Nothing can be read but ``paths``, nothing written outside ``home``, no program started, no
    TCP connection made, no process outside looked into or, on newer systems, sent a signal.

    Parameters
    ----------
    home : str
        The folder in which the process may do what it likes.
    paths : list of str
        What it may read.

    Returns
    -------
    lack : str
        What is not refused on this system; empty if nothing.
    """
    try:
        from py_landlock import AccessFs, Landlock, LandlockError
    except ImportError:
        return "the package py-landlock is not there"
    never = AccessFs.EXECUTE | AccessFs.MAKE_CHAR | AccessFs.MAKE_BLOCK | AccessFs.IOCTL_DEV
    rules = Landlock(strict=False)  # as much as this system knows
    try:
        version = rules.abi_version
        rules.add_path_rule(home, access=AccessFs(sum(AccessFs)) & ~never)
        for path in paths:
            listing = AccessFs.READ_DIR if Path(path).is_dir() else AccessFs(0)
            rules.add_path_rule(path, access=AccessFs.READ_FILE | listing)
        rules.add_path_rule(os.devnull, access=AccessFs.READ_FILE | AccessFs.WRITE_FILE)
        rules.apply()
    except (LandlockError, OSError) as error:
        return f"Landlock cannot be used: {error}"
    return "" if version >= 6 else "signals to other processes, which Linux 6.12 can refuse"


def watch(home, kept, paths, own, tell):
    """Have Python refuse the same, with an error that says so.

    Parameters
    ----------
    home, paths : str, list of str
        As for `seal`.
    kept : list of str
        Folders of which nothing may be read, except what is in ``paths`` or ``home``.
    own : list of str
        Files in which Python looks when it prints a traceback.
    tell : callable
        Gets a text where the person who grades should know of it.
    """
    home, paths = os.path.realpath(home), (*paths, os.path.realpath(home))
    kept = tuple(os.path.realpath(path) for path in kept)
    # Names of its own, since those of the modules can be replaced.
    real_path, decoded, separator, null = os.path.realpath, os.fsdecode, os.sep, os.devnull

    def lies_in(path, folders):
        path = real_path(path)
        return any(path == folder or path.startswith(folder + separator) for folder in folders)

    def refuse_to_write(path):
        if path != null and not lies_in(path, [home]):
            raise Refused(
                f"the grader lets this notebook write to its own folder only, not to {path}"
            )

    def refuse(event, args):
        if event == "open":
            path, _, flags = args
            if not isinstance(path, (str, bytes)):
                return
            path = decoded(path)
            if (flags or 0) & _WRITING:
                refuse_to_write(path)
            elif lies_in(path, kept) and not lies_in(path, paths):
                if path not in own:
                    tell(f"reads {path}")
                raise Refused(f"the grader does not let this notebook read {path}")
        elif event in _CHANGING:
            for path in args:
                if isinstance(path, (str, bytes)):
                    path = decoded(path)
                    if event == "sqlite3.connect":
                        path = path.removeprefix("file:").partition("?")[0]
                    if path not in ("", ":memory:"):
                        refuse_to_write(path)
        elif event in _PROGRAMS:
            raise Refused("the grader does not let this notebook start programs or processes")
        elif event in _NETWORK:
            raise Refused("the grader does not let this notebook use the network")
        elif event in _NEVER:
            tell(f"tries {event}")
            raise Refused(f"the grader does not let this notebook use {event}")

    sys.addaudithook(refuse)


def _around(path, kept):
    """Return a path, or what is in it around the kept folders."""
    if path in kept:
        return []
    if not any(path in folder.parents for folder in kept):
        return [path]
    return [found for inner in sorted(path.iterdir()) for found in _around(inner.resolve(), kept)]
