// The head splitter: columns of Q, K, V by head, one map and one blend per head, concatenation, W_O.

const hundredths = (weight) => (weight / 100).toFixed(2);
const w_oName = () => el("span", {}, "W", el("sub", {}, "O"));

function render(context) {
  const { model } = context;
  const h = slider(model, "n_heads", "heads h");
  const d = slider(model, "d", "width d");
  const groups = { token: unique("token"), head: unique("head") };
  let drawn; // what is on screen: words, sizes, shades, weights
  let radios = []; // of the words
  let peek = {}; // the token and the head below the pointer
  let news; // what a choice changed, to be read out

  const strips = {
    q: newStrip("Q", "Q"), k: newStrip("K", "K"), v: newStrip("V", "V"),
    merged: newStrip("concatenation", ""), w_o: newStrip("W O", "×"), out: newStrip("output", "="),
  };
  const sentence = el("p", { class: "mha-sentence", "aria-hidden": "true" }); // the status says it
  const tokens = el("div", { class: "mha-tokens", role: "radiogroup",
    "aria-label": "Token whose row is marked" });
  const all = radio(model, "head", groups.head, null, "all heads");
  const looks = el("p", { class: "mha-looks" });
  const names = el("div", { class: "mha-names", "aria-hidden": "true" });
  const maps = el("div", { class: "mha-maps", role: "radiogroup",
    "aria-label": "Head whose way is lit" },
    el("div", { class: "mha-side" },
      el("span", { class: "mha-head mha-option" }, "all heads", all.input), looks, names));
  const advice = el("p", { class: "mha-advice" });
  const none = el("div", { class: "mha-none" },
    el("p", {}, "No maps: heads would have to share a column."), advice);
  const table = el("div", { class: "mha-table", tabindex: 0, role: "region",
    "aria-label": "Weights of the marked token" });
  const numbers = el("details", {}, el("summary", {}, "The marked row in numbers"), table);
  numbers.addEventListener("toggle", () => fillTable());
  const random = el("p", { class: "mha-note" },
    "Random numbers: watch which columns feed which map.");
  const pool = []; // one card per head, as many as were ever needed

  function draw({ weights, merged, out }) {
    const words = model.get("tokens"), heads = model.get("n_heads"), width = model.get("d");
    const place = model.get("_widths").indexOf(width), n = words.length;
    if (place < 0) return "Python is computing this setting.";
    const start = model.get("_widths").slice(0, place).reduce((sum, w) => sum + w * (3 * n + w), 0);
    const { q, k, v, w_o } = arraysIn(model.get("_matrices"), [["q", "|u1", [n, width]],
      ["k", "|u1", [n, width]], ["v", "|u1", [n, width]], ["w_o", "|u1", [width, width]]], start);
    const own = Math.floor(width / heads), rest = width - own * heads;
    if (drawn?.words.join() !== words.join()) drawTokens(words);
    drawn = { words, n, heads, width, own, rest, weights, shades: { q, k, v, merged, w_o, out } };

    view.section.classList.toggle("mha-no", rest > 0);
    view.section.classList.toggle("mha-few", heads <= 2);
    view.section.classList.toggle("mha-three", heads <= 3);
    view.section.classList.toggle("mha-four", heads <= 4);
    view.section.classList.toggle("mha-many", heads >= 7);
    const sizes = { n, d: width, most: Math.max(n, width), h: heads, k: own, wide: Math.max(n, own),
      half: Math.ceil(heads / 2) };
    for (const [name, value] of Object.entries(sizes)) {
      view.section.style.setProperty(`--${name}`, value);
    }
    while (!rest && pool.length < heads) pool.push(newCard(pool.length));
    while (maps.children.length > 1 + (rest ? 0 : heads)) maps.lastChild.remove();
    while (!rest && maps.children.length <= heads) maps.append(pool[maps.children.length - 1].figure);
    if (rest) offerNeighbours();
    for (const name of ["q", "k", "v", "merged"]) strips[name].deal();
    random.hidden = !model.get("_random");
    paint();
    fillTable();

    const said = rest ? `${plural(rest, "column")} left over: ${heads} does not divide ${width}.`
      : heads === 1 ? `One head gets all ${width} columns.`
      : `Each head gets ${own} of the ${width} columns.`;
    sentence.textContent = said;
    return news ? "" : said;
  }

  // Buttons for the nearest pairs that the sliders have and that divide.
  function offerNeighbours() {
    const { heads, width } = drawn, choices = model.get("_choices");
    const good = [
      ["h", "n_heads", h, heads, choices.n_heads.filter((value) => width % value === 0)],
      ["d", "d", d, width, choices.d.filter((value) => value % heads === 0)],
    ];
    const buttons = good.flatMap(([letter, name, control, now, values]) => {
      const near = [Math.max(...values.filter((value) => value < now)),
        Math.min(...values.filter((value) => value > now))].filter(Number.isFinite);
      return near.map((value) => {
        const button = el("button", { type: "button" }, `${letter} = ${value}`);
        button.addEventListener("click", () => {
          control.row.querySelector("input").focus(); // the button is about to go
          model.set(name, value);
          model.save_changes();
        });
        return button;
      });
    });
    advice.replaceChildren("Nearest that divide: ", ...buttons);
  }

  function drawTokens(words) {
    radios = words.map((word, i) =>
      radio(model, "token", groups.token, i, `${word}, token ${i + 1}`));
    tokens.replaceChildren(...words.map((word, i) => area(
      el("span", { class: "mha-option" }, word, radios[i].input), () => ({ token: i }))));
    names.replaceChildren(...words.map((word, i) => area(el("span", {}, word),
      () => ({ token: i }))));
  }

  // What a pointer over a node points at.
  function area(node, at) {
    node.at = at;
    node.classList.add("mha-area");
    return node;
  }
  function cell(node, event, rows, columns) {
    const box = node.getBoundingClientRect();
    const part = (at, start, size, count) =>
      Math.min(count - 1, Math.max(0, Math.floor((count * (at - start)) / size)));
    return [part(event.clientY, box.top, box.height, rows),
      part(event.clientX, box.left, box.width, columns)];
  }
  const ownerOf = (column) => {
    const head = drawn.own ? Math.floor(column / drawn.own) : drawn.heads;
    return head < drawn.heads ? head : undefined; // what is left over is nobody's
  };

  function newMarks() {
    return ["mha-row-mark mha-peek", "mha-row-mark mha-pin"].map((name) =>
      el("div", { class: name, hidden: true }));
  }

  function newStrip(name, sign) {
    const canvas = el("canvas", { role: "img" });
    const bar = el("div", { class: "mha-heads", "aria-hidden": "true" });
    const left = el("div", { class: "mha-left", hidden: true });
    const square = name === "W O";
    const marks = square ? [] : newMarks();
    const box = area(el("div", { class: `mha-canvas${square ? " mha-square" : ""}` },
      canvas, left, ...marks), (event) => {
      const { n, width } = drawn;
      const [row, column] = cell(box, event, square ? width : n, width);
      return square ? { head: ownerOf(row) }
        : { token: row, head: name === "output" ? undefined : ownerOf(column) };
    });
    const caption = { "W O": w_oName(), concatenation: "blends", output: name }[name] ?? "";
    const figure = el("figure", { class: "mha-strip" },
      el("span", { class: "mha-sign", "aria-hidden": "true" }, sign),
      el("div", {}, caption ? el("figcaption", {}, caption) : "", bar, box));
    return { name, canvas, marks, figure,
      deal() {
        const { heads, own, rest } = drawn;
        if (bar.children.length !== heads) {
          bar.replaceChildren(...Array.from({ length: heads }, (_, i) => headChip(i, String(i + 1))));
        }
        left.hidden = !rest;
        left.style.setProperty("--from", own * heads);
        left.style.setProperty("--rest", rest);
      } };
  }

  function newCard(head) {
    const canvas = el("canvas", { role: "img" }), blend = el("canvas", { role: "img" });
    const chosen = radio(model, "head", groups.head, head, "");
    const chip = headChip(head);
    chip.classList.add("mha-head");
    const share = el("span", { class: "mha-share", "aria-hidden": "true" });
    chip.append(share, chosen.input);
    area(chip, () => ({ head }));
    const says = el("p", { class: "mha-says" }), tick = el("span", { class: "mha-tick" });
    const marks = [newMarks(), newMarks()];
    const box = (node, name, own) => area(el("div", { class: `mha-canvas ${name}` }, node, ...own),
      (event) => ({ head, token: cell(event.target.closest(".mha-canvas"), event, drawn.n, 1)[0] }));
    const figure = el("figure", { class: "mha-map" }, chip, says,
      el("div", { class: "mha-grid" },
        el("div", {}, el("div", { class: "mha-ticks", "aria-hidden": "true" }, tick),
          box(canvas, "mha-weights", marks[0])),
        el("div", {}, el("span", { class: "mha-of", "aria-hidden": "true" }, "× V"),
          box(blend, "mha-blend", marks[1]))));
    return { figure, canvas, blend, chosen, share, says, tick, marks: marks.flat() };
  }

  // Everything that the chosen token and head change, and those below the pointer.
  function paint() {
    const { words, n, heads, width, own, rest, weights, shades } = drawn;
    const pinned = Math.min(model.get("token"), n - 1), token = peek.token ?? pinned;
    const wanted = peek.head ?? model.get("head");
    const lit = !rest && wanted !== null && wanted < heads ? wanted : undefined;
    const fade = (head) => (lit === undefined || head === lit ? 1 : 0.13);
    const nobody = [119, 119, 119];
    const shade = (array, place, head) => head === undefined
      ? [...nobody, 30 + 0.88 * array[place]]
      : [...rgb(headColour(head)), (30 + 0.88 * array[place]) * fade(head)];
    const deal = rest ? `${plural(own, "column")} for each of ${plural(heads, "head")}, ${rest} left over`
      : `${plural(own, "column")} for each of ${plural(heads, "head")}`;
    const says = { merged: `the heads’ blends side by side, ${deal}`,
      w_o: `${width} by ${width}; ${plural(own, "row")} for each head`,
      out: "every column mixes all heads" };

    for (const [key, strip] of Object.entries(strips)) {
      const array = shades[key];
      if (!array) continue;
      const rows = key === "w_o" ? width : n;
      pixels(rows, width, (row, column) => shade(array, row * width + column,
        key === "out" ? undefined : ownerOf(key === "w_o" ? row : column)),
      `${strip.name}: ${says[key] ?? `one row per token, ${deal}`}`, strip.canvas);
    }
    const most = [];
    pool.slice(0, rest ? 0 : heads).forEach((card, head) => {
      const map = weights.subarray(head * n * n, (head + 1) * n * n); // in hundredths
      const best = map.subarray(token * n, (token + 1) * n);
      const key = best.indexOf(Math.max(...best));
      const top = map.indexOf(Math.max(...map));
      const columns = own > 1 ? `columns ${head * own + 1} to ${(head + 1) * own}`
        : `column ${head + 1}`;
      pixels(n, n, (row, column) => weightColour(map[row * n + column] / 100),
        `Attention map of head ${head + 1}: “${words[token]}” looks most at “${words[key]}”, ` +
        `${hundredths(best[key])}. Largest: “${words[Math.floor(top / n)]}” to ` +
        `“${words[top % n]}”, ${hundredths(map[top])}.`, card.canvas);
      pixels(n, own, (row, column) =>
        [...rgb(headColour(head)), 30 + 0.88 * shades.merged[row * width + head * own + column]],
      `Blend of head ${head + 1}: its weights times its ${columns} of V`, card.blend);
      card.says.replaceChildren(el("span", {}, words[key]), " ", el("span", {}, hundredths(best[key])));
      card.tick.style.setProperty("--at", key);
      card.figure.classList.toggle("mha-dim", fade(head) < 1);
      card.chosen.input.setAttribute("aria-label", `head ${head + 1}, ${columns}`);
      card.share.textContent = columns.replace(" to ", "–");
      card.chosen.follow();
      most.push(`head ${head + 1}, ${words[key]} ${hundredths(best[key])}`);
    });
    all.follow();
    if (!rest && (model.get("head") ?? 0) >= heads) all.input.checked = true; // that head is gone
    for (const one of radios) one.follow();
    [...names.children].forEach((name, i) => name.classList.toggle("mha-on", i === token));
    [...tokens.children].forEach((name, i) => name.classList.toggle("mha-on", i === token));
    looks.textContent = `“${words[token]}” looks most at`;
    const marks = [...Object.values(strips), ...pool].flatMap((one) => one.marks);
    for (const mark of marks) {
      const at = mark.classList.contains("mha-pin") ? pinned : peek.token;
      mark.hidden = at === undefined;
      mark.style.setProperty("--at", at);
    }
    return most;
  }

  function fillTable() {
    if (!numbers.open || !drawn) return;
    const { words, n, heads, rest, weights } = drawn, token = Math.min(model.get("token"), n - 1);
    const shown = Array.from({ length: rest ? 0 : heads }, (_, head) => head);
    table.replaceChildren(el("table", {},
      el("caption", {}, `How much “${words[token]}” (token ${token + 1}) takes from each token`),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "key"),
        ...shown.map((head) => el("th", { scope: "col" }, headChip(head))))),
      el("tbody", {}, ...words.map((word, i) => el("tr", {}, el("th", { scope: "row" }, word),
        ...shown.map((head) =>
          el("td", {}, hundredths(weights[(head * n + token) * n + i]))))))));
  }

  const view = show(context, {
    name: "Head splitter",
    controls: [h, d],
    also: ["tokens", "_matrices", "_widths"],
    draw,
  });
  view.section.classList.add("mha-splitter");
  const step = (number, text, ...more) => el("div", { class: "mha-step" },
    el("p", {}, el("b", {}, `${number} `), ...text), ...more);
  view.result.append(sentence,
    step(1, [el("b", {}, "Split"), ": each column belongs to one head"],
      el("p", { class: "mha-key" }, "stronger colour: larger number")),
    el("div", { class: "mha-strips" }, strips.q.figure, strips.k.figure, strips.v.figure),
    step(2, [el("b", {}, "Attend"), ": a map and a blend for each head"], weightKey()),
    tokens, maps, none,
    step(3, [el("b", {}, "Concatenate"), " the blends, mix them with ", w_oName()]),
    el("div", { class: "mha-strips mha-joined" }, strips.merged.figure, strips.w_o.figure,
      strips.out.figure),
    el("div", { class: "mha-foot" }, numbers, random));

  // A pointer previews; a click pins.  A finger that scrolls does neither.
  function point(event) {
    const node = event.pointerType === "touch" ? null : event.target.closest?.(".mha-area");
    const { token, head } = node?.at(event) ?? {};
    if (token === peek.token && head === peek.head) return;
    peek = { token, head };
    if (drawn) paint();
  }
  view.result.addEventListener("pointermove", point);
  view.result.addEventListener("pointerleave", () => {
    if (peek.token === undefined && peek.head === undefined) return;
    peek = {};
    if (drawn) paint();
  });
  view.result.addEventListener("click", (event) => {
    if (event.target.matches?.("input")) return; // radio buttons speak for themselves
    const node = event.target.closest?.(".mha-area");
    const { token, head } = node?.at(event) ?? {};
    if (token !== undefined) model.set("token", token);
    else if (head !== undefined) model.set("head", model.get("head") === head ? null : head);
    else return;
    model.save_changes();
  });

  // Scroll the words, and nothing else, so far that the chosen one is seen.
  function reveal() {
    const chosen = tokens.children[model.get("token")];
    if (!chosen) return;
    const first = chosen.offsetLeft, last = first + chosen.offsetWidth, room = tokens.clientWidth;
    if (first < tokens.scrollLeft || last > tokens.scrollLeft + room) {
      tokens.scrollLeft = (first + last - room) / 2;
    }
  }
  const resized = new ResizeObserver(reveal);
  resized.observe(tokens);
  function announce(text) {
    news = text;
    view.redraw(text);
    news = undefined;
  }
  const told = {
    "change:token": () => {
      if (!drawn) return;
      const kept = peek;
      peek = {};
      const most = paint();
      peek = kept;
      const word = drawn.words[Math.min(model.get("token"), drawn.n - 1)];
      announce(most.length ? `“${word}” looks most at: ${most.join("; ")}.` : `“${word}”.`);
      reveal();
    },
    "change:head": () => {
      if (!drawn) return;
      const head = model.get("head"), { own, heads, rest } = drawn;
      const first = head * own + 1, last = (head + 1) * own;
      announce(head === null || head >= heads || rest ? "All heads."
        : `Head ${head + 1}: ${own > 1 ? `columns ${first} to ${last}` : `column ${first}`} of Q, K, ` +
          `V and the concatenation, ${own > 1 ? `rows ${first} to ${last}` : `row ${first}`} of W O.`);
    },
  };
  for (const [event, act] of Object.entries(told)) model.on(event, act);
  context.signal?.addEventListener("abort", () => {
    resized.disconnect();
    for (const [event, act] of Object.entries(told)) model.off(event, act);
  });
  view.redraw();
}

export default { render };
