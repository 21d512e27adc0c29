"""The static host against the contract that anywidget modules rely on."""

import json

import anywidget
import ipywidgets
import pytest
import traitlets

# Each module writes what it saw into its element as JSON.
SAY = "const say = (el, what) => { el.textContent = JSON.stringify(what); };\n"


def widget(module, css="", **traits):
    """Make an anywidget from the source of its module, with synchronised traits."""
    members = {
        name: traitlets.Any(value).tag(sync=True)
        if not isinstance(value, bytes)
        else traitlets.Bytes(value).tag(sync=True)
        for name, value in traits.items()
    }
    members |= {"_esm": SAY + module, "_css": css}
    return type("Trial", (anywidget.AnyWidget,), members)()


def said(window, index=0):
    return json.loads(window.page.locator(".static-widget > div").nth(index).inner_text())


def test_get_set_on_and_off(open_static):
    module = """export default { render({ model, el }) {
      const seen = [];
      const heard = (m, value) => seen.push(["change:a", value]);
      model.on("change:a", heard);
      model.on("change:a", () => seen.push("a"));
      model.on("change", () => seen.push("change"));
      model.on("change:b change:c", () => seen.push("b or c"));
      model.set("a", 2); model.save_changes(); model.send({ nobody: "listens" });
      model.set("a", 2);                    // no change, no event
      model.set({ b: [1, 2], c: "new" });   // two changes, one "change"
      model.set("b", [1, 2]);               // equal content: no change
      model.off("change:a", heard);
      model.set("a", 3);
      model.off("change");
      model.set("a", 4);
      model.off();
      model.set("b", 0);
      say(el, { seen, a: model.get("a"), missing: model.get("z") === undefined });
    } };"""
    window = open_static(widget(module, a=1, b=[], c=""))
    assert said(window) == {
        "seen": [["change:a", 2], "a", "change", "b or c", "b or c", "change", "a", "change", "a"],
        "a": 4,
        "missing": True,
    }
    assert window.complaints == []


def test_binary_traits_arrive_as_dataviews(open_static):
    module = """export default { render({ model, el }) {
      const one = model.get("one"), nested = model.get("nested");
      say(el, [one instanceof DataView, one.byteLength, one.getUint8(2),
               nested.list[1].getFloat64(0, true), nested.text]);
    } };"""
    nested = {"list": [0, memoryview(b"\x00\x00\x00\x00\x00\x00\xf8?")], "text": "kept"}
    window = open_static(widget(module, one=bytes([0, 127, 255]), nested=nested))
    assert said(window) == [True, 3, 255, 1.5, "kept"]


def test_initialize_runs_once_per_model_and_before_every_view(open_static):
    module = """export default {
      async initialize({ model, signal }) {
        await new Promise((done) => setTimeout(done, 50));
        model.set("times", model.get("times") + 1);
        model.set("signal", signal instanceof AbortSignal);
      },
      render({ model, el, signal, experimental }) {
        say(el, [model.get("times"), model.get("signal"), signal instanceof AbortSignal,
                 typeof experimental.invoke]);
      } };"""
    one = widget(module, times=0, signal=None)
    window = open_static(one, one)
    assert said(window, 0) == said(window, 1) == [1, True, True, "function"]


def test_views_of_one_model_share_its_state(open_static):
    module = """export default { render({ model, el }) {
      const show = () => say(el, model.get("v"));
      model.on("change:v", show); show();
      el.addEventListener("click", () => model.set("v", model.get("v") + 1));
    } };"""
    one, other = widget(module, v=1), widget(module, v=10)
    window = open_static(one, one, other)
    window.page.locator(".static-widget > div").first.click()
    assert [said(window, i) for i in range(3)] == [2, 2, 10]


def test_a_module_may_export_a_function(open_static):
    module = "export default async () => ({ render({ el }) { say(el, 'made'); } });"
    assert said(open_static(widget(module))) == "made"


def test_clean_up_runs_when_the_page_goes(open_static):
    module = """export default {
      initialize() { return () => { window.ended.push("model"); }; },
      render({ el, signal, model }) {
        window.ended = [];
        signal.addEventListener("abort", () => window.ended.push("signal"));
        return () => { window.ended.push("view"); };
      } };"""
    window = open_static(widget(module))
    leave = "(kept) => dispatchEvent(new PageTransitionEvent('pagehide', { persisted: kept }))"
    window.page.evaluate(leave, True)  # into the back/forward cache: it may come back
    assert window.page.evaluate("window.ended") == []
    window.page.evaluate(leave, False)
    assert sorted(window.page.evaluate("window.ended")) == ["model", "signal", "view"]


def test_style_is_applied_and_every_source_travels_once(open_static):
    module = "export default { render({ el }) { el.className = 'trial'; say(el, 1); } };"
    css = ".trial { color: rgb(1, 2, 3); }"
    window = open_static(*(widget(module, css) for _ in range(3)))
    colours = window.page.locator(".trial").evaluate_all(
        "(all) => all.map((one) => getComputedStyle(one).color)"
    )
    assert colours == ["rgb(1, 2, 3)"] * 3
    data = window.page.locator("#widget-data").text_content()
    assert data.count("rgb(1, 2, 3)") == 1
    assert data.count("className = 'trial'") == 1


def test_data_cannot_end_the_script_that_holds_them(open_static):
    text = "</script><script>window.broken = 1</script><!--"
    module = "export default { render({ model, el }) { say(el, model.get('text')); } };"
    window = open_static(widget(module, text=text))
    assert said(window) == text
    assert window.page.evaluate("window.broken") is None


@pytest.mark.parametrize(
    "module",
    [
        "export default { render() { throw new Error('out of ink'); } };",
        "export default { async render() { throw new Error('out of ink'); } };",
        "export default { initialize() { throw new Error('out of ink'); }, render() {} };",
        "throw new Error('out of ink');",
    ],
    ids=["render", "async", "initialize", "module"],
)
def test_a_widget_that_throws_says_so_and_leaves_the_page_usable(open_static, module):
    good = widget("export default { render({ el }) { say(el, 'fine'); } };")
    bad = widget(module, _picture='<img alt="the picture" src="data:,">')
    window = open_static(bad, good)
    alert = window.page.get_by_role("alert")
    assert alert.count() == 1
    assert "could not start: out of ink" in alert.inner_text()
    assert window.page.get_by_alt_text("the picture").count() == 1
    assert said(window, 1) == "fine"
    assert any("out of ink" in complaint for complaint in window.complaints)


def test_a_listener_that_throws_says_so_and_spares_the_others(open_static):
    module = """export default { render({ model, el }) {
      model.on("change:v", () => { if (model.get("fails")) throw new Error("tripped"); });
      model.on("change:v", () => say(el, model.get("v")));
      say(el, 0);
      el.addEventListener("click", () => model.set("v", model.get("v") + 1));
    } };"""
    window = open_static(widget(module, v=0, fails=True), widget(module, v=0, fails=False))
    for place in window.page.locator(".static-widget > div").all():
        place.click()
        place.click()
    assert [said(window, i) for i in range(2)] == [2, 2]
    alerts = window.page.get_by_role("alert")
    assert alerts.all_inner_texts() == ["This widget stopped: tripped. The rest of the page works."]


def test_plain_controls_show_what_they_gave_and_where_they_run(open_static):
    output = ipywidgets.Output(
        outputs=[
            {"output_type": "stream", "name": "stdout", "text": "4 heads < 5\n"},
            {
                "output_type": "display_data",
                "data": {"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"},
                "metadata": {"image/png": {"width": 513, "height": 362}},
            },
            {"output_type": "display_data", "data": {"text/plain": "array(7)"}, "metadata": {}},
        ]
    )
    heads = ipywidgets.IntSlider(4, description="h")
    width = ipywidgets.Dropdown(options=[8, 16], value=16, description="d")
    window = open_static(ipywidgets.VBox([heads, width, output]))
    note = window.page.locator(".runs-in-jupyter")
    assert "run in Jupyter, with a kernel. Below: what it gives with h = 4, d = 16" in (
        note.inner_text()
    )
    assert note.locator("pre").all_inner_texts() == ["4 heads < 5\n", "array(7)"]
    image = note.locator("img")
    assert image.get_attribute("alt") == "What this cell shows with h = 4, d = 16."
    # A figure for fine screens has twice the pixels; its letters are as large as in other figures.
    assert image.get_attribute("width") == "513"
    assert window.page.get_by_role("alert").count() == 0
    assert window.page.locator("script[src]").count() == 0
    assert window.complaints == []


def test_a_widget_that_was_not_saved_is_named(open_static):
    window = open_static("no-such-model", state={})
    assert "not saved" in window.page.locator(".runs-in-jupyter").inner_text()
