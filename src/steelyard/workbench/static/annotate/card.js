// The card of a task: prompt, responses, and what its flow puts under them. Built before it is shown, updated in place.

import { layOut } from "../directions.js";
import { languageName } from "../languages.js";
import { watchScrolling } from "../scrolling.js";

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

// Show `parts` in a place; equal ones stay. A button that is replaced between press and release is not clicked, and one that
// has the focus loses it.
export const showParts = (place, parts) => {
  const shown = [...place.childNodes];
  const kept = parts.map((part) => {
    const number = shown.findIndex((each) => each.isEqualNode(part));
    return number < 0 ? part : Object.assign(shown.splice(number, 1)[0], { onclick: part.onclick });
  });
  shown.forEach((each) => each.remove());
  kept.forEach((node, number) => { if (place.childNodes[number] !== node) place.insertBefore(node, place.childNodes[number] ?? null); });
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
export const textOf = (html, language) => {
  const place = make("div", { class: "text", dir: "auto", lang: language || null });
  place.innerHTML = html;
  layOut(place);
  typeset(place);
  for (const block of place.querySelectorAll("pre")) block.dir = "ltr";
  watchScrolling(place);
  return place;
};

const factOf = (fact) => fact ? make("span", { class: "fact", dir: "auto" }, fact) : null;

const promptOf = (task, words) => {
  const { language } = task, title = task.kind === "translation_quality" ? words.task_source : words.task_prompt;
  const [last, ...before] = [...task.prompt].reverse();
  const turn = ({ role, html }) => make("div", { class: `turn ${role === "assistant" ? "assistant" : "user"}` }, make("p", { class: "role" }, words[`task_role_${role}`] || role), textOf(html, language));
  const body = make("div", { class: task.is_long ? "prompt-text folded" : "prompt-text" });
  if (before.length) body.append(...before.reverse().map(turn), turn(last));
  else if (last) body.append(textOf(last.html, language));
  const unfold = make("button", { type: "button", class: "quiet unfold", "aria-expanded": "false", hidden: !task.is_long }, words.task_unfold, make("kbd", { "aria-hidden": "true" }, "e"));
  unfold.addEventListener("click", () => {
    const isFolded = body.classList.toggle("folded");
    unfold.setAttribute("aria-expanded", String(!isFolded));
    unfold.firstChild.data = isFolded ? words.task_unfold : words.task_fold;
  });
  const sentBack = task.sent_back ? make("p", { class: "sent-back", dir: "auto" }, fill(words.task_sent_back, { reason: task.sent_back })) : null;
  const facts = make("div", { class: "facts" }, make("h1", {}, title), factOf(task.category), factOf(language && languageName(language)));
  return { node: make("section", { class: "card prompt", "aria-label": title }, facts, sentBack, body, unfold), unfold };
};

const responseOf = (task, response, flow, tools) => {
  const { words, act } = tools;
  const { nodes, update } = flow.controls(task, response, tools);
  const marks = make("ul", { class: "marks", hidden: true, "aria-label": words.task_marks });
  const state = make("p", { class: "discarded", hidden: true });
  const answers = task.answer_language;
  const translation = answers !== task.language ? factOf(answers && languageName(answers)) : null;
  const tool = (name, word) => make("button", { type: "button", class: "quiet", "aria-label": `${words[word]}, ${fill(words.task_response, { id: response.id })}`, onclick: () => act({ name, response: response.id }) }, words[word]);
  const node = make("article", { class: "card response", "data-response": response.id, "aria-label": fill(words.task_response, { id: response.id }), onclick: () => act({ name: "activate", response: response.id }) },
    make("header", {}, make("div", {}, make("h2", {}, response.id), translation), make("span", { class: "tools" }, tool("mark", "task_key_mark"), task.has_discards ? tool("discard", "task_key_discard") : null)),
    // Scores that stay in sight stay within this: they never cover the letter of their response.
    make("div", { class: "reply" }, response.raw.trim() ? textOf(response.html, answers) : make("p", { class: "text empty-response" }, words.task_empty_response), state, marks, ...nodes));
  return { node, update, marks, state };
};

// Build the card of a task. `flow` knows what is entered; `tools` has words, rubric and `act`, which hears what is clicked.
export const buildCard = (task, flow, tools) => {
  const prompt = promptOf(task, tools.words);
  const responses = new Map(task.responses.map((response) => [response.id, responseOf(task, response, flow, tools)]));
  const grid = responses.size ? make("div", { class: `responses of-${responses.size}` }, ...[...responses.values()].map(({ node }) => node)) : null;
  const panel = flow.panel(task, tools);
  return { task, flow, panel, shown: task.responses.map(({ id }) => id), node: make("div", { class: `task ${task.kind}` }, prompt.node, grid, panel?.node ?? null), unfold: prompt.unfold, responses };
};

// The code points of a response; those that hide or reorder others are shown by `show(letter)`.
export const lettersOf = ({ raw, hidden }, show) => {
  const letters = [...raw];
  for (const [start, end] of hidden) for (let place = start; place < end; place += 1) letters[place] = show(letters[place]);
  return letters;
};
export const codeOf = (letter) => `U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

const quoteOf = (response, [start, end]) => {
  const letters = lettersOf(response, (letter) => `⟨${codeOf(letter)}⟩`).slice(start, end);
  return letters.length > 60 ? `${letters.slice(0, 57).join("")}…` : letters.join("");
};

// The kinds of problems that may be marked in a response: those of the question, else those of the rubric.
export const marksOf = (task, response, rubric) => task.questions.find(({ input, responses }) => input === "marks" && responses[0] === response) || { choices: rubric.problems, severities: [] };

// Bring a card in line with the state of its answer.
export const updateCard = (card, state, { words, rubric, act }) => {
  const { answer } = state, { asked, active } = card.flow.lit(card, state);
  for (const [id, parts] of card.responses) {
    const reason = answer.discarded[id], { choices, severities } = marksOf(card.task, id, rubric);
    const labels = new Map([...choices, ...severities].map(({ value, label }) => [value, label]));
    parts.node.classList.toggle("active", id === active);
    parts.node.classList.toggle("asked", asked.includes(id));
    parts.node.classList.toggle("out", reason !== undefined || answer.cannot_judge !== null);
    parts.update(state);
    parts.state.hidden = reason === undefined;
    const known = rubric.discards.find(({ value }) => value === reason);
    parts.state.textContent = reason === undefined ? "" : fill(words.task_discarded, { reason: known ? known.label : reason });
    const response = card.task.responses.find((each) => each.id === id);
    const spans = answer.spans[id] || [];
    parts.marks.hidden = !spans.length;
    parts.marks.replaceChildren(...spans.map((span, number) => make("li", {},
      make("q", { dir: "auto" }, quoteOf(response, span)), ` ${labels.get(span[2]) || span[2]}${span[3] ? `: ${labels.get(span[3]) || span[3]}` : ""}`,
      make("button", { type: "button", class: "quiet", "aria-label": words.task_unmark, onclick: () => act({ name: "unmark", response: id, value: number }) }, "×"))));
  }
  card.panel?.update(state);
};
