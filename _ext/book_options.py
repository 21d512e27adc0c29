"""Settings that follow from others and so cannot stand in ``_config.yml``.

``{{ repository_url }}`` in a page becomes the ``repository: url:`` of ``_config.yml``, and
``{{ install_command }}`` the line that installs the library from there, in a block of its own as
``{{ install_block }}``.  ``{{ check_example }}`` is what a check says of a mistake.
"""

import os

from mha_lib.teaching import CATALOGUE, check_attention

EXAMPLE = "mask after the softmax"


def _block(text):
    return f"```text\n{text}\n```"


def _check_example():
    mistake = next(entry.function for entry in CATALOGUE if entry.name == EXAMPLE)
    return "> " + check_attention(mistake).diagnosis.replace("\n", "\n>\n> ")


def _complete(app, config):
    url = config.html_theme_options["repository_url"]
    install = f'pip install "mha_lib[book] @ git+{url}"'
    config.myst_substitutions = {
        **config.myst_substitutions,
        "repository_url": url,
        "install_command": f"`{install}`",
        "install_block": _block(install),
        "check_example": _check_example(),
    }
    # The sidebar has a search field.  Theme options in _config.yml would replace those that
    # Jupyter Book derives from it, so this one is added here.
    config.html_theme_options["navbar_persistent"] = []


def setup(app):
    os.environ["TQDM_DISABLE"] = "1"  # a progress bar on a page would show nothing but its end
    app.connect("config-inited", _complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
