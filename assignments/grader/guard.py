"""Runs inside the student's Python, before the student's code.

Keeps accidents away, and undoes what a submission does to the checks.  This is no sandbox: code
in the same process can undo it in turn.  Whoever grades strangers uses a container as well.
"""


def _install():
    import builtins
    import json
    import math
    import os
    import sys
    import types

    import IPython.display  # noqa: F401  loaded before the student can put another in its place
    import numpy

    from mha_lib.teaching import prepare

    prepare()  # what the visible checks need
    for seed in json.loads(os.environ["MHA_GRADER_SEEDS"]):
        prepare(seed)

    scratch = os.path.realpath(os.environ["MHA_GRADER_SCRATCH"])
    nonce = os.environ.pop("MHA_GRADER_NONCE")  # by which reports are known to come from here
    real_path, common_path = os.path.realpath, os.path.commonpath
    null, writing = os.devnull, os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
    changing = {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod",
                "os.link", "os.symlink", "shutil.rmtree", "shutil.move"}  # fmt: skip

    def is_inside(path):
        try:
            return common_path([scratch, real_path(path)]) == scratch
        except ValueError:  # another drive
            return False

    def stay_inside(event, args):
        if event == "open":
            path, _, flags = args
            if not isinstance(path, (str, bytes)) or not (flags or 0) & writing:
                return
            paths = [path]
        elif event in changing:
            paths = [path for path in args if isinstance(path, (str, bytes))]
        else:
            return
        for path in map(os.fsdecode, paths):
            if path != null and not is_inside(path):
                raise PermissionError(
                    f"the grader lets this notebook write to its own folder only, not to {path}"
                )

    modules = {
        name: module
        for name, module in sys.modules.items()
        if name.startswith(("mha_lib", "IPython.display", "IPython.core.display"))
    }
    sealed = []  # (owner, how to set, attributes)
    contents = []  # (dictionary, its items)
    codes = []  # (function, its parts)
    parts = ("__code__", "__defaults__", "__kwdefaults__")
    own_to_classes = {"__dict__", "__weakref__", "__doc__", "__abstractmethods__"}
    replaced_by_ipython = {"_", "input", "getpass", "get_ipython", "display", "exit", "quit"}
    # What the checks compare with, and how they watch.
    for module in (builtins, math, numpy, *modules.values()):
        skipped = replaced_by_ipython if module is builtins else ()
        own = {
            name: value
            for name, value in vars(module).items()
            if not name.startswith("__") and name not in skipped
        }
        if module is builtins:
            own["__import__"] = builtins.__import__
        sealed.append((module, setattr, own))
        for value in own.values():
            if not module.__name__.startswith("mha_lib"):
                continue
            if isinstance(value, dict):
                contents.append((value, dict(value)))
            if not str(getattr(value, "__module__", "")).startswith("mha_lib"):
                continue
            functions = [value]
            if isinstance(value, type):
                attributes = {
                    name: attribute
                    for name, attribute in vars(value).items()
                    if name not in own_to_classes
                }
                sealed.append((value, type.__setattr__, attributes))
                functions = attributes.values()
            codes += [
                (function, [getattr(function, part) for part in parts])
                for function in functions
                if isinstance(function, types.FunctionType)
            ]

    watched_by = {name: getattr(sys, name) for name in ("setprofile", "getprofile")}
    sealed.append((sys, setattr, watched_by))

    def restore(asked):
        changed = []
        for name, module in modules.items():
            if sys.modules.get(name) is not module:
                sys.modules[name] = module
                changed.append(name)
        for owner, put, attributes in sealed:
            now = vars(owner)
            for name, value in attributes.items():
                if now.get(name) is not value:
                    put(owner, name, value)
                    changed.append(f"{owner.__name__}.{name}")
            if isinstance(owner, type):  # a property that is added comes before the instance's
                for name in now.keys() - attributes.keys() - own_to_classes:
                    type.__delattr__(owner, name)
                    changed.append(f"{owner.__name__}.{name}")
        for dictionary, items in contents:
            if any(dictionary.get(key) is not value for key, value in items.items()):
                dictionary.update(items)  # what was added stays, such as checks of other seeds
                changed.append("a table of mha_lib")
        for function, values in codes:
            for part, value in zip(parts, values, strict=True):
                if getattr(function, part) is not value:
                    setattr(function, part, value)
                    changed.append(f"{function.__module__}.{function.__qualname__}")
        for name, value in settings.items():
            if getattr(shell, name) != value:
                setattr(shell, name, value[:])
                changed.append(f"the shell's {name}")
        if changed or asked == "after":
            text = f"The grader undid changes to: {', '.join(changed)}" if changed else ""
            report = {"changed": changed, "nonce": nonce}
            publish({"text/plain": text, "application/vnd.mha-grader.guard+json": report})

    def before(*_):
        restore("before")

    def after(*_):
        restore("after")

    shell = get_ipython()  # noqa: F821  a startup file has it
    lists = ("ast_transformers", "input_transformers_cleanup", "input_transformers_post")
    settings = {name: getattr(shell, name)[:] for name in ("ast_node_interactivity", *lists)}
    publish = shell.display_pub.publish
    shell.events.register("pre_run_cell", before)
    shell.events.register("post_run_cell", after)
    shell.run_line_magic("xmode", "Plain")  # others take seconds for an endless recursion
    sys.addaudithook(stay_inside)


_install()
del _install
