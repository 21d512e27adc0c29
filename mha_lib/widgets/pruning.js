// Pruning: accuracy against heads kept, for several orders of removal.

// Height of a name beside the plot, as a share of the plot's; in pruning.css, 1.4 of 17 lines.
const APART = 1.4 / 17;

// Heights of names, each near its own curve and at a distance from the others; 0 is the bottom.
function spread(wanted) {
  const heights = [...wanted];
  const order = [...wanted.keys()].sort((a, b) => wanted[a] - wanted[b] || b - a);
  let floor = -Infinity, ceiling = 1 + APART / 2;
  for (const i of order) floor = (heights[i] = Math.max(heights[i], floor)) + APART;
  for (const i of order.reverse()) ceiling = (heights[i] = Math.min(heights[i], ceiling)) - APART;
  return heights;
}

function render(context) {
  const { model } = context;
  const { results: names, short, marks, best, choices } = model.get("_labels");
  const CHOICES = names.indexOf(choices), FLOOR = names.length - 1;
  const study = () => model.get("_studies")[model.get("study")];
  const total = () => study().greedy.length;
  const spoken = (i) => study().roles ? `, ${study().roles[i] || "no clear role"}` : "";
  const headName = ([layer, head]) =>
    `${study().n_layers > 1 ? `layer ${layer + 1} ` : ""}head ${head + 1}`;

  const kept = {
    ...slider(model, "kept", "heads kept", (kept) => `${kept} of ${total()}`),
    // The heads that the greedy order removes on the way from `more` heads to `fewer`.
    move: (was, is) => {
      const from = Math.max(0, total() - Math.max(was, is)), to = Math.max(0, total() - Math.min(was, is));
      if (to <= from) return "";
      const heads = study().greedy.slice(from, to).map((head, i) => headName(head) + spoken(from + i));
      const seed = study().n_seeds > 1 ? " (first seed)" : "";
      return `Greedy ${is < was ? "removes" : "keeps"} ${heads.join("; ")}${seed}.`;
    },
  };
  const caption = el("figcaption", {});
  const lines = el("svg", { role: "img", class: "mha-drawing" });
  const tags = el("div", { class: "mha-tags", "aria-hidden": "true" });
  const ticks = el("div", { class: "mha-ticks", "aria-hidden": "true" });
  // What one model needs, all have, so that no choice changes the height.
  const all = Object.values(model.get("_studies")), most = Math.max(...all.map(({ greedy }) => greedy.length));
  const named = all.some(({ roles }) => roles), several = all.some(({ n_seeds }) => n_seeds > 1);
  const order = el("ol", { class: `mha-order${most > 8 ? " mha-many" : ""}` });
  const first = el("p", { class: "mha-note" },
    `The greedy order${several ? " (first seed)" : ""} removes these, from left to right:`);
  const table = el("table", {});

  // Places as shares: from all heads at the left to none at the right, from 0 up to 1.
  const x = (kept) => 1 - kept / total(), y = (accuracy) => 1 - accuracy;
  const percent = (share) => `${+(100 * share).toFixed(2)}%`;
  const points = (curve) => curve.map((accuracy, kept) => `${100 * x(kept)},${100 * y(accuracy)}`);
  const mark = (i, at = {}) => el("svg", { overflow: "visible", width: 1, height: 1, ...at },
    el("path", { d: `M0 0${marks[i]}`, class: `mha-mark mha-series-${i}` }));

  // What is named beside the plot: the curves, and the best choice, which is the edge of an area.
  const shown = [...names.keys()].map((i) => ({ name: short[i], row: 0, i }));
  shown.splice(CHOICES, 0, { name: best, row: 2, i: CHOICES });

  function drawLines(kept) {
    const curves = names.map((name) => study().curves[name]);
    const [, low, high] = curves[CHOICES];
    const line = (curve, class_) => el("polyline", { points: points(curve).join(" "), class: class_ });
    const wanted = shown.map(({ i, row }) => curves[i][row][kept]);
    const heights = spread(wanted);
    const at = percent(x(kept));
    lines.replaceChildren(
      el("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", width: "100%", height: "100%", overflow: "visible" },
        el("polygon", { points: [...points(high), ...points(low).reverse()].join(" ") }),
        line(high, "mha-edge"),
        // The first on top: marks that lie on one another stay in sight.
        ...curves.map(([middle], i) => line(middle, `mha-series-${i}`)).reverse()),
      el("line", { x1: 0, x2: "100%", y1: "100%", y2: "100%", class: "mha-base" }),
      el("line", { x1: 0, x2: 0, y1: 0, y2: "100%", class: "mha-base" }),
      el("line", { x1: at, x2: at, y1: 0, y2: "100%", class: "mha-cursor" }),
      ...shown.map(({ i }, k) => el("line", { x1: at, x2: "100%", y1: percent(y(wanted[k])),
        y2: percent(y(heights[k])), class: `mha-lead mha-series-${i}` })),
      ...curves.flatMap(([middle], i) => marks[i] ? middle.map((accuracy, k) =>
        mark(i, { x: percent(x(k)), y: percent(y(accuracy)) })) : []).reverse());
    tags.replaceChildren(...shown.map(({ name, i }, k) => el("span", {
      class: `mha-tag mha-series-${i}`, style: `top: ${percent(y(heights[k]))}` },
      name, " ", el("b", {}, wanted[k].toFixed(2)))));
    ticks.replaceChildren(...Array.from({ length: total() + 1 }, (_, k) =>
      el("span", { class: k === kept ? "mha-now" : "", style: `left: ${percent(x(k))}` }, k)));
    lines.setAttribute("aria-label", `Accuracy as heads go, from all ${total()} to none. ` +
      `With ${kept}: ` + shown.map(({ name }, k) => `${name} ${wanted[k].toFixed(3)}`).join(", ") + ".");
  }
  // The plot can be taken hold of, too; a finger that scrolls the page is no hold.
  const point = (event) => {
    const box = lines.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    model.set("kept", Math.round((1 - share) * total()));
    model.save_changes();
  };
  lines.addEventListener("click", point);
  lines.addEventListener("pointermove", (event) => {
    if (event.buttons === 1 && event.pointerType === "mouse") point(event);
  });

  function drawTable(results, kept) {
    const { n_seeds: seeds } = study();
    const several = seeds > 1;
    const cell = (number) => el("td", {}, number.toFixed(3));
    table.replaceChildren(
      el("caption", {}, `Accuracy with ${kept} of ${total()} heads kept` +
        (several ? `; median, lowest and highest of ${seeds} seeds` : "")),
      el("thead", {}, el("tr", {}, ...["order", several ? "median" : "accuracy", "lowest", "highest"]
        .map((title) => el("th", { scope: "col" }, title)))),
      el("tbody", {}, ...names.map((name, i) => {
        const [middle, low, high] = results.subarray(3 * i, 3 * i + 3);
        return el("tr", {}, el("th", { scope: "row" }, short[i]), cell(middle),
          ...(several || i === CHOICES ? [cell(low), cell(high)] : [el("td"), el("td")]));
      })));
  }

  function drawOrder(kept) {
    const { greedy, roles, n_layers: layers } = study();
    order.style.setProperty("--mha-count", total());
    order.replaceChildren(...greedy.map(([layer, head], i) => {
      const gone = i < total() - kept;
      const chip = headChip(head, "");
      chip.append(
        el("span", { "aria-hidden": "true" }, `${layers > 1 ? `L${layer + 1} ` : ""}head ${head + 1}`),
        ...(named ? [el("b", { "aria-hidden": "true" }, roles ? roles[i].replace(" token", "") || "unclear" : "")] : []),
        el("span", { class: "mha-unseen" }, `${headName([layer, head])}${spoken(i)}, ${gone ? "removed" : "kept"}`));
      return el("li", gone ? { class: "mha-gone" } : {}, chip);
    }), ...Array.from({ length: most - total() }, () => el("li", { class: "mha-pad" })));
  }

  function draw({ results }) {
    const kept = model.get("kept");
    caption.replaceChildren(el("span", { class: "mha-paper" }, `${model.get("study")}: `), // without the controls
      "Accuracy. Grey: all choices of as many heads, from worst to best");
    drawLines(kept);
    drawOrder(kept);
    drawTable(results, kept);
    const says = (i) => results[3 * i].toFixed(3);
    return `${kept} of ${total()} heads kept: greedy ${says(0)}, ${names[CHOICES]} ${says(CHOICES)}, ` +
      `${names[FLOOR]} ${says(FLOOR)}.`;
  }

  const view = show(context, {
    name: "Pruning",
    controls: [choice(model, "study", "model"), kept],
    draw,
  });
  view.section.classList.add("mha-pruning");
  view.result.append(
    el("figure", {}, caption, el("div", { class: "mha-frame" },
      el("div", { class: "mha-heights", "aria-hidden": "true" },
        ...["1", "0.5", "0"].map((text) => el("span", {}, text))),
      lines, ticks, tags)),
    first, order, el("details", {}, el("summary", {}, "All numbers"), table));
  view.redraw();
}

export default { render };
