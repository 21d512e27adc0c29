"""Submissions that want more than they have earned, or that nobody else gets anything."""

import csv
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
import pytest

from tests.grader import assignment, submissions

pytestmark = pytest.mark.slow
FULL = {
    "softmax": 2, "attention": 4, "split_heads": 2, "merge_heads": 2,
    "multi_head_attention": 5, "masks": 3, "budget": 2,
    "predicted": 2, "mended_head": 2, "memory": 2, "reading": 2,
}  # fmt: skip
ROOT = str(assignment.ROOT)
OUTSIDE = Path(tempfile.gettempdir(), f"mha-written-{os.getpid()}")
SEED = "4391"  # of the hidden tests
LINES = assignment.SOURCE.read_text("utf-8").splitlines()
SECRET = next(i for i, line in enumerate(LINES, 1) if SEED in line)
NESTED = """\
import os
for _ in range({n}):
    os.mkdir('a'); os.chdir('a')
"""
# What stands in the cell of a part, what that part earns, and a flag, if there must be one.
# "honest" is the solution, "wrong" a softmax that returns its input.
HOSTILE = {
    "walks over frames and objects for an answer": (
        "softmax",
        "import gc, sys\n\ndef softmax(z):\n"
        "    found = []\n    frame = sys._getframe()\n"
        "    while frame:\n        found += list(frame.f_locals.values())\n"
        "        frame = frame.f_back\n"
        "    found += gc.get_objects()\n"
        "    for one in found:\n"
        "        try:\n"
        "            if 'right' in vars(one): return np.reshape(one.right.arrays[0][2], z.shape)\n"
        "            one.passed = one.score = 1.0\n"
        "        except Exception:\n            pass\n"
        "    return z",
        0,
        "",
    ),
    "runs the library's source": (
        "softmax",
        f"import types\nmodule = types.ModuleType('m')\n"
        f"try:\n    text = open({ROOT!r} + '/mha_lib/activations.py').read()\n"
        "except OSError:\n    import io\n    text = ''\n"
        "def softmax(z):\n"
        f"    exec(compile(text, 'x', 'exec'), vars(module))\n    return module.softmax(z)",
        0,
        "mha_lib/activations.py",
    ),
    "imports it anew, in a thread, by another name": (
        "attention",
        "import importlib, threading\n\n"
        "def scaled_dot_product_attention(q, k, v, mask=None):\n"
        "    got = []\n"
        "    def work():\n"
        "        module = importlib.reload(importlib.import_module('mha_lib.attention'))\n"
        "        got.append(module.scaled_dot_product_attention(q, k, v, mask))\n"
        "    thread = threading.Thread(target=work)\n    thread.start(); thread.join()\n"
        "    return got[0]",
        0,
        "scaled_dot_product_attention of mha_lib",
    ),
    "asks attention or the teaching for a softmax": (
        "softmax",
        "from mha_lib import scaled_dot_product_attention\n"
        "from mha_lib.multihead import attention_steps\n"
        "from mha_lib.teaching import right_function\n\n"
        "def softmax(z):\n"
        "    n = z.shape[-1]\n"
        "    q = np.atleast_2d(z) * np.sqrt(n)\n"
        "    for ask in (lambda: scaled_dot_product_attention(q, np.eye(n), np.eye(n))[1],\n"
        "                lambda: right_function('softmax')(z), lambda: attention_steps(z)):\n"
        "        try:\n            return ask().reshape(z.shape)\n"
        "        except Exception:\n            pass",
        0,
        "of mha_lib",
    ),
    "reads the parent's memory and environment": (
        "softmax",
        "import os\n\ndef softmax(z):\n"
        "    seen = dict(os.environ)\n"
        "    for name in ('mem', 'environ', 'cmdline', 'maps'):\n"
        "        try:\n"
        "            seen[name] = open(f'/proc/{os.getppid()}/{name}', 'rb').read(99)\n"
        "        except OSError:\n            pass\n"
        "    if any('4391' in str(text) for text in seen.values()) or 'maps' in seen:\n"
        "        e = np.exp(z - z.max(-1, keepdims=True))\n"
        "        return e / e.sum(-1, keepdims=True)\n"
        "    return z",
        0,
        "",
    ),
    "answers before it is asked": (
        "softmax",
        "import json, os, threading, time\n\n"
        "def flood():\n"
        "    data = json.dumps({'value': ['plain', 1], 'id': '0' * 16}).encode()\n"
        "    for descriptor in range(3, 40):\n"
        "        try:\n            os.write(descriptor, len(data).to_bytes(8, 'big') + data)\n"
        "        except OSError:\n            pass\n\n"
        "def softmax(z):\n    flood()\n    return z",
        0,
        "nobody asked for",
    ),
    "finds the number of the question in a frame, and answers twice": (
        "softmax",
        "import sys\n\ndef softmax(z):\n"
        "    frame = sys._getframe()\n"
        "    while 'request' not in frame.f_locals:\n        frame = frame.f_back\n"
        "    out, number = frame.f_locals['out'], frame.f_locals['request']['id']\n"
        "    if 'args' not in frame.f_locals['request']: return z  # not while it is judged\n"
        "    for _ in range(2):\n"
        '        data = (\'{"id": "%s", "value": true}\' % number).encode()\n'
        "        out.write(len(data).to_bytes(8, 'big') + data)\n"
        "        out.flush()\n"
        "    return z",
        0,
        "nobody asked for",
    ),
    "puts what it is called with into an error": (
        "softmax",
        "def softmax(z):\n    raise ValueError(f'told {z.ravel().tolist()}')",
        0,
        "",
    ),
    "answers with objects that equal everything": (
        "softmax",
        "class Same(float):\n    __eq__ = __le__ = __ge__ = lambda *_: True\n"
        "    __hash__ = None\n    __sub__ = __rsub__ = __abs__ = lambda *_: Same(0)\n\n"
        "class Rows(np.ndarray):\n"
        "    tolist = lambda self: [Same()]\n    __array__ = lambda *_: Rows((1,))\n\n"
        "turns = iter(range(10**9))\n\n"
        "def softmax(z):\n"
        "    loop = []\n    loop.append(loop)\n"
        "    huge = np.broadcast_to(0.0, (2**40,))\n"
        "    odd = [Same(), z.view(Rows), np.array([[Same()] * 5], object), loop, huge,\n"
        "           z.astype(complex), z.tolist(), {'a': {1}}, 10**5000, z * np.nan]\n"
        "    return odd[next(turns) % len(odd)]",
        0,
        "",
    ),
    "breaks what it writes its answers with": (
        "softmax",
        "import base64, json\n"
        "json.dumps = lambda *_, **__: '{}'\n"
        "base64.b64encode = lambda *_: b'AAAA'\n"
        "def softmax(z):\n    return z",
        None,  # whatever: it can lose all of its own
        "",
    ),
    "takes None for a mask that is not asked for": (
        "masks",
        "causal_mask = None\n\n"
        "def padding_mask(lengths, n):\n"
        "    return np.arange(n) < np.asarray(lengths)[..., None, None, None]",
        1.5,
        "",
    ),
    "leaves folders without end and without rights": (
        "softmax",
        "{solution}\n\n" + NESTED.format(n=1500) + "os.chmod('.', 0)\nos.chmod('..', 0)\n"
        "import atexit\natexit.register(os.mkdir, 'b')",
        2,
        "",
    ),
    "fills the disk": (
        "softmax",
        "{solution}\n\nimport time\nfor i in range(1000):\n"
        "    with open(f'file {i}', 'wb') as file:\n        file.write(bytes(50_000_000))",
        None,  # 0 or 2, depending on when it is ended
        "",
    ),
    "writes elsewhere by way of SQLite": (
        "softmax",
        "{solution}\n\nimport sqlite3\n"
        "sqlite3.connect('../written.db').execute('create table a (b)')",
        2,
        "",
    ),
    "opens what Python does not see": (
        "softmax",
        f"{{solution}}\n\nimport zmq\nzmq.Context().socket(zmq.REP).bind('ipc://{OUTSIDE}')",
        2,
        "",
    ),
    "undoes the grader's audit": (
        "softmax",
        "try:\n    open('/written', 'w')\nexcept PermissionError as error:\n"
        "    trace = error.__traceback__\n"
        "    while trace:\n"
        "        here = trace.tb_frame.f_globals\n"
        "        for name in ('_NEVER', '_CHANGING', '_PROGRAMS'):\n"
        "            if name in here: here[name] = frozenset()\n"
        "        trace = trace.tb_next\n"
        "import ctypes\n"
        "libc = ctypes.CDLL(None)\n"
        f"fd = libc.open(({ROOT!r} + '/mha_lib/activations.py').encode(), 0)\n"
        "buffer = ctypes.create_string_buffer(100_000)\n"
        "read = libc.read(fd, buffer, 100_000) > 0\n\n"
        "def softmax(z):\n"
        "    e = np.exp(z - z.max(-1, keepdims=True))\n"
        "    return e / e.sum(-1, keepdims=True) if read else z",
        0,
        "",
    ),
    "computes where it thinks that nobody sees it": (
        "split_heads",
        "import atexit, weakref\n\n"
        "def split_heads(x, n_heads):\n"
        "    try:\n        return mha_lib.split_heads(x, n_heads)\n"
        "    except BaseException:\n        return x",
        0,
        "split_heads of mha_lib",
    ),
    "has the judge read the hidden tests": (
        "softmax",
        f"code = '\\n' * {SECRET - 1} + 'def softmax(z): raise ValueError'\n"
        f"exec(compile(code, {str(assignment.SOURCE)!r}, 'exec'))",
        0,
        "",
    ),
    "stops itself": (
        "budget",
        "import signal\n\ndef count_parameters(d, n_heads):\n"
        "    signal.raise_signal(signal.SIGSTOP)\n\n"
        "def count_softmax_entries(n, n_heads):\n    return n_heads * n * n",
        0,
        "",
    ),
    "pastes the library's function under other names": (
        "softmax",
        "def softmax(z):\n"
        "    with np.errstate(all='ignore'):\n        return mine(z, axis=-1)\n\n"
        "def mine(x, axis):  # all mine\n"
        "    top = x.max(axis=axis, keepdims=True, initial=-np.inf)\n"
        "    p = np.where(np.isinf(top), x == np.inf, np.exp(x - top))\n"
        "    s = p.sum(axis=axis, keepdims=True)\n"
        "    return np.divide(p, s, out=p, where=s != 0)",
        2,
        "mine is written like _softmax_with_inf of mha_lib/activations.py",
    ),
}


def submitted(kind):
    part, code = HOSTILE[kind][:2]
    code = code.replace("{solution}", submissions.solutions()[part])
    return submissions.submission(**(submissions.apart() | {part: code}))


class Batch:
    def __init__(self, folder):
        self.out = folder / "out"
        handed_in = folder / "in"
        handed_in.mkdir()
        for kind in HOSTILE:
            nbformat.write(submitted(kind), handed_in / f"{safe(kind)}.ipynb")
        nbformat.write(submissions.submission(), handed_in / "zz honest.ipynb")
        scratch = folder / "tmp"
        scratch.mkdir()
        self.done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "assignments.grader", handed_in, self.out, "--jobs", "2"],
            cwd=ROOT, capture_output=True, text=True, timeout=900, check=False,
            env=os.environ | {"TMPDIR": str(scratch)},
        )  # fmt: skip
        self.left = list(scratch.iterdir())
        with (self.out / "grades.csv").open(newline="", encoding="utf-8-sig") as file:
            self.rows = {row["student"]: row for row in csv.DictReader(file)}


def safe(kind):
    return "".join(c if c.isalnum() else "_" for c in kind)


@pytest.fixture(scope="module")
def batch(tmp_path_factory):
    return Batch(tmp_path_factory.mktemp("hostile"))


@pytest.mark.parametrize("kind", HOSTILE)
def test_each_earns_what_it_has_earned_and_no_more(batch, kind):
    part, _, earned, flag = HOSTILE[kind]
    row = batch.rows[safe(kind)]
    assert row["status"] == "graded", row["remarks"]
    assert flag in row["look_at"], row["look_at"]
    if earned is None:
        return
    got = {name: float(row[name]) for name in FULL}
    assert got == FULL | {part: earned}, row


def test_nothing_of_the_hidden_tests_reaches_a_page(batch):
    for page in (batch.out / "feedback").glob("*.html"):
        text = page.read_text("utf-8")
        assert SEED not in text
        assert "HIDDEN" not in text
        assert not re.search(r"told \[-?\d", text)
        assert str(assignment.SOURCE) not in text


def test_the_honest_one_beside_them_is_not_touched(batch):
    row = batch.rows["zz_honest"]
    assert (row["total"], row["look_at"], row["remarks"]) == ("28", "", "")
    assert batch.done.returncode == 0
    assert (batch.out / "report.html").exists()


def test_nothing_is_left(batch):
    assert batch.left == []
    assert not OUTSIDE.exists()
    assert not list(batch.out.parent.rglob("written.db"))
