"""What `import mha_lib` gives, and how little it loads; who may import whom says pyproject.toml."""

import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

import mha_lib

PACKAGE = Path(mha_lib.__file__).parent


def test_importing_the_library_loads_numpy_and_nothing_else():
    show = "import sys, {}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"

    def loaded(module):
        command = [sys.executable, "-c", show.format(module)]
        result = subprocess.run(  # noqa: S603 - our own interpreter
            command, cwd=PACKAGE.parent, capture_output=True, text=True, check=True
        )
        return set(result.stdout.split())

    assert loaded("mha_lib") - loaded("numpy") - sys.stdlib_module_names == {"mha_lib"}
    # Training draws random numbers, and a trained encoder is loaded only when it is asked for.
    learning = loaded("mha_lib.learning") - loaded("numpy.random") - sys.stdlib_module_names
    assert learning == {"mha_lib"}


def test_no_module_shares_its_name_with_a_public_function_or_class_beside_it():
    """Else the one hides the other in the package."""
    for folder in {path.parent for path in PACKAGE.rglob("*.py")}:
        files = [*folder.glob("*.py")]
        defined = {
            node.name
            for path in files
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
        }
        assert {path.stem for path in files} & defined == set(), folder


def test_all_lists_exactly_the_public_names_in_order():
    modules = {module.name for module in pkgutil.iter_modules(mha_lib.__path__)}
    public = {name for name in vars(mha_lib) if not name.startswith("_")} - modules
    assert mha_lib.__all__ == sorted(public)
    for name in mha_lib.__all__:
        assert getattr(mha_lib, name).__doc__
