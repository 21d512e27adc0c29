// Paper is white: pages are printed in the light theme, whichever the reader has chosen.
(() => {
  const root = document.documentElement;
  let chosen;
  addEventListener("beforeprint", () => {
    chosen = root.dataset.theme;
    root.dataset.theme = "light";
  });
  addEventListener("afterprint", () => { root.dataset.theme = chosen; });
})();
