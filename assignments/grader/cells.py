"""What `judge` reads from the cells of a notebook, and writes into them."""

import ast
import builtins

import nbformat


def is_test(cell):
    """Return whether a cell gives points by itself."""
    graded = cell.metadata.get("nbgrader", {})
    return bool(cell.cell_type == "code" and graded.get("grade") and not graded.get("solution"))


def is_given(cell):
    """Return whether a cell is the instructor's, and no test."""
    graded = cell.metadata.get("nbgrader", {})
    return bool(graded.get("locked") and not graded.get("grade") and not graded.get("solution"))


def assigned(source):
    """Return the names that a piece of code gives a value."""
    stored = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name))
    return {node.id for node in stored if isinstance(node.ctx, ast.Store)}


def names(source):
    """Return the names that a test takes from the notebook."""
    tree = ast.parse(source)
    used, own = set(), {*dir(builtins), *imported(tree), "display", "get_ipython"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else own).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
    return used - own


def imported(tree):
    """Return the names that are imported anywhere in a piece of code."""
    return {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def imports(notebook):
    """Return what the instructor's own cells import: a test may use it."""
    lines = []
    for cell in notebook.cells:
        about = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and about.get("locked") and not about.get("solution"):
            try:
                body = ast.parse(cell.source).body
            except SyntaxError:
                continue
            lines += [ast.unparse(n) for n in body if isinstance(n, ast.Import | ast.ImportFrom)]
    return list(dict.fromkeys(lines))


def outputs(sent, most):
    """Return outputs that any tool can read, from whatever a student's process has sent."""
    outputs = []
    for output in sent if isinstance(sent, list) else []:
        if len(outputs) >= 1000 or not isinstance(output, dict):
            break
        kind = output.get("output_type")
        if kind == "stream":
            name = "stderr" if output.get("name") == "stderr" else "stdout"
            made = {"name": name, "text": str(output.get("text"))[: most + 200]}
        elif kind == "error":
            lines = output.get("traceback")
            made = {
                "ename": str(output.get("ename"))[:200],
                "evalue": str(output.get("evalue"))[:2000],
                "traceback": [str(line)[:10_000] for line in lines or [] if lines][:10],
            }
        elif kind in ("display_data", "execute_result") and isinstance(output.get("data"), dict):
            data = output["data"].items()
            made = {"data": {str(m)[:100]: text for m, text in data if isinstance(text, str)}}
        else:
            continue
        outputs.append(nbformat.v4.new_output(kind, **made))
    return outputs


def fail(cell, name, text):
    if cell.cell_type == "code":
        cell.outputs = [
            *cell.get("outputs", []),
            nbformat.v4.new_output("error", ename=name, evalue=text, traceback=[f"{name}: {text}"]),
        ]


def clean(value):
    """Return a copy whose texts can all be written as UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean(item) for item in value]
    return value
