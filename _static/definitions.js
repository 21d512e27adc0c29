// Shows the definition of a term while it has the pointer or the focus, or the pointer is on the
// definition itself.  Without this script a term is a link, and screen readers tell its definition.
(() => {
  const box = document.createElement("div");
  box.className = "definition";
  box.role = "tooltip";
  box.hidden = true;
  let waiting;

  const hide = () => {
    clearTimeout(waiting);
    box.hidden = true;
  };
  const leave = () => {
    clearTimeout(waiting);
    waiting = setTimeout(hide, 200); // time to reach the definition
  };
  const show = (link) => {
    clearTimeout(waiting);
    const words = document.getElementById(link.getAttribute("aria-describedby"));
    box.replaceChildren(...words.cloneNode(true).childNodes);
    box.hidden = false;
    const [line] = link.getClientRects(); // a term may break into two lines
    const { clientWidth, clientHeight } = document.documentElement;
    const left = Math.max(8, Math.min(line.left, clientWidth - box.offsetWidth - 8));
    const below = line.bottom + 6;
    const fits = below + box.offsetHeight < clientHeight;
    box.style.left = `${left + scrollX}px`;
    box.style.top = `${(fits ? below : line.top - 6 - box.offsetHeight) + scrollY}px`;
  };

  addEventListener("DOMContentLoaded", () => {
    const links = document.querySelectorAll("a.defined");
    if (links.length === 0) return;
    document.body.append(box);
    for (const link of links) {
      link.addEventListener("pointerenter", ({ pointerType }) => {
        if (pointerType !== "touch") show(link);
      });
      link.addEventListener("pointerleave", leave);
      link.addEventListener("focus", () => show(link));
      link.addEventListener("blur", hide);
    }
    box.addEventListener("pointerenter", () => clearTimeout(waiting));
    box.addEventListener("pointerleave", leave);
    addEventListener("keydown", ({ key }) => {
      if (key === "Escape") hide();
    });
  });
})();
