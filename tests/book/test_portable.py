"""The code needs no shell and no Unix path, so that it runs on Windows as well."""

import ast
from pathlib import Path

import pytest

from tests import notebooks

ROOT = Path(__file__).parents[2]
FOLDERS = ("mha_lib", "assignments", "tests", "_ext", "bench")
FILES = [
    ROOT / "noxfile.py",
    *sorted(f for name in FOLDERS for f in (ROOT / name).rglob("*.py") if f != Path(__file__)),
]
# What says in its first lines that it needs Linux.
LINUX = {"bench/attention.py": "/proc"}
TAKES_PATH = {"open", "Path", "os.chdir", "os.remove", "os.mkdir", "os.listdir"}
SHELL = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}
UNIX = ("/bin/", "/dev/", "/etc/", "/home/", "/proc/", "/tmp", "/usr/", "/var/", "~/")  # noqa: S108


def complaints(source):
    """Return one sentence for each spot that another system would not understand."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value.startswith(UNIX):
                found.append(f"{node.value!r}: use tempfile, os.devnull or Path.home()")
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in SHELL or any(
                k.arg == "shell" and getattr(k.value, "value", True) for k in node.keywords
            ):
                found.append(f"{name} starts a shell: use subprocess.run with a list")
            if name in TAKES_PATH and any(map(is_joined, node.args)):
                found.append(f"{ast.unparse(node)} joins a path by hand: use Path(a) / b")
            if is_text(node) and "utf-8" not in ast.unparse(node).lower():
                found.append(f'{name} takes the encoding of the system: say encoding="utf-8"')
    return found


def is_text(call):
    """Return whether a call reads or writes a file as text."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in ("read_text", "write_text")
    modes = call.args[1:2] + [k.value for k in call.keywords if k.arg == "mode"]
    return ast.unparse(call.func) == "open" and not any("b" in ast.unparse(m) for m in modes)


def is_joined(node):
    """Return whether a string is put together around a slash."""
    if not isinstance(node, ast.JoinedStr | ast.BinOp):
        return False
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add | ast.Mod):
        return False
    parts = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
    return any("/" in part for part in parts if isinstance(part, str))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_code_runs_without_a_shell_and_on_any_system(path):
    allowed = LINUX.get(path.relative_to(ROOT).as_posix())
    found = complaints(path.read_text(encoding="utf-8"))
    assert [each for each in found if allowed is None or allowed not in each] == []


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("os.system('ls')", "starts a shell"),
        ("subprocess.run('ls', shell=True)", "starts a shell"),
        ("subprocess.run(['ls'], shell=False)", None),
        ("open('/dev/null', 'wb')", "os.devnull"),
        ("folder = '/tmp'", "tempfile"),
        ("home = '~/book'", "Path.home"),
        ("open(folder + '/page.html', mode='rb')", "by hand"),
        ("Path(f'{folder}/page.html').exists()", "by hand"),
        ("open('%s/page.html' % folder, 'rb')", "by hand"),
        ("(Path(folder) / 'page.html').read_bytes()", None),
        ("path.read_text()", "encoding"),
        ("path.write_text(words, encoding='utf-8')", None),
        ("open(path, 'w')", "encoding"),
        ("open(path, encoding='utf-8')", None),
        ("Path('chapters/index.ipynb')", None),  # Windows reads it as well
        ("get(f'http://localhost/{page}')", None),
    ],
)
def test_the_check_sees_what_it_should(source, complaint):
    found = complaints(source)
    if complaint is None:
        assert found == []
    else:
        assert len(found) == 1
        assert complaint in found[0]


@pytest.mark.parametrize(
    "path",
    [*notebooks.PATHS, *sorted((ROOT / "assignments").rglob("*.ipynb"))],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_cells_are_python_without_commands_for_a_shell(path):
    for cell in notebooks.read(path).cells:
        if cell.cell_type == "code":
            ast.parse(cell.source)  # neither "!" nor "%%bash" parses
