// What is wider or higher than its place takes the focus while it is, so that the arrow keys scroll it.

const REGIONS = ".wide, .answer, pre, .text table, .katex-display";

// The heading that a screen reader says with a region: that of its card, else that of the page.
const nameOf = (region) => (region.closest(".card")?.querySelector("h1, h2, h3") || document.querySelector("h1"))?.textContent;

const update = (region) => {
  const isScrolled = region.scrollWidth > region.clientWidth + 1 || region.scrollHeight > region.clientHeight + 1;
  if (!isScrolled) { region.removeAttribute("tabindex"); region.removeAttribute("role"); region.removeAttribute("aria-label"); return; }
  region.tabIndex = 0;
  // A table stays one to a screen reader.
  if (region.localName === "table") return;
  region.setAttribute("role", "group");
  region.setAttribute("aria-label", nameOf(region) || "");
};

const observer = "ResizeObserver" in globalThis ? new ResizeObserver((entries) => entries.forEach(({ target }) => update(target))) : null;

// Watch the regions below a node, also of a node that is not in the page yet.
export const watchScrolling = (node) => {
  for (const region of node.querySelectorAll(REGIONS)) observer?.observe(region);
};

if (globalThis.document?.body) addEventListener("load", () => watchScrolling(document.body));
