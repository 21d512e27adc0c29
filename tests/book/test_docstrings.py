"""What docstrings must have beyond numpydoc's own checks, which `make check` runs."""

import ast
import importlib
import inspect
import json
import pkgutil
import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from numpydoc.docscrape import get_doc_object

import mha_lib
from mha_lib.figures import plots

CHAPTERS = Path(__file__).parents[2] / "chapters"
# What draws takes what matplotlib takes.
DRAWING = ("mha_lib.figures.diagram", "mha_lib.figures.palette", "mha_lib.figures.plots")


def public():
    """Return the public functions and classes that we wrote, by dotted name."""
    found = {}
    for info in pkgutil.walk_packages(mha_lib.__path__, "mha_lib."):
        if "._" in info.name or info.name.startswith((*DRAWING, "mha_lib.widgets")):
            continue
        module = importlib.import_module(info.name)
        for name, thing in vars(module).items():
            ours = getattr(thing, "__module__", "") == module.__name__
            written = inspect.isroutine(thing) or inspect.isclass(thing)
            if ours and written and not name.startswith("_"):
                found[f"{info.name}.{name}"] = thing
    return found


PUBLIC = public()
FUNCTIONS = [name for name, thing in PUBLIC.items() if inspect.isroutine(thing)]
DATACLASSES = [name for name, thing in PUBLIC.items() if is_dataclass(thing)]


def test_the_public_names_are_found():
    assert {name.split(".")[-1] for name in PUBLIC} >= set(mha_lib.__all__)
    assert {"learning", "teaching", "figures"} <= {name.split(".")[1] for name in PUBLIC}


def documented():
    """Return the dotted names of all entries of the reference."""
    names = set()
    for page in (CHAPTERS / "reference").glob("*.md"):
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith(".. currentmodule:: "):
                module = importlib.import_module(line.split()[-1])
            elif line.startswith((".. autofunction:: ", ".. autoclass:: ")):
                names.add(full_name(getattr(module, line.split()[-1].rstrip("()"))))
    return names


def full_name(thing):
    return f"{thing.__module__}.{thing.__name__}"


def test_the_reference_has_all_of_them():
    """What it has beyond them fails the build."""
    assert set(PUBLIC) - documented() == set()


def used_in_notebooks():
    """Return what a notebook imports from the library, or reads off one of its modules."""
    for path in (
        *CHAPTERS.glob("*.ipynb"),
        *(CHAPTERS.parent / "assignments/source").rglob("*.ipynb"),
    ):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for cell in cells:
            if cell["cell_type"] != "code":
                continue
            tree = ast.parse("".join(cell["source"]))
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and node.module.startswith("mha_lib"):
                    module = importlib.import_module(node.module)
                    for alias in node.names:
                        if hasattr(module, alias.name):
                            yield getattr(module, alias.name)
                elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    module = {"mha_lib": mha_lib, "plots": plots}.get(node.value.id)
                    if hasattr(module, node.attr):
                        yield getattr(module, node.attr)


def test_the_reference_has_every_name_that_a_notebook_uses():
    used = {
        full_name(thing)
        for thing in used_in_notebooks()
        if inspect.isclass(thing) or inspect.isroutine(thing)
    }
    assert {"mha_lib.activations.softmax", "mha_lib.figures.plots.use_style"} <= used
    assert used - documented() == set()


@pytest.mark.parametrize(
    "page", ["core", "learning", "teaching", "figures", "widgets", "internals"]
)
def test_a_page_of_the_reference_lists_its_names_before_it_explains_them(page):
    text = (CHAPTERS / "reference" / f"{page}.md").read_text(encoding="utf-8")
    listed, explained = (
        re.findall(pattern, text, re.MULTILINE)
        for pattern in (r"^   ([A-Za-z]\w+)$", r"^\.\. auto(?:function|class):: (\w+)")
    )
    assert sorted(listed) == sorted(explained)
    assert text.split("```python\n")[1].startswith("from mha_lib")


@pytest.mark.parametrize("name", PUBLIC)
def test_raises_says_only_what_is_particular_to_a_function(name):
    """That types and sizes must fit is said once, on the first page of the reference."""
    raises = get_doc_object(PUBLIC[name]).get("Raises", [])
    said = " ".join(" ".join(entry.desc) for entry in raises)
    assert not re.search(
        r"not (an integer|integers|real|boolean)\b|another kind|[Ss]izes disagree", said
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_shape_of_every_array_is_given(name):
    for entry in get_doc_object(PUBLIC[name])["Parameters"]:
        if re.search(r"\barrays?\b", entry.type):
            assert re.search(r"\(.*\)", entry.type), f"{entry.name} : {entry.type}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_runs(name):
    """That it gives what it says is for `--doctest-modules`."""
    assert any(line.startswith(">>>") for line in get_doc_object(PUBLIC[name])["Examples"])


@pytest.mark.parametrize("name", DATACLASSES)
def test_every_field_of_a_dataclass_is_described(name):
    attributes = get_doc_object(PUBLIC[name])["Attributes"]
    assert [entry.name for entry in attributes] == [field.name for field in fields(PUBLIC[name])]
    assert all("".join(entry.desc).strip() for entry in attributes)
