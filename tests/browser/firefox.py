"""Firefox, the system's own, driven by WebDriver BiDi, which it speaks itself.

Playwright needs a Firefox that was built for it, and Selenium a driver in between.
"""

import contextlib
import json
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import websocket

NAMES = ("firefox-esr", "firefox")
SECONDS = 30  # to start, and for one answer
# Nothing but this machine is reached: everything else goes to a proxy that is not there.
PREFERENCES = {
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "network.proxy.no_proxies_on": "localhost, 127.0.0.1",
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "app.update.enabled": False,
    "ui.prefersReducedMotion": 1,
}


class Firefox:
    """One window, and what its pages asked for and complained about.

    Parameters
    ----------
    address : str
        Where the browser listens.
    """

    def __init__(self, address):
        self._socket = websocket.create_connection(
            f"{address}/session", timeout=SECONDS, suppress_origin=True
        )
        self._number = 0
        self.complaints, self.asked = [], []
        self.send("session.new", capabilities={})
        self._context = self.send("browsingContext.getTree")["contexts"][0]["context"]
        self.send("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])

    def send(self, method, **parameters):
        """Send a command, and return its result; on the way, hear what happened."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(self._socket.recv())
            if answer["type"] == "event":
                self._heard(answer["method"], answer["params"])
            elif answer["id"] == self._number:
                if answer["type"] == "error":
                    raise RuntimeError(f"{method}: {answer['error']}: {answer['message']}")
                return answer["result"]

    def close(self):
        """Hang up."""
        self._socket.close()

    def _heard(self, method, event):
        if method == "network.beforeRequestSent":
            self.asked.append(event["request"]["url"])
        elif event["level"] == "error":
            self.complaints.append(event["text"])

    def open(self, address):
        """Open a page and wait until it has loaded."""
        self.complaints.clear()
        self.asked.clear()
        self.send("browsingContext.navigate", context=self._context, url=address, wait="complete")

    def evaluate(self, expression):
        """Return the value of an expression, awaited; it must be what JSON can hold."""
        answer = self.send(
            "script.evaluate", target={"context": self._context}, awaitPromise=True,
            expression=f"(async () => JSON.stringify((await ({expression})) ?? null))()",
        )  # fmt: skip
        if answer["type"] == "exception":
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    def press(self, key):
        """Press a key, by its code point in WebDriver, where the focus is."""
        actions = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.send(
            "input.performActions", context=self._context,
            actions=[{"type": "key", "id": "keyboard", "actions": actions}],
        )  # fmt: skip


@contextlib.contextmanager
def running(path):
    """Start the Firefox at ``path`` with a profile of its own; give it, and end it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        lines = [
            f"user_pref({json.dumps(name)}, {json.dumps(value)});\n"
            for name, value in PREFERENCES.items()
        ]
        Path(folder, "user.js").write_text("".join(lines), encoding="utf-8")
        said = Path(folder, "said.txt")
        with said.open("w", encoding="utf-8") as log:
            process = subprocess.Popen(  # noqa: S603
                [path, "--headless", "--remote-debugging-port", "0", "--profile", folder],
                stdout=log, stderr=log,
            )  # fmt: skip
        try:
            window = Firefox(_address(process, said))
            yield window
            window.close()
        finally:
            process.terminate()
            process.wait(SECONDS)


def _address(process, said):
    """Wait until Firefox says where it listens."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        found = re.search(r"WebDriver BiDi listening on (ws://\S+)", said.read_text("utf-8"))
        if found:
            return found[1]
        time.sleep(0.1)
    raise RuntimeError(f"Firefox did not start: {said.read_text('utf-8')[-500:]}")


def installed():
    """Return the path of the system's Firefox, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)
