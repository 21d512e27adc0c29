"""How a notebook is judged: what a test sees of code that runs in another process."""

import json
import linecache
import multiprocessing
import os
import pathlib
import secrets
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from assignments.grader import elsewhere, execute, guard, judge, library, pasted
from tests.grader import assignment, submissions

SETUP = "import mha_lib\nimport numpy as np"
GIVEN = """
from mha_lib.teaching import right_function
head = right_function("softmax")(np.eye(3))
print("given:", head.shape)
"""
CODE = """
import os
from mha_lib.teaching import check_softmax, right_function
early = mha_lib.softmax(np.zeros(2))
check_softmax(np.zeros(2))
late = {"a": (1, 2.5)}
written = open("/written", "w")
numbers = np.arange(3)
strongest = head.argmax(axis=-1)
head = np.zeros((1, 1))

def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)

def double(x): return 2 * x

def add_in_place(x, *, times=1):
    x += times

def fails(x):
    unfinished = {}
    return unfinished["student's words"]

def uses_the_library(z): return mha_lib.softmax(z)

def merge_heads(x): return mha_lib.merge_heads(x)

def scaled_dot_product_attention(q, k, v, mask=None):
    return softmax_of(q), None

def split_heads(x, n_heads):
    return x.nothing

def softmax_of(z):
    raise NotImplementedError()

def forever():
    while True: pass

def ends(): os._exit(3)

"""
# Each is a test cell, and what a student is told of it.
TESTS = {
    "values": (
        "assert np.array_equal(double(np.ones(2)), [2, 2])\n"
        "assert late == {'a': (1, 2.5)} and numbers.tolist() == [0, 1, 2]\n"
        "assert type(double(np.float32(1))) is np.float32",
        None,
    ),
    "in place": (
        "x = np.zeros(2)\nadd_in_place(x, times=3)\nassert x.tolist() == [3, 3]",
        None,
    ),
    "an error can be caught": (
        "try:\n    fails(1)\nexcept KeyError as error:\n    assert 'words' in str(error)\n"
        "else:\n    raise AssertionError",
        None,
    ),
    "what a cell of the instructor computes": (
        "assert strongest.tolist() == [0, 1, 2]\nassert head.shape == (3, 3)",
        None,
    ),
    "an error": ("fails(1)", 'KeyError: "student\'s words"'),
    "a secret": ("assert double(2) == 5, 'the secret is 5'", "one of its tests did not pass"),
    "another secret": ("{'secret': 1}[double(2)]", "one of its tests did not pass"),
    "no function": ("nowhere(1)", "NameError: name 'nowhere' is not defined"),
    "the library": ("assert uses_the_library(np.zeros(2)).tolist() == [0.5, 0.5]", None),
    "what it was here": (
        "from mha_lib.teaching import check_softmax\nresult = check_softmax(softmax)\n"
        "display(result)\nresult.score",
        None,
    ),
    "what is asked for": (
        "from mha_lib.teaching import check_merge_heads\nmha_lib.merge_heads(np.ones((2, 3, 1)))\n"
        "result = check_merge_heads(merge_heads)\ndisplay(result)\nresult.score",
        None,
    ),
    "what is not written": (
        "from mha_lib.teaching import check_attention\n"
        "result = check_attention(scaled_dot_product_attention)\ndisplay(result)\nresult.score",
        None,
    ),
    "what raises": (
        "from mha_lib.teaching import check_split_heads\n"
        "result = check_split_heads(split_heads)\ndisplay(result)\nresult.score",
        None,
    ),
    "a loop": ("forever()", "CellTimeoutError: stopped after 2 seconds: a loop without end?"),
    "after the loop": ("assert double(1) == 2", None),
    "the end": ("ends()", "KernelDied: Python itself ended while this cell ran"),
    "after the end": ("assert double(1) == 2", None),
}
FOREVER = "def forever():\n    while True: pass"
AFTER = "def softmax(z): return z\nfrom ipywidgets import interact\ninteract(lambda x: x, x=(1, 3))"


def cell(source, name=None, **about):
    made = nbformat.v4.new_code_cell(source)
    if name is not None:
        made.metadata["nbgrader"] = {"grade_id": name, "schema_version": 3, **about}
    return made


def run(notebook, scratch, limits=None):
    """Judge a notebook in a process of its own, as the command does."""
    context = multiprocessing.get_context("spawn")
    connection, theirs = context.Pipe(duplex=False)
    limits = limits or execute.Limits(cell_seconds=2.0)
    arguments = json.loads(json.dumps(notebook)), str(scratch), limits, secrets.token_hex(), theirs
    process = context.Process(target=judge.run_notebook, args=arguments)
    process.start()
    theirs.close()
    judged = json.loads(connection.recv_bytes())
    process.join()
    return judged


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    cells = [
        cell(SETUP, "setup", grade=False, solution=False, locked=True),
        cell(GIVEN, "given", grade=False, solution=False, locked=True),
        cell(CODE, "code", grade=False, solution=True, locked=False),
    ]
    for name, (source, _) in TESTS.items():
        cells.append(cell(source, name, grade=True, solution=False, locked=True, points=1))
    cells.append(cell(AFTER))
    notebook = nbformat.v4.new_notebook(cells=cells)
    found = run(notebook, tmp_path_factory.mktemp("scratch"))
    assert "error" not in found, found
    found["cells"] = {
        cell["metadata"].get("nbgrader", {}).get("grade_id"): nbformat.from_dict(cell)
        for cell in found["notebook"]["cells"]
    }
    return found


def test_a_loop_is_interrupted_in_the_background_too(tmp_path):
    """There a shell has told all programs to ignore Ctrl-C, which stops a loop here."""
    cells = [
        cell(
            "def forever():\n    while True: pass", "code", grade=False, solution=True, locked=False
        ),
        cell("forever()", "loop", grade=True, solution=False, locked=True, points=1),
    ]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        limits = execute.Limits(cell_seconds=1.0)
        judged = run(nbformat.v4.new_notebook(cells=cells), tmp_path, limits)
    finally:
        signal.signal(signal.SIGINT, before)
    assert judged["told"]["loop"].startswith("CellTimeoutError: stopped after 1")


@pytest.mark.parametrize("name", TESTS)
def test_a_test_sees_what_the_code_does(judged, name):
    told = TESTS[name][1]
    errors = [o for o in judged["cells"][name].outputs if o.output_type == "error"]
    assert bool(errors) == (told is not None), errors
    assert judged["told"].get(name, "").startswith(told or "")


def check(judged, name):
    return judged["cells"][name].outputs[0].data["application/vnd.mha-lib.check+json"]


def test_a_function_is_what_it_was_where_its_test_stands(judged):
    assert check(judged, "what it was here")["score"] >= 0.75  # all but a row of -inf


def test_what_a_part_asks_for_is_not_there(judged):
    asked = check(judged, "what is asked for")
    assert (asked["score"], asked["verdict"]) == (0, "not your own")
    assert "merge_heads of mha_lib" in asked["diagnosis"]


def test_the_way_to_an_unwritten_function_is_told(judged):
    told = check(judged, "what is not written")["diagnosis"]
    assert "calls `softmax_of`, which is not written yet" in told


def test_the_line_of_an_error_is_quoted(judged):
    line = CODE.lstrip().splitlines().index("    return x.nothing") + 1
    assert f"in line {line}: return x.nothing" in check(judged, "what raises")["diagnosis"]


def test_a_line_that_is_refused_shows_an_error_and_the_next_one_runs(judged):
    names = [o.ename for o in judged["cells"]["code"].outputs if o.output_type == "error"]
    # The library is there when the cell is shown again, but its checks are not.
    assert names == ["Refused", "Refused"], judged["cells"]["code"].outputs


def test_the_instructor_sees_what_an_assertion_says(judged):
    assert "the secret is 5" in str(judged["cells"]["a secret"].outputs)
    assert "is 5" not in str(judged["told"])


def test_a_cell_of_the_instructor_shows_what_it_shows(judged):
    (output,) = judged["cells"]["given"].outputs
    assert output.text == "given: (3, 3)\n"


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("not [0.25, -1.5e-3, 3.]: 2 rows", "not […, …, …]: 2 rows"),
        ("[1. 2.]", "[… …]"),
        ("size 3 is different from 4.", "size 3 is different from 4."),
    ],
)
def test_a_message_does_not_bring_back_what_a_function_was_called_with(said, heard):
    assert heard in answered(error={"kinds": ["ValueError"], "message": said}).diagnosis


def test_a_widget_shows_something(judged):
    assert not [o for o in judged["cells"][None].outputs if o.output_type == "error"]


def test_the_system_seals_the_code_off(judged):
    if sys.platform != "linux":
        pytest.skip("only Linux does")
    assert judged["lack"] == ""


# --- what comes back --------------------------------------------------------------------------


def answered(**answer):
    """Return what a check says of a function whose process gives this answer to everything."""
    from mha_lib.teaching import check_softmax

    calls = elsewhere.Calls(SimpleNamespace(call=lambda *_: (answer, True)), "0", 5.0, [])
    found = {"softmax": {"function": True, "file": answer.get("file", "<cell 1>")}}
    return check_softmax(elsewhere.meanings(found, calls)["softmax"])


@pytest.mark.parametrize("file", [str(assignment.SOURCE), __file__, "\0", "<cell 1>\n", 7])
def test_no_file_is_read_for_a_traceback(file, monkeypatch):
    """The line of an error stands in the feedback: it must be one of the notebook."""
    asked = []
    monkeypatch.setattr(linecache, "getline", lambda name, _: asked.append(name) or "")
    error = {"kinds": ["ValueError"], "message": "m", "frames": [[file, "softmax", 3]]}
    result = answered(error=error, file=file)
    assert "raised ValueError: m" in result.diagnosis
    assert str(file) not in asked


@pytest.mark.parametrize(
    "answer",
    [
        {}, {"error": 3}, {"error": {"kinds": 7, "frames": {"a": 1}}}, {"value": {"a": 1}},
        {"error": {"kinds": ["\0", "SystemExit"], "message": None, "frames": [[1], 2, None]}},
        {"error": {"kinds": ["KeyError"], "frames": [["<cell 1>", "f", 10**30]]}},
        {"value": ["plain", None], "changed": 3, "used": "softmax"},
        {"value": ["tuple", [["plain", 1]] * 9], "changed": [["array", "<f8", [1], "AA"], 2]},
    ],
)  # fmt: skip
def test_whatever_comes_back_is_an_answer_or_none(answer):
    result = answered(**answer)
    assert (result.score, result.verdict in ("wrong", "blank")) == (0, True)


# --- what the process gets --------------------------------------------------------------------


@pytest.mark.parametrize("asked", library.STEPS)
def test_nothing_of_what_is_asked_for_is_sent(asked):
    texts, homes = library.modules(library.allowed([asked]))
    assert asked not in homes
    text = "\n".join(text for _, text in texts)
    assert f"def {asked}(" not in text
    for never in ("attention_steps", "attend_in_blocks", "def multi_head_attention", "TOLERANCE"):
        assert never not in text


def test_what_is_sent_works():
    texts, homes = library.modules(library.allowed(["multi_head_attention"]))
    assert set(homes) == set(library.STEPS["multi_head_attention"].allowed)
    defined = dict(texts)
    for function, module in homes.items():
        assert f"def {function}(" in defined[module]


def test_a_part_that_no_check_knows_has_the_rest_of_the_library():
    assert library.allowed(["rotary"]) > library.allowed(["multi_head_attention"])
    assert "softmax" not in library.allowed(["rotary", "softmax"])


def test_only_what_holds_nothing_kept_is_readable(tmp_path):
    for name in ("a/kept/x", "a/b/c", "d"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a" / "link").symlink_to(tmp_path / "a" / "kept")
    found = guard.readable([str(tmp_path)], [str(tmp_path / "a" / "kept")])
    ours = [path for path in found if path.startswith(str(tmp_path.resolve()))]
    assert ours == [str(tmp_path.resolve() / name) for name in ("a/b", "d")]


def test_the_environment_tells_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("A_SECRET", "4391")
    assert "A_SECRET" not in execute._environment(str(tmp_path), "mark")


# --- pasted code ------------------------------------------------------------------------------


def test_no_solution_is_taken_for_the_library():
    assert pasted.found(submissions.submission()) == []
    assert pasted.found(submissions.submission(**submissions.apart())) == []


def test_the_library_is_known_under_other_names():
    text = (assignment.ROOT / "mha_lib" / "activations.py").read_text("utf-8")
    renamed = text.replace("largest", "top").replace("total", "s").replace("# ", "# my ")
    flags = pasted.found(nbformat.v4.new_notebook(cells=[cell(renamed)]))
    assert "_softmax_with_inf is written like _softmax_with_inf of mha_lib/activations.py" in flags
    renamed = renamed.replace("z == np.inf", "z >= np.inf")
    flags = pasted.found(nbformat.v4.new_notebook(cells=[cell(renamed)]))
    assert not [flag for flag in flags if "_with_inf" in flag]


@pytest.mark.parametrize("source", ["def f(:", "-" * 50_000 + "1", "(" * 50_000, "\0"])
def test_what_cannot_be_read_is_not_compared(source):
    assert pasted.found(nbformat.v4.new_notebook(cells=[cell(source)])) == []


# --- limits -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["f'file {i}'", "'no name'"])
def test_who_fills_the_disk_is_ended(tmp_path, name):
    code = f"""\
import os, time
for i in range(30):
    file = open({name}, 'wb', 0)
    os.remove('no name') if 'no name' in {name} else None
    globals()[f'open {{i}}'] = file
    file.write(bytes(2_000_000))
time.sleep(30)
"""
    process = execute.Process(str(tmp_path), execute.Limits(disk_megabytes=20), "a mark")
    with pytest.raises(execute.DiedError, match="wrote more than 20 MB"):
        process.ask(20, do="cell", number=1, source=code)


# --- folders ----------------------------------------------------------------------------------


def test_a_folder_is_removed_however_deep(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    here = Path.cwd()
    try:
        os.chdir(folder)
        for _ in range(3000):
            pathlib.Path("deep").mkdir()
            os.chdir("deep")
        pathlib.Path(folder / "deep").chmod(0)
    finally:
        os.chdir(here)
    assert execute.remove(str(folder))
    assert not folder.exists()
