"""Let pages name the repository without repeating its address.

``{{ repository_url }}`` in a page becomes the ``repository: url:`` of ``_config.yml``.
"""


def _add_substitution(app, config):
    url = config.html_theme_options["repository_url"]
    config.myst_substitutions = {**config.myst_substitutions, "repository_url": url}


def setup(app):
    app.connect("config-inited", _add_substitution)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
