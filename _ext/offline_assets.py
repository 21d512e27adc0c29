"""Serve everything from the site itself, so that no page asks a third party for anything.

MathJax comes from the package sphinx-mathjax-offline, used as a folder of files.  The scripts
of sphinx-thebe, which Jupyter Book always loads, are taken out: they point to another host.
"""

import shutil
from importlib.util import find_spec
from pathlib import Path

# What a page with formulas loads: the program, and its fonts when they are needed.
MATHJAX_FILES = ("tex-mml-chtml.js", "output/chtml/fonts/woff-v2")


def _stage_mathjax(app, config):
    """Copy MathJax next to the doctrees and let Sphinx publish that folder as static files."""
    # find_spec: the package's folder has a hyphen in its name, and importing it is not needed.
    source = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax"
    stage = Path(app.doctreedir).parent / ".offline_assets"
    shutil.rmtree(stage, ignore_errors=True)
    for name in MATHJAX_FILES:
        target = stage / "mathjax" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (source / name).is_dir() else shutil.copy
        copy(source / name, target)
    config.html_static_path = [*config.html_static_path, str(stage)]
    config.mathjax_path = "mathjax/tex-mml-chtml.js"


def _drop_thebe(app, pagename, templatename, context, doctree):
    files = app.builder._js_files
    files[:] = [
        file
        for file in files
        if "thebe" not in str(file.filename).lower()
        and "THEBE" not in str(file.attributes.get("body", ""))
    ]


def setup(app):
    app.connect("config-inited", _stage_mathjax)
    app.connect("html-page-context", _drop_thebe, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
