// The head gallery: a sentence as a line of words, and lines as thick as the attention between them.

const FAINTEST = 0.02; // a line for less would only blur the others
const TALLEST = 76; // of the lines, in pixels
const OTHERS = 0.1; // lines of the words that were not chosen are drawn from here on, faintly

function render(context) {
  const { model } = context;
  const heads = model.get("_heads"), full = model.get("_full");
  const label = (i) => heads[i].head;
  const best = (i) => heads[i].measures.find((one) => one.offset !== undefined) ?? heads[i].measures[0];
  const named = heads.map((_, i) => i).filter((i) => best(i)?.offset !== undefined);
  const short = (number) => number.toFixed(2).replace(/^0/, "");
  let drawn, view, preview;

  const set = (name, value) => { model.set(name, value); model.save_changes(); };
  // A list to choose from, tied to one setting.
  function select(name, title, options, attributes = {}) {
    const id = unique(name), input = el("select", { id, ...attributes });
    input.addEventListener("change", () => {
      if (name === "sentence") set("word", -1);
      set(name, Number(input.value));
    });
    return {
      name, input,
      move: () => "",
      row: el("p", { class: "mha-select" }, el("label", { for: id }, title), " ", input),
      follow() {
        if (!input.children.length) input.replaceChildren(...options());
        input.value = model.get(name);
        input.parentNode.hidden = input.options.length < 2;
      },
    };
  }
  const option = (value, text) => el("option", { value }, text);
  const called = (i) => (best(i) ? `${label(i)}: ${best(i).name}` : label(i));
  const measured = (i) => `${called(i)} ${short(best(i).value)}, offset ${short(best(i).offset)}`;
  const sentence = select("sentence", "Sentence", () =>
    model.get("_words").map((words, i) => option(i, words.join(" "))));
  const one = select("head", "Head", () => [
    el("optgroup", { label: "Relations: how often right" }, ...named.map((i) => option(i, measured(i)))),
    el("optgroup", { label: "All others" }, ...heads.map((_, i) => i)
      .filter((i) => !named.includes(i)).map((i) => option(i, called(i)))),
  ], { size: 7 });
  const other = select("other", "Compare with", () =>
    [option(-1, "no other head"), ...heads.map((_, i) => option(i, called(i)))]);

  const line = el("div", { class: "mha-sentence", role: "radiogroup", "aria-label": "Word that asks" });
  const arcs = el("svg", { class: "mha-arcs", "aria-hidden": "true" });
  const stage = el("div", { class: "mha-stage" }, arcs, line);
  const map = el("canvas", { role: "img" });
  const mapName = el("figcaption", {});
  const measures = el("div", { class: "mha-table mha-measures", tabindex: 0, role: "region",
    "aria-label": "What was measured of the head" });

  function draw({ attention }) {
    const words = model.get("_words")[model.get("sentence")], n = words.length + 2;
    const at = (head, query, key) => attention[(head * n + query) * n + key] / full;
    if (drawn?.words !== words) drawWords(words);
    drawn = { words, n, at };
    return look();
  }

  function drawWords(words) {
    line.replaceChildren(...words.map((word, i) => {
      const button = el("button", { type: "button", role: "radio" }, word,
        el("span", { class: "mha-share", "aria-hidden": "true" }));
      const choose = () => { preview = undefined; if (model.get("word") !== i) set("word", i); };
      button.addEventListener("focus", choose);
      button.addEventListener("click", choose);
      // A pointer that rests on a word shows its lines; only a click chooses it.
      button.addEventListener("pointerenter", (event) => {
        if (event.pointerType === "mouse") { preview = i; drawWord(); }
      });
      button.addEventListener("pointerleave", () => { preview = undefined; drawWord(); });
      return button;
    }));
  }

  // All that depends on head and word, and the sentence that says it.
  function look() {
    const { words, n, at } = drawn, head = model.get("head"), second = model.get("other");
    const asks = chosen();
    [one, other, sentence].forEach((control) => control.follow());
    [...line.children].forEach((button, i) => {
      button.setAttribute("aria-checked", String(i === asks));
      button.tabIndex = i === Math.max(asks, 0) ? 0 : -1;
    });
    view?.section.classList.toggle("mha-two", second >= 0);
    arrange();
    pixels(n, n, (row, column) => weightColour(at(head, row, column)),
      `Attention map of head ${label(head)}, from [CLS], ${words.length} words and [SEP] to the same`, map);
    mapName.replaceChildren(headChip(0, label(head)),
      " all weights, with the marks [CLS] before and [SEP] after the words; rows ask");
    tell(head);
    const says = (i) => {
      if (asks < 0) return `Head ${label(i)}: all words at once.`;
      const order = words.map((_, key) => key).sort((a, b) => at(i, asks + 1, b + 1) - at(i, asks + 1, a + 1));
      const most = order.slice(0, 2).map((key) => `${short(at(i, asks + 1, key + 1))} from “${words[key]}”`);
      const rests = at(i, asks + 1, 0) + at(i, asks + 1, n - 1);
      return `Head ${label(i)}: “${words[asks]}” takes ${most.join(", ")}; ${short(rests)} rests on the marks.`;
    };
    return [head, ...(second < 0 ? [] : [second])].map(says).join(" ");
  }

  // What was measured of a head: its hits beside those of its rivals.
  const RIVALS = ["right", "offset", "rule", "untrained", "of n"];
  function tell(head) {
    const number = (value) => el("td", {}, value === undefined ? "" : short(value));
    const row = (name, one, n) => el("tr", {}, el("th", { scope: "row" }, name),
      el("td", {}, el("b", {}, short(one.value))),
      ...[one.offset, one.rule, one.untrained].map(number), el("td", {}, n));
    const rows = heads[head].measures.flatMap((one) => [
      row(`${one.name}, ${one.text}${one.offset === undefined ? `, an even head ${short(one.even)}` : ""}`, one, one.n),
      ...Object.entries(one.kinds ?? {}).map(([kind, { accuracy, n }]) =>
        row(`\u2003of these, ${kind}`, { value: accuracy }, n))]);
    measures.replaceChildren(rows.length
      ? el("table", {}, el("thead", {}, el("tr", {}, ...[`Head ${label(head)}`, ...RIVALS]
        .map((title) => el("th", { scope: "col" }, title)))), el("tbody", {}, ...rows))
      : el("p", {}, `Nothing that was measured names head ${label(head)}.`));
    measures.scrollTop = 0;
  }

  const chosen = () => Math.min(model.get("word"), drawn.words.length - 1);

  // The words stand in a line where they fit into one, and in a column where they do not.
  function arrange() {
    line.classList.remove("mha-column");
    const { firstChild: first, lastChild: last } = line;
    if (last.offsetTop > first.offsetTop) line.classList.add("mha-column");
    drawWord();
  }

  // What each word gets from the one that asks.
  function drawWord() {
    const { at } = drawn, asks = preview ?? chosen(), head = model.get("head");
    [...line.children].forEach((button, i) => {
      const share = asks < 0 ? 0 : at(head, asks + 1, i + 1);
      button.lastChild.textContent = share >= FAINTEST ? short(share) : "";
    });
    drawArcs(asks);
  }

  // Lines above the words for the head, below for the one to compare with; beside a column, to the
  // right and to the left.
  function drawArcs(asks) {
    const { words, at } = drawn, inColumn = line.classList.contains("mha-column");
    const box = stage.getBoundingClientRect();
    if (!box.width) return;
    const places = [...line.children].map((button) => {
      const { left, right, top, bottom } = button.getBoundingClientRect();
      return { x: (left + right) / 2 - box.left, y: (top + bottom) / 2 - box.top,
        left: left - box.left, right: right - box.left, top: top - box.top, bottom: bottom - box.top };
    });
    const room = inColumn ? box.width - places[0].right - 4 : TALLEST;
    const height = box.height;
    arcs.setAttribute("viewBox", `0 0 ${box.width} ${height}`);
    const paths = [];
    for (const [head, colour, up] of [[model.get("head"), headColour(0), 1],
      [model.get("other"), headColour(1), -1]]) {
      if (head < 0) continue;
      words.forEach((_, query) => words.forEach((_, key) => {
        const weight = at(head, query + 1, key + 1);
        if (query === key || weight < FAINTEST || (asks >= 0 && query !== asks && weight < OTHERS)) return;
        const a = places[query], b = places[key];
        paths.push(el("path", { fill: "none", stroke: colour, "stroke-width": 12 * weight,
          opacity: asks < 0 || query === asks ? 0.9 : 0.12,
          d: inColumn ? beside(a, b, up > 0 ? "right" : "left", up * room)
            : over(a, b, up > 0 ? "top" : "bottom", -up * room) }));
      }));
    }
    arcs.replaceChildren(...paths);
  }

  const bow = (room, distance) => Math.sign(room) * Math.min(Math.abs(room), 20 + 0.3 * Math.abs(distance));
  function over(a, b, side, room) {
    const y = a[side], rise = y + 1.33 * bow(room, a.x - b.x);
    return `M${a.x} ${y}C${a.x} ${rise} ${b.x} ${rise} ${b.x} ${y}`;
  }
  function beside(a, b, side, room) {
    const x = a[side], reach = x + 1.33 * bow(room, 2 * (a.y - b.y));
    return `M${x} ${a.y}C${reach} ${a.y} ${reach} ${b.y} ${x} ${b.y}`;
  }

  line.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const count = drawn.words.length, now = Math.max(model.get("word"), 0);
    const next = event.key in steps ? (now + steps[event.key] + count) % count
      : event.key === "Home" ? 0 : event.key === "End" ? count - 1 : undefined;
    if (next === undefined) return;
    event.preventDefault();
    line.children[next].focus();
  });

  view = show(context, {
    name: "Head gallery", controls: [sentence, other], also: ["head", "other", "word", "_words", "_heads"], draw,
  });
  view.section.classList.add("mha-gallery");
  view.result.append(stage, el("div", { class: "mha-beside" }, one.row,
    el("figure", {}, mapName, el("div", { class: "mha-canvas" }, map))), measures);
  new ResizeObserver(() => drawn && arrange()).observe(view.section);
  view.redraw();
}

export default { render };
