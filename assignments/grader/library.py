"""What of `mha_lib` a student's process gets: the source of some functions, and nothing beyond."""

import ast
from functools import cache
from pathlib import Path

import mha_lib
from mha_lib.teaching.steps import STEPS

_FOLDER = Path(mha_lib.__file__).parent
# Functions that do another one's work in their own way.
ALIKE = {"mended_head": "scaled_dot_product_attention"}
_WHOLE = ("mha_lib._types", "mha_lib._check")  # compute nothing that is asked for


def allowed(names):
    """Return what of the library the code may call while these functions are judged.

    Parameters
    ----------
    names : iterable of str
        What a test asks for.  For functions that the checks do not know, all but themselves.

    Returns
    -------
    functions : frozenset of str
        Names of `mha_lib`.
    """
    names = {ALIKE.get(name, name) for name in names}
    known = [frozenset(STEPS[name].allowed) for name in names & STEPS.keys()]
    functions = frozenset(name for name in STEPS if hasattr(mha_lib, name))
    return functions.intersection(*known) - names


@cache
def modules(functions):
    """Return the source of some functions, with all that they use and nothing else.

    Parameters
    ----------
    functions : frozenset of str
        Names of `mha_lib`.

    Returns
    -------
    texts : list of tuple
        Name and source of each module, in the order in which they can be run.
    homes : dict
        For each function the module that it is in.
    """
    homes = {name: getattr(mha_lib, name).__module__ for name in sorted(functions)}
    needed = {}  # names of each module
    for name, home in homes.items():
        _collect(home, name, needed)
    texts = [(name, _source(name)) for name in _WHOLE if functions]
    return texts + [(module, _only(module, needed)) for module in _ordered(needed)], homes


def _source(module):
    return (_FOLDER / f"{module.removeprefix('mha_lib.')}.py").read_text("utf-8")


@cache
def _parsed(module):
    """Return what a module defines, by name, and where its other names are from."""
    defined, imported = {}, {}
    for node in ast.parse(_source(module)).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.setdefault(node.name, []).append(node)  # more than one where it is overloaded
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in ast.walk(node):
                if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store):
                    defined.setdefault(target.id, []).append(node)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mha_lib"):
            imported |= {alias.name: node.module for alias in node.names}
    return defined, imported


def _collect(module, name, needed):
    """Add a name, and all names that its definition uses."""
    if module in ("mha_lib", *_WHOLE) or name in needed.setdefault(module, set()):
        return
    defined, imported = _parsed(module)
    if name in imported:
        _collect(imported[name], name, needed)
        return
    if name not in defined:  # a builtin, or of NumPy
        return
    needed[module].add(name)
    for node in defined[name]:
        for used in ast.walk(node):
            if isinstance(used, ast.Name):
                _collect(module, used.id, needed)


def _only(module, needed):
    """Return the source of a module without what is not needed."""
    body = []
    defined, _ = _parsed(module)
    kept = {id(node) for name in needed[module] for node in defined[name]}
    for node in ast.parse(_source(module)).body:
        if isinstance(node, ast.Import):
            body.append(node)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if origin.startswith("mha_lib.") and origin not in _WHOLE:
                node.names = [a for a in node.names if a.name in needed.get(origin, ())]
            if node.names:
                body.append(node)
    body += [node for nodes in defined.values() for node in nodes if id(node) in kept]
    body = list({id(node): node for node in body}.values())
    return ast.unparse(ast.Module(sorted(body, key=lambda node: node.lineno), []))


def _ordered(needed):
    """Return modules such that each comes after those from which it imports."""
    order = []

    def visit(module):
        if module in order or not needed.get(module):
            return
        for name, origin in _parsed(module)[1].items():
            if name in needed.get(origin, ()):
                visit(origin)
        order.append(module)

    for module in needed:
        visit(module)
    return order
