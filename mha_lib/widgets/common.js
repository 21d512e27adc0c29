// The part that all widgets share.  Python computes every number; here they are only drawn.

function el(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "rect", "line", "polyline", "polygon", "circle", "text", "path"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

// Names in a page must be unique, also when a widget is shown twice.
let counter = 0;
const unique = (stem) => `mha-${stem}-${Math.random().toString(36).slice(2, 8)}-${counter++}`;

const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
const headColour = (head) => HEAD_COLOURS[head % HEAD_COLOURS.length];
const headChip = (head, text = `head ${head + 1}`) => el("span", {
  class: "mha-chip",
  style: `background:${headColour(head)};color:${HEAD_INKS[head % HEAD_INKS.length]}`,
}, text);

// Settings and frames -------------------------------------------------------------------------

const settingsOf = (model, names) => Object.fromEntries(names.map((name) => [name, model.get(name)]));

// The frame of the present settings: { arrays, source } or { problem } or {} while Python computes.
function frameOf(model) {
  const names = model.get("_settings"), choices = model.get("_choices");
  const places = (kind) => names[kind].map((name) => choices[name].indexOf(model.get(name))).join();
  const asked = model.get("_live_settings");
  const live = names.all.every((name) => model.get(name) === asked[name]);
  const problem = live ? model.get("_live_problem") : model.get("_problems")[places("problem")];
  if (problem) return { problem };
  if (live) return { arrays: arraysIn(model.get("_live"), model.get("_live_layout")), source: "kernel" };
  const [start, layout] = model.get("_index")[places("frame")] ?? [];
  return start === undefined ? {}
    : { arrays: arraysIn(model.get("_frames"), model.get("_layouts")[layout], start), source: "grid" };
}

// The arrays of a frame by name, each flat and with its shape; what has no axis is a number.
const TYPES = { "<f4": Float32Array, "<f8": Float64Array, "|u1": Uint8Array };
function arraysIn(view, layout, start = 0) {
  let at = view.byteOffset + start;
  return Object.fromEntries(layout.map(([name, dtype, shape]) => {
    const Type = TYPES[dtype], count = shape.reduce((product, size) => product * size, 1);
    const end = at + count * Type.BYTES_PER_ELEMENT;
    const array = Object.assign(new Type(view.buffer.slice(at, end)), { shape });
    at = end;
    return [name, shape.length ? array : array[0]];
  }));
}

// Controls ------------------------------------------------------------------------------------

const titled = (label) => label[0].toUpperCase() + label.slice(1);

// A slider over a list of values, tied to one setting of the model.
function slider(model, name, label, spoken = String) {
  const id = unique(name);
  const shown = el("span", { class: "mha-value", "aria-hidden": "true" });
  const input = el("input", { type: "range", id, min: 0, step: 1 });
  let values = [], held; // the value when a finger came down
  const set = (value) => {
    model.set(name, value);
    model.save_changes();
  };
  input.addEventListener("input", () => set(values[input.value]));
  // A swipe down the page that begins on the slider is no change of the setting.
  input.addEventListener("pointerdown", () => { held = { value: model.get(name) }; });
  input.addEventListener("pointerup", () => { held = undefined; });
  input.addEventListener("pointercancel", () => {
    if (held) set(held.value);
    held = undefined;
  });
  return {
    name,
    // An arrow between the two would be read out as "right arrow".
    move: (was, is) => `${titled(label)}: from ${spoken(was)} to ${spoken(is)}.`,
    row: el("div", { class: "mha-slider" }, el("label", { for: id }, label), shown, input),
    follow() {
      const value = model.get(name);
      values = [...model.get("_choices")[name]];
      if (!values.includes(value)) values = [...values, value].sort((a, b) => a - b);
      input.max = values.length - 1;
      input.disabled = values.length === 1;
      input.value = values.indexOf(value);
      input.setAttribute("aria-valuetext", spoken(value));
      shown.textContent = spoken(value);
    },
  };
}

// One radio button for one value of a setting.  It is laid over the place where it stands, so
// that all of that place can be clicked; CSS shows which one is chosen.
function radio(model, name, group, value, label) {
  const input = el("input", { type: "radio", class: "mha-radio", name: group, "aria-label": label });
  input.addEventListener("change", () => {
    model.set(name, value);
    model.save_changes();
  });
  return { input, follow() { input.checked = model.get(name) === value; } };
}

// Radio buttons over a list of values, tied to one setting of the model.
function choice(model, name, label, spoken = String) {
  const group = unique(name), values = model.get("_choices")[name];
  const radios = values.map((value) => radio(model, name, group, value, spoken(value)));
  return {
    name,
    spoken,
    move: (was, is) => `${titled(label)}: from ${spoken(was)} to ${spoken(is)}.`,
    row: el("fieldset", { class: "mha-choice", hidden: values.length === 1 }, el("legend", {}, label),
      ...radios.map(({ input }, i) => el("span", { class: "mha-option" }, spoken(values[i]), input))),
    follow() { radios.forEach((one) => one.follow()); },
  };
}

// Call `act` when a pointer moves over a node or clicks it, and not when the page scrolls below a
// pointer at rest, as it does under the keyboard.
function onPoint(node, act) {
  node.addEventListener("click", act);
  node.addEventListener("pointermove", (event) => {
    if (event.movementX || event.movementY) act(event);
  });
}

// Colours and maps ----------------------------------------------------------------------------

const WEIGHT_RGB = WEIGHT_COLOURS.map(rgb);
function weightColour(weight) {
  const place = Math.min(Math.max(weight, 0), 1) * (WEIGHT_RGB.length - 1);
  const below = Math.min(Math.floor(place), WEIGHT_RGB.length - 2);
  const part = place - below;
  return WEIGHT_RGB[below].map((c, i) => Math.round(c + part * (WEIGHT_RGB[below + 1][i] - c)));
}

// One pixel per number; CSS makes them large.  `colourAt` gives [red, green, blue, alpha = 255].
function pixels(rows, columns, colourAt, label, canvas = el("canvas", { role: "img" })) {
  canvas.width = columns;
  canvas.height = rows;
  canvas.setAttribute("aria-label", label);
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const [r, g, b, a = 255] = colourAt(row, column);
      image.data.set([r, g, b, a], 4 * (row * columns + column));
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

const weightKey = () => el("p", { class: "mha-key" }, "weight: from 0 ",
  el("span", { class: "mha-scale", "aria-hidden": "true",
    style: `background:linear-gradient(to right,${WEIGHT_COLOURS.join(",")})` }), " to 1");

// The frame around every widget ---------------------------------------------------------------

// Settings that are possible and differ from the present one in one value, the nearest on each side.
function possibleNear(model) {
  const { problem: names } = model.get("_settings"), choices = model.get("_choices");
  const problems = model.get("_problems");
  const at = names.map((name) => choices[name].indexOf(model.get(name)));
  if (at.includes(-1)) return []; // what is no choice, only Python can judge
  return names.flatMap((name, i) => [-1, 1].flatMap((step) => {
    const places = [...at];
    do places[i] += step; while (problems[places.join()]);
    const value = choices[name][places[i]];
    return value === undefined ? [] : [{ name, value }];
  }));
}

// A page without a kernel passes `share`, which puts the settings into the page's address and
// returns it.  In Jupyter the address is the lab's own.
function linkButton(share, say) {
  const button = el("button", { type: "button", class: "mha-link" }, "Link to this setting");
  let timer;
  button.addEventListener("click", async () => {
    const address = share();
    let told = "Link copied";
    try {
      await navigator.clipboard.writeText(address);
    } catch { // not allowed, or not there
      told = "Link is in the address bar";
    }
    button.textContent = told;
    say(`${told}.`);
    clearTimeout(timer);
    timer = setTimeout(() => { button.textContent = "Link to this setting"; }, 3000);
  });
  return button;
}

// The level of a heading in this place; in Jupyter, where it may not be on the page yet, 3.
function levelBelow(place) {
  const above = [...document.querySelectorAll("h1, h2, h3, h4, h5")].filter((heading) =>
    heading.compareDocumentPosition(place) & Node.DOCUMENT_POSITION_FOLLOWING);
  return place.isConnected && above.length ? Number(above.at(-1).tagName[1]) + 1 : 3;
}

// `draw(frame, settings)` fills `result` and returns a line of text; while `quiet()`, the line is
// not read out.  `remedy(name, value)` says in two words what a setting near an impossible one
// is; then what was drawn stays, faded, and buttons lead to these settings.
function show({ model, el: root, signal, share },
  { name, controls, also = [], draw, quiet = () => false, remedy }) {
  const settings = model.get("_settings").all;
  const status = el("p", { class: "mha-status" });
  const problem = el("p", { class: "mha-problem" });
  const heard = el("span", { class: "mha-unseen" });
  const result = el("div", { class: "mha-result" });
  const top = el("div", { class: "mha-controls" }, ...controls.map((control) => control.row));
  // One live region, of which only what is new is read out.
  const live = el("div", { class: "mha-said", role: "status", "aria-atomic": "false" },
    status, problem, heard);
  // No section element: slides are made of these.
  const section = el("div", { class: "mha-widget", role: "region", "aria-label": name },
    el("div", { class: "mha-unseen", role: "heading", "aria-level": levelBelow(root) }, name),
    top, live, result);
  const say = (text) => { heard.textContent = text; };
  if (share) section.append(el("div", { class: "mha-foot" }, linkButton(share, say)));
  // JupyterLab takes the arrow keys from whatever has the focus; these belong to the widget.
  section.addEventListener("keydown", (event) => event.stopPropagation());

  // On a narrow screen the controls stay in sight: what gets the focus must not hide below them,
  // and they must not take the screen when letters are large.
  const sizes = new ResizeObserver(() => {
    section.style.setProperty("--mha-controls", `${top.offsetHeight}px`);
    top.classList.toggle("mha-tall", top.offsetHeight > 0.4 * innerHeight);
  });
  sizes.observe(top);
  signal?.addEventListener("abort", () => sizes.disconnect());

  let before, line, drawn = false, explained = "";
  function redraw(news) {
    const now = settingsOf(model, settings);
    for (const control of controls) control.follow();
    const frame = frameOf(model);
    const why = frame.problem ? `Impossible: ${frame.problem}.` : "";
    problem.hidden = !why;
    // Hidden in place: the page below must not jump while a slider moves.
    result.style.visibility = frame.arrays || (remedy && why && drawn) ? "" : "hidden";
    drawn ||= Boolean(frame.arrays);
    section.classList.toggle("mha-stale", Boolean(why));
    result.inert = Boolean(why); // what is still drawn belongs to another setting
    section.dataset.source = frame.source ?? "";
    const said = why ? "" : frame.arrays ? draw(frame.arrays, now) : "Python is computing this setting.";
    const moved = before && controls.find((control) => before[control.name] !== now[control.name]);
    // What was moved can be seen; it is read out before what this changed.
    const move = moved && el("span", { class: "mha-moved" }, `${moved.move(before[moved.name], now[moved.name])} `);
    if (quiet()) live.setAttribute("aria-live", "off");
    else live.removeAttribute("aria-live"); // a status is polite by itself
    // Numbers from the kernel that confirm those from the grid are no news.
    if (news || moved || !before || line !== said) {
      status.replaceChildren(...[news && `${news} `, move, said].filter(Boolean));
      say("");
    }
    line = said;
    const asked = why && why + JSON.stringify(settingsOf(model, model.get("_settings").problem));
    if (explained !== asked) problem.replaceChildren(el("span", {}, why), ...(why && remedy ? ways() : []));
    explained = asked;
    before = now;
  }
  const ways = () => possibleNear(model).map(({ name: setting, value }) => {
    const button = el("button", { type: "button" }, remedy(setting, value));
    button.addEventListener("click", () => {
      // The button goes; the keyboard stays with what it moved.
      controls.find((control) => control.name === setting)?.row.querySelector("input")?.focus();
      model.set(setting, value);
      model.save_changes();
    });
    return button;
  });
  // Everything that `frameOf` reads: of an answer with the bytes of the one before, only the
  // settings change, or only the reason why there is none.
  const watched = [...settings, ...also, "_choices", "_frames", "_layouts", "_index", "_problems",
    "_live", "_live_layout", "_live_settings", "_live_problem"].map((key) => `change:${key}`);
  let waiting = false;
  function soon() { // several traits may change at once: draw them together
    if (waiting) return;
    waiting = true;
    queueMicrotask(() => { waiting = false; redraw(); });
  }
  for (const event of watched) model.on(event, soon);
  signal?.addEventListener("abort", () => watched.forEach((event) => model.off(event, soon)));
  root.append(section);
  function append(node) { result.append(node); return node; }
  return { redraw, result, append, section, say };
}
