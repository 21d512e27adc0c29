// One distribution: rows of weights, what can be made of them, and their place on the error frontier.

const SIDE = 220, EDGE = 34; // the frontier's plot
const JOBS = ["Fetch the marked token", "Average all tokens"];

function render(context) {
  const { model } = context;
  const score = slider(model, "score", "score of the marked token");
  const n = slider(model, "n", "tokens n");
  const h = choice(model, "n_heads", "rows of weights", (value) => ["", "one", "two"][value] ?? String(value));
  const rows = el("figure", { class: "mha-rows" });
  const jobs = el("div", { class: "mha-made" });
  const plot = el("figure", { class: "mha-plot" });
  const visited = new Map(); // settings whose errors were seen, for the trace

  function draw({ errors, sum, bound, on_marked, on_others, factors, made }) {
    const tokens = model.get("n"), heads = on_marked.length;
    rows.replaceChildren(...weights(tokens, heads, on_marked, on_others));
    jobs.replaceChildren(...JOBS.map((job, i) => el("figure", {},
      el("figcaption", {}, job, " ", el("b", {}, `error ${errors[i].toFixed(2)}`),
        el("span", { class: "mha-sum" }, combination(factors.subarray(i * heads, (i + 1) * heads)))),
      comparison(tokens, made[2 * i], made[2 * i + 1], i ? 1 / tokens : 1, i ? 1 / tokens : 0))));
    visited.set([tokens, heads, model.get("score")].join(), [tokens, ...errors]);
    plot.replaceChildren(frontier(tokens, errors, bound));
    const both = `Errors ${errors[0].toFixed(2)} and ${errors[1].toFixed(2)}, together ${sum.toFixed(2)}`;
    if (heads === 1) return `${both}. No single row gets below ${bound.toFixed(2)}.`;
    return sum < 0.005 ? `${both}: ${h.spoken(heads)} rows do both jobs.`
      : `${both}: equal rows are worth one.`;
  }

  const short = (number) => String(Number(Math.abs(number).toPrecision(3)));
  const combination = (all) => "= " + [...all].map((factor, i) => {
    const sign = factor < 0 ? "− " : i ? "+ " : "";
    return `${sign}${short(factor)} × row ${i + 1}`;
  }).join(" ");

  // Bars over all tokens, of which the first is marked; the others have one height.
  function bars(tokens, marked, other, top, look) {
    const step = 100 / tokens, { from = 0.1, width = 0.8, ...style } = look;
    return Array.from({ length: tokens }, (_, i) => {
      const value = i ? other : marked, height = (60 * Math.abs(value)) / top;
      return el("rect", { x: (i + from) * step, width: width * step, height,
        y: value < 0 ? 60 : 60 - height, ...style });
    });
  }
  const chart = (...parts) => el("svg", { viewBox: "0 0 100 60", preserveAspectRatio: "none",
    "aria-hidden": "true" }, ...parts, el("line", { x1: 0, x2: 100, y1: 60, y2: 60, class: "mha-line" }));

  function weights(tokens, heads, on_marked, on_others) {
    const top = Math.max(...on_marked, ...on_others), width = 0.8 / heads;
    const says = (head) => el("span", { class: "mha-row-says" }, headChip(head, `row ${head + 1}`),
      head === 1 ? ` all scores 0: ${on_others[head].toFixed(3)} each`
        : ` marked ${on_marked[head].toFixed(3)}, others ${on_others[head].toFixed(3)}`);
    return [
      el("figcaption", {}, ...Array.from({ length: heads }, (_, head) => says(head))),
      chart(el("line", { x1: 0, x2: 100, y1: 0, y2: 0, class: "mha-grid-line" }),
        ...Array.from({ length: heads }, (_, head) => bars(tokens, on_marked[head], on_others[head], top,
          { from: 0.1 + head * width, width, fill: headColour(head), class: "mha-bar" })).flat()),
      el("p", { class: "mha-axis", "aria-hidden": "true" }, el("span", {}, "▲ marked token"),
        el("span", {}, `highest bar: ${top.toFixed(2)}`)),
    ];
  }

  // What the rows make, as bars, and what the job wants, as a line over each.
  function comparison(tokens, marked, other, wantMarked, wantOther) {
    const top = Math.max(marked, other, wantMarked);
    const step = 100 / tokens;
    const want = (i) => 60 - (60 * (i ? wantOther : wantMarked)) / top;
    return chart(...bars(tokens, marked, other, top, { class: "mha-bar mha-mix" }),
      ...Array.from({ length: tokens }, (_, i) => el("line", { x1: i * step, x2: (i + 1) * step,
        y1: want(i), y2: want(i), class: "mha-wanted" })));
  }

  function frontier(tokens, [fetch, mean], bound) {
    const x = (error) => EDGE + SIDE * error, y = (error) => 8 + SIDE * (1 - error);
    const curve = model.get("_curves")[tokens] ?? [];
    const text = (content, attributes) => el("text", { ...attributes, "aria-hidden": "true" }, content);
    const dot = (a, b, r, name) => el("circle", { cx: x(a), cy: y(b), r, class: name });
    const place = (errors = []) => errors.map((error) => error.toFixed(2)).join(" and ");
    const drawing = el("svg", { viewBox: `0 0 ${SIDE + EDGE + 14} ${SIDE + 44}`, role: "img",
      "aria-label": "Error of fetching to the right, of averaging upwards. The dot is at " +
        `${place([fetch, mean])}; the best rows lie on a curve from ${place(curve[0])} to ${place(curve.at(-1))}.` },
      el("line", { x1: x(0), y1: y(0), x2: x(1), y2: y(0), class: "mha-line" }),
      el("line", { x1: x(0), y1: y(0), x2: x(0), y2: y(1), class: "mha-line" }),
      el("polyline", { points: curve.map(([a, b]) => `${x(a)},${y(b)}`).join(" "), class: "mha-curve" }),
      ...[...visited.values()].filter(([count]) => count === tokens)
        .map(([, a, b]) => dot(a, b, 4, "mha-trace")),
      dot(bound / 2, bound / 2, 5, "mha-best"),
      text("best one row", { x: x(bound / 2) + 9, y: y(bound / 2) - 18, class: "mha-blue" }),
      text(`${(bound / 2).toFixed(3)} + ${(bound / 2).toFixed(3)}`,
        { x: x(bound / 2) + 9, y: y(bound / 2) - 4, class: "mha-blue" }),
      text("★", { x: x(0), y: y(0) + 6, "text-anchor": "middle", class: "mha-goal mha-star-sign" }),
      text("both jobs done", { x: x(0) + 12, y: y(0) - 6, class: "mha-goal" }),
      dot(fetch, mean, 7, "mha-point"),
      text("error of fetching", { x: x(0.5), y: y(0) + 31, "text-anchor": "middle" }),
      text("error of averaging", { "text-anchor": "middle", transform: `translate(11,${y(0.5)}) rotate(-90)` }));
    for (const tick of [0, 0.5, 1]) {
      drawing.append(text(String(tick), { x: x(tick), y: y(0) + 17, "text-anchor": "middle" }));
      if (tick === 1) drawing.append(text(String(tick), { x: x(0) - 6, y: y(tick) + 4, "text-anchor": "end" }));
    }
    return drawing;
  }

  const view = show(context, {
    name: "One distribution",
    controls: [score, n, h],
    also: ["_curves"],
    draw,
  });
  view.section.classList.add("mha-one-row");
  view.result.append(rows, plot, el("div", { class: "mha-jobs-made" }, jobs, el("p", { class: "mha-axis", "aria-hidden": "true" },
    el("span", {}, "Bars: made of the rows. Lines: wanted."))));
  view.redraw();
}

export default { render };
