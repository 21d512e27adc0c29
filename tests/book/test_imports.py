"""Imports point down only, and `import mha_lib` is light."""

import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import mha_lib

PACKAGE = Path(mha_lib.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# From bottom to top.  A module may import from the layers below its own, never beside or above.
# A subpackage counts as one module; its parts may import each other.
LAYERS = [
    ["_types"],
    ["_check"],
    ["activations", "masks", "cost", "tasks", "frontier", "positions", "misconceptions", "speed"],
    ["attention"],
    ["blocked"],
    ["multihead", "palette"],
    ["layer", "train", "heads", "encoder", "checks", "diagram"],
    ["models", "effects"],
    ["experiments"],
    ["plots", "widgets"],
]
LEVEL = {module: level for level, layer in enumerate(LAYERS) for module in layer}
TOP = len(LAYERS) - 1
DRAWING = {"matplotlib", "matplotlib_inline", "ipywidgets", "anywidget", "traitlets"}


def name_of(path):
    """Return the dotted name of the module in the file at ``path``."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_by(source, name, is_package):
    """Return the dotted names that the module ``name`` imports, anywhere in its source."""
    package = name.split(".") if is_package else name.split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) + 1 - node.level] if node.level else []
            origin = ".".join([*start, *([node.module] if node.module else [])])
            if origin == "mha_lib":  # what is imported may itself be a module
                found |= {f"mha_lib.{alias.name}" for alias in node.names}
            else:
                found.add(origin)
    return found


def wrong_imports(source, name, is_package=False):
    """Return one sentence for each import that the layers forbid."""
    module = name.removeprefix("mha_lib").removeprefix(".").split(".")[0]  # "" is __init__.py
    if module and module not in LEVEL:
        return [f"{module} is in no layer: add it to LAYERS in tests/test_imports.py"]
    level = LEVEL.get(module, TOP)
    allowed = sys.stdlib_module_names | {"numpy"} | (DRAWING if module and level == TOP else set())
    wrong = []
    for target in sorted(imported_by(source, name, is_package)):
        root, below = f"{target}.".split(".")[:2]
        if root != "mha_lib":
            if root not in allowed:
                wrong.append(f"{name} imports {root}, which only the top layer may")
        elif below not in LEVEL:
            wrong.append(f"{name} imports {target}, which is in no layer")
        elif below != module and LEVEL[below] >= level:
            wrong.append(f"{name} imports {target}, which is not below it")
    return wrong


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_point_down(path):
    source = path.read_text(encoding="utf-8")
    assert wrong_imports(source, name_of(path), path.name == "__init__.py") == []


@pytest.mark.parametrize(
    ("source", "name", "complaint"),
    [
        ("import numpy as np, math\nfrom mha_lib import _check", "mha_lib.attention", None),
        ("from mha_lib.widgets import shared", "mha_lib.widgets.budget", None),
        ("from . import shared\nfrom ..plots import draw", "mha_lib.widgets.budget", "not below"),
        ("from .. import multihead", "mha_lib.widgets.budget", None),
        ("import anywidget, matplotlib", "mha_lib.widgets.budget", None),
        ("from mha_lib import multihead", "mha_lib.attention", "not below"),
        ("from mha_lib.multihead import split_heads", "mha_lib.attention", "not below"),
        ("from .multihead import split_heads", "mha_lib.attention", "not below"),
        ("import mha_lib.cost", "mha_lib.masks", "not below"),
        ("from mha_lib import softmax", "mha_lib.attention", "in no layer"),
        ("import mha_lib", "mha_lib.attention", "in no layer"),
        ("def f():\n    import matplotlib.pyplot", "mha_lib.learning.heads", "only the top layer"),
        ("import ipywidgets", "mha_lib", "only the top layer"),
        ("from mha_lib.figures.plots import draw", "mha_lib", "not below"),
        ("import torch", "mha_lib.figures.plots", "only the top layer"),
        ("", "mha_lib.surprise", "surprise is in no layer: add it to LAYERS"),
    ],
)
def test_the_check_of_imports_sees_what_it_should(source, name, complaint):
    wrong = wrong_imports(source, name, is_package=name == "mha_lib")
    if complaint is None:
        assert wrong == []
    else:
        assert len(wrong) == 1
        assert complaint in wrong[0]


def test_importing_the_library_loads_numpy_and_nothing_else():
    show = "import sys, {}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"

    def loaded(module):
        command = [sys.executable, "-c", show.format(module)]
        result = subprocess.run(  # noqa: S603 - our own interpreter
            command, cwd=PACKAGE.parent, capture_output=True, text=True, check=True
        )
        return set(result.stdout.split())

    assert loaded("mha_lib") - loaded("numpy") - sys.stdlib_module_names == {"mha_lib"}


BLOCK = """
import importlib.abc, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {packages}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
import {module}
"""


@pytest.mark.parametrize(
    ("module", "missing"),
    [("plots", "matplotlib"), ("widgets", "anywidget"), ("widgets", "traitlets")]
    + [(f"widgets.{path.stem}", "anywidget") for path in (PACKAGE / "widgets").glob("[a-z]*.py")],
)
def test_without_its_packages_a_module_says_how_to_install_them(module, missing):
    if missing == "traitlets":  # looked for second: without the first nobody asks for it
        pytest.importorskip("anywidget")
    program = BLOCK.format(packages={missing}, module=f"mha_lib.{module}")
    result = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program], cwd=PACKAGE.parent, capture_output=True, text=True
    )
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        f"ModuleNotFoundError: mha_lib.{module.split('.')[0]} needs {missing}, "
        f'which is not installed: pip install "mha_lib[book]"'
    )


@pytest.mark.parametrize("module", sorted(set(LEVEL) - {"plots", "widgets", "encoder"}))
def test_all_other_modules_need_numpy_alone(module):
    program = BLOCK.format(packages=DRAWING, module=f"mha_lib.{module}")
    result = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program], cwd=PACKAGE.parent, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


def test_no_module_shares_its_name_with_a_public_function_or_class():
    modules = {name_of(path).split(".")[-1] for path in FILES}
    public = {
        node.name
        for path in FILES
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    assert modules & (public | set(mha_lib.__all__)) == set()


def test_all_lists_exactly_the_public_names_in_order():
    modules = {module.name for module in pkgutil.iter_modules(mha_lib.__path__)}
    public = {name for name in vars(mha_lib) if not name.startswith("_")} - modules
    assert mha_lib.__all__ == sorted(public)
    for name in mha_lib.__all__:
        assert getattr(mha_lib, name).__doc__
