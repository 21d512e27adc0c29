"""A student's functions, as a test sees them: here in all but that they run elsewhere."""

import builtins
import re
import time
import types

from assignments.grader import wire
from mha_lib.teaching import answers
from mha_lib.teaching.steps import STEPS

_NUMBERS = re.compile(r"[-+]?\d*\.\d+(e[-+]?\d+)?|[-+]?\d+\.(?=,|\s*[-+\d\]])", re.I)


class StoppedError(KeyboardInterrupt):
    """A test cannot go on; not an `Exception`, so that no check takes it for an answer."""


class CellTimeoutError(StoppedError):
    """The student's code ran too long."""


class KernelDied(StoppedError):  # noqa: N818 - what feedback has always shown
    """The student's Python is no more."""


class NotRun(StoppedError):  # noqa: N818 - as above
    """There was no time, or no Python, to run it."""


class Calls:
    """What the functions of one test have in common: the judge, and the time that is left."""

    def __init__(self, judge, part, seconds, raised):
        self.judge, self.part, self.seconds, self.raised = judge, part, seconds, raised
        self.all_seconds = seconds

    def __call__(self, name, args, kwargs):
        began = time.monotonic()
        try:
            answer, in_time = self.judge.call(self.part, name, self.seconds, args, kwargs)
        finally:
            self.seconds = max(0.1, self.seconds - (time.monotonic() - began))
        if not in_time:
            text = f"stopped after {self.all_seconds:g} seconds: a loop without end?"
            raise CellTimeoutError(text)
        return answer


class _Elsewhere:
    """A student's function, which runs in another process.

    It can be called as if it were here: what changes its arguments in place, what it returns and
    what it raises, with the lines in which that happened, are as they were there.

    Parameters
    ----------
    name : str
        What the student calls it.
    file : str
        The cell that it is in.
    blank : bool
        Whether there is nothing in it yet.
    calls : Calls
        Asks the other process.
    """

    def __init__(self, name, file, blank, calls):
        self.__name__, self._calls = name, calls
        template = _nothing_yet if blank else _something
        self.__code__ = template.__code__.replace(co_filename=file)
        self.seen = ""  # what was done that earns nothing

    def __call__(self, *args, **kwargs):
        answer = self._calls(self.__name__, list(args), kwargs)
        used = answer.get("used")
        if used and isinstance(used, list):
            name = wire.plain_name(str(used[0])[:100].rpartition(".")[2])
            self.seen = f"This calls {name} of mha_lib, which does the work for you."
        changed = answer.get("changed")
        for given, now in zip((*args, *kwargs.values()), _listed(changed), strict=False):
            if now is not None:
                _put(given, _unpacked(now))
        if "value" in answer:
            return _unpacked(answer["value"])
        error = _error(answer.get("error"))
        self._calls.raised.append(error)
        raise error


# For the checks, which tell students in which of their functions something happened, the frame of
# a call is part of what calls.
_Elsewhere.__call__.__code__ = _Elsewhere.__call__.__code__.replace(co_filename=answers.__file__)


def _nothing_yet():
    raise NotImplementedError()


def _something():
    return _something


def meanings(found, calls):
    """Return what stands for each of the student's names in a test.

    Parameters
    ----------
    found : dict
        What the student's process says of each name.
    calls : Calls
        Asks that process.

    Returns
    -------
    meanings : dict
        A function, or data.
    """
    meanings = {}
    for name, about in (found if isinstance(found, dict) else {}).items():
        if not isinstance(about, dict):
            continue
        if about.get("function") is True:
            file, blank = _cell(about.get("file")), about.get("blank") is True
            meanings[name] = _Elsewhere(name, file, blank, calls)
        elif name in STEPS:  # something, but no function; None would count as not asked for
            meanings[name] = wire.odd(about.get("type"))
        else:
            meanings[name] = _unpacked(about.get("data"))
    return meanings


def _unpacked(packed):
    try:
        return wire.unpack(packed)
    except ValueError:
        return wire.odd("broken answer")


def _put(given, now):
    """Change an argument in place, as the student's function did."""
    try:
        given[...] = now
    except (TypeError, ValueError):  # of another form now, or no array: the caller does not see it
        return


def _error(about):
    """Return an error like the student's, with the lines of the notebook in its traceback."""
    about = about if isinstance(about, dict) else {}
    kinds = [wire.plain_name(kind) for kind in _listed(about.get("kinds"))] or ["Exception"]
    # What a function was called with could come back in its message, and so reach a page.
    message = _NUMBERS.sub("…", str(about.get("message"))[:2000])
    known = (getattr(builtins, kind, None) for kind in kinds)
    base = next(
        (kind for kind in known if isinstance(kind, type) and issubclass(kind, Exception)),
        Exception,
    )
    if issubclass(base, UnicodeError | BaseExceptionGroup):  # these want more than a text
        base = ValueError
    error = type(kinds[0], (base,), {"__str__": lambda _: message})(message)
    traceback = None
    for frame in reversed(_listed(about.get("frames"))[:50]):
        try:
            file, function, line = frame
            traceback = _traceback(traceback, file, str(function)[:100], line)
        except (TypeError, ValueError, OverflowError):
            continue
    return error.with_traceback(traceback)


def _listed(value):
    return value if isinstance(value, list) else []


def _cell(file):
    """Return the name of a cell; of all else that of a file whose lines nobody is shown.

    The checks quote the line in which something happened, and read it from that file.
    """
    return file if re.fullmatch(r"<cell \d{1,6}>", str(file)) else answers.__file__


def _traceback(following, file, function, line):
    """Return the traceback of a frame that is not here."""
    line = max(1, line)
    code = _raise.__code__.replace(
        co_filename=_cell(file),
        co_name=function,
        co_qualname=function,
        co_firstlineno=line - 1,  # it raises in its second line
    )
    try:
        types.FunctionType(code, {"__builtins__": {"ValueError": ValueError}})()
    except ValueError as error:
        inner = error.__traceback__.tb_next
        return types.TracebackType(following, inner.tb_frame, inner.tb_lasti, line)
    raise AssertionError("unreachable")


def _raise():
    raise ValueError
