"""Settings that follow from others and so cannot stand in ``_config.yml``.

The book's address is ``repository: url:`` there.  With one, every page has a repository button and
links to edit it and to open an issue, notebooks have a launch menu, and what the pages say between
``<!-- with an address:`` and ``-->`` is shown, with the address in place of ``ADDRESS``.  Until
there is one, none of this exists, in the pages and in the files that they offer for download.  In
Jupyter it is a comment, which nobody sees.  So is ``<!-- how to cite -->``.

Where the site is published follows as well: on GitHub Pages, unless ``html: baseurl:`` names
another place.

``{{ check_example }}`` in a page is what a check says of a mistake.
"""

import json
import re
from pathlib import Path

import citation
from sphinx.errors import ExtensionError

from mha_lib.teaching import CATALOGUE, check_attention

EXAMPLE = "mask after the softmax"
# What the launch menu, pip and the theme all know.
ADDRESS = re.compile(r"https://github\.com/[\w-]+/[\w.-]+(?<!\.git)")
ONLY_WITH_ADDRESS = re.compile(r"<!-- with an address:(.*?)-->", re.DOTALL)


def complete(text, address, site=""):
    """Return the source of a page, Markdown or notebook, as it is with these addresses or none."""
    text = ONLY_WITH_ADDRESS.sub(
        lambda part: part[1].replace("ADDRESS", address) if address else "", text
    )
    cite = citation.line(citation.read(), site or address)
    if text.lstrip().startswith("{"):  # a notebook, which is JSON
        cite = json.dumps(cite, ensure_ascii=False)[1:-1]
    return text.replace(citation.MARK, cite)


def pages_address(address):
    """Return where GitHub Pages publishes a repository: under its name, or at the root."""
    owner, name = address.removeprefix("https://github.com/").lower().split("/")
    host = f"{owner}.github.io"
    return f"https://{host}/" if name == host else f"https://{host}/{address.split('/')[-1]}/"


def _check_example():
    mistake = next(entry.function for entry in CATALOGUE if entry.name == EXAMPLE)
    return "> " + check_attention(mistake).diagnosis.replace("\n", "\n>\n> ")


def _set_options(app, config):
    options = config.html_theme_options
    address = options.setdefault("repository_url", "")
    if not address:
        options.pop("launch_buttons", None)
    elif not ADDRESS.fullmatch(address):
        raise ExtensionError(
            f"repository: url: in _config.yml is {address!r}; "
            "write it as https://github.com/OWNER/NAME, or leave it empty"
        )
    for button in ("use_repository_button", "use_edit_page_button", "use_issues_button"):
        options[button] = bool(address)
    if address and not config.html_baseurl:
        config.html_baseurl = pages_address(address)
    if config.html_baseurl and not config.html_baseurl.endswith("/"):
        config.html_baseurl += "/"
    # The sidebar has a search field.  Theme options in _config.yml would replace those that
    # Jupyter Book derives from it, so this one is added here.
    options["navbar_persistent"] = []
    config.myst_substitutions = {**config.myst_substitutions, "check_example": _check_example()}


def _complete(app, text):
    address = app.config.html_theme_options["repository_url"]
    return complete(text, address, app.config.html_baseurl)


def _complete_page(app, name, source):
    source[0] = _complete(app, source[0])


def _complete_downloads(app, exception):
    if exception is not None or app.builder.format != "html":
        return
    for path in Path(app.outdir, "_sources").rglob("*.*"):
        text = path.read_text(encoding="utf-8")
        path.write_text(_complete(app, text), encoding="utf-8")


def setup(app):
    app.connect("config-inited", _set_options)
    app.connect("source-read", _complete_page)
    app.connect("build-finished", _complete_downloads)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
