"""Run the notebooks and save them in the form that is committed.

``python -m tests.notebooks`` runs every notebook of the book from top to bottom and saves its
text outputs, which nbval then holds the book to.  It draws the README's picture anew as well.
Figures and widget state are left out of notebooks: they are large, differ between machines, and
nbval does not compare them.

Colab opens the notebooks of the repository as they are.  Once the book has an address, each begins
with a cell that installs the library from there; anywhere else it does nothing.
"""

import sys
from pathlib import Path

import nbformat
import yaml

from _ext.execution import BookClient, set_environment
from mha_lib.figures.diagram import MechanismDiagram

ROOT = Path(__file__).resolve().parent.parent
PATHS = sorted(
    path for path in (ROOT / "chapters").rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts
)
README_PICTURE = ROOT / "_static" / "mechanism.svg"
# What a cell tag may be; the build and nbval each act on some of them.
TAGS = {
    "hide-input",
    "hide-output",  # the answer to a prediction, until the reader asks for it
    "hide-cell",
    "remove-cell",
    "raises-exception",
    "nbval-ignore-output",
}
KEPT = ("tags", "mystnb", "nbgrader")  # of a cell's metadata
# Other tools learn from this that a notebook is in Python, and how to name its code in a file.
# The version of Python, which Jupyter adds, is left out.
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
    },
}
NOT_COMMITTED = ("image/png", "application/vnd.jupyter.widget-view+json")
# What stands for a drawing: that there is one, nbval compares; tests/nbval.ini leaves out which.
EMPTY_DRAWING = '<svg xmlns="http://www.w3.org/2000/svg"/>'


# The page does without it; Binder and Jupyter have the library already.
COLAB = """\
# In Colab: install the library of this book.  Elsewhere this cell does nothing.
import sys

if "google.colab" in sys.modules:
    %pip install --quiet "mha_lib[book] @ git+ADDRESS"
"""


def address():
    """Return where the book's repository is, or "" while no address is set."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    return config["repository"]["url"]


def is_for_colab(cell):
    """Whether ``cell`` is the one that installs the library, from whatever address."""
    return cell.cell_type == "code" and cell.source.startswith(COLAB.splitlines()[0])


def with_colab(notebook, address):
    """Return a copy of ``notebook`` whose first code cell installs from ``address``, if any."""
    notebook = nbformat.from_dict(notebook)
    notebook.cells = [cell for cell in notebook.cells if not is_for_colab(cell)]
    if address:
        source = COLAB.replace("ADDRESS", address).strip()
        cell = nbformat.v4.new_code_cell(source, metadata={"tags": ["remove-cell"]})
        cell["id"] = "for-colab"
        notebook.cells.insert(1, cell)  # the title comes first
    return notebook


def read(path):
    """Return the notebook stored at ``path``."""
    return nbformat.read(path, as_version=4)


def normalised(notebook):
    """Return a copy of ``notebook`` in the form in which it is committed."""
    notebook = nbformat.from_dict(notebook)
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        kept = {key: cell.metadata[key] for key in KEPT if cell.metadata.get(key)}
        cell.metadata = nbformat.from_dict(kept)
        if cell.cell_type == "code":
            cell.outputs = _merged_streams(cell.outputs)
        for output in cell.get("outputs", []):
            if "data" in output:
                output.data = {k: v for k, v in output.data.items() if k not in NOT_COMMITTED}
                if "image/svg+xml" in output.data:
                    output.data["image/svg+xml"] = EMPTY_DRAWING
                output.metadata = {}
    return notebook


def _merged_streams(outputs):
    """Join neighbouring pieces of one stream: where they break depends on timing."""
    merged = []
    for output in outputs:
        last = merged[-1] if merged else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            merged.append(output)
    return merged


def refresh(path):
    """Run the notebook at ``path`` and save it with its outputs."""
    notebook = with_colab(read(path), address())
    BookClient(notebook, path).execute()
    nbformat.write(normalised(notebook), path)


def readme_picture():
    """Return the diagram of the first page, as the file that the README shows."""
    return MechanismDiagram.example().file


if __name__ == "__main__":
    set_environment()
    README_PICTURE.write_text(readme_picture(), encoding="utf-8")
    chosen = [Path(name).resolve() for name in sys.argv[1:]] or PATHS
    for chosen_path in chosen:
        print(f"running {chosen_path.relative_to(ROOT)}", flush=True)
        refresh(chosen_path)
