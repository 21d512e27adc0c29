"""Run cells as Jupyter does, in this process, and keep what they show within bounds."""

import base64
import io
import json
import sys
from contextlib import contextmanager

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


class _Hook(DisplayHook):
    """Keeps the value of the last line."""

    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        self.shell.kept.add(_shown("execute_result", format_dict), needed=True)

    def finish_displayhook(self):
        pass


class _Publisher(DisplayPublisher):
    """Keeps what `display` shows."""

    def publish(self, data, *_, **__):
        self.shell.kept.add(_shown("display_data", data))


class _Shell(InteractiveShell):
    kept = None

    def _showtraceback(self, etype, evalue, stb):
        try:
            text = str(evalue)
        except Exception:  # an exception that cannot tell about itself
            text = ""
        # An endless recursion has a long way back.
        error = {
            "output_type": "error",
            "ename": str(etype.__name__)[:200],
            "evalue": text[:2000],
            "traceback": [str(line)[-10_000:] for line in stb[-10:]],
        }
        self.kept.add(error, needed=True)

    def enable_gui(self, gui=None):
        pass


class _Stream(io.TextIOBase):
    """Keeps what is printed."""

    encoding = "utf-8"

    def __init__(self, kept, name):
        self._kept, self._name = kept, name

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._kept.print(self._name, text)
        return len(text)


class _Kept:
    """The outputs of one cell, as many as there is room for."""

    def __init__(self, most):
        self.most, self.outputs, self.size = most, [], 0

    def add(self, output, needed=False):
        size = len(json.dumps(output))
        if (needed and size <= self.most) or self._has_room(size):
            self.outputs.append(output)

    def print(self, name, text):
        if not self._has_room(len(text)):
            return
        last = self.outputs[-1] if self.outputs else {}
        if last.get("name") == name:
            last["text"] += text
        else:
            self.outputs.append({"output_type": "stream", "name": name, "text": text})

    def _has_room(self, size):
        fits = self.size + size <= self.most
        if not fits and self.size <= self.most:
            self.size = self.most + 1
            text = f"\n(more than {self.most} bytes of output; the rest is left out)\n"
            self.outputs.append({"output_type": "stream", "name": "stdout", "text": text})
        self.size += size if fits else 0
        return fits


class Recorder:
    """A shell of IPython without a screen.

    Parameters
    ----------
    folder : str
        Where IPython may keep its things.
    most_output : int
        Bytes that are kept of the output of one cell.
    """

    def __init__(self, folder, most_output):
        settings = Config()
        settings.HistoryManager.enabled = False
        settings.InteractiveShell.xmode = "Plain"  # others take seconds for an endless recursion
        settings.InteractiveShell.colors = "NoColor"
        self.most_output = most_output
        self.shell = _Shell.instance(
            config=settings,
            ipython_dir=folder,
            displayhook_class=_Hook,
            display_pub_class=_Publisher,
        )
        self.names = self.shell.user_ns
        self.shell.kept = _Kept(most_output)

    @contextmanager
    def recording(self):
        """Collect outputs, in the list that is given, until the block ends."""
        kept = self.shell.kept = _Kept(self.most_output)
        streams = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = _Stream(kept, "stdout"), _Stream(kept, "stderr")
        try:
            yield kept.outputs
        finally:
            sys.stdout, sys.stderr = streams

    def run(self, source, name=None):
        """Run source code; return the error that ended it, or None.

        Parameters
        ----------
        source : str
            As it stands in a cell.
        name : str, optional
            What tracebacks call the cell.

        Returns
        -------
        error : BaseException or None
            The error.
        """
        if name is not None:
            self.shell.compile.get_code_name = lambda *_: name
        result = self.shell.run_cell(source, store_history=True)
        return result.error_before_exec or result.error_in_exec


def _shown(kind, data):
    """Return an output with all that is shown of a value as text."""
    texts = {}
    for mime, shown in dict(data).items():
        if isinstance(shown, bytes):
            shown = base64.b64encode(shown).decode()
        try:
            json.dumps(shown)
        except (TypeError, ValueError, RecursionError):
            continue
        texts[str(mime)] = shown
    output = {"output_type": kind, "data": texts, "metadata": {}}
    return output | {"execution_count": None} if kind == "execute_result" else output
