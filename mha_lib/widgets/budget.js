// The budget: what attention costs, on a scale by tens, beside what one head would cost.

function render(context) {
  const { model } = context;
  const { counts: names, units, axis } = model.get("_labels");
  const whole = (value) => value.toLocaleString("en-US");
  const sets = (value) => (value === null ? "one per head" : String(value));
  const n = slider(model, "n", "tokens n", whole);
  const d = slider(model, "d", "width d", whole);
  const h = slider(model, "n_heads", "heads h");
  const kv = choice(model, "n_kv_heads", "sets of keys and values", sets);

  // 1234567 as "1.23 M".
  function short(value) {
    const step = [1e12, 1e9, 1e6, 1e3].findIndex((size) => value >= size);
    return step < 0 ? `${value} ` : `${Number((value / [1e12, 1e9, 1e6, 1e3][step]).toPrecision(3))} ${"TGMk"[step]}`;
  }

  const part = (name) => el("span", { class: name });
  const grid = () => axis.map((_, i) => el("span", { class: "mha-decade", style: `left:${(100 * i) / (axis.length - 1)}%` }));
  const bars = names.map((name, i) => {
    const one = part("mha-own"), more = part("mha-more");
    const count = el("b", {}), digits = part("mha-digits"), ratio = el("span", { role: "cell", class: "mha-ratio" });
    const row = el("div", { role: "row", class: "mha-cost-row" },
      el("span", { role: "rowheader", class: "mha-what" }, name),
      el("span", { role: "cell", class: "mha-count" }, count, " ", digits),
      el("span", { class: "mha-scale-bar", "aria-hidden": "true" }, ...grid(), one, more),
      ratio);
    function set(value, relative, length, oneLength) {
      const low = Math.min(length, oneLength), high = Math.max(length, oneLength);
      count.textContent = `${short(value)}${units[i]}`;
      digits.textContent = value < 1000 ? "" : whole(value);
      one.style.width = `${(100 * low) / 255}%`;
      more.style.cssText = `left:${(100 * low) / 255}%;width:${(100 * (high - low)) / 255}%`;
      row.classList.toggle("mha-saved", relative < 1);
      row.classList.toggle("mha-added", relative > 1);
      ratio.replaceChildren(...(relative === 1 ? ["= one head"]
        : [`${Number(relative.toPrecision(3))} ×`, el("span", { class: "mha-of" }, " one head")]));
    }
    return { row, set };
  });
  const table = el("div", { role: "table", class: "mha-cost", "aria-label": "Cost of one layer for one sequence, at 4 bytes a number" },
    el("div", { role: "row", class: "mha-cost-row mha-cost-head" },
      ...["cost", "count", "relative to one head"].map((title) =>
        el("span", { role: "columnheader", class: "mha-unseen" }, title)),
      el("span", { class: "mha-scale-bar", "aria-hidden": "true" }, ...axis.map((text, i) =>
        el("span", { class: "mha-power", style: `left:${(100 * i) / (axis.length - 1)}%` }, text && `1 ${text}`)))),
    ...bars.map((bar) => bar.row));

  function draw({ counts, ratios, lengths }) {
    bars.forEach((bar, i) => bar.set(counts[i], ratios[i], lengths[i], lengths[bars.length + i]));
    const heads = model.get("n_heads"), shared = model.get("n_kv_heads");
    if (heads === 1) return "One head: the measure for all others.";
    const saves = ratios.some((ratio) => ratio < 1);
    return `${heads} heads: ${heads} × the softmax entries and scores of one head. ` + (saves
      ? `Sharing ${plural(shared, "set")} of keys and values saves the rest.` : "All else is the same.");
  }

  const view = show(context, {
    name: "Budget",
    controls: [n, d, h, kv],
    draw,
    remedy: (name, value) => (name === "n_heads" ? `h = ${value}`
      : name === "d" ? `d = ${whole(value)}`
      : value === null ? "one set per head" : plural(value, "set")),
  });
  view.section.classList.add("mha-budget");
  view.result.append(table);
  // Beside the bars that it moves, and out of the way of those who have not come to it.
  view.result.after(el("div", { class: "mha-aside" }, kv.row,
    el("p", { class: "mha-note" }, "Heads may share keys and values: fewer sets, a smaller cache.")));
  view.redraw();
}

export default { render };
