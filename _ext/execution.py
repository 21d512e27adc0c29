"""Run notebooks: for the pages of the book, for ``make notebooks``, and for the grader.

`Client` is nbclient's, mended: with an Output widget (`interact` makes one) it could lose the
kernel's answer and wait for it until the time was up, see jupyter/nbclient#312.  `BookClient` adds
what holds for the book's own notebooks.  As a Sphinx extension, this module has the pages run by
`BookClient`.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import zmq
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbclient.output_widget import OutputWidget

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "_build" / "kernels"  # instead of folders in a home, which may not be writable
CELL_SECONDS = 240  # the slowest cell takes 12 on an idle machine, 70 on one five times too busy
TELL_AFTER = 20  # seconds
# What a reader may have set that would change the pages: figures that do not show, claims that are
# not checked (-O skips every assert), warnings of libraries that stop a cell.
UNWANTED = ("MATPLOTLIBRC", "PYTHONOPTIMIZE", "PYTHONSTARTUP", "PYTHONWARNINGS")


class _OutputWidget(OutputWidget):
    """Sends its state to the kernel without losing what comes back meanwhile."""

    def send(self, *args, **kwargs):
        super().send(*args, **kwargs)
        # The socket tells once that something can be read, and sending uses that up.  To ask for
        # its events wakes whoever waits for them.
        self.kernel_client.shell_channel.socket.get(zmq.EVENTS)


class Client(NotebookClient):
    """A notebook client that never waits for an answer that has come."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.widget_registry["@jupyter-widgets/output"]["OutputModel"] = _OutputWidget


class BookClient(Client):
    """Runs a notebook of the book.

    It tells which cell takes long, names notebook and cell in errors, takes a cell that writes to
    stderr for one that failed, and keeps a line whole that was printed in parts.

    Parameters
    ----------
    notebook : NotebookNode
    path : pathlib.Path
        Where the notebook is stored; its cells run in that folder.
    **options
        Passed on to nbclient.
    """

    def __init__(self, notebook, path, **options):
        options = {"timeout": CELL_SECONDS, "record_timing": False} | options
        options["resources"] = {"metadata": {"path": str(path.parent)}}
        super().__init__(notebook, **options)
        self._name = f"{path.parent.name}/{path.name}"

    async def async_execute_cell(self, cell, *args, **kwargs):
        """Run one cell, as nbclient does."""
        place = f"{self._name}, cell [{self.code_cells_executed + 1}]"
        telling = asyncio.ensure_future(_tell(place, cell))
        try:
            await super().async_execute_cell(cell, *args, **kwargs)
        except CellTimeoutError as error:
            raise CellTimeoutError(f"{place}: {error}") from None
        except CellExecutionError as error:
            error.traceback = f"{place}: {error.traceback}"
            raise
        finally:
            telling.cancel()
        _join_streams(cell)
        for output in cell.get("outputs", ()):
            if output.get("name") == "stderr":
                raise CellExecutionError(
                    f"{place} wrote to stderr, which no page shows:\n{output.text}",
                    "stderr",
                    output.text,
                )
        return cell


def _join_streams(cell):
    """Put together what a stream sent in parts, which myst-nb would show as lines of their own."""
    if "outputs" not in cell:  # text
        return
    joined = []
    for output in cell["outputs"]:
        name = output.get("name")
        if joined and name is not None and joined[-1].get("name") == name:
            joined[-1]["text"] += output["text"]
        else:
            joined.append(output)
    cell["outputs"] = joined


async def _tell(place, cell):
    """Say again and again, ever more rarely, that a cell still runs."""
    seconds = TELL_AFTER
    await asyncio.sleep(seconds)
    while True:
        first_line = cell.source.strip().partition("\n")[0]
        print(f"still running after {seconds:g} s: {place}: {first_line}", file=sys.stderr)
        await asyncio.sleep(seconds)
        seconds *= 2


def set_environment():
    """Make this process, and the kernels it starts, independent of what the reader has set."""
    for name in UNWANTED:
        os.environ.pop(name, None)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.update(
        {
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            "MPLCONFIGDIR": str(FOLDER / "matplotlib"),
            "IPYTHONDIR": str(FOLDER / "ipython"),
            "JUPYTER_RUNTIME_DIR": str(FOLDER / "runtime"),
            "PYTHONUTF8": "1",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # it warns of frozen modules in every notebook
            "TQDM_DISABLE": "1",  # a progress bar on a page would show nothing but its end
        }
    )
    for name in ("matplotlib", "ipython", "runtime"):
        (FOLDER / name).mkdir(parents=True, exist_ok=True)
    if not list((FOLDER / "matplotlib").glob("fontlist-*")):
        # Matplotlib looks through all fonts once, and says so if that takes long: not on a page.
        subprocess.run(
            [sys.executable, "-c", "import matplotlib.font_manager"],
            capture_output=True,
            check=False,
        )


def setup(app):
    """Have myst-nb run the pages by `BookClient`."""
    import jupyter_cache.executors.utils as jupyter_cache
    import myst_nb.core.execute as myst_nb

    class BookPage(myst_nb.NotebookClientDirect):
        def start_client(self):
            def execute(notebook, cwd, **options):
                return BookClient(notebook, self.path, **options).execute()

            # The only way in: between here and nbclient nothing passes on a client of one's own.
            before, jupyter_cache.executenb = jupyter_cache.executenb, execute
            try:
                super().start_client()
            finally:
                jupyter_cache.executenb = before

    set_environment()
    myst_nb.NotebookClientDirect = BookPage
    return {"parallel_read_safe": True, "parallel_write_safe": True}
