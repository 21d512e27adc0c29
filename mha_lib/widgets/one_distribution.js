// One distribution: a softmax row, its two errors, and their place on the error frontier.

const SIDE = 220, EDGE = 40; // the frontier's plot

function render(context) {
  const { model } = context;
  const score = slider(model, "score", "score of the marked token");
  const n = slider(model, "n", "tokens n");
  const h = slider(model, "n_heads", "heads h", (value) => plural(value, "row"));
  const second = el("button", { type: "button", class: "mha-button" });
  second.addEventListener("click", () => {
    model.set("n_heads", model.get("n_heads") === 1 ? 2 : 1);
    model.save_changes();
  });
  const bars = el("div", { class: "mha-bars" });
  const errors = el("div", { class: "mha-meters" });
  const plot = el("div", { class: "mha-plot" });

  function draw({ fetch_error: fetch, mean_error: mean, sum, bound, on_marked, on_others }) {
    const tokens = model.get("n"), heads = on_marked.length;
    second.textContent = heads === 1 ? "Add a second row" : "Back to one row";
    bars.replaceChildren(...Array.from({ length: heads },
      (_, head) => row(head, tokens, on_marked[head], on_others[head])));
    errors.replaceChildren(meter("fetch the marked token", fetch), meter("average all tokens", mean));
    plot.replaceChildren(frontier(tokens, fetch, mean, bound, heads));
    const both = `Error of fetching ${fetch.toFixed(2)}, of averaging ${mean.toFixed(2)}, ` +
      `together ${sum.toFixed(2)}`;
    if (heads === 1) return `${both}; no single row gets below ${bound.toFixed(2)}.`;
    return sum < 0.005
      ? `${both}: the rows together do both jobs, by adding and subtracting what they bring.`
      : `${both}: the rows are equal, so they are worth one.`;
  }

  // The row of one head.  All tokens but the marked one have the same weight.
  function row(head, tokens, marked, other) {
    const step = 100 / tokens;
    const bar = (i) => {
      const weight = i ? other : marked;
      return el("rect", { x: (i + 0.1) * step, width: 0.8 * step, y: 60 * (1 - weight),
        height: 60 * weight, fill: headColour(head), class: i ? "mha-bar" : "mha-bar mha-marked" });
    };
    const says = `${marked.toFixed(3)} on the marked token, ${other.toFixed(3)} on each of the other ${tokens - 1}`;
    return el("figure", {},
      el("figcaption", {}, headChip(head, `row ${head + 1}`), ` ${says}`),
      // The caption has said it all.
      el("svg", { viewBox: "0 0 100 60", preserveAspectRatio: "none", "aria-hidden": "true" },
        ...Array.from({ length: tokens }, (_, i) => bar(i)),
        el("line", { x1: 0, x2: 100, y1: 60, y2: 60, class: "mha-line" })),
      el("p", { class: "mha-axis", "aria-hidden": "true" },
        el("span", {}, "▲ marked"), el("span", {}, "bar height: weight, from 0 to 1")));
  }

  const meter = (job, error) => el("div", { class: "mha-meter" },
    el("span", {}, job), el("span", { class: "mha-track", "aria-hidden": "true" },
      el("span", { class: "mha-fill", style: `width:${100 * error}%` })),
    el("span", { class: "mha-value" }, `error ${error.toFixed(2)}`));

  function frontier(tokens, fetch, mean, bound, heads) {
    const x = (error) => EDGE + SIDE * error, y = (error) => 10 + SIDE * (1 - error);
    const curve = model.get("_curves")[tokens] ?? [];
    const text = (content, attributes) => el("text", { ...attributes, "aria-hidden": "true" }, content);
    const place = (errors = []) => errors.map((error) => error.toFixed(2)).join(" and ");
    const drawing = el("svg", { viewBox: `0 0 ${SIDE + EDGE + 10} ${SIDE + EDGE + 10}`, role: "img",
      "aria-label": "Errors of fetching, to the right, and of averaging, upwards. The dot is at " +
        `${place([fetch, mean])}. The curve goes from ${place(curve[0])} to ${place(curve.at(-1))}.` },
      el("line", { x1: x(0), y1: y(0), x2: x(1), y2: y(0), class: "mha-line" }),
      el("line", { x1: x(0), y1: y(0), x2: x(0), y2: y(1), class: "mha-line" }),
      el("line", { x1: x(bound), y1: y(0), x2: x(0), y2: y(bound), class: "mha-bound" }),
      el("polyline", { points: curve.map(([a, b]) => `${x(a)},${y(b)}`).join(" "), class: "mha-curve" }),
      el("circle", { cx: x(fetch), cy: y(mean), r: 6, class: "mha-point" }),
      text("error of fetching", { x: x(0.5), y: y(0) + 30, "text-anchor": "middle" }),
      text("error of averaging", { x: 0, y: 0, "text-anchor": "middle",
        transform: `translate(12,${y(0.5)}) rotate(-90)` }));
    for (const tick of [0, 0.5, 1]) {
      drawing.append(text(String(tick), { x: x(tick), y: y(0) + 15, "text-anchor": "middle" }));
      drawing.append(text(String(tick), { x: x(0) - 5, y: y(tick) + 4, "text-anchor": "end" }));
    }
    return el("figure", {}, drawing, el("figcaption", {},
      `The dot: ${heads === 1 ? "this row" : "these rows together"}. Curve: the best that one row can do. ` +
      `Dashed: errors that sum to 1 − 1/√n = ${bound.toFixed(2)}.`));
  }

  const view = show(context, {
    name: "One distribution",
    controls: [score, n, h],
    also: ["_curves"],
    draw,
  });
  view.section.querySelector(".mha-controls").append(second);
  view.result.append(bars, errors, plot);
  view.redraw();
}

export default { render };
