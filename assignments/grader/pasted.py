"""See where a notebook holds a function of the library word for word, but for its names."""

import ast
import copy
from functools import cache
from pathlib import Path

import mha_lib

# Two people write the same short function independently: such are not compared.
FEWEST_NODES = 60
LONGEST = 100_000  # characters of a cell


def found(notebook):
    """Return what a person should look at: functions that are written like the library's.

    Names, comments, docstrings, annotations and layout are not compared.

    Parameters
    ----------
    notebook : NotebookNode
        With all the student's cells.

    Returns
    -------
    flags : list of str
        One for each function.
    """
    flags = []
    for cell in notebook.cells:
        if cell.cell_type == "code" and len(cell.source) <= LONGEST:
            for function, text in _functions(cell.source):
                if text in _library():
                    flags.append(f"{function} is written like {_library()[text]}")
    return flags


def _functions(source):
    """Return the functions in a source, and what each says."""
    try:
        tree = ast.parse(source)
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        return [(node.name, text) for node in nodes if (text := _plain(node))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


@cache
def _library():
    folder = Path(mha_lib.__file__).parent
    return {
        text: f"{name} of {path.relative_to(folder.parent).as_posix()}"
        for path in sorted(folder.glob("*.py"))  # the core, where all that is asked for is
        for name, text in _functions(path.read_text("utf-8"))
    }


def _plain(function):
    """Return what a function says, with its own names numbered; empty if that is little."""
    if sum(1 for _ in ast.walk(function)) < FEWEST_NODES:
        return ""
    function = copy.deepcopy(function)
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        function.body = function.body[1:]
    numbers = {}
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    own = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    own |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in own:
            node.id = f"name {numbers.setdefault(node.id, len(numbers))}"
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    if len(nodes) < FEWEST_NODES:
        return ""
    return "\n".join(ast.dump(statement) for statement in function.body)
