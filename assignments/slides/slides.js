// Starts reveal.js, and fits each slide into its frame.
(() => {
  "use strict";
  const SIZE = { width: 1280, height: 720 };
  const SMALLEST = 0.5; // of the usual size
  const LEAST = 220; // height of a figure, before words get smaller

  // A figure is as high as the words leave it; then all of the slide gets smaller.
  function fit(slide) {
    if (!slide.classList.contains("leaf") || slide.dataset.fitted) return;
    slide.dataset.fitted = "";
    const tooHigh = () => slide.scrollHeight - slide.clientHeight;
    const tooWide = () => slide.scrollWidth - slide.clientWidth;
    const scale = slide.getBoundingClientRect().width / SIZE.width; // to the screen
    const widget = slide.querySelector(".static-widget");
    if (widget) {
      const top = widget.getBoundingClientRect().top - slide.getBoundingClientRect().top;
      const room = SIZE.height - top / scale - 16;
      widget.style.zoom = Math.min(1.3, room / widget.offsetHeight);
    }
    const [figure] = slide.querySelectorAll(".celltag_large svg[role=img]:not(.static-widget svg)");
    if (figure && tooHigh() > 0) {
      const height = figure.getBoundingClientRect().height / scale;
      figure.style.height = `${Math.max(LEAST, height - tooHigh())}px`;
    }
    for (let size = 0.96; (tooHigh() > 0 || tooWide() > 1) && size > SMALLEST; size -= 0.04) {
      slide.style.setProperty("--size", size);
    }
  }

  for (const slide of document.querySelectorAll(".slides > section > section")) {
    slide.classList.add("leaf");
  }
  const deck = new Reveal(document.querySelector(".reveal"), {
    ...SIZE,
    margin: 0,
    center: false,
    hash: true,
    slideNumber: "c/t",
    showSlideNumber: "all",
    navigationMode: "linear",
    transition: "none",
    viewDistance: 1000, // a widget that is drawn while hidden has no size
    pdfMaxPagesPerSlide: 1,
    plugins: [RevealNotes],
  });
  window.deck = deck;

  // Fonts and widgets change heights, and so come first.
  function start() {
    const widgets = [...document.querySelectorAll(".static-widget")];
    if (widgets.some((place) => !("ready" in place.dataset) && !place.querySelector("[role=alert]"))) {
      setTimeout(start, 50);
      return;
    }
    deck.on("slidechanged", ({ currentSlide }) => fit(currentSlide));
    deck.on("pdf-ready", () => {
      document.querySelectorAll("section.leaf").forEach(fit);
      document.documentElement.dataset.ready = "";
    });
    deck.initialize().then(() => {
      if (deck.isPrintView()) return;
      fit(deck.getCurrentSlide());
      document.documentElement.dataset.ready = "";
    });
  }

  addEventListener("load", () => document.fonts.ready.then(start));
})();
