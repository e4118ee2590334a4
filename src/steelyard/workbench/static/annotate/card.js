// The card of a task: prompt, three responses, a row of scores under each. Built before it is shown, updated in place.

export const make = (name, attributes, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== ""));
  return node;
};

// Fill the places of a text of the page: fill("{id} is better", {id: "A"}).
export const fill = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

const MOST_FORMULAS = 300, LONGEST_FORMULA = 4000;
const typeset = (place) => {
  for (const node of [...place.querySelectorAll("span.math")].slice(0, MOST_FORMULAS)) {
    const [, block, content] = /^(\$\$|\\\[)([\s\S]*?)(?:\$\$|\\\])$/.exec(node.textContent) || [null, null, node.textContent.replace(/^(\$|\\\()|(\$|\\\))$/g, "")];
    node.dir = "ltr";
    if (!window.katex || content.length > LONGEST_FORMULA) continue;
    const source = node.textContent;
    try {
      window.katex.render(content, node, { displayMode: Boolean(block), throwOnError: true, strict: "ignore", maxSize: 20, maxExpand: 500 });
    } catch {
      node.textContent = source;
    }
  }
};

// HTML from the workbench's own renderer (`safe_markdown`): no tag of it runs anything.
const textOf = (html, language) => {
  const place = make("div", { class: "text", dir: "auto", lang: language || null });
  place.innerHTML = html;
  typeset(place);
  for (const block of place.querySelectorAll("pre, table")) {
    if (block.localName === "pre") block.dir = "ltr";
    block.tabIndex = 0;
  }
  return place;
};

const promptOf = (task, words) => {
  const [last, ...before] = [...task.prompt].reverse();
  const turn = ({ role, html }) => make("div", { class: `turn ${role === "assistant" ? "assistant" : "user"}` }, make("p", { class: "role" }, words[`task_role_${role}`] || role), textOf(html, task.language));
  const body = make("div", { class: task.is_long ? "prompt-text folded" : "prompt-text" });
  if (before.length) body.append(...before.reverse().map(turn), turn(last));
  else if (last) body.append(textOf(last.html, task.language));
  const unfold = make("button", { type: "button", class: "quiet unfold", "aria-expanded": "false", hidden: !task.is_long }, words.task_unfold, make("kbd", { "aria-hidden": "true" }, "e"));
  unfold.addEventListener("click", () => {
    const isFolded = body.classList.toggle("folded");
    unfold.setAttribute("aria-expanded", String(!isFolded));
    unfold.firstChild.data = isFolded ? words.task_unfold : words.task_fold;
  });
  const facts = [task.category, task.language].filter(Boolean).map((fact) => make("span", { class: "fact" }, fact));
  return { node: make("section", { class: "card prompt", "aria-label": words.task_prompt }, make("div", { class: "facts" }, make("h1", {}, words.task_prompt), ...facts), body, unfold), unfold };
};

const responseOf = (task, response, { words, rubric, act }) => {
  const scores = rubric.scores.map(({ value, label }) => make("button", { type: "button", class: "score", "aria-pressed": "false", title: label, "aria-label": `${fill(words.task_score_of, { id: response.id })}: ${value}, ${label}`, onclick: () => act({ name: "score", value, response: response.id }) }, String(value)));
  const meaning = make("p", { class: "meaning" });
  const marks = make("ul", { class: "marks", hidden: true, "aria-label": words.task_marks });
  const state = make("p", { class: "discarded", hidden: true });
  const tool = (name, word) => make("button", { type: "button", class: "quiet", onclick: () => act({ name, response: response.id }) }, words[word]);
  const node = make("article", { class: "card response", "data-response": response.id, "aria-label": fill(words.task_response, { id: response.id }), onclick: () => act({ name: "activate", response: response.id }) },
    make("header", {}, make("h2", {}, response.id), make("span", { class: "tools" }, tool("mark", "task_key_mark"), tool("discard", "task_key_discard"))),
    textOf(response.html, task.language), state, marks,
    make("div", { class: "scores", role: "group", "aria-label": fill(words.task_score_of, { id: response.id }) }, ...scores), meaning);
  return { node, scores, meaning, marks, state };
};

// Build the card of a task. `tools` has words, rubric and `act`, which hears what is clicked.
export const buildCard = (task, tools) => {
  const prompt = promptOf(task, tools.words);
  const responses = new Map(task.responses.map((response) => [response.id, responseOf(task, response, tools)]));
  const grid = make("div", { class: "responses" }, ...[...responses.values()].map(({ node }) => node));
  return { task, shown: task.responses.map(({ id }) => id), node: make("div", { class: "task" }, prompt.node, grid), unfold: prompt.unfold, responses };
};

const quoteOf = (raw, [start, end]) => {
  const letters = [...raw].slice(start, end).join("");
  return letters.length > 60 ? `${letters.slice(0, 57)}…` : letters;
};

// Bring a card in line with an answer. `active` is the response that keys go to, `asked` those that the step is about.
export const updateCard = (card, { answer, active, asked }, { words, rubric, act }) => {
  const problems = new Map(rubric.problems.map(({ value, label }) => [value, label]));
  for (const [id, parts] of card.responses) {
    const reason = answer.discarded[id], score = answer.scores[id];
    parts.node.classList.toggle("active", id === active && !asked.length);
    parts.node.classList.toggle("asked", asked.includes(id));
    parts.node.classList.toggle("out", reason !== undefined || answer.cannot_judge !== null);
    parts.scores.forEach((button, value) => button.setAttribute("aria-pressed", String(value === score)));
    parts.meaning.textContent = score === undefined ? "\u00a0" : `${rubric.scores[score].label} · ${rubric.scores[score].text}`;
    parts.state.hidden = reason === undefined;
    const known = rubric.discards.find(({ value }) => value === reason);
    parts.state.textContent = reason === undefined ? "" : fill(words.task_discarded, { reason: known ? known.label : reason });
    const { raw } = card.task.responses.find((response) => response.id === id);
    const spans = answer.spans[id] || [];
    parts.marks.hidden = !spans.length;
    parts.marks.replaceChildren(...spans.map((span, number) => make("li", {},
      make("q", { dir: "auto" }, quoteOf(raw, span)), ` ${problems.get(span[2]) || span[2]}${span[3] ? `: ${span[3]}` : ""}`,
      make("button", { type: "button", class: "quiet", "aria-label": words.task_unmark, onclick: () => act({ name: "unmark", response: id, value: number }) }, "×"))));
  }
};
