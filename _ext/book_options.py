"""Settings that follow from others and so cannot stand in ``_config.yml``.

``{{ repository_url }}`` in a page becomes the ``repository: url:`` of ``_config.yml``, and
``{{ install_command }}`` the line that installs the library from there.
"""

import os


def _complete(app, config):
    url = config.html_theme_options["repository_url"]
    config.myst_substitutions = {
        **config.myst_substitutions,
        "repository_url": url,
        "install_command": f'`pip install "mha_lib[book] @ git+{url}"`',
    }
    # The sidebar has a search field.  Theme options in _config.yml would replace those that
    # Jupyter Book derives from it, so this one is added here.
    config.html_theme_options["navbar_persistent"] = []


def setup(app):
    os.environ["TQDM_DISABLE"] = "1"  # a progress bar on a page would show nothing but its end
    app.connect("config-inited", _complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
