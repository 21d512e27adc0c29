// Code or a table that is wider than its box scrolls, and then the keyboard must be able to reach it.  The
// theme looks when the window changes; a box also changes with the size of type, and when it unfolds.
addEventListener("DOMContentLoaded", () => {
  const reach = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  const wide = ".bd-article :is(pre, .math-block, .pst-scrollable-table-container, .text_html)";
  for (const box of document.querySelectorAll(wide)) reach.observe(box);
});
