// The budget: what attention costs, beside what one head would cost.

function render(context) {
  const { model } = context;
  const names = model.get("_labels").counts;
  const whole = (value) => value.toLocaleString("en-US");
  const times = (ratio) => `${Number(ratio.toPrecision(3))} ×`;
  const sliders = [
    slider(model, "n", "tokens n", whole),
    slider(model, "d", "width d", whole),
    slider(model, "n_heads", "heads h"),
    slider(model, "n_kv_heads", "key/value heads", (value) => (value === null ? "as many as h" : String(value))),
  ];
  const table = el("table", { class: "mha-budget" });

  function draw({ counts, ratios }) {
    const longest = Math.max(16, ...ratios);
    table.replaceChildren(
      el("caption", {}, "One layer, one sequence, 4 bytes per number"),
      el("thead", {}, el("tr", {}, ...["what", "count", "relative to one head"].map((title) =>
        el("th", { scope: "col" }, title)))),
      el("tbody", {}, ...names.map((name, i) => el("tr", {},
        el("th", { scope: "row" }, name),
        el("td", { class: "mha-count" }, whole(counts[i])),
        el("td", {}, el("div", { class: "mha-relative" },
          el("span", { class: "mha-track", "aria-hidden": "true" },
            el("span", { class: "mha-fill", style: `width:${(100 * ratios[i]) / longest}%` }),
            el("span", { class: "mha-one", style: `left:${100 / longest}%` })),
          el("span", { class: "mha-value" }, times(ratios[i]))))))));
    const same = names.filter((_, i) => ratios[i] === 1), other = names.filter((_, i) => ratios[i] !== 1);
    if (!other.length) return "Everything as with one head.";
    return `As with one head: ${same.join(", ") || "nothing"}. Not: ` +
      other.map((name) => `${name} (${times(ratios[names.indexOf(name)])})`).join(", ") + ".";
  }

  const view = show(context, {
    name: "Budget",
    controls: sliders,
    draw,
  });
  view.result.append(table);
  view.redraw();
}

export default { render };
