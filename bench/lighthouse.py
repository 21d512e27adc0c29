"""Lighthouse's marks for the built pages, beside the same pages built Jupyter Book's own way.

    python bench/lighthouse.py          # make bench-site runs it; the first run fetches Lighthouse

Needs Chromium, Node.js with npm, and the built book; ``bench/site.py`` makes the stock build.
Pages are compressed on their way, as GitHub Pages does it, to a telephone on slow 4G, which is
Lighthouse's default, and to a computer.  The exit code is 1 if a chapter has less than 100 for
accessibility, best practices or search engines, or less than 95 for performance on a computer.
"""

import contextlib
import functools
import gzip
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "_build" / "bench"
VERSION = "13.5.0"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
AIMS = {"performance": 95, "accessibility": 100, "best-practices": 100, "seo": 100}
AUDITS = {
    "first-contentful-paint": ("first paint, s", 1000),
    "largest-contentful-paint": ("largest paint, s", 1000),
    "total-byte-weight": ("kB", 1000),
}
PACKED = (".html", ".css", ".js", ".svg", ".json", ".xml", ".txt")


class Packing(http.server.SimpleHTTPRequestHandler):
    """Serves files as they are published: compressed, over one connection, to be kept a while."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            return self.send_error(404)
        data, packed = path.read_bytes(), path.suffix in PACKED
        data = _packed(path, path.stat().st_mtime_ns) if packed else data
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "max-age=600")
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(data)
        return None

    def log_message(self, *arguments):
        """Say nothing."""


@functools.cache
def _packed(path, _changed):
    return gzip.compress(path.read_bytes())


@contextlib.contextmanager
def serving(folder):
    """Serve a folder on a free port; give the address."""
    handler = functools.partial(Packing, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


def lighthouse():
    """Fetch Lighthouse once; return its program."""
    program = WORK / "lighthouse" / "node_modules" / ".bin" / "lighthouse"
    if not program.exists():
        program.parents[2].mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", "."]
        subprocess.run(  # noqa: S603
            [*command, f"lighthouse@{VERSION}"], cwd=program.parents[2], check=True
        )
    return program


def report(address, *, desktop):
    """Return Lighthouse's report of a page, as a dict."""
    path = next(filter(None, map(shutil.which, BROWSERS)))
    command = [
        str(lighthouse()), address, "--quiet", "--output=json",
        "--chrome-flags=--headless=new --no-sandbox --disable-gpu",
        f"--only-categories={','.join(AIMS)}",
    ]  # fmt: skip
    if desktop:
        command.append("--preset=desktop")
    done = subprocess.run(  # noqa: S603
        command, env={**os.environ, "CHROME_PATH": path}, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def row(found):
    """Return the marks of a report, its measures, and what it finds wanting."""
    marks = {name: round(100 * (found["categories"][name]["score"] or 0)) for name in AIMS}
    audits = found["audits"]
    measures = [audits[name]["numericValue"] / unit for name, (_, unit) in AUDITS.items()]
    requests = len(audits["network-requests"]["details"]["items"])
    wanting = [
        f"{name}: {audits[part['id']]['title']}"
        for name in AIMS
        if marks[name] < AIMS[name]
        for part in found["categories"][name]["auditRefs"]
        if part["weight"] and (audits[part["id"]]["score"] or 0) < 0.9
    ]
    return marks, [*measures, requests], wanting


def main(builds, pages):
    """Print the table; return whether each of our pages reaches the aims."""
    titles = [title for title, _ in AUDITS.values()]
    print(f"\n| page | build | screen | {' | '.join(AIMS)} | {' | '.join(titles)} | requests |")
    print("|---" * (4 + len(AIMS) + len(titles)) + "|")
    good = True
    for page in pages:
        for name, folder in builds.items():
            with serving(folder) as home:
                for desktop in (False, True):
                    marks, measures, wanting = row(report(f"{home}/{page}", desktop=desktop))
                    screen = "computer" if desktop else "telephone"
                    shown = [*map(str, marks.values()), *(f"{each:.3g}" for each in measures)]
                    cells = [Path(page).stem[:24], name, screen, *shown]
                    print(f"| {' | '.join(cells)} |", flush=True)
                    if name == "ours" and desktop and wanting:
                        good = False
                        print(*(f"  {each}" for each in wanting), sep="\n")
    return good


def chapters():
    """Return the first page and the chapters."""
    site = ROOT / "_build" / "html"
    numbered = sorted(path.relative_to(site).as_posix() for path in site.glob("chapters/0*.html"))
    return ["chapters/index.html", *numbered]


if __name__ == "__main__":
    sites = {"stock": WORK / "stock" / "_build" / "html", "ours": ROOT / "_build" / "html"}
    sites = {name: folder for name, folder in sites.items() if (folder / "index.html").exists()}
    sys.exit(not main(sites, sys.argv[1:] or chapters()))
