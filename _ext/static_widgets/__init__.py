"""Keep widgets alive on the published page, without a kernel and without a third party.

Jupyter Book's own way is to load require.js and the ipywidgets front-end from other hosts, about
4 MB.  Our widgets are anywidgets, whose front-end is one ES module each; ``host.js`` in this
folder runs such modules and nothing else.  When a page is written, this extension

- moves the widgets' state to the end of the page, every module and style sheet once, and only
  what the page shows;
- puts each widget's picture (its ``_picture`` trait) beside it, for readers without JavaScript;
- opens containers such as ``VBox``, and carries ``jslink`` over;
- shows plain ipywidgets controls, such as those of ``interact``, as what they computed when the
  book was built, with a line that says they run in Jupyter.
"""

import json
import re
from html import escape
from pathlib import Path

STATE_TYPE = "application/vnd.jupyter.widget-state+json"
VIEW = re.compile(
    r'<script type="application/vnd\.jupyter\.widget-view\+json">\s*(\{.*?\})\s*</script>',
    re.DOTALL,
)
FOLDER = Path(__file__).parent / "static"


def rewrite_page(body, state):
    """Turn a page's widget outputs into what `host.js` understands.

    Parameters
    ----------
    body : str
        HTML with one view script per displayed widget.
    state : dict
        Widget models by id, as Jupyter saves them.

    Returns
    -------
    body : str
        The HTML with pictures and notes added, and the page's data at its end.
    alive : bool
        Whether the page needs ``host.js``.
    """
    shown = []  # ids of anywidget models, in order of appearance
    body = VIEW.sub(lambda view: _view_html(json.loads(view[1])["model_id"], state, shown), body)
    if not shown:
        return body, False
    data = json.dumps(_page_data(state, shown), separators=(",", ":"))
    # A script element ends at the first "</", whatever it stands in.
    data = data.replace("</", "<\\/").replace("<!--", "<\\u0021--")
    page = f'{body}\n<script type="application/json" id="widget-data">{data}</script>\n'
    # Jupyter's ids are random, and the same book shall give the same page.
    for number, model_id in enumerate(shown, 1):
        page = page.replace(f'"{model_id}"', f'"widget-{number}"')
    return page, True


def _view_html(model_id, state, shown):
    model = state.get(model_id)
    if model is None:
        return '<p class="runs-in-jupyter">This widget was not saved; it runs in Jupyter.</p>'
    if _is_anywidget(model):
        if model_id not in shown:
            shown.append(model_id)
        picture = model["state"].get("_picture", "")
        return (
            f'<div class="static-widget" data-model="{escape(model_id)}"></div>'
            f"<noscript>{picture}</noscript>"
        )
    inside = _children(model)
    if any(_is_anywidget(state[child]) for child in _descendants(model_id, state)):
        row = " static-row" if model["model_name"] == "HBoxModel" else ""
        parts = "".join(_view_html(child, state, shown) for child in inside)
        return f'<div class="static-box{row}">{parts}</div>'
    return _note_html(model_id, state)


def _note_html(model_id, state):
    """Say that these controls run in Jupyter, and show what they gave at build time."""
    tree = [state[i] for i in _descendants(model_id, state)]
    settings = [setting for setting in map(_setting, tree) if setting]
    at = f" with {', '.join(settings)}" if settings else ""
    outputs = [output for model in tree for output in model["state"].get("outputs", ())]
    shown = "".join(_output_html(output, f"What this cell shows{at}.") for output in outputs)
    here = f" Below: what it gives{at}." if shown else ""
    return (
        '<div class="runs-in-jupyter">'
        f"<p>The controls of this cell run in Jupyter, with a kernel.{escape(here)}</p>"
        f"{shown}</div>"
    )


def _setting(model):
    state = model["state"]
    value = state.get("value")
    if state.get("_options_labels") and state.get("index") is not None:
        value = state["_options_labels"][state["index"]]
    if not state.get("description") or not isinstance(value, str | int | float):
        return None
    return f"{state['description']} = {value}"


def _output_html(output, alt):
    if output["output_type"] == "stream":
        return f"<pre>{escape(output['text'])}</pre>"
    data = output.get("data", {})
    if "image/png" in data:
        known = output.get("metadata", {}).get("image/png", {})
        size = "".join(f' {side}="{known[side]}"' for side in ("width", "height") if side in known)
        png = "".join(data["image/png"]).replace("\n", "")
        alt = escape(known.get("alt", alt))
        return f'<img alt="{alt}"{size} src="data:image/png;base64,{png}">'
    return f"<pre>{escape(''.join(data.get('text/plain', '')))}</pre>"


def _page_data(state, shown):
    """Collect the models shown, each module and style sheet once, and the links between them."""
    sources, styles, models = [], [], {}
    for model_id in shown:
        traits = dict(state[model_id]["state"])
        esm, css = traits.pop("_esm", ""), traits.pop("_css", "")
        models[model_id] = {
            "module": _index(sources, esm),
            "style": _index(styles, css) if css else None,
            "state": {name: value for name, value in traits.items() if _is_own(name)},
            "buffers": state[model_id].get("buffers", []),
        }
    links = []
    for model in state.values():
        if model["model_name"] in ("LinkModel", "DirectionalLinkModel"):
            ends = [
                [_plain_id(owner), trait]
                for owner, trait in (model["state"]["source"], model["state"]["target"])
            ]
            if all(owner in models for owner, _ in ends):
                links.append(ends)
                if model["model_name"] == "LinkModel":
                    links.append(ends[::-1])
    return {"sources": sources, "styles": styles, "models": models, "links": links}


def _index(collection, item):
    if item not in collection:
        collection.append(item)
    return collection.index(item)


def _is_own(trait):
    """Leave out what every ipywidget has: the page does not use it."""
    return not trait.startswith(
        ("_model_", "_view_", "_picture", "_dom_classes")
    ) and trait not in (
        "layout",
        "tabbable",
        "tooltip",
    )


def _is_anywidget(model):
    return model["model_module"] == "anywidget"


def _children(model):
    return [_plain_id(child) for child in model["state"].get("children", ())]


def _descendants(model_id, state):
    """Return the ids of a model and of all that it contains."""
    if model_id not in state:
        return []
    below = [i for child in _children(state[model_id]) for i in _descendants(child, state)]
    return [model_id, *below]


def _plain_id(reference):
    return reference.removeprefix("IPY_MODEL_")


def publish_host(app, config):
    # This folder is not named in _config.yml: Jupyter Book would load its scripts on every page.
    config.html_static_path = [*config.html_static_path, str(FOLDER)]
    config.nb_ipywidgets_js = {}


def rewrite_widgets(app, pagename, templatename, context, doctree):
    files = app.builder._js_files
    saved = [file for file in files if file.attributes.get("type") == STATE_TYPE]
    if not saved:
        return
    files[:] = [file for file in files if file not in saved]
    state = json.loads(saved[0].attributes["body"])["state"]
    context["body"], alive = rewrite_page(context["body"], state)
    if alive:
        app.add_js_file("static_widgets/host.js", loading_method="defer")


def setup(app):
    app.connect("config-inited", publish_host)
    app.connect("html-page-context", rewrite_widgets, priority=900)  # after myst-nb's own
    app.add_css_file("static_widgets/host.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
