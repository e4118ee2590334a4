"use strict";
// The items: a table to search, filter and sort, and the whole of one prompt in a window.
const Items = (async () => {
  const browser = document.getElementById("browser");
  if (!browser) return null;
  const PER_PAGE = 50, models = JSON.parse(browser.dataset.models), dialog = document.getElementById("item");
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
  const unpacked = async (name) => {
    const binary = atob(document.getElementById(name).textContent.trim());
    const bytes = new Uint8Array(binary.length);
    for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
    return JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text());
  };

  if (!("DecompressionStream" in window)) { browser.textContent = word("old_browser"); return null; }
  const NAMES = ["id", "language", "category", "preview", "outcomes", "numResponses", "numJudgments", "numConflicting", "differing", "place"];
  const items = (await unpacked("index")).map((line, at) => {
    const item = Object.fromEntries(NAMES.map((name, index) => [name, line[index]]));
    return { ...item, at, haystack: `${item.id}\n${item.preview}\n${item.category || ""}`.toLowerCase() };
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
    && (category === undefined || item.category === category) && (language === undefined || item.language === language)
    && (length === undefined || (outcome(item)[6] >> LENGTHS.indexOf(length)) % 2 === 1);
  const inDifference = (item, [right, wrong]) => item.differing.some(([one, other]) => one === right && other === wrong);

  const choose = () => {
    const words = state.text.toLowerCase().split(/\s+/).filter(Boolean), order = ORDERS[state.sort];
    state.shown = items.filter((item) => words.every((one) => item.haystack.includes(one)) && (!state.category || item.category === state.category)
      && (!state.language || item.language === state.language) && (!state.outcome || OUTCOMES[state.outcome](item))
      && (!state.group || inGroup(item, state.group)) && (!state.differing || inDifference(item, state.differing)));
    if (state.sort !== "at" || state.isDown) {
      const keys = new Map(state.shown.map((item) => [item, order(item)])), turn = state.isDown ? -1 : 1;
      state.shown.sort((one, other) => (keys.get(one) < keys.get(other) ? -turn : keys.get(one) > keys.get(other) ? turn : one.at - other.at));
    }
  };

  const row = (item) => {
    const own = outcome(item);
    const cells = [
      make("td", {}, make("button", { class: "open", type: "button" },
        item.preview ? make("span", { class: "preview", dir: "auto", lang: tag(item.language) }, item.preview) : null, make("bdi", { class: "id" }, item.id))),
      make("td", { dir: "auto" }, ...breakable(item.category || "–")), make("td", {}, item.language || "–"),
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
  const update = () => { state.page = 0; choose(); showRows(); };
  const turn = (by) => { state.page += by; showRows(); browser.scrollIntoView({ block: "start" }); };
  const before = make("button", { type: "button", onclick: () => turn(-1) }, "←"), after = make("button", { type: "button", onclick: () => turn(1) }, "→");

  const breakable = (name) => name.split(/(?<=_)/).flatMap((part) => [part, make("wbr")]); // after each underscore
  const heading = (name, width) => {
    const sort = state.sort === name ? (state.isDown ? "descending" : "ascending") : "none";
    const press = () => { state.isDown = state.sort === name ? !state.isDown : name === "worst_error"; state.sort = name; showControls(); update(); };
    return make("th", { scope: "col", "aria-sort": sort, style: width ? `width:${width}` : null }, make("button", { type: "button", onclick: press }, word(name === "at" ? "prompt" : name)));
  };
  const select = (name, all, options) => make("select", { "aria-label": all, onchange: (event) => { state[name] = event.target.value; update(); } },
    make("option", { value: "" }, all), ...options.map(([value, label]) => make("option", { value, selected: state[name] === value }, label)));
  const values = (name) => [...new Set(items.map((item) => item[name]).filter(Boolean))].sort().map((value) => [value, value]);
  const filters = make("div", { class: "filters" });
  const showControls = () => {
    const search = make("input", { type: "search", placeholder: word("search"), "aria-label": word("search"), dir: "auto", value: state.text });
    let waiting = 0;
    search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => { state.text = search.value; update(); }, 120); });
    const outcomes = Object.keys(OUTCOMES).filter((name) => (name === "in_conflict" ? hasJudgments : models.length)).map((name) => [name, word(name)]);
    const model = make("select", { "aria-label": word("scorer"), onchange: (event) => { state.model = Number(event.target.value); update(); } },
      ...models.map((name, at) => make("option", { value: at, selected: state.model === at }, name)));
    const several = (name) => (values(name).length > 1 ? select(name, word(`all_${name}`), values(name)) : null);
    const several_models = models.flatMap((_, right) => models.map((_, wrong) => [right, wrong])).filter((two) => items.some((item) => inDifference(item, two)));
    const differing = several_models.length ? make("select", { "aria-label": word("models_differ"), onchange: (event) => { state.differing = event.target.value ? event.target.value.split(",").map(Number) : null; update(); } },
      make("option", { value: "" }, word("models_differ")), ...several_models.map((two) => make("option", { value: two.join(","), selected: String(state.differing) === two.join(",") },
        `${models[two[0]]}${word("colon")}${word("is_right")} · ${models[two[1]]}${word("colon")}${word("is_wrong")}`))) : null;
    const { category, language, length } = state.group || {};
    const group = state.group ? make("button", { type: "button", class: "chip alert", title: word("clear_filter"), onclick: () => { state.group = null; showControls(); update(); } },
      make("bdi", {}, [word("wrong_pairs"), category, language, length && word(`group_${length}`)].filter(Boolean).join(word("comma"))), " ✕") : null;
    filters.replaceChildren(...[search, several("category"), several("language"), select("outcome", word("all_outcomes"), outcomes), models.length > 1 ? model : null, differing, group].filter(Boolean));
    before.setAttribute("aria-label", word("before")); after.setAttribute("aria-label", word("after"));
    head.replaceChildren(make("tr", {}, heading("at"), heading("category", "13%"), heading("language", "10%"),
      ...(models.length ? [heading("worst_error", "13%"), heading("pairs_right", "13%"), heading("exact_match", "9%")] : []), ...(hasJudgments ? [heading("conflicting", "12%")] : [])));
  };

  const chip = (label, kind) => make("span", { class: `chip ${kind || ""}` }, make("bdi", {}, label));
  const number = (value) => (value === null || value === undefined ? "–" : value.toFixed(3).replace("-", "−"));

  const shownScores = (response, all) => models.map((name, at) => {
    const known = all.map((one) => one.scores[at]).filter((one) => typeof one === "number"), value = response.scores[at];
    if (!known.length) return null;
    const low = Math.min(...known), high = Math.max(...known);
    const bar = typeof value === "number" ? make("i", { style: `width:${8 + (44 * (value - low)) / (high - low || 1)}px;background:var(--series-${(at % 4) + 1})` }) : null;
    return make("span", { class: "score", title: name }, bar, number(value));
  });
  const card = (response, all, tiers, letters, language) => {
    const tier = tiers.findIndex((one) => one.includes(response.id));
    return make("article", { class: tier === 0 ? "response first" : "response", "data-response": response.id },
      make("div", { class: "head" }, make("span", { class: "letter" }, letters.get(response.id)),
        chip(tier < 0 ? word("not_ranked") : `${word("tier")} ${tier + 1}`, tier < 0 ? "quiet" : ""),
        make("bdi", { class: "dim" }, response.author || response.id), ...shownScores(response, all)),
      response.text === null ? make("p", { class: "dim" }, word("text_not_here")) : text(response.text, language));
  };
  const verdicts = (detail, letters) => {
    const cyclic = new Set(detail.edges.filter((edge) => edge[6]).flatMap(([first, second]) => [`${first}\u001f${second}`, `${second}\u001f${first}`]));
    const sign = { left: ">", right: "<", tie: "=", none: "?" };
    return make("div", { class: "judgments" }, make("table", {}, make("tbody", {}, ...detail.judgments.map(([left, right, verdict, judge, kind, reason]) =>
      make("tr", { class: verdict !== "none" && verdict !== "tie" && cyclic.has(`${left}\u001f${right}`) ? "cycle" : null },
        make("td", {}, `${letters.get(left) || left} ${sign[verdict]} ${letters.get(right) || right}`),
        make("td", { dir: "auto" }, judge), make("td", {}, word(`kind_${kind}`, kind)), make("td", { dir: "auto", class: "dim" }, reason || ""))))));
  };
  const rankings = (detail, letters) => detail.rankings.map((one) => make("p", {}, make("span", { class: "dim" }, one.names.join(word("comma")) + word("colon")),
    make("bdi", {}, one.tiers.map((tier) => tier.map((id) => letters.get(id) || id).join(" = ")).join("  >  "))));

  const aside = (detail, tiers, letters) => {
    const scores = new Map(detail.responses.map((one) => [one.id, one.scores[state.model]]));
    const jump = (id) => [...dialog.querySelectorAll("[data-response]")].find((one) => one.dataset.response === id).scrollIntoView({ behavior: "smooth", block: "nearest" });
    const picture = Graph.draw({ tiers, edges: detail.edges, ids: detail.responses.map((one) => one.id), letters, choose: jump,
      caption: (id) => (typeof scores.get(id) === "number" ? number(scores.get(id)) : ""), label: word("graph_about"), wrong: detail.wrong[state.model] || [] });
    const wrong = (detail.wrong[state.model] || []).map(([better, worse]) => `${letters.get(better)} > ${letters.get(worse)}`).join(word("comma"));
    const parts = [make("h3", {}, word(detail.edges.length ? "judged" : "ranking")), picture,
      make("p", { class: "hint" }, word(detail.edges.length ? "graph_about" : "tiers_about")),
      wrong ? make("p", { class: "no" }, `${word("wrong_pairs")}${word("colon")}${wrong}`) : null, wrong ? make("p", { class: "hint" }, word("wrong_edges_about")) : null, ...rankings(detail, letters)];
    if (detail.judgments.length) parts.push(make("details", {}, make("summary", {}, `${word("every_judgment")} (${detail.judgments.length})`), verdicts(detail, letters)));
    return make("div", { class: "aside" }, ...parts.filter(Boolean));
  };

  const lettersOf = (detail) => new Map(detail.responses.map((one, at) => [one.id, at < 26 ? String.fromCharCode(65 + at) : String(at + 1)]));
  const content = (item, detail) => {
    const tiers = detail.rankings.length ? detail.rankings[0].tiers : [], own = outcome(item);
    const letters = lettersOf(detail);
    const place = (one) => { const at = tiers.findIndex((tier) => tier.includes(one.id)); return at < 0 ? tiers.length : at; };
    const sorted = [...detail.responses].sort((one, other) => place(one) - place(other) || (other.scores[state.model] ?? 0) - (one.scores[state.model] ?? 0));
    const chips = [...detail.category.map((one) => chip(one)), detail.language && chip(detail.language, "quiet"), detail.source && chip(detail.source, "quiet"),
      own && chip(`${word("pairs_right")} ${own[1]}/${own[0]}`, own[1] < own[0] ? "alert" : ""),
      item.numConflicting && chip(`${word("conflicting")} ${item.numConflicting}/${item.numJudgments}`, "alert")].filter(Boolean);
    const turns = detail.messages.map(([role, content]) => make("div", { class: `turn ${role}` }, make("div", { class: "role" }, word(`role_${role}`, role)), text(content, detail.language)));
    const reference = detail.reference ? make("details", {}, make("summary", {}, word("reference")), text(detail.reference, detail.language)) : null;
    const answers = make("div", {}, make("h3", {}, word("responses")), ...sorted.map((one) => card(one, detail.responses, tiers, letters, detail.language)));
    return make("div", { class: "item-body", tabindex: -1, autofocus: true }, make("div", { class: "chips" }, ...chips), ...turns, reference, make("div", { class: "sides" }, answers, aside(detail, tiers, letters)));
  };

  let current = null;
  const open = async (item) => {
    current = item;
    const detail = await whole(item), at = state.shown.indexOf(item);
    const step = (by, sign, name) => make("button", { type: "button", "aria-label": word(name), disabled: at < 0 || !state.shown[at + by], onclick: () => open(state.shown[at + by]) }, sign);
    dialog.replaceChildren(make("div", { class: "item-bar" }, step(-1, "←", "before"), step(1, "→", "after"), make("bdi", { class: "where" }, item.id),
      make("button", { type: "button", "aria-label": word("close"), onclick: () => dialog.close() }, "✕")),
      detail ? content(item, detail) : make("p", { class: "item-body" }, word("item_not_here")));
    dialog.setAttribute("aria-label", item.id);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    history.replaceState(null, "", `#item=${encodeURIComponent(item.id)}${item.language ? `&language=${encodeURIComponent(item.language)}` : ""}`);
  };
  dialog.addEventListener("close", () => { current = null; history.replaceState(null, "", "#items"); });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key], next = by && state.shown[state.shown.indexOf(current) + by];
    if (next) open(next);
  });

  browser.replaceChildren(filters, make("div", { class: "items" }, make("table", {}, head, body)), make("div", { class: "pager" }, before, after, count));
  showControls();
  update();
  document.body.dataset.items = String(items.length);
  Page.onLanguage(() => { showControls(); showRows(); if (current) open(current); });
  const openAsked = async () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    const wanted = asked.has("item") && items.find((item) => item.id === asked.get("item") && (!asked.has("language") || item.language === asked.get("language")));
    if (wanted) await open(wanted);
  };
  window.addEventListener("hashchange", openAsked); // links of the page to an item
  await openAsked();

  // Show the items that pass these filters alone; the section on failures sets them.
  const show = (filters) => {
    Object.assign(state, { text: "", category: "", language: "", outcome: "", group: null, differing: null }, filters);
    showControls();
    update();
    document.getElementById("items").scrollIntoView();
  };
  return { items, models, make, text, number, chip, letters: lettersOf, unpacked, whole, open, show };
})();
