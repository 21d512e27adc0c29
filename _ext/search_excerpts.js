// What the search page quotes from a page that it found: Sphinx's own function takes formulas
// without what makes them readable, `dk`, and the list of contents that is there for paper.
const SIGNS = {
  top: "ᵀ", cdot: "·", sqrt: "√", dots: "…", le: "≤", lambda: "λ", sum: "∑", angle: "∠",
  ln: "ln", max: "max", cos: "cos", blacksquare: "∎",
};

const plainFormula = (tex) => {
  const plain = tex
    .trim()
    .replace(/\\mathrm |\\operatorname|\\text(?=\{)|\\[,!]/g, "")
    .replace(/\\([a-z]+)/g, (command, name) => SIGNS[name] ?? command)
    .replace(/\^(ᵀ|\{ᵀ\})/g, "ᵀ")
    .replace(/[{}]/g, "");
  return plain.includes("\\") ? "…" : plain; // a fraction, say, or several lines
};

Search.htmlToText = (html, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  const article = page.querySelector("article.bd-article");
  const part = (anchor && page.getElementById(anchor.slice(1))) || article;
  part.querySelectorAll(".headerlink, script, style").forEach((node) => node.remove());
  part.querySelectorAll(".math").forEach((formula) => {
    formula.replaceWith(plainFormula(formula.dataset.tex));
  });
  return part.textContent;
};
