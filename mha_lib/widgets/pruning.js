// Pruning: accuracy against heads kept, for several orders of removal.

function render(context) {
  const { model } = context;
  const labels = model.get("_labels"), names = labels.results;
  const CHOICES = names.indexOf(labels.choices), FLOOR = names.indexOf(labels.floor);
  const study = () => model.get("_studies")[model.get("study")];
  const total = () => study().greedy.length;
  const headName = ([layer, head]) =>
    `${study().n_layers > 1 ? `layer ${layer + 1} ` : ""}head ${head + 1}`;
  // The heads that the greedy order removes on the way from `more` heads to `fewer`.
  const between = (more, fewer) => study().greedy
    .slice(Math.max(0, total() - more), Math.max(0, total() - fewer)).map(headName).join(", ");

  const kept = {
    ...slider(model, "kept", "heads kept", (kept) => `${kept} of ${total()}`),
    move: (was, is) => {
      const heads = between(Math.max(was, is), Math.min(was, is));
      const seed = study().n_seeds > 1 ? " (first seed)" : "";
      return heads && `Greedy ${is < was ? "removes" : "keeps"} ${heads}${seed}.`;
    },
  };
  const controls = [choice(model, "study", "model"), kept];
  const caption = el("figcaption", {});
  const lines = el("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", role: "img" });
  const most = el("span", {});
  const table = el("table", {});
  const order = el("ol", { class: "mha-order" });
  const first = el("p", { class: "mha-step" });
  const note = el("p", { class: "mha-note" });

  const x = (kept) => (100 * kept) / total(), y = (accuracy) => 100 * (1 - accuracy);
  const points = (curve) => curve.map((accuracy, kept) => `${x(kept)},${y(accuracy)}`);
  const series = (i) => `mha-series-${i}`;
  // A line of no length is a dot, whatever the shape of the drawing.
  const marker = (i, at, accuracy) => el("line", { x1: at, x2: at, y1: accuracy, y2: accuracy,
    class: `mha-sample ${series(i)} mha-marker${i % 2 ? " mha-square" : ""}` });
  const marked = (i) => i !== CHOICES && i !== FLOOR;

  function drawLines(kept) {
    const curves = names.map((name) => study().curves[name]);
    const edge = (at, class_) => el("line", { ...at, class: class_ });
    const [, low, high] = curves[CHOICES];
    lines.replaceChildren(
      el("polygon", { points: [...points(high), ...points(low).reverse()].join(" ") }),
      edge({ x1: 0, x2: 100, y1: 100, y2: 100 }, "mha-line"),
      edge({ x1: 0, x2: 0, y1: 0, y2: 100 }, "mha-line"),
      edge({ x1: x(kept), x2: x(kept), y1: 0, y2: 100 }, "mha-cursor"),
      ...curves.flatMap(([middle], i) => [
        el("polyline", { points: points(middle).join(" "), class: series(i) }),
        ...(marked(i) ? middle.map((accuracy, k) => marker(i, x(k), y(accuracy))) : [])]));
    lines.setAttribute("aria-label", `Accuracy from 0 to 1 against 0 to ${total()} heads kept, ` +
      "by order of removal. The table below has the numbers at the line.");
  }

  const sample = (i) => el("svg", { viewBox: "0 0 48 10", "aria-hidden": "true" },
    el("line", { x1: 0, x2: 48, y1: 5, y2: 5, class: `mha-sample ${series(i)}` }),
    ...(marked(i) ? [marker(i, 24, 5)] : []));

  function drawTable(results, kept) {
    const { n_seeds: seeds } = study();
    const several = seeds > 1;
    const cell = (number) => el("td", {}, number.toFixed(3));
    table.replaceChildren(
      el("caption", {}, `Accuracy with ${kept} of ${total()} heads kept` +
        (several ? `; median, lowest and highest of ${seeds} seeds` : "")),
      el("thead", {}, el("tr", {}, ...["order of removal", several ? "median" : "accuracy", "lowest", "highest"]
        .map((title) => el("th", { scope: "col" }, title)))),
      el("tbody", {}, ...names.map((name, i) => {
        const [middle, low, high] = results.subarray(3 * i, 3 * i + 3);
        return el("tr", {}, el("th", { scope: "row" }, sample(i), name), cell(middle),
          ...(several || i === CHOICES ? [cell(low), cell(high)] : [el("td"), el("td")]));
      })));
  }

  function draw({ results }) {
    const kept = model.get("kept");
    const { n_seeds: seeds, greedy } = study();
    caption.textContent = "Accuracy, from 0 to 1, by order of removal";
    most.textContent = total();
    drawLines(kept);
    drawTable(results, kept);
    first.replaceChildren(el("b", {}, "The greedy order"), seeds > 1 ? " of the first seed" : "",
      ", from the head removed first to the one kept longest:");
    order.replaceChildren(...greedy.map(([layer, head], i) => {
      const gone = i < total() - kept;
      return el("li", gone ? { class: "mha-gone" } : {}, headChip(head, headName([layer, head])),
        el("span", { class: "mha-unseen" }, gone ? " removed" : " kept"));
    }));
    note.textContent = "Greedy removes, again and again, the head that is missed least. By ablation: " +
      "each head is judged once, with all others there. By gradient: how strongly the loss depends " +
      "on a head at the end of training, or all the way from no heads to all. " +
      "Grey: from the worst to the best choice of as many heads. The orders were chosen on other data than these.";
    const says = (i) => results[3 * i].toFixed(3);
    return `${kept} of ${total()} heads kept: greedy ${says(0)}, ${names[CHOICES]} ${says(CHOICES)}, ` +
      `${names[FLOOR]} ${says(FLOOR)}.`;
  }

  const view = show(context, {
    name: "Pruning",
    controls,
    draw,
  });
  view.section.classList.add("mha-pruning");
  view.result.append(
    el("figure", {}, caption, lines, el("p", { class: "mha-axis", "aria-hidden": "true" },
      el("span", {}, "0"), el("span", {}, "heads kept"), most)),
    table, first, order, note);
  view.redraw();
}

export default { render };
