"""The process of a student: it runs cells and calls functions, and knows no right answer.

Started as a program of its own by `execute`, which sends it one request at a time.  Of `mha_lib`
there is only what `library` sends, and only once all that comes before has been asked.  Whatever
code in here changes, it can change its own answers only.
"""

import ast
import builtins
import dis
import importlib.abc
import importlib.machinery
import linecache
import math
import os
import signal
import sys
import traceback
import types
import warnings

import numpy


class _Module(types.ModuleType):
    """A module of the library, which tells who puts something into it, and does not take it."""

    tell = None

    def __setattr__(self, name, value):
        if name.startswith("__") or isinstance(value, types.ModuleType):  # as importing does
            super().__setattr__(name, value)
        else:
            self.tell(f"changes {self.__name__}.{name}")


class _Library(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands where `mha_lib` was, with functions that work once they have been sent."""

    def __init__(self, refused, public, tell):
        self.refused, self.public, self.tell = refused, public, tell
        self.used = []  # what was called that is not here
        self.functions = {}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "mha_lib":
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = _Module(spec.name, "The grader's copy: functions that were sent.")
        vars(module)["tell"] = self.tell
        top = spec.name == "mha_lib"

        def lookup(name):
            if name.startswith("__") or (top and name not in self.public):
                raise AttributeError(f"module {spec.name!r} has no attribute {name!r}")
            return _Away(self, f"{spec.name}.{name}")

        module.__getattr__ = lookup
        module.__file__ = f"<{spec.name}>"
        if top:
            module.__all__ = list(self.public)
        return module

    def exec_module(self, module):
        pass

    def take(self, texts, homes):
        """Run the source of modules, and have the functions in them do what they are called."""
        for name, text in texts:
            module = types.ModuleType(name)
            exec(compile(text, f"<{name}>", "exec"), vars(module))  # noqa: S102 - our own
            sys.modules[name] = module
            setattr(importlib.import_module("mha_lib"), name.rpartition(".")[2], module)
        for function, home in homes.items():
            self.functions[function] = getattr(sys.modules[home], function)


class _Away:
    """Something of the library; a function of it can be called once it is here."""

    def __init__(self, library, name):
        vars(self).update(_library=library, __name__=name)

    def __setattr__(self, name, _):
        self._library.tell(f"changes {self.__name__}.{name}")

    def __setitem__(self, key, _):
        self._library.tell(f"changes {self.__name__}")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Away(self._library, f"{self.__name__}.{name}")

    def __call__(self, *args, **kwargs):
        name = self.__name__.rpartition(".")[2]
        if name in self._library.functions:
            return self._library.functions[name](*args, **kwargs)
        self._missing()

    def __iter__(self):
        self._missing()

    def __getitem__(self, _):
        self._missing()

    def __len__(self):
        self._missing()

    def _missing(self):
        self._library.used.append(self.__name__)
        raise self._library.refused(
            f"{self.__name__} is not there while the grader asks for what it does"
        )


_OF_IPYTHON = {"input", "getpass", "get_ipython", "display", "exit", "quit"}


def _stub_1():
    pass


def _stub_2():
    raise NotImplementedError


def _stub_3():
    raise NotImplementedError()


def _instructions(code):
    return [one.opname for one in dis.get_instructions(code)], code.co_names


class _Worker:
    """Answers requests."""

    def __init__(self, recorder, library, wire, seen):
        self.recorder, self.library, self.wire = recorder, library, wire
        self.kept = {}  # the functions of each part, as they were where its test stands
        self.seen = seen  # what a person should know of
        self.whole = [
            (module, name, value)
            for module in (builtins, math, numpy)
            for name, value in vars(module).items()
            if not name.startswith("_") and name not in _OF_IPYTHON
        ]
        self.stubs = [_instructions(f.__code__) for f in (_stub_1, _stub_2, _stub_3)]

    def cell(self, number, source):
        """Run a cell.  A statement that the grader refuses is shown, and the next one runs."""
        shell, name = self.recorder.shell, f"<cell {number}>"
        n_used = len(self.library.used)
        with self.recorder.recording() as outputs:
            rest, begun = source, 0
            while rest is not None:
                error = self.recorder.run(rest, name)
                rest = None
                if isinstance(error, self.library.refused):
                    lines = shell.transform_cell(source).splitlines(keepends=True)
                    begun = self._next_statement("".join(lines), name, error, begun)
                    if begun:
                        rest = "#\n" * (begun - 1) + "".join(lines[begun - 1 :])
        return {"outputs": outputs, "away": len(self.library.used) > n_used}

    def keep(self, part, names):
        """Remember what these names mean now, and tell what kind of thing each is."""
        known = self.recorder.names
        self.kept[part] = {name: known[name] for name in names if name in known}
        return {"found": {name: self._about(value) for name, value in self.kept[part].items()}}

    def call(self, part, name, args, kwargs):
        """Call a function, and tell what it returned or raised."""
        function = self.kept[part][name]
        args = self.wire.unpack(args)
        kwargs = self.wire.unpack(kwargs)
        self.library.used.clear()
        inputs = [*args, *kwargs.values()]
        before = list(map(self.wire.pack, inputs))
        reply = {}
        with self.recorder.recording() as outputs:
            try:
                with numpy.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    value = function(*args, **kwargs)
                reply["value"] = self.wire.pack(value)
            except BaseException as error:  # sys.exit in a function too
                reply["error"] = _about_error(error)
        after = list(map(self.wire.pack, inputs))
        reply["changed"] = [None if a == b else a for a, b in zip(after, before, strict=True)]
        reply["used"] = self.library.used[:10]
        reply["outputs"] = outputs
        return reply

    def give(self, values):
        """Get what a cell of the instructor computes with the library."""
        self.recorder.names.update((name, self.wire.unpack(v)) for name, v in values.items())
        return {}

    def take(self, texts, homes):
        """Get functions of the library."""
        self.library.take(texts, homes)
        return {}

    def mend(self):
        """Put back what is not what it was.  It deceives this process alone, in other parts too."""
        for module, name, value in self.whole:
            if vars(module).get(name) is not value:
                setattr(module, name, value)
                self.seen.append(f"changes {module.__name__}.{name}")

    def _about(self, value):
        if not callable(value):
            return {"data": self.wire.pack(value), "type": type(value).__name__}
        inner = getattr(value, "__wrapped__", value)
        code = getattr(inner, "__code__", None)
        about = {"function": True, "file": "", "blank": False}
        if isinstance(code, types.CodeType):
            about = about | {"file": code.co_filename, "blank": _instructions(code) in self.stubs}
        return about

    def _next_statement(self, source, name, error, begun):
        """Return the line of the statement behind the one that raised, or 0."""
        lines = [
            line
            for frame, line in traceback.walk_tb(error.__traceback__)
            if frame.f_code.co_filename == name and frame.f_code.co_name == "<module>"
        ]
        if not lines:
            return 0
        starts = [node.lineno for node in ast.parse(source).body]
        return next((start for start in starts if start > max(lines[0], begun)), 0)


def _about_error(error):
    """Return what kind of error it is, what it says, and where in the student's code it arose."""
    try:
        message = str(error)[:2000]
    except Exception:  # a student's own exception may fail to tell about itself
        message = "(no message)"
    frames = [
        [frame.f_code.co_filename[:300], frame.f_code.co_name[:100], line]
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename != __file__
    ]
    kinds = [kind.__name__[:100] for kind in type(error).__mro__][:20]
    return {"kinds": kinds, "message": message, "frames": frames[:50]}


def _own_streams():
    """Return the two pipes, and leave nothing where they were."""
    into, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    return into, out


def main(shell, wire, guard):
    """Serve requests until there are no more."""
    # Background jobs of a shell begin with this signal ignored, and a loop would never hear it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    into, out = _own_streams()
    settings = wire.receive(into)
    guard.limit(settings["limits"])
    home, kept = settings["home"], settings["kept"]
    paths = guard.readable(settings["packages"], kept)
    lack = guard.seal(home, paths)
    seen = []
    library = _Library(guard.Refused, settings["public"], seen.append)
    sys.meta_path.insert(0, library)
    recorder = shell.Recorder(f"{home}/.ipython", settings["most_output"])
    worker = _Worker(recorder, library, wire, seen)
    own = [module.__file__ for module in (shell, wire, guard, sys.modules[__name__])]
    for file in own:  # tracebacks look there
        linecache.cache[file] = 0, None, [], file
    guard.watch(home, kept, paths, own, seen.append)
    for name in [name for name in sys.modules if name.partition(".")[0] == "assignments"]:
        del sys.modules[name]
    wire.send(out, {"lack": lack})
    tasks = {
        "cell": worker.cell,
        "keep": worker.keep,
        "call": worker.call,
        "give": worker.give,
        "take": worker.take,
    }
    while True:
        try:
            request = wire.receive(into)
            if request is None:
                return
            answer = tasks[request.pop("do")](**{k: v for k, v in request.items() if k != "id"})
            worker.mend()
            answer |= {"id": request["id"], "seen": seen[:10]}
            seen.clear()
            wire.send(out, answer)
        except KeyboardInterrupt:  # too late: the answer is on its way
            continue
