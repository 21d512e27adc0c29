"""What docstrings must have beyond numpydoc's own checks, which `make check` runs."""

import importlib
import inspect
import pkgutil
import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from numpydoc.docscrape import get_doc_object

import mha_lib

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


def test_the_reference_page_has_all_of_them():
    """What it has beyond them fails the build."""
    page = (Path(__file__).parents[2] / "chapters" / "reference.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"auto(?:function|class):: (\w+)", page))
    missing = {name.split(".")[-1] for name in PUBLIC} - listed
    # Entries of layers and models that a reader uses through them.
    assert missing == {"NamedArrays"}


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
