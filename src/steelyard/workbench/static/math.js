// Sets the formulas of a page that the server has marked as span.math. What KaTeX cannot read stays as it was written.
for (const node of document.querySelectorAll("span.math")) {
  const source = node.textContent;
  const block = source.startsWith("$$") || source.startsWith("\\[");
  const width = source.startsWith("$") && !block ? 1 : 2;
  try {
    window.katex.render(source.slice(width, -width), node, { displayMode: block, throwOnError: true, strict: "ignore", maxSize: 20, maxExpand: 500 });
  } catch {
    node.textContent = source;
  }
}
