"use strict";
// The items: a table to search, filter and sort, and the whole of one prompt in a window.
const Items = (async () => {
  const browser = document.getElementById("browser");
  if (!browser) return null;
  const PER_PAGE = 50, models = JSON.parse(browser.dataset.models);
  const word = Page.word;
  const make = (name, attributes, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  };
  // While the browser reads the page, an element is complete once another follows it.
  const element = async (name) => {
    for (let waited = 0; ; waited += 1) {
      const found = document.getElementById(name);
      if (document.readyState !== "loading" || (found && found.nextElementSibling)) return found;
      await new Promise((done) => { setTimeout(done, Math.min(50, 5 * waited)); });
    }
  };
  const unpacked = async (name) => {
    const binary = atob((await element(name)).textContent.trim());
    const bytes = new Uint8Array(binary.length);
    for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
    return JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text());
  };

  if (!("DecompressionStream" in window)) { browser.textContent = word("old_browser"); return null; }
  const NAMES = ["id", "language", "category", "preview", "outcomes", "numResponses", "numJudgments", "numConflicting", "differing", "place"];
  const items = (await unpacked("index")).map((line, at) => {
    const item = {};
    for (let index = 0; index < NAMES.length; index += 1) item[NAMES[index]] = line[index];
    item.at = at;
    return item;
  });
  const hasJudgments = items.some((item) => item.numJudgments);
  const wholes = new Map();
  const whole = async (item) => {
    if (!item.place) return null;
    const [page, position] = item.place;
    if (!wholes.has(page)) wholes.set(page, await unpacked(`items-${page}`));
    return wholes.get(page)[position];
  };

  const { tag } = AnswerText, text = AnswerText.node;

  // The most confident error comes first. `group` and `differing` are filters that the section on failures sets.
  const state = { text: "", category: "", language: "", outcome: "", model: 0, group: null, differing: null, sort: models.length ? "worst_error" : "at", isDown: models.length > 0, page: 0, shown: items };
  const usual = { sort: state.sort, isDown: state.isDown };
  const outcome = (item) => item.outcomes[state.model] || null;
  const OUTCOMES = {
    right: (item) => outcome(item) && outcome(item)[0] > 0 && outcome(item)[0] === outcome(item)[1],
    some_wrong: (item) => outcome(item) && outcome(item)[1] + outcome(item)[2] < outcome(item)[0],
    some_tied: (item) => outcome(item) && outcome(item)[2] > 0,
    some_unscored: (item) => outcome(item) && outcome(item)[4] > 0,
    wrong_widely: (item) => outcome(item) && outcome(item)[5] !== null && outcome(item)[5] >= 1,
    in_conflict: (item) => item.numConflicting > 0,
  };
  const share = (item) => outcome(item) && outcome(item)[0] ? outcome(item)[1] / outcome(item)[0] : -1;
  const ORDERS = {
    at: (item) => item.at, category: (item) => item.category || "", language: (item) => item.language || "",
    worst_error: (item) => (outcome(item) ? outcome(item)[5] ?? -1 : -2), pairs_right: share, exact_match: (item) => (outcome(item) ? Number(outcome(item)[3]) : -1), conflicting: (item) => item.numConflicting,
  };

  const LENGTHS = ["shorter", "equal", "longer"];
  const inGroup = (item, { category, language, length }) => outcome(item) && outcome(item)[5] !== null
    && (category === undefined || item.category === category) && (language === undefined || (item.language || "unspecified") === language)
    && (length === undefined || (outcome(item)[6] >> LENGTHS.indexOf(length)) % 2 === 1);
  const inDifference = (item, [right, wrong]) => item.differing.some(([one, other]) => one === right && other === wrong);

  const haystack = (item) => item.haystack ??= `${item.id}\n${item.preview}\n${item.category || ""}\n${Page.category(item.category) || ""}`.toLowerCase();
  const choose = () => {
    const words = state.text.toLowerCase().split(/\s+/).filter(Boolean), order = ORDERS[state.sort];
    state.shown = items.filter((item) => words.every((one) => haystack(item).includes(one)) && (!state.category || item.category === state.category)
      && (!state.language || item.language === state.language) && (!state.outcome || OUTCOMES[state.outcome](item))
      && (!state.group || inGroup(item, state.group)) && (!state.differing || inDifference(item, state.differing)));
    if (state.sort !== "at" || state.isDown) {
      const keys = [], turn = state.isDown ? -1 : 1;
      for (const item of state.shown) keys[item.at] = order(item);
      state.shown.sort(({ at: one }, { at: other }) => (keys[one] < keys[other] ? -turn : keys[one] > keys[other] ? turn : one - other));
    }
  };

  const row = (item) => {
    const own = outcome(item);
    const cells = [
      make("td", {}, make("button", { class: "open", type: "button" },
        item.preview ? make("span", { class: "preview", dir: "auto", lang: tag(item.language) }, item.preview) : null, make("bdi", { class: "id" }, item.id))),
      make("td", { dir: "auto" }, ...breakable(item.category ? Page.category(item.category) : "–")), make("td", {}, item.language ? Page.languageName(item.language) : "–"),
    ];
    if (models.length) {
      const meter = own && own[0] ? make("span", { class: "meter" }, make("i", { style: `width:${(100 * own[1]) / own[0]}%` })) : null;
      const worst = own ? own[5] : null;
      cells.push(make("td", { class: worst === null ? "dim" : worst >= 1 ? "no" : "" }, worst === null ? "–" : make("span", { class: "meter worst" }, make("i", { style: `width:${Math.min(100, 50 * worst)}%` })), worst === null ? null : `${worst.toFixed(1)}×`));
      cells.push(make("td", {}, meter, own ? `${own[1]}/${own[0]}` : "–"));
      const exact = own ? own[3] : null;
      cells.push(make("td", { class: exact === true ? "yes" : exact === false ? "no" : "dim" }, exact === true ? "✓" : exact === false ? "✗" : "–"));
    }
    if (hasJudgments) cells.push(make("td", { class: item.numConflicting ? "no" : "dim" }, item.numJudgments ? `${item.numConflicting}/${item.numJudgments}` : "–"));
    return make("tr", { onclick: () => open(item) }, ...cells);
  };

  const body = make("tbody"), head = make("thead"), count = make("span", { role: "status" });
  const showRows = () => {
    const start = state.page * PER_PAGE, end = Math.min(start + PER_PAGE, state.shown.length);
    body.replaceChildren(...state.shown.slice(start, end).map(row));
    count.textContent = state.shown.length ? `${start + 1}–${end} / ${state.shown.length.toLocaleString("en")}` : word("nothing_found");
    before.disabled = state.page === 0;
    after.disabled = end >= state.shown.length;
  };
  let isReady = false;
  const update = () => { state.page = 0; choose(); showRows(); if (isReady) remember(); };
  const turn = (by) => { state.page += by; showRows(); remember(); browser.scrollIntoView({ block: "start" }); };
  const before = make("button", { type: "button", onclick: () => turn(-1) }, "←"), after = make("button", { type: "button", onclick: () => turn(1) }, "→");

  const breakable = (name) => name.split(/(?<=_)/).flatMap((part) => [part, make("wbr")]); // after each underscore
  const heading = (name, width) => {
    const sort = state.sort === name ? (state.isDown ? "descending" : "ascending") : "none";
    const press = () => { state.isDown = state.sort === name ? !state.isDown : name === "worst_error"; state.sort = name; showControls(); update(); };
    return make("th", { scope: "col", "aria-sort": sort, style: width ? `width:${width}` : null }, make("button", { type: "button", onclick: press }, word(name === "at" ? "prompt" : name)));
  };
  const select = (name, all, options) => make("select", { "aria-label": all, onchange: (event) => { state[name] = event.target.value; update(); } },
    make("option", { value: "" }, all), ...options.map(([value, label]) => make("option", { value, selected: state[name] === value }, label)));
  const distinct = new Map(["category", "language"].map((name) => [name, [...new Set(items.map((item) => item[name]).filter(Boolean))].sort()]));
  const values = (name) => distinct.get(name).map((value) => [value, name === "category" ? Page.category(value) : Page.languageName(value)]);
  const differences = new Set(items.flatMap((item) => item.differing.map(String)));
  const filters = make("div", { class: "filters" });
  const showControls = () => {
    const search = make("input", { type: "search", placeholder: word("search"), "aria-label": word("search"), dir: "auto", value: state.text });
    let waiting = 0;
    search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => { state.text = search.value; update(); }, 120); });
    const outcomes = Object.keys(OUTCOMES).filter((name) => (name === "in_conflict" ? hasJudgments : models.length)).map((name) => [name, word(name)]);
    const model = make("select", { "aria-label": word("scorer"), onchange: (event) => { state.model = Number(event.target.value); update(); } },
      ...models.map((name, at) => make("option", { value: at, selected: state.model === at }, name)));
    const several = (name) => (values(name).length > 1 ? select(name, word(`all_${name}`), values(name)) : null);
    const several_models = models.flatMap((_, right) => models.map((_, wrong) => [right, wrong])).filter((two) => differences.has(String(two)));
    const differing = several_models.length ? make("select", { "aria-label": word("models_differ"), onchange: (event) => { state.differing = event.target.value ? event.target.value.split(",").map(Number) : null; update(); } },
      make("option", { value: "" }, word("models_differ")), ...several_models.map((two) => make("option", { value: two.join(","), selected: String(state.differing) === two.join(",") },
        `${models[two[0]]}${word("colon")}${word("is_right")} · ${models[two[1]]}${word("colon")}${word("is_wrong")}`))) : null;
    const { category, language, length } = state.group || {};
    const group = state.group ? make("button", { type: "button", class: "chip alert", title: word("clear_filter"), onclick: () => { state.group = null; showControls(); update(); } },
      make("bdi", {}, [word("wrong_pairs"), category && Page.category(category), language && Page.languageName(language), length && word(`group_${length}`)].filter(Boolean).join(word("comma"))), " ✕") : null;
    filters.replaceChildren(...[search, several("category"), several("language"), select("outcome", word("all_outcomes"), outcomes), models.length > 1 ? model : null, differing, group].filter(Boolean));
    before.setAttribute("aria-label", word("before")); after.setAttribute("aria-label", word("after"));
    head.replaceChildren(make("tr", {}, heading("at"), heading("category", "13%"), heading("language", "10%"),
      ...(models.length ? [heading("worst_error", "13%"), heading("pairs_right", "13%"), heading("exact_match", "9%")] : []), ...(hasJudgments ? [heading("conflicting", "12%")] : [])));
  };

  // The state of the table is a part of the page's address, so that a link leads to the same items.
  const TEXTS = ["text", "category", "language", "outcome"];
  const fragment = () => {
    const parts = TEXTS.filter((name) => state[name]).map((name) => [name, state[name]]);
    if (state.model) parts.push(["model", models[state.model]]);
    if (state.group) parts.push(["group", JSON.stringify(state.group)]);
    if (state.differing) parts.push(["differing", state.differing.map((at) => models[at]).join("\u001f")]);
    if (state.sort !== usual.sort || state.isDown !== usual.isDown) parts.push(["sort", state.sort], ["down", Number(state.isDown)]);
    if (state.page) parts.push(["page", state.page + 1]);
    return ["items", ...parts.map(([name, value]) => `${name}=${encodeURIComponent(value)}`)].join("&");
  };
  const remember = () => history.replaceState(null, "", `#${fragment()}`);
  const groupOf = (given) => {
    try {
      const known = Object.entries(JSON.parse(given)).filter(([name, value]) => ["category", "language", "length"].includes(name) && typeof value === "string");
      return known.length ? Object.fromEntries(known) : null;
    } catch (error) { return null; } // a link that somebody changed by hand
  };
  const restore = (asked) => {
    for (const name of TEXTS) state[name] = asked.get(name) || "";
    if (!Object.hasOwn(OUTCOMES, state.outcome)) state.outcome = "";
    state.model = Math.max(0, models.indexOf(asked.get("model")));
    state.group = groupOf(asked.get("group"));
    const two = (asked.get("differing") || "").split("\u001f").map((name) => models.indexOf(name));
    state.differing = two.length === 2 && !two.includes(-1) ? two : null;
    Object.assign(state, Object.hasOwn(ORDERS, asked.get("sort")) ? { sort: asked.get("sort"), isDown: asked.get("down") === "1" } : usual);
    showControls();
    update();
    const page = Number(asked.get("page")) - 1;
    if (page > 0 && page * PER_PAGE < state.shown.length) { state.page = page; showRows(); }
  };
  const chooseModel = (at) => { state.model = at; showControls(); update(); };
  const opened = ItemWindow({ make, models, scales: JSON.parse(browser.dataset.scales), state, items, whole, outcome, choose: chooseModel });
  const { open, number, chip, letters } = opened;
  opened.onLeave(remember);

  browser.replaceChildren(filters, make("div", { class: "items" }, make("table", {}, head, body)), make("div", { class: "pager" }, before, after, count));
  showControls();
  update();
  document.body.dataset.items = String(items.length);
  Page.onLanguage(() => { for (const item of items) item.haystack = null; showControls(); showRows(); opened.redraw(); });
  const openAsked = async () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    if (asked.has("items") && asked.size > 1) { restore(asked); Page.reveal(document.getElementById("items")); }
    const wanted = asked.has("item") && items.find((item) => item.id === asked.get("item") && (!asked.has("language") || item.language === asked.get("language")));
    if (wanted) await open(wanted);
  };
  window.addEventListener("hashchange", openAsked); // links of the page to an item
  await openAsked();
  isReady = true;

  // Show the items that pass these filters alone; the section on failures sets them.
  const show = (filters) => {
    Object.assign(state, { text: "", category: "", language: "", outcome: "", group: null, differing: null }, filters);
    showControls();
    update();
    Page.reveal(document.getElementById("items"));
  };
  document.querySelector("#items h2").append(Downloads.anchor(fragment));
  return { items, models, make, text, number, chip, letters, unpacked, whole, open, show };
})();
Page.beforeFigures.push(Items);
