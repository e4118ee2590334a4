"use strict";
// The two languages of the page, light and dark colours, and the figures.
const Page = (() => {
  const strings = JSON.parse(document.getElementById("strings").textContent);
  const root = document.documentElement;
  const listeners = [];
  const language = () => root.dataset.ui;
  const word = (key, otherwise) => (strings[key] || {})[language()] || otherwise || key;
  // Prompts without a category have one of this name in every record; filters and links keep it.
  const category = (name) => (name === "uncategorised" ? word("uncategorised") : name);
  const languageName = (code) => word(`language ${code}`, code);
  const resolved = (text) => text.replace(/@@([a-z0-9_]+)\|([^]*?)@@/g, (_, key, otherwise) => word(key, otherwise));
  const stored = (name, value) => {
    try {
      if (value === undefined) return localStorage.getItem(name);
      localStorage.setItem(name, value);
    } catch (error) { /* a page opened from disk may have no storage: then nothing is stored */ }
    return null;
  };
  const choose = (name) => {
    root.dataset.ui = name;
    root.lang = name === "zh" ? "zh-Hans" : name;
    for (const button of document.querySelectorAll("[data-language]")) {
      button.setAttribute("aria-pressed", String(button.dataset.language === name));
    }
    const theme = document.getElementById("theme");
    theme.title = word("theme");
    theme.setAttribute("aria-label", word("theme"));
    for (const place of document.querySelectorAll("[data-label-en]")) place.setAttribute("aria-label", place.getAttribute(`data-label-${name}`));
    for (const listen of listeners) listen();
  };
  return { views: new Map(), beforeFigures: [], word, category, languageName, resolved, stored, choose, language, onLanguage: (listen) => listeners.push(listen) };
})();

(() => {
  const root = document.documentElement;
  for (const button of document.querySelectorAll("[data-language]")) {
    button.addEventListener("click", () => { Page.choose(button.dataset.language); Page.stored("steelyard-language", button.dataset.language); });
  }
  const theme = Page.stored("steelyard-theme");
  if (theme) root.dataset.theme = theme;
  document.getElementById("theme").addEventListener("click", () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    Page.stored("steelyard-theme", root.dataset.theme);
  });

  const specs = JSON.parse(document.getElementById("figures").textContent);
  const font = getComputedStyle(document.body).fontFamily;
  const config = {
    background: null, font, view: { stroke: null },
    axis: { domainColor: "var(--faint)", tickColor: "var(--faint)", gridColor: "var(--line)", labelColor: "var(--muted)", titleColor: "var(--muted)",
      labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", labelPadding: 6, titlePadding: 10, grid: true, gridWidth: 1 },
    axisY: { labelColor: "var(--ink)", labelLineHeight: 15 }, axisYQuantitative: { labelColor: "var(--muted)" },
  };
  // A drawing has no element around each name that would keep the order of right-to-left letters apart from the rest.
  const isolated = (text) => (/[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/.test(text) && !text.includes("\u2068") ? `\u2068${text}\u2069` : text);
  const translated = (value) => {
    if (typeof value === "string") return isolated(Page.resolved(value));
    if (Array.isArray(value)) return value.map(translated);
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, translated(inner)]));
    return value;
  };
  const { views } = Page;
  // On a phone, the names of rows leave the larger part of the width to the drawing.
  const fitted = (value, limit) => {
    if (Array.isArray(value)) return value.map((inner) => fitted(inner, limit));
    if (!value || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, key === "labelLimit" ? Math.min(inner, limit) : key === "values" ? inner : fitted(inner, limit)]));
  };
  const draw = async (place) => {
    const old = views.get(place);
    if (old) old.finalize();
    const options = { renderer: "svg", actions: false, ast: true, config, tooltip: { disableDefaultStyle: true } };
    views.set(place, await vegaEmbed(place, fitted(translated(specs[Number(place.dataset.figure)]), 0.36 * place.clientWidth), options));
    describe(place);
  };
  // A drawing is one picture with the name of its panel: the library's own descriptions are English, and the table has the numbers.
  const describe = (place) => {
    const svg = place.querySelector("svg"), title = place.closest(".panel") && place.closest(".panel").querySelector(`h3 .t[lang="${Page.language()}"], h3 bdi`);
    for (const part of place.querySelectorAll("[aria-label], [aria-roledescription], [role]")) for (const name of ["aria-label", "aria-roledescription", "role"]) part.removeAttribute(name);
    for (const name of ["aria-label", "aria-roledescription", "role"]) place.removeAttribute(name);
    if (!svg) return;
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `${Page.word("figure")}${Page.word("colon")}${title ? title.textContent : ""}`);
  };
  // The table of items comes before the figures, which take longer; pages of other things have none.
  const parsed = new Promise((done) => { document.addEventListener("DOMContentLoaded", done, { once: true }); });
  const drawAll = async () => {
    await parsed;
    await Promise.allSettled(Page.beforeFigures);
    for (const place of document.querySelectorAll("[data-figure]")) await draw(place);
    document.body.dataset.drawn = String(views.size);
  };
  Page.onLanguage(drawAll);
  const chosen = new URLSearchParams(location.search).get("language") || Page.stored("steelyard-language");
  Page.choose(chosen === "en" || chosen === "zh" ? chosen : root.dataset.ui);

  // Entries that do not fit into one line go, from the last, into a list that opens; the one of the section in view is marked.
  const links = [...document.querySelectorAll("#contents a")], entries = document.querySelector("#contents .entries");
  const further = document.querySelector("#contents .further");
  const isWider = () => entries.scrollWidth > entries.clientWidth + 1;
  const fit = () => {
    if (!further) return;
    entries.append(...links);
    further.hidden = true;
    if (!isWider()) return;
    further.hidden = false;
    for (const link of links.slice(1).reverse()) {
      if (!isWider()) break;
      further.lastElementChild.prepend(link);
    }
    mark();
  };
  const mark = () => further.classList.toggle("here", Boolean(further.querySelector("a.here")));
  if (further) {
    new ResizeObserver(fit).observe(document.getElementById("contents"));
    Page.onLanguage(fit);
    document.addEventListener("click", (event) => { if (!event.target.closest(".further summary")) further.open = false; });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") further.open = false; });
  }
  // A link into a closed part opens it; so does print, for its time.
  const opened = (target) => {
    for (let fold = target && target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    const own = target && target.querySelector(":scope > details.section");
    if (own) own.open = true;
  };
  Page.reveal = (target) => { opened(target); if (target) target.scrollIntoView(); };
  const follow = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target && document.querySelector("main").contains(target)) Page.reveal(target);
  };
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]:not(.anchor)');
    if (link && link.hash === location.hash) follow(); // no change of the address, but the part may be closed again
  });
  follow();
  let unfolded = [];
  addEventListener("beforeprint", () => {
    unfolded = [...document.querySelectorAll("main details:not([open])")];
    for (const fold of unfolded) fold.open = true;
  });
  addEventListener("afterprint", () => { for (const fold of unfolded) fold.open = false; });

  const seen = new IntersectionObserver((list) => {
    for (const entry of list) if (entry.isIntersecting) for (const link of links) link.classList.toggle("here", link.hash === `#${entry.target.id}`);
    if (further) mark();
  }, { rootMargin: "-20% 0px -70% 0px" });
  for (const section of document.querySelectorAll("main section")) seen.observe(section);
})();
