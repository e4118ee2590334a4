"use strict";
// Where models fail: wrong pairs side by side, the filters behind the map of errors, and the largest disagreements.
(async () => {
  const place = document.getElementById("pairs"), browser = await Items;
  if (!place || !browser) return;
  const { items, models, make, text, number, chip, whole, open, show } = browser, word = Page.word;
  const data = await browser.unpacked("errors");
  const state = { model: Math.max(0, data.errors.findIndex((errors) => errors.length)), shown: Number(place.dataset.count), compared: 0 };

  const link = (item) => `#item=${encodeURIComponent(item.id)}${item.language ? `&language=${encodeURIComponent(item.language)}` : ""}`;
  const opener = (item, label) => make("a", { href: link(item), onclick: (event) => { event.preventDefault(); open(item); } }, label);

  // The evidence behind "better": judgments of the pair, a chain of judgments, ratings, or the ranking alone.
  const named = (detail, better, worse) => (id) => id === better ? word("chosen") : id === worse ? word("worse_answer") : `${word("responses")} ${browser.letters(detail).get(id) || id}`;
  const sign = { left: ">", right: "<", tie: "=", none: "?" };
  const said = (name, [left, right, verdict, judge, kind, reason]) => make("li", {}, make("b", {}, `${name(left)} ${sign[verdict]} ${name(right)}`), " · ",
    make("bdi", {}, judge), ` (${word(`kind_${kind}`, kind)})`, word("colon"), reason ? make("bdi", { dir: "auto" }, reason) : make("span", { class: "dim" }, word("without_reason")));
  const chain = (judgments, better, worse) => {
    const reached = new Map([[better, []]]), waiting = [better];
    while (waiting.length && !reached.has(worse)) {
      const from = waiting.shift();
      for (const judgment of judgments) {
        const [left, right, verdict] = judgment, to = verdict === "left" && left === from ? right : verdict === "right" && right === from ? left : null;
        if (to !== null && !reached.has(to)) { reached.set(to, [...reached.get(from), judgment]); waiting.push(to); }
      }
    }
    return reached.get(worse) || [];
  };
  const reasons = (detail, better, worse) => {
    const name = named(detail, better, worse), parts = [], list = (title, lines) => parts.push(make("p", {}, word(title)), make("ul", {}, ...lines));
    const direct = detail.judgments.filter(([left, right]) => (left === better && right === worse) || (left === worse && right === better));
    const path = direct.length ? [] : chain(detail.judgments, better, worse);
    if (direct.length) list("why_judged", direct.map((one) => said(name, one)));
    if (path.length) list("why_path", path.map((one) => said(name, one)));
    const rated = detail.ratings.filter(([response]) => response === better || response === worse);
    if (rated.length) list("why_rated", rated.map(([response, rater, kind, dimension, value]) => make("li", {}, make("b", {}, `${name(response)}${word("colon")}${value}`), ` · ${dimension} · `, make("bdi", {}, rater), ` (${word(`kind_${kind}`, kind)})`)));
    for (const { names, tiers } of detail.rankings) {
      const [upper, lower] = [better, worse].map((id) => tiers.findIndex((tier) => tier.includes(id)));
      if (upper >= 0 && lower >= 0) list("why_tiers", [make("li", {}, `${word("tier")} ${upper + 1} > ${word("tier")} ${lower + 1} · ${names.join(word("comma"))}`)]);
    }
    if (!detail.judgments.length && !rated.length) parts.push(make("p", {}, word("why_published")));
    return make("details", { class: "why" }, make("summary", {}, word("why_label")), ...parts);
  };

  const lengthOf = (characters) => (characters === null ? null : `${characters.toLocaleString("en")} ${word("characters")}`);
  const side = (item, detail, id, kind, title, ...facts) => {
    const response = detail && detail.responses.find((one) => one.id === id);
    const content = response && response.text !== null ? text(response.text, item.language) : null;
    return make("article", { class: `response ${kind}` }, make("div", { class: "head" }, make("b", {}, title), ...facts.filter(Boolean).map((fact) => chip(fact, "quiet")), content ? AnswerText.toggle(content) : null),
      content || make("p", { class: "dim" }, word(detail ? "text_not_here" : "item_not_here")));
  };
  const asked = (item, detail) => {
    const last = detail && [...detail.messages].reverse().find(([role]) => role !== "system");
    return make("div", { class: "asked" }, text(last ? last[1] : item.preview, item.language));
  };
  const heading = (item, ...chips) => make("div", { class: "chips" }, ...chips, item.category && chip(Page.category(item.category), "quiet"), item.language && chip(Page.languageName(item.language), "quiet"), opener(item, word("open_item")));
  const scored = (detail, id, model) => { const one = detail && detail.responses.find((response) => response.id === id); return one ? one.scores[model] : null; };

  const error = async ([at, better, worse, margin, longBetter, longWorse, confidence]) => {
    const item = items[at], detail = await whole(item), ahead = `${confidence.toFixed(1)} ${word("times_typical")}`;
    const score = (id) => { const value = scored(detail, id, state.model); return typeof value === "number" ? `${word("score_is")} ${number(value)}` : null; };
    return make("div", { class: "pair" }, heading(item, chip(ahead, "alert"), chip(`${word("ahead_by")} ${number(-margin || 0)}`, "quiet")), asked(item, detail),
      make("div", { class: "sides even" },
        side(item, detail, worse, "rejected", word(margin < 0 ? "rejected" : "rejected_tied"), score(worse), lengthOf(longWorse)),
        side(item, detail, better, "first", word("chosen"), score(better), lengthOf(longBetter))),
      detail && reasons(detail, better, worse));
  };
  const disagreement = ([first, second]) => async ([at, better, worse, , longBetter, longWorse, isFirstRight]) => {
    const item = items[at], detail = await whole(item);
    const verdict = (model, isRight) => chip(`${models[model]}${word("colon")}${word(isRight ? "is_right" : "is_wrong")}`, isRight ? "" : "alert");
    const scores = (id) => [first, second].map((model) => { const value = scored(detail, id, model); return typeof value === "number" ? `${models[model]} ${number(value)}` : null; });
    return make("div", { class: "pair" }, heading(item, verdict(first, isFirstRight), verdict(second, !isFirstRight)), asked(item, detail),
      make("div", { class: "sides even" }, side(item, detail, worse, "rejected", word("worse_answer"), ...scores(worse), lengthOf(longWorse)),
        side(item, detail, better, "first", word("chosen"), ...scores(better), lengthOf(longBetter))),
      detail && reasons(detail, better, worse));
  };

  const chooser = (label, names, chosen, choose) => names.length < 2 ? null : make("div", { class: "filters" }, make("select", { "aria-label": label, onchange: (event) => choose(Number(event.target.value)) },
    ...names.map((name, at) => make("option", { value: at, selected: at === chosen }, name))));
  const drawErrors = async () => {
    const errors = data.errors[state.model], cards = await Promise.all(errors.slice(0, state.shown).map(error));
    const more = make("button", { type: "button", class: "more", onclick: () => { state.shown += Number(place.dataset.count); drawErrors(); } }, word("more_pairs"));
    place.replaceChildren(...[chooser(word("scorer"), models, state.model, (model) => { state.model = model; state.shown = Number(place.dataset.count); drawErrors(); }),
      ...cards, errors.length ? null : make("p", { class: "hint" }, word("no_errors")), errors.length > state.shown ? more : null].filter(Boolean));
  };
  const apart = document.getElementById("disagreements");
  const drawDisagreements = async () => {
    if (!apart) return;
    const names = data.compared.map((one) => one.models.map((model) => models[model]).join(" – ")), { models: two, largest } = data.compared[state.compared];
    const cards = await Promise.all(largest.map(disagreement(two)));
    const select = chooser(word("pair_of_models"), names, state.compared, (at) => { state.compared = at; drawDisagreements(); });
    apart.replaceChildren(...[select, cards.length ? make("details", { open: apart.dataset.open || null, ontoggle: (event) => { apart.dataset.open = event.target.open ? "1" : ""; } },
      make("summary", {}, `${word("largest_disagreements")} (${cards.length})`), ...cards) : null].filter(Boolean));
  };

  const section = document.getElementById("failures");
  section.addEventListener("click", (event) => {
    const cell = event.target.closest("button.heat"), counted = event.target.closest("button.link");
    if (cell) show({ model: Number(cell.dataset.model), group: { category: cell.dataset.category, length: cell.dataset.length, language: cell.dataset.ofLanguage } });
    if (counted) show({ model: Number(counted.dataset.wrong), differing: [Number(counted.dataset.right), Number(counted.dataset.wrong)] });
  });
  const draw = () => Promise.all([drawErrors(), drawDisagreements()]);
  await draw();
  Page.onLanguage(draw);
  place.dataset.drawn = "1";
})();
