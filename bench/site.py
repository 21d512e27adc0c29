"""Measure the pages with widgets, beside the same pages built Jupyter Book's own way.

Needs Chromium, npm and the built book; ``make bench-site`` runs it.  The stock build loads
require.js, the ipywidgets front-end and MathJax from other hosts; here they are answered from
local copies, which flatters it, since no network stands in between.
"""

import shutil
import statistics
import subprocess
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path

import yaml
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "_ext"))
sys.path.insert(0, str(ROOT))

from tests.browser.conftest import ARGUMENTS, NAMES, serving  # noqa: E402

WORK = ROOT / "_build" / "bench"
REPEATS = 5
PACKAGES = {
    "@jupyter-widgets/html-manager": "1.0.6",
    "mathjax": "3.2.2",
    "requirejs": "2.3.4",
}
OURS = (
    "definitions", "formulas", "offline_assets", "page_files", "page_heads", "search_excerpts",
    "static_widgets",
)  # fmt: skip
# A widget is ready once its result is drawn; the moment is taken inside the page.
WATCH = """
window.readyAt = null;
const look = () => {
  const drawn = document.querySelectorAll(".mha-result > *").length;
  const named = document.querySelectorAll(".mha-status:not(:empty)").length;
  if (drawn && named >= COUNT) window.readyAt = performance.now();
  else requestAnimationFrame(look);
};
look();
"""
# From the reader's move to the frame that shows it.  The browser hands a drag's events to the page
# at the start of a frame, so the move is made there; a message comes after that frame is painted.
MOVE = """async () => {
  const slider = document.querySelector(".mha-widget input[type=range]");
  const times = { work: [], paint: [] };
  for (let i = 0; i < 20; i++) {
    await new Promise((done) => setTimeout(done, 30));
    await new Promise((done) => requestAnimationFrame(done));
    const painted = new Promise((done) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = done;
      port2.postMessage(0);
    });
    const start = performance.now();
    slider.value = (Number(slider.value) + 1) % (Number(slider.max) + 1);
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await null; await null;
    document.body.getBoundingClientRect();
    times.work.push(performance.now() - start);
    await painted;
    times.paint.push(performance.now() - start);
  }
  return times;
}"""


def build_stock():
    """Build the book without what we do to its site; return the site's folder."""
    source = WORK / "stock"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    for name in ("chapters", "_static", "_ext", "_toc.yml", "CITATION.cff"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    for extension in OURS:
        del config["sphinx"]["local_extensions"][extension]
    del config["sphinx"]["config"]["html_math_renderer"]
    # Without the checksum of the minified require.js, of which npm has only the full text.
    config["sphinx"]["config"]["nb_ipywidgets_js"] = {
        "https://cdnjs.cloudflare.com/ajax/libs/require.js/2.3.4/require.min.js": {},
        "https://cdn.jsdelivr.net/npm/@jupyter-widgets/html-manager@1.0.6/dist/embed-amd.js": {
            "data-jupyter-widgets-cdn": "https://cdn.jsdelivr.net/npm/"
        },
    }
    (source / "_config.yml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", str(source), "--all"]
    subprocess.run(  # noqa: S603 - our own interpreter's
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return source / "_build" / "html"


def local_copies():
    """Return the files that stand in for other hosts, by a part of their address."""
    folder = WORK / "npm"
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for package, version in PACKAGES.items():
        archive = folder / f"{package.strip('@').replace('/', '-')}-{version}.tgz"
        if not archive.exists():
            subprocess.run(  # noqa: S603
                ["npm", "pack", "--silent", f"{package}@{version}"],  # noqa: S607
                cwd=folder, check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        target = folder / archive.stem
        with tarfile.open(archive) as tar:
            tar.extractall(target, filter="data")
        found[package] = target / "package"
    anywidget = Path(find_spec("anywidget").origin).parent / "nbextension" / "index.js"
    return {
        "require.js/": found["requirejs"] / "require.js",
        "html-manager@": found["@jupyter-widgets/html-manager"] / "dist",
        "mathjax@3/es5/": found["mathjax"] / "es5",
        "/anywidget@": anywidget,
    }


def answer(route, home, copies):
    """Let the page have what is ours, a local copy of what is not, and nothing else."""
    url = route.request.url.split("?")[0]
    if url.startswith(home):
        return route.continue_()
    for part, path in copies.items():
        if part in url:
            if path.is_dir():
                rest = url.split(part, 1)[1]
                path = path / (rest.split("dist/", 1)[-1] if "dist/" in rest else rest)
            if path.exists():
                return route.fulfill(path=path, headers={"Access-Control-Allow-Origin": "*"})
    print("  not available:", url)
    return route.abort()


def visit(browser, home, copies, page, count):
    """Load a page once; return bytes, requests, ready time and the times of moves."""
    context = browser.new_context()
    context.route("**/*", lambda route: answer(route, home, copies))
    tab = context.new_page()
    sizes = []
    tab.on("requestfinished", lambda request: sizes.append(request))
    tab.on("pageerror", lambda error: print("  page error:", error))
    tab.add_init_script(WATCH.replace("COUNT", str(count)))
    tab.goto(f"{home}/{page}", wait_until="load")
    tab.wait_for_function("window.readyAt !== null", timeout=60_000)
    tab.wait_for_load_state("networkidle")
    ready = tab.evaluate("window.readyAt")
    moves = tab.evaluate(MOVE)
    loaded = sum(len(request.response().body()) for request in list(sizes))
    requests = len(sizes)
    context.close()
    return loaded, requests, ready, moves


def main():
    ours = ROOT / "_build" / "html"
    pages = {}
    for path in sorted(ours.glob("chapters/*.html")):
        if count := path.read_text("utf-8").count('class="static-widget"'):
            pages[f"chapters/{path.name}"] = count
    if not pages:
        sys.exit("no page shows a widget: run `make book` first")
    stock, copies = build_stock(), local_copies()
    chromium = next(filter(None, map(shutil.which, NAMES)))
    print(f"median of {REPEATS} loads, both builds in turn; a move: median of 20 per load\n")
    print("| page | build | MB | requests | ready ms | ratio | move: work ms | to paint ms |")
    print("|---|---|---|---|---|---|---|---|")
    with sync_playwright() as playwright, serving(ours) as our_home, serving(stock) as stock_home:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        for page, count in pages.items():
            results = {"stock": [], "ours": []}
            for _ in range(REPEATS):
                results["stock"].append(visit(browser, stock_home, copies, page, count))
                results["ours"].append(visit(browser, our_home, {}, page, count))
            base = statistics.median(each[2] for each in results["stock"])
            for name, loads in results.items():
                ready = statistics.median(each[2] for each in loads)
                work, paint = (
                    statistics.median(time for each in loads for time in each[3][kind])
                    for kind in ("work", "paint")
                )
                print(
                    f"| {Path(page).stem[:24]} | {name} | {loads[0][0] / 1e6:.2f} | {loads[0][1]} "
                    f"| {ready:.0f} | {ready / base:.2f} | {work:.1f} | {paint:.1f} |"
                )
        browser.close()


if __name__ == "__main__":
    main()
