"""The code runs on any system; ruff's PTH, S and PLW1514 see most of what would not."""

import ast
from pathlib import Path

import pytest

from tests import notebooks

ROOT = Path(__file__).parents[2]
FOLDERS = ("mha_lib", "assignments", "tests", "_ext", "bench")
FILES = [ROOT / "noxfile.py", *sorted(f for name in FOLDERS for f in (ROOT / name).rglob("*.py"))]


def without_encoding(source):
    """Return the calls that read or write text in the encoding of the system.

    PLW1514 knows them where it sees that something is a path: not in ``path.read_text()``.
    """
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    texts = [
        call for call in calls if getattr(call.func, "attr", "") in ("read_text", "write_text")
    ]
    return [call for call in map(ast.unparse, texts) if "utf-8" not in call]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_text_is_read_and_written_in_an_encoding_that_is_said(path):
    assert without_encoding(path.read_text("utf-8")) == []


def test_what_says_no_encoding_is_seen():
    source = "path.read_text()\npath.write_text(words, encoding='utf-8')\nfile.read_bytes()"
    assert without_encoding(source) == ["path.read_text()"]


@pytest.mark.parametrize(
    "path",
    [*notebooks.PATHS, *sorted((ROOT / "assignments").rglob("*.ipynb"))],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_cells_are_python_without_commands_for_a_shell(path):
    for cell in notebooks.read(path).cells:
        if cell.cell_type == "code":
            ast.parse(cell.source)  # neither "!" nor "%%bash" parses
