"""Submissions of every kind, made from the students' version of the assignment."""

import copy
import json
import re

import nbformat

from tests.grader import assignment

BUILTINS = (
    "import builtins; builtins.all = lambda *a: True; builtins.any = lambda *a: False; "
    "builtins.abs = lambda x: 0.0"
)
LIAR = (  # an array whose numbers equal all others
    "class Equal(float):\n    __eq__ = lambda self, other: True\n\n"
    "class Liar(np.ndarray):\n    ravel = lambda self: self\n"
    "    tolist = lambda self: [Equal()] * self.size\n\n"
)
FORK = (  # what subprocess itself calls; the child is a copy of this process, if no program starts
    "import _posixsubprocess, os, sys, time\n\n"
    "class Sleep:  # asked for its name in the child\n"
    "    def __call__(self): time.sleep(self.seconds)\n\n"
    "def fork(seconds):\n"
    "    sleep = Sleep()\n    sleep.seconds = seconds\n"
    "    r, w = os.pipe()\n"
    "    _posixsubprocess.fork_exec([b'{token}'], [b'/none'], True, (), None, None, -1, -1, -1,\n"
    "        -1, -1, -1, r, w, False, True, -1, None, None, None, -1, sleep, False)\n\n"
)
# Each is a part of the assignment and the code that stands in its cell instead of a solution.
CODE = {
    "syntax error": ("softmax", "def softmax(z)\n    return z"),
    "import error": ("softmax", "import torchh\n\n{solution}"),
    "wrong shape": (
        "split_heads",
        "def split_heads(x, n_heads):\n    return x.reshape(*x.shape[:-1], n_heads, -1)",
    ),
    "loop in a function": ("softmax", "def softmax(z):\n    while True:\n        pass"),
    "loop at top level": ("softmax", "while True:\n    pass"),
    "loop that cannot be interrupted": (
        "softmax",
        "import signal\n\ndef softmax(z):\n"
        "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n    while True:\n        pass",
    ),
    "sys.exit": ("softmax", "import sys\n\nsys.exit(0)"),
    "os._exit": ("softmax", "import os\n\nos._exit(0)"),
    "10 GB": ("softmax", "{solution}\n\nlarge = np.ones(1_250_000_000)"),
    "a program": (
        "softmax",
        "{solution}\n\nimport subprocess, sys\n\n"
        "sleep = [sys.executable, '-c', 'import time; time.sleep(300) # {token}']\n"
        "subprocess.Popen(sleep, start_new_session=True, env={})",
    ),
    # Past Python's audit, which knows of no such call.
    "50 processes": (
        "softmax",
        FORK + "for i in range(50):\n    fork(300)\ntime.sleep(30)\n\n{solution}",
    ),
    "processes left behind": ("softmax", "{solution}\n\n" + FORK + "fork(300)\nfork(300)"),
    "endless recursion": ("softmax", "def softmax(z):\n    return softmax(z)\n\nsoftmax(1)"),
    "patches the checks": (
        "softmax",
        "import mha_lib.teaching.checks as c\nimport mha_lib.teaching as t\n"
        "t.check_softmax = c.check_softmax = lambda *a, **k: type('R', (), {'score': 1.0})()\n"
        "c.CheckResult.score = property(lambda self: 1.0)\n"
        "mha_lib.softmax = mha_lib.activations.softmax = lambda z: z\n"
        "def softmax(z):\n    return z",
    ),
    "patches the checks while they run": (
        "softmax",
        "def softmax(z):\n    import mha_lib.teaching.checks as c\n"
        "    c.CheckResult.score = property(lambda self: 1.0)\n    return z",
    ),
    # What the checks compare with, replaced before they run or by the function that they call.
    "patches builtins": ("softmax", f"{BUILTINS}\ndef softmax(z):\n    return z"),
    "patches builtins while the checks run": (
        "softmax",
        f"def softmax(z):\n    {BUILTINS}\n    return z",
    ),
    "patches NumPy": (
        "softmax",
        f"{LIAR}np.ndarray = Liar\ndef softmax(z):\n    return z.view(Liar)",
    ),
    "patches NumPy while the checks run": (
        "softmax",
        f"{LIAR}def softmax(z):\n    np.ndarray = Liar\n    return z.view(Liar)",
    ),
    "patches isnan": (
        "softmax",
        "import math\nmath.isnan = lambda x: True\ndef softmax(z):\n    return z",
    ),
    "patches the comparison": (
        "softmax",
        "from mha_lib.teaching import answers\n"
        "answers._same_numbers = lambda *a: True\n"
        "answers.Answer.equals = lambda *a: True\n"
        "answers.complaint.__code__ = (lambda *a: ('', '')).__code__\n"
        "def softmax(z):\n    return z",
    ),
    "patches what is prepared": (
        "softmax",
        "from mha_lib.teaching import steps\n"
        "for key in steps._CASES:\n    steps._CASES[key] = steps._CASES[key][:0]\n"
        "steps.STEPS['softmax'] = steps.CANDIDATES['softmax'] = None\n"
        "def softmax(z):\n    return z",
    ),
    "stops the watch": (
        "softmax",
        "import sys\nwatches = []\nsys.setprofile = watches.append\n"
        "sys.getprofile = lambda: watches[-1] if watches else None\n"
        "def softmax(z):\n    return mha_lib.softmax(z)",
    ),
    "shows points of its own": (
        "softmax",
        "def softmax(z):\n    import sys\n    sys.displayhook(2.0)\n    return z",
    ),
    "shows no points": (
        "softmax",
        "shell = get_ipython()\nshell.ast_node_interactivity = 'none'\n"
        "def softmax(z):\n    shell.ast_node_interactivity = 'none'\n    return z",
    ),
    "rewrites the tests": (
        "softmax",
        "def rewrite(lines):\n"
        "    return ['2.0' if 'result.score' in line else line for line in lines]\n"
        "get_ipython().input_transformers_post.append(rewrite)\n"
        "def softmax(z):\n    return z",
    ),
    "the library's function": ("softmax", "from mha_lib import softmax"),
    "writes outside its folder": ("softmax", "{solution}\n\nopen('../written', 'w').write('x')"),
    "large and odd output": (
        "softmax",
        "{solution}\n\nfor i in range(20000):\n    print('x' * 80)\nprint('\\udc80')\n"
        "import os\nos.write(1, b'\\xff\\xfe')",
    ),
    "replaces display": (
        "softmax",
        "import IPython.display\n"
        "def display(result):\n    object.__setattr__(result, 'score', 1.0)\n"
        "IPython.display.display = display\n"
        "def softmax(z):\n    return z",
    ),
    "switches the guard off": (
        "softmax",
        "import mha_lib.teaching.checks as c\n"
        "for callbacks in get_ipython().events.callbacks.values():\n    callbacks.clear()\n"
        "c.check_softmax = lambda *a, **k: type('R', (), {'score': 1.0})()\n"
        "def softmax(z):\n    return z",
    ),
    "warns": (
        "softmax",
        "{solution}\n\nimport sys\nfrom mha_lib.teaching import check_softmax\n\n"
        "quiet = softmax\ncheck_softmax(quiet, seed=3)\n\n"
        "def softmax(z):\n    print('careful', file=sys.stderr)\n    return quiet(z)",
    ),
    "installs": ("softmax", "%pip install something\nif True:\n    !pip list\n\n{solution}"),
    "slow": ("softmax", "{solution}\n\nimport time\ntime.sleep(4)"),
}
# What is no notebook of this assignment.
BYTES = {
    "invalid JSON": b'{"cells": [',
    "empty file": b"",
    "a list": b"[1, 2]",
    "not a notebook": b'{"cells": [{"cell_type": "code"}], "nbformat": 4, "nbformat_minor": 5}',
    "another assignment": nbformat.writes(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    ).encode(),
}


def pasted_catalogue():
    """Return code that holds the catalogue of mistakes: it cannot be imported there."""
    folder = assignment.ROOT / "mha_lib"
    files = [*folder.glob("*.py"), *folder.glob("teaching/misconceptions/*.py")]
    texts = {"wrong_lib": "", "wrong_lib.teaching": ""}
    for path in files:
        name = path.relative_to(folder.parent).with_suffix("").as_posix().replace("/", ".")
        if path != folder / "__init__.py":
            text = path.read_text("utf-8").replace("mha_lib", "wrong_lib")
            texts[name.replace("mha_lib", "wrong_lib").removesuffix(".__init__")] = text
    return f"""\
import importlib.abc, importlib.machinery, sys

texts = {texts!r}

class Pasted(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name in texts:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        pass

    def exec_module(self, module):
        exec(texts[module.__name__], vars(module))

sys.meta_path.insert(0, Pasted())
from wrong_lib.teaching.misconceptions import CATALOGUE
"""


def solutions():
    """Return the solution of each cell, by the cell's name."""
    return {
        name: re.sub(r"\n *### (BEGIN|END) SOLUTION", "", cell.source)
        for name, cell in _cells(nbformat.read(assignment.SOURCE, as_version=4)).items()
        if cell.metadata.nbgrader.solution
    }


def apart():
    """Return solutions which use the library's steps, so that a mistake stays in its part."""
    found = solutions()
    for part, steps in (
        ("attention", "softmax"),
        ("multi_head_attention", "split_heads|scaled_dot_product_attention|merge_heads"),
    ):
        found[part] = re.sub(rf"(?<=[ =])({steps})\(", r"mha_lib.\1(", found[part])
    return found


def submission(**exchanged):
    """Return a solved notebook, with the code of some cells exchanged."""
    notebook = nbformat.read(assignment.RELEASE, as_version=4)
    for name, cell in _cells(notebook).items():
        if cell.metadata.nbgrader.solution:
            cell.source = exchanged.get(name, solutions()[name])
    return notebook


def all_kinds(token):
    """Return every kind of submission as the bytes of its file, by the name of the kind.

    Parameters
    ----------
    token : str
        Stands in the command lines of the processes that some of them start.
    """
    kinds = {"good": submission(), "blank": nbformat.read(assignment.RELEASE, as_version=4)}
    for kind, (part, code) in CODE.items():
        code = code.replace("{solution}", solutions()[part]).replace("{token}", token)
        kinds[kind] = submission(**(apart() | {part: code}))

    no_test = submission(**apart())
    no_test.cells.remove(_cells(no_test)["test_softmax"])
    nothing = copy.deepcopy(no_test)
    for name in ("softmax", "setup"):
        nothing.cells.remove(_cells(nothing)[name])
    edited = submission(**(apart() | {"softmax": "def softmax(z):\n    return z"}))
    test = _cells(edited)["test_softmax"]
    test.source = "2.0"
    test.metadata = nbformat.from_dict(
        {"tags": ["skip-execution"], "nbgrader": {"grade_id": "test_softmax", "points": 100}}
    )
    twice = submission()
    at = twice.cells.index(_cells(twice)["softmax"])
    twice.cells.insert(at, copy.deepcopy(twice.cells[at]))
    kinds |= {
        "test deleted": no_test,
        "function and test deleted": nothing,
        "test edited": edited,
        "solution cell twice": twice,
    }
    files = {kind: json.dumps(notebook).encode() for kind, notebook in kinds.items()}
    latin = nbformat.writes(submission(specialisation="Déjà vu")).encode("latin-1")
    return files | BYTES | {"not UTF-8": latin}


def _cells(notebook):
    return {
        cell.metadata.nbgrader.grade_id: cell
        for cell in notebook.cells
        if "nbgrader" in cell.metadata
    }
