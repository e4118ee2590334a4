"use strict";
// The whole of one prompt in a window: the conversation, the answers with tiers and scores, and the graph of judgments.
const ItemWindow = ({ make, models, scales, state, items, whole, outcome, choose }) => {
  const { word } = Page, text = AnswerText.node, dialog = document.getElementById("item");
  const chip = (label, kind) => make("span", { class: `chip ${kind || ""}` }, make("bdi", {}, label));
  const isNumber = (value) => typeof value === "number";
  const exact = (value) => (isNumber(value) ? String(value).replace(/^-(?=[0.]+$)/, "").replace("-", "−") : "–");
  const number = (value) => (isNumber(value) ? value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2).replace(/^-(?=[0.]+$)/, "").replace("-", "−") : "–");

  // One scale for a model, over its whole evaluation: bars of two prompts can be compared. Values beyond it touch the end.
  const score = (at, value, isNamed) => {
    const [low, high] = scales[at] || [0, 0], part = high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 0.5;
    const bar = isNumber(value) ? make("span", { class: "track", "aria-hidden": "true" }, make("i", { style: `inline-size:${(100 * part).toFixed(1)}%;background:var(--series-${(at % 4) + 1})` })) : null;
    const about = `${models[at]}${word("colon")}${exact(value)} · ${word("scale_of_model")} ${number(low)} … ${number(high)}`;
    return make("span", { class: "score", title: about }, isNamed ? make("bdi", { class: "dim" }, models[at]) : make("span", { class: "offscreen" }, `${word("score_of_model")} ${models[at]} `), bar, make("span", { class: "value" }, number(value)));
  };
  const otherScores = (response) => {
    const others = models.map((_, at) => at).filter((at) => at !== state.model && isNumber(response.scores[at]));
    return others.length ? make("details", { class: "other-scores" }, make("summary", {}, `${word("scores_of_others")} (${others.length})`), ...others.map((at) => score(at, response.scores[at], true))) : null;
  };

  const card = (response, detail, tiers, letters) => {
    const tier = tiers.findIndex((one) => one.includes(response.id)), isPair = tiers.length === 2 && detail.responses.length === 2;
    const known = detail.responses.map((one) => one.scores[state.model]).filter(isNumber), own = response.scores[state.model];
    const isFirst = known.length > 1 && own === Math.max(...known) && known.filter((one) => one === own).length === 1;
    const content = response.text === null ? make("p", { class: "dim" }, word("text_not_here")) : text(response.text, detail.answer_language);
    const place = tier < 0 ? word("not_ranked") : isPair ? word(tier ? "mark_rejected" : "mark_chosen") : `${word("tier")} ${tier + 1}`;
    return make("article", { class: `response${tier === 0 ? " first" : ""}${isFirst && tier > 0 ? " misplaced" : ""}`, "data-response": response.id, tabindex: -1, "aria-label": `${word("answer")} ${letters.get(response.id)}, ${place}` },
      make("div", { class: "head" }, make("span", { class: "letter", "aria-hidden": "true" }, letters.get(response.id)), chip(place, tier < 0 ? "quiet" : ""),
        isFirst ? chip(word("model_choice"), tier > 0 ? "alert" : "quiet") : null, make("bdi", { class: "dim author" }, response.author || response.id),
        known.length ? score(state.model, own) : null, response.text === null ? null : AnswerText.toggle(content)),
      otherScores(response), content);
  };

  const verdicts = (detail, letters) => {
    const cyclic = new Set(detail.edges.filter((edge) => edge[6]).flatMap(([first, second]) => [`${first}\u001f${second}`, `${second}\u001f${first}`]));
    const sign = { left: ">", right: "<", tie: "=", none: "?" };
    return make("div", { class: "judgments", tabindex: 0, role: "region", "aria-label": word("every_judgment") }, make("table", {}, make("tbody", {}, ...detail.judgments.map(([left, right, verdict, judge, kind, reason]) =>
      make("tr", { class: verdict !== "none" && verdict !== "tie" && cyclic.has(`${left}\u001f${right}`) ? "cycle" : null },
        make("td", {}, `${letters.get(left) || left} ${sign[verdict]} ${letters.get(right) || right}`),
        make("td", { dir: "auto" }, judge), make("td", {}, word(`kind_${kind}`, kind)), make("td", { dir: "auto", class: "dim" }, verdict === "none" ? Page.resolved(reason || "") : reason || ""))))));
  };
  const rankings = (detail, letters) => detail.rankings.map((one) => make("p", {}, make("code", { class: "dim" }, one.names.join(word("comma"))), word("colon"),
    make("bdi", {}, one.tiers.map((tier) => tier.map((id) => letters.get(id) || id).join(" = ")).join("  >  "))));

  let isByScore = false;
  const graph = (detail, tiers, letters) => {
    const scores = new Map(detail.responses.map((one) => [one.id, one.scores[state.model]])), wrong = detail.wrong[state.model] || [];
    const canScore = [...scores.values()].filter(isNumber).length > 1, byScore = isByScore && canScore;
    const jump = (id) => { const place = [...dialog.querySelectorAll("[data-response]")].find((one) => one.dataset.response === id); place.scrollIntoView({ block: "nearest" }); place.focus({ preventScroll: true }); };
    const about = word(byScore ? "graph_by_score_about" : detail.edges.length ? "graph_about" : "tiers_about");
    const picture = Graph.draw({ tiers, edges: detail.edges, ids: detail.responses.map((one) => one.id), letters, choose: jump, wrong, scores: byScore ? scores : null,
      caption: (id) => (isNumber(scores.get(id)) ? number(scores.get(id)) : ""), label: about });
    const mode = (key, wanted) => make("button", { type: "button", "aria-pressed": String(byScore === wanted), onclick: () => { isByScore = wanted; place.replaceWith(graph(detail, tiers, letters)); } }, word(key));
    const named = wrong.map(([better, worse]) => `${letters.get(better)} > ${letters.get(worse)}`).join(word("comma"));
    const place = make("div", {}, canScore ? make("div", { class: "modes", role: "group", "aria-label": word("graph_placed_by") }, mode("by_tiers", false), mode("by_scores", true)) : null, picture, make("p", { class: "hint" }, about),
      named ? make("p", { class: "no" }, `${word("wrong_pairs")}${word("colon")}${named}`) : null, named ? make("p", { class: "hint" }, word("wrong_edges_about")) : null);
    return place;
  };
  const aside = (detail, tiers, letters) => make("div", { class: "aside" }, make("h3", {}, word(detail.edges.length ? "judged" : "ranking")), graph(detail, tiers, letters), ...rankings(detail, letters),
    detail.judgments.length ? make("details", {}, make("summary", {}, `${word("every_judgment")} (${detail.judgments.length})`), verdicts(detail, letters)) : null);

  const lettersOf = (detail) => new Map(detail.responses.map((one, at) => [one.id, at < 26 ? String.fromCharCode(65 + at) : String(at + 1)]));
  const content = (item, detail) => {
    const tiers = detail.rankings.length ? detail.rankings[0].tiers : [], own = outcome(item), letters = lettersOf(detail);
    const place = (one) => { const at = tiers.findIndex((tier) => tier.includes(one.id)); return at < 0 ? tiers.length : at; };
    const sorted = [...detail.responses].sort((one, other) => place(one) - place(other) || (other.scores[state.model] ?? 0) - (one.scores[state.model] ?? 0));
    const chips = [...detail.category.map((one) => chip(one)), detail.language && chip(Page.languageName(detail.language), "quiet"), detail.source && chip(detail.source, "quiet"),
      own && chip(`${word("pairs_right")} ${own[1]}/${own[0]}`, own[1] < own[0] ? "alert" : ""),
      item.numConflicting && chip(`${word("conflicting")} ${item.numConflicting}/${item.numJudgments}`, "alert")].filter(Boolean);
    const turns = detail.messages.map(([role, said]) => make("div", { class: `turn ${role}` }, make("div", { class: "role" }, word(`role_${role}`, role)), text(said, detail.language)));
    const reference = detail.reference ? make("details", { class: "reference" }, make("summary", {}, word("reference")), text(detail.reference, detail.language)) : null;
    const answers = make("div", {}, make("h3", {}, `${word("responses")} (${sorted.length})`), ...sorted.map((one) => card(one, detail, tiers, letters)));
    return make("div", { class: "item-body", tabindex: -1, autofocus: true }, make("div", { class: "chips" }, ...chips), ...turns, reference, make("div", { class: "sides" }, answers, aside(detail, tiers, letters)));
  };

  let current = null;
  const fragment = (item) => `item=${encodeURIComponent(item.id)}${item.language ? `&language=${encodeURIComponent(item.language)}` : ""}`;
  const bar = (item) => {
    const at = state.shown.indexOf(item);
    const step = (by, sign, name) => make("button", { type: "button", title: `${word(name)} (${sign})`, "aria-label": word(name), disabled: at < 0 || !state.shown[at + by], onclick: () => open(state.shown[at + by]) }, sign);
    const raw = make("button", { type: "button", class: "raw", title: "R", "aria-pressed": String(AnswerText.isRaw()), onclick: () => { AnswerText.setRaw(!AnswerText.isRaw()); raw.setAttribute("aria-pressed", String(AnswerText.isRaw())); } }, word("show_raw"));
    const model = models.length > 1 ? make("select", { "aria-label": word("scorer"), onchange: (event) => { choose(Number(event.target.value)); open(item); } }, ...models.map((name, index) => make("option", { value: index, selected: state.model === index }, name))) : null;
    return make("div", { class: "item-bar" }, step(-1, "←", "before"), step(1, "→", "after"), make("bdi", { class: "where" }, item.id), make("span", { class: "count" }, at < 0 ? "" : `${at + 1} / ${state.shown.length}`),
      model, raw, Downloads.anchor(() => fragment(item)), make("button", { type: "button", class: "close", title: "Esc", "aria-label": word("close"), onclick: () => dialog.close() }, "✕"));
  };
  const open = async (item) => {
    current = item;
    const detail = await whole(item);
    // Steps may be faster than reading: only the last item asked for is shown, and none after the window is closed.
    if (current !== item) return;
    const focused = dialog.open && document.activeElement ? document.activeElement.getAttribute("aria-label") : null;
    dialog.replaceChildren(bar(item), detail ? content(item, detail) : make("p", { class: "item-body" }, word("item_not_here")));
    dialog.setAttribute("aria-label", `${word("prompt")} ${item.id}`);
    if (!dialog.open) dialog.showModal();
    // Stepping on by a button leaves the focus on that button.
    const again = focused && [...dialog.querySelectorAll(".item-bar [aria-label]")].find((one) => one.getAttribute("aria-label") === focused && !one.disabled);
    (again || dialog.querySelector(".item-body")).focus({ preventScroll: true });
    dialog.scrollTop = 0;
    history.replaceState(null, "", `#${fragment(item)}`);
  };
  const step = (by) => { const next = state.shown[state.shown.indexOf(current) + by]; if (next) open(next); };
  dialog.addEventListener("close", () => { current = null; dialog.dispatchEvent(new Event("left")); });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("keydown", (event) => {
    if (event.target.closest("select, input, textarea, pre, .wide-table") || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
    if (event.key === "r" || event.key === "R") dialog.querySelector(".item-bar .raw").click();
  });
  return { open, redraw: () => current && open(current), onLeave: (act) => dialog.addEventListener("left", act), letters: lettersOf, number, chip, fragment, items };
};
