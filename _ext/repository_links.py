"""Let pages name the repository without repeating its address.

``{{ repository_url }}`` in a page becomes the ``repository: url:`` of ``_config.yml``, and
``{{ install_command }}`` the line that installs the library from there.
"""


def _add_substitution(app, config):
    url = config.html_theme_options["repository_url"]
    config.myst_substitutions = {
        **config.myst_substitutions,
        "repository_url": url,
        "install_command": f'`pip install "mha_lib[book] @ git+{url}"`',
    }


def setup(app):
    app.connect("config-inited", _add_substitution)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
