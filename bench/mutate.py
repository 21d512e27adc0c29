"""Change one spot of the library's numerics at a time, and list the changes that no test notices.

    make mutate                             # all modules
    .venv/bin/python bench/mutate.py masks  # one module

A surviving change needs a test that fails for it, or a line in EQUIVALENT that says why no test
can.  The files stay as they are: a change is made in a fork of this process, in the code of the
functions that it has loaded.  Windows has no fork.

Why not mutmut or cosmic-ray: mutmut 3.8 rewrites whole modules, and tests that read the lines of a
traceback, or what an import loads, fail on its version without any change.  Without those tests 48
of 223 changes of `masks` and `cost` survive, for the most part names in messages that those tests
read.  cosmic-ray starts Python anew for each change, which takes longer than the tests.
"""

import argparse
import ast
import contextlib
import copy
import importlib
import inspect
import io
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).parents[1]
SLOWEST = 300  # seconds; a change that makes a loop endless counts as noticed

# What is run for a module, in this order, until a test fails.
COMMON = ["book/test_errors.py", "core/test_conformance.py", "core/test_properties.py"]
TESTS = {
    "activations": ["core/test_activations.py", *COMMON],
    "attention": ["core/test_attention.py", *COMMON],
    "_blocked": ["core/test_blocked.py", *COMMON],
    "multihead": ["core/test_multihead.py", "core/test_blocked.py", *COMMON],
    "masks": ["core/test_masks.py", *COMMON],
    "cost": ["core/test_cost.py", "book/test_errors.py"],
}

# Changes that make no difference, by function and kind: how many of this kind, and why.  A kind
# names what is changed, not the line, which may be reworded.
EQUIVALENT = {
    "activations._softmax: -np.inf without its sign": (1, "NaN, so the other path computes it"),
    "activations._softmax: max -> min": (1, "the same; what overflows, the other path computes"),
    "activations._softmax: out= left out": (1, "saves memory alone"),
    "activations.softmax_backward: 0 -> 1": (1, "counts with a weight of 0"),
    "attention._attend: -np.inf without its sign": (1, "NaN, so the other path computes it"),
    "attention._attend: out= left out": (1, "saves memory alone"),
    "attention._row_sizes: 0 -> 1": (1, "small rows need no divisor"),
    "attention._row_sizes: 1 -> 2": (1, "where inf and NaN are, and 0, nothing is divided back"),
    "attention._row_sizes: > -> >=": (1, "no score of a row of 0 is lost"),
    "attention._row_sizes: axis= left out": (1, "one divisor for all is moderate enough"),
    "attention._blend: .astype() left out": (1, "products of bools give the same, without BLAS"),
    "attention._blend: 0 -> 1": (1, "what is put there has weight 0, or is overwritten"),
    "_blocked.attend_in_blocks: min() left out": (2, "room for more scores than there are"),
    "_blocked._one_head: ascontiguousarray() left out": (2, "copies are for speed alone"),
    "_blocked._one_head: k, v = ... left out": (1, "copies are for speed alone"),
    "_blocked._one_head: -1 without its sign": (1, "q has two axes there"),
    "_blocked._one_head: 1 -> 2": (1, "0 divided by any number is 0"),
    "_blocked._longest: 0 -> 1": (1, "a larger bound is a bound too"),
    "_blocked._is_moderate: .max() left out": (1, "more cautious: the other path is right too"),
    "_blocked._is_moderate: 0 -> 1": (1, "more cautious: the other path is right too"),
    "_blocked._is_moderate: < -> <=": (1, "either way is right at the border"),
    "masks.padding_mask: 1 -> 2": (1, "no memory holds half of it either"),
    "multihead._refuse_overflow: True -> False": (1, "the names are as many as the arrays"),
    "multihead._refuse_overflow: strict= left out": (1, "the names are as many as the arrays"),
    "multihead._refuse_overflow: isnan() left out": (1, "saves time: what is finite is fine"),
    "multihead._refuse_overflow: or -> and": (1, "saves time: what is finite is fine"),
    "multihead._steps: < -> <=": (1, "repeating keys and values once copies them"),
}  # fmt: skip

OTHER_OPERATOR = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.MatMult: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
SIGN = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.And: "and", ast.Or: "or", ast.Lt: "<",
    ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is",
    ast.IsNot: "is not",
}  # fmt: skip
OTHER_NAME = {"max": "min", "min": "max", "any": "all", "all": "any", "ones": "zeros"}


def variants(node):
    """Return all single changes of one node, without those of its parts, each with its kind."""
    found = []

    def change(kind, **fields):
        new = copy.deepcopy(node)
        for name, value in fields.items():
            setattr(new, name, value)
        found.append((kind, new))

    def operator(old):
        new = OTHER_OPERATOR[type(old)]
        return f"{SIGN[type(old)]} -> {SIGN[new]}", new()

    match node:
        case ast.BinOp() | ast.BoolOp() | ast.AugAssign() if type(node.op) in OTHER_OPERATOR:
            kind, new = operator(node.op)
            change(kind, op=new)
        case ast.Compare():
            for i, op in enumerate(node.ops):
                if type(op) in OTHER_OPERATOR:
                    kind, new = operator(op)
                    change(kind, ops=[*node.ops[:i], new, *node.ops[i + 1 :]])
        case ast.UnaryOp():
            found.append((f"{ast.unparse(node)} without its sign", node.operand))
        case ast.Constant(value=bool()):
            change(f"{node.value} -> {not node.value}", value=not node.value)
        case ast.Constant(value=int() | float()):
            change(f"{node.value} -> {node.value + 1}", value=node.value + 1)
        case ast.IfExp():
            change("both cases exchanged", body=node.orelse, orelse=node.body)
        case ast.If() | ast.While():
            change("condition turned round", test=ast.UnaryOp(ast.Not(), node.test))
        case ast.Attribute() if node.attr in OTHER_NAME:
            change(f"{node.attr} -> {OTHER_NAME[node.attr]}", attr=OTHER_NAME[node.attr])
        case ast.Call():
            for i, keyword in enumerate(node.keywords):
                others = node.keywords[:i] + node.keywords[i + 1 :]
                change(f"{keyword.arg}= left out", keywords=others)
            match node.func:  # leave the function out, or the method
                case ast.Attribute(value=ast.Name(id="_check")):
                    pass
                case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="np"), attr=name):
                    if node.args:
                        found.append((f"{name}() left out", node.args[0]))
                case ast.Attribute(value=value, attr=name):
                    found.append((f".{name}() left out", value))
    # Leave a statement out.  Without an assignment a name is missing, which every test notices,
    # unless it had a value before.
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Expr | ast.AugAssign | ast.Assign | ast.Raise) and not is_docstring:
        target = getattr(node, "target", None) or getattr(node, "targets", [None])[0]
        what = f"{ast.unparse(target).strip('()')} = ..." if target else type(node).__name__.lower()
        found.append((f"{what} left out", ast.Pass()))
    return found


def mutants(source):
    """Yield "function: kind", "before -> after" and the changed syntax tree, change by change."""
    tree = unannotated(source)
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        owners = {
            id(child): (parent, field, place)
            for parent in ast.walk(function)
            for field, value in ast.iter_fields(parent)
            for place, child in enumerate(value if isinstance(value, list) else [value])
            if isinstance(child, ast.AST)
        }
        for node in list(ast.walk(function))[1:]:
            parent, field, place = owners[id(node)]
            statement = node
            while not isinstance(statement, ast.stmt | ast.arguments):
                statement = owners[id(statement)][0]
            before = shown(statement)
            for kind, new in variants(node):
                set_child(parent, field, place, ast.copy_location(new, node))
                ast.fix_missing_locations(tree)
                after = shown(new if statement is node else statement)
                yield f"{function.name}: {kind}", f"{before} -> {after}", tree
            set_child(parent, field, place, node)


def unannotated(source):
    """Return the syntax tree without what only a type checker reads, which no test can notice."""
    tree = ast.parse(source)
    tree.body = [
        node
        for node in tree.body
        if not any(ast.unparse(d) == "overload" for d in getattr(node, "decorator_list", []))
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
    return tree


def set_child(parent, field, place, node):
    """Put a node into a field of its parent."""
    if isinstance(getattr(parent, field), list):
        getattr(parent, field)[place] = node
    else:
        setattr(parent, field, node)


def shown(node):
    """Return the first line of a statement's code."""
    return ast.unparse(node).splitlines()[0]


def apply(tree, module):
    """Give the functions of a module, wherever they were imported, the code of another tree."""
    changed = {}
    exec(compile(tree, module.__file__, "exec"), changed)  # noqa: S102 - our own source
    for name, function in inspect.getmembers(module, inspect.isfunction):
        if function.__module__ == module.__name__:
            function.__code__ = changed[name].__code__
            function.__defaults__ = changed[name].__defaults__
            function.__kwdefaults__ = changed[name].__kwdefaults__


def run_tests(names, *options):
    """Run files of tests until one fails, without a word; return whether all pass."""
    quiet = ["-x", "-q", "-p", "no:cacheprovider"]
    again = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # not the first run in this process
    with contextlib.redirect_stdout(io.StringIO()):
        return all(pytest.main([*quiet, *again, *options, f"tests/{name}"]) == 0 for name in names)


def start(tree, module, names):
    """Fork a process that applies a tree and runs the tests; its exit status is 0 if all pass."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        signal.alarm(SLOWEST)
        apply(tree, module)
        status = 0 if run_tests(names) else 1
    finally:
        os._exit(status)


def survivors(name, workers):
    """Return how many changes a module can have, and those that no test notices, by their kind."""
    module = importlib.import_module(f"mha_lib.{name}")
    run_tests(TESTS[name], "--collect-only")  # imports the tests, for all forks to come
    source = inspect.getsource(module)
    if os.waitpid(start(ast.parse(source), module, TESTS[name]), 0)[1] != 0:
        raise SystemExit(f"{name}: the tests fail without any change")
    count, running, alive = 0, {}, {}

    def wait_for_one():
        pid, status = os.wait()
        kind, change = running.pop(pid)
        if status == 0:
            alive.setdefault(f"{name}.{kind}", []).append(change)

    for kind, change, tree in mutants(source):
        if len(running) == workers:
            wait_for_one()
        running[start(tree, module, TESTS[name])] = kind, change
        count += 1
    while running:
        wait_for_one()
    return count, alive


def main():
    """Run the modules named on the command line, or all, and fail if a change goes unnoticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", choices=[[], *TESTS], help="default: all")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    os.chdir(ROOT)
    # That a property fails is enough here; the smallest example takes its time.
    settings.register_profile("mutate", phases=[Phase.explicit, Phase.generate])
    settings.load_profile("mutate")
    wrong = False
    for name in arguments.modules or TESTS:
        count, alive = survivors(name, arguments.workers)
        known = {kind: n for kind, (n, _) in EQUIVALENT.items() if kind.startswith(f"{name}.")}
        n_alive = sum(map(len, alive.values()))
        print(f"{name}: {count} changes, {count - n_alive} noticed, {sum(known.values())} known")
        for kind in sorted({*alive, *known}):
            changes = alive.get(kind, [])
            if len(changes) != known.get(kind, 0):
                wrong = True
                print(f"    {kind}: {len(changes)} unnoticed, {known.get(kind, 0)} explained")
                for change in changes:
                    print(f"        {change}")
        sys.stdout.flush()
    sys.exit(wrong)


if __name__ == "__main__":
    main()
