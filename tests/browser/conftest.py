"""A real browser, cut off from every host but this one, and what it complained about.

Chromium is the system's; `browser` in tests/conftest.py starts it.
"""

import contextlib
import functools
import http.server
import json
import re
import shutil
import threading
from pathlib import Path

import ipywidgets
import pytest
from static_widgets import FOLDER, rewrite_page

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
# The largest come first: whoever takes them starts at once, and the small ones fill the gaps.
PAGES = sorted(
    (path for path in SITE.rglob("*.html") if "_static" not in path.parts),
    key=lambda path: (-path.stat().st_size, path),
)
PAGES = [path.relative_to(SITE).as_posix() for path in PAGES] or ["index.html"]


class Visit:
    """One page in a browser of its own, and what it asked for and complained about."""

    def __init__(self, browser, host, **options):
        self.host = host
        self.foreign = []  # addresses elsewhere, blocked
        self.complaints = []  # console errors and warnings, exceptions, missing files
        options = {"viewport": {"width": 1280, "height": 900}, **options}
        self.has_scripts = options.get("java_script_enabled", True)
        self.context = browser.new_context(**options)
        self.context.route(re.compile(r"^(?!data:|blob:)"), self._answer)
        self.page = self.context.new_page()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("response", self._answered)

    def _answer(self, route):
        url = route.request.url
        if url.startswith(("file:", self.host)):
            return route.continue_()
        self.foreign.append(url)
        return route.abort()

    def _heard(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _answered(self, response):
        if response.status >= 400:
            self.complaints.append(f"{response.status} {response.url}")

    def open(self, address):
        """Open a page and wait until it has loaded, formulas and widgets included."""
        self.page.goto(address, wait_until="load")
        if self.has_scripts:
            self.page.evaluate("document.fonts.ready.then(() => {})")
            self.page.wait_for_function(
                "[...document.querySelectorAll('.static-widget')].every("
                "(place) => 'ready' in place.dataset || place.querySelector('[role=alert]'))"
            )
        return self.page


@contextlib.contextmanager
def serving(folder):
    """Serve a folder on a free port of this machine; give the address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def site():
    """Serve the built book; return its address."""
    if not (SITE / "index.html").exists():
        pytest.fail(f"{SITE} is not there: run `make book` first")
    with serving(SITE) as address:
        yield address


@pytest.fixture
def visit(browser, site):
    """Return a function that opens a browser window with the options given."""
    visits = []

    def start(**options):
        visits.append(Visit(browser, site, **options))
        return visits[-1]

    yield start
    for each in visits:
        each.context.close()


@pytest.fixture
def open_static(visit, tmp_path):
    """Return a function that publishes widgets on a bare page and opens it from its file."""

    def start(*widgets, state=None, **options):
        saved = state or ipywidgets.Widget.get_manager_state(drop_defaults=False)["state"]
        ids = [widget if isinstance(widget, str) else widget.model_id for widget in widgets]
        views = "".join(
            '<script type="application/vnd.jupyter.widget-view+json">'
            f"{json.dumps({'model_id': model_id})}</script>"
            for model_id in ids
        )
        body, alive = rewrite_page(views, saved)
        shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
        host = '<script defer src="static_widgets/host.js"></script>' if alive else ""
        path = tmp_path / "page.html"
        path.write_text(
            '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>test</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<link rel="stylesheet" href="static_widgets/host.css">{host}'
            f"<body><main><h1>test</h1>{body}</main></body></html>",
            encoding="utf-8",
        )
        window = visit(**options)
        window.open(path.as_uri())
        return window

    return start
