// The budget: what attention costs, beside what one head would cost.

const NAMES = ["parameters", "matrix FLOPs", "softmax entries", "bytes of weights",
  "bytes of scores", "bytes of key/value cache"];

function render(context) {
  const { model } = context;
  const whole = (value) => value.toLocaleString("en-US");
  const times = (ratio) => `${Number(ratio.toPrecision(3))} ×`;
  const sliders = [
    slider(model, "n", "tokens n", whole),
    slider(model, "d", "width d", whole),
    slider(model, "n_heads", "heads h"),
    slider(model, "n_kv_heads", "key/value heads", (value) => (value === null ? "as many as h" : String(value))),
  ];
  const table = el("table", { class: "mha-budget" });

  function draw(read) {
    const counts = read.float64(NAMES.length), ratios = read.float64(NAMES.length);
    const longest = Math.max(16, ...ratios);
    table.replaceChildren(
      el("caption", {}, "One layer, one sequence, 4 bytes per number"),
      el("thead", {}, el("tr", {}, ...["what", "count", "relative to one head"].map((title) =>
        el("th", { scope: "col" }, title)))),
      el("tbody", {}, ...NAMES.map((name, i) => el("tr", {},
        el("th", { scope: "row" }, name),
        el("td", { class: "mha-count" }, whole(counts[i])),
        el("td", {}, el("div", { class: "mha-relative" },
          el("span", { class: "mha-track", "aria-hidden": "true" },
            el("span", { class: "mha-fill", style: `width:${(100 * ratios[i]) / longest}%` }),
            el("span", { class: "mha-one", style: `left:${100 / longest}%` })),
          el("span", { class: "mha-value" }, times(ratios[i]))))))));
    const same = NAMES.filter((_, i) => ratios[i] === 1), other = NAMES.filter((_, i) => ratios[i] !== 1);
    if (!other.length) return "Everything as with one head.";
    return `As with one head: ${same.join(", ") || "nothing"}. Not: ` +
      other.map((name) => `${name} (${times(ratios[NAMES.indexOf(name)])})`).join(", ") + ".";
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
