// Training playback: the loss, the accuracies and every head's map at one moment of training.

const PACE = 500; // milliseconds from one snapshot to the next

function render(context) {
  const { model, signal } = context;
  const run = model.get("_run"), n = run.tokens.length, count = run.n_layers * run.n_heads;
  const spoken = (step) => `step ${step} of ${run.n_steps}`;
  const headName = (i) => `${run.n_layers > 1 ? `layer ${Math.floor(i / run.n_heads) + 1} ` : ""}` +
    `head ${(i % run.n_heads) + 1}`;
  const chip = (i, text) => headChip(i % run.n_heads, text);
  const step = { ...slider(model, "step", "training step", spoken),
    move: (was, is) => `From step ${was} to ${is}.` };
  const button = el("button", { type: "button", class: "mha-button" });
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let timer, drawn;

  // Playing -------------------------------------------------------------------------------------

  const steps = () => model.get("_choices").step;
  const atEnd = () => model.get("step") === steps().at(-1);
  function go(to) {
    model.set("step", to);
    model.save_changes();
  }
  const next = () => go(atEnd() ? steps()[0] : steps()[steps().indexOf(model.get("step")) + 1]);

  function play() {
    next();
    timer = setInterval(() => {
      next();
      if (atEnd()) stop("The end of training.");
    }, PACE);
    view.redraw();
  }
  function stop(news) {
    if (timer === undefined) return;
    clearInterval(timer);
    timer = undefined;
    view.redraw(news);
  }
  function name() {
    button.textContent = timer !== undefined ? "Pause" : still.matches
      ? (atEnd() ? "Back to the start" : "Next snapshot")
      : (atEnd() ? "Play again" : "Play");
  }
  button.addEventListener("click", () => {
    if (timer !== undefined) stop("Paused.");
    else if (still.matches) next();
    else play();
  });
  const halt = () => { stop(); name(); };
  still.addEventListener("change", halt);
  signal?.addEventListener("abort", () => {
    clearInterval(timer);
    still.removeEventListener("change", halt);
  });

  // What is shown -------------------------------------------------------------------------------

  const cursor = el("line", { y1: 0, y2: 100, class: "mha-cursor" });
  const dot = el("line", { class: "mha-dot" });
  const loss = el("span", { class: "mha-value" });
  const curve = el("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", role: "img",
    "aria-label": `Loss over ${run.n_steps} steps, from ${run.losses[0].toFixed(2)} to ${run.losses.at(-1).toFixed(3)}` },
    el("line", { x1: 0, x2: 100, y1: 100, y2: 100, class: "mha-line" }),
    el("line", { x1: 0, x2: 0, y1: 0, y2: 100, class: "mha-line" }),
    cursor,
    el("polyline", { class: "mha-curve", points: run.losses.map((value, i) =>
      `${across(i + 1)},${down(value)}`).join(" ") }),
    dot);
  function across(at) { return (100 * at) / run.n_steps; }
  function down(value) { return 100 - (100 * value) / run.highest; }

  const jobs = run.jobs.map((job) => newMeter(job, run.job_chance));
  const group = unique("head");
  const cards = Array.from({ length: count }, (_, i) => newCard(i));
  const maps = el("div", { role: "radiogroup", "aria-label": "Head shown large" });
  for (let layer = 0; layer < run.n_layers; layer++) {
    if (run.n_layers > 1) maps.append(el("p", { class: "mha-layer-name" }, `Layer ${layer + 1}`));
    maps.append(el("div", { class: "mha-layer" },
      ...cards.slice(layer * run.n_heads, (layer + 1) * run.n_heads).map((card) => card.figure)));
  }

  const large = el("canvas", { role: "img" });
  const largeName = el("figcaption", {});
  const largeScores = run.scores.map((score, i) => newMeter(score, run.chance[i]));
  const letters = (side) => el("div", { class: `mha-letters ${side}`, "aria-hidden": "true" },
    ...run.tokens.map((token, i) => el("span", i === run.marked ? { class: "mha-star" } : {}, token)));
  const table = el("div", { class: "mha-table", tabindex: 0, role: "region",
    "aria-label": `Scores of all heads: ${run.jobs.join(", ")}` });
  const numbers = el("details", {}, el("summary", {}, "All scores in numbers"), table);
  numbers.addEventListener("toggle", () => drawTable());

  // A bar from 0 to 1 with a line at the chance level.
  function newMeter(label, chance) {
    const fill = el("span", { class: "mha-fill" }), value = el("span", { class: "mha-value" });
    const row = el("div", { class: "mha-meter" }, el("span", {}, label),
      el("span", { class: "mha-track", "aria-hidden": "true" }, fill,
        el("span", { class: "mha-one", style: `left:${100 * chance}%` })), value);
    function set(number, leads = false) {
      fill.style.width = `${100 * number}%`;
      value.replaceChildren(leads ? el("b", {}, number.toFixed(2)) : number.toFixed(2),
        el("span", { class: "mha-chance" }, ` chance ${chance.toFixed(2)}`));
    }
    return { row, set };
  }

  function newCard(i) {
    const canvas = el("canvas", { role: "img" });
    const role = el("b", { class: "mha-role" });
    const chosen = radio(model, "head", group, i, headName(i));
    const values = run.scores.map(() => el("span", { class: "mha-value" }));
    const figure = el("figure", { class: "mha-card" },
      el("figcaption", {}, chip(i, `head ${(i % run.n_heads) + 1}`), " ", role),
      el("div", { class: "mha-canvas" }, canvas),
      el("div", { class: "mha-scores" }, ...run.scores.flatMap((score, s) => [el("span", {}, score),
        values[s], el("span", { class: "mha-chance" }, `(${run.chance[s].toFixed(2)})`)])),
      chosen.input);
    function set() {
      const called = drawn.named(i);
      paint(i, canvas);
      role.textContent = called;
      figure.classList.toggle("mha-named", called !== "");
      chosen.input.setAttribute("aria-label", called ? `${headName(i)}, ${called}` : headName(i));
      values.forEach((node, s) => node.replaceChildren(number(i, s)));
    }
    return { figure, set, follow: chosen.follow };
  }

  // A score in bold where it gave the head its name.
  const leads = (i, s) => drawn.named(i) === run.name_of[run.scores[s]];
  const number = (i, s) => (leads(i, s) ? el("b", {}, drawn.score(i, s).toFixed(2))
    : drawn.score(i, s).toFixed(2));

  function paint(i, canvas) {
    pixels(n, n, (row, column) => (run.causal && column > row ? [0, 0, 0, 0]
      : weightColour(drawn.weights[(i * n + row) * n + column] / 255)),
    `Attention map of ${headName(i)}, ${n} query rows by ${n} key columns`, canvas);
  }

  function draw({ weights, roles: codes, scores, loss: lossNow, measures }) {
    drawn = { weights, score: (i, s) => scores[s * count + i], named: (i) => run.names[codes[i]] };

    const x = across(model.get("step")), y = down(lossNow);
    for (const [line, ends] of [[cursor, { x1: x, x2: x }], [dot, { x1: x, x2: x, y1: y, y2: y }]]) {
      for (const [end, place] of Object.entries(ends)) line.setAttribute(end, place);
    }
    loss.textContent = lossNow.toFixed(3);
    jobs.forEach((job, i) => job.set(measures[i]));
    cards.forEach((card) => card.set());
    drawLarge();
    drawTable();
    name();
    const accuracies = [...measures].map((measure) => measure.toFixed(2)).join(", ");
    return `Loss ${lossNow.toFixed(3)}, accuracy ${accuracies}. ${roles()}`;
  }

  // Which heads have which role, in words.
  function roles() {
    const found = run.names.filter(Boolean).flatMap((called) => {
      const layers = Array.from({ length: run.n_layers }, (_, layer) => {
        const heads = Array.from({ length: run.n_heads }, (_, head) => head)
          .filter((head) => drawn.named(layer * run.n_heads + head) === called);
        if (!heads.length) return "";
        return `${run.n_layers > 1 ? `layer ${layer + 1} ` : ""}head${heads.length > 1 ? "s" : ""} ` +
          heads.map((head) => head + 1).join(", ");
      }).filter(Boolean);
      return layers.length ? [`${called}: ${layers.join(", ")}`] : [];
    });
    if (!found.length) return "No head stands out yet.";
    const text = found.join("; ");
    return `${text[0].toUpperCase()}${text.slice(1)}.`;
  }

  function drawLarge() {
    if (!drawn) return;
    const i = Math.min(model.get("head"), count - 1), called = drawn.named(i);
    cards.forEach((card) => card.follow());
    largeName.replaceChildren(chip(i, headName(i)), " ", el("b", {}, called || "no clear role"));
    paint(i, large);
    largeScores.forEach((meter, s) => meter.set(drawn.score(i, s), leads(i, s)));
  }

  function drawTable() {
    if (!numbers.open || !drawn) return;
    const head = (text) => el("th", { scope: "col" }, text);
    const row = (title, cells) => el("tr", {}, el("th", { scope: "row" }, title),
      ...cells.map((cell) => el("td", {}, cell)));
    table.replaceChildren(el("table", {},
      el("caption", {}, `Scores at ${spoken(model.get("step"))}, mean over ${run.n_sequences} sequences`),
      el("thead", {}, el("tr", {}, ...["head", ...run.scores, "role"].map(head))),
      el("tbody", {}, ...cards.map((_, i) => row(chip(i, headName(i)),
        [...run.scores.map((_, s) => number(i, s)), drawn.named(i) || "none"])),
      row("chance", [...run.chance.map((value) => value.toFixed(2)), ""]))));
  }

  const view = show(context, {
    // A page may show several; a reader who jumps between regions must tell them apart.
    name: `Training playback: ${run.jobs.join(", ")}`,
    controls: [step],
    draw,
    quiet: () => timer !== undefined,
  });
  view.section.classList.add("mha-training");
  view.section.querySelector(".mha-controls").append(button);
  view.section.addEventListener("keydown", (event) => {
    if (event.key === "Escape") stop("Paused.");
  });
  view.section.addEventListener("input", (event) => {
    if (event.target.type === "range") stop();
  });
  const sign = run.marked === null ? "" : ", ★ the marked token";
  view.result.append(
    el("div", { class: "mha-progress" },
      el("figure", { class: "mha-bars" }, el("figcaption", {}, "Loss ", loss,
        el("span", { class: "mha-chance" }, `, drawn from 0 to ${run.highest.toFixed(2)}`)),
        curve, el("p", { class: "mha-axis", "aria-hidden": "true" },
          el("span", {}, "0"), el("span", {}, "step of training"), el("span", {}, run.n_steps))),
      el("div", { class: "mha-jobs" }, el("p", {}, "Accuracy"), ...jobs.map((job) => job.row))),
    el("p", { class: "mha-step" }, el("b", {}, "Every head’s attention"),
      " on one example. Choose a head to see it large."),
    maps,
    el("div", { class: "mha-chosen" },
      el("figure", {}, largeName,
        el("div", { class: "mha-large" }, letters("mha-across"), letters("mha-down"),
          el("div", { class: "mha-canvas" }, large))),
      el("div", {}, ...largeScores.map((meter) => meter.row), weightKey(),
        el("p", { class: "mha-note" }, `Rows are queries (who asks), columns are keys (who is looked at). ` +
          `Letters are symbols${sign}${run.causal ? "; no token may look ahead" : ""}.`))),
    el("p", { class: "mha-note" }, `Maps: one sequence; numbers: mean over ${run.n_sequences} ` +
      `that were not trained on; curve: loss in training, mean of ${run.smoothing} steps. ` +
      `Chance, in brackets: a head that looks at all tokens alike. A head is named after a score above ${run.named_mass}, ` +
      `and “broad” if there is none and its entropy is above ${run.broad_entropy}.`),
    numbers);
  model.on("change:head", drawLarge);
  signal?.addEventListener("abort", () => model.off("change:head", drawLarge));
  view.redraw();
}

export default { render };
