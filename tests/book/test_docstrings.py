"""Every public function and class tells what it takes, gives, refuses, and shows an example."""

import importlib
import inspect
import pkgutil
import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

import mha_lib

# What draws has nothing to print in an example, and raises what matplotlib raises.
DRAWING = {"diagram", "palette", "plots", "widgets"}
# numpydoc's rules that we do not follow.
IGNORED = {
    "GL01",  # the summary starts on the line of the opening quotes
    "ES01",  # not every function needs more than a summary
    "SA01",  # nor a "See Also"
    "SA03",  # whose descriptions need no capital
    "RT02",  # returned arrays have names, since other docstrings refer to them
}


def public(kind):
    """Return the public objects of one kind, functions or classes, by dotted name."""
    names = [module.name for module in pkgutil.iter_modules(mha_lib.__path__)]
    modules = [
        importlib.import_module(f"mha_lib.{name}")
        for name in names
        if name not in DRAWING and not name.startswith("_")
    ]
    return [
        pytest.param(member, id=f"{module.__name__}.{name}")
        for module in modules
        for name, member in inspect.getmembers(module, kind)
        if member.__module__ == module.__name__ and not name.startswith("_")
    ]


FUNCTIONS, CLASSES = public(inspect.isfunction), public(inspect.isclass)


def complaints(thing, ignored):
    """Return what numpydoc finds wrong with a docstring."""
    result = validate(f"{thing.__module__}.{thing.__name__}")
    return [f"{code}: {text}" for code, text in result["errors"] if code not in ignored]


def test_the_public_names_are_found():
    found = {parameter.values[0].__name__ for parameter in FUNCTIONS + CLASSES}
    assert found >= set(mha_lib.__all__)


def test_the_reference_page_has_all_of_them():
    """What it has beyond them fails the build."""
    page = (Path(__file__).parents[2] / "chapters" / "reference.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"auto(?:function|class):: (\w+)", page))
    missing = {parameter.values[0].__name__ for parameter in FUNCTIONS + CLASSES} - listed
    # Entries of layers and models that a reader uses through them.
    assert missing == {"NamedArrays"}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_functions_docstring_is_complete(function):
    assert complaints(function, IGNORED) == []
    doc = get_doc_object(function)
    # What takes no argument has none to describe or to refuse.
    of_arguments = ("Parameters", "Raises") if inspect.signature(function).parameters else ()
    for section in ("Returns", *of_arguments):
        assert doc[section], f"{section} is missing"
        for entry in doc[section]:
            assert "".join(entry.desc).strip(), f"{section}: {entry} is not described"
    assert any(line.startswith(">>>") for line in doc["Examples"])


@pytest.mark.parametrize("cls", [c for c in CLASSES if is_dataclass(c.values[0])])
def test_a_dataclasss_docstring_is_complete(cls):
    assert complaints(cls, IGNORED | {"PR01"}) == []  # the fields stand under "Attributes"
    attributes = get_doc_object(cls)["Attributes"]
    assert [entry.name for entry in attributes] == [field.name for field in fields(cls)]
    assert all("".join(entry.desc).strip() for entry in attributes)


@pytest.mark.parametrize("cls", [c for c in CLASSES if not is_dataclass(c.values[0])])
def test_a_classs_docstring_is_complete(cls):
    assert complaints(cls, IGNORED) == []
    for name, method in inspect.getmembers(cls, inspect.isfunction):
        assert name.startswith("_") or inspect.getdoc(method), name


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_shape_of_every_array_is_given(function):
    for entry in get_doc_object(function)["Parameters"]:
        if re.search(r"\barrays?\b", entry.type):
            assert re.search(r"\(.*\)", entry.type), f"{entry.name} : {entry.type}"
