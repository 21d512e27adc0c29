"""Change one spot of the library's numerics at a time, and list the changes that no test notices.

    make mutate                             # all modules
    .venv/bin/python bench/mutate.py masks  # one module

A surviving change needs a test that fails for it, or a line in EQUIVALENT that says why no test
can.  The files stay as they are: a change is made in a fork of this process, in the code of the
functions that it has loaded.  Windows has no fork.
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
COMMON = ["test_errors.py", "test_conformance.py", "test_properties.py"]
TESTS = {
    "activations": ["test_activations.py", *COMMON],
    "attention": ["test_attention.py", *COMMON],
    "blocked": ["test_blocked.py", *COMMON],
    "multihead": ["test_multihead.py", "test_blocked.py", *COMMON],
    "masks": ["test_masks.py", *COMMON],
    "cost": ["test_cost.py", "test_errors.py"],
}

# Changes that make no difference, "module.function: before -> after", and why.
EQUIVALENT = {
    "activations.softmax: if np.isinf(largest).any(): -> if largest.any():": (
        "what follows changes nothing where no largest score is infinite"
    ),
    "activations.softmax_in_place: largest[largest == -np.inf] = 0.0 -> "
    "largest[largest == -np.inf] = 1.0": "-inf less any number is -inf",
    "activations.softmax_in_place: total[total == 0] = 1.0 -> total[total == 0] = 2.0": (
        "0 divided by any number is 0"
    ),
    "attention.scaled_dot_product_attention_backward: "
    "d_scores /= float(np.sqrt(q.shape[-1])) -> d_scores /= np.sqrt(q.shape[-1])": (
        "in place the dtype stays; float() spares float32 the detour through float64"
    ),
    "attention._blend: seen = (weights != 0).astype(v.dtype) -> seen = weights != 0": (
        "products of bools give the same, without BLAS"
    ),
    "attention._blend: out = weights @ np.where(finite, v, 0) -> "
    "out = weights @ np.where(finite, v, 1)": "what is put there has weight 0, or is overwritten",
    **dict.fromkeys(
        [
            f"blocked.attention_output: scores = np.empty((min(BLOCK, n_queries), "
            f"min(KEYS, k.shape[-2])), dtype) -> scores = np.empty({shape}, dtype)"
            for shape in ("(BLOCK, min(KEYS, k.shape[-2]))", "(min(BLOCK, n_queries), KEYS)")
        ],
        "room for more scores than there are",
    ),
    **dict.fromkeys(
        [
            f"blocked._one_head: k, v = (np.ascontiguousarray(k), np.ascontiguousarray(v)) -> {new}"
            for new in (
                "pass",
                "k, v = (k, np.ascontiguousarray(v))",
                "k, v = (np.ascontiguousarray(k), v)",
            )
        ],
        "copies are for speed alone",
    ),
    "blocked._one_head: scaled = q / float(np.sqrt(q.shape[-1])) -> "
    "scaled = q / np.sqrt(q.shape[-1])": "the scores keep their dtype; float() is for speed",
    "blocked._one_head: scaled = q / float(np.sqrt(q.shape[-1])) -> "
    "scaled = q / float(np.sqrt(q.shape[1]))": "q has two axes there",
    "blocked._one_head: total[total == 0] = 1 -> total[total == 0] = 2": (
        "0 divided by any number is 0"
    ),
    "blocked._longest: return np.sqrt(np.vecdot(rows, rows).max(initial=0)) -> "
    "return np.sqrt(np.vecdot(rows, rows).max(initial=1))": "a larger bound is a bound too",
    "blocked._is_moderate: return needed < -np.log(limits.tiny) -> "
    "return needed <= -np.log(limits.tiny)": "either way is right at the border",
    "multihead._side_by_side: whole = weights[0].base -> whole = weights[1].base": (
        "all three are parts of one array, or the answer is None"
    ),
    "multihead.multi_head_attention: if n_kv_heads < n_heads: -> "
    "if n_kv_heads <= n_heads:": "repeating keys and values once copies them",
}

OTHER_OPERATOR = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.MatMult: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OTHER_NAME = {"max": "min", "min": "max", "any": "all", "all": "any", "ones": "zeros"}


def variants(node):
    """Return all single changes of one node, without those of its parts."""
    found = []

    def change(**fields):
        new = copy.deepcopy(node)
        for name, value in fields.items():
            setattr(new, name, value)
        found.append(new)

    match node:
        case ast.BinOp() | ast.BoolOp() | ast.AugAssign() if type(node.op) in OTHER_OPERATOR:
            change(op=OTHER_OPERATOR[type(node.op)]())
        case ast.Compare():
            for i, op in enumerate(node.ops):
                if type(op) in OTHER_OPERATOR:
                    new = OTHER_OPERATOR[type(op)]()
                    change(ops=[*node.ops[:i], new, *node.ops[i + 1 :]])
        case ast.UnaryOp():
            found.append(node.operand)
        case ast.Constant(value=bool()):
            change(value=not node.value)
        case ast.Constant(value=int() | float()):
            change(value=node.value + 1)
        case ast.IfExp():
            change(body=node.orelse, orelse=node.body)
        case ast.If() | ast.While():
            change(test=ast.UnaryOp(ast.Not(), node.test))
        case ast.Attribute() if node.attr in OTHER_NAME:
            change(attr=OTHER_NAME[node.attr])
        case ast.Call():
            for i in range(len(node.keywords)):
                change(keywords=node.keywords[:i] + node.keywords[i + 1 :])
            match node.func:  # leave the function out, or the method
                case ast.Attribute(value=ast.Name(id="_check")):
                    pass
                case ast.Name() | ast.Attribute(value=ast.Name(id="np")) if node.args:
                    found.append(node.args[0])
                case ast.Attribute(value=value):
                    found.append(value)
    # Leave a statement out.  Without an assignment a name is missing, which every test notices,
    # unless it had a value before.
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Expr | ast.AugAssign | ast.Assign | ast.Raise) and not is_docstring:
        found.append(ast.Pass())
    return found


def mutants(source):
    """Yield "function: before -> after" and the changed syntax tree, change by change."""
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
            for new in variants(node):
                set_child(parent, field, place, ast.copy_location(new, node))
                ast.fix_missing_locations(tree)
                after = shown(new if statement is node else statement)
                yield f"{function.name}: {before} -> {after}", tree
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
    """Return how many changes a module can have, and the names of those that no test notices."""
    module = importlib.import_module(f"mha_lib.{name}")
    run_tests(TESTS[name], "--collect-only")  # imports the tests, for all forks to come
    source = inspect.getsource(module)
    if os.waitpid(start(ast.parse(source), module, TESTS[name]), 0)[1] != 0:
        raise SystemExit(f"{name}: the tests fail without any change")
    count, running, alive = 0, {}, []

    def wait_for_one():
        pid, status = os.wait()
        change = running.pop(pid)
        if status == 0:
            alive.append(f"{name}.{change}")

    for change, tree in mutants(source):
        if len(running) == workers:
            wait_for_one()
        running[start(tree, module, TESTS[name])] = change
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
    complaints = []
    for name in arguments.modules or TESTS:
        count, alive = survivors(name, arguments.workers)
        new = [change for change in alive if change not in EQUIVALENT]
        print(f"{name}: {count} changes, {count - len(alive)} noticed, ", end="")
        print(f"{len(alive) - len(new)} without effect, {len(new)} unnoticed")
        for change in new:
            print(f"    {change}")
        stale = [c for c in EQUIVALENT if c.startswith(f"{name}.") and c not in alive]
        for change in stale:
            print(f"    take out of EQUIVALENT: {change}")
        sys.stdout.flush()
        complaints += new + stale
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
