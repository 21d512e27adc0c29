/* Run the anywidget modules of a published page: no kernel, no other library, no network.

   The page's data (see __init__.py) stand in script#widget-data; each div.static-widget becomes
   one view.  The front-end contract is anywidget's: a module's default export has `initialize`
   and `render`, which get { model, el, signal, experimental } and may return a clean-up function.
   Without a kernel, `save_changes` and `send` have nobody to talk to and do nothing. */
(() => {
  "use strict";

  const same = (a, b) =>
    Object.is(a, b) ||
    (typeof a === "object" && typeof b === "object" && a && b &&
      !ArrayBuffer.isView(a) && !ArrayBuffer.isView(b) &&
      JSON.stringify(a) === JSON.stringify(b));

  function bytes(base64) {
    const text = atob(base64);
    const array = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) array[i] = text.charCodeAt(i);
    return new DataView(array.buffer);
  }

  class Model {
    #state;
    #listeners = []; // { name, callback, view }

    constructor({ state, buffers }) {
      this.#state = { ...state };
      for (const { path, data } of buffers) {
        let place = this.#state;
        for (const step of path.slice(0, -1)) place = place[step];
        place[path.at(-1)] = bytes(data);
      }
    }

    get(name) {
      return this.#state[name];
    }

    set(name, value) {
      const values = typeof name === "string" ? { [name]: value } : name;
      const changed = Object.keys(values).filter((key) => !same(this.#state[key], values[key]));
      for (const key of changed) this.#state[key] = values[key];
      for (const key of changed) this.#trigger(`change:${key}`, values[key]);
      if (changed.length) this.#trigger("change");
    }

    on(names, callback, view) {
      for (const name of names.split(/\s+/)) this.#listeners.push({ name, callback, view });
    }

    off(names, callback, view) {
      const list = names ? names.split(/\s+/) : null;
      this.#listeners = this.#listeners.filter((l) =>
        (list && !list.includes(l.name)) || (callback && l.callback !== callback) ||
        (view && l.view !== view));
    }

    #trigger(name, ...values) {
      for (const { callback, view } of this.#listeners.filter((l) => l.name === name)) {
        try {
          callback(this, ...values);
        } catch (error) {
          view?.complain("stopped", error);
          if (!view) console.error(error);
        }
      }
    }
  }

  // What a module gets to see; its listeners end with the view.
  const proxy = (model, view) => ({
    get: (name) => model.get(name),
    set: (name, value) => model.set(name, value),
    on: (names, callback) => model.on(names, callback, view),
    off: (names, callback) => model.off(names, callback, view),
    save_changes() {},
    send() {},
    widget_manager: {
      get_model: async () => { throw new Error("there is no widget manager on this page"); },
    },
  });

  const experimental = {
    invoke: async () => { throw new Error("there is no kernel on this page"); },
  };

  const data = JSON.parse(document.getElementById("widget-data").textContent);
  const once = (make, cache = new Map()) => (key) => {
    if (!cache.has(key)) cache.set(key, make(key));
    return cache.get(key);
  };

  const modelOf = once((id) => new Model(data.models[id]));

  const moduleOf = once(async (index) => {
    const url = URL.createObjectURL(new Blob([data.sources[index]], { type: "text/javascript" }));
    try {
      const definition = (await import(url)).default;
      return typeof definition === "function" ? await definition() : definition;
    } finally {
      URL.revokeObjectURL(url);
    }
  });

  const styleOf = once((index) => {
    const style = document.createElement("style");
    style.textContent = data.styles[index];
    document.head.append(style);
  });

  // A model is initialised once, however many views it has.
  const initialised = once(async (id) => {
    const definition = await moduleOf(data.models[id].module);
    const { signal } = pageLife;
    endWith(signal, await definition.initialize?.({ model: proxy(modelOf(id)), signal, experimental }));
    return definition;
  });

  function endWith(signal, cleanup) {
    if (typeof cleanup === "function") signal.addEventListener("abort", () => cleanup());
  }

  // Settings in the address: #Kind=setting:value,setting:value for the first widget of a kind,
  // #Kind.2=… for the second.  Only what the widget's own controls offer can be set.
  const places = [...document.querySelectorAll(".static-widget")];
  const kindOf = (place) =>
    String(data.models[place.dataset.model].state._anywidget_id).split(".").at(-1);
  const nameOf = (place) => {
    const alike = places.filter((other) => kindOf(other) === kindOf(place));
    const nth = alike.indexOf(place) + 1;
    return nth > 1 ? `${kindOf(place)}.${nth}` : kindOf(place);
  };

  // Put a widget's settings into the page's address, and return it.
  function share(place) {
    const model = modelOf(place.dataset.model);
    const settings = Object.keys(model.get("_choices"))
      .map((name) => `${name}:${encodeURIComponent(model.get(name))}`);
    const address = new URL(location.href);
    address.hash = `${nameOf(place)}=${settings}`;
    history.replaceState(history.state, "", address);
    return address.href;
  }

  // Set what the address says, and return the widget that it speaks of.
  function follow() {
    const [name, settings] = location.hash.slice(1).split("=");
    const place = settings && places.find((one) => nameOf(one) === name);
    const choices = place && modelOf(place.dataset.model).get("_choices");
    if (!choices) return undefined;
    const values = {};
    for (const setting of settings.split(",")) {
      const [key, value] = setting.split(":");
      const choice = Object.hasOwn(choices, key)
        ? choices[key].findIndex((one) => encodeURIComponent(one) === value) : -1;
      if (choice >= 0) values[key] = choices[key][choice];
    }
    modelOf(place.dataset.model).set(values);
    return place;
  }

  function goTo(place) {
    if (!place) return;
    place.tabIndex = -1; // so that the keyboard goes on from here
    place.focus({ preventScroll: true });
    place.scrollIntoView();
  }

  async function show(place) {
    const id = place.dataset.model;
    const el = document.createElement("div");
    place.append(el);
    const view = {
      complain(what, error) {
        console.error(error);
        const message = document.createElement("p");
        message.setAttribute("role", "alert");
        message.textContent =
          `This widget ${what}: ${error?.message ?? error}. The rest of the page works.`;
        place.querySelector(":scope > [role=alert]")?.remove();
        place.prepend(message);
      },
    };
    try {
      const { module, style } = data.models[id];
      if (style !== null) styleOf(style);
      const definition = await initialised(id);
      const { signal } = pageLife;
      endWith(signal, await definition.render?.({ model: proxy(modelOf(id), view), el, signal, experimental,
        share: () => share(place) }));
      place.dataset.ready = "";
    } catch (error) {
      el.innerHTML = place.nextElementSibling?.matches("noscript")
        ? place.nextElementSibling.textContent : ""; // the picture
      view.complain("could not start", error);
    }
  }

  let pageLife = new AbortController();
  addEventListener("pagehide", ({ persisted }) => persisted || pageLife.abort());

  for (const [[source, from], [target, to]] of data.links) {
    modelOf(source).on(`change:${from}`, (model, value) => modelOf(target).set(to, value));
  }
  const asked = follow(); // before anything is drawn
  Promise.all(places.map(show)).then(() => goTo(asked));
  addEventListener("hashchange", () => goTo(follow()));
})();
