// The head splitter: columns of Q, K, V by head, one map per head, concatenation, W_O.

const w_oName = () => el("span", {}, "W", el("sub", {}, "O"));

function render(context) {
  const { model } = context;
  const h = slider(model, "n_heads", "heads h");
  const d = slider(model, "d", "width d");
  const tokens = el("div", { class: "mha-tokens", role: "radiogroup",
    "aria-label": "Token whose row is marked" });
  const strips = {
    q: newStrip("Q", { marks: true }), k: newStrip("K"), v: newStrip("V"),
    merged: newStrip("concatenation", { marks: true }),
    w_o: newStrip(w_oName(), { name: "W O" }), out: newStrip("output", { marks: true }),
  };
  const sign = (text) => el("span", { class: "mha-sign" }, text);
  const split = el("div", { class: "mha-strips" },
    strips.q.figure, strips.k.figure, strips.v.figure);
  const joined = el("div", { class: "mha-strips" }, strips.merged.figure, sign("×"),
    strips.w_o.figure, sign("="), strips.out.figure);
  const maps = el("div", { class: "mha-maps" });
  const heard = el("p", { class: "mha-unseen", "aria-live": "polite" });
  const table = el("div", { class: "mha-table", tabindex: 0, role: "region",
    "aria-label": "Weights of the marked token" });
  const random = el("p", { class: "mha-note" },
    "All numbers are random: nothing was trained, so what a map says about these words means " +
    "nothing. Watch which columns feed which map.");
  const numbers = el("details", {}, el("summary", {}, "The marked row in numbers"), table);
  numbers.addEventListener("toggle", () => mark());
  let pool = []; // one map per head, as many as were ever needed
  let drawn; // what the marked token's row is looked up in
  let marked; // the token that was marked last

  function draw({ weights, q, k, v, merged, w_o, out }) {
    const words = model.get("tokens"), [heads, n] = weights.shape, width = q.shape[1];
    const own = width / heads;
    if (drawn?.words.join() !== words.join()) {
      pool = [];
      maps.replaceChildren();
      drawTokens(words);
    }
    drawn = { words, n, heads, weights };

    const byColumn = (_, column) => rgb(headColour(Math.floor(column / own)));
    const byRow = (row) => rgb(headColour(Math.floor(row / own)));
    const shares = `${rows(n)}, ${plural(own, "column")} for each of ${plural(heads, "head")}`;
    for (const [strip, numbers] of [[strips.q, q], [strips.k, k], [strips.v, v],
      [strips.merged, merged]]) {
      strip.paint(numbers, n, width, byColumn, shares, heads);
    }
    strips.w_o.paint(w_o, width, width, byRow,
      `${rows(width)} by ${plural(width, "column")}; a head’s rows have its colour`);
    strips.out.paint(out, n, width, () => [128, 128, 128],
      `${rows(n)} by ${plural(width, "column")}; every column mixes all heads`);

    while (pool.length < heads) pool.push(newMap(pool.length, words));
    pool.slice(0, heads).forEach(({ canvas, columns }, head) => {
      pixels(n, n, (row, column) => weightColour(weights[(head * n + row) * n + column]),
        `Attention map of head ${head + 1}`, canvas);
      const first = head * own + 1, last = first + own - 1;
      columns.textContent = `column${own > 1 ? `s ${first}–${last}` : ` ${first}`}`;
    });
    while (maps.children.length > heads) maps.lastChild.remove();
    while (maps.children.length < heads) maps.append(pool[maps.children.length].figure);

    random.hidden = !model.get("_random");
    mark();
    return `Each head gets ${own} of the ${width} columns, and makes a map of its own.`;
  }

  const rows = (count) => plural(count, "row");

  function drawTokens(words) {
    tokens.replaceChildren(...words.map((word, i) => {
      const button = el("button", { type: "button", role: "radio" }, word);
      button.addEventListener("focus", () => choose(i));
      onPoint(button, () => choose(i));
      return button;
    }));
  }

  // Making a picture costs more than painting it, so strips and maps are kept for the next setting.
  function newStrip(title, { marks = false, name = title } = {}) {
    const canvas = el("canvas", { role: "img" });
    const bar = el("div", { class: "mha-heads", "aria-hidden": "true" });
    const figure = el("figure", { class: "mha-strip" }, el("figcaption", {}, title), bar,
      el("div", { class: "mha-canvas" }, canvas,
        ...(marks ? [el("div", { class: "mha-row-mark", hidden: true })] : [])));
    // Numbers are drawn as how opaque the colour is; the chips above say whose columns these are.
    function paint(numbers, rows, columns, colourAt, says, heads = 0) {
      if (bar.children.length !== heads) {
        bar.replaceChildren(...Array.from({ length: heads }, (_, i) => headChip(i, String(i + 1))));
      }
      pixels(rows, columns,
        (row, column) => [...colourAt(row, column), 30 + 0.88 * numbers[row * columns + column]],
        `${name}: ${says}`, canvas);
    }
    return { figure, paint };
  }

  function newMap(head, words) {
    const canvas = el("canvas", { role: "img" });
    const columns = el("span", { class: "mha-columns" });
    const area = el("div", { class: "mha-canvas" }, canvas, el("div", { class: "mha-row-mark" }));
    onPoint(area, (event) => {
      const box = area.getBoundingClientRect(), n = words.length;
      choose(Math.min(n - 1, Math.max(0, Math.floor((n * (event.clientY - box.top)) / box.height))));
    });
    const names = (side) => el("div", { class: side, "aria-hidden": "true" },
      ...words.map((word) => el("span", {}, word)));
    const figure = el("figure", { class: "mha-map" },
      el("figcaption", {}, headChip(head), " ", columns),
      el("div", { class: "mha-grid" }, names("mha-keys"), names("mha-queries"), area),
      el("p", { class: "mha-says" }));
    return { figure, canvas, columns };
  }

  tokens.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const last = drawn.n - 1, now = model.get("token");
    const next = event.key in steps ? (now + steps[event.key] + drawn.n) % drawn.n
      : event.key === "Home" ? 0 : event.key === "End" ? last : undefined;
    if (next === undefined) return;
    event.preventDefault();
    tokens.children[next].focus();
  });

  function choose(token) {
    if (token === model.get("token")) return;
    model.set("token", token);
    model.save_changes();
  }

  // Mark the chosen token's row everywhere, and read it out.
  function mark() {
    if (!drawn) return;
    const { words, n, heads, weights } = drawn, token = Math.min(model.get("token"), n - 1);
    [...tokens.children].forEach((button, i) => {
      button.setAttribute("aria-checked", String(i === token));
      button.tabIndex = i === token ? 0 : -1;
    });
    for (const line of view.section.querySelectorAll(".mha-row-mark")) {
      line.hidden = false;
      line.style.cssText = `top:${(100 * token) / n}%;height:${100 / n}%`;
    }
    view.section.querySelectorAll(".mha-queries").forEach((names) =>
      [...names.children].forEach((name, i) => name.classList.toggle("mha-on", i === token)));
    const row = (head) => weights.subarray((head * n + token) * n, (head * n + token + 1) * n);
    const most = [...maps.children].map((map, head) => {
      const best = [...row(head).keys()].sort((a, b) => row(head)[b] - row(head)[a]).slice(0, 2)
        .map((i) => `${words[i]} ${row(head)[i].toFixed(2)}`);
      map.querySelector(".mha-says").textContent = `${words[token]} → ${best.join(", ")}`;
      return `head ${head + 1}, ${best[0]}`;
    });
    // Read out a choice, and leave nothing behind that the maps' own lines say after a slider moved.
    const chosen = marked !== undefined && marked !== token;
    heard.textContent = chosen ? `“${words[token]}” looks most at: ${most.join("; ")}.` : "";
    marked = token;
    if (!numbers.open) return;
    table.replaceChildren(el("table", {},
      el("caption", {}, `How much “${words[token]}” (token ${token + 1}) takes from each token`),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "key"),
        ...Array.from({ length: heads }, (_, i) => el("th", { scope: "col" }, headChip(i))))),
      el("tbody", {}, ...words.map((word, i) => el("tr", {}, el("th", { scope: "row" }, word),
        ...Array.from({ length: heads }, (_, head) => el("td", {}, row(head)[i].toFixed(2))))))));
  }

  const view = show(context, {
    name: "Head splitter",
    controls: [h, d],
    also: ["tokens"],
    draw,
  });
  const step = (...text) => el("p", { class: "mha-step" }, ...text);
  view.result.append(
    step(el("b", {}, "Split."), " One row per token; each column of Q, K and V belongs to one head."),
    split,
    step(el("b", {}, "Attend."), " Each head compares its own columns of Q and K. Rows are queries (who asks), " +
      "columns are keys (who is looked at). ", el("span", { class: "mha-choice" }, "Point at a row or choose a token:")),
    tokens, heard, weightKey(), maps,
    step(el("b", {}, "Concatenate, then mix."), " The heads’ blends of V lie side by side; ", w_oName(), " mixes them."),
    joined, random, numbers);
  model.on("change:token", mark);
  context.signal?.addEventListener("abort", () => model.off("change:token", mark));
  view.redraw();
}

export default { render };
