"use strict";
// What a reader takes along: a figure as SVG or PNG, a table as CSV, the link to a section or panel.
const Downloads = (() => {
  const SCALE = 2, MARGIN = 16, SVG = "http://www.w3.org/2000/svg";
  const make = (name, attributes, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  // The text of a node in the language of the page; the other language is in the page too, hidden.
  const visible = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    if (node.nodeType !== Node.ELEMENT_NODE || node.matches(".panel-tools, button, script, style, svg")) return "";
    if (node.classList.contains("t") && node.lang !== Page.language()) return "";
    return [...node.childNodes].map(visible).join("");
  };
  const label = (node) => visible(node).replace(/\s+/g, " ").trim();

  const fileName = (panel, ending) => {
    const section = panel.closest("section"), title = panel.querySelector("h3, h4");
    const parts = ["steelyard", section ? section.id : "", title ? label(title) : ""];
    return `${parts.filter(Boolean).join("-").replace(/[^\p{L}\p{M}\p{N}_.-]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 100)}.${ending}`;
  };
  const save = (blob, name) => {
    const link = make("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  };

  // Spreadsheet programs read UTF-8 by its mark, and must not take the text of a cell for a formula.
  const NUMBERS = /^[+\-\u2212\d][+\-\u2212\d.,%\s\u2013\u2026]*$/;
  const cell = (text) => {
    const plain = text.replace(/^\u2212(?=[\d.,]+%?$)/, "-");
    const safe = /^[=+\-@\t\r\uff1d\uff0b\uff0d\uff20|]/.test(plain) && !NUMBERS.test(plain) ? `'${plain}` : plain;
    return /[",\r\n;\t]|^\s|\s$/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };
  const csv = (rows) => `\ufeff${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
  const tableRows = (table) => {
    // The marks that keep right-to-left names in order on the page are no part of a name.
    const plain = (node) => label(node).replace(/[\u200e\u2068\u2069]/g, "");
    const head = table.tHead ? [...table.tHead.rows].map((row) => [...row.cells].map(plain)) : [];
    const bodies = [...table.tBodies].map((body) => {
      const part = body.rows[0] && body.rows[0].classList.contains("part") ? label(body.rows[0]) : null;
      return { part, rows: [...body.rows].slice(part === null ? 0 : 1).map((row) => [...row.cells].map(plain)) };
    });
    if (bodies.every(({ part }) => part === null)) return [...head, ...bodies.flatMap(({ rows }) => rows)];
    return [...head.map((row) => [Page.word("group"), ...row]), ...bodies.flatMap(({ part, rows }) => rows.map((row) => [part || "", ...row]))];
  };

  // Colours of the page are names of variables, which another program does not know.
  const resolved = (markup) => {
    const style = getComputedStyle(document.documentElement);
    return markup.replace(/var\((--[\w-]+)\)/g, (whole, name) => style.getPropertyValue(name).trim() || whole);
  };
  const drawn = (name, attributes, text) => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  // The drawing with its title and legend, which stand beside it in the page, as one SVG.
  const picture = async (panel, view) => {
    const chart = new DOMParser().parseFromString(resolved(await view.toSVG()), "image/svg+xml").documentElement;
    const style = getComputedStyle(document.body), font = style.fontFamily, ruler = document.createElement("canvas").getContext("2d");
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const width = Math.max(Number(chart.getAttribute("width")), 240), parts = [];
    let y = MARGIN;
    const title = panel.querySelector("h3");
    if (title) {
      parts.push(drawn("text", { x: MARGIN, y: y + 14, "font-family": font, "font-size": 16, "font-weight": 600, fill: colour("--ink") }, label(title)));
      y += 30;
    }
    ruler.font = `13px ${font}`;
    let x = MARGIN;
    for (const entry of panel.querySelectorAll(".legend > span")) {
      const text = label(entry), size = 20 + ruler.measureText(text).width + 18, mark = entry.querySelector("svg path");
      if (x > MARGIN && x + size > width + MARGIN) { x = MARGIN; y += 20; }
      if (mark) {
        const own = getComputedStyle(mark), sign = drawn("g", { transform: `translate(${x + 6},${y + 6})` });
        sign.append(drawn("path", { d: mark.getAttribute("d"), fill: own.fill, stroke: own.stroke, "stroke-width": 1.6 }));
        parts.push(sign);
      }
      parts.push(drawn("text", { x: x + 18, y: y + 11, "font-family": font, "font-size": 13, fill: colour("--muted") }, text));
      x += size;
    }
    if (x > MARGIN) y += 26;
    chart.setAttribute("x", String(MARGIN));
    chart.setAttribute("y", String(y));
    const [whole, height] = [width + 2 * MARGIN, y + Number(chart.getAttribute("height")) + MARGIN];
    const root = drawn("svg", { width: whole, height, viewBox: `0 0 ${whole} ${height}` });
    root.append(drawn("rect", { width: whole, height, fill: colour("--panel") }), ...parts, chart);
    return { markup: new XMLSerializer().serializeToString(root), width: whole, height };
  };
  const asPng = async ({ markup, width, height }) => {
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(markup)}`;
    await image.decode();
    const canvas = make("canvas", { width: Math.round(width * SCALE), height: Math.round(height * SCALE) });
    const context = canvas.getContext("2d");
    context.scale(SCALE, SCALE);
    context.drawImage(image, 0, 0, width, height);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  };

  // Copy a text; a page that was opened from disk may have no clipboard of its own.
  const copy = async (text) => {
    try { await navigator.clipboard.writeText(text); return true; } catch (error) { /* the older way is tried next */ }
    const field = make("textarea", { readonly: "", "aria-hidden": "true", class: "offscreen" });
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  };
  const address = (fragment) => `${location.href.split("#")[0]}#${fragment}`;
  const status = make("div", { class: "offscreen", role: "status" });
  const announce = (button, key) => {
    status.textContent = Page.word(key);
    button.dataset.done = Page.word(key);
    setTimeout(() => { delete button.dataset.done; }, 1600);
  };
  // A link to a place in the page, which is copied by a click; `fragment` gives it at that time.
  const anchor = (fragment) => {
    const link = make("a", { class: "anchor", href: `#${fragment()}` }, "#");
    const name = () => { link.title = Page.word("copy_link"); link.setAttribute("aria-label", Page.word("copy_link")); };
    link.addEventListener("click", async (event) => {
      event.preventDefault();
      event.stopPropagation();
      link.href = `#${fragment()}`;
      history.replaceState(null, "", link.href);
      announce(link, (await copy(address(fragment()))) ? "link_copied" : "link_in_address");
    });
    Page.onLanguage(name);
    name();
    return link;
  };

  const button = (text, key, act) => {
    const node = make("button", { type: "button" }, text);
    const name = () => { node.title = Page.word(key); node.setAttribute("aria-label", Page.word(key)); };
    node.addEventListener("click", async (event) => { event.stopPropagation(); await act(); });
    Page.onLanguage(name);
    name();
    return node;
  };
  // Add the buttons that a panel's content allows.
  const attach = (panel) => {
    const heading = panel.querySelector("h3");
    if (!heading || panel.querySelector(".panel-tools")) return;
    const tools = make("span", { class: "panel-tools" }), figure = panel.querySelector("[data-figure]"), tables = [...panel.querySelectorAll("table")];
    if (figure) {
      const composed = async () => picture(panel, Page.views.get(figure).view);
      tools.append(button("SVG", "save_svg", async () => save(new Blob([(await composed()).markup], { type: "image/svg+xml" }), fileName(panel, "svg"))),
        button("PNG", "save_png", async () => save(await asPng(await composed()), fileName(panel, "png"))));
    }
    if (tables.length) tools.append(button("CSV", "save_csv", () => save(new Blob([csv(tables.flatMap((table, at) => [...(at ? [[""]] : []), ...tableRows(table)]))], { type: "text/csv;charset=utf-8" }), fileName(panel, "csv"))));
    if (panel.id) tools.append(anchor(() => panel.id));
    heading.before(tools);
  };

  document.body.append(status);
  for (const panel of document.querySelectorAll(".panel")) attach(panel);
  for (const section of document.querySelectorAll("main section[id]:not(#items)")) {
    const heading = section.querySelector("h1, h2");
    if (heading && !heading.closest(".panel")) heading.append(anchor(() => section.id));
  }
  return { attach, anchor, copy, csv, cell, save, announce };
})();
