// Paper is white, and nothing on it unfolds: pages are printed in the light theme and with their
// foldable parts open, and look as before afterwards.  Only the code that draws stays folded.
// The solutions of exercises are no <details>; sphinx-togglebutton opens them by itself.
(() => {
  const root = document.documentElement;
  let chosen, opened;
  addEventListener("beforeprint", () => {
    chosen = root.dataset.theme;
    root.dataset.theme = "light";
    opened = [...document.querySelectorAll("details:not([open], .above-input)")];
    for (const part of opened) part.open = true;
  });
  addEventListener("afterprint", () => {
    root.dataset.theme = chosen;
    for (const part of opened) part.open = false;
  });
})();
