// Training playback: the loss, the accuracies and every head's map at one moment of training.

const PACE = 500; // milliseconds from one snapshot to the next

function render(context) {
  const { model, signal } = context;
  const run = model.get("_run"), n = run.tokens.length, count = run.n_layers * run.n_heads;
  const spoken = (step) => `step ${step} of ${run.n_steps}`;
  const headName = (i) => `${run.n_layers > 1 ? `layer ${Math.floor(i / run.n_heads) + 1} ` : ""}` +
    `head ${(i % run.n_heads) + 1}`;
  const chip = (i, text) => headChip(i % run.n_heads, text);
  const step = scrubber();
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

  // The loss curve, with a slider over it ---------------------------------------------------------

  // Its places are true steps, so that thumb and curve agree; it stops where there is a snapshot.
  function scrubber() {
    const id = unique("step"), shown = el("span", { class: "mha-value", "aria-hidden": "true" });
    const input = el("input", { type: "range", id, min: 0, max: run.n_steps, step: 1 });
    const nearest = (value) => steps().reduce((a, b) => (Math.abs(b - value) < Math.abs(a - value) ? b : a));
    const beside = (by) => steps()[Math.min(Math.max(steps().indexOf(model.get("step")) + by, 0), steps().length - 1)];
    let held; // the step when a pointer came down
    input.addEventListener("input", () => {
      const now = model.get("step"), asked = Number(input.value);
      let to = nearest(asked);
      // A screen reader asks for the next value, which is nearer to the present snapshot.
      if (to === now && held === undefined) to = beside(Math.sign(asked - now));
      input.value = to;
      go(to);
    });
    input.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 5, PageDown: -5,
        Home: -Infinity, End: Infinity }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      stop();
      go(beside(by));
    });
    input.addEventListener("pointerdown", () => { held = model.get("step"); });
    input.addEventListener("pointerup", () => { held = undefined; });
    // A swipe down the page that begins here is no change of the step.
    input.addEventListener("pointercancel", () => { if (held !== undefined) go(held); held = undefined; });
    return {
      name: "step",
      move: (was, is) => `From step ${was} to ${is}.`,
      row: el("div", { class: "mha-scrubber" },
        el("label", { for: id }, "training step"), shown, el("div", { class: "mha-scrub" }, input)),
      follow() {
        input.value = model.get("step");
        input.setAttribute("aria-valuetext", spoken(model.get("step")));
        shown.textContent = spoken(model.get("step"));
      },
    };
  }

  // What is shown -------------------------------------------------------------------------------

  const cursor = el("line", { y1: 0, y2: 100, class: "mha-cursor" });
  const dot = el("line", { class: "mha-dot" });
  const loss = el("span", { class: "mha-value mha-loss" });
  const curve = el("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", role: "img",
    "aria-label": `Loss over ${run.n_steps} steps, from ${run.losses[0].toFixed(2)} to ${run.losses.at(-1).toFixed(3)}` },
    el("line", { x1: 0, x2: 100, y1: 100, y2: 100, class: "mha-line" }),
    el("line", { x1: 0, x2: 0, y1: 0, y2: 100, class: "mha-line" }),
    cursor,
    el("polyline", { class: "mha-curve", points: run.losses.map((value, i) =>
      `${across(i + 1)},${down(value)}`).join(" ") }),
    dot);
  step.row.querySelector(".mha-scrub").prepend(curve);
  step.row.append(el("p", { class: "mha-axis", "aria-hidden": "true" },
    el("span", {}, "loss ", loss), el("span", {}, `drawn from 0 to ${run.highest.toFixed(2)}`)));
  function across(at) { return (100 * at) / run.n_steps; }
  function down(value) { return 100 - (100 * value) / run.highest; }

  const jobs = run.jobs.map((job) => newMeter(job, run.job_chance, false));
  const group = unique("head");
  const cards = Array.from({ length: count }, (_, i) => newCard(i));
  const maps = el("div", { class: "mha-layer", role: "radiogroup", "aria-label": "Head shown large" },
    ...cards.map((card) => card.figure));

  const large = el("canvas", { role: "img" });
  const largeName = el("figcaption", {});
  const spread = el("p", { class: "mha-note mha-spread" });
  const largeScores = run.scores.map((score, i) => newMeter(score, run.chance[i]));
  const letters = (side) => el("div", { class: `mha-letters ${side}`, "aria-hidden": "true", style: `--n:${n}` },
    ...run.tokens.map((token, i) => el("span", i === run.marked ? { class: "mha-star" } : {}, token)));
  const table = el("div", { class: "mha-table", tabindex: 0, role: "region",
    "aria-label": `Scores of all heads: ${run.jobs.join(", ")}` });
  const numbers = el("details", {}, el("summary", {}, "All scores in numbers"), table);
  numbers.addEventListener("toggle", () => drawTable());

  // A bar from 0 to 1 with a line at the chance level.
  function newMeter(label, chance, written = true) {
    const fill = el("span", { class: "mha-fill" }), value = el("span", { class: "mha-value" });
    const row = el("div", { class: "mha-meter" }, el("span", {}, label),
      el("span", { class: "mha-track", "aria-hidden": "true" }, fill,
        el("span", { class: "mha-one", style: `left:${100 * chance}%` })), value);
    function set(number, leads = false) {
      fill.style.width = `${100 * number}%`;
      value.replaceChildren(leads ? el("b", {}, number.toFixed(2)) : number.toFixed(2),
        written ? el("span", { class: "mha-chance" }, ` chance ${chance.toFixed(2)}`) : "");
    }
    return { row, set };
  }

  function newCard(i) {
    const canvas = el("canvas", { role: "img" });
    const role = el("b", { class: "mha-role" });
    const chosen = radio(model, "head", group, i, headName(i));
    const layer = run.n_layers > 1 ? `${Math.floor(i / run.n_heads) + 1}-` : "";
    const figure = el("figure", { class: "mha-card" },
      el("figcaption", {}, chip(i, `head ${layer}${(i % run.n_heads) + 1}`)),
      el("div", { class: "mha-canvas" }, canvas), role, chosen.input);
    function set() {
      const called = drawn.named(i);
      paint(i, canvas);
      role.textContent = called;
      figure.classList.toggle("mha-named", called !== "");
      chosen.input.setAttribute("aria-label", called ? `${headName(i)}, ${called}` : headName(i));
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
    `Attention map of ${headName(i)}: ${described(i)}`, canvas);
  }

  // Where the weight of a head lies, in words.
  const described = (i) => `${drawn.named(i) || "no clear role"}; ${run.scores.map((score, s) =>
    `${score} ${drawn.score(i, s).toFixed(2)}`).join(", ")}`;

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
    spread.textContent = called !== "broad" ? "" : run.causal
      ? "Dark, since it looks alike at all that it may see."
      : `Dark, since it looks at all ${n} tokens alike: about 1/${n} each.`;
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
  view.section.addEventListener("keydown", (event) => {
    if (event.key === "Escape") stop("Paused.");
  });
  view.section.addEventListener("input", (event) => {
    if (event.target.type === "range") stop();
  });
  const sign = run.marked === null ? "" : ", ★ the marked one";
  view.section.querySelector(".mha-controls").append(
    el("div", { class: "mha-jobs" }, el("p", {}, `accuracy; chance ${run.job_chance.toFixed(2)}`), ...jobs.map((job) => job.row)), button);
  numbers.append(el("p", { class: "mha-note" }, `Maps: one sequence; numbers: mean over ${run.n_sequences} ` +
    `that were not trained on; curve: loss in training, mean of ${run.smoothing} steps. ` +
    `Chance: a head that looks at all tokens alike. A head is named after a score above ${run.named_mass}, ` +
    `and “broad” if there is none and its entropy is above ${run.broad_entropy}.`));
  view.result.append(
    el("div", { class: "mha-chosen" },
      el("figure", {}, largeName,
        el("div", { class: "mha-large" }, letters("mha-across"), letters("mha-down"),
          el("div", { class: "mha-canvas" }, large))),
      el("div", {}, ...largeScores.map((meter) => meter.row), weightKey(),
        el("p", { class: "mha-note" }, `A row asks, a column is looked at. Letters are symbols${sign}.`), spread)),
    maps, numbers);
  const chosen = () => {
    drawLarge();
    const i = Math.min(model.get("head"), count - 1);
    view.say(`${titled(headName(i))}: ${described(i)}.`);
  };
  model.on("change:head", chosen);
  signal?.addEventListener("abort", () => model.off("change:head", chosen));
  view.redraw();
}

export default { render };
